/* planner_limit.c: plans under a limit.
 *
 * The load is planned lower and lower until the footprint is within the limit as well. The paper's scores then go up
 * again by halving, a few times. The search goes on for as long as there is time: it climbs (climb.h) from the load that
 * fits, several times side by side, and trims what it reached (trim.h). Where no load fits, it begins with everything
 * away (away.h). In the end it leaves out what is swapped for nothing (thrift.h). */
#include <math.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "swap/away.h"
#include "swap/bound.h"
#include "swap/climb.h"
#include "swap/load.h"
#include "swap/planner.h"
#include "swap/stall.h"
#include "swap/thrift.h"
#include "swap/trim.h"

enum { MAX_LOWERINGS = 24, QUICK_RAISINGS = 3, SEARCH_RAISINGS = 5, MAX_JOBS = 8, AGAIN_STEPS = 24 };

#define PLACE_SHARE 0.03 /* of the time left, for one placement of the search, */
#define LEAST_PLACE_SECONDS 0.02
#define QUICK_PLACE_SECONDS 0.01 /* for the paper's scores, which are there to compare with */
#define SEARCH_SHARE 0.9         /* of the time: the rest is for leaving swaps out */
#define CLIMB_SHARE 0.85         /* of that: the rest is for trimming */

/* The time a share of what is left from now on. */
static uint64_t share_of_time(uint64_t deadline_ns, double share)
{
    uint64_t now = np_clock_ns();
    return deadline_ns > now ? now + (uint64_t)(share * (double)(deadline_ns - now)) : now;
}

static double place_seconds(const np_planner *planner)
{
    uint64_t now = np_clock_ns();
    double left = planner->deadline_ns > now ? 1e-9 * (double)(planner->deadline_ns - now) : 0;
    return fmax(PLACE_SHARE * left, LEAST_PLACE_SECONDS);
}

/* How swaps are chosen for a load. */
typedef struct chooser {
    neap_swap_method method;
    const double *weights; /* of a mix of the paper's scores; NULL: by the method */
    const uint64_t *extra; /* of the search: by exec, how far below the aim the load is planned; NULL: nowhere */
} chooser;

static bool is_search(const chooser *by)
{
    return !by->weights && by->method == NEAP_SWAP_SEARCH;
}

/* By one order of filling alone. */
static neap_status search_quickly(np_planner *planner, uint64_t aim, const uint64_t *extra, np_judged *trial,
                                  bool *found)
{
    np_stall_options options = {.limit = aim,
                                .min_block = planner->min_block,
                                .page = planner->page,
                                .least_part = planner->least_part,
                                .seed = planner->seed,
                                .n_rounds = 1,
                                .extra = extra,
                                .deadline_ns = share_of_time(planner->deadline_ns, 0.2)};
    return np_stall_search(planner->timeline, &planner->link, &options, &trial->swaps, &trial->simulation, found);
}

/* What stands too high is given a better place, if there is one. */
static neap_status place_again(np_planner *planner, uint64_t limit, np_judged *trial)
{
    np_place_options options = np_planner_place_options(planner, 0, limit);
    np_layout layout = {0};
    np_place_result place;
    uint64_t excess;
    neap_status status =
        np_place_near(planner->timeline, planner->simulator, trial->swaps.items, (uint32_t)trial->swaps.n, &options,
                      &trial->layout, AGAIN_STEPS, planner->error, &place, &layout, &excess);
    if (status == NEAP_OK && excess == 0) {
        np_layout old = trial->layout;
        trial->layout = layout;
        trial->place = place;
        layout = old;
    }
    np_layout_free(&layout);
    return status;
}

/* Simulates and places a trial; for the search twice where need be. */
static neap_status place_trial(np_planner *planner, const chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                               bool *fits)
{
    double seconds = is_search(by) ? place_seconds(planner) : QUICK_PLACE_SECONDS;
    neap_status status = np_planner_judge(planner, aim, seconds, limit, trial);
    if (status == NEAP_OK && is_search(by) && trial->simulation.possible && trial->place.footprint > limit) {
        status = place_again(planner, limit, trial);
    }
    *fits = status == NEAP_OK && trial->place.footprint <= limit;
    return status;
}

/* Plans for a load of at most `aim` and places it. *fits: the footprint, too, is within the limit. */
static neap_status plan_aim(np_planner *planner, const chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                            bool *fits)
{
    np_method method = by->weights ? NP_METHOD_WEIGHTS : np_planner_paper_method(by->method);
    bool found = false;
    neap_status status = NEAP_OK;
    if (is_search(by)) {
        status = search_quickly(planner, aim, by->extra, trial, &found);
    }
    if (status == NEAP_OK && !found && !by->extra) { /* the search's last resort, or the method asked for */
        status = np_plan_load_by_paper(planner, method, by->weights, aim, &trial->swaps, &trial->simulation, &found);
    }
    *fits = false;
    trial->place = (np_place_result){.footprint = UINT64_MAX};
    return status == NEAP_OK && found ? place_trial(planner, by, aim, limit, trial, fits) : status;
}

/* What is looked for below a limit: an aim whose footprint fits, and its plan. */
typedef struct fitting {
    np_planner *planner;
    const chooser *by;
    uint64_t limit;
    np_judged *best; /* the lowest footprint so far, */
    uint64_t aim;    /* and its aim */
    bool fits;       /* the last one does */
    np_judged trial;
} fitting;

static neap_status try_aim(fitting *f, uint64_t aim, uint64_t *footprint)
{
    neap_status status = plan_aim(f->planner, f->by, aim, f->limit, &f->trial, &f->fits);
    *footprint = f->trial.place.footprint;
    if (status == NEAP_OK && *footprint < f->best->place.footprint) {
        np_judged_exchange(f->best, &f->trial);
        f->aim = aim;
    }
    return status;
}

/* Between the floor and the limit: a higher load can need less memory, where fewer blocks must find their places again. */
static neap_status try_between(fitting *f, uint64_t floor)
{
    static const double shares[] = {0.125, 0.375, 0.625};
    uint64_t room = f->limit > floor ? f->limit - floor : 0;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < sizeof shares / sizeof *shares && room > 0 && status == NEAP_OK && !f->fits; i++) {
        uint64_t footprint;
        status = try_aim(f, floor + (uint64_t)(shares[i] * (double)room), &footprint);
    }
    return status;
}

/* Lowers the aim until the footprint fits: `best`, *aim, and *missed, the lowest aim tried that did not. Where none does,
 * *fits is false, and `best` is the lowest footprint (UINT64_MAX: no swaps hold any aim). */
static neap_status first_fit_below(np_planner *planner, const chooser *by, uint64_t limit, np_judged *best,
                                   uint64_t *aim, uint64_t *missed, bool *fits)
{
    fitting f = {.planner = planner, .by = by, .limit = limit, .best = best, .aim = limit};
    uint64_t next = limit;
    np_floor floor;
    neap_status status = np_bound_floor(planner->timeline, &floor);
    best->place.footprint = UINT64_MAX;
    *missed = limit;
    for (uint32_t i = 0; i < MAX_LOWERINGS && status == NEAP_OK && !f.fits; i++) {
        uint64_t over = 0;
        uint64_t footprint;
        uint64_t step;
        status = try_aim(&f, next, &footprint);
        if (status == NEAP_OK && !f.fits && footprint < UINT64_MAX) {
            over = (footprint - limit) * 2 / 3;
        }
        if (f.fits || next <= floor.bytes) {
            break;
        }
        *missed = next;
        step = over > limit / 100 ? over : limit / 100;
        next = step < next - floor.bytes ? next - step : floor.bytes;
    }
    if (status == NEAP_OK && !f.fits && is_search(by) && best->place.footprint < UINT64_MAX) {
        status = try_between(&f, floor.bytes);
    }
    *aim = f.aim;
    *fits = f.fits;
    np_judged_free(&f.trial, planner->timeline->memory);
    return status;
}

/* Keeps the trial, which fits, where it costs less or the best does not fit. */
static void keep_better(np_judged *best, uint64_t limit, np_judged *trial)
{
    if (best->place.footprint > limit || trial->simulation.overhead < best->simulation.overhead) {
        np_judged_exchange(best, trial);
    }
}

/* Between an aim that fits and one that does not. Where what the search chose does not fit, the paper's mix has its
 * chance: it swaps whole blocks. */
static neap_status raise_aim(np_planner *planner, const chooser *by, uint64_t limit, uint64_t *aim, uint64_t missed,
                             np_judged *best)
{
    const chooser mix = {.method = NEAP_SWAP_BO};
    const uint32_t n_raisings = is_search(by) ? SEARCH_RAISINGS : QUICK_RAISINGS;
    np_judged trial = {0};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n_raisings && status == NEAP_OK && best->simulation.overhead > 0 &&
                         !(is_search(by) && np_planner_is_late(planner));
         i++) {
        uint64_t middle = *aim + (missed - *aim) / 2;
        bool fits;
        status = plan_aim(planner, by, middle, limit, &trial, &fits);
        if (status == NEAP_OK && fits) {
            *aim = middle;
        } else if (status == NEAP_OK) {
            missed = middle;
            if (is_search(by)) {
                status = plan_aim(planner, &mix, middle, limit, &trial, &fits);
            }
        }
        if (status == NEAP_OK && fits) {
            keep_better(best, limit, &trial);
        }
    }
    np_judged_free(&trial, planner->timeline->memory);
    return status;
}

/* ---- the search ---- */

/* What an exec needs at once, with what cannot leave. */
static void find_least_needs(const np_planner *planner, uint64_t *least)
{
    const np_timeline *timeline = planner->timeline;
    uint32_t n = timeline->n_execs;
    for (uint32_t k = 0; k <= n; k++) {
        least[k] = 0;
    }
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        if (gap->bytes >= planner->min_block) {
            np_load_take(least, n, gap->from + 1, gap->to, gap->bytes);
        }
    }
    (void)np_load_sum(timeline, least);
}

/* Around an exec that needs much at once, blocks that leave for it alone meet what it uses before it or after it: they
 * have no place. So the load is planned as if the execs around needed as much. */
static void widen_needs(uint32_t n, const uint64_t *least, uint32_t reach, uint64_t aim, uint64_t *extra)
{
    for (uint32_t k = 0; k < n; k++) {
        uint64_t most = least[k];
        for (uint32_t d = 0; d <= 2 * reach; d++) {
            uint64_t near = least[(k + n - reach % n + d) % n];
            most = near > most && near <= aim ? near : most;
        }
        extra[k] = most - least[k];
    }
}

/* Where nothing fits: the needs of some execs spread over those around, at several aims. */
static neap_status fit_widened(np_planner *planner, uint64_t limit, const uint64_t *least, uint64_t *extra,
                               np_judged *best, uint64_t *aim, bool *fits)
{
    static const uint32_t reaches[] = {16, 8, 4, 32};
    const chooser by = {.method = NEAP_SWAP_SEARCH, .extra = extra};
    np_judged trial = {0};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < 16 && status == NEAP_OK && !*fits && !(i > 0 && np_planner_is_late(planner)); i++) {
        uint64_t next = limit - limit / 20 * (i / 4);
        widen_needs(planner->timeline->n_execs, least, reaches[i % 4], next, extra);
        status = plan_aim(planner, &by, next, limit, &trial, fits);
        if (status == NEAP_OK && *fits) {
            np_judged_exchange(best, &trial);
            *aim = next;
        }
    }
    np_judged_free(&trial, planner->timeline->memory);
    return status;
}

/* One climb, with a planner of its own. */
typedef struct climb_job {
    np_planner planner;
    neap_error error;
    np_climb_options options;
    np_judged judged;
    bool is_away; /* what was begun with everything away (away.h) is no climb */
    neap_status status;
} climb_job;

static void run_job(void *user, unsigned index)
{
    climb_job *job = &((climb_job *)user)[index];
    job->planner.error = &job->error;
    job->status = np_simulator_create(job->planner.timeline, &job->planner.link, &job->planner.simulator);
    if (job->status == NEAP_OK && job->is_away) {
        job->status = np_away_improve(&job->planner, job->options.limit, job->options.deadline_ns, job->options.seed,
                                      &job->judged);
    } else if (job->status == NEAP_OK) {
        job->status = np_climb(&job->planner, &job->options, &job->judged);
    }
    if (job->status == NEAP_OK && job->judged.place.footprint <= job->options.limit) {
        job->status = np_trim(&job->planner, job->options.limit, &job->judged);
    }
    np_simulator_free(job->planner.simulator);
}

/* Several climbs from the plan that fits, side by side. */
static neap_status climb_up(np_planner *planner, uint64_t limit, uint64_t aim, const uint64_t *extra, bool is_away,
                            np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    climb_job jobs[MAX_JOBS] = {0};
    unsigned n = planner->n_threads < MAX_JOBS ? planner->n_threads : MAX_JOBS;
    neap_status status = NEAP_OK;
    n = n > 0 ? n : 1;
    for (unsigned i = 0; i < n && status == NEAP_OK; i++) {
        jobs[i].planner = *planner;
        jobs[i].planner.n_threads = 1;
        jobs[i].planner.simulator = NULL;
        jobs[i].is_away = is_away;
        jobs[i].options = (np_climb_options){.aim = aim,
                                             .limit = limit,
                                             .extra = extra,
                                             .deadline_ns = share_of_time(planner->deadline_ns, CLIMB_SHARE),
                                             .seed = planner->seed + i};
        status = np_judged_copy(best, memory, &jobs[i].judged);
    }
    if (status == NEAP_OK) {
        np_parallel_for(n, n, run_job, jobs);
    }
    for (unsigned i = 0; i < n; i++) {
        status = status == NEAP_OK ? jobs[i].status : status;
        if (status == NEAP_OK && jobs[i].judged.place.footprint <= limit) {
            keep_better(best, limit, &jobs[i].judged);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        np_judged_free(&jobs[i].judged, memory);
    }
    return status;
}

static neap_status search(np_planner *planner, uint64_t limit, np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    size_t n = (size_t)planner->timeline->n_execs + 1;
    uint64_t *least = np_memory_alloc(memory, n, sizeof *least);
    uint64_t *extra = np_memory_alloc(memory, n, sizeof *extra);
    const chooser by = {.method = NEAP_SWAP_SEARCH};
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t aim = limit;
    uint64_t missed;
    bool fits = false;
    bool widened = false;
    bool is_away = false;
    neap_status status = NEAP_NO_MEMORY;
    if (least && extra) {
        status = first_fit_below(planner, &by, limit, best, &aim, &missed, &fits);
    }
    if (status == NEAP_OK && fits && aim < missed) {
        status = raise_aim(planner, &by, limit, &aim, missed, best);
    }
    if (status == NEAP_OK && !fits) {
        find_least_needs(planner, least);
        status = fit_widened(planner, limit, least, extra, best, &aim, &fits);
        widened = fits;
    }
    if (status == NEAP_OK && !fits) {
        status = np_away_begin(planner, limit, place_seconds(planner), best, &fits);
        is_away = fits;
    }
    if (status == NEAP_OK && best->place.footprint < UINT64_MAX && (!fits || best->simulation.overhead > 0)) {
        planner->deadline_ns = share_of_time(deadline_ns, SEARCH_SHARE);
        status = climb_up(planner, limit, aim, widened ? extra : NULL, is_away, best);
        planner->deadline_ns = deadline_ns;
    }
    if (status == NEAP_OK && best->place.footprint <= limit) {
        status = np_thrift(planner, limit, best);
    }
    np_memory_free(memory, least, n, sizeof *least);
    np_memory_free(memory, extra, n, sizeof *extra);
    return status;
}

static neap_status within_limit(np_planner *planner, const chooser *by, uint64_t limit, np_judged *best)
{
    uint64_t aim = limit;
    uint64_t missed;
    bool fits = false;
    neap_status status;
    if (is_search(by)) {
        status = search(planner, limit, best);
    } else {
        status = first_fit_below(planner, by, limit, best, &aim, &missed, &fits);
        if (status == NEAP_OK && fits && aim < missed && best->simulation.overhead > 0) {
            status = raise_aim(planner, by, limit, &aim, missed, best);
        }
    }
    return status == NEAP_OK && best->place.footprint > limit ? NEAP_NO_PLAN : status;
}

neap_status np_plan_within_limit(np_planner *planner, neap_swap_method method, uint64_t limit, np_judged *best)
{
    return within_limit(planner, &(chooser){.method = method}, limit, best);
}

neap_status np_plan_with_weights(np_planner *planner, const double weights[NP_N_SCORES], uint64_t limit,
                                 np_judged *best)
{
    return within_limit(planner, &(chooser){.weights = weights}, limit, best);
}
