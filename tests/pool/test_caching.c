/* test_caching.c: PyTorch's caching allocator: size classes, splitting, merging, and segments that expand. */
#include "pool/caching.h"

#include "testing.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static uint64_t held(const np_caching *caching)
{
    uint64_t bytes = 0;
    ASSERT_TRUE(np_caching_is_valid(caching));
    ASSERT_OK(np_caching_held(caching, &bytes));
    return bytes;
}

static np_caching_block take(np_caching *caching, uint64_t bytes)
{
    np_caching_block block = {0};
    ASSERT_OK(np_caching_take(caching, bytes, &block));
    return block;
}

static uint64_t address_of(const np_caching *caching, np_caching_block block)
{
    return (block.is_small ? &caching->small : &caching->large)->blocks.items[block.block].address;
}

static void test_segments_by_size(void **state)
{
    static const struct {
        uint64_t bytes, segment;
    } cases[] = {
        {1, 2 * MIB},         {1 * MIB, 2 * MIB},       {1 * MIB + 1, 20 * MIB}, {10 * MIB - 512, 20 * MIB},
        {10 * MIB, 10 * MIB}, {10 * MIB + 1, 12 * MIB}, {33 * MIB, 34 * MIB},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        np_caching caching;
        np_caching_init(&caching, false, NULL);
        (void)take(&caching, cases[i].bytes);
        ASSERT_EQ(held(&caching), cases[i].segment);
        np_caching_free(&caching);
    }
}

static void test_pools_do_not_mix(void **state)
{
    np_caching caching;
    np_caching_block large;
    (void)state;
    np_caching_init(&caching, false, NULL);
    large = take(&caching, 4 * MIB);
    np_caching_give(&caching, large);
    (void)take(&caching, 512); /* 20 MiB are free, for large requests only */
    ASSERT_EQ(held(&caching), 22 * MIB);
    (void)take(&caching, 2 * MIB - 512);
    ASSERT_EQ(held(&caching), 22 * MIB);
    np_caching_free(&caching);
}

static void test_small_blocks_split_from_512(void **state)
{
    np_caching caching;
    (void)state;
    np_caching_init(&caching, false, NULL);
    ASSERT_EQ(address_of(&caching, take(&caching, 1)), 0);
    ASSERT_EQ(address_of(&caching, take(&caching, 512)), 512);
    ASSERT_EQ(address_of(&caching, take(&caching, 513)), 1024);
    ASSERT_EQ(address_of(&caching, take(&caching, 1)), 2048);
    ASSERT_EQ(held(&caching), 2 * MIB);
    np_caching_free(&caching);
}

static void test_large_blocks_split_above_one_mib(void **state)
{
    np_caching caching;
    np_caching_block block;
    (void)state;
    np_caching_init(&caching, false, NULL);
    (void)take(&caching, 19 * MIB); /* from a segment of 20: exactly 1 MiB is no rest */
    ASSERT_EQ(held(&caching), 20 * MIB);
    (void)take(&caching, 1 * MIB + 512);
    ASSERT_EQ(held(&caching), 40 * MIB);
    np_caching_free(&caching);

    np_caching_init(&caching, false, NULL);
    block = take(&caching, 20 * MIB);
    np_caching_give(&caching, block);
    block = take(&caching, 19 * MIB);
    ASSERT_EQ(caching.large.blocks.items[block.block].size, 20 * MIB);
    np_caching_give(&caching, block);
    block = take(&caching, 19 * MIB - 512); /* 512 bytes more than 1 MiB are one */
    ASSERT_EQ(caching.large.blocks.items[block.block].size, 19 * MIB - 512);
    ASSERT_EQ(held(&caching), 20 * MIB);
    np_caching_free(&caching);
}

static void test_best_fit_and_merging(void **state)
{
    np_caching caching;
    np_caching_block a;
    np_caching_block b;
    np_caching_block c;
    (void)state;
    np_caching_init(&caching, false, NULL);
    a = take(&caching, 40 * MIB);
    b = take(&caching, 24 * MIB);
    c = take(&caching, 30 * MIB);
    np_caching_give(&caching, a);
    np_caching_give(&caching, b);
    np_caching_give(&caching, c);
    b = take(&caching, 23 * MIB); /* the segment of 24, whole: 1 MiB is left */
    ASSERT_EQ(address_of(&caching, b), 40 * MIB);
    c = take(&caching, 20 * MIB); /* the one of 30, split */
    ASSERT_EQ(address_of(&caching, c), 64 * MIB);
    a = take(&caching, 10 * MIB);
    ASSERT_EQ(address_of(&caching, a), 84 * MIB);
    np_caching_give(&caching, c);
    np_caching_give(&caching, a);
    ASSERT_EQ(address_of(&caching, take(&caching, 30 * MIB)), 64 * MIB);
    ASSERT_EQ(held(&caching), 94 * MIB);
    np_caching_free(&caching);
}

static void test_expandable_segments_grow_by_pages(void **state)
{
    np_caching caching;
    np_caching_block end;
    (void)state;
    np_caching_init(&caching, true, NULL);
    (void)take(&caching, 12 * MIB);
    ASSERT_EQ(held(&caching), 20 * MIB);
    (void)take(&caching, 8 * MIB); /* fits what the page has left, though a default segment would leave it whole */
    ASSERT_EQ(held(&caching), 20 * MIB);
    end = take(&caching, 30 * MIB);
    ASSERT_EQ(held(&caching), 60 * MIB);
    np_caching_give(&caching, end); /* 40 MiB at the end */
    (void)take(&caching, 50 * MIB); /* they are extended by one page */
    ASSERT_EQ(held(&caching), 80 * MIB);
    (void)take(&caching, 100);
    ASSERT_EQ(held(&caching), 82 * MIB);
    (void)take(&caching, 10 * MIB - 512); /* 512 bytes are split off a large block too */
    ASSERT_EQ(caching.large.blocks.items[caching.large.last].size, 512);
    np_caching_free(&caching);
}

static void test_the_end_is_taken_last(void **state)
{
    np_caching caching;
    np_caching_block first;
    np_caching_block end;
    (void)state;
    np_caching_init(&caching, true, NULL);
    first = take(&caching, 12 * MIB);
    (void)take(&caching, 2 * MIB);
    np_caching_give(&caching, first);
    /* Free: 12 MiB at the front, 6 at the end. The end fits more tightly, but could grow. */
    ASSERT_EQ(address_of(&caching, take(&caching, 5 * MIB)), 0);
    end = take(&caching, 7 * MIB); /* what is left of the front, exactly */
    ASSERT_EQ(address_of(&caching, end), 5 * MIB);
    ASSERT_EQ(address_of(&caching, take(&caching, 6 * MIB)), 14 * MIB);
    ASSERT_EQ(held(&caching), 20 * MIB);
    np_caching_free(&caching);
}

static void test_extremes(void **state)
{
    np_caching caching;
    np_caching_block block = {0};
    (void)state;
    for (int expandable = 0; expandable < 2; expandable++) {
        np_caching_init(&caching, expandable != 0, NULL);
        ASSERT_OK(np_caching_take(&caching, 0, &block));
        ASSERT_EQ(block.block, NP_HEAP_NONE);
        np_caching_give(&caching, block);
        ASSERT_EQ(held(&caching), 0);
        ASSERT_STATUS(NEAP_TOO_LARGE, np_caching_take(&caching, UINT64_MAX, &block));
        ASSERT_STATUS(NEAP_TOO_LARGE, np_caching_take(&caching, UINT64_MAX - 512 * KIB, &block));
        ASSERT_EQ(held(&caching), 0);
        np_caching_free(&caching);
    }
}

static neap_status use(const neap_memory *memory, void *user)
{
    const bool *expandable = user;
    np_caching caching;
    np_caching_block blocks[50];
    size_t n = 0;
    neap_status status = NEAP_OK;
    np_caching_init(&caching, *expandable, memory);
    for (; n < 50 && status == NEAP_OK; n++) {
        status = np_caching_take(&caching, (n % 7) * 700 * KIB + n, &blocks[n]);
    }
    for (size_t i = 0; i < n && status == NEAP_OK; i += 2) {
        np_caching_give(&caching, blocks[i]);
    }
    np_caching_free(&caching);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    bool expandable = false;
    (void)state;
    ASSERT_GT(test_memory_fail_each(use, &expandable), 1);
    expandable = true;
    ASSERT_GT(test_memory_fail_each(use, &expandable), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments_by_size),
        cmocka_unit_test(test_pools_do_not_mix),
        cmocka_unit_test(test_small_blocks_split_from_512),
        cmocka_unit_test(test_large_blocks_split_above_one_mib),
        cmocka_unit_test(test_best_fit_and_merging),
        cmocka_unit_test(test_expandable_segments_grow_by_pages),
        cmocka_unit_test(test_the_end_is_taken_last),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/caching", tests, NULL, NULL);
}
