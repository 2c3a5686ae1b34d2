/* checked.h: sums and products of sizes that say when they overflow. Each returns false on overflow, and then leaves
 * *result unspecified. */
#ifndef NP_BASE_CHECKED_H
#define NP_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool np_add_size(size_t a, size_t b, size_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline bool np_mul_size(size_t a, size_t b, size_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

static inline bool np_add_u64(uint64_t a, uint64_t b, uint64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

static inline bool np_mul_u64(uint64_t a, uint64_t b, uint64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}

/* bytes rounded up to a multiple of alignment (any value above 0). */
static inline bool np_round_up(uint64_t bytes, uint64_t alignment, uint64_t *result)
{
    uint64_t rest = bytes % alignment;
    return np_add_u64(bytes, rest ? alignment - rest : 0, result);
}

#endif
