/* rng.h: a small deterministic random generator (splitmix64). The same seed gives the same numbers everywhere. */
#ifndef NP_BASE_RNG_H
#define NP_BASE_RNG_H

#include <stdint.h>

#include "base/hash.h"

typedef struct np_rng {
    uint64_t state;
} np_rng;

static inline np_rng np_rng_make(uint64_t seed)
{
    return (np_rng){np_mix64(seed)};
}

static inline uint64_t np_rng_next(np_rng *rng)
{
    uint64_t x = rng->state;
    rng->state += 0x9e3779b97f4a7c15u;
    return np_mix64(x);
}

/* Uniform in [0, n), n above 0. */
static inline uint64_t np_rng_below(np_rng *rng, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)np_rng_next(rng) * n) >> 64);
}

/* Uniform in [0, 1). */
static inline double np_rng_unit(np_rng *rng)
{
    return (double)(np_rng_next(rng) >> 11) * 0x1p-53;
}

#endif
