#include "swap/bound.h"

#include <math.h>

#include "swap/bound_windows.h"

/* ---- the lowest peak ---- */

/* What is left in some window that begins after exec i, once the plan has waited for `wait_ns` in it. */
static double highest_left(np_windows *windows, uint32_t i, double wait_ns, double highest)
{
    double out = windows->link.out;
    double in = windows->link.in;
    double both = fmax(out, in);
    uint32_t n = np_windows_sweep(windows, i, highest);
    for (uint32_t m = 0; m < n; m++) {
        const np_window_left *left = &windows->left[m];
        double by_out = left->out - out * wait_ns;
        double by_in = left->in - in * wait_ns;
        double by_both = left->both - both * wait_ns;
        highest = by_out > highest ? by_out : highest;
        highest = by_in > highest ? by_in : highest;
        highest = by_both > highest ? by_both : highest;
    }
    return highest;
}

neap_status np_bound_peak(const np_timeline *timeline, const np_link *link, double overhead, uint64_t *peak)
{
    const uint32_t stride = 64;
    np_windows windows;
    np_floor floor;
    double highest;
    neap_status status = np_bound_floor(timeline, &floor);
    if (status == NEAP_OK) {
        status = np_windows_init(&windows, timeline, link);
    }
    if (status != NEAP_OK) {
        return status;
    }
    highest = (double)floor.bytes; /* no copy helps below it */
    for (uint32_t first = 0; first < stride;
         first++) { /* a few here and there first: a high one makes the rest short */
        for (uint32_t i = first; i < timeline->n_execs; i += stride) {
            highest = highest_left(&windows, i, overhead * timeline->period_ns, highest);
        }
    }
    np_windows_free(&windows);
    *peak = (uint64_t)ceil(highest * (1 - 1e-12)); /* sums of times are not exact */
    return NEAP_OK;
}

/* ---- the floor ---- */

neap_status np_bound_floor(const np_timeline *timeline, np_floor *floor)
{
    uint32_t n = timeline->n_execs;
    uint64_t *absent = np_memory_alloc_zero(timeline->memory, (size_t)n + 1, sizeof *absent);
    uint64_t now = 0;
    uint64_t across = 0;
    np_floor found = {0, 0};
    if (!absent) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < timeline->gaps.n; i++) {
        const np_gap *gap = &timeline->gaps.items[i];
        uint32_t first = gap->from + 1; /* changes modulo 2^64 */
        absent[first % n] += gap->bytes;
        absent[gap->to % n] -= gap->bytes;
        across += first / n == gap->to / n ? 0 : gap->bytes;
    }
    for (uint32_t k = 0; k < n; k++) {
        now += absent[k];
        if (timeline->needed.items[k] - (now + across) > found.bytes) {
            found = (np_floor){timeline->needed.items[k] - (now + across), k};
        }
    }
    np_memory_free(timeline->memory, absent, (size_t)n + 1, sizeof *absent);
    *floor = found;
    return NEAP_OK;
}
