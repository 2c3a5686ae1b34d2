/* small.h: blocks smaller than a page, packed into shared views (slabs). Best fit, neighbours melt together when freed.
 * They never leave the device and take no part in a plan's arena: they weigh little. */
#ifndef NP_RUN_SMALL_H
#define NP_RUN_SMALL_H

#include "run/block.h"

#define NP_SMALL_UNIT 512 /* bytes: sizes are rounded up to it */

typedef struct np_chunk {
    uint32_t begin; /* units, half-open */
    uint32_t end;
} np_chunk;

typedef struct np_slab {
    np_view view;
    np_array(np_chunk) chunks; /* free ones, sorted, not touching */
    uint32_t n_units;
    uint32_t n_blocks;
    bool was_freed;                 /* any block of it, ever: */
    uint64_t after[NP_MAX_STREAMS]; /* marks of the streams at the last free */
} np_slab;

typedef struct np_small {
    np_pages *pages;
    uint32_t slab_pages;
    np_array(np_slab *) slabs;
} np_small;

void np_small_init(np_small *small, np_pages *pages);
void np_small_free(np_small *small);

/* Pages that must be added before a block of so many bytes can be taken; 0 where a slab has room. */
uint32_t np_small_pages_needed(const np_small *small, uint64_t bytes);

/* Adds a slab of just so many pages, which the caller has taken. On failure they are the caller's still. */
neap_status np_small_grow(np_small *small, const uint32_t *numbers);

/* Gives the block its address, and its `after` marks where it stands in bytes that were used before. A slab has room. */
neap_status np_small_take(np_small *small, uint64_t bytes, neap_block *block);

/* An empty slab is given up, unless work may still use it: the last one is kept. */
void np_small_give(np_small *small, const neap_block *block);

bool np_small_is_valid(const np_small *small);

#endif
