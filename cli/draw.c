/* draw.c: coordinates have two digits: finer than a screen shows, and files
 * stay small. */
#include "draw.h"

#include <math.h>

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
