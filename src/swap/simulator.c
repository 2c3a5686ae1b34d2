#include "swap/simulator.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING_NS 1e-3 /* two ends of execs are further apart than sums of times are wrong */

/* ---- making ---- */

void np_simulator_free(np_simulator *simulator)
{
    if (simulator) {
        const neap_memory *memory = simulator->timeline->memory;
        size_t n = simulator->timeline->n_execs;
        np_memory_free(memory, simulator->first_used, n, sizeof *simulator->first_used);
        np_memory_free(memory, simulator->last_used, n, sizeof *simulator->last_used);
        np_array_free(memory, &simulator->swaps);
        np_array_free(memory, &simulator->out_jobs);
        np_array_free(memory, &simulator->in_jobs);
        np_array_free(memory, &simulator->due_at);
        np_array_free(memory, &simulator->due);
        np_array_free(memory, &simulator->after_at);
        np_array_free(memory, &simulator->after);
        np_array_free(memory, &simulator->awaited_at);
        np_array_free(memory, &simulator->awaited);
        np_memory_free(memory, simulator, 1, sizeof *simulator);
    }
}

static void find_needs(np_simulator *simulator)
{
    const np_timeline *timeline = simulator->timeline;
    uint32_t n = timeline->n_execs;
    for (size_t i = 0; i < timeline->blocks.n; i++) {
        const np_swap_block *block = &timeline->blocks.items[i];
        const np_use *uses = &timeline->uses.items[block->first_use];
        if (!block->persistent && !block->pinned) {
            simulator->first_used[uses[0].exec % n] += block->bytes;
            simulator->last_used[uses[block->n_uses - 1].exec % n] += block->bytes;
        }
    }
    simulator->begin_bytes = timeline->needed.items[0] - simulator->first_used[0];
}

neap_status np_simulator_create(const np_timeline *timeline, const np_link *link, np_simulator **simulator)
{
    const neap_memory *memory = timeline->memory;
    np_simulator *made;
    if (timeline->n_execs == 0) {
        return NEAP_BAD_ARGUMENT;
    }
    made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->timeline = timeline;
    made->link = *link;
    made->first_used = np_memory_alloc_zero(memory, timeline->n_execs, sizeof *made->first_used);
    made->last_used = np_memory_alloc_zero(memory, timeline->n_execs, sizeof *made->last_used);
    if (!made->first_used || !made->last_used) {
        np_simulator_free(made);
        return NEAP_NO_MEMORY;
    }
    made->pause_ns = timeline->start_ns.items[0];
    find_needs(made);
    *simulator = made;
    return NEAP_OK;
}

/* ---- preparing the swaps of one simulation ---- */

static int compare_jobs(const void *left, const void *right)
{
    const np_copy_job *a = left;
    const np_copy_job *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

/* Keys are times; what lies beyond the first period is queued in a later one. */
static np_copy_job make_job(double key, double period_ns, uint64_t bytes, uint32_t swap)
{
    double lap = floor(key / period_ns);
    return (np_copy_job){.bytes = bytes, .key = key - lap * period_ns, .lap = (int32_t)lap, .swap = swap};
}

/* Does nothing write the block between the gap before this one and this one? Gaps of a block follow each other. */
static bool is_unchanged_since_last_gap(const np_timeline *timeline, uint32_t gap_index)
{
    const np_gap *gap = &timeline->gaps.items[gap_index];
    const np_gap *before = gap_index > 0 ? gap - 1 : NULL;
    if (!before || before->block != gap->block) {
        return false;
    }
    /* A block that lives across the period's end has its later gaps counted from the period's start. */
    return gap->release_ns + (gap->from < before->from ? timeline->period_ns : 0) <=
           np_timeline_end(timeline, before->from) + ROUNDING_NS;
}

static neap_status prepare_swaps(np_simulator *simulator, const np_swap *swaps, uint32_t n_swaps)
{
    const np_timeline *timeline = simulator->timeline;
    const neap_memory *memory = timeline->memory;
    uint32_t n_out = 0;
    if (np_array_reserve(memory, &simulator->swaps, n_swaps) != NEAP_OK ||
        np_array_reserve(memory, &simulator->out_jobs, (size_t)n_swaps + 1) != NEAP_OK ||
        np_array_reserve(memory, &simulator->in_jobs, (size_t)n_swaps + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n_swaps; i++) {
        const np_gap *gap = &timeline->gaps.items[swaps[i].gap];
        np_swap_state *state = &simulator->swaps.items[i];
        *state = (np_swap_state){.bytes = swaps[i].bytes,
                                 .from = gap->from,
                                 .to = gap->to,
                                 .in_after = swaps[i].in_after,
                                 .out_before = swaps[i].out_before};
        state->clean = gap->release_ns == -INFINITY;
        state->release = state->clean ? (int32_t)gap->from : np_timeline_release_exec(timeline, gap);
        if (!state->clean && i > 0 && swaps[i - 1].gap + 1 == swaps[i].gap && swaps[i].bytes == gap->bytes &&
            swaps[i - 1].bytes == gap->bytes) { /* listed one after the other: whole both times */
            state->clean = is_unchanged_since_last_gap(timeline, swaps[i].gap);
        }
        if (!state->clean) { /* what is not copied must not hold up the queue */
            simulator->out_jobs.items[n_out++] = make_job(swaps[i].out_key, timeline->period_ns, swaps[i].bytes, i);
        }
        simulator->in_jobs.items[i] = make_job(swaps[i].in_key, timeline->period_ns, swaps[i].bytes, i);
    }
    simulator->swaps.n = simulator->in_jobs.n = n_swaps;
    simulator->out_jobs.n = n_out;
    qsort(simulator->out_jobs.items, n_out, sizeof(np_copy_job), compare_jobs);
    qsort(simulator->in_jobs.items, n_swaps, sizeof(np_copy_job), compare_jobs);
    return NEAP_OK;
}

typedef np_array(uint32_t) u32_array;

typedef enum grouping { BY_BEGIN, BY_END, BY_WAIT } grouping;

/* The exec, below n_execs, at which the swap is listed; n_execs: at none. */
static uint32_t exec_of(const np_simulator *simulator, const np_swap_state *swap, grouping by)
{
    uint32_t n_execs = simulator->timeline->n_execs;
    switch (by) {
    case BY_BEGIN:
        return swap->from;
    case BY_END:
        return swap->to % n_execs;
    case BY_WAIT:
        break;
    }
    return swap->out_before > 0 ? swap->out_before % n_execs : n_execs;
}

/* Groups swaps by exec: those at exec k are items[at[k]] .. items[at[k + 1]]. */
static neap_status group(const np_simulator *simulator, grouping by, void *at_array, void *item_array)
{
    const neap_memory *memory = simulator->timeline->memory;
    uint32_t n_execs = simulator->timeline->n_execs;
    u32_array *at = at_array;
    u32_array *items = item_array;
    size_t n = simulator->swaps.n;
    if (np_array_reserve(memory, at, (size_t)n_execs + 3) != NEAP_OK || np_array_reserve(memory, items, n) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k < n_execs + 3; k++) {
        at->items[k] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        at->items[exec_of(simulator, &simulator->swaps.items[i], by) + 2]++;
    }
    for (uint32_t k = 2; k < n_execs + 3; k++) {
        at->items[k] += at->items[k - 1];
    }
    for (uint32_t i = 0; i < n; i++) { /* those at none come behind all others */
        items->items[at->items[exec_of(simulator, &simulator->swaps.items[i], by) + 1]++] = i;
    }
    return NEAP_OK;
}

neap_status np_simulator_prepare(np_simulator *simulator, const np_swap *swaps, uint32_t n_swaps)
{
    neap_status status = prepare_swaps(simulator, swaps, n_swaps);
    if (status == NEAP_OK) {
        status = group(simulator, BY_END, &simulator->due_at, &simulator->due);
    }
    if (status == NEAP_OK) {
        status = group(simulator, BY_BEGIN, &simulator->after_at, &simulator->after);
    }
    if (status == NEAP_OK) {
        status = group(simulator, BY_WAIT, &simulator->awaited_at, &simulator->awaited);
    }
    return status;
}

np_absence np_simulator_absence(const np_simulator *simulator, uint32_t swap)
{
    const np_swap_state *state = &simulator->swaps.items[swap];
    return (np_absence){state->absent_from, state->back_from};
}
