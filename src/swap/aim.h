/* aim.h: one plan for a load that is aimed at, placed within a limit.
 *
 * Two ways lead to it. Idle time of the link is filled, and stalls are put where that is not enough (stall.h): the best
 * where little time is lost, and where parts of few large blocks matter. Or whole blocks are chosen by the paper's mix
 * (mix.h): where the link is always busy it costs less, takes a fraction of the time, and has fewer swaps to be placed. So
 * both are tried, until the second has been the cheaper one. */
#ifndef NP_SWAP_AIM_H
#define NP_SWAP_AIM_H

#include "swap/planner.h"

/* How swaps are chosen for a load. */
typedef struct np_chooser {
    neap_swap_method method;
    const double *weights; /* of a mix of the paper's scores; NULL: by the method */
    const uint64_t *extra; /* of the search: by exec, how far below the aim the load is planned; NULL: nowhere */
    bool whole;            /* of the search: whole blocks have cost less; nothing else is tried any more */
} np_chooser;

static inline bool np_chooser_is_search(const np_chooser *by)
{
    return !by->weights && by->method == NEAP_SWAP_SEARCH;
}

/* What one placement of the search may take now. */
double np_aim_place_seconds(const np_planner *planner);

/* Not fitting, but worth some time to make it fit? */
bool np_aim_is_near(const np_judged *judged, uint64_t limit);

/* Plans for a load of at most `aim` and places it. *fits: the footprint, too, is within the limit. It is UINT64_MAX where
 * no swaps hold the aim. */
neap_status np_aim_plan(np_planner *planner, np_chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                        bool *fits);

/* Simulates and places a trial; for the search twice where need be. */
neap_status np_aim_place(np_planner *planner, const np_chooser *by, uint64_t aim, uint64_t limit, np_judged *trial,
                         bool *fits);

#endif
