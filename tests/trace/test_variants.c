#include "trace/variants.h"

#include "testing.h"
#include "trace/check_period.h"
#include "trace/make_trace.h"

static void assert_variant(const np_period *period, size_t i, uint32_t begin, uint32_t length, uint32_t kind)
{
    const neap_variant *v = &period->variants.items[i];
    ASSERT_EQ(v->begin, begin);
    ASSERT_EQ(v->length, length);
    ASSERT_EQ(v->kind, kind);
}

static void test_one_iteration_has_none(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 8; bits++) {
        training options = {.seed = bits, .n_iterations = 6, .n_time_steps = 20, .step_bytes = 65536};
        neap_trace *trace;
        np_period period;
        options.zero_grad_at_start = bits & 1;
        options.loss_kept = bits & 2;
        options.leak_bytes = bits & 4 ? 512 : 0;
        trace = make_training(&options);
        ASSERT_OK(np_period_find(trace, NULL, &period));
        ASSERT_EQ(period.variants.n, 0);
        np_period_free(&period);
        neap_trace_free(trace);
    }
}

/* Starts are where the marks are, wherever the file begins. */
static void test_every_third_logs(void **state)
{
    training options = {.n_iterations = 15, .log_every = 3};
    neap_trace *trace = make_training(&options);
    uint32_t a = trace->marks.items[1] - trace->marks.items[0], b = trace->marks.items[3] - trace->marks.items[2];
    uint32_t n = (uint32_t)trace->events.n;
    (void)state;
    ASSERT_EQ(b, a + 4);
    for (uint32_t cut = 0; cut <= 3 * a; cut += 11) {
        neap_trace *part = splice((piece[]){{trace, cut, n, 0, false}}, 1);
        np_period period;
        uint32_t kind_of_b = NEAP_NEVER;
        ASSERT_OK(np_period_find(part, NULL, &period));
        check_period(&period);
        ASSERT_EQ(period.length, 2 * a + b);
        ASSERT_EQ(period.variants.n, 3);
        for (size_t i = 0; i < 3; i++) {
            const neap_variant *v = &period.variants.items[i];
            uint32_t at = cut + period.begin + v->begin;
            bool is_mark = false;
            for (size_t k = 0; k < trace->marks.n; k++) {
                is_mark = is_mark || trace->marks.items[k] == at;
            }
            ASSERT_TRUE(is_mark);
            ASSERT_TRUE(v->length == a || v->length == b);
            kind_of_b = v->length == b ? v->kind : kind_of_b;
            ASSERT_GT(v->shared_prefix, a / 2);
            ASSERT_LE(v->kind, 1);
        }
        for (size_t i = 0; i < 3; i++) {
            ASSERT_EQ(period.variants.items[i].kind == kind_of_b, period.variants.items[i].length == b);
        }
        ASSERT_EQ(period.variants.items[0].kind, 0);
        np_period_free(&period);
        neap_trace_free(part);
    }
    neap_trace_free(trace);
}

static void test_two_batch_sizes(void **state)
{
    training options = {.n_iterations = 8, .other_every = 2};
    neap_trace *trace = make_training(&options);
    uint32_t a = trace->marks.items[1];
    np_period period;
    (void)state;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 2 * a);
    ASSERT_EQ(period.variants.n, 2);
    assert_variant(&period, 0, 0, a, 0);
    assert_variant(&period, 1, a, a, 1);
    ASSERT_EQ(period.variants.items[0].shared_prefix, a);
    ASSERT_EQ(period.variants.items[1].shared_prefix, 1); /* the first workspace; then an activation differs in size */
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_leaks_between_variants(void **state)
{
    training options = {.n_iterations = 12, .log_every = 3, .leak_bytes = 512};
    neap_trace *trace = make_training(&options);
    np_period period;
    (void)state;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    check_period(&period);
    ASSERT_EQ(period.leak_bytes, 3 * 512);
    ASSERT_EQ(period.n_leaked, 3);
    ASSERT_EQ(period.variants.n, 3);
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_resnet_that_logs(void **state)
{
    neap_trace *trace = read_recording("resnet18-100-log");
    np_period period;
    (void)state;
    if (!trace) {
        SKIP("resnet18-100-log is not there");
    }
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.variants.n, 3);
    assert_variant(&period, 0, 0, 899, 0);
    assert_variant(&period, 1, 899, 1048, 1);
    assert_variant(&period, 2, 1947, 899, 0);
    ASSERT_EQ(period.variants.items[0].shared_prefix, 899);
    ASSERT_EQ(period.variants.items[1].shared_prefix, 834);
    ASSERT_EQ(period.variants.items[2].shared_prefix, 899);
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_lstm_with_two_batch_sizes(void **state)
{
    neap_trace *trace = read_recording("lstm-64-alt");
    np_period period;
    (void)state;
    if (!trace) {
        SKIP("lstm-64-alt is not there");
    }
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.variants.n, 2);
    assert_variant(&period, 0, 0, 2813, 0);
    assert_variant(&period, 1, 2813, 3372, 1);
    np_period_free(&period);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_iteration_has_none), cmocka_unit_test(test_every_third_logs),
        cmocka_unit_test(test_two_batch_sizes),        cmocka_unit_test(test_leaks_between_variants),
        cmocka_unit_test(test_resnet_that_logs),       cmocka_unit_test(test_lstm_with_two_batch_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
