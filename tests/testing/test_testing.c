/* The tests' own tools: a check that cannot fail checks nothing. */
#include "testing.h"

#include <string.h>

static void test_integers_compare_by_value(void **state)
{
    (void)state;
    ASSERT_LT(test_integer_compare(TEST_INTEGER(-1), TEST_INTEGER(0u)), 0);
    ASSERT_GT(test_integer_compare(TEST_INTEGER(UINT64_MAX), TEST_INTEGER(INT64_MAX)), 0);
    ASSERT_LT(test_integer_compare(TEST_INTEGER(INT64_MIN), TEST_INTEGER(INT64_MIN + 1)), 0);
    ASSERT_EQ(test_integer_compare(TEST_INTEGER(-5), TEST_INTEGER((long long)-5)), 0);
    ASSERT_NE(test_integer_compare(TEST_INTEGER(-1), TEST_INTEGER(UINT64_MAX)), 0);
    ASSERT_EQ(test_integer_compare(TEST_INTEGER(true), TEST_INTEGER((char)1)), 0);
}

static void test_memory_counts(void **state)
{
    test_memory memory;
    neap_memory *hook = &memory.hook;
    char *p;
    char *q;
    (void)state;
    test_memory_init(&memory);
    p = hook->resize(hook->user, NULL, 0, 100);
    memset(p, 7, 100);
    q = hook->resize(hook->user, p, 100, 200);
    ASSERT_TRUE(q != NULL);
    ASSERT_EQ(q[99], 7);
    ASSERT_EQ(memory.live_bytes, 200);
    ASSERT_EQ(memory.live_blocks, 1);
    ASSERT_EQ(memory.n_calls, 2);
    ASSERT_TRUE(hook->resize(hook->user, q, 200, 0) == NULL);
    ASSERT_EQ(memory.live_bytes, 0);
    ASSERT_EQ(memory.peak_bytes, 300); /* a resize moves: both blocks lived for a moment */
    test_memory_finish(&memory);
}

static void test_memory_fails_when_told(void **state)
{
    test_memory memory;
    neap_memory *hook = &memory.hook;
    void *p;
    (void)state;
    test_memory_init(&memory);
    memory.fail_at = 2;
    p = hook->resize(hook->user, NULL, 0, 10);
    ASSERT_TRUE(p != NULL);
    ASSERT_TRUE(hook->resize(hook->user, p, 10, 20) == NULL); /* p stays */
    ASSERT_EQ(memory.live_bytes, 10);
    p = hook->resize(hook->user, p, 10, 20);
    ASSERT_TRUE(p != NULL);
    memory.fail_at = 4;
    memory.fail_from_then = true;
    ASSERT_TRUE(hook->resize(hook->user, NULL, 0, 1) == NULL);
    ASSERT_TRUE(hook->resize(hook->user, NULL, 0, 1) == NULL);
    ASSERT_EQ(memory.n_failed, 3);
    (void)hook->resize(hook->user, p, 20, 0);
    test_memory_finish(&memory);
}

static void test_memory_sees_misuse(void **state)
{
    test_memory memory;
    neap_memory *hook = &memory.hook;
    char *p;
    (void)state;
    test_memory_init(&memory);
    p = hook->resize(hook->user, NULL, 0, 16);
    (void)hook->resize(hook->user, p, 15, 0);
    ASSERT_EQ(memory.n_misuses, 1);
    ASSERT_CONTAINS(memory.misuse, "wrong old_bytes");

    p = hook->resize(hook->user, NULL, 0, 16);
    p[16] = 1;
    (void)hook->resize(hook->user, p, 16, 0);
    ASSERT_EQ(memory.n_misuses, 2);

    (void)hook->resize(hook->user, NULL, 0, 0);
    ASSERT_EQ(memory.n_misuses, 3);
    memory.n_misuses = 0;
    test_memory_finish(&memory);
}

static void test_paths(void **state)
{
    char path[TEST_PATH_BYTES];
    (void)state;
    test_data_path(path, "x");
    ASSERT_CONTAINS(path, "/tests/data/x");
    ASSERT_FALSE(test_shared_path(path, "there/is/no/such/file"));
    test_temp_path(path, "name.gz");
    ASSERT_STR_EQ(path + strlen(path) - 8, "-name.gz");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers_compare_by_value),
        cmocka_unit_test(test_memory_counts),
        cmocka_unit_test(test_memory_fails_when_told),
        cmocka_unit_test(test_memory_sees_misuse),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests_name("testing", tests, NULL, NULL);
}
