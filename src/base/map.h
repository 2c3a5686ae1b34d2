/* map.h: from 64-bit keys to 32-bit values. Open addressing with linear probing, at most half full; no removal.
 *
 * Keys come from files: each map hashes them with a seed of its own, so that no file can make them collide. The order of
 * the entries is chance; nothing may depend on it. */
#ifndef NP_BASE_MAP_H
#define NP_BASE_MAP_H

#include "base/memory.h"

#define NP_MAP_NONE UINT32_MAX /* no value: what a lookup of an absent key gives */

typedef struct np_map_entry {
    uint64_t key;
    uint32_t value; /* NP_MAP_NONE: the slot is empty */
} np_map_entry;

typedef struct np_map {
    const neap_memory *memory;
    np_map_entry *entries;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;       /* keys present */
    uint64_t seed;
} np_map;

void np_map_init(np_map *map, const neap_memory *memory);
void np_map_free(np_map *map);

uint32_t np_map_get(const np_map *map, uint64_t key);

/* The value of key; where it has none yet, `value` (not NP_MAP_NONE) is put there. *found tells which. */
neap_status np_map_get_or_put(np_map *map, uint64_t key, uint32_t value, uint32_t *existing, bool *found);

bool np_map_is_valid(const np_map *map);

#endif
