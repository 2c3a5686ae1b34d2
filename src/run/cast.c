/* cast.c: which live block stands for which life at a pattern's start.
 *
 * Persistent lives are known by their blocks' numbers. A block that lives across the period's end is one that the plan
 * itself has placed, or one malloc'd off the plan at just the event of the period where the life begins.
 *
 * Where an iteration of another kind came before, blocks that cross the start are that one's: of another plan, or with
 * other numbers. Then blocks of the same size stand for lives in the order in which they were malloc'd. A life for which
 * none stands has none until its malloc; a block that stands for none is beside the plan. */
#include "run/manager.h"

enum { MAX_TURNS = 8 }; /* blocks of a life that are live at once */

static bool is_crossing(const np_pattern *pattern, const np_program_life *life)
{
    return !life->persistent && life->end >= pattern->program.events.n;
}

/* How many of its blocks are alive at the start. */
static uint32_t n_alive(const np_pattern *pattern, const np_program_life *life)
{
    return life->persistent ? 1 : life->end / (uint32_t)pattern->program.events.n;
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

/* ---- by number, or by event ---- */

/* The live block that is the j-th last of a life that crosses the period's end. */
static neap_block *find_crossing(const neap_device *m, const np_pattern *pattern, uint32_t index, uint32_t laps_ago)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint64_t ago = (uint64_t)laps_ago * pattern->program.events.n - life->begin;
    for (neap_block *block = m->live; block; block = block->next) {
        bool is_planned = block->pattern == pattern && block->own_life == index && laps_ago == 1;
        bool is_recorded = !block->pattern && m->recorder.n_events >= ago &&
                           block->malloc_event == m->recorder.n_events - ago && block->bytes == life->bytes;
        if (is_planned || is_recorded) {
            return block;
        }
    }
    return NULL;
}

static void stand(np_pattern *pattern, uint32_t life, uint32_t turn, neap_block *block)
{
    pattern->actors[life].now[turn] = block;
    block->is_standing = true;
}

static bool cast_crossing(neap_device *m, np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    uint32_t n = n_alive(pattern, life);
    np_actor *actor = &pattern->actors[index];
    if (n > life->n_places) {
        return false;
    }
    for (uint32_t j = 0; j < n; j++) {
        neap_block *block = find_crossing(m, pattern, index, n - j);
        uint32_t turn = block && block->pattern ? block->turn : j;
        if (!block || (block->pattern && n > 1) || block->is_standing || must_stay(pattern, index, block)) {
            return false; /* it must not go, or stands for another life already */
        }
        stand(pattern, index, turn, block);
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
static bool can_stand(const neap_device *m, const np_pattern *pattern, uint32_t life, const neap_block *block)
{
    uint64_t lead = np_program_lead(&pattern->program, life, m->device->page_bytes);
    return pattern->program.lives.items[life].n_placed == 0 ||
           (block->kind == NP_BLOCK_LOOSE && block->view.lead == lead);
}

static bool cast_persistent(neap_device *m, np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    neap_block *block = m->live;
    while (block && (block->id != life->id || block->bytes != life->bytes || block->pattern)) {
        block = block->next;
    }
    if (!block || block->is_standing || !can_stand(m, pattern, index, block) || must_stay(pattern, index, block)) {
        return false;
    }
    stand(pattern, index, 0, block);
    return true;
}

/* ---- by size ---- */

/* May the block, of another number or of another plan, stand for the life? */
static bool is_like(const neap_device *m, np_pattern *pattern, uint32_t index, const neap_block *block)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    bool is_loose = block->kind == NP_BLOCK_LOOSE && (!life->persistent || can_stand(m, pattern, index, block));
    bool is_moved = block->kind == NP_BLOCK_SWAPPED && np_block_has_place(pattern, index, block) &&
                    np_program_lead(&pattern->program, index, m->device->page_bytes) == 0;
    bool is_possible = is_loose || is_moved;
    return !block->is_standing && block->bytes == life->bytes && is_possible && !must_stay(pattern, index, block);
}

/* The one that was malloc'd last, before another. */
static neap_block *find_like(const neap_device *m, np_pattern *pattern, uint32_t index)
{
    neap_block *last = NULL;
    for (neap_block *block = m->live; block; block = block->next) {
        if (is_like(m, pattern, index, block) && (!last || block->id > last->id)) {
            last = block;
        }
    }
    return last;
}

/* Blocks of a life, oldest first, stand for it in turn. The pattern's own have their turns: the others' follow from those.
 * False: that cannot be. */
static bool stand_in_turn(np_pattern *pattern, uint32_t life, neap_block *const *blocks, uint32_t n)
{
    uint32_t n_places = pattern->program.lives.items[life].n_places;
    uint32_t first = 0;
    for (uint32_t k = 0; k < n; k++) {
        first = blocks[k]->pattern == pattern ? (blocks[k]->turn + n_places - k) % n_places : first;
    }
    for (uint32_t k = 0; k < n; k++) {
        bool is_own = blocks[k]->pattern == pattern;
        if (is_own && (blocks[k]->own_life != life || blocks[k]->turn != (first + k) % n_places)) {
            return false;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        stand(pattern, life, (first + k) % n_places, blocks[k]);
    }
    pattern->actors[life].next_free = first;
    pattern->actors[life].next_malloc = (first + n) % n_places;
    return true;
}

/* Where none is like it, the life has no block. */
static void cast_by_size(neap_device *m, np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    np_actor *actor = &pattern->actors[index];
    neap_block *blocks[MAX_TURNS];
    uint32_t n_wanted = n_alive(pattern, life);
    uint32_t n = 0;
    n_wanted = n_wanted < life->n_places ? n_wanted : life->n_places;
    for (uint32_t j = 0; j < life->n_places; j++) {
        actor->now[j] = NULL;
    }
    actor->next_free = 0;
    actor->next_malloc = n_alive(pattern, life) % life->n_places;
    while (n < n_wanted && n < MAX_TURNS) { /* newest first */
        neap_block *block = find_like(m, pattern, index);
        if (!block) {
            break;
        }
        block->is_standing = true; /* it is not found again */
        blocks[MAX_TURNS - ++n] = block;
    }
    if (n < n_wanted || !stand_in_turn(pattern, index, &blocks[MAX_TURNS - n], n)) {
        for (uint32_t k = 0; k < n; k++) {
            blocks[MAX_TURNS - 1 - k]->is_standing = false;
        }
    }
}

/* ---- all ---- */

/* Blocks that have an address in the arena can stand nowhere but at their place: of an iteration that did not end as
 * planned. */
static bool has_flat_blocks(const neap_device *m, const np_pattern *pattern)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        bool is_own = block->pattern == pattern;
        if (block->pattern && ((block->kind == NP_BLOCK_FLAT && !is_own) ||
                               (is_own && !is_crossing(pattern, &pattern->program.lives.items[block->own_life])))) {
            return true;
        }
    }
    return false;
}

static void begin_cast(neap_device *m, np_pattern *pattern)
{
    for (neap_block *block = m->live; block; block = block->next) {
        block->is_standing = false;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        np_actor *actor = &pattern->actors[i];
        for (uint32_t j = 0; j < pattern->program.lives.items[i].n_places; j++) {
            actor->now[j] = NULL;
        }
        actor->next_malloc = actor->next_free = 0;
    }
}

/* Its own blocks stand for their lives, or nothing can be entered: their places are given to others. */
static bool do_own_stand(const neap_device *m, const np_pattern *pattern)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        if (block->pattern && !block->is_standing && (block->pattern == pattern || block->kind == NP_BLOCK_FLAT)) {
            return false;
        }
    }
    return true;
}

/* In the middle of an iteration: is a block of the life alive that was there at its start? */
static bool is_alive_at(const np_pattern *pattern, const np_program_life *life, uint32_t cursor)
{
    return life->persistent || life->end >= pattern->program.events.n + cursor;
}

/* The blocks of a life that is part of the iteration so far. False: one of them cannot stand. */
static bool cast_same(np_pattern *to, uint32_t life, const np_pattern *from, uint32_t own)
{
    const np_actor *actor = &from->actors[own];
    uint32_t n_places = from->program.lives.items[own].n_places;
    neap_block *blocks[MAX_TURNS];
    uint32_t n = 0;
    for (uint32_t k = 0; k < n_places; k++) { /* oldest first */
        neap_block *block = actor->now[(actor->next_free + k) % n_places];
        if (!block) {
            continue;
        }
        if (n == MAX_TURNS || n == to->program.lives.items[life].n_places || block->is_standing ||
            must_stay(to, life, block)) {
            return false;
        }
        blocks[n++] = block;
    }
    return n == 0 || stand_in_turn(to, life, blocks, n);
}

bool np_cast_branch(neap_device *m, const np_pattern *from, np_pattern *to, const uint32_t *life_of, uint32_t cursor,
                    neap_block *freed)
{
    uint32_t life_freed = freed ? to->program.events.items[cursor].subject : NP_NO_LIFE;
    begin_cast(m, to);
    for (uint32_t i = 0; i < to->program.lives.n; i++) {
        if (life_of[i] != NP_NO_LIFE && !cast_same(to, i, from, life_of[i])) {
            return false;
        }
        if (life_of[i] == NP_NO_LIFE && i == life_freed &&
            (freed->is_standing || must_stay(to, i, freed) || !stand_in_turn(to, i, &freed, 1))) {
            return false;
        }
    }
    for (size_t i = to->program.lives.n; i-- > 0;) {
        const np_program_life *life = &to->program.lives.items[i];
        bool is_missing = life->persistent
                              ? !cast_persistent(m, to, (uint32_t)i)
                              : life_of[i] == NP_NO_LIFE && i != life_freed && is_alive_at(to, life, cursor);
        if (is_missing) {
            cast_by_size(m, to, (uint32_t)i);
        }
    }
    return do_own_stand(m, to);
}

bool np_cast(neap_device *m, np_pattern *pattern, np_casting how)
{
    bool is_exact = true;
    begin_cast(m, pattern);
    if (has_flat_blocks(m, pattern)) {
        return false;
    }
    for (uint32_t i = 0; i < pattern->program.lives.n && (is_exact || how == NP_CAST_BY_SIZE); i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        if (life->persistent) {
            is_exact &= cast_persistent(m, pattern, i);
        } else if (is_crossing(pattern, life)) {
            is_exact &= cast_crossing(m, pattern, i);
        }
    }
    for (size_t i = pattern->program.lives.n; i-- > 0 && !is_exact && how == NP_CAST_BY_SIZE;) {
        const np_program_life *life = &pattern->program.lives.items[i];
        bool is_alive = life->persistent || is_crossing(pattern, life);
        bool is_found = false;
        for (uint32_t j = 0; j < life->n_places; j++) {
            is_found |= pattern->actors[i].now[j] != NULL;
        }
        if (is_alive && !is_found) {
            cast_by_size(m, pattern, (uint32_t)i);
        }
    }
    return (is_exact || how == NP_CAST_BY_SIZE) && do_own_stand(m, pattern);
}
