/* trim.h: a plan whose footprint fits its limit, made cheaper with its places in view.
 *
 * A load that is planned low enough for the footprint to fit swaps more than the places ask for. So small changes are
 * tried: a swap less, or half of it, a copy in that may begin earlier, a higher load held in the simulation. Each is
 * simulated, which is quick; those that cost less time are placed, the cheapest first, near the layout at hand; where
 * that fits, the change stays, and all is tried again. */
#ifndef NP_SWAP_TRIM_H
#define NP_SWAP_TRIM_H

#include "swap/planner.h"

/* Until nothing helps any more or the planner's deadline has come. `best` has a layout within the limit before and after,
 * and never costs more. */
neap_status np_trim(np_planner *planner, uint64_t limit, np_judged *best);

#endif
