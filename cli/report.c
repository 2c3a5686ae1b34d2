/* report.c: `neap report FILE`: a trace, its plan and what lower limits would cost, as one page for a browser.
 *
 * This file turns the arguments into a request and says what came of it; report_plan.c plans, report_data.c and
 * report_page.c write the page, whose own text is in cli/page/. */
#include "report.h"
#include "snapshot.h"

#include <inttypes.h>
#include <string.h>

#include "printable.h"
#include "swap.h"
#include "table.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

enum { DEFAULT_LIMITS = 14 };

#define NO_NUMBER UINT64_MAX
#define DEFAULT_SECONDS 1.5
#define NO_TIME 0.001 /* what counts as none: as for `neap swap` */

typedef struct report_args {
    common_args common;
    const char *output;
    const char *link;
    const char *slower;
    uint64_t n_limits;
    uint64_t seed;
    uint64_t n_threads;
    double seconds;
} report_args;

/* The subjects, and which of them each pane shows: a file that is given twice is planned once. */
typedef struct report {
    report_subject subjects[REPORT_SUBJECTS_MAX];
    size_t n_subjects;
    size_t panes[REPORT_SUBJECTS_MAX];
    size_t n_panes;
} report;

static bool make_request(const report_args *args, report_request *request)
{
    *request = (report_request){
        .output = args->output,
        .link = args->link,
        .n_limits = args->n_limits == NO_NUMBER ? DEFAULT_LIMITS : args->n_limits,
        .options =
            {
                .slower = 1,
                .overhead = NO_TIME,
                .seconds = args->seconds > 0 ? args->seconds : DEFAULT_SECONDS,
                .seed = args->seed,
                .n_threads = (unsigned)args->n_threads,
            },
    };
    if (!args->output) {
        return options_wrong(&verb_report, "no output was given: -o page.html");
    }
    if (args->common.n_operands > REPORT_SUBJECTS_MAX) {
        return options_wrong(&verb_report, "two FILEs side by side at most: '%s' is too many",
                             args->common.operands[REPORT_SUBJECTS_MAX]);
    }
    if (request->n_limits > REPORT_LIMITS_MAX) {
        return options_wrong(&verb_report, "--limits must be at most %d", REPORT_LIMITS_MAX);
    }
    if (args->n_threads > 1024) {
        return options_wrong(&verb_report, "--threads must be at most 1024");
    }
    double *slower = &request->options.slower;
    if (args->slower && (!units_parse_ratio(args->slower, slower) || !(*slower > 0))) {
        return options_wrong(&verb_report, "--slower takes a number above 0 such as 7.5, not '%s'", args->slower);
    }
    return swap_parse_link(&verb_report, args->link ? args->link : SWAP_DEFAULT_LINK, &request->options.link);
}

/* ---- for programs ---- */

static void put_request(json *out, const report_request *request)
{
    json_text(out, "output", request->output);
    json_real(out, "slower", request->options.slower);
    json_uint(out, "seed", request->options.seed);
}

static void print_json(const report_request *request, const report *r, uint64_t n_bytes)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    put_request(&out, request);
    json_uint(&out, "bytes", n_bytes);
    json_array_begin(&out, "files");
    for (size_t i = 0; i < r->n_subjects; i++) {
        const report_subject *subject = &r->subjects[i];
        json_object_begin(&out, NULL);
        json_text(&out, "file", subject->path);
        swap_put_link(&out, subject->link_name, &subject->link);
        json_object_begin(&out, "pool");
        report_put_pool(&out, neap_plan_get_summary(subject->pool));
        json_object_end(&out);
        json_array_begin(&out, "limits");
        for (size_t k = 0; k < subject->n_limits; k++) {
            json_object_begin(&out, NULL);
            report_put_limit(&out, &subject->limits[k]);
            json_object_end(&out);
        }
        json_array_end(&out);
        json_object_end(&out);
    }
    json_array_end(&out);
    json_object_end(&out);
    json_end(&out);
}

/* What was asked, and why there is no page; the line for people is on stderr already. */
static void print_json_failure(const report_request *request, neap_status status, const neap_error *error)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    put_request(&out, request);
    json_null(&out, "bytes");
    json_text(&out, "status", neap_status_name(status));
    json_text(&out, "reason", error->text[0] ? error->text : neap_status_message(status));
    json_object_end(&out);
    json_end(&out);
}

/* ---- for people ---- */

static void row_of_limit(table *t, const report_limit *limit)
{
    char share[UNITS_CHARS] = "no time";
    char held[UNITS_CHARS];
    char overhead[UNITS_CHARS];
    char moved[UNITS_CHARS];
    if (limit->percent) {
        (void)snprintf(share, sizeof share, "%u %%", limit->percent);
    }
    if (!limit->plan) {
        TABLE_ROW(t, TERM_DIM, share, "no plan", "", "");
        return;
    }
    const neap_swap_summary *summary = neap_swap_get_summary(limit->plan);
    TABLE_ROW(t, TERM_PLAIN, share, units_bytes(summary->footprint, held), units_share(summary->overhead, overhead),
              units_bytes(summary->bytes_out, moved));
}

static void print_table(const report_request *request, const report *r, uint64_t n_bytes)
{
    char held[UNITS_CHARS];
    char size[UNITS_CHARS];
    bool has_snapshot = false;
    for (size_t i = 0; i < r->n_subjects; i++) {
        const report_subject *subject = &r->subjects[i];
        table t = table_begin("rrrr");
        printable_title(subject->path);
        has_snapshot |= snapshot_is(subject->trace);
        TABLE_ROW(&t, TERM_DIM, "limit", "footprint", "overhead", "copied out");
        TABLE_ROW(&t, TERM_PLAIN, "none", units_bytes(neap_plan_get_summary(subject->pool)->footprint, held), "", "");
        for (size_t k = 0; k < subject->n_limits; k++) {
            row_of_limit(&t, &subject->limits[k]);
        }
        table_end(&t, 2, stdout);
        (void)putchar('\n');
    }
    printable_line("  page: %s, %s", request->output, units_bytes(n_bytes, size));
    if (has_snapshot) {
        printable_line(
            "  a snapshot has no execs, so no limits; next: neap record -o train.neap.gz -- PROGRAM, and its report");
    }
}

/* ---- the verb ---- */

static int make_report(const report_request *request, char **paths, size_t n_paths, report *r, neap_status *status,
                       neap_error *error)
{
    for (size_t i = 0; i < n_paths; i++) {
        if (i > 0 && strcmp(paths[i], paths[0]) == 0) {
            r->panes[r->n_panes++] = 0;
            continue;
        }
        r->panes[r->n_panes++] = r->n_subjects;
        int code = report_plan_pool(request, paths[i], &r->subjects[r->n_subjects++], status, error);
        if (code != EXIT_GOOD) {
            return code;
        }
    }
    return report_plan_limits(request, r->subjects, r->n_subjects, status, error);
}

static int answer(const report_request *request, const report_args *args)
{
    report r = {.n_subjects = 0};
    neap_status status = NEAP_OK;
    neap_error error = {""};
    uint64_t n_bytes = 0;
    int code = make_report(request, args->common.operands, args->common.n_operands, &r, &status, &error);
    if (code != EXIT_GOOD) {
        if (args->common.json && code == EXIT_NO) {
            print_json_failure(request, status, &error);
        }
    } else if (!report_write_page(request, r.subjects, r.n_subjects, r.panes, r.n_panes, &n_bytes)) {
        code = EXIT_BAD;
    } else if (args->common.json) {
        print_json(request, &r, n_bytes);
    } else {
        print_table(request, &r, n_bytes);
    }
    for (size_t i = 0; i < r.n_subjects; i++) {
        report_subject_free(&r.subjects[i]);
    }
    return code;
}

static int run_report(const verb *self, int n_args, char **args)
{
    report_args parsed = {.n_limits = NO_NUMBER};
    report_request request;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    return make_request(&parsed, &request) ? answer(&request, &parsed) : EXIT_BAD;
}

#define REPORT_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                 \
        .name = option_name, .kind = option_kind, .offset = offsetof(report_args, field), __VA_ARGS__ \
    }

static const option report_options[] = {
    REPORT_OPTION("output", OPTION_TEXT, output, .letter = 'o', .value = "FILE", .help = "the page to write"),
    REPORT_OPTION("limits", OPTION_UINT, n_limits, .value = "N",
                  .help = "limits to plan for, between the peak load and the floor; 14 unless given"),
    REPORT_OPTION("link", OPTION_TEXT, link, .value = "LINK", .help = SWAP_LINK_HELP),
    REPORT_OPTION("slower", OPTION_TEXT, slower, .value = "X",
                  .help = "for a GPU X times slower than the recorded one"),
    REPORT_OPTION("seconds", OPTION_SECONDS, seconds, .value = "S",
                  .help = "stop the search of each plan by then; 1.5 unless given"),
    REPORT_OPTION("seed", OPTION_UINT, seed, .value = "N", .help = "of the search; the same seed gives the same plan"),
    REPORT_OPTION("threads", OPTION_UINT, n_threads, .value = "N", .least = 1,
                  .help = "as many as there are cores, 8 at most, unless given"),
    COMMON_OPTIONS,
};

const verb verb_report = {
    .name = "report",
    .operand = "FILE...",
    .summary = "a page to look at: the arena over time, and what each limit would cost",
    .details =
        "FILE is a trace or a placement CSV; of two the page shows both side by side. The page needs no network\n"
        "and no other file. It has the pool's plan, the lowest limit that costs no time, and a plan for each of\n"
        "--limits. Exit code 1: a trace never repeats; then no page is written.\n",
    .options = report_options,
    .n_options = sizeof report_options / sizeof report_options[0],
    .run = run_report,
};
