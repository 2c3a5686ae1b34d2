/* learned.h: patterns as the manager has them, learned from traces. */
#ifndef NEAP_LEARNED_H
#define NEAP_LEARNED_H

#include "base/rng.h"
#include "run/plan_file.h"

enum { LEARNED_PAGE = 1024 }; /* bytes, of the random ones */

typedef struct learned_options {
    uint64_t page_bytes;
    uint64_t min_block;
    double limit_share;
    double link_gbs;
    double seconds;
} learned_options;

/* Takes the trace over. Blocks that are live at its end and have a page at least have a home. NULL: there is no plan for
 * it; `status` says why. */
np_pattern *learn_pattern(neap_trace *trace, const learned_options *options, neap_status *status);

/* One from a small random trace, for pages of LEARNED_PAGE bytes; `seed` is moved on. */
np_pattern *learn_random_pattern(uint64_t *seed);

/* Of a device on which those can be followed. */
np_plan_origin learned_origin(uint64_t page_bytes);

bool patterns_are_equal(const np_pattern *a, const np_pattern *b); /* in all that a file keeps */

#endif
