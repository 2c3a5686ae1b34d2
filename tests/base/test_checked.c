/* Checked arithmetic at the edges of its types. */
#include "base/checked.h"

#include "testing.h"

static void test_add(void **state)
{
    size_t size;
    uint64_t sum;
    (void)state;

    ASSERT_TRUE(np_add_size(2, 3, &size));
    ASSERT_EQ(size, 5);
    ASSERT_TRUE(np_add_size(SIZE_MAX - 1, 1, &size));
    ASSERT_EQ(size, SIZE_MAX);
    ASSERT_FALSE(np_add_size(SIZE_MAX, 1, &size));

    ASSERT_TRUE(np_add_u64(UINT64_MAX, 0, &sum));
    ASSERT_EQ(sum, UINT64_MAX);
    ASSERT_FALSE(np_add_u64(UINT64_MAX, UINT64_MAX, &sum));
}

static void test_mul(void **state)
{
    size_t size;
    uint64_t product;
    (void)state;

    ASSERT_TRUE(np_mul_size(0, SIZE_MAX, &size));
    ASSERT_EQ(size, 0);
    ASSERT_FALSE(np_mul_size(SIZE_MAX / 2 + 1, 2, &size));

    ASSERT_TRUE(np_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &product));
    ASSERT_EQ(product, UINT64_MAX - UINT32_MAX);
    ASSERT_FALSE(np_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &product));
}

static void test_round_up(void **state)
{
    uint64_t bytes;
    (void)state;

    for (uint64_t alignment = 1; alignment <= 24; alignment++) {
        for (uint64_t n = 0; n <= 100; n++) {
            ASSERT_TRUE(np_round_up(n, alignment, &bytes));
            ASSERT_EQ(bytes % alignment, 0);
            ASSERT_GE(bytes, n);
            ASSERT_LT(bytes - n, alignment);
        }
    }
    ASSERT_TRUE(np_round_up(UINT64_MAX - 511, 512, &bytes));
    ASSERT_EQ(bytes, UINT64_MAX - 511);
    ASSERT_FALSE(np_round_up(UINT64_MAX - 510, 512, &bytes));
    ASSERT_TRUE(np_round_up(UINT64_MAX, 1, &bytes));
    ASSERT_EQ(bytes, UINT64_MAX);
    ASSERT_TRUE(np_round_up(1, UINT64_MAX, &bytes));
    ASSERT_EQ(bytes, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_mul),
        cmocka_unit_test(test_round_up),
    };
    return cmocka_run_group_tests_name("base/checked", tests, NULL, NULL);
}
