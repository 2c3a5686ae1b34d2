/* test_forecast.c: what a plan is expected to cost is what it costs: on the device with the same clock, to a tenth of a
 * per cent, at any limit and on any link. */
#include "run/forecast.h"

#include <math.h>
#include <stdio.h>

#include "run/little_program.h"
#include "testing.h"

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 0.001 * fmax(a, b);
}

enum { N = 100 }; /* iterations that are measured */

/* From one iteration's end to the end of one a hundred later, by the device's clock. */
static double measure_ns(little_program *p)
{
    uint64_t begin_ns;
    ASSERT_OK(neap_sync(p->device));
    begin_ns = p->raw->api->now_ns(p->raw);
    little_laps(p, N);
    ASSERT_OK(neap_sync(p->device));
    return (double)(p->raw->api->now_ns(p->raw) - begin_ns) / N;
}

static const np_toll no_toll;

/* Returns the overhead. */
static double compare(const char *settings, double share)
{
    char name[100];
    little_options options = {.name = name, .device = {.limit_share = share}};
    little_program p;
    const np_pattern *pattern;
    neap_stats before;
    neap_stats stats;
    neap_link link;
    np_forecast forecast = {0};
    double forecast_ns;
    double measured_ns;
    (void)snprintf(name, sizeof name, "sim:%s,page=4KiB,memory=64MiB", settings);
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 2); /* what the host has to have is there by then */
    before = little_stats(&p);
    measured_ns = measure_ns(&p);
    stats = little_stats(&p);
    pattern = p.device->pattern;
    ASSERT_OK(p.raw->api->link(p.raw, &link));
    ASSERT_OK(np_program_forecast(&pattern->program, &(np_exec_times){.ns = pattern->exec_ns}, &link, &no_toll,
                                  &np_memory_default, &forecast));
    forecast_ns = forecast.period_ns;
    ASSERT_EQ(stats.bytes_out - before.bytes_out, N * forecast.bytes_out);
    ASSERT_EQ(stats.bytes_in - before.bytes_in, N * forecast.bytes_in);
    ASSERT_TRUE(stats.iteration_ns == 20.0 * (double)p.options.exec_ns);
    ASSERT_TRUE(is_close(forecast_ns, (1 + stats.plan_overhead) * stats.iteration_ns));
    ASSERT_TRUE(is_close(forecast_ns, (1 + stats.overhead) * stats.iteration_ns));
    ASSERT_TRUE(fabs(forecast_ns - measured_ns) <= 0.02 * measured_ns); /* with how it begins and ends */
    ASSERT_EQ(stats.n_departures, 0);
    little_end(&p);
    return stats.overhead;
}

static void test_limits_and_links(void **state)
{
    static const char *const links[] = {"h200-pcie5", "1080ti-pcie3", "link=1GB/s", "link=600MB/s", "link=500MB/s"};
    static const double shares[] = {0.9, 0.75, 0.6, 0.5};
    int n_costly = 0;
    int n_free = 0;
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            double overhead = compare(links[i], shares[k]);
            n_costly += overhead > 0.05;
            n_free += overhead < 0.001;
        }
    }
    ASSERT_GE(n_costly, 4); /* both kinds were there */
    ASSERT_GE(n_free, 4);
}

/* Without execs there is no time to take. */
static void test_nothing_to_do(void **state)
{
    np_program program = {.memory = &np_memory_default};
    neap_link link = {.out_gbs = 1, .in_gbs = 1};
    np_forecast forecast = {.period_ns = -1};
    (void)state;
    ASSERT_OK(np_program_forecast(&program, &(np_exec_times){0}, &link, &no_toll, &np_memory_default, &forecast));
    ASSERT_TRUE(forecast.period_ns == 0);
}

/* Pauses between execs are part of the iteration: what it is longer than its execs. */
static void test_pauses(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    little_program p;
    np_pattern *pattern;
    neap_link link;
    np_forecast forecast = {0};
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    pattern = p.device->pattern;
    ASSERT_OK(p.raw->api->link(p.raw, &link));
    pattern->program.period_ns *= 1.5;
    ASSERT_OK(np_program_forecast(&pattern->program, &(np_exec_times){.ns = pattern->exec_ns}, &link, &no_toll,
                                  &np_memory_default, &forecast));
    ASSERT_TRUE(is_close(forecast.period_ns, pattern->program.period_ns));
    little_end(&p);
}

/* What copies cost the execs beside them makes those longer, where they do not wait for the link anyway. */
static void test_tolls(void **state)
{
    static const char *const names[] = {"sim:link=4GB/s,page=4KiB,memory=64MiB",
                                        "sim:link=500MB/s,page=4KiB,memory=64MiB"};
    (void)state;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        little_options options = {.name = names[is_slow], .device = {.limit_share = 0.6}};
        np_toll toll = {.copy_ns = 2000, .byte_ns = 0.1};
        np_forecast without = {0};
        np_forecast with = {0};
        little_program p;
        neap_link link;
        double tolls;
        const np_pattern *pattern;
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 10);
        pattern = p.device->pattern;
        ASSERT_GT(pattern->program.swaps.n, 0);
        ASSERT_OK(p.raw->api->link(p.raw, &link));
        ASSERT_OK(np_program_forecast(&pattern->program, &(np_exec_times){.ns = pattern->exec_ns}, &link, &no_toll,
                                      &np_memory_default, &without));
        ASSERT_OK(np_program_forecast(&pattern->program, &(np_exec_times){.ns = pattern->exec_ns}, &link, &toll,
                                      &np_memory_default, &with));
        ASSERT_EQ(with.bytes_in, without.bytes_in);
        tolls = np_toll_ns(&toll, (double)with.bytes_in + (double)with.bytes_out, pattern->program.swaps.n);
        ASSERT_TRUE(tolls > 0.01 * without.period_ns);
        if (is_slow) {
            ASSERT_TRUE(with.period_ns < without.period_ns + 0.9 * tolls);
        } else {
            ASSERT_TRUE(is_close(with.period_ns, without.period_ns + tolls));
        }
        little_end(&p);
    }
}

/* Copies that have less of the link beside the program's work take longer, and so does what waits for them. */
static void test_busy_link(void **state)
{
    little_options options = {.name = "sim:link=500MB/s,page=4KiB,memory=64MiB", .device = {.limit_share = 0.6}};
    np_forecast idle = {0};
    np_forecast busy = {0};
    np_forecast slow = {0};
    little_program p;
    neap_link link;
    np_exec_times execs;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    execs = (np_exec_times){.ns = p.device->pattern->exec_ns};
    ASSERT_GT(p.device->pattern->program.swaps.n, 0);
    ASSERT_OK(p.raw->api->link(p.raw, &link));
    ASSERT_OK(np_program_forecast(&p.device->pattern->program, &execs, &link, &no_toll, &np_memory_default, &idle));
    link.busy_share = 0.5;
    ASSERT_OK(np_program_forecast(&p.device->pattern->program, &execs, &link, &no_toll, &np_memory_default, &busy));
    link = (neap_link){.out_gbs = link.out_gbs / 2, .in_gbs = link.in_gbs / 2, .latency_us = link.latency_us};
    ASSERT_OK(np_program_forecast(&p.device->pattern->program, &execs, &link, &no_toll, &np_memory_default, &slow));
    ASSERT_TRUE(busy.period_ns > 1.02 * idle.period_ns); /* there is work beside some of them, */
    ASSERT_TRUE(busy.period_ns < 0.98 * slow.period_ns); /* and while the device waits there is none */
    little_end(&p);
}

typedef struct question {
    const np_pattern *pattern;
    neap_link link;
} question;

static neap_status ask(const neap_memory *memory, void *user)
{
    const question *q = user;
    np_forecast forecast = {.period_ns = -1};
    neap_status status = np_program_forecast(&q->pattern->program, &(np_exec_times){.ns = q->pattern->exec_ns},
                                             &q->link, &no_toll, memory, &forecast);
    ASSERT_EQ(forecast.period_ns > 0, status == NEAP_OK);
    return status;
}

static void test_no_memory(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    little_program p;
    question q;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    q.pattern = p.device->pattern;
    ASSERT_OK(p.raw->api->link(p.raw, &q.link));
    ASSERT_GE(test_memory_fail_each(ask, &q), 6);
    little_end(&p);
}

/* ---- the host ---- */

typedef struct host_case {
    little_program p;
    np_program program; /* as the pattern's, but the period */
    np_exec_times execs;
    neap_link link;
} host_case;

static void host_begin(host_case *c, const char *link, double share)
{
    char name[100];
    little_options options = {.name = name, .device = {.limit_share = share}};
    (void)snprintf(name, sizeof name, "sim:%s,page=4KiB,memory=64MiB", link);
    little_start(&c->p, &options);
    (void)little_run_until_plan(&c->p, 10);
    c->program = c->p.device->pattern->program;
    c->execs = (np_exec_times){.ns = c->p.device->pattern->exec_ns};
    ASSERT_OK(c->p.raw->api->link(c->p.raw, &c->link));
}

static double host_forecast(const host_case *c)
{
    np_forecast forecast = {0};
    ASSERT_OK(np_program_forecast(&c->program, &c->execs, &c->link, &no_toll, &np_memory_default, &forecast));
    return forecast.period_ns;
}

/* Where nothing waits for copies, an iteration takes what it takes, however much of that is the host's. */
static void test_slow_host(void **state)
{
    static host_case c;
    double sum_ns;
    (void)state;
    host_begin(&c, "link=500GB/s", 0.9);
    sum_ns = c.program.period_ns;
    ASSERT_TRUE(is_close(host_forecast(&c), sum_ns));
    for (double factor = 1; factor < 6; factor *= 1.5) {
        c.program.period_ns = factor * sum_ns;
        ASSERT_TRUE(is_close(host_forecast(&c), c.program.period_ns));
    }
    little_end(&c.p);
}

/* While the device waits for copies, the host goes on: its time is hidden then, unless it waits, too. */
static void test_hidden_host(void **state)
{
    static host_case c;
    bool is_awaited[64] = {false};
    double sum_ns;
    double bound_ns;
    double waiting_ns;
    (void)state;
    host_begin(&c, "link=500MB/s", 0.6);
    sum_ns = c.program.period_ns;
    bound_ns = host_forecast(&c);
    ASSERT_TRUE(bound_ns > 1.35 * sum_ns);
    c.program.period_ns = 1.25 * sum_ns;
    ASSERT_TRUE(host_forecast(&c) < bound_ns + 0.05 * sum_ns);
    ASSERT_LE(c.program.n_execs, 64);
    c.execs.is_awaited = is_awaited;
    ASSERT_TRUE(host_forecast(&c) < bound_ns + 0.05 * sum_ns); /* it need not */
    is_awaited[c.program.n_execs - 1] = true;
    waiting_ns = host_forecast(&c);
    ASSERT_TRUE(waiting_ns > bound_ns + 0.05 * sum_ns);
    ASSERT_TRUE(waiting_ns < bound_ns + 0.5 * sum_ns); /* but it does not wait for all */
    little_end(&c.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_and_links), cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_pauses),           cmocka_unit_test(test_tolls),
        cmocka_unit_test(test_busy_link),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_slow_host),        cmocka_unit_test(test_hidden_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
