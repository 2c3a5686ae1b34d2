/* climb.h: swaps chosen for their places.
 *
 * Plans of one load and cost can differ by a fifth in their footprints: it depends on which blocks leave, and so on who
 * meets whom. The order in which gaps are filled (fill.h) decides that. So the order is changed a little, at random but
 * with an eye on the blocks that stand above the limit, planned and placed anew near the layout at hand, and kept where
 * no more stands above the limit than before. Once nothing does, the load aimed at is raised, since a higher load costs
 * less, and so on. */
#ifndef NP_SWAP_CLIMB_H
#define NP_SWAP_CLIMB_H

#include "swap/planner.h"

typedef struct np_climb_options {
    uint64_t aim;   /* bytes: the load to begin with */
    uint64_t limit; /* bytes: of the footprint */
    const uint64_t
        *extra; /* bytes, by exec: how far below `aim` the plan to begin with holds the load; NULL: nowhere */
    uint64_t deadline_ns;
    uint64_t seed;
} np_climb_options;

/* `best` has a layout, of swaps that hold the load `aim`. Where it fits the limit it never costs more after; where it does
 * not, it does after, or nothing was found. */
neap_status np_climb(np_planner *planner, const np_climb_options *options, np_judged *best);

#endif
