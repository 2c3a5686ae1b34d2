/* json.h: one JSON document, written as it is told.
 *
 * Inside an object every value has a key; inside an array (and for the document itself) the key is NULL. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *file;
    unsigned depth;
    bool is_first; /* nothing written yet at this depth */
} json;

json json_begin(FILE *file);
void json_end(json *out); /* the final newline; every object and array must be closed */

void json_object_begin(json *out, const char *key);
void json_object_end(json *out);
void json_array_begin(json *out, const char *key);
void json_array_end(json *out);

void json_text(json *out, const char *key, const char *value); /* bytes that are not UTF-8 become U+FFFD; NULL: null */
void json_uint(json *out, const char *key, uint64_t value);
void json_real(json *out, const char *key, double value); /* null where it is not finite */
void json_bool(json *out, const char *key, bool value);
void json_null(json *out, const char *key);

#endif
