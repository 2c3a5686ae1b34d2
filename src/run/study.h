/* study.h: a lesson while it is learned: learn.c makes ready what it is planned from, learn_plan.c plans it. */
#ifndef NP_RUN_STUDY_H
#define NP_RUN_STUDY_H

#include "run/learn.h"
#include "run/toll.h"
#include "swap/planner.h"

typedef struct np_study {
    np_lesson *lesson;
    np_period period;
    np_u32_array exact_at; /* the period's accesses before they were widened, as in np_period */
    np_array(neap_access) exact;
    uint32_t margin; /* by which they are */
    np_timeline timeline;
    np_planner planner;
    np_judged judged;
    np_home *homes; /* by life */
    bool *doubtful; /* by life: it must not be swapped */
    np_traffic traffic;
    np_toll toll;
    neap_link link; /* the lesson's, as it is while work runs */
    uint64_t begin_ns;
} np_study;

/* The pool, or swaps within the limit, or as low as the cost allows: s->judged. */
neap_status np_study_plan(np_study *s);

/* What s->judged would take as a program, as a share of the iteration: more than is simulated, where its operations are
 * given in an order that makes some wait for others. */
neap_status np_study_foretell(const np_study *s, double *overhead);

#endif
