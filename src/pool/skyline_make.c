/* skyline_make.c: from a part of the problem to the tables of its skyline. */
#include <stdlib.h>

#include "base/hash.h"
#include "pool/skyline_state.h"

static void free_arrays(sky_state *state)
{
    const neap_memory *memory = state->memory;
    np_memory_free(memory, state->sections, (size_t)state->n_sections + 1, sizeof *state->sections);
    np_memory_free(memory, state->items, state->n_items, sizeof *state->items);
    np_memory_free(memory, state->ranges, state->n_ranges, sizeof *state->ranges);
    np_memory_free(memory, state->members, state->n_members, sizeof *state->members);
    np_memory_free(memory, state->slot_of, state->n_members, sizeof *state->slot_of);
    np_memory_free(memory, state->low, state->n_items, sizeof *state->low);
    np_memory_free(memory, state->offset, state->n_items, sizeof *state->offset);
    np_memory_free(memory, state->blocked, state->n_sections, sizeof *state->blocked);
    np_memory_free(memory, state->witnessed, state->n_items, sizeof *state->witnessed);
    np_memory_free(memory, state->fixed_items, state->n_items, sizeof *state->fixed_items);
}

void sky_state_free(sky_state *state)
{
    free_arrays(state);
    np_array_free(state->memory, &state->trail);
    np_array_free(state->memory, &state->queue);
}

static neap_status allocate(sky_state *state)
{
    const neap_memory *memory = state->memory;
    state->sections = np_memory_alloc_zero(memory, (size_t)state->n_sections + 1, sizeof *state->sections);
    state->items = np_memory_alloc_zero(memory, state->n_items, sizeof *state->items);
    state->ranges = np_memory_alloc(memory, state->n_ranges, sizeof *state->ranges);
    state->members = np_memory_alloc(memory, state->n_members, sizeof *state->members);
    state->slot_of = np_memory_alloc(memory, state->n_members, sizeof *state->slot_of);
    state->low = np_memory_alloc_zero(memory, state->n_items, sizeof *state->low);
    state->offset = np_memory_alloc_zero(memory, state->n_items, sizeof *state->offset);
    state->blocked = np_memory_alloc_zero(memory, state->n_sections, sizeof *state->blocked);
    state->witnessed = np_memory_alloc(memory, state->n_items, sizeof *state->witnessed);
    state->fixed_items = np_memory_alloc(memory, state->n_items, sizeof *state->fixed_items);
    return state->sections && state->items && state->ranges && state->members && state->slot_of && state->low &&
                   state->offset && state->blocked && state->witnessed && state->fixed_items
               ? NEAP_OK
               : NEAP_NO_MEMORY;
}

static void fill_items(sky_state *state, const np_sections *sections, const np_part *part)
{
    np_range *range = state->ranges;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        const np_item *from = &sections->items.items[part->first_item + i];
        sky_item *to = &state->items[i];
        *to = (sky_item){.size = (int64_t)from->size, .fixed = -1, .ranges = range, .n_ranges = from->n_ranges};
        for (uint32_t k = 0; k < from->n_ranges; k++) {
            range->begin = sections->ranges.items[from->first_range + k].begin - part->sections.begin;
            range->end = sections->ranges.items[from->first_range + k].end - part->sections.begin;
            range++;
        }
        to->hull_begin = to->ranges[0].begin;
        to->hull_end = range[-1].end;
        to->slot = slot;
        to->mark = np_mix64(i + 1);
        slot += from->n_sections;
        state->has_holes = state->has_holes || from->n_ranges > 1;
        if (from->fixed != NEAP_NO_OFFSET) {
            to->fixed = (int64_t)from->fixed;
            state->fixed_items[state->n_fixed++] = i;
        }
    }
}

/* Orders by life, then size, so that equal items become neighbours. */
static int compare_alike(const void *left, const void *right)
{
    const sky_item *a = *(const sky_item *const *)left;
    const sky_item *b = *(const sky_item *const *)right;
    if (a->size != b->size) {
        return a->size < b->size ? -1 : 1;
    }
    if (a->fixed != b->fixed) {
        return a->fixed < b->fixed ? -1 : 1;
    }
    if (a->n_ranges != b->n_ranges) {
        return a->n_ranges < b->n_ranges ? -1 : 1;
    }
    for (uint32_t k = 0; k < a->n_ranges; k++) {
        if (a->ranges[k].begin != b->ranges[k].begin) {
            return a->ranges[k].begin < b->ranges[k].begin ? -1 : 1;
        }
        if (a->ranges[k].end != b->ranges[k].end) {
            return a->ranges[k].end < b->ranges[k].end ? -1 : 1;
        }
    }
    return 0;
}

static neap_status number_alike(sky_state *state)
{
    const sky_item **sorted = np_memory_alloc(state->memory, state->n_items, sizeof *sorted);
    uint32_t number = 0;
    if (!sorted) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < state->n_items; i++) {
        sorted[i] = &state->items[i];
    }
    qsort(sorted, state->n_items, sizeof *sorted, compare_alike);
    for (uint32_t i = 0; i < state->n_items; i++) {
        if (i > 0 && compare_alike(&sorted[i - 1], &sorted[i]) != 0) {
            number++;
        }
        state->items[sorted[i] - state->items].same_as = number;
    }
    /* Equal items weigh alike in hashes: which of them is unplaced does not matter. */
    for (uint32_t i = 0; i < state->n_items; i++) {
        state->items[i].mark = np_mix64((uint64_t)state->items[i].same_as + 1);
    }
    np_memory_free(state->memory, (void *)sorted, state->n_items, sizeof *sorted);
    return NEAP_OK;
}

neap_status sky_state_init(sky_state *state, const np_sections *sections, const np_part *part)
{
    sky_state made = {.memory = sections->memory, .failure_weight = 1, .n_items = part->n_items};
    neap_status status;
    made.n_sections = part->sections.end - part->sections.begin;
    for (uint32_t i = 0; i < part->n_items; i++) {
        made.n_ranges += sections->items.items[part->first_item + i].n_ranges;
        made.n_members += sections->items.items[part->first_item + i].n_sections;
    }
    if (made.n_members > UINT32_MAX) {
        return NEAP_TOO_LARGE;
    }
    status = allocate(&made);
    if (status == NEAP_OK) {
        fill_items(&made, sections, part);
        status = number_alike(&made);
    }
    if (status != NEAP_OK) {
        free_arrays(&made);
        return status;
    }
    *state = made;
    return NEAP_OK;
}

void sky_state_empty(sky_state *state)
{
    uint32_t at = 0;
    for (uint32_t s = 0; s <= state->n_sections; s++) {
        double failures = state->sections[s].failures;
        state->sections[s] =
            (sky_section){.cause_begin = s, .cause_end = s + 1, .failures = failures, .witness = NEAP_NEVER};
    }
    for (uint32_t i = 0; i < state->n_items; i++) {
        SKY_FOR_SECTIONS(&state->items[i], s)
        {
            state->sections[s].n_unplaced++;
        }
    }
    for (uint32_t s = 0; s < state->n_sections; s++) {
        state->sections[s].list = at;
        at += state->sections[s].n_unplaced;
        state->sections[s].n_unplaced = 0;
    }
    for (uint32_t i = 0; i < state->n_items; i++) {
        const sky_item *item = &state->items[i];
        uint32_t slot = item->slot;
        SKY_FOR_SECTIONS(item, s)
        {
            sky_section *section = &state->sections[s];
            state->slot_of[slot++] = section->n_unplaced;
            state->members[section->list + section->n_unplaced++] = i;
            section->unplaced += item->size;
        }
        for (uint32_t s = item->hull_begin + 1; s < item->hull_end; s++) {
            state->sections[s].n_crossing++;
        }
        state->sections[item->hull_begin].begin_marks += item->mark;
    }
}
