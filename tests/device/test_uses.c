/* test_uses.c: spans of bytes with their last uses: split where they must be, melted where they can be. (What counts as a
 * conflict is compared with all pairs in test_order.c.) */
#include "device/uses.h"

#include "base/rng.h"
#include "testing.h"

static bool add(np_uses *uses, uint64_t begin, uint64_t end, np_byte_use use, const np_clock *clock,
                np_conflict *conflict)
{
    np_clock nothing = {{0}};
    ASSERT_OK(np_uses_reserve(uses, 1, &nothing));
    return np_uses_add(uses, begin, end, use, clock, conflict);
}

static void test_spans_split_and_melt(void **state)
{
    np_clock all = {{0}};
    np_conflict conflict;
    np_uses uses;
    (void)state;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        all.marks[i] = 100;
    }
    np_uses_init(&uses, NULL);
    ASSERT_TRUE(add(&uses, 0, 100, (np_byte_use){0, 1, true}, &all, &conflict));
    ASSERT_TRUE(add(&uses, 40, 60, (np_byte_use){0, 2, false}, &all, &conflict));
    ASSERT_EQ(uses.spans.n, 3);
    ASSERT_TRUE(add(&uses, 60, 80, (np_byte_use){0, 2, false}, &all, &conflict)); /* the same use goes on */
    ASSERT_EQ(uses.spans.n, 3);
    ASSERT_EQ(uses.spans.items[1].end, 80);
    ASSERT_TRUE(add(&uses, 90, 120, (np_byte_use){0, 3, false}, &all, &conflict)); /* over the end */
    ASSERT_EQ(uses.spans.n, 5);
    ASSERT_EQ(uses.spans.items[4].begin, 100);
    ASSERT_TRUE(add(&uses, 200, 210, (np_byte_use){0, 3, false}, &all, &conflict));
    ASSERT_TRUE(add(&uses, 0, 300, (np_byte_use){0, 4, false}, &all, &conflict)); /* gaps are filled */
    ASSERT_EQ(uses.spans.n, 2);
    ASSERT_EQ(uses.spans.items[0].end, 100); /* written before, and not */
    ASSERT_TRUE(add(&uses, 0, 300, (np_byte_use){0, 5, true}, &all, &conflict));
    ASSERT_EQ(uses.spans.n, 1);
    ASSERT_TRUE(add(&uses, 10, 20, (np_byte_use){1, 101, true}, &all, &conflict));
    ASSERT_EQ(uses.spans.n, 3);
    ASSERT_TRUE(np_uses_is_valid(&uses));
    ASSERT_TRUE(np_uses_are_done(&uses, 0, 10, &all, &conflict));
    ASSERT_TRUE(np_uses_are_done(&uses, 20, 1000, &all, &conflict));
    ASSERT_FALSE(np_uses_are_done(&uses, 0, 11, &all, &conflict));
    ASSERT_EQ(conflict.begin, 10);
    ASSERT_EQ(conflict.end, 11);
    ASSERT_EQ(conflict.earlier.stream, 1);
    ASSERT_EQ(conflict.earlier.mark, 101);
    ASSERT_TRUE(conflict.earlier.writes);
    np_uses_free(&uses);
}

static void test_conflicts_name_the_earlier(void **state)
{
    np_clock clock = {{0}};
    np_conflict conflict;
    np_uses uses;
    (void)state;
    np_uses_init(&uses, NULL);
    ASSERT_TRUE(add(&uses, 10, 20, (np_byte_use){3, 7, false}, &clock, &conflict));
    ASSERT_TRUE(add(&uses, 0, 30, (np_byte_use){4, 1, false}, &clock, &conflict)); /* reads do not mind each other */
    clock.marks[4] = 1;
    ASSERT_FALSE(add(&uses, 0, 15, (np_byte_use){5, 1, true}, &clock, &conflict));
    ASSERT_EQ(conflict.begin, 10);
    ASSERT_EQ(conflict.end, 15);
    ASSERT_EQ(conflict.earlier.stream, 3);
    ASSERT_EQ(conflict.earlier.mark, 7);
    ASSERT_FALSE(conflict.earlier.writes);
    clock.marks[3] = 7;
    ASSERT_TRUE(add(&uses, 15, 30, (np_byte_use){5, 2, true}, &clock, &conflict));
    np_uses_free(&uses);
}

/* However many uses, spans are no more than their borders, and room that was reserved suffices. */
static void test_room_suffices(void **state)
{
    np_clock clock = {{0}};
    np_rng rng = np_rng_make(1);
    np_conflict conflict;
    np_uses uses;
    (void)state;
    np_uses_init(&uses, NULL);
    for (uint64_t round = 1; round < 2000; round++) {
        uint64_t n = 1 + np_rng_below(&rng, 20);
        size_t capacity;
        ASSERT_OK(np_uses_reserve(&uses, n, &clock));
        capacity = uses.spans.capacity;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t begin = np_rng_below(&rng, 1000);
            uint64_t end = begin + 1 + np_rng_below(&rng, np_rng_below(&rng, 5) ? 20 : 500);
            np_byte_use use = {(np_stream)np_rng_below(&rng, NP_N_STREAMS), round, np_rng_below(&rng, 10) == 0};
            (void)np_uses_add(&uses, begin, end, use, &clock, &conflict);
            ASSERT_TRUE(np_uses_is_valid(&uses));
            ASSERT_LE(uses.spans.n, capacity);
        }
        ASSERT_EQ(uses.spans.capacity, capacity);
        if (round % 10 == 0) { /* the host learns */
            for (np_stream i = 0; i < NP_N_STREAMS; i++) {
                clock.marks[i] = round;
            }
        }
    }
    np_uses_free(&uses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spans_split_and_melt),
        cmocka_unit_test(test_conflicts_name_the_earlier),
        cmocka_unit_test(test_room_suffices),
    };
    return cmocka_run_group_tests_name("device/uses", tests, NULL, NULL);
}
