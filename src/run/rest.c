#include "run/rest.h"

#include "base/real.h"
#include "run/manager.h"
#include "run/pass.h"

enum {
    LAPS_A_TURN = 5, /* looked at, or not, in turns: machines are faster now and slower then */
    LAPS_AWAITED = 24,
    LAPS_A_TRIAL = 4,
    RESTS_KEPT = 64,
    MANY_RESTS = 40, /* turns: if there is not enough by then, there will never be */
};

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

/* A quick plan, with one to follow that may have swaps: what looking costs is to be known. */
static bool is_to_be_measured(const neap_device *m, const np_pattern *pattern)
{
    return (m->options.limit_share > 0 || m->overhead > 0) && pattern->is_quick && pattern->rested_ns <= 0 &&
           pattern->n_rest_waits < LAPS_AWAITED && pattern->n_rests < MANY_RESTS && !atomic_load(&m->learner.is_busy);
}

/* It is the turn of laps that nobody looks at. */
static bool is_turn(const neap_device *m, const np_pattern *pattern)
{
    return is_to_be_measured(m, pattern) && pattern->n_laps >= pattern->looked_since + LAPS_A_TURN;
}

/* Does nothing wait for anything? What was used without being planned, on the one stream, is in its order, too. */
static bool has_no_waits(const neap_device *m, const np_pattern *pattern)
{
    return pattern->program.swaps.n == 0 && pattern->program.ops.n == 0 &&
           !(m->has_late && np_pass_is_late_elsewhere(m, pattern->exec_streams[0]));
}

bool np_rest_is_possible(const neap_device *m)
{
    const np_pattern *pattern = m->pattern;
    return m->is_beneath && m->state == NEAP_STATE_RUN && m->limit_pages == UINT32_MAX && has_no_waits(m, pattern) &&
           (is_final(m, pattern) || is_turn(m, pattern)) && are_all_here(m) && is_known_by_blocks(&pattern->program);
}

bool np_rest_is_awaited(const neap_device *m)
{
    return m->rest.is_offered && m->limit_pages == UINT32_MAX && is_to_be_measured(m, m->pattern);
}

void np_rest_begin(neap_device *m, void (*on_end)(void *user), void *user)
{
    np_pattern *pattern = m->pattern;
    m->rest.is_on = true;
    m->rest.is_measure = is_to_be_measured(m, pattern);
    m->rest.begin_lap = pattern->n_laps;
    m->rest.on_end = on_end;
    m->rest.user = user;
    if (m->rest.is_measure) {
        pattern->n_rest_waits += LAPS_A_TRIAL; /* it may be interrupted again and again */
        pattern->n_rests++;
    }
}

/* The lap's first exec was not seen: nothing that takes any time stands for it, in its stream. */
static void mark_lap(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    np_device *device = m->device;
    uint64_t at = pattern->n_laps % NP_LAPS;
    device->api->begin(device, pattern->exec_streams[0], &pattern->lap_times[at]);
    pattern->lap_marks[at] = device->api->end(device, pattern->exec_streams[0]);
    pattern->is_lap_rested[at] = true;
}

void np_rest_note(np_pattern *pattern, double ns)
{
    if (pattern->rests_ns.n < RESTS_KEPT) { /* there is enough of it then */
        (void)np_array_push(pattern->memory, &pattern->rests_ns, ns);
    }
}

void np_rest_lap(neap_device *m)
{
    np_pattern *pattern = m->pattern;
    if (!m->rest.is_measure) {
        return;
    }
    mark_lap(m);
    if (pattern->n_laps < m->rest.begin_lap + LAPS_A_TURN) {
        return;
    }
    np_rest_end(m);
    pattern->n_rest_waits = 0;
    pattern->looked_since = pattern->n_laps;
    if (np_pattern_is_rest_measured(pattern)) {
        pattern->rested_ns = np_pattern_rest_ns(pattern);
        np_log(m, NEAP_LOG_INFO, "an iteration takes %s ms, and %s while its work is looked at",
               np_real_fixed(pattern->rested_ns * 1e-6, 3).text,
               np_real_fixed(np_pattern_lap_ns(pattern) * 1e-6, 3).text);
    }
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
