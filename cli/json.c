/* json.c: RFC 8259, two spaces a level. Whether writing worked is asked of the file once, at the end of the program. */
#include "json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "printable.h"

static void put_string(FILE *file, const char *value)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char short_form[] = "\"\\bfnrt";
    (void)fputc('"', file);
    while (*value) {
        const char *escape = strchr(plain, *value);
        uint32_t code = 0;
        size_t length = printable_read(value, &code);
        if (escape) {
            (void)fprintf(file, "\\%c", short_form[escape - plain]);
        } else if (length == 0) {
            (void)fputs("\\ufffd", file);
        } else if (!printable_is(code) && code < 0x10000) { /* it is looked at on terminals, too */
            (void)fprintf(file, "\\u%04x", (unsigned)code);
        } else if (!printable_is(code)) {
            (void)fprintf(file, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(code >> 10), 0xdc00 + (unsigned)(code & 0x3ff));
        } else {
            (void)fwrite(value, 1, length, file);
        }
        value += length ? length : 1;
    }
    (void)fputc('"', file);
}

static void start_value(json *out, const char *key)
{
    if (out->depth > 0) {
        (void)fprintf(out->file, "%s\n%*s", out->is_first ? "" : ",", (int)(2 * out->depth), "");
    }
    if (key) {
        put_string(out->file, key);
        (void)fputs(": ", out->file);
    }
    out->is_first = false;
}

static void open_nest(json *out, const char *key, char bracket)
{
    start_value(out, key);
    (void)fputc(bracket, out->file);
    out->depth++;
    out->is_first = true;
}

static void close_nest(json *out, char bracket)
{
    assert(out->depth > 0);
    out->depth--;
    if (!out->is_first) {
        (void)fprintf(out->file, "\n%*s", (int)(2 * out->depth), "");
    }
    (void)fputc(bracket, out->file);
    out->is_first = false;
}

json json_begin(FILE *file)
{
    return (json){.file = file, .is_first = true};
}

void json_end(json *out)
{
    assert(out->depth == 0);
    (void)fputc('\n', out->file);
}

void json_object_begin(json *out, const char *key)
{
    open_nest(out, key, '{');
}

void json_object_end(json *out)
{
    close_nest(out, '}');
}

void json_array_begin(json *out, const char *key)
{
    open_nest(out, key, '[');
}

void json_array_end(json *out)
{
    close_nest(out, ']');
}

void json_text(json *out, const char *key, const char *value)
{
    start_value(out, key);
    if (value) {
        put_string(out->file, value);
    } else {
        (void)fputs("null", out->file);
    }
}

void json_uint(json *out, const char *key, uint64_t value)
{
    start_value(out, key);
    (void)fprintf(out->file, "%" PRIu64, value);
}

void json_real(json *out, const char *key, double value)
{
    start_value(out, key);
    if (!isfinite(value)) {
        (void)fputs("null", out->file);
        return;
    }
    char text[40];
    for (int digits = 6; digits <= 17; digits++) { /* the shortest that reads back as the same number */
        (void)snprintf(text, sizeof text, "%.*g", digits, value);
        if (digits == 17 || strtod(text, NULL) == value) {
            break;
        }
    }
    (void)fputs(text, out->file);
}

void json_bool(json *out, const char *key, bool value)
{
    start_value(out, key);
    (void)fputs(value ? "true" : "false", out->file);
}

void json_null(json *out, const char *key)
{
    start_value(out, key);
    (void)fputs("null", out->file);
}
