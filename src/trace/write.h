/* write.h: a trace as "neap-trace 1". */
#ifndef NP_TRACE_WRITE_H
#define NP_TRACE_WRITE_H

#include "trace/trace.h"

/* Takes the next bytes of the file. What it returns other than NEAP_OK ends the writing; it fills `error` itself. */
typedef neap_status np_sink(void *user, const void *bytes, size_t n_bytes, neap_error *error);

/* Reading back what was put gives an equal trace (of a CSV: but for is_csv). NEAP_BAD_ARGUMENT where blocks have fixed
 * offsets, NEAP_TOO_LARGE where a record would be longer than the longest line a reader takes. */
neap_status np_write_text(const neap_trace *trace, np_sink *sink, void *user, neap_error *error);
neap_status np_write_gzip(const neap_trace *trace, np_sink *sink, void *user, neap_error *error);

#endif
