/* sink.c: formatting for reports. No host memory is needed, so that it works at any time, also while a process ends. */
#include "hook/sink.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/real.h"

np_hook_sink np_hook_sink_begin(char *text, size_t bytes)
{
    if (bytes > 0) {
        text[0] = '\0';
    }
    return (np_hook_sink){.text = text, .bytes = bytes};
}

void np_hook_sink_put(np_hook_sink *sink, const char *format, ...)
{
    bool has_room = sink->length < sink->bytes;
    va_list args;
    va_start(args, format);
    int n =
        vsnprintf(has_room ? sink->text + sink->length : NULL, has_room ? sink->bytes - sink->length : 0, format, args);
    va_end(args);
    sink->length += n > 0 ? (size_t)n : 0;
}

void np_hook_sink_put_fixed(np_hook_sink *sink, int n_decimals, double value)
{
    np_hook_sink_put(sink, "%s", isfinite(value) ? np_real_fixed(value, n_decimals).text : "?");
}

void np_hook_sink_put_real(np_hook_sink *sink, double value)
{
    np_hook_sink_put(sink, "%s", isfinite(value) ? np_real_shortest(value).text : "null");
}

void np_hook_sink_put_bytes(np_hook_sink *sink, uint64_t bytes)
{
    static const struct {
        double from;
        double unit;
        int n_decimals;
        const char *name;
    } units[] = {{1e14, 1e12, 1, "TB"}, {1e11, 1e9, 1, "GB"}, {1e7, 1e6, 1, "MB"},
                 {1e5, 1e6, 3, "MB"},   {1e3, 1e3, 1, "kB"},  {0, 1, 0, "B"}};
    size_t i = 0;
    while ((double)bytes < units[i].from) {
        i++;
    }
    np_hook_sink_put_fixed(sink, units[i].n_decimals, (double)bytes / units[i].unit);
    np_hook_sink_put(sink, " %s", units[i].name);
}

void np_hook_sink_put_seconds(np_hook_sink *sink, double seconds)
{
    if (seconds < 0.001) {
        np_hook_sink_put_fixed(sink, 1, seconds * 1e6);
        np_hook_sink_put(sink, " us");
    } else if (seconds < 1) {
        np_hook_sink_put_fixed(sink, 1, seconds * 1e3);
        np_hook_sink_put(sink, " ms");
    } else {
        np_hook_sink_put_fixed(sink, 1, seconds);
        np_hook_sink_put(sink, " s");
    }
}

void np_hook_sink_put_share(np_hook_sink *sink, double share)
{
    double percent = share * 100;
    np_hook_sink_put_fixed(sink, 2, percent < 0 && percent > -0.005 ? 0 : percent); /* no "-0.00" */
    np_hook_sink_put(sink, " %%");
}

void np_hook_sink_put_string(np_hook_sink *sink, const char *text)
{
    if (!text) {
        np_hook_sink_put(sink, "null");
        return;
    }
    np_hook_sink_put(sink, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            np_hook_sink_put(sink, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            np_hook_sink_put(sink, "\\u%04x", c < 0x80 ? c : 0xfffdU); /* our own texts are ASCII */
        } else {
            np_hook_sink_put(sink, "%c", c);
        }
    }
    np_hook_sink_put(sink, "\"");
}
