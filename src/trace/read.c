/* read.c: opening a recorded program, whatever it is: a trace or a placement CSV, told apart by the first line. */
#include "trace/read.h"

#include <string.h>

#include "base/status.h"
#include "trace/csv.h"
#include "trace/read_scan.h"

static const char trace_word[] = "neap-trace";

static bool is_trace_header(const char *line, size_t n)
{
    size_t n_word = sizeof trace_word - 1;
    return n >= n_word && memcmp(line, trace_word, n_word) == 0 && (n == n_word || np_scan_is_blank(line[n_word]));
}

static neap_status read_version(np_source *source, const char *line, size_t n, neap_error *error)
{
    np_scan scan = {line + sizeof trace_word - 1, line + n};
    const char *version;
    (void)np_scan_blanks(&scan);
    version = scan.at;
    if (np_scan_field(&scan) != 1 || *version != '1') {
        scan.at = version;
        return np_source_expected(source, error, "version 1 of neap-trace", version, np_scan_found(&scan));
    }
    (void)np_scan_blanks(&scan);
    if (!np_scan_at_end(&scan)) {
        return np_source_expected(source, error, "the end of the line", scan.at, np_scan_found(&scan));
    }
    return NEAP_OK;
}

static neap_status read_into(np_source *source, neap_error *error, neap_trace *trace)
{
    const char *line;
    size_t n;
    neap_status status = np_source_next(source, error, &line, &n);
    if (status != NEAP_OK) {
        return status;
    }
    if (!line) {
        return np_source_fail_at(source, error, NEAP_BAD_INPUT, 1,
                                 "expected \"neap-trace 1\" or a CSV header, found an empty file");
    }
    if (is_trace_header(line, n)) {
        status = read_version(source, line, n, error);
        return status == NEAP_OK ? np_read_records(source, error, trace) : status;
    }
    if (n && memchr(line, ',', n)) {
        return np_csv_read(source, line, n, error, trace);
    }
    return np_source_expected(source, error, "\"neap-trace 1\" or a CSV header (id,lower,upper,size)", line, n);
}

/* Takes the source over. */
static neap_status read_all(np_source *source, const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    neap_trace *made;
    neap_status status = np_trace_create(memory, &made);
    if (status != NEAP_OK) {
        np_source_close(source);
        return np_fail_memory(error);
    }
    status = read_into(source, error, made);
    np_source_close(source);
    if (status != NEAP_OK) {
        neap_trace_free(made);
        return status;
    }
    *trace = made;
    return NEAP_OK;
}

neap_status neap_trace_read(const char *path, const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    np_source *source;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    status = np_source_open(path, memory, error, &source);
    return status == NEAP_OK ? read_all(source, memory, error, trace) : status;
}

neap_status neap_trace_parse(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                             neap_error *error, neap_trace **trace)
{
    np_source *source;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    status = np_source_open_bytes(bytes, n_bytes, name, memory, error, &source);
    return status == NEAP_OK ? read_all(source, memory, error, trace) : status;
}
