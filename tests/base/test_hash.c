/* Hashes: every bit and every byte matters, and so does the seed. */
#include "base/hash.h"

#include <string.h>

#include "testing.h"

static unsigned n_bits(uint64_t x)
{
    return (unsigned)__builtin_popcountll(x);
}

static void test_mix_is_splitmix64(void **state)
{
    (void)state;
    ASSERT_EQ(np_mix64(0), UINT64_C(0xe220a8397b1dcdaf)); /* the generator's published first number for seed 0 */
}

/* A flipped input bit flips each output bit about every second time. */
static void test_mix_avalanches(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        unsigned n_flipped = 0;
        for (uint64_t x = 0; x < 256; x++) {
            n_flipped += n_bits(np_mix64(x) ^ np_mix64(x ^ (UINT64_C(1) << bit)));
        }
        ASSERT_GT(n_flipped, 256 * 30);
        ASSERT_LT(n_flipped, 256 * 34);
    }
}

static void test_combine_has_an_order(void **state)
{
    (void)state;
    for (uint64_t a = 0; a < 64; a++) {
        for (uint64_t b = 0; b < a; b++) {
            ASSERT_NE(np_hash_combine(a, b), np_hash_combine(b, a));
            ASSERT_NE(np_hash_combine(a, a), np_hash_combine(b, b));
        }
    }
}

static void test_bytes_all_count(void **state)
{
    unsigned char bytes[41];
    (void)state;
    for (size_t n = 1; n <= sizeof bytes; n++) {
        uint64_t whole;
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (unsigned char)(i * 37);
        }
        whole = np_hash_bytes(bytes, n, 7);
        for (size_t i = 0; i < n; i++) {
            bytes[i] ^= 0x80;
            ASSERT_NE(np_hash_bytes(bytes, n, 7), whole);
            bytes[i] ^= 0x80;
        }
        ASSERT_EQ(np_hash_bytes(bytes, n, 7), whole);
    }
}

/* A string of zeros is told from a longer one, and so is the empty string, for which no byte is read. */
static void test_bytes_length_counts(void **state)
{
    static const unsigned char zeros[64];
    (void)state;
    ASSERT_EQ(np_hash_bytes(NULL, 0, 7), np_hash_bytes(zeros, 0, 7));
    for (size_t n = 0; n < sizeof zeros; n++) {
        for (size_t m = 0; m < n; m++) {
            ASSERT_NE(np_hash_bytes(zeros, n, 7), np_hash_bytes(zeros, m, 7));
        }
    }
}

static void test_bytes_need_no_alignment(void **state)
{
    char buffer[40];
    uint64_t first = 0;
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        uint64_t hash;
        memcpy(buffer + shift, "cutlass::Kernel<float, 128x128>", 31);
        hash = np_hash_bytes(buffer + shift, 31, 7);
        first = shift ? first : hash;
        ASSERT_EQ(hash, first);
    }
}

/* Words that a chain of xor and multiplication without a secret factor would not tell apart, whatever its seed. */
static void test_bytes_seed_counts(void **state)
{
    uint64_t a[2] = {0, 0}, b[2] = {(uint64_t)1 << 63, (uint64_t)1 << 63 | (uint64_t)1 << 31};
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        ASSERT_NE(np_hash_bytes(a, sizeof a, np_mix64(seed)), np_hash_bytes(b, sizeof b, np_mix64(seed)));
        ASSERT_NE(np_hash_bytes(a, sizeof a, seed), np_hash_bytes(a, sizeof a, seed + 1));
    }
}

static void test_seeds_differ(void **state)
{
    (void)state;
    ASSERT_NE(np_hash_seed(), np_hash_seed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mix_is_splitmix64),    cmocka_unit_test(test_mix_avalanches),
        cmocka_unit_test(test_combine_has_an_order), cmocka_unit_test(test_bytes_all_count),
        cmocka_unit_test(test_bytes_length_counts),  cmocka_unit_test(test_bytes_need_no_alignment),
        cmocka_unit_test(test_bytes_seed_counts),    cmocka_unit_test(test_seeds_differ),
    };
    return cmocka_run_group_tests_name("base/hash", tests, NULL, NULL);
}
