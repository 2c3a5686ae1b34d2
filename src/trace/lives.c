/* lives.c: from the blocks of a run to lives on the circle.
 *
 * Blocks that are malloc'd at the same position of different periods are instances of one life. How long it lasts is
 * read from a free: its key has the number of events since the malloc, so every free of the run that is at the same
 * position frees an instance of the same life at the same age, also one that was malloc'd before the run began. A malloc
 * in the period that no free of the run answers is a leak. What lives through the chosen period and is no instance of
 * anything is persistent. */
#include "trace/lives.h"

#include "trace/overlay.h"

typedef struct builder {
    np_period *period;
    uint32_t *span;    /* [position from the run's begin]: events from malloc to free; 0: leaked, or no malloc */
    uint32_t *life_at; /* [position]: index of its life */
} builder;

static uint32_t position_of(const np_period *period, uint32_t event)
{
    return event >= period->begin ? (event - period->begin) % period->length
                                  : period->length - 1 - (period->begin - 1 - event) % period->length;
}

/* The block that the period mallocs at a position; NULL where it does not. */
static const neap_block *malloc_at(const np_period *period, uint32_t position)
{
    const neap_event *event = &period->trace->events.items[period->begin + position];
    return event->kind == NEAP_EVENT_MALLOC ? &period->trace->blocks.items[event->subject] : NULL;
}

/* Frees of one period of the run: those of the others have the same keys. */
static void find_spans(builder *b)
{
    const np_period *period = b->period;
    for (uint32_t f = period->begin; f < period->begin + period->length; f++) {
        const neap_event *event = &period->trace->events.items[f];
        const neap_block *block = &period->trace->blocks.items[event->kind == NEAP_EVENT_FREE ? event->subject : 0];
        if (event->kind == NEAP_EVENT_FREE && block->malloc_event != NEAP_NEVER) {
            uint32_t position = position_of(period, block->malloc_event);
            const neap_block *other = malloc_at(period, position);
            if (other && other->bytes == block->bytes) {
                b->span[position] = f - block->malloc_event;
            }
        }
    }
}

/* Whether a block malloc'd before the run is an instance of the life at that position: it must be freed when that is. */
static bool is_early_instance(const builder *b, const neap_block *block, uint32_t position)
{
    const np_period *period = b->period;
    const neap_block *other = malloc_at(period, position);
    uint32_t span = b->span[position];
    if (!span || !other || other->bytes != block->bytes) {
        return false;
    }
    if (block->free_event == NEAP_NEVER) {
        return block->malloc_event + (uint64_t)span >= period->trace->events.n;
    }
    return block->free_event - block->malloc_event == span;
}

static neap_status add_life(np_period *period, uint32_t block, uint32_t begin, uint32_t span, bool persistent)
{
    np_life life = {block, begin, begin + span, persistent, NEAP_NEVER, NEAP_NEVER};
    if (span > NEAP_NEVER - begin - 1) {
        return NEAP_TOO_LARGE;
    }
    return np_array_push(period->memory, &period->lives, life);
}

/* Blocks that live all through the chosen period. */
static neap_status add_persistent(builder *b, uint32_t *life_of_block)
{
    np_period *period = b->period;
    const neap_trace *trace = period->trace;
    for (uint32_t i = 0; i < trace->blocks.n; i++) {
        const neap_block *block = &trace->blocks.items[i];
        bool here_first = block->malloc_event == NEAP_NEVER || block->malloc_event < period->begin;
        bool here_last = block->free_event == NEAP_NEVER || block->free_event >= period->origin + period->length;
        bool instance = block->malloc_event != NEAP_NEVER && block->malloc_event < period->begin &&
                        is_early_instance(b, block, position_of(period, block->malloc_event));
        life_of_block[i] = NP_LIFE_OTHER;
        if (here_first && here_last && !instance) {
            neap_status status = add_life(period, i, 0, period->length, true);
            if (status != NEAP_OK) {
                return status;
            }
            life_of_block[i] = (uint32_t)period->lives.n - 1;
        }
    }
    return NEAP_OK;
}

/* Blocks malloc'd in the chosen period, in order. */
static neap_status add_malloced(builder *b)
{
    np_period *period = b->period;
    for (uint32_t t = 0; t < period->length; t++) {
        const neap_event *event = &period->trace->events.items[period->origin + t];
        uint32_t position = position_of(period, period->origin + t);
        if (event->kind != NEAP_EVENT_MALLOC) {
            continue;
        }
        b->life_at[position] = NP_LIFE_LEAKED;
        if (b->span[position]) {
            neap_status status = add_life(period, event->subject, t, b->span[position], false);
            if (status != NEAP_OK) {
                return status;
            }
            b->life_at[position] = (uint32_t)period->lives.n - 1;
        } else {
            period->n_leaked++;
        }
    }
    return NEAP_OK;
}

static void find_instances(builder *b, uint32_t *life_of_block)
{
    const np_period *period = b->period;
    for (uint32_t i = 0; i < period->trace->blocks.n; i++) {
        const neap_block *block = &period->trace->blocks.items[i];
        uint32_t position;
        if (block->malloc_event == NEAP_NEVER || block->malloc_event >= period->begin + period->run_length) {
            continue;
        }
        position = position_of(period, block->malloc_event);
        if (block->malloc_event >= period->begin || is_early_instance(b, block, position)) {
            life_of_block[i] = b->life_at[position];
        }
    }
}

neap_status np_lives_make(np_period *period, uint32_t *life_of_block)
{
    builder b = {.period = period};
    neap_status status = NEAP_NO_MEMORY;
    b.span = np_memory_alloc_zero(period->memory, period->length, sizeof *b.span);
    b.life_at = np_memory_alloc_zero(period->memory, period->length, sizeof *b.life_at);
    if (b.span && b.life_at) {
        find_spans(&b);
        status = add_persistent(&b, life_of_block);
        if (status == NEAP_OK) {
            status = add_malloced(&b);
        }
        if (status == NEAP_OK) {
            find_instances(&b, life_of_block);
        }
    }
    np_memory_free(period->memory, b.span, period->length, sizeof *b.span);
    np_memory_free(period->memory, b.life_at, period->length, sizeof *b.life_at);
    return status;
}
