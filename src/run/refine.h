/* refine.h: plans tried on the program itself, as the paper does.
 *
 * A plan is made on simulated times. Where swapping costs time, others are planned beside the program, each followed for
 * some iterations and measured, and the one that was measured fastest stays: the first plan is among them, so that it
 * never ends worse than it began. Two kinds are tried in turn: mixes of the paper's scores, whose weights a Gaussian process
 * chooses from the iteration times measured so far (Bayesian optimisation), and the planner's search with other seeds. */
#ifndef NP_RUN_REFINE_H
#define NP_RUN_REFINE_H

#include "run/learn.h"
#include "run/pattern.h"
#include "swap/gaussian.h"

typedef struct np_refine {
    np_pattern
        *measured; /* the one that is followed and measured; it is in the list of patterns. NULL: nothing is refined */
    np_pattern *best;    /* another one that was faster; NULL: `measured` is the best so far */
    np_pattern *next;    /* to be followed from the next start on */
    np_pattern *retired; /* to be given up once it is no longer the one followed */
    double worst_ns;     /* of the plans measured so far */
    double best_ns;      /* of an iteration; 0: nothing was measured yet */
    neap_trace *trace;   /* what to plan from: the planner gets a copy */
    bool is_disturbed;
    bool is_asked;    /* the planner is at it */
    bool is_ending;   /* `next` is the last */
    bool has_weights; /* the plan at hand is a mix */
    double weights[4];
    uint32_t n_tried;
    uint32_t n_vain; /* plans in a row that were not worth following */
    np_gaussian process;
    np_rng rng;
} np_refine;

#endif
