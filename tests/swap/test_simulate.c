/* Cases worked out by hand, then thousands at random against the naive simulator. The execs of the first take 10 ns each,
 * without a pause, unless they say otherwise. */
#include "swap/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "swap/make_timeline.h"
#include "swap/naive_simulator.h"
#include "testing.h"

enum { MAX_SWAPS = 64 };

static const double tens[16] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10};

#define SHAPE(n, shapes)                                                                                        \
    (timeline_shape)                                                                                            \
    {                                                                                                           \
        .n_execs = (n), .durations_ns = tens, .blocks = (shapes), .n_blocks = sizeof(shapes) / sizeof *(shapes) \
    }

typedef struct simulated {
    np_simulation simulation;
    np_absence absences[MAX_SWAPS];
} simulated;

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(b));
}

/* Keys where swaps have none: out when released, in when due. */
static simulated simulate(const timeline_shape *shape, const np_link *link, uint64_t limit, np_swap *swaps, uint32_t n)
{
    np_timeline timeline;
    np_simulator *simulator;
    simulated s = {0};
    make_timeline(shape, NULL, &timeline);
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = &timeline.gaps.items[swaps[i].gap];
        ASSERT_LT(swaps[i].gap, timeline.gaps.n);
        if (swaps[i].out_key == 0) {
            swaps[i].out_key = gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(&timeline, gap->from);
        }
        swaps[i].in_key = swaps[i].in_key == 0 ? gap->due_ns : swaps[i].in_key;
    }
    ASSERT_OK(np_simulator_create(&timeline, link, &simulator));
    ASSERT_OK(np_simulate(simulator, limit, swaps, n, &s.simulation));
    for (uint32_t i = 0; i < n && s.simulation.possible; i++) {
        s.absences[i] = np_simulator_absence(simulator, i);
    }
    np_simulator_free(simulator);
    np_timeline_free(&timeline);
    return s;
}

#define ASSERT_PERIOD(s, ns, waited)                                                             \
    (ASSERT_TRUE((s).simulation.possible), ASSERT_TRUE(is_near((s).simulation.period_ns, (ns))), \
     ASSERT_TRUE(is_near((s).simulation.waited_ns, (waited))),                                   \
     ASSERT_TRUE(is_near((s).simulation.overhead, (waited) / ((ns) - (waited)))))

#define ASSERT_ABSENCE(s, swap, from, to)                \
    do {                                                 \
        ASSERT_EQ((s).absences[swap].absent_from, from); \
        ASSERT_EQ((s).absences[swap].back_from, to);     \
    } while (0)

/* ---- by hand ---- */

/* 10 bytes used at execs 0 and 4 and 10 more at exec 2. */
static const block_shape two_blocks[] = {
    {.bytes = 10, .n_uses = 2, .uses = {0, 4}},
    {.bytes = 10, .n_uses = 1, .uses = {2}},
};

/* Out 10-20, in 30-40: nothing waits, and 10 bytes are enough. */
static void hides_a_swap(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 2};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 10);
    ASSERT_EQ(s.simulation.bytes_out, 10);
    ASSERT_EQ(s.simulation.bytes_in, 10);
    ASSERT_ABSENCE(s, 0, 2, 3);
    s = simulate(&shape, &link, UINT64_MAX, NULL, 0); /* and without it 20 */
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 20);
    ASSERT_EQ(s.simulation.bytes_in, 0);
}

/* Out 10-30, and exec 1 waits for it though there is memory; exec 2 would have run from 20 on otherwise. */
static void an_exec_waits_for_a_copy_out(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 0.5, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 2};
    simulated s = simulate(&shape, &link, UINT64_MAX, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_ABSENCE(s, 0, 3, 3);
    swap.out_before = 1;
    s = simulate(&shape, &link, UINT64_MAX, &swap, 1);
    ASSERT_PERIOD(s, 70.0, 20.0);
    ASSERT_ABSENCE(s, 0, 1, 3);
    swap.out_before = 2;
    s = simulate(&shape, &link, UINT64_MAX, &swap, 1);
    ASSERT_PERIOD(s, 60.0, 10.0);
    ASSERT_ABSENCE(s, 0, 2, 3);
}

static void assert_moment(np_moment moment, double start_ns, double end_ns)
{
    ASSERT_TRUE(is_near(moment.start_ns, start_ns));
    ASSERT_TRUE(is_near(moment.end_ns, end_ns));
}

/* The same once more, with an eye on the clock; then with the copy in at half the speed, 30-50, which exec 4 waits for. The
 * result is that of np_simulate. */
static void tells_when(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    (void)state;
    for (int slow = 0; slow <= 1; slow++) {
        np_link link = {.out = 1, .in = slow ? 0.5 : 1};
        np_swap swap = {.bytes = 10, .in_after = 2, .out_key = 10, .in_key = 40};
        np_timeline timeline;
        np_simulator *simulator;
        np_simulation simulation;
        np_moments moments;
        make_timeline(&shape, NULL, &timeline);
        ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
        ASSERT_OK(np_simulate_moments(simulator, 10, &swap, 1, &simulation, &moments));
        ASSERT_TRUE(is_near(simulation.period_ns, slow ? 60 : 50));
        assert_moment(moments.outs[0], 10, 20);
        assert_moment(moments.ins[0], 30, slow ? 50 : 40);
        for (int k = 0; k < 4; k++) {
            assert_moment(moments.execs[k], 10 * k, 10 * k + 10);
        }
        assert_moment(moments.execs[4], slow ? 50 : 40, slow ? 60 : 50);
        np_moments_free(&moments);
        ASSERT_OK(np_simulate_moments(simulator, 9, &swap, 1, &simulation, &moments)); /* no memory for exec 0 */
        ASSERT_TRUE(!simulation.possible);
        ASSERT_TRUE(moments.execs == NULL && moments.outs == NULL && moments.ins == NULL);
        np_simulator_free(simulator);
        np_timeline_free(&timeline);
    }
}

/* In at half the speed: 30-50, and exec 4 waits from 40 on. */
static void waits_for_a_copy_in(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 1, .in = 0.5};
    np_swap swap = {.bytes = 10, .in_after = 2};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 60.0, 10.0);
    ASSERT_ABSENCE(s, 0, 2, 3);
}

/* Out at half the speed: 10-30. With a limit of 10 exec 2 waits from 20 on for its block's memory; it runs 30-40, the copy
 * in 40-50, exec 4 50-60. Without a limit exec 2 begins at 20, in 30-40. */
static void a_malloc_waits_for_a_copy_out(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 0.5, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 2};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 60.0, 10.0);
    ASSERT_EQ(s.simulation.peak, 10);
    ASSERT_ABSENCE(s, 0, 2, 3);
    s = simulate(&shape, &link, UINT64_MAX, &swap, 1);
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 20);
    ASSERT_ABSENCE(s, 0, 3, 3); /* never gone for a whole exec */
}

/* 10 more bytes at execs 1 and 2, limit 19: exec 1 waits for the copy out, 10-20, and runs 20-30. The copy in may begin
 * then but finds memory only when exec 2 has ended, at 40; it ends with exec 3, at 50. */
static void a_copy_in_waits_for_memory(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 2, .uses = {0, 4}},
        {.bytes = 10, .n_uses = 2, .uses = {1, 2}},
    };
    timeline_shape shape = SHAPE(5, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 1};
    simulated s = simulate(&shape, &link, 19, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 60.0, 10.0);
    ASSERT_EQ(s.simulation.peak, 10);
    ASSERT_ABSENCE(s, 0, 1, 3);
    s = simulate(&shape, &link, 20, &swap, 1); /* out 10-20 beside exec 1, back from 20 on */
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 20);
    ASSERT_ABSENCE(s, 0, 2, 2);
}

/* A persistent block that is only read, at exec 2, comes in from 10 on, beside the first block's copy out. Together they
 * reach 1 byte a ns, a half each. 5 bytes: in 10-20, in time; out 10 bytes at 1/2 until 20, then 5 left at full speed:
 * 25. Exec 2 needs that memory: it runs 25-35, the copy in 35-45, exec 4 45-55. 10 bytes: both end at 30. */
static void directions_share_the_link(void **state)
{
    block_shape blocks[] = {
        two_blocks[0], two_blocks[1], {.bytes = 5, .persistent = true, .n_uses = 1, .uses = {2}, .reads = 1}};
    timeline_shape shape = SHAPE(5, blocks);
    np_link link = {.out = 1, .in = 1, .both = 1};
    np_swap swaps[] = {{.bytes = 10, .in_after = 2}, {.bytes = 5, .gap = 1, .in_after = 5}};
    simulated s = simulate(&shape, &link, 15, swaps, 2);
    (void)state;
    ASSERT_PERIOD(s, 55.0, 5.0);
    ASSERT_EQ(s.simulation.peak, 15);
    ASSERT_EQ(s.simulation.bytes_out, 10); /* the second never leaves, it is dropped */
    ASSERT_EQ(s.simulation.bytes_in, 15);
    ASSERT_ABSENCE(s, 0, 2, 3);
    ASSERT_ABSENCE(s, 1, 3, 6);
    link.both = 0;
    s = simulate(&shape, &link, 15, swaps, 2);
    ASSERT_PERIOD(s, 50.0, 0.0);
    link.both = 2; /* a half of which is as much as each has */
    s = simulate(&shape, &link, 15, swaps, 2);
    ASSERT_PERIOD(s, 50.0, 0.0);
    blocks[2].bytes = swaps[1].bytes = 10;
    link.both = 1;
    s = simulate(&shape, &link, 20, swaps, 2); /* exec 2 at 30, in 40-50 */
    ASSERT_PERIOD(s, 60.0, 10.0);
}

/* 3 ns before the bytes: out 10-23, exec 2 23-33, in 33-46, exec 4 46-56. */
static void copies_have_a_latency(void **state)
{
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 1, .in = 1, .latency_ns = 3};
    np_swap swap = {.bytes = 10, .in_after = 2};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 56.0, 6.0);
}

/* 2 ns before every exec: exec 2 begins at 26, out ended at 22 with exec 1 at 24, in 36-46, exec 4 at 50. A copy out of 12
 * bytes ends at 24. Of 14, at 26, just in time; of 15, exec 2 waits for 1. */
static void execs_pause(void **state)
{
    block_shape blocks[] = {two_blocks[0], two_blocks[1]};
    timeline_shape shape = SHAPE(5, blocks);
    np_link link = {.out = 1, .in = 2};
    shape.pause_ns = 2;
    (void)state;
    for (uint64_t bytes = 10; bytes <= 15; bytes++) {
        np_swap swap = {.bytes = bytes, .in_after = 2};
        simulated s;
        blocks[0].bytes = bytes;
        s = simulate(&shape, &link, 15, &swap, 1);
        ASSERT_PERIOD(s, bytes == 15 ? 61.0 : 60.0, bytes == 15 ? 1.0 : 0.0);
        ASSERT_ABSENCE(s, 0, 2, 3);
    }
}

/* A persistent block used at exec 1 only: out 20-30, in from the end of exec 4 to the end of exec 0 of the next period. */
static void a_swap_wraps_round(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 10, .persistent = true, .n_uses = 1, .uses = {1}},
        {.bytes = 10, .n_uses = 1, .uses = {3}},
    };
    timeline_shape shape = SHAPE(5, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 4};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 50.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 10);
    ASSERT_ABSENCE(s, 0, 3, 5);
    swap.in_after = 5; /* 10-20: exec 1 waits for all of it */
    s = simulate(&shape, &link, 10, &swap, 1);
    ASSERT_PERIOD(s, 60.0, 10.0);
    ASSERT_ABSENCE(s, 0, 3, 6);
}

/* Written at exec 0, read at 2, used at 5. The copy out goes 10-30 while the block is still there; its memory is free when
 * exec 2 has ended, at 30, for another 10 bytes at exec 3. Were it written at exec 2: out 30-50, exec 3 50-60, in and exec 4
 * 60-70, exec 5 70-80. */
static void leaves_early_after_a_read(void **state)
{
    block_shape blocks[] = {
        {.bytes = 10, .n_uses = 3, .uses = {0, 2, 5}, .reads = 2},
        {.bytes = 10, .n_uses = 1, .uses = {3}},
    };
    timeline_shape shape = SHAPE(6, blocks);
    np_link link = {.out = 0.5, .in = 1};
    np_swap swap = {.bytes = 10, .gap = 1, .in_after = 3};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_PERIOD(s, 60.0, 0.0);
    ASSERT_EQ(s.simulation.peak, 10);
    ASSERT_ABSENCE(s, 0, 3, 4);
    blocks[0].reads = 0;
    swap.out_key = swap.in_key = 0;
    s = simulate(&shape, &link, 10, &swap, 1);
    ASSERT_PERIOD(s, 80.0, 20.0);
    ASSERT_ABSENCE(s, 0, 3, 4);
}

/* A persistent block read at exec 1 and written at exec 5. The gap between them is released in the period before, where
 * the copy out goes 60-70: long over when the read is, so the block is absent from exec 2. In 40-50. */
static void leaves_in_the_period_before(void **state)
{
    static const block_shape blocks[] = {{.bytes = 10, .persistent = true, .n_uses = 2, .uses = {1, 5}, .reads = 1}};
    timeline_shape shape = SHAPE(8, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 3};
    simulated s = simulate(&shape, &link, UINT64_MAX, &swap, 1);
    (void)state;
    ASSERT_TRUE(is_near(swap.out_key, 60 - 80));
    ASSERT_PERIOD(s, 80.0, 0.0);
    ASSERT_ABSENCE(s, 0, 2, 4);
}

/* Gaps 0-3 and 3-6 of one block. If exec 3 only reads, the host still has the bytes: they are dropped when it has ended.
 * If it writes they are copied again, 40-50. A part is always copied: nobody knows whether it is the same part. */
static void unchanged_blocks_are_copied_once(void **state)
{
    block_shape blocks[] = {{.bytes = 10, .n_uses = 3, .uses = {0, 3, 6}, .reads = 2}};
    timeline_shape shape = SHAPE(8, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swaps[] = {{.bytes = 10, .in_after = 1}, {.bytes = 10, .gap = 1, .in_after = 4}};
    simulated s = simulate(&shape, &link, UINT64_MAX, swaps, 2);
    (void)state;
    ASSERT_PERIOD(s, 80.0, 0.0);
    ASSERT_EQ(s.simulation.bytes_out, 10);
    ASSERT_EQ(s.simulation.bytes_in, 20);
    ASSERT_ABSENCE(s, 1, 4, 5);
    blocks[0].reads = 0;
    swaps[1].out_key = 0;
    s = simulate(&shape, &link, UINT64_MAX, swaps, 2);
    ASSERT_EQ(s.simulation.bytes_out, 20);
    ASSERT_ABSENCE(s, 1, 5, 5);
    blocks[0].reads = 2;
    swaps[0].bytes = swaps[1].bytes = 9;
    s = simulate(&shape, &link, UINT64_MAX, swaps, 2);
    ASSERT_EQ(s.simulation.bytes_out, 18);
}

/* The same for a block that lives across the period's end: made at exec 5, used at exec 2 of the next period and at 4.
 * What exec 2 writes must be copied though exec 5 comes later in the period. */
static void crossing_blocks_change_too(void **state)
{
    block_shape blocks[] = {{.bytes = 10, .n_uses = 3, .uses = {5, 10, 12}}};
    timeline_shape shape = SHAPE(8, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swaps[] = {{.bytes = 10, .in_after = 7}, {.bytes = 10, .gap = 1, .in_after = 2}};
    simulated s = simulate(&shape, &link, UINT64_MAX, swaps, 2);
    (void)state;
    ASSERT_EQ(s.simulation.bytes_out, 20);
    ASSERT_PERIOD(s, 90.0, 10.0); /* out 30-40, in 40-50, where exec 4 could begin at 40 */
    blocks[0].reads = 2;
    swaps[1].out_key = 0;
    s = simulate(&shape, &link, UINT64_MAX, swaps, 2);
    ASSERT_EQ(s.simulation.bytes_out, 10);
    ASSERT_PERIOD(s, 80.0, 0.0);
}

/* 12 bytes in parts of 8 and 4: out 10-18 and 18-22. 8 bytes at exec 2 fit at 20 beside the 4. In 30-38 and 38-42 in the
 * order of the keys, so exec 4 waits for 2. */
static void parts_go_one_by_one(void **state)
{
    static const block_shape blocks[] = {
        {.bytes = 12, .n_uses = 2, .uses = {0, 4}},
        {.bytes = 8, .n_uses = 1, .uses = {2}},
    };
    timeline_shape shape = SHAPE(5, blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swaps[] = {{.bytes = 8, .in_after = 2}, {.bytes = 4, .in_after = 2, .in_key = 35}};
    simulated s = simulate(&shape, &link, 12, swaps, 2);
    (void)state;
    ASSERT_PERIOD(s, 52.0, 2.0);
    ASSERT_EQ(s.simulation.peak, 12);
    ASSERT_ABSENCE(s, 0, 2, 3);
    ASSERT_ABSENCE(s, 1, 3, 3); /* in at 30 already: its key is the lower one */
}

/* A copy in that comes back too early takes the last memory for good. */
static void halts(void **state)
{
    static const block_shape persistent[] = {{.bytes = 10, .persistent = true, .n_uses = 1, .uses = {1}}};
    timeline_shape shape = SHAPE(5, two_blocks);
    np_link link = {.out = 1, .in = 1};
    np_swap swap = {.bytes = 10, .in_after = 0};
    simulated s = simulate(&shape, &link, 10, &swap, 1);
    (void)state;
    ASSERT_FALSE(s.simulation.possible);
    ASSERT_EQ(s.simulation.halted_at, 2);
    ASSERT_TRUE(s.simulation.overhead == INFINITY);
    s = simulate(&shape, &link, 19, NULL, 0);
    ASSERT_FALSE(s.simulation.possible);
    ASSERT_EQ(s.simulation.halted_at, 2);
    s = simulate(&shape, &link, 9, &swap, 1);
    ASSERT_FALSE(s.simulation.possible);
    ASSERT_EQ(s.simulation.halted_at, 0);
    shape = SHAPE(5, persistent); /* nothing is ever taken: it is too much from the beginning */
    s = simulate(&shape, &link, 9, NULL, 0);
    ASSERT_FALSE(s.simulation.possible);
    s = simulate(&shape, &link, 10, NULL, 0);
    ASSERT_PERIOD(s, 50.0, 0.0);
}

/* Ten persistent blocks of 11 bytes, used in turn: their copies out take 110 ns of every period of 100. The queue falls
 * behind by 10 ns a period, and for long nobody notices. */
static void a_queue_falls_behind(void **state)
{
    block_shape blocks[10] = {{0}};
    timeline_shape shape = SHAPE(10, blocks);
    np_link link = {.out = 1, .in = 100};
    np_swap swaps[10];
    simulated s;
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        blocks[i] = (block_shape){.bytes = 11, .persistent = true, .n_uses = 1, .uses = {i}};
        swaps[i] = (np_swap){.bytes = 11, .gap = i, .in_after = i};
    }
    s = simulate(&shape, &link, UINT64_MAX, swaps, 10);
    ASSERT_PERIOD(s, 110.0, 10.0);
}

/* ---- against the naive simulator ---- */

/* Some gaps, whole or in parts, in the paper's order or in any. */
static uint32_t random_swaps(const np_timeline *timeline, const np_link *link, np_rng *rng, np_swap *swaps)
{
    uint32_t n = 0;
    uint32_t share = 1 + (uint32_t)np_rng_below(rng, 4);
    bool in_any_order = np_rng_below(rng, 4) == 0;
    for (uint32_t g = 0; g < timeline->gaps.n; g++) {
        uint64_t left = np_rng_below(rng, 4) < share ? timeline->gaps.items[g].bytes : 0;
        while (left > 0 && n < MAX_SWAPS) {
            uint64_t bytes = np_rng_below(rng, 3) ? left : 1 + np_rng_below(rng, left);
            swaps[n++] = (np_swap){.bytes = bytes, .gap = g};
            left = np_rng_below(rng, 4) ? left - bytes : 0;
        }
    }
    ASSERT_OK(np_schedule_swaps(timeline, link, swaps, n));
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = &timeline->gaps.items[swaps[i].gap];
        double begin = np_timeline_start(timeline, gap->from);
        uint64_t span = (uint64_t)(gap->due_ns - begin) / 2;
        if (np_rng_below(rng, 4) == 0) {
            swaps[i].in_after = gap->from + (uint32_t)np_rng_below(rng, gap->to - gap->from);
        }
        if (np_rng_below(rng, 4) == 0) {
            swaps[i].out_before = gap->from + 1 + (uint32_t)np_rng_below(rng, gap->to - gap->from - 1);
        }
        if (in_any_order) {
            swaps[i].out_key = begin + (double)np_rng_below(rng, span + 1);
            swaps[i].in_key = gap->due_ns - (double)np_rng_below(rng, span + 1);
        }
    }
    return n;
}

/* Sums of powers of two are exact, so equal times are found equal, and all that happens at one moment is put to the
 * test. Other speeds have no equal times, and nothing to forgive. */
static np_link random_link(np_rng *rng, bool exact)
{
    static const double speeds[] = {0.25, 0.5, 1, 2, 4, 8, 16, 32};
    np_link link = {.out = 0.3 + 20 * np_rng_unit(rng), .in = 0.3 + 20 * np_rng_unit(rng)};
    link.both = (link.out + link.in) * (0.3 + 0.7 * np_rng_unit(rng));
    if (exact) {
        link.out = speeds[np_rng_below(rng, 8)];
        link.in = speeds[np_rng_below(rng, 8)];
        link.both = speeds[np_rng_below(rng, 8)];
    }
    link.both = np_rng_below(rng, 2) ? link.both : 0;
    link.latency_ns = np_rng_below(rng, 2) ? (double)np_rng_below(rng, 4) : 0;
    return link;
}

static void assert_same(const np_timeline *timeline, uint64_t limit, bool exact, const np_simulation *got,
                        const naive_result *wanted)
{
    ASSERT_EQ(got->possible, wanted->possible);
    if (!wanted->possible) {
        ASSERT_EQ(got->halted_at, wanted->halted_at);
        return;
    }
    ASSERT_TRUE(is_near(got->period_ns, wanted->period_ns));
    ASSERT_TRUE(got->overhead >= 0);
    ASSERT_TRUE(is_near(got->overhead, wanted->period_ns / timeline->period_ns - 1));
    ASSERT_TRUE(is_near(got->waited_ns, wanted->period_ns - timeline->period_ns));
    ASSERT_LE(got->peak, limit);
    if (exact) { /* what is taken and what is freed at one moment: the one may come before the other */
        ASSERT_GE(got->peak, wanted->peak);
    } else {
        ASSERT_EQ(got->peak, wanted->peak);
    }
    ASSERT_EQ(got->bytes_out, wanted->bytes_out);
    ASSERT_EQ(got->bytes_in, wanted->bytes_in);
}

static void assert_absences(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                            uint32_t n_swaps, const naive_result *wanted)
{
    for (uint32_t i = 0; i < n_swaps; i++) {
        np_absence got = np_simulator_absence(simulator, i);
        const naive_absence *naive = &wanted->absences[i];
        uint32_t to = timeline->gaps.items[swaps[i].gap].to;
        uint32_t absent_from = got.absent_from < to ? got.absent_from : to;
        uint32_t back_from = got.back_from < to ? got.back_from : to;
        ASSERT_EQ(absent_from, naive->absent_from);
        if (naive->tie) {
            ASSERT_LE(back_from, naive->back_from);
            ASSERT_GE(back_from + 1, naive->back_from);
        } else {
            ASSERT_EQ(back_from, naive->back_from);
        }
    }
}

typedef struct tally {
    uint32_t n_halted, n_waiting, n_hidden, n_cyclic;
} tally;

static void compare_once(np_rng *rng, bool exact, tally *count)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 12, .max_bytes = 64, .reads = true};
    np_link link = random_link(rng, exact);
    np_timeline timeline;
    np_simulator *simulator;
    np_simulation got;
    naive_result wanted;
    np_swap swaps[MAX_SWAPS];
    uint64_t limit;
    uint32_t n;
    make_random_timeline(&small, rng, NULL, &timeline);
    n = random_swaps(&timeline, &link, rng, swaps);
    limit = np_rng_below(rng, 3) ? timeline.peak_load * (30 + np_rng_below(rng, 80)) / 100 : UINT64_MAX;
    ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
    ASSERT_OK(np_simulate(simulator, limit, swaps, n, &got));
    wanted = naive_simulate(&timeline, &link, limit, swaps, n, 60);
    assert_same(&timeline, limit, exact, &got, &wanted);
    if (wanted.possible && wanted.n_cycle == 1) {
        assert_absences(&timeline, simulator, swaps, n, &wanted);
    }
    count->n_halted += !wanted.possible;
    count->n_waiting += wanted.possible && got.overhead > 0;
    count->n_hidden += wanted.possible && got.overhead == 0;
    count->n_cyclic += wanted.n_cycle > 1;
    free(wanted.absences);
    np_simulator_free(simulator);
    np_timeline_free(&timeline);
}

static void equals_the_naive_one(void **state)
{
    uint32_t n_rounds = TEST_SANITIZED ? 1000 : 6000;
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        tally count = {0};
        np_rng rng = np_rng_make(11);
        for (uint32_t i = 0; i < n_rounds; i++) {
            compare_once(&rng, exact, &count);
        }
        ASSERT_GT(count.n_halted, n_rounds / 10); /* it saw a bit of everything */
        ASSERT_GT(count.n_waiting, n_rounds / 10);
        ASSERT_GT(count.n_hidden, n_rounds / 10);
    }
}

/* ---- the rest ---- */

/* One simulator serves many simulations, and forgets the ones before. */
static void starts_afresh(void **state)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 12, .max_bytes = 64, .reads = true};
    np_rng rng = np_rng_make(5);
    (void)state;
    for (int round = 0; round < 50; round++) {
        np_link link = random_link(&rng, false);
        np_timeline timeline;
        np_simulator *used;
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_simulator_create(&timeline, &link, &used));
        for (int i = 0; i < 10; i++) {
            np_swap swaps[MAX_SWAPS];
            uint32_t n = random_swaps(&timeline, &link, &rng, swaps);
            uint64_t limit = timeline.peak_load * (50 + np_rng_below(&rng, 60)) / 100;
            np_simulator *fresh;
            np_simulation a, b;
            ASSERT_OK(np_simulator_create(&timeline, &link, &fresh));
            ASSERT_OK(np_simulate(fresh, limit, swaps, n, &a));
            ASSERT_OK(np_simulate(used, limit, swaps, n, &b));
            ASSERT_EQ(a.possible, b.possible);
            ASSERT_TRUE(a.period_ns == b.period_ns);
            ASSERT_EQ(a.peak, b.peak);
            for (uint32_t k = 0; k < n && a.possible; k++) {
                ASSERT_EQ(np_simulator_absence(used, k).absent_from, np_simulator_absence(fresh, k).absent_from);
                ASSERT_EQ(np_simulator_absence(used, k).back_from, np_simulator_absence(fresh, k).back_from);
            }
            np_simulator_free(fresh);
        }
        np_simulator_free(used);
        np_timeline_free(&timeline);
    }
}

typedef struct given {
    np_timeline timeline;
    np_swap swaps[MAX_SWAPS];
    uint32_t n;
} given;

static neap_status simulate_within(const neap_memory *memory, void *user)
{
    given *g = user;
    np_link link = {.out = 1, .in = 1};
    np_timeline timeline = g->timeline; /* the simulator takes its memory from there */
    np_simulator *simulator;
    np_simulation result;
    neap_status status;
    timeline.memory = memory;
    status = np_simulator_create(&timeline, &link, &simulator);
    if (status == NEAP_OK) {
        status = np_simulate(simulator, UINT64_MAX, g->swaps, g->n, &result);
        np_simulator_free(simulator);
    }
    return status;
}

static void fails_without_memory(void **state)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 12, .max_bytes = 64, .reads = true};
    np_rng rng = np_rng_make(1);
    np_link link = {.out = 1, .in = 1};
    given g;
    (void)state;
    make_random_timeline(&small, &rng, NULL, &g.timeline);
    g.n = random_swaps(&g.timeline, &link, &rng, g.swaps);
    ASSERT_GT(g.n, 0);
    ASSERT_GT(test_memory_fail_each(simulate_within, &g), 5);
    np_timeline_free(&g.timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_a_swap),
        cmocka_unit_test(an_exec_waits_for_a_copy_out),
        cmocka_unit_test(tells_when),
        cmocka_unit_test(waits_for_a_copy_in),
        cmocka_unit_test(a_malloc_waits_for_a_copy_out),
        cmocka_unit_test(a_copy_in_waits_for_memory),
        cmocka_unit_test(directions_share_the_link),
        cmocka_unit_test(copies_have_a_latency),
        cmocka_unit_test(execs_pause),
        cmocka_unit_test(a_swap_wraps_round),
        cmocka_unit_test(leaves_early_after_a_read),
        cmocka_unit_test(leaves_in_the_period_before),
        cmocka_unit_test(unchanged_blocks_are_copied_once),
        cmocka_unit_test(crossing_blocks_change_too),
        cmocka_unit_test(parts_go_one_by_one),
        cmocka_unit_test(halts),
        cmocka_unit_test(a_queue_falls_behind),
        cmocka_unit_test(equals_the_naive_one),
        cmocka_unit_test(starts_afresh),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
