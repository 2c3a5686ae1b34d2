/* pickle_values.c: looking at what a pickle held. Every look is bounded by the tables; nothing here recurses. */
#include <string.h>

#include "trace/pickle.h"

static bool is_object(np_pickle_value value)
{
    return value.kind == NP_PICKLE_LIST || value.kind == NP_PICKLE_TUPLE || value.kind == NP_PICKLE_DICT;
}

const char *np_pickle_kind_name(np_pickle_value value)
{
    static const char *const names[] = {
        [NP_PICKLE_NONE] = "None",     [NP_PICKLE_BOOL] = "a bool",
        [NP_PICKLE_INT] = "an int",    [NP_PICKLE_LARGE_INT] = "an int beyond 64 bits",
        [NP_PICKLE_REAL] = "a float",  [NP_PICKLE_TEXT] = "a str",
        [NP_PICKLE_BYTES] = "bytes",   [NP_PICKLE_LIST] = "a list",
        [NP_PICKLE_TUPLE] = "a tuple", [NP_PICKLE_DICT] = "a dict",
    };
    return value.kind < sizeof names / sizeof names[0] ? names[value.kind] : "nothing known";
}

const np_pickle_value *np_pickle_items(const np_pickle *pickle, np_pickle_value value, size_t *n)
{
    const np_pickle_object *object = is_object(value) ? &pickle->objects.items[value.as.index] : NULL;
    *n = object ? object->n : 0;
    return object ? object->items : NULL;
}

bool np_pickle_is_text(const np_pickle *pickle, np_pickle_value value, const char *text)
{
    const np_pickle_text *found;
    size_t n = strlen(text);
    if (value.kind != NP_PICKLE_TEXT) {
        return false;
    }
    found = &pickle->texts.items[value.as.index];
    return found->n == n && (n == 0 || memcmp(&pickle->chars.items[found->at], text, n) == 0);
}

bool np_pickle_find(const np_pickle *pickle, np_pickle_value dict, const char *key, np_pickle_value *found)
{
    size_t n = 0;
    const np_pickle_value *items = dict.kind == NP_PICKLE_DICT ? np_pickle_items(pickle, dict, &n) : NULL;
    for (; n >= 2; n -= 2) {
        if (np_pickle_is_text(pickle, items[n - 2], key)) {
            *found = items[n - 1];
            return true;
        }
    }
    return false;
}

bool np_pickle_get_uint(np_pickle_value value, uint64_t *number)
{
    if (value.kind != NP_PICKLE_INT || value.is_negative) {
        return false;
    }
    *number = value.as.magnitude;
    return true;
}

/* ---------------------------------------------------------------- validity ---- */

static bool value_is_valid(const np_pickle *pickle, np_pickle_value value)
{
    if (is_object(value)) {
        return value.as.index < pickle->objects.n;
    }
    if (value.kind == NP_PICKLE_TEXT || value.kind == NP_PICKLE_BYTES) {
        return value.as.index < pickle->texts.n;
    }
    return value.kind < NP_PICKLE_TEXT && (value.kind != NP_PICKLE_BOOL || value.as.magnitude <= 1) &&
           (value.kind == NP_PICKLE_INT ? !value.is_negative || value.as.magnitude > 0 : !value.is_negative);
}

bool np_pickle_is_valid(const np_pickle *pickle)
{
    for (size_t i = 0; i < pickle->texts.n; i++) {
        const np_pickle_text *text = &pickle->texts.items[i];
        if (text->at > pickle->chars.n || text->n > pickle->chars.n - text->at) {
            return false;
        }
    }
    for (size_t i = 0; i < pickle->objects.n; i++) {
        const np_pickle_object *object = &pickle->objects.items[i];
        if (object->n > object->capacity) {
            return false;
        }
        for (size_t k = 0; k < object->n; k++) {
            if (!value_is_valid(pickle, object->items[k])) {
                return false;
            }
        }
    }
    return value_is_valid(pickle, pickle->root);
}
