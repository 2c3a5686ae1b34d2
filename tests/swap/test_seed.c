/* test_seed.c: the same trace, options and seed give the same plan, whatever is asked for.
 *
 * A search ends when its time does, and how far it gets by then is the machine's business. So this program brings a clock
 * of its own: each look at it takes the same time. */
#include "base/clock.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { LOOK_NS = 20000 };

static uint64_t now_ns;

uint64_t np_clock_ns(void) /* in place of the library's */
{
    return now_ns += LOOK_NS;
}

static const neap_swap_options nothing_asked = {
    .link = {.out_gbs = 1500, .in_gbs = 1500}, .min_block = 1, .page = 1 << 17, .seconds = 0.02, .n_threads = 1};

static void check_same_plans(const neap_swap_plan *a, const neap_swap_plan *b)
{
    size_t n_a, n_b;
    const neap_swap_entry *x = neap_swap_entries(a, &n_a);
    const neap_swap_entry *y = neap_swap_entries(b, &n_b);
    ASSERT_EQ(neap_swap_get_summary(a)->footprint, neap_swap_get_summary(b)->footprint);
    ASSERT_EQ(neap_swap_get_summary(a)->planned_peak, neap_swap_get_summary(b)->planned_peak);
    ASSERT_TRUE(neap_swap_get_summary(a)->overhead == neap_swap_get_summary(b)->overhead);
    ASSERT_EQ(n_a, n_b);
    for (size_t i = 0; i < n_a; i++) {
        ASSERT_EQ(x[i].block, y[i].block);
        ASSERT_EQ(x[i].bytes, y[i].bytes);
        ASSERT_EQ(x[i].used_before, y[i].used_before);
        ASSERT_EQ(x[i].back_after, y[i].back_after);
        ASSERT_EQ(x[i].used_after, y[i].used_after);
    }
}

/* What is asked for twice, on programs of several lengths. How many swaps the plans had. */
static size_t ask_twice(neap_swap_options options)
{
    size_t n_swaps = 0;
    for (uint32_t n_layers = 5; n_layers <= (TEST_SANITIZED ? 5 : 7); n_layers++) {
        neap_trace *trace = make_training(&(training){.seed = 2, .n_layers = n_layers, .n_iterations = 5});
        neap_swap_plan *a, *b;
        ASSERT_TRUE(trace);
        options.seed = n_layers;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &a));
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &b));
        check_same_plans(a, b);
        n_swaps += neap_swap_get_summary(a)->n_swaps;
        neap_swap_free(a);
        neap_swap_free(b);
        neap_trace_free(trace);
    }
    return n_swaps;
}

static void test_limits(void **state)
{
    static const double shares[] = {0.9, 0.7, 0.55};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        neap_swap_options options = nothing_asked;
        options.limit_share = shares[i];
        ASSERT_GT(ask_twice(options), 0);
    }
}

static void test_methods(void **state)
{
    (void)state;
    for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
        neap_swap_options options = nothing_asked;
        options.limit_share = 0.9;
        options.method = (neap_swap_method)method;
        ASSERT_GT(ask_twice(options), 0);
    }
}

static void test_overheads(void **state)
{
    neap_swap_options options = nothing_asked;
    (void)state;
    ASSERT_GT(ask_twice(options), 0);
    options.overhead = 0.1;
    ASSERT_GT(ask_twice(options), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_overheads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
