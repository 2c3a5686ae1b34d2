/* skyline_choose.c: which section of which valley a node branches on. */
#include "pool/skyline_state.h"

/* Items with holes in time may fit a valley with one range and hang over lower ground with another. */
static void block_sections(sky_state *state)
{
    state->n_choices++;
    for (uint32_t i = 0; i < state->n_items; i++) {
        const sky_item *item = &state->items[i];
        if (item->n_ranges == 1 || state->slot_of[item->slot] >= state->sections[item->hull_begin].n_unplaced ||
            sky_state_is_flat(state, i)) {
            continue;
        }
        for (uint32_t k = 0; k < item->n_ranges; k++) {
            for (uint32_t s = item->ranges[k].begin; s < item->ranges[k].end; s++) {
                if (state->sections[s].floor == state->low[i]) {
                    state->blocked[s] = state->n_choices;
                }
            }
        }
    }
}

/* How bad it would be to branch on the section; lower is better. Counting ways stops where it is worse than `worst`. */
static double badness(const sky_state *state, np_skyline_rule rule, uint32_t s, double worst)
{
    const sky_section *section = &state->sections[s];
    bool is_tight = section->floor + section->unplaced == state->capacity;
    double waste = is_tight ? 0.0 : 0.5;
    double weight = 1.0;
    uint32_t enough = NEAP_NEVER;
    switch (rule) {
    case NP_SKYLINE_LOWEST:
        return (double)section->floor;
    case NP_SKYLINE_TIGHTEST:
        if (!is_tight) {
            waste = 1e9;
        }
        break;
    case NP_SKYLINE_FAILING:
        weight = 1.0 + section->failures / state->failure_weight;
        break;
    case NP_SKYLINE_FEWEST:
    case NP_SKYLINE_N_RULES:
        break;
    }
    if (worst * weight < 1e6) {
        enough = (uint32_t)(worst * weight) + 1;
    }
    return ((double)sky_state_count_fitting(state, s, enough) + waste) / weight;
}

static uint32_t best_of_valley(const sky_state *state, np_skyline_rule rule, np_range valley, uint32_t best,
                               double *best_badness)
{
    const sky_section *sections = state->sections;
    for (uint32_t s = valley.begin; s < valley.end; s++) {
        double bad;
        if (state->has_holes && state->blocked[s] == state->n_choices) {
            continue;
        }
        bad = badness(state, rule, s, best == NEAP_NEVER ? 1e9 : *best_badness);
        if (best == NEAP_NEVER || bad < *best_badness ||
            (bad == *best_badness && sections[s].floor < sections[best].floor)) {
            best = s;
            *best_badness = bad;
        }
    }
    return best;
}

/* Is there a wall between section s - 1 and s, as seen from the side with floor `height`? */
static bool is_wall(const sky_state *state, uint32_t boundary, uint32_t beyond, int64_t height)
{
    return boundary == 0 || boundary == state->n_sections || state->sections[boundary].n_crossing == 0 ||
           state->sections[beyond].n_unplaced == 0 || state->sections[beyond].floor > height;
}

uint32_t sky_choose_section(sky_state *state, np_skyline_rule rule)
{
    const sky_section *sections = state->sections;
    uint32_t best = NEAP_NEVER;
    double best_badness = 0;
    uint32_t begin = 0;

    if (state->has_holes) {
        block_sections(state);
    }
    while (begin < state->n_sections) {
        uint32_t end = begin + 1;
        int64_t height = sections[begin].floor;
        if (sections[begin].n_unplaced == 0) {
            begin++;
            continue;
        }
        while (end < state->n_sections && sections[end].n_crossing > 0 && sections[end].floor == height &&
               sections[end].n_unplaced > 0) {
            end++;
        }
        if (is_wall(state, begin, begin - 1, height) && is_wall(state, end, end, height)) {
            best = best_of_valley(state, rule, (np_range){begin, end}, best, &best_badness);
        }
        begin = end;
    }
    return best;
}
