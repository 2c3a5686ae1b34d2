#include "hook/index.h"

#include <string.h>

void np_hook_index_init(np_hook_index *index, const neap_memory *memory)
{
    *index = (np_hook_index){.memory = memory};
}

void np_hook_index_free(np_hook_index *index)
{
    np_array_free(index->memory, &index->entries);
    np_array_free(index->memory, &index->begins);
}

/* How many begin at or below the address. Each step takes what it needs without a branch that could not be foretold. */
static size_t count_from(const np_hook_index *index, const char *address)
{
    const char *const *begins = index->begins.items;
    size_t low = 0;
    size_t n = index->begins.n;
    while (n > 1) {
        size_t half = n / 2;
        low = begins[low + half - 1] <= address ? low + half : low;
        n -= half;
    }
    return low + (n == 1 && begins[low] <= address);
}

neap_status np_hook_index_add(np_hook_index *index, const np_hook_entry *entry)
{
    neap_status status = np_array_reserve(index->memory, &index->entries, index->entries.n + 1);
    size_t at;
    if (status == NEAP_OK) {
        status = np_array_reserve(index->memory, &index->begins, index->begins.n + 1);
    }
    if (status != NEAP_OK) {
        return status;
    }
    at = index->entries.n > 0 ? count_from(index, entry->begin) : 0;
    memmove(&index->entries.items[at + 1], &index->entries.items[at],
            (index->entries.n - at) * sizeof *index->entries.items);
    index->entries.items[at] = *entry;
    index->entries.n++;
    memmove(&index->begins.items[at + 1], &index->begins.items[at],
            (index->begins.n - at) * sizeof *index->begins.items);
    index->begins.items[at] = entry->begin;
    index->begins.n++;
    index->lowest = index->entries.items[0].begin;
    index->highest = entry->end > index->highest ? entry->end : index->highest;
    return NEAP_OK;
}

np_hook_entry *np_hook_index_find(const np_hook_index *index, const char *address)
{
    size_t n;
    np_hook_entry *entry;
    if (!np_hook_index_may_have(index, address)) {
        return NULL;
    }
    n = count_from(index, address);
    entry = n > 0 ? &index->entries.items[n - 1] : NULL;
    return entry && address < entry->end ? entry : NULL;
}

bool np_hook_index_remove(np_hook_index *index, const char *begin, np_hook_entry *entry)
{
    np_hook_entry *found = np_hook_index_find(index, begin);
    size_t at;
    if (!found || found->begin != begin) {
        return false;
    }
    *entry = *found;
    at = (size_t)(found - index->entries.items);
    index->entries.n--;
    memmove(&index->entries.items[at], &index->entries.items[at + 1],
            (index->entries.n - at) * sizeof *index->entries.items);
    index->begins.n--;
    memmove(&index->begins.items[at], &index->begins.items[at + 1],
            (index->begins.n - at) * sizeof *index->begins.items);
    index->lowest = index->entries.n > 0 ? index->entries.items[0].begin : NULL;
    index->highest = index->entries.n > 0 ? index->entries.items[index->entries.n - 1].end : NULL;
    return true;
}

bool np_hook_index_is_valid(const np_hook_index *index)
{
    for (size_t i = 0; i < index->entries.n; i++) {
        const np_hook_entry *entry = &index->entries.items[i];
        if (entry->begin >= entry->end || index->begins.items[i] != entry->begin || entry->begin < index->lowest ||
            entry->end > index->highest || (i > 0 && entry[-1].end > entry->begin)) {
            return false;
        }
    }
    return true;
}
