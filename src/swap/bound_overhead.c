#include "swap/bound_overhead.h"

#include <math.h>

#include "swap/bound.h"
#include "swap/bound_windows.h"

#define PERIODS 8 /* that the path goes over: long enough to close on its best circle nearly always */

/* At least `wait_ns` is waited before the execs begin + 1 .. end. */
typedef struct wait_window {
    double wait_ns;
    uint32_t begin; /* below n_execs */
    uint32_t end;   /* counted on */
} wait_window;

typedef np_array(wait_window) wait_array;

/* A place on the line between execs, and the longest path to it. */
typedef struct place {
    double wait_ns;
    uint32_t before; /* place before it on that path */
} place;

/* ---- the windows that matter ---- */

/* What must be waited in the window of `left`. */
static double wait_in(const np_left *left, const np_link *link, double limit)
{
    double both = (left->both - limit) / fmax(link->out, link->in);
    return fmax(both, fmax((left->out - limit) / link->out, (left->in - limit) / link->in));
}

/* Keeps windows that have a wait longer than any window inside them. `inside[end]` is the longest wait of the windows
 * that begin later and end at `end` or before, as far as it is known: too low only keeps more. Adds the windows that
 * begin after exec i. */
static neap_status keep_windows(np_windows *windows, uint32_t i, double limit, double *inside, wait_array *kept)
{
    uint32_t n = np_windows_sweep(windows, i, limit);
    double longest = 0;
    for (uint32_t m = 0; m < n; m++) {
        uint32_t end = i + 1 + m;
        double wait_ns = wait_in(&windows->left[m], &windows->link, limit);
        longest = fmax(longest, inside[end]);
        if (wait_ns > longest) {
            wait_window window = {wait_ns, i, end};
            if (np_array_push(windows->timeline->memory, kept, window) != NEAP_OK) {
                return NEAP_NO_MEMORY;
            }
            longest = wait_ns;
        }
        inside[end] = longest;
    }
    return NEAP_OK;
}

static neap_status find_windows(const np_timeline *timeline, const np_link *link, double limit, wait_array *kept)
{
    uint32_t n = timeline->n_execs;
    double *inside = np_memory_alloc_zero(timeline->memory, 2 * (size_t)n, sizeof *inside);
    np_windows windows;
    neap_status status = inside ? np_windows_init(&windows, timeline, link) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (uint32_t i = n; i-- > 0 && status == NEAP_OK;) {
            status = keep_windows(&windows, i, limit, inside, kept);
        }
        np_windows_free(&windows);
    }
    np_memory_free(timeline->memory, inside, 2 * (size_t)n, sizeof *inside);
    return status;
}

/* ---- the path ---- */

/* Longest paths from place 0 to every other. The windows stand in descending order of begin. */
static void find_paths(const wait_array *kept, uint32_t n, place *places, uint32_t n_places)
{
    size_t next = kept->n;
    for (uint32_t p = 0; p < n_places; p++) {
        places[p] = (place){-1, 0};
    }
    places[0].wait_ns = 0;
    for (uint32_t p = 0; p < n_places; p++) {
        uint32_t shift = p - p % n;
        if (p > 0 && places[p - 1].wait_ns >= places[p].wait_ns) {
            places[p] = (place){places[p - 1].wait_ns, p - 1};
        }
        next = p % n == 0 ? kept->n : next;
        for (; next > 0 && kept->items[next - 1].begin == p % n; next--) {
            const wait_window *window = &kept->items[next - 1];
            uint32_t end = window->end + shift;
            if (end < n_places && places[p].wait_ns + window->wait_ns > places[end].wait_ns) {
                places[end] = (place){places[p].wait_ns + window->wait_ns, p};
            }
        }
    }
}

/* The most a period on any part of the path to the last place that begins and ends at the same place of the circle.
 * `seen` has room for a place of each of the periods, for every exec. */
static double best_circle(const place *places, uint32_t n_places, uint32_t n, uint32_t *seen)
{
    double best = 0;
    for (uint32_t r = 0; r < n * PERIODS; r++) {
        seen[r] = UINT32_MAX;
    }
    for (uint32_t p = n_places - 1;; p = places[p].before) {
        uint32_t *same = &seen[(size_t)(p % n) * PERIODS];
        for (uint32_t q = 0; q < PERIODS; q++) {
            if (same[q] == UINT32_MAX) {
                same[q] = p;
                break;
            }
            best = fmax(best, (places[same[q]].wait_ns - places[p].wait_ns) / (double)((same[q] - p) / n));
        }
        if (p == 0) {
            return best;
        }
    }
}

neap_status np_bound_overhead(const np_timeline *timeline, const np_link *link, uint64_t limit, double *overhead_ns)
{
    const neap_memory *memory = timeline->memory;
    uint32_t n = timeline->n_execs;
    size_t n_places = (size_t)n * PERIODS + 1;
    np_floor floor;
    wait_array kept = {0};
    place *places;
    uint32_t *seen;
    neap_status status = np_bound_floor(timeline, &floor);
    if (status != NEAP_OK) {
        return status;
    }
    if (n == 0 || limit < floor.bytes) {
        *overhead_ns = limit < floor.bytes ? INFINITY : 0;
        return NEAP_OK;
    }
    places = np_memory_alloc(memory, n_places, sizeof *places);
    seen = np_memory_alloc(memory, n_places - 1, sizeof *seen);
    status = places && seen ? find_windows(timeline, link, (double)limit, &kept) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        find_paths(&kept, n, places, (uint32_t)n_places);
        *overhead_ns = best_circle(places, (uint32_t)n_places, n, seen);
    }
    np_array_free(memory, &kept);
    np_memory_free(memory, seen, n_places - 1, sizeof *seen);
    np_memory_free(memory, places, n_places, sizeof *places);
    return status;
}
