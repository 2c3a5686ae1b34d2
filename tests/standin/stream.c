/* stream.c: streams as threads.
 *
 * A stream's thread does its items in order. Before an item it may dawdle, so that what is not ordered by the caller
 * comes in any order. The item being done stays in the list until it is: that is how an unmap finds work that uses its
 * bytes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin/standin_state.h"

static stream *all[1024];
static size_t n_all;

/* ---- the thread ---- */

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* One item in eight waits a little. Without the lock. */
static void dawdle(uint64_t number, uint64_t longest_us)
{
    if (number % 8 == 0 && longest_us > 0) {
        uint64_t us = number / 8 % (longest_us + 1);
        const struct timespec nap = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
        (void)nanosleep(&nap, NULL);
    }
}

static void fill(const item *work)
{
    if (work->pattern_bytes == 1) {
        memset(work->to, (int)work->pattern, work->bytes);
        return;
    }
    for (size_t i = 0; i < work->bytes; i += work->pattern_bytes) {
        memcpy(work->to + i, &work->pattern, work->pattern_bytes);
    }
}

/* Nearly all copies are between two places, and memmove is slow under the address sanitizer. */
static void copy(char *to, const char *from, size_t bytes)
{
    if (to + bytes <= from || from + bytes <= to) {
        memcpy(to, from, bytes);
    } else {
        memmove(to, from, bytes);
    }
}

static void do_item(item *work)
{
    switch (work->kind) {
    case ITEM_CALL:
        unlock();
        if (work->early) {
            work->early(work->data);
        }
        work->run(work->data);
        lock();
        break;
    case ITEM_COPY:
        unlock();
        copy(work->to, work->from, work->bytes);
        lock();
        break;
    case ITEM_FILL:
        unlock();
        fill(work);
        lock();
        break;
    case ITEM_FREE:
        allocation_end(work->to);
        break;
    case ITEM_RECORD:
        work->event->n_done = work->generation;
        work->event->time_ns = now_ns();
        break;
    case ITEM_WAIT_EVENT:
        while (work->event->n_done < work->generation) {
            (void)pthread_cond_wait(&standin.progress, &standin.lock);
        }
        break;
    case ITEM_WAIT_STREAM:
        while (work->other->n_done < work->n) {
            (void)pthread_cond_wait(&standin.progress, &standin.lock);
        }
        break;
    case ITEM_END:
        break;
    }
}

/* The kernel behind this one, where it is allowed to, begins before it (kernel.c). */
static void run_early(const item *work)
{
    item *next = work->next;
    if (work->is_kernel && next && next->is_programmatic && next->early) {
        void (*early)(void *data) = next->early;
        next->early = NULL;
        unlock();
        early(next->data);
        lock();
    }
}

static void *stream_run(void *user)
{
    stream *s = user;
    bool is_over = false;
    is_stream_thread = true;
    lock();
    while (!is_over) {
        item *work;
        uint64_t number = random_next(&s->random);
        uint64_t longest_us = standin.longest_delay_us;
        while (!s->first) {
            (void)pthread_cond_wait(&s->given, &standin.lock);
        }
        unlock();
        dawdle(number, longest_us);
        lock();
        work = s->first;
        run_early(work);
        do_item(work);
        is_over = work->kind == ITEM_END;
        s->first = work->next;
        s->last = s->first ? s->last : NULL;
        s->n_done++;
        free(work);
        (void)pthread_cond_broadcast(&standin.progress);
    }
    unlock();
    return NULL;
}

/* ---- giving work ---- */

item *item_make(item_kind kind, size_t data_bytes)
{
    item *made = calloc(1, sizeof *made + data_bytes);
    if (!made) {
        misuse("the machine has no memory left");
    }
    made->kind = kind;
    made->data_bytes = data_bytes;
    return made;
}

static void append(stream *s, item *work)
{
    if (s->last) {
        s->last->next = work;
    } else {
        s->first = work;
    }
    s->last = work;
    s->n_given++;
    (void)pthread_cond_signal(&s->given);
}

static void append_wait(stream *s, stream *other)
{
    if (other->n_done < other->n_given) {
        item *wait = item_make(ITEM_WAIT_STREAM, 0);
        wait->other = other;
        wait->n = other->n_given;
        append(s, wait);
    }
}

/* The default stream and the blocking ones are in order with each other. */
static void append_implied_waits(stream *s)
{
    for (size_t i = 0; i < n_all; i++) {
        stream *other = all[i];
        bool is_ordered = s->is_default ? other->is_blocking : s->is_blocking && other->is_default;
        if (other != s && other->device == s->device && is_ordered) {
            append_wait(s, other);
        }
    }
}

static bool default_is_captured(const stream *s)
{
    for (size_t i = 0; i < n_all; i++) {
        if (s->is_default && all[i]->is_blocking && all[i]->capture && all[i]->device == s->device) {
            capture_invalidate(all[i]->capture);
            return true;
        }
    }
    return false;
}

np_cu_result stream_give(stream *s, item *work)
{
    if (s->capture) {
        if (s->capture->is_invalid) {
            free(work);
            return (np_cu_result)CU_CAPTURE_INVALIDATED;
        }
        capture_add(s, work);
        return NP_CU_SUCCESS;
    }
    if (default_is_captured(s)) {
        free(work);
        return (np_cu_result)CU_CAPTURE_IMPLICIT;
    }
    append_implied_waits(s);
    append(s, work);
    return NP_CU_SUCCESS;
}

void stream_drain(stream *s)
{
    uint64_t n = s->n_given;
    while (s->n_done < n) {
        (void)pthread_cond_wait(&standin.progress, &standin.lock);
    }
}

void streams_drain(void)
{
    for (size_t i = 0; i < n_all; i++) {
        stream_drain(all[i]);
    }
}

static bool touches(const char *at, size_t bytes, const char *used, size_t n)
{
    return n > 0 && used < at + bytes && at < used + n;
}

void streams_check_unused(const void *at, size_t bytes, const char *symbol)
{
    for (size_t i = 0; i < n_all; i++) {
        for (const item *work = all[i]->first; work; work = work->next) {
            if (((work->kind == ITEM_COPY || work->kind == ITEM_FILL) && touches(at, bytes, work->to, work->bytes)) ||
                (work->kind == ITEM_COPY && touches(at, bytes, work->from, work->bytes))) {
                misuse("%s: a copy that is not done uses bytes of %p, %zu bytes", symbol, at, bytes);
            }
        }
    }
}

/* ---- streams ---- */

stream *stream_make(int device, unsigned flags, bool is_default)
{
    stream *s = object_make(sizeof *s, STREAM);
    s->device = device;
    s->is_default = is_default;
    s->is_blocking = !is_default && (flags & NP_CU_STREAM_NON_BLOCKING) == 0;
    s->random = standin.seed * 1000003u + n_all;
    (void)pthread_cond_init(&s->given, NULL);
    if (n_all == sizeof all / sizeof *all || pthread_create(&s->thread, NULL, stream_run, s) != 0) {
        misuse("there are too many streams");
    }
    all[n_all++] = s;
    return s;
}

void stream_end(stream *s)
{
    pthread_t thread = s->thread;
    append(s, item_make(ITEM_END, 0));
    s->base.is_alive = false;
    unlock();
    (void)pthread_join(thread, NULL);
    lock();
    for (size_t i = 0; i < n_all; i++) {
        if (all[i] == s) {
            all[i] = all[--n_all];
        }
    }
    (void)pthread_cond_destroy(&s->given);
}

stream *stream_of(void *handle, const char *symbol)
{
    if ((uintptr_t)handle <= 2) { /* NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
        return current_context()->default_stream;
    }
    return object_check(handle, STREAM, symbol);
}

static np_cu_result create(np_cu_stream *made, unsigned int flags)
{
    if (flags > NP_CU_STREAM_NON_BLOCKING) {
        return NP_CU_INVALID_VALUE;
    }
    *made = (np_cu_stream)stream_make(current_context()->device, flags, false);
    standin.counts.n_streams++;
    return NP_CU_SUCCESS;
}

np_cu_result cuStreamCreate(np_cu_stream *made, unsigned int flags)
{
    BEGIN(NEEDS_CONTEXT, made, flags);
    return end(create(made, flags));
}

np_cu_result cuStreamCreateWithPriority(np_cu_stream *made, unsigned int flags, int priority)
{
    BEGIN(NEEDS_CONTEXT, made, flags, priority);
    return end(create(made, flags));
}

np_cu_result cuStreamGetCtx(np_cu_stream handle, np_cu_context *in)
{
    BEGIN(NEEDS_CONTEXT, handle, in);
    *in = (np_cu_context)standin.contexts[stream_of(handle, "cuStreamGetCtx")->device];
    return end(NP_CU_SUCCESS);
}

np_cu_result cuStreamGetFlags(np_cu_stream handle, unsigned int *flags)
{
    const stream *s;
    BEGIN(NEEDS_CONTEXT, handle, flags);
    s = stream_of(handle, "cuStreamGetFlags");
    *flags = s->is_default || s->is_blocking ? 0 : NP_CU_STREAM_NON_BLOCKING;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuStreamGetPriority(np_cu_stream handle, int *priority)
{
    BEGIN(NEEDS_CONTEXT, handle, priority);
    (void)stream_of(handle, "cuStreamGetPriority");
    *priority = 0;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuStreamDestroy_v2(np_cu_stream handle)
{
    stream *s;
    BEGIN(NEEDS_INIT, handle);
    s = object_check(handle, STREAM, "cuStreamDestroy");
    if (s->capture) {
        return end((np_cu_result)CU_CAPTURE_UNSUPPORTED);
    }
    standin.counts.n_streams--;
    stream_end(s);
    return end(NP_CU_SUCCESS);
}

/* A capturing stream has nothing to wait for: to ask ends the capture. */
static bool is_captured(stream *s)
{
    if (s->capture) {
        capture_invalidate(s->capture);
    }
    return s->capture != NULL;
}

np_cu_result cuStreamSynchronize(np_cu_stream handle)
{
    stream *s;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, handle);
    s = stream_of(handle, "cuStreamSynchronize");
    if (is_captured(s)) {
        return end((np_cu_result)CU_CAPTURE_UNSUPPORTED);
    }
    stream_drain(s);
    return end(NP_CU_SUCCESS);
}

np_cu_result cuStreamQuery(np_cu_stream handle)
{
    stream *s;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, handle);
    s = stream_of(handle, "cuStreamQuery");
    if (is_captured(s)) {
        return end((np_cu_result)CU_CAPTURE_UNSUPPORTED);
    }
    return end(s->n_done == s->n_given ? NP_CU_SUCCESS : NP_CU_NOT_READY);
}
