#include "pool/skyline_state.h"

#include <assert.h>

/* The place, in the item's own count, of one of its sections. */
static uint32_t rank_of_section(const sky_item *item, uint32_t section)
{
    uint32_t rank = 0;
    const np_range *range = item->ranges;
    while (section >= range->end) {
        rank += range->end - range->begin;
        range++;
    }
    return rank + (section - range->begin);
}

/* ---- changes ---- */

static neap_status log_change(sky_state *state, sky_change change)
{
    return np_array_push(state->memory, &state->trail, change);
}

/* The section looks to another item to fill it. NEAP_NEVER: to none. */
static void set_witness(sky_state *state, uint32_t s, uint32_t item)
{
    sky_section *section = &state->sections[s];
    if (section->witness == item) {
        return;
    }
    if (section->witness != NEAP_NEVER) {
        if (section->last_witnessed == NEAP_NEVER) {
            state->witnessed[section->witness] = section->next_witnessed;
        } else {
            state->sections[section->last_witnessed].next_witnessed = section->next_witnessed;
        }
        if (section->next_witnessed != NEAP_NEVER) {
            state->sections[section->next_witnessed].last_witnessed = section->last_witnessed;
        }
    }
    section->witness = item;
    if (item != NEAP_NEVER) {
        section->last_witnessed = NEAP_NEVER;
        section->next_witnessed = state->witnessed[item];
        if (section->next_witnessed != NEAP_NEVER) {
            state->sections[section->next_witnessed].last_witnessed = s;
        }
        state->witnessed[item] = s;
    }
}

/* Above every fixed item that it would run into on the way up. */
static int64_t above_fixed(const sky_state *state, const sky_item *item, int64_t height)
{
    bool moved = item->fixed < 0;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < state->n_fixed; i++) {
            const sky_item *other = &state->items[state->fixed_items[i]];
            bool meets = false;
            if (height >= other->fixed + other->size || height + item->size <= other->fixed) {
                continue;
            }
            for (uint32_t a = 0; a < item->n_ranges && !meets; a++) {
                for (uint32_t b = 0; b < other->n_ranges && !meets; b++) {
                    meets =
                        item->ranges[a].begin < other->ranges[b].end && other->ranges[b].begin < item->ranges[a].end;
                }
            }
            if (meets) {
                height = other->fixed + other->size;
                moved = true;
            }
        }
    }
    return height;
}

/* The low place rises. The sections that looked to the item to fill them have to look again. */
static neap_status raise_low(sky_state *state, uint32_t item_index, int64_t height)
{
    neap_status status;
    if (state->n_fixed > 0) {
        height = above_fixed(state, &state->items[item_index], height);
    }
    status =
        log_change(state, (sky_change){.kind = SKY_LOW, .index = item_index, .old_height = state->low[item_index]});
    if (status != NEAP_OK) {
        return status;
    }
    state->low[item_index] = height;
    for (uint32_t s = state->witnessed[item_index]; s != NEAP_NEVER; s = state->sections[s].next_witnessed) {
        if (state->sections[s].floor < height && np_array_push(state->memory, &state->queue, s) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    return NEAP_OK;
}

/* Raises a floor, and with it the low places of the unplaced items there. *possible false: a fixed one is now buried. */
static neap_status raise_floor(sky_state *state, uint32_t s, int64_t height, np_range cause, bool *possible)
{
    sky_section *section = &state->sections[s];
    sky_change change = {SKY_FLOOR, s, section->floor, section->witness, section->cause_begin, section->cause_end};
    uint32_t witness = NEAP_NEVER;
    neap_status status = log_change(state, change);
    if (status != NEAP_OK) {
        return status;
    }
    section->floor = height;
    section->cause_begin = cause.begin;
    section->cause_end = cause.end;
    for (uint32_t k = 0; k < section->n_unplaced; k++) {
        uint32_t item = state->members[section->list + k];
        if (state->low[item] < height) {
            if (state->items[item].fixed >= 0) {
                *possible = false;
                return NEAP_OK;
            }
            status = raise_low(state, item, height);
            if (status != NEAP_OK) {
                return status;
            }
        }
        if (state->low[item] == height) {
            witness = item;
        }
    }
    if (witness != NEAP_NEVER) {
        set_witness(state, s, witness);
        return NEAP_OK;
    }
    return np_array_push(state->memory, &state->queue, s);
}

/* An item with holes may owe its low place to any of its ranges. */
static uint32_t nearest_high_floor(const sky_state *state, const sky_item *item, uint32_t section, int64_t height)
{
    uint32_t nearest = NEAP_NEVER;
    uint32_t distance = NEAP_NEVER;
    SKY_FOR_SECTIONS(item, s)
    {
        uint32_t d = s < section ? section - s : s - section;
        if (state->sections[s].floor >= height && d < distance) {
            nearest = s;
            distance = d;
        }
    }
    assert(nearest != NEAP_NEVER);
    return nearest;
}

static void widen_by_floor(const sky_state *state, uint32_t s, np_range *cause)
{
    sky_widen(cause, state->sections[s].cause_begin, state->sections[s].cause_end);
}

void sky_state_explain(const sky_state *state, uint32_t s, int64_t below, np_range *cause)
{
    const sky_section *section = &state->sections[s];
    uint32_t left = s; /* the nearest high floors to both sides: whatever lives here and stands high meets one */
    uint32_t right = s;
    bool blames_left = false;
    bool blames_right = false;
    bool blames_either = false;

    if (state->n_fixed > 0) { /* low places then have other reasons too: blame everything */
        sky_widen(cause, 0, state->n_sections);
        return;
    }
    while (left > 0 && state->sections[left].floor < below) {
        left--;
    }
    while (right + 1 < state->n_sections && state->sections[right].floor < below) {
        right++;
    }
    for (uint32_t k = 0; k < section->n_unplaced; k++) {
        uint32_t index = state->members[section->list + k];
        const sky_item *item = &state->items[index];
        bool meets_left;
        bool meets_right;
        if (state->low[index] < below) {
            continue;
        }
        if (item->n_ranges > 1) {
            widen_by_floor(state, nearest_high_floor(state, item, s, below), cause);
            continue;
        }
        meets_left = item->hull_begin <= left && state->sections[left].floor >= below;
        meets_right = item->hull_end > right && state->sections[right].floor >= below;
        assert(meets_left || meets_right);
        blames_left = blames_left || !meets_right;
        blames_right = blames_right || !meets_left;
        blames_either = true;
    }
    if (blames_either && !blames_left && !blames_right) {
        blames_left = s - left <= right - s;
        blames_right = !blames_left;
    }
    if (blames_left) {
        widen_by_floor(state, left, cause);
    }
    if (blames_right) {
        widen_by_floor(state, right, cause);
    }
}

/* A section that nothing fits at its floor: the floor rises to the lowest low place of its unplaced items. */
static neap_status infer_floor(sky_state *state, uint32_t s, int64_t height, bool *possible)
{
    sky_section *section = &state->sections[s];
    np_range cause = {section->cause_begin, section->cause_end};
    sky_state_explain(state, s, height, &cause);
    sky_widen(&cause, s, s + 1);
    return raise_floor(state, s, height, cause, possible);
}

/* The unplaced item with the lowest low place; one that fits, if there is one. */
static uint32_t lowest_member(const sky_state *state, const sky_section *section)
{
    uint32_t lowest = state->members[section->list];
    for (uint32_t k = 1; k < section->n_unplaced && state->low[lowest] > section->floor; k++) {
        uint32_t item = state->members[section->list + k];
        if (state->low[item] < state->low[lowest]) {
            lowest = item;
        }
    }
    return lowest;
}

static bool is_unplaced(const sky_state *state, uint32_t item)
{
    return state->slot_of[state->items[item].slot] < state->sections[state->items[item].hull_begin].n_unplaced;
}

static bool overflows(const sky_state *state, const sky_section *section)
{
    return section->n_unplaced > 0 && section->floor + section->unplaced > state->capacity;
}

static void blame(sky_state *state, uint32_t s)
{
    sky_section *section = &state->sections[s];
    state->cause_begin = section->cause_begin < s ? section->cause_begin : s;
    state->cause_end = section->cause_end > s + 1 ? section->cause_end : s + 1;
    section->failures += state->failure_weight;
}

/* Works off the queue of sections that may have lost their witness. */
static neap_status infer(sky_state *state, bool *possible)
{
    neap_status status = NEAP_OK;
    while (state->queue.n > 0 && *possible && status == NEAP_OK) {
        uint32_t s = state->queue.items[--state->queue.n];
        sky_section *section = &state->sections[s];
        uint32_t lowest = section->witness;
        if (section->n_unplaced == 0 ||
            (lowest != NEAP_NEVER && state->low[lowest] == section->floor && is_unplaced(state, lowest))) {
            continue;
        }
        lowest = lowest_member(state, section);
        if (state->low[lowest] > section->floor) {
            status = infer_floor(state, s, state->low[lowest], possible);
            if (!*possible || overflows(state, section)) {
                *possible = false;
                blame(state, s);
            }
        } else {
            set_witness(state, s, lowest);
        }
    }
    state->queue.n = 0;
    return status;
}

/* Takes the item out of the lists of its sections. */
static neap_status remove_item(sky_state *state, uint32_t item_index)
{
    const sky_item *item = &state->items[item_index];
    uint32_t slot = item->slot;
    neap_status status = log_change(state, (sky_change){.kind = SKY_PLACED, .index = item_index});
    if (status != NEAP_OK) {
        return status;
    }
    SKY_FOR_SECTIONS(item, s)
    {
        sky_section *section = &state->sections[s];
        uint32_t last = --section->n_unplaced;
        uint32_t at = state->slot_of[slot];
        uint32_t other = state->members[section->list + last];
        section->unplaced -= item->size;
        state->members[section->list + last] = item_index;
        state->members[section->list + at] = other;
        state->slot_of[state->items[other].slot + rank_of_section(&state->items[other], s)] = at;
        state->slot_of[slot] = last;
        slot++;
    }
    for (uint32_t s = item->hull_begin + 1; s < item->hull_end; s++) {
        state->sections[s].n_crossing--;
    }
    state->sections[item->hull_begin].begin_marks -= item->mark;
    state->n_unplaced--;
    return NEAP_OK;
}

static void put_item_back(sky_state *state, uint32_t item_index)
{
    const sky_item *item = &state->items[item_index];
    SKY_FOR_SECTIONS(item, s) /* undone in reverse order, so that it still stands just past its list's end */
    {
        state->sections[s].n_unplaced++;
        state->sections[s].unplaced += item->size;
    }
    for (uint32_t s = item->hull_begin + 1; s < item->hull_end; s++) {
        state->sections[s].n_crossing++;
    }
    state->sections[item->hull_begin].begin_marks += item->mark;
    state->n_unplaced++;
}

neap_status sky_state_place(sky_state *state, uint32_t item_index, int64_t height, bool *possible)
{
    const sky_item *item = &state->items[item_index];
    neap_status status = remove_item(state, item_index);
    *possible = true;
    state->offset[item_index] = height;
    if (status != NEAP_OK) {
        return status;
    }
    SKY_FOR_SECTIONS(item, s)
    {
        /* What brought the floor up to the item still counts: without it, something could stand under the item. */
        np_range cause = {state->sections[s].cause_begin, state->sections[s].cause_end};
        status = raise_floor(state, s, height + item->size, cause, possible);
        if (status != NEAP_OK) {
            return status;
        }
        if (!*possible || overflows(state, &state->sections[s])) {
            *possible = false;
            blame(state, s);
            state->queue.n = 0;
            return NEAP_OK;
        }
    }
    if (state->no_inference) {
        state->queue.n = 0;
        return NEAP_OK;
    }
    return infer(state, possible);
}

neap_status sky_state_waste(sky_state *state, uint32_t s, int64_t height, np_range cause, bool *possible)
{
    neap_status status;
    *possible = true;
    status = raise_floor(state, s, height, cause, possible);
    if (status != NEAP_OK) {
        return status;
    }
    if (!*possible || overflows(state, &state->sections[s])) {
        *possible = false;
        blame(state, s);
        state->queue.n = 0;
        return NEAP_OK;
    }
    if (state->no_inference) {
        state->queue.n = 0;
        return NEAP_OK;
    }
    return infer(state, possible);
}

void sky_state_undo(sky_state *state, size_t trail_length)
{
    while (state->trail.n > trail_length) {
        const sky_change *change = &state->trail.items[--state->trail.n];
        switch ((sky_change_kind)change->kind) {
        case SKY_FLOOR:
            state->sections[change->index].floor = change->old_height;
            set_witness(state, change->index, change->old_witness);
            state->sections[change->index].cause_begin = change->cause_begin;
            state->sections[change->index].cause_end = change->cause_end;
            break;
        case SKY_LOW:
            state->low[change->index] = change->old_height;
            break;
        case SKY_PLACED:
            put_item_back(state, change->index);
            break;
        }
    }
}

neap_status sky_state_reset(sky_state *state, int64_t capacity, bool *possible)
{
    state->trail.n = 0;
    state->queue.n = 0;
    state->capacity = capacity;
    state->n_unplaced = state->n_items;
    sky_state_empty(state);
    *possible = true;
    for (uint32_t i = 0; i < state->n_items; i++) {
        const sky_item *item = &state->items[i];
        state->low[i] = item->fixed >= 0 ? item->fixed : above_fixed(state, item, 0);
        state->witnessed[i] = NEAP_NEVER;
    }
    for (uint32_t s = 0; s < state->n_sections; s++) {
        if (overflows(state, &state->sections[s])) {
            *possible = false;
            blame(state, s);
            return NEAP_OK;
        }
        if (np_array_push(state->memory, &state->queue, s) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    return infer(state, possible);
}

uint32_t sky_state_count_fitting(const sky_state *state, uint32_t s, uint32_t enough)
{
    const sky_section *section = &state->sections[s];
    const uint32_t *members = &state->members[section->list];
    uint32_t n_fitting = 0;
    for (uint32_t k = 0; k < section->n_unplaced && n_fitting < enough; k++) {
        n_fitting += state->low[members[k]] == section->floor;
    }
    return n_fitting;
}

bool sky_state_is_flat(const sky_state *state, uint32_t item)
{
    int64_t low = state->low[item];
    SKY_FOR_SECTIONS(&state->items[item], s)
    {
        if (state->sections[s].floor != low) {
            return false;
        }
    }
    return true;
}

bool sky_state_is_valid(const sky_state *state)
{
    for (uint32_t s = 0; s < state->n_sections; s++) {
        const sky_section *section = &state->sections[s];
        int64_t unplaced = 0;
        for (uint32_t k = 0; k < section->n_unplaced; k++) {
            uint32_t item = state->members[section->list + k];
            uint32_t rank = rank_of_section(&state->items[item], s);
            unplaced += state->items[item].size;
            if (state->low[item] < section->floor || state->slot_of[state->items[item].slot + rank] != k) {
                return false;
            }
        }
        if (unplaced != section->unplaced || section->cause_begin > s || section->cause_end <= s) {
            return false;
        }
    }
    return true;
}
