/* snapshot.c: from a snapshot of PyTorch to a trace of allocations.
 *
 * The list of a device is walked once, with the state of every address seen so far: live, freed, or never seen. The
 * program's wish is what counts: a block ends with "free_requested"; the "free_completed" that follows, sooner or later,
 * says when the allocator was ready, which varies from one iteration to the next.
 *
 * Lists begin somewhere: the allocator keeps the last so many entries. A block that is freed but was never allocated, and
 * one that the segments show in use but no entry names, was live before the first entry. Recording may also have been
 * paused. What is missing then cannot be told, so that the least is assumed: an address that is allocated twice was freed
 * in between, just before the second; one that is freed twice, or is in use again in the end, had a block that nothing is
 * known about, and that is left out. Such entries are counted as lost.
 *
 * Blocks are numbered in order: first the ones that were live before, by address, then by allocation. */
#include "trace/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "trace/message.h"
#include "trace/snapshot_names.h"

typedef enum address_state { ADDRESS_FREED, ADDRESS_REQUESTED, ADDRESS_LIVE } address_state;

typedef struct address {
    address_state state;
    uint32_t block; /* the last one here */
} address;

typedef struct known_block {
    uint64_t address;
    uint64_t bytes;
    bool was_live;          /* before the first entry */
    uint32_t id;            /* in the trace */
    np_pickle_value holder; /* the entry or the segment's block that has its stack; NONE: not known */
} known_block;

typedef struct step {
    uint32_t block;
    bool is_free;
} step;

typedef struct importer {
    const np_pickle *pickle;
    const char *name;
    const neap_memory *memory;
    neap_error *error;
    uint32_t device;
    np_map index_of; /* an address -> index into `addresses` */
    np_array(address) addresses;
    np_array(known_block) blocks;
    np_array(step) steps;
    uint64_t n_lost;
    np_pickle_value oom; /* where memory ran out; NONE: it did not */
} importer;

/* ---------------------------------------------------------------- looking things up ---- */

/* Where in the snapshot a message is about: "device_traces[0][17]". */
typedef struct place {
    const char *list;
    size_t outer;
    size_t inner;
} place;

static neap_status expected(const importer *in, const place *at, const char *what, const char *key, const char *found)
{
    return np_fail(in->error, NEAP_BAD_INPUT, "%s: %s[%zu][%zu]: expected %s as \"%s\", found %s", in->name, at->list,
                   at->outer, at->inner, what, key, found);
}

static neap_status get_uint(const importer *in, const place *at, np_pickle_value dict, const char *key,
                            uint64_t *number)
{
    np_pickle_value value;
    if (!np_pickle_find(in->pickle, dict, key, &value)) {
        return expected(in, at, "a number", key, "nothing");
    }
    return np_pickle_get_uint(value, number)
               ? NEAP_OK
               : expected(in, at, "a number of 0 or more", key,
                          value.kind == NP_PICKLE_INT ? "a negative one" : np_pickle_kind_name(value));
}

/* A size, which is never 0. */
static neap_status get_size(const importer *in, const place *at, np_pickle_value dict, const char *key, uint64_t *size)
{
    neap_status status = get_uint(in, at, dict, key, size);
    return status == NEAP_OK && *size == 0 ? expected(in, at, "a size above 0", key, "0") : status;
}

/* ---------------------------------------------------------------- addresses and blocks ---- */

static neap_status full(const importer *in)
{
    return np_fail(in->error, NEAP_TOO_LARGE,
                   "%s: expected at most 2^32 - 2 blocks and events, and less than 2^63 "
                   "bytes live at once, found more",
                   in->name);
}

/* The address's state; where it was never seen, *is_new, and it counts as freed. */
static neap_status look_up(importer *in, uint64_t where, address **found, bool *is_new)
{
    uint32_t index;
    bool is_known;
    neap_status status = in->addresses.n < NP_TRACE_MAX ? NEAP_OK : full(in);
    if (status == NEAP_OK) {
        status = np_array_reserve(in->memory, &in->addresses, in->addresses.n + 1);
    }
    if (status == NEAP_OK) {
        status = np_map_get_or_put(&in->index_of, where, (uint32_t)in->addresses.n, &index, &is_known);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (!is_known) {
        in->addresses.items[in->addresses.n++] = (address){.state = ADDRESS_FREED};
    }
    *found = &in->addresses.items[index];
    *is_new = !is_known;
    return NEAP_OK;
}

static neap_status add_block(importer *in, uint64_t where, uint64_t bytes, bool was_live, np_pickle_value holder,
                             address *at)
{
    neap_status status = in->blocks.n < NP_TRACE_MAX ? NEAP_OK : full(in);
    if (status == NEAP_OK) {
        known_block block = {.address = where, .bytes = bytes, .was_live = was_live, .holder = holder};
        status = np_array_push(in->memory, &in->blocks, block);
    }
    if (status == NEAP_OK) {
        at->state = ADDRESS_LIVE;
        at->block = (uint32_t)in->blocks.n - 1;
    }
    return status;
}

static neap_status add_step(importer *in, uint32_t block, bool is_free)
{
    if (in->steps.n >= NP_TRACE_MAX) {
        return full(in);
    }
    return np_array_push(in->memory, &in->steps, ((step){block, is_free}));
}

/* ---------------------------------------------------------------- entries ---- */

static neap_status take_alloc(importer *in, uint64_t where, uint64_t bytes, np_pickle_value entry)
{
    address *at;
    bool is_new;
    neap_status status = look_up(in, where, &at, &is_new);
    if (status == NEAP_OK && at->state == ADDRESS_LIVE) {
        in->n_lost++;
        status = add_step(in, at->block, true);
    }
    if (status == NEAP_OK) {
        status = add_block(in, where, bytes, false, entry, at);
    }
    return status == NEAP_OK ? add_step(in, at->block, false) : status;
}

static neap_status take_free(importer *in, uint64_t where, uint64_t bytes, bool is_completed)
{
    address *at;
    bool is_new;
    neap_status status = look_up(in, where, &at, &is_new);
    if (status == NEAP_OK && is_new) { /* the stack is that of the free, and says nothing of the block */
        status = add_block(in, where, bytes, true, (np_pickle_value){.kind = NP_PICKLE_NONE}, at);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (at->state == ADDRESS_LIVE) {
        at->state = is_completed ? ADDRESS_FREED : ADDRESS_REQUESTED;
        return add_step(in, at->block, true);
    }
    in->n_lost += at->state == ADDRESS_FREED || !is_completed;
    at->state = is_completed ? ADDRESS_FREED : ADDRESS_REQUESTED;
    return NEAP_OK;
}

static neap_status take_entry(importer *in, const place *at, np_pickle_value entry)
{
    np_pickle_value action;
    uint64_t where = 0;
    uint64_t bytes = 0;
    neap_status status;
    if (!np_pickle_find(in->pickle, entry, "action", &action)) {
        return expected(in, at, "a dict with a text", "action",
                        entry.kind == NP_PICKLE_DICT ? "nothing" : np_pickle_kind_name(entry));
    }
    bool is_alloc = np_pickle_is_text(in->pickle, action, "alloc");
    bool is_completed = np_pickle_is_text(in->pickle, action, "free_completed");
    if (np_pickle_is_text(in->pickle, action, "oom")) {
        in->oom = entry; /* the last one counts */
    }
    if (!is_alloc && !is_completed && !np_pickle_is_text(in->pickle, action, "free_requested")) {
        return NEAP_OK; /* segments come and go, snapshots are taken: nothing that the program asked for */
    }
    status = get_uint(in, at, entry, "addr", &where);
    if (status == NEAP_OK) {
        status = get_size(in, at, entry, "size", &bytes);
    }
    if (status != NEAP_OK) {
        return status;
    }
    return is_alloc ? take_alloc(in, where, bytes, entry) : take_free(in, where, bytes, is_completed);
}

static neap_status take_entries(importer *in, np_pickle_value list)
{
    place at = {"device_traces", in->device, 0};
    size_t n;
    const np_pickle_value *entries = np_pickle_items(in->pickle, list, &n);
    neap_status status = NEAP_OK;
    for (; at.inner < n && status == NEAP_OK; at.inner++) {
        status = take_entry(in, &at, entries[at.inner]);
    }
    return status;
}

/* ---------------------------------------------------------------- segments ---- */

/* What the program asked for; the oldest snapshots have it in a history, or not at all. */
static uint64_t requested_bytes(const importer *in, np_pickle_value block, uint64_t size)
{
    np_pickle_value value;
    uint64_t bytes = 0;
    if (np_pickle_find(in->pickle, block, "requested_size", &value) && np_pickle_get_uint(value, &bytes) && bytes > 0 &&
        bytes <= size) {
        return bytes;
    }
    return size;
}

static neap_status take_segment_block(importer *in, const place *at, np_pickle_value block, uint64_t *where)
{
    np_pickle_value state;
    uint64_t size = 0;
    address *found;
    bool is_new;
    neap_status status = get_size(in, at, block, "size", &size);
    if (status == NEAP_OK && np_pickle_find(in->pickle, block, "state", &state) &&
        np_pickle_is_text(in->pickle, state, "active_allocated")) {
        status = look_up(in, *where, &found, &is_new);
        if (status == NEAP_OK && is_new) {
            status = add_block(in, *where, requested_bytes(in, block, size), true, block, found);
        } else if (status == NEAP_OK && found->state != ADDRESS_LIVE) {
            in->n_lost++;
        }
    }
    *where += status == NEAP_OK ? size : 0; /* an address that wraps around names another block, no more */
    return status;
}

static neap_status take_segment(importer *in, size_t index, np_pickle_value segment)
{
    place at = {"segments", index, 0};
    np_pickle_value device;
    np_pickle_value list;
    const np_pickle_value *blocks;
    size_t n;
    uint64_t number = 0;
    uint64_t where = 0;
    neap_status status;
    if (!np_pickle_find(in->pickle, segment, "device", &device) || !np_pickle_get_uint(device, &number)) {
        return expected(in, &at, "a dict with a number", "device", "nothing of the kind");
    }
    if (number != in->device) {
        return NEAP_OK;
    }
    status = get_uint(in, &at, segment, "address", &where);
    if (status != NEAP_OK) {
        return status;
    }
    if (!np_pickle_find(in->pickle, segment, "blocks", &list) || list.kind != NP_PICKLE_LIST) {
        return expected(in, &at, "a list", "blocks", "nothing of the kind");
    }
    blocks = np_pickle_items(in->pickle, list, &n);
    for (; at.inner < n && status == NEAP_OK; at.inner++) {
        status = take_segment_block(in, &at, blocks[at.inner], &where);
    }
    return status;
}

static neap_status take_segments(importer *in)
{
    np_pickle_value list;
    const np_pickle_value *segments = NULL;
    size_t n = 0;
    neap_status status = NEAP_OK;
    if (np_pickle_find(in->pickle, in->pickle->root, "segments", &list)) {
        segments = np_pickle_items(in->pickle, list, &n);
    }
    for (size_t i = 0; i < n && status == NEAP_OK; i++) {
        status = take_segment(in, i, segments[i]);
    }
    return status;
}

/* ---------------------------------------------------------------- the trace ---- */

static int by_address(const void *left, const void *right)
{
    const known_block *a = *(known_block *const *)left;
    const known_block *b = *(known_block *const *)right;
    return a->address < b->address ? -1 : a->address > b->address;
}

/* No address has two blocks from before. */
static neap_status add_live(const importer *in, neap_trace *trace)
{
    np_array(known_block *) before = {0};
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < in->blocks.n && status == NEAP_OK; i++) {
        if (in->blocks.items[i].was_live) {
            status = np_array_push(in->memory, &before, &in->blocks.items[i]);
        }
    }
    if (status == NEAP_OK && before.n) {
        qsort(before.items, before.n, sizeof *before.items, by_address);
    }
    for (size_t i = 0; i < before.n && status == NEAP_OK; i++) {
        before.items[i]->id = (uint32_t)i;
        status = np_trace_add_live(trace, i, before.items[i]->bytes);
    }
    np_array_free(in->memory, &before);
    return status;
}

static neap_status add_steps(const importer *in, neap_trace *trace)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < in->steps.n && status == NEAP_OK; i++) {
        known_block *block = &in->blocks.items[in->steps.items[i].block];
        if (in->steps.items[i].is_free) {
            status = np_trace_add_free(trace, block->id);
        } else {
            block->id = (uint32_t)trace->blocks.n;
            status = np_trace_add_malloc(trace, block->id, block->bytes);
        }
    }
    return status;
}

static neap_status add_number(neap_trace *trace, const char *key, uint64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return np_trace_add_meta(trace, key, strlen(key), text, (size_t)n);
}

/* What was asked for, what the device had left, and by whom. */
static neap_status add_oom(const importer *in, neap_trace *trace)
{
    static const struct {
        const char *key;
        const char *meta;
    } numbers[] = {{"size", "oom_bytes"}, {"device_free", "oom_free"}};
    char name[NP_FRAME_NAME_BYTES];
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == NEAP_OK; i++) {
        np_pickle_value value;
        uint64_t number;
        if (np_pickle_find(in->pickle, in->oom, numbers[i].key, &value) && np_pickle_get_uint(value, &number)) {
            status = add_number(trace, numbers[i].meta, number);
        }
    }
    if (status == NEAP_OK && np_frames_name(in->pickle, in->oom, name)) {
        status = np_trace_add_meta(trace, "oom_at", strlen("oom_at"), name, strlen(name));
    }
    return status;
}

static neap_status name_blocks(const importer *in, neap_trace *trace)
{
    np_pickle_value *holders = np_memory_alloc(in->memory, in->blocks.n, sizeof *holders);
    neap_status status = holders ? NEAP_OK : NEAP_NO_MEMORY;
    for (size_t i = 0; i < in->blocks.n && status == NEAP_OK; i++) {
        holders[in->blocks.items[i].id] = in->blocks.items[i].holder;
    }
    if (status == NEAP_OK) {
        status = np_snapshot_name_blocks(in->pickle, holders, trace);
    }
    np_memory_free(in->memory, holders, in->blocks.n, sizeof *holders);
    return status;
}

static neap_status fill_trace(const importer *in, neap_trace *trace)
{
    static const char source[] = "pytorch-snapshot";
    neap_status status = np_trace_add_meta(trace, "source", 6, source, sizeof source - 1);
    if (status == NEAP_OK) {
        status = add_number(trace, "device", in->device);
    }
    if (status == NEAP_OK && in->n_lost) {
        status = add_number(trace, "lost_entries", in->n_lost);
    }
    if (status == NEAP_OK) {
        status = add_live(in, trace);
    }
    if (status == NEAP_OK) {
        status = add_steps(in, trace);
    }
    if (status == NEAP_OK && in->oom.kind == NP_PICKLE_DICT) {
        status = add_oom(in, trace);
    }
    if (status == NEAP_OK) {
        status = name_blocks(in, trace);
    }
    return status == NEAP_TOO_LARGE ? full(in) : status;
}

neap_status np_snapshot_to_trace(const np_pickle *pickle, const char *name, uint32_t device, np_pickle_value entries,
                                 const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    importer in = {
        .pickle = pickle, .name = name, .memory = np_memory_or_default(memory), .error = error, .device = device};
    neap_trace *made = NULL;
    neap_status status;
    np_map_init(&in.index_of, in.memory);
    status = take_entries(&in, entries);
    if (status == NEAP_OK) {
        status = take_segments(&in);
    }
    if (status == NEAP_OK) {
        status = np_trace_create(memory, &made);
    }
    if (status == NEAP_OK) {
        status = fill_trace(&in, made);
    }
    np_map_free(&in.index_of);
    np_array_free(in.memory, &in.addresses);
    np_array_free(in.memory, &in.blocks);
    np_array_free(in.memory, &in.steps);
    if (status != NEAP_OK) {
        neap_trace_free(made);
        return status == NEAP_NO_MEMORY ? np_fail_memory(error) : status;
    }
    *trace = made;
    return NEAP_OK;
}
