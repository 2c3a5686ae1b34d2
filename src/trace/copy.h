/* copy.h: a trace of its own, equal to another. */
#ifndef NP_TRACE_COPY_H
#define NP_TRACE_COPY_H

#include "trace/trace.h"

neap_status np_trace_copy(const neap_trace *trace, const neap_memory *memory, neap_trace **copy);

/* The same without blocks of less than so many bytes, and without the accesses to them. */
neap_status np_trace_copy_large(const neap_trace *trace, uint64_t least, const neap_memory *memory, neap_trace **copy);

#endif
