/* overlay.h: the accesses of all periods of a run, laid over each other.
 *
 * An access is at its place when the same exec of the period touches the same life in the same way: a block that is
 * malloc'd anew each period is known by how many events ago its malloc was, a persistent block by itself. An access that
 * is there in all of the periods that have its place in the run (all but a quarter of them, rounded down: in both of
 * two, all of three, three of four) is certain; any other is doubtful. */
#ifndef NP_TRACE_OVERLAY_H
#define NP_TRACE_OVERLAY_H

#include "trace/period.h"

/* Fills accesses, access_at, n_doubtful and the lives' first and last uses. life_of_block: index into period->lives of
 * what a block of the trace is an instance of; NP_LIFE_LEAKED: of a block that each period leaks; NP_LIFE_OTHER: of
 * nothing that recurs. */
#define NP_LIFE_OTHER UINT32_MAX
#define NP_LIFE_LEAKED (UINT32_MAX - 1)
neap_status np_overlay_make(np_period *period, const uint32_t *life_of_block);

#endif
