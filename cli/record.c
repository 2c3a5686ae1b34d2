/* record.c: `neap record -o FILE PROGRAM`: what a CUDA program does with memory, as a trace that the other verbs read. */
#include "run.h"
#include "verbs.h"

typedef struct record_args {
    common_args common;
    const char *output;
    bool quiet;
} record_args;

static int run_record(const verb *self, int n_args, char **args)
{
    record_args parsed = {0};
    char library[RUN_PATH_BYTES];
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!parsed.output) {
        (void)options_wrong(self, "where to? -o FILE");
        return EXIT_BAD;
    }
    if (!run_find_library(library) || !run_set_library(library, "record", parsed.quiet) ||
        !run_set_path("NEAP_RECORD", parsed.output) || (parsed.quiet && !run_set("NEAP_REPORT", "-")) ||
        (parsed.common.json && !run_set("NEAP_REPORT_JSON", "1"))) {
        return EXIT_BAD;
    }
    return run_become(parsed.common.operands);
}

#define RECORD_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                 \
        .name = option_name, .kind = option_kind, .offset = offsetof(record_args, field), __VA_ARGS__ \
    }

static const option record_options[] = {
    RECORD_OPTION("output", OPTION_TEXT, output, .letter = 'o', .value = "FILE",
                  .help = "for the trace; gzip'd where it ends in .gz"),
    RECORD_OPTION("quiet", OPTION_FLAG, quiet, .help = "no report at the end"),
    COMMON_JSON_OPTION("make the report one JSON document"),
    COMMON_HELP_OPTION,
};

const verb verb_record = {
    .name = "record",
    .operand = "PROGRAM...",
    .has_program = true,
    .summary = "records what a CUDA program does with memory, as a trace",
    .details =
        "Nothing is planned or swapped: the program runs as it would, and what it does is written down. `neap info`,\n"
        "`neap plan` and `neap swap` read the trace. The exit code is the program's.\n",
    .options = record_options,
    .n_options = sizeof record_options / sizeof record_options[0],
    .run = run_record,
};
