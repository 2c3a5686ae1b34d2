/* lives.h: which blocks a period holds, and when. */
#ifndef NP_TRACE_LIVES_H
#define NP_TRACE_LIVES_H

#include "trace/period.h"

/* Fills lives and n_leaked of a period whose run and origin are known, and tells of every block of the trace which life
 * it is an instance of (overlay.h). life_of_block has room for all blocks. */
neap_status np_lives_make(np_period *period, uint32_t *life_of_block);

#endif
