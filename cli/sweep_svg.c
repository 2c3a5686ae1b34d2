/* sweep_svg.c: the picture of a sweep, like the paper's figure: limits across,
 * overhead up, a line a method.
 *
 * Memory shrinks to the right, as the sweep goes: reading on costs more. What
 * no plan can reach is grey. Lines differ in colour (a palette for colour-blind
 * eyes) and in the mark at every limit; the search is drawn last and thickest.
 * The height is chosen for the better methods; where a line leaves it above, it
 * is cut. */
#include <math.h>
#include <stdio.h>

#include "draw.h"
#include "file.h"
#include "sweep.h"
#include "units.h"
#include "verbs.h"

static const double page_width = 1050, page_height = 600;
static const double left = 84, right = 860, top = 104, bottom = 520;

static const char ink[] = DRAW_INK;
static const char faint[] = DRAW_FAINT;

typedef struct look {
    const char *colour;
    double width;
    const char *mark;  /* a path around the origin, about 8 across */
    const char *title; /* in the legend */
} look;

#define CIRCLE "M-3.6 0A3.6 3.6 0 1 0 3.6 0A3.6 3.6 0 1 0 -3.6 0Z"
#define SQUARE "M-3.3 -3.3H3.3V3.3H-3.3Z"
#define UP "M0 -4.4L4.2 3.2H-4.2Z"
#define DOWN "M0 4.4L4.2 -3.2H-4.2Z"
#define DIAMOND "M0 -4.8L4.4 0L0 4.8L-4.4 0Z"
#define CROSS                                                                \
    "M-3.5 -2.3L-2.3 -3.5L0 -1.2L2.3 -3.5L3.5 -2.3L1.2 0L3.5 2.3L2.3 3.5L0 " \
    "1.2L-2.3 3.5L-3.5 2.3L-1.2 0Z"

static const look looks[NEAP_SWAP_N_METHODS] = {
    [NEAP_SWAP_SEARCH] = {"#d55e00", 2.8, CIRCLE, "search"}, [NEAP_SWAP_BO] = {"#0072b2", 2, SQUARE, "bo (tuned mix)"},
    [NEAP_SWAP_DOA] = {"#009e73", 1.3, UP, "doa"},           [NEAP_SWAP_AOA] = {"#cc79a7", 1.3, DOWN, "aoa"},
    [NEAP_SWAP_WDOA] = {"#8a6d00", 1.3, DIAMOND, "wdoa"},    [NEAP_SWAP_SWDOA] = {"#3b9ad6", 1.3, CROSS, "swdoa"},
};

typedef struct chart {
    FILE *out;
    const neap_sweep_row *rows;
    size_t n_rows;
    double most;    /* bytes at the left border: the first limit */
    double least;   /* and at the right: the last one */
    double highest; /* overhead at the upper border */
    draw_unit unit; /* of the limits */
    bool is_on_load;
} chart;

/* ---- scales ---- */

static double x_of(const chart *c, double bytes)
{
    double range = c->most - c->least;
    return range > 0 ? left + (c->most - bytes) / range * (right - left) : left;
}

/* Also of what is above the border: lines are cut there, not bent. Not too far,
 * for the renderer's numbers' sake. */
static double y_of(const chart *c, double overhead)
{
    return fmax(bottom - overhead / c->highest * (bottom - top), top - 20 * (bottom - top));
}

/* High enough for the search and the bound, and for the other lines unless they
 * are three times as high. */
static double highest_of(const chart *c)
{
    double good = 0;
    double any = 0;
    for (size_t i = 0; i < c->n_rows; i++) {
        for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
            double overhead = c->rows[i].overhead[m];
            any = isfinite(overhead) ? fmax(any, overhead) : any;
            good = isfinite(overhead) && m == NEAP_SWAP_SEARCH ? fmax(good, overhead) : good;
        }
        good = isfinite(c->rows[i].bound_overhead) ? fmax(good, c->rows[i].bound_overhead) : good;
    }
    double highest = fmin(fmax(any, good), good > 0 ? 3 * good : any) * 1.06;
    return fmax(highest, 0.0106); /* a label of 1 % stands below the upper border */
}

static void choose_scales(chart *c)
{
    c->most = (double)c->rows[0].limit;
    c->least = (double)c->rows[c->n_rows - 1].limit;
    c->highest = highest_of(c);
    c->unit = draw_unit_of(c->most);
}

/* ---- axes ---- */

static void draw_overhead_axis(const chart *c)
{
    char label[UNITS_CHARS];
    double step = draw_nice_step(c->highest * 100, 6);
    for (int i = 0; i * step <= c->highest * 100; i++) {
        double y = y_of(c, i * step / 100);
        draw_line(c->out, left, y, right, y, "#e4e4e7", "stroke-width=\".7\"");
        (void)snprintf(label, sizeof label, "%g", i * step);
        draw_text(c->out, left - 9, y + 4, "end", faint, label);
    }
    (void)fprintf(c->out,
                  "<text transform=\"translate(30 %.2f) rotate(-90)\" "
                  "text-anchor=\"middle\" fill=\"%s\">overhead, %% "
                  "of an iteration</text>\n",
                  (top + bottom) / 2, ink);
}

/* The limit below, in bytes; above, as a share of the peak load. */
static void draw_limit_axis(const chart *c)
{
    char label[UNITS_CHARS + 32];
    double step = draw_nice_step((c->most - c->least) / c->unit.bytes, 8);
    double first = ceil(c->least / c->unit.bytes / step - 1e-9);
    for (int i = 0; (first + i) * step * c->unit.bytes <= c->most * (1 + 1e-12) && i < 40; i++) {
        double tick = (first + i) * step;
        double x = x_of(c, tick * c->unit.bytes);
        draw_line(c->out, x, bottom, x, bottom + 5, ink, "");
        (void)snprintf(label, sizeof label, "%g", tick);
        draw_text(c->out, x, bottom + 20, "middle", faint, label);
    }
    step = draw_nice_step(100 - c->least / fmax(c->most, 1) * 100, 8);
    for (int i = 0; i < 40; i++) {
        double tick = 100 - i * step;
        if (tick <= 0 || tick / 100 * c->most < c->least * (1 - 1e-12)) {
            break;
        }
        double x = x_of(c, tick / 100 * c->most);
        draw_line(c->out, x, top - 5, x, top, faint, "");
        (void)snprintf(label, sizeof label, "%g %%", tick);
        draw_text(c->out, x, top - 9, "middle", faint, label);
    }
    (void)snprintf(label, sizeof label, "limit on the %s, %s: from the peak load to the floor",
                   c->is_on_load ? "load" : "footprint", c->unit.name);
    draw_text(c->out, (left + right) / 2, bottom + 44, "middle", ink, label);
    draw_text(c->out, right + 34, top - 9, "start", faint, "of the peak load");
    draw_line(c->out, left, bottom, right, bottom, ink, "");
    draw_line(c->out, left, top, left, bottom, ink, "");
    draw_line(c->out, left, top, right, top, "#c4c4c8", "");
}

/* ---- lines ---- */

enum { BOUND = NEAP_SWAP_N_METHODS, BOUND_ANY }; /* the lines that are no method's */

static double value_of(const neap_sweep_row *row, int line)
{
    return line == BOUND ? row->bound_overhead : line == BOUND_ANY ? row->bound_overhead_any : row->overhead[line];
}

/* As connected stretches of what is finite. */
static void draw_curve(const chart *c, int line, const char *attributes)
{
    bool is_open = false;
    (void)fputs("<path d=\"", c->out);
    for (size_t i = 0; i < c->n_rows; i++) {
        double value = value_of(&c->rows[i], line);
        if (isfinite(value)) {
            (void)fprintf(c->out, "%c%.2f %.2f", is_open ? 'L' : 'M', x_of(c, (double)c->rows[i].limit),
                          y_of(c, value));
        }
        is_open = isfinite(value);
    }
    (void)fprintf(c->out, "\" fill=\"none\" stroke-linejoin=\"round\" %s/>\n", attributes);
}

static void draw_bound(const chart *c)
{
    (void)fprintf(c->out, "<path d=\"M%.2f %.2f", x_of(c, c->most), bottom);
    double last = x_of(c, c->most);
    for (size_t i = 0; i < c->n_rows; i++) {
        double bound = c->rows[i].bound_overhead;
        last = x_of(c, (double)c->rows[i].limit);
        (void)fprintf(c->out, "L%.2f %.2f", last, isfinite(bound) ? y_of(c, bound) : top);
    }
    (void)fprintf(c->out, "L%.2f %.2fZ\" fill=\"#d9d9de\"/>\n", last, bottom);
    draw_curve(c, BOUND_ANY, "stroke=\"#77777d\" stroke-width=\"1.2\" stroke-dasharray=\"1.5 4\"");
    draw_curve(c, BOUND, "stroke=\"#55555b\" stroke-width=\"1.4\" stroke-dasharray=\"6 4\"");
}

static void draw_method(const chart *c, int method)
{
    const look *l = &looks[method];
    char attributes[96];
    (void)snprintf(attributes, sizeof attributes, "stroke=\"%s\" stroke-width=\"%.1f\"", l->colour, l->width);
    draw_curve(c, method, attributes);
    (void)fprintf(c->out, "<g fill=\"%s\" stroke=\"#fff\" stroke-width=\".6\">\n", l->colour);
    for (size_t i = 0; i < c->n_rows; i++) {
        double overhead = c->rows[i].overhead[method];
        if (isfinite(overhead) && overhead <= c->highest) {
            char bytes[UNITS_CHARS];
            (void)fprintf(c->out, "<path transform=\"translate(%.2f %.2f)\" d=\"%s\"><title>%s at %s: ",
                          x_of(c, (double)c->rows[i].limit), y_of(c, overhead), l->mark,
                          neap_swap_method_name((neap_swap_method)method), units_bytes(c->rows[i].limit, bytes));
            (void)fprintf(c->out, "%.2f %%</title></path>\n", overhead * 100);
        }
    }
    (void)fputs("</g>\n", c->out);
}

/* ---- the page ---- */

static void draw_legend(const chart *c)
{
    const double x = right + 34, step = 24;
    for (int m = 0; m < NEAP_SWAP_N_METHODS; m++) {
        double y = top + 26 + m * step;
        char more[48];
        (void)snprintf(more, sizeof more, "stroke-width=\"%.1f\"", looks[m].width);
        draw_line(c->out, x, y, x + 26, y, looks[m].colour, more);
        (void)fprintf(c->out,
                      "<path transform=\"translate(%.2f %.2f)\" d=\"%s\" "
                      "fill=\"%s\" stroke=\"#fff\" "
                      "stroke-width=\".6\"/>\n",
                      x + 13, y, looks[m].mark, looks[m].colour);
        draw_text(c->out, x + 34, y + 4, "start", ink, looks[m].title);
    }
    double y = top + 26 + (NEAP_SWAP_N_METHODS + 0.5) * step;
    (void)fprintf(c->out,
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"26\" height=\"12\" "
                  "fill=\"#d9d9de\"/>\n",
                  x, y - 4);
    draw_line(c->out, x, y - 4, x + 26, y - 4, "#55555b", "stroke-width=\"1.4\" stroke-dasharray=\"6 4\"");
    draw_text(c->out, x + 34, y + 6, "start", ink, "bound: no plan");
    draw_text(c->out, x + 34, y + 21, "start", ink, "can be here");
    y += step + 24;
    draw_line(c->out, x, y, x + 26, y, "#77777d", "stroke-width=\"1.2\" stroke-dasharray=\"1.5 4\"");
    draw_text(c->out, x + 34, y + 4, "start", ink, "bound, if all");
    draw_text(c->out, x + 34, y + 19, "start", ink, "directions");
    draw_text(c->out, x + 34, y + 34, "start", ink, "were known");
}

static void draw_heading(const chart *c, const swap_request *request)
{
    char link[160];
    char slower[64] = "";
    char line[320];
    if (request->options.slower != 1) {
        (void)snprintf(slower, sizeof slower, "; a GPU %g times slower", request->options.slower);
    }
    (void)snprintf(line, sizeof line, "The cost of a memory limit. Link: %s%s.",
                   swap_link_text(&request->options.link, link, sizeof link), slower);
    draw_title(c->out, left, file_name(request->path), line);
}

bool sweep_write_svg(const swap_request *request, const neap_sweep_row *rows, size_t n_rows)
{
    chart c = {.rows = rows, .n_rows = n_rows, .is_on_load = request->options.on_load};
    new_file file;
    if (!file_create(request->svg, &file)) {
        return false;
    }
    choose_scales(&c);
    c.out = file.stream;
    draw_page_begin(c.out, page_width, page_height);
    draw_heading(&c, request);
    draw_overhead_axis(&c);
    (void)fprintf(c.out,
                  "<clipPath id=\"chart\"><rect x=\"%.0f\" y=\"%.0f\" "
                  "width=\"%.0f\" height=\"%.0f\"/></clipPath>\n"
                  "<g clip-path=\"url(#chart)\">\n",
                  left - 6, top, right - left + 12, bottom - top + 6);
    draw_bound(&c);
    for (int m = NEAP_SWAP_N_METHODS - 1; m >= 0; m--) {
        draw_method(&c, m);
    }
    (void)fputs("</g>\n", c.out);
    draw_limit_axis(&c);
    draw_legend(&c);
    draw_page_end(c.out);
    return file_commit(&file);
}
