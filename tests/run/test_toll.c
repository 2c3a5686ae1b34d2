/* test_toll.c: what swaps cost the kernels beside them. */
#include "run/toll.h"

#include "testing.h"

/* Long kernels hide what a copy stops; short ones pay all of it, however short they are. */
static void test_copies(void **state)
{
    const np_traffic none = {0};
    double most = np_toll_of(&none, 1e3).copy_ns;
    (void)state;
    ASSERT_TRUE(most > 0);
    ASSERT_TRUE(np_toll_of(&none, 0).copy_ns == most);
    ASSERT_TRUE(np_toll_of(&none, 50e3).copy_ns == most);
    ASSERT_TRUE(np_toll_of(&none, 240e3).copy_ns < most / 3);
    ASSERT_TRUE(np_toll_of(&none, 480e3).copy_ns < np_toll_of(&none, 240e3).copy_ns);
    ASSERT_TRUE(np_toll_of(&none, 1e3).byte_ns == 0); /* where the bandwidth is not known */
}

/* A byte costs the more, the more bandwidth the kernels use, and the less there is of it. */
static void test_bytes(void **state)
{
    const np_traffic half = {.peak = 4500, .use = 0.5};
    const np_traffic all = {.peak = 4500, .use = 1};
    const np_traffic slow = {.peak = 450, .use = 0.5};
    double ns = np_toll_of(&half, 1e3).byte_ns;
    (void)state;
    ASSERT_TRUE(ns > 0.5 / 4500 && ns < 10 / 4500.0);
    ASSERT_TRUE(np_toll_of(&all, 1e3).byte_ns > 1.9 * ns);
    ASSERT_TRUE(np_toll_of(&slow, 1e3).byte_ns > 9 * ns);
}

static void test_sum(void **state)
{
    const np_toll toll = {.copy_ns = 100, .byte_ns = 0.5};
    (void)state;
    ASSERT_TRUE(np_toll_ns(&toll, 0, 0) == 0);
    ASSERT_TRUE(np_toll_ns(&toll, 1000, 3) == 500 + 600); /* each swap is two copies */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
