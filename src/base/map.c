#include "base/map.h"

#include "base/hash.h"

void np_map_init(np_map *map, const neap_memory *memory)
{
    *map = (np_map){.memory = np_memory_or_default(memory), .seed = np_hash_seed()};
}

void np_map_free(np_map *map)
{
    np_memory_free(map->memory, map->entries, map->n_slots, sizeof *map->entries);
    np_map_init(map, map->memory);
}

/* The slot that holds key, or the empty one where it would go. */
static np_map_entry *find_slot(np_map_entry *entries, size_t n_slots, uint64_t seed, uint64_t key)
{
    size_t i = (size_t)np_mix64(key ^ seed) & (n_slots - 1);
    while (entries[i].value != NP_MAP_NONE && entries[i].key != key) {
        i = (i + 1) & (n_slots - 1);
    }
    return &entries[i];
}

static neap_status grow(np_map *map)
{
    size_t n_slots = map->n_slots ? 2 * map->n_slots : 64;
    np_map_entry *entries = np_memory_alloc(map->memory, n_slots, sizeof *entries);
    if (!entries) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < n_slots; i++) {
        entries[i] = (np_map_entry){0, NP_MAP_NONE};
    }
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->entries[i].value != NP_MAP_NONE) {
            *find_slot(entries, n_slots, map->seed, map->entries[i].key) = map->entries[i];
        }
    }
    np_memory_free(map->memory, map->entries, map->n_slots, sizeof *map->entries);
    map->entries = entries;
    map->n_slots = n_slots;
    return NEAP_OK;
}

uint32_t np_map_get(const np_map *map, uint64_t key)
{
    return map->n_slots ? find_slot(map->entries, map->n_slots, map->seed, key)->value : NP_MAP_NONE;
}

neap_status np_map_get_or_put(np_map *map, uint64_t key, uint32_t value, uint32_t *existing, bool *found)
{
    np_map_entry *slot;
    if (2 * (map->n + 1) > map->n_slots) {
        neap_status status = grow(map);
        if (status != NEAP_OK) {
            return status;
        }
    }
    slot = find_slot(map->entries, map->n_slots, map->seed, key);
    *found = slot->value != NP_MAP_NONE;
    if (!*found) {
        *slot = (np_map_entry){key, value};
        map->n++;
    }
    *existing = slot->value;
    return NEAP_OK;
}

bool np_map_is_valid(const np_map *map)
{
    size_t n = 0;
    if (map->n_slots & (map->n_slots - 1)) {
        return false;
    }
    for (size_t i = 0; i < map->n_slots; i++) {
        if (map->entries[i].value == NP_MAP_NONE) {
            continue;
        }
        n++;
        if (find_slot(map->entries, map->n_slots, map->seed, map->entries[i].key) != &map->entries[i]) {
            return false;
        }
    }
    return n == map->n && 2 * n <= map->n_slots;
}
