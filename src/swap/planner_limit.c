/* planner_limit.c: plans under a limit.
 *
 * The load is planned lower and lower until the footprint is within the limit as well (aim.h). The paper's scores then go
 * up again by halving, a few times. The search goes on for as long as there is time: from the load that fits, or nearly
 * does, it climbs (climb.h), or roams where whole blocks cost less (roam.h), several times side by side, and trims what it
 * reached (trim.h). Where no load fits, it begins with everything away (away.h). In the end it leaves out what is swapped
 * for nothing (thrift.h). */
#include "base/clock.h"
#include "base/parallel.h"
#include "swap/aim.h"
#include "swap/away.h"
#include "swap/bound.h"
#include "swap/climb.h"
#include "swap/load.h"
#include "swap/roam.h"
#include "swap/thrift.h"
#include "swap/trim.h"

enum { MAX_LOWERINGS = 24, QUICK_RAISINGS = 3, SEARCH_RAISINGS = 5, MAX_JOBS = 8 };

#define SEARCH_SHARE 0.9 /* of the time: the rest is for leaving swaps out */
#define CLIMB_SHARE 0.85 /* of that: the rest is for trimming */
#define NEAR_SHARE 0.4   /* of the time left, for what nearly fits; */
#define LATE_SHARE 0.15  /* of all of it, late as it may be */

/* The time a share of what is left from now on. */
static uint64_t share_of_time(uint64_t deadline_ns, double share)
{
    uint64_t now = np_clock_ns();
    return deadline_ns > now ? now + (uint64_t)(share * (double)(deadline_ns - now)) : now;
}

/* What is looked for below a limit: an aim whose footprint fits, and its plan. */
typedef struct fitting {
    np_planner *planner;
    np_chooser *by;
    uint64_t limit;
    np_judged *best; /* the lowest footprint so far, */
    uint64_t aim;    /* and its aim */
    bool fits;       /* the last one does */
    np_judged trial;
} fitting;

static neap_status try_aim(fitting *f, uint64_t aim, uint64_t *footprint)
{
    neap_status status = np_aim_plan(f->planner, f->by, aim, f->limit, &f->trial, &f->fits);
    *footprint = f->trial.place.footprint;
    if (status == NEAP_OK && *footprint < f->best->place.footprint) {
        np_judged_exchange(f->best, &f->trial);
        f->aim = aim;
    }
    return status;
}

/* The first plan placed with more blocks cut up: all others are, too, where that is better. */
static neap_status try_cuts(fitting *f, uint64_t *footprint)
{
    const neap_memory *memory = f->planner->timeline->memory;
    neap_status status;
    np_judged_free(&f->trial, memory);
    f->trial = (np_judged){0};
    status = np_judged_copy(f->best, memory, &f->trial);
    f->planner->cuts = true;
    if (status == NEAP_OK) {
        status = np_aim_place(f->planner, f->by, f->aim, f->limit, &f->trial, &f->fits);
    }
    if (status == NEAP_OK && f->trial.place.footprint < *footprint) {
        np_judged_exchange(f->best, &f->trial);
        *footprint = f->best->place.footprint;
    } else {
        f->planner->cuts = false;
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
static neap_status first_fit_below(np_planner *planner, np_chooser *by, uint64_t limit, np_judged *best, uint64_t *aim,
                                   uint64_t *missed, bool *fits)
{
    fitting f = {.planner = planner, .by = by, .limit = limit, .best = best, .aim = limit};
    uint64_t next = limit;
    uint64_t least_step = limit / 100;
    np_floor floor;
    neap_status status = np_bound_floor(planner->timeline, &floor);
    best->place.footprint = UINT64_MAX;
    planner->cuts = false;
    *missed = limit;
    for (uint32_t i = 0; i < MAX_LOWERINGS && status == NEAP_OK && !f.fits; i++) {
        uint64_t over = 0;
        uint64_t footprint;
        uint64_t step;
        status = try_aim(&f, next, &footprint);
        if (status == NEAP_OK && i == 0 && !f.fits && footprint < UINT64_MAX && np_chooser_is_search(by) &&
            planner->held) {
            status = try_cuts(&f, &footprint);
        }
        if (status == NEAP_OK && !f.fits && footprint < UINT64_MAX) {
            over = (footprint - limit) * 2 / 3;
        }
        if (f.fits || next <= floor.bytes) {
            break;
        }
        *missed = next;
        step = over > least_step ? over : least_step;
        least_step *= np_chooser_is_search(by) && over <= least_step ? 2 : 1; /* near misses are not to take long */
        next = step < next - floor.bytes ? next - step : floor.bytes;
    }
    if (status == NEAP_OK && !f.fits && np_chooser_is_search(by) && best->place.footprint < UINT64_MAX) {
        status = try_between(&f, floor.bytes);
    }
    *aim = f.aim;
    *fits = f.fits;
    np_judged_free(&f.trial, planner->timeline->memory);
    return status;
}

/* Keeps the trial, which fits, where it costs less or the best does not fit. */
static void keep_better(const np_planner *planner, np_judged *best, uint64_t limit, np_judged *trial)
{
    if (best->place.footprint > limit || np_planner_cost(planner, trial) < np_planner_cost(planner, best)) {
        np_judged_exchange(best, trial);
    }
}

/* Between an aim that fits and one that does not. Where what the search chose does not fit, the paper's mix has its
 * chance: it swaps whole blocks. */
static neap_status raise_aim(np_planner *planner, np_chooser *by, uint64_t limit, uint64_t *aim, uint64_t missed,
                             np_judged *best)
{
    np_chooser mix = {.method = NEAP_SWAP_BO};
    const uint32_t n_raisings = np_chooser_is_search(by) ? SEARCH_RAISINGS : QUICK_RAISINGS;
    np_judged trial = {0};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n_raisings && status == NEAP_OK && best->simulation.overhead > 0 &&
                         !(np_chooser_is_search(by) && np_planner_is_late(planner));
         i++) {
        uint64_t middle = *aim + (missed - *aim) / 2;
        bool fits;
        status = np_aim_plan(planner, by, middle, limit, &trial, &fits);
        if (status == NEAP_OK && fits) {
            *aim = middle;
        } else if (status == NEAP_OK) {
            missed = middle;
            if (np_chooser_is_search(by) && !by->whole) {
                status = np_aim_plan(planner, &mix, middle, limit, &trial, &fits);
            }
        }
        if (status == NEAP_OK && fits) {
            keep_better(planner, best, limit, &trial);
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
    np_chooser by = {.method = NEAP_SWAP_SEARCH, .extra = extra};
    np_judged trial = {0};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < 16 && status == NEAP_OK && !*fits && !(i > 0 && np_planner_is_late(planner)); i++) {
        uint64_t next = limit - limit / 20 * (i / 4);
        widen_needs(planner->timeline->n_execs, least, reaches[i % 4], next, extra);
        status = np_aim_plan(planner, &by, next, limit, &trial, fits);
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
    bool is_whole; /* blocks are swapped whole, and orders of them tried (roam.h), not climbed */
    bool is_away;  /* what was begun with everything away (away.h) is no climb */
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
    } else if (job->status == NEAP_OK && job->is_whole) {
        np_roam_options options = {.aim = job->options.aim,
                                   .limit = job->options.limit,
                                   .deadline_ns = job->options.deadline_ns,
                                   .seed = job->options.seed};
        job->status = np_roam(&job->planner, &options, &job->judged);
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
                            bool is_whole, np_judged *best)
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
        jobs[i].is_whole = is_whole;
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
            keep_better(planner, best, limit, &jobs[i].judged);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        np_judged_free(&jobs[i].judged, memory);
    }
    return status;
}

/* What nearly fits is given some time, late as it may be: to begin with everything away takes longer, and costs more. `given_ns`:
 * all that the search has. */
static neap_status make_fit(np_planner *planner, uint64_t limit, uint64_t aim, bool is_whole, uint64_t given_ns,
                            np_judged *best, bool *fits)
{
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t share_ns = share_of_time(deadline_ns, NEAR_SHARE);
    uint64_t least_ns = np_clock_ns() + (uint64_t)(LATE_SHARE * (double)given_ns);
    neap_status status;
    planner->deadline_ns = share_ns > least_ns ? share_ns : least_ns;
    status = climb_up(planner, limit, aim, NULL, false, is_whole, best);
    planner->deadline_ns = deadline_ns;
    *fits = status == NEAP_OK && best->place.footprint <= limit;
    return status;
}

static neap_status search(np_planner *planner, uint64_t limit, np_judged *best)
{
    const neap_memory *memory = planner->timeline->memory;
    size_t n = (size_t)planner->timeline->n_execs + 1;
    uint64_t *least = np_memory_alloc(memory, n, sizeof *least);
    uint64_t *extra = np_memory_alloc(memory, n, sizeof *extra);
    np_chooser by = {.method = NEAP_SWAP_SEARCH};
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t begin_ns = np_clock_ns();
    uint64_t aim = limit;
    uint64_t missed;
    bool fits = false;
    bool widened = false;
    bool is_away = false;
    neap_status status = NEAP_NO_MEMORY;
    if (least && extra) {
        status = first_fit_below(planner, &by, limit, best, &aim, &missed, &fits);
    }
    if (status == NEAP_OK && fits && aim < missed && !by.whole) {
        status = raise_aim(planner, &by, limit, &aim, missed, best);
    }
    if (status == NEAP_OK && !fits && np_aim_is_near(best, limit)) {
        uint64_t given_ns = deadline_ns > begin_ns ? deadline_ns - begin_ns : 0;
        status = make_fit(planner, limit, aim, by.whole, given_ns, best, &fits);
    }
    if (status == NEAP_OK && !fits) {
        find_least_needs(planner, least);
        status = fit_widened(planner, limit, least, extra, best, &aim, &fits);
        widened = fits;
    }
    if (status == NEAP_OK && !fits) {
        status = np_away_begin(planner, limit, np_aim_place_seconds(planner), best, &fits);
        is_away = fits;
    }
    if (status == NEAP_OK && best->place.footprint < UINT64_MAX && (!fits || best->simulation.overhead > 0)) {
        planner->deadline_ns = share_of_time(deadline_ns, SEARCH_SHARE);
        status = climb_up(planner, limit, aim, widened ? extra : NULL, is_away, by.whole, best);
        planner->deadline_ns = deadline_ns;
    }
    if (status == NEAP_OK && best->place.footprint <= limit) {
        status = np_thrift(planner, limit, best);
    }
    np_memory_free(memory, least, n, sizeof *least);
    np_memory_free(memory, extra, n, sizeof *extra);
    return status;
}

static neap_status plan_by(np_planner *planner, np_chooser *by, uint64_t limit, np_judged *best)
{
    uint64_t aim = limit;
    uint64_t missed;
    bool fits = false;
    neap_status status;
    if (np_chooser_is_search(by)) {
        status = search(planner, limit, best);
    } else {
        status = first_fit_below(planner, by, limit, best, &aim, &missed, &fits);
        if (status == NEAP_OK && fits && aim < missed && best->simulation.overhead > 0) {
            status = raise_aim(planner, by, limit, &aim, missed, best);
        }
    }
    if (status != NEAP_OK || best->place.footprint <= limit) {
        return status;
    }
    np_planner_note_nearest(planner, best->place.footprint);
    return NEAP_NO_PLAN;
}

/* The mix of the scores: each of them alone, too, in the time that it has where it is asked for alone. At one load the mix
 * is as good as any (mix.h); but places, and with them the load that is planned, differ. */
static neap_status plan_by_mix(np_planner *planner, uint64_t limit, np_judged *best)
{
    static const neap_swap_method methods[] = {NEAP_SWAP_DOA, NEAP_SWAP_AOA, NEAP_SWAP_WDOA, NEAP_SWAP_SWDOA,
                                               NEAP_SWAP_BO};
    uint64_t deadline_ns = planner->deadline_ns;
    uint64_t now = np_clock_ns();
    uint64_t time_ns = deadline_ns > now ? deadline_ns - now : 0;
    np_judged trial = {0};
    neap_status status = NEAP_OK;
    best->place.footprint = UINT64_MAX;
    for (size_t i = 0; i < sizeof methods / sizeof *methods && status == NEAP_OK; i++) {
        np_chooser by = {.method = methods[i]};
        planner->deadline_ns = np_clock_ns() + time_ns;
        status = plan_by(planner, &by, limit, &trial);
        if (status == NEAP_OK) {
            keep_better(planner, best, limit, &trial);
        }
        status = status == NEAP_NO_PLAN ? NEAP_OK : status;
    }
    planner->deadline_ns = deadline_ns;
    np_judged_free(&trial, planner->timeline->memory);
    return status == NEAP_OK && best->place.footprint > limit ? NEAP_NO_PLAN : status;
}

neap_status np_plan_within_limit(np_planner *planner, neap_swap_method method, uint64_t limit, np_judged *best)
{
    return method == NEAP_SWAP_BO ? plan_by_mix(planner, limit, best)
                                  : plan_by(planner, &(np_chooser){.method = method}, limit, best);
}

neap_status np_plan_with_weights(np_planner *planner, const double weights[NP_N_SCORES], uint64_t limit,
                                 np_judged *best)
{
    return plan_by(planner, &(np_chooser){.weights = weights}, limit, best);
}
