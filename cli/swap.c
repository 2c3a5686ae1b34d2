/* swap.c: `neap swap FILE`: what leaves the device when, so that it holds less,
 * and what that costs.
 *
 * This file turns the arguments into a request and answers it; swap_show.c
 * prints a plan, swap_list.c its swaps, sweep.c whole curves, swap_run.c what
 * neap run would do. */
#include "swap.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"
#include "printable.h"
#include "sweep.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

#define NO_METHOD UINT_MAX
#define NO_NUMBER UINT64_MAX
enum { DEFAULT_LARGEST = 10, DEFAULT_STEPS = 20, STEPS_MAX = 10000 };

typedef struct swap_args {
    common_args common;
    bool zero_overhead;
    bool sweep;
    bool run;
    const char *limit; /* as given, NULL: not at all */
    unsigned on;       /* index into on_names, or NO_METHOD */
    const char *overhead;
    const char *link;
    const char *slower;
    const char *svg;
    const char *list;
    unsigned method; /* index into method_names, or NO_METHOD */
    uint64_t min_block;
    uint64_t page;
    uint64_t alignment;
    uint64_t seed;
    uint64_t n_threads;
    uint64_t margin;    /* or NO_NUMBER */
    uint64_t n_largest; /* or NO_NUMBER */
    uint64_t n_steps;   /* 0: not given */
    double seconds;
} swap_args;

static const char *const method_names[] = {"search", "bo", "doa", "aoa", "wdoa", "swdoa", NULL};
static const neap_swap_method methods[] = {NEAP_SWAP_SEARCH, NEAP_SWAP_BO,   NEAP_SWAP_DOA,
                                           NEAP_SWAP_AOA,    NEAP_SWAP_WDOA, NEAP_SWAP_SWDOA};

enum { ON_FOOTPRINT, ON_LOAD };
static const char *const on_names[] = {"footprint", "load", NULL};

#define SWEEP_SECONDS 0.5 /* for each limit and method, unless given */

/* ---- from arguments to a request ---- */

typedef struct given_option {
    bool is_given;
    const char *name;
} given_option;

/* neap run has one method, the pages of its device, and no list. */
static bool agrees_with_run(const swap_args *args)
{
    const given_option not_with_run[] = {
        {args->sweep, "sweep"},
        {args->svg != NULL, "svg"},
        {args->n_steps != 0, "steps"},
        {args->list != NULL, "list"},
        {args->n_largest != NO_NUMBER, "largest"},
        {args->method != NO_METHOD, "method"},
        {args->slower != NULL, "slower"},
        {args->page != 0, "page"},
        {args->alignment != 0, "align"},
        {args->on != NO_METHOD, "on"},
    };
    for (size_t i = 0; i < sizeof not_with_run / sizeof not_with_run[0]; i++) {
        if (not_with_run[i].is_given) {
            return options_wrong(&verb_swap, "--%s does not go with --run, which plans as neap run does",
                                 not_with_run[i].name);
        }
    }
    if (args->limit && args->overhead) {
        return options_wrong(&verb_swap,
                             "with --run, --limit says how much memory and --overhead finds it: one of them");
    }
    return args->margin == NO_NUMBER || args->margin <= UINT32_MAX ||
           options_wrong(&verb_swap, "--margin must be at most %u", UINT32_MAX);
}

/* What the one option asks for, the other would make void. */
static bool agrees(const swap_args *args)
{
    const given_option not_with_sweep[] = {
        {args->limit != NULL, "limit"},       {args->zero_overhead, "zero-overhead"},
        {args->overhead != NULL, "overhead"}, {args->method != NO_METHOD, "method"},
        {args->list != NULL, "list"},         {args->n_largest != NO_NUMBER, "largest"},
    };
    if (args->limit && args->zero_overhead) {
        return options_wrong(&verb_swap, "--limit and --zero-overhead are two questions; ask one at a time");
    }
    if (args->run && !agrees_with_run(args)) {
        return false;
    }
    if (!args->run && args->margin != NO_NUMBER) {
        return options_wrong(&verb_swap, "--margin goes with --run");
    }
    for (size_t i = 0; args->sweep && i < sizeof not_with_sweep / sizeof not_with_sweep[0]; i++) {
        if (not_with_sweep[i].is_given) {
            return options_wrong(&verb_swap, "--%s does not go with --sweep, which tries every limit and method",
                                 not_with_sweep[i].name);
        }
    }
    if (!args->sweep && !args->limit && args->method != NO_METHOD && methods[args->method] != NEAP_SWAP_SEARCH) {
        return options_wrong(&verb_swap, "--method %s goes with --limit; the lowest limit is found by search",
                             method_names[args->method]);
    }
    if (!args->sweep && !args->limit && args->on != NO_METHOD) {
        return options_wrong(&verb_swap, "--on goes with --limit and --sweep: it says what limits are on");
    }
    if (!args->sweep && (args->svg || args->n_steps)) {
        return options_wrong(&verb_swap, "--%s goes with --sweep", args->svg ? "svg" : "steps");
    }
    if (args->n_steps > STEPS_MAX) {
        return options_wrong(&verb_swap, "--steps must be at most %d", STEPS_MAX);
    }
    return args->n_threads <= 1024 || options_wrong(&verb_swap, "--threads must be at most 1024");
}

static bool parse_limit(const swap_args *args, neap_swap_options *options)
{
    limit parsed = {0};
    bool is_good = !args->limit || limit_parse(&verb_swap, args->limit, LIMIT_DOUBTS, &parsed);
    options->limit = parsed.bytes;
    options->limit_share = parsed.share;
    return is_good;
}

static const char *known_link(const void *list, size_t i)
{
    (void)list;
    return neap_link_name(i);
}

static bool parse_speeds(const char *text, neap_link *link)
{
    double speeds[UNITS_SPEEDS_MAX];
    size_t n = units_parse_speeds(text, speeds);
    if (n > 0) {
        *link = (neap_link){.out_gbs = speeds[0], .in_gbs = speeds[n > 1], .both_gbs = n > 2 ? speeds[2] : 0};
    }
    return n > 0;
}

void swap_take_link(const neap_trace *trace, const char *given, const char **name, neap_link *link)
{
    const char *recorded = neap_trace_meta(trace, "link");
    const char *latency = neap_trace_meta(trace, "link_latency_us");
    const char *share = neap_trace_meta(trace, "link_busy_share");
    double us = 0;
    double busy = 0;
    if (!given && recorded && parse_speeds(recorded, link)) {
        *name = recorded;
        link->latency_us = latency && units_parse_ratio(latency, &us) && us > 0 ? us : 0;
        link->busy_share = share && units_parse_ratio(share, &busy) && busy > 0 && busy <= 1 ? busy : 0;
    }
}

bool swap_parse_link(const verb *v, const char *text, neap_link *link)
{
    if (neap_link_find(text, link) == NEAP_OK || parse_speeds(text, link)) {
        return true;
    }
    const char *nearest = options_nearest(text, known_link, NULL);
    if (nearest) {
        return options_wrong(v, "--link has no '%s'; did you mean '%s'?", text, nearest);
    }
    char names[160] = "";
    size_t used = 0;
    for (size_t i = 0; neap_link_name(i) && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s, ", neap_link_name(i));
    }
    return options_wrong(v, "--link has no '%s'; it takes %sor speeds such as 50GB/s or 55/50GB/s", text, names);
}

static bool parse_numbers(const swap_args *args, neap_swap_options *options)
{
    if (args->overhead && !units_parse_share(args->overhead, &options->overhead)) {
        return options_wrong(&verb_swap, "--overhead takes a share such as 1%%, not '%s'", args->overhead);
    }
    if (args->overhead && options->overhead <= 0) {
        options->overhead = 1e-9; /* none at all: 0 would be the default's */
    }
    if (args->slower && (!units_parse_ratio(args->slower, &options->slower) || !(options->slower > 0))) {
        return options_wrong(&verb_swap, "--slower takes a number above 0 such as 7.5, not '%s'", args->slower);
    }
    return true;
}

static bool make_request(const swap_args *args, swap_request *request)
{
    *request = (swap_request){
        .path = args->common.operand,
        .link_name = args->link ? args->link : SWAP_DEFAULT_LINK,
        .json = args->common.json,
        .as_run = args->run,
        .margin = args->margin == NO_NUMBER ? NEAP_RUN_MARGIN : (uint32_t)args->margin,
        .zero_overhead = !args->limit,
        .n_largest = args->n_largest == NO_NUMBER ? DEFAULT_LARGEST : args->n_largest,
        .n_steps = args->n_steps ? args->n_steps : DEFAULT_STEPS,
        .svg = args->svg,
        .list = args->list,
        .options =
            {
                .method = args->method == NO_METHOD ? NEAP_SWAP_SEARCH : methods[args->method],
                .slower = 1,
                .on_load = args->on == ON_LOAD,
                .overhead = 0.001,
                .min_block = args->run && !args->min_block ? NEAP_RUN_MIN_BLOCK : args->min_block,
                .page = args->page,
                .alignment = args->alignment,
                .seconds = args->seconds > 0 || !args->sweep ? args->seconds : SWEEP_SECONDS,
                .seed = args->seed,
                .n_threads = (unsigned)args->n_threads,
            },
    };
    return agrees(args) && parse_limit(args, &request->options) &&
           swap_parse_link(&verb_swap, request->link_name, &request->options.link) &&
           parse_numbers(args, &request->options);
}

/* ---- the answer ---- */

static int print_plan(const swap_request *request, const neap_trace *trace, const neap_swap_plan *plan)
{
    const neap_swap_summary *summary = neap_swap_get_summary(plan);
    if (request->list && !swap_write_list(request->list, trace, plan)) {
        return EXIT_BAD;
    }
    if (request->json) {
        swap_print_json(request, trace, summary);
        return EXIT_GOOD;
    }
    printable_title(request->path);
    swap_print_summary(request, trace, summary);
    return swap_print_largest(request, trace, plan) ? EXIT_GOOD : EXIT_BAD;
}

static int plan_swaps(const swap_request *request, const neap_trace *trace)
{
    neap_error error = {""};
    neap_swap_plan *plan;
    term_progress("planning swaps (%s)", neap_swap_method_name(request->options.method));
    neap_status status = neap_swap_make(trace, &request->options, NULL, &error, &plan);
    term_progress_clear();
    if (status == NEAP_NO_PERIOD || status == NEAP_NO_PLAN) {
        return swap_print_no_plan(request, trace, status, &error);
    }
    if (status != NEAP_OK) {
        return report_failure(request->path, status, &error);
    }
    int code = print_plan(request, trace, plan);
    neap_swap_free(plan);
    return code;
}

static int run_swap(const verb *self, int n_args, char **args)
{
    swap_args parsed = {.method = NO_METHOD, .on = NO_METHOD, .n_largest = NO_NUMBER, .margin = NO_NUMBER};
    swap_request request;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!make_request(&parsed, &request)) {
        return EXIT_BAD;
    }
    neap_error error = {""};
    neap_trace *trace;
    neap_status status = neap_trace_read(request.path, NULL, &error, &trace);
    if (status != NEAP_OK) {
        return report_failure(request.path, status, &error);
    }
    int code = EXIT_BAD;
    swap_take_link(trace, parsed.link, &request.link_name, &request.options.link);
    if (neap_trace_is_csv(trace)) {
        (void)fprintf(stderr,
                      "neap: %s: a placement CSV does not tell when blocks are "
                      "used; neap swap needs a trace\n",
                      request.path);
    } else {
        code = parsed.sweep     ? sweep_run(&request, trace)
               : request.as_run ? swap_foresee(&request, trace)
                                : plan_swaps(&request, trace);
    }
    neap_trace_free(trace);
    return code;
}

/* ---- the verb ---- */

#define SWAP_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                               \
        .name = option_name, .kind = option_kind, .offset = offsetof(swap_args, field), __VA_ARGS__ \
    }

static const option swap_options[] = {
    SWAP_OPTION("limit", OPTION_TEXT, limit, .value = "SIZE|SHARE",
                .help = "hold no more than this: 447MB, 8GiB, or 70% of the peak load"),
    SWAP_OPTION("on", OPTION_CHOICE, on, .value = "footprint|load", .choices = on_names,
                .help = "limit the footprint, which is the default, or the load, as in the paper"),
    SWAP_OPTION("zero-overhead", OPTION_FLAG, zero_overhead,
                .help = "find the lowest limit that costs no time: what is "
                        "done where no limit is given"),
    SWAP_OPTION("overhead", OPTION_TEXT, overhead, .value = "SHARE",
                .help = "what counts as no time: 0.1% of an iteration unless given"),
    SWAP_OPTION("method", OPTION_CHOICE, method, .value = "search|bo|doa|aoa|wdoa|swdoa", .choices = method_names,
                .help = "search is the default; the others are the paper's "
                        "scores, and bo their tuned mix"),
    SWAP_OPTION("link", OPTION_TEXT, link, .value = "LINK", .help = SWAP_LINK_HELP),
    SWAP_OPTION("slower", OPTION_TEXT, slower, .value = "X", .help = "for a GPU X times slower than the recorded one"),
    SWAP_OPTION("min-block", OPTION_SIZE, min_block, .value = "SIZE", .least = 1,
                .help = "leave smaller blocks alone; 1MiB unless given, 256KiB with --run"),
    SWAP_OPTION("page", OPTION_SIZE, page, .value = "SIZE", .least = 1,
                .help = "parts of blocks are multiples of this; 2MiB unless given"),
    SWAP_OPTION("align", OPTION_SIZE, alignment, .value = "BYTES", .least = 1,
                .help = "of every block; 512 unless given"),
    SWAP_OPTION("seconds", OPTION_SECONDS, seconds, .value = "S",
                .help = "stop the search by then; 2 unless given, 0.5 for each limit and method of a sweep"),
    SWAP_OPTION("seed", OPTION_UINT, seed, .value = "N", .help = "of the search; the same seed gives the same plan"),
    SWAP_OPTION("threads", OPTION_UINT, n_threads, .value = "N", .least = 1,
                .help = "as many as there are cores, 8 at most, unless given; 2 with --run"),
    SWAP_OPTION("largest", OPTION_UINT, n_largest, .value = "N", .help = "swaps shown in the table; 10 unless given"),
    SWAP_OPTION("list", OPTION_TEXT, list, .value = "FILE", .help = "write every swap as CSV"),
    SWAP_OPTION("run", OPTION_FLAG, run,
                .help = "what neap run would plan, under constraints that a plan on paper does not have"),
    SWAP_OPTION("margin", OPTION_UINT, margin, .value = "N",
                .help = "with --run: launches that a block stays after a use, and is back before one; 2 unless given"),
    SWAP_OPTION("sweep", OPTION_FLAG, sweep,
                .help = "print the overhead of every method, from the peak "
                        "load down to the floor, as CSV"),
    SWAP_OPTION("steps", OPTION_UINT, n_steps, .value = "N", .least = 2,
                .help = "limits in the sweep; 20 unless given"),
    SWAP_OPTION("svg", OPTION_TEXT, svg, .value = "FILE", .help = "draw the sweep: limits across, overhead up"),
    COMMON_OPTIONS,
};

const verb verb_swap = {
    .name = "swap",
    .operand = "FILE",
    .summary = "what leaves the device when so that it holds less, and what "
               "that costs",
    .details = "FILE is a trace (\"neap-trace 1\", gzip'd or not); \"-\" is "
               "standard input. Overheads are shares of an\n"
               "undisturbed iteration, and stand beside a bound that no plan "
               "of swaps can beat. Columns of --list: the\n"
               "block, the bytes of it that leave, the exec (as an event of "
               "the trace) after which it leaves, the one\n"
               "after which its copy in may begin, the one that needs it back, "
               "the time between the two uses, and the\n"
               "time of both copies. Exit code 1: the trace never repeats, or "
               "the limit is below what one exec needs.\n",
    .options = swap_options,
    .n_options = sizeof swap_options / sizeof swap_options[0],
    .run = run_swap,
};
