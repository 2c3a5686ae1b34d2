#include "trace/overlay.h"

#include <stdio.h>

#include "testing.h"
#include "trace/check_period.h"
#include "trace/make_trace.h"

/* Iterations of: malloc, an exec that touches the block, an exec that touches it and maybe the weight, free. The weight
 * is touched in the iterations whose bits are set. */
static neap_trace *make(unsigned n_iterations, unsigned touched)
{
    neap_trace *trace;
    ASSERT_OK(np_trace_create(NULL, &trace));
    ASSERT_OK(np_trace_add_live(trace, 1, 4096));
    for (unsigned i = 0; i < n_iterations; i++) {
        ASSERT_OK(np_trace_add_malloc(trace, 2 + i, 512));
        ASSERT_OK(np_trace_add_exec(trace, "a", 1, 0, 1));
        ASSERT_OK(np_trace_add_access(trace, 2 + i, NEAP_ACCESS_WRITE));
        ASSERT_OK(np_trace_add_exec(trace, "b", 1, 0, 1));
        ASSERT_OK(np_trace_add_access(trace, 2 + i, NEAP_ACCESS_READ));
        if (touched >> i & 1) {
            ASSERT_OK(np_trace_add_access(trace, 1, NEAP_ACCESS_UNKNOWN));
        }
        ASSERT_OK(np_trace_add_free(trace, 2 + i));
    }
    return trace;
}

static void assert_overlay(unsigned n_iterations, unsigned touched, bool certain)
{
    neap_trace *trace = make(n_iterations, touched);
    np_period period;
    unsigned n_touched = (unsigned)__builtin_popcount(touched);
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 4);
    ASSERT_EQ(period.lives.n, 2);
    ASSERT_TRUE(period.lives.items[0].persistent);
    ASSERT_EQ(period.lives.items[0].first_use, certain ? 2 : NEAP_NEVER);
    ASSERT_EQ(period.lives.items[0].last_use, certain ? 2 : NEAP_NEVER);
    ASSERT_EQ(period.lives.items[1].first_use, 1);
    ASSERT_EQ(period.lives.items[1].last_use, 2);
    ASSERT_EQ(period.n_doubtful, certain ? 0 : n_touched);
    ASSERT_EQ(period.accesses.n, certain ? 3 : 2);
    ASSERT_EQ(period.access_at.items[1], 0);
    ASSERT_EQ(period.access_at.items[2], 1);
    ASSERT_EQ(period.access_at.items[3], period.accesses.n);
    ASSERT_EQ(period.accesses.items[0].block, 1);
    ASSERT_EQ(period.accesses.items[0].kind, NEAP_ACCESS_WRITE);
    check_period(&period);
    np_period_free(&period);
    neap_trace_free(trace);
}

static void test_certain_or_doubtful(void **state)
{
    (void)state;
    assert_overlay(2, 3, true);
    assert_overlay(2, 1, false);
    assert_overlay(2, 2, false);
    assert_overlay(3, 7, true);
    assert_overlay(3, 3, false);
    assert_overlay(4, 15, true);
    assert_overlay(4, 13, true); /* three of four */
    assert_overlay(4, 5, false);
    assert_overlay(4, 8, false);
    assert_overlay(12, 0x1ff, true); /* nine of twelve */
    assert_overlay(12, 0x0ff, false);
    assert_overlay(4, 0, false);
}

/* Another direction is another access. */
static void test_directions_differ(void **state)
{
    neap_trace *trace;
    np_period period;
    (void)state;
    ASSERT_OK(np_trace_create(NULL, &trace));
    ASSERT_OK(np_trace_add_live(trace, 1, 4096));
    for (unsigned i = 0; i < 4; i++) {
        ASSERT_OK(np_trace_add_exec(trace, i % 2 ? "b" : "a", 1, 0, 1));
        ASSERT_OK(np_trace_add_access(trace, 1, i < 2 ? NEAP_ACCESS_READ : NEAP_ACCESS_WRITE));
        ASSERT_OK(np_trace_add_access(trace, 1, i < 2 ? NEAP_ACCESS_READ : NEAP_ACCESS_WRITE)); /* twice counts once */
    }
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(period.length, 2);
    ASSERT_EQ(period.accesses.n, 0);
    ASSERT_EQ(period.n_doubtful, 4);
    np_period_free(&period);
    neap_trace_free(trace);
}

/* Every false access is doubtful, and no true one, also where blocks live across the end. */
static void test_false_accesses(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        training options = {.seed = seed, .n_iterations = 10, .false_accesses = 3, .long_lives = 1};
        neap_trace *trace;
        np_period period;
        uint64_t n_false = 0, n_true = 0;
        options.zero_grad_at_start = seed & 1;
        options.loss_kept = seed & 2;
        options.leak_bytes = seed & 4 ? 512 : 0;
        trace = make_training(&options);
        ASSERT_OK(np_period_find(trace, NULL, &period));
        check_period(&period);
        for (uint32_t i = period.begin; i < period.begin + period.run_length; i++) {
            const neap_event *event = &trace->events.items[i];
            for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
                n_false += trace->accesses.items[event->first_access + k].kind == NEAP_ACCESS_READ;
            }
        }
        for (uint32_t t = 0; t < period.length; t++) {
            const neap_event *event = &trace->events.items[period.origin + t];
            for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
                n_true += trace->accesses.items[event->first_access + k].kind != NEAP_ACCESS_READ;
            }
        }
        ASSERT_GT(n_false, 0);
        ASSERT_EQ(period.n_doubtful, n_false);
        ASSERT_EQ(period.accesses.n, n_true);
        np_period_free(&period);
        neap_trace_free(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certain_or_doubtful),
        cmocka_unit_test(test_directions_differ),
        cmocka_unit_test(test_false_accesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
