#include "trace/recall.h"

#include "base/rng.h"
#include "testing.h"

static void test_last_place_is_recalled(void **state)
{
    enum { N = 5000 };
    test_memory memory;
    np_recall recall = {0};
    np_rng rng = np_rng_make(1);
    (void)state;
    test_memory_init(&memory);
    for (uint32_t i = 0; i < N; i++) {
        ASSERT_OK(np_recall_reserve(&recall, &memory.hook, 1));
        ASSERT_EQ(np_recall_swap(&recall, (uint32_t)np_rng_next(&rng), i), NP_RECALL_NONE);
    }
    ASSERT_EQ(recall.n, N);
    ASSERT_TRUE(np_recall_is_valid(&recall));
    rng = np_rng_make(1);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t tag = (uint32_t)np_rng_next(&rng);
        ASSERT_EQ(np_recall_find(&recall, tag)->at, i);
        ASSERT_EQ(np_recall_swap(&recall, tag, N + i), i);
        ASSERT_EQ(np_recall_find(&recall, tag)->at, N + i);
    }
    ASSERT_EQ(recall.n, N);
    np_recall_free(&recall, &memory.hook);
    test_memory_finish(&memory);
}

/* Tags made to crowd together cost no more than NP_RECALL_PROBES each; what does not fit is not entered. */
static void test_crowds_are_turned_away(void **state)
{
    test_memory memory;
    np_recall recall = {0};
    (void)state;
    test_memory_init(&memory);
    ASSERT_OK(np_recall_reserve(&recall, &memory.hook, 4 * NP_RECALL_PROBES));
    for (uint32_t i = 0; i < 2 * NP_RECALL_PROBES; i++) {
        ASSERT_EQ(np_recall_swap(&recall, (i + 1) << 20, i), i < NP_RECALL_PROBES ? NP_RECALL_NONE : i);
    }
    ASSERT_EQ(recall.n, NP_RECALL_PROBES);
    ASSERT_TRUE(np_recall_find(&recall, (NP_RECALL_PROBES + 1) << 20) == NULL);
    ASSERT_EQ(np_recall_find(&recall, NP_RECALL_PROBES << 20)->at, NP_RECALL_PROBES - 1);
    ASSERT_TRUE(np_recall_is_valid(&recall));
    ASSERT_OK(np_recall_grow(&recall, &memory.hook, 20 * NP_RECALL_PROBES));
    ASSERT_EQ(recall.n, NP_RECALL_PROBES);
    ASSERT_TRUE(np_recall_is_valid(&recall));
    np_recall_free(&recall, &memory.hook);
    test_memory_finish(&memory);
}

static neap_status grow_often(const neap_memory *memory, void *user)
{
    np_recall recall = {0};
    neap_status status = NEAP_OK;
    (void)user;
    for (uint32_t i = 0; status == NEAP_OK && i < 1000; i++) {
        status = np_recall_reserve(&recall, memory, 1);
        if (status == NEAP_OK) {
            np_recall_swap(&recall, i * 0x9e3779b9u, i);
        }
    }
    if (!np_recall_is_valid(&recall)) {
        status = NEAP_INTERNAL;
    }
    np_recall_free(&recall, memory);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    (void)state;
    ASSERT_GE(test_memory_fail_each(grow_often, NULL), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_last_place_is_recalled),
        cmocka_unit_test(test_crowds_are_turned_away),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
