/* trace_valid.c: whether a trace is what trace.h says, and whether two are the same. Linear walks, no allocation. */
#include <string.h>

#include "trace/trace.h"

static const neap_trace_block *block_at(const neap_trace *trace, uint32_t index)
{
    return index < trace->blocks.n ? &trace->blocks.items[index] : NULL;
}

static bool malloc_is_valid(const neap_trace *trace, uint32_t at, const neap_event *event)
{
    const neap_trace_block *block = block_at(trace, event->subject);
    return block && block->malloc_event == at;
}

static bool free_is_valid(const neap_trace *trace, uint32_t at, const neap_event *event)
{
    const neap_trace_block *block = block_at(trace, event->subject);
    return block && block->free_event == at && (block->malloc_event == NEAP_NEVER || block->malloc_event < at);
}

static bool exec_is_valid(const neap_trace *trace, uint32_t at, const neap_event *event)
{
    if (trace->is_csv || event->subject >= trace->name_at.n || event->first_access > trace->accesses.n ||
        event->n_accesses > trace->accesses.n - event->first_access) {
        return false;
    }
    for (uint32_t i = 0; i < event->n_accesses; i++) {
        const neap_access *access = &trace->accesses.items[event->first_access + i];
        const neap_trace_block *block = block_at(trace, access->block);
        if (!block || access->kind > NEAP_ACCESS_UNKNOWN || block->free_event < at ||
            (block->malloc_event != NEAP_NEVER && block->malloc_event > at)) {
            return false;
        }
    }
    return true;
}

/* Every event fits its blocks, accesses follow each other without a hole, and the load stays within its limit. */
static bool events_are_valid(const neap_trace *trace)
{
    uint64_t load = 0;
    uint64_t n_accesses = 0;
    size_t n_mallocs = 0;
    size_t n_frees = 0;

    for (size_t i = 0; i < trace->blocks.n; i++) {
        load += trace->blocks.items[i].malloc_event == NEAP_NEVER ? trace->blocks.items[i].bytes : 0;
        if (load > NP_TRACE_BYTES_MAX) {
            return false;
        }
    }
    for (size_t i = 0; i < trace->events.n; i++) {
        const neap_event *event = &trace->events.items[i];
        if (event->kind == NEAP_EVENT_EXEC) {
            if (event->first_access != n_accesses || !exec_is_valid(trace, (uint32_t)i, event)) {
                return false;
            }
            n_accesses += event->n_accesses;
        } else if (event->kind == NEAP_EVENT_MALLOC) {
            if (!malloc_is_valid(trace, (uint32_t)i, event)) {
                return false;
            }
            load += trace->blocks.items[event->subject].bytes;
            n_mallocs++;
        } else {
            if (event->kind != NEAP_EVENT_FREE || !free_is_valid(trace, (uint32_t)i, event)) {
                return false;
            }
            load -= trace->blocks.items[event->subject].bytes;
            n_frees++;
        }
        if (load > NP_TRACE_BYTES_MAX) {
            return false;
        }
    }
    for (size_t i = 0; i < trace->blocks.n; i++) {
        n_mallocs -= trace->blocks.items[i].malloc_event != NEAP_NEVER;
        n_frees -= trace->blocks.items[i].free_event != NEAP_NEVER;
    }
    return load == trace->live_bytes && n_accesses == trace->accesses.n && n_mallocs == 0 && n_frees == 0;
}

/* In order of appearance, found by their numbers; in a CSV every block is malloc'd and freed. */
static bool blocks_are_valid(const neap_trace *trace)
{
    uint32_t last = NEAP_NEVER; /* malloc event of the block before; NEAP_NEVER: it was live from the start */
    if (trace->block_of_id.n != trace->blocks.n || !np_map_is_valid(&trace->block_of_id)) {
        return false;
    }
    for (size_t i = 0; i < trace->blocks.n; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        bool in_order = last == NEAP_NEVER || (block->malloc_event != NEAP_NEVER && block->malloc_event > last);
        if (block->bytes == 0 || block->bytes > NP_TRACE_BYTES_MAX || !in_order ||
            np_map_get(&trace->block_of_id, block->id) != i || np_trace_find_block(trace, block->id) != i) {
            return false;
        }
        if (trace->is_csv ? block->malloc_event == NEAP_NEVER || block->free_event == NEAP_NEVER
                          : block->fixed_offset != NEAP_NO_OFFSET) {
            return false;
        }
        last = block->malloc_event;
    }
    return true;
}

static bool text_is_valid(const neap_trace *trace)
{
    size_t n_fields = 0;
    size_t at = 0;

    for (size_t i = 0; i < trace->name_at.n; i++) {
        if (trace->name_at.items[i] != at) {
            return false;
        }
        do {
            if (at >= trace->names.n) {
                return false;
            }
        } while (trace->names.items[at++] != '\0');
    }
    for (size_t i = 0; i < trace->meta.n; i++) {
        n_fields += trace->meta.items[i] == '\0';
    }
    return at == trace->names.n && trace->name_of_hash.n == trace->name_at.n && np_map_is_valid(&trace->name_of_hash) &&
           n_fields % 2 == 0 && (trace->meta.n == 0 || trace->meta.items[trace->meta.n - 1] == '\0');
}

static bool marks_are_valid(const neap_trace *trace)
{
    for (size_t i = 0; i < trace->marks.n; i++) {
        if (trace->marks.items[i] > trace->events.n || (i && trace->marks.items[i] < trace->marks.items[i - 1])) {
            return false;
        }
    }
    return true;
}

bool np_trace_is_valid(const neap_trace *trace)
{
    return trace->events.n <= NP_TRACE_MAX && blocks_are_valid(trace) && events_are_valid(trace) &&
           text_is_valid(trace) && marks_are_valid(trace);
}

static bool bytes_are_equal(const void *a, size_t n_a, const void *b, size_t n_b, size_t elem_bytes)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * elem_bytes) == 0);
}

#define arrays_are_equal(a, b) bytes_are_equal((a).items, (a).n, (b).items, (b).n, sizeof *(a).items)

/* None of these structures has padding, which is what lets them be compared as bytes. */
_Static_assert(sizeof(neap_event) == 40 && sizeof(neap_trace_block) == 32 && sizeof(neap_access) == 8, "padding");

bool np_trace_is_equal(const neap_trace *a, const neap_trace *b)
{
    return a->is_csv == b->is_csv && a->live_bytes == b->live_bytes && arrays_are_equal(a->events, b->events) &&
           arrays_are_equal(a->blocks, b->blocks) && arrays_are_equal(a->accesses, b->accesses) &&
           arrays_are_equal(a->marks, b->marks) && arrays_are_equal(a->names, b->names) &&
           arrays_are_equal(a->name_at, b->name_at) && arrays_are_equal(a->meta, b->meta);
}
