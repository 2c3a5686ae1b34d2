/* trace.c: a recorded program in memory.
 *
 * Events, blocks and accesses are flat arrays that name each other by index. Block numbers and exec names of the file
 * become indices as they are added, so that no later stage hashes anything. Numbers go through a map with a small
 * direct-mapped cache before it: programs touch the blocks they have just made, and the map of a long trace is far
 * larger than the processor's cache. Names go through a map of their hashes and are compared byte by byte. */
#include "trace/trace.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

neap_status np_trace_create(const neap_memory *memory, neap_trace **trace)
{
    neap_trace *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = np_memory_or_default(memory);
    np_map_init(&made->block_of_id, made->memory);
    np_map_init(&made->name_of_hash, made->memory);
    *trace = made;
    return NEAP_OK;
}

void neap_trace_free(neap_trace *trace)
{
    if (!trace) {
        return;
    }
    np_array_free(trace->memory, &trace->events);
    np_array_free(trace->memory, &trace->blocks);
    np_array_free(trace->memory, &trace->accesses);
    np_array_free(trace->memory, &trace->marks);
    np_array_free(trace->memory, &trace->names);
    np_array_free(trace->memory, &trace->name_at);
    np_array_free(trace->memory, &trace->meta);
    np_map_free(&trace->block_of_id);
    np_map_free(&trace->name_of_hash);
    np_memory_free(trace->memory, trace, 1, sizeof *trace);
}

uint32_t np_trace_find_block(const neap_trace *trace, uint64_t id)
{
    uint32_t guess = trace->recent[id & (NP_TRACE_RECENT - 1)];
    if (guess < trace->blocks.n && trace->blocks.items[guess].id == id) {
        return guess;
    }
    return np_map_get(&trace->block_of_id, id);
}

/* ---------------------------------------------------------------- appending ---- */

/* The index of a block that is live now, or NP_MAP_NONE. */
static uint32_t find_live(neap_trace *trace, uint64_t id)
{
    uint32_t block = np_trace_find_block(trace, id);
    if (block == NP_MAP_NONE || trace->blocks.items[block].free_event != NEAP_NEVER) {
        return NP_MAP_NONE;
    }
    trace->recent[id & (NP_TRACE_RECENT - 1)] = block;
    return block;
}

static neap_status reserve_event(neap_trace *trace)
{
    if (trace->events.n >= NP_TRACE_MAX) {
        return NEAP_TOO_LARGE;
    }
    return np_array_reserve(trace->memory, &trace->events, trace->events.n + 1);
}

static neap_status add_block(neap_trace *trace, uint64_t id, uint64_t bytes, uint32_t malloc_event)
{
    uint32_t index = (uint32_t)trace->blocks.n;
    uint32_t existing;
    bool found;
    neap_status status;

    if (bytes == 0) {
        return NEAP_BAD_INPUT;
    }
    if (trace->blocks.n >= NP_TRACE_MAX || bytes > NP_TRACE_BYTES_MAX - trace->live_bytes) {
        return NEAP_TOO_LARGE;
    }
    status = np_array_reserve(trace->memory, &trace->blocks, trace->blocks.n + 1);
    if (status == NEAP_OK) {
        status = np_map_get_or_put(&trace->block_of_id, id, index, &existing, &found);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (found) {
        return NEAP_BAD_INPUT;
    }
    trace->blocks.items[trace->blocks.n++] = (neap_trace_block){id, bytes, NEAP_NO_OFFSET, malloc_event, NEAP_NEVER};
    trace->live_bytes += bytes;
    trace->recent[id & (NP_TRACE_RECENT - 1)] = index;
    return NEAP_OK;
}

neap_status np_trace_add_live(neap_trace *trace, uint64_t id, uint64_t bytes)
{
    return trace->events.n ? NEAP_BAD_INPUT : add_block(trace, id, bytes, NEAP_NEVER);
}

neap_status np_trace_add_malloc(neap_trace *trace, uint64_t id, uint64_t bytes)
{
    uint32_t event = (uint32_t)trace->events.n;
    neap_status status = reserve_event(trace);
    if (status == NEAP_OK) {
        status = add_block(trace, id, bytes, event);
    }
    if (status == NEAP_OK) {
        trace->events.items[trace->events.n++] =
            (neap_event){.kind = NEAP_EVENT_MALLOC, .subject = (uint32_t)trace->blocks.n - 1};
    }
    return status;
}

neap_status np_trace_add_free(neap_trace *trace, uint64_t id)
{
    uint32_t block = find_live(trace, id);
    neap_status status = block == NP_MAP_NONE ? NEAP_BAD_INPUT : reserve_event(trace);
    if (status == NEAP_OK) {
        trace->blocks.items[block].free_event = (uint32_t)trace->events.n;
        trace->live_bytes -= trace->blocks.items[block].bytes;
        trace->events.items[trace->events.n++] = (neap_event){.kind = NEAP_EVENT_FREE, .subject = block};
    }
    return status;
}

/* One field of a line: no blank, no control character. DEL and what is not ASCII is left to the reader's eyes. */
static bool is_field(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] <= ' ') {
            return false;
        }
    }
    return true;
}

static bool has_name(const neap_trace *trace, uint32_t index, const char *name, size_t n)
{
    size_t begin = trace->name_at.items[index];
    size_t end = index + 1 < trace->name_at.n ? trace->name_at.items[index + 1] : trace->names.n;
    return end - begin == n + 1 && memcmp(trace->names.items + begin, name, n) == 0;
}

static neap_status add_name(neap_trace *trace, uint64_t key, const char *name, size_t n, uint32_t *index)
{
    size_t n_chars;
    uint32_t existing;
    bool found;
    neap_status status;

    if (n == 0 || !is_field(name, n)) {
        return NEAP_BAD_INPUT;
    }
    if (!np_add_size(trace->names.n, n, &n_chars) || n_chars >= UINT32_MAX || trace->name_at.n >= NP_TRACE_MAX) {
        return NEAP_TOO_LARGE;
    }
    status = np_array_reserve(trace->memory, &trace->names, n_chars + 1);
    if (status == NEAP_OK) {
        status = np_array_reserve(trace->memory, &trace->name_at, trace->name_at.n + 1);
    }
    if (status == NEAP_OK) {
        status = np_map_get_or_put(&trace->name_of_hash, key, (uint32_t)trace->name_at.n, &existing, &found);
    }
    if (status != NEAP_OK) {
        return status;
    }
    *index = (uint32_t)trace->name_at.n;
    trace->name_at.items[trace->name_at.n++] = (uint32_t)trace->names.n;
    memcpy(trace->names.items + trace->names.n, name, n);
    trace->names.items[n_chars] = '\0';
    trace->names.n = n_chars + 1;
    return NEAP_OK;
}

neap_status np_trace_add_exec(neap_trace *trace, const char *name, size_t name_bytes, uint64_t start_ns,
                              uint64_t duration_ns)
{
    uint64_t key = np_hash_bytes(name, name_bytes, trace->name_of_hash.seed);
    uint32_t index;
    neap_status status = reserve_event(trace);
    if (status != NEAP_OK) {
        return status;
    }
    /* Equal hashes do not make equal names: try the keys that follow until one has this name, or none. */
    while ((index = np_map_get(&trace->name_of_hash, key)) != NP_MAP_NONE &&
           !has_name(trace, index, name, name_bytes)) {
        key++;
    }
    if (index == NP_MAP_NONE) {
        status = add_name(trace, key, name, name_bytes, &index);
    }
    if (status == NEAP_OK) {
        trace->events.items[trace->events.n++] = (neap_event){.kind = NEAP_EVENT_EXEC,
                                                              .subject = index,
                                                              .first_access = trace->accesses.n,
                                                              .start_ns = start_ns,
                                                              .duration_ns = duration_ns};
    }
    return status;
}

neap_status np_trace_add_access(neap_trace *trace, uint64_t id, neap_access_kind kind)
{
    neap_event *exec = trace->events.n ? &trace->events.items[trace->events.n - 1] : NULL;
    uint32_t block;
    neap_status status;

    if (!exec || exec->kind != NEAP_EVENT_EXEC) {
        return NEAP_BAD_ARGUMENT;
    }
    block = find_live(trace, id);
    if (block == NP_MAP_NONE) {
        return NEAP_BAD_INPUT;
    }
    if (exec->n_accesses >= NP_TRACE_MAX) {
        return NEAP_TOO_LARGE;
    }
    status = np_array_push(trace->memory, &trace->accesses, ((neap_access){block, kind}));
    if (status == NEAP_OK) {
        exec->n_accesses++;
    }
    return status;
}

neap_status np_trace_add_mark(neap_trace *trace)
{
    return np_array_push(trace->memory, &trace->marks, (uint32_t)trace->events.n);
}

neap_status np_trace_add_meta(neap_trace *trace, const char *key, size_t key_bytes, const char *value,
                              size_t value_bytes)
{
    size_t n_chars;
    char *end;
    neap_status status;

    if (key_bytes == 0 || memchr(key, '=', key_bytes) || !is_field(key, key_bytes) || !is_field(value, value_bytes)) {
        return NEAP_BAD_INPUT;
    }
    if (!np_add_size(key_bytes, value_bytes, &n_chars) || !np_add_size(n_chars, trace->meta.n, &n_chars) ||
        !np_add_size(n_chars, 2, &n_chars)) {
        return NEAP_TOO_LARGE;
    }
    status = np_array_reserve(trace->memory, &trace->meta, n_chars);
    if (status != NEAP_OK) {
        return status;
    }
    end = trace->meta.items + trace->meta.n;
    memcpy(end, key, key_bytes);
    end[key_bytes] = '\0';
    if (value_bytes) {
        memcpy(end + key_bytes + 1, value, value_bytes);
    }
    end[key_bytes + 1 + value_bytes] = '\0';
    trace->meta.n = n_chars;
    return NEAP_OK;
}

/* ---------------------------------------------------------------- views ---- */

const neap_event *neap_trace_events(const neap_trace *trace, size_t *n_events)
{
    *n_events = trace->events.n;
    return trace->events.items;
}

const neap_trace_block *neap_trace_blocks(const neap_trace *trace, size_t *n_blocks)
{
    *n_blocks = trace->blocks.n;
    return trace->blocks.items;
}

const neap_access *neap_trace_accesses(const neap_trace *trace, size_t *n_accesses)
{
    *n_accesses = trace->accesses.n;
    return trace->accesses.items;
}

const char *neap_trace_exec_name(const neap_trace *trace, uint32_t name_index)
{
    return name_index < trace->name_at.n ? trace->names.items + trace->name_at.items[name_index] : NULL;
}

const char *neap_trace_meta(const neap_trace *trace, const char *key)
{
    const char *found = NULL;
    for (size_t i = 0; i < trace->meta.n;) {
        const char *name = trace->meta.items + i;
        const char *value = name + strlen(name) + 1;
        if (strcmp(name, key) == 0) {
            found = value;
        }
        i = (size_t)(value - trace->meta.items) + strlen(value) + 1;
    }
    return found;
}

bool neap_trace_is_csv(const neap_trace *trace)
{
    return trace->is_csv;
}
