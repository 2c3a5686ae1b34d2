/* load.h: the load of execs with blocks taken away over ranges of them.
 *
 * Ranges of execs [first, end) are counted on over the period's end, as gaps are, and are at most a period long. Sums of
 * changes are modulo 2^64: only the load that comes out in the end must not be negative. */
#ifndef NP_SWAP_LOAD_H
#define NP_SWAP_LOAD_H

#include "swap/timeline.h"

/* Notes in changes[0 .. n_execs], all 0 to begin with, that `bytes` are away over the range. */
static inline void np_load_take(uint64_t *changes, uint32_t n_execs, uint32_t first, uint32_t end, uint64_t bytes)
{
    if (first >= n_execs) {
        first -= n_execs;
        end -= n_execs;
    }
    changes[first] -= bytes;
    if (end > n_execs) { /* on from the period's start */
        changes[0] -= bytes;
        end -= n_execs;
    }
    changes[end] += bytes;
}

/* Turns changes into the load itself, in place. The highest of it. */
static inline uint64_t np_load_sum(const np_timeline *timeline, uint64_t *changes)
{
    uint64_t highest = 0;
    uint64_t now = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        now += changes[k];
        changes[k] = timeline->needed.items[k] + now;
        highest = changes[k] > highest ? changes[k] : highest;
    }
    return highest;
}

#endif
