/* test_cpu.c: streams of the cpu device are threads: they run at once, and wait where they are told to. Nothing here
 * depends on how fast anything is: what must not happen yet is held back by a gate. */
#include "device/kinds.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "device/device_tools.h"
#include "testing.h"

#define LONG_NS 60000000000u /* a minute: something is stuck */

/* Waits for a flag; gives up in the end, so that a mistake is a failure and not a halt. */
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

/* ---- work for streams ---- */

typedef struct hands {
    atomic_bool *own;
    atomic_bool *other;
    atomic_uint *n_met;
} hands;

static void shake(void *arg)
{
    hands *h = arg;
    atomic_store(h->own, true);
    if (wait_for(h->other)) {
        atomic_fetch_add(h->n_met, 1);
    }
}

static uint64_t give(np_device *device, np_stream stream, void (*run)(void *arg), const void *arg, size_t bytes)
{
    np_task task = {.run = run, .arg = arg, .arg_bytes = bytes};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

static void pass_gate(void *arg)
{
    (void)wait_for(*(atomic_bool **)arg);
}

/* Holds a stream back until the gate is open. */
static uint64_t give_gate(np_device *device, np_stream stream, atomic_bool *gate)
{
    return give(device, stream, pass_gate, &gate, sizeof gate);
}

static void raise_flag(void *arg)
{
    atomic_store(*(atomic_bool **)arg, true);
}

static uint64_t give_flag(np_device *device, np_stream stream, atomic_bool *flag)
{
    return give(device, stream, raise_flag, &flag, sizeof flag);
}

/* ---- at once ---- */

static void test_streams_run_at_once(void **state)
{
    np_device *device = device_open("cpu:streams=3,memory=1MiB", NULL);
    (void)state;
    for (int round = 0; round < 50; round++) {
        atomic_bool flags[3] = {false, false, false};
        atomic_uint n_met = 0;
        for (np_stream i = 0; i < 3; i++) { /* each needs the next one to be there */
            hands h = {&flags[i], &flags[(i + 1) % 3], &n_met};
            give(device, i, shake, &h, sizeof h);
        }
        device_sync_all(device);
        ASSERT_EQ(atomic_load(&n_met), 3);
    }
    device_close(device);
}

static void test_copies_overlap_work(void **state)
{
    np_device *device = device_open("cpu:memory=1MiB", NULL);
    uint64_t page = device->page_bytes;
    char *at = device_map(device, 0, 2);
    atomic_bool gate = false;
    char *host;
    uint64_t mark;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, 2 * page, &host));
    memset(host, 1, 2 * page);
    device_sync(device, 0, device_fill(device, 0, at, 2 * page, 2));
    mark = give_gate(device, 0, &gate);
    device_sync(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at, page));
    device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at + page, host + page, page));
    ASSERT_EQ(host[page - 1], 2);
    ASSERT_EQ(at[page], 1);
    ASSERT_FALSE(device->api->is_done(device, 0, mark));
    atomic_store(&gate, true);
    device_sync_all(device);
    device->api->host_free(device, host, 2 * page);
    device_unmap(device, at, 0, 2);
    device_close(device);
}

static void test_copies_in_do_not_wait_for_copies_out(void **state)
{
    np_device *device = device_open("cpu:memory=1MiB", NULL);
    uint64_t page = device->page_bytes;
    char *at = device_map(device, 0, 2);
    atomic_bool gate = false;
    char *host;
    uint64_t mark;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, 2 * page, &host));
    memset(host, 1, 2 * page);
    memset(at, 0, page); /* pages that nobody wrote hold anything */
    device_wait(device, NP_STREAM_OUT, 0, give_gate(device, 0, &gate));
    mark = device_copy(device, NP_STREAM_OUT, host, at, page);
    device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at + page, host + page, page));
    ASSERT_EQ(at[page], 1);
    ASSERT_FALSE(device->api->is_done(device, NP_STREAM_OUT, mark));
    ASSERT_EQ(host[0], 1);
    atomic_store(&gate, true);
    device_sync(device, NP_STREAM_OUT, mark);
    ASSERT_EQ(host[0], 0);
    device->api->host_free(device, host, 2 * page);
    device_unmap(device, at, 0, 2);
    device_close(device);
}

/* ---- one after the other ---- */

static void test_waits_hold_back(void **state)
{
    np_device *device = device_open("cpu:streams=3,memory=1MiB", NULL);
    atomic_bool gate = false;
    atomic_bool flag = false;
    atomic_bool other_flag = false;
    uint64_t held;
    (void)state;
    device_wait(device, 1, 0, give_gate(device, 0, &gate));
    held = give_flag(device, 1, &flag);
    device_wait(device, 2, 1, held); /* and on */
    held = give_flag(device, 2, &other_flag);
    for (int i = 0; i < 100; i++) { /* the rest of the device goes on */
        device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, NULL, NULL, 0));
    }
    ASSERT_FALSE(atomic_load(&flag));
    ASSERT_FALSE(atomic_load(&other_flag));
    ASSERT_FALSE(device->api->is_done(device, 2, held));
    atomic_store(&gate, true);
    device_sync(device, 2, held);
    ASSERT_TRUE(atomic_load(&flag));
    ASSERT_TRUE(atomic_load(&other_flag));
    device_close(device);
}

typedef struct step {
    uint32_t *n;
    uint32_t expected;
    uint32_t *n_wrong;
    unsigned char rest[300]; /* so that a chunk of the queue is soon full */
} step;

static void take_step(void *arg)
{
    const step *s = arg;
    *s->n_wrong += *s->n != s->expected || s->rest[299] != (unsigned char)s->expected;
    ++*s->n;
}

/* Giving never waits: the queue grows, then is used again from the front. */
static void test_queues_grow(void **state)
{
    enum { ROUNDS = 4, N = TEST_SANITIZED ? 2000 : 20000 };
    test_memory memory;
    np_device *device;
    uint32_t n = 0;
    uint32_t n_wrong = 0;
    size_t grown = 0;
    (void)state;
    test_memory_init(&memory);
    device = device_open("cpu:memory=1MiB", &memory.hook);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        atomic_bool gate = false;
        uint64_t mark = give_gate(device, 0, &gate);
        for (uint32_t i = 0; i < N; i++) {
            step s = {.n = &n, .expected = round * N + i, .n_wrong = &n_wrong};
            s.rest[299] = (unsigned char)s.expected;
            give(device, 0, take_step, &s, sizeof s);
        }
        ASSERT_FALSE(device->api->is_done(device, 0, mark));
        atomic_store(&gate, true);
        device_sync(device, 0, device->api->mark(device, 0));
        ASSERT_EQ(n, (round + 1) * N);
        ASSERT_EQ(n_wrong, 0);
        ASSERT_LE(memory.live_bytes, round == 0 ? SIZE_MAX : grown + 65536);
        grown = memory.live_bytes;
    }
    device_close(device);
    test_memory_finish(&memory);
}

/* Threads that went to sleep wake up, whichever side comes late. */
static void test_sleepers_wake(void **state)
{
    np_device *device = device_open("cpu:streams=2,memory=1MiB", NULL);
    (void)state;
    for (int i = 0; i < 100; i++) {
        const struct timespec nap = {0, (i % 5) * 40000};
        atomic_bool gate = false;
        atomic_bool flag = false;
        uint64_t mark;
        (void)nanosleep(&nap, NULL); /* the streams' threads fall asleep, or nearly */
        device_wait(device, 1, 0, give_gate(device, 0, &gate));
        mark = give_flag(device, 1, &flag);
        (void)nanosleep(&nap, NULL);
        atomic_store(&gate, true);
        device_sync(device, 1, mark);
        ASSERT_TRUE(atomic_load(&flag));
    }
    device_close(device);
}

/* Marks of one stream that many others wait for at once. */
static void test_many_wait_for_one(void **state)
{
    np_device *device = device_open("cpu:streams=16,memory=1MiB", NULL);
    (void)state;
    for (int round = 0; round < 20; round++) {
        atomic_bool gate = false;
        atomic_bool flags[16] = {false};
        uint64_t first = give_gate(device, 0, &gate);
        uint64_t second = give_flag(device, 0, &flags[0]);
        for (np_stream i = 1; i < 16; i++) {
            device_wait(device, i, 0, i % 2 ? first : second);
            give_flag(device, i, &flags[i]);
        }
        for (int i = 1; i < 16; i++) {
            ASSERT_FALSE(atomic_load(&flags[i]));
        }
        atomic_store(&gate, true);
        device_sync_all(device);
        for (int i = 0; i < 16; i++) {
            ASSERT_TRUE(atomic_load(&flags[i]));
        }
    }
    device_close(device);
}

/* ---- an imitated link ---- */

static void test_slow_links_take_their_time(void **state)
{
    np_device *device = device_open("cpu:link=100MB/s,memory=4MiB", NULL);
    uint64_t bytes = 1000000;
    char *at = device_map(device, 0, 256);
    uint64_t start_ns;
    char *host;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, bytes, &host));
    memset(at, 1, bytes);
    start_ns = device->api->now_ns(device);
    device_copy(device, NP_STREAM_OUT, host, at, bytes);
    device_sync(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at, bytes));
    ASSERT_GE(device->api->now_ns(device) - start_ns, 20000000); /* 10 ms each */
    start_ns = device->api->now_ns(device);
    device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at, host, bytes));
    ASSERT_GE(device->api->now_ns(device) - start_ns, 10000000);
    device->api->host_free(device, host, bytes);
    device_unmap(device, at, 0, 256);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_run_at_once),
        cmocka_unit_test(test_copies_overlap_work),
        cmocka_unit_test(test_copies_in_do_not_wait_for_copies_out),
        cmocka_unit_test(test_waits_hold_back),
        cmocka_unit_test(test_queues_grow),
        cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_many_wait_for_one),
        cmocka_unit_test(test_slow_links_take_their_time),
    };
    return cmocka_run_group_tests_name("device/cpu", tests, NULL, NULL);
}
