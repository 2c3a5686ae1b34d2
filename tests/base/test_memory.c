/* Host memory through the hook: sizes are told right, overflow is a failure, and every failure leaves things as they were. */
#include "base/memory.h"

#include <string.h>

#include "testing.h"

static void test_default_hook_serves(void **state)
{
    char *bytes = np_memory_alloc(NULL, 100, 3);
    (void)state;
    ASSERT_TRUE(bytes != NULL);
    memset(bytes, 1, 300);
    np_memory_free(NULL, bytes, 100, 3);
    np_memory_free(NULL, NULL, 100, 3);

    bytes = np_memory_alloc_zero(NULL, 100, 3);
    ASSERT_TRUE(bytes != NULL);
    for (size_t i = 0; i < 300; i++) {
        ASSERT_EQ(bytes[i], 0);
    }
    np_memory_free(NULL, bytes, 100, 3);
    ASSERT_TRUE(np_memory_or_default(NULL) == &np_memory_default);
}

static void test_hook_hears_the_right_sizes(void **state)
{
    test_memory memory;
    void *a;
    void *b;
    (void)state;
    test_memory_init(&memory);
    a = np_memory_alloc(&memory.hook, 10, 8);
    ASSERT_EQ(memory.live_bytes, 80);
    b = np_memory_alloc_zero(&memory.hook, 3, 7);
    ASSERT_EQ(memory.live_bytes, 101);
    np_memory_free(&memory.hook, a, 10, 8);
    ASSERT_EQ(memory.live_bytes, 21);
    np_memory_free(&memory.hook, b, 3, 7);
    ASSERT_EQ(memory.peak_bytes, 101);
    test_memory_finish(&memory);
}

static void test_nothing_is_still_a_block(void **state)
{
    test_memory memory;
    void *a;
    void *b;
    (void)state;
    test_memory_init(&memory);
    a = np_memory_alloc(&memory.hook, 0, 8);
    b = np_memory_alloc_zero(&memory.hook, 8, 0);
    ASSERT_TRUE(a != NULL);
    ASSERT_TRUE(b != NULL);
    np_memory_free(&memory.hook, a, 0, 8);
    np_memory_free(&memory.hook, b, 8, 0);
    test_memory_finish(&memory);
}

static void test_overflow_is_a_failure(void **state)
{
    test_memory memory;
    void *items = NULL;
    size_t capacity = 0;
    (void)state;
    test_memory_init(&memory);
    ASSERT_TRUE(np_memory_alloc(&memory.hook, SIZE_MAX / 8 + 1, 8) == NULL);
    ASSERT_TRUE(np_memory_alloc_zero(&memory.hook, SIZE_MAX, 2) == NULL);
    ASSERT_STATUS(NEAP_NO_MEMORY, np_memory_reserve(&memory.hook, &items, &capacity, SIZE_MAX / 8 + 1, 8));
    ASSERT_TRUE(items == NULL);
    ASSERT_EQ(capacity, 0);
    ASSERT_EQ(memory.n_calls, 0); /* the hook was not even asked */
    test_memory_finish(&memory);
}

typedef np_array(uint32_t) numbers;

static void test_array_keeps_what_was_pushed(void **state)
{
    enum { N = 10000 };
    test_memory memory;
    numbers array = {0};
    (void)state;
    test_memory_init(&memory);
    for (uint32_t i = 0; i < N; i++) {
        ASSERT_OK(np_array_push(&memory.hook, &array, i * 3));
        ASSERT_LE(array.n, array.capacity);
    }
    ASSERT_EQ(array.n, N);
    for (uint32_t i = 0; i < N; i++) {
        ASSERT_EQ(array.items[i], i * 3);
    }
    ASSERT_LT(memory.n_calls, 32); /* it grows by a share of itself, not by a constant */
    ASSERT_LE(array.capacity, N + N / 2);
    np_array_free(&memory.hook, &array);
    ASSERT_EQ(array.n, 0);
    ASSERT_EQ(array.capacity, 0);
    np_array_free(&memory.hook, &array);
    test_memory_finish(&memory);
}

static void test_reserve_gives_what_was_asked(void **state)
{
    test_memory memory;
    numbers array = {0};
    uint32_t *first;
    (void)state;
    test_memory_init(&memory);
    ASSERT_OK(np_array_reserve(&memory.hook, &array, 1000));
    ASSERT_GE(array.capacity, 1000);
    ASSERT_EQ(array.n, 0);
    first = array.items;
    ASSERT_OK(np_array_reserve(&memory.hook, &array, 1000));
    ASSERT_OK(np_array_reserve(&memory.hook, &array, array.n));
    ASSERT_TRUE(array.items == first);
    np_array_free(&memory.hook, &array);
    test_memory_finish(&memory);
}

static void test_failed_push_changes_nothing(void **state)
{
    test_memory memory;
    numbers array = {0};
    numbers before;
    (void)state;
    test_memory_init(&memory);
    for (uint32_t i = 0; i == 0 || array.n < array.capacity; i++) {
        ASSERT_OK(np_array_push(&memory.hook, &array, i));
    }
    before = array;
    memory.fail_at = memory.n_calls + 1;
    ASSERT_STATUS(NEAP_NO_MEMORY, np_array_push(&memory.hook, &array, 99u));
    ASSERT_EQ(memory.n_failed, 1);
    ASSERT_TRUE(memcmp(&array, &before, sizeof array) == 0);
    for (uint32_t i = 0; i < array.n; i++) {
        ASSERT_EQ(array.items[i], i);
    }
    ASSERT_OK(np_array_push(&memory.hook, &array, 99u)); /* and the next try succeeds */
    ASSERT_EQ(array.items[array.n - 1], 99);
    np_array_free(&memory.hook, &array);
    test_memory_finish(&memory);
}

static neap_status push_many(const neap_memory *memory, void *user)
{
    numbers array = {0};
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < *(uint32_t *)user && status == NEAP_OK; i++) {
        status = np_array_push(memory, &array, i);
    }
    np_array_free(memory, &array);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    uint32_t n = 5000;
    (void)state;
    ASSERT_GT(test_memory_fail_each(push_many, &n), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_hook_serves),         cmocka_unit_test(test_hook_hears_the_right_sizes),
        cmocka_unit_test(test_nothing_is_still_a_block),    cmocka_unit_test(test_overflow_is_a_failure),
        cmocka_unit_test(test_array_keeps_what_was_pushed), cmocka_unit_test(test_reserve_gives_what_was_asked),
        cmocka_unit_test(test_failed_push_changes_nothing), cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("base/memory", tests, NULL, NULL);
}
