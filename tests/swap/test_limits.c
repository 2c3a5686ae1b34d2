/* test_limits.c: plans at several limits and by several methods beside each other, on recordings.
 *
 * The clock is the test's own, so that each plan is given the same time, and is the same wherever it is made. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "swap/recorded.h"
#include "testing.h"

enum { LOOK_NS = 20000 };

static uint64_t now_ns;

uint64_t np_clock_ns(void) /* in place of the library's: each look at it takes the same time */
{
    return now_ns += LOOK_NS;
}

static neap_trace *read_recorded(const char *name)
{
    char file[64];
    char path[TEST_PATH_BYTES];
    neap_trace *trace;
    (void)snprintf(file, sizeof file, "traces/%s.neap.gz", name);
    test_data_path(path, file);
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
    return trace;
}

/* INFINITY: there is no plan. */
static double overhead_of(const neap_trace *trace, const neap_swap_options *options)
{
    neap_swap_plan *plan;
    double overhead;
    neap_status status = neap_swap_make(trace, options, NULL, NULL, &plan);
    ASSERT_TRUE(status == NEAP_OK || status == NEAP_NO_PLAN);
    if (status == NEAP_NO_PLAN) {
        return INFINITY;
    }
    overhead = neap_swap_get_summary(plan)->overhead;
    ASSERT_LE(neap_swap_get_summary(plan)->footprint, neap_swap_get_summary(plan)->limit);
    neap_swap_free(plan);
    return overhead;
}

/* ---- the mix ---- */

static void mix_is_as_good_as_each(const char *name, neap_swap_options options)
{
    neap_trace *trace = read_recorded(name);
    double best = INFINITY;
    double mix;
    for (int method = NEAP_SWAP_DOA; method < NEAP_SWAP_N_METHODS; method++) {
        options.method = (neap_swap_method)method;
        best = fmin(best, overhead_of(trace, &options));
    }
    options.method = NEAP_SWAP_BO;
    mix = overhead_of(trace, &options);
    ASSERT_TRUE(mix <= best);
    neap_trace_free(trace);
}

static void mixes_are_as_good_as_their_scores(void **state)
{
    static const neap_link old = {.out_gbs = 13.2, .in_gbs = 12.1, .latency_us = 5};
    static const neap_link new = {.out_gbs = 55, .in_gbs = 55, .both_gbs = 100, .latency_us = 2};
    neap_swap_options options = {.link = old, .slower = 7.5, .limit_share = 0.6, .seconds = 1, .n_threads = 1};
    (void)state;
    mix_is_as_good_as_each("vgg16-100-32", options);
    if (!TEST_SANITIZED) {
        mix_is_as_good_as_each("resnet18-100-32-fp32", options);
        options = (neap_swap_options){.link = new, .limit_share = 0.7, .seconds = 1, .n_threads = 1};
        mix_is_as_good_as_each("vgg16-100-32", options);
        mix_is_as_good_as_each("resnet18-100-32-fp32", options);
    }
}

/* ---- limits that are too low ---- */

/* A run raises a limit that it finds no plan for. What it then holds is no more than under a higher limit, whether that is
 * held or raised, too. */
static void stricter_limits_get_no_more_memory(void **state)
{
    static const double shares[] = {0.7, 0.6, 0.5, 0.3, 0.12};
    neap_trace *trace = read_recorded("resnet18-100-32-fp32");
    neap_foresee_options options = {.link = {.out_gbs = 50, .in_gbs = 50}, .min_block = 1 << 20, .page = 4096};
    uint64_t before = UINT64_MAX / 2;
    (void)state;
    options.seconds = 0.05;
    options.n_threads = 1;
    for (size_t i = 0; i < (TEST_SANITIZED ? 2 : sizeof shares / sizeof *shares); i++) {
        neap_foreseen seen;
        options.limit_share = TEST_SANITIZED ? shares[1 + 2 * i] : shares[i];
        ASSERT_OK(neap_foresee(trace, &options, NULL, NULL, &seen));
        ASSERT_EQ(seen.limit_was_raised, options.limit_share < 0.55);
        ASSERT_TRUE(!seen.limit_was_raised || seen.limit < seen.load_min);
        ASSERT_LE(seen.footprint, seen.limit);
        ASSERT_LE(seen.footprint, before + before / 200); /* searches end where their time does */
        before = seen.footprint;
    }
    neap_trace_free(trace);
}

/* ---- curves ---- */

/* On the footprint and on the load: the mix is as good as its scores, the search as the mix, and a limit costs no more than
 * a lower one. */
static void curves_fall(void **state)
{
    enum { N_ROWS = TEST_SANITIZED ? 4 : 8 };
    neap_trace *trace = read_recorded("vgg16-100-32");
    (void)state;
    for (int i = 0; i < 2; i++) {
        neap_swap_options options = {.link = {.out_gbs = 55, .in_gbs = 55, .both_gbs = 100, .latency_us = 2},
                                     .on_load = i == 1,
                                     .seconds = 0.05,
                                     .n_threads = 1};
        neap_sweep_row rows[N_ROWS];
        ASSERT_OK(neap_swap_sweep(trace, &options, N_ROWS, NULL, NULL, rows));
        ASSERT_TRUE(rows[0].overhead[NEAP_SWAP_SEARCH] == 0);
        ASSERT_TRUE(isfinite(rows[N_ROWS - 3].overhead[NEAP_SWAP_SEARCH]));
        for (int k = 0; k < N_ROWS; k++) {
            const double *overhead = rows[k].overhead;
            ASSERT_TRUE(overhead[NEAP_SWAP_SEARCH] <= overhead[NEAP_SWAP_BO]);
            ASSERT_TRUE(overhead[NEAP_SWAP_SEARCH] >= rows[k].bound_overhead - 1e-9);
            for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
                ASSERT_TRUE(method < NEAP_SWAP_DOA || overhead[NEAP_SWAP_BO] <= overhead[method]);
                ASSERT_TRUE(k == 0 || rows[k - 1].overhead[method] <= overhead[method]);
            }
            ASSERT_EQ(rows[k].footprint > 0, isfinite(overhead[NEAP_SWAP_SEARCH]));
            ASSERT_TRUE(options.on_load || rows[k].footprint <= rows[k].limit);
        }
    }
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixes_are_as_good_as_their_scores),
        cmocka_unit_test(curves_fall),
        cmocka_unit_test(stricter_limits_get_no_more_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
