/* fork.c: events at which iterations of another kind part from a pattern.
 *
 * A block that is live there is to be a view in both plans, so that it can be seen at the place that either gives it
 * (branch.c). A pattern that was planned without knowing of a fork is to be planned anew. */
#include <string.h>

#include "run/manager.h"

enum { MAX_FORKS = 32 }; /* of a pattern */

void np_fork_note(neap_device *m, np_pattern *pattern, uint32_t event)
{
    for (size_t i = 0; i < pattern->forks.n; i++) {
        if (pattern->forks.items[i] == event) {
            return;
        }
    }
    if (pattern->forks.n < MAX_FORKS && np_array_push(m->memory, &pattern->forks, event) == NEAP_OK) {
        pattern->has_new_fork = true;
    }
}

static uint64_t key_in(const neap_trace *trace, uint32_t event)
{
    const neap_event *e = &trace->events.items[event];
    const char *name = e->kind == NEAP_EVENT_EXEC ? neap_trace_exec_name(trace, e->subject) : "";
    return e->kind == NEAP_EVENT_MALLOC ? trace->blocks.items[e->subject].bytes
           : e->kind == NEAP_EVENT_FREE ? 0
                                        : np_program_name_key(name, strlen(name));
}

/* How many first events are the same? */
static uint32_t match_begin(const np_pattern *pattern, const neap_trace *trace)
{
    uint32_t n = 0;
    while (n < pattern->program.events.n && n < trace->events.n &&
           pattern->program.events.items[n].kind == (unsigned)trace->events.items[n].kind &&
           np_pattern_key(pattern, n) == key_in(trace, n)) {
        n++;
    }
    return n;
}

neap_status np_forks_find(neap_device *m, const neap_trace *iteration, np_u32_array *forks)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < m->patterns.n && status == NEAP_OK; i++) {
        np_pattern *pattern = m->patterns.items[i];
        uint32_t n = match_begin(pattern, iteration);
        if (n > 0 && n < pattern->program.events.n && n < iteration->events.n) {
            np_fork_note(m, pattern, n);
            status = np_array_push(m->memory, forks, n);
        }
    }
    return status;
}
