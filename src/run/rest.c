#include "run/rest.h"

#include "run/manager.h"

static bool has_all_lives(const np_program *program)
{
    for (size_t i = 0; i < program->events.n; i++) {
        const np_program_event *event = &program->events.items[i];
        if (event->kind != NEAP_EVENT_EXEC && event->subject == NP_NO_LIFE) {
            return false;
        }
    }
    return true;
}

static bool has_events_of_blocks(const np_program *program)
{
    for (size_t i = 0; i < program->events.n; i++) {
        if (program->events.items[i].kind != NEAP_EVENT_EXEC) {
            return true;
        }
    }
    return false;
}

bool np_rest_is_possible(const neap_device *m)
{
    const np_pattern *pattern = m->pattern;
    return m->is_beneath && m->state == NEAP_STATE_RUN && pattern->program.swaps.n == 0 &&
           pattern->program.ops.n == 0 && !m->has_late && m->limit_pages == UINT32_MAX && m->overhead <= 0 &&
           !atomic_load(&m->learner.is_busy) && !m->refine.measured &&
           (pattern->timed.state == NP_TIMED_NOT || pattern->timed.state == NP_TIMED_DONE) &&
           has_events_of_blocks(&pattern->program) && has_all_lives(&pattern->program);
}

void np_rest_begin(neap_device *m, void (*on_end)(void *user), void *user)
{
    m->rest = (np_rest){.is_on = true, .on_end = on_end, .user = user};
}

void np_rest_end(neap_device *m)
{
    if (m->rest.is_on) {
        m->rest.is_on = false;
        m->rest.on_end(m->rest.user);
    }
}

void np_rest_pass(neap_device *m)
{
    const np_program *program = &m->pattern->program;
    while (m->cursor < program->events.n && program->events.items[m->cursor].kind == NEAP_EVENT_EXEC) {
        m->cursor++;
    }
}
