#include "swap/place.h"

#include <stdlib.h>

#include "swap/fill.h"
#include "swap/make_timeline.h"
#include "swap/recorded.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { MAX_SWAPS = 256 };

static const random_timeline small = {.max_execs = 20, .max_blocks = 12, .max_bytes = 64, .reads = true};
static const double tens[10] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};

static np_place_options quick(uint64_t page)
{
    return (np_place_options){.seconds = 0.02, .page = page, .seed = 1, .n_threads = 1};
}

/* The bytes present at exec k, swap by swap. */
static uint64_t load_at(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps, uint32_t n,
                        uint32_t k)
{
    uint64_t load = timeline->needed.items[k];
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = &timeline->gaps.items[swaps[i].gap];
        np_absence absence = np_simulator_absence(simulator, i);
        for (uint32_t at = gap->from + 1; at < gap->to; at++) {
            bool absent = at % timeline->n_execs == k && absence.absent_from <= at && at < absence.back_from;
            load -= absent ? swaps[i].bytes : 0;
        }
    }
    return load;
}

static uint64_t highest_load(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                             uint32_t n)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        uint64_t load = load_at(timeline, simulator, swaps, n, k);
        highest = load > highest ? load : highest;
    }
    return highest;
}

/* ---- by hand ---- */

static np_place_result place(const timeline_shape *shape, np_swap *swaps, uint32_t n, uint64_t page)
{
    static const np_link fast = {.out = 10, .in = 10};
    np_place_options options = quick(page);
    np_timeline timeline;
    np_simulator *simulator;
    np_simulation simulation;
    np_place_result result;
    neap_error error;
    uint64_t bound;
    make_timeline(shape, NULL, &timeline);
    for (uint32_t i = 0; i < n; i++) {
        swaps[i].out_key = timeline.gaps.items[swaps[i].gap].release_ns;
        swaps[i].in_key = timeline.gaps.items[swaps[i].gap].due_ns;
    }
    ASSERT_OK(np_simulator_create(&timeline, &fast, &simulator));
    ASSERT_OK(np_simulate(simulator, UINT64_MAX, swaps, n, &simulation));
    ASSERT_TRUE(simulation.possible && simulation.overhead == 0);
    ASSERT_OK(np_place_swaps(&timeline, simulator, swaps, n, &options, &error, &result, NULL));
    ASSERT_EQ(result.load, highest_load(&timeline, simulator, swaps, n));
    ASSERT_OK(np_place_bound(&timeline, simulator, swaps, n, &options, &bound));
    result.bound = bound > result.bound ? bound : result.bound;
    ASSERT_LE(result.bound, result.footprint);
    np_simulator_free(simulator);
    np_timeline_free(&timeline);
    return result;
}

/* 10 bytes used at 0 and 4 leave their place, for exec 2, to 10 others. */
static void a_gap_is_a_place(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 2, .uses = {0, 4}},
        {.bytes = 10, .n_uses = 1, .uses = {2}},
    };
    timeline_shape shape = {.n_execs = 5, .durations_ns = tens, .blocks = blocks, .n_blocks = 2};
    np_swap swap = {.bytes = 10, .in_after = 2};
    np_place_result result = place(&shape, &swap, 1, 10);
    (void)state;
    ASSERT_EQ(result.load, 10);
    ASSERT_EQ(result.footprint, 10);
    ASSERT_EQ(result.bound, 10);
    ASSERT_EQ(result.n_buffers, 2);
    result = place(&shape, NULL, 0, 10);
    ASSERT_EQ(result.footprint, 20);
    result = place(&shape, &swap, 1, 2); /* cut up, it still fits */
    ASSERT_EQ(result.footprint, 10);
}

/* The first leaves during exec 2 and comes back during 4, the second is at 2 and 3, the third at 3 and 4: each pair meets,
 * so none has another's bytes, though no exec has more than two. */
static void cliques_cost_more_than_the_load(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 2, .uses = {1, 5}},
        {.bytes = 10, .n_uses = 2, .uses = {2, 3}},
        {.bytes = 10, .n_uses = 2, .uses = {3, 4}},
    };
    timeline_shape shape = {.n_execs = 6, .durations_ns = tens, .blocks = blocks, .n_blocks = 3};
    np_swap swap = {.bytes = 10, .in_after = 3};
    np_place_result result = place(&shape, &swap, 1, 10);
    (void)state;
    ASSERT_EQ(result.load, 20);
    ASSERT_EQ(result.footprint, 30);
    ASSERT_EQ(result.bound, 30);
}

/* Gaps from 0 to 4 and from 4 to 9 of a block of 12 bytes: 8 of them leave in the first, 4 in the second. The first 4
 * bytes are away in both, the next 4 in the first, the last 4 never. 8 other bytes at exec 2 and 4 at exec 6 take their
 * places; with 5 there, 13 are needed. */
static void gaps_of_a_block_have_their_own_parts(void **state)
{
    block_shape blocks[] = {
        {.bytes = 12, .n_uses = 3, .uses = {0, 4, 9}},
        {.bytes = 8, .n_uses = 1, .uses = {2}},
        {.bytes = 4, .n_uses = 1, .uses = {6}},
    };
    timeline_shape shape = {.n_execs = 10, .durations_ns = tens, .blocks = blocks, .n_blocks = 3};
    np_swap swaps[] = {{.bytes = 8, .gap = 0, .in_after = 2}, {.bytes = 4, .gap = 1, .in_after = 6}};
    np_place_result result = place(&shape, swaps, 2, 4);
    (void)state;
    ASSERT_EQ(result.load, 12);
    ASSERT_EQ(result.footprint, 12);
    blocks[2].bytes = 5;
    result = place(&shape, swaps, 2, 4);
    ASSERT_EQ(result.load, 13);
    ASSERT_EQ(result.footprint, 13);
}

/* Made at exec 6, used at exec 2 of the next period, at 5 there for the last time. It leaves during exec 7 and comes back
 * during 1, leaves during 3 and would come back during 4, in the one place: absent at 8, 9 and 0, never at 3 and 4. */
static void crossing_blocks_leave_and_return(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 3, .uses = {6, 12, 15}}, {.bytes = 10, .n_uses = 1, .uses = {8}},
        {.bytes = 10, .n_uses = 1, .uses = {0}},         {.bytes = 3, .n_uses = 1, .uses = {3}},
        {.bytes = 2, .n_uses = 1, .uses = {1}},
    };
    timeline_shape shape = {.n_execs = 10, .durations_ns = tens, .blocks = blocks, .n_blocks = 5};
    np_swap swaps[] = {{.bytes = 10, .gap = 0, .in_after = 10}, {.bytes = 10, .gap = 1, .in_after = 3}};
    np_place_result result = place(&shape, swaps, 1, 10);
    (void)state;
    ASSERT_EQ(result.load, 13); /* exec 3 */
    ASSERT_EQ(result.footprint, 13);
    result = place(&shape, swaps, 2, 10);
    ASSERT_EQ(result.load, 13);
}

/* The same with a longer second gap, from 2 to 6: absent at 4 too, where 10 others are. */
static void crossing_blocks_leave_twice(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 3, .uses = {7, 12, 16}},
        {.bytes = 10, .n_uses = 1, .uses = {9}},
        {.bytes = 10, .n_uses = 1, .uses = {4}},
    };
    timeline_shape shape = {.n_execs = 10, .durations_ns = tens, .blocks = blocks, .n_blocks = 3};
    np_swap swaps[] = {{.bytes = 10, .gap = 0, .in_after = 10}, {.bytes = 10, .gap = 1, .in_after = 4}};
    np_place_result result = place(&shape, swaps, 2, 10);
    (void)state;
    ASSERT_EQ(result.load, 10);
    ASSERT_EQ(result.footprint, 10);
    result = place(&shape, swaps, 1, 10);
    ASSERT_EQ(result.load, 20);
}

/* ---- at random ---- */

static uint32_t random_swaps(const np_timeline *timeline, const np_link *link, np_rng *rng, np_swap *swaps)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < timeline->gaps.n; g++) {
        uint64_t left = np_rng_below(rng, 3) ? timeline->gaps.items[g].bytes : 0;
        while (left > 0 && n < MAX_SWAPS) {
            uint64_t bytes = np_rng_below(rng, 3) ? left : 1 + np_rng_below(rng, left);
            swaps[n++] = (np_swap){.bytes = bytes, .gap = g};
            left = np_rng_below(rng, 4) ? left - bytes : 0;
        }
    }
    ASSERT_OK(np_schedule_swaps(timeline, link, swaps, n));
    return n;
}

static void loads_are_right(void **state)
{
    np_rng rng = np_rng_make(21);
    uint32_t n_lower = 0, n_above = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 60 : 400); round++) {
        np_link link = {.out = 1 + 20 * np_rng_unit(&rng), .in = 1 + 20 * np_rng_unit(&rng)};
        np_place_options options = quick(1 + np_rng_below(&rng, 20));
        np_timeline timeline;
        np_simulator *simulator;
        np_simulation simulation;
        np_place_result result;
        neap_error error;
        np_swap swaps[MAX_SWAPS];
        uint32_t n;
        uint64_t load;
        options.seconds = 0.002;
        make_random_timeline(&small, &rng, NULL, &timeline);
        n = random_swaps(&timeline, &link, &rng, swaps);
        ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
        ASSERT_OK(np_simulate(simulator, UINT64_MAX, swaps, n, &simulation));
        ASSERT_TRUE(simulation.possible);
        ASSERT_OK(np_place_swaps(&timeline, simulator, swaps, n, &options, &error, &result, NULL));
        load = highest_load(&timeline, simulator, swaps, n);
        ASSERT_EQ(result.load, load);
        ASSERT_GE(result.bound, load);
        ASSERT_GE(result.footprint, result.bound);
        if (simulation.overhead == 0 && timeline.start_ns.items[0] == 0) { /* every moment is a part of an exec */
            ASSERT_GE(load, simulation.peak);
        }
        n_lower += load < timeline.peak_load;
        n_above += result.footprint > load;
        np_simulator_free(simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_lower, 20);
    ASSERT_GT(n_above, 0);
}

/* ---- recordings ---- */

static void recordings_are_placed(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_swap_array swaps = {0};
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 1 : 4); i++) {
        np_fill_options fill = {.min_block = 1 << 20, .page = 2 << 20, .part = 2 << 20};
        np_place_options options = quick(2 << 20);
        np_fill_result filled;
        np_simulator *simulator;
        np_simulation simulation;
        np_place_result result;
        neap_error error;
        recorded r;
        recorded_open(&r, recorded_name(i));
        options.seconds = 0.1;
        ASSERT_OK(np_fill(&r.timeline, &link, &fill, &swaps, &filled));
        ASSERT_OK(np_simulator_create(&r.timeline, &link, &simulator));
        ASSERT_OK(np_simulate(simulator, UINT64_MAX, swaps.items, (uint32_t)swaps.n, &simulation));
        ASSERT_OK(
            np_place_swaps(&r.timeline, simulator, swaps.items, (uint32_t)swaps.n, &options, &error, &result, NULL));
        ASSERT_EQ(result.load, highest_load(&r.timeline, simulator, swaps.items, (uint32_t)swaps.n));
        ASSERT_LE(result.load, filled.peak);
        ASSERT_LE(result.bound, result.footprint);
        ASSERT_LT(result.footprint, filled.peak + filled.peak / 5);
        np_simulator_free(simulator);
        recorded_close(&r);
    }
    np_array_free(&np_memory_default, &swaps);
}

/* Blocks that live for two and a half periods have three places, all round: that is what their needs say. */
static void pinned_blocks_have_several_places(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_timeline_options options = {.alignment = 512, .slower = 1};
    np_place_options place_options = quick(4096);
    neap_trace *trace = make_training(&(training){.seed = 3, .n_layers = 4, .n_iterations = 8, .long_lives = 2});
    uint32_t n_pinned = 0;
    np_period period;
    np_timeline timeline;
    np_simulator *simulator;
    np_simulation simulation;
    np_place_result result;
    neap_error error;
    (void)state;
    ASSERT_TRUE(trace);
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
    for (size_t i = 0; i < timeline.blocks.n; i++) {
        n_pinned += timeline.blocks.items[i].pinned;
    }
    ASSERT_EQ(n_pinned, 2);
    ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
    ASSERT_OK(np_simulate(simulator, UINT64_MAX, NULL, 0, &simulation));
    ASSERT_OK(np_place_swaps(&timeline, simulator, NULL, 0, &place_options, &error, &result, NULL));
    ASSERT_EQ(result.load, highest_load(&timeline, simulator, NULL, 0));
    ASSERT_EQ(result.n_buffers, timeline.blocks.n + 2 * 2);
    ASSERT_GE(result.footprint, simulation.peak);
    np_simulator_free(simulator);
    np_timeline_free(&timeline);
    np_period_free(&period);
    neap_trace_free(trace);
}

/* ---- memory ---- */

typedef struct given {
    np_timeline timeline;
    np_swap swaps[MAX_SWAPS];
    uint32_t n;
} given;

static neap_status place_within(const neap_memory *memory, void *user)
{
    static const np_link link = {.out = 1, .in = 1};
    given *g = user;
    np_timeline timeline = g->timeline;
    np_place_options options = quick(4);
    np_simulator *simulator;
    np_simulation simulation;
    np_place_result result;
    neap_error error;
    neap_status status;
    options.seconds = 0.001;
    timeline.memory = memory;
    status = np_simulator_create(&timeline, &link, &simulator);
    if (status == NEAP_OK) {
        status = np_simulate(simulator, UINT64_MAX, g->swaps, g->n, &simulation);
        if (status == NEAP_OK) {
            status = np_place_swaps(&timeline, simulator, g->swaps, g->n, &options, &error, &result, NULL);
        }
        np_simulator_free(simulator);
    }
    return status;
}

static void fails_without_memory(void **state)
{
    static const np_link link = {.out = 1, .in = 1};
    np_rng rng = np_rng_make(1);
    given g;
    (void)state;
    make_random_timeline(&small, &rng, NULL, &g.timeline);
    g.n = random_swaps(&g.timeline, &link, &rng, g.swaps);
    ASSERT_GT(test_memory_fail_each(place_within, &g), 10);
    np_timeline_free(&g.timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_is_a_place),
        cmocka_unit_test(cliques_cost_more_than_the_load),
        cmocka_unit_test(gaps_of_a_block_have_their_own_parts),
        cmocka_unit_test(crossing_blocks_leave_and_return),
        cmocka_unit_test(crossing_blocks_leave_twice),
        cmocka_unit_test(loads_are_right),
        cmocka_unit_test(recordings_are_placed),
        cmocka_unit_test(pinned_blocks_have_several_places),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
