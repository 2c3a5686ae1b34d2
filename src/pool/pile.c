#include "pool/pile.h"

#include <string.h>

enum { N_STRETCHES = 64 };

neap_status np_pile_init(np_pile *pile, const np_sections *sections, const np_part *part)
{
    const neap_memory *memory = sections->memory;
    size_t n = part->n_items;
    np_pile made = {.sections = sections, .part = part};
    made.begins = np_memory_alloc(memory, n, sizeof *made.begins);
    made.ends = np_memory_alloc(memory, n, sizeof *made.ends);
    made.stretches = np_memory_alloc(memory, n, sizeof *made.stretches);
    made.items = np_memory_alloc(memory, n, sizeof *made.items);
    if (!made.begins || !made.ends || !made.stretches || !made.items) {
        np_pile_free(&made);
        return NEAP_NO_MEMORY;
    }
    *pile = made;
    return NEAP_OK;
}

void np_pile_free(np_pile *pile)
{
    const neap_memory *memory = pile->sections->memory;
    size_t n = pile->part->n_items;
    np_memory_free(memory, pile->begins, n, sizeof *pile->begins);
    np_memory_free(memory, pile->ends, n, sizeof *pile->ends);
    np_memory_free(memory, pile->stretches, n, sizeof *pile->stretches);
    np_memory_free(memory, pile->items, n, sizeof *pile->items);
}

static uint64_t stretch_of(const np_pile *pile, uint32_t section)
{
    const np_range *all = &pile->part->sections;
    return (uint64_t)(section - all->begin) * N_STRETCHES / (all->end - all->begin);
}

static uint64_t stretches_of(const np_pile *pile, uint32_t item)
{
    const np_item *own = &pile->sections->items.items[item];
    uint64_t stretches = 0;
    for (uint32_t k = 0; k < own->n_ranges; k++) {
        np_range range = pile->sections->ranges.items[own->first_range + k];
        uint64_t first = stretch_of(pile, range.begin);
        uint64_t last = stretch_of(pile, range.end - 1);
        stretches |= UINT64_MAX >> (N_STRETCHES - 1 - last + first) << first;
    }
    return stretches;
}

static bool meet(const np_sections *sections, uint32_t item, uint32_t other)
{
    const np_item *a = &sections->items.items[item];
    const np_item *b = &sections->items.items[other];
    const np_range *ranges_a = &sections->ranges.items[a->first_range];
    const np_range *ranges_b = &sections->ranges.items[b->first_range];
    for (uint32_t i = 0, k = 0; i < a->n_ranges && k < b->n_ranges;) {
        if (ranges_a[i].begin < ranges_b[k].end && ranges_b[k].begin < ranges_a[i].end) {
            return true;
        }
        if (ranges_a[i].end <= ranges_b[k].end) {
            i++;
        } else {
            k++;
        }
    }
    return false;
}

/* What was gone past ends below the place at hand, or does not meet the item: it is in no later one's way either. */
void np_pile_first_fits(const np_pile *pile, uint32_t item, const np_fitted *fitted, uint32_t n, uint64_t *offsets)
{
    uint64_t stretches = stretches_of(pile, item);
    uint64_t at = np_fitted_align_up(fitted, 0);
    uint32_t i = 0;
    for (uint32_t k = 0; k < n; k++) {
        for (; i < pile->n && pile->begins[i] < at + fitted->size; i++) {
            if ((pile->stretches[i] & stretches) != 0 && pile->ends[i] > at &&
                meet(pile->sections, item, pile->items[i])) {
                at = np_fitted_align_up(fitted, pile->ends[i]);
            }
        }
        offsets[k] = at;
        at = np_fitted_align_up(fitted, at + fitted->size);
    }
}

/* The first that begins above the offset. */
static uint32_t rank_of(const np_pile *pile, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = pile->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pile->begins[middle] <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void np_pile_add(np_pile *pile, uint32_t item, uint64_t begin, uint64_t end)
{
    uint32_t rank = rank_of(pile, begin);
    size_t n_above = pile->n - rank;
    memmove(&pile->begins[rank + 1], &pile->begins[rank], n_above * sizeof *pile->begins);
    memmove(&pile->ends[rank + 1], &pile->ends[rank], n_above * sizeof *pile->ends);
    memmove(&pile->stretches[rank + 1], &pile->stretches[rank], n_above * sizeof *pile->stretches);
    memmove(&pile->items[rank + 1], &pile->items[rank], n_above * sizeof *pile->items);
    pile->begins[rank] = begin;
    pile->ends[rank] = end;
    pile->stretches[rank] = stretches_of(pile, item);
    pile->items[rank] = item;
    pile->n++;
}
