/* export_perfetto.c: a trace, what a plan holds, and what a limit does to it, as lanes and counters in time.
 *
 * Recorded work has device times; blocks come and go in between. A malloc or free is drawn at the end of the work before
 * it, each a nanosecond after the last, so that the counter shows every load there was. A trace without work is drawn in
 * logical time: a microsecond an event. Work that overlaps (other streams) goes to further lanes.
 *
 * Under a limit, a few periods of the steady state are drawn as simulated, from the plan's first event on. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "export.h"
#include "units.h"

enum { RECORDED = 1, LIMITED = 2 };           /* processes */
enum { LANE_COMPUTE = 1, LANE_OUT, LANE_IN }; /* of the second */
enum { LANES_MAX = 64, N_PERIODS = 3, EVENT_NS = 1000 };

typedef struct drawing {
    perfetto out;
    const perfetto_subject *subject;
    const neap_event *events;
    size_t n_events;
    const neap_trace_block *blocks;
    size_t n_blocks;
    uint64_t *at_ns;    /* [event]: when it is drawn */
    uint64_t end_ns;    /* of everything recorded */
    uint64_t alignment; /* of loads */
} drawing;

/* ---- when ---- */

static bool has_execs(const drawing *d)
{
    for (size_t i = 0; i < d->n_events; i++) {
        if (d->events[i].kind == NEAP_EVENT_EXEC) {
            return true;
        }
    }
    return false;
}

static uint64_t first_start(const drawing *d)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < d->n_events; i++) {
        if (d->events[i].kind == NEAP_EVENT_EXEC && d->events[i].start_ns < first) {
            first = d->events[i].start_ns;
        }
    }
    return first;
}

static void find_times(drawing *d)
{
    bool in_time = has_execs(d);
    uint64_t base = first_start(d);
    uint64_t now = 0;
    for (size_t i = 0; i < d->n_events; i++) {
        const neap_event *event = &d->events[i];
        if (!in_time) {
            d->at_ns[i] = (uint64_t)i * EVENT_NS;
            d->end_ns = (uint64_t)(i + 1) * EVENT_NS;
        } else if (event->kind == NEAP_EVENT_EXEC) {
            uint64_t start = event->start_ns - base;
            uint64_t end = event->duration_ns < UINT64_MAX - start ? start + event->duration_ns : UINT64_MAX;
            d->at_ns[i] = start;
            now = end > now ? end : now;
        } else {
            d->at_ns[i] = now;
            now += now < UINT64_MAX;
        }
        d->end_ns = now > d->end_ns ? now : d->end_ns;
    }
}

/* ---- what was recorded ---- */

typedef struct start {
    uint64_t ns;
    uint32_t event;
} start;

static int by_start(const void *left, const void *right)
{
    const start *a = left;
    const start *b = right;
    if (a->ns != b->ns) {
        return a->ns < b->ns ? -1 : 1;
    }
    return a->event < b->event ? -1 : a->event > b->event;
}

/* The first lane that is free by then; where all are taken, the one that is free soonest. */
static int find_lane(const uint64_t *free_ns, int *n_lanes, uint64_t at)
{
    int soonest = 0;
    for (int i = 0; i < *n_lanes; i++) {
        if (free_ns[i] <= at) {
            return i;
        }
        soonest = free_ns[i] < free_ns[soonest] ? i : soonest;
    }
    return *n_lanes < LANES_MAX ? (*n_lanes)++ : soonest;
}

static bool draw_execs(drawing *d)
{
    uint64_t free_ns[LANES_MAX] = {0};
    int n_lanes = 0;
    size_t n = 0;
    start *starts = malloc((d->n_events + 1) * sizeof *starts);
    if (!starts) {
        return false;
    }
    for (size_t i = 0; i < d->n_events; i++) {
        if (d->events[i].kind == NEAP_EVENT_EXEC) {
            starts[n++] = (start){d->at_ns[i], (uint32_t)i};
        }
    }
    qsort(starts, n, sizeof *starts, by_start);
    for (size_t i = 0; i < n; i++) {
        const neap_event *event = &d->events[starts[i].event];
        int lane = find_lane(free_ns, &n_lanes, starts[i].ns);
        uint64_t begin = starts[i].ns > free_ns[lane] ? starts[i].ns : free_ns[lane];
        uint64_t end = event->duration_ns < UINT64_MAX - starts[i].ns ? starts[i].ns + event->duration_ns : UINT64_MAX;
        end = end > begin ? end : begin;
        free_ns[lane] = end;
        perfetto_slice(&d->out, RECORDED, lane + 1, neap_trace_exec_name(d->subject->trace, event->subject), begin, end,
                       starts[i].event, 0);
    }
    for (int i = 0; i < n_lanes; i++) {
        char name[UNITS_CHARS] = "compute";
        if (i > 0) {
            (void)snprintf(name, sizeof name, "compute %d", i + 1);
        }
        perfetto_name(&d->out, RECORDED, i + 1, name, i + 1);
    }
    free(starts);
    return true;
}

static uint64_t rounded(const drawing *d, const neap_trace_block *block)
{
    return (block->bytes + d->alignment - 1) / d->alignment * d->alignment;
}

static void draw_life(drawing *d, const neap_trace_block *block, bool is_begin, uint64_t at_ns)
{
    if (block->bytes >= d->subject->min_block) {
        perfetto_life(&d->out, RECORDED, is_begin, block, at_ns);
    }
}

static void draw_load(drawing *d)
{
    uint64_t load = 0;
    for (size_t i = 0; i < d->n_blocks && d->blocks[i].malloc_event == NEAP_NEVER; i++) {
        load += rounded(d, &d->blocks[i]);
        draw_life(d, &d->blocks[i], true, 0);
    }
    perfetto_counter(&d->out, RECORDED, "load", 0, load);
    for (size_t i = 0; i < d->n_events; i++) {
        if (d->events[i].kind == NEAP_EVENT_EXEC) {
            continue;
        }
        const neap_trace_block *block = &d->blocks[d->events[i].subject];
        bool is_malloc = d->events[i].kind == NEAP_EVENT_MALLOC;
        load = is_malloc ? load + rounded(d, block) : load - rounded(d, block);
        perfetto_counter(&d->out, RECORDED, "load", d->at_ns[i], load);
        draw_life(d, block, is_malloc, d->at_ns[i]);
    }
    for (size_t i = 0; i < d->n_blocks; i++) {
        if (d->blocks[i].free_event == NEAP_NEVER) {
            draw_life(d, &d->blocks[i], false, d->end_ns);
        }
    }
}

/* From the first event of the plan on; before that a program is only watched. */
static void draw_pool(drawing *d)
{
    const neap_plan_summary *summary = neap_plan_get_summary(d->subject->pool);
    perfetto_counter(&d->out, RECORDED, "held by the plan", d->at_ns[summary->begin], summary->footprint);
    perfetto_counter(&d->out, RECORDED, "held by the plan", d->end_ns, summary->footprint);
}

/* ---- what a limit does ---- */

/* A copy, or an exec, in a period. */
typedef struct span {
    double start_ns;
    double end_ns;
    uint32_t index;
} span;

static int by_span(const void *left, const void *right)
{
    const span *a = left;
    const span *b = right;
    if (a->start_ns != b->start_ns) {
        return a->start_ns < b->start_ns ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

/* One queue: what starts in the period, in order, for a few periods. Sums of times are wrong by less than a nanosecond:
 * what touches must not overlap. */
static void draw_copies(drawing *d, int lane, span *spans, size_t n, double period_ns, uint64_t from_ns)
{
    const neap_swap_plan *plan = d->subject->swap;
    size_t n_entries;
    const neap_swap_entry *entries = neap_swap_entries(plan, &n_entries);
    uint64_t free_ns = 0;
    qsort(spans, n, sizeof *spans, by_span);
    for (int period = 0; period < N_PERIODS; period++) {
        for (size_t i = 0; i < n; i++) {
            const neap_swap_entry *entry = &entries[spans[i].index];
            uint64_t begin = from_ns + (uint64_t)llround(spans[i].start_ns + period * period_ns);
            uint64_t end = from_ns + (uint64_t)llround(spans[i].end_ns + period * period_ns);
            char name[UNITS_CHARS];
            begin = begin > free_ns ? begin : free_ns;
            end = end > begin ? end : begin;
            free_ns = end;
            (void)snprintf(name, sizeof name, "block %" PRIu64, d->blocks[entry->block].id);
            perfetto_slice(&d->out, LIMITED, lane, name, begin, end,
                           lane == LANE_OUT ? entry->used_before : entry->used_after, entry->bytes);
        }
    }
}

static bool draw_queues(drawing *d, double period_ns, uint64_t from_ns)
{
    size_t n;
    const neap_swap_entry *entries = neap_swap_entries(d->subject->swap, &n);
    span *spans = malloc((n + 1) * sizeof *spans);
    if (!spans) {
        return false;
    }
    for (int lane = LANE_OUT; lane <= LANE_IN; lane++) {
        size_t n_spans = 0;
        for (size_t i = 0; i < n; i++) {
            span s = lane == LANE_OUT ? (span){entries[i].out_start_ns, entries[i].out_end_ns, (uint32_t)i}
                                      : (span){entries[i].in_start_ns, entries[i].in_end_ns, (uint32_t)i};
            if (isfinite(s.start_ns) && isfinite(s.end_ns) && s.start_ns >= 0) {
                spans[n_spans++] = s;
            }
        }
        draw_copies(d, lane, spans, n_spans, period_ns, from_ns);
    }
    free(spans);
    return true;
}

/* [time of the period]: bytes that blocks have on the device. */
static uint64_t *find_held(const drawing *d, uint32_t length)
{
    size_t n;
    const neap_swap_stay *stays = neap_swap_stays(d->subject->swap, &n);
    uint64_t *held = calloc((size_t)length + 1, sizeof *held);
    if (!held) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) { /* differences first: they wrap around, and back */
        held[stays[i].begin] += stays[i].bytes;
        held[stays[i].end] -= stays[i].bytes;
    }
    for (uint32_t t = 1; t <= length; t++) {
        held[t] += held[t - 1];
    }
    return held;
}

static bool draw_limited(drawing *d)
{
    const neap_swap_summary *summary = neap_swap_get_summary(d->subject->swap);
    double period_ns = summary->iteration_ns * (1 + summary->overhead);
    uint64_t from_ns = d->at_ns[summary->begin];
    uint64_t free_ns = 0;
    size_t n;
    const neap_swap_exec *execs = neap_swap_execs(d->subject->swap, &n);
    uint64_t *held = find_held(d, summary->length);
    if (!held) {
        return false;
    }
    perfetto_counter(&d->out, LIMITED, "limit", from_ns, summary->limit);
    for (int period = 0; period < N_PERIODS; period++) {
        for (size_t i = 0; i < n; i++) {
            uint64_t begin = from_ns + (uint64_t)llround(execs[i].start_ns + period * period_ns);
            uint64_t end = from_ns + (uint64_t)llround(execs[i].end_ns + period * period_ns);
            begin = begin > free_ns ? begin : free_ns;
            end = end > begin ? end : begin;
            free_ns = end;
            perfetto_slice(&d->out, LIMITED, LANE_COMPUTE,
                           neap_trace_exec_name(d->subject->trace, d->events[execs[i].event].subject), begin, end,
                           execs[i].event, 0);
            perfetto_counter(&d->out, LIMITED, "held", begin, held[execs[i].event - summary->begin]);
        }
    }
    perfetto_counter(&d->out, LIMITED, "limit", free_ns, summary->limit);
    free(held);
    return draw_queues(d, period_ns, from_ns);
}

static void name_limited(drawing *d)
{
    const neap_swap_summary *summary = neap_swap_get_summary(d->subject->swap);
    char size[UNITS_CHARS];
    char name[UNITS_CHARS + 40];
    (void)snprintf(name, sizeof name, "within %s, as simulated", units_bytes(summary->limit, size));
    perfetto_name(&d->out, LIMITED, PERFETTO_NO_THREAD, name, LIMITED);
    perfetto_name(&d->out, LIMITED, LANE_COMPUTE, "compute", LANE_COMPUTE);
    perfetto_name(&d->out, LIMITED, LANE_OUT, "copy out", LANE_OUT);
    perfetto_name(&d->out, LIMITED, LANE_IN, "copy in", LANE_IN);
}

/* ---- the file ---- */

bool perfetto_write(FILE *file, const perfetto_subject *subject, size_t *n_events)
{
    drawing d = {.subject = subject, .alignment = neap_trace_is_csv(subject->trace) ? 1 : 512};
    d.events = neap_trace_events(subject->trace, &d.n_events);
    d.blocks = neap_trace_blocks(subject->trace, &d.n_blocks);
    d.at_ns = calloc(d.n_events + 1, sizeof *d.at_ns);
    if (!d.at_ns) {
        return false;
    }
    find_times(&d);
    perfetto_begin(&d.out, file);
    perfetto_name(&d.out, RECORDED, PERFETTO_NO_THREAD, subject->name, RECORDED);
    bool is_good = draw_execs(&d);
    if (is_good) {
        draw_load(&d);
        if (subject->pool) {
            draw_pool(&d);
        }
        if (subject->swap) {
            name_limited(&d);
            is_good = draw_limited(&d);
        }
    }
    perfetto_end(&d.out);
    *n_events = d.out.n_events;
    free(d.at_ns);
    return is_good;
}
