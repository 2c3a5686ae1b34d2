#include "swap/thrift.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_STEPS = 12, MAX_ROUNDS = 8 };

#define PLACE_SECONDS 0.02
#define GAIN 1e-6 /* of an iteration: less is no time */

typedef struct saving {
    np_planner *planner;
    uint64_t limit;
    np_judged *best;
    np_judged trial;
    np_swap_array parts; /* of one gap */
    double most;         /* cost */
    uint64_t seed;
} saving;

/* ---- changes: the best plan's swaps, one gap's other than they were, as the trial ---- */

static void copy_others(saving *s, uint32_t gap)
{
    const np_swap_array *from = &s->best->swaps;
    s->trial.swaps.n = 0;
    for (size_t i = 0; i < from->n; i++) {
        if (from->items[i].gap != gap) {
            s->trial.swaps.items[s->trial.swaps.n++] = from->items[i];
        }
    }
}

static int compare_in(const void *left, const void *right)
{
    const np_swap *a = left;
    const np_swap *b = right;
    return a->in_key < b->in_key ? -1 : a->in_key > b->in_key;
}

/* The gap's parts, in the order in which they come back. */
static void list_parts(saving *s, uint32_t gap)
{
    const np_swap_array *from = &s->best->swaps;
    s->parts.n = 0;
    for (size_t i = 0; i < from->n; i++) {
        if (from->items[i].gap == gap) {
            s->parts.items[s->parts.n++] = from->items[i];
        }
    }
    qsort(s->parts.items, s->parts.n, sizeof *s->parts.items, compare_in);
}

/* Several parts as one, which leaves and comes back when the first of them did. */
static np_swap merge(const np_swap *parts, size_t n)
{
    np_swap merged = parts[0];
    for (size_t i = 1; i < n; i++) {
        merged.bytes += parts[i].bytes;
        merged.out_key = fmin(merged.out_key, parts[i].out_key);
        merged.in_key = fmin(merged.in_key, parts[i].in_key);
        merged.in_after = parts[i].in_after < merged.in_after ? parts[i].in_after : merged.in_after;
        if (parts[i].out_before > 0 && (merged.out_before == 0 || parts[i].out_before < merged.out_before)) {
            merged.out_before = parts[i].out_before;
        }
    }
    return merged;
}

static uint64_t half(const saving *s, uint64_t bytes)
{
    return bytes / 2 / s->planner->page * s->planner->page;
}

/* ---- trials ---- */

/* Others may stand in the way where they are. */
static neap_status place_anew(saving *s, np_place_options options, uint64_t *excess)
{
    np_planner *planner = s->planner;
    neap_status status;
    options.seconds = PLACE_SECONDS;
    np_layout_free(&s->trial.layout);
    status = np_place_swaps(planner->timeline, planner->simulator, s->trial.swaps.items, (uint32_t)s->trial.swaps.n,
                            &options, planner->error, &s->trial.place, &s->trial.layout);
    *excess = status == NEAP_OK && s->trial.place.footprint > s->limit ? s->trial.place.footprint - s->limit : 0;
    return status;
}

/* Keeps the trial where it takes no more time, and has a place. */
static neap_status judge(saving *s, bool *kept)
{
    np_planner *planner = s->planner;
    np_place_options options = np_planner_place_options(planner, 0, s->limit);
    uint32_t n = (uint32_t)s->trial.swaps.n;
    uint64_t excess = 0;
    neap_status status = np_simulate(planner->simulator, s->limit, s->trial.swaps.items, n, &s->trial.simulation);
    *kept = false;
    if (status != NEAP_OK || !s->trial.simulation.possible || np_planner_cost(planner, &s->trial) > s->most) {
        return status;
    }
    options.seed = s->seed++;
    np_layout_free(&s->trial.layout);
    status = np_place_near(planner->timeline, planner->simulator, s->trial.swaps.items, n, &options, &s->best->layout,
                           PLACE_STEPS, planner->error, &s->trial.place, &s->trial.layout, &excess);
    if (status == NEAP_OK && excess > 0) {
        status = place_anew(s, options, &excess);
    }
    if (status == NEAP_OK && excess == 0) {
        s->trial.limit = s->limit;
        s->most = fmin(s->most, np_planner_cost(planner, &s->trial) + GAIN);
        np_judged_exchange(s->best, &s->trial);
        *kept = true;
    }
    return status;
}

static neap_status try_without(saving *s, uint32_t gap, bool *kept)
{
    copy_others(s, gap);
    return judge(s, kept);
}

/* So many parts at a time become one. */
static neap_status try_merged(saving *s, uint32_t gap, size_t n_each, bool *kept)
{
    list_parts(s, gap);
    copy_others(s, gap);
    for (size_t i = 0; i < s->parts.n; i += n_each) {
        size_t left = s->parts.n - i;
        s->trial.swaps.items[s->trial.swaps.n++] = merge(&s->parts.items[i], left < n_each ? left : n_each);
    }
    return judge(s, kept);
}

/* What has become one, by halves, for as long as that will do. */
static neap_status try_halves(saving *s, uint32_t gap)
{
    bool kept = true;
    neap_status status = NEAP_OK;
    while (status == NEAP_OK && kept && !np_planner_is_late(s->planner)) {
        list_parts(s, gap);
        if (s->parts.n != 1 || half(s, s->parts.items[0].bytes) == 0) {
            break;
        }
        copy_others(s, gap);
        s->trial.swaps.items[s->trial.swaps.n] = s->parts.items[0];
        s->trial.swaps.items[s->trial.swaps.n++].bytes = half(s, s->parts.items[0].bytes);
        status = judge(s, &kept);
    }
    return status;
}

/* All parts of one gap at once, and then as little as will do; or at least some of them together. */
static neap_status put_together(saving *s, uint32_t gap, uint32_t n_parts, bool *any)
{
    bool kept = false;
    neap_status status = NEAP_OK;
    for (size_t n_each = n_parts; n_each > 1 && !kept && status == NEAP_OK && !np_planner_is_late(s->planner);
         n_each = (n_each + 1) / 2) {
        status = try_merged(s, gap, n_each, &kept);
        if (n_each == 2) {
            break;
        }
    }
    *any |= kept;
    return status == NEAP_OK ? try_halves(s, gap) : status;
}

static void count_parts(const np_swap_array *swaps, uint32_t *n_parts, size_t n_gaps)
{
    memset(n_parts, 0, n_gaps * sizeof *n_parts);
    for (size_t i = 0; i < swaps->n; i++) {
        n_parts[swaps->items[i].gap]++;
    }
}

/* What can be put together, those with the most parts first; then what can be left out. */
static neap_status save_on_all(saving *s, uint32_t *n_parts, bool *any)
{
    size_t n_gaps = s->planner->timeline->gaps.n;
    uint32_t most = 0;
    neap_status status = NEAP_OK;
    count_parts(&s->best->swaps, n_parts, n_gaps);
    for (size_t g = 0; g < n_gaps; g++) {
        most = n_parts[g] > most ? n_parts[g] : most;
    }
    for (uint32_t n = most; n > 1; n--) {
        for (size_t g = 0; g < n_gaps && status == NEAP_OK && !np_planner_is_late(s->planner); g++) {
            if (n_parts[g] == n) {
                status = put_together(s, (uint32_t)g, n, any);
            }
        }
    }
    for (size_t g = 0; g < n_gaps && status == NEAP_OK && !np_planner_is_late(s->planner); g++) {
        bool kept = false;
        status = n_parts[g] > 0 ? try_without(s, (uint32_t)g, &kept) : NEAP_OK;
        *any |= kept;
    }
    return status;
}

neap_status np_thrift(np_planner *planner, uint64_t limit, np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    size_t n_gaps = planner->timeline->gaps.n;
    saving s = {.planner = planner,
                .limit = limit,
                .best = best,
                .seed = planner->seed,
                .most = np_planner_cost(planner, best) + GAIN};
    uint32_t *n_parts = np_memory_alloc(memory, n_gaps, sizeof *n_parts);
    neap_status status = n_parts ? NEAP_OK : NEAP_NO_MEMORY;
    bool any = true;
    for (uint32_t round = 0; round < MAX_ROUNDS && any && status == NEAP_OK && best->swaps.n > 0; round++) {
        any = false;
        status = np_array_reserve(memory, &s.trial.swaps, best->swaps.n + 1);
        if (status == NEAP_OK) {
            status = np_array_reserve(memory, &s.parts, best->swaps.n);
        }
        if (status == NEAP_OK) {
            status = save_on_all(&s, n_parts, &any);
        }
    }
    np_memory_free(memory, n_parts, n_gaps, sizeof *n_parts);
    np_array_free(memory, &s.parts);
    np_judged_free(&s.trial, memory);
    return status;
}
