/* hash.h: mixing 64-bit values and hashing bytes.
 *
 * Mixing is for everyone to undo. Tables that are filled from files take a seed nobody knows, so that no file can be made
 * to collide in them. What a seed changes must never be seen in a result. */
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

/* Equal for equal bytes and seeds. Without the seed nobody can make two strings that collide. */
uint64_t np_hash_bytes(const void *bytes, size_t n, uint64_t seed);

/* Another one each time. */
uint64_t np_hash_seed(void);

#endif
