/* candidates.h: the gaps that swapping may choose from.
 *
 * The paper takes blocks that are not tiny and alive across the peak, the exec of highest need: of such a block the one
 * gap in which the peak lies, which may wrap into the next period (optimizer state is used once an iteration). A block
 * that the peak itself uses has none. A period of several iterations has a peak in each. Swapping all candidates leaves
 * load_min; for limits below it there are wider scopes: first every gap of the blocks that are not tiny, then every gap
 * there is, which reaches the floor. In those a block may be swapped more than once an iteration. */
#ifndef NP_SWAP_CANDIDATES_H
#define NP_SWAP_CANDIDATES_H

#include "swap/timeline.h"

#define NP_CANDIDATE_BYTES ((uint64_t)1 << 20) /* smaller blocks are tiny, where nothing else is said */

typedef enum np_scope {
    NP_SCOPE_PEAK,  /* gaps across a peak, of blocks that are not tiny: one a block and peak */
    NP_SCOPE_LARGE, /* every gap of blocks that are not tiny */
    NP_SCOPE_ALL,   /* every gap */
} np_scope;

typedef struct np_candidates {
    const neap_memory *memory;
    np_scope scope;
    np_array(uint32_t) peaks; /* of each iteration, in order: the first exec of highest need */
    np_array(uint32_t) gaps;  /* into the timeline's, ascending */
    uint64_t load_min;        /* bytes: the peak with all of them swapped, each absent from all execs inside its gap */
} np_candidates;

/* The timeline has one exec at least. */
neap_status np_candidates_find(const np_timeline *timeline, np_scope scope, uint64_t min_bytes,
                               np_candidates *candidates);

/* The narrowest scope whose load_min is at or below the limit. NEAP_NO_PLAN: the limit is below the floor. */
neap_status np_candidates_for_limit(const np_timeline *timeline, uint64_t min_bytes, uint64_t limit,
                                    np_candidates *candidates);

void np_candidates_free(np_candidates *candidates);
bool np_candidates_is_valid(const np_candidates *candidates, const np_timeline *timeline);

#endif
