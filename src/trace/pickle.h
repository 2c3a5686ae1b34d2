/* pickle.h: the plain data in a Python pickle, read without executing anything.
 *
 * A pickle is a program for a small stack machine. What plain data is written with (dicts, lists, tuples, text, bytes,
 * numbers, True, False, None, and the memo that lets an object appear twice) is understood here, protocols 2 to 5. Every
 * opcode that would import or call something is refused by its name: nothing in a file can make this reader do more
 * than fill the tables below.
 *
 * Input may be hostile. The depth of nesting, the length of a text and the memory held are bounded; memory is linear in
 * the (uncompressed) input up to its bound. Objects may contain themselves: whoever walks them bounds his own depth. */
#ifndef NP_TRACE_PICKLE_H
#define NP_TRACE_PICKLE_H

#include "trace/pickle_input.h"

#define NP_PICKLE_DEPTH_MAX 1000                 /* marks open at once */
#define NP_PICKLE_TEXT_MAX ((uint64_t)64 << 20)  /* bytes of one text */
#define NP_PICKLE_MEMORY_MAX ((uint64_t)8 << 30) /* bytes held for one pickle */

typedef enum np_pickle_kind {
    NP_PICKLE_NONE,
    NP_PICKLE_BOOL,
    NP_PICKLE_INT,
    NP_PICKLE_LARGE_INT, /* beyond 64 bits: that it is one is all that is kept */
    NP_PICKLE_REAL,
    NP_PICKLE_TEXT,
    NP_PICKLE_BYTES,
    NP_PICKLE_LIST,
    NP_PICKLE_TUPLE,
    NP_PICKLE_DICT,
} np_pickle_kind;

typedef struct np_pickle_value {
    union {
        uint64_t magnitude; /* INT: without its sign. BOOL: 0 or 1 */
        double real;
        size_t index; /* TEXT, BYTES: into the texts; LIST, TUPLE, DICT: into the objects */
    } as;
    uint8_t kind;     /* np_pickle_kind */
    bool is_negative; /* INT */
} np_pickle_value;

typedef struct np_pickle_object {
    np_pickle_value *items; /* DICT: a key, its value, a key, ... */
    size_t n;
    size_t capacity;
} np_pickle_object;

typedef struct np_pickle_text {
    size_t at; /* into the characters */
    size_t n;
} np_pickle_text;

typedef struct np_pickle {
    const neap_memory *memory;
    np_array(np_pickle_object) objects;
    np_array(np_pickle_text) texts;
    np_array(char) chars;
    np_pickle_value root;
} np_pickle;

/* Reads one pickle from the input. `memory_max` is the most host memory to hold, 0: NP_PICKLE_MEMORY_MAX; beyond it
 * NEAP_TOO_LARGE. A failure names the file, the byte and what was expected there. */
neap_status np_pickle_read(np_pickle_input *input, uint64_t memory_max, const neap_memory *memory, neap_error *error,
                           np_pickle **pickle);
void np_pickle_free(np_pickle *pickle); /* NULL is allowed */

bool np_pickle_is_valid(const np_pickle *pickle);

/* ---------------------------------------------------------------- looking at values ---- */

const char *np_pickle_kind_name(np_pickle_value value); /* "a dict" */

/* The items of a list, tuple or dict (there: keys and values by turns); NULL and 0 for anything else. */
const np_pickle_value *np_pickle_items(const np_pickle *pickle, np_pickle_value value, size_t *n);

/* The value of a key; of one that was set twice, the last. False where `dict` is none, or has no such key. */
bool np_pickle_find(const np_pickle *pickle, np_pickle_value dict, const char *key, np_pickle_value *found);

bool np_pickle_is_text(const np_pickle *pickle, np_pickle_value value, const char *text);

/* False where it is no integer in [0, 2^64). */
bool np_pickle_get_uint(np_pickle_value value, uint64_t *number);

#endif
