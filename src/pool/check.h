/* check.h: is a placement right? Shares nothing with the solvers: it knows the problem and the offsets, and sweeps over
 * time with a sorted set of what stands where. Every plan passes it before anyone sees it. */
#ifndef NP_POOL_CHECK_H
#define NP_POOL_CHECK_H

#include "pool/problem.h"

typedef enum np_check_verdict {
    NP_CHECK_RIGHT,
    NP_CHECK_OVERLAP,  /* two buffers share bytes at a time at which both live */
    NP_CHECK_FIXED,    /* a fixed buffer does not stand where it must */
    NP_CHECK_TOO_HIGH, /* a buffer ends above the height */
    NP_CHECK_ALIGN,    /* a buffer does not stand where its alignment allows it */
} np_check_verdict;

typedef struct np_check_result {
    np_check_verdict verdict;
    uint32_t buffer; /* the one that is wrong */
    uint32_t other;  /* NP_CHECK_OVERLAP: the one it runs into */
    uint32_t time;   /* NP_CHECK_OVERLAP: when */
} np_check_result;

/* offsets[i] in units for each buffer of the problem; no end above `height` is accepted. */
neap_status np_check(const np_problem *problem, const uint64_t *offsets, uint64_t height, np_check_result *result);

#endif
