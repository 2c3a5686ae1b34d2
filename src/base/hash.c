#include "base/hash.h"

#include <string.h>

#include "base/clock.h"

#ifdef __linux__
#include <sys/random.h>
#endif

/* Both factors are hidden by what the maker of the bytes does not know, so no difference between two words can be told to
 * pass or to vanish. (In a chain of xor and multiplication by a constant a flipped highest bit would.) */
static uint64_t absorb(uint64_t h, uint64_t word, uint64_t seed)
{
    unsigned __int128 product = (unsigned __int128)(word ^ seed) * (h ^ 0x9fb21c651e98df25u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t np_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const unsigned char *p = bytes;
    uint64_t h = np_mix64(seed ^ n);

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        h = absorb(h, word, seed);
    }
    if (n) {
        uint64_t word = 0;
        memcpy(&word, p, n);
        h = absorb(h, word, seed);
    }
    return np_mix64(h);
}

uint64_t np_hash_seed(void)
{
    uint64_t seed = 0;
#ifdef __linux__
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed) {
        return seed;
    }
#endif
    /* Where the stack lies and what time it is, which the maker of a file does not know either. */
    return np_hash_combine(np_clock_ns(), (uint64_t)(uintptr_t)&seed);
}
