/* bound_overhead.h: the least time that swapping must cost under a limit.
 *
 * In every window of execs (bound_windows.h) in which more is left than the limit allows, the program waits for at least
 * the time in which the rest could be copied. Waits in windows that do not overlap add up: the best choice of such
 * windows is a longest path along the line of execs, and on a line it is also the least that waits can be so that every
 * window has its own. The line is a circle here: a choice that closes after some periods counts per period. */
#ifndef NP_SWAP_BOUND_OVERHEAD_H
#define NP_SWAP_BOUND_OVERHEAD_H

#include "swap/link.h"
#include "swap/timeline.h"

/* What every iteration takes longer on average, at least, under a limit in bytes; INFINITY where the program cannot run
 * at all (the limit is below np_bound_floor). In the order of n_execs^2 steps. NEAP_BAD_ARGUMENT: a speed of the link is
 * not above 0. */
neap_status np_bound_overhead(const np_timeline *timeline, const np_link *link, uint64_t limit, double *overhead_ns);

/* The same for many limits: hardly longer than for the lowest of them alone. */
neap_status np_bound_overheads(const np_timeline *timeline, const np_link *link, const uint64_t *limits,
                               size_t n_limits, double *overheads_ns);

#endif
