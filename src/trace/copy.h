/* copy.h: a trace of its own, equal to another. */
#ifndef NP_TRACE_COPY_H
#define NP_TRACE_COPY_H

#include "trace/trace.h"

neap_status np_trace_copy(const neap_trace *trace, const neap_memory *memory, neap_trace **copy);

#endif
