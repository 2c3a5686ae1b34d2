/* sink.h: text put together piece by piece into room that may be too small: it counts on, as snprintf does. */
#ifndef NP_HOOK_SINK_H
#define NP_HOOK_SINK_H

#include <stddef.h>
#include <stdint.h>

typedef struct np_hook_sink {
    char *text; /* ended by '\0' after each piece, where bytes is not 0 */
    size_t bytes;
    size_t length; /* of the whole, cut or not */
} np_hook_sink;

np_hook_sink np_hook_sink_begin(char *text, size_t bytes);
void np_hook_sink_put(np_hook_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a number would be anywhere: a point, whatever the program's locale has. For people: "481.2 MB", "1.3 ms",
 * "0.80 %". For programs: the shortest that reads back as the same; "null" where it is not finite. */
void np_hook_sink_put_bytes(np_hook_sink *sink, uint64_t bytes);
void np_hook_sink_put_seconds(np_hook_sink *sink, double seconds);
void np_hook_sink_put_share(np_hook_sink *sink, double share);
void np_hook_sink_put_fixed(np_hook_sink *sink, int n_decimals, double value);
void np_hook_sink_put_real(np_hook_sink *sink, double value);
void np_hook_sink_put_string(np_hook_sink *sink, const char *text); /* a JSON string; NULL: null */

#endif
