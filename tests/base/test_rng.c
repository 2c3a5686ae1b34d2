/* The generator: fixed numbers for a seed, and close to uniform. */
#include "base/rng.h"

#include "testing.h"

enum { N_DRAWS = 100000 };

static void test_same_seed_same_numbers(void **state)
{
    np_rng a = np_rng_make(7);
    np_rng b = np_rng_make(7);
    np_rng c = np_rng_make(8);
    size_t n_equal = 0;
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        uint64_t x = np_rng_next(&a);
        ASSERT_EQ(x, np_rng_next(&b));
        n_equal += x == np_rng_next(&c);
    }
    ASSERT_EQ(n_equal, 0);
}

/* Seeds of neighbouring tasks (1, 2, 3 ...) must not give shifted copies of one sequence. */
static void test_neighbouring_seeds_do_not_overlap(void **state)
{
    uint64_t first[64];
    (void)state;
    for (uint64_t seed = 0; seed < 64; seed++) {
        np_rng rng = np_rng_make(seed);
        first[seed] = np_rng_next(&rng);
    }
    for (uint64_t seed = 0; seed < 64; seed++) {
        np_rng rng = np_rng_make(seed);
        (void)np_rng_next(&rng);
        for (size_t i = 0; i < 256; i++) {
            uint64_t x = np_rng_next(&rng);
            for (size_t j = 0; j < 64; j++) {
                ASSERT_NE(x, first[j]);
            }
        }
    }
}

static void test_below_is_uniform(void **state)
{
    np_rng rng = np_rng_make(1);
    size_t counts[10] = {0};
    (void)state;
    for (size_t i = 0; i < N_DRAWS; i++) {
        uint64_t x = np_rng_below(&rng, 10);
        ASSERT_LT(x, 10);
        counts[x]++;
    }
    for (size_t i = 0; i < 10; i++) { /* 10000 each, standard deviation 95 */
        ASSERT_GT(counts[i], 9500);
        ASSERT_LT(counts[i], 10500);
    }
    for (size_t i = 0; i < 100; i++) {
        ASSERT_EQ(np_rng_below(&rng, 1), 0);
        ASSERT_LT(np_rng_below(&rng, UINT64_MAX), UINT64_MAX);
    }
}

static void test_unit_is_uniform(void **state)
{
    np_rng rng = np_rng_make(2);
    double sum = 0;
    double low = 1;
    double high = 0;
    (void)state;
    for (size_t i = 0; i < N_DRAWS; i++) {
        double x = np_rng_unit(&rng);
        ASSERT_TRUE(x >= 0 && x < 1);
        sum += x;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    ASSERT_TRUE(sum / N_DRAWS > 0.495 && sum / N_DRAWS < 0.505);
    ASSERT_TRUE(low < 0.001 && high > 0.999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_numbers),
        cmocka_unit_test(test_neighbouring_seeds_do_not_overlap),
        cmocka_unit_test(test_below_is_uniform),
        cmocka_unit_test(test_unit_is_uniform),
    };
    return cmocka_run_group_tests_name("base/rng", tests, NULL, NULL);
}
