/* bench_detect.c: how many events a second the period detector takes, on one core.
 *
 *     bench_detect [--csv RESULTS] [FILE...]
 *
 * Strings made to be hard, programs made like training, and recordings (the files named on the command line) repeated
 * until they are as long. The goal is ten million events a second or better on all of them; `work` is the number of
 * elementary operations an event, which must not grow with the length. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench.h"
#include "trace/detect.h"
#include "trace/period.h"

#define N_EVENTS 4000000u
#define N_RUNS 3

static FILE *csv; /* results, or NULL */

static np_step *make(size_t n)
{
    np_step *steps = calloc(n, sizeof *steps);
    if (!steps) {
        fputs("bench_detect: no memory\n", stderr);
        exit(2);
    }
    return steps;
}

/* Feeds it all; the detector is the caller's. */
static np_detector *feed(const char *name, const np_step *steps, size_t n, double *seconds)
{
    np_detector *detector = NULL;
    uint64_t begin = np_clock_ns();
    neap_status status = np_detector_create(NULL, &detector);
    for (size_t i = 0; status == NEAP_OK && i < n; i++) {
        status = np_detector_feed(detector, steps[i]);
    }
    if (status != NEAP_OK) {
        (void)fprintf(stderr, "bench_detect: %s: %s\n", name, neap_status_message(status));
        exit(2);
    }
    *seconds = (double)(np_clock_ns() - begin) * 1e-9;
    return detector;
}

/* The best of N_RUNS runs. Frees the steps. */
static void measure(const char *name, np_step *steps, size_t n)
{
    double speed = 0, work = 0; /* M events a second; operations an event */
    np_run run = {0};
    for (int i = 0; i < N_RUNS; i++) {
        double seconds;
        np_detector *detector = feed(name, steps, n, &seconds);
        speed = (double)n * 1e-6 / seconds > speed ? (double)n * 1e-6 / seconds : speed;
        work = (double)np_detector_work(detector) / (double)n;
        np_detector_best(detector, &run);
        np_detector_free(detector);
    }
    printf("%-28s %10.1f M/s   work %5.1f   period %8u   run %9u\n", name, speed, work, run.period,
           run.end - run.begin);
    (void)fflush(stdout);
    if (csv) {
        (void)fprintf(csv, "\"%s\",%zu,%.1f,%.1f,%u,%u,10,\"%s\"\n", name, n, speed, work, run.period,
                      run.end - run.begin, bench_machine());
    }
    free(steps);
}

static np_step exec(uint64_t name)
{
    return np_step_of_exec(name);
}

/* ---------------------------------------------------------------- strings ---- */

static np_step *make_random(size_t n, uint64_t letters)
{
    np_step *steps = make(n);
    np_rng rng = np_rng_make(1);
    for (size_t i = 0; i < n; i++) {
        steps[i] = exec(np_rng_below(&rng, letters));
    }
    return steps;
}

/* a^k b a^k b ... */
static np_step *make_powers(size_t n, size_t k)
{
    np_step *steps = make(n);
    for (size_t i = 0; i < n; i++) {
        steps[i] = exec(i % (k + 1) == k);
    }
    return steps;
}

static np_step *make_fibonacci(size_t n)
{
    np_step *steps = make(n);
    size_t a = 1, b = 2;
    steps[0] = exec(0);
    steps[1] = exec(1);
    while (b < n) {
        size_t more = a < n - b ? a : n - b;
        memcpy(steps + b, steps, more * sizeof *steps);
        a = b;
        b += more;
    }
    return steps;
}

static np_step *make_thue_morse(size_t n)
{
    np_step *steps = make(n);
    for (size_t i = 0; i < n; i++) {
        steps[i] = exec((uint64_t)__builtin_parityll(i));
    }
    return steps;
}

/* A period of `layers` forward and backward, with what training allocates, after which it starts over. */
static np_step *make_training(size_t n, size_t layers)
{
    np_step *steps = make(n);
    size_t *made_at = calloc(layers, sizeof *made_at);
    size_t i = 0;
    while (made_at && i < n) {
        for (size_t k = 0; k < layers && i < n; k++) {
            made_at[k] = i;
            steps[i++] = np_step_of_malloc((uint64_t)1024 << (k % 7));
            for (size_t e = 0; e < 3 && i < n; e++) {
                steps[i++] = exec(k % 5 + 10 * e);
            }
        }
        for (size_t k = layers; k-- > 0 && i < n;) {
            steps[i++] = exec(100 + k % 5);
            if (i < n) {
                steps[i] = np_step_of_free((uint64_t)1024 << (k % 7), i - made_at[k]);
                i++;
            }
        }
    }
    free(made_at);
    return steps;
}

/* ---------------------------------------------------------------- recordings ---- */

static void measure_file(const char *path)
{
    neap_trace *trace = NULL;
    neap_error error;
    np_step *once = NULL, *steps;
    size_t n = 0, n_once;
    if (neap_trace_read(path, NULL, &error, &trace) != NEAP_OK) {
        fprintf(stderr, "bench_detect: %s\n", error.text);
        exit(2);
    }
    neap_trace_events(trace, &n_once);
    once = make(n_once);
    for (size_t i = 0; i < n_once; i++) {
        once[i] = np_trace_step(trace, (uint32_t)i);
    }
    steps = make(N_EVENTS);
    while (n < N_EVENTS) {
        size_t more = n_once < N_EVENTS - n ? n_once : N_EVENTS - n;
        memcpy(steps + n, once, more * sizeof *steps);
        n += more;
    }
    free(once);
    neap_trace_free(trace);
    measure(bench_name(path), steps, n);
}

int main(int argc, char **argv)
{
    csv = bench_csv_open(bench_csv_argument(&argc, &argv),
                         "input,events,mevents_per_s,work_per_event,period,run,target,machine");
    measure("training, 20 layers", make_training(N_EVENTS, 20), N_EVENTS);
    measure("training, 2000 layers", make_training(N_EVENTS, 2000), N_EVENTS);
    measure("random, 2 letters", make_random(N_EVENTS, 2), N_EVENTS);
    measure("random, 1000 letters", make_random(N_EVENTS, 1000), N_EVENTS);
    measure("a^n", make_powers(N_EVENTS, N_EVENTS), N_EVENTS);
    measure("(a^7 b)^n", make_powers(N_EVENTS, 7), N_EVENTS);
    measure("(a^2000 b)^n", make_powers(N_EVENTS, 2000), N_EVENTS);
    measure("Fibonacci", make_fibonacci(N_EVENTS), N_EVENTS);
    measure("Thue-Morse", make_thue_morse(N_EVENTS), N_EVENTS);
    for (int i = 1; i < argc; i++) {
        measure_file(argv[i]);
    }
    bench_csv_close(csv);
    return 0;
}
