/* hold.h: copies in that wait for an exec until there is room for them in the plan.
 *
 * A copy in that begins as early as the link asks for may take memory that an exec before its own needs: with the limit
 * held, that exec would wait for ever. The paper lets a copy in start only after something was freed. So each swap's
 * in_after is moved on, never back, until the load of every exec with what is there by plan is at or below the limit:
 * a swap is absent from the execs after its gap's `from` up to in_after, and there from then on. Copies that are due
 * first take the room first. With the queue of copies in ordered by due, a plan held so never halts: whatever exec comes
 * next, its load fits once the copies out before it have ended, and no copy in waits for an exec behind it. */
#ifndef NP_SWAP_HOLD_H
#define NP_SWAP_HOLD_H

#include "swap/simulate.h"

/* Swaps as np_schedule_swaps leaves them, whole blocks or parts.
 * NEAP_NO_PLAN: even with each absent from all execs inside its gap the load exceeds the limit. */
neap_status np_hold_swaps(const np_timeline *timeline, uint64_t limit, np_swap *swaps, uint32_t n_swaps);

#endif
