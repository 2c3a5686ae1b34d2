/* roam.h: whole blocks chosen for their cost first, and for their places.
 *
 * Where the link is always busy, it matters little when a copy goes, and much how many bytes do. Then whole blocks, in an
 * order of scores (select.h), less what turns out not to be needed, cost no more than filled idle time (fill.h), are found
 * in a fraction of the time, and find their places more easily: there are fewer of them. So orders and loads are changed
 * at random; what costs less than the plan at hand is placed near it, and kept where it fits. */
#ifndef NP_SWAP_ROAM_H
#define NP_SWAP_ROAM_H

#include "swap/planner.h"

typedef struct np_roam_options {
    uint64_t aim;   /* bytes: a load to begin with */
    uint64_t limit; /* bytes: of the footprint */
    uint64_t deadline_ns;
    uint64_t seed;
} np_roam_options;

/* `best` has a layout. Where it fits the limit it never costs more after; where it does not, it does after, or nothing was
 * found. */
neap_status np_roam(np_planner *planner, const np_roam_options *options, np_judged *best);

#endif
