/* csv.c: placement problems as CSV.
 *
 * Rows are read in any order of columns; then every buffer becomes a malloc at `lower` and a free at `upper`, sorted by
 * time with frees before mallocs at equal times, so that the half-open lifetimes overlap as events exactly where they
 * overlap as numbers. The sort is a stable radix sort by bytes of the time: frees are laid down first, and ties stay as
 * they were. Bytes in which no two times differ cost nothing. */
#include "trace/csv.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "trace/read_scan.h"

enum { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_OFFSET, N_COLUMNS };

static const char *const column_names[N_COLUMNS] = {"id", "lower", "upper", "size", "offset"};

/* What a field must be, and what is said of one that has too many digits. */
static const char *const column_texts[N_COLUMNS][2] = {
    {"an id", "an id"},
    {"a lower time", "a lower time below 2^64"},
    {"an upper time", "an upper time below 2^64"},
    {"a size in bytes", "a size in bytes below 2^64"},
    {"an offset, -1 or nothing", "an offset below 2^63"},
};

typedef struct row {
    uint64_t values[N_COLUMNS];
    uint64_t line;
} row;

typedef struct moment {
    uint64_t time;
    uint32_t row;
    bool is_malloc;
} moment;

typedef struct importer {
    np_source *source;
    neap_error *error;
    neap_trace *trace;
    int columns[N_COLUMNS]; /* by place in the file */
    int n_columns;
    bool has_labels; /* some id is no number: rows are numbered instead */
    np_array(row) rows;
    np_scan scan; /* what is left of the line */
} importer;

/* ---------------------------------------------------------------- lines ---- */

/* The bytes from here to the next comma or the line's end, without blanks before that. */
static size_t field_bytes(const np_scan *scan)
{
    const char *comma = scan->at == scan->end ? NULL : memchr(scan->at, ',', (size_t)(scan->end - scan->at));
    size_t n = (size_t)((comma ? comma : scan->end) - scan->at);
    while (n && np_scan_is_blank(scan->at[n - 1])) {
        n--;
    }
    return n;
}

static neap_status expected(const importer *im, const char *what)
{
    size_t n = field_bytes(&im->scan);
    char text[128];
    if (n) {
        return np_source_expected(im->source, im->error, what, im->scan.at, n);
    }
    (void)snprintf(text, sizeof text, "expected %s, found nothing", what);
    return np_source_fail_at(im->source, im->error, NEAP_BAD_INPUT, np_source_line(im->source), text);
}

static neap_status fail_at(const importer *im, uint64_t line, const char *text)
{
    return np_source_fail_at(im->source, im->error, NEAP_BAD_INPUT, line, text);
}

/* Moves behind the comma after a field; false if there is none: the line ends here. */
static bool next_field(importer *im)
{
    (void)np_scan_blanks(&im->scan);
    if (np_scan_at_end(&im->scan)) {
        return false;
    }
    im->scan.at++;
    return true;
}

static neap_status read_header(importer *im)
{
    static const char what[] = "a column named id, lower, upper, size or offset, each once";
    unsigned seen = 0;
    do {
        size_t n;
        int column = 0;
        (void)np_scan_blanks(&im->scan);
        n = field_bytes(&im->scan);
        while (column < N_COLUMNS &&
               (strlen(column_names[column]) != n || memcmp(column_names[column], im->scan.at, n) != 0)) {
            column++;
        }
        if (column == N_COLUMNS || (seen & 1u << column)) {
            return expected(im, what);
        }
        seen |= 1u << column;
        im->columns[im->n_columns++] = column;
        im->scan.at += n;
    } while (next_field(im));
    for (int column = 0; column < COLUMN_OFFSET; column++) {
        if (!(seen & 1u << column)) {
            char text[64];
            (void)snprintf(text, sizeof text, "expected a column named %s, found none", column_names[column]);
            return fail_at(im, np_source_line(im->source), text);
        }
    }
    return NEAP_OK;
}

/* Any text without commas and control characters; its number if it is one. */
static neap_status read_label(importer *im, uint64_t *id)
{
    size_t n = field_bytes(&im->scan);
    np_scan number = im->scan;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)im->scan.at[i] < ' ' && im->scan.at[i] != '\t') {
            return expected(im, "an id without control characters");
        }
    }
    if (n == 0) {
        return expected(im, column_texts[COLUMN_ID][0]);
    }
    *id = 0;
    if (!np_scan_number(&number, id) || number.at != im->scan.at + n) {
        im->has_labels = true;
    }
    im->scan.at += n;
    return NEAP_OK;
}

static neap_status read_value(importer *im, int column, uint64_t *value)
{
    const char *begin = im->scan.at;
    size_t n;
    if (column == COLUMN_OFFSET) {
        n = field_bytes(&im->scan);
        if (n == 0 || (n == 2 && memcmp(begin, "-1", 2) == 0)) {
            *value = NEAP_NO_OFFSET;
            im->scan.at += n;
            return NEAP_OK;
        }
    }
    if (np_scan_number(&im->scan, value)) {
        const char *end = im->scan.at;
        (void)np_scan_blanks(&im->scan);
        if ((np_scan_at_end(&im->scan) || *im->scan.at == ',') &&
            (column != COLUMN_OFFSET || *value <= NP_TRACE_BYTES_MAX)) {
            im->scan.at = end;
            return NEAP_OK;
        }
    }
    im->scan.at = begin;
    return expected(im, column_texts[column][np_scan_is_digits(begin, field_bytes(&im->scan))]);
}

static neap_status check_row(const importer *im, const row *made)
{
    char text[160];
    const uint64_t *values = made->values;
    if (values[COLUMN_LOWER] >= values[COLUMN_UPPER]) {
        (void)snprintf(text, sizeof text, "expected upper above lower, found lower %llu and upper %llu",
                       (unsigned long long)values[COLUMN_LOWER], (unsigned long long)values[COLUMN_UPPER]);
        return fail_at(im, made->line, text);
    }
    if (values[COLUMN_SIZE] == 0) {
        return fail_at(im, made->line, "expected a size above 0, found \"0\"");
    }
    if (values[COLUMN_OFFSET] != NEAP_NO_OFFSET && values[COLUMN_SIZE] > NP_TRACE_BYTES_MAX - values[COLUMN_OFFSET]) {
        return fail_at(im, made->line, "expected offset + size below 2^63, found more");
    }
    return NEAP_OK;
}

static neap_status read_row(importer *im)
{
    row made = {.line = np_source_line(im->source)};
    char text[64];
    bool more = true;
    neap_status status;

    made.values[COLUMN_OFFSET] = NEAP_NO_OFFSET;
    for (int i = 0; i < im->n_columns; i++) {
        int column = im->columns[i];
        if (!more) {
            (void)snprintf(text, sizeof text, "expected %d fields, found %d", im->n_columns, i);
            return fail_at(im, made.line, text);
        }
        (void)np_scan_blanks(&im->scan);
        status =
            column == COLUMN_ID ? read_label(im, &made.values[column]) : read_value(im, column, &made.values[column]);
        if (status != NEAP_OK) {
            return status;
        }
        more = next_field(im);
    }
    if (more) {
        (void)snprintf(text, sizeof text, "expected %d fields, found more", im->n_columns);
        return fail_at(im, made.line, text);
    }
    status = check_row(im, &made);
    if (status != NEAP_OK) {
        return status;
    }
    if (im->rows.n >= NP_TRACE_MAX / 2) {
        return np_source_fail_at(im->source, im->error, NEAP_TOO_LARGE, made.line,
                                 "expected less than 2^31 buffers, found more");
    }
    status = np_array_push(im->trace->memory, &im->rows, made);
    return status == NEAP_OK ? status : np_fail_memory(im->error);
}

static neap_status read_rows(importer *im)
{
    for (;;) {
        const char *line;
        size_t n;
        neap_status status = np_source_next(im->source, im->error, &line, &n);
        if (status != NEAP_OK || !line) {
            return status;
        }
        im->scan = (np_scan){line, line + n};
        (void)np_scan_blanks(&im->scan);
        if (np_scan_at_end(&im->scan)) {
            continue; /* an empty line */
        }
        status = read_row(im);
        if (status != NEAP_OK) {
            return status;
        }
    }
}

/* ---------------------------------------------------------------- events ---- */

static void number_rows(importer *im)
{
    for (size_t i = 0; i < im->rows.n; i++) {
        im->rows.items[i].values[COLUMN_ID] = i;
    }
}

/* Most files number their buffers upwards, which proves them distinct without a map. */
static bool ids_ascend(const importer *im)
{
    for (size_t i = 1; i < im->rows.n; i++) {
        if (im->rows.items[i].values[COLUMN_ID] <= im->rows.items[i - 1].values[COLUMN_ID]) {
            return false;
        }
    }
    return true;
}

static neap_status check_ids(const importer *im)
{
    np_map seen;
    neap_status status = NEAP_OK;

    np_map_init(&seen, im->trace->memory);
    for (size_t i = 0; i < im->rows.n && status == NEAP_OK; i++) {
        const row *at = &im->rows.items[i];
        uint32_t existing;
        bool found;
        status = np_map_get_or_put(&seen, at->values[COLUMN_ID], (uint32_t)i, &existing, &found);
        if (status != NEAP_OK) {
            status = np_fail_memory(im->error);
        } else if (found) {
            char text[128];
            (void)snprintf(text, sizeof text, "expected an id not used before, found %llu, which line %llu has",
                           (unsigned long long)at->values[COLUMN_ID],
                           (unsigned long long)im->rows.items[existing].line);
            status = fail_at(im, at->line, text);
        }
    }
    np_map_free(&seen);
    return status;
}

/* Where some id is a text, rows are numbered; otherwise no two ids may be equal. */
static neap_status settle_ids(importer *im)
{
    if (im->has_labels) {
        number_rows(im);
        return NEAP_OK;
    }
    return ids_ascend(im) ? NEAP_OK : check_ids(im);
}

/* One stable pass by the byte of the time at `shift`; false, with nothing done, if all have the same. */
static bool sort_pass(const moment *from, moment *to, size_t n, unsigned shift)
{
    size_t starts[256] = {0};
    size_t start = 0;
    for (size_t i = 0; i < n; i++) {
        starts[from[i].time >> shift & 255]++;
    }
    if (n == 0 || starts[from[0].time >> shift & 255] == n) {
        return false;
    }
    for (size_t i = 0; i < 256; i++) {
        size_t count = starts[i];
        starts[i] = start;
        start += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[starts[from[i].time >> shift & 255]++] = from[i];
    }
    return true;
}

static neap_status add_moment(const importer *im, const moment *at)
{
    const row *row_at = &im->rows.items[at->row];
    uint64_t id = row_at->values[COLUMN_ID];
    neap_status status;

    if (!at->is_malloc) {
        status = np_trace_add_free(im->trace, id);
    } else {
        status = np_trace_add_malloc(im->trace, id, row_at->values[COLUMN_SIZE]);
        if (status == NEAP_OK) {
            im->trace->blocks.items[im->trace->blocks.n - 1].fixed_offset = row_at->values[COLUMN_OFFSET];
        }
    }
    if (status == NEAP_TOO_LARGE) {
        return fail_at(im, row_at->line, "expected less than 2^63 bytes live at once, found more");
    }
    return status == NEAP_OK ? status : np_fail_memory(im->error);
}

/* `moments` has room for two times 2 * rows. */
static neap_status add_events(importer *im, moment *moments)
{
    size_t n_rows = im->rows.n;
    size_t n = 2 * n_rows;
    moment *from = moments;
    moment *to = moments + n;

    for (size_t i = 0; i < n_rows; i++) {
        from[i] = (moment){im->rows.items[i].values[COLUMN_UPPER], (uint32_t)i, false};
        from[n_rows + i] = (moment){im->rows.items[i].values[COLUMN_LOWER], (uint32_t)i, true};
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (sort_pass(from, to, n, shift)) {
            moment *sorted = to;
            to = from;
            from = sorted;
        }
    }
    for (size_t i = 0; i < n; i++) {
        neap_status status = add_moment(im, &from[i]);
        if (status != NEAP_OK) {
            return status;
        }
    }
    return NEAP_OK;
}

static neap_status make_events(importer *im)
{
    const neap_memory *memory = im->trace->memory;
    size_t n = 4 * im->rows.n; /* rows number less than 2^31 */
    moment *moments = np_memory_alloc(memory, n, sizeof *moments);
    neap_status status;
    if (!moments) {
        return np_fail_memory(im->error);
    }
    status = add_events(im, moments);
    np_memory_free(memory, moments, n, sizeof *moments);
    return status;
}

neap_status np_csv_read(np_source *source, const char *header, size_t n_header, neap_error *error, neap_trace *trace)
{
    importer im = {.source = source, .error = error, .trace = trace, .scan = {header, header + n_header}};
    neap_status status = read_header(&im);
    if (status == NEAP_OK) {
        status = read_rows(&im);
    }
    if (status == NEAP_OK) {
        status = settle_ids(&im);
    }
    if (status == NEAP_OK) {
        status = make_events(&im);
    }
    if (status == NEAP_OK) {
        trace->is_csv = true;
    }
    np_array_free(trace->memory, &im.rows);
    return status;
}
