#include "pool/fit.h"

#include <stdlib.h>

enum { ITEMS_BETWEEN_STOPS = 512 };

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
    uint64_t tie;
    uint32_t item;
} ranked;

static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left;
    const ranked *b = right;
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    if (a->tie != b->tie) {
        return a->tie > b->tie ? -1 : 1;
    }
    return a->item < b->item ? -1 : a->item > b->item;
}

/* The part's load by section as a tree of maxima: leaves at [n, 2n), node i over 2i and 2i + 1. */
static void load_maxima(const np_sections *sections, const np_part *part, double *maxima)
{
    uint32_t base = part->sections.begin;
    size_t n = part->sections.end - base;
    double *load = maxima + n;
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
    for (size_t s = 1; s < n; s++) {
        load[s] += load[s - 1];
    }
    for (size_t i = n - 1; i > 0; i--) {
        maxima[i] = maxima[2 * i] > maxima[2 * i + 1] ? maxima[2 * i] : maxima[2 * i + 1];
    }
}

static double highest_load(const double *maxima, size_t n, size_t begin, size_t end)
{
    double highest = 0;
    for (begin += n, end += n; begin < end; begin /= 2, end /= 2) {
        if (begin % 2 == 1) {
            highest = maxima[begin] > highest ? maxima[begin] : highest;
            begin++;
        }
        if (end % 2 == 1) {
            end--;
            highest = maxima[end] > highest ? maxima[end] : highest;
        }
    }
    return highest;
}

static double rank_by_load(const np_sections *sections, const np_part *part, const np_item *item, const double *maxima)
{
    uint32_t base = part->sections.begin;
    double highest = 0;
    for (uint32_t k = 0; k < item->n_ranges; k++) {
        np_range range = sections->ranges.items[item->first_range + k];
        double here = highest_load(maxima, part->sections.end - base, range.begin - base, range.end - base);
        highest = here > highest ? here : highest;
    }
    return highest;
}

static double rank_of(const np_sections *sections, const np_part *part, const np_item *item, np_order order,
                      const double *maxima)
{
    double size = (double)item->size;
    double length = (double)item->n_sections;
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
    case NP_ORDER_LOAD_LENGTH:
        return rank_by_load(sections, part, item, maxima);
    case NP_N_ORDERS:
        break;
    }
    return 0;
}

neap_status np_fit_ranks(const np_sections *sections, const np_part *part, np_order order, double *ranks)
{
    const neap_memory *memory = sections->memory;
    size_t n_maxima = 2 * (size_t)(part->sections.end - part->sections.begin);
    double *maxima = np_memory_alloc_zero(memory, n_maxima, sizeof *maxima);
    if (!maxima) {
        return NEAP_NO_MEMORY;
    }
    load_maxima(sections, part, maxima);
    for (uint32_t i = 0; i < part->n_items; i++) {
        ranks[i] = rank_of(sections, part, &sections->items.items[part->first_item + i], order, maxima);
    }
    np_memory_free(memory, maxima, n_maxima, sizeof *maxima);
    return NEAP_OK;
}

neap_status np_fit_order(const np_sections *sections, const np_part *part, np_order order, uint32_t *items)
{
    const neap_memory *memory = sections->memory;
    size_t n = part->n_items;
    double *ranks = np_memory_alloc(memory, n, sizeof *ranks);
    ranked *sorted = np_memory_alloc(memory, n, sizeof *sorted);
    neap_status status = ranks && sorted ? np_fit_ranks(sections, part, order, ranks) : NEAP_NO_MEMORY;

    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            const np_item *item = &sections->items.items[part->first_item + i];
            uint64_t tie = order == NP_ORDER_LOAD_LENGTH ? item->n_sections : item->size;
            sorted[i] = (ranked){ranks[i], tie, part->first_item + i};
        }
        qsort(sorted, n, sizeof *sorted, compare_ranked);
        for (size_t i = 0; i < n; i++) {
            items[i] = sorted[i].item;
        }
    }
    np_memory_free(memory, ranks, n, sizeof *ranks);
    np_memory_free(memory, sorted, n, sizeof *sorted);
    return status;
}

static neap_status place_one(const np_sections *sections, const np_item *item, np_fit_rule rule, np_occupied *occupied,
                             uint64_t *offset)
{
    const np_range *ranges = &sections->ranges.items[item->first_range];
    np_fitted fitted = {
        .size = item->size, .align = item->align, .base = sections->base + (item->align - item->lead) % item->align};
    neap_status status = NEAP_OK;
    uint64_t at = item->fixed;
    if (item->fixed == NEAP_NO_OFFSET) {
        status = rule == NP_FIT_FIRST ? np_occupied_first_fit(occupied, ranges, item->n_ranges, &fitted, &at)
                                      : np_occupied_best_fit(occupied, ranges, item->n_ranges, &fitted, &at);
    }
    if (status == NEAP_OK) {
        status = np_occupied_add(occupied, ranges, item->n_ranges, at, at + item->size);
    }
    if (status == NEAP_OK) {
        *offset = at;
    }
    return status;
}

neap_status np_fit_place(const np_sections *sections, const np_part *part, const uint32_t *items, np_fit_rule rule,
                         const np_stop *stop, np_occupied *occupied, uint64_t *offsets, uint64_t *height)
{
    uint64_t top = 0;
    for (int free_ones = sections->has_fixed ? 0 : 1; free_ones < 2; free_ones++) {
        for (uint32_t i = 0; i < part->n_items; i++) {
            const np_item *item = &sections->items.items[items[i]];
            uint64_t *offset = &offsets[items[i] - part->first_item];
            neap_status status;
            if ((item->fixed == NEAP_NO_OFFSET) != (free_ones == 1)) {
                continue;
            }
            if (i % ITEMS_BETWEEN_STOPS == ITEMS_BETWEEN_STOPS - 1 && np_stop_asked(stop)) {
                *height = UINT64_MAX;
                return NEAP_OK;
            }
            status = place_one(sections, item, rule, occupied, offset);
            if (status != NEAP_OK) {
                return status;
            }
            if (*offset + item->size > top) {
                top = *offset + item->size;
            }
        }
    }
    *height = top;
    return NEAP_OK;
}
