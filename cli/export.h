/* export.h: what the files behind `neap export` share. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "neap.h"

/* What a Perfetto file is made of. */
typedef struct perfetto_subject {
    const char *name; /* of the trace */
    const neap_trace *trace;
    const neap_plan *pool;      /* NULL: the trace never repeats */
    const neap_swap_plan *swap; /* NULL: no limit was given */
    uint64_t min_block;         /* bytes: smaller blocks have no lane */
} perfetto_subject;

/* Writes the file, in Chrome's JSON format. *n_events: how many it has. False: out of memory. Whether writing worked is
 * asked of the file later. */
bool perfetto_write(FILE *file, const perfetto_subject *subject, size_t *n_events);

/* ---- events of such a file (export_events.c) ---- */

typedef struct perfetto {
    FILE *file;
    size_t n_events;
} perfetto;

enum { PERFETTO_NO_THREAD = -1 };

void perfetto_begin(perfetto *out, FILE *file);
void perfetto_end(perfetto *out);

/* What a process, or a lane of it, is called; `rank`: from the top down. */
void perfetto_name(perfetto *out, int process, int lane, const char *name, int rank);

/* Something that takes time. The lane's others must be over by then. `event` of the trace, or NEAP_NEVER; `bytes` 0: it
 * has none. */
void perfetto_slice(perfetto *out, int process, int lane, const char *name, uint64_t start_ns, uint64_t end_ns,
                    uint32_t event, uint64_t bytes);

void perfetto_counter(perfetto *out, int process, const char *name, uint64_t at_ns, uint64_t bytes);

/* The begin or end of a block's life. */
void perfetto_life(perfetto *out, int process, bool is_begin, const neap_trace_block *block, uint64_t at_ns);

#endif
