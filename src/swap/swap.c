/* swap.c: the public planner of swaps. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/status.h"
#include "swap/bound.h"
#include "swap/bound_overhead.h"
#include "swap/candidates.h"
#include "swap/planner.h"
#include "swap/stays.h"

enum { DEFAULT_THREADS = 8 };

#define LOAD_PLACE_SECONDS 0.1 /* where the limit is on the load: the footprint is only told */
#define SEARCH_SHARE 0.85      /* of the time: bounds take some too, and the last trial ends late */

struct neap_swap_plan {
    const neap_memory *memory;
    neap_swap_summary summary;
    neap_swap_entry *entries;
    np_stays stays;
};

/* A trace made ready for planning. */
typedef struct setting {
    const neap_memory *memory;
    const neap_trace *trace;
    neap_swap_options options; /* with the defaults filled in */
    neap_error *error;
    np_period period;
    np_timeline timeline; /* unknown directions taken as writes */
    np_timeline any;      /* the best possible directions */
    np_link link;
    np_planner planner;
    np_floor floor;
    uint64_t begin_ns;
} setting;

const char *neap_swap_method_name(neap_swap_method method)
{
    static const char *const names[NEAP_SWAP_N_METHODS] = {"search", "bo", "doa", "aoa", "wdoa", "swdoa"};
    return (unsigned)method < NEAP_SWAP_N_METHODS ? names[method] : "unknown";
}

void neap_swap_free(neap_swap_plan *plan)
{
    if (plan) {
        np_memory_free(plan->memory, plan->entries, plan->summary.n_swaps, sizeof *plan->entries);
        np_stays_free(&plan->stays);
        np_memory_free(plan->memory, plan, 1, sizeof *plan);
    }
}

const neap_swap_summary *neap_swap_get_summary(const neap_swap_plan *plan)
{
    return &plan->summary;
}

const neap_swap_entry *neap_swap_entries(const neap_swap_plan *plan, size_t *n_entries)
{
    *n_entries = plan->summary.n_swaps;
    return plan->entries;
}

const neap_swap_stay *neap_swap_stays(const neap_swap_plan *plan, size_t *n_stays)
{
    *n_stays = plan->stays.stays.n;
    return plan->stays.stays.items;
}

const neap_swap_exec *neap_swap_execs(const neap_swap_plan *plan, size_t *n_execs)
{
    *n_execs = plan->stays.n_execs;
    return plan->stays.execs;
}

/* ---- setting up ---- */

static neap_swap_options with_defaults(const neap_swap_options *options)
{
    neap_swap_options filled = *options;
    unsigned cores = np_parallel_cores();
    filled.slower = filled.slower > 0 ? filled.slower : 1;
    filled.overhead = filled.overhead > 0 ? filled.overhead : 0;
    filled.min_block = filled.min_block ? filled.min_block : (uint64_t)1 << 20;
    filled.page = filled.page ? filled.page : (uint64_t)2 << 20;
    filled.alignment = filled.alignment ? filled.alignment : 512;
    filled.seconds = filled.seconds > 0 ? fmin(filled.seconds, 1e6) : 2;
    filled.n_threads = filled.n_threads ? filled.n_threads : cores < DEFAULT_THREADS ? cores : DEFAULT_THREADS;
    return filled;
}

static neap_status check_options(const neap_swap_options *options, neap_error *error)
{
    const neap_link *link = &options->link;
    if (!(link->out_gbs > 0) || !(link->in_gbs > 0) || !(link->both_gbs >= 0) || !(link->latency_us >= 0) ||
        !isfinite(link->out_gbs) || !isfinite(link->in_gbs) || !isfinite(link->latency_us)) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "a link needs a speed above 0 in both directions");
    }
    if ((unsigned)options->method >= NEAP_SWAP_N_METHODS || !(options->limit_share >= 0) || options->limit_share > 1) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "an unknown method, or a limit that is no share of the peak load");
    }
    if (options->page % options->alignment != 0) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "the page must be a multiple of the alignment");
    }
    return NEAP_OK;
}

static neap_status make_timelines(setting *s)
{
    np_timeline_options options = {.alignment = s->options.alignment, .slower = s->options.slower};
    neap_status status;
    options.directions = NP_DIRECTIONS_CAREFUL;
    status = np_timeline_make(&s->period, &options, s->memory, &s->timeline);
    if (status == NEAP_OK) {
        options.directions = NP_DIRECTIONS_ANY;
        status = np_timeline_make(&s->period, &options, s->memory, &s->any);
    }
    if (status == NEAP_OK && s->timeline.n_execs == 0) {
        status = np_fail(s->error, NEAP_BAD_INPUT,
                         "there are no execs in the period: swapping needs to know when blocks are used");
    }
    return status;
}

static void setting_free(setting *s)
{
    np_simulator_free(s->planner.simulator);
    if (s->any.memory) {
        np_timeline_free(&s->any);
    }
    if (s->timeline.memory) {
        np_timeline_free(&s->timeline);
    }
    if (s->period.memory) {
        np_period_free(&s->period);
    }
}

static neap_status setting_make(setting *s)
{
    neap_status status = check_options(&s->options, s->error);
    if (status == NEAP_OK) {
        status = np_period_find(s->trace, s->memory, &s->period);
    }
    if (status == NEAP_OK && s->period.length == 0) {
        status = NEAP_NO_PERIOD;
    }
    if (status == NEAP_OK) {
        status = make_timelines(s);
    }
    if (status == NEAP_OK) {
        status = np_bound_floor(&s->timeline, &s->floor);
    }
    if (status != NEAP_OK) {
        return status;
    }
    s->link = np_link_from(&s->options.link);
    s->planner = (np_planner){.timeline = &s->timeline,
                              .link = s->link,
                              .min_block = s->options.min_block,
                              .page = s->options.page,
                              .seed = s->options.seed,
                              .n_threads = s->options.n_threads,
                              .deadline_ns = s->begin_ns + (uint64_t)(s->options.seconds * SEARCH_SHARE * 1e9),
                              .error = s->error};
    return np_simulator_create(&s->timeline, &s->link, &s->planner.simulator);
}

static setting setting_of(const neap_trace *trace, const neap_swap_options *options, const neap_memory *memory,
                          neap_error *error)
{
    return (setting){.memory = np_memory_or_default(memory),
                     .trace = trace,
                     .options = with_defaults(options),
                     .error = error,
                     .begin_ns = np_clock_ns()};
}

/* ---- handing over ---- */

static uint32_t event_of(const setting *s, uint32_t exec)
{
    return s->period.origin + s->timeline.times.items[exec % s->timeline.n_execs];
}

static neap_status make_plan(const setting *s, const np_judged *judged, neap_swap_plan **plan)
{
    const np_timeline *timeline = &s->timeline;
    neap_swap_plan *made = np_memory_alloc_zero(s->memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = s->memory;
    made->entries = np_memory_alloc(s->memory, judged->swaps.n, sizeof *made->entries);
    if (!made->entries) {
        np_memory_free(s->memory, made, 1, sizeof *made);
        return NEAP_NO_MEMORY;
    }
    made->summary.n_swaps = judged->swaps.n;
    for (size_t i = 0; i < judged->swaps.n; i++) {
        const np_swap *swap = &judged->swaps.items[i];
        const np_gap *gap = &timeline->gaps.items[swap->gap];
        made->entries[i] = (neap_swap_entry){
            .block = s->period.lives.items[timeline->blocks.items[gap->block].life].block,
            .bytes = swap->bytes,
            .used_before = event_of(s, gap->from),
            .back_after = event_of(s, swap->in_after),
            .used_after = event_of(s, gap->to),
            .gap_ns = gap->due_ns - np_timeline_end(timeline, gap->from),
            .copies_ns = 2 * s->link.latency_ns + (double)swap->bytes / s->link.out + (double)swap->bytes / s->link.in,
        };
    }
    *plan = made;
    return NEAP_OK;
}

/* The bounds for unknown directions taken as writes, and for the best possible ones, side by side. */
typedef struct bounding {
    const setting *setting;
    uint64_t limit; /* 0: none */
    uint64_t peak[2];
    double overhead_ns[2];
    neap_status status[4];
} bounding;

static void find_bound(void *user, unsigned index)
{
    bounding *b = user;
    const setting *s = b->setting;
    const np_timeline *timeline = index % 2 == 0 ? &s->timeline : &s->any;
    if (index >= 2) {
        b->status[index] = np_bound_peak(timeline, &s->link, s->options.overhead, &b->peak[index % 2]);
    } else if (b->limit != 0) {
        b->status[index] = np_bound_overhead(timeline, &s->link, b->limit, &b->overhead_ns[index % 2]);
    }
}

static neap_status find_bounds(const setting *s, neap_swap_summary *summary, bool has_limit)
{
    bounding b = {.setting = s, .limit = has_limit ? summary->limit : 0};
    np_parallel_for(s->options.n_threads, 4, find_bound, &b);
    for (unsigned i = 0; i < 4; i++) {
        if (b.status[i] != NEAP_OK) {
            return b.status[i];
        }
    }
    summary->bound_peak = (double)b.peak[0];
    summary->bound_peak_any = (double)b.peak[1];
    summary->bound_overhead = b.overhead_ns[0] / s->timeline.period_ns;
    summary->bound_overhead_any = b.overhead_ns[1] / s->timeline.period_ns;
    return NEAP_OK;
}

static neap_status summarise(const setting *s, const np_judged *judged, uint64_t limit, uint64_t lowest_peak,
                             neap_swap_plan *plan)
{
    neap_swap_summary *summary = &plan->summary;
    np_candidates candidates;
    neap_status status = np_candidates_find(&s->timeline, NP_SCOPE_PEAK, s->options.min_block, &candidates);
    if (status != NEAP_OK) {
        return status;
    }
    summary->load_min = candidates.load_min;
    np_candidates_free(&candidates);
    summary->limit = limit ? limit : judged->place.footprint;
    summary->peak_load = s->timeline.peak_load;
    summary->planned_peak = judged->simulation.peak;
    summary->lowest_peak = lowest_peak < summary->planned_peak ? lowest_peak : summary->planned_peak;
    summary->floor = s->floor.bytes;
    summary->floor_event = event_of(s, s->floor.exec);
    summary->begin = s->period.origin;
    summary->length = s->period.length;
    summary->iteration_ns = s->timeline.period_ns;
    summary->overhead = judged->simulation.overhead;
    summary->bytes_out = judged->simulation.bytes_out;
    summary->bytes_in = judged->simulation.bytes_in;
    summary->footprint = judged->place.footprint;
    summary->footprint_bound =
        judged->place.bound > summary->planned_peak ? judged->place.bound : summary->planned_peak;
    summary->ratio = summary->planned_peak ? (double)summary->footprint / (double)summary->planned_peak : 1;
    summary->method = neap_swap_method_name(limit ? s->options.method : NEAP_SWAP_SEARCH);
    return find_bounds(s, summary, limit != 0);
}

static neap_status fail_below_floor(const setting *s, uint64_t limit)
{
    const neap_event *event = &s->trace->events.items[event_of(s, s->floor.exec)];
    return np_fail(s->error, NEAP_NO_PLAN,
                   "the limit of %llu bytes is below the floor: exec %s (event %u) alone needs %llu",
                   (unsigned long long)limit, neap_trace_exec_name(s->trace, event->subject),
                   event_of(s, s->floor.exec), (unsigned long long)s->floor.bytes);
}

static void fail_within(const setting *s, uint64_t limit)
{
    char nearest[64] = "";
    if (s->planner.nearest > 0) {
        (void)snprintf(nearest, sizeof nearest, "; the lowest it found needs %llu",
                       (unsigned long long)s->planner.nearest);
    }
    (void)np_fail(s->error, NEAP_NO_PLAN, "no plan within %llu bytes was found by %s%s; the floor is %llu",
                  (unsigned long long)limit, neap_swap_method_name(s->options.method), nearest,
                  (unsigned long long)s->floor.bytes);
}

/* In bytes; 0 where none was given, and at least one where one was. */
static uint64_t limit_of(const setting *s)
{
    uint64_t share = (uint64_t)(s->options.limit_share * (double)s->timeline.peak_load);
    if (s->options.limit != 0 || s->options.limit_share == 0) {
        return s->options.limit;
    }
    return share > 0 ? share : 1;
}

/* The load is planned, and then placed. */
static neap_status plan_on_load(setting *s, neap_swap_method method, uint64_t limit, np_judged *judged)
{
    bool found = false;
    neap_status status = np_plan_load(&s->planner, method, limit, &judged->swaps, &judged->simulation, &found);
    if (status == NEAP_OK && !found) {
        return NEAP_NO_PLAN;
    }
    return status == NEAP_OK ? np_planner_judge(&s->planner, limit, LOAD_PLACE_SECONDS, 0, judged) : status;
}

static neap_status plan_within(setting *s, neap_swap_method method, uint64_t limit, np_judged *judged)
{
    return s->options.on_load ? plan_on_load(s, method, limit, judged)
                              : np_plan_within_limit(&s->planner, method, limit, judged);
}

static neap_status plan_swaps(setting *s, neap_swap_plan **plan)
{
    uint64_t limit = limit_of(s);
    uint64_t lowest_peak = UINT64_MAX;
    np_judged judged = {0};
    neap_swap_plan *result = NULL;
    neap_status status;
    if (limit != 0 && limit < s->floor.bytes) {
        return fail_below_floor(s, limit);
    }
    status = limit == 0 ? np_plan_without_overhead(&s->planner, s->options.overhead, &judged, &lowest_peak)
                        : plan_within(s, s->options.method, limit, &judged);
    if (status == NEAP_NO_PLAN) {
        fail_within(s, limit);
    }
    if (status == NEAP_OK) {
        status = np_planner_settle(&s->planner, &judged);
    }
    if (status == NEAP_OK) {
        status = np_plan_bound(&s->planner, &judged);
    }
    if (status == NEAP_OK) {
        status = make_plan(s, &judged, &result);
    }
    if (status == NEAP_OK) {
        status = np_stays_make(&s->planner, &judged, result->entries, &result->stays);
    }
    if (status == NEAP_OK) {
        status = summarise(s, &judged, limit, lowest_peak, result);
    }
    np_judged_free(&judged, s->memory);
    if (status != NEAP_OK) {
        neap_swap_free(result);
        return status;
    }
    result->summary.seconds = 1e-9 * (double)(np_clock_ns() - s->begin_ns);
    *plan = result;
    return NEAP_OK;
}

neap_status neap_swap_make(const neap_trace *trace, const neap_swap_options *options, const neap_memory *memory,
                           neap_error *error, neap_swap_plan **plan)
{
    neap_error nothing;
    setting s = setting_of(trace, options, memory, error ? error : &nothing);
    neap_status status;
    s.error->text[0] = '\0';
    status = setting_make(&s);
    if (status == NEAP_OK) {
        status = plan_swaps(&s, plan);
    }
    setting_free(&s);
    if (status != NEAP_OK && !s.error->text[0]) {
        (void)np_fail(s.error, status, "%s", neap_status_message(status));
    }
    return status;
}

/* ---- the sweep ---- */

/* The search takes another method's plan where that costs less. */
static neap_status sweep_row(setting *s, double seconds, neap_sweep_row *row)
{
    np_judged judged = {0};
    neap_status status = NEAP_OK;
    for (int method = 0; method < NEAP_SWAP_N_METHODS && status == NEAP_OK; method++) {
        double *best = &row->overhead[NEAP_SWAP_SEARCH];
        s->planner.deadline_ns = np_clock_ns() + (uint64_t)(seconds * 1e9);
        status = plan_within(s, (neap_swap_method)method, row->limit, &judged);
        row->overhead[method] = status == NEAP_OK ? judged.simulation.overhead : INFINITY;
        if (status == NEAP_OK && (method == NEAP_SWAP_SEARCH || row->overhead[method] < *best)) {
            *best = row->overhead[method];
            row->footprint = judged.place.footprint;
        }
        status = status == NEAP_NO_PLAN ? NEAP_OK : status;
    }
    np_judged_free(&judged, s->memory);
    return status;
}

/* What holds a limit holds all higher ones. */
static void take_lower_plans(neap_sweep_row *rows, size_t n_rows)
{
    for (size_t i = n_rows; i-- > 1;) {
        for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
            if (rows[i].overhead[method] < rows[i - 1].overhead[method]) {
                rows[i - 1].overhead[method] = rows[i].overhead[method];
                rows[i - 1].footprint = method == NEAP_SWAP_SEARCH ? rows[i].footprint : rows[i - 1].footprint;
            }
        }
    }
}

/* The bounds of all rows at once: hardly more work than one. */
static neap_status sweep_bounds(const setting *s, size_t n_rows, neap_sweep_row *rows)
{
    uint64_t *limits = np_memory_alloc(s->memory, n_rows, sizeof *limits);
    double *ns = np_memory_alloc(s->memory, n_rows, sizeof *ns);
    neap_status status = limits && ns ? NEAP_OK : NEAP_NO_MEMORY;
    for (size_t i = 0; i < n_rows && status == NEAP_OK; i++) {
        limits[i] = rows[i].limit;
    }
    if (status == NEAP_OK) {
        status = np_bound_overheads(&s->timeline, &s->link, limits, n_rows, ns);
    }
    for (size_t i = 0; i < n_rows && status == NEAP_OK; i++) {
        rows[i].bound_overhead = ns[i] / s->timeline.period_ns;
    }
    if (status == NEAP_OK) {
        status = np_bound_overheads(&s->any, &s->link, limits, n_rows, ns);
    }
    for (size_t i = 0; i < n_rows && status == NEAP_OK; i++) {
        rows[i].bound_overhead_any = ns[i] / s->timeline.period_ns;
    }
    np_memory_free(s->memory, limits, n_rows, sizeof *limits);
    np_memory_free(s->memory, ns, n_rows, sizeof *ns);
    return status;
}

neap_status neap_swap_sweep(const neap_trace *trace, const neap_swap_options *options, size_t n_rows,
                            const neap_memory *memory, neap_error *error, neap_sweep_row *rows)
{
    neap_error nothing;
    setting s = setting_of(trace, options, memory, error ? error : &nothing);
    neap_sweep_row *made = np_memory_alloc(s.memory, n_rows, sizeof *made); /* handed over only when all is well */
    neap_status status;
    s.error->text[0] = '\0';
    status = made ? setting_make(&s) : NEAP_NO_MEMORY;
    for (size_t i = 0; i < n_rows && status == NEAP_OK; i++) {
        double share = n_rows > 1 ? (double)i / (double)(n_rows - 1) : 0;
        double limit = (double)s.timeline.peak_load - share * ((double)s.timeline.peak_load - (double)s.floor.bytes);
        neap_sweep_row row = {.limit = i + 1 == n_rows && n_rows > 1 ? s.floor.bytes : (uint64_t)limit};
        status = sweep_row(&s, s.options.seconds, &row);
        made[i] = row;
    }
    if (status == NEAP_OK) {
        take_lower_plans(made, n_rows);
    }
    if (status == NEAP_OK) {
        status = sweep_bounds(&s, n_rows, made);
    }
    for (size_t i = 0; i < n_rows && status == NEAP_OK; i++) {
        rows[i] = made[i];
    }
    np_memory_free(s.memory, made, n_rows, sizeof *made);
    setting_free(&s);
    if (status != NEAP_OK && !s.error->text[0]) {
        (void)np_fail(s.error, status, "%s", neap_status_message(status));
    }
    return status;
}
