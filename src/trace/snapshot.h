/* snapshot.h: memory snapshots of PyTorch (torch.cuda.memory._dump_snapshot), to and from traces.
 *
 * What a snapshot is, as far as it matters here: a pickled dict. Its "device_traces" are one list for each device, with
 * one dict for everything that the caching allocator did, in order: an "action", an "addr", a "size" (as asked for), a
 * "stream" and a "time_us". Its "segments" are what the allocator held in the end, each with a "device", an "address"
 * and "blocks" that fill it one after the other, each with a "size", a "requested_size" and a "state". */
#ifndef NP_TRACE_SNAPSHOT_H
#define NP_TRACE_SNAPSHOT_H

#include "trace/pickle.h"
#include "trace/trace.h"
#include "trace/write.h"

/* The trace of one device of a snapshot that was read: `entries` is its list in "device_traces". `name` stands for the
 * file in messages. */
neap_status np_snapshot_to_trace(const np_pickle *pickle, const char *name, uint32_t device, np_pickle_value entries,
                                 const neap_memory *memory, neap_error *error, neap_trace **trace);

/* neap_trace_read_snapshot from bytes in memory. `memory_max` as for np_pickle_read. */
neap_status np_snapshot_parse(const void *bytes, size_t n_bytes, const char *name, uint32_t device, uint64_t memory_max,
                              const neap_memory *memory, neap_error *error, neap_trace **trace);

/* An offset for every block, so that blocks which live at the same time do not overlap: each takes the lowest hole that
 * is large enough, sizes rounded up to NP_SNAPSHOT_ALIGNMENT. `offsets` has room for every block; *top is where the
 * highest ever ended. */
#define NP_SNAPSHOT_ALIGNMENT 512
neap_status np_snapshot_place(const neap_trace *trace, const neap_memory *memory, uint64_t *offsets, uint64_t *top);

/* A snapshot of device 0 with one segment. NEAP_TOO_LARGE where addresses end. */
neap_status np_snapshot_write(const neap_trace *trace, np_sink *sink, void *user, neap_error *error);

#endif
