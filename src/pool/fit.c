#include "pool/fit.h"

#include <stdlib.h>

const char *np_order_name(np_order order)
{
    switch (order) {
#define ORDER_NAME(name, text) \
    case name:                 \
        return text;
        NP_ORDER_MAP(ORDER_NAME)
#undef ORDER_NAME
    case NP_N_ORDERS:
        break;
    }
    return "unknown order";
}

/* What the items are sorted by: rank first, then the ties. Largest first in all but the last. */
typedef struct ranked {
    double rank;
    uint64_t size;
    uint32_t item;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    if (a->size != b->size) {
        return a->size > b->size ? -1 : 1;
    }
    return a->item < b->item ? -1 : a->item > b->item;
}

/* load[s] of the part's sections. */
static void part_loads(const np_sections *sections, const np_part *part, double *load)
{
    uint32_t base = part->sections.begin;
    uint32_t n = part->sections.end - base;
    for (uint32_t i = 0; i < part->n_items; i++) {
        const np_item *item = &sections->items.items[part->first_item + i];
        for (uint32_t k = 0; k < item->n_ranges; k++) {
            np_range range = sections->ranges.items[item->first_range + k];
            load[range.begin - base] += (double)item->size;
            if (range.end - base < n) {
                load[range.end - base] -= (double)item->size;
            }
        }
    }
    for (uint32_t s = 1; s < n; s++) {
        load[s] += load[s - 1];
    }
}

static double rank_of(const np_sections *sections, const np_part *part, const np_item *item, np_order order,
                      const double *load)
{
    double size = (double)item->size;
    double length = (double)item->n_sections;
    double highest = 0;
    switch (order) {
    case NP_ORDER_SIZE:
        return size;
    case NP_ORDER_AREA:
        return size * length;
    case NP_ORDER_LENGTH:
        return length;
    case NP_ORDER_LENGTH_SIZE:
        return length * length * size;
    case NP_ORDER_SIZE_LENGTH:
        return size * size * length;
    case NP_ORDER_BEGIN:
        return -(double)sections->ranges.items[item->first_range].begin;
    case NP_ORDER_LOAD:
        for (uint32_t k = 0; k < item->n_ranges; k++) {
            np_range range = sections->ranges.items[item->first_range + k];
            for (uint32_t s = range.begin; s < range.end; s++) {
                double here = load[s - part->sections.begin];
                highest = here > highest ? here : highest;
            }
        }
        return highest;
    case NP_N_ORDERS:
        break;
    }
    return 0;
}

neap_status np_fit_order(const np_sections *sections, const np_part *part, np_order order, uint32_t *items)
{
    const neap_memory *memory = sections->memory;
    uint32_t n_sections = part->sections.end - part->sections.begin;
    ranked *ranks = np_memory_alloc(memory, part->n_items, sizeof *ranks);
    double *load = np_memory_alloc_zero(memory, n_sections, sizeof *load);
    neap_status status = ranks && load ? NEAP_OK : NEAP_NO_MEMORY;

    if (status == NEAP_OK) {
        part_loads(sections, part, load);
        for (uint32_t i = 0; i < part->n_items; i++) {
            const np_item *item = &sections->items.items[part->first_item + i];
            double rank = rank_of(sections, part, item, order, load);
            ranks[i] = (ranked){rank, item->size, part->first_item + i};
        }
        qsort(ranks, part->n_items, sizeof *ranks, compare_ranked);
        for (uint32_t i = 0; i < part->n_items; i++) {
            items[i] = ranks[i].item;
        }
    }
    np_memory_free(memory, ranks, part->n_items, sizeof *ranks);
    np_memory_free(memory, load, n_sections, sizeof *load);
    return status;
}

static neap_status place_one(const np_sections *sections, const np_item *item, np_fit_rule rule,
                             np_occupied *occupied, uint64_t *offset)
{
    const np_range *ranges = &sections->ranges.items[item->first_range];
    neap_status status = NEAP_OK;
    uint64_t at = item->fixed;
    if (item->fixed == NEAP_NO_OFFSET) {
        status = rule == NP_FIT_FIRST
                     ? np_occupied_first_fit(occupied, ranges, item->n_ranges, item->size, &at)
                     : np_occupied_best_fit(occupied, ranges, item->n_ranges, item->size, &at);
    }
    if (status == NEAP_OK) {
        status = np_occupied_add(occupied, ranges, item->n_ranges, at, at + item->size);
    }
    if (status == NEAP_OK) {
        *offset = at;
    }
    return status;
}

neap_status np_fit_place(const np_sections *sections, const uint32_t *items, uint32_t n_items, np_fit_rule rule,
                         uint64_t give_up, np_occupied *occupied, uint64_t *offsets, uint64_t *height)
{
    uint64_t top = 0;
    for (int free_ones = sections->has_fixed ? 0 : 1; free_ones < 2; free_ones++) {
        for (uint32_t i = 0; i < n_items && top <= give_up; i++) {
            const np_item *item = &sections->items.items[items[i]];
            neap_status status;
            if ((item->fixed == NEAP_NO_OFFSET) != (free_ones == 1)) {
                continue;
            }
            status = place_one(sections, item, rule, occupied, &offsets[items[i]]);
            if (status != NEAP_OK) {
                return status;
            }
            if (offsets[items[i]] + item->size > top) {
                top = offsets[items[i]] + item->size;
            }
        }
    }
    *height = top;
    return NEAP_OK;
}
