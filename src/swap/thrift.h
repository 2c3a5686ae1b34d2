/* thrift.h: a plan that fits its limit, with fewer swaps.
 *
 * The load is planned low enough for the footprint to fit, and is lowered part by part: there are more swaps than the
 * places ask for, and several of one block that leave and come back together. On the link that costs nothing, but each
 * is two copies that the host must give to the driver, in time that a program may not have. So whole gaps are left
 * out, or their parts put together and halved, as long as no more time is lost and the places fit. */
#ifndef NP_SWAP_THRIFT_H
#define NP_SWAP_THRIFT_H

#include "swap/planner.h"

/* Until nothing helps any more or the planner's deadline has come. `best` has a layout within the limit before and after,
 * does not cost more (a millionth of an iteration is not looked at), and has no more swaps. */
neap_status np_thrift(np_planner *planner, uint64_t limit, np_judged *best);

#endif
