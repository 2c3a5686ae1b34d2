/* swap_run.c: `neap swap --run FILE`: what neap run would plan for the program
 * of a recording, and what that would cost. */
#include <stdio.h>

#include "printable.h"
#include "swap.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

static neap_foresee_options options_of(const swap_request *request)
{
    const neap_swap_options *options = &request->options;
    return (neap_foresee_options){.link = options->link,
                                  .limit = options->limit,
                                  .limit_share = options->limit_share,
                                  .overhead = options->overhead,
                                  .min_block = options->min_block,
                                  .margin = request->margin,
                                  .seconds = options->seconds,
                                  .seed = options->seed,
                                  .n_threads = options->n_threads};
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

/* ---- for programs ---- */

static void print_json(const swap_request *request, const neap_foresee_options *options, const neap_foreseen *seen)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    swap_put_request(&out, request);
    json_uint(&out, "limit", seen->limit);
    json_bool(&out, "limit_was_raised", seen->limit_was_raised);
    json_uint(&out, "peak_load", seen->peak_load);
    json_uint(&out, "planned_load", seen->planned_load);
    json_uint(&out, "beside", seen->beside);
    json_uint(&out, "load_min", seen->load_min);
    json_real(&out, "iteration_ns", seen->iteration_ns);
    json_real(&out, "overhead", seen->overhead);
    json_real(&out, "looking", seen->looking);
    json_real(&out, "bound_overhead", seen->bound_overhead);
    json_real(&out, "bound_overhead_any_directions", seen->bound_overhead_any);
    json_uint(&out, "swaps", seen->n_swaps);
    json_uint(&out, "bytes_out", seen->bytes_out);
    json_uint(&out, "bytes_in", seen->bytes_in);
    json_uint(&out, "footprint", seen->footprint);
    json_real(&out, "footprint_reduction", 1 - share_of(seen->footprint, seen->peak_load));
    if (request->zero_overhead) {
        json_real(&out, "overhead_allowed", options->overhead);
    }
    json_real(&out, "seconds", seen->seconds);
    json_object_end(&out);
    json_end(&out);
}

/* ---- for people ---- */

static void rows_of_sizes(table *t, const swap_request *request, const neap_foresee_options *options,
                          const neap_foreseen *seen)
{
    char note[256];
    char text[UNITS_CHARS];
    char other[UNITS_CHARS];
    bool is_all = seen->planned_load == seen->peak_load;
    table_row_of_bytes(t, TERM_PLAIN, "peak load", seen->peak_load, "without swapping");
    if (!is_all) {
        (void)snprintf(note, sizeof note, "of blocks from %s on: smaller ones stand aside",
                       units_bytes(options->min_block, text));
        table_row_of_bytes(t, TERM_PLAIN, "  planned", seen->planned_load, note);
    }
    (void)snprintf(note, sizeof note, "%s of the %s%s%s", units_share(share_of(seen->limit, seen->planned_load), text),
                   is_all ? "peak load" : "planned load",
                   request->zero_overhead ? ": the lowest found that costs at most " : "",
                   seen->limit_was_raised   ? ": raised, since no plan was found below"
                   : request->zero_overhead ? units_share(options->overhead, other)
                                            : "");
    table_row_of_bytes(t, TERM_PLAIN, "limit", seen->limit, note);
    (void)snprintf(note, sizeof note, "what the device holds: %s less",
                   units_share(1 - share_of(seen->footprint, seen->peak_load), text));
    table_row_of_bytes(t, TERM_BOLD, "footprint", seen->footprint, note);
    if (seen->beside > 0) {
        table_row_of_bytes(t, TERM_PLAIN, "  beside", seen->beside, "of that, for blocks that stand aside");
    }
    table_row_of_bytes(t, TERM_PLAIN, "load_min", seen->load_min, "with every candidate swapped once");
}

static void rows_of_times(table *t, const neap_foreseen *seen)
{
    char text[UNITS_CHARS];
    char other[UNITS_CHARS];
    char note[256];
    (void)snprintf(text, sizeof text, "%.2f ms", seen->iteration_ns * 1e-6);
    (void)snprintf(note, sizeof note, "undisturbed; %.2f ms with this plan",
                   seen->iteration_ns * (1 + seen->overhead) * 1e-6);
    TABLE_ROW(t, TERM_PLAIN, "iteration", text, "", note);
    TABLE_ROW(t, seen->overhead <= 0.001 ? TERM_GOOD : TERM_WARN, "overhead", units_share(seen->overhead, text), "",
              "of an iteration");
    if (seen->looking > 0 && seen->n_swaps > 0) {
        TABLE_ROW(t, TERM_PLAIN, "  looking", units_share(seen->looking, text), "",
                  "of that: launches are looked at, which the host has no time for");
    }
    (void)snprintf(note, sizeof note, "no plan at this limit costs less (%s if every direction were known)",
                   units_share(seen->bound_overhead_any, other));
    TABLE_ROW(t, TERM_PLAIN, "  bound", units_share(seen->bound_overhead, text), "", note);
    (void)snprintf(note, sizeof note, "%s out and %s in every iteration", units_bytes(seen->bytes_out, text),
                   units_bytes(seen->bytes_in, other));
    TABLE_ROW(t, TERM_PLAIN, "swaps", units_count(seen->n_swaps, (char[UNITS_CHARS]){0}), "", note);
}

static void print_table(const swap_request *request, const neap_foresee_options *options, const neap_foreseen *seen)
{
    char text[UNITS_CHARS];
    char link[160];
    char note[256];
    table t = table_begin("lrll");
    printable_title(request->path);
    rows_of_sizes(&t, request, options, seen);
    rows_of_times(&t, seen);
    TABLE_ROW(&t, TERM_PLAIN, "link", request->link_name, "", swap_link_text(&options->link, link, sizeof link));
    (void)snprintf(note, sizeof note, "as neap run plans, with a margin of %u; planned in %s", options->margin,
                   units_seconds(seen->seconds, text));
    TABLE_ROW(&t, TERM_PLAIN, "method", "run", "", note);
    table_end(&t, 2, stdout);
    if (seen->n_swaps == 0 && request->zero_overhead && seen->looking > options->overhead) {
        (void)printf("\n  Nothing is swapped: that its launches are looked at would cost %s alone.\n",
                     units_share(seen->looking, text));
    } else if (seen->n_swaps == 0) {
        (void)printf("\n  Nothing has to leave the device.\n");
    }
}

int swap_foresee(const swap_request *request, const neap_trace *trace)
{
    neap_foresee_options options = options_of(request);
    neap_error error = {""};
    neap_foreseen seen;
    term_progress("planning as neap run does");
    neap_status status = neap_foresee(trace, &options, NULL, &error, &seen);
    term_progress_clear();
    if (status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN) {
        return swap_print_no_plan(request, NULL, status, &error);
    }
    if (status != NEAP_OK) {
        return report_failure(request->path, status, &error);
    }
    if (request->json) {
        print_json(request, &options, &seen);
    } else {
        print_table(request, &options, &seen);
        swap_note_times(trace);
    }
    return EXIT_GOOD;
}
