/* report_data.c: a subject as the page reads it.
 *
 * Things of one kind are written as columns, one list a field, and are named by their row from then on: blocks by their
 * row in "blocks", execs by theirs in "execs", kernels by theirs in "names". Times are events of the period from the
 * plan's begin, or ns. cli/page/data.js is the other side of this. */
#include <math.h>
#include <stdlib.h>

#include "report.h"
#include "report_data.h"
#include "swap.h"
#include "verbs.h"

#define NO_ROW UINT32_MAX

/* ---- the period: execs and blocks ---- */

static const neap_event *event_at(const report_writer *w, uint32_t time)
{
    size_t event = (size_t)w->pool->begin + time;
    return event < w->n_events ? &w->events[event] : NULL;
}

static bool is_exec(const report_writer *w, uint32_t time)
{
    const neap_event *event = event_at(w, time);
    return event && event->kind == NEAP_EVENT_EXEC;
}

/* Execs that are execs of the period, by time; their number, where `times` is NULL. */
static size_t list_execs(const report_writer *w, uint32_t *times)
{
    size_t n = 0;
    for (uint32_t t = 0; t < w->length; t++) {
        if (is_exec(w, t)) {
            if (times) {
                times[n] = t;
            }
            n++;
        }
    }
    return n;
}

/* Names are numbered in the trace; the page gets those of the period, numbered anew. */
static bool put_names(const report_writer *w, const uint32_t *times, size_t n_execs)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n_execs; i++) {
        uint32_t name = event_at(w, times[i])->subject;
        most = name > most ? name : most;
    }
    uint32_t *row = malloc(((size_t)most + 1) * sizeof *row);
    if (!row) {
        return false;
    }
    for (uint32_t i = 0; i <= most; i++) {
        row[i] = NO_ROW;
    }
    uint32_t n_names = 0;
    json_array_begin(w->out, "names");
    for (size_t i = 0; i < n_execs; i++) {
        uint32_t name = event_at(w, times[i])->subject;
        if (row[name] == NO_ROW) {
            row[name] = n_names++;
            json_text(w->out, NULL, neap_trace_exec_name(w->subject->trace, name));
        }
    }
    json_array_end(w->out);
    PUT_COLUMN(w, "exec_name", n_execs, row[event_at(w, times[i])->subject]);
    free(row);
    return true;
}

static double duration_of(const report_writer *w, uint32_t time)
{
    return (double)event_at(w, time)->duration_ns * w->request->options.slower;
}

/* Undisturbed, execs follow each other with an even pause before each: what their durations leave of the iteration. */
static bool put_execs(const report_writer *w)
{
    size_t n = list_execs(w, NULL);
    uint32_t *times = malloc((n + 1) * sizeof *times);
    double *ends = malloc((n + 1) * sizeof *ends);
    if (!times || !ends) {
        free(times);
        free(ends);
        return false;
    }
    (void)list_execs(w, times);
    double busy_ns = 0;
    for (size_t i = 0; i < n; i++) {
        busy_ns += duration_of(w, times[i]);
    }
    double iteration_ns =
        w->subject->n_limits > 0 ? neap_swap_get_summary(w->subject->limits[0].plan)->iteration_ns : busy_ns;
    double pause_ns = n > 0 ? fmax(0, iteration_ns - busy_ns) / (double)n : 0;
    double now_ns = 0;
    for (size_t i = 0; i < n; i++) {
        now_ns += pause_ns + duration_of(w, times[i]);
        ends[i] = now_ns;
    }
    json_real(w->out, "iteration_ns", iteration_ns);
    PUT_COLUMN(w, "exec_at", n, times[i]);
    PUT_TIMES(w, "exec_start", n, ends[i] - duration_of(w, times[i]));
    PUT_TIMES(w, "exec_end", n, ends[i]);
    bool is_put = put_names(w, times, n);
    free(times);
    free(ends);
    return is_put;
}

static bool lives_always(const report_writer *w, const neap_plan_buffer *buffer)
{
    return buffer->end - buffer->begin >= w->pool->length;
}

/* Calls of the accesses of the period, and of blocks that live on into the next, until they end. */
typedef void visit(report_writer *w, uint32_t row, uint32_t time, neap_access_kind kind, void *user);

static void visit_accesses(report_writer *w, const bool *is_always, visit *call, void *user)
{
    for (uint32_t t = 0; t < 2 * (uint64_t)w->length; t++) {
        if (!is_exec(w, t)) {
            continue;
        }
        const neap_event *event = event_at(w, t);
        for (uint32_t i = 0; i < event->n_accesses; i++) {
            const neap_access *access = &w->accesses[event->first_access + i];
            uint32_t row = w->row_of[access->block];
            if (row != NO_ROW && (t < w->length || !is_always[row])) {
                call(w, row, t, access->kind, user);
            }
        }
    }
}

static void count_access(report_writer *w, uint32_t row, uint32_t time, neap_access_kind kind, void *user)
{
    (void)time;
    (void)kind;
    (void)user;
    w->first[row + 1]++;
}

/* 4 * time + kind: one number an access. */
static void store_access(report_writer *w, uint32_t row, uint32_t time, neap_access_kind kind, void *user)
{
    uint64_t *coded = user;
    coded[w->first[row]++] = 4 * (uint64_t)time + (uint64_t)kind;
}

/* As recorded: doubtful ones are among them. */
static bool put_accesses(report_writer *w, const bool *is_always)
{
    visit_accesses(w, is_always, count_access, NULL);
    for (uint32_t i = 0; i < w->n_rows; i++) {
        w->first[i + 1] += w->first[i];
    }
    size_t n = w->first[w->n_rows];
    uint64_t *coded = calloc(n + 1, sizeof *coded);
    if (!coded) {
        return false;
    }
    PUT_COLUMN(w, "access_first", (size_t)w->n_rows + 1, w->first[i]);
    visit_accesses(w, is_always, store_access, coded);
    PUT_COLUMN(w, "access", n, coded[i]);
    free(coded);
    return true;
}

static bool put_blocks(report_writer *w)
{
    neap_plan_buffer *of_row = calloc(w->n_buffers + 1, sizeof *of_row); /* its first place: how long it lives */
    bool *is_always = calloc(w->n_buffers + 1, sizeof *is_always);
    w->first = calloc(w->n_buffers + 2, sizeof *w->first);
    bool is_put = of_row && is_always && w->first;
    for (size_t i = 0; i < w->n_buffers && is_put; i++) {
        if (w->buffers[i].place == 0) {
            w->row_of[w->buffers[i].block] = w->n_rows;
            is_always[w->n_rows] = lives_always(w, &w->buffers[i]);
            of_row[w->n_rows++] = w->buffers[i];
        }
    }
    if (is_put) {
        json_object_begin(w->out, "blocks");
        PUT_COLUMN(w, "id", w->n_rows, w->blocks[of_row[i].block].id);
        PUT_COLUMN(w, "bytes", w->n_rows, w->blocks[of_row[i].block].bytes);
        PUT_COLUMN(w, "begin", w->n_rows, of_row[i].begin);
        PUT_COLUMN(w, "end", w->n_rows, of_row[i].end);
        is_put = put_accesses(w, is_always);
        json_object_end(w->out);
    }
    free(of_row);
    free(is_always);
    free(w->first);
    w->first = NULL;
    return is_put;
}

/* ---- the subject ---- */

/* When each iteration of the period begins, in events; one alone where the period is one. */
static bool put_iterations(const report_writer *w)
{
    neap_info *info;
    if (neap_info_make(w->subject->trace, 0, NULL, NULL, &info) != NEAP_OK) {
        return false;
    }
    size_t n = info->n_variants > 1 ? info->n_variants : 0;
    uint64_t begin = (uint64_t)info->period_begin + w->length - info->cut; /* below two periods after time 0 */
    PUT_COLUMN(w, "iterations", n, (begin + info->variants[i].begin) % w->length);
    neap_info_free(info);
    return true;
}

static void put_heading(const report_writer *w)
{
    static const char *const keys[] = {"model", "batch", "img", "opt", "gpu"};
    json_text(w->out, "name", file_name(w->subject->path));
    json_object_begin(w->out, "meta");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *value = neap_trace_meta(w->subject->trace, keys[i]);
        if (value) {
            json_text(w->out, keys[i], value);
        }
    }
    json_object_end(w->out);
    swap_put_link(w->out, w->subject->link_name, &w->subject->link);
    json_uint(w->out, "begin", w->pool->begin);
    json_uint(w->out, "events", w->length);
    json_uint(w->out, "alignment", w->pool->alignment);
    if (w->subject->n_limits > 0) {
        const neap_swap_summary *summary = neap_swap_get_summary(w->subject->limits[0].plan);
        json_uint(w->out, "peak_load", summary->peak_load);
        json_uint(w->out, "floor", summary->floor);
        json_text(w->out, "floor_exec",
                  neap_trace_exec_name(w->subject->trace, w->events[summary->floor_event].subject));
    }
}

bool report_put_subject(json *out, const report_request *request, const report_subject *subject)
{
    report_writer w = {.out = out, .request = request, .subject = subject};
    size_t n_accesses;
    w.pool = neap_plan_get_summary(subject->pool);
    w.events = neap_trace_events(subject->trace, &w.n_events);
    w.blocks = neap_trace_blocks(subject->trace, &w.n_blocks);
    w.accesses = neap_trace_accesses(subject->trace, &n_accesses);
    w.buffers = neap_plan_buffers(subject->pool, &w.n_buffers);
    w.length = w.pool->length / w.pool->n_periods;
    w.row_of = malloc((w.n_blocks + 1) * sizeof *w.row_of);
    if (!w.row_of) {
        return false;
    }
    for (size_t i = 0; i < w.n_blocks; i++) {
        w.row_of[i] = NO_ROW;
    }
    json_object_begin(out, NULL);
    put_heading(&w);
    bool is_put = put_iterations(&w) && put_execs(&w) && put_blocks(&w);
    if (is_put) {
        report_put_plans(&w);
    }
    json_object_end(out);
    free(w.row_of);
    return is_put;
}
