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

void neap_get_stats(neap_device *device, neap_stats *stats)
{
    uint64_t page = device->device->page_bytes;
    double lap;
    if (np_process_is_child(&device->process)) {
        *stats = (neap_stats){.overhead = NAN};
        return;
    }
    (void)pthread_mutex_lock(&device->lock);
    *stats = device->stats;
    stats->state = device->state;
    stats->limit = device->limit_pages == UINT32_MAX ? 0 : device->limit_pages * page;
    stats->held = device->pages.n_held * page;
    stats->peak_held = device->pages.peak_held * page;
    stats->footprint = device->pattern ? device->pages.recent_peak * page : 0;
    if (np_is_plain(device)) {
        stats->held = device->plain_bytes;
        stats->peak_held = device->peak_plain_bytes;
    }
    stats->host_bytes = device->host.held_bytes;
    stats->n_patterns = device->patterns.n;
    stats->is_planning = atomic_load(&device->learner.is_busy) || device->refine.measured ||
                         (device->pattern && device->pattern->is_quick);
    stats->overhead = NAN;
    stats->is_limit_unplanned = stats->limit > 0 && !device->pattern && stats->bytes_out > 0;
    if (device->pattern) {
        np_follow_note_laps(device);
        stats->peak_load = np_highest_load(device);
        stats->planned_footprint = device->pattern->program.footprint;
        stats->plan_overhead = np_pattern_plan_overhead(device->pattern);
        stats->iteration_ns = np_pattern_base_ns(device->pattern);
        stats->metadata_bytes = np_pattern_metadata_bytes(device->pattern) / device->pattern->program.events.n;
        lap = np_pattern_lap_ns(device->pattern);
        stats->overhead = lap / stats->iteration_ns - 1;
    }
    (void)pthread_mutex_unlock(&device->lock);
}

/* What is recorded now, where that has iterations, or else what the plan at hand was made from: a program that ends leaves
 * its plan, and what it does then is no loop. */
static const neap_trace *trace_at_hand(const neap_device *m)
{
    const np_pattern *pattern = m->pattern ? m->pattern : m->patterns.n > 0 ? m->patterns.items[0] : NULL;
    const neap_trace *planned = pattern && pattern->trace ? pattern->trace : m->refine.trace;
    bool seen;
    bool is_worth_more = m->state != NEAP_STATE_RUN && np_recorder_is_ready(&m->recorder, &seen);
    return planned && !is_worth_more ? planned : m->recorder.trace;
}

neap_status neap_device_trace(neap_device *device, const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    const neap_trace *from;
    neap_status status;
    if (np_check_process(device) != NEAP_OK) {
        return np_fail(error, NEAP_DEVICE_FAILED, "%s", neap_device_error());
    }
    (void)pthread_mutex_lock(&device->lock);
    status = np_drain(device);
    if (status == NEAP_OK) {
        np_recorder_fill_times(&device->recorder);
        from = trace_at_hand(device);
        status = from ? np_trace_copy(from, np_memory_or_default(memory), trace) : NEAP_NO_PERIOD;
    }
    (void)pthread_mutex_unlock(&device->lock);
    return status == NEAP_OK
               ? NEAP_OK
               : np_fail(error, status, "%s",
                         status == NEAP_NO_PERIOD ? "nothing is recorded at present" : neap_status_message(status));
}
