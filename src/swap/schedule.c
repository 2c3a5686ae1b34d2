/* schedule.c: when the copies of a set of swaps go, in the paper's way. */
#include <math.h>
#include <stdlib.h>

#include "swap/simulate.h"

typedef struct copy_in {
    double due_ns;
    double length_ns;
    double latest_ns; /* start */
    uint32_t swap;
} copy_in;

static int compare_due(const void *left, const void *right)
{
    const copy_in *a = left;
    const copy_in *b = right;
    if (a->due_ns != b->due_ns) {
        return a->due_ns < b->due_ns ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

/* The latest starts such that each copy ends by its due and before the next one starts: backwards over two periods, so
 * that what is due early in a period makes way in the one before. */
static void find_latest(copy_in *copies, uint32_t n, double period_ns)
{
    double next_start = INFINITY;
    for (int lap = 1; lap >= 0; lap--) {
        for (uint32_t i = n; i-- > 0;) {
            double end = fmin(copies[i].due_ns + lap * period_ns, next_start);
            next_start = end - copies[i].length_ns;
            copies[i].latest_ns = next_start - lap * period_ns;
        }
    }
}

neap_status np_schedule_swaps(const np_timeline *timeline, const np_link *link, np_swap *swaps, uint32_t n_swaps)
{
    copy_in *copies = np_memory_alloc(timeline->memory, n_swaps, sizeof *copies);
    if (!copies) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n_swaps; i++) { /* dues of one period, so that the queue's order is the order of dues */
        double due = timeline->gaps.items[swaps[i].gap].due_ns;
        double laps = floor(due / timeline->period_ns);
        copies[i] = (copy_in){.due_ns = due - laps * timeline->period_ns, .swap = i};
        copies[i].length_ns = link->latency_ns + (double)swaps[i].bytes / link->in;
    }
    qsort(copies, n_swaps, sizeof *copies, compare_due);
    find_latest(copies, n_swaps, timeline->period_ns);
    for (uint32_t i = 0; i < n_swaps; i++) {
        np_swap *swap = &swaps[copies[i].swap];
        const np_gap *gap = &timeline->gaps.items[swap->gap];
        double laps = floor(gap->due_ns / timeline->period_ns);
        double start = copies[i].latest_ns + laps * timeline->period_ns;
        swap->out_key = gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(timeline, gap->from);
        swap->in_key = gap->due_ns;
        swap->in_after = np_timeline_last_ended(timeline, gap, start);
    }
    np_memory_free(timeline->memory, copies, n_swaps, sizeof *copies);
    return NEAP_OK;
}
