/* caching.c: the rules of PyTorch's CUDACachingAllocator (c10/cuda/CUDACachingAllocator.cpp), in our own words:
 *
 *   - sizes are rounded up to 512 bytes; up to 1 MiB they come from the small pool, above from the large one;
 *   - best fit within the pool: the smallest free block that fits, the lowest address among equals;
 *   - a small block is split where 512 bytes or more remain, a large one where more than 1 MiB remains;
 *   - where nothing fits, a segment is obtained: 2 MiB for a small request, 20 MiB for one below 10 MiB, otherwise the
 *     request rounded up to 2 MiB;
 *   - a freed block merges with free neighbours inside its segment. Segments are kept: nothing here runs out of memory.
 *
 * With expandable segments, each pool is one segment that grows at its end by pages (2 MiB small, 20 MiB large), the
 * free block at the end included; every block is split where 512 bytes or more remain; and the block at the end counts
 * as large as it could grow, so it is taken only where no other fits. */
#include "pool/caching.h"

#include "base/checked.h"

#define MIB (UINT64_C(1) << 20)

static const uint64_t granularity = 512;
static const uint64_t small_limit = 1 * MIB;       /* largest request of the small pool */
static const uint64_t small_segment = 2 * MIB;     /* also its page when expandable */
static const uint64_t large_segment = 20 * MIB;    /* also its page when expandable */
static const uint64_t own_segment_from = 10 * MIB; /* requests from here on get a segment of their size */
static const uint64_t own_segment_rounding = 2 * MIB;

void np_caching_init(np_caching *caching, bool expandable, const neap_memory *memory)
{
    caching->expandable = expandable;
    np_heap_init(&caching->small, memory);
    np_heap_init(&caching->large, memory);
}

void np_caching_free(np_caching *caching)
{
    np_heap_free(&caching->small);
    np_heap_free(&caching->large);
}

static uint32_t find_free(const np_caching *caching, const np_heap *heap, uint64_t size)
{
    uint32_t found = np_heap_best_fit(heap, size);
    if (caching->expandable && found != NP_HEAP_NONE && found == heap->last) {
        uint32_t other = np_heap_following(heap, found);
        return other != NP_HEAP_NONE ? other : found;
    }
    return found;
}

/* A free block of at least `size` bytes from new memory. */
static neap_status grow(const np_caching *caching, np_heap *heap, uint64_t size, uint32_t *block)
{
    bool is_small = heap == &caching->small;
    uint64_t bytes;
    if (caching->expandable) {
        uint64_t at_end = 0;
        if (heap->last != NP_HEAP_NONE && !heap->blocks.items[heap->last].used) {
            at_end = heap->blocks.items[heap->last].size;
        }
        return np_round_up(size - at_end, is_small ? small_segment : large_segment, &bytes)
                   ? np_heap_extend(heap, bytes, block)
                   : NEAP_TOO_LARGE;
    }
    if (is_small) {
        bytes = small_segment;
    } else if (size < own_segment_from) {
        bytes = large_segment;
    } else if (!np_round_up(size, own_segment_rounding, &bytes)) {
        return NEAP_TOO_LARGE;
    }
    return np_heap_add_chunk(heap, bytes, block);
}

static bool should_split(const np_caching *caching, const np_heap *heap, uint64_t rest)
{
    return heap == &caching->small || caching->expandable ? rest >= granularity : rest > small_limit;
}

neap_status np_caching_take(np_caching *caching, uint64_t bytes, np_caching_block *block)
{
    if (bytes == 0) {
        *block = (np_caching_block){.block = NP_HEAP_NONE};
        return NEAP_OK;
    }
    uint64_t size;
    if (!np_round_up(bytes, granularity, &size)) {
        return NEAP_TOO_LARGE;
    }
    np_heap *heap = size <= small_limit ? &caching->small : &caching->large;
    uint32_t found = find_free(caching, heap, size);
    neap_status status = found == NP_HEAP_NONE ? grow(caching, heap, size, &found) : NEAP_OK;
    if (status != NEAP_OK) {
        return status;
    }
    uint64_t whole = heap->blocks.items[found].size;
    status = np_heap_take(heap, found, should_split(caching, heap, whole - size) ? size : whole);
    if (status == NEAP_OK) {
        *block = (np_caching_block){.block = found, .is_small = heap == &caching->small};
    }
    return status;
}

void np_caching_give(np_caching *caching, np_caching_block block)
{
    if (block.block != NP_HEAP_NONE) {
        np_heap_give(block.is_small ? &caching->small : &caching->large, block.block);
    }
}

neap_status np_caching_held(const np_caching *caching, uint64_t *held)
{
    return np_add_u64(caching->small.held, caching->large.held, held) ? NEAP_OK : NEAP_TOO_LARGE;
}

bool np_caching_is_valid(const np_caching *caching)
{
    return np_heap_is_valid(&caching->small) && np_heap_is_valid(&caching->large);
}
