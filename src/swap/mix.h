/* mix.h: the paper's fifth score, the best mix of the four: a * AOA + b * DOA + c * WDOA + d * SWDOA.
 *
 * The scores are standardised over the candidates; the weights, each in [-1, 1], are tuned by Bayesian optimisation on
 * the simulated overhead (gaussian.h). The first weights tried are the four scores themselves, unmixed, so that the
 * mix is never worse than the best of them; then some at random; then where the process expects most. An overhead of
 * nothing ends it early. */
#ifndef NP_SWAP_MIX_H
#define NP_SWAP_MIX_H

#include "swap/gaussian.h"
#include "swap/score.h"
#include "swap/select.h"

#define NP_MIX_EVALUATIONS 36 /* where nothing else is said */

typedef struct np_mix {
    double weights[NP_N_SCORES]; /* by np_score */
    uint32_t n_evaluations;      /* made */
    np_simulation simulation;
} np_mix;

/* Chooses, schedules and simulates with the best weights found in at most n_evaluations (4 at least are made, unless one
 * costs nothing). There must be room for a swap a candidate. The same seed gives the same swaps. */
neap_status np_mix_scores(const np_swap_task *task, uint32_t n_evaluations, uint64_t seed, np_swap *swaps,
                          uint32_t *n_swaps, np_mix *mix);

/* The same with given weights, by np_score, each in [-1, 1]. One weight alone, above 0, is the score as it is. */
neap_status np_mix_by_weights(const np_swap_task *task, const double weights[NP_N_SCORES], np_swap *swaps,
                              uint32_t *n_swaps, np_mix *mix);

/* Mean 0 and variance 1, in place; all 0 where they are equal. */
void np_mix_standardise(double *scores, size_t n);

#endif
