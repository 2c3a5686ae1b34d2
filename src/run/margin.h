/* margin.h: uses widened in time.
 *
 * Where uses are seen from outside, a kernel may touch a block some launches before or after the one that names it. Each
 * use of a block counts for so many execs before and after it too, as long as the block lives: no plan has it away then. */
#ifndef NP_RUN_MARGIN_H
#define NP_RUN_MARGIN_H

#include "trace/period.h"

neap_status np_margin_widen(np_period *period, uint32_t margin);

#endif
