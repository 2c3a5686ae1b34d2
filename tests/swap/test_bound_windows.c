#include "swap/bound_windows.h"

#include <math.h>

#include "swap/fluid.h"
#include "testing.h"

/* ---- the definition, counted out ---- */

/* The exec of the last write before the gap, on the gap's line; INT64_MIN: none. */
static int64_t release_of(const np_timeline *timeline, const np_gap *gap)
{
    const np_swap_block *block = &timeline->blocks.items[gap->block];
    int64_t n = timeline->n_execs;
    int64_t best = INT64_MIN;
    for (uint32_t u = 0; u < block->n_uses; u++) {
        np_use use = timeline->uses.items[block->first_use + u];
        for (int64_t laps = -2; use.writes && laps <= 0; laps++) {
            int64_t exec = use.exec + laps * n;
            bool same_life = block->persistent || exec >= (int64_t)gap->from - n;
            if (exec <= gap->from && exec > best && same_life) {
                best = exec;
            }
        }
    }
    return best;
}

/* Bytes of the gaps that cover exec k, released before exec i and due after exec j. */
static double between(const np_timeline *timeline, int64_t i, int64_t k, int64_t j)
{
    int64_t n = timeline->n_execs;
    double bytes = 0;
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        int64_t release = release_of(timeline, gap);
        for (int64_t laps = -1; laps <= 2; laps++) {
            bool covers = gap->from + laps * n < k && k < gap->to + laps * n;
            bool before = release == INT64_MIN || release + laps * n < i;
            bytes += covers && before && gap->to + laps * n > j ? (double)gap->bytes : 0;
        }
    }
    return bytes;
}

static np_window_left left_by_definition(const np_timeline *timeline, const np_link *link, uint32_t i, uint32_t j)
{
    uint32_t n = timeline->n_execs;
    double end_i = np_timeline_end(timeline, i);
    double start_j = np_timeline_start(timeline, j);
    np_window_left left = {.both = -INFINITY};
    left.out =
        (double)timeline->needed.items[j % n] - between(timeline, i, j, INT64_MIN) - link->out * (start_j - end_i);
    left.in = (double)timeline->needed.items[i % n] - between(timeline, INT64_MAX, i, j) - link->in * (start_j - end_i);
    for (uint32_t k = i + 1; k < j; k++) {
        double start = np_timeline_start(timeline, k);
        double end = np_timeline_end(timeline, k);
        double by_start = link->out * (start - end_i) + link->in * (start_j - start);
        double by_end = link->out * (end - end_i) + link->in * (start_j - end);
        double here = (double)timeline->needed.items[k % n] - between(timeline, i, k, j) - fmin(by_start, by_end);
        left.both = fmax(left.both, here);
    }
    return left;
}

static void assert_near(uint64_t seed, uint32_t i, uint32_t j, const char *what, double found, double expected)
{
    if (!(found == expected || fabs(found - expected) < 1e-6)) {
        test_fail(__FILE__, __LINE__, "seed %llu, window %u to %u: %s is %f, should be %f", (unsigned long long)seed,
                  (unsigned)i, (unsigned)j, what, found, expected);
    }
}

static void compare_windows(uint64_t seed, const np_timeline *timeline, const np_link *link)
{
    np_windows windows;
    ASSERT_OK(np_windows_init(&windows, timeline, link));
    for (uint32_t i = 0; i < timeline->n_execs; i++) {
        ASSERT_EQ(np_windows_sweep(&windows, i, -INFINITY), timeline->n_execs);
        for (uint32_t m = 0; m < timeline->n_execs; m++) {
            uint32_t j = i + 1 + m;
            np_window_left expected = left_by_definition(timeline, link, i, j);
            assert_near(seed, i, j, "out", windows.left[m].out, expected.out);
            assert_near(seed, i, j, "in", windows.left[m].in, expected.in);
            assert_near(seed, i, j, "both", windows.left[m].both, expected.both);
        }
    }
    np_windows_free(&windows);
}

static void test_as_defined(void **state)
{
    static const np_link links[] = {{.out = 1000, .in = 1000}, {.out = 500, .in = 2000}, {.out = 300, .in = 100}};
    uint64_t n = TEST_SANITIZED ? 100 : 1000;
    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        np_rng rng = np_rng_make(seed);
        bool large = seed % 20 == 0;
        fluid_program program = fluid_random(&rng, large ? FLUID_EXECS_MAX : 10, large ? FLUID_BLOCKS_MAX : 6);
        np_timeline timeline;
        fluid_timeline(&program, &timeline);
        compare_windows(seed, &timeline, &links[seed % 3]);
        np_timeline_free(&timeline);
    }
}

/* With `enough`, no window in which more is left may be missed. */
static void test_enough(void **state)
{
    const np_link link = {.out = 700, .in = 1000};
    uint64_t n_cut = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        np_rng rng = np_rng_make(seed);
        fluid_program program = fluid_random(&rng, 12, 6);
        double enough = (double)(1000 * np_rng_below(&rng, 60));
        np_timeline timeline;
        np_windows windows;
        fluid_timeline(&program, &timeline);
        ASSERT_OK(np_windows_init(&windows, &timeline, &link));
        for (uint32_t i = 0; i < timeline.n_execs; i++) {
            uint32_t n_filled = np_windows_sweep(&windows, i, enough);
            n_cut += n_filled < timeline.n_execs;
            for (uint32_t m = n_filled; m < timeline.n_execs; m++) {
                np_window_left left = left_by_definition(&timeline, &link, i, i + 1 + m);
                ASSERT_TRUE(fmax(left.both, fmax(left.out, left.in)) <= enough + 1e-6);
            }
        }
        np_windows_free(&windows);
        np_timeline_free(&timeline);
    }
    ASSERT_GE(n_cut, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_defined),
        cmocka_unit_test(test_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
