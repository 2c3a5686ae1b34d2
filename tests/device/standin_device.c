#define _GNU_SOURCE /* setenv, RTLD_NOLOAD */
#include "device/standin_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda.h"
#include "testing.h"

static const char path[] = NEAP_STANDIN_DIR "/standin.so";

void standin_use(uint64_t page_bytes)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)page_bytes);
    ASSERT_EQ(setenv("NEAP_CUDA_DRIVER", path, 1), 0);
    ASSERT_EQ(setenv("STANDIN_GRANULARITY", text, 0), 0);
}

const standin_control *standin_get(void)
{
    static const standin_control *control; /* the library stays loaded */
    if (!control) {
        standin_get_control_function get;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        void *found = library ? dlsym(library, "standin_get_control") : NULL;
        if (!found) {
            test_fail(__FILE__, __LINE__, "%s", dlerror());
        }
        memcpy(&get, &found, sizeof get);
        control = get();
    }
    return control;
}

/* ---- the wrapper ---- */

typedef struct wrapper {
    np_device base;
    np_device *inner;
    const standin_control *control;
} wrapper;

static np_device *inner_of(const np_device *device)
{
    return ((const wrapper *)device)->inner;
}

np_device *standin_inner(np_device *wrapped)
{
    return inner_of(wrapped);
}

typedef struct call {
    const standin_control *control;
    void *stream;
    void (*run)(void *arg);
    const void *arg;
    size_t arg_bytes;
    int *result;
} call;

static void give_call(void *arg)
{
    const call *c = arg;
    *c->result = c->control->launch(c->stream, c->run, c->arg, c->arg_bytes);
}

static neap_status wrapper_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark)
{
    wrapper *w = (wrapper *)device;
    int result = 0;
    call c = {w->control, np_cuda_stream(w->inner, stream), task->run, task->arg, task->arg_bytes, &result};
    np_task given = *task;
    neap_status status;
    if (task->run && task->run != np_host_copy_run) {
        given.run = give_call;
        given.arg = &c;
        given.arg_bytes = sizeof c;
    }
    status = w->inner->api->launch(w->inner, stream, &given, mark);
    if (result != 0) {
        test_fail(__FILE__, __LINE__, "the stand-in refused work: %d", result);
    }
    return status;
}

static void wrapper_free(np_device *device)
{
    inner_of(device)->api->free(inner_of(device));
    free(device);
}

static neap_status wrapper_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    return inner_of(device)->api->commit(inner_of(device), first_page, n_pages);
}

static void wrapper_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    inner_of(device)->api->release(inner_of(device), first_page, n_pages);
}

static neap_status wrapper_reserve(np_device *device, uint64_t n_pages, char **address)
{
    return inner_of(device)->api->reserve(inner_of(device), n_pages, address);
}

static void wrapper_unreserve(np_device *device, char *address, uint64_t n_pages)
{
    inner_of(device)->api->unreserve(inner_of(device), address, n_pages);
}

static neap_status wrapper_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    return inner_of(device)->api->map(inner_of(device), address, first_page, n_pages);
}

static void wrapper_unmap(np_device *device, char *address, uint64_t n_pages)
{
    inner_of(device)->api->unmap(inner_of(device), address, n_pages);
}

static neap_status wrapper_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    return inner_of(device)->api->host_alloc(inner_of(device), bytes, host);
}

static void wrapper_host_free(np_device *device, char *host, uint64_t bytes)
{
    inner_of(device)->api->host_free(inner_of(device), host, bytes);
}

static neap_status wrapper_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                                uint64_t *mark)
{
    return inner_of(device)->api->copy(inner_of(device), stream, to, from, bytes, mark);
}

static neap_status wrapper_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    return inner_of(device)->api->wait(inner_of(device), stream, other, mark);
}

static uint64_t wrapper_mark(const np_device *device, np_stream stream)
{
    return inner_of(device)->api->mark(inner_of(device), stream);
}

static bool wrapper_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    return inner_of(device)->api->is_done(inner_of(device), stream, mark);
}

static neap_status wrapper_sync(np_device *device, np_stream stream, uint64_t mark)
{
    return inner_of(device)->api->sync(inner_of(device), stream, mark);
}

static neap_status wrapper_link(np_device *device, neap_link *link)
{
    return inner_of(device)->api->link(inner_of(device), link);
}

static neap_status wrapper_time_busy(np_device *device, uint32_t n_rounds)
{
    return inner_of(device)->api->time_busy(inner_of(device), n_rounds);
}

static bool wrapper_take_busy(np_device *device, double *share)
{
    return inner_of(device)->api->take_busy(inner_of(device), share);
}

static uint64_t wrapper_now_ns(const np_device *device)
{
    return inner_of(device)->api->now_ns(inner_of(device));
}

static void *wrapper_native(const np_device *device, np_stream stream)
{
    return inner_of(device)->api->native(inner_of(device), stream);
}

static const char *wrapper_problem(const np_device *device)
{
    return inner_of(device)->api->problem(inner_of(device));
}

static const np_device_interface wrapper_interface = {
    .free = wrapper_free,
    .commit = wrapper_commit,
    .release = wrapper_release,
    .reserve = wrapper_reserve,
    .unreserve = wrapper_unreserve,
    .map = wrapper_map,
    .unmap = wrapper_unmap,
    .host_alloc = wrapper_host_alloc,
    .host_free = wrapper_host_free,
    .launch = wrapper_launch,
    .copy = wrapper_copy,
    .wait = wrapper_wait,
    .mark = wrapper_mark,
    .is_done = wrapper_is_done,
    .sync = wrapper_sync,
    .link = wrapper_link,
    .time_busy = wrapper_time_busy,
    .take_busy = wrapper_take_busy,
    .now_ns = wrapper_now_ns,
    .native = wrapper_native,
    .problem = wrapper_problem,
};

np_device *standin_wrap(np_device *cuda)
{
    wrapper *w = malloc(sizeof *w);
    ASSERT_TRUE(w != NULL);
    *w = (wrapper){.base = *cuda, .inner = cuda, .control = standin_get()};
    w->base.api = &wrapper_interface;
    return &w->base;
}
