/* snapshot_write.c: a trace as a memory snapshot of PyTorch, for its viewer (pytorch.org/memory_viz).
 *
 * One device, one segment. Blocks from before the trace that are never freed appear in the segment alone, as they do in
 * a true snapshot. A trace has no call stacks; what the viewer shows in their place is a frame that names the block, the
 * event that made it and the first work that used it. Times are those of the work before, in microseconds, or the
 * events' own numbers where there is no work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/status.h"
#include "trace/message.h"
#include "trace/pickle_write.h"
#include "trace/snapshot.h"

#define ADDRESS_BASE ((uint64_t)0x7f0000000000) /* where a driver would begin, to within sight */
#define NAME_BYTES 400                          /* of an exec's name, made printable */

typedef enum word {
    WORD_ACTION,
    WORD_ADDR,
    WORD_SIZE,
    WORD_STREAM,
    WORD_TIME_US,
    WORD_FRAMES,
    WORD_FILENAME,
    WORD_LINE,
    WORD_NAME,
    WORD_ALLOC,
    WORD_FREE_REQUESTED,
    WORD_FREE_COMPLETED,
    WORD_SEGMENTS,
    WORD_DEVICE_TRACES,
    WORD_ALLOCATOR_SETTINGS,
    WORD_DEVICE,
    WORD_ADDRESS,
    WORD_TOTAL_SIZE,
    WORD_ALLOCATED_SIZE,
    WORD_ACTIVE_SIZE,
    WORD_REQUESTED_SIZE,
    WORD_SEGMENT_TYPE,
    WORD_LARGE,
    WORD_SEGMENT_POOL_ID,
    WORD_IS_EXPANDABLE,
    WORD_BLOCKS,
    WORD_STATE,
    WORD_ACTIVE_ALLOCATED,
    WORD_INACTIVE,
    N_WORDS,
} word;

/* Put again and again: each is spelled out once, and named by its number from then on. */
static const char *const words[] = {
    [WORD_ACTION] = "action",
    [WORD_ADDR] = "addr",
    [WORD_SIZE] = "size",
    [WORD_STREAM] = "stream",
    [WORD_TIME_US] = "time_us",
    [WORD_FRAMES] = "frames",
    [WORD_FILENAME] = "filename",
    [WORD_LINE] = "line",
    [WORD_NAME] = "name",
    [WORD_ALLOC] = "alloc",
    [WORD_FREE_REQUESTED] = "free_requested",
    [WORD_FREE_COMPLETED] = "free_completed",
    [WORD_SEGMENTS] = "segments",
    [WORD_DEVICE_TRACES] = "device_traces",
    [WORD_ALLOCATOR_SETTINGS] = "allocator_settings",
    [WORD_DEVICE] = "device",
    [WORD_ADDRESS] = "address",
    [WORD_TOTAL_SIZE] = "total_size",
    [WORD_ALLOCATED_SIZE] = "allocated_size",
    [WORD_ACTIVE_SIZE] = "active_size",
    [WORD_REQUESTED_SIZE] = "requested_size",
    [WORD_SEGMENT_TYPE] = "segment_type",
    [WORD_LARGE] = "large",
    [WORD_SEGMENT_POOL_ID] = "segment_pool_id",
    [WORD_IS_EXPANDABLE] = "is_expandable",
    [WORD_BLOCKS] = "blocks",
    [WORD_STATE] = "state",
    [WORD_ACTIVE_ALLOCATED] = "active_allocated",
    [WORD_INACTIVE] = "inactive",
};

typedef struct exporter {
    const neap_trace *trace;
    uint64_t *offsets;    /* [block] */
    uint64_t top;         /* bytes of the segment */
    uint32_t *first_used; /* [block]: the name of the first exec that touches it, NEAP_NEVER: none does */
    uint32_t *frame_memo; /* [block]: its frames */
    uint32_t *name_memo;  /* [name] */
    uint32_t word_memo[N_WORDS];
    uint64_t time_us;
    np_pickle_writer w;
} exporter;

/* ---------------------------------------------------------------- pieces ---- */

static void put_word(exporter *e, word which)
{
    if (e->word_memo[which] != NP_PICKLE_NO_MEMO) {
        np_pickle_put_again(&e->w, e->word_memo[which]);
        return;
    }
    np_pickle_put_text(&e->w, words[which], strlen(words[which]));
    e->word_memo[which] = np_pickle_put_memo(&e->w);
}

static void put_number(exporter *e, word key, uint64_t number)
{
    put_word(e, key);
    np_pickle_put_uint(&e->w, number);
}

static void put_choice(exporter *e, word key, word value)
{
    put_word(e, key);
    put_word(e, value);
}

/* Names come from files: whatever they are, this is text. */
static void put_exec_name(exporter *e, uint32_t name)
{
    char text[NAME_BYTES];
    const char *given = name == NEAP_NEVER ? "never_used" : neap_trace_exec_name(e->trace, name);
    if (name != NEAP_NEVER && e->name_memo[name] != NP_PICKLE_NO_MEMO) {
        np_pickle_put_again(&e->w, e->name_memo[name]);
        return;
    }
    (void)np_message_printable(given, strlen(given), text, sizeof text);
    np_pickle_put_text(&e->w, text, strlen(text));
    if (name != NEAP_NEVER) {
        e->name_memo[name] = np_pickle_put_memo(&e->w);
    }
}

/* "block 17:1234:gemm", as the viewer puts file, line and function together. */
static void put_frames(exporter *e, uint32_t index)
{
    const neap_trace_block *block = &e->trace->blocks.items[index];
    char text[32];
    int n = snprintf(text, sizeof text, "block %llu", (unsigned long long)block->id);
    put_word(e, WORD_FRAMES);
    if (e->frame_memo[index] != NP_PICKLE_NO_MEMO) {
        np_pickle_put_again(&e->w, e->frame_memo[index]);
        return;
    }
    np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
    e->frame_memo[index] = np_pickle_put_memo(&e->w);
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    put_word(e, WORD_FILENAME);
    np_pickle_put_text(&e->w, text, (size_t)n);
    put_number(e, WORD_LINE, block->malloc_event == NEAP_NEVER ? 0 : block->malloc_event);
    put_word(e, WORD_NAME);
    put_exec_name(e, e->first_used[index]);
    np_pickle_put_end(&e->w);
    np_pickle_put_end(&e->w);
}

/* ---------------------------------------------------------------- the device's list ---- */

static void put_entry(exporter *e, word action, uint32_t index)
{
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    put_choice(e, WORD_ACTION, action);
    put_number(e, WORD_ADDR, ADDRESS_BASE + e->offsets[index]);
    put_number(e, WORD_SIZE, e->trace->blocks.items[index].bytes);
    put_number(e, WORD_STREAM, 0);
    put_number(e, WORD_TIME_US, e->time_us);
    put_frames(e, index);
    np_pickle_put_end(&e->w);
}

static void put_entries(exporter *e)
{
    const neap_trace *trace = e->trace;
    bool has_execs = trace->name_at.n > 0;
    np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
    for (size_t i = 0; i < trace->events.n && e->w.status == NEAP_OK; i++) {
        const neap_event *event = &trace->events.items[i];
        if (!has_execs) {
            e->time_us = i;
        }
        if (event->kind == NEAP_EVENT_EXEC) {
            uint64_t end_us = event->start_ns / 1000 + event->duration_ns / 1000;
            e->time_us = end_us > e->time_us && end_us <= INT64_MAX ? end_us : e->time_us;
        } else if (event->kind == NEAP_EVENT_MALLOC) {
            put_entry(e, WORD_ALLOC, event->subject);
        } else {
            put_entry(e, WORD_FREE_REQUESTED, event->subject);
            put_entry(e, WORD_FREE_COMPLETED, event->subject);
        }
    }
    np_pickle_put_end(&e->w);
}

/* ---------------------------------------------------------------- the segment ---- */

typedef struct standing {
    uint64_t begin;
    uint64_t end;
    uint32_t block;
} standing;

static int by_begin(const void *left, const void *right)
{
    const standing *a = left;
    const standing *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static void put_segment_block(exporter *e, uint64_t begin, uint64_t end, uint32_t block)
{
    bool is_free = block == NEAP_NEVER;
    if (begin == end) {
        return;
    }
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    put_number(e, WORD_ADDRESS, ADDRESS_BASE + begin);
    put_number(e, WORD_SIZE, end - begin);
    put_number(e, WORD_REQUESTED_SIZE, is_free ? 0 : e->trace->blocks.items[block].bytes);
    put_choice(e, WORD_STATE, is_free ? WORD_INACTIVE : WORD_ACTIVE_ALLOCATED);
    if (is_free) {
        put_word(e, WORD_FRAMES);
        np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
        np_pickle_put_end(&e->w);
    } else {
        put_frames(e, block);
    }
    np_pickle_put_end(&e->w);
}

static void put_segment(exporter *e, const standing *blocks, size_t n_blocks)
{
    uint64_t at = 0;
    uint64_t taken = 0;
    uint64_t asked = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        taken += blocks[i].end - blocks[i].begin;
        asked += e->trace->blocks.items[blocks[i].block].bytes;
    }
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    put_number(e, WORD_DEVICE, 0);
    put_number(e, WORD_ADDRESS, ADDRESS_BASE);
    put_number(e, WORD_TOTAL_SIZE, e->top);
    put_number(e, WORD_ALLOCATED_SIZE, taken);
    put_number(e, WORD_ACTIVE_SIZE, taken);
    put_number(e, WORD_REQUESTED_SIZE, asked);
    put_number(e, WORD_STREAM, 0);
    put_choice(e, WORD_SEGMENT_TYPE, WORD_LARGE);
    put_word(e, WORD_SEGMENT_POOL_ID);
    np_pickle_put_uint_pair(&e->w, 0, 0);
    put_word(e, WORD_IS_EXPANDABLE);
    np_pickle_put_bool(&e->w, false);
    put_word(e, WORD_FRAMES);
    np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
    np_pickle_put_end(&e->w);
    put_word(e, WORD_BLOCKS);
    np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
    for (size_t i = 0; i < n_blocks && e->w.status == NEAP_OK; i++) {
        put_segment_block(e, at, blocks[i].begin, NEAP_NEVER);
        put_segment_block(e, blocks[i].begin, blocks[i].end, blocks[i].block);
        at = blocks[i].end;
    }
    put_segment_block(e, at, e->top, NEAP_NEVER);
    np_pickle_put_end(&e->w);
    np_pickle_put_end(&e->w);
}

static neap_status put_segments(exporter *e)
{
    const neap_memory *memory = e->trace->memory;
    np_array(standing) blocks = {0};
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < e->trace->blocks.n && status == NEAP_OK; i++) {
        const neap_trace_block *block = &e->trace->blocks.items[i];
        uint64_t bytes;
        if (block->free_event == NEAP_NEVER) {
            (void)np_round_up(block->bytes, NP_SNAPSHOT_ALIGNMENT, &bytes); /* it was placed: this does not overflow */
            standing here = {e->offsets[i], e->offsets[i] + bytes, (uint32_t)i};
            status = np_array_push(memory, &blocks, here);
        }
    }
    if (status == NEAP_OK) {
        if (blocks.n) {
            qsort(blocks.items, blocks.n, sizeof *blocks.items, by_begin);
        }
        np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
        if (e->top) {
            put_segment(e, blocks.items, blocks.n);
        }
        np_pickle_put_end(&e->w);
    }
    np_array_free(memory, &blocks);
    return status;
}

/* ---------------------------------------------------------------- all of it ---- */

static neap_status put_all(exporter *e)
{
    neap_status status;
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    put_word(e, WORD_DEVICE_TRACES);
    np_pickle_put_begin(&e->w, NP_PICKLE_LIST);
    put_entries(e);
    np_pickle_put_end(&e->w);
    put_word(e, WORD_SEGMENTS);
    status = put_segments(e);
    if (status != NEAP_OK) {
        return np_fail_memory(e->w.error);
    }
    put_word(e, WORD_ALLOCATOR_SETTINGS);
    np_pickle_put_begin(&e->w, NP_PICKLE_DICT);
    np_pickle_put_end(&e->w);
    np_pickle_put_end(&e->w);
    return np_pickle_put_finish(&e->w);
}

static void find_first_used(exporter *e)
{
    const neap_trace *trace = e->trace;
    for (size_t i = 0; i < trace->events.n; i++) {
        const neap_event *event = &trace->events.items[i];
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
            uint32_t block = trace->accesses.items[event->first_access + k].block;
            if (e->first_used[block] == NEAP_NEVER) {
                e->first_used[block] = event->subject;
            }
        }
    }
}

static neap_status prepare(exporter *e, neap_error *error)
{
    const neap_trace *trace = e->trace;
    uint64_t last;
    neap_status status;
    memset(e->word_memo, 0xff, sizeof e->word_memo); /* NP_PICKLE_NO_MEMO, NEAP_NEVER */
    memset(e->first_used, 0xff, trace->blocks.n * sizeof *e->first_used);
    memset(e->frame_memo, 0xff, trace->blocks.n * sizeof *e->frame_memo);
    memset(e->name_memo, 0xff, trace->name_at.n * sizeof *e->name_memo);
    find_first_used(e);
    status = np_snapshot_place(trace, trace->memory, e->offsets, &e->top);
    if (status == NEAP_NO_MEMORY) {
        return np_fail_memory(error);
    }
    if (status != NEAP_OK || !np_add_u64(ADDRESS_BASE, e->top, &last) || last > INT64_MAX) {
        return np_fail(error, NEAP_TOO_LARGE, "the blocks need more addresses than there are");
    }
    return NEAP_OK;
}

neap_status np_snapshot_write(const neap_trace *trace, np_sink *sink, void *user, neap_error *error)
{
    const neap_memory *memory = trace->memory;
    size_t n_blocks = trace->blocks.n;
    size_t n_names = trace->name_at.n;
    exporter *e = np_memory_alloc_zero(memory, 1, sizeof *e);
    neap_status status;
    if (!e) {
        return np_fail_memory(error);
    }
    e->trace = trace;
    e->offsets = np_memory_alloc(memory, n_blocks, sizeof *e->offsets);
    e->first_used = np_memory_alloc(memory, n_blocks, sizeof *e->first_used);
    e->frame_memo = np_memory_alloc(memory, n_blocks, sizeof *e->frame_memo);
    e->name_memo = np_memory_alloc(memory, n_names, sizeof *e->name_memo);
    if (e->offsets && e->first_used && e->frame_memo && e->name_memo) {
        status = prepare(e, error);
    } else {
        status = np_fail_memory(error);
    }
    if (status == NEAP_OK) {
        np_pickle_put_start(&e->w, sink, user, error);
        status = put_all(e);
    }
    np_memory_free(memory, e->offsets, n_blocks, sizeof *e->offsets);
    np_memory_free(memory, e->first_used, n_blocks, sizeof *e->first_used);
    np_memory_free(memory, e->frame_memo, n_blocks, sizeof *e->frame_memo);
    np_memory_free(memory, e->name_memo, n_names, sizeof *e->name_memo);
    np_memory_free(memory, e, 1, sizeof *e);
    return status;
}

/* ---------------------------------------------------------------- the public form ---- */

typedef struct putter {
    neap_put *put;
    void *user;
} putter;

static neap_status hand_over(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    const putter *p = user;
    return p->put(p->user, bytes, n_bytes) ? NEAP_OK : np_fail(error, NEAP_IO, "%s", neap_status_message(NEAP_IO));
}

neap_status neap_trace_put_snapshot(const neap_trace *trace, neap_put *put, void *user, neap_error *error)
{
    putter p = {put, user};
    if (error) {
        error->text[0] = '\0';
    }
    return np_snapshot_write(trace, hand_over, &p, error);
}
