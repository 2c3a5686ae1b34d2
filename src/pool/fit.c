#include "pool/fit.h"

#include <stdlib.h>
#include <string.h>

#include "pool/pile.h"

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
    case NP_ORDER_HOLES:
        return (item->n_ranges > 1 ? (double)sections->n_sections : 0) -
               (double)sections->ranges.items[item->first_range].begin;
    case NP_ORDER_END:
        return (double)sections->ranges.items[item->first_range + item->n_ranges - 1].end;
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

/* ---- placing ---- */

enum { MAX_ALIKE = 64 };

/* What is placed so far, in one of two forms. */
typedef struct placing {
    const np_sections *sections;
    const np_part *part;
    np_fit_rule rule;
    np_occupied *occupied;
    np_pile pile;
    bool has_pile; /* few items: `occupied` is not used */
} placing;

static bool are_alike(const np_sections *sections, const np_item *a, const np_item *b)
{
    const np_range *ranges_a = &sections->ranges.items[a->first_range];
    const np_range *ranges_b = &sections->ranges.items[b->first_range];
    return a->size == b->size && a->align == b->align && a->lead == b->lead && b->fixed == NEAP_NO_OFFSET &&
           a->n_ranges == b->n_ranges && memcmp(ranges_a, ranges_b, a->n_ranges * sizeof *ranges_a) == 0;
}

/* How many of the first n are like the first one: pieces of one block, there at the same times. */
static uint32_t count_alike(const placing *p, const uint32_t *items, uint32_t n)
{
    const np_sections *sections = p->sections;
    const np_item *first = &sections->items.items[items[0]];
    uint32_t n_alike = 1;
    n = n < MAX_ALIKE ? n : MAX_ALIKE;
    while (p->rule == NP_FIT_FIRST && first->align > 1 && first->fixed == NEAP_NO_OFFSET && n_alike < n &&
           are_alike(sections, first, &sections->items.items[items[n_alike]])) {
        n_alike++;
    }
    return n_alike;
}

/* Where n alike go, one after the other: what is below one is no hole for the next. */
static neap_status find_offsets(placing *p, uint32_t index, uint32_t n, uint64_t *found)
{
    const np_item *item = &p->sections->items.items[index];
    const np_range *ranges = &p->sections->ranges.items[item->first_range];
    np_fitted fitted = {
        .size = item->size, .align = item->align, .base = p->sections->base + (item->align - item->lead) % item->align};
    if (item->fixed != NEAP_NO_OFFSET) {
        found[0] = item->fixed;
        return NEAP_OK;
    }
    if (p->has_pile) {
        np_pile_first_fits(&p->pile, index, &fitted, n, found);
        return NEAP_OK;
    }
    return p->rule == NP_FIT_FIRST ? np_occupied_first_fits(p->occupied, ranges, item->n_ranges, &fitted, n, found)
                                   : np_occupied_best_fit(p->occupied, ranges, item->n_ranges, &fitted, &found[0]);
}

static neap_status take(placing *p, uint32_t index, uint64_t begin, uint64_t end)
{
    const np_item *item = &p->sections->items.items[index];
    if (p->has_pile) {
        np_pile_add(&p->pile, index, begin, end);
        return NEAP_OK;
    }
    return np_occupied_add(p->occupied, &p->sections->ranges.items[item->first_range], item->n_ranges, begin, end);
}

/* Places the first n items, which are alike; what touches is taken at once. *top is the highest end so far. */
static neap_status place_alike(placing *p, const uint32_t *items, uint32_t n, uint64_t *offsets, uint64_t *top)
{
    uint64_t size = p->sections->items.items[items[0]].size;
    uint64_t found[MAX_ALIKE];
    neap_status status = find_offsets(p, items[0], n, found);
    for (uint32_t i = 0, past; i < n && status == NEAP_OK; i = past) {
        for (past = i + 1; past < n && found[past] == found[past - 1] + size; past++) {}
        status = take(p, items[0], found[i], found[past - 1] + size);
    }
    for (uint32_t i = 0; i < n && status == NEAP_OK; i++) {
        offsets[items[i] - p->part->first_item] = found[i];
        *top = found[i] + size > *top ? found[i] + size : *top;
    }
    return status;
}

/* Those that are fixed, or all others. */
static neap_status place_kind(placing *p, bool is_fixed, const uint32_t *items, const np_stop *stop, uint64_t *offsets,
                              uint64_t *top)
{
    uint32_t until_stop = ITEMS_BETWEEN_STOPS;
    for (uint32_t i = 0, n_alike = 1; i < p->part->n_items; i += n_alike) {
        neap_status status;
        n_alike = 1;
        if ((p->sections->items.items[items[i]].fixed != NEAP_NO_OFFSET) != is_fixed) {
            continue;
        }
        if (--until_stop == 0) {
            until_stop = ITEMS_BETWEEN_STOPS;
            if (np_stop_asked(stop)) {
                *top = UINT64_MAX;
                return NEAP_OK;
            }
        }
        n_alike = count_alike(p, &items[i], p->part->n_items - i);
        status = place_alike(p, &items[i], n_alike, offsets, top);
        if (status != NEAP_OK) {
            return status;
        }
    }
    return NEAP_OK;
}

neap_status np_fit_place(const np_sections *sections, const np_part *part, const uint32_t *items, np_fit_rule rule,
                         const np_stop *stop, np_occupied *occupied, uint64_t *offsets, uint64_t *height)
{
    placing p = {.sections = sections, .part = part, .rule = rule, .occupied = occupied};
    uint64_t top = 0;
    neap_status status = NEAP_OK;
    p.has_pile = rule == NP_FIT_FIRST && part->n_items <= NP_PILE_ITEMS;
    if (p.has_pile) {
        status = np_pile_init(&p.pile, sections, part);
        if (status != NEAP_OK) {
            return status;
        }
    }
    if (sections->has_fixed) {
        status = place_kind(&p, true, items, stop, offsets, &top);
    }
    if (status == NEAP_OK && top != UINT64_MAX) {
        status = place_kind(&p, false, items, stop, offsets, &top);
    }
    if (p.has_pile) {
        np_pile_free(&p.pile);
    }
    if (status == NEAP_OK) {
        *height = top;
    }
    return status;
}
