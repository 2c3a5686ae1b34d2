/* draw.h: the strokes that pictures are made of: SVG elements, and the steps of
 * axes. */
#ifndef CLI_DRAW_H
#define CLI_DRAW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define DRAW_INK "#222222"
#define DRAW_FAINT "#6b6b6b"
#define DRAW_GRID "#e4e4e7"

/* The unit of an axis of bytes. */
typedef struct draw_unit {
    double bytes;
    const char *name; /* "MB" */
} draw_unit;

/* The one in which `most` has a few digits. */
draw_unit draw_unit_of(double most);

/* Where a chart lies on the page, and what its borders stand for. The lower border is 0. */
typedef struct draw_frame {
    FILE *out;
    double left, right, top, bottom;
    double x_most; /* at the right border; the left one is 0 */
    double y_most; /* at the upper border */
} draw_frame;

double draw_x(const draw_frame *f, double x);
double draw_y(const draw_frame *f, double y);

/* Lines across and what they stand for; `what` is written along the axis, with the unit behind it. */
void draw_bytes_axis(const draw_frame *f, draw_unit unit, const char *what);

/* Marks and whole numbers below, and `what` they are. */
void draw_count_axis(const draw_frame *f, const char *what);

/* The path of values[0 .. n), each one wide, as steps: "V..H..", to stand in a path's "d" after its first point. Where there
 * are more values than a screen has columns, each column shows its highest. */
void draw_steps(const draw_frame *f, const uint64_t *values, size_t n);

/* The name of what is shown, and a line about it that is XML already. */
void draw_title(FILE *out, double x, const char *name, const char *line);

/* The step of an axis that shows `range` in about n steps: 1, 2 or 5 times a
 * power of ten. */
double draw_nice_step(double range, double n);

/* Text as XML; what cannot stand there becomes '?'. */
void draw_escaped(FILE *out, const char *text);

/* `more`: further attributes. */
void draw_line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke, const char *more);

/* `anchor` is start, middle or end; `text` is XML already. */
void draw_text(FILE *out, double x, double y, const char *anchor, const char *fill, const char *text);

/* Everything before and after the elements of a page with a white ground. */
void draw_page_begin(FILE *out, double width, double height);
void draw_page_end(FILE *out);

#endif
