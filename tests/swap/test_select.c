#include "swap/select.h"

#include <math.h>
#include <stdlib.h>

#include "swap/hold.h"
#include "swap/make_timeline.h"
#include "swap/score.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 24, .max_blocks = 24, .max_bytes = 100, .reads = true};

/* ---- the paper's worked example: peak 120 MB, limit 60 MB, three blocks chosen ---- */

/* Six layers forward and back, 20 MB each, 10 ms an exec: what layer i makes at exec i is read at exec 11 - i. The peak is
 * exec 5 with 6 * 20 MB (and exec 6 with as much). Taking the first three away leaves 60 MB. */
static const double twelve[] = {1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7, 1e7};
static const block_shape layers[] = {
    {.bytes = 20000000, .n_uses = 2, .uses = {0, 11}}, {.bytes = 20000000, .n_uses = 2, .uses = {1, 10}},
    {.bytes = 20000000, .n_uses = 2, .uses = {2, 9}},  {.bytes = 20000000, .n_uses = 2, .uses = {3, 8}},
    {.bytes = 20000000, .n_uses = 2, .uses = {4, 7}},  {.bytes = 20000000, .n_uses = 2, .uses = {5, 6}},
};
static const timeline_shape network = {.n_execs = 12, .durations_ns = twelve, .blocks = layers, .n_blocks = 6};

/* Chooses by every score in turn; each takes the three blocks made first. */
static void assert_example(double copy_ms, double period_ms)
{
    double speed = 20e6 / (copy_ms * 1e6); /* bytes a ns */
    np_link link = {.out = speed, .in = speed};
    np_timeline timeline;
    np_candidates candidates;
    np_swap_task task = {.timeline = &timeline, .link = &link, .candidates = &candidates, .limit = 60000000};
    make_timeline(&network, NULL, &timeline);
    ASSERT_EQ(timeline.peak_load, 120000000);
    ASSERT_OK(np_candidates_find(&timeline, NP_SCOPE_PEAK, NP_CANDIDATE_BYTES, &candidates));
    ASSERT_EQ(candidates.gaps.n, 5); /* the peak itself uses the sixth */
    ASSERT_OK(np_simulator_create(&timeline, &link, &task.simulator));
    for (np_score kind = 0; kind < NP_N_SCORES; kind++) {
        double scores[5];
        np_swap swaps[5];
        uint32_t n_swaps = 0;
        np_simulation simulation;
        ASSERT_OK(np_score_candidates(&timeline, &link, &candidates, kind, scores));
        ASSERT_OK(np_select_and_simulate(&task, scores, swaps, &n_swaps, &simulation));
        ASSERT_EQ(n_swaps, 3);
        for (uint32_t i = 0; i < 3; i++) {
            ASSERT_EQ(timeline.gaps.items[swaps[i].gap].block, i);
        }
        ASSERT_TRUE(simulation.possible);
        ASSERT_EQ(simulation.peak, 60000000);
        ASSERT_EQ(simulation.bytes_out, 60000000);
        ASSERT_EQ(simulation.bytes_in, 60000000);
        assert_true(fabs(simulation.period_ns - period_ms * 1e6) < 1);
    }
    np_simulator_free(task.simulator);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

/* A copy takes as long as an exec: blocks 0, 1, 2 leave at 10, 20, 30 and are gone at 20, 30, 40; the third must be gone
 * when exec 5 begins at 50. They come back from 60 on, due at 90, 100, 110. Nothing waits. */
static void example_of_the_paper_hidden(void **state)
{
    (void)state;
    assert_example(10, 120);
}

/* A copy takes 15 ms. Out: 10-25, 25-40, 40-55. Exec 5 would begin at 50, when blocks 2 (still leaving), 3 and 4 fill the
 * limit: it waits until 55, and exec 6 ends at 75. Only then is there room for block 2 again: 75-90, in time for exec 9
 * at 95; block 1 90-105, in time for exec 10 at 105; block 0 105-120, for which exec 11 waits from 115 on. Ten late. */
static void example_of_the_paper_delayed(void **state)
{
    (void)state;
    assert_example(15, 130);
}

/* ---- selection against the definition ---- */

static uint64_t highest_load(const np_timeline *timeline, const uint32_t *gaps, size_t n_gaps)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        uint64_t load = load_with_gaps_away(timeline, k, gaps, n_gaps);
        highest = load > highest ? load : highest;
    }
    return highest;
}

static bool is_of_use(const np_timeline *timeline, const uint32_t *gaps, size_t n_gaps, uint32_t gap, uint64_t limit)
{
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        if (gap_has_inside(timeline, &timeline->gaps.items[gap], k) &&
            load_with_gaps_away(timeline, k, gaps, n_gaps) > limit) {
            return true;
        }
    }
    return false;
}

/* One after the other, the loads counted anew each time. Equal scores go by gap. */
static size_t select_by_hand(const np_swap_task *task, const double *scores, uint32_t *gaps)
{
    const np_candidates *candidates = task->candidates;
    bool seen[256] = {false};
    size_t n = 0;
    while (highest_load(task->timeline, gaps, n) > task->limit) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < candidates->gaps.n; i++) {
            if (!seen[i] && (best == SIZE_MAX || scores[i] > scores[best])) {
                best = i;
            }
        }
        ASSERT_NE(best, SIZE_MAX);
        seen[best] = true;
        gaps[n] = candidates->gaps.items[best];
        n += candidates->scope == NP_SCOPE_PEAK || is_of_use(task->timeline, gaps, n, gaps[n], task->limit);
    }
    return n;
}

static int compare_u32(const void *left, const void *right)
{
    const uint32_t *a = left;
    const uint32_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

static void compare_with_hand(np_rng *rng, np_scope scope)
{
    np_timeline timeline;
    np_candidates candidates;
    np_swap_task task = {.timeline = &timeline, .candidates = &candidates};
    double scores[256];
    np_swap swaps[256];
    uint32_t n_swaps = 0;
    uint32_t by_hand[257];
    make_random_timeline(&small, rng, NULL, &timeline);
    ASSERT_OK(np_candidates_find(&timeline, scope, 1 + np_rng_below(rng, 50), &candidates));
    ASSERT_LT(candidates.gaps.n, 256);
    for (size_t i = 0; i < candidates.gaps.n; i++) {
        scores[i] = (double)np_rng_below(rng, 8);
    }
    task.limit = candidates.load_min + np_rng_below(rng, timeline.peak_load - candidates.load_min + 1);
    ASSERT_OK(np_select(&task, scores, swaps, &n_swaps));
    ASSERT_EQ(n_swaps, select_by_hand(&task, scores, by_hand));
    qsort(by_hand, n_swaps, sizeof *by_hand, compare_u32);
    for (uint32_t i = 0; i < n_swaps; i++) {
        ASSERT_EQ(swaps[i].gap, by_hand[i]);
        ASSERT_EQ(swaps[i].bytes, timeline.gaps.items[by_hand[i]].bytes);
    }
    if (candidates.load_min > 0) {
        task.limit = candidates.load_min - 1;
        ASSERT_STATUS(NEAP_NO_PLAN, np_select(&task, scores, swaps, &n_swaps));
    }
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

static void selection_follows_the_definition(void **state)
{
    np_rng rng = np_rng_make(4);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 100 : 600); round++) {
        compare_with_hand(&rng, NP_SCOPE_PEAK);
        compare_with_hand(&rng, NP_SCOPE_LARGE);
        compare_with_hand(&rng, NP_SCOPE_ALL);
    }
}

/* A limit at or above the peak asks for nothing. */
static void nothing_to_do(void **state)
{
    np_link link = {.out = 1, .in = 1};
    np_timeline timeline;
    np_candidates candidates;
    np_swap_task task = {.timeline = &timeline, .link = &link, .candidates = &candidates, .limit = 120000000};
    double scores[5] = {1, 2, 3, 4, 5};
    np_swap swaps[5];
    uint32_t n_swaps = 9;
    np_simulation simulation;
    (void)state;
    make_timeline(&network, NULL, &timeline);
    ASSERT_OK(np_candidates_find(&timeline, NP_SCOPE_PEAK, 1, &candidates));
    ASSERT_OK(np_simulator_create(&timeline, &link, &task.simulator));
    ASSERT_OK(np_select_and_simulate(&task, scores, swaps, &n_swaps, &simulation));
    ASSERT_EQ(n_swaps, 0);
    assert_true(simulation.overhead == 0);
    np_simulator_free(task.simulator);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_of_the_paper_hidden),
        cmocka_unit_test(example_of_the_paper_delayed),
        cmocka_unit_test(selection_follows_the_definition),
        cmocka_unit_test(nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
