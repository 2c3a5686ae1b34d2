/* snapshot_names.c: a trace has no place for stacks, and a person has no time for them: of each block that counts, which are
 * the largest at the peak, the one or two lines that tell it from others are kept. */
#include "trace/snapshot_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* A text of the dict, not ended by '\0'; NULL: there is none. */
static const char *text_of(const np_pickle *pickle, np_pickle_value dict, const char *key, size_t *n)
{
    np_pickle_value value;
    const np_pickle_text *text;
    if (!np_pickle_find(pickle, dict, key, &value) || value.kind != NP_PICKLE_TEXT) {
        return NULL;
    }
    text = &pickle->texts.items[value.as.index];
    *n = text->n;
    return text->n > 0 ? pickle->chars.items + text->at : NULL;
}

static bool ends_with(const char *text, size_t n, const char *end)
{
    size_t n_end = strlen(end);
    return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

static bool has_part(const char *text, size_t n, const char *part)
{
    size_t n_part = strlen(part);
    for (size_t i = 0; i + n_part <= n; i++) {
        if (memcmp(text + i, part, n_part) == 0) {
            return true;
        }
    }
    return false;
}

/* One word: a blank or a control character would end the field. */
static void put_word(char *name, const char *text, size_t n)
{
    size_t used = strlen(name);
    for (size_t i = 0; i < n && used + 1 < NP_FRAME_NAME_BYTES; i++) {
        unsigned char c = (unsigned char)text[i];
        name[used++] = (char)(c <= ' ' || c == 0x7f ? '_' : c);
    }
    name[used] = '\0';
}

/* "train.py:31" */
static void put_place(const np_pickle *pickle, np_pickle_value frame, char *name)
{
    np_pickle_value value;
    uint64_t line = 0;
    char number[24];
    size_t n = 0;
    const char *file = text_of(pickle, frame, "filename", &n);
    for (size_t i = n; file && i > 0; i--) {
        if (file[i - 1] == '/') {
            file += i;
            n -= i;
            break;
        }
    }
    if (file) {
        put_word(name, file, n);
    }
    if (np_pickle_find(pickle, frame, "line", &value) && np_pickle_get_uint(value, &line) && line > 0) {
        int n_number = snprintf(number, sizeof number, ":%llu", (unsigned long long)line);
        put_word(name, number, (size_t)n_number);
    }
}

static bool is_python(const np_pickle *pickle, np_pickle_value frame)
{
    size_t n;
    const char *file = text_of(pickle, frame, "filename", &n);
    return file && ends_with(file, n, ".py");
}

static bool is_library(const np_pickle *pickle, np_pickle_value frame)
{
    size_t n;
    const char *file = text_of(pickle, frame, "filename", &n);
    return file && has_part(file, n, "/torch/");
}

/* The stack; the oldest snapshots have it in a history of the block. */
static const np_pickle_value *frames_of(const np_pickle *pickle, np_pickle_value holder, size_t *n)
{
    np_pickle_value found;
    const np_pickle_value *history;
    size_t n_history;
    *n = 0;
    if (np_pickle_find(pickle, holder, "frames", &found)) {
        return np_pickle_items(pickle, found, n);
    }
    if (!np_pickle_find(pickle, holder, "history", &found)) {
        return NULL;
    }
    history = np_pickle_items(pickle, found, &n_history);
    return n_history > 0 && np_pickle_find(pickle, history[0], "frames", &found) ? np_pickle_items(pickle, found, n)
                                                                                 : NULL;
}

bool np_frames_name(const np_pickle *pickle, np_pickle_value holder, char name[NP_FRAME_NAME_BYTES])
{
    size_t n;
    size_t n_function = 0;
    const np_pickle_value *frames = frames_of(pickle, holder, &n);
    const char *function;
    size_t top = 0;
    name[0] = '\0';
    while (top < n && !is_python(pickle, frames[top])) {
        top++;
    }
    top = top < n ? top : 0;
    if (n == 0) {
        return false;
    }
    put_place(pickle, frames[top], name);
    function = text_of(pickle, frames[top], "name", &n_function);
    if (function) {
        put_word(name, ":", name[0] ? 1 : 0);
        put_word(name, function, n_function);
    }
    for (size_t i = top + 1; i < n && is_library(pickle, frames[top]); i++) {
        if (is_python(pickle, frames[i]) && !is_library(pickle, frames[i])) {
            put_word(name, "@", 1);
            put_place(pickle, frames[i], name);
            break;
        }
    }
    return name[0] != '\0';
}

/* ---- which blocks ---- */

/* The event after which the load is highest; NEAP_NEVER: before the first. */
static uint32_t find_peak(const neap_trace *trace)
{
    uint64_t load = 0;
    uint64_t highest;
    uint32_t at = NEAP_NEVER;
    for (size_t i = 0; i < trace->blocks.n; i++) {
        load += trace->blocks.items[i].malloc_event == NEAP_NEVER ? trace->blocks.items[i].bytes : 0;
    }
    highest = load;
    for (uint32_t i = 0; i < trace->events.n; i++) {
        uint64_t bytes = trace->blocks.items[trace->events.items[i].subject].bytes; /* there are no execs */
        load = trace->events.items[i].kind == NEAP_EVENT_MALLOC ? load + bytes : load - bytes;
        if (load > highest) {
            highest = load;
            at = i;
        }
    }
    return at;
}

static bool is_live_after(const neap_trace_block *block, uint32_t event)
{
    bool has_begun = block->malloc_event == NEAP_NEVER || (event != NEAP_NEVER && block->malloc_event <= event);
    return has_begun && (block->free_event == NEAP_NEVER || event == NEAP_NEVER || block->free_event > event);
}

typedef struct candidate {
    uint64_t bytes;
    uint32_t block;
} candidate;

static int larger_first(const void *left, const void *right)
{
    const candidate *a = left;
    const candidate *b = right;
    return a->bytes != b->bytes ? (a->bytes > b->bytes ? -1 : 1) : a->block < b->block ? -1 : a->block > b->block;
}

neap_status np_snapshot_name_blocks(const np_pickle *pickle, const np_pickle_value *holders, neap_trace *trace)
{
    np_array(candidate) live = {0};
    neap_status status = NEAP_OK;
    uint32_t peak = find_peak(trace);
    for (uint32_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        if (is_live_after(&trace->blocks.items[i], peak)) {
            status = np_array_push(trace->memory, &live, ((candidate){trace->blocks.items[i].bytes, i}));
        }
    }
    if (live.n > 1) {
        qsort(live.items, live.n, sizeof *live.items, larger_first);
    }
    for (size_t i = 0; i < live.n && i < NP_NAMED_MAX && status == NEAP_OK; i++) {
        char key[32];
        char name[NP_FRAME_NAME_BYTES];
        int n =
            snprintf(key, sizeof key, "block.%llu", (unsigned long long)trace->blocks.items[live.items[i].block].id);
        if (np_frames_name(pickle, holders[live.items[i].block], name)) {
            status = np_trace_add_meta(trace, key, (size_t)n, name, strlen(name));
        }
    }
    np_array_free(trace->memory, &live);
    return status;
}
