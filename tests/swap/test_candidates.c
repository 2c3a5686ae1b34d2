#include "swap/candidates.h"

#include "swap/bound.h"
#include "swap/make_timeline.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 24, .max_blocks = 20, .max_bytes = 100, .reads = true};

/* Six execs of 10 ns. Needs, exec by exec:
 *   0: a 10 made at 0, read at 5      10 10 10 10 10 10
 *   1: a  7 made at 1, read at 2          7  7
 *   2: a  4 persistent, used at 1 and 5   4  4  4  4  4  4
 *   3: a  3 persistent, used at 4         3  3  3  3  3  3
 *   4: a  8 made at 3, its only use                8
 *   5: a  2 made at 2, read at 4                2  2  2
 *   sum                                  17 24 26 27 19 17   the peak is exec 3 */
static const double six[] = {10, 10, 10, 10, 10, 10};
static const block_shape blocks[] = {
    {.bytes = 10, .n_uses = 2, .uses = {0, 5}},
    {.bytes = 7, .n_uses = 2, .uses = {1, 2}},
    {.bytes = 4, .persistent = true, .n_uses = 2, .uses = {1, 5}},
    {.bytes = 3, .persistent = true, .n_uses = 1, .uses = {4}},
    {.bytes = 8, .n_uses = 1, .uses = {3}},
    {.bytes = 2, .n_uses = 2, .uses = {2, 4}},
};
static const timeline_shape example = {.n_execs = 6, .durations_ns = six, .blocks = blocks, .n_blocks = 6};

static void find(const np_timeline *timeline, np_scope scope, uint64_t min_bytes, np_candidates *candidates)
{
    ASSERT_OK(np_candidates_find(timeline, scope, min_bytes, candidates));
    ASSERT_TRUE(np_candidates_is_valid(candidates, timeline));
}

/* Gaps, in order: block 0 (0..5), block 2 (1..5 and 5..7: over the end to exec 1), block 3 (4..10), block 5 (2..4). */
static void peak_takes_the_gap_around_it(void **state)
{
    np_timeline timeline;
    np_candidates candidates;
    (void)state;
    make_timeline(&example, NULL, &timeline);
    ASSERT_EQ(timeline.gaps.n, 5);
    find(&timeline, NP_SCOPE_PEAK, 1, &candidates);
    ASSERT_EQ(candidates.peaks.n, 1);
    ASSERT_EQ(candidates.peaks.items[0], 3);
    ASSERT_EQ(candidates.gaps.n, 4); /* not block 2's gap from 5 to 7, which is over before the peak */
    ASSERT_EQ(candidates.gaps.items[0], 0);
    ASSERT_EQ(candidates.gaps.items[1], 1);
    ASSERT_EQ(candidates.gaps.items[2], 3); /* wraps */
    ASSERT_EQ(candidates.gaps.items[3], 4);
    /* 14 at 0 (block 3 away), 11 at 1 (0 and 3), 9 at 2 (0, 2, 3), 8 at 3 (all but block 4), 5 at 4, 14 at 5 */
    ASSERT_EQ(candidates.load_min, 14);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

static void tiny_blocks_stay(void **state)
{
    np_timeline timeline;
    np_candidates candidates;
    (void)state;
    make_timeline(&example, NULL, &timeline);
    find(&timeline, NP_SCOPE_PEAK, 3, &candidates);
    ASSERT_EQ(candidates.gaps.n, 3);
    np_candidates_free(&candidates);
    find(&timeline, NP_SCOPE_LARGE, 3, &candidates);
    ASSERT_EQ(candidates.gaps.n, 4);
    np_candidates_free(&candidates);
    find(&timeline, NP_SCOPE_ALL, 3, &candidates);
    ASSERT_EQ(candidates.gaps.n, 5);
    np_candidates_free(&candidates);
    find(&timeline, NP_SCOPE_PEAK, 100, &candidates);
    ASSERT_EQ(candidates.gaps.n, 0);
    ASSERT_EQ(candidates.load_min, 27);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

/* With every gap: 10 at 0 (blocks 2 and 3 away), 11 at 1, 9 at 2, 8 at 3, 5 at 4, 14 at 5. Block 0, 4 at exec 5: the
 * floor is 14, and so is the load_min of all scopes; with block 2 alone out of the peak's, exec 0 needs 14. */
static void the_limit_widens_the_scope(void **state)
{
    np_timeline timeline;
    np_candidates candidates;
    (void)state;
    make_timeline(&example, NULL, &timeline);
    ASSERT_OK(np_candidates_for_limit(&timeline, 1, 14, &candidates));
    ASSERT_EQ(candidates.scope, NP_SCOPE_PEAK);
    np_candidates_free(&candidates);
    ASSERT_STATUS(NEAP_NO_PLAN, np_candidates_for_limit(&timeline, 1, 13, &candidates));
    ASSERT_OK(np_candidates_for_limit(&timeline, 11, 27, &candidates)); /* above the peak: nothing to do */
    ASSERT_EQ(candidates.gaps.n, 0);
    np_candidates_free(&candidates);
    ASSERT_OK(np_candidates_for_limit(&timeline, 11, 26, &candidates)); /* all blocks are tiny */
    ASSERT_EQ(candidates.scope, NP_SCOPE_ALL);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

static void load_min_is_what_remains(void **state)
{
    np_rng rng = np_rng_make(1);
    (void)state;
    for (int round = 0; round < 300; round++) {
        np_timeline timeline;
        np_candidates candidates;
        np_floor floor;
        make_random_timeline(&small, &rng, NULL, &timeline);
        for (np_scope scope = NP_SCOPE_PEAK; scope <= NP_SCOPE_ALL; scope++) {
            uint64_t highest = 0;
            find(&timeline, scope, 1 + np_rng_below(&rng, 60), &candidates);
            for (uint32_t k = 0; k < timeline.n_execs; k++) {
                uint64_t load = load_with_gaps_away(&timeline, k, candidates.gaps.items, candidates.gaps.n);
                highest = load > highest ? load : highest;
            }
            ASSERT_EQ(candidates.load_min, highest);
            np_candidates_free(&candidates);
        }
        find(&timeline, NP_SCOPE_ALL, 1, &candidates);
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        ASSERT_EQ(candidates.load_min, floor.bytes);
        np_candidates_free(&candidates);
        np_timeline_free(&timeline);
    }
}

/* Three iterations in a period, the third with more in it: each has a peak, and gaps around it. */
static void each_iteration_has_its_peak(void **state)
{
    char path[TEST_PATH_BYTES];
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
    np_candidates candidates;
    np_timeline_options options = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_CAREFUL};
    (void)state;
    test_data_path(path, "traces/resnet18-100-log.neap.gz");
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
    ASSERT_EQ(period.variants.n, 3);
    find(&timeline, NP_SCOPE_PEAK, NP_CANDIDATE_BYTES, &candidates);
    ASSERT_EQ(candidates.peaks.n, 3);
    for (size_t i = 0; i < 3; i++) {
        uint64_t needed = timeline.needed.items[candidates.peaks.items[i]];
        ASSERT_GT(needed, timeline.needed.items[candidates.peaks.items[0]] / 10 * 9);
    }
    ASSERT_LT(candidates.load_min, timeline.needed.items[candidates.peaks.items[0]] / 2);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
    np_period_free(&period);
    neap_trace_free(trace);
}

static neap_status find_for_limit(const neap_memory *memory, void *user)
{
    np_timeline timeline = *(np_timeline *)user;
    np_candidates candidates;
    neap_status status;
    timeline.memory = memory;
    status = np_candidates_for_limit(&timeline, 11, 26, &candidates);
    if (status == NEAP_OK) {
        np_candidates_free(&candidates);
    }
    return status;
}

static void survives_no_memory(void **state)
{
    np_timeline timeline;
    (void)state;
    make_timeline(&example, NULL, &timeline);
    ASSERT_GT(test_memory_fail_each(find_for_limit, &timeline), 3);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_takes_the_gap_around_it), cmocka_unit_test(tiny_blocks_stay),
        cmocka_unit_test(the_limit_widens_the_scope),   cmocka_unit_test(load_min_is_what_remains),
        cmocka_unit_test(each_iteration_has_its_peak),  cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
