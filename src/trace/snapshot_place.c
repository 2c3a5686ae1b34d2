/* snapshot_place.c: an address for every block of a trace: the lowest hole that is large enough.
 *
 * A trace has no addresses. This gives it some, as a plain allocator would that serves the events in order; a plan's
 * places, which know the future, are another matter (pool/). Holes are kept sorted and melt together; finding one is
 * linear in their number, which is small beside that of the live blocks. */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "trace/snapshot.h"

typedef struct hole {
    uint64_t begin;
    uint64_t end;
} hole;

typedef struct placer {
    const neap_memory *memory;
    np_array(hole) holes; /* sorted, never touching each other, and never touching `top` */
    uint64_t top;         /* nothing stands at or above it */
    uint64_t highest;     /* that it ever was */
} placer;

static void remove_hole(placer *p, size_t index)
{
    p->holes.n--;
    memmove(&p->holes.items[index], &p->holes.items[index + 1], (p->holes.n - index) * sizeof(hole));
}

static neap_status take(placer *p, uint64_t bytes, uint64_t *offset)
{
    for (size_t i = 0; i < p->holes.n; i++) {
        hole *h = &p->holes.items[i];
        if (h->end - h->begin >= bytes) {
            *offset = h->begin;
            h->begin += bytes;
            if (h->begin == h->end) {
                remove_hole(p, i);
            }
            return NEAP_OK;
        }
    }
    *offset = p->top;
    if (!np_add_u64(p->top, bytes, &p->top)) {
        return NEAP_TOO_LARGE;
    }
    p->highest = p->top > p->highest ? p->top : p->highest;
    return NEAP_OK;
}

/* Index of the first hole that begins at or after `at`. */
static size_t first_from(const placer *p, uint64_t at)
{
    size_t low = 0;
    size_t high = p->holes.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->holes.items[middle].begin < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static neap_status give_back(placer *p, uint64_t begin, uint64_t end)
{
    size_t next = first_from(p, begin);
    bool joins_next = next < p->holes.n && p->holes.items[next].begin == end;
    hole *last = next > 0 && p->holes.items ? &p->holes.items[next - 1] : NULL;
    bool joins_last = last && last->end == begin;
    if (end == p->top) {
        p->top = joins_last ? last->begin : begin;
        p->holes.n -= joins_last;
        return NEAP_OK;
    }
    if (joins_last) {
        last->end = joins_next ? p->holes.items[next].end : end;
        if (joins_next) {
            remove_hole(p, next);
        }
        return NEAP_OK;
    }
    if (joins_next) {
        p->holes.items[next].begin = begin;
        return NEAP_OK;
    }
    if (np_array_reserve(p->memory, &p->holes, p->holes.n + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    assert(p->holes.items);
    memmove(&p->holes.items[next + 1], &p->holes.items[next], (p->holes.n - next) * sizeof(hole));
    p->holes.items[next] = (hole){begin, end};
    p->holes.n++;
    return NEAP_OK;
}

static neap_status move(placer *p, const neap_trace_block *block, bool is_free, uint64_t *offset)
{
    uint64_t bytes;
    if (!np_round_up(block->bytes, NP_SNAPSHOT_ALIGNMENT, &bytes)) {
        return NEAP_TOO_LARGE;
    }
    return is_free ? give_back(p, *offset, *offset + bytes) : take(p, bytes, offset);
}

neap_status np_snapshot_place(const neap_trace *trace, const neap_memory *memory, uint64_t *offsets, uint64_t *top)
{
    placer p = {.memory = np_memory_or_default(memory)};
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        if (trace->blocks.items[i].malloc_event == NEAP_NEVER) {
            status = move(&p, &trace->blocks.items[i], false, &offsets[i]);
        }
    }
    for (size_t i = 0; i < trace->events.n && status == NEAP_OK; i++) {
        const neap_event *event = &trace->events.items[i];
        if (event->kind != NEAP_EVENT_EXEC) {
            status = move(&p, &trace->blocks.items[event->subject], event->kind == NEAP_EVENT_FREE,
                          &offsets[event->subject]);
        }
    }
    np_array_free(p.memory, &p.holes);
    if (status == NEAP_OK) {
        *top = p.highest;
    }
    return status;
}
