/* info.c: `neap info FILE`: how a trace repeats and what one period needs. */
#include <inttypes.h>
#include <stdio.h>

#include "printable.h"
#include "snapshot.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

typedef struct info_args {
    common_args common;
    uint64_t alignment;
} info_args;

/* "A" to "Z", then "AA", "AB", ...: as columns of a sheet are named. */
static const char *kind_name(uint32_t kind, char *text)
{
    char reversed[UNITS_CHARS];
    size_t n = 0;
    uint64_t rest = (uint64_t)kind + 1;
    for (; rest > 0; rest = (rest - 1) / 26) {
        reversed[n++] = (char)('A' + (rest - 1) % 26);
    }
    for (size_t i = 0; i < n; i++) {
        text[i] = reversed[n - 1 - i];
    }
    text[n] = '\0';
    return text;
}

/* ---- for programs ---- */

static void put_variants(json *out, const neap_info *info)
{
    char kind[UNITS_CHARS];
    json_array_begin(out, "variants");
    for (size_t i = 0; i < info->n_variants; i++) {
        json_object_begin(out, NULL);
        json_uint(out, "begin", info->variants[i].begin);
        json_uint(out, "length", info->variants[i].length);
        json_text(out, "kind", kind_name(info->variants[i].kind, kind));
        json_uint(out, "shared_prefix", info->variants[i].shared_prefix);
        json_object_end(out);
    }
    json_array_end(out);
}

static void print_json(const char *path, const neap_trace *trace, const neap_info *info)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_text(&out, "file", path);
    json_text(&out, "format", neap_trace_is_csv(trace) ? "csv" : "neap-trace");
    json_uint(&out, "events", info->n_events);
    json_uint(&out, "blocks", info->n_blocks);
    json_uint(&out, "execs", info->n_execs);
    if (info->has_period) {
        json_object_begin(&out, "period");
        json_uint(&out, "begin", info->period_begin);
        json_uint(&out, "length", info->period_length);
        json_object_end(&out);
        json_uint(&out, "run_length", info->run_length);
        json_uint(&out, "cut", info->cut);
        if (info->first_answer == NEAP_NEVER) {
            json_null(&out, "first_answer");
        } else {
            json_uint(&out, "first_answer", info->first_answer);
        }
    } else {
        json_null(&out, "period");
    }
    put_variants(&out, info);
    json_uint(&out, "leak_bytes", info->leak_bytes);
    json_uint(&out, "accesses", info->n_accesses);
    json_uint(&out, "doubtful_accesses", info->doubtful_accesses);
    json_uint(&out, "peak_load", info->peak_load);
    json_uint(&out, "needed_load", info->needed_load);
    json_uint(&out, "alignment", info->alignment);
    if (info->step_ms > 0) {
        json_real(&out, "step_ms", info->step_ms);
    } else {
        json_null(&out, "step_ms");
    }
    if (snapshot_is(trace)) {
        json_bool(&out, "one_round", info->has_period && info->run_length == info->period_length);
        snapshot_put_holders(&out, trace);
    }
    json_object_end(&out);
    json_end(&out);
}

/* ---- for people ---- */

static void row_of_bytes(table *t, const char *name, uint64_t bytes, const char *note)
{
    char rounded[UNITS_CHARS];
    char exact[UNITS_CHARS + 8];
    char count[UNITS_CHARS];
    (void)snprintf(exact, sizeof exact, "%s bytes", units_count(bytes, count));
    TABLE_ROW(t, TERM_PLAIN, name, units_bytes(bytes, rounded), exact, note);
}

static void row_of_count(table *t, const char *name, uint64_t count, const char *what, const char *note)
{
    char text[UNITS_CHARS];
    TABLE_ROW(t, TERM_PLAIN, name, units_count(count, text), what, note);
}

static void rows_of_variants(table *t, const neap_info *info)
{
    enum { ROWS_MAX = 12 };
    for (size_t i = 0; i < info->n_variants && i < ROWS_MAX; i++) {
        const neap_variant *variant = &info->variants[i];
        char kind[UNITS_CHARS];
        char shared[UNITS_CHARS];
        char name[UNITS_CHARS + 16];
        char note[120] = "the first iteration in the period";
        (void)snprintf(name, sizeof name, "  kind %s", kind_name(variant->kind, kind));
        if (i > 0 && variant->kind == info->variants[0].kind) {
            (void)snprintf(note, sizeof note, "the same again");
        } else if (i > 0 && variant->shared_prefix == 0) {
            (void)snprintf(note, sizeof note, "differs from the first at once");
        } else if (i > 0) {
            (void)snprintf(note, sizeof note, "differs from the first after %s events",
                           units_count(variant->shared_prefix, shared));
        }
        row_of_count(t, name, variant->length, "events", note);
    }
    if (info->n_variants > ROWS_MAX) {
        row_of_count(t, "  and", info->n_variants - ROWS_MAX, "more", "(all of them with --json)");
    }
}

static void rows_of_period(table *t, const neap_info *info)
{
    char note[200];
    char begin[UNITS_CHARS];
    (void)snprintf(note, sizeof note, "from event %s on, %.1f times in a row", units_count(info->period_begin, begin),
                   (double)info->run_length / (double)info->period_length);
    row_of_count(t, "period", info->period_length, "events", note);
    rows_of_variants(t, info);
    if (info->first_answer != NEAP_NEVER) {
        row_of_count(t, "known after", info->first_answer, "events", "online, while they come in");
    }
    if (info->leak_bytes > 0) {
        row_of_bytes(t, "leak", info->leak_bytes, "more after every period");
    }
}

/* A snapshot in which nothing repeats: all of it is planned as it is. Others were seen twice at least. */
static bool is_one_round(const neap_trace *trace, const neap_info *info)
{
    return info->has_period && !neap_trace_is_csv(trace) && info->run_length == info->period_length;
}

static void print_table(const char *path, const neap_trace *trace, const neap_info *info)
{
    char note[120];
    char text[UNITS_CHARS];
    bool is_csv = neap_trace_is_csv(trace);
    printable_title(path);
    table t = table_begin("lrll");
    row_of_count(&t, "events", info->n_events, "", "");
    row_of_count(&t, "blocks", info->n_blocks, "", "");
    if (!is_csv) {
        row_of_count(&t, "execs", info->n_execs, "", "");
    }
    if (is_csv) {
        TABLE_ROW(&t, TERM_PLAIN, "period", units_count(info->period_length, text), "events",
                  "a placement problem: the whole file");
    } else if (is_one_round(trace, info)) {
        row_of_count(&t, "period", info->period_length, "events", "one round: the snapshot does not repeat");
    } else if (info->has_period) {
        rows_of_period(&t, info);
    } else {
        TABLE_ROW(&t, TERM_WARN, "period", "none", "", "the trace never repeats");
    }
    if (info->has_period && !is_csv && info->n_execs > 0) {
        (void)snprintf(note, sizeof note, "certain ones in a period; %s doubtful in all",
                       units_count(info->doubtful_accesses, text));
        row_of_count(&t, "accesses", info->n_accesses, "", note);
    }
    row_of_bytes(&t, "peak load", info->peak_load,
                 info->has_period ? "blocks held from malloc to free" : "of the whole trace");
    if (info->has_period && !is_csv && info->n_execs > 0) {
        row_of_bytes(&t, "needed load", info->needed_load, "from first to last access only");
    }
    if (info->step_ms > 0) {
        (void)snprintf(text, sizeof text, "%.2f", info->step_ms);
        TABLE_ROW(&t, TERM_PLAIN, "step time", text, "ms", "one iteration, undisturbed");
    }
    table_end(&t, 2, stdout);
    if (snapshot_is(trace)) {
        bool is_known = snapshot_print_holders(trace);
        (void)fputs(is_known ? "\n" : "\n  The code that made the blocks was not recorded (context=None).\n", stdout);
        printable_line("  next: neap plan %s: what a plan would hold, and what other allocators do", path);
    }
}

/* ---- the verb ---- */

static int run_info(const verb *self, int n_args, char **args)
{
    info_args parsed = {0};
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    const char *path = parsed.common.operand;
    neap_error error = {""};
    neap_trace *trace;
    neap_status status = snapshot_or_trace_read(path, &error, &trace);
    if (status != NEAP_OK) {
        return report_failure(path, status, &error);
    }
    neap_info *info;
    status = neap_info_make(trace, parsed.alignment, NULL, &error, &info);
    if (status != NEAP_OK) {
        neap_trace_free(trace);
        return report_failure(path, status, &error);
    }
    if (parsed.common.json) {
        print_json(path, trace, info);
    } else {
        print_table(path, trace, info);
    }
    int code = info->has_period ? EXIT_GOOD : EXIT_NO;
    neap_info_free(info);
    neap_trace_free(trace);
    return code;
}

static const option info_options[] = {
    {.name = "align",
     .kind = OPTION_SIZE,
     .value = "BYTES",
     .help = "round sizes up to this; 512 for traces, 1 for CSVs unless given",
     .offset = offsetof(info_args, alignment),
     .least = 1},
    COMMON_OPTIONS,
};

const verb verb_info = {
    .name = "info",
    .operand = "FILE",
    .summary = "how a trace repeats, and how much memory one period needs",
    .details = "FILE is a trace (\"neap-trace 1\", gzip'd or not) or a placement CSV (id,lower,upper,size[,offset]);\n"
               "\"-\" is standard input. A trace that never repeats gives exit code 1.\n",
    .options = info_options,
    .n_options = sizeof info_options / sizeof info_options[0],
    .run = run_info,
};
