/* method.h: the paper's five ways to choose swaps, from a limit to a simulated plan; and mixes made elsewhere. */
#ifndef NP_SWAP_METHOD_H
#define NP_SWAP_METHOD_H

#include "swap/mix.h"

typedef enum np_method {
    NP_METHOD_DOA,
    NP_METHOD_AOA,
    NP_METHOD_WDOA,
    NP_METHOD_SWDOA,
    NP_METHOD_BO,      /* their mix */
    NP_METHOD_WEIGHTS, /* a mix with given weights */
    NP_N_METHODS
} np_method;

typedef struct np_method_options {
    np_method method;
    uint64_t limit;              /* bytes */
    uint64_t min_bytes;          /* of blocks that are candidates; 0: NP_CANDIDATE_BYTES */
    uint32_t n_evaluations;      /* of the mix; 0: NP_MIX_EVALUATIONS */
    uint64_t seed;               /* of the mix */
    double weights[NP_N_SCORES]; /* NP_METHOD_WEIGHTS: by np_score, each in [-1, 1] */
} np_method_options;

typedef struct np_chosen {
    const neap_memory *memory;
    np_array(np_swap) swaps;  /* in the order of their gaps, scheduled */
    np_simulation simulation; /* under the limit */
    np_scope scope;           /* of the candidates chosen from */
    uint32_t n_candidates;
    double weights[NP_N_SCORES]; /* by np_score; one of them 1, the others 0, but for a mix */
    uint32_t n_evaluations;      /* 1 but for a mix that is tuned */
} np_chosen;

/* NEAP_NO_PLAN: the limit is below the floor (np_bound_floor). */
neap_status np_swap_by_method(const np_timeline *timeline, const np_link *link, const np_method_options *options,
                              np_chosen *chosen);
void np_chosen_free(np_chosen *chosen);

#endif
