/* planner.h: plans with swaps, judged by what they need: simulated time and placed footprint. */
#ifndef NP_SWAP_PLANNER_H
#define NP_SWAP_PLANNER_H

#include "swap/fill.h"
#include "swap/place.h"

typedef struct np_planner {
    const np_timeline *timeline;
    np_link link;
    np_simulator *simulator;
    uint64_t min_block;
    uint64_t page;
    uint64_t seed;
    unsigned n_threads;
    uint64_t deadline_ns;
    neap_error *error;
} np_planner;

/* A set of swaps with its judgement. */
typedef struct np_judged {
    np_swap_array swaps;
    np_simulation simulation;
    np_place_result place;
} np_judged;

void np_judged_free(np_judged *judged, const neap_memory *memory);

/* The plan of lowest footprint whose overhead is at most `overhead`; 0 for none at all. *lowest_peak is the lowest peak,
 * places not looked at, of the plans without overhead that were tried. */
neap_status np_plan_without_overhead(np_planner *planner, double overhead, np_judged *best, uint64_t *lowest_peak);

/* The plan of least overhead whose footprint is at most `limit`, by a method. NEAP_NO_PLAN: none was found. */
neap_status np_plan_within_limit(np_planner *planner, neap_swap_method method, uint64_t limit, np_judged *best);

/* The least overhead found with the load at or below `limit`, places not looked at; `swaps` is replaced.
 * *found false: there is none. */
neap_status np_plan_load(np_planner *planner, neap_swap_method method, uint64_t limit, np_swap_array *swaps,
                         np_simulation *simulation, bool *found);

#endif
