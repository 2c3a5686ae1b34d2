/* test_traffic.c: what share of the device's bandwidth execs use. */
#include "run/traffic.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testing.h"

enum { MAX_TEXT = 1 << 14 };

/* In every iteration: a copy, 8000 bytes in 100 ns; one that computes with the same bytes for 300 ns; and one on a tenth of
 * them, whose duration is given. */
static neap_trace *make_trace(uint32_t last_ns)
{
    static char text[MAX_TEXT];
    neap_trace *trace = NULL;
    neap_error error;
    int n = snprintf(text, sizeof text, "neap-trace 1\nlive 1 4000\nlive 2 400\n");
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t at = i * 2000;
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "malloc %u 4000\nexec copy %u 100 w%u r1\nexec compute %u 300 x%u r1\nexec little %u %u x2 x2\n"
                      "free %u\n",
                      100 + i, at, 100 + i, at + 100, 100 + i, at + 400, last_ns, 100 + i);
    }
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace));
    return trace;
}

static np_traffic traffic_of(const neap_trace *trace)
{
    np_traffic traffic = {-1, -1};
    np_period period;
    ASSERT_OK(np_period_find(trace, &np_memory_default, &period));
    ASSERT_GT(period.length, 0);
    ASSERT_OK(np_traffic_find(&period, &traffic));
    np_period_free(&period);
    return traffic;
}

/* The fastest is the copy; the second moves a third as much in its time, the third next to nothing. */
static void test_shares(void **state)
{
    neap_trace *trace = make_trace(100);
    np_traffic traffic = traffic_of(trace);
    double little = 400.0 / 100 / 80;
    (void)state;
    ASSERT_TRUE(fabs(traffic.peak - 80) < 1e-9);
    ASSERT_TRUE(fabs(traffic.use - (100 * 1.0 + 300 / 3.0 + 100 * little) / 500) < 1e-9);
    neap_trace_free(trace);
}

/* One that is seen to use more than it can in its time does not count as what the device can do. */
static void test_outlier(void **state)
{
    neap_trace *trace = make_trace(1); /* 400 bytes a ns, for a 401st of the time */
    np_traffic traffic = traffic_of(trace);
    (void)state;
    ASSERT_TRUE(fabs(traffic.peak - 80) < 1e-9);
    ASSERT_TRUE(fabs(traffic.use - (100 * 1.0 + 300 / 3.0 + 1) / 401) < 1e-9);
    neap_trace_free(trace);
}

static void test_no_times(void **state)
{
    static const char text[] =
        "neap-trace 1\nmalloc 1 512\nexec e 0 0 w1\nfree 1\nmalloc 2 512\nexec e 0 0 w2\nfree 2\n"
        "malloc 3 512\nexec e 0 0 w3\nfree 3\nmalloc 4 512\nexec e 0 0 w4\nfree 4\n";
    neap_trace *trace = NULL;
    neap_error error;
    np_traffic traffic;
    (void)state;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace));
    traffic = traffic_of(trace);
    ASSERT_TRUE(traffic.peak == 0 && traffic.use == 0);
    neap_trace_free(trace);
}

static neap_status find(const neap_memory *memory, void *user)
{
    np_traffic traffic;
    np_period period;
    neap_status status = np_period_find(user, memory, &period);
    if (status == NEAP_OK) {
        status = np_traffic_find(&period, &traffic);
        np_period_free(&period);
    }
    return status;
}

static void test_host_memory(void **state)
{
    neap_trace *trace = make_trace(100);
    (void)state;
    ASSERT_GT(test_memory_fail_each(find, trace), 1);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_outlier),
        cmocka_unit_test(test_no_times),
        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
