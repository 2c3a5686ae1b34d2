#include "swap/planner.h"

#include <string.h>

#include "base/clock.h"
#include "swap/bound.h"

enum {
    PARTS = 200,
    FILL_TRIALS = 8,
    BISECTIONS = 6,
    LOWER_TRIALS = 4,
    LOWER_STEPS = 24,
    MAX_TARGETS = 60,
    HOPELESS_PART = 16,
    SETTLE_ROUNDS = 3
};

#define PLACE_SECONDS 0.15
#define PLACE_SHARE 0.25
#define MIN_PLACE_SECONDS 0.002

void np_judged_free(np_judged *judged, const neap_memory *memory)
{
    np_array_free(memory, &judged->swaps);
    np_layout_free(&judged->layout);
}

neap_status np_judged_copy(const np_judged *judged, const neap_memory *memory, np_judged *copy)
{
    np_judged made = *judged;
    memset(&made.swaps, 0, sizeof made.swaps);
    memset(&made.layout, 0, sizeof made.layout);
    if (np_array_reserve(memory, &made.swaps, judged->swaps.n + 1) != NEAP_OK ||
        np_layout_copy(&judged->layout, &made.layout) != NEAP_OK) {
        np_judged_free(&made, memory);
        return NEAP_NO_MEMORY;
    }
    if (judged->swaps.n > 0) {
        memcpy(made.swaps.items, judged->swaps.items, judged->swaps.n * sizeof *made.swaps.items);
    }
    made.swaps.n = judged->swaps.n;
    *copy = made;
    return NEAP_OK;
}

void np_judged_exchange(np_judged *a, np_judged *b)
{
    np_judged old = *a;
    *a = *b;
    *b = old;
}

static uint64_t highest_need(const np_timeline *timeline)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        highest = timeline->needed.items[k] > highest ? timeline->needed.items[k] : highest;
    }
    return highest;
}

bool np_planner_is_late(const np_planner *planner)
{
    return np_clock_ns() > planner->deadline_ns || (planner->is_stopping && atomic_load(planner->is_stopping));
}

np_place_options np_planner_place_options(const np_planner *planner, double seconds, uint64_t goal)
{
    return (np_place_options){.seconds = seconds,
                              .goal = goal,
                              .hopeless = goal + goal / HOPELESS_PART,
                              .page = planner->page,
                              .seed = planner->seed,
                              .n_threads = planner->n_threads,
                              .cuts = planner->cuts,
                              .held = planner->held,
                              .homes = planner->homes};
}

/* What one placement may take, of the time that is left. */
static double time_share(const np_planner *planner, double seconds)
{
    uint64_t now = np_clock_ns();
    double share = now < planner->deadline_ns && !np_planner_is_late(planner)
                       ? 1e-9 * (double)(planner->deadline_ns - now) * PLACE_SHARE
                       : 0;
    return share < MIN_PLACE_SECONDS ? MIN_PLACE_SECONDS : share < seconds ? share : seconds;
}

static neap_status place(np_planner *planner, double seconds, uint64_t goal, np_judged *judged)
{
    np_place_options options = np_planner_place_options(planner, time_share(planner, seconds), goal);
    np_layout_free(&judged->layout);
    return np_place_swaps(planner->timeline, planner->simulator, judged->swaps.items, (uint32_t)judged->swaps.n,
                          &options, planner->error, &judged->place, &judged->layout);
}

neap_status np_planner_judge(np_planner *planner, uint64_t limit, double seconds, uint64_t goal, np_judged *judged)
{
    uint32_t n = (uint32_t)judged->swaps.n;
    neap_status status = np_simulate(planner->simulator, limit, judged->swaps.items, n, &judged->simulation);
    judged->limit = limit;
    if (status != NEAP_OK || !judged->simulation.possible) {
        judged->place = (np_place_result){.footprint = UINT64_MAX};
        return status;
    }
    return place(planner, seconds, goal, judged);
}

neap_status np_plan_pool(np_planner *planner, double seconds, np_judged *judged)
{
    judged->swaps.n = 0;
    if (!planner->simulator) {
        judged->simulation = (np_simulation){.possible = true, .period_ns = planner->timeline->period_ns};
        return place(planner, seconds, 0, judged);
    }
    return np_planner_judge(planner, UINT64_MAX, seconds, 0, judged);
}

neap_status np_plan_bound(np_planner *planner, np_judged *judged)
{
    np_place_options options = np_planner_place_options(planner, 0, 0);
    uint32_t n = (uint32_t)judged->swaps.n;
    np_simulation simulation;
    uint64_t bound = 0;
    neap_status status = NEAP_OK;
    if (judged->place.footprint <= judged->place.bound) {
        return NEAP_OK;
    }
    if (planner->simulator) { /* absences are those of the last simulation */
        status = np_simulate(planner->simulator, judged->limit, judged->swaps.items, n, &simulation);
    }
    if (status == NEAP_OK) {
        status = np_place_bound(planner->timeline, planner->simulator, judged->swaps.items, n, &options, &bound);
    }
    if (status == NEAP_OK && bound > judged->place.bound) {
        judged->place.bound = bound;
    }
    return status;
}

/* ---- no overhead ---- */

static neap_status fill_to(np_planner *planner, uint64_t target, double noise, uint64_t seed, np_judged *trial,
                           uint64_t *peak)
{
    np_fill_options options = {.target = target,
                               .min_block = planner->min_block,
                               .page = planner->page,
                               .deadline_ns = planner->deadline_ns,
                               .is_stopping = planner->is_stopping};
    uint64_t need = highest_need(planner->timeline);
    np_fill_result result;
    neap_status status;
    options.noise = noise;
    options.seed = seed;
    options.part = need / 2 / PARTS;
    options.part = options.part > planner->page ? options.part : planner->page;
    options.part = options.part > planner->least_part ? options.part : planner->least_part;
    status = np_fill(planner->timeline, &planner->link, &options, &trial->swaps, &result);
    if (status == NEAP_OK) {
        *peak = result.peak;
    }
    return status;
}

/* The lowest peak over several orders of filling. */
static neap_status lowest_fill(np_planner *planner, np_judged *trial, double *noise, uint64_t *seed, uint64_t *lowest)
{
    neap_status status = NEAP_OK;
    *lowest = UINT64_MAX;
    for (uint32_t i = 0; i < FILL_TRIALS && status == NEAP_OK && !(i > 0 && np_planner_is_late(planner)); i++) {
        uint64_t peak;
        status = fill_to(planner, 0, i == 0 ? 0 : 0.4, planner->seed + i, trial, &peak);
        if (status == NEAP_OK && peak < *lowest) {
            *lowest = peak;
            *noise = i == 0 ? 0 : 0.4;
            *seed = planner->seed + i;
        }
    }
    return status;
}

/* Lowers the footprint of the swaps simulated last, a little at a time, for as long as that goes well. */
static neap_status lower(np_planner *planner, np_judged *judged)
{
    neap_status status = NEAP_OK;
    uint32_t n_failed = 0;
    for (uint64_t i = 0; n_failed < LOWER_TRIALS && status == NEAP_OK && !np_planner_is_late(planner); i++) {
        uint64_t above = judged->place.footprint - judged->place.bound;
        uint64_t step = above / 8 > planner->page / 4 ? above / 8 : planner->page / 4;
        np_place_options options = np_planner_place_options(planner, 0, judged->place.footprint - step);
        np_layout layout = {0};
        np_place_result place;
        uint64_t excess = 0;
        if (above == 0 || step > above) {
            break;
        }
        options.seed += i;
        status = np_place_near(planner->timeline, planner->simulator, judged->swaps.items, (uint32_t)judged->swaps.n,
                               &options, &judged->layout, LOWER_STEPS, planner->error, &place, &layout, &excess);
        n_failed += status == NEAP_OK && excess > 0;
        if (status == NEAP_OK && excess == 0) {
            np_layout old = judged->layout;
            judged->layout = layout;
            judged->place = place;
            layout = old;
        }
        np_layout_free(&layout);
    }
    return status;
}

neap_status np_planner_settle(np_planner *planner, np_judged *judged)
{
    const neap_memory *memory = planner->timeline->memory;
    neap_status status = NEAP_OK;
    bool is_better = true;
    for (int i = 0;
         i < SETTLE_ROUNDS && is_better && status == NEAP_OK && judged->simulation.peak > judged->place.footprint;
         i++) {
        uint64_t limit = judged->place.footprint;
        np_judged trial = {0};
        status = np_judged_copy(judged, memory, &trial);
        if (status == NEAP_OK) {
            status = np_planner_judge(planner, limit, PLACE_SECONDS, limit, &trial);
        }
        is_better = status == NEAP_OK && trial.simulation.possible &&
                    trial.simulation.overhead <= judged->simulation.overhead &&
                    trial.place.footprint <= judged->simulation.peak;
        if (is_better) {
            np_judged_exchange(judged, &trial);
        }
        np_judged_free(&trial, memory);
    }
    if (status == NEAP_OK && judged->simulation.peak > judged->place.footprint) {
        judged->place.footprint = judged->layout.footprint = judged->simulation.peak;
    }
    return status;
}

/* Judges a plan without a limit, by the lowest footprint found. A program that is run has its copies wait for the bytes
 * that they need, and is judged with that (run/forecast.h). */
static neap_status judge_freely(np_planner *planner, np_judged *judged)
{
    neap_status status = np_planner_judge(planner, UINT64_MAX, PLACE_SECONDS, 0, judged);
    if (status == NEAP_OK) {
        status = lower(planner, judged);
    }
    return status == NEAP_OK && !planner->held ? np_planner_settle(planner, judged) : status;
}

/* Fewer swaps can need less memory, since each swapped block must find its place again: several targets between the
 * lowest peak and what that came to are placed, and the lowest footprint wins. */
static neap_status without_overhead(np_planner *planner, np_judged *best, uint64_t *lowest_peak)
{
    np_judged trial = {0};
    uint64_t lowest;
    uint64_t seed = 0;
    uint64_t reach;
    double noise = 0;
    neap_status status = lowest_fill(planner, &trial, &noise, &seed, &lowest);
    if (status == NEAP_OK) {
        status = fill_to(planner, 0, noise, seed, best, &lowest);
    }
    if (status == NEAP_OK) {
        status = judge_freely(planner, best);
    }
    reach = status == NEAP_OK ? best->place.footprint : 0;
    *lowest_peak = status == NEAP_OK ? best->simulation.peak : 0; /* simulated, not only planned */
    for (uint32_t i = 1; i < MAX_TARGETS && status == NEAP_OK && reach > lowest && !np_planner_is_late(planner); i++) {
        static const double shares[] = {0.3, 0.6, 0.15, 0.45, 0.75, 0};
        uint64_t target = lowest + (uint64_t)(shares[i % 6] * (double)(reach - lowest));
        uint64_t peak;
        status = fill_to(planner, target, i < 6 ? noise : 0.4, i < 6 ? seed : planner->seed + i, &trial, &peak);
        if (status == NEAP_OK && peak < best->place.footprint) {
            status = judge_freely(planner, &trial);
            if (status == NEAP_OK && trial.place.footprint < best->place.footprint) {
                np_judged_exchange(best, &trial);
            }
        }
    }
    if (status == NEAP_OK && best->swaps.n > 0) { /* to swap nothing is a plan, too */
        status = np_plan_pool(planner, PLACE_SECONDS, &trial);
        if (status == NEAP_OK && trial.place.footprint < best->place.footprint) {
            np_judged_exchange(best, &trial);
        }
    }
    np_judged_free(&trial, planner->timeline->memory);
    return status;
}

/* Where some overhead is allowed: the lowest limit that a search holds at that cost, by halving. Each step has its share
 * of the time left, since a search goes on for as long as it may. */
static neap_status with_overhead(np_planner *planner, double overhead, np_judged *best)
{
    np_judged trial = {0};
    uint64_t low;
    uint64_t high = best->place.footprint;
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t now = np_clock_ns();
    neap_status status = np_bound_peak(planner->timeline, &planner->link, overhead, &low);
    for (uint32_t i = 0; i < BISECTIONS && status == NEAP_OK && low < high && now < deadline_ns; i++) {
        uint64_t middle = low + (high - low) / 2;
        planner->deadline_ns = now + (deadline_ns - now) / (BISECTIONS - i);
        status = np_plan_within_limit(planner, NEAP_SWAP_SEARCH, middle, &trial);
        if (status == NEAP_OK && trial.simulation.overhead <= overhead) {
            high = trial.place.footprint < middle ? trial.place.footprint : middle;
            np_judged_exchange(best, &trial);
        } else if (status == NEAP_OK || status == NEAP_NO_PLAN) {
            low = middle + 1;
            status = NEAP_OK;
        }
        now = np_clock_ns();
    }
    planner->deadline_ns = deadline_ns;
    np_judged_free(&trial, planner->timeline->memory);
    return status;
}

neap_status np_plan_without_overhead(np_planner *planner, double overhead, np_judged *best, uint64_t *lowest_peak)
{
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t now = np_clock_ns();
    neap_status status;
    if (overhead > 0 && deadline_ns > now) {
        planner->deadline_ns = now + (deadline_ns - now) / 3;
    }
    status = without_overhead(planner, best, lowest_peak);
    planner->deadline_ns = deadline_ns;
    if (status == NEAP_OK && overhead > 0) {
        status = with_overhead(planner, overhead, best);
        *lowest_peak = best->simulation.peak < *lowest_peak ? best->simulation.peak : *lowest_peak;
    }
    return status;
}
