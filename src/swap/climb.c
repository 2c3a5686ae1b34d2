#include "swap/climb.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "swap/stall.h"

enum { PLACE_STEPS = 3, ANEW_ONE_IN = 4, PATIENCE = 80 };

#define PLACE_SECONDS 0.02
#define STALLS_LEFT 0.8 /* in a step: what is missing is put again */

typedef struct climbing {
    np_planner *planner;
    np_climb_options options;
    np_judged *best; /* fits */
    uint64_t aim;    /* bytes: the load of `now` and `trial` */
    np_judged now;   /* where the climb stands */
    uint64_t excess; /* bytes of it above the limit */
    np_judged trial;
    double *factors; /* [gap] of `now` */
    double *trial_factors;
    uint64_t *extra; /* [exec] of `now`: bytes that the load is planned below the aim */
    uint64_t *trial_extra;
    double *stalls; /* [exec] of `now` */
    double *trial_stalls;
    uint32_t *high; /* gaps of the blocks that stand above the limit */
    uint32_t n_high;
    np_rng rng;
} climbing;

static bool is_late(const climbing *c)
{
    return np_clock_ns() > c->options.deadline_ns || np_planner_is_late(c->planner);
}

/* Plans the trial with its factors; roughly, from its stalls on, or well, from none on. */
static neap_status plan(climbing *c, bool rough, bool *found)
{
    np_stall_options options = {.limit = c->aim,
                                .min_block = c->planner->min_block,
                                .page = c->planner->page,
                                .least_part = c->planner->least_part,
                                .n_rounds = 1,
                                .extra = c->trial_extra,
                                .factors = c->trial_factors,
                                .stalls = c->trial_stalls,
                                .rough = rough,
                                .deadline_ns = c->options.deadline_ns,
                                .is_stopping = c->planner->is_stopping};
    neap_status status;
    if (!rough) {
        memset(c->trial_stalls, 0, c->planner->timeline->n_execs * sizeof *c->trial_stalls);
    }
    status = np_stall_search(c->planner->timeline, &c->planner->link, &options, &c->trial.swaps, &c->trial.simulation,
                             found);
    if (status == NEAP_OK && *found) { /* again, for the absences */
        c->trial.limit = c->aim;
        status = np_simulate(c->planner->simulator, c->aim, c->trial.swaps.items, (uint32_t)c->trial.swaps.n,
                             &c->trial.simulation);
        *found = c->trial.simulation.possible;
    }
    return status;
}

/* Near a layout, or now and then anew: what is near gets stuck. */
static neap_status place(climbing *c, const np_layout *near, uint64_t *excess)
{
    np_planner *planner = c->planner;
    np_place_options options = np_planner_place_options(planner, PLACE_SECONDS, c->options.limit);
    uint32_t n = (uint32_t)c->trial.swaps.n;
    neap_status status;
    np_layout_free(&c->trial.layout);
    options.seed = np_rng_next(&c->rng);
    if (np_rng_below(&c->rng, ANEW_ONE_IN) != 0) {
        return np_place_near(planner->timeline, planner->simulator, c->trial.swaps.items, n, &options, near,
                             PLACE_STEPS, planner->error, &c->trial.place, &c->trial.layout, excess);
    }
    status = np_place_swaps(planner->timeline, planner->simulator, c->trial.swaps.items, n, &options, planner->error,
                            &c->trial.place, &c->trial.layout);
    *excess = status == NEAP_OK ? np_layout_excess(&c->trial.layout, c->options.limit) : 0;
    return status;
}

/* Gaps, blocks and places are all in the order of lives. */
static void find_high(climbing *c)
{
    const np_timeline *timeline = c->planner->timeline;
    const np_layout *layout = &c->now.layout;
    size_t at = 0;
    bool is_high = false;
    uint32_t life = UINT32_MAX;
    c->n_high = 0;
    for (uint32_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        uint32_t own = timeline->blocks.items[gap->block].life;
        if (own != life) {
            life = own;
            is_high = false;
            for (; at < layout->placed.n && layout->placed.items[at].life <= life; at++) {
                const np_placed *placed = &layout->placed.items[at];
                is_high = is_high || (placed->life == life && placed->offset + placed->bytes > c->options.limit);
            }
        }
        if (is_high && gap->bytes >= c->planner->min_block) {
            c->high[c->n_high++] = g;
        }
    }
}

/* The climb stands at the trial from now on. */
static void keep(climbing *c, uint64_t excess)
{
    np_judged_exchange(&c->now, &c->trial);
    c->excess = excess;
    memcpy(c->factors, c->trial_factors, c->planner->timeline->gaps.n * sizeof *c->factors);
    memcpy(c->stalls, c->trial_stalls, c->planner->timeline->n_execs * sizeof *c->stalls);
    memcpy(c->extra, c->trial_extra, c->planner->timeline->n_execs * sizeof *c->extra);
    find_high(c);
}

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* A gap of a block that stands too high, or any, as often. */
static uint64_t pick_gap(climbing *c)
{
    bool of_high = c->n_high > 0 && np_rng_below(&c->rng, 2) == 0;
    return of_high ? c->high[np_rng_below(&c->rng, c->n_high)] : np_rng_below(&c->rng, c->planner->timeline->gaps.n);
}

/* Gaps go up or down in the order together: all that begin about when one does, and end about when it does. */
static void disturb_order(climbing *c)
{
    const np_timeline *timeline = c->planner->timeline;
    const np_gap *gap = &timeline->gaps.items[pick_gap(c)];
    uint32_t from_reach = timeline->n_execs >> np_rng_below(&c->rng, 10);
    uint32_t to_reach = timeline->n_execs >> np_rng_below(&c->rng, 10);
    double change = exp(4 * np_rng_unit(&c->rng) - 2);
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *other = &timeline->gaps.items[g];
        if (distance(gap->from, other->from) <= from_reach && distance(gap->to, other->to) <= to_reach) {
            c->trial_factors[g] = fmin(fmax(c->trial_factors[g] * change, 1e-3), 1e3);
        }
    }
}

static void disturb(climbing *c)
{
    const np_timeline *timeline = c->planner->timeline;
    uint64_t n = 1 + np_rng_below(&c->rng, 2);
    memcpy(c->trial_factors, c->factors, timeline->gaps.n * sizeof *c->factors);
    memcpy(c->trial_extra, c->extra, timeline->n_execs * sizeof *c->extra);
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        c->trial_stalls[k] = c->stalls[k] * STALLS_LEFT;
    }
    for (uint64_t i = 0; i < n; i++) {
        disturb_order(c);
    }
}

/* One step: *gained where less is above the limit than before. */
static neap_status step(climbing *c, bool *gained)
{
    bool found = false;
    uint64_t excess = 0;
    neap_status status;
    *gained = false;
    disturb(c);
    status = plan(c, true, &found);
    if (status == NEAP_OK && found) {
        status = place(c, &c->now.layout, &excess);
    }
    if (status == NEAP_OK && found && excess <= c->excess) {
        *gained = excess < c->excess;
        keep(c, excess);
    }
    return status;
}

/* Begins at a load, with the order and the extras at hand, near the best layout. */
static neap_status begin_at(climbing *c, uint64_t aim, bool *found)
{
    uint64_t excess = 0;
    neap_status status;
    c->aim = aim;
    memcpy(c->trial_factors, c->factors, c->planner->timeline->gaps.n * sizeof *c->factors);
    memcpy(c->trial_extra, c->extra, c->planner->timeline->n_execs * sizeof *c->extra);
    memset(c->trial_stalls, 0, c->planner->timeline->n_execs * sizeof *c->trial_stalls);
    status = plan(c, true, found);
    if (status == NEAP_OK && *found) {
        status = place(c, &c->best->layout, &excess);
    }
    if (status == NEAP_OK && *found) {
        keep(c, excess);
    }
    return status;
}

/* Steps until nothing is above the limit; *fits false: too many were in vain. */
static neap_status climb_at(climbing *c, bool *fits)
{
    neap_status status = NEAP_OK;
    for (uint32_t idle = 0; idle < PATIENCE && c->excess > 0 && status == NEAP_OK && !is_late(c); idle++) {
        bool gained;
        status = step(c, &gained);
        idle = gained ? 0 : idle;
    }
    *fits = status == NEAP_OK && c->excess == 0;
    return status;
}

/* The steps plan roughly: once more well, with the factors that fit. */
static neap_status polish(climbing *c)
{
    bool found = false;
    uint64_t excess = 0;
    neap_status status;
    memcpy(c->trial_factors, c->factors, c->planner->timeline->gaps.n * sizeof *c->factors);
    memcpy(c->trial_extra, c->extra, c->planner->timeline->n_execs * sizeof *c->extra);
    status = plan(c, false, &found);
    if (status == NEAP_OK && found && c->trial.simulation.overhead < c->now.simulation.overhead) {
        status = place(c, &c->now.layout, &excess);
        if (status == NEAP_OK && excess == 0) {
            keep(c, excess);
        }
    }
    return status;
}

/* The best is the plan reached where that costs less, or where the best did not fit. */
static void take(climbing *c)
{
    bool fitted = c->best->place.footprint <= c->options.limit;
    if (!fitted || np_planner_cost(c->planner, &c->now) < np_planner_cost(c->planner, c->best)) {
        np_judged_exchange(c->best, &c->now);
    }
}

/* Raises the aim by steps that grow with success and shrink without. Where the plan to begin with does not fit, it must
 * be made to first. */
static neap_status climb(climbing *c)
{
    const uint64_t limit = c->options.limit;
    const uint64_t longest = limit / 32;
    uint64_t reached = c->options.aim;
    uint64_t rise = c->best->place.footprint <= limit ? longest : 0;
    neap_status status = NEAP_OK;
    while (status == NEAP_OK && (rise == 0 || c->best->simulation.overhead > 0) && !is_late(c)) {
        uint64_t aim = limit - reached > rise ? reached + rise : limit;
        bool fits = false;
        bool found = false;
        status = begin_at(c, aim, &found);
        if (status == NEAP_OK && found) {
            status = climb_at(c, &fits);
        }
        if (status == NEAP_OK && fits) {
            status = polish(c);
        }
        if (status == NEAP_OK && fits) {
            take(c);
            reached = aim;
            rise = rise > 0 && rise < longest ? rise * 2 : longest;
        } else if (rise > 0) {
            rise = rise > limit / 256 ? rise / 2 : limit / 64;
        }
        if (reached >= limit) {
            break;
        }
    }
    return status;
}

/* Extras that were not needed: each stretch of execs without them in turn, ever shorter ones. */
static neap_status release(climbing *c)
{
    uint32_t n = c->planner->timeline->n_execs;
    neap_status status = NEAP_OK;
    for (uint32_t length = n / 2 + 1; length > 1 && status == NEAP_OK && !is_late(c); length = length / 2 + 1) {
        for (uint32_t first = 0; first < n && status == NEAP_OK && !is_late(c); first += length) {
            uint64_t excess = 0;
            uint64_t released = 0;
            bool found = false;
            memcpy(c->trial_extra, c->extra, n * sizeof *c->extra);
            memcpy(c->trial_factors, c->factors, c->planner->timeline->gaps.n * sizeof *c->factors);
            for (uint32_t k = first; k < n && k < first + length; k++) {
                released += c->trial_extra[k];
                c->trial_extra[k] = 0;
            }
            if (released > 0) {
                status = plan(c, false, &found);
            }
            if (status == NEAP_OK && found && c->trial.simulation.overhead < c->best->simulation.overhead) {
                status = place(c, &c->best->layout, &excess);
                if (status == NEAP_OK && excess == 0) {
                    keep(c, excess);
                    take(c);
                }
            }
        }
        if (length <= 3) {
            break;
        }
    }
    return status;
}

neap_status np_climb(np_planner *planner, const np_climb_options *options, np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    size_t n_gaps = planner->timeline->gaps.n;
    size_t n_execs = planner->timeline->n_execs;
    climbing c = {.planner = planner, .options = *options, .best = best, .rng = np_rng_make(options->seed)};
    neap_status status = NEAP_NO_MEMORY;
    c.factors = np_memory_alloc(memory, n_gaps, sizeof *c.factors);
    c.trial_factors = np_memory_alloc(memory, n_gaps, sizeof *c.trial_factors);
    c.stalls = np_memory_alloc_zero(memory, n_execs, sizeof *c.stalls);
    c.trial_stalls = np_memory_alloc_zero(memory, n_execs, sizeof *c.trial_stalls);
    c.extra = np_memory_alloc_zero(memory, n_execs, sizeof *c.extra);
    c.trial_extra = np_memory_alloc_zero(memory, n_execs, sizeof *c.trial_extra);
    c.high = np_memory_alloc(memory, n_gaps, sizeof *c.high);
    if (c.factors && c.trial_factors && c.stalls && c.trial_stalls && c.extra && c.trial_extra && c.high) {
        for (size_t g = 0; g < n_gaps; g++) {
            c.factors[g] = 1;
        }
        if (options->extra) {
            memcpy(c.extra, options->extra, n_execs * sizeof *c.extra);
        }
        c.aim = options->aim;
        status = options->extra && best->place.footprint <= options->limit ? release(&c) : NEAP_OK;
        if (status == NEAP_OK) {
            status = climb(&c);
        }
    }
    np_memory_free(memory, c.factors, n_gaps, sizeof *c.factors);
    np_memory_free(memory, c.trial_factors, n_gaps, sizeof *c.trial_factors);
    np_memory_free(memory, c.stalls, n_execs, sizeof *c.stalls);
    np_memory_free(memory, c.trial_stalls, n_execs, sizeof *c.trial_stalls);
    np_memory_free(memory, c.extra, n_execs, sizeof *c.extra);
    np_memory_free(memory, c.trial_extra, n_execs, sizeof *c.trial_extra);
    np_memory_free(memory, c.high, n_gaps, sizeof *c.high);
    np_judged_free(&c.now, memory);
    np_judged_free(&c.trial, memory);
    return status;
}
