/* stays.h: a judged plan taken apart for looking at: where each piece of each block stands and from when to when, and when
 * each exec and each copy runs in the steady state.
 *
 * A plan keeps only offsets. When a piece is there follows from the simulation, so that is done once more, under the limit
 * the plan was judged with, and the placement problem made from it again: the same input gives the same pieces, in the
 * same order. Times become events: exec k is the event times[k] of the period. */
#ifndef NP_SWAP_STAYS_H
#define NP_SWAP_STAYS_H

#include "swap/planner.h"

typedef struct np_stays {
    const neap_memory *memory;
    np_array(neap_swap_stay) stays;
    neap_swap_exec *execs; /* n_execs of them */
    uint32_t n_execs;
} np_stays;

/* Fills in the copies' times and `at` of `entries`, one for each of judged->swaps. The planner is one with a simulator, and
 * not `held`. */
neap_status np_stays_make(np_planner *planner, const np_judged *judged, neap_swap_entry *entries, np_stays *stays);
void np_stays_free(np_stays *stays);

/* Inside the period, in order, and no two share a byte at one time. Quadratic: for tests. */
bool np_stays_is_valid(const np_stays *stays, const np_timeline *timeline, uint64_t footprint);

#endif
