/* score.h: the paper's four priority scores of a candidate gap; higher is swapped first.
 *
 *   DOA    duration of absence: the time between the two uses less the copies out and in, in ns
 *   AOA    area of absence: DOA * bytes, or DOA / bytes where DOA is negative
 *   WDOA   weighted: the area under the load curve between the two uses, in byte * ns
 *   SWDOA  submodular: WDOA on the load as it is after every choice made before: the highest is chosen, its bytes leave
 *          the load of the execs inside its gap, and so on. The score is the area at the moment of choice. An area only
 *          ever shrinks, so the scores fall in the order of the choices
 *
 * The load curve is a step curve: what exec k needs holds from the end of the exec before it to its own end. */
#ifndef NP_SWAP_SCORE_H
#define NP_SWAP_SCORE_H

#include "swap/candidates.h"
#include "swap/link.h"

typedef enum np_score { NP_SCORE_DOA, NP_SCORE_AOA, NP_SCORE_WDOA, NP_SCORE_SWDOA, NP_N_SCORES } np_score;

/* One score a candidate, in their order. */
neap_status np_score_candidates(const np_timeline *timeline, const np_link *link, const np_candidates *candidates,
                                np_score kind, double *scores);

#endif
