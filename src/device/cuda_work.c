/* cuda_work.c: launches, copies and waits on the device's streams. */
#include <string.h>

#include "base/clock.h"
#include "device/cuda_state.h"

static np_cuda *cuda_of(np_device *device)
{
    return (np_cuda *)device;
}

static np_cuda_lane *lane_of(np_device *device, np_stream stream)
{
    return &cuda_of(device)->lanes[stream];
}

void *np_cuda_stream(const np_device *device, np_stream stream)
{
    return ((const np_cuda *)device)->lanes[stream].stream;
}

/* ---- launches ---- */

/* What a task is given is its own: aligned for any type, and free to be written. */
typedef union argument {
    max_align_t alignment;
    unsigned char bytes[NEAP_ARG_MAX];
} argument;

/* A copy between the program's memory and the device's: the driver sees by the addresses where they lead. */
static neap_status run_copy(np_cuda *cuda, const np_cuda_lane *lane, const np_task *task)
{
    np_host_copy copy;
    np_cuda_visit visit;
    neap_status status;
    memcpy(&copy, task->arg, sizeof copy);
    status = copy.bytes > 0 ? np_cuda_enter(cuda, &visit) : NEAP_OK;
    if (status == NEAP_OK && copy.bytes > 0) {
        status = np_cuda_judge(cuda,
                               cuda->driver.copy_any((np_cu_address)(uintptr_t)copy.to,
                                                     (np_cu_address)(uintptr_t)copy.from, copy.bytes, lane->stream),
                               "cuMemcpyAsync", NEAP_DEVICE_FULL);
        np_cuda_leave(cuda, &visit);
    }
    return status;
}

/* The program puts its work on the stream. */
static neap_status run_task(np_cuda *cuda, const np_cuda_lane *lane, const np_task *task)
{
    np_cuda_visit visit;
    neap_status status = NEAP_OK;
    if (task->run == np_host_copy_run) {
        return run_copy(cuda, lane, task);
    }
    if (task->run) {
        status = np_cuda_enter_as_program(cuda, &visit);
        if (status == NEAP_OK) {
            argument arg;
            if (task->arg_bytes > 0) {
                memcpy(arg.bytes, task->arg, task->arg_bytes);
            }
            task->run(arg.bytes);
            np_cuda_leave(cuda, &visit);
        }
    }
    return status;
}

static neap_status begin_timed(np_cuda *cuda, np_cuda_lane *lane, np_times *times, np_cuda_record *record)
{
    np_cuda_visit visit;
    neap_status status = np_cuda_enter(cuda, &visit);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_cuda_records_take(cuda, lane, true, record);
    if (status == NEAP_OK) {
        record->times = times;
        record->given_ns = np_clock_ns();
        status = np_cuda_judge(cuda, cuda->driver.event_record(record->start, lane->stream), "cuEventRecord",
                               NEAP_DEVICE_FULL);
        if (status != NEAP_OK) {
            np_cuda_records_give_back(cuda, record);
        }
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

/* The work is given, and that cannot be undone: where its end cannot be recorded, its times are unknown. */
static void end_timed(np_cuda *cuda, np_cuda_lane *lane, np_cuda_record *record)
{
    np_cuda_visit visit;
    *record->times = (np_times){record->given_ns, 0};
    if (np_cuda_enter(cuda, &visit) == NEAP_OK) {
        (void)np_cuda_records_add(cuda, lane, record);
        np_cuda_leave(cuda, &visit);
    } else {
        np_cuda_records_give_back(cuda, record);
    }
}

static neap_status launch_timed(np_cuda *cuda, np_cuda_lane *lane, const np_task *task)
{
    np_cuda_record record;
    neap_status status = begin_timed(cuda, lane, task->times, &record);
    if (status != NEAP_OK) {
        return status;
    }
    status = run_task(cuda, lane, task);
    if (status != NEAP_OK) {
        np_cuda_records_give_back(cuda, &record);
        return status;
    }
    lane->mark++;
    end_timed(cuda, lane, &record);
    return NEAP_OK;
}

neap_status np_cuda_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    neap_status status;
    if (task->times) {
        status = launch_timed(cuda, lane, task);
    } else {
        status = run_task(cuda, lane, task);
        lane->mark += status == NEAP_OK;
    }
    if (status == NEAP_OK) {
        *mark = lane->mark;
    }
    return status;
}

/* ---- work that the program gives by itself ---- */

void np_cuda_begin(np_device *device, np_stream stream, np_times *times)
{
    np_cuda *cuda = cuda_of(device);
    cuda->has_begun = times && begin_timed(cuda, lane_of(device, stream), times, &cuda->begun) == NEAP_OK;
}

uint64_t np_cuda_end(np_device *device, np_stream stream)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    lane->mark++;
    if (cuda->has_begun) {
        end_timed(cuda, lane, &cuda->begun);
        cuda->has_begun = false;
    }
    return lane->mark;
}

/* Where there is no event to be had for its end, all of the stream is waited for. */
static neap_status sync_stream(np_cuda *cuda, np_cuda_lane *lane)
{
    neap_status status = NEAP_DEVICE_FAILED;
    if (lane->stream) {
        status = np_cuda_judge(cuda, cuda->driver.stream_sync(lane->stream), "cuStreamSynchronize", NEAP_DEVICE_FAILED);
    }
    if (status == NEAP_OK) {
        np_cuda_records_retire_all(cuda, lane);
    }
    return status;
}

/* Another stream takes the lane's place: its work comes after all that was given to the lane before, and after all that the
 * lane was told to wait for. The old one may be about to go (NULL comes then): its end is recorded while it is there. An
 * event at the end stands for waits, too; it counts as a piece of work that does nothing. */
static neap_status end_stream(np_cuda *cuda, np_cuda_lane *lane)
{
    const np_cuda_record *record;
    neap_status status;
    lane->mark++;
    status = np_cuda_records_find(cuda, lane, lane->mark, &record);
    lane->mark -= status != NEAP_OK;
    return status == NEAP_OK ? NEAP_OK : sync_stream(cuda, lane);
}

static neap_status follow_on(np_cuda *cuda, np_cuda_lane *lane, np_cu_stream stream)
{
    const np_cuda_record *record;
    neap_status status = np_cuda_records_find(cuda, lane, lane->mark, &record);
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.stream_wait(stream, record->event, 0), "cuStreamWaitEvent",
                               NEAP_DEVICE_FULL);
    }
    return status;
}

static neap_status take_place(np_cuda *cuda, np_cuda_lane *lane, np_cu_stream stream)
{
    neap_status status = lane->stream ? end_stream(cuda, lane) : NEAP_OK;
    if (status == NEAP_OK && stream && lane->mark > lane->done) {
        status = follow_on(cuda, lane, stream);
    }
    if (status != NEAP_OK) {
        return status;
    }
    lane->stream = stream;
    lane->is_adopted = true;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) { /* what the old one was told to wait for, the new one was not */
        lane->waited[i] = 0;
    }
    return NEAP_OK;
}

neap_status np_cuda_adopt(np_device *device, np_stream stream, void *native)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    np_cuda_visit visit;
    neap_status status = lane->stream == native ? NEAP_OK : np_cuda_enter(cuda, &visit);
    if (lane->stream == native || status != NEAP_OK) {
        return status;
    }
    status = take_place(cuda, lane, native);
    np_cuda_leave(cuda, &visit);
    for (np_stream i = 0; i < NP_N_STREAMS && status == NEAP_OK && native; i++) { /* told while there was no stream */
        status = np_cuda_wait(device, stream, i, lane->owed[i]);
        lane->owed[i] = status == NEAP_OK ? 0 : lane->owed[i];
    }
    return status;
}

/* ---- copies ---- */

static neap_status give_copy(np_cuda *cuda, np_stream stream, char *to, const char *from, uint64_t bytes)
{
    np_cu_stream on = cuda->lanes[stream].stream;
    np_cu_address to_address = (np_cu_address)(uintptr_t)to;
    np_cu_address from_address = (np_cu_address)(uintptr_t)from;
    if (bytes == 0) {
        return NEAP_OK;
    }
    switch (stream) {
    case NP_STREAM_OUT:
        return np_cuda_judge(cuda, cuda->driver.copy_out(to, from_address, bytes, on), "cuMemcpyDtoHAsync",
                             NEAP_DEVICE_FULL);
    case NP_STREAM_IN:
        return np_cuda_judge(cuda, cuda->driver.copy_in(to_address, from, bytes, on), "cuMemcpyHtoDAsync",
                             NEAP_DEVICE_FULL);
    default: /* the driver sees by the addresses where they lead */
        return np_cuda_judge(cuda, cuda->driver.copy_any(to_address, from_address, bytes, on), "cuMemcpyAsync",
                             NEAP_DEVICE_FULL);
    }
}

/* Copies take long and are waited for, and more of them often follow before they are: each has an event of its own. */
neap_status np_cuda_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                         uint64_t *mark)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    np_cuda_record record;
    np_cuda_visit visit;
    neap_status status = np_cuda_enter(cuda, &visit);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_cuda_records_take(cuda, lane, false, &record);
    if (status == NEAP_OK) {
        status = give_copy(cuda, stream, to, from, bytes);
        if (status == NEAP_OK) {
            *mark = ++lane->mark;
            (void)np_cuda_records_add(cuda, lane, &record); /* without one, a later one will stand for it */
        } else {
            np_cuda_records_give_back(cuda, &record);
        }
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

/* ---- waits ---- */

neap_status np_cuda_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    np_cuda_lane *before = lane_of(device, other);
    const np_cuda_record *record;
    np_cuda_visit visit;
    neap_status status;
    if (stream == other || mark <= before->done || mark <= lane->waited[other]) {
        return NEAP_OK;
    }
    if (!lane->stream) { /* the one that will be adopted waits */
        lane->owed[other] = mark > lane->owed[other] ? mark : lane->owed[other];
        return NEAP_OK;
    }
    status = np_cuda_enter(cuda, &visit);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_cuda_records_find(cuda, before, mark, &record);
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.stream_wait(lane->stream, record->event, 0), "cuStreamWaitEvent",
                               NEAP_DEVICE_FULL);
        if (status == NEAP_OK) {
            lane->waited[other] = record->mark;
        }
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

uint64_t np_cuda_mark(const np_device *device, np_stream stream)
{
    return ((const np_cuda *)device)->lanes[stream].mark;
}

/* To ask may record an event, and learns what is done: the device changes, though nobody sees it. */
bool np_cuda_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    np_cuda *cuda = cuda_of((np_device *)(uintptr_t)device);
    np_cuda_lane *lane = &cuda->lanes[stream];
    const np_cuda_record *record;
    np_cuda_visit visit;
    if (mark <= lane->done) {
        return true;
    }
    if (np_cuda_enter(cuda, &visit) != NEAP_OK) {
        return false;
    }
    if (np_cuda_records_find(cuda, lane, mark, &record) == NEAP_OK) {
        np_cu_result result = cuda->driver.event_query(record->event);
        if (result == NP_CU_SUCCESS) {
            np_cuda_records_retire(cuda, lane, record);
        } else if (result != NP_CU_NOT_READY) {
            (void)np_cuda_judge(cuda, result, "cuEventQuery", NEAP_DEVICE_FULL);
        }
    }
    np_cuda_leave(cuda, &visit);
    return mark <= lane->done;
}

/* Who waits is about to unmap, or to give bytes to others: that there is no memory for an event is no reason not to. */
static neap_status sync_lane(np_cuda *cuda, np_cuda_lane *lane, uint64_t mark)
{
    const np_cuda_record *record;
    neap_status status;
    if (mark <= lane->done) {
        return NEAP_OK;
    }
    if (np_cuda_records_find(cuda, lane, mark, &record) != NEAP_OK) {
        return sync_stream(cuda, lane);
    }
    status = np_cuda_judge(cuda, cuda->driver.event_sync(record->event), "cuEventSynchronize", NEAP_DEVICE_FULL);
    if (status == NEAP_OK) {
        np_cuda_records_retire(cuda, lane, record);
    }
    return status;
}

neap_status np_cuda_sync(np_device *device, np_stream stream, uint64_t mark)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_lane *lane = lane_of(device, stream);
    np_cuda_visit visit;
    neap_status status = mark > lane->done ? np_cuda_enter(cuda, &visit) : NEAP_OK;
    if (status == NEAP_OK && mark > lane->done) {
        status = sync_lane(cuda, lane, mark);
        np_cuda_leave(cuda, &visit);
    }
    return status;
}

/* Waits that no work follows are waited for too. */
neap_status np_cuda_sync_all(np_cuda *cuda)
{
    neap_status status = NEAP_OK;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        np_cuda_lane *lane = &cuda->lanes[i];
        neap_status synced = sync_lane(cuda, lane, lane->mark); /* also of a stream that is gone */
        if (lane->stream && np_cuda_judge(cuda, cuda->driver.stream_sync(lane->stream), "cuStreamSynchronize",
                                          NEAP_DEVICE_FAILED) != NEAP_OK) {
            synced = NEAP_DEVICE_FAILED;
        }
        status = status == NEAP_OK ? synced : status;
    }
    return status;
}
