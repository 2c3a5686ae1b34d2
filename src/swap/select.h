/* select.h: from scores to swaps: the candidates in descending order until the peak is at or below the limit.
 *
 * The peak is the one of the load in which a chosen gap's bytes are absent from every exec strictly inside it. In the
 * scope of the one peak every candidate in turn is taken, as the paper does. In the wider scopes, and where a period has
 * several peaks, many gaps lie where there is no need: one that covers no exec above the limit is passed over. */
#ifndef NP_SWAP_SELECT_H
#define NP_SWAP_SELECT_H

#include "swap/candidates.h"
#include "swap/simulate.h"

/* What swaps are chosen from and judged by. */
typedef struct np_swap_task {
    const np_timeline *timeline;
    const np_link *link;
    const np_candidates *candidates;
    np_simulator *simulator; /* of the same timeline and link */
    uint64_t limit;          /* bytes; at or above the candidates' load_min */
} np_swap_task;

/* Whole blocks, in the order of their gaps, without keys. There must be room for a swap a candidate.
 * NEAP_NO_PLAN: the limit is below load_min. */
neap_status np_select(const np_swap_task *task, const double *scores, np_swap *swaps, uint32_t *n_swaps);

/* Chooses, schedules, holds back what has no room (hold.h), and simulates. */
neap_status np_select_and_simulate(const np_swap_task *task, const double *scores, np_swap *swaps, uint32_t *n_swaps,
                                   np_simulation *simulation);

#endif
