/* follow.c: on the plan.
 *
 * Every event is compared with the next one of the program. What matches is served from it: addresses are known, copies and
 * waits are listed. What does not match ends the plan (leave.c), and the event is served as any other. */
#include <string.h>

#include "run/manager.h"
#include "run/unseen.h"

enum { LAPS_BEFORE_SAVING = 3 };

/* The operations after the event that was just served. The event stands, whatever becomes of them. */
static void finish(neap_device *m, const np_program_event *event)
{
    m->cursor++;
    if (event->n_after > 0 && np_ops_do(m, event->first_op + event->n_before, event->n_after) != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, "a copy");
    }
}

/* ---- laps ---- */

/* Takes the time of a lap whose first exec is done: of the one that ends where it begins. */
static void note_lap(np_pattern *pattern, uint64_t lap)
{
    uint64_t start_ns = pattern->lap_times[lap % NP_LAPS].start_ns;
    bool is_rested = pattern->is_lap_rested[lap % NP_LAPS];
    bool is_like_last = lap > 0 && pattern->is_lap_rested[(lap - 1) % NP_LAPS] == is_rested;
    /* the first lap after entering has copies of its own */
    if (pattern->last_lap_start_ns != 0 && lap > 1 && is_like_last) {
        double ns = (double)(start_ns - pattern->last_lap_start_ns);
        if (is_rested) {
            np_rest_note(pattern, ns);
        } else if (pattern->laps_ns.n < pattern->laps_ns.capacity) {
            pattern->laps_ns.items[pattern->laps_ns.n++] = ns;
        } else {
            pattern->laps_ns.items[lap % pattern->laps_ns.capacity] = ns;
        }
    }
    pattern->last_lap_start_ns = start_ns;
}

void np_follow_note_laps(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    np_device *device = m->device;
    while (pattern && pattern->program.n_execs > 0 && pattern->n_noted < pattern->n_laps) {
        uint64_t mark = pattern->lap_marks[pattern->n_noted % NP_LAPS];
        if (!device->api->is_done(device, pattern->exec_streams[0], mark)) {
            return;
        }
        note_lap(pattern, pattern->n_noted++);
    }
}

/* The host is at most half of the laps ahead whose times are kept. */
static void hold_host(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    if (pattern->program.n_execs > 0 && pattern->n_laps >= NP_LAPS / 2) {
        uint64_t lap = pattern->n_laps - NP_LAPS / 2;
        (void)m->device->api->sync(m->device, pattern->exec_streams[0], pattern->lap_marks[lap % NP_LAPS]);
    }
}

static void end_lap(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    if (m->has_late) {
        np_seen_forget(m);
    }
    m->stats.n_iterations++;
    m->n_between = 0;
    pattern->n_laps++;
    np_history_add(&m->history, pattern->hash);
    pattern->n_refused = 0;
    if (m->rest.is_on && !m->rest.is_measure) { /* the lap's first exec was not seen: when it began is not known */
        pattern->n_noted = pattern->n_laps;
        pattern->last_lap_start_ns = 0;
    } else {
        hold_host(m);
        np_follow_note_laps(m);
    }
    np_timed_end_lap(&pattern->timed, m->device, &pattern->lap_times[(pattern->n_laps - 1) % NP_LAPS]);
    if (m->retired.n > 0 || m->pages.n_idle > 0) {
        (void)np_retired_try(m); /* or at the next lap */
    }
    np_patterns_drop_outlived(m);
    np_limit_note_load(m);
    if (m->is_raised) {
        np_limit_update(m);
    }
    np_take_lesson(m);
    if (m->is_beneath) {
        np_beneath_replan(m);
    }
    np_refine_lap(m);
    if (pattern->n_laps == LAPS_BEFORE_SAVING || (pattern->n_laps > LAPS_BEFORE_SAVING && !m->refine.measured)) {
        np_plans_save(m); /* a plan that works */
    }
}

/* Execs that nobody sees are passed over, also those at the start of the next lap. */
static const np_program_event *next_of_blocks(neap_device *m)
{
    np_rest_pass(m);
    if (m->cursor == m->pattern->program.events.n) {
        end_lap(m);
        m->cursor = 0;
        np_rest_lap(m);
        np_rest_pass(m);
    }
    return &m->pattern->program.events.items[m->cursor];
}

static const np_program_event *next_lap(neap_device *m, neap_event_kind kind, uint64_t key)
{
    end_lap(m);
    np_enter_next_lap(m, kind, key);
    return m->state == NEAP_STATE_RUN ? &m->pattern->program.events.items[m->cursor] : NULL;
}

/* The event to compare with, a new lap begun where the last has ended; NULL: the device is off the plan now. */
static inline const np_program_event *next_event(neap_device *m, neap_event_kind kind, uint64_t key)
{
    const np_program *program = &m->pattern->program;
    return m->rest.is_on                    ? next_of_blocks(m)
           : m->cursor == program->events.n ? next_lap(m, kind, key)
                                            : &program->events.items[m->cursor];
}

/* ---- events ---- */

static uint32_t turn_after(uint32_t turn, uint32_t n_places)
{
    return turn + 1 == n_places ? 0 : turn + 1;
}

/* A block that the plan has no place for, since a period leaks it. It must fit beside the arena: where it does not, the plan
 * is left, and others make room for it. */
static void malloc_beside(neap_device *m, uint64_t bytes, bool *served, neap_block **block)
{
    uint32_t n = (uint32_t)(bytes / m->device->page_bytes + 2);
    neap_block *made = NULL;
    neap_status status;
    if (m->limit_pages != UINT32_MAX && m->pages.n_held + n > m->limit_pages) {
        np_leave(m, NEAP_DEPARTURE_MALLOC, "a block that is never freed");
        return;
    }
    status = np_loose_malloc(m, bytes, &made);
    if (status == NEAP_OK && made->view.n_missing > 0) {
        status = np_block_return(m, made);
        if (status != NEAP_OK) {
            np_loose_free(m, made);
        }
    }
    if (status != NEAP_OK) {
        np_device_fail_clear();
        np_leave(m, NEAP_DEPARTURE_FAILED, "a block that is never freed");
        return;
    }
    *served = true;
    *block = made;
}

/* An event that is not the planned one: true where another plan has it next, and is followed now. */
static bool branch_or_leave(neap_device *m, np_actual actual, neap_departure why, const char *what)
{
    if (np_branch(m, &actual)) {
        return true;
    }
    if (m->state == NEAP_STATE_RUN) {
        np_leave(m, why, what);
    }
    return false;
}

neap_status np_follow_malloc(neap_device *m, uint64_t bytes, bool *served, neap_block **block)
{
    const np_program_event *event = next_event(m, NEAP_EVENT_MALLOC, bytes);
    np_actor *actor;
    neap_block *planned;
    *served = false;
    if (!event) {
        return NEAP_OK;
    }
    if (event->kind != NEAP_EVENT_MALLOC || event->key != bytes) {
        neap_departure why = event->kind == NEAP_EVENT_MALLOC ? NEAP_DEPARTURE_SIZE : NEAP_DEPARTURE_MALLOC;
        if (branch_or_leave(m, (np_actual){NEAP_EVENT_MALLOC, bytes, NULL}, why, NULL)) {
            return np_follow_malloc(m, bytes, served, block);
        }
        return NEAP_OK;
    }
    if (event->subject == NP_NO_LIFE) {
        malloc_beside(m, bytes, served, block);
        if (*served) {
            finish(m, event);
        }
        return NEAP_OK;
    }
    actor = &m->pattern->actors[event->subject];
    planned = &actor->planned[actor->next_malloc];
    actor->now[actor->next_malloc] = planned;
    actor->next_malloc = turn_after(actor->next_malloc, m->pattern->program.lives.items[event->subject].n_places);
    planned->is_live = true;
    planned->is_fixed = planned->is_exported = planned->is_doubted = false;
    planned->used_by = 0;
    planned->clean.on_host = false;
    m->pattern->n_live++;
    finish(m, event);
    *block = planned;
    *served = true;
    return NEAP_OK;
}

static void free_planned(neap_device *m, neap_block *block)
{
    if (m->pattern->late[block->life] > 0) {
        np_seen_promote(m, block->life);
    }
    if (block->home) {
        np_block_forget_home(m, block); /* its view is mapped anew when its own plan is entered */
    }
    if (block->pattern != m->pattern) { /* its address is that of a block of this plan from now on (branch.c) */
        m->n_settled++;
    }
    block->life = block->own_life;
    block->is_live = false;
    block->pattern->n_live--;
}

/* A block from before the plan was entered, which the plan does not know. */
static bool is_extra(const neap_block *block)
{
    return block->life == NP_NO_LIFE;
}

static neap_status free_otherwise(neap_device *m, neap_block *block, bool *served)
{
    bool is_branch = branch_or_leave(m, (np_actual){NEAP_EVENT_FREE, block->bytes, block}, NEAP_DEPARTURE_FREE, NULL);
    return is_branch ? np_follow_free(m, block, served) : NEAP_OK;
}

neap_status np_follow_free(neap_device *m, neap_block *block, bool *served)
{
    const np_program_event *event = next_event(m, NEAP_EVENT_FREE, block->bytes);
    *served = false;
    if (!event) {
        return NEAP_OK;
    }
    if (event->kind != NEAP_EVENT_FREE) {
        return free_otherwise(m, block, served);
    }
    if (event->subject == NP_NO_LIFE) {
        if (block->life != NP_NO_LIFE || block->bytes != event->key) {
            np_leave(m, NEAP_DEPARTURE_FREE, NULL);
            return NEAP_OK;
        }
        np_loose_free(m, block);
    } else {
        np_actor *actor = &m->pattern->actors[event->subject];
        bool is_missing = !actor->now[actor->next_free]; /* none stood for it when the plan was entered */
        if (is_missing ? !is_extra(block)
                       : actor->now[actor->next_free] != block || (m->rest.is_on && !block->pattern)) {
            return free_otherwise(m, block, served);
        }
        actor->now[actor->next_free] = NULL;
        actor->next_free = turn_after(actor->next_free, m->pattern->program.lives.items[event->subject].n_places);
        if (block->pattern && !is_missing) {
            free_planned(m, block);
        } else {
            np_loose_free(m, block);
        }
    }
    finish(m, event);
    *served = true;
    return NEAP_OK;
}

/* Does the block keep its bytes to itself, from before the iteration to after it? Whoever uses it, and when, is then the
 * program's affair alone: buffers that take turns are used by every other iteration. */
bool np_follow_is_always_here(const neap_device *m, const neap_block *block)
{
    const np_program_life *life = &m->pattern->program.lives.items[block->life];
    return life->persistent && !life->swapped;
}

/* Does the work use what was planned? Others may come on top, as long as they are here: those that no plan knows, and
 * those that never leave. */
static bool uses_match(const neap_device *m, const np_program_event *event, const neap_use *uses, size_t n_uses,
                       neap_departure *why)
{
    const np_program_use *planned = &m->pattern->program.uses.items[event->first_use];
    uint32_t k = 0;
    for (size_t i = 0; i < n_uses; i++) {
        const neap_block *block = uses[i].block;
        if (block->life == NP_NO_LIFE) {
            if (!np_block_is_here(block)) {
                *why = NEAP_DEPARTURE_ABSENT;
                return false;
            }
        } else if (k < event->n_uses && planned[k].life == block->life && planned[k].kind == (uint32_t)uses[i].kind) {
            k++;
        } else if (!np_follow_is_always_here(m, block)) {
            *why = NEAP_DEPARTURE_USES;
            return false;
        }
    }
    *why = NEAP_DEPARTURE_USES;
    return k == event->n_uses;
}

static bool exec_matches(neap_device *m, const np_program_event *event, uint64_t key, np_given *given,
                         neap_departure *why)
{
    const neap_work *work = given->work;
    *why = NEAP_DEPARTURE_EXEC;
    if (event->kind != NEAP_EVENT_EXEC || event->key != key) {
        return false;
    }
    *why = NEAP_DEPARTURE_STREAM;
    given->is_elsewhere = event->stream != work->stream;
    if (given->is_elsewhere && !m->is_beneath) {
        return false;
    }
    return m->is_beneath ? np_seen_match(m, event, given, why) : uses_match(m, event, given->uses, given->n_uses, why);
}

/* Blocks from beside the plan may stand in bytes that other streams still use. */
neap_status np_follow_wait_beside(neap_device *m, const np_given *given)
{
    np_stream stream = given->work->stream;
    neap_status status = m->has_late ? np_seen_wait_late(m, stream) : NEAP_OK;
    for (size_t i = 0; i < given->n_uses && status == NEAP_OK; i++) {
        if (given->uses[i].block->after_left & (1u << stream)) {
            status = np_wait_after(m, given->uses[i].block, stream);
        }
    }
    return status;
}

/* What is away comes; where it cannot, the next plan is to have it there. */
static bool visit(neap_device *m, const np_program_event *event, const np_given *given)
{
    bool is_possible = np_visit_come(m, event, given);
    for (size_t i = 0; i < m->visit.parts.n; i++) {
        uint32_t life = m->pattern->program.swaps.items[m->visit.parts.items[i].swap].life;
        bool is_first = i == 0 || life != m->pattern->program.swaps.items[m->visit.parts.items[i - 1].swap].life;
        if (is_first && is_possible) {
            np_visit_note(m, life, event->subject, true);
            np_log(m, NEAP_LOG_DEBUG, "exec %u (%s): life %u of %llu bytes was away and came for it%s", event->subject,
                   given->work->name ? given->work->name : "?", life,
                   (unsigned long long)m->pattern->program.lives.items[life].bytes,
                   m->visit.parts.items[i].is_elsewhere ? ", to other pages" : "");
        } else if (is_first) {
            np_beneath_doubt_life(m, m->pattern, life, event->subject);
        }
    }
    return is_possible;
}

neap_status np_follow_ready(neap_device *m, uint64_t key, np_given *given, bool *served)
{
    const np_program_event *event = next_event(m, NEAP_EVENT_EXEC, key);
    np_pattern *pattern = m->pattern;
    neap_departure why;
    neap_status status;
    *served = false;
    if (!event) {
        return NEAP_OK;
    }
    if (!exec_matches(m, event, key, given, &why)) {
        np_actual actual = {NEAP_EVENT_EXEC, key, NULL};
        bool is_other = event->kind != NEAP_EVENT_EXEC || event->key != key;
        if (!is_other) {
            np_leave(m, why, given->work->name);
        } else if (branch_or_leave(m, actual, why, given->work->name)) {
            return np_follow_ready(m, key, given, served);
        }
        return NEAP_OK;
    }
    status = event->n_before > 0 ? np_ops_do(m, event->first_op, event->n_before) : NEAP_OK;
    if (status == NEAP_OK) {
        status = np_follow_wait_beside(m, given);
    }
    if (status == NEAP_OK && given->is_elsewhere) {
        status = np_seen_wait_all(m, given->work->stream);
    }
    if (status == NEAP_OK && given->is_visited && !visit(m, event, given)) {
        np_leave(m, NEAP_DEPARTURE_ABSENT, given->work->name);
        return NEAP_OK;
    }
    if (status != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, given->work->name);
        return NEAP_OK;
    }
    if (event->subject == 0) {
        given->times = &pattern->lap_times[pattern->n_laps % NP_LAPS];
        pattern->is_lap_rested[pattern->n_laps % NP_LAPS] = false;
    } else if (pattern->timed.state == NP_TIMED_ON) {
        given->times = &pattern->timed.times[event->subject];
    }
    *served = true;
    return NEAP_OK;
}

void np_follow_given(neap_device *m, const np_given *given, uint64_t mark)
{
    np_pattern *pattern = m->pattern;
    const np_program_event *event = &pattern->program.events.items[m->cursor];
    if (given->is_elsewhere) {
        mark = np_seen_bring_back(m, event->stream, given->work->stream, mark);
    }
    pattern->exec_marks[event->subject] = mark;
    if (event->subject == 0) {
        pattern->lap_marks[pattern->n_laps % NP_LAPS] = mark;
    }
    if (given->is_late) {
        np_seen_note(m, event, given, mark);
    }
    if (pattern->timed.state == NP_TIMED_ON) {
        np_unseen_note(&pattern->program, event, given->uses, given->n_uses, pattern->timed.is_seen);
    }
    for (size_t i = 0; i < given->n_uses; i++) {
        given->uses[i].block->clean.n_writes += given->uses[i].kind != NEAP_ACCESS_READ;
        given->uses[i].block->used_by |= 1u << given->work->stream;
    }
    if (given->is_visited && np_visit_go(m, given->work->stream) != NEAP_OK) {
        m->cursor++;
        np_leave(m, NEAP_DEPARTURE_FAILED, "a block that was there for one exec");
        return;
    }
    finish(m, event);
}

/* Whoever came for it goes: the event has not happened, and others may use the bytes first. */
void np_follow_failed(neap_device *m, const np_given *given)
{
    if (given->is_visited && np_visit_go(m, given->work->stream) != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, "a block that was there for one exec");
    }
}
