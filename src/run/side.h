/* side.h: the small blocks of a program that neap runs beneath.
 *
 * They take no part in plans: their order varies with garbage collection and logging, they weigh little, and a program
 * should not leave its plan over 512 bytes. They never leave the device, and no work is compared with anything because of
 * them; so their order must come from elsewhere: each stream has a heap of its own. What is freed on its stream is reused in
 * the order of that stream. A block that is freed on another makes its own stream wait for all work given so far: whoever
 * used it did so before the free. A block that was asked for without a stream (cudaMalloc) may be used on any at once: it
 * is in a heap of its own, and is reused when all work is done. So are those that were asked for in a capture: a graph uses
 * them again and again, and only who knows of graphs knows when they can be freed.
 *
 * One range of addresses serves all; it grows by slabs. Best fit with splitting and merging (pool/baseline_heap.h). */
#ifndef NP_RUN_SIDE_H
#define NP_RUN_SIDE_H

#include "memory/view.h"
#include "pool/baseline_heap.h"

enum { NP_SIDE_NO_STREAM = NP_MAX_STREAMS, NP_SIDE_CAPTURED, NP_SIDE_HEAPS };

typedef struct np_side_slab {
    np_stream stream;   /* or NP_SIDE_NO_STREAM, NP_SIDE_CAPTURED */
    uint32_t chunk;     /* of the stream's heap */
    uint32_t *block_at; /* by unit: the heap's block that begins there, or NP_HEAP_NONE */
} np_side_slab;

typedef struct np_side_heap {
    np_heap heap;
    np_array(uint32_t) slabs; /* by chunk */
} np_side_heap;

typedef struct np_side {
    np_view view; /* numbers NULL: nothing was asked for yet */
    uint64_t slab_bytes;
    np_array(np_side_slab) slabs; /* in order of address, without gaps */
    np_side_heap heaps[NP_SIDE_HEAPS];
    uint64_t live_bytes; /* asked for, rounded up to units */
    uint64_t peak_bytes;
    uint64_t n_live;
} np_side;

/* A slab holds two of the largest blocks, which are below min_block. */
uint64_t np_side_slab_bytes(uint64_t min_block, uint64_t page_bytes);

#endif
