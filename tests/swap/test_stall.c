#include "swap/stall.h"

#include <math.h>

#include "base/clock.h"
#include "swap/bound.h"
#include "swap/bound_overhead.h"
#include "swap/make_timeline.h"
#include "swap/recorded.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 24, .max_blocks = 16, .max_bytes = 100, .reads = true};

static uint64_t highest_need(const np_timeline *timeline)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        highest = timeline->needed.items[k] > highest ? timeline->needed.items[k] : highest;
    }
    return highest;
}

static np_stall_options in_a_second(uint64_t limit, uint64_t page)
{
    return (np_stall_options){.limit = limit, .page = page, .seed = 1, .deadline_ns = np_clock_ns() + 1000000000};
}

/* Six execs of 10 ns, 40 bytes used at 0 and 5 and 30 at exec 2; a byte a ns. Under a limit of 40, 30 bytes must leave
 * before exec 2 and 10 ns are there for it: a wait of 20. They are back in time: 30 ns from exec 3 to exec 5, had it begun
 * at 30, and from the end of exec 2 to exec 5 there are 20. 10 more. */
static void waits_as_long_as_it_must(void **state)
{
    static const double tens[] = {10, 10, 10, 10, 10, 10};
    static const block_shape blocks[] = {
        {.bytes = 40, .n_uses = 2, .uses = {0, 5}},
        {.bytes = 30, .n_uses = 1, .uses = {2}},
    };
    static const timeline_shape shape = {.n_execs = 6, .durations_ns = tens, .blocks = blocks, .n_blocks = 2};
    static const np_link link = {.out = 1, .in = 1};
    np_stall_options options = in_a_second(40, 5);
    np_timeline timeline;
    np_swap_array swaps = {0};
    np_simulation simulation;
    bool found = false;
    (void)state;
    make_timeline(&shape, NULL, &timeline);
    ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
    ASSERT_TRUE(found);
    ASSERT_TRUE(fabs(simulation.period_ns - 90) < 1e-6);
    ASSERT_LE(simulation.peak, 40);
    options = in_a_second(39, 5); /* exec 0 needs 40 */
    found = true;
    ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
    ASSERT_FALSE(found);
    options = in_a_second(70, 5);
    ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
    ASSERT_TRUE(found);
    ASSERT_EQ(swaps.n, 0);
    ASSERT_TRUE(simulation.overhead == 0);
    np_array_free(timeline.memory, &swaps);
    np_timeline_free(&timeline);
}

/* What was said is what a fresh simulator says; the limit is held; no plan beats the bound. */
static void check(const np_timeline *timeline, const np_link *link, uint64_t limit, const np_swap_array *swaps,
                  const np_simulation *said)
{
    np_simulator *simulator;
    np_simulation again;
    double bound_ns;
    ASSERT_OK(np_simulator_create(timeline, link, &simulator));
    ASSERT_OK(np_simulate(simulator, limit, swaps->items, (uint32_t)swaps->n, &again));
    np_simulator_free(simulator);
    ASSERT_TRUE(again.possible);
    ASSERT_TRUE(again.overhead == said->overhead);
    ASSERT_LE(again.peak, limit);
    ASSERT_OK(np_bound_overhead(timeline, link, limit, &bound_ns));
    ASSERT_TRUE(said->overhead >= bound_ns / timeline->period_ns - 1e-9);
}

static void plans_hold_the_limit(void **state)
{
    np_rng rng = np_rng_make(12);
    np_swap_array swaps = {0};
    uint32_t n_found = 0, n_waiting = 0, n_rounds = TEST_SANITIZED ? 50 : 300;
    (void)state;
    for (uint32_t round = 0; round < n_rounds; round++) {
        np_link link = {.out = 1 + 10 * np_rng_unit(&rng), .in = 1 + 10 * np_rng_unit(&rng)};
        np_timeline timeline;
        np_simulation simulation;
        np_stall_options options;
        np_floor floor;
        uint64_t need;
        bool found;
        link.latency_ns = np_rng_below(&rng, 2) ? 1 : 0;
        link.both = np_rng_below(&rng, 2) ? link.out + link.in - 1 : 0;
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        need = highest_need(&timeline);
        options = in_a_second(floor.bytes + np_rng_below(&rng, need - floor.bytes + 1), 1 + np_rng_below(&rng, 5));
        ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
        if (found) {
            check(&timeline, &link, options.limit, &swaps, &simulation);
            n_found++;
            n_waiting += simulation.overhead > 0;
        }
        options.limit = need; /* nothing to do */
        ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
        ASSERT_TRUE(found);
        ASSERT_EQ(swaps.n, 0);
        ASSERT_TRUE(simulation.overhead == 0);
        if (floor.bytes > 0) { /* nothing to be done */
            options.limit = floor.bytes - 1;
            ASSERT_OK(np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found));
            ASSERT_FALSE(found);
        }
        np_timeline_free(&timeline);
    }
    np_array_free(&np_memory_default, &swaps);
    ASSERT_GT(n_found, n_rounds / 2);
    ASSERT_GT(n_waiting, n_rounds / 10);
}

static void recordings_hold_the_limit(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_swap_array swaps = {0};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        recorded r;
        uint64_t need;
        recorded_open(&r, recorded_name(i));
        need = highest_need(&r.timeline);
        for (uint64_t percent = 50; percent < 100; percent += 20) {
            np_stall_options options = in_a_second(need * percent / 100, 2 << 20);
            np_simulation simulation;
            bool found;
            options.min_block = 1 << 20;
            options.deadline_ns = np_clock_ns() + 100000000;
            ASSERT_OK(np_stall_search(&r.timeline, &link, &options, &swaps, &simulation, &found));
            ASSERT_TRUE(found);
            check(&r.timeline, &link, options.limit, &swaps, &simulation);
        }
        recorded_close(&r);
    }
    np_array_free(&np_memory_default, &swaps);
}

/* A deadline that has passed ends it soon: there is one try, or none. */
static void stops_when_late(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_stall_options options;
    np_swap_array swaps = {0};
    np_simulation simulation;
    recorded r;
    bool found;
    (void)state;
    recorded_open(&r, recorded_name(0));
    options = (np_stall_options){.limit = highest_need(&r.timeline) / 2, .min_block = 1 << 20, .page = 2 << 20};
    ASSERT_OK(np_stall_search(&r.timeline, &link, &options, &swaps, &simulation, &found));
    if (found) {
        check(&r.timeline, &link, options.limit, &swaps, &simulation);
    }
    recorded_close(&r);
    np_array_free(&np_memory_default, &swaps);
}

static neap_status search_within(const neap_memory *memory, void *user)
{
    static const np_link link = {.out = 4, .in = 4};
    np_timeline timeline = *(const np_timeline *)user;
    np_stall_options options = {.limit = highest_need(&timeline) * 9 / 10, .page = 1}; /* late: one try */
    np_swap_array swaps = {0};
    np_simulation simulation;
    bool found;
    neap_status status;
    timeline.memory = memory;
    status = np_stall_search(&timeline, &link, &options, &swaps, &simulation, &found);
    np_array_free(memory, &swaps);
    return status;
}

static void fails_without_memory(void **state)
{
    np_rng rng = np_rng_make(12);
    np_timeline timeline;
    (void)state;
    make_random_timeline(&small, &rng, NULL, &timeline);
    ASSERT_GT(test_memory_fail_each(search_within, &timeline), 10);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_as_long_as_it_must),  cmocka_unit_test(plans_hold_the_limit),
        cmocka_unit_test(recordings_hold_the_limit), cmocka_unit_test(stops_when_late),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
