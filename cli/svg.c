/* svg.c: the picture of a plan.
 *
 * Two panels share the time axis: the load (grey: what is always there) with its peak, and the arena with every buffer
 * where the plan puts it, the footprint and the proven bound as lines. Colour tells how long a buffer lives, in a ramp
 * that stays ordered in grey and for colour-blind eyes. A buffer that lives across the round's end is drawn in two
 * parts. Coordinates have two digits, so that 20,000 buffers stay below 4 MB. */
#include "svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "file.h"
#include "units.h"

enum { N_COLOURS = 24, TITLES_MAX = 60000 };

static const double page_width = 1200, page_height = 830;
static const double left = 86, right = 1070; /* of both panels */
static const double load_top = 96, load_bottom = 226;
static const double arena_top = 262, arena_bottom = 762;

static const char ink[] = DRAW_INK;
static const char faint[] = DRAW_FAINT;
static const char always_there[] = "#d4d4d8";
static const char footprint_colour[] = "#d55e00";
static const char bound_colour[] = "#0072b2";

typedef struct picture {
    FILE *out;
    const neap_trace *trace;
    const neap_plan_summary *summary;
    const neap_plan_buffer *buffers;
    const neap_trace_block *blocks;
    size_t n_buffers;
    double length;    /* events across, at least 1 */
    double top_bytes; /* bytes at the upper border of the arena panel */
    draw_unit unit;   /* of the axes */
    uint64_t *load;   /* the load after each event of the period */
    uint64_t steady;  /* bytes that are always there */
} picture;

/* ---- scales ---- */

static double x_of(const picture *p, double time)
{
    return left + time / p->length * (right - left);
}

static double y_of(const picture *p, double bytes)
{
    return arena_bottom - bytes / p->top_bytes * (arena_bottom - arena_top);
}

/* ---- colour ---- */

typedef struct rgb {
    double r, g, b;
} rgb;

/* From long lives (dark) to short ones (light): monotone in lightness. */
static const rgb ramp[] = {{68, 4, 87}, {62, 74, 137}, {38, 130, 142}, {53, 183, 121}, {170, 220, 50}, {250, 228, 60}};

static void colour_hex(unsigned colour, char text[8])
{
    const size_t last = sizeof ramp / sizeof ramp[0] - 1;
    double at = (double)colour / (N_COLOURS - 1) * (double)last;
    size_t i = (size_t)at < last ? (size_t)at : last - 1;
    double t = at - (double)i;
    (void)snprintf(text, 8, "#%02x%02x%02x", (unsigned)lround(ramp[i].r + t * (ramp[i + 1].r - ramp[i].r)),
                   (unsigned)lround(ramp[i].g + t * (ramp[i + 1].g - ramp[i].g)),
                   (unsigned)lround(ramp[i].b + t * (ramp[i + 1].b - ramp[i].b)));
}

static bool lives_always(const picture *p, const neap_plan_buffer *buffer)
{
    return buffer->end - buffer->begin >= p->summary->length;
}

/* N_COLOURS for what is always there. */
static unsigned colour_of(const picture *p, const neap_plan_buffer *buffer)
{
    if (lives_always(p, buffer)) {
        return N_COLOURS;
    }
    double share = (buffer->end - buffer->begin) / p->length;
    return (unsigned)lround((1 - share) * (N_COLOURS - 1));
}

/* ---- the load ---- */

static bool sum_load(picture *p)
{
    size_t n = (size_t)p->length;
    p->load = calloc(n + 1, sizeof *p->load);
    if (!p->load) {
        (void)fputs("neap: host memory is exhausted\n", stderr);
        return false;
    }
    for (size_t i = 0; i < p->n_buffers; i++) { /* differences first, modulo 2^64 */
        const neap_plan_buffer *buffer = &p->buffers[i];
        if (lives_always(p, buffer)) {
            p->steady += buffer->size;
            continue;
        }
        p->load[buffer->begin] += buffer->size;
        if (buffer->end <= n) {
            p->load[buffer->end] -= buffer->size;
        } else {
            p->load[0] += buffer->size;
            p->load[buffer->end - n] -= buffer->size;
        }
    }
    uint64_t sum = p->steady;
    for (size_t t = 0; t <= n; t++) {
        sum += p->load[t];
        p->load[t] = sum;
    }
    return true;
}

static void draw_load(const picture *p)
{
    char bytes[UNITS_CHARS];
    const draw_frame f = {.out = p->out,
                          .left = left,
                          .right = right,
                          .top = load_top,
                          .bottom = load_bottom,
                          .x_most = p->length,
                          .y_most = (double)p->summary->load * 1.12};
    double steady_y = draw_y(&f, (double)p->steady);
    draw_bytes_axis(&f, p->unit, "load");
    (void)fprintf(p->out, "<path d=\"M%.2f %.2fH%.2fV%.2fH%.2fZ\" fill=\"%s\"/>\n", left, load_bottom, right, steady_y,
                  left, always_there);
    (void)fprintf(p->out, "<path d=\"M%.2f %.2f", left, steady_y);
    draw_steps(&f, p->load, (size_t)p->length);
    (void)fprintf(p->out, "V%.2fZ\" fill=\"#7fb2d6\" stroke=\"#2f6f9f\" stroke-width=\".8\"/>\n", steady_y);
    draw_line(p->out, left, load_bottom, right, load_bottom, ink, "");
    draw_line(p->out, left, load_top, left, load_bottom, ink, "");
    double peak_y = draw_y(&f, (double)p->summary->load);
    draw_line(p->out, left, peak_y, right, peak_y, ink, "stroke-dasharray=\"2 3\"");
    draw_text(p->out, right + 8, peak_y, "start", ink, "peak load");
    draw_text(p->out, right + 8, peak_y + 15, "start", ink, units_bytes(p->summary->load, bytes));
}

/* ---- the arena ---- */

static void draw_part(const picture *p, const neap_plan_buffer *buffer, double begin, double end)
{
    double x = x_of(p, begin);
    double y = y_of(p, (double)buffer->offset + (double)buffer->size);
    double width = x_of(p, end) - x;
    double height = y_of(p, (double)buffer->offset) - y;
    /* A white border tells neighbours apart, but would swallow what is thinner than itself. */
    const char *border = width > 1.6 && height > 1.6 ? " class=\"b\"" : "";
    (void)fprintf(p->out, "<rect%s x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", border, x, y,
                  fmax(width, 0.05), fmax(height, 0.05));
    if (p->n_buffers > TITLES_MAX) {
        (void)fputs("/>\n", p->out);
        return;
    }
    char size[UNITS_CHARS];
    char offset[UNITS_CHARS];
    char key[UNITS_CHARS];
    const char *name;
    (void)snprintf(key, sizeof key, "block.%" PRIu64, p->blocks[buffer->block].id);
    name = neap_trace_meta(p->trace, key); /* who made it, of a snapshot */
    (void)fputs("><title>", p->out);
    if (name) {
        draw_escaped(p->out, name);
        (void)fputs(", ", p->out);
    }
    (void)fprintf(p->out, "block %" PRIu64 ": %s bytes at %s, ", p->blocks[buffer->block].id,
                  units_count(buffer->size, size), units_count(buffer->offset, offset));
    if (lives_always(p, buffer)) {
        (void)fputs("always there</title></rect>\n", p->out);
    } else {
        (void)fprintf(p->out, "events %" PRIu32 " to %" PRIu32 "</title></rect>\n", buffer->begin, buffer->end);
    }
}

static void draw_buffer(const picture *p, const neap_plan_buffer *buffer)
{
    if (lives_always(p, buffer)) {
        draw_part(p, buffer, 0, p->length);
    } else if (buffer->end > p->summary->length) {
        draw_part(p, buffer, buffer->begin, p->length);
        draw_part(p, buffer, 0, buffer->end - p->length);
    } else {
        draw_part(p, buffer, buffer->begin, buffer->end);
    }
}

/* By colour, so that a colour is named once and not with every rectangle. */
static void draw_buffers(const picture *p)
{
    for (unsigned colour = 0; colour <= N_COLOURS; colour++) {
        char hex[8];
        colour_hex(colour, hex);
        (void)fprintf(p->out, "<g fill=\"%s\">\n", colour == N_COLOURS ? always_there : hex);
        for (size_t i = 0; i < p->n_buffers; i++) {
            if (colour_of(p, &p->buffers[i]) == colour) {
                draw_buffer(p, &p->buffers[i]);
            }
        }
        (void)fputs("</g>\n", p->out);
    }
}

static void draw_arena_axes(const picture *p)
{
    char label[64];
    double step = draw_nice_step(p->top_bytes / p->unit.bytes, 6);
    for (int i = 0; i * step * p->unit.bytes <= p->top_bytes; i++) {
        double tick = i * step;
        double y = y_of(p, tick * p->unit.bytes);
        draw_line(p->out, left - 5, y, left, y, ink, "");
        (void)snprintf(label, sizeof label, "%g", tick);
        draw_text(p->out, left - 8, y + 4, "end", faint, label);
    }
    step = fmax(1, draw_nice_step(p->length, 8));
    for (int i = 0; i * step <= p->length; i++) {
        double tick = i * step;
        double x = x_of(p, tick);
        draw_line(p->out, x, arena_bottom, x, arena_bottom + 5, ink, "");
        (void)snprintf(label, sizeof label, "%.0f", tick);
        draw_text(p->out, x, arena_bottom + 20, "middle", faint, label);
    }
    draw_line(p->out, left, arena_bottom, right, arena_bottom, ink, "");
    draw_line(p->out, left, arena_top, left, arena_bottom, ink, "");
    (void)fprintf(
        p->out,
        "<text transform=\"translate(26 %.2f) rotate(-90)\" text-anchor=\"middle\" fill=\"%s\">address, %s</text>\n",
        (arena_top + arena_bottom) / 2, ink, p->unit.name);
    if (p->summary->n_periods > 1) {
        (void)snprintf(label, sizeof label, "time, events of a round of %" PRIu32 " periods", p->summary->n_periods);
    } else {
        (void)snprintf(label, sizeof label, "time, events of the period");
    }
    draw_text(p->out, (left + right) / 2, arena_bottom + 42, "middle", ink, label);
}

/* Where the periods of a round meet. */
static void draw_period_ends(const picture *p)
{
    for (uint32_t i = 1; i < p->summary->n_periods; i++) {
        double x = x_of(p, p->length * i / p->summary->n_periods);
        draw_line(p->out, x, load_top, x, arena_bottom, faint, "stroke-width=\".7\" stroke-dasharray=\"2 3\"");
    }
}

static void draw_limits(const picture *p)
{
    char bytes[UNITS_CHARS];
    double footprint_y = y_of(p, (double)p->summary->footprint);
    double bound_y = y_of(p, (double)p->summary->bound);
    draw_line(p->out, left, footprint_y, right + 4, footprint_y, footprint_colour, "stroke-width=\"1.6\"");
    draw_text(p->out, right + 8, footprint_y + 1, "start", footprint_colour, "footprint");
    draw_text(p->out, right + 8, footprint_y + 16, "start", footprint_colour,
              units_bytes(p->summary->footprint, bytes));
    draw_line(p->out, left, bound_y, right + 4, bound_y, bound_colour, "stroke-width=\"1.6\" stroke-dasharray=\"6 5\"");
    if (p->summary->footprint == p->summary->bound) {
        draw_text(p->out, right + 8, footprint_y + 31, "start", bound_colour, "= bound");
        return;
    }
    double label_y = fmax(bound_y, footprint_y + 32); /* not into the footprint's label */
    draw_text(p->out, right + 8, label_y + 1, "start", bound_colour, "bound");
    draw_text(p->out, right + 8, label_y + 16, "start", bound_colour, units_bytes(p->summary->bound, bytes));
}

static void draw_legend(const picture *p)
{
    const double x = right + 10, top = arena_bottom - 230, height = 150;
    char hex[8];
    char label[UNITS_CHARS];
    draw_text(p->out, x, top - 24, "start", ink, "lives for");
    draw_text(p->out, x, top - 9, "start", faint, "(events)");
    (void)fputs("<defs><linearGradient id=\"life\" x2=\"0\" y2=\"1\">\n", p->out);
    for (unsigned colour = 0; colour < N_COLOURS; colour++) {
        colour_hex(colour, hex);
        (void)fprintf(p->out, "<stop offset=\"%.3f\" stop-color=\"%s\"/>\n", colour / (N_COLOURS - 1.0), hex);
    }
    (void)fprintf(p->out,
                  "</linearGradient></defs>\n"
                  "<rect x=\"%.2f\" y=\"%.2f\" width=\"16\" height=\"%.2f\" fill=\"url(#life)\"/>\n",
                  x, top, height);
    for (int i = 0; i <= 4; i++) {
        double y = top + height * i / 4.0;
        (void)snprintf(label, sizeof label, "%.0f", fmax(1, p->length * (1 - i / 4.0)));
        draw_line(p->out, x + 16, y, x + 20, y, ink, "");
        draw_text(p->out, x + 24, y + 4, "start", faint, label);
    }
    (void)fprintf(p->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"16\" height=\"14\" fill=\"%s\"/>\n", x,
                  top + height + 16, always_there);
    draw_text(p->out, x + 24, top + height + 28, "start", faint, "always there");
}

/* ---- the page ---- */

static void draw_heading(const picture *p, const char *name)
{
    const neap_plan_summary *summary = p->summary;
    char line[256];
    char bytes[UNITS_CHARS];
    char count[UNITS_CHARS];
    (void)snprintf(line, sizeof line, "%s held, %.4f &#215; the peak load%s. %s buffers, solver %s.",
                   units_bytes(summary->footprint, bytes), summary->ratio, summary->optimal ? ", proven optimal" : "",
                   units_count(p->n_buffers, count), summary->solver);
    draw_title(p->out, left, name, line);
}

static void draw_page(const picture *p, const char *name)
{
    draw_page_begin(p->out, page_width, page_height);
    (void)fputs("<style>.b{stroke:#fff;stroke-width:.5}</style>\n", p->out);
    draw_heading(p, name);
    draw_load(p);
    draw_buffers(p);
    draw_arena_axes(p);
    draw_period_ends(p);
    draw_limits(p);
    draw_legend(p);
    draw_page_end(p->out);
}

bool svg_write_plan(const char *path, const char *name, const neap_trace *trace, const neap_plan *plan)
{
    size_t n_blocks;
    picture p = {.trace = trace, .summary = neap_plan_get_summary(plan), .blocks = neap_trace_blocks(trace, &n_blocks)};
    p.buffers = neap_plan_buffers(plan, &p.n_buffers);
    p.length = p.summary->length ? p.summary->length : 1;
    p.top_bytes = fmax(1, (double)p.summary->footprint * 1.03);
    p.unit = draw_unit_of((double)p.summary->footprint);
    new_file file;
    if (!sum_load(&p)) {
        return false;
    }
    bool is_written = false;
    if (file_create(path, &file)) {
        p.out = file.stream;
        draw_page(&p, name);
        is_written = file_commit(&file);
    }
    free(p.load);
    return is_written;
}
