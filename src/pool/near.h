/* near.h: a placement near another one, of a problem that differs little from the one that was solved there.
 *
 * First-fits in the order of the places there. What ends above the goal was placed too late: all of it moves towards the
 * front of the order, and everything is placed again. */
#ifndef NP_POOL_NEAR_H
#define NP_POOL_NEAR_H

#include "pool/solve.h"

typedef struct np_near_options {
    const uint64_t *offsets; /* units, by buffer of the problem: where it stood; NEAP_NO_OFFSET: not known */
    uint64_t goal;           /* units: low enough */
    uint32_t n_steps;        /* after the first, at most */
    uint64_t seed;
} np_near_options;

/* *excess, in units: the sizes of what ends above the goal, summed up; the solution is the one where that is least. It has
 * passed the checker. NEAP_BAD_INPUT as np_solve. */
neap_status np_solve_near(const np_problem *problem, const np_near_options *options, neap_error *error,
                          np_solution *solution, uint64_t *excess);

#endif
