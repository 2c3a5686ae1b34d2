/* read.h: the reader of "neap-trace 1". The public functions of neap.h tell the formats apart and call it. */
#ifndef NP_TRACE_READ_H
#define NP_TRACE_READ_H

#include "trace/source.h"
#include "trace/trace.h"

/* Reads the records that follow the header line, to the end of the source, into an empty trace. */
neap_status np_read_records(np_source *source, neap_error *error, neap_trace *trace);

#endif
