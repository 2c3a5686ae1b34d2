/* branch.c: iterations that begin alike, and turn out to be of another kind.
 *
 * Which kind of iteration comes next is guessed (history.c), and lengths that a program draws at random cannot be. Where an
 * event is not the planned one, and another plan has the same events up to there and this one next, the other plan is
 * followed from there on: the blocks of the iteration so far stand in it. That is no departure; it waits for the work under
 * way, as entering a plan does.
 *
 * Where work is not looked at (rest.h), a lap may turn out to be of another kind at its first malloc or free. Work is looked
 * at again from there on.
 *
 * A block that has its address in the arena can stand nowhere but at its place, which the other plan has elsewhere. So where
 * iterations are known to part, blocks that live there are planned as views, in both plans. */
#include "run/manager.h"

/* Two plans that have the same events before the cursor. */
typedef struct branch {
    neap_device *m;
    np_pattern *from;
    np_pattern *to;
    uint32_t *life_of; /* by life of `to`: the life of `from` that was malloc'd at the same event, or NP_NO_LIFE */
} branch;

static const np_program_event *event_at(const np_pattern *pattern, uint32_t i)
{
    return &pattern->program.events.items[i];
}

/* Are the events the same, and the lives that they are about? Notes those that begin. */
static bool is_like(branch *b, uint32_t i)
{
    const np_program_event *own = event_at(b->from, i);
    const np_program_event *other = event_at(b->to, i);
    if (own->kind != other->kind || np_pattern_key(b->from, i) != np_pattern_key(b->to, i)) {
        return false;
    }
    if (own->kind == NEAP_EVENT_EXEC) {
        return true;
    }
    if (own->subject == NP_NO_LIFE || other->subject == NP_NO_LIFE) {
        return false;
    }
    if (own->kind == NEAP_EVENT_MALLOC) {
        b->life_of[other->subject] = own->subject;
        return true;
    }
    return b->life_of[other->subject] == own->subject ||
           (b->life_of[other->subject] == NP_NO_LIFE && b->from->program.lives.items[own->subject].begin >= i);
}

/* A block with an address in the arena can stand nowhere else. */
static bool has_same_place(const branch *b, uint32_t life)
{
    const np_pattern *from = b->from;
    const np_program_life *own = &from->program.lives.items[b->life_of[life]];
    const np_program_life *other = &b->to->program.lives.items[life];
    bool has_place = true;
    for (uint32_t turn = 0; turn < own->n_places && has_place; turn++) {
        const neap_block *block = from->actors[b->life_of[life]].now[turn];
        if (block && block->kind == NP_BLOCK_FLAT) {
            has_place = own->n_places == 1 && other->n_places == 1 && b->to->actors[life].planned &&
                        b->to->actors[life].planned[0].kind == NP_BLOCK_FLAT &&
                        from->program.placed.items[own->first_placed].offset ==
                            b->to->program.placed.items[other->first_placed].offset;
        } else if (block) {
            has_place = np_block_has_place(b->to, life, block);
        }
    }
    return has_place;
}

/* Is it the block of this life that the program frees? */
static bool is_freed(const branch *b, uint32_t life, const neap_block *block)
{
    uint32_t own = life == NP_NO_LIFE ? NP_NO_LIFE : b->life_of[life];
    if (life != NP_NO_LIFE && own == NP_NO_LIFE) { /* from before the iteration: it is to stand for the life */
        return block->kind != NP_BLOCK_FLAT && block->bytes == b->to->program.lives.items[life].bytes &&
               b->to->program.lives.items[life].begin >= b->m->cursor && np_block_has_place(b->to, life, block);
    }
    return own != NP_NO_LIFE && b->from->actors[own].now[b->from->actors[own].next_free] == block;
}

/* Does the plan have the same events so far, and this one next? */
static bool is_possible(branch *b, const np_actual *actual)
{
    uint32_t cursor = b->m->cursor;
    const np_program_event *next = cursor < b->to->program.events.n ? event_at(b->to, cursor) : NULL;
    if (!next || next->kind != actual->kind ||
        (actual->kind != NEAP_EVENT_FREE && np_pattern_key(b->to, cursor) != actual->key) ||
        !np_arena_could_fit(b->m, b->to)) {
        return false;
    }
    for (uint32_t i = 0; i < b->to->program.lives.n; i++) {
        b->life_of[i] = NP_NO_LIFE;
    }
    for (uint32_t i = 0; i < cursor; i++) {
        if (!is_like(b, i)) {
            return false;
        }
    }
    return actual->kind != NEAP_EVENT_FREE || is_freed(b, next->subject, actual->freed);
}

static bool have_same_places(const branch *b)
{
    for (uint32_t i = 0; i < b->to->program.lives.n; i++) {
        if (b->life_of[i] != NP_NO_LIFE && !has_same_place(b, i)) {
            return false;
        }
    }
    return true;
}

/* ---- from one plan to another ---- */

static bool try_branch(neap_device *m, np_pattern *to, const np_actual *actual)
{
    branch b = {.m = m, .from = m->pattern, .to = to};
    size_t n_lives = to->program.lives.n;
    uint32_t cursor = m->cursor;
    bool is_done = false;
    b.life_of = np_memory_alloc(m->memory, n_lives, sizeof *b.life_of);
    bool is_like_it = b.life_of && is_possible(&b, actual);
    if (is_like_it && !have_same_places(&b)) {
        np_fork_note(m, b.from, cursor);
        np_fork_note(m, to, cursor);
        is_like_it = false;
    }
    if (is_like_it) {
        np_settle(m);
        is_done = np_cast_branch(m, b.from, to, b.life_of, cursor, actual->freed) && np_enter_cast(m, to, cursor);
        if (!is_done) {
            np_leave_note(m,
                          actual->kind == NEAP_EVENT_MALLOC ? NEAP_DEPARTURE_MALLOC
                          : actual->kind == NEAP_EVENT_FREE ? NEAP_DEPARTURE_FREE
                                                            : NEAP_DEPARTURE_EXEC,
                          "to another plan");
        }
    }
    np_memory_free(m->memory, b.life_of, n_lives, sizeof *b.life_of);
    return is_done;
}

bool np_branch(neap_device *m, const np_actual *actual)
{
    if (!m->is_beneath) {
        return false;
    }
    for (size_t i = m->patterns.n; i-- > 0 && m->state == NEAP_STATE_RUN;) {
        np_pattern *to = m->patterns.items[i];
        if (to != m->pattern && to->hash != m->pattern->hash && try_branch(m, to, actual)) {
            m->stats.n_branches++;
            return true;
        }
    }
    return false;
}
