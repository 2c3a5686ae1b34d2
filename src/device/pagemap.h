/* pagemap.h: which addresses are mapped onto which physical pages, and which of those exist: a device's tables, kept a
 * second time for the one who checks.
 *
 * A reservation has an entry for each of its pages, so that mapping and unmapping need no memory. */
#ifndef NP_DEVICE_PAGEMAP_H
#define NP_DEVICE_PAGEMAP_H

#include "base/memory.h"

typedef struct np_reservation {
    const char *address;
    uint64_t n_pages;
    uint32_t *pages; /* physical page + 1; 0: not mapped */
} np_reservation;

typedef struct np_physical_page {
    bool committed;
    uint32_t n_mappings;
} np_physical_page;

/* Physical bytes that follow each other, numbered from the first page's on. */
typedef struct np_piece {
    uint64_t begin;
    uint64_t end;
} np_piece;

typedef struct np_pagemap {
    const neap_memory *memory;
    uint64_t page_bytes;
    np_array(np_reservation) reservations; /* addresses ascending */
    np_array(np_physical_page) physical;   /* up to the highest page ever committed */
} np_pagemap;

void np_pagemap_init(np_pagemap *map, const neap_memory *memory, uint64_t page_bytes);
void np_pagemap_free(np_pagemap *map);

/* Those that return bool say whether the call was right: pages that were not committed before, are committed and so on. */
neap_status np_pagemap_reserve_commit(np_pagemap *map, uint32_t first_page, uint32_t n_pages); /* room for: */
bool np_pagemap_commit(np_pagemap *map, uint32_t first_page, uint32_t n_pages);
bool np_pagemap_release(np_pagemap *map, uint32_t first_page,
                        uint32_t n_pages); /* false: one is mapped, or not there */

neap_status np_pagemap_add(np_pagemap *map, const char *address, uint64_t n_pages); /* a reservation */
bool np_pagemap_remove(np_pagemap *map, const char *address, uint64_t n_pages);     /* false: mapped, or none such */

bool np_pagemap_map(np_pagemap *map, const char *address, uint32_t first_page, uint32_t n_pages);
bool np_pagemap_unmap(np_pagemap *map, const char *address, uint64_t n_pages); /* false: not reserved */

/* The physical bytes from `address` on, as many as follow each other, `bytes` at most. False: it is not mapped. */
bool np_pagemap_find(const np_pagemap *map, const char *address, uint64_t bytes, np_piece *piece);

bool np_pagemap_is_valid(const np_pagemap *map);

#endif
