/* figures_footprint.c: footprint by batch size for every allocator, as in the paper's figure.
 *
 * Bars from 0, so that lengths compare: a panel for each network, a group for each of its batch sizes, a bar for each
 * allocator, in the same order everywhere. The last three are neap's: its pool, and its pool with swaps that cost no time,
 * or 15 % of it, the paper's two points. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "baselines.h"
#include "draw.h"
#include "figures.h"
#include "term.h"
#include "units.h"

enum { POOL = BASELINES_N, POOL_AND_SWAPS, POOL_AND_SLOW_SWAPS, N_ALLOCATORS };

static const double no_time = 0.001; /* what counts as no time, as neap swap has it */
static const double slow_time = 0.15;

typedef struct group {
    const figures_subject *subject;
    uint64_t bytes[N_ALLOCATORS]; /* 0: not known */
} group;

typedef struct chart {
    group *groups; /* those of one network together, by batch size */
    size_t n_groups;
} chart;

static const struct {
    const char *key, *name, *colour;
} own[] = {
    {"neap", "neap's plan", "#d55e00"},
    {"neap_no_overhead", "neap's plan, swapping at no cost", "#ef8a3c"},
    {"neap_15_percent", "neap's plan, swapping for 15 % time", "#f7bf8c"},
};

static const char *const colours[BASELINES_N] = {"#8c8c94", "#4a4a52", "#0072b2", "#5aa9dc", "#00805e", "#6cbf9f"};

static const char *key_of(size_t i)
{
    return i < BASELINES_N ? baselines_list[i].key : own[i - BASELINES_N].key;
}

static const char *name_of(size_t i)
{
    return i < BASELINES_N ? baselines_list[i].name : own[i - BASELINES_N].name;
}

static const char *colour_of(size_t i)
{
    return i < BASELINES_N ? colours[i] : own[i - BASELINES_N].colour;
}

/* ---- planning ---- */

static neap_status plan_pool(const figures_request *request, const figures_subject *subject, neap_error *why,
                             uint64_t *bytes)
{
    const neap_plan_options options = {
        .seconds = request->options.seconds, .seed = request->options.seed, .n_threads = request->options.n_threads};
    neap_plan *plan;
    neap_status status = neap_plan_make(subject->trace, &options, NULL, why, &plan);
    if (status == NEAP_OK) {
        *bytes = neap_plan_get_summary(plan)->footprint;
        neap_plan_free(plan);
    }
    return status;
}

static neap_status plan_swaps(const figures_request *request, const figures_subject *subject, double overhead,
                              neap_error *why, uint64_t *bytes)
{
    neap_swap_options options = request->options;
    neap_swap_plan *plan;
    options.overhead = overhead;
    neap_status status = neap_swap_make(subject->trace, &options, NULL, why, &plan);
    if (status == NEAP_OK) {
        *bytes = neap_swap_get_summary(plan)->footprint;
        neap_swap_free(plan);
    }
    return status;
}

static neap_status group_make(const figures_request *request, group *g, neap_error *why)
{
    neap_baselines baselines;
    neap_status status = neap_baselines_make(g->subject->trace, 0, NULL, why, &baselines);
    for (size_t i = 0; i < BASELINES_N && status == NEAP_OK; i++) {
        g->bytes[i] = baselines_value(&baselines, i);
    }
    if (status == NEAP_OK) {
        status = plan_pool(request, g->subject, why, &g->bytes[POOL]);
    }
    if (status == NEAP_OK) {
        status = plan_swaps(request, g->subject, no_time, why, &g->bytes[POOL_AND_SWAPS]);
    }
    if (status == NEAP_OK) {
        status = plan_swaps(request, g->subject, slow_time, why, &g->bytes[POOL_AND_SLOW_SWAPS]);
    }
    if (status == NEAP_OK && g->bytes[POOL_AND_SLOW_SWAPS] > g->bytes[POOL_AND_SWAPS]) {
        g->bytes[POOL_AND_SLOW_SWAPS] = g->bytes[POOL_AND_SWAPS]; /* what costs nothing may be used here too */
    }
    return status;
}

/* Networks in the order of their names, batch sizes ascending, then files. */
static int compare_groups(const void *a, const void *b)
{
    const figures_subject *x = ((const group *)a)->subject;
    const figures_subject *y = ((const group *)b)->subject;
    int order = strcmp(x->network, y->network);
    if (order == 0) {
        order = (x->batch > y->batch) - (x->batch < y->batch);
    }
    return order ? order : strcmp(x->stem, y->stem);
}

/* ---- as numbers ---- */

static void put_quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text; text++) {
        (void)fputs(*text == '"' ? "\"" : "", out);
        (void)fputc(*text, out);
    }
    (void)fputs("\",", out);
}

static void write_csv(FILE *out, const void *what)
{
    const chart *c = what;
    (void)fputs("file,network,batch,peak_load", out);
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        (void)fprintf(out, ",%s", key_of(i));
    }
    (void)fputc('\n', out);
    for (size_t k = 0; k < c->n_groups; k++) {
        const group *g = &c->groups[k];
        put_quoted(out, g->subject->stem);
        put_quoted(out, g->subject->network);
        if (g->subject->batch) {
            (void)fprintf(out, "%" PRIu64, g->subject->batch);
        }
        (void)fprintf(out, ",%" PRIu64, g->subject->info->peak_load);
        for (size_t i = 0; i < N_ALLOCATORS; i++) {
            if (g->bytes[i]) {
                (void)fprintf(out, ",%" PRIu64, g->bytes[i]);
            } else {
                (void)fputc(',', out);
            }
        }
        (void)fputc('\n', out);
    }
}

/* ---- as a picture ---- */

#define NUMBER_WIDTH 14  /* of a bar that has room for its number */
#define GROUP_SHARE 0.86 /* of the room for a group: its bars */
static const double left = 86, right = 890, panel_height = 250, panel_step = 350, first_top = 116;

static size_t panel_end(const chart *c, size_t begin)
{
    size_t end = begin + 1;
    while (end < c->n_groups && strcmp(c->groups[end].subject->network, c->groups[begin].subject->network) == 0) {
        end++;
    }
    return end;
}

/* Bars that are wide enough carry their number, in the axis' unit. */
static void draw_bar(const draw_frame *f, draw_unit unit, const group *g, size_t i, double x, double width)
{
    char bytes[UNITS_CHARS];
    double y = draw_y(f, (double)g->bytes[i]);
    if (g->bytes[i] == 0) {
        return;
    }
    (void)fprintf(f->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>", x, y,
                  width * 0.9, f->bottom - y, colour_of(i));
    draw_escaped(f->out, name_of(i));
    (void)fprintf(f->out, ", batch %" PRIu64 ": %s</title></rect>\n", g->subject->batch,
                  units_bytes(g->bytes[i], bytes));
    double number = (double)g->bytes[i] / unit.bytes;
    if (width >= NUMBER_WIDTH) {
        (void)fprintf(f->out,
                      "<text transform=\"translate(%.2f %.2f) rotate(-90)\" font-size=\"11\" fill=\"" DRAW_FAINT
                      "\">%.*f</text>\n",
                      x + width * 0.45 + 4, y - 4, number < 10 ? 2 : number < 1000, number);
    }
}

static void draw_group(const draw_frame *f, draw_unit unit, const group *g, double x, double width)
{
    char label[64];
    double bar = fmin(width * GROUP_SHARE / N_ALLOCATORS, 34);
    double begin = x + (width - bar * N_ALLOCATORS) / 2;
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        draw_bar(f, unit, g, i, begin + (double)i * bar, bar);
    }
    if (g->subject->batch) {
        (void)snprintf(label, sizeof label, "%" PRIu64, g->subject->batch);
    } else {
        (void)snprintf(label, sizeof label, "not known");
    }
    draw_text(f->out, x + width / 2, f->bottom + 20, "middle", DRAW_FAINT, label);
}

static void draw_panel(const chart *c, FILE *out, size_t begin, size_t end, double top)
{
    double most = 0;
    for (size_t k = begin; k < end; k++) {
        for (size_t i = 0; i < N_ALLOCATORS; i++) {
            most = fmax(most, (double)c->groups[k].bytes[i]);
        }
    }
    double width = (right - left) / (double)(end - begin);
    bool has_numbers = width * GROUP_SHARE / N_ALLOCATORS >= NUMBER_WIDTH;
    const draw_frame f = {.out = out,
                          .left = left,
                          .right = right,
                          .top = top,
                          .bottom = top + panel_height,
                          .x_most = 1,
                          .y_most = most * (has_numbers ? 1.2 : 1.06)};
    (void)fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"15\" font-weight=\"600\" fill=\"" DRAW_INK "\">", left,
                  top - 10);
    draw_escaped(out, c->groups[begin].subject->network);
    (void)fputs("</text>\n", out);
    draw_unit unit = draw_unit_of(most);
    draw_bytes_axis(&f, unit, "footprint");
    for (size_t k = begin; k < end; k++) {
        draw_group(&f, unit, &c->groups[k], left + (double)(k - begin) * width, width);
    }
    draw_line(out, left, f.bottom, right, f.bottom, DRAW_INK, "");
    draw_line(out, left, f.top, left, f.bottom, DRAW_INK, "");
    draw_text(out, (left + right) / 2, f.bottom + 40, "middle", DRAW_INK, "batch size");
}

static void draw_legend(FILE *out)
{
    const double x = right + 26;
    for (size_t i = 0; i < N_ALLOCATORS; i++) {
        double y = first_top + 14 + 24 * (double)i;
        (void)fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"16\" height=\"14\" fill=\"%s\"/>\n", x, y - 11,
                      colour_of(i));
        draw_text(out, x + 24, y, "start", DRAW_INK, name_of(i));
    }
}

static void write_svg(FILE *out, const void *what)
{
    const chart *c = what;
    size_t n_panels = 0;
    for (size_t k = 0; k < c->n_groups; k = panel_end(c, k)) {
        n_panels++;
    }
    draw_page_begin(out, 1200, first_top + panel_step * (double)n_panels - 30);
    draw_title(out, left, "Footprint by batch size",
               "Device memory that each allocator holds at most for the same trace.");
    double top = first_top;
    for (size_t k = 0; k < c->n_groups; k = panel_end(c, k)) {
        draw_panel(c, out, k, panel_end(c, k), top);
        top += panel_step;
    }
    draw_legend(out);
    draw_page_end(out);
}

int figures_footprint(const figures_request *request, const figures_subject *subjects, size_t n_subjects,
                      figures_list *made, neap_error *why)
{
    chart c = {.groups = calloc(n_subjects, sizeof *c.groups), .n_groups = n_subjects};
    if (!c.groups) {
        return figures_no_memory(why);
    }
    int code = EXIT_GOOD;
    for (size_t k = 0; k < n_subjects && code == EXIT_GOOD; k++) {
        c.groups[k].subject = &subjects[k];
        term_progress("%s: footprint", subjects[k].stem);
        neap_status status = group_make(request, &c.groups[k], why);
        code = status == NEAP_OK ? EXIT_GOOD : figures_failed(&subjects[k], status, why);
    }
    if (code == EXIT_GOOD) {
        qsort(c.groups, c.n_groups, sizeof *c.groups, compare_groups);
        if (!figures_write(request, NULL, "footprint.csv", write_csv, &c, made) ||
            !figures_write(request, NULL, "footprint.svg", write_svg, &c, made)) {
            code = EXIT_BAD;
        }
    }
    free(c.groups);
    return code;
}
