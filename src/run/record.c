#include "run/record.h"

#include <string.h>

#include "run/pattern.h"
#include "run/price.h"

enum {
    TIMES_PER_CHUNK = 1024,
    MAX_EVENTS = 4 << 20, /* what has not repeated by then is begun anew */
    MANY_PERIODS = 512,   /* of a loop that hardly changes the load: it seems to be all there is */
    SURE_PERIODS = 4,     /* however long the program took to begin */
    SHORT_PERIOD = 64,    /* events: such a loop must be seen three times, longer ones twice */
};

#define MIN_SWING 0.005 /* of the highest load, in an iteration */
#define READY_SHARE 0.6 /* of all events recorded, in the run: loops inside the first iteration are shorter */

void np_recorder_init(np_recorder *recorder, const neap_memory *memory)
{
    *recorder = (np_recorder){.memory = memory};
}

static void stop(np_recorder *recorder)
{
    neap_trace_free(recorder->trace);
    np_detector_free(recorder->detector);
    recorder->trace = NULL;
    recorder->detector = NULL;
    recorder->exec_events.n = 0;
    recorder->n_events = 0;
    recorder->peak_bytes = 0;
    recorder->hash = 0;
    recorder->is_disturbed = false;
    recorder->is_whole = false;
}

void np_recorder_free(np_recorder *recorder)
{
    stop(recorder);
    for (size_t i = 0; i < recorder->chunks.n; i++) {
        np_memory_free(recorder->memory, recorder->chunks.items[i], TIMES_PER_CHUNK, sizeof **recorder->chunks.items);
    }
    np_array_free(recorder->memory, &recorder->chunks);
    np_array_free(recorder->memory, &recorder->exec_events);
}

void np_recorder_begin_empty(np_recorder *recorder)
{
    neap_status status;
    stop(recorder);
    status = np_trace_create(recorder->memory, &recorder->trace);
    if (status == NEAP_OK) {
        status = np_detector_create(recorder->memory, &recorder->detector);
    }
    if (status != NEAP_OK) {
        stop(recorder);
    }
}

void np_recorder_add_live(np_recorder *recorder, uint64_t id, uint64_t bytes)
{
    if (recorder->trace && np_trace_add_live(recorder->trace, id, bytes) != NEAP_OK) {
        stop(recorder);
    }
}

void np_recorder_begin(np_recorder *recorder, neap_block *live)
{
    np_recorder_begin_empty(recorder);
    for (neap_block *block = live; block; block = block->next) {
        block->malloc_event = UINT64_MAX;
        np_recorder_add_live(recorder, block->id, block->bytes);
    }
}

/* After the event was added to the trace. */
static void note(np_recorder *recorder, neap_status status, neap_event_kind kind, uint64_t key)
{
    if (status == NEAP_OK) {
        uint32_t last = (uint32_t)(recorder->trace->events.n - 1);
        status = np_detector_feed(recorder->detector, np_trace_step(recorder->trace, last));
    }
    if (status == NEAP_OK && recorder->trace->live_bytes > recorder->peak_bytes) {
        recorder->peak_bytes = recorder->trace->live_bytes;
    }
    recorder->recent[recorder->n_events % NP_RECENT_KEYS] = np_pattern_hash(0, kind, key);
    recorder->n_events++;
    recorder->hash = np_pattern_hash(recorder->hash, kind, key);
    if (status != NEAP_OK || recorder->n_events > MAX_EVENTS) {
        stop(recorder);
    }
}

void np_recorder_add_malloc(np_recorder *recorder, uint64_t id, uint64_t bytes)
{
    if (recorder->trace) {
        note(recorder, np_trace_add_malloc(recorder->trace, id, bytes), NEAP_EVENT_MALLOC, bytes);
    }
}

void np_recorder_malloc(np_recorder *recorder, neap_block *block)
{
    block->malloc_event = recorder->trace ? recorder->n_events : UINT64_MAX;
    np_recorder_add_malloc(recorder, block->id, block->bytes);
}

void np_recorder_add_free(np_recorder *recorder, uint64_t id, uint64_t bytes)
{
    if (recorder->trace) {
        note(recorder, np_trace_add_free(recorder->trace, id), NEAP_EVENT_FREE, bytes);
    }
}

void np_recorder_free_block(np_recorder *recorder, const neap_block *block)
{
    np_recorder_add_free(recorder, block->id, block->bytes);
}

np_times *np_recorder_times(np_recorder *recorder)
{
    size_t at = recorder->exec_events.n;
    if (!recorder->trace) {
        return NULL;
    }
    if (at / TIMES_PER_CHUNK == recorder->chunks.n) {
        np_times *chunk = np_memory_alloc(recorder->memory, TIMES_PER_CHUNK, sizeof *chunk);
        if (!chunk || np_array_push(recorder->memory, &recorder->chunks, chunk) != NEAP_OK) {
            np_memory_free(recorder->memory, chunk, TIMES_PER_CHUNK, sizeof *chunk);
            stop(recorder);
            return NULL;
        }
    }
    return &recorder->chunks.items[at / TIMES_PER_CHUNK][at % TIMES_PER_CHUNK];
}

static neap_status end_exec(np_recorder *recorder, unsigned stream)
{
    uint32_t last = (uint32_t)(recorder->trace->events.n - 1);
    recorder->trace->events.items[last].stream = stream;
    return np_array_push(recorder->memory, &recorder->exec_events, last);
}

void np_recorder_exec(np_recorder *recorder, const neap_work *work, const neap_use *uses, size_t n_uses)
{
    size_t name_bytes = strlen(work->name);
    neap_status status;
    if (!recorder->trace) {
        return;
    }
    status = np_trace_add_exec(recorder->trace, work->name, name_bytes, 0, 0);
    for (size_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        status = np_trace_add_access(recorder->trace, uses[i].block->id, uses[i].kind);
    }
    status = status == NEAP_OK ? end_exec(recorder, work->stream) : status;
    note(recorder, status, NEAP_EVENT_EXEC, np_program_name_key(work->name, name_bytes));
}

void np_recorder_add_exec(np_recorder *recorder, const char *name, unsigned stream, uint64_t duration_ns,
                          const uint64_t *ids, const neap_access_kind *kinds, size_t n)
{
    np_times *times = np_recorder_times(recorder);
    size_t name_bytes = strlen(name);
    neap_status status;
    if (!times) {
        return;
    }
    *times = (np_times){.duration_ns = duration_ns};
    recorder->is_disturbed = true; /* starts are not known */
    status = np_trace_add_exec(recorder->trace, name, name_bytes, 0, 0);
    for (size_t i = 0; i < n && status == NEAP_OK; i++) {
        status = np_trace_add_access(recorder->trace, ids[i], kinds[i]);
    }
    status = status == NEAP_OK ? end_exec(recorder, stream) : status;
    note(recorder, status, NEAP_EVENT_EXEC, np_program_name_key(name, name_bytes));
}

/* The highest minus the lowest load in the last events. */
static uint64_t find_swing(const np_recorder *recorder, uint32_t n_last)
{
    const neap_trace *trace = recorder->trace;
    int64_t load = (int64_t)trace->live_bytes;
    int64_t low = load;
    int64_t high = load;
    for (uint32_t i = 1; i <= n_last; i++) { /* backwards from the present */
        load -= np_trace_step(trace, (uint32_t)(trace->events.n - i)).live_bytes_delta;
        low = load < low ? load : low;
        high = load > high ? load : high;
    }
    return (uint64_t)(high - low);
}

/* Layers and time steps repeat too, but they hardly change the load: an iteration goes up to the peak and back. */
static bool is_iteration(const np_recorder *recorder, const np_run *run, uint32_t n_periods)
{
    uint64_t swing = find_swing(recorder, run->period);
    return swing > 0 && ((double)swing >= MIN_SWING * (double)recorder->peak_bytes || n_periods >= MANY_PERIODS);
}

bool np_recorder_is_ready(const np_recorder *recorder, bool *seen)
{
    np_run run;
    uint32_t n_periods;
    *seen = recorder->trace && np_detector_current(recorder->detector, &run);
    if (!*seen) {
        return false;
    }
    n_periods = (run.end - run.begin) / run.period;
    if (n_periods < (run.period < SHORT_PERIOD ? 3 : 2)) {
        return false;
    }
    if ((double)(run.end - run.begin) < READY_SHARE * (double)recorder->n_events &&
        (n_periods < SURE_PERIODS || run.period < SHORT_PERIOD)) {
        return false;
    }
    return is_iteration(recorder, &run, n_periods);
}

static np_times times_of(const np_recorder *recorder, size_t exec)
{
    return recorder->chunks.items[exec / TIMES_PER_CHUNK][exec % TIMES_PER_CHUNK];
}

static uint64_t price_of(const np_recorder *recorder)
{
    np_price price = {0};
    for (size_t i = 0; i < recorder->exec_events.n && recorder->has_price; i++) {
        np_times times = times_of(recorder, i);
        np_price_add(&price, times.start_ns, times.duration_ns);
    }
    return np_price_ns(&price);
}

void np_recorder_fill_times(np_recorder *recorder)
{
    uint64_t price_ns = price_of(recorder);
    for (size_t i = 0; i < recorder->exec_events.n; i++) {
        np_times times = times_of(recorder, i);
        neap_event *event = &recorder->trace->events.items[recorder->exec_events.items[i]];
        event->start_ns = times.start_ns;
        event->duration_ns = times.start_ns > 0 ? np_price_paid(times.duration_ns, price_ns) : times.duration_ns;
    }
}

neap_trace *np_recorder_take(np_recorder *recorder)
{
    neap_trace *trace = recorder->trace;
    np_recorder_fill_times(recorder);
    recorder->trace = NULL;
    stop(recorder);
    return trace;
}
