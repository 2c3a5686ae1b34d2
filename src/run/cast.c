/* cast.c: which live block stands for which life at a pattern's start.
 *
 * Persistent lives are known by their blocks' numbers. A block that lives across the period's end is one that the plan
 * itself has placed, or one malloc'd off the plan at just the event of the period where the life begins. */
#include "run/manager.h"

static bool is_crossing(const np_pattern *pattern, const np_program_life *life)
{
    return !life->persistent && life->end > pattern->program.events.n;
}

/* The live block that is the j-th last of a life that crosses the period's end. */
static neap_block *find_crossing(const neap_device *m, const np_pattern *pattern, uint32_t index, uint32_t laps_ago)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint64_t ago = (uint64_t)laps_ago * pattern->program.events.n - life->begin;
    for (neap_block *block = m->live; block; block = block->next) {
        bool is_planned = block->pattern == pattern && block->life == index && laps_ago == 1;
        bool is_recorded = !block->pattern && m->recorder.n_events >= ago &&
                           block->malloc_event == m->recorder.n_events - ago && block->bytes == life->bytes;
        if (is_planned || is_recorded) {
            return block;
        }
    }
    return NULL;
}

static bool cast_crossing(neap_device *m, np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint32_t n = (life->end - 1) / (uint32_t)pattern->program.events.n; /* alive at the start */
    np_actor *actor = &pattern->actors[index];
    for (uint32_t j = 0; j < life->n_places; j++) {
        actor->now[j] = NULL;
    }
    if (n > life->n_places) {
        return false;
    }
    for (uint32_t j = 0; j < n; j++) {
        neap_block *block = find_crossing(m, pattern, index, n - j);
        uint32_t turn = block && block->pattern ? block->turn : j;
        if (!block || (block->pattern && n > 1)) {
            return false;
        }
        actor->now[turn] = block;
        actor->next_free = turn;
        actor->next_malloc = (turn + 1) % life->n_places;
    }
    if (n > 1) {
        actor->next_free = 0;
        actor->next_malloc = n % life->n_places;
    }
    return true;
}

/* Where it has a place in the arena, it must begin where its view can be mapped onto that. */
static neap_block *find_standing(const neap_device *m, const np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint64_t lead = np_program_lead(&pattern->program, index, m->device->page_bytes);
    for (neap_block *block = m->live; block; block = block->next) {
        if (block->id == life->id && block->bytes == life->bytes && !block->pattern) {
            bool can_stand = block->kind == NP_BLOCK_LOOSE && block->view.lead == lead;
            return life->n_placed == 0 || can_stand ? block : NULL;
        }
    }
    return NULL;
}

/* Would the plan take away, or move, what has been fixed since it was made? Another plan is needed then. */
static bool must_stay(np_pattern *pattern, uint32_t life, const neap_block *block)
{
    const np_program_life *l = &pattern->program.lives.items[life];
    bool is_wrong = (block->is_fixed && l->swapped) || (block->is_exported && l->n_placed > 0);
    if (is_wrong && !pattern->doubted[life]) {
        pattern->doubted[life] = pattern->has_doubts = true;
    }
    return is_wrong;
}

bool np_cast(neap_device *m, np_pattern *pattern)
{
    for (neap_block *block = m->live; block; block = block->next) {
        block->is_standing = false;
        if (block->pattern &&
            (block->pattern != pattern || !is_crossing(pattern, &pattern->program.lives.items[block->life]))) {
            return false; /* a planned block of an iteration that did not end as planned */
        }
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        np_actor *actor = &pattern->actors[i];
        if (life->persistent) {
            neap_block *block = find_standing(m, pattern, i);
            if (!block || block->is_standing || must_stay(pattern, i, block)) {
                return false;
            }
            actor->now[0] = block;
            block->is_standing = true;
        } else if (is_crossing(pattern, life)) {
            if (!cast_crossing(m, pattern, i)) {
                return false;
            }
            for (uint32_t j = 0; j < life->n_places; j++) {
                if (actor->now[j] && (actor->now[j]->is_standing || must_stay(pattern, i, actor->now[j]))) {
                    return false; /* it must not go, or stands for another life already */
                }
                if (actor->now[j]) {
                    actor->now[j]->is_standing = true;
                }
            }
        } else {
            actor->now[0] = NULL;
            actor->next_malloc = actor->next_free = 0;
        }
    }
    for (const neap_block *block = m->live; block; block = block->next) {
        if (!block->is_standing && block->pattern) {
            return false; /* it has a place in the arena that the plan gives to others */
        }
    }
    return true;
}
