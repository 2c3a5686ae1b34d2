/* import.c: `neap import SNAPSHOT -o FILE`: what a PyTorch program allocated, as a trace that the other verbs take. */
#include <stdlib.h>

#include "printable.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

#define NO_DEVICE UINT64_MAX

typedef struct import_args {
    common_args common;
    const char *output;
    uint64_t device; /* or NO_DEVICE */
} import_args;

/* What came of it. */
typedef struct imported {
    size_t n_events;
    size_t n_blocks;
    size_t n_live;   /* of them, live before the first event */
    uint64_t n_lost; /* entries */
    const char *device;
} imported;

static imported look_at(const neap_trace *trace)
{
    imported result = {.device = neap_trace_meta(trace, "device")};
    const char *lost = neap_trace_meta(trace, "lost_entries");
    const neap_trace_block *blocks = neap_trace_blocks(trace, &result.n_blocks);
    (void)neap_trace_events(trace, &result.n_events);
    result.n_lost = lost ? strtoull(lost, NULL, 10) : 0;
    while (result.n_live < result.n_blocks && blocks[result.n_live].malloc_event == NEAP_NEVER) {
        result.n_live++;
    }
    return result;
}

static void print_json(const import_args *args, const imported *result)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_text(&out, "file", args->common.operand);
    json_text(&out, "output", args->output);
    json_uint(&out, "device", strtoull(result->device, NULL, 10));
    json_uint(&out, "events", result->n_events);
    json_uint(&out, "blocks", result->n_blocks);
    json_uint(&out, "live_before", result->n_live);
    json_uint(&out, "lost_entries", result->n_lost);
    json_object_end(&out);
    json_end(&out);
}

static void row_of_count(table *t, const char *name, uint64_t count, const char *note)
{
    char text[UNITS_CHARS];
    TABLE_ROW(t, TERM_PLAIN, name, units_count(count, text), note);
}

static void print_table(const import_args *args, const imported *result)
{
    printable_title(args->output);
    table t = table_begin("lrl");
    TABLE_ROW(&t, TERM_PLAIN, "device", result->device, "");
    row_of_count(&t, "events", result->n_events, "allocations and frees: a snapshot has no execs");
    row_of_count(&t, "blocks", result->n_blocks, "");
    row_of_count(&t, "live before", result->n_live, "when the history begins");
    if (result->n_lost > 0) {
        char text[UNITS_CHARS];
        TABLE_ROW(&t, TERM_WARN, "lost", units_count(result->n_lost, text),
                  "entries whose other half was not recorded: the least was assumed");
    }
    table_end(&t, 2, stdout);
    (void)fputc('\n', stdout);
    printable_line("  next: neap info %s: who holds it; neap plan %s: what a plan would hold", args->output,
                   args->output);
}

static bool agrees(const import_args *args)
{
    if (!args->output) {
        return options_wrong(&verb_import, "no output was given: -o trace.neap.gz");
    }
    return args->device == NO_DEVICE || args->device < NEAP_ANY_DEVICE ||
           options_wrong(&verb_import, "--device is the number of a GPU, such as 0");
}

static int run_import(const verb *self, int n_args, char **args)
{
    import_args parsed = {.device = NO_DEVICE};
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!agrees(&parsed)) {
        return EXIT_BAD;
    }
    const char *path = parsed.common.operand;
    uint32_t device = parsed.device == NO_DEVICE ? NEAP_ANY_DEVICE : (uint32_t)parsed.device;
    neap_error error = {""};
    neap_trace *trace;
    term_progress("reading %s", file_name(path));
    neap_status status = neap_trace_read_snapshot(path, device, NULL, &error, &trace);
    term_progress_clear();
    if (status != NEAP_OK) {
        return report_failure(path, status, &error);
    }
    status = neap_trace_write(trace, parsed.output, &error);
    if (status == NEAP_OK) {
        imported result = look_at(trace);
        parsed.common.json ? print_json(&parsed, &result) : print_table(&parsed, &result);
    }
    neap_trace_free(trace);
    return status == NEAP_OK ? EXIT_GOOD : report_failure(parsed.output, status, &error);
}

#define IMPORT_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                 \
        .name = option_name, .kind = option_kind, .offset = offsetof(import_args, field), __VA_ARGS__ \
    }

static const option import_options[] = {
    IMPORT_OPTION("output", OPTION_TEXT, output, .letter = 'o', .value = "FILE",
                  .help = "the trace to write; gzip'd if its name ends in .gz"),
    IMPORT_OPTION("device", OPTION_UINT, device, .value = "N",
                  .help = "of several GPUs, this one; the one with the most entries unless given"),
    COMMON_OPTIONS,
};

const verb verb_import = {
    .name = "import",
    .operand = "FILE",
    .summary = "what a PyTorch program allocated, from its memory snapshot, as a trace",
    .details =
        "FILE is a snapshot of torch.cuda.memory._dump_snapshot (gzip'd or not; \"-\" is standard input), taken\n"
        "while torch.cuda.memory._record_memory_history() was on. The pickle is read as data: nothing in it is\n"
        "imported or called. A snapshot does not tell what used the blocks, nor for how long: neap info and\n"
        "neap plan work on the trace, neap swap needs a recording.\n",
    .options = import_options,
    .n_options = sizeof import_options / sizeof import_options[0],
    .run = run_import,
};
