#include "device/device_tools.h"

#include <string.h>
#include <unistd.h>

#include "device/standin_device.h"
#include "testing.h"

np_device *device_open(const char *name, const neap_memory *memory)
{
    np_device *device = NULL;
    neap_error error = {{0}};
    bool is_cuda = strncmp(name, "cuda", 4) == 0;
    neap_status status;
    if (is_cuda) {
        standin_use(65536);
    }
    status = np_device_open(name, memory, &error, &device);
    if (status != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s: %s: %s", name, neap_status_name(status), error.text);
    }
    return is_cuda ? standin_wrap(device) : device;
}

void device_close(np_device *device)
{
    const char *problem = device->api->problem ? device->api->problem(device) : NULL;
    if (problem) {
        test_fail(__FILE__, __LINE__, "the device found: %s", problem);
    }
    device->api->free(device);
}

char *device_map(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    char *address = NULL;
    ASSERT_OK(device->api->commit(device, first_page, n_pages));
    ASSERT_OK(device->api->reserve(device, n_pages, &address));
    ASSERT_EQ((uintptr_t)address % device->page_bytes, 0);
    ASSERT_OK(device->api->map(device, address, first_page, n_pages));
    return address;
}

void device_unmap(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    device->api->unmap(device, address, n_pages);
    device->api->unreserve(device, address, n_pages);
    device->api->release(device, first_page, n_pages);
}

typedef struct span_arg {
    char *at;
    uint64_t bytes;
    char value;
} span_arg;

static void fill(void *arg)
{
    const span_arg *span = arg;
    memset(span->at, span->value, span->bytes);
}

static void increment(void *arg)
{
    const span_arg *span = arg;
    for (uint64_t i = 0; i < span->bytes; i++) {
        span->at[i]++;
    }
}

static uint64_t launch_span(np_device *device, np_stream stream, void (*run)(void *arg), span_arg span)
{
    np_touch touch = {span.at, span.bytes, true};
    np_task task = {.run = run, .arg = &span, .arg_bytes = sizeof span, .touches = &touch, .n_touches = 1};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    ASSERT_EQ(mark, device->api->mark(device, stream));
    return mark;
}

uint64_t device_fill(np_device *device, np_stream stream, char *at, uint64_t bytes, char value)
{
    return launch_span(device, stream, fill, (span_arg){at, bytes, value});
}

uint64_t device_increment(np_device *device, np_stream stream, char *at, uint64_t bytes)
{
    return launch_span(device, stream, increment, (span_arg){at, bytes, 0});
}

uint64_t device_pause(np_device *device, np_stream stream, uint64_t duration_ns, np_times *times)
{
    np_task task = {.duration_ns = duration_ns, .times = times};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

uint64_t device_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes)
{
    uint64_t mark = 0;
    ASSERT_OK(device->api->copy(device, stream, to, from, bytes, &mark));
    ASSERT_EQ(mark, device->api->mark(device, stream));
    return mark;
}

void device_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    ASSERT_OK(device->api->wait(device, stream, other, mark));
}

void device_sync(np_device *device, np_stream stream, uint64_t mark)
{
    ASSERT_OK(device->api->sync(device, stream, mark));
    ASSERT_TRUE(device->api->is_done(device, stream, mark));
}

void device_sync_all(np_device *device)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        if (i < device->n_streams || i >= NP_MAX_STREAMS) {
            device_sync(device, i, device->api->mark(device, i));
        }
    }
}

bool device_is_readable(const char *address)
{
    int ends[2];
    bool readable;
    ASSERT_EQ(pipe(ends), 0);
    readable = write(ends[1], address, 1) == 1; /* EFAULT where it is not */
    (void)close(ends[0]);
    (void)close(ends[1]);
    return readable;
}
