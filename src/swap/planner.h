/* planner.h: plans with swaps, judged by what they need: simulated time and placed footprint.
 *
 * For a program that is to be run, `held` is set, here and in the timeline: blocks have their places from malloc to free,
 * and what is judged comes with its layout (place.h). */
#ifndef NP_SWAP_PLANNER_H
#define NP_SWAP_PLANNER_H

#include <stdatomic.h>

#include "swap/fill.h"
#include "swap/method.h"
#include "swap/place.h"

typedef struct np_planner {
    const np_timeline *timeline;
    np_link link;
    np_simulator
        *simulator; /* of the timeline and link; NULL where there are no execs: np_plan_pool alone works then */
    uint64_t min_block;
    uint64_t page;
    uint64_t
        least_part; /* bytes: of what leaves at once, where there is more of a block; 0: a page. Few large copies */
    double swap_ns; /* what each swap takes beside its copies, */
    double byte_ns; /* and each byte that is copied, though hidden */
    uint64_t seed;
    unsigned n_threads;
    uint64_t deadline_ns;
    const atomic_bool *is_stopping; /* NULL, or true: it is late */
    bool cuts;                      /* see np_place_options; the planner finds out whether it is better */
    bool held;                      /* plans have layouts */
    const np_home *homes;           /* see np_place_options */
    uint64_t nearest; /* bytes: the lowest footprint that was seen where no plan was within its limit; 0: none was */
    neap_error *error;
} np_planner;

/* A set of swaps with its judgement. */
typedef struct np_judged {
    np_swap_array swaps;
    np_simulation simulation;
    uint64_t limit; /* that the simulation held, in bytes: what `place` and `layout` were made from */
    np_place_result place;
    np_layout layout; /* of just these swaps; of all lives where the planner is `held` */
} np_judged;

void np_judged_free(np_judged *judged, const neap_memory *memory);
neap_status np_judged_copy(const np_judged *judged, const neap_memory *memory, np_judged *copy);
void np_judged_exchange(np_judged *a, np_judged *b);

/* The plan of lowest footprint whose overhead is at most `overhead`; 0 for none at all. *lowest_peak is the lowest peak,
 * places not looked at, of the plans without overhead that were tried. */
neap_status np_plan_without_overhead(np_planner *planner, double overhead, np_judged *best, uint64_t *lowest_peak);

/* What a plan costs, as a share of an iteration: the time that is simulated, and what swaps take beside. */
static inline double np_planner_cost(const np_planner *planner, const np_judged *judged)
{
    const np_simulation *simulation = &judged->simulation;
    double bytes = (double)simulation->bytes_out + (double)simulation->bytes_in;
    double beside_ns = planner->byte_ns * bytes + planner->swap_ns * (double)judged->swaps.n;
    return simulation->overhead + beside_ns / planner->timeline->period_ns;
}

/* Past its deadline, or told to stop? */
bool np_planner_is_late(const np_planner *planner);

/* How the planner places, in the given time. A footprint at or below `goal` will do; 0: as low as can be. */
np_place_options np_planner_place_options(const np_planner *planner, double seconds, uint64_t goal);

/* Simulates and places judged->swaps. A limit below UINT64_MAX is held in the simulation; where the swaps cannot hold it
 * the footprint is UINT64_MAX. */
neap_status np_planner_judge(np_planner *planner, uint64_t limit, double seconds, uint64_t goal, np_judged *judged);

/* planner->nearest takes this footprint, if it is lower; UINT64_MAX is none. */
static inline void np_planner_note_nearest(np_planner *planner, uint64_t footprint)
{
    if (footprint < UINT64_MAX && (planner->nearest == 0 || footprint < planner->nearest)) {
        planner->nearest = footprint;
    }
}

/* Holds what is there at once to the footprint: places are made for execs, and between two of them a copy in can have begun
 * before a copy out has ended. Copies in wait for that; where time would be lost, the footprint is what is there instead. */
neap_status np_planner_settle(np_planner *planner, np_judged *judged);

/* No swaps at all: the pool alone, placed in the given time. */
neap_status np_plan_pool(np_planner *planner, double seconds, np_judged *judged);

/* The plan of least overhead whose footprint is at most `limit`, by a method. NEAP_NO_PLAN: none was found; a footprint
 * that was is in planner->nearest. */
neap_status np_plan_within_limit(np_planner *planner, neap_swap_method method, uint64_t limit, np_judged *best);

/* The same by a mix of the paper's scores, with weights by np_score (score.h), each in [-1, 1]. */
neap_status np_plan_with_weights(np_planner *planner, const double weights[NP_N_SCORES], uint64_t limit,
                                 np_judged *best);

/* Raises judged->place.bound as far as np_place_bound does. */
neap_status np_plan_bound(np_planner *planner, np_judged *judged);

/* The least overhead found with the load at or below `limit`, places not looked at; `swaps` is replaced.
 * *found false: there is none. */
neap_status np_plan_load(np_planner *planner, neap_swap_method method, uint64_t limit, np_swap_array *swaps,
                         np_simulation *simulation, bool *found);

/* The same by one of the paper's ways; `weights` of NP_METHOD_WEIGHTS, else NULL. */
neap_status np_plan_load_by_paper(np_planner *planner, np_method method, const double *weights, uint64_t limit,
                                  np_swap_array *swaps, np_simulation *simulation, bool *found);
np_method np_planner_paper_method(neap_swap_method method);

#endif
