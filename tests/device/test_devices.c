/* test_devices.c: one list of cases, run on every device: what device.h promises of all of them. */
#include "device/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

static const char *const devices[] = {
    "cpu:memory=64MiB",
    "cpu:memory=64MiB,page=64KiB,streams=3",
    "cpu:memory=64MiB,link=4GB/s",
    "sim:memory=64MiB",
    "sim:a100-pcie4,memory=64MiB,page=64KiB,streams=3",
    "sim:link=10GB/s,memory=64MiB,streams=2",
    "cuda:0,memory=64MiB",
    "cuda:memory=64MiB,streams=3,link=10GB/s",
    "cuda:0,memory=64MiB,page=256KiB,streams=2",
};

enum { N_DEVICES = sizeof devices / sizeof *devices };

/* ---- memory ---- */

static void test_work_writes_pages(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t bytes = 3 * device->page_bytes;
    char *at = device_map(device, 2, 3);
    device_sync(device, 0, device_fill(device, 0, at, bytes, 7));
    for (uint64_t i = 0; i < bytes; i++) {
        ASSERT_EQ(at[i], 7);
    }
    device_unmap(device, at, 2, 3);
    device_close(device);
}

static void test_two_addresses_show_one_page(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    char *arena = device_map(device, 0, 4);
    char *view;
    ASSERT_OK(device->api->reserve(device, 2, &view));
    ASSERT_OK(device->api->map(device, view, 1, 2));
    device_sync(device, 0, device_fill(device, 0, view, 2 * page, 3));
    ASSERT_EQ(arena[page], 3);
    ASSERT_EQ(arena[3 * page - 1], 3);
    device_sync(device, 0, device_increment(device, 0, arena + page, page));
    ASSERT_EQ(view[0], 4);
    ASSERT_EQ(view[page - 1], 4);
    ASSERT_EQ(view[page], 3);
    device->api->unmap(device, view, 2);
    device->api->unreserve(device, view, 2);
    device_unmap(device, arena, 0, 4);
    device_close(device);
}

static void test_an_address_moves_to_other_pages(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    char *arena = device_map(device, 0, 8);
    char *view;
    ASSERT_OK(device->api->reserve(device, 2, &view));
    for (int i = 0; i < 8; i++) {
        device_fill(device, 0, arena + (uint64_t)i * page, page, (char)i);
    }
    device_sync_all(device);
    ASSERT_OK(device->api->map(device, view, 0, 2));
    ASSERT_EQ(view[0], 0);
    ASSERT_EQ(view[page], 1);
    ASSERT_OK(device->api->map(device, view, 5, 1)); /* replaced in part */
    ASSERT_EQ(view[0], 5);
    ASSERT_EQ(view[page], 1);
    device->api->unmap(device, view, 2);
    ASSERT_OK(device->api->map(device, view, 6, 2));
    ASSERT_EQ(view[0], 6);
    ASSERT_EQ(view[page], 7);
    device->api->unmap(device, view, 2);
    device->api->unreserve(device, view, 2);
    device_unmap(device, arena, 0, 8);
    device_close(device);
}

static void test_what_is_not_mapped_cannot_be_touched(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    char *at;
    ASSERT_OK(device->api->commit(device, 0, 5));
    ASSERT_OK(device->api->reserve(device, 5, &at));
    ASSERT_FALSE(device_is_readable(at));
    ASSERT_OK(device->api->map(device, at, 0, 5));
    ASSERT_TRUE(device_is_readable(at + 5 * page - 1));
    device->api->unmap(device, at + page, 2);
    ASSERT_TRUE(device_is_readable(at + page - 1));
    ASSERT_FALSE(device_is_readable(at + page));
    ASSERT_FALSE(device_is_readable(at + 3 * page - 1));
    ASSERT_TRUE(device_is_readable(at + 3 * page));
    device->api->unmap(device, at, 5);
    device->api->unreserve(device, at, 5);
    device->api->release(device, 0, 5);
    device_close(device);
}

static void test_pages_come_and_go(void **state)
{
    np_device *device = device_open(*state, NULL);
    for (uint32_t round = 0; round < 20; round++) {
        uint32_t first = device->n_pages - 10 * (round % 3 + 1);
        char *at = device_map(device, first, 10);
        device_sync(device, 0, device_fill(device, 0, at, 10 * device->page_bytes, (char)round));
        ASSERT_EQ(at[10 * device->page_bytes - 1], round);
        device_unmap(device, at, first, 10);
    }
    device_close(device);
}

/* ---- work ---- */

static void test_marks_count_work_alone(void **state)
{
    np_device *device = device_open(*state, NULL);
    const np_device_interface *api = device->api;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        if (i < device->n_streams || i >= NP_MAX_STREAMS) {
            ASSERT_EQ(api->mark(device, i), 0);
            ASSERT_TRUE(api->is_done(device, i, 0));
            ASSERT_OK(api->sync(device, i, 0));
        }
    }
    ASSERT_EQ(device_pause(device, 0, 5, NULL), 1);
    ASSERT_EQ(device_pause(device, 0, 5, NULL), 2);
    device_wait(device, NP_STREAM_OUT, 0, 2);
    device_wait(device, NP_STREAM_OUT, 0, 0);
    device_wait(device, 0, 0, 2); /* of itself: nothing to wait for */
    ASSERT_EQ(api->mark(device, NP_STREAM_OUT), 0);
    ASSERT_EQ(device_pause(device, 0, 5, NULL), 3);
    ASSERT_EQ(api->mark(device, 0), 3);
    device_sync(device, 0, 3);
    ASSERT_TRUE(api->is_done(device, 0, 1));
    device_close(device);
}

typedef struct log_arg {
    uint32_t *log;
    uint32_t *n;
    uint32_t value;
} log_arg;

static void append(void *arg)
{
    log_arg *a = arg;
    a->log[(*a->n)++] = a->value;
    a->value = UINT32_MAX; /* the copy is the work's own */
}

static void test_a_stream_works_in_order(void **state)
{
    enum { N = 5000 };
    static uint32_t log[N];
    uint32_t n = 0;
    np_device *device = device_open(*state, NULL);
    for (uint32_t i = 0; i < N; i++) {
        log_arg arg = {log, &n, i};
        np_task task = {.run = append, .arg = &arg, .arg_bytes = sizeof arg};
        uint64_t mark;
        ASSERT_OK(device->api->launch(device, 0, &task, &mark));
        ASSERT_EQ(mark, i + 1);
        arg.value = N; /* of no consequence any more */
    }
    device_sync(device, 0, N);
    ASSERT_EQ(n, N);
    for (uint32_t i = 0; i < N; i++) {
        ASSERT_EQ(log[i], i);
    }
    device_close(device);
}

typedef struct big_arg {
    const unsigned char *expected;
    bool *was_right;
    max_align_t aligned;
    unsigned char rest[NEAP_ARG_MAX - 16 - sizeof(max_align_t)];
} big_arg;

static void look(void *arg)
{
    const big_arg *a = arg;
    *a->was_right = (uintptr_t)arg % _Alignof(max_align_t) == 0 && memcmp(a->rest, a->expected, sizeof a->rest) == 0;
}

static void test_arguments_of_any_size(void **state)
{
    np_device *device = device_open(*state, NULL);
    unsigned char expected[NEAP_ARG_MAX];
    static bool was_right[200];
    np_rng rng = np_rng_make(1);
    for (int i = 0; i < NEAP_ARG_MAX; i++) {
        expected[i] = (unsigned char)np_rng_next(&rng);
    }
    ASSERT_LE(sizeof(big_arg), NEAP_ARG_MAX);
    for (int i = 0; i < 200; i++) {
        big_arg arg = {.expected = expected, .was_right = &was_right[i]};
        np_task task = {.run = look, .arg = &arg, .arg_bytes = sizeof arg};
        uint64_t mark;
        memcpy(arg.rest, expected, sizeof arg.rest);
        was_right[i] = false;
        ASSERT_OK(device->api->launch(device, 0, &task, &mark));
        memset(&arg, 0, sizeof arg);
    }
    device_sync_all(device);
    for (int i = 0; i < 200; i++) {
        ASSERT_TRUE(was_right[i]);
    }
    device_close(device);
}

static void test_times_are_there_once_done(void **state)
{
    enum { N = 300 };
    np_device *device = device_open(*state, NULL);
    np_times times[N];
    uint64_t now_ns = device->api->now_ns(device);
    memset(times, 0xff, sizeof times);
    for (uint64_t i = 0; i < N; i++) {
        device_pause(device, 0, 10 * i, &times[i]);
    }
    device_sync(device, 0, N);
    for (uint64_t i = 0; i < N; i++) {
        ASSERT_GE(times[i].start_ns, now_ns);
        now_ns = times[i].start_ns + times[i].duration_ns;
        ASSERT_GE(now_ns, times[i].start_ns);
        if (device->wants_touches) { /* a virtual clock */
            ASSERT_EQ(times[i].duration_ns, 10 * i);
        }
    }
    ASSERT_GE(device->api->now_ns(device), now_ns);
    device_close(device);
}

/* ---- copies and waits ---- */

static void test_copies_of_any_size(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    const uint64_t sizes[] = {0, 1, 511, page - 1, page, page + 1, 3 * page};
    char *at = device_map(device, 0, 8);
    char *host;
    ASSERT_OK(device->api->host_alloc(device, 8 * page, &host));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t mark = device_fill(device, 0, at, 8 * page, (char)(i + 1));
        device_wait(device, NP_STREAM_OUT, 0, mark);
        mark = device_copy(device, NP_STREAM_OUT, host + i, at + i, sizes[i]);
        device_wait(device, 0, NP_STREAM_OUT, mark);
        mark = device_fill(device, 0, at, 8 * page, 0);
        device_wait(device, NP_STREAM_IN, 0, mark);
        device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at + 5, host + i, sizes[i]));
        for (uint64_t k = 0; k < 8 * page; k++) {
            ASSERT_EQ(at[k], k >= 5 && k < 5 + sizes[i] ? i + 1 : 0);
        }
    }
    device_sync_all(device);
    device->api->host_free(device, host, 8 * page);
    device_unmap(device, at, 0, 8);
    device_close(device);
}

/* A block goes round: every stream in turn adds one, out to the host, back to another page, and on. Nothing but waits
 * keeps the steps apart. */
static void test_waits_order_streams(void **state)
{
    enum { ROUNDS = TEST_SANITIZED ? 40 : 200 };
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    char *at = device_map(device, 0, 2);
    char *host;
    np_stream last = 0;
    uint64_t mark = device_fill(device, 0, at, 2 * page, 0);
    ASSERT_OK(device->api->host_alloc(device, page, &host));
    for (int round = 0; round < ROUNDS; round++) {
        char *from = at + (round % 2 ? page : 0);
        char *to = at + (round % 2 ? 0 : page);
        for (np_stream i = 0; i < device->n_streams; i++) {
            device_wait(device, i, last, mark);
            mark = device_increment(device, i, from, page);
            last = i;
        }
        device_wait(device, NP_STREAM_OUT, last, mark);
        mark = device_copy(device, NP_STREAM_OUT, host, from, page);
        device_wait(device, NP_STREAM_IN, NP_STREAM_OUT, mark);
        mark = device_copy(device, NP_STREAM_IN, to, host, page);
        last = NP_STREAM_IN;
    }
    device_sync(device, NP_STREAM_IN, mark);
    for (uint64_t i = 0; i < page; i++) {
        ASSERT_EQ(at[i], (char)(ROUNDS * device->n_streams));
    }
    device_sync_all(device);
    device->api->host_free(device, host, page);
    device_unmap(device, at, 0, 2);
    device_close(device);
}

/* What the host knows to be done needs no wait. */
static void test_sync_orders_too(void **state)
{
    np_device *device = device_open(*state, NULL);
    uint64_t page = device->page_bytes;
    char *at = device_map(device, 0, 1);
    char *host;
    ASSERT_OK(device->api->host_alloc(device, page, &host));
    device_sync(device, 0, device_fill(device, 0, at, page, 9));
    device_sync(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at, page));
    ASSERT_EQ(host[page - 1], 9);
    memset(host, 8, page);
    device_sync(device, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at, host, page));
    ASSERT_EQ(at[0], 8);
    device->api->host_free(device, host, page);
    device_unmap(device, at, 0, 1);
    device_close(device);
}

static void count(void *arg)
{
    atomic_fetch_add(*(atomic_uint **)arg, 1);
}

static void test_free_waits_for_all_work(void **state)
{
    np_device *device = device_open(*state, NULL);
    atomic_uint n = 0;
    atomic_uint *arg = &n;
    np_task task = {.run = count, .arg = &arg, .arg_bytes = sizeof arg};
    for (int i = 0; i < 1000; i++) {
        uint64_t mark;
        np_stream stream = (np_stream)i % device->n_streams;
        ASSERT_OK(device->api->launch(device, stream, &task, &mark));
        device_wait(device, NP_STREAM_IN, stream, mark);
        device_wait(device, (stream + 1) % device->n_streams, stream, mark);
    }
    device_close(device);
    ASSERT_EQ(atomic_load(&n), 1000);
}

static void test_free_right_away(void **state)
{
    for (int i = 0; i < 10; i++) {
        device_close(device_open(*state, NULL));
    }
}

/* ---- facts ---- */

static void test_link_is_known(void **state)
{
    np_device *device = device_open(*state, NULL);
    neap_link link = {0};
    neap_link again = {0};
    ASSERT_OK(device->api->link(device, &link));
    ASSERT_TRUE(link.out_gbs > 0 && link.in_gbs > 0 && link.both_gbs >= 0 && link.latency_us >= 0);
    ASSERT_OK(device->api->link(device, &again));
    ASSERT_TRUE(again.out_gbs >= link.out_gbs && again.in_gbs >= link.in_gbs); /* what is measured again is no worse */
    /* of a MiB */
    ASSERT_TRUE(again.latency_us + 1048.576 / again.out_gbs <= link.latency_us + 1048.576 / link.out_gbs + 1e-6);
    device_close(device);
}

/* ---- out of memory ---- */

typedef struct use_memory_state {
    np_device *device;
    char *at;
    char *host;
} use_memory_state;

static neap_status use_memory(np_device *device, use_memory_state *s)
{
    enum { N = 300 };
    uint64_t page = device->page_bytes;
    neap_link link;
    neap_status status = device->api->commit(device, 0, 100);
    if (status == NEAP_OK) {
        status = device->api->reserve(device, 100, &s->at);
    }
    for (uint32_t i = 0; i < 100 && status == NEAP_OK; i++) {
        status = device->api->map(device, s->at + i * page, 99 - i, 1);
    }
    if (status == NEAP_OK) {
        status = device->api->host_alloc(device, 100 * page, &s->host);
    }
    for (uint32_t i = 0; i < N && status == NEAP_OK; i++) {
        char *at = s->at + i % 100 * page;
        np_touch touch = {at, 2 * (i % 2) + 1, i % 3 == 0};
        unsigned char arg[NEAP_ARG_MAX] = {0};
        np_task task = {.arg = arg, .arg_bytes = sizeof arg, .touches = &touch, .n_touches = 1};
        uint64_t mark = 0;
        status = device->api->launch(device, 0, &task, &mark);
        if (status == NEAP_OK) {
            status = device->api->wait(device, NP_STREAM_OUT, 0, mark);
        }
        if (status == NEAP_OK) {
            status = device->api->copy(device, NP_STREAM_OUT, s->host + i % 100 * page, at, page, &mark);
        }
        if (status == NEAP_OK) {
            status = device->api->wait(device, 0, NP_STREAM_OUT, mark);
        }
    }
    return status == NEAP_OK ? device->api->link(device, &link) : status;
}

static neap_status open_and_use(const neap_memory *memory, void *user)
{
    use_memory_state s = {0};
    neap_error error;
    neap_status status = np_device_open(user, memory, &error, &s.device);
    if (status != NEAP_OK) {
        ASSERT_TRUE(error.text[0] != '\0');
        return status;
    }
    status = use_memory(s.device, &s);
    device_sync_all(s.device);
    if (s.host) {
        s.device->api->host_free(s.device, s.host, 100 * s.device->page_bytes);
    }
    if (s.at) {
        s.device->api->unmap(s.device, s.at, 100);
        s.device->api->unreserve(s.device, s.at, 100);
    }
    device_close(s.device);
    return status;
}

static void test_every_allocation_may_fail(void **state)
{
    ASSERT_GT(test_memory_fail_each(open_and_use, *state), 5);
}

#define CASES(X)                                 \
    X(test_work_writes_pages)                    \
    X(test_two_addresses_show_one_page)          \
    X(test_an_address_moves_to_other_pages)      \
    X(test_what_is_not_mapped_cannot_be_touched) \
    X(test_pages_come_and_go)                    \
    X(test_marks_count_work_alone)               \
    X(test_a_stream_works_in_order)              \
    X(test_arguments_of_any_size)                \
    X(test_times_are_there_once_done)            \
    X(test_copies_of_any_size)                   \
    X(test_waits_order_streams)                  \
    X(test_sync_orders_too)                      \
    X(test_free_waits_for_all_work)              \
    X(test_free_right_away)                      \
    X(test_link_is_known)                        \
    X(test_every_allocation_may_fail)

static const struct {
    const char *name;
    CMUnitTestFunction run;
} cases[] = {
#define CASE(name) {#name, name},
    CASES(CASE)
#undef CASE
};

enum { N_CASES = sizeof cases / sizeof *cases };

int main(void)
{
    static struct CMUnitTest tests[N_DEVICES * N_CASES];
    static char names[N_DEVICES * N_CASES][128];
    size_t n_cases = N_CASES - (TEST_RACES ? test_rounds(1, 0) : 0); /* the last, which is long, races with nothing */
    standin_use(65536);
    for (size_t i = 0; i < N_DEVICES * n_cases; i++) {
        const char *device = devices[i / n_cases];
        (void)snprintf(names[i], sizeof names[i], "%s on %s", cases[i % n_cases].name, device);
        tests[i] = (struct CMUnitTest){.name = names[i], .test_func = cases[i % n_cases].run};
        tests[i].initial_state = (void *)(uintptr_t)device;
    }
    return _cmocka_run_group_tests("device/devices", tests, N_DEVICES * n_cases, NULL, NULL);
}
