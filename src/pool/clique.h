/* clique.h: a bound on footprints where buffers have holes in time.
 *
 * Buffers that pairwise meet, each pair at some moment of its own, must all have different bytes: their sizes' sum is a
 * lower bound on every placement, and can be above the load of any one moment. */
#ifndef NP_POOL_CLIQUE_H
#define NP_POOL_CLIQUE_H

#include "pool/problem.h"

/* The weight, in units, of the heaviest set of pairwise meeting buffers found: at least the peak load. */
neap_status np_clique_bound(const np_problem *problem, uint64_t *bound);

#endif
