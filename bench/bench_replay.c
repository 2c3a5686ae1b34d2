/* bench_replay.c: does a plan cost the time that was forecast for it?
 *
 *     bench_replay [--csv PATH] FILE...
 *
 * Recorded training loops run as programs on the simulated device: the mallocs, frees and execs of one period again and
 * again (replay.h), with the names, accesses and durations that were recorded. Under limits that cost time, neap_stats.plan_overhead
 * is set beside what the device's own clock says. (Where the program does not wait for it, that clock stands still. So a
 * few iterations and some more are run, each time from rest to rest: the difference is that many undisturbed ones.)
 *
 * The device's memory is real, and copies are made, so large programs are made smaller: all sizes, the page, and the
 * link's speed are divided by one number, which changes no time. Mallocs that leak are left out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/kinds.h"
#include "device_figures.h"
#include "device_settle.h"
#include "neap.h"
#include "replay.h"

enum { FEW_LAPS = 6, MORE_LAPS = 18 };

#define LOAD_MAX ((uint64_t)160 << 20) /* bytes of the programs as they are run */

/* Virtual ns of n laps, from rest to rest. */
static bool time_laps(replay *r, const np_device *clock, int n, double *ns)
{
    bool ok = neap_sync(r->device) == NEAP_OK;
    uint64_t begin_ns = clock->api->now_ns(clock);
    for (int i = 0; i < n && ok; i++) {
        ok = run_lap(r);
    }
    ok = ok && neap_sync(r->device) == NEAP_OK;
    *ns = (double)(clock->api->now_ns(clock) - begin_ns);
    return ok;
}

/* ---------------------------------------------------------------- figures ---- */

static bool open_device(replay *r, const char *link_name, double limit_share, heard *said, np_device **clock)
{
    const neap_device_options options = {.limit_share = limit_share,
                                         .min_block = ((uint64_t)1 << 20) / r->divisor,
                                         .refinements = UINT32_MAX,
                                         .log = hear,
                                         .log_level = NEAP_LOG_INFO,
                                         .log_user = said};
    np_device_settings settings = {.page_bytes = ((uint64_t)2 << 20) / r->divisor, .n_streams = 1};
    neap_error error = {""};
    settings.n_pages = (uint32_t)(8 * LOAD_MAX / settings.page_bytes);
    if (neap_link_find(link_name, &settings.link) != NEAP_OK) {
        return false;
    }
    settings.link.out_gbs /= (double)r->divisor;
    settings.link.in_gbs /= (double)r->divisor;
    settings.link.both_gbs /= (double)r->divisor;
    if (np_sim_open(&settings, np_memory_or_default(NULL), &error, clock) != NEAP_OK ||
        np_manager_open(*clock, &options, &error, &r->device) != NEAP_OK) {
        (void)fprintf(stderr, "bench_replay: %s\n", error.text);
        return false;
    }
    return true;
}

static void judge_replay(figures *f, const replay *r, const char *input, double measured, const neap_stats *stats)
{
    const bool ran = !isnan(measured);
    const double forecast = ran ? stats->plan_overhead : NAN;
    const double error = (1 + measured) / (1 + forecast) - 1;
    const double of_limit = ran && stats->limit > 0 ? (double)stats->footprint / (double)stats->limit : NAN;
    const double metadata = ran ? (double)stats->metadata_bytes : NAN;
    const char *met = figure_judge(f, "forecast_error", input, fabs(error) * 100, "% of an iteration", AT_MOST, 1);
    figure_note(f, "forecast_overhead", input, forecast * 100, "%");
    figure_note(f, "measured_overhead", input, measured * 100, "%");
    figure_note(f, "stats_overhead", input, stats->overhead * 100, "%");
    const char *held = figure_judge(f, "footprint_by_limit", input, of_limit, "ratio", AT_MOST, 1);
    const char *small = figure_judge(f, "metadata", input, metadata, "bytes per event", BELOW, 256);
    figure_note(f, "plans", input, (double)stats->n_patterns, "count"); /* of one, the last, is the forecast */
    (void)printf("  %-38s %8.1f %8.1f %8.2f %8.2f %8.2f %8.3f %6" PRIu64 " %6.0f   %s\n", input,
                 (double)(stats->limit * r->divisor) * 1e-6, (double)(stats->footprint * r->divisor) * 1e-6,
                 forecast * 100, measured * 100, stats->overhead * 100, error * 100, stats->n_patterns, metadata,
                 *met || *held || *small ? "MISSED" : "");
    (void)fflush(stdout);
}

static void measure_replay(figures *f, replay *r, const char *link_name, double limit_share)
{
    np_device *clock;
    neap_stats stats;
    heard said = HEARD_NOTHING;
    char input[128], problem[256] = "";
    double few = 0, more = 0;
    (void)snprintf(input, sizeof input, "%s %s %.0f %%", r->name, link_name, limit_share * 100);
    if (!open_device(r, link_name, limit_share, &said, &clock)) {
        exit(2);
    }
    bool ok = begin_replay(r) && settle(r->device, run_lap, r, 5) && time_laps(r, clock, FEW_LAPS, &few) &&
              time_laps(r, clock, MORE_LAPS, &more);
    neap_get_stats(r->device, &stats);
    if (clock->api->problem(clock)) {
        (void)snprintf(problem, sizeof problem, "%s", clock->api->problem(clock));
    }
    neap_close(r->device);
    ok = ok && stats.n_departures == 0;
    if (!ok || *problem) {
        (void)fprintf(stderr, "bench_replay: %s: %s, %" PRIu64 " departures: %s\n", input, neap_state_name(stats.state),
                      stats.n_departures, *problem ? problem : said.last);
        f->failed |= *problem != '\0'; /* bytes used out of order */
    }
    judge_replay(f, r, input, ok ? (more - few) / (MORE_LAPS - FEW_LAPS) / r->period_ns - 1 : NAN, &stats);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *link;
        double limit_share;
    } cases[] = {{"h200-pcie5", 0.8}, {"h200-pcie5", 0.6}, {"1080ti-pcie3", 0.8}};
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    const size_t n_cases = f.is_quick ? 1 : sizeof cases / sizeof *cases;
    if (argc < 2) {
        (void)fputs("usage: bench_replay [--csv PATH] FILE...\n", stderr);
        return 2;
    }
    (void)printf("  %-38s %8s %8s %8s %8s %8s %8s %6s %6s\n", "recordings replayed: overhead, %", "limit MB", "held MB",
                 "forecast", "measured", "by stats", "error", "plans", "B/ev");
    for (int i = 1; i < argc; i++) {
        replay r = {0};
        if (!read_replay(argv[i], &r)) {
            return 2;
        }
        replay_make(&r, LOAD_MAX);
        for (size_t k = 0; k < n_cases; k++) {
            measure_replay(&f, &r, cases[k].link, cases[k].limit_share);
        }
        replay_free(&r);
    }
    return figures_close(&f);
}
