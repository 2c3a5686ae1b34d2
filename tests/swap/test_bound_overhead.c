#include "swap/bound_overhead.h"

#include <math.h>

#include "swap/bound.h"
#include "swap/fluid.h"
#include "testing.h"

static const np_link one_a_ns = {.out = 1, .in = 1};

static double overhead_of(const fluid_program *program, const np_link *link, uint64_t limit)
{
    np_timeline timeline;
    double overhead_ns = -1;
    fluid_timeline(program, &timeline);
    ASSERT_OK(np_bound_overhead(&timeline, link, limit, &overhead_ns));
    np_timeline_free(&timeline);
    return overhead_ns;
}

#define ASSERT_NEAR(a, b) ASSERT_TRUE(fabs((a) - (b)) < 1e-6)

/* ---- worked out by hand ---- */

/* A weight of 100 bytes is written by exec 0; execs 1 and 2 use a block of 80. Four execs of 10 ns, pauses of 5. */
static const fluid_program weight_and_block = {
    .n_execs = 4,
    .n_blocks = 2,
    .pause_ns = {5, 5, 5, 5},
    .duration_ns = {10, 10, 10, 10},
    .blocks = {{.bytes = 100, .persistent = true, .n_uses = 1, .uses = {{0, true}}},
               {.bytes = 80, .n_uses = 2, .uses = {{1, true}, {2, true}}}},
};

static void test_ways_out_and_in(void **state)
{
    (void)state;
    /* 5 ns out before exec 1, 20 ns in after exec 2: 180 - 5 and 180 - 20 are held for nothing. */
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 180), 0);
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 175), 0);
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 165), 10); /* out alone is late */
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 160), 15);
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 150), 25 + 10); /* and in: one after the other */
    ASSERT_NEAR(overhead_of(&weight_and_block, &one_a_ns, 100), 75 + 60);
    ASSERT_NEAR(overhead_of(&weight_and_block, &(np_link){.out = 5, .in = 1}, 150), 1 + 10);
    ASSERT_NEAR(overhead_of(&weight_and_block, &(np_link){.out = 1, .in = 2}, 130), 45 + 5);
}

static void test_below_the_floor(void **state)
{
    (void)state;
    ASSERT_TRUE(isinf(overhead_of(&weight_and_block, &one_a_ns, 99)));
    ASSERT_TRUE(isinf(overhead_of(&weight_and_block, &one_a_ns, 0)));
}

/* A block of 30 goes from one period's last exec into the next one's exec 1; there is no time around exec 0. */
static void test_window_across_the_end(void **state)
{
    fluid_program program = {
        .n_execs = 3,
        .n_blocks = 2,
        .duration_ns = {4, 10, 10},
        .blocks = {{.bytes = 30, .n_uses = 2, .uses = {{2, true}, {4, true}}},
                   {.bytes = 50, .n_uses = 1, .uses = {{0, true}}}},
    };
    (void)state;
    ASSERT_NEAR(overhead_of(&program, &one_a_ns, 80), 0);
    ASSERT_NEAR(overhead_of(&program, &one_a_ns, 62), 18 + 18); /* 18 bytes out before exec 0, and in after it */
    ASSERT_TRUE(fabs(fluid_overhead(&program, &one_a_ns, 62) - 36) < 1e-3);
}

static void test_bad_arguments(void **state)
{
    np_timeline timeline;
    double overhead_ns = 7;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_bound_overhead(&timeline, &(np_link){.out = 1, .in = -1}, 150, &overhead_ns));
    ASSERT_TRUE(overhead_ns == 7);
    np_timeline_free(&timeline);
    timeline = (np_timeline){.memory = np_memory_or_default(NULL)}; /* no execs */
    ASSERT_OK(np_bound_overhead(&timeline, &one_a_ns, 0, &overhead_ns));
    ASSERT_TRUE(overhead_ns == 0);
}

/* ---- against the optimum ---- */

typedef struct tally {
    uint32_t n_waiting; /* limits at which the optimum waits */
    uint32_t n_equal;   /* of these */
    double share;       /* sum of bound / optimum over these */
} tally;

static void compare_limit(const fluid_program *program, const np_link *link, uint64_t seed, uint64_t limit, tally *t)
{
    double bound = overhead_of(program, link, limit);
    double best = fluid_overhead(program, link, (double)limit);
    if (!(bound <= best + 2e-3)) { /* NAN too */
        test_fail(__FILE__, __LINE__, "seed %llu, limit %llu: bound %.4f above the optimum %.4f",
                  (unsigned long long)seed, (unsigned long long)limit, bound, best);
    }
    if (best > 0.01) {
        t->n_waiting++;
        t->n_equal += bound >= best - 2e-3;
        t->share += bound / best;
    }
}

static tally compare_many(const np_link *link)
{
    uint64_t n = TEST_SANITIZED ? 300 : 3000;
    tally t = {0};
    for (uint64_t seed = 0; seed < n; seed++) {
        np_rng rng = np_rng_make(seed);
        fluid_program program = fluid_random(&rng, 8, 6);
        np_timeline timeline;
        np_floor floor;
        uint64_t span;
        fluid_timeline(&program, &timeline);
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        span = timeline.peak_load - floor.bytes;
        np_timeline_free(&timeline);
        if (span > 0) {
            compare_limit(&program, link, seed, floor.bytes, &t);
            compare_limit(&program, link, seed, floor.bytes + np_rng_below(&rng, span), &t);
        }
    }
    ASSERT_GE(t.n_waiting, n / 3);
    return t;
}

static void test_never_above_the_optimum(void **state)
{
    static const np_link links[] = {{.out = 1000, .in = 1000}, {.out = 300, .in = 300}};
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        tally t = compare_many(&links[i]);
        ASSERT_GE(t.n_equal * 1000, t.n_waiting * 990);
        ASSERT_TRUE(t.share >= 0.998 * t.n_waiting);
    }
}

static void test_never_above_with_two_speeds(void **state)
{
    static const np_link links[] = {{.out = 1320, .in = 1210}, {.out = 700, .in = 1900}};
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        tally t = compare_many(&links[i]);
        ASSERT_GE(t.n_equal * 100, t.n_waiting * 85);
        ASSERT_TRUE(t.share >= 0.98 * t.n_waiting);
    }
}

static void test_never_above_on_a_shared_link(void **state)
{
    tally t = compare_many(&(np_link){.out = 550, .in = 550, .both = 1000});
    (void)state;
    ASSERT_TRUE(t.share >= 0.95 * t.n_waiting);
}

/* ---- many limits, and the traces ---- */

static void test_many_limits(void **state)
{
    const uint64_t limits[] = {180, 99, 100, 165, 150, 175, UINT64_MAX};
    double overheads_ns[7];
    np_timeline timeline;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_OK(np_bound_overheads(&timeline, &one_a_ns, limits, 7, overheads_ns));
    for (size_t i = 0; i < 7; i++) {
        double alone = overhead_of(&weight_and_block, &one_a_ns, limits[i]);
        ASSERT_TRUE(overheads_ns[i] == alone || fabs(overheads_ns[i] - alone) < 1e-9);
    }
    ASSERT_OK(np_bound_overheads(&timeline, &one_a_ns, NULL, 0, NULL));
    np_timeline_free(&timeline);
}

/* On a recording: none at the lowest peak without overhead, some just below, more and more further down, and at the
 * peak that an overhead allows at least that overhead. */
static void test_agrees_with_the_peak(void **state)
{
    const np_link link = {.out = 50, .in = 45};
    neap_trace *trace = NULL;
    neap_error error;
    np_period period;
    char path[TEST_PATH_BYTES];
    (void)state;
    test_data_path(path, "traces/vgg16-100-32.neap.gz");
    ASSERT_OK(neap_trace_read(path, NULL, &error, &trace));
    ASSERT_OK(np_period_find(trace, NULL, &period));
    for (int any = 0; any < 2; any++) {
        np_timeline_options options = {
            .alignment = 512, .slower = 1, .directions = any ? NP_DIRECTIONS_ANY : NP_DIRECTIONS_CAREFUL};
        np_timeline timeline;
        np_floor floor;
        uint64_t peak;
        uint64_t limits[22];
        double overheads_ns[22];
        ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        ASSERT_OK(np_bound_peak(&timeline, &link, 0, &peak));
        for (uint64_t i = 0; i <= 20; i++) {
            limits[i] = peak - (peak - floor.bytes) * i / 20;
        }
        limits[21] = peak - 512;
        ASSERT_OK(np_bound_overheads(&timeline, &link, limits, 22, overheads_ns));
        ASSERT_TRUE(overheads_ns[0] < 1e-6);
        ASSERT_TRUE(overheads_ns[21] > 1);
        for (int i = 1; i <= 20; i++) {
            ASSERT_TRUE(overheads_ns[i] > overheads_ns[i - 1]);
        }
        for (double overhead = 0.001; overhead < 1; overhead *= 3) {
            double overhead_ns;
            ASSERT_OK(np_bound_peak(&timeline, &link, overhead, &peak));
            ASSERT_OK(np_bound_overhead(&timeline, &link, peak, &overhead_ns));
            ASSERT_TRUE(peak == floor.bytes || overhead_ns >= 0.999 * overhead * timeline.period_ns);
        }
        np_timeline_free(&timeline);
    }
    np_period_free(&period);
    neap_trace_free(trace);
}

/* ---- memory ---- */

static neap_status bound_with(const neap_memory *memory, void *user)
{
    np_timeline timeline = *(const np_timeline *)user;
    double overhead_ns;
    timeline.memory = memory;
    return np_bound_overhead(&timeline, &one_a_ns, 120, &overhead_ns);
}

static void test_no_memory(void **state)
{
    np_timeline timeline;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_GE(test_memory_fail_each(bound_with, &timeline), 8);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways_out_and_in),
        cmocka_unit_test(test_below_the_floor),
        cmocka_unit_test(test_window_across_the_end),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_never_above_the_optimum),
        cmocka_unit_test(test_never_above_with_two_speeds),
        cmocka_unit_test(test_never_above_on_a_shared_link),
        cmocka_unit_test(test_many_limits),
        cmocka_unit_test(test_agrees_with_the_peak),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
