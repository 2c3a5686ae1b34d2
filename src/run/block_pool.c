#include "run/block_pool.h"

#include <string.h>

enum { FIRST_SLAB = 64 };

static void put(np_block_pool *pool, neap_block *block)
{
    block->next = NULL;
    *(pool->last ? &pool->last->next : &pool->first) = block;
    pool->last = block;
}

static bool grow(np_block_pool *pool, const neap_memory *memory)
{
    size_t n = pool->slabs.n > 0 ? 2 * pool->slabs.items[pool->slabs.n - 1].n : FIRST_SLAB;
    neap_block *blocks = NULL;
    if (np_array_reserve(memory, &pool->slabs, pool->slabs.n + 1) == NEAP_OK) {
        blocks = np_memory_alloc_zero(memory, n, sizeof *blocks);
    }
    if (!blocks) {
        return false;
    }
    pool->slabs.items[pool->slabs.n++] = (np_block_slab){blocks, n};
    for (size_t i = 0; i < n; i++) {
        put(pool, &blocks[i]);
    }
    return true;
}

neap_block *np_block_pool_take(np_block_pool *pool, const neap_memory *memory)
{
    neap_block *block = pool->first || grow(pool, memory) ? pool->first : NULL;
    if (block) {
        pool->first = block->next;
        pool->last = pool->first ? pool->last : NULL;
        memset(block, 0, sizeof *block);
    }
    return block;
}

void np_block_pool_give(np_block_pool *pool, neap_block *block)
{
    block->is_live = false;
    put(pool, block);
}

void np_block_pool_free(np_block_pool *pool, const neap_memory *memory)
{
    for (size_t i = 0; i < pool->slabs.n; i++) {
        np_memory_free(memory, pool->slabs.items[i].blocks, pool->slabs.items[i].n, sizeof(neap_block));
    }
    np_array_free(memory, &pool->slabs);
    pool->first = pool->last = NULL;
}

bool np_block_is_among(const neap_block *block, const neap_block *blocks, size_t n)
{
    uintptr_t at = (uintptr_t)block - (uintptr_t)blocks; /* below the first one: larger than any */
    return n > 0 && at < n * sizeof *blocks && at % sizeof *blocks == 0;
}

bool np_block_pool_has(const np_block_pool *pool, const neap_block *block)
{
    for (size_t i = pool->slabs.n; i-- > 0;) {
        if (np_block_is_among(block, pool->slabs.items[i].blocks, pool->slabs.items[i].n)) {
            return true;
        }
    }
    return false;
}
