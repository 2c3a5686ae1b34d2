#include "swap/score.h"

#include <math.h>
#include <stdlib.h>

#include "swap/make_timeline.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 24, .max_blocks = 24, .max_bytes = 100, .reads = true};

/* Five execs of 8 ns with pauses of 2 before each: starts at 2, 12, 22, 32, 42, ends at 10, 20, 30, 40, 50.
 *
 *   A 100 bytes, used at 0 and 4: gap from 10 to 42
 *   B  60 bytes, used at 1 and 3: gap from 20 to 32
 *   C  30 bytes, persistent, used at 4: gap from 50 over the end to 92
 *
 * Load: 130 at 0, 190 at 1, 2, 3, 130 at 4. The peak is exec 1, which B begins with: B is a candidate in the wider
 * scopes only. Link: 10 bytes a ns, 1 ns latency; copies out and in take 22, 14 and 8 ns together. */
static const double durations[] = {8, 8, 8, 8, 8};
static const block_shape blocks[] = {
    {.bytes = 100, .n_uses = 2, .uses = {0, 4}},
    {.bytes = 60, .n_uses = 2, .uses = {1, 3}},
    {.bytes = 30, .persistent = true, .n_uses = 1, .uses = {4}},
};
static const timeline_shape example = {
    .n_execs = 5, .pause_ns = 2, .durations_ns = durations, .blocks = blocks, .n_blocks = 3};
static const np_link link_of_ten = {.out = 10, .in = 10, .latency_ns = 1};

static void assert_scores(np_score kind, double a, double b, double c)
{
    np_timeline timeline;
    np_candidates candidates;
    double scores[3];
    make_timeline(&example, NULL, &timeline);
    ASSERT_OK(np_candidates_find(&timeline, NP_SCOPE_ALL, 1, &candidates));
    ASSERT_EQ(candidates.gaps.n, 3);
    ASSERT_OK(np_score_candidates(&timeline, &link_of_ten, &candidates, kind, scores));
    assert_true(fabs(scores[0] - a) < 1e-9);
    assert_true(fabs(scores[1] - b) < 1e-9);
    assert_true(fabs(scores[2] - c) < 1e-9);
    np_candidates_free(&candidates);
    np_timeline_free(&timeline);
}

/* A: 32 - 22 = 10. B: 12 - 14 = -2. C: 42 - 8 = 34. */
static void doa(void **state)
{
    (void)state;
    assert_scores(NP_SCORE_DOA, 10, -2, 34);
}

/* A: 10 * 100. B is negative: -2 / 60. C: 34 * 30. */
static void aoa(void **state)
{
    (void)state;
    assert_scores(NP_SCORE_AOA, 1000, -2.0 / 60, 1020);
}

/* A step is 10 ns: a pause and an exec.
 * A: 3 steps of 190 and the pause before exec 4, 2 * 130: 5700 + 260.
 * B: exec 2 and the pause before exec 3: 1900 + 380.
 * C: execs 0 to 3 and the pause before exec 4: 1300 + 5700 + 260. */
static void wdoa(void **state)
{
    (void)state;
    assert_scores(NP_SCORE_WDOA, 5960, 2280, 7260);
}

/* C first, 7260; the load becomes 100, 160, 160, 160, 130. Then A: 3 * 1600 + 260 = 5060, B: 1600 + 320.
 * After A the load is 100, 60, 60, 60, 130, and B is left with 600 + 120. */
static void swdoa(void **state)
{
    (void)state;
    assert_scores(NP_SCORE_SWDOA, 5060, 720, 7260);
}

/* ---- SWDOA against the definition ---- */

static double area_by_hand(const np_timeline *timeline, const uint64_t *load, const np_gap *gap)
{
    double sum = 0;
    for (uint32_t k = gap->from + 1; k <= gap->to; k++) {
        double begin = np_timeline_end(timeline, k - 1);
        double end = k < gap->to ? np_timeline_end(timeline, k) : np_timeline_start(timeline, k);
        sum += (end - begin) * (double)load[k % timeline->n_execs];
    }
    return sum;
}

/* The numbers are whole and small, so that sums are exact in any order. */
static void swdoa_by_hand(const np_timeline *timeline, const np_candidates *candidates, double *scores)
{
    uint64_t *load = calloc(timeline->n_execs, sizeof *load);
    bool *chosen = calloc(candidates->gaps.n + 1, sizeof *chosen);
    ASSERT_TRUE(load && chosen);
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        load[k] = timeline->needed.items[k];
    }
    for (size_t step = 0; step < candidates->gaps.n; step++) {
        size_t best = SIZE_MAX;
        double best_area = -1;
        for (size_t i = 0; i < candidates->gaps.n; i++) {
            double area = area_by_hand(timeline, load, &timeline->gaps.items[candidates->gaps.items[i]]);
            if (!chosen[i] && area > best_area) {
                best = i;
                best_area = area;
            }
        }
        chosen[best] = true;
        scores[best] = best_area;
        for (uint32_t k = 0; k < timeline->n_execs; k++) {
            const np_gap *gap = &timeline->gaps.items[candidates->gaps.items[best]];
            load[k] -= gap_has_inside(timeline, gap, k) ? gap->bytes : 0;
        }
    }
    free(load);
    free(chosen);
}

static void areas_follow_the_definition(void **state)
{
    np_rng rng = np_rng_make(2);
    size_t n_shrunk = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 100 : 500); round++) {
        np_timeline timeline;
        np_candidates candidates;
        double scores[256], by_hand[256], areas[256];
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_candidates_find(&timeline, round % 2 ? NP_SCOPE_ALL : NP_SCOPE_PEAK, 1, &candidates));
        ASSERT_LT(candidates.gaps.n, 256);
        ASSERT_OK(np_score_candidates(&timeline, &link_of_ten, &candidates, NP_SCORE_WDOA, areas));
        ASSERT_OK(np_score_candidates(&timeline, &link_of_ten, &candidates, NP_SCORE_SWDOA, scores));
        swdoa_by_hand(&timeline, &candidates, by_hand);
        for (size_t i = 0; i < candidates.gaps.n; i++) {
            const np_gap *gap = &timeline.gaps.items[candidates.gaps.items[i]];
            assert_true(areas[i] == area_by_hand(&timeline, timeline.needed.items, gap));
            assert_true(scores[i] == by_hand[i]);
            n_shrunk += scores[i] < areas[i];
        }
        np_candidates_free(&candidates);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_shrunk, 100);
}

static neap_status score_all(const neap_memory *memory, void *user)
{
    np_timeline timeline = *(np_timeline *)user;
    np_candidates candidates;
    double scores[3];
    neap_status status;
    timeline.memory = memory;
    status = np_candidates_find(&timeline, NP_SCOPE_ALL, 1, &candidates);
    for (np_score kind = 0; kind < NP_N_SCORES && status == NEAP_OK; kind++) {
        status = np_score_candidates(&timeline, &link_of_ten, &candidates, kind, scores);
        if (status != NEAP_OK || kind + 1 == NP_N_SCORES) {
            np_candidates_free(&candidates);
        }
    }
    return status;
}

static void survives_no_memory(void **state)
{
    np_timeline timeline;
    (void)state;
    make_timeline(&example, NULL, &timeline);
    ASSERT_GT(test_memory_fail_each(score_all, &timeline), 4);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(doa),
        cmocka_unit_test(aoa),
        cmocka_unit_test(wdoa),
        cmocka_unit_test(swdoa),
        cmocka_unit_test(areas_follow_the_definition),
        cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
