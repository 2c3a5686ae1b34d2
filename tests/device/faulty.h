/* faulty.h: a device that fails now and then, around one that does not.
 *
 * It forwards every call and every fact. Those that may fail do so on demand: each n-th of the chosen calls, or each with
 * a probability, from a seed. A call that fails has changed nothing, as device.h wants it. */
#ifndef TESTS_DEVICE_FAULTY_H
#define TESTS_DEVICE_FAULTY_H

#include "device/device.h"

typedef enum faulty_call {
    FAULTY_COMMIT,
    FAULTY_RESERVE,
    FAULTY_MAP,
    FAULTY_HOST_ALLOC,
    FAULTY_LAUNCH,
    FAULTY_COPY,
    FAULTY_WAIT,
    FAULTY_N_CALLS,
    FAULTY_SYNC = FAULTY_N_CALLS, /* not among FAULTY_ALL: hardly anybody can go on without */
    FAULTY_N_KINDS,
} faulty_call;

#define FAULTY_ALL ((1u << FAULTY_N_CALLS) - 1)

typedef struct faulty_plan {
    unsigned calls;     /* which: bits 1 << FAULTY_MAP and so on; 0: none fails */
    uint64_t every;     /* the n-th, 2n-th ... of them fail, counted over all chosen calls; 0: */
    bool is_once;       /* of them only the n-th, */
    bool is_for_good;   /* or all from the n-th on */
    double probability; /* of each of them, from `seed` */
    uint64_t seed;
    neap_status status; /* what they fail with; NEAP_OK: commit NEAP_DEVICE_FULL, reserve, map and host_alloc
                         * NEAP_NO_MEMORY, work NEAP_DEVICE_FAILED */
} faulty_plan;

/* Takes the device over: it is freed with the wrapper. Nothing fails until faulty_set. */
np_device *faulty_wrap(np_device *inner);

/* From now on; counts and seed begin anew. */
void faulty_set(np_device *faulty, const faulty_plan *plan);

uint64_t faulty_n_calls(const np_device *faulty, faulty_call call);  /* since it was made, the failed ones included */
uint64_t faulty_n_failed(const np_device *faulty, faulty_call call); /* since it was made */
np_device *faulty_inner(np_device *faulty);

#endif
