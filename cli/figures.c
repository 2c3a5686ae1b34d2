/* figures.c: `neap figures FILE...`: the paper's figures from any trace, as pictures and as numbers.
 *
 * This file turns the arguments into a request, reads the traces and goes through the figures; each figure has a file of
 * its own: figures_load.c, figures_limits.c, figures_overhead.c, figures_footprint.c. */
#include "figures.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "printable.h"
#include "swap.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

enum { DEFAULT_STEPS = 20, STEPS_MAX = 10000 };

typedef struct figures_args {
    common_args common;
    const char *folder;
    const char *link;
    const char *slower;
    unsigned only; /* index into figure_names, or ALL */
    uint64_t n_steps;
    uint64_t seed;
    uint64_t n_threads;
    double seconds;
} figures_args;

static const char *const figure_names[] = {"load", "load-under-limits", "overhead", "footprint", NULL};
enum { LOAD, LIMITS, OVERHEAD, FOOTPRINT, ALL };

/* ---- files ---- */

int figures_no_memory(neap_error *why)
{
    (void)snprintf(why->text, sizeof why->text, "host memory is exhausted");
    printable_say("%s", why->text);
    return EXIT_BAD;
}

int figures_failed(const figures_subject *subject, neap_status status, neap_error *why)
{
    if (!why->text[0]) {
        (void)snprintf(why->text, sizeof why->text, "%.300s: %s", subject->path, neap_status_message(status));
    }
    return report_failure(subject->path, status, why);
}

char *figures_path(const figures_request *request, const figures_subject *subject, const char *name)
{
    const char *stem = subject && request->has_many ? subject->stem : "";
    size_t n = strlen(request->folder) + strlen(stem) + strlen(name) + 3;
    char *path = malloc(n);
    if (!path) {
        (void)fputs("neap: host memory is exhausted\n", stderr);
        return NULL;
    }
    (void)snprintf(path, n, "%s/%s%s%s", request->folder, stem, *stem ? "-" : "", name);
    return path;
}

bool figures_note(figures_list *made, char *path)
{
    char **paths = realloc(made->paths, (made->n + 1) * sizeof *paths);
    if (!paths) {
        (void)fputs("neap: host memory is exhausted\n", stderr);
        free(path);
        return false;
    }
    made->paths = paths;
    made->paths[made->n++] = path;
    return true;
}

bool figures_write(const figures_request *request, const figures_subject *subject, const char *name, figures_part *part,
                   const void *what, figures_list *made)
{
    char *path = figures_path(request, subject, name);
    new_file file;
    if (!path || !file_create(path, &file)) {
        free(path);
        return false;
    }
    part(file.stream, what);
    if (!file_commit(&file)) {
        free(path);
        return false;
    }
    return figures_note(made, path);
}

static bool make_folder(const char *folder)
{
    struct stat there;
    if (mkdir(folder, 0777) == 0 || (errno == EEXIST && stat(folder, &there) == 0 && S_ISDIR(there.st_mode))) {
        return true;
    }
    printable_say("cannot make the folder %s: %s", folder, strerror(errno));
    return false;
}

/* ---- subjects ---- */

/* "vgg16-100-32" of "traces/vgg16-100-32.neap.gz". */
static char *stem_of(const char *path)
{
    static const char *const endings[] = {".gz", ".neap"};
    const char *name = strcmp(path, "-") == 0 ? "stdin" : file_name(path);
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t n_ending = strlen(endings[i]);
        if (n > n_ending && strncmp(name + n - n_ending, endings[i], n_ending) == 0) {
            n -= n_ending;
        }
    }
    return strndup(name, n);
}

/* The first part between dashes that is a number; the rest is the network's name. */
static bool batch_in_name(const char *stem, uint64_t *batch, char *rest)
{
    for (const char *part = strchr(stem, '-'); part; part = strchr(part + 1, '-')) {
        size_t n = strspn(part + 1, "0123456789");
        char number[24];
        if (n == 0 || n >= sizeof number || (part[1 + n] != '-' && part[1 + n] != '\0')) {
            continue;
        }
        (void)snprintf(number, sizeof number, "%.*s", (int)n, part + 1);
        if (units_parse_uint(number, batch)) {
            memcpy(rest, stem, (size_t)(part - stem));
            memcpy(rest + (part - stem), part + 1 + n, strlen(part + 1 + n) + 1);
            return true;
        }
    }
    return false;
}

/* From what the trace says of itself, or else from its name. */
static bool name_network(figures_subject *subject)
{
    const char *model = neap_trace_meta(subject->trace, "model");
    const char *batch = neap_trace_meta(subject->trace, "batch");
    const char *image = neap_trace_meta(subject->trace, "img");
    const char *precision = neap_trace_meta(subject->trace, "precision");
    char images[64] = "";
    if (image && strcmp(image, "0") != 0) {
        (void)snprintf(images, sizeof images, ", %.20s x %.20s", image, image);
    }
    size_t n = strlen(subject->stem) + (model ? strlen(model) : 0) + (precision ? strlen(precision) : 0) +
               sizeof images + sizeof ", ";
    subject->network = malloc(n);
    if (!subject->network) {
        return false;
    }
    if (model && batch && units_parse_uint(batch, &subject->batch)) {
        (void)snprintf(subject->network, n, "%s%s%s%s", model, images, precision ? ", " : "",
                       precision ? precision : "");
    } else if (!batch_in_name(subject->stem, &subject->batch, subject->network)) {
        (void)snprintf(subject->network, n, "%s", subject->stem);
    }
    return true;
}

static int subject_read(const char *path, figures_subject *subject, neap_error *why)
{
    subject->path = path;
    neap_status status = neap_trace_read(path, NULL, why, &subject->trace);
    if (status != NEAP_OK) {
        return figures_failed(subject, status, why);
    }
    if (neap_trace_is_csv(subject->trace)) {
        (void)snprintf(why->text, sizeof why->text,
                       "%.300s: a placement CSV does not tell when blocks are used; neap figures needs a trace", path);
        return figures_failed(subject, NEAP_BAD_INPUT, why);
    }
    subject->stem = stem_of(path);
    if (!subject->stem || !name_network(subject)) {
        return figures_no_memory(why);
    }
    status = neap_info_make(subject->trace, 0, NULL, why, &subject->info);
    if (status == NEAP_OK && !subject->info->has_period) {
        status = NEAP_NO_PERIOD;
    }
    return status == NEAP_OK ? EXIT_GOOD : figures_failed(subject, status, why);
}

static void subject_free(figures_subject *subject)
{
    if (subject->info) {
        neap_info_free(subject->info);
    }
    neap_trace_free(subject->trace);
    free(subject->network);
    free(subject->stem);
}

/* Two traces whose figures would have one name. */
static bool are_distinct(const figures_subject *subjects, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(subjects[i].stem, subjects[k].stem) == 0) {
                return options_wrong(&verb_figures, "%s and %s have the same name", subjects[k].path, subjects[i].path);
            }
        }
    }
    return true;
}

/* ---- the answer ---- */

typedef int figure_of_one(const figures_request *request, const figures_subject *subject, figures_list *made,
                          neap_error *why);

static int draw_all(const figures_request *request, const figures_args *args, const figures_subject *subjects,
                    size_t n_subjects, figures_list *made, neap_error *why)
{
    const unsigned only = args->only;
    static figure_of_one *const figures[] = {
        [LOAD] = figures_load, [LIMITS] = figures_limits, [OVERHEAD] = figures_overhead};
    int code = EXIT_GOOD;
    for (size_t i = 0; i < n_subjects; i++) {
        figures_request own = *request;
        swap_take_link(subjects[i].trace, args->link, &own.link_name, &own.options.link);
        for (unsigned figure = LOAD; figure <= OVERHEAD && code == EXIT_GOOD; figure++) {
            if (only == ALL || only == figure) {
                term_progress("%s: %s", subjects[i].stem, figure_names[figure]);
                code = figures[figure](&own, &subjects[i], made, why);
                term_progress_clear();
            }
        }
    }
    if (code == EXIT_GOOD && (only == ALL || only == FOOTPRINT)) {
        code = figures_footprint(request, subjects, n_subjects, made, why);
        term_progress_clear();
    }
    return code;
}

static void print_made(const figures_list *made, bool as_json, int code, const neap_error *why)
{
    if (!as_json) {
        for (size_t i = 0; i < made->n; i++) {
            (void)printf("%s\n", made->paths[i]);
        }
        return;
    }
    if (code == EXIT_BAD) {
        return;
    }
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_array_begin(&out, "files");
    for (size_t i = 0; i < made->n; i++) {
        json_text(&out, NULL, made->paths[i]);
    }
    json_array_end(&out);
    if (code != EXIT_GOOD) {
        json_text(&out, "reason", why->text);
    }
    json_object_end(&out);
    json_end(&out);
}

static int make_figures(const figures_request *request, const figures_args *args)
{
    size_t n = args->common.n_operands;
    neap_error why = {""};
    figures_list made = {0};
    figures_subject *subjects = calloc(n, sizeof *subjects);
    if (!subjects) {
        return figures_no_memory(&why);
    }
    int code = EXIT_GOOD;
    for (size_t i = 0; i < n && code == EXIT_GOOD; i++) {
        code = subject_read(args->common.operands[i], &subjects[i], &why);
    }
    if (code == EXIT_GOOD && !(are_distinct(subjects, n) && make_folder(request->folder))) {
        code = EXIT_BAD;
    }
    if (code == EXIT_GOOD) {
        code = draw_all(request, args, subjects, n, &made, &why);
    }
    print_made(&made, args->common.json, code, &why);
    for (size_t i = 0; i < n; i++) {
        subject_free(&subjects[i]);
    }
    for (size_t i = 0; i < made.n; i++) {
        free(made.paths[i]);
    }
    free(made.paths);
    free(subjects);
    return code;
}

/* ---- the verb ---- */

static bool make_request(const figures_args *args, figures_request *request)
{
    *request = (figures_request){
        .folder = args->folder,
        .link_name = args->link ? args->link : SWAP_DEFAULT_LINK,
        .n_steps = args->n_steps ? args->n_steps : DEFAULT_STEPS,
        .has_many = args->common.n_operands > 1,
        .options = {.slower = 1, .seconds = args->seconds, .seed = args->seed, .n_threads = (unsigned)args->n_threads},
    };
    if (!args->folder) {
        return options_wrong(&verb_figures, "--output is needed: the folder for the figures");
    }
    if (args->n_steps > STEPS_MAX || args->n_threads > 1024) {
        return options_wrong(&verb_figures, args->n_threads > 1024 ? "--threads must be at most 1024"
                                                                   : "--steps must be at most 10000");
    }
    if (args->slower &&
        (!units_parse_ratio(args->slower, &request->options.slower) || !(request->options.slower > 0))) {
        return options_wrong(&verb_figures, "--slower takes a number above 0 such as 7.5, not '%s'", args->slower);
    }
    return swap_parse_link(&verb_figures, request->link_name, &request->options.link);
}

static int run_figures(const verb *self, int n_args, char **args)
{
    figures_args parsed = {.only = ALL};
    figures_request request;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    return make_request(&parsed, &request) ? make_figures(&request, &parsed) : EXIT_BAD;
}

#define FIGURES_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                  \
        .name = option_name, .kind = option_kind, .offset = offsetof(figures_args, field), __VA_ARGS__ \
    }

static const option figures_options[] = {
    FIGURES_OPTION("output", OPTION_TEXT, folder, .letter = 'o', .value = "FOLDER",
                   .help = "where the figures go; made where it is not there"),
    FIGURES_OPTION("only", OPTION_CHOICE, only, .value = "load|load-under-limits|overhead|footprint",
                   .choices = figure_names, .help = "one figure; all four unless given"),
    FIGURES_OPTION("link", OPTION_TEXT, link, .value = "LINK", .help = SWAP_LINK_HELP),
    FIGURES_OPTION("slower", OPTION_TEXT, slower, .value = "X",
                   .help = "for a GPU X times slower than the recorded one"),
    FIGURES_OPTION("steps", OPTION_UINT, n_steps, .value = "N", .least = 2,
                   .help = "limits in the figure of overheads; 20 unless given"),
    FIGURES_OPTION("seconds", OPTION_SECONDS, seconds, .value = "S",
                   .help = "stop each search by then; 5 for placing and 2 for swapping unless given"),
    FIGURES_OPTION("seed", OPTION_UINT, seed, .value = "N",
                   .help = "of the searches; the same seed gives the same figures"),
    FIGURES_OPTION("threads", OPTION_UINT, n_threads, .value = "N", .least = 1,
                   .help = "as many as there are cores, 8 at most, unless given"),
    COMMON_OPTIONS,
};

const verb verb_figures = {
    .name = "figures",
    .operand = "FILE...",
    .summary = "the paper's figures from any trace, as SVG and as CSV",
    .details =
        "FILE is a trace (\"neap-trace 1\", gzip'd or not). Each figure is a picture and the numbers in it:\n"
        "\n"
        "    load                the load over five iterations\n"
        "    load-under-limits   the load of one iteration under limits from the peak load down to load_min\n"
        "    overhead            overhead by limit, for every method, with the bound: neap swap --sweep\n"
        "    footprint           footprint by batch size, for every allocator\n"
        "\n"
        "Of several FILEs, each has the first three under its own name, and footprint.svg compares them: traces\n"
        "of one network are one panel. Network and batch size are taken from the trace's meta (model, batch, img,\n"
        "precision), or from a file name such as vgg16-100.neap.gz. Exit code 1: a trace never repeats.\n",
    .options = figures_options,
    .n_options = sizeof figures_options / sizeof figures_options[0],
    .run = run_figures,
};
