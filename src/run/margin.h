/* margin.h: uses widened in time.
 *
 * Where uses are seen from outside, a kernel may touch a block some launches before or after the one that names it. Each
 * use of a block counts for so many execs before and after it too, as long as the block lives: no plan has it away then. */
#ifndef NP_RUN_MARGIN_H
#define NP_RUN_MARGIN_H

#include "trace/period.h"

/* A use that was seen once, where no plan had expected it: exec of the period. */
typedef struct np_doubt {
    uint32_t life;
    uint32_t exec;
} np_doubt;

typedef np_array(np_doubt) np_doubt_array;

/* Doubts count as uses from here on. */
neap_status np_margin_widen(np_period *period, uint32_t margin, const np_doubt *doubts, size_t n_doubts);

#endif
