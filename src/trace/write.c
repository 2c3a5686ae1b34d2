/* write.c: a trace as "neap-trace 1": live blocks, then events with their marks, one record a line.
 *
 * Text is collected in a page and handed to a sink, which is a file, a deflater before another sink, or a test. */
#include "trace/write.h"

#include <string.h>

#include "base/status.h"
#include "trace/source.h"
#include "trace/zmemory.h"

#define PAGE_BYTES ((size_t)64 << 10)
#define FIELD_BYTES 24      /* at least a blank, a letter and 20 digits */
#define META_LINE_BYTES 100 /* `meta` lines are broken once they are longer */
#define GZIP_LEVEL 1        /* level 6 makes files a fifth smaller and takes four times as long */

typedef struct writer {
    np_sink *sink;
    void *user;
    neap_error *error;
    neap_status status; /* the first failure; nothing is put after it */
    size_t n;           /* bytes in the page */
    size_t n_line;      /* bytes of this line in pages already put */
    size_t line_at;     /* where this line begins in the page */
    char page[PAGE_BYTES];
} writer;

/* ---------------------------------------------------------------- text ---- */

static void flush(writer *w)
{
    if (w->status == NEAP_OK && w->n) {
        w->status = w->sink(w->user, w->page, w->n, w->error);
    }
    w->n_line += w->n - w->line_at;
    w->line_at = 0;
    w->n = 0;
}

static void put_bytes(writer *w, const char *bytes, size_t n)
{
    while (n) {
        size_t room = PAGE_BYTES - w->n;
        size_t part = n < room ? n : room;
        memcpy(w->page + w->n, bytes, part);
        w->n += part;
        bytes += part;
        n -= part;
        if (w->n == PAGE_BYTES) {
            flush(w);
        }
    }
}

static size_t line_bytes(const writer *w)
{
    return w->n_line + w->n - w->line_at;
}

static void end_line(writer *w)
{
    if (line_bytes(w) > NP_SOURCE_LINE_MAX && w->status == NEAP_OK) {
        w->status = np_fail(w->error, NEAP_TOO_LARGE, "a record is longer than the %zu bytes that a line may have",
                            NP_SOURCE_LINE_MAX);
    }
    put_bytes(w, "\n", 1);
    w->n_line = 0;
    w->line_at = w->n;
}

/* A blank, the letter if there is one, and the number. */
static void put_number(writer *w, char letter, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    if (PAGE_BYTES - w->n < FIELD_BYTES) {
        flush(w);
    }
    w->page[w->n++] = ' ';
    if (letter) {
        w->page[w->n++] = letter;
    }
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    memcpy(w->page + w->n, digits + at, sizeof digits - at);
    w->n += sizeof digits - at;
}

static void put_meta(writer *w, const neap_trace *trace)
{
    size_t at = 0;
    while (at < trace->meta.n) {
        put_bytes(w, "meta", 4);
        do {
            const char *key = trace->meta.items + at;
            size_t n_key = strlen(key);
            size_t n_value = strlen(key + n_key + 1);
            put_bytes(w, " ", 1);
            put_bytes(w, key, n_key);
            put_bytes(w, "=", 1);
            put_bytes(w, key + n_key + 1, n_value);
            at += n_key + n_value + 2;
        } while (at < trace->meta.n && line_bytes(w) < META_LINE_BYTES);
        end_line(w);
    }
}

static void put_exec(writer *w, const neap_trace *trace, const neap_event *event)
{
    static const char letters[] = "rwx"; /* by neap_access_kind */
    const char *name = neap_trace_exec_name(trace, event->subject);
    put_bytes(w, "exec ", 5);
    put_bytes(w, name, strlen(name));
    put_number(w, '\0', event->start_ns);
    put_number(w, '\0', event->duration_ns);
    for (uint32_t i = 0; i < event->n_accesses; i++) {
        const neap_access *access = &trace->accesses.items[event->first_access + i];
        put_number(w, letters[access->kind], trace->blocks.items[access->block].id);
    }
    end_line(w);
}

static void put_event(writer *w, const neap_trace *trace, const neap_event *event)
{
    const neap_trace_block *block;
    if (event->kind == NEAP_EVENT_EXEC) {
        put_exec(w, trace, event);
        return;
    }
    block = &trace->blocks.items[event->subject];
    if (event->kind == NEAP_EVENT_MALLOC) {
        put_bytes(w, "malloc", 6);
        put_number(w, '\0', block->id);
        put_number(w, '\0', block->bytes);
    } else {
        put_bytes(w, "free", 4);
        put_number(w, '\0', block->id);
    }
    end_line(w);
}

static void put_mark(writer *w)
{
    put_bytes(w, "iteration", 9);
    end_line(w);
}

static void put_trace(writer *w, const neap_trace *trace)
{
    size_t mark = 0;
    put_bytes(w, "neap-trace 1", 12);
    end_line(w);
    put_meta(w, trace);
    for (size_t i = 0; i < trace->blocks.n && trace->blocks.items[i].malloc_event == NEAP_NEVER; i++) {
        put_bytes(w, "live", 4);
        put_number(w, '\0', trace->blocks.items[i].id);
        put_number(w, '\0', trace->blocks.items[i].bytes);
        end_line(w);
    }
    for (size_t i = 0; i < trace->events.n && w->status == NEAP_OK; i++) {
        for (; mark < trace->marks.n && trace->marks.items[mark] == i; mark++) {
            put_mark(w);
        }
        put_event(w, trace, &trace->events.items[i]);
    }
    for (; mark < trace->marks.n && w->status == NEAP_OK; mark++) {
        put_mark(w);
    }
    flush(w);
}

neap_status np_write_text(const neap_trace *trace, np_sink *sink, void *user, neap_error *error)
{
    writer *w;
    neap_status status;
    for (size_t i = 0; i < trace->blocks.n; i++) {
        if (trace->blocks.items[i].fixed_offset != NEAP_NO_OFFSET) {
            return np_fail(error, NEAP_BAD_ARGUMENT, "a trace cannot say that block %llu has a fixed offset",
                           (unsigned long long)trace->blocks.items[i].id);
        }
    }
    w = np_memory_alloc(trace->memory, 1, sizeof *w);
    if (!w) {
        return np_fail_memory(error);
    }
    w->sink = sink;
    w->user = user;
    w->error = error;
    w->status = NEAP_OK;
    w->n = w->n_line = w->line_at = 0;
    put_trace(w, trace);
    status = w->status;
    np_memory_free(trace->memory, w, 1, sizeof *w);
    return status;
}

/* ---------------------------------------------------------------- gzip ---- */

typedef struct deflater {
    np_sink *sink;
    void *user;
    z_stream z;
    unsigned char page[PAGE_BYTES];
} deflater;

static neap_status run_deflater(deflater *d, int flush_mode, neap_error *error)
{
    do {
        size_t n;
        neap_status status;
        d->z.next_out = d->page;
        d->z.avail_out = PAGE_BYTES;
        (void)deflate(&d->z, flush_mode); /* fails only if called wrongly */
        n = PAGE_BYTES - d->z.avail_out;
        status = n ? d->sink(d->user, d->page, n, error) : NEAP_OK;
        if (status != NEAP_OK) {
            return status;
        }
    } while (d->z.avail_out == 0);
    return NEAP_OK;
}

static neap_status put_deflated(void *user, const void *bytes, size_t n_bytes, neap_error *error)
{
    deflater *d = user;
    d->z.next_in = (z_const Bytef *)bytes;
    d->z.avail_in = (uInt)n_bytes; /* one page */
    return run_deflater(d, Z_NO_FLUSH, error);
}

neap_status np_write_gzip(const neap_trace *trace, np_sink *sink, void *user, neap_error *error)
{
    neap_status status;
    deflater *d = np_memory_alloc_zero(trace->memory, 1, sizeof *d);
    if (!d) {
        return np_fail_memory(error);
    }
    d->sink = sink;
    d->user = user;
    np_zmemory_use(&d->z, trace->memory);
    if (deflateInit2(&d->z, GZIP_LEVEL, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
        np_memory_free(trace->memory, d, 1, sizeof *d);
        return np_fail_memory(error);
    }
    status = np_write_text(trace, put_deflated, d, error);
    if (status == NEAP_OK) {
        d->z.avail_in = 0;
        status = run_deflater(d, Z_FINISH, error);
    }
    (void)deflateEnd(&d->z);
    np_memory_free(trace->memory, d, 1, sizeof *d);
    return status;
}
