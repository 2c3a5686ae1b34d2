#include "pool/skyline.h"

#include <stdlib.h>

#include "base/hash.h"
#include "pool/skyline_state.h"

typedef struct frame {
    size_t trail;        /* length of the trail before its decision */
    uint64_t state_hash; /* of the component searched here; what is remembered if all fails */
    int64_t height;      /* the floor to fill */
    uint32_t section;
    np_range component;    /* the sections that can have a part in a failure here */
    uint32_t first_choice; /* into `choices` */
    uint32_t n_choices;
    uint32_t n_tried;
    uint32_t item; /* decided now; NEAP_NEVER: waste */
    bool tried_waste;
    np_range cause; /* of the failures so far */
} frame;

/* Why there is no completion of the component around the section. */
typedef struct failure {
    uint32_t section;
    np_range cause;
} failure;

typedef struct failed_state {
    uint64_t hash; /* 0: empty */
    np_range cause;
} failed_state;

enum { N_FAILED_STATES = 1 << 15, NODES_BETWEEN_STOPS = 256 };

struct np_skyline {
    sky_state state;
    const np_skyline_query *query; /* of the search in progress */
    np_array(frame) frames;
    np_array(uint32_t) choices;
    failed_state *failed;    /* a hash table without chains: the newest wins */
    int64_t failed_capacity; /* what the table is about */
    uint64_t n_nodes;
    uint64_t n_nodes_before; /* of earlier searches */
};

uint64_t np_skyline_weight(const np_sections *sections, const np_part *part)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        weight += sections->items.items[part->first_item + i].n_sections;
    }
    return weight;
}

neap_status np_skyline_create(const np_sections *sections, const np_part *part, np_skyline **skyline)
{
    const neap_memory *memory = sections->memory;
    np_skyline *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status;
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    status = sky_state_init(&made->state, sections, part);
    if (status != NEAP_OK) {
        np_memory_free(memory, made, 1, sizeof *made);
        return status;
    }
    made->failed = np_memory_alloc_zero(memory, N_FAILED_STATES, sizeof *made->failed);
    if (!made->failed) {
        np_skyline_free(made);
        return NEAP_NO_MEMORY;
    }
    *skyline = made;
    return NEAP_OK;
}

void np_skyline_free(np_skyline *skyline)
{
    if (skyline) {
        const neap_memory *memory = skyline->state.memory;
        np_array_free(memory, &skyline->frames);
        np_array_free(memory, &skyline->choices);
        np_memory_free(memory, skyline->failed, N_FAILED_STATES, sizeof *skyline->failed);
        sky_state_free(&skyline->state);
        np_memory_free(memory, skyline, 1, sizeof *skyline);
    }
}

uint64_t np_skyline_nodes(const np_skyline *skyline)
{
    return skyline->n_nodes_before + skyline->n_nodes;
}

static bool is_off(const np_skyline *skyline, unsigned what)
{
    return (skyline->query->switches_off & what) != 0;
}

/* ---- remembering failed states ---- */

/* All sections that this one is tied to by unplaced items. What is decided elsewhere from now on can neither make them
 * fail nor mend them: their failures return to nodes among them. (Without backjumping, to any node.) */
static np_range component_of(const np_skyline *skyline, uint32_t section)
{
    const sky_state *state = &skyline->state;
    np_range component = {section, section + 1};
    if (is_off(skyline, NP_SKYLINE_NO_BACKJUMPING)) {
        return (np_range){0, state->n_sections};
    }
    while (component.begin > 0 && state->sections[component.begin].n_crossing > 0) {
        component.begin--;
    }
    while (component.end < state->n_sections && state->sections[component.end].n_crossing > 0) {
        component.end++;
    }
    return component;
}

static uint64_t hash_component(const sky_state *state, np_range component)
{
    uint64_t hash = np_hash_combine(component.begin, component.end);
    for (uint32_t s = component.begin; s < component.end; s++) {
        const sky_section *here = &state->sections[s];
        if (here->n_unplaced > 0) {
            hash += np_mix64((uint64_t)here->floor * 0x9fb21c651e98df25u + s) + here->begin_marks;
        }
    }
    return hash ? hash : 1;
}

static const failed_state *find_failed(const np_skyline *skyline, uint64_t hash)
{
    const failed_state *entry = &skyline->failed[hash % N_FAILED_STATES];
    return entry->hash == hash ? entry : NULL;
}

/* The floors in the stretch may have come about in another way this time: their causes count too. */
static np_range cause_now(const sky_state *state, np_range cause)
{
    np_range widened = cause;
    for (uint32_t s = cause.begin; s < cause.end; s++) {
        sky_widen(&widened, state->sections[s].cause_begin, state->sections[s].cause_end);
    }
    return widened;
}

/* ---- choices of a node ---- */

static bool is_alike_chosen(const np_skyline *skyline, uint32_t first, uint32_t item)
{
    const sky_item *items = skyline->state.items;
    for (size_t i = first; i < skyline->choices.n; i++) {
        if (items[skyline->choices.items[i]].same_as == items[item].same_as) {
            return true;
        }
    }
    return false;
}

/* Appends what can fill the section, the preferred ones first. */
static neap_status list_choices(np_skyline *skyline, uint32_t s)
{
    const sky_state *state = &skyline->state;
    const sky_section *section = &state->sections[s];
    const double *preference = skyline->query->preference;
    uint32_t first = (uint32_t)skyline->choices.n;
    for (uint32_t k = 0; k < section->n_unplaced; k++) {
        uint32_t item = state->members[section->list + k];
        size_t at;
        if (state->low[item] != section->floor ||
            (!is_off(skyline, NP_SKYLINE_NO_SYMMETRY) && is_alike_chosen(skyline, first, item))) {
            continue;
        }
        if (np_array_push(state->memory, &skyline->choices, item) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        for (at = skyline->choices.n - 1; at > first; at--) { /* insertion: the lists are short */
            uint32_t before = skyline->choices.items[at - 1];
            if (preference[before] > preference[item] || (preference[before] == preference[item] && before < item)) {
                break;
            }
            skyline->choices.items[at] = before;
        }
        skyline->choices.items[at] = item;
    }
    return NEAP_OK;
}

/* Opens a node. *failed: it is known to fail already, as *failure says. */
static neap_status open_node(np_skyline *skyline, bool *failed, failure *known_failure)
{
    sky_state *state = &skyline->state;
    uint32_t s = sky_choose_section(state, skyline->query->rule);
    frame node = {.trail = state->trail.n, .section = s};
    neap_status status;

    *failed = false;
    if (s == NEAP_NEVER) { /* cannot be: the lowest section is always in a valley */
        return NEAP_INTERNAL;
    }
    node.height = state->sections[s].floor;
    node.component = component_of(skyline, s);
    if (!is_off(skyline, NP_SKYLINE_NO_MEMORY)) {
        const failed_state *known;
        node.state_hash = hash_component(state, node.component);
        known = find_failed(skyline, node.state_hash);
        if (known) {
            *failed = true;
            *known_failure = (failure){s, cause_now(state, known->cause)};
            return NEAP_OK;
        }
    }
    node.first_choice = (uint32_t)skyline->choices.n;
    status = list_choices(skyline, s);
    if (status != NEAP_OK) {
        return status;
    }
    node.n_choices = (uint32_t)skyline->choices.n - node.first_choice;
    node.cause = (np_range){state->sections[s].cause_begin, state->sections[s].cause_end};
    sky_widen(&node.cause, s, s + 1);
    sky_state_explain(state, s, node.height + 1, &node.cause); /* why the others cannot fill it */
    return np_array_push(state->memory, &skyline->frames, node);
}

/* ---- waste ---- */

/* Nothing stands on the floor: how high could the next item of the section stand at the least? On another item that
 * lies on the floor under one of those that would fit, or where one that does not fit would stand anyway. */
static int64_t waste_height(const np_skyline *skyline, const frame *node, np_range *cause)
{
    const sky_state *state = &skyline->state;
    const sky_section *section = &state->sections[node->section];
    int64_t smallest = INT64_MAX;
    int64_t height = INT64_MAX;
    bool alone = node->n_choices == 1;

    for (uint32_t k = 0; k < section->n_unplaced; k++) {
        uint32_t index = state->members[section->list + k];
        const sky_item *item = &state->items[index];
        if (state->low[index] > node->height) {
            height = state->low[index] < height ? state->low[index] : height;
            continue;
        }
        sky_widen(cause, item->hull_begin, item->hull_end);
        for (uint32_t r = 0; r < item->n_ranges; r++) {
            for (uint32_t s = item->ranges[r].begin; s < item->ranges[r].end; s++) {
                const sky_section *under = &state->sections[s];
                sky_widen(cause, under->cause_begin,
                          under->cause_end); /* the other stands on this floor at the least */
                for (uint32_t j = 0; j < under->n_unplaced; j++) {
                    uint32_t other = state->members[under->list + j];
                    if (state->items[other].size < smallest && !(alone && other == index)) {
                        smallest = state->items[other].size;
                    }
                }
            }
        }
    }
    if (smallest != INT64_MAX && node->height + smallest < height && !(skyline->query->leaps && height != INT64_MAX)) {
        height = node->height + smallest;
    }
    if (height != INT64_MAX) {
        sky_state_explain(state, node->section, height, cause);
    }
    return height;
}

/* Tries waste. *possible false: that fails too, for the state's cause. */
static neap_status try_waste(np_skyline *skyline, frame *node, bool *possible)
{
    sky_state *state = &skyline->state;
    const sky_section *section = &state->sections[node->section];
    np_range cause = node->cause;
    int64_t height;

    node->tried_waste = true;
    node->item = NEAP_NEVER;
    *possible = false;
    state->cause_begin = node->section;
    state->cause_end = node->section + 1;
    if (node->height + 1 + section->unplaced > state->capacity) {
        return NEAP_OK; /* nothing to waste: the section alone is to blame, with what the node blames anyway */
    }
    height = waste_height(skyline, node, &cause);
    state->cause_begin = cause.begin;
    state->cause_end = cause.end;
    if (height == INT64_MAX || height + section->unplaced > state->capacity) {
        return NEAP_OK;
    }
    return sky_state_waste(state, node->section, height, cause, possible);
}

/* ---- the search ---- */

static bool is_to_blame(const np_skyline *skyline, const frame *node, failure failed)
{
    const sky_item *item;
    np_range cause = failed.cause;
    if (is_off(skyline, NP_SKYLINE_NO_BACKJUMPING)) {
        return true;
    }
    if (failed.section < node->component.begin || failed.section >= node->component.end) {
        return false; /* the stretch may reach over, but these two were apart already */
    }
    if (node->item == NEAP_NEVER) {
        return cause.begin <= node->section && node->section < cause.end;
    }
    item = &skyline->state.items[node->item];
    for (uint32_t k = 0; k < item->n_ranges; k++) {
        if (item->ranges[k].begin < cause.end && cause.begin < item->ranges[k].end) {
            return true;
        }
    }
    return false;
}

static void close_node(np_skyline *skyline)
{
    const frame *node = &skyline->frames.items[--skyline->frames.n];
    skyline->choices.n = node->first_choice;
}

/* Takes the failure back to the last decision it depends on. */
static void fail_back(np_skyline *skyline, failure failed)
{
    while (skyline->frames.n > 0) {
        frame *node = &skyline->frames.items[skyline->frames.n - 1];
        sky_state_undo(&skyline->state, node->trail);
        if (is_to_blame(skyline, node, failed)) {
            sky_widen(&node->cause, failed.cause.begin, failed.cause.end);
            return;
        }
        close_node(skyline);
    }
}

/* Takes the next decision of the innermost node. *open: it stands, and the search goes deeper. */
static neap_status decide(np_skyline *skyline, bool *open)
{
    sky_state *state = &skyline->state;
    frame *node = &skyline->frames.items[skyline->frames.n - 1];
    neap_status status = NEAP_OK;

    *open = false;
    if (node->n_tried < node->n_choices) {
        node->item = skyline->choices.items[node->first_choice + node->n_tried++];
        status = sky_state_place(state, node->item, node->height, open);
    } else if (!node->tried_waste) {
        status = try_waste(skyline, node, open);
    } else { /* nothing is left to try here */
        failure failed = {node->section, node->cause};
        if (!is_off(skyline, NP_SKYLINE_NO_MEMORY)) {
            skyline->failed[node->state_hash % N_FAILED_STATES] = (failed_state){node->state_hash, node->cause};
        }
        close_node(skyline);
        fail_back(skyline, failed);
        return NEAP_OK;
    }
    if (status == NEAP_OK && !*open) {
        sky_state_undo(state, node->trail);
        sky_widen(&node->cause, state->cause_begin, state->cause_end);
    }
    return status;
}

static bool out_of_budget(np_skyline *skyline)
{
    const np_skyline_query *query = skyline->query;
    skyline->n_nodes++;
    if (skyline->n_nodes > query->max_nodes) {
        return true;
    }
    return skyline->n_nodes % NODES_BETWEEN_STOPS == 0 && np_stop_asked(query->stop);
}

static neap_status run(np_skyline *skyline, np_skyline_answer *answer)
{
    sky_state *state = &skyline->state;
    bool open = true;
    while (true) {
        neap_status status;
        bool failed;
        failure known;
        if (!open && skyline->frames.n == 0) {
            *answer = NP_SKYLINE_IMPOSSIBLE;
            return NEAP_OK;
        }
        if (open) {
            if (state->n_unplaced == 0) {
                *answer = NP_SKYLINE_PLACED;
                return NEAP_OK;
            }
            if (out_of_budget(skyline)) {
                *answer = NP_SKYLINE_GAVE_UP;
                return NEAP_OK;
            }
            status = open_node(skyline, &failed, &known);
            if (status != NEAP_OK) {
                return status;
            }
            if (failed) {
                open = false;
                fail_back(skyline, known);
                continue;
            }
        }
        status = decide(skyline, &open);
        if (status != NEAP_OK) {
            return status;
        }
    }
}

static void forget_failures(np_skyline *skyline, int64_t capacity)
{
    if (skyline->failed_capacity != capacity) {
        for (size_t i = 0; i < N_FAILED_STATES; i++) {
            skyline->failed[i].hash = 0;
        }
        skyline->failed_capacity = capacity;
    }
}

neap_status np_skyline_search(np_skyline *skyline, const np_skyline_query *query, uint64_t *offsets,
                              np_skyline_answer *answer)
{
    sky_state *state = &skyline->state;
    bool possible;
    np_skyline_answer found;
    neap_status status;

    skyline->query = query;
    skyline->n_nodes_before += skyline->n_nodes;
    skyline->n_nodes = 0;
    skyline->frames.n = 0;
    skyline->choices.n = 0;
    forget_failures(skyline, query->leaps ? -(int64_t)query->capacity : (int64_t)query->capacity);
    state->no_inference = is_off(skyline, NP_SKYLINE_NO_INFERENCE);
    state->failure_weight *= 1.1;
    if (state->failure_weight > 1e100) {
        for (uint32_t s = 0; s < state->n_sections; s++) {
            state->sections[s].failures /= 1e100;
        }
        state->failure_weight /= 1e100;
    }
    status = sky_state_reset(state, (int64_t)query->capacity, &possible);
    if (status != NEAP_OK) {
        return status;
    }
    if (!possible) {
        *answer = NP_SKYLINE_IMPOSSIBLE;
        return NEAP_OK;
    }
    status = run(skyline, &found);
    if (status != NEAP_OK) {
        return status;
    }
    if (found == NP_SKYLINE_PLACED) {
        for (uint32_t i = 0; i < state->n_items; i++) {
            offsets[i] = (uint64_t)state->offset[i];
        }
    }
    *answer = found == NP_SKYLINE_IMPOSSIBLE && query->leaps ? NP_SKYLINE_GAVE_UP : found;
    return NEAP_OK;
}

bool np_skyline_is_valid(const np_skyline *skyline)
{
    return sky_state_is_valid(&skyline->state);
}
