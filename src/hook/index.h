/* index.h: from an address to the block it lies in.
 *
 * Blocks that take part in plans are some hundreds to some thousands, and come and go all the time: a sorted sequence cut
 * into short leaves, so that whoever comes moves a few neighbours, and both searches are in a few lines of memory. Before
 * them is a test that nearly all words of a kernel's parameters fail: is there any block in the same 4 GiB? Addresses of
 * the host fail it, whatever blocks are above and below them; so do those of small blocks, which have a range of their
 * own. */
#ifndef NP_HOOK_INDEX_H
#define NP_HOOK_INDEX_H

#include "base/memory.h"

typedef struct np_hook_entry {
    const char *begin; /* bytes [begin, end) */
    const char *end;
    neap_block *block;
    uint32_t baseline; /* what stands for it in the model of PyTorch's allocator */
    bool is_baseline_small;
    bool has_baseline;
} np_hook_entry;

enum {
    NP_HOOK_LEAF = 32,
    NP_HOOK_REGIONS = 1 << 16
}; /* regions of 4 GiB: of addresses of 48 bits, and others by turns */

typedef struct np_hook_leaf {
    uint32_t n;                          /* entries: 1 at the least */
    const char *begins[NP_HOOK_LEAF];    /* of the entries, close together: they are what is searched */
    np_hook_entry entries[NP_HOOK_LEAF]; /* by address, not overlapping */
} np_hook_leaf;

typedef struct np_hook_index {
    const neap_memory *memory;
    np_array(np_hook_leaf *) leaves; /* by address */
    np_array(const char *) firsts;   /* where the first entry of each begins */
    size_t n;                        /* entries */
    const char *lowest;              /* no block is below, */
    const char *highest;             /* or at or above, */
    uint64_t
        regions[NP_HOOK_REGIONS / 64]; /* or in a region without its bit; it is set by the first and never cleared, */
    const char *gap_begin; /* or in the gap, which is for addresses that are never asked for: NULL: there is none */
    uint64_t gap_bytes;
} np_hook_index;

void np_hook_index_init(np_hook_index *index, const neap_memory *memory);
void np_hook_index_free(np_hook_index *index);

/* The block must not overlap another. */
neap_status np_hook_index_add(np_hook_index *index, const np_hook_entry *entry);

/* The entry whose block begins there, taken out. False: none does. */
bool np_hook_index_remove(np_hook_index *index, const char *begin, np_hook_entry *entry);

/* No block will ever be in these bytes. */
void np_hook_index_exclude(np_hook_index *index, const char *begin, uint64_t bytes);

static inline bool np_hook_index_may_have(const np_hook_index *index, const char *address)
{
    const uint64_t at = (uint64_t)(uintptr_t)address;
    const uint64_t lowest = (uint64_t)(uintptr_t)index->lowest;
    const uint64_t highest = (uint64_t)(uintptr_t)index->highest;
    const uint32_t region = (uint32_t)(at >> 32) % NP_HOOK_REGIONS;
    return at - lowest < highest - lowest && (index->regions[region / 64] >> region % 64 & 1) &&
           at - (uint64_t)(uintptr_t)index->gap_begin >= index->gap_bytes;
}

/* The entry whose block has the byte, or NULL. Valid until the next change. */
np_hook_entry *np_hook_index_search(const np_hook_index *index, const char *address); /* which passes the test */

static inline np_hook_entry *np_hook_index_find(const np_hook_index *index, const char *address)
{
    return np_hook_index_may_have(index, address) ? np_hook_index_search(index, address) : NULL;
}

/* Every block: for (at = 0; (block = np_hook_index_next(index, &leaf, &at));), both 0 at first. NULL: that was all. */
neap_block *np_hook_index_next(const np_hook_index *index, size_t *leaf, size_t *at);

bool np_hook_index_is_valid(const np_hook_index *index);

#endif
