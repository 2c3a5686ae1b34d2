/* problem.h: the placement problem.
 *
 * Buffers have a size and live in pieces of a line of times [0, n_times): one piece for an ordinary buffer, two for one
 * that lives across the circle's end, more for one with gaps (swapped out in between). Two buffers that live at a common
 * time must not share a byte. One mechanism serves circles and gaps: a buffer with holes in time.
 *
 * Sizes and offsets are in units of the alignment, so that every offset is aligned and every bound is exact. Some buffers
 * may be asked to stand at multiples of several units: pages, where those can only be mapped whole. */
#ifndef NP_POOL_PROBLEM_H
#define NP_POOL_PROBLEM_H

#include "base/memory.h"

typedef struct np_piece {
    uint32_t begin; /* half-open, begin < end */
    uint32_t end;
} np_piece;

typedef struct np_buffer {
    uint64_t size;        /* units; above 0 */
    uint64_t fixed;       /* units; NEAP_NO_OFFSET: may stand anywhere */
    uint64_t align;       /* units: its offset is `lead` more than a multiple of this; 1: any */
    uint64_t lead;        /* units, less than `align` */
    uint32_t first_piece; /* its pieces: sorted, disjoint, not touching */
    uint32_t n_pieces;    /* 1 or more */
} np_buffer;

typedef struct np_problem {
    const neap_memory *memory;
    uint64_t unit; /* bytes a unit */
    uint32_t n_times;
    np_array(np_buffer) buffers;
    np_array(np_piece) pieces;
} np_problem;

void np_problem_init(np_problem *problem, const neap_memory *memory, uint64_t unit, uint32_t n_times);
void np_problem_free(np_problem *problem);

/* Appends a buffer of `bytes` (rounded up to units) that lives in the given pieces (sorted, disjoint; touching ones are
 * joined). `fixed_bytes` NEAP_NO_OFFSET or a multiple of the unit. */
neap_status np_problem_add(np_problem *problem, uint64_t bytes, uint64_t fixed_bytes, const np_piece *pieces,
                           uint32_t n_pieces);

/* The same for a buffer whose offset must be `lead_bytes` more than a multiple of `align_bytes`: less than that, both
 * multiples of the unit. */
neap_status np_problem_add_aligned(np_problem *problem, uint64_t bytes, uint64_t align_bytes, uint64_t lead_bytes,
                                   uint64_t fixed_bytes, const np_piece *pieces, uint32_t n_pieces);

/* The largest sum of sizes alive at one time, and fixed buffers' ends: no placement is lower. Units. */
neap_status np_problem_load(const np_problem *problem, uint64_t *load);

bool np_problem_is_valid(const np_problem *problem);

#endif
