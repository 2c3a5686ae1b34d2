#include "device/pagemap.h"

#include <string.h>

void np_pagemap_init(np_pagemap *map, const neap_memory *memory, uint64_t page_bytes)
{
    *map = (np_pagemap){.memory = memory, .page_bytes = page_bytes};
}

void np_pagemap_free(np_pagemap *map)
{
    for (size_t i = 0; i < map->reservations.n; i++) {
        np_reservation *r = &map->reservations.items[i];
        np_memory_free(map->memory, r->pages, r->n_pages, sizeof *r->pages);
    }
    np_array_free(map->memory, &map->reservations);
    np_array_free(map->memory, &map->physical);
}

/* ---- physical pages ---- */

neap_status np_pagemap_reserve_commit(np_pagemap *map, uint32_t first_page, uint32_t n_pages)
{
    return np_array_reserve(map->memory, &map->physical, (size_t)first_page + n_pages);
}

bool np_pagemap_commit(np_pagemap *map, uint32_t first_page, uint32_t n_pages)
{
    bool was_right = true;
    while (map->physical.n < (size_t)first_page + n_pages) {
        map->physical.items[map->physical.n++] = (np_physical_page){0};
    }
    for (size_t i = first_page; i < (size_t)first_page + n_pages; i++) {
        was_right = was_right && !map->physical.items[i].committed;
        map->physical.items[i].committed = true;
    }
    return was_right;
}

bool np_pagemap_release(np_pagemap *map, uint32_t first_page, uint32_t n_pages)
{
    bool was_right = true;
    for (size_t i = first_page; i < (size_t)first_page + n_pages; i++) {
        if (i >= map->physical.n) {
            return false;
        }
        was_right = was_right && map->physical.items[i].committed && map->physical.items[i].n_mappings == 0;
        map->physical.items[i].committed = false;
    }
    return was_right;
}

/* ---- reservations ---- */

/* Index of the first reservation that begins after the address. */
static size_t first_after(const np_pagemap *map, const char *address)
{
    size_t low = 0;
    size_t high = map->reservations.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)map->reservations.items[middle].address <= (uintptr_t)address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The reservation that holds the address; *index: its page there. NULL: none. */
static np_reservation *reservation_of(const np_pagemap *map, const char *address, uint64_t *index)
{
    size_t i = first_after(map, address);
    np_reservation *r = i > 0 ? &map->reservations.items[i - 1] : NULL;
    uint64_t page = r ? ((uintptr_t)address - (uintptr_t)r->address) / map->page_bytes : 0;
    if (!r || page >= r->n_pages) {
        return NULL;
    }
    *index = page;
    return r;
}

neap_status np_pagemap_add(np_pagemap *map, const char *address, uint64_t n_pages)
{
    size_t at = first_after(map, address);
    np_reservation *items;
    uint32_t *pages;
    if (np_array_reserve(map->memory, &map->reservations, map->reservations.n + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    pages = np_memory_alloc_zero(map->memory, n_pages, sizeof *pages);
    if (!pages) {
        return NEAP_NO_MEMORY;
    }
    items = map->reservations.items;
    memmove(&items[at + 1], &items[at], (map->reservations.n - at) * sizeof *items);
    items[at] = (np_reservation){address, n_pages, pages};
    map->reservations.n++;
    return NEAP_OK;
}

static void unmap_entry(np_pagemap *map, uint32_t *entry)
{
    if (*entry > 0) {
        map->physical.items[*entry - 1].n_mappings--;
        *entry = 0;
    }
}

bool np_pagemap_remove(np_pagemap *map, const char *address, uint64_t n_pages)
{
    uint64_t page = 0;
    bool was_right = true;
    np_reservation *r = reservation_of(map, address, &page);
    size_t at;
    if (!r || page != 0 || r->n_pages != n_pages) {
        return false;
    }
    for (uint64_t i = 0; i < n_pages; i++) {
        was_right = was_right && r->pages[i] == 0;
        unmap_entry(map, &r->pages[i]);
    }
    np_memory_free(map->memory, r->pages, n_pages, sizeof *r->pages);
    at = (size_t)(r - map->reservations.items);
    map->reservations.n--;
    memmove(r, r + 1, (map->reservations.n - at) * sizeof *r);
    return was_right;
}

/* ---- mappings ---- */

static bool is_inside(const np_reservation *r, uint64_t page, uint64_t n_pages)
{
    return r && page + n_pages <= r->n_pages;
}

bool np_pagemap_map(np_pagemap *map, const char *address, uint32_t first_page, uint32_t n_pages)
{
    uint64_t page = 0;
    np_reservation *r = reservation_of(map, address, &page);
    bool was_right = is_inside(r, page, n_pages);
    for (size_t i = 0; was_right && i < n_pages; i++) {
        size_t physical = (size_t)first_page + i;
        was_right = physical < map->physical.n && map->physical.items[physical].committed;
    }
    for (uint32_t i = 0; was_right && i < n_pages; i++) {
        unmap_entry(map, &r->pages[page + i]);
        r->pages[page + i] = first_page + i + 1;
        map->physical.items[first_page + i].n_mappings++;
    }
    return was_right;
}

bool np_pagemap_unmap(np_pagemap *map, const char *address, uint64_t n_pages)
{
    uint64_t page = 0;
    np_reservation *r = reservation_of(map, address, &page);
    if (!is_inside(r, page, n_pages)) {
        return false;
    }
    for (uint64_t i = 0; i < n_pages; i++) {
        unmap_entry(map, &r->pages[page + i]);
    }
    return true;
}

bool np_pagemap_find(const np_pagemap *map, const char *address, uint64_t bytes, np_piece *piece)
{
    uint64_t page = 0;
    const np_reservation *r = reservation_of(map, address, &page);
    uint64_t offset = r ? ((uintptr_t)address - (uintptr_t)r->address) % map->page_bytes : 0;
    uint64_t n_pages = 1;
    uint64_t begin;
    uint64_t left;
    if (!r || r->pages[page] == 0) {
        return false;
    }
    begin = (r->pages[page] - 1) * map->page_bytes + offset;
    left = map->page_bytes - offset;
    while (left < bytes && page + n_pages < r->n_pages && r->pages[page + n_pages] == r->pages[page] + n_pages) {
        n_pages++;
        left += map->page_bytes;
    }
    *piece = (np_piece){begin, begin + (left < bytes ? left : bytes)};
    return true;
}

bool np_pagemap_is_valid(const np_pagemap *map)
{
    uint64_t n_mapped = 0;
    for (size_t i = 0; i < map->reservations.n; i++) {
        const np_reservation *r = &map->reservations.items[i];
        uintptr_t end = (uintptr_t)r->address + r->n_pages * map->page_bytes;
        if (i + 1 < map->reservations.n && end > (uintptr_t)r[1].address) {
            return false;
        }
        for (uint64_t k = 0; k < r->n_pages; k++) {
            if (r->pages[k] > map->physical.n) {
                return false;
            }
            n_mapped += r->pages[k] > 0;
        }
    }
    for (size_t i = 0; i < map->physical.n; i++) {
        n_mapped -= map->physical.items[i].n_mappings; /* comes out at 0 if every page's are right in sum */
    }
    return n_mapped == 0;
}
