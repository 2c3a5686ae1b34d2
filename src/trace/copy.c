/* copy.c: event by event, through the same door as a reader's. */
#include "trace/copy.h"

#include <string.h>

static neap_status copy_exec(const neap_trace *from, const neap_event *event, neap_trace *to)
{
    const char *name = neap_trace_exec_name(from, event->subject);
    neap_status status = np_trace_add_exec(to, name, strlen(name), event->start_ns, event->duration_ns);
    for (uint32_t i = 0; i < event->n_accesses && status == NEAP_OK; i++) {
        const neap_access *access = &from->accesses.items[event->first_access + i];
        status = np_trace_add_access(to, from->blocks.items[access->block].id, access->kind);
    }
    if (status == NEAP_OK) {
        to->events.items[to->events.n - 1].stream = event->stream;
    }
    return status;
}

static neap_status copy_event(const neap_trace *from, const neap_event *event, neap_trace *to)
{
    const neap_trace_block *block;
    if (event->kind == NEAP_EVENT_EXEC) {
        return copy_exec(from, event, to);
    }
    block = &from->blocks.items[event->subject];
    return event->kind == NEAP_EVENT_MALLOC ? np_trace_add_malloc(to, block->id, block->bytes)
                                            : np_trace_add_free(to, block->id);
}

/* A mark stands before an event, or after the last. */
static neap_status copy_events(const neap_trace *from, neap_trace *to)
{
    size_t mark = 0;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i <= from->events.n && status == NEAP_OK; i++) {
        while (mark < from->marks.n && from->marks.items[mark] == i && status == NEAP_OK) {
            status = np_trace_add_mark(to);
            mark++;
        }
        if (i < from->events.n && status == NEAP_OK) {
            status = copy_event(from, &from->events.items[i], to);
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

neap_status np_trace_copy(const neap_trace *trace, const neap_memory *memory, neap_trace **copy)
{
    neap_trace *made;
    neap_status status = np_trace_create(memory, &made);
    if (status != NEAP_OK) {
        return status;
    }
    for (size_t i = 0; i < trace->blocks.n && status == NEAP_OK; i++) {
        const neap_trace_block *block = &trace->blocks.items[i];
        if (block->malloc_event == NEAP_NEVER) {
            status = np_trace_add_live(made, block->id, block->bytes);
        }
    }
    if (status == NEAP_OK) {
        status = copy_events(trace, made);
    }
    if (status == NEAP_OK) {
        status = copy_meta(trace, made);
    }
    if (status != NEAP_OK) {
        neap_trace_free(made);
        return status;
    }
    made->is_csv = trace->is_csv;
    for (size_t i = 0; i < trace->blocks.n; i++) { /* in the same order, since they appear in it */
        made->blocks.items[i].fixed_offset = trace->blocks.items[i].fixed_offset;
    }
    *copy = made;
    return NEAP_OK;
}
