/* swap_show.c: a plan of swaps for people and for programs: sizes, overhead,
 * and the bounds beside them. */
#include <math.h>
#include <stdio.h>

#include "printable.h"
#include "swap.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

/* The name of the exec at an event of the trace. */
static const char *exec_name(const neap_trace *trace, uint32_t event)
{
    size_t n_events;
    const neap_event *events = neap_trace_events(trace, &n_events);
    return event < n_events && events[event].kind == NEAP_EVENT_EXEC
               ? neap_trace_exec_name(trace, events[event].subject)
               : "";
}

/* How much less than the peak load, as a share of it. */
static double reduction(const neap_swap_summary *summary, double bytes)
{
    return summary->peak_load ? 1 - bytes / (double)summary->peak_load : 0;
}

const char *swap_link_text(const neap_link *link, char *text, size_t n)
{
    char both[UNITS_CHARS] = "";
    char latency[UNITS_CHARS] = "";
    char busy[UNITS_CHARS] = "";
    if (link->both_gbs > 0) {
        (void)snprintf(both, sizeof both, ", %g together", link->both_gbs);
    }
    if (link->latency_us > 0) {
        (void)snprintf(latency, sizeof latency, ", %g us a copy", link->latency_us);
    }
    if (link->busy_share > 0) {
        (void)snprintf(busy, sizeof busy, ", %.0f %% of it beside work", 100 * link->busy_share);
    }
    (void)snprintf(text, n, "%g GB/s out, %g in%s%s%s", link->out_gbs, link->in_gbs, both, latency, busy);
    return text;
}

/* ---- for programs ---- */

void swap_put_link(json *out, const char *name, const neap_link *link)
{
    json_object_begin(out, "link");
    json_text(out, "name", name);
    json_real(out, "out_gbs", link->out_gbs);
    json_real(out, "in_gbs", link->in_gbs);
    json_real(out, "both_gbs", link->both_gbs > 0 ? link->both_gbs : INFINITY);
    json_real(out, "latency_us", link->latency_us);
    if (link->busy_share > 0) {
        json_real(out, "busy_share", link->busy_share);
    }
    json_object_end(out);
}

void swap_put_request(json *out, const swap_request *request)
{
    json_text(out, "file", request->path);
    swap_put_link(out, request->link_name, &request->options.link);
    json_real(out, "slower", request->options.slower);
    json_uint(out, "seed", request->options.seed);
    if (request->as_run) {
        json_text(out, "method", "run");
        json_uint(out, "margin", request->margin);
        json_uint(out, "min_block", request->options.min_block);
    }
}

static void put_floor(json *out, const neap_trace *trace, const neap_swap_summary *summary)
{
    json_uint(out, "floor", summary->floor);
    json_text(out, "floor_exec", exec_name(trace, summary->floor_event));
    json_uint(out, "floor_event", summary->floor_event);
}

void swap_print_json(const swap_request *request, const neap_trace *trace, const neap_swap_summary *summary)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    swap_put_request(&out, request);
    json_text(&out, "method", summary->method);
    json_uint(&out, "limit", summary->limit);
    json_uint(&out, "peak_load", summary->peak_load);
    json_uint(&out, "planned_peak", summary->planned_peak);
    json_uint(&out, "load_min", summary->load_min);
    put_floor(&out, trace, summary);
    json_real(&out, "iteration_ns", summary->iteration_ns);
    json_real(&out, "overhead", summary->overhead);
    json_real(&out, "bound_overhead", summary->bound_overhead);
    json_real(&out, "bound_overhead_any_directions", summary->bound_overhead_any);
    json_uint(&out, "swaps", summary->n_swaps);
    json_uint(&out, "bytes_out", summary->bytes_out);
    json_uint(&out, "bytes_in", summary->bytes_in);
    json_uint(&out, "footprint", summary->footprint);
    json_uint(&out, "footprint_bound", summary->footprint_bound);
    json_real(&out, "ratio", summary->ratio);
    json_real(&out, "reduction",
              reduction(summary, (double)(request->zero_overhead ? summary->lowest_peak : summary->planned_peak)));
    json_real(&out, "footprint_reduction", reduction(summary, (double)summary->footprint));
    json_real(&out, "overhead_allowed", request->options.overhead);
    json_real(&out, "bound_reduction", reduction(summary, summary->bound_peak));
    json_real(&out, "bound_reduction_any_directions", reduction(summary, summary->bound_peak_any));
    if (request->zero_overhead) {
        json_uint(&out, "zero_overhead_peak", summary->lowest_peak);
        json_uint(&out, "zero_overhead_footprint", summary->footprint);
    }
    json_real(&out, "seconds", summary->seconds);
    json_object_end(&out);
    json_end(&out);
}

/* A limit below the floor leaves no plan, but what the floor is can be told: it
 * does not depend on the limit. */
static void put_floor_alone(json *out, const swap_request *request, const neap_trace *trace)
{
    neap_swap_options options = request->options;
    neap_swap_plan *plan;
    options.method = NEAP_SWAP_DOA;
    options.limit = 0;
    options.limit_share = 1; /* nothing has to leave */
    if (neap_swap_make(trace, &options, NULL, NULL, &plan) == NEAP_OK) {
        put_floor(out, trace, neap_swap_get_summary(plan));
        neap_swap_free(plan);
    }
}

int swap_print_no_plan(const swap_request *request, const neap_trace *trace, neap_status status,
                       const neap_error *error)
{
    const char *why = error->text[0] ? error->text : neap_status_message(status);
    if (!request->json) {
        printable_line("%s: no plan: %s", file_name(request->path), why);
        return EXIT_NO;
    }
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    swap_put_request(&out, request);
    if (request->options.limit) {
        json_uint(&out, "limit", request->options.limit);
    } else {
        json_null(&out, "limit");
    }
    json_null(&out, "footprint");
    if (status == NEAP_NO_PLAN && trace) {
        put_floor_alone(&out, request, trace);
    }
    json_text(&out, "status", neap_status_name(status));
    json_text(&out, "reason", why);
    json_object_end(&out);
    json_end(&out);
    return EXIT_NO;
}

/* ---- for people ---- */

static void rows_of_sizes(table *t, const swap_request *request, const neap_trace *trace,
                          const neap_swap_summary *summary)
{
    char note[256];
    char text[UNITS_CHARS];
    char other[UNITS_CHARS];
    table_row_of_bytes(t, TERM_PLAIN, "peak load", summary->peak_load, "without swapping");
    if (!request->zero_overhead) {
        (void)snprintf(note, sizeof note, "%s of the peak load",
                       units_share(1 - reduction(summary, (double)summary->limit), text));
        table_row_of_bytes(t, TERM_PLAIN, "limit", summary->limit, note);
    }
    (void)snprintf(note, sizeof note, "what the device holds, every block returning to its place: %s less",
                   units_share(reduction(summary, (double)summary->footprint), text));
    table_row_of_bytes(t, TERM_BOLD, "footprint", summary->footprint, note);
    if (summary->footprint_bound > summary->planned_peak) {
        (void)snprintf(note, sizeof note, "no placement of these swaps is lower");
        table_row_of_bytes(t, TERM_PLAIN, "  at least", summary->footprint_bound, note);
    }
    (void)snprintf(note, sizeof note, "the most that is there at once: %s less",
                   units_share(reduction(summary, (double)summary->planned_peak), text));
    table_row_of_bytes(t, TERM_PLAIN, "planned peak", summary->planned_peak, note);
    if (request->zero_overhead) {
        (void)snprintf(note, sizeof note,
                       "no plan within %s is below: %s less (%s if every direction "
                       "were known)",
                       units_share(request->options.overhead, text),
                       units_share(reduction(summary, summary->bound_peak), other),
                       units_share(reduction(summary, summary->bound_peak_any), (char[UNITS_CHARS]){0}));
        table_row_of_bytes(t, TERM_PLAIN, "  bound", (uint64_t)summary->bound_peak, note);
    }
    table_row_of_bytes(t, TERM_PLAIN, "load_min", summary->load_min, "with every candidate swapped once");
    (void)snprintf(note, sizeof note, "needed at once by exec %.60s (event %s)", exec_name(trace, summary->floor_event),
                   units_count(summary->floor_event, text));
    table_row_of_bytes(t, TERM_PLAIN, "floor", summary->floor, note);
}

static void rows_of_times(table *t, const swap_request *request, const neap_swap_summary *summary)
{
    char text[UNITS_CHARS];
    char other[UNITS_CHARS];
    char note[256];
    (void)snprintf(text, sizeof text, "%.2f ms", summary->iteration_ns * 1e-6);
    (void)snprintf(note, sizeof note, "undisturbed; %.2f ms with this plan",
                   summary->iteration_ns * (1 + summary->overhead) * 1e-6);
    TABLE_ROW(t, TERM_PLAIN, "iteration", text, "", note);
    TABLE_ROW(t, summary->overhead <= 0.001 ? TERM_GOOD : TERM_WARN, "overhead", units_share(summary->overhead, text),
              "", "of an iteration");
    if (!request->zero_overhead) {
        (void)snprintf(note, sizeof note, "no plan at this limit costs less (%s if every direction were known)",
                       units_share(summary->bound_overhead_any, other));
        TABLE_ROW(t, TERM_PLAIN, "  bound", units_share(summary->bound_overhead, text), "", note);
    }
    (void)snprintf(note, sizeof note, "%s out and %s in every iteration", units_bytes(summary->bytes_out, text),
                   units_bytes(summary->bytes_in, other));
    TABLE_ROW(t, TERM_PLAIN, "swaps", units_count(summary->n_swaps, (char[UNITS_CHARS]){0}), "", note);
}

void swap_note_times(const neap_trace *trace)
{
    size_t n_events;
    const neap_event *events = neap_trace_events(trace, &n_events);
    bool has_times = neap_trace_meta(trace, "step_ms") != NULL;
    for (size_t i = 0; i < n_events && !has_times; i++) {
        has_times = events[i].kind == NEAP_EVENT_EXEC && events[i].duration_ns > 0;
    }
    if (!has_times) {
        (void)printf(
            "\n  No exec of this trace has a duration: each counts as 1 ns, and the overhead means nothing.\n");
    }
}

void swap_print_summary(const swap_request *request, const neap_trace *trace, const neap_swap_summary *summary)
{
    char text[UNITS_CHARS];
    char link[160];
    char note[256];
    table t = table_begin("lrll");
    rows_of_sizes(&t, request, trace, summary);
    rows_of_times(&t, request, summary);
    (void)swap_link_text(&request->options.link, link, sizeof link);
    if (request->options.slower != 1) {
        (void)snprintf(note, sizeof note, "%s; a GPU %g times slower", link, request->options.slower);
    } else {
        (void)snprintf(note, sizeof note, "%s", link);
    }
    TABLE_ROW(&t, TERM_PLAIN, "link", request->link_name, "", note);
    (void)snprintf(note, sizeof note, "planned in %s", units_seconds(summary->seconds, text));
    TABLE_ROW(&t, TERM_PLAIN, "method", summary->method, "", note);
    table_end(&t, 2, stdout);
    swap_note_times(trace);
}
