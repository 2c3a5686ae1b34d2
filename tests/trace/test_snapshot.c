/* test_snapshot.c: what PyTorch's snapshots tell becomes a trace, and a trace becomes a snapshot that tells the same. */
#include "trace/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "testing.h"
#include "trace/make_trace.h"
#include "trace/pickle_write.h"

typedef np_array(unsigned char) byte_array;

static neap_status put_bytes(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    byte_array *to = user;
    (void)error;
    ASSERT_OK(np_array_reserve(NULL, to, to->n + n_bytes));
    memcpy(to->items + to->n, bytes, n_bytes);
    to->n += n_bytes;
    return NEAP_OK;
}

/* ---- snapshots by hand ---- */

/* What the allocator did, on one device or another. */
typedef struct entry {
    unsigned device;
    const char *action;
    uint64_t address;
    uint64_t bytes;
} entry;

typedef struct segment_block {
    unsigned device;
    uint64_t size;
    uint64_t requested; /* 0: the snapshot does not say */
    const char *state;
} segment_block;

typedef struct snapshot {
    unsigned n_devices;
    const entry *entries;
    size_t n_entries;
    const segment_block *blocks; /* of one segment for each device, at SEGMENT */
    size_t n_blocks;
} snapshot;

#define SEGMENT 1000000
#define SNAPSHOT(n_devices, entries, blocks)                                           \
    ((snapshot){(n_devices), (entries), sizeof(entries) / sizeof *(entries), (blocks), \
                sizeof(blocks) / sizeof *(blocks)})

static void put_key(np_pickle_writer *w, const char *key)
{
    np_pickle_put_text(w, key, strlen(key));
}

static void put_number(np_pickle_writer *w, const char *key, uint64_t number)
{
    put_key(w, key);
    np_pickle_put_uint(w, number);
}

static void put_segment(np_pickle_writer *w, const snapshot *s, unsigned device)
{
    np_pickle_put_begin(w, NP_PICKLE_DICT);
    put_number(w, "device", device);
    put_number(w, "address", SEGMENT);
    put_key(w, "blocks");
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (size_t i = 0; i < s->n_blocks; i++) {
        if (s->blocks[i].device == device) {
            np_pickle_put_begin(w, NP_PICKLE_DICT);
            put_number(w, "size", s->blocks[i].size);
            if (s->blocks[i].requested) {
                put_number(w, "requested_size", s->blocks[i].requested);
            }
            put_key(w, "state");
            put_key(w, s->blocks[i].state);
            np_pickle_put_end(w);
        }
    }
    np_pickle_put_end(w);
    np_pickle_put_end(w);
}

static void put_list(np_pickle_writer *w, const snapshot *s, unsigned device)
{
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (size_t i = 0; i < s->n_entries; i++) {
        if (s->entries[i].device == device) {
            np_pickle_put_begin(w, NP_PICKLE_DICT);
            put_key(w, "action");
            put_key(w, s->entries[i].action);
            put_number(w, "addr", s->entries[i].address);
            put_number(w, "size", s->entries[i].bytes);
            put_number(w, "stream", 0);
            np_pickle_put_end(w);
        }
    }
    np_pickle_put_end(w);
}

static byte_array pickle_of(const snapshot *s)
{
    byte_array bytes = {0};
    np_pickle_writer *w = malloc(sizeof *w);
    np_pickle_put_start(w, put_bytes, &bytes, NULL);
    np_pickle_put_begin(w, NP_PICKLE_DICT);
    put_key(w, "segments");
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (unsigned i = 0; i < s->n_devices; i++) {
        put_segment(w, s, i);
    }
    np_pickle_put_end(w);
    put_key(w, "device_traces");
    np_pickle_put_begin(w, NP_PICKLE_LIST);
    for (unsigned i = 0; i < s->n_devices; i++) {
        put_list(w, s, i);
    }
    np_pickle_put_end(w);
    np_pickle_put_end(w);
    ASSERT_OK(np_pickle_put_finish(w));
    free(w);
    return bytes;
}

static neap_status import(const snapshot *s, uint32_t device, neap_error *error, neap_trace **trace)
{
    byte_array bytes = pickle_of(s);
    neap_status status = np_snapshot_parse(bytes.items, bytes.n, "file", device, 0, NULL, error, trace);
    np_array_free(NULL, &bytes);
    return status;
}

static neap_trace *import_good(const snapshot *s, uint32_t device)
{
    neap_error error = {""};
    neap_trace *trace = NULL;
    if (import(s, device, &error, &trace) != NEAP_OK) {
        fail_msg("%s", error.text);
    }
    ASSERT_TRUE(np_trace_is_valid(trace));
    return trace;
}

/* The trace must be, but for its meta, as this text says. Takes the trace over. */
static void assert_text(neap_trace *trace, const char *expected)
{
    byte_array text = {0};
    const char *body;
    ASSERT_OK(np_write_text(trace, put_bytes, &text, NULL));
    ASSERT_OK(put_bytes(&text, "", 1, NULL));
    body = strstr((const char *)text.items, "meta ");
    ASSERT_TRUE(body != NULL);
    ASSERT_STR_EQ(strchr(body, '\n') + 1, expected);
    np_array_free(NULL, &text);
    neap_trace_free(trace);
}

static const char *lost(const neap_trace *trace)
{
    return neap_trace_meta(trace, "lost_entries");
}

/* ---- reading ---- */

static const segment_block no_blocks[] = {{9, 512, 0, "inactive"}};

static void test_plain(void **state)
{
    static const entry entries[] = {
        {0, "segment_alloc", 5000, 2097152},
        {0, "alloc", 5000, 100},
        {0, "alloc", 6000, 200},
        {0, "free_requested", 5000, 100},
        {0, "free_completed", 5000, 100},
        {0, "snapshot", 0, 0},
        {0, "alloc", 5000, 300},
        {0, "oom", 77, 1},
        {0, "segment_map", 5000, 1},
    };
    const snapshot s = SNAPSHOT(1, entries, no_blocks);
    neap_trace *trace = import_good(&s, NEAP_ANY_DEVICE);
    (void)state;
    ASSERT_STR_EQ(neap_trace_meta(trace, "source"), "pytorch-snapshot");
    ASSERT_STR_EQ(neap_trace_meta(trace, "device"), "0");
    ASSERT_TRUE(lost(trace) == NULL);
    assert_text(trace, "malloc 0 100\nmalloc 1 200\nfree 0\nmalloc 2 300\n");
}

/* A block ends with the program's wish; when the allocator is ready, another stream says. */
static void test_delayed_free(void **state)
{
    static const entry entries[] = {
        {0, "alloc", 1, 100},          {0, "free_requested", 1, 100}, {0, "alloc", 2, 200},
        {0, "free_completed", 1, 100}, {0, "free_completed", 2, 200}, /* some only say this */
        {0, "alloc", 1, 300},
    };
    const snapshot s = SNAPSHOT(1, entries, no_blocks);
    neap_trace *trace = import_good(&s, NEAP_ANY_DEVICE);
    (void)state;
    ASSERT_TRUE(lost(trace) == NULL);
    assert_text(trace, "malloc 0 100\nfree 0\nmalloc 1 200\nfree 1\nmalloc 2 300\n");
}

/* Freed and never allocated, or in use in the end and never mentioned: live before, in the order of addresses. */
static void test_live_before(void **state)
{
    static const entry entries[] = {
        {0, "free_completed", 9000000, 90},
        {0, "alloc", SEGMENT + 2048, 7},
        {0, "free_requested", 500, 50},
        {0, "free_completed", 500, 50},
    };
    static const segment_block blocks[] = {
        {0, 512, 500, "active_allocated"},   {0, 512, 0, "inactive"},
        {0, 512, 0, "active_pending_free"},  {0, 512, 0, "active_allocated"}, /* as large as it is */
        {0, 512, 7, "active_allocated"},                                      /* the one that was allocated above */
        {0, 1024, 9999, "active_allocated"},                                  /* nonsense: as large as it is */
        {1, 512, 500, "active_allocated"},
    };
    const snapshot s = SNAPSHOT(2, entries, blocks);
    neap_trace *trace = import_good(&s, NEAP_ANY_DEVICE);
    (void)state;
    ASSERT_TRUE(lost(trace) == NULL);
    assert_text(trace, "live 0 50\nlive 1 500\nlive 2 512\nlive 3 1024\nlive 4 90\nfree 4\nmalloc 5 7\nfree 0\n");
}

/* What is missing is assumed to be as little as can be, and is counted. */
static void test_lost_entries(void **state)
{
    static const entry twice[] = {{0, "alloc", 1, 100}, {0, "alloc", 1, 200}};
    static const entry freed_twice[] = {
        {0, "alloc", 1, 100},          {0, "free_requested", 1, 100}, {0, "free_completed", 1, 100},
        {0, "free_requested", 1, 300}, {0, "free_completed", 1, 300}, {0, "free_completed", 1, 300},
    };
    static const entry used_again[] = {
        {0, "alloc", SEGMENT, 100}, {0, "free_requested", SEGMENT, 100}, {0, "free_completed", SEGMENT, 100}};
    static const segment_block blocks[] = {{0, 512, 100, "active_allocated"}};
    const struct {
        snapshot s;
        const char *n_lost;
        const char *text;
    } cases[] = {
        {SNAPSHOT(1, twice, no_blocks), "1", "malloc 0 100\nfree 0\nmalloc 1 200\n"},
        {SNAPSHOT(1, freed_twice, no_blocks), "2", "malloc 0 100\nfree 0\n"},
        {SNAPSHOT(1, used_again, blocks), "1", "malloc 0 100\nfree 0\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_trace *trace = import_good(&cases[i].s, NEAP_ANY_DEVICE);
        ASSERT_STR_EQ(lost(trace), cases[i].n_lost);
        assert_text(trace, cases[i].text);
    }
}

static void test_devices(void **state)
{
    static const entry entries[] = {{1, "alloc", 1, 100}, {3, "alloc", 1, 300}, {3, "alloc", 2, 300}};
    const snapshot s = SNAPSHOT(4, entries, no_blocks);
    neap_error error = {""};
    neap_trace *trace = import_good(&s, NEAP_ANY_DEVICE);
    (void)state;
    ASSERT_STR_EQ(neap_trace_meta(trace, "device"), "3");
    neap_trace_free(trace);
    trace = import_good(&s, 1);
    ASSERT_STR_EQ(neap_trace_meta(trace, "device"), "1");
    assert_text(trace, "malloc 0 100\n");
    trace = NULL;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, import(&s, 4, &error, &trace));
    ASSERT_CONTAINS(error.text, "file: expected a device below 4, found 4");
    ASSERT_STATUS(NEAP_BAD_INPUT, import(&s, 2, &error, &trace));
    ASSERT_CONTAINS(error.text, "found none of that device: call torch.cuda.memory._record_memory_history()");
    ASSERT_TRUE(trace == NULL);
}

/* ---- what is no snapshot ---- */

#define PICKLE(text) "\x80\x04" text, sizeof("\x80\x04" text) - 1
#define TRACES  \
    "}\x8c\x0d" \
    "device_traces"
#define ENTRY(text) PICKLE(TRACES "]](}(" text "ueas.")
#define ALLOC        \
    "\x8c\x06"       \
    "action\x8c\x05" \
    "alloc"

static void test_no_snapshot(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *part;
    } cases[] = {
        {PICKLE("N."), "expected a memory snapshot (a dict), found None"},
        {PICKLE("]."), "expected a history of allocations, found segments alone"},
        {PICKLE("}."), "found a dict without \"device_traces\""},
        {PICKLE(TRACES "]s."), "expected a history of allocations, found none"},
        {PICKLE(TRACES "]]as."), "expected a history of allocations, found none"},
        {PICKLE(TRACES "]Nas."), "expected a list of lists"},
        {PICKLE(TRACES "}NNss."), "expected a list of lists"},
        {PICKLE(TRACES "](](K\x01"
                       "ees."),
         "device_traces[0][0]: expected a dict with a text as \"action\", found an int"},
        {ENTRY(""), "device_traces[0][0]: expected a dict with a text as \"action\", found nothing"},
        {ENTRY(ALLOC), "device_traces[0][0]: expected a number as \"addr\", found nothing"},
        {ENTRY(ALLOC "\x8c\x04"
                     "addr\x8c\x01x"),
         "expected a number of 0 or more as \"addr\", found a str"},
        {ENTRY(ALLOC "\x8c\x04"
                     "addrJ\xff\xff\xff\xff"),
         "as \"addr\", found a negative one"},
        {ENTRY(ALLOC "\x8c\x04"
                     "addrK\x01"),
         "expected a number as \"size\", found nothing"},
        {ENTRY(ALLOC "\x8c\x04"
                     "addrK\x01\x8c\x04sizeK\x00"),
         "expected a size above 0 as \"size\", found 0"},
        {ENTRY(ALLOC "\x8c\x04"
                     "addrK\x01\x8c\x04sizeG\x3f\xf0\x00\x00\x00\x00\x00\x00"),
         "as \"size\", found a float"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_error error = {""};
        neap_trace *trace = NULL;
        ASSERT_STATUS(NEAP_BAD_INPUT,
                      np_snapshot_parse(cases[i].bytes, cases[i].n, "file", NEAP_ANY_DEVICE, 0, NULL, &error, &trace));
        ASSERT_CONTAINS(error.text, cases[i].part);
        ASSERT_EQ(strncmp(error.text, "file: ", 6), 0);
        ASSERT_TRUE(trace == NULL);
    }
}

/* More bytes at once than a trace can hold. */
static void test_too_large(void **state)
{
    static const entry entries[] = {{0, "alloc", 1, INT64_MAX}, {0, "alloc", 2, INT64_MAX}};
    const snapshot s = SNAPSHOT(1, entries, no_blocks);
    neap_error error = {""};
    neap_trace *trace = NULL;
    (void)state;
    ASSERT_STATUS(NEAP_TOO_LARGE, import(&s, NEAP_ANY_DEVICE, &error, &trace));
    ASSERT_CONTAINS(error.text, "file: expected at most");
}

/* ---- recorded by PyTorch ---- */

/* A small network trained on one GPU (PyTorch 2.11), with a block on a second stream; torch.cuda.max_memory_allocated()
 * said 226054144 of both. */
static void test_recorded(void **state)
{
    static const struct {
        const char *name;
        uint32_t period;
        size_t n_events;
        size_t n_blocks;
    } cases[] = {
        {"snapshots/cnn-side-stream.pickle.gz", 106, 849, 473},
        {"snapshots/cnn-last-400.pickle.gz", 265, 265, 182}, /* two iterations and a half: too few, one round */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[TEST_PATH_BYTES];
        neap_error error = {""};
        neap_trace *trace = NULL;
        neap_info *info = NULL;
        test_data_path(path, cases[i].name);
        ASSERT_OK(neap_trace_read_snapshot(path, NEAP_ANY_DEVICE, NULL, &error, &trace));
        ASSERT_TRUE(np_trace_is_valid(trace));
        ASSERT_TRUE(lost(trace) == NULL);
        ASSERT_OK(neap_info_make(trace, 0, NULL, &error, &info));
        ASSERT_EQ(info->n_events, cases[i].n_events);
        ASSERT_EQ(info->n_blocks, cases[i].n_blocks);
        ASSERT_TRUE(info->has_period);
        ASSERT_EQ(info->period_length, cases[i].period);
        ASSERT_EQ(info->run_length == info->period_length, i == 1);
        ASSERT_EQ(info->peak_load, 226054144);
        neap_info_free(info);
        neap_trace_free(trace);
    }
}

/* ---- writing ---- */

/* Blocks that live at the same time stand apart, and none above the top. */
static void assert_places(const neap_trace *trace)
{
    size_t n = trace->blocks.n;
    uint64_t *offsets = malloc((n + 1) * sizeof *offsets);
    uint64_t top = 0;
    uint64_t highest = 0;
    ASSERT_OK(np_snapshot_place(trace, NULL, offsets, &top));
    for (size_t i = 0; i < n; i++) {
        const neap_trace_block *a = &trace->blocks.items[i];
        uint64_t a_end;
        ASSERT_TRUE(np_round_up(a->bytes, NP_SNAPSHOT_ALIGNMENT, &a_end));
        a_end += offsets[i];
        ASSERT_EQ(offsets[i] % NP_SNAPSHOT_ALIGNMENT, 0);
        highest = a_end > highest ? a_end : highest;
        for (size_t k = 0; k < i; k++) {
            const neap_trace_block *b = &trace->blocks.items[k];
            uint64_t a_begin = a->malloc_event == NEAP_NEVER ? 0 : (uint64_t)a->malloc_event + 1;
            bool in_time = b->free_event == NEAP_NEVER || a_begin <= b->free_event;
            if (in_time && offsets[i] < offsets[k] + b->bytes && offsets[k] < a_end) {
                fail_msg("blocks %zu and %zu overlap", k, i);
            }
        }
    }
    ASSERT_EQ(top, highest);
    free(offsets);
}

/* The same blocks, and the same mallocs and frees in the same order. Execs are lost. */
static void assert_same(const neap_trace *a, const neap_trace *b)
{
    size_t at = 0;
    ASSERT_EQ(a->blocks.n, b->blocks.n);
    for (size_t i = 0; i < a->blocks.n; i++) {
        ASSERT_EQ(a->blocks.items[i].bytes, b->blocks.items[i].bytes);
        ASSERT_EQ(a->blocks.items[i].malloc_event == NEAP_NEVER, b->blocks.items[i].malloc_event == NEAP_NEVER);
        ASSERT_EQ(a->blocks.items[i].free_event == NEAP_NEVER, b->blocks.items[i].free_event == NEAP_NEVER);
    }
    for (size_t i = 0; i < a->events.n; i++) {
        if (a->events.items[i].kind != NEAP_EVENT_EXEC) {
            ASSERT_LT(at, b->events.n);
            ASSERT_EQ(a->events.items[i].kind, b->events.items[at].kind);
            ASSERT_EQ(a->events.items[i].subject, b->events.items[at].subject);
            at++;
        }
    }
    ASSERT_EQ(at, b->events.n);
}

/* Takes the trace over. */
static void assert_round_trip(neap_trace *trace)
{
    byte_array bytes = {0};
    neap_error error = {""};
    neap_trace *again = NULL;
    assert_places(trace);
    ASSERT_OK(np_snapshot_write(trace, put_bytes, &bytes, &error));
    if (np_snapshot_parse(bytes.items, bytes.n, "file", NEAP_ANY_DEVICE, 0, NULL, &error, &again) != NEAP_OK) {
        fail_msg("%s", error.text);
    }
    ASSERT_TRUE(np_trace_is_valid(again));
    ASSERT_TRUE(lost(again) == NULL);
    assert_same(trace, again);
    np_array_free(NULL, &bytes);
    neap_trace_free(again);
    neap_trace_free(trace);
}

static neap_trace *parse(const char *text)
{
    neap_error error;
    neap_trace *trace = NULL;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace));
    return trace;
}

static void test_round_trip_small(void **state)
{
    static const char *const texts[] = {
        "neap-trace 1\nmalloc 7 1\n",
        "neap-trace 1\nlive 9 100\nlive 3 600\nfree 3\n",
        "neap-trace 1\nlive 9 512\nlive 3 513\nmalloc 5 1\nfree 9\nmalloc 6 512\nfree 3\nfree 5\nmalloc 8 2048\n",
        "neap-trace 1\nmalloc 1 10\nexec a\xff\"'\\ 5 6 w1\nmalloc 2 20\nexec b 18446744073709551615 9 r1\nfree 1\n",
        "neap-trace 1\nmalloc 1 4611686018427387904\nfree 1\nmalloc 2 4611686018427387904\n",
        "id,lower,upper,size,offset\n1,0,5,10,64\n2,2,4,20,\n3,4,9,30,0\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_round_trip(parse(texts[i]));
    }
}

static void test_round_trip_training(void **state)
{
    static const training kinds[] = {
        {.seed = 1},
        {.seed = 2, .loss_kept = true, .leak_bytes = 512, .log_every = 2, .false_accesses = 3, .long_lives = 2},
        {.seed = 3, .zero_grad_at_start = true, .other_every = 2, .queue_depth = 3, .freed_once = true},
        {.seed = 4, .n_layers = 30, .n_iterations = 12}, /* more entries than a batch has */
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        neap_trace *trace = make_training(&kinds[i]);
        ASSERT_TRUE(trace != NULL);
        assert_round_trip(trace);
    }
}

/* The load of a period is the same after the way there and back, and so is the period but for its execs. */
static void test_period_survives(void **state)
{
    neap_trace *trace = make_training(&(training){.seed = 5, .n_iterations = 6});
    byte_array bytes = {0};
    neap_error error = {""};
    neap_trace *again = NULL;
    neap_info *before = NULL;
    neap_info *after = NULL;
    (void)state;
    ASSERT_OK(np_snapshot_write(trace, put_bytes, &bytes, &error));
    ASSERT_OK(np_snapshot_parse(bytes.items, bytes.n, "file", NEAP_ANY_DEVICE, 0, NULL, &error, &again));
    ASSERT_OK(neap_info_make(trace, 0, NULL, &error, &before));
    ASSERT_OK(neap_info_make(again, 0, NULL, &error, &after));
    ASSERT_TRUE(before->has_period && after->has_period);
    ASSERT_EQ(before->peak_load, after->peak_load);
    ASSERT_EQ(after->n_execs, 0);
    ASSERT_EQ(before->period_length - before->n_execs / 6, after->period_length);
    neap_info_free(before);
    neap_info_free(after);
    neap_trace_free(trace);
    neap_trace_free(again);
    np_array_free(NULL, &bytes);
}

/* An empty trace has nothing to show, and is written all the same. */
static void test_empty(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nexec alone 5 6\n");
    byte_array bytes = {0};
    neap_error error = {""};
    neap_trace *again = NULL;
    (void)state;
    ASSERT_OK(np_snapshot_write(trace, put_bytes, &bytes, &error));
    ASSERT_STATUS(NEAP_BAD_INPUT,
                  np_snapshot_parse(bytes.items, bytes.n, "file", NEAP_ANY_DEVICE, 0, NULL, &error, &again));
    np_array_free(NULL, &bytes);
    neap_trace_free(trace);
}

static bool put_some(void *user, const void *bytes, size_t n_bytes)
{
    unsigned *n_left = user;
    (void)bytes;
    (void)n_bytes;
    return (*n_left)-- > 0;
}

static void test_write_fails(void **state)
{
    neap_trace *trace = make_training(&(training){.seed = 4, .n_layers = 60, .n_iterations = 12});
    neap_trace *large = parse("neap-trace 1\nmalloc 1 9223372036854775000\n");
    neap_error error = {""};
    unsigned n_left = 1;
    (void)state;
    ASSERT_STATUS(NEAP_IO, neap_trace_put_snapshot(trace, put_some, &n_left, &error));
    ASSERT_TRUE(error.text[0] != '\0');
    n_left = 1000;
    ASSERT_OK(neap_trace_put_snapshot(trace, put_some, &n_left, &error));
    ASSERT_STR_EQ(error.text, "");
    ASSERT_STATUS(NEAP_TOO_LARGE, neap_trace_put_snapshot(large, put_some, &n_left, &error));
    ASSERT_CONTAINS(error.text, "more addresses than there are");
    neap_trace_free(trace);
    neap_trace_free(large);
}

/* ---- memory ---- */

static neap_status import_once(const neap_memory *memory, void *user)
{
    const byte_array *bytes = user;
    neap_error error;
    neap_trace *trace = NULL;
    neap_status status = np_snapshot_parse(bytes->items, bytes->n, "file", 0, 0, memory, &error, &trace);
    ASSERT_EQ(trace != NULL, status == NEAP_OK);
    neap_trace_free(trace);
    return status;
}

static const char memory_text[] =
    "neap-trace 1\nlive 1 20\nlive 2 9\nlive 3 9\nmalloc 4 3\nexec k 1 2 r1 w4\nfree 2\nfree 1\n";

static neap_status export_once(const neap_memory *memory, void *user)
{
    neap_trace *trace = NULL;
    unsigned n_left = 1000;
    neap_status status = neap_trace_parse(memory_text, sizeof memory_text - 1, "text", memory, NULL, &trace);
    (void)user;
    if (status == NEAP_OK) {
        status = neap_trace_put_snapshot(trace, put_some, &n_left, NULL);
    }
    neap_trace_free(trace);
    return status;
}

static void test_no_memory(void **state)
{
    static const entry entries[] = {{0, "alloc", 5, 100}, {0, "free_requested", 9, 50}, {0, "alloc", 6, 1}};
    static const segment_block blocks[] = {{0, 512, 500, "active_allocated"}};
    const snapshot s = SNAPSHOT(1, entries, blocks);
    byte_array bytes = pickle_of(&s);
    (void)state;
    ASSERT_GE(test_memory_fail_each(import_once, &bytes), 15);
    ASSERT_GE(test_memory_fail_each(export_once, NULL), 10);
    np_array_free(NULL, &bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_delayed_free),
        cmocka_unit_test(test_live_before),
        cmocka_unit_test(test_lost_entries),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_no_snapshot),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_round_trip_small),
        cmocka_unit_test(test_round_trip_training),
        cmocka_unit_test(test_period_survives),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
