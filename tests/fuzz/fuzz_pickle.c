/* fuzz_pickle.c: any bytes given to the reader of pickles and snapshots, gzip'd ones too: a trace or one line of text,
 * within the memory allowed. A trace that comes of it survives the way to a snapshot and back. */
#include "fuzz.h"
#include "trace/snapshot.h"

#define MEMORY_MAX ((uint64_t)16 << 20)

static neap_trace *parse(const uint8_t *data, size_t n)
{
    fuzz_memory memory;
    neap_error error;
    neap_trace *trace = NULL;
    neap_status status;

    fuzz_memory_init(&memory, data, n);
    status = np_snapshot_parse(data, n, "fuzz", NEAP_ANY_DEVICE, MEMORY_MAX, &memory.hook, &error, &trace);
    if (status == NEAP_OK) {
        FUZZ_ASSERT(!memory.failed && error.text[0] == '\0');
        neap_trace_free(trace); /* its memory hook ends with this function: read it again with the default one */
        FUZZ_ASSERT(np_snapshot_parse(data, n, "fuzz", NEAP_ANY_DEVICE, MEMORY_MAX, NULL, &error, &trace) == NEAP_OK);
        FUZZ_ASSERT(np_trace_is_valid(trace));
        return trace;
    }
    FUZZ_ASSERT(trace == NULL);
    FUZZ_ASSERT((status == NEAP_NO_MEMORY) == memory.failed);
    FUZZ_ASSERT(status == NEAP_NO_MEMORY || status == NEAP_BAD_INPUT || status == NEAP_TOO_LARGE);
    FUZZ_ASSERT(error.text[0] != '\0' && !strchr(error.text, '\n'));
    FUZZ_ASSERT(status == NEAP_NO_MEMORY || strncmp(error.text, "fuzz: ", 6) == 0);
    return NULL;
}

/* Execs there are none, and every block keeps its place in the order. */
static void round_trip(const neap_trace *trace)
{
    fuzz_text text = {0};
    neap_error error;
    neap_trace *again;
    neap_status status = np_snapshot_write(trace, fuzz_put, &text, &error);
    FUZZ_ASSERT(status == NEAP_OK || status == NEAP_TOO_LARGE);
    if (status == NEAP_OK && trace->events.n > 0) {
        FUZZ_ASSERT(np_snapshot_parse(text.items, text.n, "again", 0, 0, NULL, &error, &again) == NEAP_OK);
        FUZZ_ASSERT(!neap_trace_meta(again, "lost_entries"));
        FUZZ_ASSERT(again->events.n == trace->events.n && again->blocks.n == trace->blocks.n);
        for (size_t i = 0; i < trace->blocks.n; i++) {
            FUZZ_ASSERT(again->blocks.items[i].bytes == trace->blocks.items[i].bytes);
            FUZZ_ASSERT(again->blocks.items[i].malloc_event == trace->blocks.items[i].malloc_event);
            FUZZ_ASSERT(again->blocks.items[i].free_event == trace->blocks.items[i].free_event);
        }
        neap_trace_free(again);
    }
    np_array_free(NULL, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    neap_trace *trace = parse(data, n);
    if (trace) {
        round_trip(trace);
    }
    neap_trace_free(trace);
    return 0;
}
