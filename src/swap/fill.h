/* fill.h: the lowest peak that costs no time, by filling the idle time of the link.
 *
 * While the load is highest at some exec, a part of a block that is in a gap there is made absent: its copy out takes the
 * first idle time of the link after its release, its copy in the last idle time before its due. The longest gaps go
 * first: their copies can use idle time that no other gap can. It ends when nothing can be made absent any more at the
 * exec with the highest load. Every copy has its own time on the link, so the plan runs without a wait. Loads are counted
 * exec by exec: in the pause between two of them, where one copy out has not ended and a copy in has begun, a little more
 * can be held. Small pages and many gaps make it long: it ends at a deadline, with the swaps found so far. */
#ifndef NP_SWAP_FILL_H
#define NP_SWAP_FILL_H

#include <stdatomic.h>

#include "swap/simulate.h"

typedef struct np_fill_options {
    uint64_t target;    /* bytes: low enough */
    uint64_t min_block; /* smaller ones stay */
    uint64_t page;      /* parts are multiples of it, but for a block's last */
    uint64_t part;      /* the largest part made absent at once, a page at least; UINT64_MAX with whole_blocks */
    bool whole_blocks;
    double noise; /* 0: longest gaps first; otherwise the order is disturbed by so much, 1 is a lot */
    uint64_t seed;
    const uint64_t *extra; /* bytes, by exec: taken as needed in addition; NULL: none */
    const double *factors; /* by gap: what its rank is multiplied by; NULL: 1 for all */
    uint64_t deadline_ns;  /* what is absent by then is the answer; 0: none. A short time more is always taken */
    const atomic_bool *is_stopping; /* NULL, or true: the same, at once */
} np_fill_options;

typedef np_array(np_swap) np_swap_array;

typedef struct np_fill_result {
    uint64_t peak;        /* the highest load left */
    uint32_t exec;        /* where */
    uint64_t blocked_out; /* bytes of gaps there that found no time for a copy out, */
    uint64_t blocked_in;  /* or for a copy in */
} np_fill_result;

/* `swaps` is replaced. */
neap_status np_fill(const np_timeline *timeline, const np_link *link, const np_fill_options *options,
                    np_swap_array *swaps, np_fill_result *result);

#endif
