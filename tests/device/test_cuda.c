/* test_cuda.c: the cuda device over the stand-in driver, beyond what all devices promise (test_devices.c): what it
 * costs, which events it records, contexts, captures, host memory. What must not happen yet is held back by a gate. */
#include "device/cuda_state.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

#define LONG_NS 60000000000u /* a minute: something is stuck */

static np_cuda *cuda_of(np_device *wrapped)
{
    return (np_cuda *)standin_inner(wrapped);
}

static void *symbol_of(const char *name)
{
    void *library = dlopen(NEAP_STANDIN_DIR "/standin.so", RTLD_NOW);
    void *found = dlsym(library, name);
    ASSERT_TRUE(found != NULL);
    (void)dlclose(library);
    return found;
}

/* ---- gates ---- */

static bool wait_for(atomic_bool *flag)
{
    uint64_t until = np_clock_ns() + LONG_NS;
    while (!atomic_load(flag)) {
        if (np_clock_ns() > until) {
            return false;
        }
        (void)sched_yield();
    }
    return true;
}

static void pass_gate(void *arg)
{
    (void)wait_for(*(atomic_bool **)arg);
}

static void raise_flag(void *arg)
{
    atomic_store(*(atomic_bool **)arg, true);
}

static uint64_t give(np_device *device, np_stream stream, void (*run)(void *arg), atomic_bool *flag)
{
    np_task task = {.run = run, .arg = &flag, .arg_bytes = sizeof flag};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

static bool is_done_soon(np_device *device, np_stream stream, uint64_t mark)
{
    uint64_t until = np_clock_ns() + LONG_NS;
    while (!device->api->is_done(device, stream, mark) && np_clock_ns() < until) {
        (void)sched_yield();
    }
    return device->api->is_done(device, stream, mark);
}

static uint64_t n_calls(void)
{
    standin_counts counts;
    standin_get()->count(&counts);
    return counts.n_calls;
}

static void check_nothing_left(void)
{
    standin_counts counts;
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_contexts, 0);
    ASSERT_EQ(counts.n_streams, 0);
    ASSERT_EQ(counts.n_events, 0);
    ASSERT_EQ(counts.n_memories, 0);
    ASSERT_EQ(counts.n_mappings, 0);
    ASSERT_EQ(counts.n_reservations, 0);
    ASSERT_EQ(counts.n_allocations, 0);
    ASSERT_EQ(counts.n_registered, 0);
    ASSERT_EQ(counts.device_bytes, 0);
}

/* ---- what work costs ---- */

static void nothing(void *arg)
{
    (void)arg;
}

/* A launch that nobody waits for needs the driver for nothing but the context. */
static void test_launches_are_cheap(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    np_device *inner = standin_inner(device);
    np_task task = {.run = nothing};
    np_cu_context popped;
    uint64_t mark = 0;
    uint64_t before;
    (void)state;
    ASSERT_EQ(cuda_of(device)->driver.context_push(cuda_of(device)->context), NP_CU_SUCCESS);
    before = n_calls();
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(inner->api->launch(inner, 0, &task, &mark));
    }
    ASSERT_EQ(n_calls() - before, 100);
    task.run = NULL;
    before = n_calls();
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(inner->api->launch(inner, 0, &task, &mark));
    }
    ASSERT_EQ(n_calls(), before);
    /* To wait for any of them takes one event, then none. */
    ASSERT_OK(inner->api->wait(inner, NP_STREAM_OUT, 0, mark - 50));
    before = n_calls();
    for (uint64_t i = 1; i <= mark; i++) {
        ASSERT_OK(inner->api->wait(inner, NP_STREAM_OUT, 0, i));
    }
    ASSERT_EQ(n_calls(), before);
    device_sync(device, 0, mark);
    before = n_calls();
    for (uint64_t i = 1; i <= mark; i++) {
        ASSERT_TRUE(inner->api->is_done(inner, 0, i));
        ASSERT_OK(inner->api->wait(inner, NP_STREAM_IN, 0, i));
    }
    ASSERT_EQ(n_calls(), before);
    ASSERT_EQ(cuda_of(device)->driver.context_pop(&popped), NP_CU_SUCCESS);
    device_close(device);
    check_nothing_left();
}

/* Who waits for a copy does not wait for the copies after it. */
static void test_copies_are_waited_for_one_by_one(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB,streams=2", NULL);
    char *at = device_map(device, 0, 2);
    atomic_bool gate = false;
    atomic_bool flag = false;
    char *host;
    uint64_t first, second, flagged;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, 200, &host));
    device_sync(device, 0, device_fill(device, 0, at, 200, 5));
    first = device_copy(device, NP_STREAM_OUT, host, at, 100);
    device_wait(device, NP_STREAM_OUT, 0, give(device, 0, pass_gate, &gate));
    second = device_copy(device, NP_STREAM_OUT, host + 100, at + 100, 100);
    device_wait(device, 1, NP_STREAM_OUT, first);
    flagged = give(device, 1, raise_flag, &flag);
    ASSERT_TRUE(wait_for(&flag));
    device_sync(device, NP_STREAM_OUT, first);
    device_sync(device, 1, flagged);
    ASSERT_FALSE(device->api->is_done(device, NP_STREAM_OUT, second));
    ASSERT_EQ(host[99], 5);
    /* Nothing to copy is work too, and is told apart from what follows it. */
    atomic_store(&gate, true);
    device_sync(device, NP_STREAM_OUT, second);
    atomic_store(&gate, false);
    first = device_copy(device, NP_STREAM_IN, NULL, NULL, 0);
    device_wait(device, NP_STREAM_IN, 0, give(device, 0, pass_gate, &gate));
    second = device_copy(device, NP_STREAM_IN, NULL, NULL, 0);
    ASSERT_TRUE(is_done_soon(device, NP_STREAM_IN, first));
    ASSERT_FALSE(device->api->is_done(device, NP_STREAM_IN, second));
    atomic_store(&gate, true);
    device_sync_all(device);
    device->api->host_free(device, host, 200);
    device_unmap(device, at, 0, 2);
    device_close(device);
    check_nothing_left();
}

/* Nor does who asks for work with times wait for work after it. */
static void test_timed_work_is_done_by_itself(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    atomic_bool gate = false;
    np_times times = {0, UINT64_MAX};
    uint64_t timed = device_pause(device, 0, 0, &times);
    uint64_t held = give(device, 0, pass_gate, &gate);
    (void)state;
    ASSERT_TRUE(is_done_soon(device, 0, timed));
    ASSERT_LT(times.duration_ns, LONG_NS);
    ASSERT_FALSE(device->api->is_done(device, 0, held));
    atomic_store(&gate, true);
    device_sync(device, 0, held);
    device_close(device);
}

/* The ring grows while nothing is done, then events are used again. */
static void test_events_are_used_again(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    standin_counts counts;
    uint64_t n_events;
    (void)state;
    for (int round = 0; round < 3; round++) {
        atomic_bool gate = false;
        device_wait(device, NP_STREAM_OUT, 0, give(device, 0, pass_gate, &gate));
        for (int i = 0; i < 300; i++) {
            device_copy(device, NP_STREAM_OUT, NULL, NULL, 0);
            ASSERT_TRUE(i % 50 > 0 || np_cuda_is_valid(standin_inner(device)));
        }
        standin_get()->count(&counts);
        ASSERT_TRUE(round == 0 || counts.n_events <= n_events + 1);
        n_events = counts.n_events;
        atomic_store(&gate, true);
        device_sync_all(device);
    }
    for (int i = 0; i < 3000; i++) { /* nobody asks, and yet it stays small */
        device_copy(device, NP_STREAM_IN, NULL, NULL, 0);
        if (i % 20 == 0) {
            atomic_bool flag = false;
            device_wait(device, 0, NP_STREAM_IN, (uint64_t)i);
            device_sync(device, 0, give(device, 0, raise_flag, &flag));
        }
    }
    ASSERT_LE(cuda_of(device)->lanes[NP_STREAM_IN].capacity, 128);
    ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
    device_close(device);
    check_nothing_left();
}

/* ---- times ---- */

static void nap(void *arg)
{
    const struct timespec time = {0, *(long *)arg};
    (void)nanosleep(&time, NULL);
}

static uint64_t give_nap(np_device *device, np_stream stream, long ns, np_times *times)
{
    np_task task = {.run = nap, .arg = &ns, .arg_bytes = sizeof ns, .times = times};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

static void test_times(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB,streams=2", NULL);
    const struct timespec second = {1, 100000000}; /* so that the clock gets a new base */
    np_times times[6];
    (void)state;
    for (int round = 0; round < 2; round++) {
        uint64_t before_ns = device->api->now_ns(device);
        np_cu_event base = cuda_of(device)->base_event;
        uint64_t base_ns = cuda_of(device)->base_ns;
        for (int i = 0; i < 6; i++) {
            uint64_t mark = give_nap(device, (np_stream)i % 2, 2000000, &times[i]);
            device_wait(device, (np_stream)(i + 1) % 2, (np_stream)i % 2, mark);
        }
        device_sync_all(device);
        for (int i = 0; i < 6; i++) {
            ASSERT_GE(times[i].start_ns, before_ns);
            ASSERT_GE(times[i].duration_ns, 2000000);
            ASSERT_LE(times[i].start_ns + times[i].duration_ns, device->api->now_ns(device));
            if (i >= 2) { /* one after the other, on either stream */
                ASSERT_GE(times[i].start_ns, times[i - 2].start_ns + times[i - 2].duration_ns);
            }
        }
        if (round == 1) {
            ASSERT_TRUE(cuda_of(device)->base_event != base);
        } else if (device->api->now_ns(device) - base_ns < 1000000000) { /* on a slow machine more may have passed */
            ASSERT_TRUE(cuda_of(device)->base_event == base);
        }
        ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
        (void)nanosleep(&second, NULL);
    }
    device_close(device);
    check_nothing_left();
}

/* A clock of the device that is ahead of the host's is put back: nothing ends after now. */
static void test_a_fast_clock(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    np_times times;
    (void)state;
    cuda_of(device)->base_ns += 1000000000;
    device_sync(device, 0, give_nap(device, 0, 1000, &times));
    ASSERT_LE(times.start_ns + times.duration_ns, device->api->now_ns(device));
    device_sync(device, 0, give_nap(device, 0, 1000, &times));
    ASSERT_LE(times.start_ns + times.duration_ns, device->api->now_ns(device));
    device_close(device);
}

static void test_free_waits_for_times(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    np_times times = {0};
    (void)state;
    give_nap(device, 0, 20000000, &times);
    device_close(device);
    ASSERT_GE(times.duration_ns, 20000000);
    check_nothing_left();
}

/* ---- contexts and threads ---- */

typedef struct context_arg {
    np_cuda *cuda;
    np_cu_context *seen;
    np_cu_capture_mode *mode;
} context_arg;

static void look_at_context(void *arg)
{
    context_arg *a = arg;
    np_cu_capture_mode old = NP_CU_CAPTURE_GLOBAL;
    (void)a->cuda->driver.context_get(a->seen);
    (void)a->cuda->driver.exchange_capture_mode(&old);
    *a->mode = old;
}

/* Work finds the device's context, and the thread's own afterwards; and its own capture mode. */
static void test_contexts_are_left_as_they_were(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    np_cuda *cuda = cuda_of(device);
    np_cu_context other = NULL;
    np_cu_context now = NULL;
    np_cu_context seen = NULL;
    np_cu_capture_mode mode = NP_CU_CAPTURE_RELAXED;
    context_arg arg = {cuda, &seen, &mode};
    np_times times;
    np_task task = {.run = look_at_context, .arg = &arg, .arg_bytes = sizeof arg};
    uint64_t mark;
    (void)state;
    ASSERT_EQ(cuda->driver.primary_retain(&other, 1), NP_CU_SUCCESS);
    for (int i = 0; i < 4; i++) {
        if (i == 2) {
            ASSERT_EQ(cuda->driver.context_push(other), NP_CU_SUCCESS);
        }
        seen = NULL;
        mode = NP_CU_CAPTURE_RELAXED;
        task.times = i % 2 ? &times : NULL;
        ASSERT_OK(standin_inner(device)->api->launch(standin_inner(device), 0, &task, &mark));
        ASSERT_TRUE(seen == cuda->context);
        ASSERT_EQ(mode, NP_CU_CAPTURE_GLOBAL);
        device_unmap(device, device_map(device, 0, 2), 0, 2);
        device_sync_all(device);
        ASSERT_EQ(cuda->driver.context_get(&now), NP_CU_SUCCESS);
        ASSERT_TRUE(now == (i < 2 ? NULL : other));
    }
    ASSERT_EQ(cuda->driver.context_pop(&now), NP_CU_SUCCESS);
    ASSERT_EQ(cuda->driver.primary_release(1), NP_CU_SUCCESS);
    device_close(device);
    check_nothing_left();
}

typedef struct turns {
    np_device *device;
    pthread_mutex_t lock; /* as the manager has one */
    char *at;
    char *host;
    atomic_uint n_wrong;
} turns;

static void *take_turns(void *user)
{
    turns *t = user;
    const np_device_interface *api = t->device->api;
    for (int i = 0; i < 50; i++) {
        uint64_t mark = 0;
        neap_status status;
        (void)pthread_mutex_lock(&t->lock);
        status = api->wait(t->device, NP_STREAM_OUT, NP_STREAM_IN, api->mark(t->device, NP_STREAM_IN));
        status |= api->copy(t->device, NP_STREAM_OUT, t->host, t->at, 1000, &mark);
        status |= api->wait(t->device, NP_STREAM_IN, NP_STREAM_OUT, mark);
        status |= api->copy(t->device, NP_STREAM_IN, t->at, t->host, 1000, &mark);
        (void)api->is_done(t->device, NP_STREAM_IN, mark / 2);
        if (i % 10 == 0) {
            status |= api->sync(t->device, NP_STREAM_IN, mark);
        }
        (void)pthread_mutex_unlock(&t->lock);
        atomic_fetch_add(&t->n_wrong, status != NEAP_OK);
    }
    return NULL;
}

static void test_any_thread(void **state)
{
    turns t = {.device = device_open("cuda:0,memory=1MiB", NULL), .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[3];
    (void)state;
    t.at = device_map(t.device, 0, 1);
    ASSERT_OK(t.device->api->host_alloc(t.device, 1000, &t.host));
    device_sync(t.device, 0, device_fill(t.device, 0, t.at, 1000, 3));
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(pthread_create(&threads[i], NULL, take_turns, &t), 0);
    }
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
    }
    device_sync_all(t.device);
    ASSERT_EQ(atomic_load(&t.n_wrong), 0);
    ASSERT_EQ(t.at[999], 3);
    ASSERT_TRUE(np_cuda_is_valid(standin_inner(t.device)));
    t.device->api->host_free(t.device, t.host, 1000);
    device_unmap(t.device, t.at, 0, 1);
    device_close(t.device);
    check_nothing_left();
}

/* ---- captures ---- */

typedef np_cu_result (*capture_begin)(np_cu_stream stream, np_cu_capture_mode mode);
typedef np_cu_result (*capture_end)(np_cu_stream stream, void **graph);
typedef np_cu_result (*graph_destroy)(void *graph);

/* All kinds of calls, from any thread: whether they went well. */
static bool use_everything(np_device *device)
{
    const np_device_interface *api = device->api;
    uint64_t page = device->page_bytes;
    uint64_t in = 0, out = 0, timed = 0;
    np_times times = {0};
    np_task task = {.times = &times};
    neap_link link;
    char *at = NULL;
    char *host = NULL;
    bool is_good = api->commit(device, 0, 2) == NEAP_OK && api->reserve(device, 2, &at) == NEAP_OK &&
                   api->map(device, at, 0, 2) == NEAP_OK && api->host_alloc(device, 2 * page, &host) == NEAP_OK;
    if (!is_good) {
        return false;
    }
    memset(host, 1, page);
    is_good = api->map(device, at, 1, 1) == NEAP_OK && api->launch(device, 0, &task, &timed) == NEAP_OK &&
              api->wait(device, NP_STREAM_IN, 0, timed) == NEAP_OK &&
              api->copy(device, NP_STREAM_IN, at, host, page, &in) == NEAP_OK &&
              api->wait(device, NP_STREAM_OUT, NP_STREAM_IN, in) == NEAP_OK &&
              api->copy(device, NP_STREAM_OUT, host + page, at + page, page, &out) == NEAP_OK;
    (void)api->is_done(device, NP_STREAM_OUT, out);
    is_good = is_good && api->sync(device, NP_STREAM_OUT, out) == NEAP_OK && api->sync(device, 0, timed) == NEAP_OK &&
              api->sync(device, NP_STREAM_IN, in) == NEAP_OK && api->link(device, &link) == NEAP_OK &&
              host[2 * page - 1] == 1 && times.start_ns > 0;
    api->host_free(device, host, 2 * page);
    device_unmap(device, at, 0, 2);
    return is_good;
}

typedef struct user {
    np_device *device;
    bool is_good;
} user;

static void *use_everything_there(void *arg)
{
    user *u = arg;
    u->is_good = use_everything(u->device);
    return NULL;
}

/* Not even a capture that forbids unsafe calls of all threads is disturbed. */
static void test_captures_are_left_alone(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    np_cuda *cuda = cuda_of(device);
    capture_begin begin_capture = (capture_begin)(uintptr_t)symbol_of("cuStreamBeginCapture_v2");
    capture_end end_capture = (capture_end)(uintptr_t)symbol_of("cuStreamEndCapture");
    graph_destroy destroy = (graph_destroy)(uintptr_t)symbol_of("cuGraphDestroy");
    np_cu_stream stream = NULL;
    np_cu_context popped;
    user other = {device, false};
    pthread_t thread;
    void *graph = NULL;
    (void)state;
    ASSERT_EQ(cuda->driver.context_push(cuda->context), NP_CU_SUCCESS);
    ASSERT_EQ(cuda->driver.stream_create(&stream, NP_CU_STREAM_NON_BLOCKING), NP_CU_SUCCESS);
    ASSERT_EQ(begin_capture(stream, NP_CU_CAPTURE_GLOBAL), NP_CU_SUCCESS);
    ASSERT_TRUE(use_everything(device));
    ASSERT_EQ(pthread_create(&thread, NULL, use_everything_there, &other), 0);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_TRUE(other.is_good);
    ASSERT_EQ(end_capture(stream, &graph), NP_CU_SUCCESS);
    ASSERT_EQ(destroy(graph), NP_CU_SUCCESS);
    /* Without that care it would be: */
    ASSERT_EQ(begin_capture(stream, NP_CU_CAPTURE_GLOBAL), NP_CU_SUCCESS);
    ASSERT_NE(cuda->driver.event_query(cuda->base_event), NP_CU_SUCCESS);
    ASSERT_NE(end_capture(stream, &graph), NP_CU_SUCCESS);
    ASSERT_EQ(cuda->driver.stream_destroy(stream), NP_CU_SUCCESS);
    ASSERT_EQ(cuda->driver.context_pop(&popped), NP_CU_SUCCESS);
    device_close(device);
    check_nothing_left();
}

/* ---- memory ---- */

static void test_host_memory_is_registered(void **state)
{
    static const uint64_t sizes[] = {1, 4095, 4096, 4097, 100000, 1 << 20, 0};
    enum { N = sizeof sizes / sizeof *sizes };
    np_device *device = device_open("cuda:0,memory=2MiB", NULL);
    char *at = device_map(device, 0, 17);
    char *hosts[N];
    standin_counts before, after;
    (void)state;
    standin_get()->count(&before);
    for (int i = 0; i < N; i++) {
        ASSERT_OK(device->api->host_alloc(device, sizes[i], &hosts[i]));
        memset(hosts[i], i, sizes[i]);
        device_copy(device, NP_STREAM_IN, at, hosts[i], sizes[i]);
    }
    device_sync_all(device);
    standin_get()->count(&after);
    ASSERT_EQ(after.n_registered, N);
    ASSERT_EQ(after.n_unregistered_copies, before.n_unregistered_copies);
    for (int i = 0; i < N; i++) {
        device->api->host_free(device, hosts[i], sizes[i]);
    }
    ASSERT_STATUS(NEAP_NO_MEMORY, device->api->host_alloc(device, UINT64_MAX - 4096, &hosts[0]));
    device_unmap(device, at, 0, 17);
    device_close(device);
    check_nothing_left();
}

/* Large blocks begin at large pages of the host, and end where they end. */
static void test_large_host_memory(void **state)
{
    enum { LARGE = 2 << 20, N = 4 };
    static const uint64_t sizes[N] = {LARGE, LARGE + 1, 2 * LARGE - 4096, 3 * LARGE};
    np_device *device = device_open("cuda:0,memory=2MiB", NULL);
    char *hosts[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        ASSERT_OK(device->api->host_alloc(device, sizes[i], &hosts[i]));
        ASSERT_EQ((uintptr_t)hosts[i] % LARGE, 0);
        memset(hosts[i], i, sizes[i]);
    }
    for (int i = 0; i < N; i++) {
        ASSERT_EQ(hosts[i][0], i);
        ASSERT_EQ(hosts[i][sizes[i] - 1], i);
        device->api->host_free(device, hosts[i], sizes[i]);
    }
    ASSERT_STATUS(NEAP_NO_MEMORY, device->api->host_alloc(device, UINT64_MAX - LARGE, &hosts[0]));
    device_close(device);
    check_nothing_left();
}

/* Streams of the program copy too, either way, and from any memory of the host. */
static void test_copies_on_other_streams(void **state)
{
    np_device *device = device_open("cuda:0,memory=1MiB", NULL);
    char *at = device_map(device, 0, 2);
    char host[300];
    (void)state;
    memset(host, 4, sizeof host);
    device_copy(device, 0, at, host, 300);
    device_increment(device, 0, at, 300);
    device_copy(device, 0, at + 300, at, 300);
    device_copy(device, 0, host, at + 300, 300);
    device_sync_all(device);
    ASSERT_EQ(host[299], 5);
    device_unmap(device, at, 0, 2);
    device_close(device);
}

/* Holes in what is unmapped, pages in any order, parts replaced. */
static void test_mappings_at_random(void **state)
{
    enum { PAGES = 12, ROUNDS = TEST_SANITIZED ? 200 : 1000 };
    np_device *device = device_open("cuda:0,memory=4MiB", NULL);
    np_rng rng = np_rng_make(7);
    uint64_t page = device->page_bytes;
    char *arena = device_map(device, 0, PAGES);
    uint32_t expected[2][PAGES]; /* page + 1 */
    char *views[2];
    (void)state;
    memset(expected, 0, sizeof expected);
    for (uint32_t i = 0; i < PAGES; i++) {
        arena[i * page] = (char)i;
    }
    ASSERT_OK(device->api->reserve(device, PAGES, &views[0]));
    ASSERT_OK(device->api->reserve(device, PAGES, &views[1]));
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t v = (uint32_t)np_rng_below(&rng, 2);
        uint32_t first = (uint32_t)np_rng_below(&rng, PAGES);
        uint32_t n = (uint32_t)np_rng_below(&rng, PAGES - first + 1);
        uint32_t number = (uint32_t)np_rng_below(&rng, PAGES - n + 1);
        bool maps = np_rng_below(&rng, 2) == 0;
        if (maps) {
            ASSERT_OK(device->api->map(device, views[v] + first * page, number, n));
        } else {
            device->api->unmap(device, views[v] + first * page, n);
        }
        for (uint32_t i = 0; i < n; i++) {
            expected[v][first + i] = maps ? number + i + 1 : 0;
        }
        for (uint32_t i = 0; i < PAGES; i++) {
            ASSERT_EQ(device_is_readable(views[v] + i * page), expected[v][i] > 0);
            ASSERT_TRUE(expected[v][i] == 0 || views[v][i * page] == (char)(expected[v][i] - 1));
        }
        ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
    }
    device_close(device); /* with all that is still mapped */
    check_nothing_left();
}

/* Addresses that were given back are not given out again, for long; in the end all are the driver's. */
static void test_old_addresses(void **state)
{
    enum { N = 200 };
    np_device *device = device_open("cuda:0,memory=64MiB", NULL);
    char *seen[N];
    (void)state;
    for (int i = 0; i < N; i++) {
        ASSERT_OK(device->api->reserve(device, 2, &seen[i]));
        for (int k = 0; k < i; k++) {
            ASSERT_TRUE(seen[k] != seen[i]);
        }
        device->api->unreserve(device, seen[i], 2);
    }
    device_close(device);
    check_nothing_left();
}

static void test_a_full_device(void **state)
{
    np_device *device = device_open("cuda:0,memory=64MiB", NULL);
    standin_counts counts;
    neap_link link;
    (void)state;
    standin_get()->set_memory(10 * device->page_bytes);
    ASSERT_OK(device->api->commit(device, 0, 6));
    ASSERT_STATUS(NEAP_DEVICE_FULL, device->api->commit(device, 6, 5));
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_memories, 6); /* what was made on the way is gone */
    ASSERT_OK(device->api->commit(device, 6, 4));
    ASSERT_TRUE(device->api->problem(device) == NULL);
    device->api->release(device, 3, 2);
    ASSERT_OK(device->api->commit(device, 3, 2));
    ASSERT_STATUS(NEAP_DEVICE_FULL, device->api->link(device, &link));
    standin_get()->set_memory(3u << 20); /* not much: enough to measure */
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.out_gbs > 0 && link.in_gbs > 0 && link.both_gbs >= 0 && link.latency_us >= 0);
    standin_get()->set_memory(1u << 30);
    device_close(device);
    check_nothing_left();
}

/* ---- copies beside the program's work ---- */

static void test_busy(void **state)
{
    np_device *device = device_open("cuda:0,memory=64MiB", NULL);
    np_device *given = device_open("cuda:0,memory=4MiB,link=10GB/s", NULL);
    standin_counts before, after;
    neap_link link;
    double share;
    (void)state;
    ASSERT_TRUE(device->api->take_busy(device, &share));                 /* none were given */
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, device->api->time_busy(device, 3)); /* with what would they be compared? */
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, given->api->time_busy(given, 3));   /* it is known */
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.busy_share == 0);
    standin_get()->count(&before);
    ASSERT_OK(device->api->time_busy(device, 3));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, device->api->time_busy(device, 3)); /* one at a time */
    while (!device->api->take_busy(device, &share)) {}
    standin_get()->count(&after);
    ASSERT_EQ(after.n_streams, before.n_streams);
    ASSERT_EQ(after.n_registered, before.n_registered);
    ASSERT_EQ(after.n_allocations, before.n_allocations);
    ASSERT_EQ(after.n_events, before.n_events);
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(share >= 0 && share < 1);
    ASSERT_TRUE(link.busy_share == share);
    standin_get()->set_memory(1); /* full */
    ASSERT_STATUS(NEAP_DEVICE_FULL, device->api->time_busy(device, 3));
    ASSERT_TRUE(device->api->take_busy(device, &share));
    standin_get()->set_memory(1u << 30);
    ASSERT_OK(device->api->time_busy(device, 3)); /* and closed while they are under way */
    device_close(device);
    device_close(given);
    check_nothing_left();
}

/* ---- all of it at random ---- */

static void test_work_at_random(void **state)
{
    enum { ROUNDS = TEST_SANITIZED ? 500 : 3000 };
    np_device *device = device_open("cuda:0,memory=1MiB,streams=3", NULL);
    static np_times times[ROUNDS];
    np_rng rng = np_rng_make(3);
    static const np_stream streams[] = {0, 1, 2, NP_STREAM_OUT, NP_STREAM_IN};
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        np_stream stream = streams[np_rng_below(&rng, 5)];
        np_stream other = streams[np_rng_below(&rng, 5)];
        uint64_t mark = np_rng_below(&rng, device->api->mark(device, other) + 1);
        switch (np_rng_below(&rng, 6)) {
        case 0:
            if (device->api->is_done(device, other, mark)) {
                ASSERT_OK(device->api->sync(device, other, mark));
            }
            break;
        case 1:
            if (np_rng_below(&rng, 8) == 0) {
                device_sync(device, other, mark);
            }
            break;
        case 2:
            device_wait(device, stream, other, mark);
            break;
        case 3:
            device_copy(device, stream, NULL, NULL, 0);
            break;
        default:
            device_pause(device, stream, 0, np_rng_below(&rng, 2) ? &times[i] : NULL);
        }
        ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
    }
    device_sync_all(device);
    ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(cuda_of(device)->lanes[streams[i]].n_records, 0);
    }
    device_close(device);
    check_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches_are_cheap),
        cmocka_unit_test(test_copies_are_waited_for_one_by_one),
        cmocka_unit_test(test_timed_work_is_done_by_itself),
        cmocka_unit_test(test_events_are_used_again),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_a_fast_clock),
        cmocka_unit_test(test_free_waits_for_times),
        cmocka_unit_test(test_contexts_are_left_as_they_were),
        cmocka_unit_test(test_any_thread),
        cmocka_unit_test(test_captures_are_left_alone),
        cmocka_unit_test(test_host_memory_is_registered),
        cmocka_unit_test(test_large_host_memory),
        cmocka_unit_test(test_copies_on_other_streams),
        cmocka_unit_test(test_mappings_at_random),
        cmocka_unit_test(test_old_addresses),
        cmocka_unit_test(test_a_full_device),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_work_at_random),
    };
    standin_use(65536);
    (void)setenv("STANDIN_DEVICES", "2", 1);
    return cmocka_run_group_tests_name("device/cuda", tests, NULL, NULL);
}
