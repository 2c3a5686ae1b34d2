#include "swap/hold.h"

#include "swap/candidates.h"
#include "swap/make_timeline.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 24, .max_blocks = 24, .max_bytes = 100, .reads = false};

/* Whole swaps of all gaps of a timeline, scheduled. */
static uint32_t swap_all(const np_timeline *timeline, const np_link *link, np_swap *swaps)
{
    uint32_t n = (uint32_t)timeline->gaps.n;
    for (uint32_t i = 0; i < n; i++) {
        swaps[i] = (np_swap){.bytes = timeline->gaps.items[i].bytes, .gap = i};
    }
    ASSERT_OK(np_schedule_swaps(timeline, link, swaps, n));
    return n;
}

/* Four execs of 10 ns; 6 bytes used at 0 and 3; 5 bytes at 1, and 5 others at 2. At 1 byte a ns the copy in of the 6
 * begins at 24 or before, so after exec 1. With a limit of 11 it may be there during exec 2, with 10 it waits for its
 * end. */
static void waits_for_room(void **state)
{
    static const double durations[] = {10, 10, 10, 10};
    static const block_shape blocks[] = {
        {.bytes = 6, .n_uses = 2, .uses = {0, 3}},
        {.bytes = 5, .n_uses = 1, .uses = {1}},
        {.bytes = 5, .n_uses = 1, .uses = {2}},
    };
    static const timeline_shape shape = {.n_execs = 4, .durations_ns = durations, .blocks = blocks, .n_blocks = 3};
    static const np_link link = {.out = 1, .in = 1};
    np_timeline timeline;
    np_swap swap;
    (void)state;
    make_timeline(&shape, NULL, &timeline);
    ASSERT_EQ(swap_all(&timeline, &link, &swap), 1);
    ASSERT_EQ(swap.in_after, 1);
    ASSERT_OK(np_hold_swaps(&timeline, 11, &swap, 1));
    ASSERT_EQ(swap.in_after, 1);
    ASSERT_OK(np_hold_swaps(&timeline, 10, &swap, 1));
    ASSERT_EQ(swap.in_after, 2);
    ASSERT_STATUS(NEAP_NO_PLAN, np_hold_swaps(&timeline, 5, &swap, 1)); /* the 6 bytes themselves, at 0 and 3 */
    np_timeline_free(&timeline);
}

/* The load by plan, block by block. */
static uint64_t planned_load(const np_timeline *timeline, const np_swap *swaps, uint32_t n_swaps, uint32_t k)
{
    uint64_t load = timeline->needed.items[k];
    for (uint32_t i = 0; i < n_swaps; i++) {
        for (uint32_t at = timeline->gaps.items[swaps[i].gap].from + 1; at <= swaps[i].in_after; at++) {
            load -= at % timeline->n_execs == k ? swaps[i].bytes : 0;
        }
    }
    return load;
}

/* Held plans keep to the limit and never halt, however tight it is; others do halt now and then. */
static void held_plans_run(void **state)
{
    np_rng rng = np_rng_make(3);
    uint32_t n_halted_unheld = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 200 : 2000); round++) {
        np_link link = {.out = 0.5 + 10 * np_rng_unit(&rng), .in = 0.5 + 10 * np_rng_unit(&rng)};
        np_timeline timeline;
        np_candidates candidates;
        np_simulator *simulator;
        np_simulation simulation;
        np_swap swaps[256];
        uint32_t n;
        uint64_t limit;
        link.latency_ns = (double)np_rng_below(&rng, 4);
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_candidates_find(&timeline, NP_SCOPE_ALL, 1, &candidates));
        ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
        limit = candidates.load_min + np_rng_below(&rng, 100);
        ASSERT_LT(timeline.gaps.n, 256);
        n = swap_all(&timeline, &link, swaps);
        ASSERT_OK(np_simulate(simulator, limit, swaps, n, &simulation));
        n_halted_unheld += !simulation.possible;
        ASSERT_OK(np_hold_swaps(&timeline, limit, swaps, n));
        for (uint32_t k = 0; k < timeline.n_execs; k++) {
            ASSERT_LE(planned_load(&timeline, swaps, n, k), limit);
        }
        ASSERT_OK(np_simulate(simulator, limit, swaps, n, &simulation));
        ASSERT_TRUE(simulation.possible);
        ASSERT_LE(simulation.peak, limit);
        np_simulator_free(simulator);
        np_candidates_free(&candidates);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_halted_unheld, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(waits_for_room), cmocka_unit_test(held_plans_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
