#define _GNU_SOURCE /* PR_SET_TIMERSLACK is Linux */
#include "device/lane.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"

typedef enum entry_kind { ENTRY_TASK, ENTRY_COPY, ENTRY_WAIT } entry_kind;

typedef struct entry {
    entry_kind kind;
    union {
        struct {
            void (*run)(void *arg);
            np_times *times;
        } task;
        struct {
            char *to;
            const char *from;
            uint64_t bytes;
        } copy;
        struct {
            np_counter *done; /* of the other lane */
            uint64_t mark;
        } wait;
    } what;
    _Alignas(max_align_t) unsigned char arg[]; /* of a task */
} entry;

/* ---- the thread ---- */

static void run_task(entry *task)
{
    np_times *times = task->what.task.times;
    uint64_t start_ns = times ? np_clock_ns() : 0;
    if (task->what.task.run) {
        task->what.task.run(task->arg);
    }
    if (times) {
        *times = (np_times){start_ns, np_clock_ns() - start_ns};
    }
}

static void sleep_until(uint64_t ns)
{
    struct timespec when = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {}
}

static void run_copy(const np_lane *lane, const entry *copy)
{
    uint64_t start_ns = lane->imitated > 0 ? np_clock_ns() : 0;
    if (copy->what.copy.bytes > 0) {
        memcpy(copy->what.copy.to, copy->what.copy.from, copy->what.copy.bytes);
    }
    if (lane->imitated > 0) {
        sleep_until(start_ns + (uint64_t)((double)copy->what.copy.bytes / lane->imitated) + 1);
    }
}

static void *work(void *user)
{
    np_lane *lane = user;
    uint64_t n_taken = 0;
    uint64_t n_done = 0;
    if (lane->imitated > 0) {
        (void)prctl(PR_SET_TIMERSLACK, 1000UL); /* ns: sleeps are short here */
    }
    for (;;) {
        entry *next;
        np_counter_wait(&lane->given, n_taken + 1);
        n_taken++;
        next = np_queue_take(&lane->queue);
        if (!next) {
            return NULL;
        }
        switch (next->kind) {
        case ENTRY_TASK:
            run_task(next);
            np_counter_raise(&lane->done, ++n_done);
            break;
        case ENTRY_COPY:
            run_copy(lane, next);
            np_counter_raise(&lane->done, ++n_done);
            break;
        case ENTRY_WAIT:
            np_counter_wait(next->what.wait.done, next->what.wait.mark);
            break;
        }
    }
}

/* Signals of the program are for its own threads, but for those that a thread brings upon itself. */
static bool start_thread(np_lane *lane)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked;
    sigset_t before;
    bool started;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own_faults / sizeof *own_faults; i++) {
        (void)sigdelset(&blocked, own_faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    started = pthread_create(&lane->thread, NULL, work, lane) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- opening and closing ---- */

static neap_status start(np_lane *lane)
{
    if (!np_counter_init(&lane->given)) {
        return NEAP_DEVICE_FAILED;
    }
    if (!np_counter_init(&lane->done)) {
        np_counter_destroy(&lane->given);
        return NEAP_DEVICE_FAILED;
    }
    if (!start_thread(lane)) {
        np_counter_destroy(&lane->done);
        np_counter_destroy(&lane->given);
        return NEAP_DEVICE_FAILED;
    }
    return NEAP_OK;
}

neap_status np_lane_open(const neap_memory *memory, double imitated, np_lane **lane)
{
    np_lane *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status = made ? np_queue_init(&made->queue, memory) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        made->imitated = imitated;
        status = start(made);
        if (status != NEAP_OK) {
            np_queue_free(&made->queue);
        }
    }
    if (status != NEAP_OK) {
        np_memory_free(memory, made, 1, sizeof *made);
        return status;
    }
    *lane = made;
    return NEAP_OK;
}

static void tell(np_lane *lane)
{
    np_counter_raise(&lane->given, ++lane->n_given);
}

void np_lane_end(np_lane *lane)
{
    np_queue_end(&lane->queue);
    tell(lane);
}

void np_lane_join(np_lane *lane)
{
    (void)pthread_join(lane->thread, NULL);
}

void np_lane_free(np_lane *lane)
{
    const neap_memory *memory = lane->queue.memory;
    np_counter_destroy(&lane->done);
    np_counter_destroy(&lane->given);
    np_queue_free(&lane->queue);
    np_memory_free(memory, lane, 1, sizeof *lane);
}

/* ---- giving work ---- */

static neap_status add(np_lane *lane, entry_kind kind, size_t arg_bytes, entry **result)
{
    void *room;
    neap_status status = np_queue_add(&lane->queue, sizeof(entry) + arg_bytes, &room);
    if (status == NEAP_OK) {
        *result = room;
        (*result)->kind = kind;
    }
    return status;
}

neap_status np_lane_launch(np_lane *lane, const np_task *task)
{
    entry *added;
    neap_status status = add(lane, ENTRY_TASK, task->arg_bytes, &added);
    if (status == NEAP_OK) {
        added->what.task.run = task->run;
        added->what.task.times = task->times;
        if (task->arg_bytes > 0) {
            memcpy(added->arg, task->arg, task->arg_bytes);
        }
        lane->mark++;
        tell(lane);
    }
    return status;
}

neap_status np_lane_copy(np_lane *lane, char *to, const char *from, uint64_t bytes)
{
    entry *added;
    neap_status status = add(lane, ENTRY_COPY, 0, &added);
    if (status == NEAP_OK) {
        added->what.copy.to = to;
        added->what.copy.from = from;
        added->what.copy.bytes = bytes;
        lane->mark++;
        tell(lane);
    }
    return status;
}

neap_status np_lane_wait(np_lane *lane, np_lane *other, uint64_t mark)
{
    entry *added;
    neap_status status;
    if (lane == other || np_counter_value(&other->done) >= mark) {
        return NEAP_OK; /* what the caller saw done, work given after it sees too */
    }
    status = add(lane, ENTRY_WAIT, 0, &added);
    if (status == NEAP_OK) {
        added->what.wait.done = &other->done;
        added->what.wait.mark = mark;
        tell(lane);
    }
    return status;
}

bool np_lane_is_valid(const np_lane *lane)
{
    return np_queue_is_valid(&lane->queue) && np_counter_value(&lane->given) == lane->n_given &&
           np_counter_value(&lane->done) == lane->mark && lane->mark <= lane->n_given;
}
