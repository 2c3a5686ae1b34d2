/* csv.h: placement problems as CSV (id,lower,upper,size[,offset]). */
#ifndef NP_TRACE_CSV_H
#define NP_TRACE_CSV_H

#include "trace/source.h"
#include "trace/trace.h"

/* Reads the header line given and the rows that follow it, to the end of the source, into an empty trace. `header` lies
 * in the source and need not outlive this call's first read. */
neap_status np_csv_read(np_source *source, const char *header, size_t n_header, neap_error *error, neap_trace *trace);

#endif
