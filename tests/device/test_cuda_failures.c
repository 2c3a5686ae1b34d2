/* test_cuda_failures.c: every call of the driver fails once, in turn. What device.h says must hold then: a call that
 * fails has changed nothing and can be made again; nothing is lost, but what the driver refused to take back. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda_state.h"
#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

static const char name[] = "cuda:0,memory=4MiB,streams=2,link=10GB/s";

/* ---- a program that uses everything ---- */

typedef struct scene {
    np_device *device;
    char *arena; /* 8 pages, mapped in order */
    char *view;  /* 4 pages */
    char *host;  /* 4 pages */
    np_times times[2];
    uint64_t mark;
    neap_status first_failure;
} scene;

/* A call that fails once is made again, and must go well then. */
#define TWICE(s, call)                                             \
    do {                                                           \
        neap_status twice_status = (call);                         \
        if (twice_status != NEAP_OK) {                             \
            ASSERT_EQ((s)->first_failure, NEAP_OK);                \
            (s)->first_failure = twice_status;                     \
            ASSERT_OK(call);                                       \
        }                                                          \
        ASSERT_TRUE(np_cuda_is_valid(standin_inner((s)->device))); \
    } while (0)

/* is_done cannot say that it failed. */
static void wait_until_done(np_device *device, np_stream stream, uint64_t mark)
{
    while (!device->api->is_done(device, stream, mark)) {}
}

static void write_and_look(scene *s, char *at, uint64_t bytes, char value)
{
    const np_device_interface *api = s->device->api;
    np_device *device = s->device;
    memset(s->host, value, bytes);
    TWICE(s, api->copy(device, NP_STREAM_IN, at, s->host, bytes, &s->mark));
    wait_until_done(device, NP_STREAM_IN, s->mark);
    memset(s->host, 0, bytes);
    TWICE(s, api->copy(device, NP_STREAM_OUT, s->host, at, bytes, &s->mark));
    TWICE(s, api->sync(device, NP_STREAM_OUT, s->mark));
    ASSERT_EQ(s->host[0], value);
    ASSERT_EQ(s->host[bytes - 1], value);
}

static void prepare(scene *s)
{
    const np_device_interface *api = s->device->api;
    TWICE(s, api->commit(s->device, 0, 5));
    TWICE(s, api->commit(s->device, 5, 3));
    TWICE(s, api->reserve(s->device, 8, &s->arena));
    TWICE(s, api->reserve(s->device, 4, &s->view));
    TWICE(s, api->map(s->device, s->arena, 0, 8));
    TWICE(s, api->host_alloc(s->device, 4 * s->device->page_bytes, &s->host));
}

/* Pages of a view are replaced, with a hole and a change of order among them. Whatever fails, the old ones are there.
 * */
static void remap(scene *s)
{
    np_device *device = s->device;
    uint64_t page = device->page_bytes;
    neap_status status;
    for (int i = 0; i < 8; i++) {
        s->arena[i * (int)page] = (char)i;
    }
    TWICE(s, device->api->map(device, s->view, 0, 1));
    TWICE(s, device->api->map(device, s->view + 2 * page, 6, 1));
    TWICE(s, device->api->map(device, s->view + 3 * page, 5, 1));
    status = device->api->map(device, s->view, 1, 4);
    if (status != NEAP_OK) {
        ASSERT_EQ(s->first_failure, NEAP_OK);
        s->first_failure = status;
        ASSERT_EQ(s->view[0], 0);
        ASSERT_FALSE(device_is_readable(s->view + page));
        ASSERT_EQ(s->view[2 * page], 6);
        ASSERT_EQ(s->view[3 * page], 5);
        ASSERT_OK(device->api->map(device, s->view, 1, 4));
    }
    for (int i = 0; i < 4; i++) {
        ASSERT_EQ(s->view[i * (int)page], 1 + i);
    }
}

static void work(scene *s)
{
    const np_device_interface *api = s->device->api;
    np_device *device = s->device;
    np_task timed = {.times = &s->times[0]};
    np_task plain = {0};
    uint64_t mark = 0;
    write_and_look(s, s->arena, 4 * device->page_bytes, 7);
    TWICE(s, api->launch(device, 0, &timed, &mark));
    timed.times = &s->times[1];
    TWICE(s, api->launch(device, 1, &timed, &s->mark));
    TWICE(s, api->wait(device, 1, 0, mark));
    TWICE(s, api->launch(device, 1, &plain, &mark));
    TWICE(s, api->launch(device, 0, &plain, &s->mark));
    TWICE(s, api->wait(device, 0, 1, mark));
    TWICE(s, api->copy(device, 0, s->arena, s->arena + device->page_bytes, 100, &s->mark));
    TWICE(s, api->copy(device, NP_STREAM_IN, NULL, NULL, 0, &mark));
    wait_until_done(device, 1, api->mark(device, 1));
    TWICE(s, api->sync(device, 0, s->mark));
    TWICE(s, api->sync(device, NP_STREAM_IN, mark));
}

static void tidy_up(scene *s)
{
    const np_device_interface *api = s->device->api;
    api->host_free(s->device, s->host, 4 * s->device->page_bytes);
    api->unmap(s->device, s->view, 4);
    api->unreserve(s->device, s->view, 4);
    api->unmap(s->device, s->arena, 8);
    api->unreserve(s->device, s->arena, 8);
    api->release(s->device, 0, 8);
}

/* ---- one failure at a time ---- */

/* What the driver would not take back is not there to be counted; everything else is. */
static bool is_a_return(const char *symbol)
{
    static const char *const returns[] = {
        "cuMemRelease",      "cuMemAddressFree",    "cuMemUnmap",
        "cuMemFree_v2",      "cuMemHostUnregister", "cuStreamDestroy_v2",
        "cuEventDestroy_v2", "cuCtxPopCurrent_v2",  "cuDevicePrimaryCtxRelease_v2",
        "cuCtxGetCurrent",   "cuCtxPushCurrent_v2", "cuThreadExchangeStreamCaptureMode"};
    for (size_t i = 0; i < sizeof returns / sizeof *returns; i++) {
        if (strcmp(symbol, returns[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void check_nothing_left(const char *symbol, uint64_t n)
{
    standin_counts c;
    standin_get()->count(&c);
    if (c.n_contexts + c.n_streams + c.n_events + c.n_memories + c.n_mappings + c.n_reservations + c.n_allocations +
            c.n_registered + c.device_bytes >
        0) {
        test_fail(
            __FILE__, __LINE__,
            "after a failure of call %llu of %s there are %llu contexts, %llu streams, %llu events, %llu memories, "
            "%llu mappings, %llu reservations, %llu allocations, %llu registered",
            (unsigned long long)n, symbol, (unsigned long long)c.n_contexts, (unsigned long long)c.n_streams,
            (unsigned long long)c.n_events, (unsigned long long)c.n_memories, (unsigned long long)c.n_mappings,
            (unsigned long long)c.n_reservations, (unsigned long long)c.n_allocations,
            (unsigned long long)c.n_registered);
    }
}

/* What a failure may be called: exhausted memory is none of the device's problems. */
static void check_status(neap_status status, int code, const char *symbol, const char *said)
{
    if (code == NP_CU_OUT_OF_MEMORY) {
        ASSERT_TRUE(status == NEAP_OK || status == NEAP_DEVICE_FULL || status == NEAP_NO_MEMORY ||
                    status == NEAP_DEVICE_FAILED);
    } else if (status != NEAP_OK) {
        ASSERT_EQ(status, NEAP_DEVICE_FAILED);
        ASSERT_TRUE(said != NULL);
        ASSERT_CONTAINS(said, "cuda:0: ");
        ASSERT_CONTAINS(said, "CUDA_ERROR_INVALID_VALUE: invalid argument");
    }
    (void)symbol;
}

/* The program, with the n-th call of a function failing. False: there are not so many. */
static bool run_once(const char *symbol, uint64_t n, int code)
{
    const standin_control *control = standin_get();
    scene s = {0};
    neap_error error = {""};
    np_device *opened = NULL;
    neap_status status;
    bool has_failed;
    control->fail_call(symbol, n, code, false);
    status = np_device_open(name, NULL, &error, &opened);
    if (status != NEAP_OK) {
        ASSERT_EQ(control->n_failed(), 1);
        ASSERT_TRUE(error.text[0] != '\0');
        control->fail_call(NULL, 0, 0, false);
        if (!is_a_return(symbol)) {
            check_nothing_left(symbol, n);
        }
        return true;
    }
    s.device = standin_wrap(opened);
    prepare(&s);
    remap(&s);
    work(&s);
    tidy_up(&s);
    has_failed = control->n_failed() > 0;
    check_status(s.first_failure, code, symbol, s.device->api->problem(s.device));
    s.device->api->free(s.device);
    has_failed = has_failed || control->n_failed() > 0;
    control->fail_call(NULL, 0, 0, false);
    if (!is_a_return(symbol)) {
        check_nothing_left(symbol, n);
    }
    return has_failed;
}

/* A function that gives something back and fails leaves it with the driver for good: those come last. */
static void fail_each(bool gives_back, int code)
{
    const standin_control *control = standin_get();
    const char *symbol;
    uint64_t n_failed = 0;
    ASSERT_FALSE(run_once("none", 1, code)); /* so that all functions are known */
    for (size_t i = 0; (symbol = control->nth_symbol(i)) != NULL; i++) {
        if (strncmp(symbol, "cu", 2) == 0 && is_a_return(symbol) == gives_back) {
            uint64_t n = 1;
            while (run_once(symbol, n, code)) {
                n_failed++;
                n += TEST_SANITIZED ? 1 + n / (TEST_RACES ? test_rounds(1, 4) : 4) : 1 + n / 16;
            }
        }
    }
    ASSERT_GT(n_failed, 20);
}

static void test_each_call_fails(void **state)
{
    (void)state;
    fail_each(false, NP_CU_INVALID_VALUE);
}

static void test_each_call_is_out_of_memory(void **state)
{
    (void)state;
    fail_each(false, NP_CU_OUT_OF_MEMORY);
}

static void assert_same_counts(const standin_counts *before)
{
    standin_counts after;
    standin_get()->count(&after);
    ASSERT_EQ(after.n_streams, before->n_streams);
    ASSERT_EQ(after.n_registered, before->n_registered);
    ASSERT_EQ(after.n_allocations, before->n_allocations);
    ASSERT_EQ(after.n_events, before->n_events);
}

/* Its probes are gone again, however far they came. */
static void test_the_link(void **state)
{
    const standin_control *control = standin_get();
    np_device *device = device_open("cuda:0,memory=4MiB", NULL);
    standin_counts before;
    neap_link link = {0};
    uint64_t n = 1;
    (void)state;
    control->count(&before);
    for (;; n += 1 + n / 2) {
        neap_status status;
        control->fail_call(NULL, n, NP_CU_INVALID_VALUE, false);
        status = device->api->link(device, &link);
        if (control->n_failed() == 0) {
            ASSERT_OK(status);
            break;
        }
        control->fail_call(NULL, 0, 0, false);
        ASSERT_TRUE(status != NEAP_OK || n > 100); /* at the end things are given back, which may fail unseen */
        assert_same_counts(&before);
        if (status == NEAP_OK) {
            break;
        }
    }
    control->fail_call(NULL, 0, 0, false);
    ASSERT_TRUE(link.out_gbs > 0);
    ASSERT_GT(n, 20);
    device->api->free(device);
}

/* So are the copies beside the program's work: when they are given, and when they are looked at. */
static void test_busy(void **state)
{
    enum { LOOKS = 12 };
    const standin_control *control = standin_get();
    np_device *device = device_open("cuda:0,memory=64MiB", NULL);
    standin_counts before;
    neap_link link;
    bool has_failed = true;
    double share;
    uint64_t n = 0;
    (void)state;
    ASSERT_OK(device->api->link(device, &link));
    control->count(&before);
    while (has_failed) {
        control->fail_call(NULL, ++n, NP_CU_INVALID_VALUE, false);
        neap_status status = device->api->time_busy(device, 2);
        has_failed = control->n_failed() > 0;
        control->fail_call(NULL, 0, 0, false);
        ASSERT_TRUE(has_failed || status == NEAP_OK);
        while (!device->api->take_busy(device, &share)) {}
        assert_same_counts(&before);
    }
    ASSERT_GT(n, 20);
    for (n = 1; n <= LOOKS; n++) {
        ASSERT_OK(device->api->time_busy(device, 1));
        control->fail_call(NULL, n, NP_CU_INVALID_VALUE, false);
        (void)device->api->take_busy(device, &share);
        control->fail_call(NULL, 0, 0, false);
        while (!device->api->take_busy(device, &share)) {}
        ASSERT_OK(device->api->link(device, &link));
        ASSERT_TRUE(link.busy_share >= 0 && link.busy_share < 1);
    }
    device->api->free(device);
}

static void store_late(void *arg)
{
    struct timespec some = {.tv_nsec = 20000000};
    (void)nanosleep(&some, NULL);
    atomic_store(*(atomic_int **)arg, 1);
}

/* Whoever waits is about to unmap what the work uses: that there is no event to be had is no reason not to wait. */
static void test_waits_without_events(void **state)
{
    static const char *const symbols[] = {"cuEventCreate", "cuEventRecord"};
    const standin_control *control = standin_get();
    (void)state;
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        np_device *device = device_open(name, NULL);
        atomic_int stored = 0;
        atomic_int *at = &stored;
        np_task task = {.run = store_late, .arg = &at, .arg_bytes = sizeof at};
        uint64_t mark = 0;
        ASSERT_OK(device->api->launch(device, 0, &task, &mark));
        control->fail_call(symbols[i], 1, NP_CU_OUT_OF_MEMORY, true);
        ASSERT_OK(device->api->sync(device, 0, mark));
        ASSERT_EQ(control->n_failed(), 1);
        ASSERT_EQ(atomic_load(&stored), 1);
        ASSERT_TRUE(device->api->is_done(device, 0, mark));
        control->fail_call("cuStreamSynchronize", 1, NP_CU_INVALID_VALUE, false);
        ASSERT_OK(device->api->launch(device, 0, &task, &mark));
        ASSERT_OK(device->api->sync(device, 0, mark)); /* there are events again */
        ASSERT_EQ(control->n_failed(), 0);
        control->fail_call(NULL, 0, 0, false);
        ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
        device->api->free(device);
        check_nothing_left(symbols[i], 1);
    }
}

/* After a fault of the device every call fails. It says so, and goes without a halt. */
static void test_a_dead_device(void **state)
{
    const standin_control *control = standin_get();
    np_times times = {1, 2};
    np_task task = {.times = &times};
    np_device *device = device_open(name, NULL);
    const np_device_interface *api = device->api;
    char *at = device_map(device, 0, 4);
    char *host;
    uint64_t timed, mark = 0;
    (void)state;
    ASSERT_OK(api->host_alloc(device, 100, &host));
    ASSERT_OK(api->launch(device, 0, &task, &timed));
    control->fail_call(NULL, 1, 700, true);
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->launch(device, 0, &task, &mark));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->copy(device, NP_STREAM_IN, at, host, 100, &mark));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->wait(device, 1, 0, timed));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->sync(device, 0, timed));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->map(device, at, 0, 1));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, api->commit(device, 4, 1));
    ASSERT_FALSE(api->is_done(device, 0, timed));
    ASSERT_EQ(mark, 0);
    ASSERT_CONTAINS(api->problem(device), "CUDA_ERROR_ILLEGAL_ADDRESS");
    ASSERT_TRUE(np_cuda_is_valid(standin_inner(device)));
    control->fail_call(NULL, 0, 0, false); /* so that nothing is left in this process */
    api->host_free(device, host, 100);
    control->fail_call("cuEventSynchronize", 1, 700, true);
    api->free(device);
    control->fail_call(NULL, 0, 0, false);
    check_nothing_left("cuEventSynchronize", 1);
    ASSERT_EQ(times.duration_ns, 0); /* never known */
}

/* Nothing is expected of these but that all goes on. */
static void test_each_return_fails(void **state)
{
    (void)state;
    fail_each(true, NP_CU_INVALID_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails),   cmocka_unit_test(test_each_call_is_out_of_memory),
        cmocka_unit_test(test_the_link),          cmocka_unit_test(test_busy),
        cmocka_unit_test(test_a_dead_device),     cmocka_unit_test(test_waits_without_events),
        cmocka_unit_test(test_each_return_fails), /* what is not taken back stays: the last one */
    };
    standin_use(65536);
    (void)setenv("STANDIN_DELAY_US", "0", 1);
    return cmocka_run_group_tests_name("device/cuda_failures", tests, NULL, NULL);
}
