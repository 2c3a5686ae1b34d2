/* plan.c: `neap plan FILE`: where every block should stand, and what that saves. */
#include <inttypes.h>
#include <stdio.h>

#include "baselines.h"
#include "file.h"
#include "printable.h"
#include "snapshot.h"
#include "svg.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

typedef struct plan_args {
    common_args common;
    unsigned solver; /* index into solver_names */
    double seconds;
    uint64_t seed;
    uint64_t alignment;
    uint64_t capacity;
    uint64_t n_threads;
    bool no_baselines;
    const char *svg;
    const char *offsets;
} plan_args;

static const char *const solver_names[] = {"search", "bestfit", "firstfit", NULL};
static const neap_solver solvers[] = {NEAP_SOLVER_SEARCH, NEAP_SOLVER_BESTFIT, NEAP_SOLVER_FIRSTFIT};

/* The paper's pools are given up on where planning them takes too long. */
static bool is_unknown(const neap_baselines *baselines, size_t i, const neap_plan_summary *summary)
{
    return baselines_value(baselines, i) == 0 && summary->footprint > 0;
}

/* ---- for programs ---- */

static void put_request(json *out, const char *path, const plan_args *args)
{
    json_text(out, "file", path);
    json_text(out, "solver", solver_names[args->solver]);
    json_uint(out, "seed", args->seed);
    if (args->capacity) {
        json_uint(out, "capacity", args->capacity);
    } else {
        json_null(out, "capacity");
    }
}

static void print_json(const char *path, const plan_args *args, const neap_plan_summary *summary,
                       const neap_baselines *baselines)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    put_request(&out, path, args);
    json_object_begin(&out, "period");
    json_uint(&out, "begin", summary->begin);
    json_uint(&out, "length", summary->length / summary->n_periods);
    json_object_end(&out);
    json_object_begin(&out, "round");
    json_uint(&out, "periods", summary->n_periods);
    json_uint(&out, "length", summary->length);
    json_object_end(&out);
    json_uint(&out, "alignment", summary->alignment);
    json_uint(&out, "buffers", summary->n_buffers);
    json_uint(&out, "load", summary->load);
    json_uint(&out, "bound", summary->bound);
    json_uint(&out, "footprint", summary->footprint);
    json_real(&out, "ratio", summary->ratio);
    json_bool(&out, "optimal", summary->optimal);
    json_text(&out, "found_by", summary->found_by);
    json_real(&out, "seconds", summary->seconds);
    if (baselines) {
        json_object_begin(&out, "baselines");
        for (size_t i = 0; i < BASELINES_N; i++) {
            if (is_unknown(baselines, i, summary)) {
                json_null(&out, baselines_list[i].key);
            } else {
                json_uint(&out, baselines_list[i].key, baselines_value(baselines, i));
            }
        }
        json_object_end(&out);
    } else {
        json_null(&out, "baselines");
    }
    json_object_end(&out);
    json_end(&out);
}

/* The answer is no: what was asked, and why there is no plan. */
static int print_no_plan(const char *path, const plan_args *args, neap_status status, const neap_error *error)
{
    const char *why = error->text[0] ? error->text : neap_status_message(status);
    if (args->common.json) {
        json out = json_begin(stdout);
        json_object_begin(&out, NULL);
        put_request(&out, path, args);
        json_null(&out, "footprint");
        json_text(&out, "status", neap_status_name(status));
        json_text(&out, "reason", why);
        json_object_end(&out);
        json_end(&out);
    } else {
        printable_line("%s: no plan: %s", file_name(path), why);
    }
    return EXIT_NO;
}

/* ---- for people ---- */

static void print_summary(const neap_plan_summary *summary)
{
    char text[UNITS_CHARS];
    char note[160];
    table t = table_begin("lrll");
    (void)snprintf(note, sizeof note, "starting at event %s", units_count(summary->begin, text));
    TABLE_ROW(&t, TERM_PLAIN, "period", units_count(summary->length / summary->n_periods, text), "events", note);
    if (summary->n_periods > 1) {
        (void)snprintf(note, sizeof note, "%s events, after which the plan starts over",
                       units_count(summary->length, text));
        TABLE_ROW(&t, TERM_PLAIN, "round", units_count(summary->n_periods, text), "periods", note);
    }
    TABLE_ROW(&t, TERM_PLAIN, "buffers", units_count(summary->n_buffers, text), "", "");
    table_row_of_bytes(&t, TERM_PLAIN, "peak load", summary->load, "bytes alive at once");
    if (summary->bound != summary->load) {
        table_row_of_bytes(&t, TERM_PLAIN, "bound", summary->bound, "proven: no placement is lower");
    }
    table_row_of_bytes(&t, TERM_BOLD, "footprint", summary->footprint, "what the device holds with this plan");
    (void)snprintf(text, sizeof text, "%.4f", summary->ratio);
    if (summary->optimal) {
        (void)snprintf(note, sizeof note, "proven optimal: the footprint is the bound");
    } else {
        char above[UNITS_CHARS];
        (void)snprintf(note, sizeof note, "not proven optimal: at most %s bytes (%.2f %%) above the best",
                       units_count(summary->footprint - summary->bound, above),
                       summary->bound ? ((double)summary->footprint / (double)summary->bound - 1) * 100 : 0.0);
    }
    TABLE_ROW(&t, summary->optimal ? TERM_GOOD : TERM_WARN, "ratio", text, "x peak load", note);
    (void)snprintf(note, sizeof note, "found by %s in %s", summary->found_by, units_seconds(summary->seconds, text));
    TABLE_ROW(&t, TERM_PLAIN, "solver", summary->solver, "", note);
    table_end(&t, 2, stdout);
}

static void row_of_allocator(table *t, term_style style, const char *name, uint64_t bytes, uint64_t most,
                             const neap_plan_summary *summary)
{
    enum { WIDTH = 32 };
    char rounded[UNITS_CHARS];
    char bar[4 * WIDTH + 1];
    char saved[UNITS_CHARS] = "";
    if (style == TERM_PLAIN && bytes > 0) {
        double share = ((double)bytes - (double)summary->footprint) / (double)bytes * 100;
        (void)snprintf(saved, sizeof saved, "%.1f %%", share > -0.05 && share < 0 ? 0.0 : share);
    }
    TABLE_ROW(t, style, name, units_bytes(bytes, rounded), saved,
              term_bar(most ? (double)bytes / (double)most : 0, WIDTH, bar));
}

static void print_baselines(const neap_plan_summary *summary, const neap_baselines *baselines)
{
    uint64_t most = summary->footprint;
    for (size_t i = 0; i < BASELINES_N; i++) {
        uint64_t bytes = baselines_value(baselines, i);
        most = bytes > most ? bytes : most;
    }
    table t = table_begin("lrrl");
    TABLE_ROW(&t, TERM_DIM, "allocator", "holds", "neap saves", "");
    row_of_allocator(&t, TERM_BOLD, "neap (this plan)", summary->footprint, most, summary);
    for (size_t i = 0; i < BASELINES_N; i++) {
        if (is_unknown(baselines, i, summary)) {
            TABLE_ROW(&t, TERM_PLAIN, baselines_list[i].name, "took too long", "", "");
        } else {
            row_of_allocator(&t, TERM_PLAIN, baselines_list[i].name, baselines_value(baselines, i), most, summary);
        }
    }
    (void)putchar('\n');
    table_end(&t, 2, stdout);
}

/* ---- the offsets ---- */

static bool write_offsets(const char *path, const neap_trace *trace, const neap_plan *plan)
{
    new_file file;
    if (!file_create(path, &file)) {
        return false;
    }
    size_t n;
    size_t n_blocks;
    const neap_plan_buffer *buffers = neap_plan_buffers(plan, &n);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    (void)fputs("id,lower,upper,size,offset\n", file.stream);
    for (size_t i = 0; i < n; i++) {
        char place[UNITS_CHARS] = "";
        if (buffers[i].place > 0) {
            (void)snprintf(place, sizeof place, ".%" PRIu32, buffers[i].place);
        }
        (void)fprintf(file.stream, "%" PRIu64 "%s,%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 "\n",
                      blocks[buffers[i].block].id, place, buffers[i].begin, buffers[i].end, buffers[i].size,
                      buffers[i].offset);
    }
    return file_commit(&file);
}

/* ---- the verb ---- */

static bool show_progress(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    (void)user;
    char held[UNITS_CHARS];
    char least[UNITS_CHARS];
    term_progress("placing: %.1f s, footprint %s, bound %s (Ctrl-C keeps the best so far)", seconds,
                  units_bytes(footprint, held), units_bytes(bound, least));
    return !term_interrupted();
}

static int print_plan(const char *path, const plan_args *args, const neap_trace *trace, const neap_plan *plan)
{
    const neap_plan_summary *summary = neap_plan_get_summary(plan);
    neap_baselines baselines;
    neap_error error = {""};
    if (!args->no_baselines) {
        term_progress("replaying other allocators");
        neap_status status = neap_baselines_make(trace, args->alignment, NULL, &error, &baselines);
        term_progress_clear();
        if (status != NEAP_OK) {
            return report_failure(path, status, &error);
        }
    }
    if (args->svg && !svg_write_plan(args->svg, file_name(path), trace, plan)) {
        return EXIT_BAD;
    }
    if (args->offsets && !write_offsets(args->offsets, trace, plan)) {
        return EXIT_BAD;
    }
    if (args->common.json) {
        print_json(path, args, summary, args->no_baselines ? NULL : &baselines);
        return EXIT_GOOD;
    }
    printable_title(path);
    print_summary(summary);
    if (!args->no_baselines) {
        print_baselines(summary, &baselines);
    }
    if (args->svg) {
        (void)printf("\n  picture: %s\n", args->svg);
    }
    if (snapshot_is(trace)) {
        (void)fputc('\n', stdout);
        printable_line("  next: neap info %s: who holds it; neap run -- PROGRAM: the program on a plan;", path);
        printable_line(
            "        neap record -o train.neap.gz -- PROGRAM: what less memory would cost (neap help limit)");
    }
    return EXIT_GOOD;
}

static int plan_trace(const char *path, const plan_args *args, const neap_trace *trace)
{
    const neap_plan_options options = {
        .solver = solvers[args->solver],
        .seconds = args->seconds,
        .seed = args->seed,
        .alignment = args->alignment,
        .capacity = args->capacity,
        .n_threads = (unsigned)args->n_threads,
        .progress = show_progress,
    };
    neap_error error = {""};
    neap_plan *plan;
    term_catch_interrupt(true);
    neap_status status = neap_plan_make(trace, &options, NULL, &error, &plan);
    term_catch_interrupt(false);
    term_progress_clear();
    if (status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN) {
        return print_no_plan(path, args, status, &error);
    }
    if (status != NEAP_OK) {
        return report_failure(path, status, &error);
    }
    int code = print_plan(path, args, trace, plan);
    neap_plan_free(plan);
    return code;
}

static int run_plan(const verb *self, int n_args, char **args)
{
    plan_args parsed = {0};
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (parsed.n_threads > 1024) {
        (void)fputs("neap plan: --threads must be at most 1024\n", stderr);
        return EXIT_BAD;
    }
    const char *path = parsed.common.operand;
    neap_error error = {""};
    neap_trace *trace;
    neap_status status = snapshot_or_trace_read(path, &error, &trace);
    if (status != NEAP_OK) {
        return report_failure(path, status, &error);
    }
    int code = plan_trace(path, &parsed, trace);
    neap_trace_free(trace);
    return code;
}

#define PLAN_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                               \
        .name = option_name, .kind = option_kind, .offset = offsetof(plan_args, field), __VA_ARGS__ \
    }

static const option plan_options[] = {
    PLAN_OPTION("solver", OPTION_CHOICE, solver, .value = "search|bestfit|firstfit", .choices = solver_names,
                .help = "search closes what the greedy fits leave, with a proof where there is one (default)"),
    PLAN_OPTION("seconds", OPTION_SECONDS, seconds, .value = "S", .help = "stop the search by then; 5 unless given"),
    PLAN_OPTION("seed", OPTION_UINT, seed, .value = "N", .help = "of the search; the same seed gives the same plan"),
    PLAN_OPTION("align", OPTION_SIZE, alignment, .value = "BYTES", .least = 1,
                .help = "of every block; 512 for traces, 1 for CSVs unless given"),
    PLAN_OPTION("capacity", OPTION_SIZE, capacity, .value = "SIZE", .least = 1,
                .help = "accept no plan above this (8GiB, 500MB, bytes); exit code 1 where none is found"),
    PLAN_OPTION("threads", OPTION_UINT, n_threads, .value = "N", .least = 1,
                .help = "as many as there are cores, 8 at most, unless given"),
    PLAN_OPTION("svg", OPTION_TEXT, svg, .value = "FILE", .help = "draw the plan: time across, addresses up"),
    PLAN_OPTION("offsets", OPTION_TEXT, offsets, .value = "FILE",
                .help = "write the plan as CSV: id,lower,upper,size,offset"),
    PLAN_OPTION("no-baselines", OPTION_FLAG, no_baselines, .help = "do not replay other allocators"),
    COMMON_OPTIONS,
};

const verb verb_plan = {
    .name = "plan",
    .operand = "FILE",
    .summary = "where every block should stand so that the device holds no more than it must",
    .details = "FILE is a trace (\"neap-trace 1\", gzip'd or not) or a placement CSV (id,lower,upper,size[,offset]);\n"
               "\"-\" is standard input. Times in --offsets count events from the plan's start; upper exceeds the\n"
               "round's length where a block lives across its end. A block with several places has an id for each:\n"
               "7, 7.1, 7.2. Exit code 1: the trace never repeats, or no plan within --capacity was found.\n",
    .options = plan_options,
    .n_options = sizeof plan_options / sizeof plan_options[0],
    .run = run_plan,
};
