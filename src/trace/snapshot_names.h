/* snapshot_names.h: who holds the memory of a snapshot: the code that made a block, as its name in the trace. */
#ifndef NP_TRACE_SNAPSHOT_NAMES_H
#define NP_TRACE_SNAPSHOT_NAMES_H

#include "trace/pickle.h"
#include "trace/trace.h"

enum { NP_FRAME_NAME_BYTES = 160 };

/* The stack of an entry or of a segment's block as one word: the top frame of Python, "conv.py:549:_conv_forward", and where
 * that is PyTorch's own code, the first one that is not: "conv.py:549:_conv_forward@train.py:31". Without Python's frames, the
 * top one. False: nothing is known of it. */
bool np_frames_name(const np_pickle *pickle, np_pickle_value holder, char name[NP_FRAME_NAME_BYTES]);

/* Adds the meta `block.ID=NAME` for the largest of the blocks that are live when the load is highest, NP_NAMED_MAX at most.
 * `holders` has what was recorded of each block of the trace (NP_PICKLE_NONE: nothing). */
#define NP_NAMED_MAX 2000
neap_status np_snapshot_name_blocks(const np_pickle *pickle, const np_pickle_value *holders, neap_trace *trace);

#endif
