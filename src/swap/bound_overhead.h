/* bound_overhead.h: the least time that swapping must cost under a limit.
 *
 * In every window of execs (bound_windows.h) in which more is left than the limit allows, the program waits for at
 * least the time in which the rest could be copied. Waits in windows that do not overlap add up: the best choice of
 * such windows is a longest path along the line of execs. On a line it is also the least waits that give every window
 * its own, so nothing is lost by the choice. The line is a circle here: a choice that closes after some periods counts
 * per period, and holds for plans that do not repeat too, since it can be made again and again.
 *
 * Equal to the optimum for bytes that flow in all but a few of a thousand random programs where out and in are equally
 * fast; where they are not, a window that needs both takes the faster, and where they share the link, it is as if they
 * did not: the bound is lower than it could be then. */
#ifndef NP_SWAP_BOUND_OVERHEAD_H
#define NP_SWAP_BOUND_OVERHEAD_H

#include "swap/link.h"
#include "swap/timeline.h"

/* What every iteration takes longer on average, at least, under a limit in bytes; INFINITY where the program cannot
 * run at all (the limit is below np_bound_floor). In the order of n_execs^2 steps. NEAP_BAD_ARGUMENT: a speed of the
 * link is not above 0. */
neap_status np_bound_overhead(const np_timeline *timeline, const np_link *link, uint64_t limit, double *overhead_ns);

/* The same for many limits: hardly longer than for the lowest of them alone. */
neap_status np_bound_overheads(const np_timeline *timeline, const np_link *link, const uint64_t *limits,
                               size_t n_limits, double *overheads_ns);

#endif
