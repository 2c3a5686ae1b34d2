/* hash.h: mixing 64-bit values and hashing bytes. Not for adversaries who know the constants. */
#ifndef NP_BASE_HASH_H
#define NP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* A bijection of 64 bits in which every input bit reaches every output bit (the finaliser of splitmix64). */
static inline uint64_t np_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Order matters: combine(a, b) differs from combine(b, a). */
static inline uint64_t np_hash_combine(uint64_t a, uint64_t b)
{
    return np_mix64(a ^ (np_mix64(b) + 0x2545f4914f6cdd1du));
}

uint64_t np_hash_bytes(const void *bytes, size_t n);

#endif
