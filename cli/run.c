/* run.c: `neap run PROGRAM`: puts the library in front of a program that knows nothing of it, and becomes that program. */
#include "run.h"

#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "units.h"
#include "verbs.h"

#define NO_LEVEL 4 /* --log was not given */
#define NO_MARGIN UINT64_MAX
#define NO_SECONDS (-1.0)
#define MOST_SECONDS 1e6 /* as the library takes them */

static const char *const log_levels[] = {"none", "warn", "info", "debug", NULL};

typedef struct run_args {
    common_args common;
    const char *limit; /* as given, NULL: not at all */
    const char *overhead;
    const char *report;
    const char *record;
    const char *plan_cache;
    uint64_t min_block; /* 0: not given */
    uint64_t margin;
    double plan_seconds;
    unsigned log;
    bool tell_limit;
    bool limit_late;
    bool keep_backend;
    bool no_live;
    bool quiet;
} run_args;

/* ---- what is asked for must make sense before a program is begun ---- */

static bool check_limit(const run_args *args)
{
    limit parsed;
    return limit_parse(&verb_run, args->limit, args->quiet ? LIMIT_SILENT : LIMIT_ALL, &parsed);
}

static bool check_overhead(const char *text)
{
    double share;
    if (!units_parse_share(text, &share)) {
        return options_wrong(&verb_run, "--overhead takes a share of an iteration such as 1%%, not '%s'", text);
    }
    return share > 0 || options_wrong(&verb_run, "--overhead must be above 0%%");
}

static bool check(const run_args *args)
{
    if (args->limit && args->overhead) {
        return options_wrong(&verb_run, "--limit says how much memory, --overhead finds it: one of them");
    }
    if (args->margin != NO_MARGIN && args->margin > UINT32_MAX) {
        return options_wrong(&verb_run, "--margin must be at most %llu", (unsigned long long)UINT32_MAX);
    }
    if (args->plan_seconds != NO_SECONDS && !(args->plan_seconds > 0 && args->plan_seconds <= MOST_SECONDS)) {
        return options_wrong(&verb_run, "--plan-seconds must be above 0 and at most %.0f", MOST_SECONDS);
    }
    return (!args->limit || check_limit(args)) && (!args->overhead || check_overhead(args->overhead));
}

/* ---- the environment ---- */

static bool set_number(const char *name, bool is_given, uint64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return !is_given || run_set(name, text);
}

static bool set_seconds(const run_args *args)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.9g", args->plan_seconds);
    return args->plan_seconds == NO_SECONDS || run_set("NEAP_PLAN_SECONDS", text);
}

/* The library reads numbers alone: "70%", or bytes. */
static bool set_limit(const run_args *args)
{
    uint64_t bytes;
    double share;
    if (args->overhead) {
        char text[UNITS_CHARS];
        (void)units_parse_share(args->overhead, &share);
        (void)snprintf(text, sizeof text, "%.9f", share);
        return run_set("NEAP_LIMIT", NULL) && run_set("NEAP_OVERHEAD", text);
    }
    if (args->limit && units_parse_share(args->limit, &share)) {
        char text[UNITS_CHARS];
        (void)snprintf(text, sizeof text, "%.7f%%", share * 100);
        return run_set("NEAP_OVERHEAD", NULL) && run_set("NEAP_LIMIT", text);
    }
    if (args->limit && units_parse_size(args->limit, &bytes)) {
        return run_set("NEAP_OVERHEAD", NULL) && set_number("NEAP_LIMIT", true, bytes);
    }
    return true;
}

static bool set_report(const run_args *args)
{
    const char *report = args->report ? args->report : args->quiet ? "-" : NULL;
    return (!report || run_set_path("NEAP_REPORT", report)) && (!args->common.json || run_set("NEAP_REPORT_JSON", "1"));
}

static bool set_all(const run_args *args, const char *library)
{
    unsigned log = args->log == NO_LEVEL && args->quiet ? 0 : args->log;
    bool is_verified = run_is_verified(run_identity(library, args->common.operands));
    return run_set_library(library, "run", args->quiet) && set_limit(args) && set_report(args) &&
           (!args->record || run_set_path("NEAP_RECORD", args->record)) &&
           (!args->plan_cache || run_set_path("NEAP_PLAN_CACHE", args->plan_cache)) &&
           (!args->tell_limit || run_set("NEAP_TELL_LIMIT", "1")) &&
           (!args->limit_late || run_set("NEAP_LIMIT_LATE", "1")) &&
           (!args->keep_backend || run_set("NEAP_KEEP_BACKEND", "1")) &&
           (args->no_live || args->quiet || run_set("NEAP_LIVE", "1")) &&
           (log == NO_LEVEL || run_set("NEAP_LOG", log_levels[log])) &&
           set_number("NEAP_MIN_BLOCK", args->min_block > 0, args->min_block) &&
           set_number("NEAP_MARGIN", args->margin != NO_MARGIN, args->margin) && set_seconds(args) &&
           run_set("NEAP_VERIFIED", is_verified ? "1" : NULL);
}

/* ---- the verb ---- */

static int run_run(const verb *self, int n_args, char **args)
{
    run_args parsed = {.log = NO_LEVEL, .margin = NO_MARGIN, .plan_seconds = NO_SECONDS};
    char library[RUN_PATH_BYTES];
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!check(&parsed) || !run_find_library(library) || !set_all(&parsed, library)) {
        return EXIT_BAD;
    }
    return run_become(parsed.common.operands);
}

#define RUN_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                              \
        .name = option_name, .kind = option_kind, .offset = offsetof(run_args, field), __VA_ARGS__ \
    }

static const option run_options[] = {
    RUN_OPTION("limit", OPTION_TEXT, limit, .value = "SIZE|SHARE",
               .help = "device memory to hold at most: 8GiB, or 70% of the peak load; none unless given"),
    RUN_OPTION("overhead", OPTION_TEXT, overhead, .value = "SHARE",
               .help = "find the lowest limit that makes an iteration no slower than this: 1%"),
    RUN_OPTION("limit-late", OPTION_FLAG, limit_late,
               .help = "hold a limit in per cent only once iterations without it were measured"),
    RUN_OPTION("report", OPTION_TEXT, report, .value = "FILE",
               .help = "for the report at the end; standard error unless given"),
    RUN_OPTION("record", OPTION_TEXT, record, .value = "FILE", .help = "write what was seen as a trace"),
    RUN_OPTION("tell-limit", OPTION_FLAG, tell_limit,
               .help = "a program that asks how much memory there is hears the limit"),
    RUN_OPTION("keep-backend", OPTION_FLAG, keep_backend,
               .help = "PyTorch keeps the allocator that neap sees into, where it has an error for what is asked, too"),
    RUN_OPTION("plan-cache", OPTION_TEXT, plan_cache, .value = "FOLDER", .help = "keep plans there from run to run"),
    RUN_OPTION("plan-seconds", OPTION_SECONDS, plan_seconds, .value = "S",
               .help = "for planning, beside the program; 2 unless given"),
    RUN_OPTION("min-block", OPTION_SIZE, min_block, .value = "SIZE", .least = 1,
               .help = "smaller blocks take no part in the plan; 256 KiB unless given"),
    RUN_OPTION("margin", OPTION_UINT, margin, .value = "N",
               .help = "launches that a block stays after its last use, and is back before the next"),
    RUN_OPTION("log", OPTION_CHOICE, log, .value = "none|warn|info|debug", .choices = log_levels,
               .help = "what is said while the program runs; warn unless given"),
    RUN_OPTION("no-live", OPTION_FLAG, no_live, .help = "no line on the terminal that tells how it goes"),
    RUN_OPTION("quiet", OPTION_FLAG, quiet, .help = "say nothing at all, unless --report or --log is given"),
    COMMON_JSON_OPTION("make the report one JSON document"),
    COMMON_HELP_OPTION,
};

const verb verb_run = {
    .name = "run",
    .operand = "PROGRAM...",
    .has_program = true,
    .summary = "runs any CUDA program, unchanged, with less device memory",
    .details =
        "Without --limit and --overhead nothing is swapped: memory is served from a plan that holds little more\n"
        "than the program needs at once. All after PROGRAM is the program's own. Its exit code is the exit code:\n"
        "126 and 127 mean that it could not be run, or was not found; 2 that neap could not begin.\n"
        "SIGUSR1 makes it report while it runs, and `neap top` looks at it.\n",
    .options = run_options,
    .n_options = sizeof run_options / sizeof run_options[0],
    .run = run_run,
};
