#include "hook/index.h"

#include <string.h>

enum { FEW = NP_HOOK_LEAF / 4 }; /* a leaf with so many joins the next one where both fill half a leaf */

void np_hook_index_init(np_hook_index *index, const neap_memory *memory)
{
    *index = (np_hook_index){.memory = memory};
}

void np_hook_index_free(np_hook_index *index)
{
    for (size_t i = 0; i < index->leaves.n; i++) {
        np_memory_free(index->memory, index->leaves.items[i], 1, sizeof **index->leaves.items);
    }
    np_array_free(index->memory, &index->leaves);
    np_array_free(index->memory, &index->firsts);
    index->n = 0;
    index->lowest = index->highest = NULL;
}

void np_hook_index_exclude(np_hook_index *index, const char *begin, uint64_t bytes)
{
    index->gap_begin = begin;
    index->gap_bytes = bytes;
}

/* How many of the sorted addresses are at or below one. Each step takes what it needs without a branch that could not be
 * foretold. */
static size_t count_from(const char *const *sorted, size_t n, const char *address)
{
    size_t low = 0;
    if (n == 0) {
        return 0;
    }
    while (n > 1) {
        size_t half = n / 2;
        low = sorted[low + half - 1] <= address ? low + half : low;
        n -= half;
    }
    return low + (sorted[low] <= address);
}

/* The leaf in which the address is, or would be. There is one. */
static size_t leaf_of(const np_hook_index *index, const char *address)
{
    size_t n = count_from(index->firsts.items, index->firsts.n, address);
    return n > 0 ? n - 1 : 0;
}

static bool has_region(const np_hook_index *index, uint64_t number)
{
    uint32_t region = (uint32_t)(number % NP_HOOK_REGIONS);
    return index->regions[region / 64] >> region % 64 & 1;
}

static void note_regions(np_hook_index *index, const np_hook_entry *entry)
{
    uint64_t last = ((uint64_t)(uintptr_t)entry->end - 1) >> 32;
    for (uint64_t number = (uint64_t)(uintptr_t)entry->begin >> 32; number <= last; number++) {
        uint32_t region = (uint32_t)(number % NP_HOOK_REGIONS);
        index->regions[region / 64] |= (uint64_t)1 << region % 64;
    }
}

static void note_ends(np_hook_index *index)
{
    const np_hook_leaf *last = index->n > 0 ? index->leaves.items[index->leaves.n - 1] : NULL;
    index->lowest = last ? index->firsts.items[0] : NULL;
    index->highest = last ? last->entries[last->n - 1].end : NULL;
}

/* ---- leaves ---- */

/* An empty one, which the caller fills, comes at a place among the others. */
static neap_status insert_leaf(np_hook_index *index, size_t at)
{
    np_hook_leaf *leaf;
    neap_status status = np_array_reserve(index->memory, &index->leaves, index->leaves.n + 1);
    if (status == NEAP_OK) {
        status = np_array_reserve(index->memory, &index->firsts, index->firsts.n + 1);
    }
    leaf = status == NEAP_OK ? np_memory_alloc(index->memory, 1, sizeof *leaf) : NULL;
    if (!leaf) {
        return NEAP_NO_MEMORY;
    }
    leaf->n = 0;
    memmove(&index->leaves.items[at + 1], &index->leaves.items[at], (index->leaves.n - at) * sizeof(np_hook_leaf *));
    memmove(&index->firsts.items[at + 1], &index->firsts.items[at], (index->firsts.n - at) * sizeof(char *));
    index->leaves.items[at] = leaf;
    index->leaves.n++;
    index->firsts.n++;
    return NEAP_OK;
}

static void remove_leaf(np_hook_index *index, size_t at)
{
    np_memory_free(index->memory, index->leaves.items[at], 1, sizeof **index->leaves.items);
    index->leaves.n--;
    index->firsts.n--;
    memmove(&index->leaves.items[at], &index->leaves.items[at + 1], (index->leaves.n - at) * sizeof(np_hook_leaf *));
    memmove(&index->firsts.items[at], &index->firsts.items[at + 1], (index->firsts.n - at) * sizeof(char *));
}

/* Entries [first, n) of one go to the end of another. */
static void move_entries(np_hook_leaf *from, uint32_t first, np_hook_leaf *to)
{
    uint32_t n = from->n - first;
    memcpy(&to->entries[to->n], &from->entries[first], n * sizeof *to->entries);
    memcpy(&to->begins[to->n], &from->begins[first], n * sizeof *to->begins);
    to->n += n;
    from->n = first;
}

static neap_status split(np_hook_index *index, size_t at)
{
    neap_status status = insert_leaf(index, at + 1);
    if (status == NEAP_OK) {
        move_entries(index->leaves.items[at], NP_HOOK_LEAF / 2, index->leaves.items[at + 1]);
        index->firsts.items[at + 1] = index->leaves.items[at + 1]->begins[0];
    }
    return status;
}

/* ---- entries ---- */

neap_status np_hook_index_add(np_hook_index *index, const np_hook_entry *entry)
{
    neap_status status = index->leaves.n > 0 ? NEAP_OK : insert_leaf(index, 0);
    size_t of;
    np_hook_leaf *leaf;
    size_t at;
    if (status != NEAP_OK) {
        return status;
    }
    of = index->n > 0 ? leaf_of(index, entry->begin) : 0;
    if (index->leaves.items[of]->n == NP_HOOK_LEAF) {
        status = split(index, of);
        if (status != NEAP_OK) {
            return status;
        }
        of = leaf_of(index, entry->begin);
    }
    leaf = index->leaves.items[of];
    at = count_from(leaf->begins, leaf->n, entry->begin);
    memmove(&leaf->entries[at + 1], &leaf->entries[at], (leaf->n - at) * sizeof *leaf->entries);
    memmove(&leaf->begins[at + 1], &leaf->begins[at], (leaf->n - at) * sizeof *leaf->begins);
    leaf->entries[at] = *entry;
    leaf->begins[at] = entry->begin;
    leaf->n++;
    index->firsts.items[of] = leaf->begins[0];
    index->n++;
    index->lowest = index->firsts.items[0];
    index->highest = entry->end > index->highest ? entry->end : index->highest;
    note_regions(index, entry);
    return NEAP_OK;
}

static np_hook_entry *find_in(const np_hook_index *index, size_t of, const char *address)
{
    np_hook_leaf *leaf = index->leaves.items[of];
    size_t n = count_from(leaf->begins, leaf->n, address);
    return n > 0 && address < leaf->entries[n - 1].end ? &leaf->entries[n - 1] : NULL;
}

np_hook_entry *np_hook_index_search(const np_hook_index *index, const char *address)
{
    return find_in(index, leaf_of(index, address), address);
}

/* The one leaf that is left stays, whatever is in it. */
static void thin_out(np_hook_index *index, size_t at)
{
    np_hook_leaf *leaf = index->leaves.items[at];
    if (leaf->n == 0 && index->leaves.n > 1) {
        remove_leaf(index, at);
    } else if (leaf->n <= FEW && at + 1 < index->leaves.n &&
               leaf->n + index->leaves.items[at + 1]->n <= NP_HOOK_LEAF / 2) {
        move_entries(index->leaves.items[at + 1], 0, leaf);
        remove_leaf(index, at + 1);
    }
}

bool np_hook_index_remove(np_hook_index *index, const char *begin, np_hook_entry *entry)
{
    size_t of = index->n > 0 ? leaf_of(index, begin) : 0;
    np_hook_entry *found = np_hook_index_may_have(index, begin) ? find_in(index, of, begin) : NULL;
    np_hook_leaf *leaf;
    size_t at;
    if (!found || found->begin != begin) {
        return false;
    }
    *entry = *found;
    leaf = index->leaves.items[of];
    at = (size_t)(found - leaf->entries);
    leaf->n--;
    memmove(&leaf->entries[at], &leaf->entries[at + 1], (leaf->n - at) * sizeof *leaf->entries);
    memmove(&leaf->begins[at], &leaf->begins[at + 1], (leaf->n - at) * sizeof *leaf->begins);
    index->firsts.items[of] = leaf->begins[0];
    index->n--;
    thin_out(index, of);
    note_ends(index);
    return true;
}

neap_block *np_hook_index_next(const np_hook_index *index, size_t *leaf, size_t *at)
{
    while (*leaf < index->leaves.n && *at == index->leaves.items[*leaf]->n) {
        ++*leaf;
        *at = 0;
    }
    return *leaf < index->leaves.n ? index->leaves.items[*leaf]->entries[(*at)++].block : NULL;
}

bool np_hook_index_is_valid(const np_hook_index *index)
{
    const char *past = NULL;
    size_t n = 0;
    for (size_t i = 0; i < index->leaves.n; i++) {
        const np_hook_leaf *leaf = index->leaves.items[i];
        if (leaf->n > NP_HOOK_LEAF || (leaf->n == 0 && index->leaves.n > 1) ||
            (leaf->n > 0 && index->firsts.items[i] != leaf->begins[0])) {
            return false;
        }
        for (uint32_t k = 0; k < leaf->n; k++) {
            const np_hook_entry *entry = &leaf->entries[k];
            if (entry->begin >= entry->end || leaf->begins[k] != entry->begin || entry->begin < index->lowest ||
                entry->end > index->highest || !has_region(index, (uint64_t)(uintptr_t)entry->begin >> 32) ||
                !has_region(index, ((uint64_t)(uintptr_t)entry->end - 1) >> 32) ||
                (index->gap_bytes > 0 && entry->begin < index->gap_begin + index->gap_bytes &&
                 index->gap_begin < entry->end) ||
                (n > 0 && past > entry->begin)) {
                return false;
            }
            past = entry->end;
            n++;
        }
    }
    return n == index->n && index->firsts.n == index->leaves.n && (n > 0 || index->lowest == index->highest);
}
