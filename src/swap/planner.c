#include "swap/planner.h"

#include "base/clock.h"
#include "base/status.h"
#include "swap/bound.h"
#include "swap/method.h"
#include "swap/stall.h"
#include <math.h>
#include <string.h>

enum { PARTS = 200, FILL_TRIALS = 8, MAX_LOWERINGS = 24, MAX_RAISINGS = 24, BISECTIONS = 6 };

#define PLACE_SECONDS 0.15
#define PLACE_SHARE 0.25
#define MIN_PLACE_SECONDS 0.002
#define QUICK_PLACE_SECONDS 0.01 /* for the paper's scores, which are there to compare with */

void np_judged_free(np_judged *judged, const neap_memory *memory)
{
    np_array_free(memory, &judged->swaps);
    np_layout_free(&judged->layout);
}

static uint64_t highest_need(const np_timeline *timeline)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        highest = timeline->needed.items[k] > highest ? timeline->needed.items[k] : highest;
    }
    return highest;
}

static bool is_late(const np_planner *planner)
{
    return np_clock_ns() > planner->deadline_ns || (planner->is_stopping && atomic_load(planner->is_stopping));
}

static np_place_options place_options(const np_planner *planner, double seconds, uint64_t goal)
{
    return (np_place_options){.seconds = seconds,
                              .goal = goal,
                              .page = planner->page,
                              .seed = planner->seed,
                              .n_threads = planner->n_threads,
                              .views = planner->views,
                              .held = planner->held,
                              .homes = planner->homes};
}

/* What one placement may take, of the time that is left. */
static double time_share(const np_planner *planner, double seconds)
{
    uint64_t now = np_clock_ns();
    double share = now < planner->deadline_ns && !is_late(planner) ? 1e-9 * (double)(planner->deadline_ns - now) * PLACE_SHARE : 0;
    return share < MIN_PLACE_SECONDS ? MIN_PLACE_SECONDS : share < seconds ? share : seconds;
}

static neap_status place(np_planner *planner, double seconds, uint64_t goal, np_judged *judged)
{
    np_place_options options = place_options(planner, time_share(planner, seconds), goal);
    np_layout_free(&judged->layout);
    return np_place_swaps(planner->timeline, planner->simulator, judged->swaps.items, (uint32_t)judged->swaps.n,
                          &options, planner->error, &judged->place, planner->held ? &judged->layout : NULL);
}

/* Simulates and places. A limit below UINT64_MAX is held in the simulation. A footprint at or below `goal` will do. */
static neap_status judge(np_planner *planner, uint64_t limit, double seconds, uint64_t goal, np_judged *judged)
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
    return judge(planner, UINT64_MAX, seconds, 0, judged);
}

neap_status np_plan_bound(np_planner *planner, np_judged *judged)
{
    np_place_options options = place_options(planner, 0, 0);
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

/* Keeps the better of two in *best. */
static void keep(np_judged *best, np_judged *trial)
{
    np_judged old = *best;
    *best = *trial;
    *trial = old;
}

/* ---- no overhead ---- */

static neap_status fill_to(np_planner *planner, uint64_t target, double noise, uint64_t seed, np_judged *trial,
                           uint64_t *peak)
{
    np_fill_options options = {.target = target, .min_block = planner->min_block, .page = planner->page};
    uint64_t need = highest_need(planner->timeline);
    np_fill_result result;
    neap_status status;
    options.noise = noise;
    options.seed = seed;
    options.part = need / 2 / PARTS;
    options.part = options.part > planner->page ? options.part : planner->page;
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
    for (uint32_t i = 0; i < FILL_TRIALS && status == NEAP_OK; i++) {
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
        status = judge(planner, UINT64_MAX, PLACE_SECONDS, 0, best);
    }
    reach = status == NEAP_OK ? best->place.footprint : 0;
    *lowest_peak = status == NEAP_OK ? best->simulation.peak : 0; /* simulated, not only planned */
    for (uint32_t i = 1; i < 24 && status == NEAP_OK && reach > lowest && !is_late(planner); i++) {
        static const double shares[] = {0.3, 0.6, 0.15, 0.45, 0.75, 0};
        uint64_t target = lowest + (uint64_t)(shares[i % 6] * (double)(reach - lowest));
        uint64_t peak;
        status = fill_to(planner, target, i < 6 ? noise : 0.4, i < 6 ? seed : planner->seed + i, &trial, &peak);
        if (status == NEAP_OK && peak < best->place.footprint) {
            status = judge(planner, UINT64_MAX, PLACE_SECONDS, 0, &trial);
            if (status == NEAP_OK && trial.place.footprint < best->place.footprint) {
                keep(best, &trial);
            }
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
            keep(best, &trial);
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

/* ---- under a limit ---- */

/* `weights` of NP_METHOD_WEIGHTS, else NULL. */
static neap_status by_paper(np_planner *planner, np_method method, const double *weights, uint64_t limit,
                            np_swap_array *swaps, np_simulation *simulation, bool *found)
{
    np_method_options options = {
        .method = method, .limit = limit, .min_bytes = planner->min_block, .seed = planner->seed};
    np_chosen chosen;
    neap_status status;
    if (weights) {
        memcpy(options.weights, weights, sizeof options.weights);
    }
    status = np_swap_by_method(planner->timeline, &planner->link, &options, &chosen);
    *found = false;
    if (status == NEAP_NO_PLAN) {
        return NEAP_OK;
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (chosen.simulation.possible) {
        status = np_array_reserve(planner->timeline->memory, swaps, chosen.swaps.n + 1);
        if (status == NEAP_OK) {
            for (size_t i = 0; i < chosen.swaps.n; i++) {
                swaps->items[i] = chosen.swaps.items[i];
            }
            swaps->n = chosen.swaps.n;
            *simulation = chosen.simulation;
            *found = true;
        }
    }
    np_chosen_free(&chosen);
    return status;
}

static np_method paper_method(neap_swap_method method)
{
    switch (method) {
    case NEAP_SWAP_DOA:
        return NP_METHOD_DOA;
    case NEAP_SWAP_AOA:
        return NP_METHOD_AOA;
    case NEAP_SWAP_WDOA:
        return NP_METHOD_WDOA;
    case NEAP_SWAP_SWDOA:
        return NP_METHOD_SWDOA;
    case NEAP_SWAP_BO:
    case NEAP_SWAP_SEARCH:
    case NEAP_SWAP_N_METHODS:
        break;
    }
    return NP_METHOD_BO;
}

neap_status np_plan_load(np_planner *planner, neap_swap_method method, uint64_t limit, np_swap_array *swaps,
                         np_simulation *simulation, bool *found)
{
    const neap_memory *memory = planner->timeline->memory;
    np_stall_options options = {.limit = limit, .min_block = planner->min_block, .page = planner->page};
    np_swap_array other = {0};
    np_simulation other_simulation;
    bool other_found = false;
    uint64_t now = np_clock_ns();
    neap_status status;

    if (method != NEAP_SWAP_SEARCH) {
        return by_paper(planner, paper_method(method), NULL, limit, swaps, simulation, found);
    }
    options.seed = planner->seed;
    options.deadline_ns = now + (planner->deadline_ns > now ? (planner->deadline_ns - now) / 6 : 0);
    status = np_stall_search(planner->timeline, &planner->link, &options, swaps, simulation, found);
    if (status == NEAP_OK && (!*found || simulation->overhead > 0)) { /* never worse than the mix */
        status = by_paper(planner, NP_METHOD_BO, NULL, limit, &other, &other_simulation, &other_found);
    }
    if (status == NEAP_OK && other_found && (!*found || other_simulation.overhead < simulation->overhead)) {
        np_swap_array old = *swaps;
        *swaps = other;
        other = old;
        *simulation = other_simulation;
        *found = true;
    }
    np_array_free(memory, &other);
    return status;
}

/* How swaps are chosen for a load. */
typedef struct chooser {
    neap_swap_method method;
    const double *weights; /* of a mix of the paper's scores; NULL: by the method */
} chooser;

/* Plans for a load of at most `aim` and places it. *fits: the footprint, too, is within the limit. */
static neap_status plan_aim(np_planner *planner, const chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                            bool *fits)
{
    bool found;
    bool is_search = !by->weights && by->method == NEAP_SWAP_SEARCH;
    neap_status status =
        by->weights ? by_paper(planner, NP_METHOD_WEIGHTS, by->weights, aim, &trial->swaps, &trial->simulation, &found)
                    : np_plan_load(planner, by->method, aim, &trial->swaps, &trial->simulation, &found);
    *fits = false;
    if (status != NEAP_OK || !found) {
        trial->place = (np_place_result){.footprint = UINT64_MAX};
        return status;
    }
    status = judge(planner, aim, is_search ? PLACE_SECONDS : QUICK_PLACE_SECONDS, limit, trial);
    *fits = status == NEAP_OK && trial->place.footprint <= limit;
    return status;
}

/* Lowers the aim until the footprint fits. *aim is then the highest tried that did, *missed the lowest that did not. */
static neap_status first_fit_below(np_planner *planner, const chooser *by, uint64_t limit, uint64_t floor,
                                   np_judged *best, uint64_t *aim, uint64_t *missed)
{
    neap_status status = NEAP_OK;
    *aim = *missed = limit;
    for (uint32_t i = 0; i < MAX_LOWERINGS && status == NEAP_OK; i++) {
        bool fits;
        uint64_t over;
        uint64_t step;
        status = plan_aim(planner, by, *aim, limit, best, &fits);
        if (status != NEAP_OK || fits) {
            return status;
        }
        *missed = *aim;
        over = best->place.footprint == UINT64_MAX ? 0 : (best->place.footprint - limit) * 2 / 3;
        step = over > limit / 100 ? over : limit / 100;
        if (*aim <= floor) {
            return NEAP_NO_PLAN;
        }
        *aim = step<*aim && * aim - step> floor ? *aim - step : floor;
    }
    return status == NEAP_OK ? NEAP_NO_PLAN : status;
}

/* The load is planned lower and lower until the footprint is within the limit as well; then higher again, by halving and
 * with other seeds, as long as there is time: a higher load costs less. */
static neap_status within_limit(np_planner *planner, const chooser *by, uint64_t limit, np_judged *best)
{
    const np_planner before = *planner;
    np_judged trial = {0};
    uint64_t aim;
    uint64_t missed;
    np_floor floor;
    neap_status status = np_bound_floor(planner->timeline, &floor);
    if (status == NEAP_OK) {
        status = first_fit_below(planner, by, limit, floor.bytes, best, &aim, &missed);
    }
    for (uint32_t i = 0; i < MAX_RAISINGS && status == NEAP_OK && !by->weights && by->method == NEAP_SWAP_SEARCH &&
                         best->simulation.overhead > 0 && !is_late(planner);
         i++) {
        uint64_t middle = aim + (missed - aim) / 2;
        bool fits;
        planner->seed++;
        status = plan_aim(planner, by, middle, limit, &trial, &fits);
        if (status != NEAP_OK) {
            break;
        }
        if (fits) {
            aim = middle;
            if (trial.simulation.overhead < best->simulation.overhead) {
                keep(best, &trial);
            }
        } else if (i % 2 == 1) { /* a second seed has its chance too */
            missed = middle;
        }
    }
    planner->seed = before.seed;
    np_judged_free(&trial, planner->timeline->memory);
    return status;
}

neap_status np_plan_within_limit(np_planner *planner, neap_swap_method method, uint64_t limit, np_judged *best)
{
    return within_limit(planner, &(chooser){.method = method}, limit, best);
}

neap_status np_plan_with_weights(np_planner *planner, const double weights[4], uint64_t limit, np_judged *best)
{
    return within_limit(planner, &(chooser){.weights = weights}, limit, best);
}
