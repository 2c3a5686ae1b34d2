/* printable.c: a name from a file may be anything. The terminal would obey what is a control to it (ESC, but 0x9b and
 * U+009B too), and U+202E makes the rest of a line read backwards. */
#include "printable.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "term.h"
#include "verbs.h"

size_t printable_read(const char *text, uint32_t *code)
{
    static const struct {
        unsigned char mask, lead;
        size_t length;
        uint32_t least; /* smaller ones have a shorter form */
    } forms[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
    const unsigned char *at = (const unsigned char *)text;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if ((at[0] & forms[i].mask) != forms[i].lead) {
            continue;
        }
        *code = at[0] & (unsigned char)~forms[i].mask;
        for (size_t k = 1; k < forms[i].length; k++) {
            if ((at[k] & 0xc0) != 0x80) {
                return 0; /* the text's end is such a byte too: no read goes past it */
            }
            *code = *code << 6 | (at[k] & 0x3f);
        }
        bool is_surrogate = *code >= 0xd800 && *code <= 0xdfff;
        return *code < forms[i].least || *code > 0x10ffff || is_surrogate ? 0 : forms[i].length;
    }
    return 0;
}

bool printable_is(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},        /* controls, the soft hyphen */
        {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},    /* nothing wide, marks of direction, ends of lines */
        {0x2060, 0x206f}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},    /* isolates, variants */
        {0xfff0, 0xffff}, {0xd800, 0xf8ff}, {0xe0000, 0x10ffff}, /* specials, private ones, tags */
    };
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        if (code >= hidden[i].first && code <= hidden[i].last) {
            return false;
        }
    }
    return true;
}

const char *printable(const char *text, char *out, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    while (*text) {
        uint32_t code = 0;
        size_t length = printable_read(text, &code);
        bool is_shown = length > 0 && printable_is(code) && (code < 0x80 || term_is_utf8());
        length = length ? length : 1;
        if (used + (is_shown ? length : 4 * length) >= n) {
            break;
        }
        for (; length > 0; length--, text++) {
            unsigned char c = (unsigned char)*text;
            if (is_shown) {
                out[used++] = *text;
            } else {
                out[used++] = '\\';
                out[used++] = 'x';
                out[used++] = digits[c >> 4];
                out[used++] = digits[c & 15];
            }
        }
    }
    out[used] = '\0';
    return out;
}

static void put(FILE *file, const char *before, const char *format, va_list args)
{
    char line[PRINTABLE_CHARS];
    char shown[4 * PRINTABLE_CHARS];
    (void)vsnprintf(line, sizeof line, format, args);
    (void)fprintf(file, "%s%s\n", before, printable(line, shown, sizeof shown));
}

void printable_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(stderr, "neap: ", format, args);
    va_end(args);
}

void printable_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(stdout, "", format, args);
    va_end(args);
}

void printable_title(const char *path)
{
    char shown[PRINTABLE_CHARS];
    (void)printf("%s%s%s\n\n", term_on(TERM_BOLD), printable(file_name(path), shown, sizeof shown),
                 term_off(TERM_BOLD));
}
