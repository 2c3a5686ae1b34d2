/* report_data.h: what the files that write a subject for the page share. */
#ifndef CLI_REPORT_DATA_H
#define CLI_REPORT_DATA_H

#include <inttypes.h>
#include <math.h>

#include "report.h"

typedef struct report_writer {
    json *out;
    const report_request *request;
    const report_subject *subject;
    const neap_plan_summary *pool;
    const neap_event *events; /* of the trace */
    size_t n_events;
    const neap_trace_block *blocks;
    size_t n_blocks;
    const neap_access *accesses;
    const neap_plan_buffer *buffers;
    size_t n_buffers;
    uint32_t length;  /* events of a period */
    uint32_t *row_of; /* [block of the trace]: its row, or UINT32_MAX */
    uint32_t *first;  /* [row], and one more: into the accesses, once they are by row */
    uint32_t n_rows;
} report_writer;

/* ---- columns ---- */

/* A list of numbers on one line. `value` is an expression of i. */
#define PUT_COLUMN(w, key, n, value)                                                          \
    do {                                                                                      \
        json_array_begin((w)->out, (key));                                                    \
        for (size_t i = 0; i < (n); i++) {                                                    \
            (void)fprintf((w)->out->file, "%s%" PRIu64, i > 0 ? "," : "", (uint64_t)(value)); \
        }                                                                                     \
        json_array_end((w)->out);                                                             \
    } while (0)

/* The same for times: whole ns, -1 where there is none. */
#define PUT_TIMES(w, key, n, value)                                                              \
    do {                                                                                         \
        json_array_begin((w)->out, (key));                                                       \
        for (size_t i = 0; i < (n); i++) {                                                       \
            double ns = (value);                                                                 \
            (void)fprintf((w)->out->file, "%s%.0f", i > 0 ? "," : "", isfinite(ns) ? ns : -1.0); \
        }                                                                                        \
        json_array_end((w)->out);                                                                \
    } while (0)

/* The pool's plan and those under limits, as members of the subject's object. Rows are known by now. */
void report_put_plans(const report_writer *w);

#endif
