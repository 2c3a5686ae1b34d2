/* fuzz.h: what the fuzz targets share: a memory hook that fails when the input says so, and text in memory. */
#ifndef NEAP_FUZZ_H
#define NEAP_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "trace/trace.h"
#include "trace/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FUZZ_ASSERT(condition)                                                       \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

typedef struct fuzz_memory {
    neap_memory hook;
    size_t n_left; /* allocations that succeed */
    bool failed;
} fuzz_memory;

static inline void *fuzz_resize(void *user, void *block, size_t old_bytes, size_t new_bytes)
{
    fuzz_memory *memory = user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    if (memory->n_left == 0) {
        memory->failed = true;
        return NULL;
    }
    memory->n_left--;
    return realloc(block, new_bytes);
}

/* One input in four meets the end of memory, at a place that its bytes choose: the same input always does the same. */
static inline void fuzz_memory_init(fuzz_memory *memory, const uint8_t *data, size_t n)
{
    uint64_t hash = np_hash_bytes(data, n, 0);
    memory->hook = (neap_memory){fuzz_resize, memory};
    memory->n_left = hash % 4 ? SIZE_MAX : (size_t)(hash >> 8) % 40;
    memory->failed = false;
}

/* A trace from the input, or NULL. Whatever the input: a status that fits, one line of text, a valid trace. */
static inline neap_trace *fuzz_parse(const uint8_t *data, size_t n)
{
    fuzz_memory memory;
    neap_error error;
    neap_trace *trace = NULL;
    neap_status status;

    fuzz_memory_init(&memory, data, n);
    status = neap_trace_parse(data, n, "fuzz", &memory.hook, &error, &trace);
    if (status == NEAP_OK) {
        FUZZ_ASSERT(!memory.failed && error.text[0] == '\0');
        neap_trace_free(trace); /* its memory hook ends with this function: read it again with the default one */
        FUZZ_ASSERT(neap_trace_parse(data, n, "fuzz", NULL, &error, &trace) == NEAP_OK);
        FUZZ_ASSERT(np_trace_is_valid(trace));
        return trace;
    }
    FUZZ_ASSERT(trace == NULL);
    FUZZ_ASSERT((status == NEAP_NO_MEMORY) == memory.failed);
    FUZZ_ASSERT(status == NEAP_NO_MEMORY || status == NEAP_BAD_INPUT);
    FUZZ_ASSERT(error.text[0] != '\0' && !strchr(error.text, '\n'));
    FUZZ_ASSERT(status != NEAP_BAD_INPUT ||
                (strncmp(error.text, "fuzz:", 5) == 0 && strstr(error.text, ": expected ")));
    return NULL;
}

typedef np_array(char) fuzz_text;

static inline neap_status fuzz_put(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    fuzz_text *text = user;
    (void)error;
    FUZZ_ASSERT(np_array_reserve(NULL, text, text->n + n_bytes) == NEAP_OK);
    memcpy(text->items + text->n, bytes, n_bytes);
    text->n += n_bytes;
    return NEAP_OK;
}

/* What is written, gzip'd or not, is read back the same. */
static inline void fuzz_round_trip(const neap_trace *trace)
{
    for (int as_gzip = 0; as_gzip < 2; as_gzip++) {
        fuzz_text text = {0};
        neap_trace *again;
        FUZZ_ASSERT((as_gzip ? np_write_gzip : np_write_text)(trace, fuzz_put, &text, NULL) == NEAP_OK);
        FUZZ_ASSERT(neap_trace_parse(text.items, text.n, "again", NULL, NULL, &again) == NEAP_OK);
        FUZZ_ASSERT(np_trace_is_equal(trace, again));
        neap_trace_free(again);
        np_array_free(NULL, &text);
    }
}

#endif
