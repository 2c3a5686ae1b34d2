/* copy.c: event by event, through the same door as a reader's. */
#include "trace/copy.h"

#include <string.h>

/* What is copied, and to where. */
typedef struct copying {
    const neap_trace *from;
    neap_trace *to;
    uint64_t least; /* bytes: smaller blocks are left out */
} copying;

static neap_status copy_exec(const copying *c, const neap_event *event)
{
    const neap_trace *from = c->from;
    neap_trace *to = c->to;
    const char *name = neap_trace_exec_name(from, event->subject);
    neap_status status = np_trace_add_exec(to, name, strlen(name), event->start_ns, event->duration_ns);
    for (uint32_t i = 0; i < event->n_accesses && status == NEAP_OK; i++) {
        const neap_access *access = &from->accesses.items[event->first_access + i];
        const neap_trace_block *block = &from->blocks.items[access->block];
        status = block->bytes >= c->least ? np_trace_add_access(to, block->id, access->kind) : NEAP_OK;
    }
    if (status == NEAP_OK) {
        to->events.items[to->events.n - 1].stream = event->stream;
    }
    return status;
}

static neap_status copy_event(const copying *c, const neap_event *event)
{
    const neap_trace_block *block;
    if (event->kind == NEAP_EVENT_EXEC) {
        return copy_exec(c, event);
    }
    block = &c->from->blocks.items[event->subject];
    if (block->bytes < c->least) {
        return NEAP_OK;
    }
    return event->kind == NEAP_EVENT_MALLOC ? np_trace_add_malloc(c->to, block->id, block->bytes)
                                            : np_trace_add_free(c->to, block->id);
}

/* A mark stands before an event, or after the last. */
static neap_status copy_events(const copying *c)
{
    const neap_trace *from = c->from;
    size_t mark = 0;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i <= from->events.n && status == NEAP_OK; i++) {
        while (mark < from->marks.n && from->marks.items[mark] == i && status == NEAP_OK) {
            status = np_trace_add_mark(c->to);
            mark++;
        }
        if (i < from->events.n && status == NEAP_OK) {
            status = copy_event(c, &from->events.items[i]);
        }
    }
    return status;
}

static neap_status copy_meta(const neap_trace *from, neap_trace *to)
{
    neap_status status = NEAP_OK;
    for (size_t at = 0; at < from->meta.n && status == NEAP_OK;) {
        const char *key = &from->meta.items[at];
        const char *value = key + strlen(key) + 1;
        status = np_trace_add_meta(to, key, strlen(key), value, strlen(value));
        at += strlen(key) + strlen(value) + 2;
    }
    return status;
}

/* Blocks stand in the same order, since they appear in it. */
static void copy_offsets(const copying *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->from->blocks.n; i++) {
        if (c->from->blocks.items[i].bytes >= c->least) {
            c->to->blocks.items[n++].fixed_offset = c->from->blocks.items[i].fixed_offset;
        }
    }
}

neap_status np_trace_copy_large(const neap_trace *trace, uint64_t least, const neap_memory *memory, neap_trace **copy)
{
    copying c = {.from = trace, .least = least};
    neap_status status = np_trace_create(memory, &c.to);
    if (status != NEAP_OK) {
        return status;
    }
    for (size_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        if (block->malloc_event == NEAP_NEVER && block->bytes >= least) {
            status = np_trace_add_live(c.to, block->id, block->bytes);
        }
    }
    if (status == NEAP_OK) {
        status = copy_events(&c);
    }
    if (status == NEAP_OK) {
        status = copy_meta(trace, c.to);
    }
    if (status != NEAP_OK) {
        neap_trace_free(c.to);
        return status;
    }
    c.to->is_csv = trace->is_csv;
    copy_offsets(&c);
    *copy = c.to;
    return NEAP_OK;
}

neap_status np_trace_copy(const neap_trace *trace, const neap_memory *memory, neap_trace **copy)
{
    return np_trace_copy_large(trace, 0, memory, copy);
}
