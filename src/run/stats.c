/* stats.c: what a device tells about itself. */
#include <math.h>

#include "base/status.h"
#include "run/manager.h"
#include "trace/copy.h"

const char *neap_state_name(neap_state state)
{
    static const char *const names[] = {
#define NEAP_STATE_WORD(name, word, text) word,
        NEAP_STATE_MAP(NEAP_STATE_WORD)
#undef NEAP_STATE_WORD
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "unknown";
}

void neap_get_stats(neap_device *m, neap_stats *stats)
{
    uint64_t page = m->device->page_bytes;
    double lap;
    (void)pthread_mutex_lock(&m->lock);
    *stats = m->stats;
    stats->state = m->state;
    stats->limit = m->limit_pages == UINT32_MAX ? 0 : m->limit_pages * page;
    stats->held = m->pages.n_held * page;
    stats->peak_held = m->pages.peak_held * page;
    stats->footprint = m->pattern ? m->pages.recent_peak * page : 0;
    if (np_is_plain(m)) {
        stats->held = m->plain_bytes;
        stats->peak_held = m->peak_plain_bytes;
    }
    stats->host_bytes = m->host.held_bytes;
    stats->n_patterns = m->patterns.n;
    stats->overhead = NAN;
    if (m->pattern) {
        np_follow_note_laps(m);
        stats->peak_load = m->pattern->program.peak_load;
        stats->planned_footprint = m->pattern->program.footprint;
        stats->plan_overhead = m->pattern->program.overhead;
        stats->iteration_ns = m->pattern->program.period_ns;
        stats->metadata_bytes = np_pattern_metadata_bytes(m->pattern) / m->pattern->program.events.n;
        lap = np_pattern_lap_ns(m->pattern);
        stats->overhead = lap / m->pattern->program.period_ns - 1;
    }
    (void)pthread_mutex_unlock(&m->lock);
}

/* What is recorded now, or else what the plan at hand was made from. */
static const neap_trace *trace_at_hand(const neap_device *m)
{
    const np_pattern *pattern = m->pattern ? m->pattern : m->patterns.n > 0 ? m->patterns.items[0] : NULL;
    if (m->state == NEAP_STATE_RUN || (m->recorder.trace && m->recorder.n_events == 0)) {
        return pattern && pattern->trace ? pattern->trace : m->refine.trace;
    }
    return m->recorder.trace;
}

neap_status neap_device_trace(neap_device *m, const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    const neap_trace *from;
    neap_status status;
    (void)pthread_mutex_lock(&m->lock);
    status = np_drain(m);
    if (status == NEAP_OK) {
        np_recorder_fill_times(&m->recorder);
        from = trace_at_hand(m);
        status = from ? np_trace_copy(from, np_memory_or_default(memory), trace) : NEAP_NO_PERIOD;
    }
    (void)pthread_mutex_unlock(&m->lock);
    return status == NEAP_OK
               ? NEAP_OK
               : np_fail(error, status, "%s",
                         status == NEAP_NO_PERIOD ? "nothing is recorded at present" : neap_status_message(status));
}
