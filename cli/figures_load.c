/* figures_load.c: the load over five iterations, as in the paper's first figure.
 *
 * Time is logical: the index of events. Iterations are those of the period: one, or several where they differ. A trace with
 * fewer than five goes on as it repeats: that is what a period means. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "figures.h"
#include "units.h"
#include "verbs.h"

enum { N_ITERATIONS = 5 };

typedef struct chart {
    const figures_subject *subject;
    uint64_t *load;            /* after each event */
    size_t ends[N_ITERATIONS]; /* of iterations, in events from the first one's begin */
    uint64_t peak;
} chart;

/* ---- the load ---- */

static uint64_t rounded(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Of the whole trace, after each event. */
static uint64_t *sum_load(const figures_subject *subject)
{
    size_t n_events;
    size_t n_blocks;
    const neap_event *events = neap_trace_events(subject->trace, &n_events);
    const neap_trace_block *blocks = neap_trace_blocks(subject->trace, &n_blocks);
    uint64_t *load = malloc((n_events + 1) * sizeof *load);
    uint64_t sum = 0;
    for (size_t i = 0; i < n_blocks && load; i++) {
        sum += blocks[i].malloc_event == NEAP_NEVER ? rounded(blocks[i].bytes, subject->info->alignment) : 0;
    }
    for (size_t i = 0; i < n_events && load; i++) {
        if (events[i].kind != NEAP_EVENT_EXEC) {
            uint64_t bytes = rounded(blocks[events[i].subject].bytes, subject->info->alignment);
            sum = events[i].kind == NEAP_EVENT_MALLOC ? sum + bytes : sum - bytes;
        }
        load[i] = sum;
    }
    return load;
}

uint64_t *figures_load_of(const figures_subject *subject, uint32_t begin, size_t n)
{
    const neap_info *info = subject->info;
    uint64_t *all = sum_load(subject);
    uint64_t *load = malloc(n * sizeof *load);
    if (!all || !load) {
        free(all);
        free(load);
        (void)fputs("neap: host memory is exhausted\n", stderr);
        return NULL;
    }
    size_t run_end = (size_t)info->period_begin + info->run_length;
    for (size_t i = 0; i < n; i++) {
        size_t event = begin + i;
        if (event >= run_end) { /* as long before the end of the run as whole periods reach */
            event = run_end - info->period_length + (event - run_end) % info->period_length;
        }
        load[i] = all[event];
    }
    free(all);
    return load;
}

static bool chart_make(const figures_subject *subject, chart *c)
{
    const neap_info *info = subject->info;
    uint32_t begin = info->n_variants ? info->period_begin + info->variants[0].begin : info->cut;
    *c = (chart){.subject = subject};
    size_t n = 0;
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        n += info->n_variants ? info->variants[i % info->n_variants].length : info->period_length;
        c->ends[i] = n;
    }
    c->load = figures_load_of(subject, begin, n);
    for (size_t i = 0; i < n && c->load; i++) {
        c->peak = c->load[i] > c->peak ? c->load[i] : c->peak;
    }
    return c->load != NULL;
}

/* ---- as numbers, as a picture ---- */

static void write_csv(FILE *out, const void *what)
{
    const chart *c = what;
    size_t iteration = 0;
    (void)fputs("event,iteration,load\n", out);
    for (size_t i = 0; i < c->ends[N_ITERATIONS - 1]; i++) {
        iteration += i == c->ends[iteration];
        (void)fprintf(out, "%zu,%zu,%" PRIu64 "\n", i, iteration + 1, c->load[i]);
    }
}

static void write_svg(FILE *out, const void *what)
{
    const chart *c = what;
    char text[UNITS_CHARS];
    char line[256];
    size_t n = c->ends[N_ITERATIONS - 1];
    const draw_frame f = {.out = out,
                          .left = 86,
                          .right = 1070,
                          .top = 104,
                          .bottom = 420,
                          .x_most = (double)n,
                          .y_most = (double)c->peak * 1.06};
    draw_page_begin(out, 1180, 490);
    (void)snprintf(line, sizeof line, "The load over five iterations%s: %s at its peak.",
                   c->subject->info->n_variants ? ", not all alike" : "", units_bytes(c->peak, text));
    draw_title(out, f.left, file_name(c->subject->path), line);
    draw_bytes_axis(&f, draw_unit_of((double)c->peak), "load");
    (void)fprintf(out, "<path d=\"M%.2f %.2f", f.left, f.bottom);
    draw_steps(&f, c->load, n);
    (void)fprintf(out, "V%.2fZ\" fill=\"#7fb2d6\" stroke=\"#2f6f9f\" stroke-width=\".8\"/>\n", f.bottom);
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        double begin = draw_x(&f, (double)(i ? c->ends[i - 1] : 0));
        double end = draw_x(&f, (double)c->ends[i]);
        draw_line(out, end, f.top - 14, end, f.bottom, DRAW_FAINT, "stroke-width=\".7\" stroke-dasharray=\"2 3\"");
        (void)snprintf(line, sizeof line, "iteration %zu", i + 1);
        draw_text(out, (begin + end) / 2, f.top - 6, "middle", DRAW_FAINT, line);
    }
    double peak_y = draw_y(&f, (double)c->peak);
    draw_line(out, f.left, peak_y, f.right, peak_y, DRAW_INK, "stroke-dasharray=\"2 3\"");
    draw_text(out, f.right + 8, peak_y, "start", DRAW_INK, "peak load");
    draw_text(out, f.right + 8, peak_y + 15, "start", DRAW_INK, units_bytes(c->peak, text));
    draw_count_axis(&f, "time, events: malloc, free and exec");
    draw_page_end(out);
}

int figures_load(const figures_request *request, const figures_subject *subject, figures_list *made, neap_error *why)
{
    chart c;
    if (!chart_make(subject, &c)) {
        (void)snprintf(why->text, sizeof why->text, "host memory is exhausted");
        return EXIT_BAD;
    }
    bool is_written = figures_write(request, subject, "load.csv", write_csv, &c, made) &&
                      figures_write(request, subject, "load.svg", write_svg, &c, made);
    free(c.load);
    return is_written ? EXIT_GOOD : EXIT_BAD;
}
