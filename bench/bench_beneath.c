/* bench_beneath.c: what is held beneath a program with the pool alone, against what it needs.
 *
 *     bench_beneath [--csv PATH] FILE...
 *
 * Recorded training loops run as programs (replay.h) on a simulated device with a GPU's pages, as `neap run` runs them:
 * each block from 256 KiB on is planned, smaller ones stand aside, the first plan is a quick one. alpha is all device
 * memory held on the plan over the most that blocks of all sizes needed at once. The device's memory is real, so large
 * programs are made smaller: all sizes, and the page, are divided by one number. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "device_figures.h"
#include "device_settle.h"
#include "hook/settings.h"
#include "replay.h"

enum { LAPS_AFTER = 12 };

#define LOAD_MAX ((uint64_t)2 << 30) /* bytes of the programs as they are run */

static void measure(figures *f, replay *r)
{
    heard said = HEARD_NOTHING;
    const neap_device_options options = {.min_block = NP_HOOK_MIN_BLOCK / r->divisor,
                                         .refinements = UINT32_MAX,
                                         .log = hear,
                                         .log_level = NEAP_LOG_INFO,
                                         .log_user = &said};
    neap_error error = {""};
    neap_stats stats;
    char name[128];
    (void)snprintf(name, sizeof name, "sim:page=%" PRIu64 ",memory=%" PRIu64, ((uint64_t)2 << 20) / r->divisor,
                   4 * LOAD_MAX);
    if (neap_open(name, &options, NULL, &error, &r->device) != NEAP_OK) {
        (void)fprintf(stderr, "bench_beneath: %s\n", error.text);
        exit(2);
    }
    np_beneath_begin(r->device, 0, 0);
    r->side_below = options.min_block;
    bool ok = begin_replay(r) && settle(r->device, run_lap, r, 5);
    for (int i = 0; i < LAPS_AFTER && ok; i++) {
        ok = run_lap(r) && neap_sync(r->device) == NEAP_OK;
    }
    neap_get_stats(r->device, &stats);
    if (!ok || stats.state != NEAP_STATE_RUN) {
        (void)fprintf(stderr, "bench_beneath: %s: %s: %s\n", r->name, neap_state_name(stats.state), said.last);
        ok = false;
    }
    const double alpha = ok ? (double)stats.held / ((double)r->peak_load / (double)r->divisor) : NAN;
    const char *met = figure_judge(f, "alpha_beneath", r->name, alpha, "ratio", AT_MOST, 1.01);
    figure_note(f, "copied_on_entering", r->name, (double)stats.bytes_out, "bytes");
    (void)printf("  %-38s %10.1f %10.1f %8.4f %10" PRIu64 "   %s\n", r->name, (double)r->peak_load * 1e-6,
                 (double)(stats.held * r->divisor) * 1e-6, alpha, stats.bytes_out, *met ? "MISSED" : "");
    (void)fflush(stdout);
    neap_close(r->device);
}

int main(int argc, char **argv)
{
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    if (argc < 2) {
        (void)fputs("usage: bench_beneath [--csv PATH] FILE...\n", stderr);
        return 2;
    }
    (void)printf("  %-38s %10s %10s %8s %10s\n", "the pool beneath a program", "load MB", "held MB", "alpha", "copied");
    for (int i = 1; i < (f.is_quick ? 2 : argc); i++) {
        replay r = {0};
        if (!read_replay(argv[i], &r)) {
            return 2;
        }
        replay_make(&r, LOAD_MAX);
        measure(&f, &r);
        replay_free(&r);
    }
    return figures_close(&f);
}
