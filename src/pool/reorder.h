/* reorder.h: local search over the order of a first-fit.
 *
 * What ends above the goal was placed too late: one such item is moved to an earlier place in the order, now and then
 * some other item too, and everything is placed again. The change stays if the sizes of what is above the goal sum up to
 * no more than before. It needs little memory and a first-fit's time a step, so it is what is left at scale. */
#ifndef NP_POOL_REORDER_H
#define NP_POOL_REORDER_H

#include "base/rng.h"
#include "pool/fit.h"

typedef struct np_reorder {
    const np_sections *sections;
    const np_part *part;
    uint32_t *order; /* the best so far */
    uint32_t *trial;
    uint32_t *too_high; /* ranks in `order` of the items above the goal */
    uint32_t n_too_high;
    uint64_t excess;   /* sum of their sizes; UINT64_MAX before the first step */
    uint64_t *offsets; /* of the last trial, indexed from the part's first item */
    np_occupied occupied;
    np_rng rng;
} np_reorder;

neap_status np_reorder_init(np_reorder *reorder, const np_sections *sections, const np_part *part, np_order order,
                            uint64_t seed);
void np_reorder_free(np_reorder *reorder);

/* One step towards `goal`. *height is that of the trial, whose offsets are in reorder->offsets; UINT64_MAX: stopped. */
neap_status np_reorder_step(np_reorder *reorder, uint64_t goal, const np_stop *stop, uint64_t *height);

#endif
