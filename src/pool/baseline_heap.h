/* baseline_heap.h: what the replayed allocators have in common: device memory cut into blocks.
 *
 * A heap holds *chunks* (what was obtained from the device in one call), each cut into used and free blocks. Blocks
 * know their neighbours inside their chunk; free blocks also stand in a treap ordered by (size, address), so that
 * best fit, splitting and merging cost O(log n) where the allocators they stand for walk lists or keep sets. The order
 * of the treap is theirs, so the decisions are theirs too.
 *
 * Nothing here touches a device: addresses are numbers, and a new chunk stands above all earlier ones. */
#ifndef NP_POOL_BASELINE_HEAP_H
#define NP_POOL_BASELINE_HEAP_H

#include "base/memory.h"

#define NP_HEAP_NONE UINT32_MAX /* no block */

typedef struct np_heap_block {
    uint64_t address;
    uint64_t size; /* bytes, above 0 */
    uint32_t prev; /* neighbours inside the chunk, by address */
    uint32_t next; /* (a recycled entry: the next recycled one) */
    uint32_t left; /* children in the treap, while free */
    uint32_t right;
    bool used;
    bool recycled; /* the entry stands for nothing at present */
} np_heap_block;

typedef struct np_heap {
    const neap_memory *memory;
    np_array(np_heap_block) blocks;
    uint32_t root;     /* of the treap of free blocks */
    uint32_t recycled; /* first entry that can be used again */
    uint32_t last;     /* the block with the highest address */
    uint64_t held;     /* bytes of all chunks; also the address of the next one */
} np_heap;

void np_heap_init(np_heap *heap, const neap_memory *memory);
void np_heap_free(np_heap *heap);

/* Adds a chunk as one free block. NEAP_TOO_LARGE where the sum of the chunks overflows. bytes above 0. */
neap_status np_heap_add_chunk(np_heap *heap, uint64_t bytes, uint32_t *block);

/* Lengthens the last chunk by `bytes`, a free last block included; the first call begins the chunk. *block is the free
 * block that now ends it. */
neap_status np_heap_extend(np_heap *heap, uint64_t bytes, uint32_t *block);

/* The smallest free block of at least `size` bytes, the lowest address among equals; NP_HEAP_NONE: there is none. */
uint32_t np_heap_best_fit(const np_heap *heap, uint64_t size);

/* The free block that follows `block` (itself free) in the order of (size, address). */
uint32_t np_heap_following(const np_heap *heap, uint32_t block);

/* Makes a free block used. Where size is less than its own, the rest becomes a free block above it. */
neap_status np_heap_take(np_heap *heap, uint32_t block, uint64_t size);

/* Makes a used block free and merges it with its free neighbours. Never fails. */
void np_heap_give(np_heap *heap, uint32_t block);

bool np_heap_is_valid(const np_heap *heap);

#endif
