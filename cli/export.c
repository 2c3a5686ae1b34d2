/* export.c: `neap export FILE`: a trace for other people's viewers: Perfetto, and PyTorch's for memory snapshots. */
#include "export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "limit.h"
#include "printable.h"
#include "swap.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

#define DEFAULT_MIN_BLOCK ((uint64_t)1 << 20)
#define NO_NUMBER UINT64_MAX

typedef struct export_args {
    common_args common;
    const char *perfetto;
    const char *pytorch;
    const char *limit;
    const char *link;
    uint64_t min_block; /* or NO_NUMBER */
    uint64_t seed;
    uint64_t n_threads;
    double seconds;
} export_args;

/* What came of it, for the answer. */
typedef struct exported {
    size_t n_events; /* of the Perfetto file */
    const neap_plan_summary *pool;
    const neap_swap_summary *swap;
    size_t n_blocks; /* of the trace */
} exported;

static bool out_of_memory(void)
{
    (void)fputs("neap: host memory is exhausted\n", stderr);
    return false;
}

/* ---- from arguments to options ---- */

static bool is_gzip_name(const char *path)
{
    size_t n = path ? strlen(path) : 0;
    return n >= 3 && strcmp(path + n - 3, ".gz") == 0;
}

static bool agrees(const export_args *args)
{
    const struct {
        bool is_given;
        const char *name;
    } for_perfetto[] = {
        {args->limit != NULL, "limit"},
        {args->min_block != NO_NUMBER, "min-block"},
        {args->seconds > 0, "seconds"},
        {args->seed > 0, "seed"},
    };
    if (!args->perfetto && !args->pytorch) {
        return options_wrong(&verb_export, "nothing to write was given: --perfetto FILE or --pytorch FILE");
    }
    for (size_t i = 0; !args->perfetto && i < sizeof for_perfetto / sizeof for_perfetto[0]; i++) {
        if (for_perfetto[i].is_given) {
            return options_wrong(&verb_export, "--%s goes with --perfetto", for_perfetto[i].name);
        }
    }
    if (args->link && !args->limit) {
        return options_wrong(&verb_export, "--link goes with --limit");
    }
    if (is_gzip_name(args->perfetto) || is_gzip_name(args->pytorch)) {
        return options_wrong(&verb_export, "'%s' would not be gzip'd: the viewers take plain files",
                             is_gzip_name(args->perfetto) ? args->perfetto : args->pytorch);
    }
    return args->n_threads <= 1024 || options_wrong(&verb_export, "--threads must be at most 1024");
}

static bool parse_limit(const export_args *args, neap_swap_options *options)
{
    limit parsed;
    bool is_good = limit_parse(&verb_export, args->limit, LIMIT_DOUBTS, &parsed);
    options->limit = parsed.bytes;
    options->limit_share = parsed.share;
    return is_good;
}

static bool make_options(const export_args *args, neap_plan_options *pool, neap_swap_options *swap)
{
    *pool = (neap_plan_options){.seconds = args->seconds, .seed = args->seed, .n_threads = (unsigned)args->n_threads};
    *swap = (neap_swap_options){
        .slower = 1, .seconds = args->seconds, .seed = args->seed, .n_threads = (unsigned)args->n_threads};
    return agrees(args) && (!args->limit || parse_limit(args, swap)) &&
           swap_parse_link(&verb_export, args->link ? args->link : SWAP_DEFAULT_LINK, &swap->link);
}

/* ---- writing ---- */

/* Half a file is none. */
static void discard(new_file *file)
{
    (void)fclose(file->stream);
    if (file->temporary) {
        (void)unlink(file->temporary);
        free(file->temporary);
    }
}

static bool put_bytes(void *user, const void *bytes, size_t n_bytes)
{
    return fwrite(bytes, 1, n_bytes, user) == n_bytes;
}

static int write_pytorch(const export_args *args, const neap_trace *trace)
{
    new_file file;
    neap_error error = {""};
    if (!file_create(args->pytorch, &file)) {
        return EXIT_BAD;
    }
    neap_status status = neap_trace_put_snapshot(trace, put_bytes, file.stream, &error);
    if (status != NEAP_OK && status != NEAP_IO) { /* what could not be written, file_commit explains better */
        discard(&file);
        return report_failure(args->pytorch, status, &error);
    }
    return file_commit(&file) ? EXIT_GOOD : EXIT_BAD;
}

static int write_perfetto(const export_args *args, const perfetto_subject *subject, exported *result)
{
    new_file file;
    if (!file_create(args->perfetto, &file)) {
        return EXIT_BAD;
    }
    if (!perfetto_write(file.stream, subject, &result->n_events)) {
        discard(&file);
        (void)out_of_memory();
        return EXIT_BAD;
    }
    return file_commit(&file) ? EXIT_GOOD : EXIT_BAD;
}

/* ---- the answer ---- */

static void print_json(const export_args *args, const exported *result)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_text(&out, "file", args->common.operand);
    json_uint(&out, "blocks", result->n_blocks);
    if (args->perfetto) {
        json_object_begin(&out, "perfetto");
        json_text(&out, "output", args->perfetto);
        json_uint(&out, "events", result->n_events);
        if (result->pool) {
            json_uint(&out, "footprint", result->pool->footprint);
        } else {
            json_null(&out, "footprint");
        }
        if (result->swap) {
            json_uint(&out, "limit", result->swap->limit);
            json_uint(&out, "limit_footprint", result->swap->footprint);
            json_uint(&out, "swaps", result->swap->n_swaps);
            json_real(&out, "overhead", result->swap->overhead);
        }
        json_object_end(&out);
    }
    if (args->pytorch) {
        json_object_begin(&out, "pytorch");
        json_text(&out, "output", args->pytorch);
        json_object_end(&out);
    }
    json_object_end(&out);
    json_end(&out);
}

static void print_table(const export_args *args, const exported *result)
{
    printable_title(args->common.operand);
    table t = table_begin("lll");
    if (args->perfetto) {
        TABLE_ROW(&t, TERM_PLAIN, "perfetto", args->perfetto,
                  result->pool ? "open it at https://ui.perfetto.dev"
                               : "open it at https://ui.perfetto.dev; the trace never repeats: no plan is shown");
    }
    if (args->pytorch) {
        TABLE_ROW(&t, TERM_PLAIN, "pytorch", args->pytorch, "open it at https://pytorch.org/memory_viz");
    }
    table_end(&t, 2, stdout);
}

/* ---- planning ---- */

/* A trace that never repeats is shown without a plan; under a limit there is nothing to show then. */
static int plan_and_write(const export_args *args, const neap_plan_options *pool_options,
                          const neap_swap_options *swap_options, const neap_trace *trace, exported *result)
{
    perfetto_subject subject = {
        .name = file_name(args->common.operand),
        .trace = trace,
        .min_block = args->min_block == NO_NUMBER ? DEFAULT_MIN_BLOCK : args->min_block,
    };
    neap_error error = {""};
    neap_plan *pool = NULL;
    neap_swap_plan *swap = NULL;
    term_progress("planning");
    neap_status status = neap_plan_make(trace, pool_options, NULL, &error, &pool);
    if (status == NEAP_NO_PERIOD && !args->limit) {
        status = NEAP_OK;
    }
    if (status == NEAP_OK && args->limit) {
        status = neap_swap_make(trace, swap_options, NULL, &error, &swap);
    }
    term_progress_clear();
    int code;
    if (status == NEAP_OK) {
        subject.pool = pool;
        subject.swap = swap;
        code = write_perfetto(args, &subject, result);
        if (code == EXIT_GOOD) {
            result->pool = pool ? neap_plan_get_summary(pool) : NULL;
            result->swap = swap ? neap_swap_get_summary(swap) : NULL;
            code = args->pytorch ? write_pytorch(args, trace) : EXIT_GOOD;
        }
        if (code == EXIT_GOOD) {
            args->common.json ? print_json(args, result) : print_table(args, result);
        }
    } else {
        code = report_failure(args->common.operand, status, &error);
    }
    neap_swap_free(swap);
    neap_plan_free(pool);
    return code;
}

static int write_all(const export_args *args, const neap_plan_options *pool, const neap_swap_options *swap,
                     const neap_trace *trace)
{
    exported result = {0};
    (void)neap_trace_blocks(trace, &result.n_blocks);
    if (args->perfetto) {
        return plan_and_write(args, pool, swap, trace, &result);
    }
    int code = write_pytorch(args, trace);
    if (code == EXIT_GOOD) {
        args->common.json ? print_json(args, &result) : print_table(args, &result);
    }
    return code;
}

static int run_export(const verb *self, int n_args, char **args)
{
    export_args parsed = {.min_block = NO_NUMBER};
    neap_plan_options pool;
    neap_swap_options swap;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!make_options(&parsed, &pool, &swap)) {
        return EXIT_BAD;
    }
    neap_error error = {""};
    neap_trace *trace;
    neap_status status = neap_trace_read(parsed.common.operand, NULL, &error, &trace);
    if (status != NEAP_OK) {
        return report_failure(parsed.common.operand, status, &error);
    }
    const char *link_name = parsed.link;
    swap_take_link(trace, parsed.link, &link_name, &swap.link);
    int code = write_all(&parsed, &pool, &swap, trace);
    neap_trace_free(trace);
    return code;
}

/* ---- the verb ---- */

#define EXPORT_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                 \
        .name = option_name, .kind = option_kind, .offset = offsetof(export_args, field), __VA_ARGS__ \
    }

static const option export_options[] = {
    EXPORT_OPTION("perfetto", OPTION_TEXT, perfetto, .value = "FILE",
                  .help = "write lanes and counters in time, for ui.perfetto.dev"),
    EXPORT_OPTION("pytorch", OPTION_TEXT, pytorch, .value = "FILE",
                  .help = "write a memory snapshot, for pytorch.org/memory_viz"),
    EXPORT_OPTION("limit", OPTION_TEXT, limit, .value = "SIZE|SHARE",
                  .help = "show also what is held and copied within 447MB, 8GiB, or 70% of the peak load"),
    EXPORT_OPTION("link", OPTION_TEXT, link, .value = "LINK", .help = SWAP_LINK_HELP),
    EXPORT_OPTION("min-block", OPTION_SIZE, min_block, .value = "SIZE",
                  .help = "show the lives of no smaller blocks; 1MiB unless given"),
    EXPORT_OPTION("seconds", OPTION_SECONDS, seconds, .value = "S",
                  .help = "stop each search by then; 5 for the pool and 2 for swaps unless given"),
    EXPORT_OPTION("seed", OPTION_UINT, seed, .value = "N", .help = "of the searches"),
    EXPORT_OPTION("threads", OPTION_UINT, n_threads, .value = "N", .least = 1,
                  .help = "as many as there are cores, 8 at most, unless given"),
    COMMON_OPTIONS,
};

const verb verb_export = {
    .name = "export",
    .operand = "FILE",
    .summary = "a trace for the viewers of Perfetto and PyTorch",
    .details =
        "FILE is a trace (\"neap-trace 1\", gzip'd or not) or a placement CSV; \"-\" is standard input. The file for\n"
        "Perfetto has the recorded work, the load, the lives of large blocks and what the plan holds; with\n"
        "--limit, a few periods as simulated: work, copies out and in, and what is held. Exit code 1: there is\n"
        "no plan within the limit.\n",
    .options = export_options,
    .n_options = sizeof export_options / sizeof export_options[0],
    .run = run_export,
};
