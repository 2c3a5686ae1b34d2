#include "run/stray.h"

#include <string.h>

enum { MANY_BETWEEN = 64 }; /* pieces of work between two iterations: more are an iteration */

static bool is_allowed(const neap_device *m, const neap_block *block)
{
    return block->life == NP_NO_LIFE ? np_block_is_here(block) : !np_seen_is_away(m->pattern, block->life);
}

static neap_status wait_on_plan(neap_device *m, const np_given *given)
{
    np_stream stream = given->work->stream;
    neap_status status = np_follow_wait_beside(m, given);
    for (size_t i = 0; i < given->n_uses && status == NEAP_OK; i++) {
        if (given->uses[i].block->life != NP_NO_LIFE) {
            status = np_seen_wait_before(m, given->uses[i].block, stream);
        }
    }
    return status;
}

neap_status np_stray_ready(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses, np_given *given)
{
    bool is_on_plan = m->state == NEAP_STATE_RUN;
    *given = (np_given){.work = work, .uses = uses, .n_uses = n_uses, .is_stray = true};
    if (m->visit.is_torn) {
        return NEAP_DEVICE_FAILED;
    }
    for (size_t i = 0; i < n_uses; i++) {
        is_on_plan = is_on_plan && is_allowed(m, uses[i].block);
        np_beneath_doubt(m, uses[i].block);
    }
    if (!is_on_plan && m->state == NEAP_STATE_RUN) {
        np_leave(m, NEAP_DEPARTURE_USES, work->name);
    }
    if (is_on_plan && wait_on_plan(m, given) != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, work->name);
        is_on_plan = false;
    }
    return is_on_plan ? NEAP_OK : np_loose_ready(m, given);
}

void np_stray_given(neap_device *m, const np_given *given, uint64_t mark)
{
    for (size_t i = 0; i < given->n_uses; i++) {
        neap_block *block = given->uses[i].block;
        block->clean.n_writes += given->uses[i].kind != NEAP_ACCESS_READ;
        if (m->state == NEAP_STATE_RUN && block->life != NP_NO_LIFE && !np_follow_is_always_here(m, block)) {
            np_seen_note_late(m, block->life, given->work->stream, mark);
        }
    }
}

/* ---- beside the plan ---- */

static bool is_copy(const char *name)
{
    static const char copy[] = "memcpy.";
    return name && strncmp(name, copy, sizeof copy - 1) == 0;
}

bool np_stray_is_beside(const neap_device *m, uint64_t key, const np_given *given)
{
    const np_program *program = &m->pattern->program;
    bool is_between = m->cursor == program->events.n;
    const np_program_event *event = is_between ? NULL : &program->events.items[m->cursor];
    if (!m->is_beneath || m->rest.is_on || m->is_blind ||
        (event && (!is_copy(given->work->name) || (event->kind == NEAP_EVENT_EXEC && event->key == key)))) {
        return false;
    }
    if (is_between && (m->n_between >= MANY_BETWEEN || np_any_begins_with(m, NEAP_EVENT_EXEC, key))) {
        return false;
    }
    for (size_t i = 0; i < given->n_uses; i++) {
        if (!is_allowed(m, given->uses[i].block)) {
            return false;
        }
    }
    return true;
}

bool np_stray_ready_beside(neap_device *m, np_given *given)
{
    if (wait_on_plan(m, given) != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, given->work->name);
        return false;
    }
    m->n_between += m->cursor == m->pattern->program.events.n;
    m->stats.n_beside++;
    given->is_stray = true;
    return true;
}
