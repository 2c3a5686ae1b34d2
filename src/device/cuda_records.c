/* cuda_records.c: events that stand for marks, and times.
 *
 * A mark is a number; the driver knows events. An event is recorded after every copy and after work whose times are
 * asked for. After any other work none is, as most of it is never waited for: where somebody waits for a mark without
 * an event, one is recorded at the end of the stream and stands for all before it. That is later than need be only
 * where more work was given since. So a wait never comes before its record: there is nothing to wait for but events of
 * the ring, and they are in it because they were recorded.
 *
 * Events are used again once they are known to be done. Whoever was told to wait for one has been served by then.
 *
 * Times: the driver tells only how much time lies between two events, as a float of milliseconds. An event that is
 * known to be done stands for a moment of the host's clock, and is replaced by a later one each second, so that the
 * float stays exact to some ten ns. The host's clock was read before that first event was recorded, so that no time is
 * later than it was; nor is one earlier than the work was given, or than the end of the work before it. */
#include "base/clock.h"
#include "device/cuda_state.h"

enum { FIRST_RECORDS = 32, REBASE_MS = 1000 };

/* ---- events ---- */

static neap_status take_event(np_cuda *cuda, np_cuda_events *events, np_cu_event *event)
{
    neap_status status;
    if (events->idle.n > 0) {
        *event = events->idle.items[--events->idle.n];
        return NEAP_OK;
    }
    status = np_array_reserve(cuda->base.memory, &events->idle, events->n_made + 1);
    if (status == NEAP_OK) {
        status =
            np_cuda_judge(cuda, cuda->driver.event_create(event, events->flags), "cuEventCreate", NEAP_DEVICE_FULL);
        events->n_made += status == NEAP_OK;
    }
    return status;
}

static void give_event(np_cuda_events *events, np_cu_event event)
{
    events->idle.items[events->idle.n++] = event; /* there is room: take_event made it */
}

static void free_events(np_cuda *cuda, np_cuda_events *events)
{
    while (events->idle.n > 0) {
        (void)cuda->driver.event_destroy(events->idle.items[--events->idle.n]);
    }
    np_array_free(cuda->base.memory, &events->idle);
}

/* ---- the ring ---- */

static np_cuda_record *record_at(const np_cuda_lane *lane, size_t i)
{
    return &lane->records[(lane->first_record + i) & (lane->capacity - 1)];
}

static neap_status grow(np_cuda *cuda, np_cuda_lane *lane)
{
    size_t capacity = lane->capacity > 0 ? 2 * lane->capacity : FIRST_RECORDS;
    np_cuda_record *records = np_memory_alloc(cuda->base.memory, capacity, sizeof *records);
    if (!records) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < lane->n_records; i++) {
        records[i] = *record_at(lane, i);
    }
    np_memory_free(cuda->base.memory, lane->records, lane->capacity, sizeof *lane->records);
    lane->records = records;
    lane->capacity = capacity;
    lane->first_record = 0;
    return NEAP_OK;
}

/* Where the ring is full, half of it is most often done by now: one question for as many records. */
static neap_status make_room(np_cuda *cuda, np_cuda_lane *lane)
{
    if (lane->n_records < lane->capacity) {
        return NEAP_OK;
    }
    if (lane->n_records > 0) {
        const np_cuda_record *middle = record_at(lane, lane->n_records / 2);
        np_cu_result result = cuda->driver.event_query(middle->event);
        if (result == NP_CU_SUCCESS) {
            np_cuda_records_retire(cuda, lane, middle);
            return NEAP_OK;
        }
        if (result != NP_CU_NOT_READY) {
            return np_cuda_judge(cuda, result, "cuEventQuery", NEAP_DEVICE_FULL);
        }
    }
    return grow(cuda, lane);
}

neap_status np_cuda_records_take(np_cuda *cuda, np_cuda_lane *lane, bool timed, np_cuda_record *record)
{
    np_cuda_record taken = {0};
    np_cuda_events *events = timed ? &cuda->timed : &cuda->plain;
    neap_status status = make_room(cuda, lane);
    if (status == NEAP_OK) {
        status = take_event(cuda, events, &taken.event);
    }
    if (status == NEAP_OK && timed) {
        status = take_event(cuda, events, &taken.start);
        if (status != NEAP_OK) {
            give_event(events, taken.event);
        }
    }
    if (status == NEAP_OK) {
        *record = taken;
    }
    return status;
}

void np_cuda_records_give_back(np_cuda *cuda, const np_cuda_record *record)
{
    np_cuda_events *events = record->start ? &cuda->timed : &cuda->plain;
    give_event(events, record->event);
    if (record->start) {
        give_event(events, record->start);
    }
}

neap_status np_cuda_records_add(np_cuda *cuda, np_cuda_lane *lane, np_cuda_record *record)
{
    neap_status status =
        np_cuda_judge(cuda, cuda->driver.event_record(record->event, lane->stream), "cuEventRecord", NEAP_DEVICE_FULL);
    if (status != NEAP_OK) {
        np_cuda_records_give_back(cuda, record);
        return status;
    }
    record->mark = lane->mark;
    *record_at(lane, lane->n_records++) = *record;
    return NEAP_OK;
}

static np_cuda_record *first_from(const np_cuda_lane *lane, uint64_t mark)
{
    size_t low = 0;
    size_t high = lane->n_records;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (record_at(lane, middle)->mark < mark) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < lane->n_records ? record_at(lane, low) : NULL;
}

neap_status np_cuda_records_find(np_cuda *cuda, np_cuda_lane *lane, uint64_t mark, const np_cuda_record **record)
{
    const np_cuda_record *found = first_from(lane, mark);
    if (!found) {
        np_cuda_record made;
        neap_status status = np_cuda_records_take(cuda, lane, false, &made);
        if (status == NEAP_OK) {
            status = np_cuda_records_add(cuda, lane, &made);
        }
        if (status != NEAP_OK) {
            return status;
        }
        found = record_at(lane, lane->n_records - 1);
    }
    *record = found;
    return NEAP_OK;
}

/* ---- times ---- */

/* The moment of an event by the host's clock, 0 where the driver does not tell. Both are done. */
static uint64_t moment_of(np_cuda *cuda, np_cu_event event, float *ms)
{
    np_cu_result result = cuda->driver.event_elapsed(ms, cuda->base_event, event);
    double ns;
    if (np_cuda_judge(cuda, result, "cuEventElapsedTime", NEAP_DEVICE_FAILED) != NEAP_OK) {
        return 0;
    }
    ns = (double)*ms * 1e6;
    return ns >= 0 || -ns < (double)cuda->base_ns ? (uint64_t)((double)cuda->base_ns + ns) : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* No work that is done ended after now: where it seems so, the device's clock is the faster one, and is put back. */
static uint64_t put_back(np_cuda *cuda, uint64_t start_ns, uint64_t duration_ns)
{
    uint64_t now_ns = np_clock_ns();
    uint64_t end_ns = start_ns + duration_ns;
    uint64_t excess_ns = end_ns > now_ns ? end_ns - now_ns : 0;
    excess_ns = excess_ns < cuda->base_ns ? excess_ns : cuda->base_ns;
    cuda->base_ns -= excess_ns;
    return start_ns > excess_ns ? start_ns - excess_ns : 0;
}

/* What cannot be known is 0 ns long. */
static void fill_times(np_cuda *cuda, np_cuda_lane *lane, np_cuda_record *record)
{
    uint64_t earliest_ns = later(record->given_ns, lane->last_end_ns);
    float since_base = 0;
    float duration = 0;
    uint64_t duration_ns;
    uint64_t start_ns = later(moment_of(cuda, record->start, &since_base), earliest_ns);
    np_cu_result result = cuda->driver.event_elapsed(&duration, record->start, record->event);
    if (np_cuda_judge(cuda, result, "cuEventElapsedTime", NEAP_DEVICE_FAILED) != NEAP_OK || !(duration > 0)) {
        duration = 0;
    }
    duration_ns = (uint64_t)((double)duration * 1e6);
    start_ns = later(put_back(cuda, start_ns, duration_ns), earliest_ns);
    *record->times = (np_times){start_ns, duration_ns};
    lane->last_end_ns = start_ns + duration_ns;
    if (since_base > REBASE_MS) { /* the start becomes the base, and the old base an event again */
        np_cu_event old = cuda->base_event;
        cuda->base_event = record->start;
        record->start = old;
        cuda->base_ns = start_ns;
    }
}

void np_cuda_records_retire(np_cuda *cuda, np_cuda_lane *lane, const np_cuda_record *record)
{
    uint64_t mark = record->mark;
    while (lane->n_records > 0 && record_at(lane, 0)->mark <= mark) {
        np_cuda_record *first = record_at(lane, 0);
        if (first->times) {
            fill_times(cuda, lane, first);
        }
        np_cuda_records_give_back(cuda, first);
        lane->done = first->mark;
        lane->first_record = (lane->first_record + 1) & (lane->capacity - 1);
        lane->n_records--;
    }
}

void np_cuda_records_retire_all(np_cuda *cuda, np_cuda_lane *lane)
{
    if (lane->n_records > 0) {
        np_cuda_records_retire(cuda, lane, record_at(lane, lane->n_records - 1));
    }
    lane->done = lane->mark;
}

/* ---- opening and closing ---- */

neap_status np_cuda_records_open(np_cuda *cuda)
{
    neap_status status;
    cuda->plain.flags = NP_CU_EVENT_DISABLE_TIMING;
    cuda->timed.flags = NP_CU_EVENT_DEFAULT;
    status = take_event(cuda, &cuda->timed, &cuda->base_event);
    if (status == NEAP_OK) {
        cuda->base_ns = np_clock_ns();
        status = np_cuda_judge(cuda, cuda->driver.event_record(cuda->base_event, cuda->lanes[NP_STREAM_OUT].stream),
                               "cuEventRecord", NEAP_DEVICE_FULL);
    }
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.event_sync(cuda->base_event), "cuEventSynchronize", NEAP_DEVICE_FULL);
    }
    return status;
}

void np_cuda_records_close(np_cuda *cuda)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        np_cuda_lane *lane = &cuda->lanes[i];
        for (; lane->n_records > 0; lane->n_records--) { /* of a device that failed: their times stay unknown */
            np_cuda_records_give_back(cuda, record_at(lane, lane->n_records - 1));
        }
        np_memory_free(cuda->base.memory, lane->records, lane->capacity, sizeof *lane->records);
        lane->records = NULL;
        lane->capacity = 0;
    }
    if (cuda->base_event) {
        give_event(&cuda->timed, cuda->base_event);
        cuda->base_event = NULL;
    }
    free_events(cuda, &cuda->plain);
    free_events(cuda, &cuda->timed);
}

static bool lane_is_valid(const np_cuda_lane *lane, size_t *n_plain, size_t *n_timed)
{
    uint64_t last = lane->done;
    if (lane->done > lane->mark || lane->n_records > lane->capacity || (lane->capacity & (lane->capacity - 1)) != 0) {
        return false;
    }
    for (size_t i = 0; i < lane->n_records; i++) {
        const np_cuda_record *record = record_at(lane, i);
        if (!record->event || record->mark <= last || record->mark > lane->mark ||
            (record->start == NULL) != (record->times == NULL)) {
            return false;
        }
        last = record->mark;
        *n_plain += record->start == NULL;
        *n_timed += record->start ? 2 : 0;
    }
    return true;
}

/* Every event is idle, or of one record, or the base. */
bool np_cuda_records_are_valid(const np_cuda *cuda)
{
    size_t n_plain = cuda->plain.idle.n;
    size_t n_timed = cuda->timed.idle.n + 1;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        if (!lane_is_valid(&cuda->lanes[i], &n_plain, &n_timed)) {
            return false;
        }
        for (np_stream k = 0; k < NP_N_STREAMS; k++) {
            if (cuda->lanes[i].waited[k] > cuda->lanes[k].mark) {
                return false;
            }
        }
    }
    return n_plain == cuda->plain.n_made && n_timed == cuda->timed.n_made;
}
