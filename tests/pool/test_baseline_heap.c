/* test_baseline_heap.c: the blocks that the replayed allocators share. */
#include "pool/baseline_heap.h"

#include "base/rng.h"
#include "testing.h"

static uint64_t address_of(const np_heap *heap, uint32_t block)
{
    return heap->blocks.items[block].address;
}

static void test_takes_the_front_and_merges_back(void **state)
{
    test_memory memory;
    np_heap heap;
    uint32_t whole;
    uint32_t next;
    (void)state;
    test_memory_init(&memory);
    np_heap_init(&heap, &memory.hook);
    ASSERT_EQ(np_heap_best_fit(&heap, 1), NP_HEAP_NONE);
    ASSERT_OK(np_heap_add_chunk(&heap, 100, &whole));
    ASSERT_EQ(heap.held, 100);
    ASSERT_OK(np_heap_take(&heap, whole, 30));
    next = np_heap_best_fit(&heap, 1);
    ASSERT_NE(next, whole);
    ASSERT_EQ(address_of(&heap, next), 30);
    ASSERT_EQ(np_heap_best_fit(&heap, 71), NP_HEAP_NONE);
    ASSERT_OK(np_heap_take(&heap, next, 70));
    ASSERT_EQ(np_heap_best_fit(&heap, 1), NP_HEAP_NONE);
    np_heap_give(&heap, whole);
    np_heap_give(&heap, next);
    ASSERT_EQ(address_of(&heap, np_heap_best_fit(&heap, 100)), 0);
    ASSERT_TRUE(np_heap_is_valid(&heap));
    np_heap_free(&heap);
    test_memory_finish(&memory);
}

static void test_best_fit_is_smallest_then_lowest(void **state)
{
    np_heap heap;
    uint32_t chunks[4];
    static const uint64_t sizes[4] = {50, 20, 20, 30};
    (void)state;
    np_heap_init(&heap, NULL);
    for (size_t i = 0; i < 4; i++) {
        ASSERT_OK(np_heap_add_chunk(&heap, sizes[i], &chunks[i]));
    }
    ASSERT_EQ(np_heap_best_fit(&heap, 20), chunks[1]);
    ASSERT_EQ(np_heap_best_fit(&heap, 1), chunks[1]);
    ASSERT_EQ(np_heap_following(&heap, chunks[1]), chunks[2]);
    ASSERT_EQ(np_heap_best_fit(&heap, 21), chunks[3]);
    ASSERT_EQ(np_heap_following(&heap, chunks[3]), chunks[0]);
    ASSERT_EQ(np_heap_following(&heap, chunks[0]), NP_HEAP_NONE);
    np_heap_free(&heap);
}

static void test_chunks_never_merge(void **state)
{
    np_heap heap;
    uint32_t a;
    uint32_t b;
    (void)state;
    np_heap_init(&heap, NULL);
    ASSERT_OK(np_heap_add_chunk(&heap, 10, &a));
    ASSERT_OK(np_heap_take(&heap, a, 10));
    ASSERT_OK(np_heap_add_chunk(&heap, 10, &b));
    ASSERT_OK(np_heap_take(&heap, b, 10));
    np_heap_give(&heap, a);
    np_heap_give(&heap, b);
    ASSERT_EQ(np_heap_best_fit(&heap, 11), NP_HEAP_NONE);
    np_heap_free(&heap);
}

static void test_extending_includes_the_free_end(void **state)
{
    np_heap heap;
    uint32_t first;
    uint32_t end;
    (void)state;
    np_heap_init(&heap, NULL);
    ASSERT_OK(np_heap_extend(&heap, 10, &first));
    ASSERT_OK(np_heap_take(&heap, first, 4));
    ASSERT_OK(np_heap_extend(&heap, 10, &end)); /* a free end of 6 grows */
    ASSERT_EQ(heap.blocks.items[end].size, 16);
    ASSERT_OK(np_heap_take(&heap, end, 16));
    ASSERT_OK(np_heap_extend(&heap, 10, &end)); /* a used end is followed */
    ASSERT_EQ(address_of(&heap, end), 20);
    np_heap_give(&heap, first);
    ASSERT_EQ(np_heap_best_fit(&heap, 5), end);
    ASSERT_TRUE(np_heap_is_valid(&heap));
    np_heap_free(&heap);
}

static void test_sizes_that_overflow_are_refused(void **state)
{
    np_heap heap;
    uint32_t block = 7;
    (void)state;
    np_heap_init(&heap, NULL);
    ASSERT_OK(np_heap_add_chunk(&heap, UINT64_MAX - 5, &block));
    ASSERT_STATUS(NEAP_TOO_LARGE, np_heap_add_chunk(&heap, 6, &block));
    ASSERT_STATUS(NEAP_TOO_LARGE, np_heap_extend(&heap, 6, &block));
    ASSERT_TRUE(np_heap_is_valid(&heap));
    np_heap_free(&heap);
}

enum { N_LIVE = 60 };

/* Random takes and gives. The walk is made after every step, so whatever breaks is seen where it breaks. */
static neap_status churn(const neap_memory *memory, void *user)
{
    np_rng rng = np_rng_make(*(const uint64_t *)user);
    np_heap heap;
    uint32_t live[N_LIVE];
    neap_status status = NEAP_OK;
    np_heap_init(&heap, memory);
    for (size_t i = 0; i < N_LIVE; i++) {
        live[i] = NP_HEAP_NONE;
    }
    for (int step = 0; step < 600 && status == NEAP_OK; step++) {
        uint32_t *at = &live[np_rng_below(&rng, N_LIVE)];
        if (*at != NP_HEAP_NONE) {
            np_heap_give(&heap, *at);
            *at = NP_HEAP_NONE;
        } else {
            uint64_t size = 1 + np_rng_below(&rng, 40);
            uint32_t found = np_heap_best_fit(&heap, size);
            if (found == NP_HEAP_NONE) {
                uint64_t bytes = size + np_rng_below(&rng, 100);
                status = np_rng_below(&rng, 2) ? np_heap_add_chunk(&heap, bytes, &found)
                                               : np_heap_extend(&heap, bytes, &found);
            }
            if (status == NEAP_OK) {
                status = np_heap_take(&heap, found, size);
            }
            *at = status == NEAP_OK ? found : NP_HEAP_NONE;
        }
        ASSERT_TRUE(np_heap_is_valid(&heap));
    }
    np_heap_free(&heap);
    return status;
}

static void test_random_use_keeps_it_valid(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        ASSERT_OK(churn(NULL, &seed));
    }
}

static void test_every_failure_is_reported(void **state)
{
    uint64_t seed = 3;
    (void)state;
    ASSERT_GT(test_memory_fail_each(churn, &seed), 3);
}

static void test_validity_sees_damage(void **state)
{
    np_heap heap;
    uint32_t block;
    (void)state;
    np_heap_init(&heap, NULL);
    ASSERT_OK(np_heap_add_chunk(&heap, 64, &block));
    ASSERT_OK(np_heap_take(&heap, block, 16));
    heap.blocks.items[block].size = 15; /* a byte that nobody owns */
    ASSERT_FALSE(np_heap_is_valid(&heap));
    heap.blocks.items[block].size = 16;
    ASSERT_TRUE(np_heap_is_valid(&heap));
    heap.blocks.items[block].used = false; /* free, but not to be found */
    ASSERT_FALSE(np_heap_is_valid(&heap));
    heap.blocks.items[block].used = true;
    heap.held = 65;
    ASSERT_FALSE(np_heap_is_valid(&heap));
    np_heap_free(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takes_the_front_and_merges_back),
        cmocka_unit_test(test_best_fit_is_smallest_then_lowest),
        cmocka_unit_test(test_chunks_never_merge),
        cmocka_unit_test(test_extending_includes_the_free_end),
        cmocka_unit_test(test_sizes_that_overflow_are_refused),
        cmocka_unit_test(test_random_use_keeps_it_valid),
        cmocka_unit_test(test_every_failure_is_reported),
        cmocka_unit_test(test_validity_sees_damage),
    };
    return cmocka_run_group_tests_name("pool/baseline_heap", tests, NULL, NULL);
}
