/* cnmem.c: CnMem's algorithm, after its published source (github.com/NVIDIA/cnmem), in our own words:
 *
 *   - sizes are rounded up to 512 bytes;
 *   - the free list is sorted by address and searched to its end for the smallest block that fits: the first of equals;
 *   - a larger block is split, however small the rest;
 *   - where nothing fits, the pool grows by one cudaMalloc of exactly the rounded size;
 *   - a released block merges with free neighbours, never across the border between two cudaMallocs.
 *
 * CnMem can also be given a pool in advance, as large as the user guesses; we replay the pool that grows on demand. */
#include "pool/cnmem.h"

#include "base/checked.h"

#define GRANULARITY 512u

void np_cnmem_init(np_cnmem *pool, const neap_memory *memory)
{
    np_heap_init(&pool->heap, memory);
}

void np_cnmem_free(np_cnmem *pool)
{
    np_heap_free(&pool->heap);
}

neap_status np_cnmem_take(np_cnmem *pool, uint64_t bytes, uint32_t *block)
{
    if (bytes == 0) {
        *block = NP_HEAP_NONE;
        return NEAP_OK;
    }
    uint64_t size;
    if (!np_round_up(bytes, GRANULARITY, &size)) {
        return NEAP_TOO_LARGE;
    }
    uint32_t found = np_heap_best_fit(&pool->heap, size);
    neap_status status = NEAP_OK;
    if (found == NP_HEAP_NONE) {
        status = np_heap_add_chunk(&pool->heap, size, &found);
    }
    if (status == NEAP_OK) {
        status = np_heap_take(&pool->heap, found, size);
    }
    if (status == NEAP_OK) {
        *block = found;
    }
    return status;
}

void np_cnmem_give(np_cnmem *pool, uint32_t block)
{
    if (block != NP_HEAP_NONE) {
        np_heap_give(&pool->heap, block);
    }
}

bool np_cnmem_is_valid(const np_cnmem *pool)
{
    return np_heap_is_valid(&pool->heap);
}
