/* bench_pool.c: runs `neap plan` as a user would and sets what came out beside what should.
 *
 *     bench_pool NEAP GROUP [--NAME VALUE]... FILE...
 *
 *     --csv FILE         append the results here             --ratio R      the footprint / bound to be reached
 *     --baselines FILE   append other allocators' here       --bytes B      or the footprint, in bytes
 *     --seconds S        handed to neap; 5 is its default    --time S       wall time allowed for the whole command
 *     --repeats N        3 unless given                      --memory MB    peak memory allowed
 *     --reference TEXT   what others need on this input
 *
 * Every run is a process of its own, so that its peak memory is its own. Times are medians; the footprint is the worst
 * one seen, though it should be the same each time. It leaves with 1 where a plan failed, not where a target was missed:
 * the table and the CSV say that. */
#define _DEFAULT_SOURCE /* wait4 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"

enum { REPEATS_MAX = 15, ANSWER_CHARS = 4096 };

static const char pool_header[] = "group,input,buffers,load,bound,footprint,ratio,optimal,seconds,wall_seconds,"
                                  "peak_rss_mb,found_by,bestfit_ratio,firstfit_ratio,target_ratio,target_seconds,"
                                  "target_mb,met,reference,machine";
static const char baselines_header[] = "input,load,neap,cudamalloc,cnmem,caching,expandable,bestfit,firstfit";

typedef struct request {
    const char *neap;
    const char *group;
    const char *csv;
    const char *baselines;
    const char *seconds; /* NULL: neap's default */
    const char *reference;
    double ratio; /* targets; 0: none */
    double bytes;
    double time;
    double memory;
    int repeats;
} request;

/* One run of the command. */
typedef struct answer {
    char json[ANSWER_CHARS];
    double wall;   /* seconds */
    double memory; /* MB */
} answer;

/* ---------------------------------------------------------------- running ---- */

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_pool: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void read_all(int from, char *text)
{
    size_t n = 0;
    ssize_t more;
    while ((more = read(from, text + n, ANSWER_CHARS - 1 - n)) > 0) {
        n += (size_t)more;
    }
    text[n] = '\0';
}

static bool run(const request *r, const char *path, const char *solver, bool with_baselines, answer *a)
{
    const char *args[12] = {r->neap, "plan", path, "--json", "--solver", solver};
    int n_args = 6, ends[2], status;
    struct rusage usage;
    if (!with_baselines) {
        args[n_args++] = "--no-baselines";
    }
    if (r->seconds) {
        args[n_args++] = "--seconds";
        args[n_args++] = r->seconds;
    }
    if (pipe(ends) != 0) {
        die("pipe");
    }
    uint64_t begin = np_clock_ns();
    pid_t child = fork();
    if (child < 0) {
        die("fork");
    }
    if (child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execv(r->neap, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    (void)close(ends[1]);
    read_all(ends[0], a->json);
    (void)close(ends[0]);
    if (wait4(child, &status, 0, &usage) != child) {
        die("wait");
    }
    a->wall = (double)(np_clock_ns() - begin) * 1e-9;
    a->memory = (double)usage.ru_maxrss * 1024 * 1e-6;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---------------------------------------------------------------- reading the answer ---- */

/* What follows "key": in the document; keys are named once in it, but for period and round, which are not asked for. */
static const char *find(const answer *a, const char *key)
{
    char quoted[40];
    (void)snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(a->json, quoted);
    if (!at) {
        (void)fprintf(stderr, "bench_pool: the answer has no \"%s\"\n", key);
        exit(2);
    }
    return at + strlen(quoted);
}

static uint64_t find_uint(const answer *a, const char *key)
{
    return strtoull(find(a, key), NULL, 10);
}

static void find_text(const answer *a, const char *key, char *text, size_t n)
{
    const char *at = find(a, key) + 1;
    (void)snprintf(text, n, "%.*s", (int)strcspn(at, "\""), at);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* ---------------------------------------------------------------- one input ---- */

typedef struct result {
    uint64_t n_buffers, load, bound, footprint;
    bool optimal;
    double seconds, wall, memory; /* memory in MB */
    double bestfit, firstfit;     /* ratios to the load */
    char found_by[64];
} result;

static double ratio_of(uint64_t bytes, uint64_t load)
{
    return load ? (double)bytes / (double)load : 1;
}

static bool measure(const request *r, const char *path, result *x)
{
    static answer a;
    double seconds[REPEATS_MAX], wall[REPEATS_MAX], memory[REPEATS_MAX];
    for (int i = 0; i < r->repeats; i++) {
        if (!run(r, path, "search", false, &a)) {
            return false;
        }
        seconds[i] = strtod(find(&a, "seconds"), NULL);
        wall[i] = a.wall;
        memory[i] = a.memory;
        if (i == 0 || find_uint(&a, "footprint") > x->footprint) {
            x->footprint = find_uint(&a, "footprint");
            x->bound = find_uint(&a, "bound");
            x->optimal = strncmp(find(&a, "optimal"), "true", 4) == 0;
            find_text(&a, "found_by", x->found_by, sizeof x->found_by);
        }
    }
    x->n_buffers = find_uint(&a, "buffers");
    x->load = find_uint(&a, "load");
    x->seconds = median(seconds, r->repeats);
    x->wall = median(wall, r->repeats);
    x->memory = median(memory, r->repeats);
    if (!run(r, path, "bestfit", false, &a)) {
        return false;
    }
    x->bestfit = ratio_of(find_uint(&a, "footprint"), x->load);
    if (!run(r, path, "firstfit", false, &a)) {
        return false;
    }
    x->firstfit = ratio_of(find_uint(&a, "footprint"), x->load);
    return true;
}

/* What is shown as 1.0000 is 1.0000: the target is compared with the very bytes. */
static bool is_met(const request *r, const result *x, double target_ratio)
{
    return (target_ratio == 0 || (double)x->footprint <= target_ratio * (double)x->load) &&
           (r->time == 0 || x->wall <= r->time) && (r->memory == 0 || x->memory <= r->memory);
}

static void number_or_nothing(FILE *out, double value, const char *format)
{
    if (value > 0) {
        (void)fprintf(out, format, value);
    }
    (void)fputc(',', out);
}

static void write_csv(FILE *out, const request *r, const char *name, const result *x, double target_ratio)
{
    (void)fprintf(out, "%s,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6f,%s,", r->group, name, x->n_buffers,
                  x->load, x->bound, x->footprint, ratio_of(x->footprint, x->load), x->optimal ? "true" : "false");
    (void)fprintf(out, "%.4f,%.4f,%.1f,\"%s\",%.4f,%.4f,", x->seconds, x->wall, x->memory, x->found_by, x->bestfit,
                  x->firstfit);
    number_or_nothing(out, target_ratio, "%.4f");
    number_or_nothing(out, r->time, "%g");
    number_or_nothing(out, r->memory, "%g");
    (void)fprintf(out, "%s,\"%s\",\"%s\"\n", is_met(r, x, target_ratio) ? "yes" : "no", r->reference, bench_machine());
}

static void print_header(const request *r)
{
    (void)printf("\n%s\n", r->group);
    if (r->reference[0]) {
        (void)printf("  others: %s\n", r->reference);
    }
    (void)printf("  %-32s %8s %15s %9s %-7s %8s %8s %7s %9s  %-22s\n", "input", "buffers", "footprint", "ratio",
                 "proof", "plan s", "wall s", "MB", "best-fit", "to be reached");
}

static void print_row(const request *r, const char *name, const result *x, double target_ratio)
{
    char target[96];
    int n = 0;
    if (target_ratio > 0) {
        n += snprintf(target + n, sizeof target - (size_t)n, "%.4f ", target_ratio);
    }
    if (r->time > 0) {
        n += snprintf(target + n, sizeof target - (size_t)n, "in %g s ", r->time);
    }
    if (r->memory > 0) {
        n += snprintf(target + n, sizeof target - (size_t)n, "%g MB ", r->memory);
    }
    target[n] = '\0';
    (void)printf("  %-32s %8" PRIu64 " %15" PRIu64 " %9.6f %-7s %8.3f %8.3f %7.1f %9.4f  %-22s %s\n", name,
                 x->n_buffers, x->footprint, ratio_of(x->footprint, x->load), x->optimal ? "optimal" : "none",
                 x->seconds, x->wall, x->memory, x->bestfit, target, is_met(r, x, target_ratio) ? "yes" : "MISSED");
    (void)fflush(stdout);
}

static bool write_baselines(const request *r, const char *path, const char *name)
{
    static const char *const keys[] = {"cudamalloc", "cnmem", "caching", "expandable", "bestfit", "firstfit"};
    static answer a;
    if (!run(r, path, "search", true, &a)) {
        return false;
    }
    FILE *out = bench_csv_open(r->baselines, baselines_header);
    (void)fprintf(out, "%s,%" PRIu64 ",%" PRIu64, name, find_uint(&a, "load"), find_uint(&a, "footprint"));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        (void)fprintf(out, ",%" PRIu64, find_uint(&a, keys[i]));
    }
    (void)fputc('\n', out);
    bench_csv_close(out);
    return true;
}

static bool measure_file(const request *r, const char *path)
{
    result x = {0};
    if (!measure(r, path, &x) || (r->baselines && !write_baselines(r, path, bench_name(path)))) {
        (void)fprintf(stderr, "bench_pool: no plan for %s\n", path);
        return false;
    }
    double target_ratio = r->bytes > 0 ? r->bytes / (double)x.load : r->ratio;
    print_row(r, bench_name(path), &x, target_ratio);
    FILE *out = bench_csv_open(r->csv, pool_header);
    if (out) {
        write_csv(out, r, bench_name(path), &x, target_ratio);
    }
    bench_csv_close(out);
    return true;
}

/* ---------------------------------------------------------------- the command line ---- */

static bool parse_option(request *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **text;
        double *number;
    } options[] = {
        {"--csv", &r->csv, NULL},       {"--baselines", &r->baselines, NULL}, {"--seconds", &r->seconds, NULL},
        {"--ratio", NULL, &r->ratio},   {"--reference", &r->reference, NULL}, {"--bytes", NULL, &r->bytes},
        {"--memory", NULL, &r->memory}, {"--time", NULL, &r->time},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(name, options[i].name) == 0) {
            if (options[i].text) {
                *options[i].text = value;
            } else {
                *options[i].number = strtod(value, NULL);
            }
            return true;
        }
    }
    if (strcmp(name, "--repeats") == 0) {
        r->repeats = (int)strtol(value, NULL, 10);
        return r->repeats >= 1 && r->repeats <= REPEATS_MAX;
    }
    return false;
}

int main(int argc, char **argv)
{
    request r = {.reference = "", .repeats = 3};
    bool all_planned = true;
    int i = 3;
    if (argc < 4) {
        (void)fputs("usage: bench_pool NEAP GROUP [--NAME VALUE]... FILE...\n", stderr);
        return 2;
    }
    r.neap = argv[1];
    r.group = argv[2];
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (!parse_option(&r, argv[i], argv[i + 1])) {
            (void)fprintf(stderr, "bench_pool: what is %s %s?\n", argv[i], argv[i + 1]);
            return 2;
        }
    }
    print_header(&r);
    for (; i < argc; i++) {
        all_planned = measure_file(&r, argv[i]) && all_planned;
    }
    return all_planned ? 0 : 1;
}
