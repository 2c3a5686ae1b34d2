/* snapshot.h: traces that were imported from a memory snapshot: who holds the memory, and what to do next. And files that are
 * such a snapshot, read without a `neap import` before. */
#ifndef CLI_SNAPSHOT_H
#define CLI_SNAPSHOT_H

#include "json.h"
#include "neap.h"

/* A trace, a CSV, or a snapshot: neap_trace_read, and where that does not know the file, neap_trace_read_snapshot. */
neap_status snapshot_or_trace_read(const char *path, neap_error *error, neap_trace **trace);

bool snapshot_is(const neap_trace *trace);

/* Of a snapshot: where memory ran out, if it did, and the code that made the blocks that were live at the peak, the most bytes
 * first. False, and nothing printed, where none of that is known. */
bool snapshot_print_holders(const neap_trace *trace);
void snapshot_put_holders(json *out, const neap_trace *trace); /* "oom" and "holders" */

#endif
