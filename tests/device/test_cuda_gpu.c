/* test_cuda_gpu.c: the cuda device on a real GPU, where there is one: that the driver takes what it is given, and that
 * bytes are where they should be. Kernels are fills of the driver's own, so that no CUDA compiler is needed.
 *
 * NEAP_CUDA_DRIVER may name another driver; with the stand-in, this test is tested. */
#include "device/cuda_state.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/device_tools.h"
#include "testing.h"

typedef np_cu_result (*fill_function)(np_cu_address at, unsigned char value, size_t n, np_cu_stream stream);

static fill_function fill_bytes;
static char why_not[600]; /* empty: there is a GPU */

/* Without the wrapper for the stand-in. */
static np_device *open_gpu(const char *name)
{
    np_device *device = NULL;
    neap_error error = {""};
    if (why_not[0]) {
        SKIP("%s", why_not);
    }
    if (np_device_open(name, NULL, &error, &device) != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s", error.text);
    }
    return device;
}

/* ---- work ---- */

typedef struct fill_arg {
    char *at;
    uint64_t bytes;
    np_cu_stream stream;
    unsigned char value;
    np_cu_result *result;
} fill_arg;

static void give_fill(void *arg)
{
    const fill_arg *a = arg;
    *a->result = fill_bytes((np_cu_address)(uintptr_t)a->at, a->value, a->bytes, a->stream);
}

static uint64_t fill(np_device *device, np_stream stream, char *at, uint64_t bytes, unsigned value, np_times *times)
{
    np_cu_result result = NP_CU_UNKNOWN;
    fill_arg arg = {at, bytes, np_cuda_stream(device, stream), (unsigned char)value, &result};
    np_task task = {.run = give_fill, .arg = &arg, .arg_bytes = sizeof arg, .times = times};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    ASSERT_EQ(result, NP_CU_SUCCESS);
    return mark;
}

/* The bytes at `at`, all of one value, once all work is done. */
static void check(np_device *device, const char *at, uint64_t bytes, unsigned value, char *host)
{
    device_sync_all(device);
    memset(host, ~(int)value, bytes);
    device_sync(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at, bytes));
    for (uint64_t i = 0; i < bytes; i++) {
        if (host[i] != (char)value) {
            test_fail(__FILE__, __LINE__, "byte %llu is %d, not %u", (unsigned long long)i, host[i], value);
        }
    }
}

static uint64_t free_bytes(np_device *device)
{
    np_cuda *cuda = (np_cuda *)device;
    np_cuda_visit visit;
    size_t n_free = 0;
    size_t n_all = 0;
    ASSERT_OK(np_cuda_enter(cuda, &visit));
    ASSERT_EQ(cuda->driver.memory_info(&n_free, &n_all), NP_CU_SUCCESS);
    np_cuda_leave(cuda, &visit);
    return n_free;
}

/* ---- cases ---- */

static void test_pages_and_views(void **state)
{
    np_device *device = open_gpu("cuda:0,memory=256MiB");
    const np_device_interface *api = device->api;
    uint64_t page = device->page_bytes;
    char *arena, *view, *host;
    (void)state;
    arena = device_map(device, 3, 8);
    ASSERT_OK(api->reserve(device, 4, &view));
    ASSERT_OK(api->host_alloc(device, 8 * page, &host));
    for (unsigned i = 0; i < 8; i++) {
        fill(device, 0, arena + i * page, page, i, NULL);
    }
    check(device, arena + 7 * page, page, 7, host);
    ASSERT_OK(api->map(device, view, 4, 2)); /* two addresses, one page */
    check(device, view, page, 1, host);
    fill(device, 0, view + page, page, 20, NULL);
    check(device, arena + 2 * page, page, 20, host);
    ASSERT_OK(api->map(device, view + page, 8, 3)); /* replaced in part */
    check(device, view, page, 1, host);
    check(device, view + page, page, 5, host);
    check(device, view + 3 * page, page, 7, host);
    api->unmap(device, view + page, 1); /* a hole */
    ASSERT_OK(api->map(device, view, 3, 4));
    check(device, view + 3 * page, page, 3, host);
    api->unmap(device, view + page, 2);
    api->unmap(device, view, 4);
    api->unmap(device, view, 4); /* nothing is there */
    ASSERT_OK(api->map(device, view, 10, 1));
    check(device, view, page, 7, host);
    ASSERT_TRUE(np_cuda_is_valid(device));
    api->unmap(device, view, 4);
    api->unreserve(device, view, 4);
    api->host_free(device, host, 8 * page);
    device_unmap(device, arena, 3, 8);
    device_close(device);
}

static void test_memory_comes_back(void **state)
{
    np_device *device = open_gpu("cuda:0");
    uint64_t page = device->page_bytes;
    uint64_t before = free_bytes(device);
    char *at = device_map(device, 0, 64);
    (void)state;
    ASSERT_LE(free_bytes(device), before - 64 * page);
    device_unmap(device, at, 0, 64);
    ASSERT_GE(free_bytes(device), before);
    device_close(device);
}

/* A page larger than any GPU, so that others on the machine do not notice. */
static void test_a_full_device(void **state)
{
    np_device *device = open_gpu("cuda:0,page=1024GiB,memory=2048GiB");
    uint64_t before = free_bytes(device);
    (void)state;
    ASSERT_STATUS(NEAP_DEVICE_FULL, device->api->commit(device, 0, 1));
    ASSERT_GE(free_bytes(device), before);
    ASSERT_TRUE(device->api->problem(device) == NULL);
    device_close(device);
}

/* A block goes round between streams, the host and two places; waits alone keep the steps apart. */
static void test_waits(void **state)
{
    enum { ROUNDS = 100, PAGES = 16 };
    np_device *device = open_gpu("cuda:0,memory=256MiB,streams=2");
    uint64_t bytes = PAGES * device->page_bytes;
    char *at = device_map(device, 0, 2 * PAGES);
    char *host;
    uint64_t mark = fill(device, 0, at, 2 * bytes, 0, NULL);
    np_stream last = 0;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, bytes, &host));
    for (unsigned round = 0; round < ROUNDS; round++) {
        char *from = at + (round % 2 ? bytes : 0);
        char *to = at + (round % 2 ? 0 : bytes);
        for (np_stream i = 0; i < 2; i++) {
            device_wait(device, i, last, mark);
            mark = fill(device, i, from, bytes, round + i, NULL);
            last = i;
        }
        device_wait(device, NP_STREAM_OUT, last, mark);
        mark = device_copy(device, NP_STREAM_OUT, host, from, bytes);
        device_wait(device, NP_STREAM_IN, NP_STREAM_OUT, mark);
        mark = device_copy(device, NP_STREAM_IN, to, host, bytes);
        last = NP_STREAM_IN;
        device_wait(device, 1, NP_STREAM_IN, mark);
        fill(device, 1, from, bytes, 255, NULL); /* too early, it would be copied */
        device_wait(device, NP_STREAM_IN, 1, device->api->mark(device, 1));
        mark = device_copy(device, NP_STREAM_IN, NULL, NULL, 0);
    }
    check(device, at, bytes, ROUNDS, host); /* of the second stream in the last round */
    ASSERT_TRUE(np_cuda_is_valid(device));
    device->api->host_free(device, host, bytes);
    device_unmap(device, at, 0, 2 * PAGES);
    device_close(device);
}

static void test_times(void **state)
{
    enum { N = 200 };
    np_device *device = open_gpu("cuda:0,memory=256MiB");
    uint64_t bytes = 32 * device->page_bytes;
    char *at = device_map(device, 0, 32);
    static np_times times[N];
    uint64_t end_ns = device->api->now_ns(device);
    uint64_t sum_ns = 0;
    (void)state;
    for (int i = 0; i < N; i++) {
        fill(device, 0, at, bytes, 1, &times[i]);
    }
    device_sync_all(device);
    for (int i = 0; i < N; i++) {
        ASSERT_GE(times[i].start_ns, end_ns);
        ASSERT_GT(times[i].duration_ns, 0);
        end_ns = times[i].start_ns + times[i].duration_ns;
        sum_ns += times[i].duration_ns;
    }
    ASSERT_LE(end_ns, device->api->now_ns(device));
    print_message("a fill of %llu bytes takes %llu ns\n", (unsigned long long)bytes, (unsigned long long)(sum_ns / N));
    device_unmap(device, at, 0, 32);
    device_close(device);
}

/* Copies from and to memory of any size and kind, at any offset. */
static void test_copies(void **state)
{
    np_device *device = open_gpu("cuda:0,memory=256MiB");
    uint64_t page = device->page_bytes;
    const uint64_t sizes[] = {1, 511, 4096, 65537, page - 1, page + 1, 5 * page};
    char *at = device_map(device, 0, 8);
    char *plain = malloc(6 * page);
    np_rng rng = np_rng_make(1);
    (void)state;
    ASSERT_TRUE(plain != NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t offset = np_rng_below(&rng, page);
        np_host_copy copy = {at + offset, plain, sizes[i]};
        np_task task = {.run = np_host_copy_run, .arg = &copy, .arg_bytes = sizeof copy};
        uint64_t mark = 0;
        char *host;
        ASSERT_OK(device->api->host_alloc(device, sizes[i], &host));
        for (uint64_t k = 0; k < sizes[i]; k++) {
            plain[k] = (char)np_rng_next(&rng);
        }
        ASSERT_OK(device->api->launch(device, 0, &task, &mark)); /* from memory of the program */
        device_wait(device, NP_STREAM_OUT, 0, mark);
        device_sync(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at + offset, sizes[i]));
        ASSERT_EQ(memcmp(host, plain, sizes[i]), 0);
        memset(host, (int)i, sizes[i]);
        mark = device_copy(device, NP_STREAM_IN, at + offset, host, sizes[i]);
        device_wait(device, 0, NP_STREAM_IN, mark);
        copy = (np_host_copy){plain, at + offset, sizes[i]};
        ASSERT_OK(device->api->launch(device, 0, &task, &mark)); /* and to it */
        device_sync(device, 0, mark);
        ASSERT_EQ(memcmp(host, plain, sizes[i]), 0);
        device->api->host_free(device, host, sizes[i]);
    }
    free(plain);
    device_unmap(device, at, 0, 8);
    device_close(device);
}

static void test_link(void **state)
{
    np_device *device = open_gpu("cuda:0");
    neap_link link = {0};
    (void)state;
    ASSERT_OK(device->api->link(device, &link));
    print_message("%.1f GB/s out, %.1f in, %.1f both, %.2f us each; %llu pages of %llu bytes\n", link.out_gbs,
                  link.in_gbs, link.both_gbs, link.latency_us, (unsigned long long)device->n_pages,
                  (unsigned long long)device->page_bytes);
    ASSERT_TRUE(link.out_gbs > 0 && link.in_gbs > 0);
    device_close(device);
}

static void look_for_gpu(void)
{
    neap_error error = {""};
    np_cuda_driver driver;
    void *found = NULL;
    if (np_cuda_driver_load(&driver, &error) == NEAP_OK) {
        found = dlsym(driver.library, "cuMemsetD8Async");
        memcpy(&fill_bytes, &found, sizeof found);
        return;
    }
    memcpy(why_not, error.text, sizeof error.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_and_views),
        cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_a_full_device),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_link),
    };
    look_for_gpu();
    return cmocka_run_group_tests_name("device/cuda_gpu", tests, NULL, NULL);
}
