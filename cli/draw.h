/* draw.h: the strokes that pictures are made of: SVG elements, and the steps of
 * axes. */
#ifndef CLI_DRAW_H
#define CLI_DRAW_H

#include <stdio.h>

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
