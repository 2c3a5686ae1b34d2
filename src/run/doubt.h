/* doubt.h: blocks of which a plan cannot say when they are used.
 *
 * Two buffers that take turns are each used by every other iteration. No plan knows which is next; if it had one of
 * them leave, the program would leave the plan over it, again and again. So such blocks stay. */
#ifndef NP_RUN_DOUBT_H
#define NP_RUN_DOUBT_H

#include "trace/period.h"

/* doubtful: by life; true for the persistent ones that some periods of the run use otherwise than others. */
neap_status np_doubt_find(const np_period *period, bool *doubtful);

#endif
