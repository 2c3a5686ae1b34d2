/* zmemory.h: zlib's allocations through the library's memory hook. */
#ifndef NP_TRACE_ZMEMORY_H
#define NP_TRACE_ZMEMORY_H

#include <zlib.h>

#include "base/memory.h"

/* Sets zalloc, zfree and opaque. `memory` is not NULL and outlives the stream. */
void np_zmemory_use(z_stream *stream, const neap_memory *memory);

#endif
