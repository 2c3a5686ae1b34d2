/* caching.h: PyTorch's caching allocator for CUDA, replayed: one stream, default settings, segments never returned. */
#ifndef NP_POOL_CACHING_H
#define NP_POOL_CACHING_H

#include "pool/baseline_heap.h"

typedef struct np_caching {
    np_heap small; /* requests up to 1 MiB */
    np_heap large;
    bool expandable; /* expandable_segments:True */
} np_caching;

/* An allocation: which heap, which block; block NP_HEAP_NONE for 0 bytes, which take nothing. */
typedef struct np_caching_block {
    uint32_t block;
    bool is_small;
} np_caching_block;

void np_caching_init(np_caching *caching, bool expandable, const neap_memory *memory);
void np_caching_free(np_caching *caching);

neap_status np_caching_take(np_caching *caching, uint64_t bytes, np_caching_block *block);
void np_caching_give(np_caching *caching, np_caching_block block);

/* Bytes obtained from the device: what PyTorch calls reserved. NEAP_TOO_LARGE where the sum overflows. */
neap_status np_caching_held(const np_caching *caching, uint64_t *held);

bool np_caching_is_valid(const np_caching *caching);

#endif
