/* place.h: the device memory that a set of swaps needs when every block returns to its place.
 *
 * A block's bytes fall into segments that leave and return together; each is a buffer with holes in time, wherever its
 * parts are absent. A swapped block is a view, whose pages need not be neighbours on the device: its segments have places
 * of their own, and long ones are cut up, since small pieces find room more easily. Times are execs. */
#ifndef NP_SWAP_PLACE_H
#define NP_SWAP_PLACE_H

#include "swap/simulate.h"

typedef struct np_place_options {
    double seconds;
    uint64_t page; /* pieces of a swapped block are multiples of it, but for the last */
    uint64_t seed;
    unsigned n_threads;
} np_place_options;

typedef struct np_place_result {
    uint64_t footprint; /* bytes; checked */
    uint64_t load;      /* bytes present at most, by execs */
    uint64_t bound;     /* no placement of these swaps is lower */
    size_t n_buffers;
} np_place_result;

/* The simulator must have simulated just these swaps: their absences are taken from it. */
neap_status np_place_swaps(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, neap_error *error,
                           np_place_result *result);

#endif
