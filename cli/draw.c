/* draw.c: coordinates have two digits: finer than a screen shows, and files
 * stay small. */
#include "draw.h"

#include <math.h>

enum { COLUMNS_MAX = 3600 };

double draw_nice_step(double range, double n)
{
    if (!(range > 0)) {
        return 1;
    }
    double power = pow(10, floor(log10(range / n)));
    double rest = range / n / power;
    return (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10) * power;
}

void draw_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '<') {
            (void)fputs("&lt;", out);
        } else if (c == '&') {
            (void)fputs("&amp;", out);
        } else {
            (void)fputc(c < 0x20 || c >= 0x7f ? '?' : c, out);
        }
    }
}

void draw_line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke, const char *more)
{
    (void)fprintf(out, "<path d=\"M%.2f %.2fL%.2f %.2f\" stroke=\"%s\" fill=\"none\" %s/>\n", x1, y1, x2, y2, stroke,
                  more);
}

void draw_text(FILE *out, double x, double y, const char *anchor, const char *fill, const char *text)
{
    (void)fprintf(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" fill=\"%s\">%s</text>\n", x, y, anchor, fill,
                  text);
}

void draw_page_begin(FILE *out, double width, double height)
{
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                  "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12.5\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                  width, height, width, height);
}

void draw_page_end(FILE *out)
{
    (void)fputs("</svg>\n", out);
}

void draw_title(FILE *out, double x, const char *name, const char *line)
{
    (void)fprintf(out, "<text x=\"%.2f\" y=\"40\" font-size=\"20\" font-weight=\"600\" fill=\"" DRAW_INK "\">", x);
    draw_escaped(out, name);
    (void)fprintf(out, "</text>\n<text x=\"%.2f\" y=\"63\" font-size=\"14\" fill=\"" DRAW_FAINT "\">%s</text>\n", x,
                  line);
}

/* ---- charts ---- */

draw_unit draw_unit_of(double most)
{
    static const struct {
        double from;
        draw_unit unit;
    } units[] = {{2e10, {1e9, "GB"}}, {1e6, {1e6, "MB"}}, {1e4, {1e3, "kB"}}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (most >= units[i].from) {
            return units[i].unit;
        }
    }
    return (draw_unit){1, "bytes"};
}

double draw_x(const draw_frame *f, double x)
{
    return f->left + (f->x_most > 0 ? x / f->x_most : 0) * (f->right - f->left);
}

double draw_y(const draw_frame *f, double y)
{
    return f->bottom - (f->y_most > 0 ? y / f->y_most : 0) * (f->bottom - f->top);
}

void draw_bytes_axis(const draw_frame *f, draw_unit unit, const char *what)
{
    char label[64];
    double step = draw_nice_step(f->y_most / unit.bytes, fmin(6, fmax(4, (f->bottom - f->top) / 40)));
    for (int i = 0; i * step * unit.bytes <= f->y_most; i++) {
        double y = draw_y(f, i * step * unit.bytes);
        draw_line(f->out, f->left, y, f->right, y, DRAW_GRID, "stroke-width=\".7\"");
        (void)snprintf(label, sizeof label, "%g", i * step);
        draw_text(f->out, f->left - 8, y + 4, "end", DRAW_FAINT, label);
    }
    (void)fprintf(f->out,
                  "<text transform=\"translate(%.2f %.2f) rotate(-90)\" text-anchor=\"middle\" fill=\"" DRAW_INK
                  "\">%s, %s</text>\n",
                  f->left - 58, (f->top + f->bottom) / 2, what, unit.name);
}

void draw_count_axis(const draw_frame *f, const char *what)
{
    char label[64];
    double step = fmax(1, draw_nice_step(f->x_most, 8));
    for (int i = 0; i * step <= f->x_most; i++) {
        double x = draw_x(f, i * step);
        draw_line(f->out, x, f->bottom, x, f->bottom + 5, DRAW_INK, "");
        (void)snprintf(label, sizeof label, "%.0f", i * step);
        draw_text(f->out, x, f->bottom + 20, "middle", DRAW_FAINT, label);
    }
    draw_line(f->out, f->left, f->bottom, f->right, f->bottom, DRAW_INK, "");
    draw_line(f->out, f->left, f->top, f->left, f->bottom, DRAW_INK, "");
    draw_text(f->out, (f->left + f->right) / 2, f->bottom + 42, "middle", DRAW_INK, what);
}

void draw_steps(const draw_frame *f, const uint64_t *values, size_t n)
{
    size_t n_columns = n < COLUMNS_MAX ? n : COLUMNS_MAX;
    for (size_t column = 0; column < n_columns; column++) {
        size_t begin = column * n / n_columns;
        size_t end = (column + 1) * n / n_columns;
        uint64_t highest = 0;
        for (size_t t = begin; t < end; t++) {
            highest = values[t] > highest ? values[t] : highest;
        }
        (void)fprintf(f->out, "V%.2fH%.2f", draw_y(f, (double)highest), draw_x(f, (double)end));
    }
}
