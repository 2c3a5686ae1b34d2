/* bound.h: what no plan that swaps can beat.
 *
 * At any moment of exec k, a byte that is absent lies in one gap that covers k. It was copied out since the end of some
 * exec i, or comes in before the start of some exec j, or lies in a gap released before i and due after j: that limits
 * how much can be absent (bound_windows.h). It holds for parts of blocks, any order, several swaps of a block and plans
 * that do not repeat. It does not cover recomputing, reordering or compressing. */
#ifndef NP_SWAP_BOUND_H
#define NP_SWAP_BOUND_H

#include "swap/link.h"
#include "swap/timeline.h"

/* The lowest peak, in bytes, that a plan can have whose iterations take at most (1 + overhead) times as long. Without
 * overhead it is the very optimum for bytes that flow (on all random programs tried, where out and in do not share the
 * link). NEAP_BAD_ARGUMENT: a speed of the link is not above 0. */
neap_status np_bound_peak(const np_timeline *timeline, const np_link *link, double overhead, uint64_t *peak);

/* The lowest limit under which the program can run at all, whatever the time: what one exec needs at once. */
typedef struct np_floor {
    uint64_t bytes;
    uint32_t exec; /* the one that needs it */
} np_floor;

neap_status np_bound_floor(const np_timeline *timeline, np_floor *floor);

#endif
