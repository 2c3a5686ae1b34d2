#include "swap/trim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"

enum { PLACE_STEPS = 12, MAX_ROUNDS = 64 };

#define GAIN 1e-6 /* of an iteration: less is not worth a change */

typedef enum change_kind { CHANGE_LIMIT, CHANGE_LESS, CHANGE_HALF, CHANGE_EARLIER } change_kind;

typedef struct change {
    double cost;    /* np_planner_cost */
    uint64_t limit; /* CHANGE_LIMIT */
    uint32_t swap;
    uint32_t execs; /* CHANGE_EARLIER */
    change_kind kind;
} change;

typedef struct trimming {
    np_planner *planner;
    uint64_t limit;
    np_judged *best;
    np_judged trial;
    np_array(change) changes;
    uint64_t seed;
} trimming;

/* The best plan with one change, as the trial. False: there is no such change. */
static bool apply(trimming *t, const change *c)
{
    const np_timeline *timeline = t->planner->timeline;
    np_swap *swaps = t->trial.swaps.items;
    size_t n = t->best->swaps.n;
    np_swap *swap;
    if (!swaps || n == 0) {
        return false; /* nothing is swapped: there is nothing to change */
    }
    swap = &swaps[c->swap];
    memcpy(swaps, t->best->swaps.items, n * sizeof *swaps);
    t->trial.swaps.n = n;
    t->trial.limit = t->best->limit;
    switch (c->kind) {
    case CHANGE_LIMIT:
        t->trial.limit = c->limit;
        return true;
    case CHANGE_LESS:
        memmove(swap, swap + 1, (n - c->swap - 1) * sizeof *swap);
        t->trial.swaps.n--;
        return true;
    case CHANGE_HALF: {
        uint64_t left = swap->bytes / 2 / t->planner->page * t->planner->page;
        swap->bytes = left;
        return left > 0;
    }
    case CHANGE_EARLIER: {
        uint32_t from = timeline->gaps.items[swap->gap].from;
        uint32_t before = swap->in_after;
        swap->in_after = before - from > c->execs ? before - c->execs : from;
        swap->in_key = fmin(swap->in_key, np_timeline_end(timeline, swap->in_after));
        return swap->in_after < before;
    }
    }
    return false;
}

static neap_status simulate(trimming *t)
{
    return np_simulate(t->planner->simulator, t->trial.limit, t->trial.swaps.items, (uint32_t)t->trial.swaps.n,
                       &t->trial.simulation);
}

static bool is_cheaper(const trimming *t)
{
    return t->trial.simulation.possible &&
           np_planner_cost(t->planner, &t->trial) < np_planner_cost(t->planner, t->best) - GAIN;
}

/* Notes a change that would cost less. */
static neap_status consider(trimming *t, change c)
{
    neap_status status;
    if (!apply(t, &c)) {
        return NEAP_OK;
    }
    status = simulate(t);
    if (status == NEAP_OK && is_cheaper(t)) {
        c.cost = np_planner_cost(t->planner, &t->trial);
        status = np_array_push(t->planner->timeline->memory, &t->changes, c);
    }
    return status;
}

static neap_status consider_all(trimming *t)
{
    static const uint32_t earlier[] = {4, 16, 64};
    neap_status status = NEAP_OK;
    uint32_t n = (uint32_t)t->best->swaps.n;
    uint32_t first = n > 0 ? (uint32_t)(np_mix64(t->seed) % n) : 0;
    uint64_t room = t->limit > t->best->limit ? t->limit - t->best->limit : 0;
    t->changes.n = 0;
    for (uint64_t part = 1; part <= 16 && room > 0 && status == NEAP_OK; part *= 2) {
        status = consider(t, (change){.kind = CHANGE_LIMIT, .limit = t->best->limit + room / part});
    }
    for (uint32_t k = 0; k < n && status == NEAP_OK && !np_planner_is_late(t->planner); k++) {
        uint32_t i = (first + k) % n; /* where time runs out, others have their turn next time */
        status = consider(t, (change){.kind = CHANGE_LESS, .swap = i});
        if (status == NEAP_OK) {
            status = consider(t, (change){.kind = CHANGE_HALF, .swap = i});
        }
        for (size_t e = 0; e < sizeof earlier / sizeof *earlier && status == NEAP_OK; e++) {
            status = consider(t, (change){.kind = CHANGE_EARLIER, .swap = i, .execs = earlier[e]});
        }
    }
    return status;
}

static int compare_changes(const void *left, const void *right)
{
    const change *a = left;
    const change *b = right;
    if (a->cost != b->cost) {
        return a->cost < b->cost ? -1 : 1;
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

static neap_status try_to_place(trimming *t, bool *kept)
{
    np_place_options options = np_planner_place_options(t->planner, 0, t->limit);
    neap_status status;
    uint64_t excess;
    options.seed = t->seed++;
    np_layout_free(&t->trial.layout);
    status = np_place_near(t->planner->timeline, t->planner->simulator, t->trial.swaps.items,
                           (uint32_t)t->trial.swaps.n, &options, &t->best->layout, PLACE_STEPS, t->planner->error,
                           &t->trial.place, &t->trial.layout, &excess);
    *kept = status == NEAP_OK && excess == 0;
    if (*kept) {
        np_judged_exchange(t->best, &t->trial);
    }
    return status;
}

/* The changes that cost less, the cheapest first, until one fits: then all are to be simulated anew. */
static neap_status try_all(trimming *t, bool *any)
{
    neap_status status = NEAP_OK;
    *any = false;
    if (t->changes.n > 0) {
        qsort(t->changes.items, t->changes.n, sizeof *t->changes.items, compare_changes);
    }
    for (size_t i = 0; i < t->changes.n && status == NEAP_OK && !np_planner_is_late(t->planner); i++) {
        bool kept = false;
        if (!apply(t, &t->changes.items[i])) {
            continue;
        }
        status = simulate(t);
        if (status == NEAP_OK && is_cheaper(t)) {
            status = try_to_place(t, &kept);
        }
        if (kept) {
            *any = true;
            return status;
        }
    }
    return status;
}

neap_status np_trim(np_planner *planner, uint64_t limit, np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    trimming t = {.planner = planner, .limit = limit, .best = best, .seed = planner->seed};
    bool any = true;
    neap_status status = NEAP_OK;
    for (uint32_t round = 0; round < MAX_ROUNDS && any && status == NEAP_OK && best->simulation.overhead > GAIN;
         round++) {
        if (np_array_reserve(memory, &t.trial.swaps, best->swaps.n + 1) != NEAP_OK) {
            status = NEAP_NO_MEMORY;
            break;
        }
        status = consider_all(&t);
        if (status == NEAP_OK) {
            status = try_all(&t, &any);
        }
    }
    np_array_free(memory, &t.changes);
    np_judged_free(&t.trial, memory);
    return status;
}
