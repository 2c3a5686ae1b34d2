/* bench_trace.c: how fast traces are read and written, in events a second on one core.
 *
 *     bench_trace [--csv RESULTS] FILE...
 *
 * Each file is read and written as it is, and as a long recording: its events repeated, with new block numbers each time,
 * until there are a few million. Times are the best of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench.h"
#include "trace/trace.h"

#define LONG_EVENTS ((size_t)4 << 20)
#define N_RUNS 3

static void die(const char *what, const neap_error *error)
{
    fprintf(stderr, "bench_trace: %s: %s\n", what, error->text);
    exit(2);
}

static void check(neap_status status)
{
    neap_error error = {""};
    if (status != NEAP_OK) {
        (void)snprintf(error.text, sizeof error.text, "%s", neap_status_message(status));
        die("repeating", &error);
    }
}

/* One round of the trace's events. Blocks that the round does not free are freed at its end. */
static void add_round(neap_trace *to, const neap_trace *from, uint64_t first_id)
{
    for (size_t i = 0; i < from->events.n; i++) {
        const neap_event *event = &from->events.items[i];
        if (event->kind == NEAP_EVENT_EXEC) {
            const char *name = neap_trace_exec_name(from, event->subject);
            check(np_trace_add_exec(to, name, strlen(name), event->start_ns, event->duration_ns));
            for (uint32_t a = 0; a < event->n_accesses; a++) {
                const neap_access *access = &from->accesses.items[event->first_access + a];
                check(np_trace_add_access(to, first_id + access->block, access->kind));
            }
        } else if (event->kind == NEAP_EVENT_MALLOC) {
            check(np_trace_add_malloc(to, first_id + event->subject, from->blocks.items[event->subject].bytes));
        } else {
            check(np_trace_add_free(to, first_id + event->subject));
        }
    }
    for (size_t i = 0; i < from->blocks.n; i++) {
        if (from->blocks.items[i].free_event == NEAP_NEVER) {
            check(np_trace_add_free(to, first_id + i));
        }
    }
}

static neap_trace *repeat(const neap_trace *from)
{
    neap_trace *to;
    uint64_t first_id = 1000;
    check(np_trace_create(NULL, &to));
    for (bool is_first = true; is_first || (from->events.n && to->events.n < LONG_EVENTS); is_first = false) {
        for (size_t i = 0; i < from->blocks.n && from->blocks.items[i].malloc_event == NEAP_NEVER; i++) {
            check((is_first ? np_trace_add_live : np_trace_add_malloc)(to, first_id + i, from->blocks.items[i].bytes));
        }
        add_round(to, from, first_id);
        first_id += from->blocks.n;
    }
    return to;
}

static double seconds_of_write(const neap_trace *trace, const char *path)
{
    double best = 1e30;
    for (int i = 0; i < N_RUNS; i++) {
        neap_error error;
        uint64_t start = np_clock_ns();
        if (neap_trace_write(trace, path, &error) != NEAP_OK) {
            die("writing", &error);
        }
        double seconds = (double)(np_clock_ns() - start) * 1e-9;
        best = seconds < best ? seconds : best;
    }
    return best;
}

static double seconds_of_read(const neap_trace *expected, const char *path)
{
    double best = 1e30;
    for (int i = 0; i < N_RUNS; i++) {
        neap_error error;
        neap_trace *trace;
        uint64_t start = np_clock_ns();
        if (neap_trace_read(path, NULL, &error, &trace) != NEAP_OK) {
            die("reading", &error);
        }
        double seconds = (double)(np_clock_ns() - start) * 1e-9;
        best = seconds < best ? seconds : best;
        if (!np_trace_is_equal(trace, expected)) {
            (void)snprintf(error.text, sizeof error.text, "what was read is not what was written");
            die(path, &error);
        }
        neap_trace_free(trace);
    }
    return best;
}

static void measure(const char *label, const neap_trace *trace, const char *folder, FILE *csv)
{
    static const char *const suffixes[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        double n = (double)trace->events.n * 1e-6;
        FILE *file;
        long n_bytes = 0;
        (void)snprintf(path, sizeof path, "%s/trace.neap%s", folder, suffixes[i]);
        double write_seconds = seconds_of_write(trace, path);
        double read_seconds = seconds_of_read(trace, path);
        file = fopen(path, "rb");
        if (file && fseek(file, 0, SEEK_END) == 0) {
            n_bytes = ftell(file);
        }
        if (file) {
            (void)fclose(file);
        }
        (void)unlink(path);
        printf("%-34s %-4s %10zu %9.1f %12.2f %12.2f\n", label, i ? "gzip" : "text", trace->events.n,
               (double)n_bytes * 1e-6, n / read_seconds, n / write_seconds);
        if (csv) {
            (void)fprintf(csv, "\"%s\",%s,%zu,%ld,%.2f,%.2f,2,\"%s\"\n", label, i ? "gzip" : "text", trace->events.n,
                          n_bytes, n / read_seconds, n / write_seconds, bench_machine());
        }
    }
}

int main(int argc, char **argv)
{
    const char *parent = getenv("TMPDIR");
    const char *csv_path = bench_csv_argument(&argc, &argv);
    FILE *csv;
    char folder[1024];
    if (argc < 2) {
        fprintf(stderr, "usage: bench_trace [--csv RESULTS] FILE...\n");
        return 2;
    }
    (void)snprintf(folder, sizeof folder, "%s/neap-bench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder)) {
        perror("bench_trace");
        return 2;
    }
    csv = bench_csv_open(csv_path, "input,form,events,bytes,read_mevents_per_s,write_mevents_per_s,target,machine");
    printf("%-34s %-4s %10s %9s %12s %12s\n", "trace", "as", "events", "MB", "read M/s", "write M/s");
    for (int i = 1; i < argc; i++) {
        char label[64];
        neap_error error;
        neap_trace *trace;
        neap_trace *longer;
        if (neap_trace_read(argv[i], NULL, &error, &trace) != NEAP_OK) {
            die("reading", &error);
        }
        measure(bench_name(argv[i]), trace, folder, csv);
        longer = repeat(trace);
        (void)snprintf(label, sizeof label, "%.48s repeated", bench_name(argv[i]));
        measure(label, longer, folder, csv);
        neap_trace_free(longer);
        neap_trace_free(trace);
    }
    (void)rmdir(folder);
    bench_csv_close(csv);
    return 0;
}
