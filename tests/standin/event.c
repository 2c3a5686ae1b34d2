/* event.c: events with generations. To record is to begin the next one; to wait is for the one that was begun last. An
 * event that was never recorded is done: waiting for it is nothing, as on the real driver. */
#include "standin/standin_state.h"

np_cu_result cuEventCreate(np_cu_event *made, unsigned int flags)
{
    event *e;
    BEGIN(NEEDS_CONTEXT, made, flags);
    if (flags > 7) {
        return end(NP_CU_INVALID_VALUE);
    }
    e = object_make(sizeof *e, EVENT);
    e->flags = flags;
    standin.counts.n_events++;
    *made = (np_cu_event)e;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuEventDestroy_v2(np_cu_event handle)
{
    event *e;
    BEGIN(NEEDS_INIT, handle);
    e = object_check(handle, EVENT, "cuEventDestroy");
    e->base.is_alive = false; /* work that waits for it goes on */
    standin.counts.n_events--;
    return end(NP_CU_SUCCESS);
}

static np_cu_result record(np_cu_event handle, np_cu_stream on)
{
    event *e = object_check(handle, EVENT, "cuEventRecord");
    stream *s = stream_of(on, "cuEventRecord");
    item *work;
    if (s->capture) {
        if (s->capture->is_invalid) {
            return (np_cu_result)CU_CAPTURE_INVALIDATED;
        }
        e->capture = s->capture;
        e->captured = s;
        s->is_joined = false; /* until somebody waits for it */
        return NP_CU_SUCCESS;
    }
    e->capture = NULL;
    work = item_make(ITEM_RECORD, 0);
    work->event = e;
    work->generation = ++e->n_recorded;
    return stream_give(s, work);
}

np_cu_result cuEventRecord(np_cu_event handle, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, handle, on);
    return end(record(handle, on));
}

np_cu_result cuEventRecordWithFlags(np_cu_event handle, np_cu_stream on, unsigned int flags)
{
    BEGIN(NEEDS_CONTEXT, handle, on, flags);
    return end(flags == 0 ? record(handle, on) : NP_CU_INVALID_VALUE);
}

/* A wait for an event of a capture draws the stream into it. */
static np_cu_result wait_captured(stream *s, const event *e)
{
    if (!e->capture->is_active) {
        return NP_CU_SUCCESS; /* the capture is over: the event stands for nothing */
    }
    if (s->capture && s->capture != e->capture) {
        capture_invalidate(s->capture);
        capture_invalidate(e->capture);
        return (np_cu_result)CU_CAPTURE_ISOLATION;
    }
    s->capture = e->capture;
    if (e->captured != s) {
        e->captured->is_joined = true;
    }
    return NP_CU_SUCCESS;
}

np_cu_result cuStreamWaitEvent(np_cu_stream on, np_cu_event handle, unsigned int flags)
{
    event *e;
    stream *s;
    item *work;
    BEGIN(NEEDS_CONTEXT, on, handle, flags);
    e = object_check(handle, EVENT, "cuStreamWaitEvent");
    s = stream_of(on, "cuStreamWaitEvent");
    if (flags > 1) {
        return end(NP_CU_INVALID_VALUE);
    }
    if (e->capture) {
        return end(wait_captured(s, e));
    }
    if (s->capture) { /* from outside into a capture */
        capture_invalidate(s->capture);
        return end((np_cu_result)CU_CAPTURE_ISOLATION);
    }
    if (e->n_done >= e->n_recorded) {
        return end(NP_CU_SUCCESS);
    }
    work = item_make(ITEM_WAIT_EVENT, 0);
    work->event = e;
    work->generation = e->n_recorded;
    return end(stream_give(s, work));
}

np_cu_result cuEventQuery(np_cu_event handle)
{
    const event *e;
    BEGIN(NEEDS_INIT | IS_UNSAFE, handle);
    e = object_check(handle, EVENT, "cuEventQuery");
    if (e->capture && e->capture->is_active) {
        capture_invalidate(e->capture);
        return end((np_cu_result)CU_CAPTURED_EVENT);
    }
    return end(e->n_done >= e->n_recorded ? NP_CU_SUCCESS : NP_CU_NOT_READY);
}

np_cu_result cuEventSynchronize(np_cu_event handle)
{
    const event *e;
    uint64_t generation;
    BEGIN(NEEDS_INIT | IS_UNSAFE, handle);
    e = object_check(handle, EVENT, "cuEventSynchronize");
    if (e->capture && e->capture->is_active) {
        capture_invalidate(e->capture);
        return end((np_cu_result)CU_CAPTURED_EVENT);
    }
    generation = e->n_recorded;
    while (e->n_done < generation) {
        (void)pthread_cond_wait(&standin.progress, &standin.lock);
    }
    return end(NP_CU_SUCCESS);
}

static np_cu_result elapsed(float *ms, np_cu_event first, np_cu_event second)
{
    const event *a = object_check(first, EVENT, "cuEventElapsedTime");
    const event *b = object_check(second, EVENT, "cuEventElapsedTime");
    if (a->n_recorded == 0 || b->n_recorded == 0 || ((a->flags | b->flags) & NP_CU_EVENT_DISABLE_TIMING) != 0) {
        return (np_cu_result)CU_INVALID_HANDLE;
    }
    if (a->n_done < a->n_recorded || b->n_done < b->n_recorded) {
        return NP_CU_NOT_READY;
    }
    *ms = (float)(((double)b->time_ns - (double)a->time_ns) / 1e6);
    return NP_CU_SUCCESS;
}

np_cu_result cuEventElapsedTime_v2(float *ms, np_cu_event first, np_cu_event second)
{
    BEGIN(NEEDS_INIT, ms, first, second);
    return end(elapsed(ms, first, second));
}

np_cu_result cuEventElapsedTime(float *ms, np_cu_event first, np_cu_event second)
{
    BEGIN(NEEDS_INIT, ms, first, second);
    return end(elapsed(ms, first, second));
}
