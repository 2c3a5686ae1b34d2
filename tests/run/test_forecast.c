#include <math.h>
#include <stdio.h>
#include "run/forecast.h"
#include "run/little_program.h"
#include "testing.h"

static void test_x(void **state)
{
    static const double shares[] = {0.9, 0.7, 0.6, 0.5, 0.4, 0.3};
    static const char *links[] = {"4GB/s", "1GB/s", "500MB/s", "100MB/s"};
    (void)state;
    for (int l = 0; l < 4; l++)
        for (int i = 0; i < 6; i++) {
            char name[80];
            (void)snprintf(name, sizeof name, "sim:page=4KiB,memory=64MiB,link=%s", links[l]);
            little_options options = {.name = name, .device = {.limit_share = shares[i], .plan_seconds = 0.5}};
            little_program p;
            little_start(&p, &options);
            (void)little_run_until_plan(&p, 20);
            little_laps(&p, 80);
            neap_stats s = little_stats(&p);
            np_pattern *q = p.device->pattern;
            print_message("%s %.2f: plan %.4f measured %.4f swaps %zu laps %zu:", links[l], shares[i], s.plan_overhead, s.overhead, q->program.swaps.n, q->laps_ns.n);
            for (size_t k = 0; k < q->laps_ns.n && k < 12; k++) print_message(" %.4f", q->laps_ns.items[k] / s.iteration_ns - 1);
            print_message("\n");
            little_end(&p);
        }
}
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_x)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
