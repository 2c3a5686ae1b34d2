/* figures_limits.c: the load of one iteration under several limits, from the peak load down to load_min, as in the
 * paper's figure.
 *
 * A limit is held by the footprint, and the load under it is what the plan has on the device at each event: every block
 * from its first use to its last, less what is away. The load without a limit counts blocks from malloc to free. At
 * load_min there is often no plan, since blocks must return to their places: the lowest limit is then the first one
 * above, in small steps, that has one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "figures.h"
#include "swap.h"
#include "units.h"
#include "verbs.h"

enum { N_LIMITS = 4, TRIES_MAX = 12 };

static const double try_step = 0.05; /* of load_min, up to the lowest limit that has a plan */

typedef struct curve {
    uint64_t limit;
    uint64_t *load; /* after each event of the period; NULL: no plan was found */
    double overhead;
} curve;

typedef struct chart {
    const figures_request *request;
    const figures_subject *subject;
    size_t n; /* events of the period */
    uint64_t peak;
    uint64_t load_min;
    uint64_t *load; /* without a limit */
    curve curves[N_LIMITS];
    size_t n_curves;
} chart;

/* ---- planning ---- */

/* Stays end with an exec; what is freed before the next one has gone by then: no more is there than is live. */
static uint64_t *sum_stays(const neap_swap_plan *plan, const uint64_t *live, size_t n)
{
    size_t n_stays;
    const neap_swap_stay *stays = neap_swap_stays(plan, &n_stays);
    uint64_t *load = calloc(n + 1, sizeof *load);
    for (size_t i = 0; i < n_stays && load; i++) { /* differences first, modulo 2^64 */
        load[stays[i].begin] += stays[i].bytes;
        load[stays[i].end] -= stays[i].bytes;
    }
    uint64_t sum = 0;
    for (size_t t = 0; t < n && load; t++) {
        sum += load[t];
        load[t] = sum < live[t] ? sum : live[t];
    }
    return load;
}

/* What does not depend on the limit: the period, its peak, load_min. */
static neap_status find_range(chart *c, neap_error *why, uint32_t *begin)
{
    neap_swap_options options = c->request->options;
    neap_swap_plan *plan;
    options.method = NEAP_SWAP_DOA;
    options.limit = 4 * c->subject->info->peak_load; /* nothing has to leave, and everything has a place */
    neap_status status = neap_swap_make(c->subject->trace, &options, NULL, why, &plan);
    if (status == NEAP_OK) {
        const neap_swap_summary *summary = neap_swap_get_summary(plan);
        c->n = summary->length;
        c->peak = summary->peak_load;
        c->load_min = summary->load_min;
        *begin = summary->begin;
        neap_swap_free(plan);
    }
    return status;
}

/* No plan at this limit is no failure: the figure says so. */
static neap_status plan_curve(const chart *c, neap_error *why, curve *result)
{
    neap_swap_options options = c->request->options;
    neap_swap_plan *plan;
    options.limit = result->limit;
    neap_status status = neap_swap_make(c->subject->trace, &options, NULL, why, &plan);
    if (status == NEAP_NO_PLAN) {
        why->text[0] = '\0';
        return NEAP_OK;
    }
    if (status == NEAP_OK) {
        result->overhead = neap_swap_get_summary(plan)->overhead;
        result->load = sum_stays(plan, c->load, c->n);
        status = result->load ? NEAP_OK : NEAP_NO_MEMORY;
        neap_swap_free(plan);
    }
    return status;
}

static neap_status plan_lowest_curve(const chart *c, neap_error *why, curve *result)
{
    neap_status status = NEAP_OK;
    for (int i = 0; i < TRIES_MAX && !result->load && status == NEAP_OK; i++) {
        result->limit = (uint64_t)((double)c->load_min * (1 + i * try_step));
        status = plan_curve(c, why, result);
    }
    return status;
}

/* A plan that holds a limit holds all higher ones, too: searches differ in how far they get. */
static neap_status take_lower_plans(chart *c)
{
    for (size_t i = c->n_curves; i-- > 1;) {
        const curve *lower = &c->curves[i];
        curve *higher = &c->curves[i - 1];
        if (!lower->load || (higher->load && higher->overhead <= lower->overhead)) {
            continue;
        }
        uint64_t *load = higher->load ? higher->load : malloc((c->n + 1) * sizeof *load);
        if (!load) {
            return NEAP_NO_MEMORY;
        }
        memcpy(load, lower->load, c->n * sizeof *load);
        higher->load = load;
        higher->overhead = lower->overhead;
    }
    return NEAP_OK;
}

static neap_status chart_make(chart *c, neap_error *why)
{
    uint32_t begin = 0;
    neap_status status = find_range(c, why, &begin);
    if (status != NEAP_OK) {
        return status;
    }
    c->load = figures_load_of(c->subject, begin, c->n);
    if (!c->load) {
        return NEAP_NO_MEMORY;
    }
    c->n_curves = c->load_min < c->peak ? N_LIMITS : 0;
    for (size_t i = 0; i + 1 < c->n_curves && status == NEAP_OK; i++) {
        c->curves[i].limit = c->peak - (uint64_t)((double)(c->peak - c->load_min) * (double)(i + 1) / N_LIMITS);
        status = plan_curve(c, why, &c->curves[i]);
    }
    if (status == NEAP_OK && c->n_curves) {
        status = plan_lowest_curve(c, why, &c->curves[c->n_curves - 1]);
    }
    return status == NEAP_OK ? take_lower_plans(c) : status;
}

static void chart_free(chart *c)
{
    free(c->load);
    for (size_t i = 0; i < c->n_curves; i++) {
        free(c->curves[i].load);
    }
}

/* ---- as numbers ---- */

static void write_csv(FILE *out, const void *what)
{
    const chart *c = what;
    (void)fputs("event,load", out);
    for (size_t i = 0; i < c->n_curves; i++) {
        (void)fprintf(out, ",limit_%" PRIu64, c->curves[i].limit);
    }
    (void)fputc('\n', out);
    for (size_t t = 0; t < c->n; t++) {
        (void)fprintf(out, "%zu,%" PRIu64, t, c->load[t]);
        for (size_t i = 0; i < c->n_curves; i++) {
            if (c->curves[i].load) {
                (void)fprintf(out, ",%" PRIu64, c->curves[i].load[t]);
            } else {
                (void)fputc(',', out);
            }
        }
        (void)fputc('\n', out);
    }
}

/* ---- as a picture ---- */

static const char *const colours[N_LIMITS] = {"#c77700", "#00805e", "#0072b2", "#7a2f8f"};

static void draw_curve(const chart *c, const draw_frame *f, size_t i)
{
    const curve *k = &c->curves[i];
    double limit_y = draw_y(f, (double)k->limit);
    draw_line(f->out, f->left, limit_y, f->right, limit_y, colours[i], "stroke-dasharray=\"6 5\" stroke-width=\".9\"");
    if (k->load) {
        (void)fprintf(f->out, "<path d=\"M%.2f %.2f", f->left, draw_y(f, (double)k->load[0]));
        draw_steps(f, k->load, c->n);
        (void)fprintf(f->out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", colours[i]);
    }
}

/* Two lines beside a height, but not into the two above, which were at *y. */
static void draw_label(const draw_frame *f, double *y, uint64_t bytes, const char *colour, const char *first,
                       const char *second)
{
    *y = fmax(draw_y(f, (double)bytes), *y + 34);
    draw_text(f->out, f->right + 10, *y, "start", colour, first);
    draw_text(f->out, f->right + 10, *y + 15, "start", colour, second);
}

static void draw_labels(const chart *c, const draw_frame *f)
{
    char bytes[UNITS_CHARS];
    char share[UNITS_CHARS];
    char first[128];
    char second[128];
    double y = -100;
    draw_label(f, &y, c->peak, DRAW_INK, "peak load", units_bytes(c->peak, bytes));
    for (size_t i = 0; i < c->n_curves; i++) {
        const curve *k = &c->curves[i];
        (void)snprintf(first, sizeof first, "limit %s (%.0f %%)", units_bytes(k->limit, bytes),
                       100 * (double)k->limit / (double)c->peak);
        (void)snprintf(second, sizeof second, "overhead %s", units_share(k->overhead, share));
        draw_label(f, &y, k->limit, colours[i], first, k->load ? second : "no plan was found");
    }
    draw_line(f->out, f->left, draw_y(f, (double)c->load_min), f->right, draw_y(f, (double)c->load_min), DRAW_INK,
              "stroke-dasharray=\"2 3\"");
    draw_label(f, &y, c->load_min, DRAW_INK, "load_min", units_bytes(c->load_min, bytes));
}

static void write_svg(FILE *out, const void *what)
{
    const chart *c = what;
    char link[160];
    char line[320];
    const draw_frame f = {.out = out,
                          .left = 86,
                          .right = 940,
                          .top = 92,
                          .bottom = 520,
                          .x_most = (double)c->n,
                          .y_most = (double)c->peak * 1.06};
    draw_page_begin(out, 1180, 590);
    (void)snprintf(line, sizeof line, "The load of one %s under limits (dashed) of the footprint. Link: %s.",
                   c->subject->info->n_variants ? "period" : "iteration",
                   swap_link_text(&c->request->options.link, link, sizeof link));
    draw_title(out, f.left, file_name(c->subject->path), line);
    draw_bytes_axis(&f, draw_unit_of((double)c->peak), "load");
    (void)fprintf(out, "<path d=\"M%.2f %.2f", f.left, f.bottom);
    draw_steps(&f, c->load, c->n);
    (void)fprintf(out, "V%.2fZ\" fill=\"#dfe3e8\" stroke=\"#8a9099\" stroke-width=\".8\"/>\n", f.bottom);
    for (size_t i = 0; i < c->n_curves; i++) {
        draw_curve(c, &f, i);
    }
    draw_labels(c, &f);
    draw_count_axis(&f, "time, events of the period; grey: without a limit");
    draw_page_end(out);
}

int figures_limits(const figures_request *request, const figures_subject *subject, figures_list *made, neap_error *why)
{
    chart c = {.request = request, .subject = subject};
    neap_status status = chart_make(&c, why);
    int code = EXIT_GOOD;
    if (status != NEAP_OK) {
        code = figures_failed(subject, status, why);
    } else if (!figures_write(request, subject, "load-under-limits.csv", write_csv, &c, made) ||
               !figures_write(request, subject, "load-under-limits.svg", write_svg, &c, made)) {
        code = EXIT_BAD;
    }
    chart_free(&c);
    return code;
}
