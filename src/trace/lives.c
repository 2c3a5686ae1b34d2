/* lives.c: from the blocks of a run to lives on the circle.
 *
 * Blocks that are malloc'd at the same position of different periods are instances of one life. How long it lasts is
 * read from a free: its key has the number of events since the malloc, so every free of the run that is at the same
 * position frees an instance of the same life at the same age, also one that was malloc'd before the run began.
 *
 * Some lives are longer than the run: each period frees a block from before it and mallocs one that outlives it (a queue,
 * a replay buffer). Such mallocs and frees are paired: those that an age brings together, and of the others those of
 * one size, in their order. A pair's life is taken to last as many periods as there are blocks to be seen waiting: the
 * shortest that agrees with the recording, and the only one for which the lives add up to the load. A malloc in the
 * period that is left over is a leak.
 *
 * What lives from before the run to the chosen period and is no instance of anything is persistent. */
#include "trace/lives.h"

#include <assert.h>

#include "base/map.h"
#include "trace/overlay.h"

#define NONE UINT32_MAX

/* Pairs of a malloc and a free of one size, none of whose instances was seen from its malloc to its free. */
typedef struct group {
    uint32_t
        age; /* events from malloc to free where the malloc, before the run, could be seen: there is one pair; else 0 */
    uint32_t first_free, last_free; /* positions: the list of those that have no malloc yet; NONE: empty */
    uint32_t n_pairs;
    uint32_t n_across;  /* pairs of which the free comes first, counted from the origin */
    uint32_t n_members; /* instances that live at the origin */
    uint32_t n_given;   /* pairs that have been given their share of them */
} group;

/* Positions count from the run's begin, below the period's length. */
typedef struct builder {
    np_period *period;
    uint32_t *span;      /* [position of a malloc]: events until its free; 0: leaked, or no malloc */
    uint32_t *life_at;   /* [position of a malloc]: index of its life, or NP_LIFE_LEAKED */
    uint32_t *malloc_of; /* [position of a free]: position of its malloc, NONE: it has none */
    uint32_t *group_of;  /* [position of a malloc that was paired]: its group, else NONE */
    uint32_t *next_free; /* [position of a free]: the next in its group's list */
    np_map group_of_size;
    np_array(group) groups;
} builder;

static uint32_t position_of(const np_period *period, uint32_t event)
{
    assert(period->length > 0);
    return event >= period->begin ? (event - period->begin) % period->length
                                  : period->length - 1 - (period->begin - 1 - event) % period->length;
}

static bool is_in_run(const np_period *period, uint32_t event)
{
    return event != NEAP_NEVER && event >= period->begin && event - period->begin < period->run_length;
}

/* The block that the period mallocs or frees at a position; NULL where it does neither. */
static const neap_trace_block *block_at(const np_period *period, uint32_t position, neap_event_kind kind)
{
    const neap_event *event = &period->trace->events.items[period->begin + position];
    return event->kind == kind ? &period->trace->blocks.items[event->subject] : NULL;
}

/* ---------------------------------------------------------------- by age ---- */

/* Instances that the run shows from malloc to free. */
static void find_spans(builder *b)
{
    const np_period *period = b->period;
    for (uint32_t i = 0; i < period->run_length; i++) {
        const neap_event *event = &period->trace->events.items[period->begin + i];
        if (event->kind == NEAP_EVENT_FREE) {
            uint32_t malloc_event = period->trace->blocks.items[event->subject].malloc_event;
            if (is_in_run(period, malloc_event)) {
                uint32_t position = position_of(period, malloc_event);
                b->span[position] = period->begin + i - malloc_event;
                b->malloc_of[position_of(period, period->begin + i)] = position;
            }
        }
    }
}

/* Counted from the origin. */
static uint32_t time_of(const np_period *period, uint32_t position)
{
    uint32_t origin = period->origin - period->begin;
    return position >= origin ? position - origin : position + period->length - origin;
}

/* Pairs the malloc and the free at two positions. */
static void add_pair(builder *b, uint32_t malloc_at, uint32_t free_at, uint32_t index)
{
    uint32_t begin = time_of(b->period, malloc_at), end = time_of(b->period, free_at);
    group *g = &b->groups.items[index];
    b->malloc_of[free_at] = malloc_at;
    b->group_of[malloc_at] = index;
    b->span[malloc_at] = end > begin ? end - begin : end + b->period->length - begin;
    g->n_pairs++;
    g->n_across += end < begin;
}

/* A free of a block from before the run, malloc'd where the run mallocs one too. */
static neap_status pair_by_age(builder *b, uint32_t free_at)
{
    const np_period *period = b->period;
    const neap_trace_block *block = block_at(period, free_at, NEAP_EVENT_FREE), *other;
    uint32_t position;
    if (!block || b->malloc_of[free_at] != NONE || block->malloc_event == NEAP_NEVER) {
        return NEAP_OK;
    }
    position = position_of(period, block->malloc_event);
    other = block_at(period, position, NEAP_EVENT_MALLOC);
    if (!other || other->bytes != block->bytes || b->span[position]) {
        return NEAP_OK;
    }
    if (np_array_push(period->memory, &b->groups, ((group){.age = block->free_event - block->malloc_event})) !=
        NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    add_pair(b, position, free_at, (uint32_t)b->groups.n - 1);
    return NEAP_OK;
}

/* ---------------------------------------------------------------- by size ---- */

static neap_status find_group(builder *b, uint64_t bytes, uint32_t *index)
{
    bool found;
    neap_status status = np_array_reserve(b->period->memory, &b->groups, b->groups.n + 1);
    if (status == NEAP_OK) {
        status = np_map_get_or_put(&b->group_of_size, bytes, (uint32_t)b->groups.n, index, &found);
    }
    if (status == NEAP_OK && !found) {
        b->groups.items[b->groups.n++] = (group){.first_free = NONE, .last_free = NONE};
    }
    return status;
}

static neap_status list_free(builder *b, uint32_t position)
{
    const neap_trace_block *block = block_at(b->period, position, NEAP_EVENT_FREE);
    uint32_t index;
    group *g;
    neap_status status;
    if (!block || b->malloc_of[position] != NONE) {
        return NEAP_OK;
    }
    status = find_group(b, block->bytes, &index);
    if (status != NEAP_OK) {
        return status;
    }
    g = &b->groups.items[index];
    *(g->first_free == NONE ? &g->first_free : &b->next_free[g->last_free]) = position;
    g->last_free = position;
    b->next_free[position] = NONE;
    return NEAP_OK;
}

static neap_status pair_by_size(builder *b, uint32_t position)
{
    const neap_trace_block *block = block_at(b->period, position, NEAP_EVENT_MALLOC);
    uint32_t index, free_at;
    neap_status status;
    if (!block || b->span[position]) {
        return NEAP_OK;
    }
    status = find_group(b, block->bytes, &index);
    if (status == NEAP_OK && b->groups.items[index].first_free != NONE) {
        free_at = b->groups.items[index].first_free;
        b->groups.items[index].first_free = b->next_free[free_at];
        add_pair(b, position, free_at, index);
    }
    return status;
}

/* Whether a block from before the run, malloc'd where the pair is, is still to be freed when the run ends. */
static bool outlives_run(const builder *b, const neap_trace_block *block, uint32_t position)
{
    uint64_t run_end = (uint64_t)b->period->begin + b->period->run_length;
    const neap_trace_block *other = block_at(b->period, position, NEAP_EVENT_MALLOC);
    uint32_t age = b->group_of[position] == NONE ? 0 : b->groups.items[b->group_of[position]].age;
    return age && other && other->bytes == block->bytes && block->malloc_event + (uint64_t)age >= run_end &&
           (block->free_event == NEAP_NEVER || block->free_event >= run_end);
}

/* The position of the paired malloc that the block is an instance of, or NONE. */
static uint32_t paired_position(const builder *b, const neap_trace_block *block)
{
    const np_period *period = b->period;
    uint32_t position = NONE;
    if (is_in_run(period, block->malloc_event)) {
        position = position_of(period, block->malloc_event);
    } else if (is_in_run(period, block->free_event)) {
        position = b->malloc_of[position_of(period, block->free_event)];
    } else if (block->malloc_event != NEAP_NEVER && block->malloc_event < period->begin) {
        position = position_of(period, block->malloc_event);
        position = outlives_run(b, block, position) ? position : NONE;
    }
    return position != NONE && b->group_of[position] != NONE ? position : NONE;
}

static bool lives_at_origin(const np_period *period, const neap_trace_block *block)
{
    return (block->malloc_event == NEAP_NEVER || block->malloc_event < period->origin) &&
           (block->free_event == NEAP_NEVER || block->free_event >= period->origin);
}

/* How many whole periods the paired ones last longer: as many as make their number right. */
static void lengthen_pairs(builder *b)
{
    const np_period *period = b->period;
    for (uint32_t i = 0; i < period->trace->blocks.n; i++) {
        const neap_trace_block *block = &period->trace->blocks.items[i];
        uint32_t position = lives_at_origin(period, block) ? paired_position(b, block) : NONE;
        if (position != NONE) {
            b->groups.items[b->group_of[position]].n_members++;
        }
    }
    for (uint32_t t = 0; t < period->length; t++) {
        uint32_t position = position_of(period, period->origin + t);
        if (b->group_of[position] != NONE) {
            group *g = &b->groups.items[b->group_of[position]];
            /* Every free of the period frees one that lives at the origin, so there are enough. */
            uint32_t more = g->n_members > g->n_across ? g->n_members - g->n_across : 0;
            b->span[position] += (more / g->n_pairs + (g->n_given < more % g->n_pairs)) * period->length;
            g->n_given++;
        }
    }
}

static neap_status pair_rest(builder *b)
{
    const np_period *period = b->period;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; status == NEAP_OK && i < period->length; i++) {
        status = pair_by_age(b, i);
    }
    for (uint32_t t = 0; status == NEAP_OK && t < period->length; t++) {
        status = list_free(b, position_of(period, period->origin + t));
    }
    for (uint32_t t = 0; status == NEAP_OK && t < period->length; t++) {
        status = pair_by_size(b, position_of(period, period->origin + t));
    }
    if (status == NEAP_OK) {
        lengthen_pairs(b);
    }
    return status;
}

/* ---------------------------------------------------------------- lives ---- */

/* The position of the malloc in the run that the block is an instance of, or NONE. */
static uint32_t instance_position(const builder *b, const neap_trace_block *block)
{
    const np_period *period = b->period;
    uint32_t position;
    if (is_in_run(period, block->malloc_event)) {
        return position_of(period, block->malloc_event);
    }
    position = paired_position(b, block);
    if (position == NONE && block->malloc_event != NEAP_NEVER && is_in_run(period, block->free_event)) {
        position = b->malloc_of[position_of(period, block->free_event)]; /* of a life whose age was seen in the run */
    }
    return position;
}

static neap_status add_life(np_period *period, uint32_t block, uint32_t begin, uint32_t span, bool persistent)
{
    np_life life = {block, begin, begin + span, persistent, NEAP_NEVER, NEAP_NEVER};
    if (span > NEAP_NEVER - begin - 1) {
        return NEAP_TOO_LARGE;
    }
    return np_array_push(period->memory, &period->lives, life);
}

/* Blocks from before the run. (One of them may be freed in the chosen period by a program that grows by something else:
 * it is held to the period's end.) */
static neap_status add_persistent(builder *b, uint32_t *life_of_block)
{
    np_period *period = b->period;
    for (uint32_t i = 0; i < period->trace->blocks.n; i++) {
        const neap_trace_block *block = &period->trace->blocks.items[i];
        bool is_older = block->malloc_event == NEAP_NEVER || block->malloc_event < period->begin;
        life_of_block[i] = NP_LIFE_OTHER;
        if (is_older && lives_at_origin(period, block) && instance_position(b, block) == NONE) {
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
        uint32_t position = instance_position(b, &period->trace->blocks.items[i]);
        if (position != NONE) {
            life_of_block[i] = b->life_at[position];
        }
    }
}

static neap_status make(builder *b, uint32_t *life_of_block)
{
    neap_status status;
    for (uint32_t i = 0; i < b->period->length; i++) {
        b->span[i] = 0;
        b->malloc_of[i] = b->group_of[i] = NONE;
        b->life_at[i] = NP_LIFE_OTHER;
    }
    find_spans(b);
    status = pair_rest(b);
    if (status == NEAP_OK) {
        status = add_persistent(b, life_of_block);
    }
    if (status == NEAP_OK) {
        status = add_malloced(b);
    }
    if (status == NEAP_OK) {
        find_instances(b, life_of_block);
    }
    return status;
}

neap_status np_lives_make(np_period *period, uint32_t *life_of_block)
{
    builder b = {.period = period};
    neap_status status = NEAP_NO_MEMORY;
    uint32_t **arrays[] = {&b.span, &b.life_at, &b.malloc_of, &b.group_of, &b.next_free};
    size_t n_arrays = sizeof arrays / sizeof *arrays, n_made = 0;
    np_map_init(&b.group_of_size, period->memory);
    while (n_made < n_arrays && (*arrays[n_made] = np_memory_alloc(period->memory, period->length, sizeof(uint32_t)))) {
        n_made++;
    }
    if (n_made == n_arrays) {
        status = make(&b, life_of_block);
    }
    while (n_made > 0) {
        np_memory_free(period->memory, *arrays[--n_made], period->length, sizeof(uint32_t));
    }
    np_map_free(&b.group_of_size);
    np_array_free(period->memory, &b.groups);
    return status;
}
