#include "swap/bound_overhead.h"

#include <math.h>

#include "swap/bound.h"
#include "swap/bound_windows.h"

#define PERIODS 8 /* that the path goes over: long enough to close on its best circle nearly always */

/* Of `left` bytes that are in the window, all beyond the limit must be copied at no more than `speed` while the program
 * waits before the execs begin + 1 .. end. */
typedef struct wait_window {
    double left;
    double speed;   /* bytes a ns */
    uint32_t begin; /* below n_execs */
    uint32_t end;   /* counted on */
} wait_window;

typedef np_array(wait_window) wait_array;

/* The most that is left in the windows that begin later than the present one and end at some exec or before, as far as
 * it is known: too low only keeps more windows. */
typedef struct inner {
    double slow; /* of the windows whose speed is the lower of the link's */
    double all;
} inner;

/* A place on the line between execs, and the longest path to it. */
typedef struct place {
    double wait_ns;
    uint32_t before; /* place before it on that path */
} place;

/* fmax is a call, and looks for NaN. */
static inline double higher(double a, double b)
{
    return a > b ? a : b;
}

/* ---- the windows that matter ---- */

static neap_status keep(np_windows *windows, double left, double speed, uint32_t begin, uint32_t end, wait_array *kept)
{
    wait_window window = {left, speed, begin, end};
    return np_array_push(windows->timeline->memory, kept, window);
}

/* Adds the windows that begin after exec i and in which more is left than in any window inside them that copies no
 * faster: the others ask for no wait of their own, whatever the limit. */
static neap_status keep_windows(np_windows *windows, uint32_t i, double limit, inner *inners, wait_array *kept)
{
    const np_link *link = &windows->link;
    double slow = fmin(link->out, link->in);
    double fast = fmax(link->out, link->in);
    uint32_t n = np_windows_sweep(windows, i, limit);
    inner most = {limit, limit};
    neap_status status = NEAP_OK;
    for (uint32_t m = 0; m < n && status == NEAP_OK; m++) {
        const np_window_left *left = &windows->left[m];
        inner *inside = &inners[i + 1 + m];
        double by_slow = link->out == slow ? left->out : left->in;
        double by_fast = higher(left->both, link->out == slow ? left->in : left->out);
        by_slow = slow == fast ? higher(by_slow, by_fast) : by_slow;
        most.slow = higher(most.slow, inside->slow);
        most.all = higher(most.all, inside->all);
        if (by_slow > most.slow) {
            status = keep(windows, by_slow, slow, i, i + 1 + m, kept);
            most.slow = by_slow;
            most.all = higher(most.all, by_slow);
        }
        if (by_fast > most.all && status == NEAP_OK) {
            status = keep(windows, by_fast, fast, i, i + 1 + m, kept);
            most.all = by_fast;
        }
        *inside = most;
    }
    return status;
}

/* All windows that matter for limits of at least `limit`, in descending order of begin. */
static neap_status find_windows(const np_timeline *timeline, const np_link *link, double limit, wait_array *kept)
{
    uint32_t n = timeline->n_execs;
    inner *inners = np_memory_alloc_zero(timeline->memory, 2 * (size_t)n, sizeof *inners);
    np_windows windows;
    neap_status status = inners ? np_windows_init(&windows, timeline, link) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (uint32_t i = n; i-- > 0 && status == NEAP_OK;) {
            status = keep_windows(&windows, i, limit, inners, kept);
        }
        np_windows_free(&windows);
    }
    np_memory_free(timeline->memory, inners, 2 * (size_t)n, sizeof *inners);
    return status;
}

/* ---- the path ---- */

/* Longest paths from place 0 to every other. */
static void find_paths(const wait_array *kept, double limit, uint32_t n, place *places, uint32_t n_places)
{
    size_t next = kept->n;
    for (uint32_t p = 0; p < n_places; p++) {
        places[p] = (place){-1, 0};
    }
    places[0].wait_ns = 0;
    for (uint32_t p = 0; p < n_places; p++) {
        uint32_t begin = p % n;
        if (p > 0 && places[p - 1].wait_ns >= places[p].wait_ns) {
            places[p] = (place){places[p - 1].wait_ns, p - 1};
        }
        next = begin == 0 ? kept->n : next;
        for (; next > 0 && kept->items[next - 1].begin == begin; next--) {
            const wait_window *window = &kept->items[next - 1];
            uint32_t end = window->end - begin + p;
            double wait_ns = places[p].wait_ns + (window->left - limit) / window->speed;
            if (end < n_places && wait_ns > places[end].wait_ns) {
                places[end] = (place){wait_ns, p};
            }
        }
    }
}

/* The most a period on any part of the path to the last place that begins and ends at the same place of the circle.
 * `seen` has room for a place of each of the periods, for every exec. */
static double best_circle(const place *places, uint32_t n_places, uint32_t n, uint32_t *seen)
{
    double best = 0;
    for (uint32_t r = 0; r < n_places - 1; r++) {
        seen[r] = UINT32_MAX;
    }
    for (uint32_t p = n_places - 1;; p = places[p].before) {
        uint32_t *same = &seen[(size_t)(p % n) * PERIODS];
        for (uint32_t q = 0; q < PERIODS; q++) {
            if (same[q] == UINT32_MAX) {
                same[q] = p;
                break;
            }
            uint32_t periods = (same[q] - p) / n;
            best = fmax(best, (places[same[q]].wait_ns - places[p].wait_ns) / periods);
        }
        if (p == 0) {
            return best;
        }
    }
}

/* ---- all of it ---- */

static neap_status find_overheads(const np_timeline *timeline, const wait_array *kept, const uint64_t *limits,
                                  size_t n_limits, uint64_t floor, double *overheads_ns)
{
    const neap_memory *memory = timeline->memory;
    uint32_t n = timeline->n_execs;
    uint32_t n_places = n * PERIODS + 1;
    place *places = np_memory_alloc(memory, n_places, sizeof *places);
    uint32_t *seen = np_memory_alloc(memory, n_places, sizeof *seen);
    neap_status status = places && seen ? NEAP_OK : NEAP_NO_MEMORY;
    for (size_t i = 0; i < n_limits && status == NEAP_OK; i++) {
        if (limits[i] < floor) {
            overheads_ns[i] = INFINITY;
        } else if (n == 0) {
            overheads_ns[i] = 0;
        } else {
            find_paths(kept, (double)limits[i], n, places, n_places);
            overheads_ns[i] = best_circle(places, n_places, n, seen);
        }
    }
    np_memory_free(memory, seen, n_places, sizeof *seen);
    np_memory_free(memory, places, n_places, sizeof *places);
    return status;
}

neap_status np_bound_overheads(const np_timeline *timeline, const np_link *link, const uint64_t *limits,
                               size_t n_limits, double *overheads_ns)
{
    uint64_t lowest = UINT64_MAX;
    np_floor floor;
    wait_array kept = {0};
    neap_status status = np_bound_floor(timeline, &floor);
    if (status == NEAP_OK && timeline->n_execs > UINT32_MAX / PERIODS - 1) {
        status = NEAP_TOO_LARGE;
    }
    for (size_t i = 0; i < n_limits; i++) {
        lowest = limits[i] < lowest ? limits[i] : lowest;
    }
    if (status == NEAP_OK) {
        lowest = lowest < floor.bytes ? floor.bytes : lowest;
        status = find_windows(timeline, link, (double)lowest, &kept);
    }
    if (status == NEAP_OK) {
        status = find_overheads(timeline, &kept, limits, n_limits, floor.bytes, overheads_ns);
    }
    np_array_free(timeline->memory, &kept);
    return status;
}

neap_status np_bound_overhead(const np_timeline *timeline, const np_link *link, uint64_t limit, double *overhead_ns)
{
    return np_bound_overheads(timeline, link, &limit, 1, overhead_ns);
}
