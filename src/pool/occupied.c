#include "pool/occupied.h"

#include <string.h>

/* ---- span sets ---- */

/* Index of the first span that ends at or after `at`. */
static uint32_t first_ending_from(const np_span_set *set, uint64_t at)
{
    uint32_t low = 0;
    uint32_t high = set->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (set->spans[middle].end < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Most sets hold a span or two, and there are many sets: they start small. */
static neap_status span_set_grow(const neap_memory *memory, np_span_set *set)
{
    uint32_t capacity = set->capacity ? 2 * set->capacity : 2;
    np_span *spans = memory->resize(memory->user, set->spans, set->capacity * sizeof *spans, capacity * sizeof *spans);
    if (!spans) {
        return NEAP_NO_MEMORY;
    }
    set->spans = spans;
    set->capacity = capacity;
    return NEAP_OK;
}

/* Adds [begin, end), melting together what overlaps or touches. */
static neap_status span_set_add(const neap_memory *memory, np_span_set *set, uint64_t begin, uint64_t end)
{
    uint32_t first = first_ending_from(set, begin);
    uint32_t past = first;
    while (past < set->n && set->spans[past].begin <= end) {
        past++;
    }
    if (first == past) {
        if (set->n == set->capacity) {
            neap_status status = span_set_grow(memory, set);
            if (status != NEAP_OK) {
                return status;
            }
        }
        memmove(&set->spans[first + 1], &set->spans[first], (set->n - first) * sizeof(np_span));
        set->spans[first] = (np_span){begin, end};
        set->n++;
        return NEAP_OK;
    }
    if (set->spans[first].begin > begin) {
        set->spans[first].begin = begin;
    }
    if (set->spans[past - 1].end > end) {
        end = set->spans[past - 1].end;
    }
    set->spans[first].end = end;
    memmove(&set->spans[first + 1], &set->spans[past], (set->n - past) * sizeof(np_span));
    set->n -= past - first - 1;
    return NEAP_OK;
}

static bool span_set_is_valid(const np_span_set *set)
{
    for (uint32_t i = 0; i < set->n; i++) {
        if (set->spans[i].begin >= set->spans[i].end || (i > 0 && set->spans[i - 1].end >= set->spans[i].begin)) {
            return false;
        }
    }
    return set->n <= set->capacity;
}

/* ---- the tree ---- */

neap_status np_occupied_init(np_occupied *occupied, const neap_memory *memory, np_range sections)
{
    uint32_t n_leaves = 1;
    np_occupied made = {.memory = np_memory_or_default(memory), .first_section = sections.begin};
    while (n_leaves < sections.end - sections.begin) {
        n_leaves *= 2;
    }
    made.n_leaves = n_leaves;
    made.own = np_memory_alloc_zero(memory, 2 * (size_t)n_leaves, sizeof *made.own);
    made.whole = np_memory_alloc_zero(memory, 2 * (size_t)n_leaves, sizeof *made.whole);
    if (!made.own || !made.whole) {
        np_memory_free(memory, made.own, 2 * (size_t)n_leaves, sizeof *made.own);
        np_memory_free(memory, made.whole, 2 * (size_t)n_leaves, sizeof *made.whole);
        return NEAP_NO_MEMORY;
    }
    *occupied = made;
    return NEAP_OK;
}

void np_occupied_free(np_occupied *occupied)
{
    size_t n_nodes = 2 * (size_t)occupied->n_leaves;
    for (size_t i = 0; i < n_nodes && occupied->own; i++) {
        np_memory_free(occupied->memory, occupied->own[i].spans, occupied->own[i].capacity, sizeof(np_span));
        np_memory_free(occupied->memory, occupied->whole[i].spans, occupied->whole[i].capacity, sizeof(np_span));
    }
    np_memory_free(occupied->memory, occupied->own, n_nodes, sizeof *occupied->own);
    np_memory_free(occupied->memory, occupied->whole, n_nodes, sizeof *occupied->whole);
    np_array_free(occupied->memory, &occupied->found);
    np_array_free(occupied->memory, &occupied->cursor);
    *occupied = (np_occupied){0};
}

void np_occupied_clear(np_occupied *occupied)
{
    for (size_t i = 0; i < 2 * (size_t)occupied->n_leaves; i++) {
        occupied->own[i].n = 0;
        occupied->whole[i].n = 0;
    }
}

/* Adds below `node`, which stands for the sections [low, high). */
static neap_status add_below(np_occupied *occupied, uint32_t node, np_range reach, np_range range, np_span span)
{
    uint32_t middle = reach.begin + (reach.end - reach.begin) / 2;
    neap_status status = span_set_add(occupied->memory, &occupied->whole[node], span.begin, span.end);
    if (status != NEAP_OK) {
        return status;
    }
    if (range.begin <= reach.begin && reach.end <= range.end) {
        return span_set_add(occupied->memory, &occupied->own[node], span.begin, span.end);
    }
    if (range.begin < middle) {
        status = add_below(occupied, 2 * node, (np_range){reach.begin, middle}, range, span);
    }
    if (status == NEAP_OK && range.end > middle) {
        status = add_below(occupied, 2 * node + 1, (np_range){middle, reach.end}, range, span);
    }
    return status;
}

neap_status np_occupied_add(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges, uint64_t begin,
                            uint64_t end)
{
    np_range all = {occupied->first_section, occupied->first_section + occupied->n_leaves};
    for (uint32_t k = 0; k < n_ranges; k++) {
        neap_status status = add_below(occupied, 1, all, ranges[k], (np_span){begin, end});
        if (status != NEAP_OK) {
            return status;
        }
    }
    return NEAP_OK;
}

/* Gathers the sets that together hold what is taken in the range. */
static neap_status find_below(np_occupied *occupied, uint32_t node, np_range reach, np_range range)
{
    uint32_t middle = reach.begin + (reach.end - reach.begin) / 2;
    bool covered = range.begin <= reach.begin && reach.end <= range.end;
    const np_span_set *set = covered ? &occupied->whole[node] : &occupied->own[node];
    neap_status status = NEAP_OK;

    if (occupied->whole[node].n == 0) {
        return NEAP_OK;
    }
    if (set->n > 0) {
        status = np_array_push(occupied->memory, &occupied->found, set);
    }
    if (covered) {
        return status;
    }
    if (status == NEAP_OK && range.begin < middle) {
        status = find_below(occupied, 2 * node, (np_range){reach.begin, middle}, range);
    }
    if (status == NEAP_OK && range.end > middle) {
        status = find_below(occupied, 2 * node + 1, (np_range){middle, reach.end}, range);
    }
    return status;
}

static neap_status find_sets(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges)
{
    np_range all = {occupied->first_section, occupied->first_section + occupied->n_leaves};
    occupied->found.n = 0;
    for (uint32_t k = 0; k < n_ranges; k++) {
        neap_status status = find_below(occupied, 1, all, ranges[k]);
        if (status != NEAP_OK) {
            return status;
        }
    }
    if (np_array_reserve(occupied->memory, &occupied->cursor, occupied->found.n) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < occupied->found.n; i++) {
        occupied->cursor.items[i] = 0;
    }
    return NEAP_OK;
}

/* Moves the cursor of set i to its first span that ends after `at`; NULL where there is none. Galloping: cursors move
 * far in one step when a large hole was needed. */
static const np_span *span_after(np_occupied *occupied, size_t i, uint64_t at)
{
    const np_span_set *set = occupied->found.items[i];
    uint32_t low = occupied->cursor.items[i];
    uint32_t step = 1;
    if (low < set->n && set->spans[low].end <= at) {
        uint32_t high = low + step;
        while (high < set->n && set->spans[high].end <= at) {
            low = high;
            step *= 2;
            high = low + step;
        }
        high = high < set->n ? high : set->n;
        while (low + 1 < high) { /* spans[low] ends by `at`, spans[high] does not (or is past the end) */
            uint32_t middle = low + (high - low) / 2;
            if (set->spans[middle].end <= at) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low++;
        occupied->cursor.items[i] = low;
    }
    return low < set->n ? &set->spans[low] : NULL;
}

/* The lowest offset from `from` on at which the units are free in all found sets. */
static uint64_t lowest_free(np_occupied *occupied, uint64_t from, const np_fitted *fitted)
{
    size_t n_agreeing = 0;
    uint64_t at = np_fitted_align_up(fitted, from);
    for (size_t i = 0; n_agreeing < occupied->found.n; i = i + 1 < occupied->found.n ? i + 1 : 0) {
        const np_span *span = span_after(occupied, i, at);
        n_agreeing++;
        while (span && span->begin < at + fitted->size) {
            at = np_fitted_align_up(fitted, span->end);
            n_agreeing = 1;
            span = span_after(occupied, i, at);
        }
    }
    return at;
}

neap_status np_occupied_first_fits(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                   const np_fitted *fitted, uint32_t n, uint64_t *offsets)
{
    uint64_t from = 0;
    neap_status status = find_sets(occupied, ranges, n_ranges);
    for (uint32_t i = 0; i < n && status == NEAP_OK; i++) { /* what is below one is no hole for the next */
        offsets[i] = lowest_free(occupied, from, fitted);
        from = offsets[i] + fitted->size;
    }
    return status;
}

neap_status np_occupied_first_fit(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                  const np_fitted *fitted, uint64_t *offset)
{
    return np_occupied_first_fits(occupied, ranges, n_ranges, fitted, 1, offset);
}

neap_status np_occupied_best_fit(np_occupied *occupied, const np_range *ranges, uint32_t n_ranges,
                                 const np_fitted *fitted, uint64_t *offset)
{
    uint64_t best_bytes = UINT64_MAX;
    uint64_t best = 0;
    uint64_t at = 0;
    bool last = false;
    neap_status status = find_sets(occupied, ranges, n_ranges);
    if (status != NEAP_OK) {
        return status;
    }
    while (!last) { /* one hole a round: it begins where the units are free, and ends where any set goes on */
        uint64_t end = UINT64_MAX;
        at = lowest_free(occupied, at, fitted);
        for (size_t i = 0; i < occupied->found.n; i++) {
            const np_span *span = span_after(occupied, i, at);
            if (span && span->begin < end) {
                end = span->begin;
            }
        }
        last = end == UINT64_MAX;
        if (!last) {
            if (end - at < best_bytes) {
                best_bytes = end - at;
                best = at;
            }
            at = end;
        }
    }
    *offset = best_bytes == UINT64_MAX ? at : best;
    return NEAP_OK;
}

bool np_occupied_is_valid(const np_occupied *occupied)
{
    for (size_t node = 1; node < 2 * (size_t)occupied->n_leaves; node++) {
        const np_span_set *own = &occupied->own[node];
        if (!span_set_is_valid(own) || !span_set_is_valid(&occupied->whole[node])) {
            return false;
        }
        for (uint32_t i = 0; i < own->n; i++) { /* the union holds the own set */
            uint32_t k = first_ending_from(&occupied->whole[node], own->spans[i].end);
            if (k == occupied->whole[node].n || occupied->whole[node].spans[k].begin > own->spans[i].begin) {
                return false;
            }
        }
    }
    return true;
}
