/* read_records.c: the records of "neap-trace 1", one function each.
 *
 * A record is a word and its fields, separated by blanks. Every failure is one line that says what was expected where and
 * what stood there; the trace decides what is wrong (trace.h), and this file finds the words for it. */
#include <string.h>

#include "base/status.h"
#include "trace/read.h"
#include "trace/read_scan.h"

typedef struct reader {
    np_source *source;
    neap_error *error;
    neap_trace *trace;
    np_scan scan; /* what is left of the line */
} reader;

/* ---------------------------------------------------------------- messages ---- */

static neap_status expected(const reader *r, const char *what)
{
    size_t n = np_scan_found(&r->scan);
    if (n == 0 && !np_scan_at_end(&r->scan)) {
        n = 1; /* a blank where none may be */
    }
    return np_source_expected(r->source, r->error, what, r->scan.at, n);
}

static neap_status fail(const reader *r, neap_status status, const char *text)
{
    return np_source_fail_at(r->source, r->error, status, np_source_line(r->source), text);
}

/* Why the trace would not take a record, for the reasons that any record can meet. */
static neap_status refused(const reader *r, neap_status status)
{
    if (status == NEAP_NO_MEMORY) {
        return np_fail_memory(r->error);
    }
    if (status == NEAP_TOO_LARGE) {
        return fail(r, status, "expected at most 2^32 - 2 events, blocks and names, found one more");
    }
    return fail(r, NEAP_INTERNAL, "expected a record that the trace accepts, found another");
}

/* `at` is the block's number in the line. */
static neap_status refused_block(reader *r, neap_status status, const char *at, uint64_t id)
{
    if (status != NEAP_BAD_INPUT) {
        return refused(r, status);
    }
    r->scan.at = at;
    return expected(r, np_trace_find_block(r->trace, id) == NP_MAP_NONE ? "a block that was allocated before"
                                                                        : "a block that is not freed yet");
}

static neap_status refused_new_block(reader *r, neap_status status, const char *id_at, const char *bytes_at,
                                     uint64_t bytes)
{
    if (status == NEAP_BAD_INPUT && bytes == 0) {
        r->scan.at = bytes_at;
        return expected(r, "a size above 0");
    }
    if (status == NEAP_BAD_INPUT) {
        r->scan.at = id_at;
        return expected(r, "a block number not used before");
    }
    if (status == NEAP_TOO_LARGE && bytes > NP_TRACE_BYTES_MAX - r->trace->live_bytes) {
        r->scan.at = bytes_at;
        return expected(r, "less than 2^63 bytes live at once");
    }
    return refused(r, status);
}

/* ---------------------------------------------------------------- fields ---- */

/* What stands here is no number, or one with too many digits. */
static neap_status bad_number(const reader *r, const char *what, const char *what_if_large)
{
    bool is_large = np_scan_is_digits(r->scan.at, np_scan_found(&r->scan));
    return expected(r, is_large ? what_if_large : what);
}

#define NUMBER_FIELD(r, what, number) read_number(r, what, what " below 2^64", number)

static inline neap_status read_number(reader *r, const char *what, const char *what_if_large, uint64_t *number)
{
    const char *begin;
    if (!np_scan_blanks(&r->scan)) {
        return expected(r, what);
    }
    begin = r->scan.at;
    if (!np_scan_number(&r->scan, number)) {
        return bad_number(r, what, what_if_large);
    }
    if (!np_scan_at_end(&r->scan) && !np_scan_is_blank(*r->scan.at)) {
        r->scan.at = begin;
        return expected(r, what);
    }
    return NEAP_OK;
}

static inline neap_status read_end(reader *r)
{
    (void)np_scan_blanks(&r->scan);
    return np_scan_at_end(&r->scan) ? NEAP_OK : expected(r, "the end of the line");
}

static const char *after_blanks(const char *at)
{
    while (np_scan_is_blank(*at)) {
        at++;
    }
    return at;
}

/* ---------------------------------------------------------------- records ---- */

static neap_status read_new_block(reader *r, neap_status (*add)(neap_trace *, uint64_t, uint64_t))
{
    const char *id_at = r->scan.at;
    const char *bytes_at;
    uint64_t id = 0;
    uint64_t bytes = 0;
    neap_status status = NUMBER_FIELD(r, "a block number", &id);
    if (status != NEAP_OK) {
        return status;
    }
    bytes_at = r->scan.at;
    status = NUMBER_FIELD(r, "a size in bytes", &bytes);
    if (status == NEAP_OK) {
        status = read_end(r);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = add(r->trace, id, bytes);
    return status == NEAP_OK ? status
                             : refused_new_block(r, status, after_blanks(id_at), after_blanks(bytes_at), bytes);
}

static neap_status read_malloc(reader *r)
{
    return read_new_block(r, np_trace_add_malloc);
}

static neap_status read_live(reader *r)
{
    if (r->trace->events.n) {
        return fail(r, NEAP_BAD_INPUT, "expected every \"live\" before the first event, found one after it");
    }
    return read_new_block(r, np_trace_add_live);
}

static neap_status read_free(reader *r)
{
    const char *id_at = r->scan.at;
    uint64_t id = 0;
    neap_status status = NUMBER_FIELD(r, "a block number", &id);
    if (status == NEAP_OK) {
        status = read_end(r);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = np_trace_add_free(r->trace, id);
    return status == NEAP_OK ? status : refused_block(r, status, after_blanks(id_at), id);
}

/* "r12", "w12" or "x12". */
static inline neap_status read_access(reader *r)
{
    static const char what[] = "an access (r, w or x and a block number)";
    const char *begin = r->scan.at;
    neap_access_kind kind;
    uint64_t id = 0;
    neap_status status;

    switch (*begin) {
    case 'r':
        kind = NEAP_ACCESS_READ;
        break;
    case 'w':
        kind = NEAP_ACCESS_WRITE;
        break;
    case 'x':
        kind = NEAP_ACCESS_UNKNOWN;
        break;
    default:
        return expected(r, what);
    }
    r->scan.at++;
    if (!np_scan_number(&r->scan, &id)) {
        bool is_large = np_scan_is_digits(r->scan.at, np_scan_found(&r->scan));
        r->scan.at = begin;
        return expected(r, is_large ? "an access to a block number below 2^64" : what);
    }
    if (!np_scan_at_end(&r->scan) && !np_scan_is_blank(*r->scan.at)) {
        r->scan.at = begin;
        return expected(r, what);
    }
    status = np_trace_add_access(r->trace, id, kind);
    return status == NEAP_OK ? status : refused_block(r, status, begin, id);
}

static neap_status read_exec(reader *r)
{
    const char *name;
    size_t n_name;
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    neap_status status;

    (void)np_scan_blanks(&r->scan);
    name = r->scan.at;
    n_name = np_scan_field(&r->scan);
    if (n_name == 0) {
        return expected(r, "the name of an exec");
    }
    status = NUMBER_FIELD(r, "a start time in ns", &start_ns);
    if (status == NEAP_OK) {
        status = NUMBER_FIELD(r, "a duration in ns", &duration_ns);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = np_trace_add_exec(r->trace, name, n_name, start_ns, duration_ns);
    if (status != NEAP_OK) {
        return refused(r, status);
    }
    while (np_scan_blanks(&r->scan) && !np_scan_at_end(&r->scan)) {
        status = read_access(r);
        if (status != NEAP_OK) {
            return status;
        }
    }
    return NEAP_OK;
}

static neap_status read_mark(reader *r)
{
    neap_status status = read_end(r);
    if (status == NEAP_OK) {
        status = np_trace_add_mark(r->trace);
        return status == NEAP_OK ? status : refused(r, status);
    }
    return status;
}

static neap_status read_meta(reader *r)
{
    static const char what[] = "KEY=VALUE";
    if (!np_scan_blanks(&r->scan) || np_scan_at_end(&r->scan)) {
        return expected(r, what);
    }
    do {
        const char *key = r->scan.at;
        size_t n = np_scan_field(&r->scan);
        const char *sign = n ? memchr(key, '=', n) : NULL;
        neap_status status;
        if (!sign || sign == key || (!np_scan_at_end(&r->scan) && !np_scan_is_blank(*r->scan.at))) {
            r->scan.at = key;
            return expected(r, what);
        }
        status = np_trace_add_meta(r->trace, key, (size_t)(sign - key), sign + 1, n - 1 - (size_t)(sign - key));
        if (status != NEAP_OK) {
            return refused(r, status);
        }
    } while (np_scan_blanks(&r->scan) && !np_scan_at_end(&r->scan));
    return NEAP_OK;
}

/* The most frequent first. */
static const struct {
    const char *word;
    size_t n;
    neap_status (*read)(reader *r);
} records[] = {
    {"exec", 4, read_exec}, {"malloc", 6, read_malloc},  {"free", 4, read_free},
    {"live", 4, read_live}, {"iteration", 9, read_mark}, {"meta", 4, read_meta},
};

static neap_status read_record(reader *r)
{
    const char *word = r->scan.at;
    size_t n = np_scan_field(&r->scan);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        if (n == records[i].n && memcmp(word, records[i].word, n) == 0) {
            return records[i].read(r);
        }
    }
    r->scan.at = word;
    return expected(r, "exec, malloc, free, live, iteration or meta");
}

neap_status np_read_records(np_source *source, neap_error *error, neap_trace *trace)
{
    reader r = {.source = source, .error = error, .trace = trace};
    for (;;) {
        const char *line;
        size_t n;
        neap_status status = np_source_next(source, error, &line, &n);
        if (status != NEAP_OK || !line) {
            return status;
        }
        r.scan = (np_scan){line, line + n};
        status = read_record(&r);
        if (status != NEAP_OK) {
            return status;
        }
    }
}
