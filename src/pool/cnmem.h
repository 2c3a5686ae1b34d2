/* cnmem.h: NVIDIA's CnMem pool, replayed. What a program held that used it. */
#ifndef NP_POOL_CNMEM_H
#define NP_POOL_CNMEM_H

#include "pool/baseline_heap.h"

typedef struct np_cnmem {
    np_heap heap; /* heap.held: bytes obtained from the device; none ever go back */
} np_cnmem;

void np_cnmem_init(np_cnmem *pool, const neap_memory *memory);
void np_cnmem_free(np_cnmem *pool);

/* *block names the allocation in np_cnmem_give; NP_HEAP_NONE for 0 bytes, which take nothing. */
neap_status np_cnmem_take(np_cnmem *pool, uint64_t bytes, uint32_t *block);
void np_cnmem_give(np_cnmem *pool, uint32_t block);

bool np_cnmem_is_valid(const np_cnmem *pool);

#endif
