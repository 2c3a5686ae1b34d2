#include "run/rest.h"

#include "run/manager.h"

/* There are mallocs and frees to go by, and each is of a block that has a place. */
static bool is_known_by_blocks(const np_program *program)
{
    bool has_any = false;
    for (size_t i = 0; i < program->events.n; i++) {
        const np_program_event *event = &program->events.items[i];
        if (event->kind != NEAP_EVENT_EXEC && event->subject == NP_NO_LIFE) {
            return false;
        }
        has_any |= event->kind != NEAP_EVENT_EXEC;
    }
    return has_any;
}

/* Blocks beside the plan may be without pages until work uses them, which would not be seen. */
static bool are_all_here(const neap_device *m)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        if (!np_block_is_here(block)) {
            return false;
        }
    }
    return true;
}

/* Is the plan the one that stays? A quick one is measured first, by its work. */
static bool is_final(const neap_device *m, const np_pattern *pattern)
{
    return !pattern->is_quick && !pattern->is_outdated && !atomic_load(&m->learner.is_busy) && !m->refine.measured &&
           (pattern->timed.state == NP_TIMED_NOT || pattern->timed.state == NP_TIMED_DONE);
}

bool np_rest_is_possible(const neap_device *m)
{
    const np_pattern *pattern = m->pattern;
    return m->is_beneath && m->state == NEAP_STATE_RUN && pattern->program.swaps.n == 0 &&
           pattern->program.ops.n == 0 && !m->has_late && m->limit_pages == UINT32_MAX && m->overhead <= 0 &&
           is_final(m, pattern) && are_all_here(m) && is_known_by_blocks(&pattern->program);
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
