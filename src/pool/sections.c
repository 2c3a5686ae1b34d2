#include "pool/sections.h"

#include "base/checked.h"

/* For every time, the number of the section that a piece beginning (ending) there begins (ends) with. */
typedef struct section_index {
    uint32_t *at_begin;
    uint32_t *at_end;
    uint32_t n_times;
} section_index;

enum { BEGINS_HERE = 1, ENDS_HERE = 2 };

static void section_index_free(const neap_memory *memory, section_index *index)
{
    np_memory_free(memory, index->at_begin, (size_t)index->n_times + 1, sizeof *index->at_begin);
    np_memory_free(memory, index->at_end, (size_t)index->n_times + 1, sizeof *index->at_end);
}

/* A section closes at the first end after a begin: just before it, the live set is maximal. */
static neap_status section_index_make(const np_problem *problem, section_index *index, uint32_t *n_sections)
{
    const neap_memory *memory = problem->memory;
    size_t n = (size_t)problem->n_times + 1;
    uint32_t n_closed = 0;
    bool open = false;

    *index = (section_index){.n_times = problem->n_times};
    index->at_begin = np_memory_alloc_zero(memory, n, sizeof *index->at_begin);
    index->at_end = np_memory_alloc_zero(memory, n, sizeof *index->at_end);
    if (!index->at_begin || !index->at_end) {
        section_index_free(memory, index);
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < problem->pieces.n; i++) {
        index->at_begin[problem->pieces.items[i].begin] |= BEGINS_HERE;
        index->at_begin[problem->pieces.items[i].end] |= ENDS_HERE;
    }
    for (size_t t = 0; t < n; t++) {
        uint32_t marks = index->at_begin[t];
        if ((marks & ENDS_HERE) && open) {
            n_closed++;
            open = false;
        }
        index->at_end[t] = n_closed;
        index->at_begin[t] = n_closed;
        open = open || (marks & BEGINS_HERE);
    }
    *n_sections = n_closed;
    return NEAP_OK;
}

/* Appends the buffer's pieces as ranges of sections, joined where they touch. Room was reserved. */
static void add_ranges(np_sections *sections, const np_problem *problem, const section_index *index, np_item *item)
{
    const np_buffer *buffer = &problem->buffers.items[item->buffer];
    item->first_range = (uint32_t)sections->ranges.n;
    for (uint32_t k = 0; k < buffer->n_pieces; k++) {
        const np_piece *piece = &problem->pieces.items[buffer->first_piece + k];
        np_range range = {index->at_begin[piece->begin], index->at_end[piece->end]};
        np_range *last = item->n_ranges ? &sections->ranges.items[sections->ranges.n - 1] : NULL;
        item->n_sections += range.end - range.begin;
        if (last && last->end == range.begin) {
            last->end = range.end;
        } else {
            sections->ranges.items[sections->ranges.n++] = range;
            item->n_ranges++;
        }
    }
}

/* What all alignments divide, or 0. */
static uint64_t common_align(const np_problem *problem)
{
    uint64_t common = 1;
    for (size_t i = 0; i < problem->buffers.n; i++) {
        uint64_t align = problem->buffers.items[i].align;
        common = align > common ? align : common;
    }
    for (size_t i = 0; i < problem->buffers.n; i++) {
        if (common % problem->buffers.items[i].align != 0) {
            return 0;
        }
    }
    return common;
}

/* Buffers that move what stands above them by whole steps of all alignments stand below those that do not. */
static neap_status set_aside(np_sections *sections, const np_problem *problem, uint64_t common)
{
    const neap_memory *memory = sections->memory;
    size_t n = sections->everywhere.n;
    uint32_t *sorted = np_memory_alloc(memory, n, sizeof *sorted);
    size_t at = 0;
    if (!sorted) {
        return NEAP_NO_MEMORY;
    }
    for (int odd = 0; odd < 2; odd++) {
        for (size_t i = 0; i < n; i++) {
            uint64_t size = problem->buffers.items[sections->everywhere.items[i]].size;
            if ((common == 0 || size % common != 0) == (odd == 1)) {
                sorted[at++] = sections->everywhere.items[i];
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        sections->everywhere.items[i] = sorted[i];
    }
    np_memory_free(memory, sorted, n, sizeof *sorted);
    return NEAP_OK;
}

/* Splits the buffers into those that live everywhere and items, still in the problem's order. */
static neap_status collect(np_sections *sections, const np_problem *problem, const section_index *index)
{
    const neap_memory *memory = sections->memory;
    uint64_t common = common_align(problem);
    if (np_array_reserve(memory, &sections->ranges, problem->pieces.n) != NEAP_OK ||
        np_array_reserve(memory, &sections->items, problem->buffers.n) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        np_item item = {
            .size = buffer->size, .fixed = buffer->fixed, .align = buffer->align, .lead = buffer->lead, .buffer = i};
        bool may_be_set_aside = buffer->align == 1 || (common > 0 && buffer->size % common == 0 && buffer->lead == 0);
        add_ranges(sections, problem, index, &item);
        if (item.n_sections == sections->n_sections && !sections->has_fixed && may_be_set_aside) {
            sections->ranges.n = item.first_range;
            if (np_array_push(memory, &sections->everywhere, i) != NEAP_OK) {
                return NEAP_NO_MEMORY;
            }
            sections->base += buffer->size;
        } else {
            sections->items.items[sections->items.n++] = item;
        }
    }
    return common == 1 ? NEAP_OK : set_aside(sections, problem, common);
}

static np_range hull(const np_sections *sections, const np_item *item)
{
    const np_range *ranges = &sections->ranges.items[item->first_range];
    return (np_range){ranges[0].begin, ranges[item->n_ranges - 1].end};
}

/* Finds the parts: maximal runs of sections between boundaries that no item's hull crosses. part_of[s] is set. */
static neap_status find_parts(np_sections *sections, int64_t *cover, uint32_t *part_of)
{
    uint32_t n = sections->n_sections;
    int64_t n_crossing = 0;
    bool in_part = false;

    for (size_t i = 0; i < sections->items.n; i++) { /* an item crosses the boundaries begin + 1 .. end - 1 */
        np_range h = hull(sections, &sections->items.items[i]);
        cover[h.begin + 1]++;
        cover[h.end]--;
        part_of[h.begin] = 1; /* for now: something begins here */
    }
    for (uint32_t s = 0; s < n; s++) {
        n_crossing += cover[s];
        if (n_crossing == 0) {
            in_part = false;
        }
        if (!in_part && part_of[s]) {
            np_part part = {.sections = {s, s}};
            in_part = true;
            if (np_array_push(sections->memory, &sections->parts, part) != NEAP_OK) {
                return NEAP_NO_MEMORY;
            }
        }
        if (in_part) {
            part_of[s] = (uint32_t)sections->parts.n - 1;
            sections->parts.items[sections->parts.n - 1].sections.end = s + 1;
        } else {
            part_of[s] = NEAP_NEVER;
        }
    }
    return NEAP_OK;
}

/* Groups the items by part, keeping their order inside. */
static neap_status group_items(np_sections *sections, const uint32_t *part_of)
{
    size_t n = sections->items.n;
    np_item *sorted = np_memory_alloc(sections->memory, sections->items.capacity, sizeof *sorted);
    uint32_t at = 0;
    if (!sorted) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        sections->parts.items[part_of[hull(sections, &sections->items.items[i]).begin]].n_items++;
    }
    for (size_t p = 0; p < sections->parts.n; p++) {
        np_part *part = &sections->parts.items[p];
        part->first_item = at;
        at += part->n_items;
        part->n_items = 0;
    }
    for (size_t i = 0; i < n; i++) {
        np_part *part = &sections->parts.items[part_of[hull(sections, &sections->items.items[i]).begin]];
        sorted[part->first_item + part->n_items++] = sections->items.items[i];
    }
    np_memory_free(sections->memory, sections->items.items, sections->items.capacity, sizeof *sorted);
    sections->items.items = sorted;
    return NEAP_OK;
}

static void find_loads(np_sections *sections, int64_t *delta)
{
    for (size_t s = 0; s <= sections->n_sections; s++) {
        delta[s] = 0;
    }
    for (size_t i = 0; i < sections->items.n; i++) {
        const np_item *item = &sections->items.items[i];
        for (uint32_t k = 0; k < item->n_ranges; k++) {
            delta[sections->ranges.items[item->first_range + k].begin] += (int64_t)item->size;
            delta[sections->ranges.items[item->first_range + k].end] -= (int64_t)item->size;
        }
    }
    for (size_t p = 0; p < sections->parts.n; p++) {
        np_part *part = &sections->parts.items[p];
        int64_t now = 0;
        for (uint32_t s = part->sections.begin; s < part->sections.end; s++) {
            now += delta[s]; /* what begins at a part's end is the next part's, and all of a part ends by its end */
            if ((uint64_t)now > part->load) {
                part->load = (uint64_t)now;
            }
        }
        delta[part->sections.end] += now; /* the ends at the boundary belong to this part, not to the next */
        for (uint32_t i = 0; i < part->n_items; i++) {
            const np_item *item = &sections->items.items[part->first_item + i];
            if (item->fixed != NEAP_NO_OFFSET && item->fixed + item->size > part->load) {
                part->load = item->fixed + item->size;
            }
        }
        if (part->load > sections->load) {
            sections->load = part->load;
        }
    }
}

static neap_status divide(np_sections *sections)
{
    const neap_memory *memory = sections->memory;
    size_t n = (size_t)sections->n_sections + 2;
    int64_t *cover = np_memory_alloc_zero(memory, n, sizeof *cover);
    uint32_t *part_of = np_memory_alloc_zero(memory, n, sizeof *part_of);
    neap_status status = cover && part_of ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = find_parts(sections, cover, part_of);
    }
    if (status == NEAP_OK) {
        status = group_items(sections, part_of);
    }
    if (status == NEAP_OK) {
        find_loads(sections, cover);
    }
    np_memory_free(memory, cover, n, sizeof *cover);
    np_memory_free(memory, part_of, n, sizeof *part_of);
    return status;
}

/* All offsets and sums of offsets stay below this, so that signed differences are safe. */
static neap_status check_magnitudes(const np_problem *problem, bool *has_fixed)
{
    uint64_t total = 0;
    *has_fixed = false;
    for (size_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        if (!np_add_u64(total, buffer->size, &total) || !np_add_u64(total, buffer->align - 1, &total) ||
            total > INT64_MAX / 4) {
            return NEAP_TOO_LARGE;
        }
        if (buffer->fixed != NEAP_NO_OFFSET) {
            *has_fixed = true;
            if (buffer->fixed > INT64_MAX / 4) {
                return NEAP_TOO_LARGE;
            }
        }
    }
    return NEAP_OK;
}

neap_status np_sections_make(const np_problem *problem, np_sections *sections)
{
    np_sections made = {.memory = problem->memory};
    section_index index;
    neap_status status = check_magnitudes(problem, &made.has_fixed);
    if (status != NEAP_OK) {
        return status;
    }
    status = section_index_make(problem, &index, &made.n_sections);
    if (status != NEAP_OK) {
        return status;
    }
    status = collect(&made, problem, &index);
    section_index_free(problem->memory, &index);
    if (status == NEAP_OK) {
        status = divide(&made);
    }
    if (status != NEAP_OK) {
        np_sections_free(&made);
        return status;
    }
    *sections = made;
    return NEAP_OK;
}

void np_sections_free(np_sections *sections)
{
    np_array_free(sections->memory, &sections->everywhere);
    np_array_free(sections->memory, &sections->items);
    np_array_free(sections->memory, &sections->ranges);
    np_array_free(sections->memory, &sections->parts);
}

bool np_sections_is_valid(const np_sections *sections)
{
    size_t n_items = 0;
    uint32_t section = 0;
    for (size_t p = 0; p < sections->parts.n; p++) {
        const np_part *part = &sections->parts.items[p];
        if (part->first_item != n_items || part->n_items == 0 || part->sections.begin < section ||
            part->sections.begin >= part->sections.end) {
            return false;
        }
        n_items += part->n_items;
        section = part->sections.end;
        for (uint32_t i = 0; i < part->n_items; i++) {
            const np_item *item = &sections->items.items[part->first_item + i];
            np_range h = hull(sections, item);
            if (item->n_ranges == 0 || item->size == 0 || item->align == 0 || h.begin < part->sections.begin ||
                h.end > section) {
                return false;
            }
        }
    }
    return n_items == sections->items.n && section <= sections->n_sections;
}
