/* away.h: plans for limits so low that places, not loads, are what is hard to find.
 *
 * A load that is planned within such a limit leaves blocks where they meet others, each at a moment of its own, and there
 * is no place for all of them. The more is away, the fewer meet: where every gap is swapped, from its first exec to its
 * last, places are found most easily, and what has none then has none at all, as far as the solver can tell. That costs
 * much, and is only the beginning: what leaves for nothing stays (vacate.h), and then, one after the other, what costs
 * most is left out where the rest has places without it. */
#ifndef NP_SWAP_AWAY_H
#define NP_SWAP_AWAY_H

#include "swap/planner.h"

/* A plan within the limit, if it finds one: `best` then. Given `seconds` for its places. */
neap_status np_away_begin(np_planner *planner, uint64_t limit, double seconds, np_judged *best, bool *fits);

/* Makes such a plan, or any with its layout, cheaper until nothing helps any more or the deadline has come. `best` is
 * within the limit before and after, and never costs more. */
neap_status np_away_improve(np_planner *planner, uint64_t limit, uint64_t deadline_ns, uint64_t seed, np_judged *best);

#endif
