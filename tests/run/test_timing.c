/* test_timing.c: how long the execs of a period take: the shortest that was recorded, what was measured otherwise, and no
 * more together than an iteration does. */
#include "run/timing.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "comma.h"
#include "testing.h"

enum { N_PERIODS = 6, N_EXECS = 3, MAX_TEXT = 1 << 12 };

/* In the order of the trace: when `a` begins, and how long the execs take. */
static const uint64_t begins[N_PERIODS] = {1000, 21000, 40000, 60000, 78500, 100000};
static const uint64_t recorded[N_PERIODS][N_EXECS] = {{1500, 2500, 3000}, {1400, 2400, 3100}, {1300, 2000, 3300},
                                                      {1000, 2300, 3400}, {1200, 2200, 3500}, {1100, 2100, 3200}};

typedef struct scene {
    neap_trace *trace;
    np_period period;
} scene;

static void open_scene(scene *s)
{
    static char text[MAX_TEXT];
    neap_error error;
    int n = snprintf(text, MAX_TEXT, "neap-trace 1\nlive 1 4096\nlive 99 1000\nlive 199 500\n");
    for (unsigned i = 0; i < N_PERIODS; i++) { /* two blocks that live from one to the next */
        const unsigned long long at = begins[i];
        const uint64_t *ns = recorded[i];
        n += snprintf(text + n, (size_t)(MAX_TEXT - n), "free %u\nexec a %llu %llu r1\nmalloc %u 1000\n", 99 + i, at,
                      (unsigned long long)ns[0], 100 + i);
        n += snprintf(text + n, (size_t)(MAX_TEXT - n), "exec b %llu %llu w%u\nfree %u\nmalloc %u 500\n", at + 4000,
                      (unsigned long long)ns[1], 100 + i, 199 + i, 200 + i);
        n += snprintf(text + n, (size_t)(MAX_TEXT - n), "exec c %llu %llu r%u w%u\n", at + 8000,
                      (unsigned long long)ns[2], 100 + i, 200 + i);
    }
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &s->trace));
    ASSERT_OK(np_period_find(s->trace, &np_memory_default, &s->period));
    ASSERT_EQ(s->period.length, 7);
    ASSERT_GE(s->period.run_length, 7 * (N_PERIODS - 1));
    ASSERT_NE(s->period.origin, s->period.begin);
}

static void close_scene(scene *s)
{
    np_period_free(&s->period);
    neap_trace_free(s->trace);
}

/* The execs of the period at the origin; other periods are as they were recorded. */
static void assert_durations(const scene *s, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t expected[N_EXECS] = {a, b, c};
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->trace->events.n; i++) {
        const neap_event *event = &s->trace->events.items[i];
        if (event->kind == NEAP_EVENT_EXEC) {
            bool is_chosen = i >= s->period.origin && i < s->period.origin + s->period.length;
            uint32_t k = (uint32_t)(neap_trace_exec_name(s->trace, event->subject)[0] - 'a');
            ASSERT_EQ(event->duration_ns, is_chosen ? expected[k] : recorded[i / 7][k]);
            n += is_chosen;
        }
    }
    ASSERT_EQ(n, N_EXECS);
}

static void settle(scene *s, const uint64_t *measured, size_t n, double lap_ns, uint64_t a, uint64_t b, uint64_t c)
{
    open_scene(s);
    np_timing_settle(s->trace, &s->period, measured, n, lap_ns);
    assert_durations(s, a, b, c);
    close_scene(s);
}

static void test_shortest(void **state)
{
    scene s;
    (void)state;
    settle(&s, NULL, 0, 0, 1000, 2000, 3000);
}

/* Shorter or longer than what was recorded; 0: as recorded. */
static void test_measured(void **state)
{
    static const uint64_t all[] = {700, 2900, 1};
    static const uint64_t some[] = {0, 1900, 0};
    scene s;
    (void)state;
    settle(&s, all, 3, 0, 700, 2900, 1);
    settle(&s, some, 3, 0, 1000, 1900, 3000);
}

/* Of another period: there are more of them, or fewer. */
static void test_measured_of_others(void **state)
{
    static const uint64_t others[] = {700, 800, 900, 950};
    scene s;
    (void)state;
    settle(&s, others, 2, 0, 1000, 2000, 3000);
    settle(&s, others, 4, 0, 1000, 2000, 3000);
    settle(&s, others, 1, 5400, 800, 1800, 2800);
}

static void test_fit_to_lap(void **state)
{
    static const uint64_t measured[] = {500, 0, 1500};
    scene s;
    (void)state;
    settle(&s, NULL, 0, 6000, 1000, 2000, 3000); /* they do fit */
    settle(&s, NULL, 0, 9000, 1000, 2000, 3000);
    settle(&s, NULL, 0, 5400, 800, 1800, 2800); /* by the same time each, */
    settle(&s, NULL, 0, 3000, 272, 909, 1818);  /* but not by most of one: the rest is shared */
    settle(&s, NULL, 0, 600, 85, 171, 342);
    settle(&s, measured, 3, 3700, 400, 1900, 1400);
    settle(&s, measured, 3, 4000, 500, 2000, 1500);
}

static void assert_step(const neap_trace *trace, const char *text)
{
    ASSERT_STR_EQ(neap_trace_meta(trace, "step_ms"), text);
}

/* The shortest recorded one, from the first exec to the first of the next; or the one that was measured. */
static void test_step(void **state)
{
    scene s;
    (void)state;
    open_scene(&s);
    ASSERT_TRUE(neap_trace_meta(s.trace, "step_ms") == NULL);
    ASSERT_OK(np_timing_add_step(s.trace, &s.period, 0));
    assert_step(s.trace, "0.018500");
    ASSERT_OK(np_timing_add_step(s.trace, &s.period, 23456));
    assert_step(s.trace, "0.023456");
    close_scene(&s);
}

/* Of one iteration; numbers that cannot be are none. */
static void test_rest(void **state)
{
    static const char *const wrong[] = {"", "x", "0", "-1", "1e300"};
    scene s;
    (void)state;
    open_scene(&s);
    ASSERT_TRUE(np_timing_rest_ns(s.trace, &s.period) == 0);
    ASSERT_OK(np_timing_add_rest(s.trace, &s.period, 17250));
    ASSERT_STR_EQ(neap_trace_meta(s.trace, "rested_ms"), "0.017250");
    ASSERT_TRUE(fabs(np_timing_rest_ns(s.trace, &s.period) - 17250) < 1e-6);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ASSERT_OK(np_trace_add_meta(s.trace, "rested_ms", 9, wrong[i], strlen(wrong[i])));
        ASSERT_TRUE(np_timing_rest_ns(s.trace, &s.period) == 0);
    }
    close_scene(&s);
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_step(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest),   cmocka_unit_test(test_measured), cmocka_unit_test(test_measured_of_others),
        cmocka_unit_test(test_fit_to_lap), cmocka_unit_test(test_rest),     cmocka_unit_test(test_step),
        cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
