#include "swap/roam.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "swap/hold.h"
#include "swap/load.h"
#include "swap/mix.h"

enum { PLACE_STEPS = 1, LONGEST_PART = 32, PATIENCE = 1000 };

#define ANEW_SECONDS 0.01
#define GAIN 1e-6 /* of an iteration: less is not worth a change */

typedef struct roaming {
    np_planner *planner;
    np_roam_options options;
    np_candidates candidates;
    np_swap_task task;
    size_t n;         /* candidates */
    double *standard; /* [score][candidate] */
    double *scores;   /* [candidate] of `now` */
    double *trial_scores;
    uint64_t *load; /* [exec] */
    uint64_t aim;   /* of `now` */
    uint64_t trial_aim;
    np_judged now;
    uint64_t excess; /* bytes of it above the limit; UINT64_MAX: there is none yet */
    np_judged trial;
    np_judged *best;
    bool has_begun;
    bool is_anew; /* the trial has scores of its own, not those of `now` a little changed */
    np_rng rng;
} roaming;

static bool is_late(const roaming *r)
{
    return np_clock_ns() > r->options.deadline_ns || np_planner_is_late(r->planner);
}

static double random_shift(roaming *r, double reach)
{
    return reach * (2 * np_rng_unit(&r->rng) - 1);
}

/* ---- what is tried ---- */

/* The paper's scores in any proportion. */
static void mix_anew(roaming *r)
{
    double weights[NP_N_SCORES];
    for (size_t s = 0; s < NP_N_SCORES; s++) {
        weights[s] = random_shift(r, 1);
    }
    for (size_t i = 0; i < r->n; i++) {
        r->trial_scores[i] = 0;
        for (size_t s = 0; s < NP_N_SCORES; s++) {
            r->trial_scores[i] += weights[s] * r->standard[s * r->n + i];
        }
    }
    np_mix_standardise(r->trial_scores, r->n);
}

/* The order in which the gaps of the best plan come first. */
static void begin_at_best(roaming *r)
{
    for (size_t i = 0; i < r->n; i++) {
        r->trial_scores[i] = r->standard[NP_SCORE_SWDOA * r->n + i];
        for (size_t k = 0; k < r->best->swaps.n; k++) {
            if (r->best->swaps.items[k].gap == r->candidates.gaps.items[i]) {
                r->trial_scores[i] += 4;
                break;
            }
        }
    }
}

static uint32_t distance(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static const np_gap *gap_of(const roaming *r, size_t candidate)
{
    return &r->planner->timeline->gaps.items[r->candidates.gaps.items[candidate]];
}

/* Gaps that begin about when one does, and end about when it does, go up or down in the order together. */
static void shift_scores(roaming *r)
{
    uint32_t n_execs = r->planner->timeline->n_execs;
    const np_gap *gap = gap_of(r, np_rng_below(&r->rng, r->n));
    uint32_t from_reach = n_execs >> np_rng_below(&r->rng, 12);
    uint32_t to_reach = n_execs >> np_rng_below(&r->rng, 12);
    double shift = random_shift(r, 2);
    for (size_t i = 0; i < r->n; i++) {
        const np_gap *other = gap_of(r, i);
        if (distance(gap->from, other->from) <= from_reach && distance(gap->to, other->to) <= to_reach) {
            r->trial_scores[i] += shift;
        }
    }
}

/* Up, since a higher load costs less, and now and then down; down where it does not fit yet, and now and then up. */
static void shift_aim(roaming *r)
{
    uint64_t limit = r->options.limit;
    double share = np_rng_unit(&r->rng);
    uint64_t change = (uint64_t)(share * share * (double)limit / LONGEST_PART);
    bool is_usual = np_rng_below(&r->rng, 4) > 0;
    uint64_t aim = r->aim + change;
    if (is_usual == (r->excess > 0)) {
        aim = r->aim > change ? r->aim - change : 0;
    }
    aim = aim < limit ? aim : limit;
    r->trial_aim = aim > r->candidates.load_min ? aim : r->candidates.load_min;
}

static void disturb(roaming *r)
{
    if (r->excess == UINT64_MAX) {
        r->is_anew = r->has_begun;
        r->trial_aim = r->options.aim > r->candidates.load_min ? r->options.aim : r->candidates.load_min;
        (r->has_begun ? mix_anew : begin_at_best)(r);
        r->has_begun = true;
        return;
    }
    memcpy(r->trial_scores, r->scores, r->n * sizeof *r->scores);
    r->trial_aim = r->aim;
    r->is_anew = np_rng_below(&r->rng, 2) == 0;
    if (r->is_anew) {
        mix_anew(r);
    } else if (np_rng_below(&r->rng, 4) > 0) {
        shift_scores(r);
    }
    if (np_rng_below(&r->rng, 2) == 0) {
        shift_aim(r);
    }
}

/* ---- swaps from scores ---- */

static uint64_t highest_inside(const roaming *r, const np_gap *gap)
{
    uint32_t n = r->planner->timeline->n_execs;
    uint64_t highest = 0;
    for (uint32_t k = gap->from + 1, at = k % n; k < gap->to; k++, at = at + 1 < n ? at + 1 : 0) {
        highest = r->load[at] > highest ? r->load[at] : highest;
    }
    return highest;
}

static void put_back(roaming *r, const np_gap *gap, uint64_t bytes)
{
    uint32_t n = r->planner->timeline->n_execs;
    for (uint32_t k = gap->from + 1, at = k % n; k < gap->to && bytes > 0; k++, at = at + 1 < n ? at + 1 : 0) {
        r->load[at] += bytes;
    }
}

static void find_load(roaming *r)
{
    const np_timeline *timeline = r->planner->timeline;
    memset(r->load, 0, ((size_t)timeline->n_execs + 1) * sizeof *r->load);
    for (size_t i = 0; i < r->trial.swaps.n; i++) {
        const np_swap *swap = &r->trial.swaps.items[i];
        const np_gap *gap = &timeline->gaps.items[swap->gap];
        np_load_take(r->load, timeline->n_execs, gap->from + 1, gap->to, swap->bytes);
    }
    (void)np_load_sum(timeline, r->load);
}

/* What of a swap is not needed: all of it, or whole pages, where as much is left as is worth a swap. */
static uint64_t needless(const roaming *r, const np_swap *swap)
{
    uint64_t highest = highest_inside(r, &r->planner->timeline->gaps.items[swap->gap]);
    uint64_t room = r->trial_aim > highest ? r->trial_aim - highest : 0;
    uint64_t pages = room / r->planner->page * r->planner->page;
    if (room >= swap->bytes) {
        return swap->bytes;
    }
    return swap->bytes - pages >= r->planner->min_block ? pages : 0;
}

/* Later choices can make earlier ones needless. */
static void leave_out(roaming *r)
{
    np_swap *swaps = r->trial.swaps.items;
    uint32_t n_kept = 0;
    find_load(r);
    for (size_t i = 0; i < r->trial.swaps.n; i++) {
        uint64_t less = needless(r, &swaps[i]);
        put_back(r, &r->planner->timeline->gaps.items[swaps[i].gap], less);
        if (less < swaps[i].bytes) {
            swaps[n_kept] = swaps[i];
            swaps[n_kept++].bytes -= less;
        }
    }
    r->trial.swaps.n = n_kept;
}

static neap_status choose(roaming *r, bool *found)
{
    uint32_t n = 0;
    neap_status status;
    *found = false;
    r->task.limit = r->trial_aim;
    status = np_select(&r->task, r->trial_scores, r->trial.swaps.items, &n);
    if (status == NEAP_NO_PLAN) {
        return NEAP_OK;
    }
    if (status == NEAP_OK) {
        r->trial.swaps.n = n;
        leave_out(r);
        n = (uint32_t)r->trial.swaps.n;
        status = np_schedule_swaps(r->task.timeline, r->task.link, r->trial.swaps.items, n);
    }
    if (status == NEAP_OK) {
        status = np_hold_swaps(r->task.timeline, r->trial_aim, r->trial.swaps.items, n);
    }
    if (status == NEAP_OK) {
        r->trial.limit = r->trial_aim;
        status = np_simulate(r->task.simulator, r->trial_aim, r->trial.swaps.items, n, &r->trial.simulation);
        *found = status == NEAP_OK && r->trial.simulation.possible;
    }
    return status;
}

/* ---- steps ---- */

/* The trial placed anew, where less is above the limit then. */
static neap_status place_anew(roaming *r, const np_place_options *options, uint64_t *excess)
{
    np_planner *planner = r->planner;
    np_layout layout = {0};
    np_place_result place;
    neap_status status = np_place_swaps(planner->timeline, planner->simulator, r->trial.swaps.items,
                                        (uint32_t)r->trial.swaps.n, options, planner->error, &place, &layout);
    uint64_t above = status == NEAP_OK ? np_layout_excess(&layout, r->options.limit) : UINT64_MAX;
    if (status == NEAP_OK && above < *excess) {
        np_layout old = r->trial.layout;
        r->trial.layout = layout;
        r->trial.place = place;
        layout = old;
        *excess = above;
    }
    np_layout_free(&layout);
    return status;
}

/* Near the plan at hand, if it is near that; where it does not fit there, now and then anew. */
static neap_status place(roaming *r, uint64_t *excess)
{
    np_planner *planner = r->planner;
    np_place_options options = np_planner_place_options(planner, ANEW_SECONDS, r->options.limit);
    const np_layout *near = r->excess == UINT64_MAX ? &r->best->layout : &r->now.layout;
    neap_status status = NEAP_OK;
    *excess = UINT64_MAX;
    options.seed = np_rng_next(&r->rng);
    np_layout_free(&r->trial.layout);
    if (!r->is_anew) {
        status = np_place_near(planner->timeline, planner->simulator, r->trial.swaps.items, (uint32_t)r->trial.swaps.n,
                               &options, near, PLACE_STEPS, planner->error, &r->trial.place, &r->trial.layout, excess);
    }
    if (status == NEAP_OK && *excess > 0 && (r->is_anew || np_rng_below(&r->rng, 2) == 0)) {
        status = place_anew(r, &options, excess);
    }
    return status;
}

/* *kept: it stands there from now on. */
static neap_status step(roaming *r, bool *kept)
{
    bool found = false;
    uint64_t excess = UINT64_MAX;
    neap_status status;
    *kept = false;
    disturb(r);
    status = choose(r, &found);
    if (status == NEAP_OK && found &&
        (r->excess > 0 || np_planner_cost(r->planner, &r->trial) < np_planner_cost(r->planner, &r->now) - GAIN)) {
        status = place(r, &excess);
    }
    if (status == NEAP_OK && (excess == 0 || excess < r->excess)) {
        np_judged_exchange(&r->now, &r->trial);
        memcpy(r->scores, r->trial_scores, r->n * sizeof *r->scores);
        r->aim = r->trial_aim;
        r->excess = excess;
        *kept = true;
        return np_array_reserve(r->planner->timeline->memory, &r->trial.swaps, r->n + 1);
    }
    return status;
}

/* ---- all of it ---- */

static neap_status find_scores(roaming *r)
{
    neap_status status = NEAP_OK;
    for (size_t s = 0; s < NP_N_SCORES && status == NEAP_OK; s++) {
        status = np_score_candidates(r->planner->timeline, &r->planner->link, &r->candidates, (np_score)s,
                                     &r->standard[s * r->n]);
        np_mix_standardise(&r->standard[s * r->n], r->n);
    }
    return status;
}

static neap_status roam(roaming *r)
{
    neap_status status = find_scores(r);
    if (status == NEAP_OK) {
        status = np_array_reserve(r->planner->timeline->memory, &r->trial.swaps, r->n + 1);
    }
    for (uint32_t idle = 0;
         status == NEAP_OK && idle < PATIENCE && !is_late(r) && !(r->excess == 0 && r->now.simulation.overhead == 0);
         idle++) {
        bool kept;
        status = step(r, &kept);
        idle = kept ? 0 : idle;
    }
    if (status == NEAP_OK && r->excess == 0 &&
        (r->best->place.footprint > r->options.limit ||
         np_planner_cost(r->planner, &r->now) < np_planner_cost(r->planner, r->best))) {
        np_judged_exchange(r->best, &r->now);
    }
    return status;
}

neap_status np_roam(np_planner *planner, const np_roam_options *options, np_judged *best)
{
    const np_timeline *timeline = planner->timeline;
    const neap_memory *memory = timeline->memory;
    size_t n_load = (size_t)timeline->n_execs + 1;
    roaming r = {
        .planner = planner, .options = *options, .excess = UINT64_MAX, .best = best, .rng = np_rng_make(options->seed)};
    neap_status status = np_candidates_for_limit(timeline, planner->min_block, options->aim, &r.candidates);
    if (status != NEAP_OK) {
        return status == NEAP_NO_PLAN ? NEAP_OK : status;
    }
    r.n = r.candidates.gaps.n;
    r.task = (np_swap_task){
        .timeline = timeline, .link = &planner->link, .candidates = &r.candidates, .simulator = planner->simulator};
    r.standard = np_memory_alloc(memory, NP_N_SCORES * r.n, sizeof *r.standard);
    r.scores = np_memory_alloc(memory, r.n, sizeof *r.scores);
    r.trial_scores = np_memory_alloc(memory, r.n, sizeof *r.trial_scores);
    r.load = np_memory_alloc(memory, n_load, sizeof *r.load);
    status = r.standard && r.scores && r.trial_scores && r.load ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK && r.n > 0 && r.candidates.load_min <= options->limit) {
        status = roam(&r);
    }
    np_memory_free(memory, r.standard, NP_N_SCORES * r.n, sizeof *r.standard);
    np_memory_free(memory, r.scores, r.n, sizeof *r.scores);
    np_memory_free(memory, r.trial_scores, r.n, sizeof *r.trial_scores);
    np_memory_free(memory, r.load, n_load, sizeof *r.load);
    np_candidates_free(&r.candidates);
    np_judged_free(&r.now, memory);
    np_judged_free(&r.trial, memory);
    return status;
}
