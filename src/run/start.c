/* start.c: where an iteration begins, and which one is to come.
 *
 * A start is known by its first event and the blocks that are live; and, where other blocks are live too, by the events
 * before it. Among several patterns the one is expected that came after the longest run of iterations like the last. */
#include "run/manager.h"

enum { MANY_LAPS = 64, MANY_EVENTS = 20000, LEFT_OFTEN = 2 };

#define LOW_LOAD 0.5     /* of the highest load */
#define LEAST_SWING 0.02 /* of the highest load: layers that come and go are no iteration */

/* ---- is this a start? ---- */

static bool begins_with(const np_pattern *pattern, neap_event_kind kind, uint64_t key)
{
    return pattern->program.events.items[0].kind == kind &&
           (kind == NEAP_EVENT_FREE || np_pattern_key(pattern, 0) == key);
}

bool np_any_begins_with(const neap_device *m, neap_event_kind kind, uint64_t key)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        if (begins_with(m->patterns.items[i], kind, key)) {
            return true;
        }
    }
    return false;
}

/* Were the last recorded events the last of the pattern? They are so nowhere else in it. */
static bool ends_with(const neap_device *m, const np_pattern *pattern)
{
    uint32_t length = (uint32_t)pattern->program.events.n;
    if (!m->recorder.trace || pattern->n_tail == 0 || pattern->n_tail > length ||
        m->recorder.n_events < pattern->n_tail) {
        return false;
    }
    for (uint32_t i = 1; i <= pattern->n_tail; i++) {
        neap_event_kind kind = (neap_event_kind)pattern->program.events.items[length - i].kind;
        if (m->recorder.recent[(m->recorder.n_events - i) % NP_RECENT_KEYS] !=
            np_pattern_hash(0, kind, np_pattern_key(pattern, length - i))) {
            return false;
        }
    }
    return true;
}

/* Blocks that are no part of what lives at the start, and were not there at an earlier one. After np_cast. */
static bool has_strangers(const neap_device *m)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        if (!block->is_standing && !block->is_extra && block->kind != NP_BLOCK_SMALL) {
            return true;
        }
    }
    return false;
}

/* ---- which pattern comes next ---- */

/* Of the kind that is expected, the latest; as many as there are: none. */
static uint32_t predict(const neap_device *m)
{
    uint32_t n = (uint32_t)m->patterns.n;
    uint64_t kind;
    if (np_history_predict(&m->history, &kind)) {
        for (uint32_t i = n; i-- > 0;) {
            if (m->patterns.items[i]->hash == kind) {
                return i;
            }
        }
    }
    return n;
}

/* Has an iteration just ended, of whatever kind? */
static bool has_ended(const neap_device *m)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        if (ends_with(m, m->patterns.items[i])) {
            return true;
        }
    }
    return false;
}

/* A loop within an iteration, of layers, say, repeats too. It is none of the program's iterations if the load was far higher
 * not long ago. */
static bool is_inner_loop(const neap_device *m, const np_pattern *pattern)
{
    uint64_t n = MANY_LAPS * pattern->program.events.n;
    bool is_low = (double)pattern->program.peak_load < LOW_LOAD * (double)m->stats.peak_live;
    return m->is_beneath && is_low && m->stats.n_events - m->last_high_event < (n > MANY_EVENTS ? n : MANY_EVENTS);
}

/* Iterations of several kinds that came in this order by chance: each is to have a plan of its own. */
static bool is_by_chance(const neap_device *m, const np_pattern *pattern)
{
    return m->is_beneath && pattern->n_iterations > 1 && pattern->n_left >= LEFT_OFTEN;
}

/* Is the event the first of the pattern, and are the blocks what they are at its start? */
static bool is_start(neap_device *m, np_pattern *pattern, np_casting how, neap_event_kind kind, uint64_t key)
{
    return begins_with(pattern, kind, key) && !is_inner_loop(m, pattern) && !is_by_chance(m, pattern) &&
           np_cast(m, pattern, how) && (how == NP_CAST_BY_SIZE || ends_with(m, pattern) || !has_strangers(m));
}

static bool try_enter(neap_device *m, np_pattern *pattern, np_casting how, neap_event_kind kind, uint64_t key)
{
    return is_start(m, pattern, how, kind, key) && np_enter(m, pattern, how);
}

/* Enters the pattern that is expected, or else another, latest first. `is_known`: that an iteration begins. Programs that
 * tell what they use tell all of it: a block that cannot be told for sure would be a departure. */
static bool start_any(neap_device *m, bool is_known, neap_event_kind kind, uint64_t key)
{
    np_casting how = m->is_beneath && (is_known || has_ended(m)) ? NP_CAST_BY_SIZE : NP_CAST_EXACTLY;
    size_t first = m->patterns.n;
    uint32_t expected;
    while (first > 0 && !is_start(m, m->patterns.items[first - 1], how, kind, key)) {
        first--;
    }
    if (first == 0) {
        return false;
    }
    np_unknown_note(m);
    expected = predict(m);
    if (expected < m->patterns.n && try_enter(m, m->patterns.items[expected], how, kind, key)) {
        return true;
    }
    for (size_t i = first; i-- > 0;) {
        if (i != expected && try_enter(m, m->patterns.items[i], how, kind, key)) {
            return true;
        }
    }
    return false;
}

/* An iteration of a kind that has no plan has ended, and another one begins, if the live blocks have the sizes again
 * that they had at the start of a known one, and the load has been higher in between. */
static bool is_boundary(const neap_device *m, neap_event_kind kind)
{
    const np_recorder *recorder = &m->recorder;
    return kind == NEAP_EVENT_MALLOC && m->is_beneath && m->state == NEAP_STATE_LEAVE && recorder->is_whole &&
           m->listed_sizes == m->sizes_at_start && recorder->trace &&
           (double)(recorder->peak_bytes - recorder->trace->live_bytes) >= LEAST_SWING * (double)m->stats.peak_live;
}

void np_boundary_note(neap_device *m, neap_event_kind kind)
{
    if (is_boundary(m, kind)) {
        np_unknown_note(m);
        np_recorder_begin(&m->recorder, m->live);
        m->recorder.is_whole = m->recorder.trace != NULL;
    }
}

void np_enter_if_start(neap_device *m, neap_event_kind kind, uint64_t key)
{
    if (m->patterns.n > 0 && !start_any(m, false, kind, key)) {
        np_boundary_note(m, kind);
    }
}

void np_enter_next_lap(neap_device *m, neap_event_kind kind, uint64_t key)
{
    np_pattern *pattern = m->pattern;
    uint32_t expected = m->patterns.n > 1 ? predict(m) : 0;
    bool stay = (expected >= m->patterns.n || m->patterns.items[expected] == pattern) &&
                begins_with(pattern, kind, key) && np_arena_could_fit(m, pattern);
    bool is_switch = stay && np_refine_wants_switch(m); /* to one for the same events */
    m->cursor = 0;
    if (stay && !is_switch) {
        return;
    }
    np_settle(m); /* another one, or none */
    if (is_switch) {
        pattern = np_refine_switch(m);
        if (np_enter(m, pattern, m->is_beneath ? NP_CAST_BY_SIZE : NP_CAST_EXACTLY)) {
            return;
        }
        np_refine_undo(m, pattern);
    }
    if (!start_any(m, true, kind, key)) {
        np_leave_note(m,
                      kind == NEAP_EVENT_MALLOC ? NEAP_DEPARTURE_MALLOC
                      : kind == NEAP_EVENT_FREE ? NEAP_DEPARTURE_FREE
                                                : NEAP_DEPARTURE_EXEC,
                      "at the start of an iteration");
    }
}
