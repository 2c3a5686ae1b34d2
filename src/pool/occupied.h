/* occupied.h: which bytes are taken in which sections, and where a new buffer fits.
 *
 * A segment tree over the sections. A buffer's range of sections is cut into O(log n) tree nodes; each of them adds the
 * buffer's bytes to its *own* set (taken in all its sections), and every node keeps the union over its subtree (taken
 * in some of its sections). The bytes that a new buffer cannot have are then the unions of the nodes that its range is
 * cut into, and the own sets of the nodes above those. Sets are sorted and disjoint, and neighbours melt together: in a
 * dense packing they are short, however many buffers there are. */
#ifndef NP_POOL_OCCUPIED_H
#define NP_POOL_OCCUPIED_H

#include "pool/sections.h"

typedef struct np_span {
    uint64_t begin; /* units, half-open */
    uint64_t end;
} np_span;

typedef struct np_span_set {
    np_span *spans; /* sorted, disjoint, not touching */
    uint32_t n;
    uint32_t capacity;
} np_span_set;

typedef struct np_occupied {
    const neap_memory *memory;
    uint32_t first_section;
    uint32_t n_leaves;                   /* a power of two */
    np_span_set *own;                    /* node i has children 2i and 2i + 1; the root is 1 */
    np_span_set *whole;                  /* union over the subtree, `own` included */
    np_array(const np_span_set *) found; /* scratch of a query: the sets that matter */
    np_array(uint32_t) cursor;           /* and how far each was read */
} np_occupied;

neap_status np_occupied_init(np_occupied *occupied, const neap_memory *memory, np_range sections);
void np_occupied_free(np_occupied *occupied);
void np_occupied_clear(np_occupied *occupied); /* keeps its memory */

/* Ranges below lie within the sections given to np_occupied_init. */

/* The spans [begin, end) are taken in the given ranges from now on. They must have been free there. */
neap_status np_occupied_add(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges, uint64_t begin,
                            uint64_t end);

/* What is to be fitted in: so many units, at an offset that is a multiple of `align` when counted from `base` below 0. */
typedef struct np_fitted {
    uint64_t size;
    uint64_t align; /* 1: any offset will do */
    uint64_t base;
} np_fitted;

/* The first such offset from `at` on. */
static inline uint64_t np_fitted_align_up(const np_fitted *fitted, uint64_t at)
{
    uint64_t past = fitted->align == 1 ? 0 : (at + fitted->base) % fitted->align;
    return past == 0 ? at : at + fitted->align - past;
}

/* The lowest offset at which the units are free in all the ranges. */
neap_status np_occupied_first_fit(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                  const np_fitted *fitted, uint64_t *offset);

/* The same for several alike that are there at the same times, one after the other: `offsets` in ascending order. */
neap_status np_occupied_first_fits(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                   const np_fitted *fitted, uint32_t n, uint64_t *offsets);

/* The lowest of the smallest holes between taken spans that hold it, each counted from the first offset in it that will
 * do; where there is none, the first above the highest taken span. */
neap_status np_occupied_best_fit(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                 const np_fitted *fitted, uint64_t *offset);

bool np_occupied_is_valid(const np_occupied *occupied);

#endif
