/* block_pool.h: the structs of blocks that no plan has made.
 *
 * They are kept until the device is closed, and the one that was freed first is given again first. So whether a pointer is
 * that of a live block can be told of any pointer, freed twice or made up, without a look at memory that is not ours; and
 * a plan's own blocks cost nothing. */
#ifndef NP_RUN_BLOCK_POOL_H
#define NP_RUN_BLOCK_POOL_H

#include "base/memory.h"
#include "run/block.h"

typedef struct np_block_slab {
    neap_block *blocks;
    size_t n;
} np_block_slab;

typedef struct np_block_pool {
    np_array(np_block_slab) slabs; /* each twice as large as the one before */
    neap_block *first;             /* of the free ones, by `next` */
    neap_block *last;
} np_block_pool;

neap_block *np_block_pool_take(np_block_pool *pool, const neap_memory *memory); /* zeroed; NULL: no memory */
void np_block_pool_give(np_block_pool *pool, neap_block *block);
void np_block_pool_free(np_block_pool *pool, const neap_memory *memory);

/* Is it one of these n? */
bool np_block_is_among(const neap_block *block, const neap_block *blocks, size_t n);
bool np_block_pool_has(const np_block_pool *pool, const neap_block *block); /* live or not */

#endif
