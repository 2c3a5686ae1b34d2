#include "swap/hold.h"

#include <stdlib.h>

#include "swap/load.h"

typedef struct due_swap {
    double in_key;
    uint32_t swap;
} due_swap;

static int compare_due(const void *left, const void *right)
{
    const due_swap *a = left;
    const due_swap *b = right;
    if (a->in_key != b->in_key) {
        return a->in_key < b->in_key ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

/* Brings the swap in as early as it wants and the load lets it: back from its due, exec by exec. */
static void hold_one(const np_timeline *timeline, uint64_t limit, uint64_t *load, np_swap *swap)
{
    uint32_t k = timeline->gaps.items[swap->gap].to - 1;
    while (k > swap->in_after && load[k % timeline->n_execs] + swap->bytes <= limit) {
        load[k % timeline->n_execs] += swap->bytes;
        k--;
    }
    swap->in_after = k;
}

neap_status np_hold_swaps(const np_timeline *timeline, uint64_t limit, np_swap *swaps, uint32_t n_swaps)
{
    const neap_memory *memory = timeline->memory;
    size_t n_load = (size_t)timeline->n_execs + 1;
    uint64_t *load = np_memory_alloc_zero(memory, n_load, sizeof *load);
    due_swap *order = np_memory_alloc(memory, n_swaps, sizeof *order);
    neap_status status = load && order ? NEAP_OK : NEAP_NO_MEMORY;

    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n_swaps; i++) {
            const np_gap *gap = &timeline->gaps.items[swaps[i].gap];
            order[i] = (due_swap){swaps[i].in_key, i};
            np_load_take(load, timeline->n_execs, gap->from + 1, gap->to, swaps[i].bytes);
        }
        status = np_load_sum(timeline, load) <= limit ? NEAP_OK : NEAP_NO_PLAN;
    }
    if (status == NEAP_OK) {
        qsort(order, n_swaps, sizeof *order, compare_due);
        for (uint32_t i = 0; i < n_swaps; i++) {
            hold_one(timeline, limit, load, &swaps[order[i].swap]);
        }
    }
    np_memory_free(memory, load, n_load, sizeof *load);
    np_memory_free(memory, order, n_swaps, sizeof *order);
    return status;
}
