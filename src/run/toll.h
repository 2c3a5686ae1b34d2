/* toll.h: what a swap costs the program's kernels beside the time of its copies, though all of that is hidden.
 *
 * Two things, both measured on an H200 (docs/swapping.md). Copies take bandwidth from the kernels that run beside them: each
 * byte costs so many times what it would take them to use it, as far as they use the device's bandwidth (traffic.h). And
 * every copy stops the flow of work for a while, at its begin and at its end: its stream and the program's wait for each
 * other, and the caches make way. Long kernels hide that, short ones do not. */
#ifndef NP_RUN_TOLL_H
#define NP_RUN_TOLL_H

#include "run/traffic.h"

typedef struct np_toll {
    double copy_ns; /* of each copy */
    double byte_ns; /* of each of its bytes */
} np_toll;

/* mean_exec_ns: how long the execs of an iteration take, on average. */
np_toll np_toll_of(const np_traffic *traffic, double mean_exec_ns);

/* For bytes of both directions and both copies of each swap. */
double np_toll_ns(const np_toll *toll, double bytes, size_t n_swaps);

#endif
