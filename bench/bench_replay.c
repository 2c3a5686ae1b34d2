/* bench_replay.c: does a plan cost the time that was forecast for it?
 *
 *     bench_replay [--csv PATH] FILE...
 *
 * Recorded training loops run as programs on the simulated device: the mallocs, frees and execs of one period again and
 * again, with the names, accesses and durations that were recorded. Under limits that cost time, neap_stats.plan_overhead
 * is set beside what the device's own clock says. (Where the program does not wait for it, that clock stands still. So a
 * few iterations and some more are run, each time from rest to rest: the difference is that many undisturbed ones.)
 *
 * The device's memory is real, and copies are made, so large programs are made smaller: all sizes, the page, and the
 * link's speed are divided by one number, which changes no time. Mallocs that leak are left out. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/kinds.h"
#include "device_figures.h"
#include "device_settle.h"
#include "neap.h"
#include "trace/period.h"

enum { FEW_LAPS = 6, MORE_LAPS = 18 };

#define LOAD_MAX ((uint64_t)160 << 20) /* bytes of the programs as they are run */

/* ---------------------------------------------------------------- a period as a program ---- */

/* A life's blocks: the one malloc'd in lap k stands at k modulo n. */
typedef struct place {
    neap_block **blocks;
    uint32_t n;
} place;

typedef struct replay {
    char name[64];
    neap_trace *trace;
    np_period period;
    uint64_t peak_load;
    uint64_t divisor;
    double period_ns;    /* of all execs, one after the other */
    uint32_t *life_of;   /* by time: the life that is malloc'd or freed then; NEAP_NEVER: none, or it leaks */
    place *places;       /* by life */
    neap_use *uses;      /* of an exec */
    neap_device *device; /* while it runs */
    int64_t lap;
} replay;

static neap_block **block_at(const replay *r, uint32_t life, int64_t lap)
{
    const place *p = &r->places[life];
    return &p->blocks[((lap % p->n) + p->n) % p->n];
}

static bool read_replay(const char *path, replay *r)
{
    neap_error error = {""};
    neap_info *info;
    (void)snprintf(r->name, sizeof r->name, "%.*s", (int)strcspn(bench_name(path), "."), bench_name(path));
    if (neap_trace_read(path, NULL, &error, &r->trace) != NEAP_OK ||
        neap_info_make(r->trace, 0, NULL, &error, &info) != NEAP_OK) {
        (void)fprintf(stderr, "bench_replay: %s: %s\n", path, error.text);
        return false;
    }
    r->peak_load = info->peak_load;
    neap_info_free(info);
    if (np_period_find(r->trace, np_memory_or_default(NULL), &r->period) != NEAP_OK || r->period.length == 0) {
        (void)fprintf(stderr, "bench_replay: %s: no period\n", path);
        return false;
    }
    return true;
}

static void replay_make(replay *r)
{
    const np_period *period = &r->period;
    size_t most_uses = 0;
    r->life_of = bench_allocate(period->length, sizeof *r->life_of);
    r->places = bench_allocate(period->lives.n, sizeof *r->places);
    for (r->divisor = 1; r->peak_load / r->divisor > LOAD_MAX;) {
        r->divisor *= 2;
    }
    for (uint32_t t = 0; t < period->length; t++) {
        const neap_event *event = &r->trace->events.items[period->origin + t];
        size_t n_uses = period->access_at.items[t + 1] - period->access_at.items[t];
        r->life_of[t] = NEAP_NEVER;
        r->period_ns += event->kind == NEAP_EVENT_EXEC ? (double)event->duration_ns : 0;
        most_uses = n_uses > most_uses ? n_uses : most_uses;
    }
    for (uint32_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        r->places[i].n = life->persistent ? 1 : life->end / period->length + 1;
        r->places[i].blocks = bench_allocate(r->places[i].n, sizeof *r->places[i].blocks);
        if (!life->persistent) {
            r->life_of[life->begin] = i;
            r->life_of[life->end % period->length] = i;
        }
    }
    r->uses = bench_allocate(most_uses, sizeof *r->uses);
}

static void replay_free(replay *r)
{
    for (size_t i = 0; i < r->period.lives.n; i++) {
        free(r->places[i].blocks);
    }
    free(r->places);
    free(r->life_of);
    free(r->uses);
    np_period_free(&r->period);
    neap_trace_free(r->trace);
}

/* ---------------------------------------------------------------- running it ---- */

static neap_status malloc_life(replay *r, uint32_t life, int64_t lap)
{
    uint64_t bytes = r->trace->blocks.items[r->period.lives.items[life].block].bytes / r->divisor;
    return neap_malloc(r->device, bytes > 0 ? bytes : 1, block_at(r, life, lap));
}

/* What is live when a period begins. */
static bool begin_replay(replay *r)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < r->period.lives.n; i++) {
        const np_life *life = &r->period.lives.items[i];
        int64_t n_before = life->persistent ? 1 : life->end / r->period.length;
        for (int64_t lap = -n_before; lap < 0 && status == NEAP_OK; lap++) {
            status = malloc_life(r, i, lap);
        }
    }
    r->lap = 0;
    return status == NEAP_OK;
}

static neap_status exec_at(replay *r, uint32_t t, const neap_event *event)
{
    const np_period *period = &r->period;
    size_t n = 0;
    for (uint32_t i = period->access_at.items[t]; i < period->access_at.items[t + 1]; i++) {
        const neap_access *access = &period->accesses.items[i];
        const np_life *life = &period->lives.items[access->block];
        int64_t lap = life->persistent || life->begin > t ? r->lap - 1 : r->lap; /* the youngest */
        r->uses[n++] = (neap_use){.block = *block_at(r, access->block, lap), .kind = access->kind};
    }
    neap_work work = {.name = neap_trace_exec_name(r->trace, event->subject), .duration_ns = event->duration_ns};
    return neap_exec(r->device, &work, r->uses, n);
}

static bool run_lap(void *user)
{
    replay *r = user;
    neap_status status = NEAP_OK;
    for (uint32_t t = 0; t < r->period.length && status == NEAP_OK; t++) {
        const neap_event *event = &r->trace->events.items[r->period.origin + t];
        uint32_t life = r->life_of[t];
        if (event->kind == NEAP_EVENT_EXEC) {
            status = exec_at(r, t, event);
        } else if (life != NEAP_NEVER && event->kind == NEAP_EVENT_MALLOC) {
            status = malloc_life(r, life, r->lap);
        } else if (life != NEAP_NEVER) {
            int64_t lap = r->lap - r->period.lives.items[life].end / r->period.length;
            status = neap_free(r->device, *block_at(r, life, lap));
        }
    }
    r->lap++;
    return status == NEAP_OK;
}

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
        replay_make(&r);
        for (size_t k = 0; k < n_cases; k++) {
            measure_replay(&f, &r, cases[k].link, cases[k].limit_share);
        }
        replay_free(&r);
    }
    return figures_close(&f);
}
