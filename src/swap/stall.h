/* stall.h: a limit that cannot be held without losing time, held with as little as can be.
 *
 * A stall is a pause before an exec in which the link goes on copying. Where filling the link's idle time (fill.h) leaves
 * some exec above the limit, a stall is put before it, if copies out found no time, or after it, if copies in found none,
 * just long enough for what is missing; then everything is filled anew. Once the limit is held, each stall is shortened
 * as far as that stays true. What it really costs, the simulator says. */
#ifndef NP_SWAP_STALL_H
#define NP_SWAP_STALL_H

#include "swap/fill.h"

typedef struct np_stall_options {
    uint64_t limit; /* bytes */
    uint64_t min_block;
    uint64_t page;
    uint64_t least_part; /* see np_planner */
    uint64_t seed;
    double noise;          /* of the order of filling, in the first round; later ones have their own */
    uint32_t n_rounds;     /* orders tried; 0: 8 */
    const uint64_t *extra; /* see np_fill_options */
    const double *factors; /* see np_fill_options */
    double *stalls;        /* ns, by exec: what to begin with; those of the answer then; NULL: none */
    bool rough;            /* stalls are not shortened */
    uint64_t deadline_ns;
    const atomic_bool *is_stopping; /* NULL, or true: it is late */
} np_stall_options;

/* *found false: no set of swaps holds the limit, as far as it looked. `swaps` is replaced when found. */
neap_status np_stall_search(const np_timeline *timeline, const np_link *link, const np_stall_options *options,
                            np_swap_array *swaps, np_simulation *simulation, bool *found);

#endif
