/* test_queue.c: entries come out as they went in, from another thread too, and the ring grows only as it must. */
#include "device/queue.h"

#include <string.h>

#include "base/rng.h"
#include "device/counter.h"
#include "testing.h"

typedef struct item {
    uint64_t number;
    size_t n;
    unsigned char bytes[];
} item;

static size_t size_of(uint64_t number)
{
    np_rng rng = np_rng_make(number);
    return np_rng_below(&rng, 10) == 0 ? np_rng_below(&rng, NP_QUEUE_ENTRY_MAX - sizeof(item) + 1)
                                       : np_rng_below(&rng, 300);
}

static neap_status put(np_queue *queue, uint64_t number)
{
    size_t n = size_of(number);
    void *room;
    item *made;
    neap_status status = np_queue_add(queue, sizeof(item) + n, &room);
    if (status == NEAP_OK) {
        made = room;
        made->number = number;
        made->n = n;
        memset(made->bytes, (int)(number & 0xff), n);
    }
    return status;
}

static bool is_item(const item *got, uint64_t number)
{
    if (!got || (uintptr_t)got % _Alignof(max_align_t) != 0 || got->number != number || got->n != size_of(number)) {
        return false;
    }
    for (size_t i = 0; i < got->n; i++) {
        if (got->bytes[i] != (number & 0xff)) {
            return false;
        }
    }
    return true;
}

static void test_in_order(void **state)
{
    np_queue queue;
    np_rng rng = np_rng_make(1);
    uint64_t n_put = 0;
    uint64_t n_taken = 0;
    (void)state;
    ASSERT_OK(np_queue_init(&queue, NULL));
    while (n_put < 20000) {
        uint64_t n = np_rng_below(&rng, np_rng_below(&rng, 20) == 0 ? 500 : 10);
        for (uint64_t i = 0; i < n; i++) {
            ASSERT_OK(put(&queue, n_put++));
        }
        n = np_rng_below(&rng, np_rng_below(&rng, 10) == 0 ? 500 : 10);
        for (uint64_t i = 0; i < n && n_taken < n_put; i++) {
            ASSERT_TRUE(is_item(np_queue_take(&queue), n_taken++));
        }
        ASSERT_TRUE(np_queue_is_valid(&queue));
    }
    np_queue_end(&queue);
    while (n_taken < n_put) {
        ASSERT_TRUE(is_item(np_queue_take(&queue), n_taken++));
    }
    ASSERT_TRUE(np_queue_take(&queue) == NULL);
    np_queue_free(&queue);
}

static void test_memory_is_used_again(void **state)
{
    test_memory memory;
    np_queue queue;
    size_t n_calls;
    (void)state;
    test_memory_init(&memory);
    ASSERT_OK(np_queue_init(&queue, &memory.hook));
    for (uint64_t i = 0; i < 100; i++) { /* a few chunks' worth */
        ASSERT_OK(put(&queue, i));
    }
    for (uint64_t i = 0; i < 100; i++) {
        ASSERT_TRUE(is_item(np_queue_take(&queue), i));
    }
    n_calls = memory.n_calls;
    for (uint64_t i = 0; i < 10000; i++) {
        ASSERT_OK(put(&queue, i));
        ASSERT_TRUE(is_item(np_queue_take(&queue), i));
    }
    ASSERT_LE(memory.n_calls, n_calls + 1); /* two chunks suffice, and there may have been one */
    np_queue_free(&queue);
    test_memory_finish(&memory);
}

typedef struct both_ends {
    np_queue queue;
    np_counter given;
    uint64_t n_wrong;
    uint64_t n_taken;
} both_ends;

static void *read_all(void *user)
{
    both_ends *ends = user;
    for (;;) {
        const item *got;
        np_counter_wait(&ends->given, ends->n_taken + 1);
        got = np_queue_take(&ends->queue);
        if (!got) {
            return NULL;
        }
        ends->n_wrong += !is_item(got, ends->n_taken);
        ends->n_taken++;
    }
}

static void test_two_threads(void **state)
{
    enum { N = TEST_SANITIZED ? 20000 : 200000 };
    static both_ends ends;
    pthread_t reader;
    (void)state;
    ends = (both_ends){.n_wrong = 0};
    ASSERT_OK(np_queue_init(&ends.queue, NULL));
    ASSERT_TRUE(np_counter_init(&ends.given));
    ASSERT_EQ(pthread_create(&reader, NULL, read_all, &ends), 0);
    for (uint64_t i = 0; i < N; i++) {
        ASSERT_OK(put(&ends.queue, i));
        np_counter_raise(&ends.given, i + 1);
    }
    np_queue_end(&ends.queue);
    np_counter_raise(&ends.given, N + 1);
    ASSERT_EQ(pthread_join(reader, NULL), 0);
    ASSERT_EQ(ends.n_taken, N);
    ASSERT_EQ(ends.n_wrong, 0);
    ASSERT_TRUE(np_queue_is_valid(&ends.queue));
    np_counter_destroy(&ends.given);
    np_queue_free(&ends.queue);
}

static neap_status fill_queue(const neap_memory *memory, void *user)
{
    np_queue queue;
    uint64_t n = 0;
    neap_status status = np_queue_init(&queue, memory);
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    while (n < 300 && (status = put(&queue, n)) == NEAP_OK) {
        n++;
    }
    ASSERT_TRUE(np_queue_is_valid(&queue));
    np_queue_end(&queue); /* this always works, and what was put is there */
    for (uint64_t i = 0; i < n; i++) {
        ASSERT_TRUE(is_item(np_queue_take(&queue), i));
    }
    ASSERT_TRUE(np_queue_take(&queue) == NULL);
    np_queue_free(&queue);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(fill_queue, NULL), 5);
}

static void test_too_large(void **state)
{
    np_queue queue;
    void *room;
    (void)state;
    ASSERT_OK(np_queue_init(&queue, NULL));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_queue_add(&queue, NP_QUEUE_ENTRY_MAX + 1, &room));
    ASSERT_OK(np_queue_add(&queue, NP_QUEUE_ENTRY_MAX, &room));
    np_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),    cmocka_unit_test(test_memory_is_used_again),
        cmocka_unit_test(test_two_threads), cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests_name("device/queue", tests, NULL, NULL);
}
