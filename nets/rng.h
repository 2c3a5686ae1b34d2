/* rng.h: random numbers by counter: number i of a key is a function of the two, so that no state has to be kept, saved or
 * handed from one piece of work to the next, and the same seed gives the same numbers in whatever order they are asked
 * for. */
#ifndef NETS_RNG_H
#define NETS_RNG_H

#include <stdint.h>

/* The finaliser of splitmix64: a bijection in which every input bit reaches every output bit. */
static inline uint64_t nets_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A key for one use of a seed: `what` tells the uses apart, `index` the layers or steps. */
static inline uint64_t nets_key(uint64_t seed, uint64_t what, uint64_t index)
{
    return nets_mix(nets_mix(nets_mix(seed) + what) + index);
}

static inline uint64_t nets_random(uint64_t key, uint64_t i)
{
    return nets_mix(key ^ nets_mix(i));
}

/* Uniform in [0, 1), a multiple of 2^-24: exact in a float. */
static inline float nets_uniform(uint64_t key, uint64_t i)
{
    return (float)(nets_random(key, i) >> 40) * 0x1p-24f;
}

#endif
