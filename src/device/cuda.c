/* cuda.c: an NVIDIA GPU.
 *
 * Pages are handles of the driver's virtual memory management, streams are its streams, marks are events that are
 * recorded only where somebody waits (cuda_records.c). The driver is loaded when the first device is opened: a machine
 * without one has all the rest. The device shares its primary context with the program, as the CUDA runtime does. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "device/cuda_state.h"
#include "device/kinds.h"

static uint64_t cuda_now_ns(const np_device *device)
{
    (void)device;
    return np_clock_ns();
}

static const char *cuda_problem(const np_device *device)
{
    const np_cuda *cuda = (const np_cuda *)device;
    return cuda->problem[0] ? cuda->problem : NULL;
}

void *np_cuda_context_of(const np_device *device)
{
    return ((const np_cuda *)device)->context;
}

bool np_cuda_is_valid(const np_device *device)
{
    const np_cuda *cuda = (const np_cuda *)device;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        bool wanted = i < device->n_streams || i >= NP_MAX_STREAMS;
        bool is_own = cuda->adopts && i < NP_MAX_STREAMS; /* the program's: there from its first use on */
        if (is_own ? cuda->lanes[i].stream && !cuda->lanes[i].is_adopted : (cuda->lanes[i].stream != NULL) != wanted) {
            return false;
        }
    }
    return np_pagemap_is_valid(&cuda->pages) && np_cuda_records_are_valid(cuda);
}

/* ---- closing: whatever of it there is ---- */

static void close_streams(np_cuda *cuda)
{
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        if (cuda->lanes[i].stream && !cuda->lanes[i].is_adopted) {
            (void)cuda->driver.stream_destroy(cuda->lanes[i].stream);
        }
        cuda->lanes[i].stream = NULL;
    }
}

static void cuda_free(np_device *device)
{
    np_cuda *cuda = (np_cuda *)device;
    if (cuda->context) {
        np_cuda_visit visit;
        (void)np_cuda_enter(cuda, &visit);
        (void)np_cuda_sync_all(cuda);
        np_cuda_busy_close(cuda);
        np_cuda_records_close(cuda);
        close_streams(cuda);
        np_cuda_memory_free(cuda);
        np_cuda_leave(cuda, &visit);
        (void)cuda->driver.primary_release(cuda->ordinal);
    }
    np_memory_free(device->memory, cuda, 1, sizeof *cuda);
}

/* ---- opening ---- */

static const np_device_interface cuda_interface = {
    .free = cuda_free,
    .commit = np_cuda_commit,
    .release = np_cuda_release,
    .reserve = np_cuda_reserve,
    .unreserve = np_cuda_unreserve,
    .map = np_cuda_map,
    .unmap = np_cuda_unmap,
    .host_alloc = np_cuda_host_alloc,
    .host_free = np_cuda_host_free,
    .launch = np_cuda_launch,
    .copy = np_cuda_copy,
    .wait = np_cuda_wait,
    .mark = np_cuda_mark,
    .is_done = np_cuda_is_done,
    .sync = np_cuda_sync,
    .begin = np_cuda_begin,
    .end = np_cuda_end,
    .adopt = np_cuda_adopt,
    .link = np_cuda_link,
    .time_busy = np_cuda_time_busy,
    .take_busy = np_cuda_take_busy,
    .now_ns = cuda_now_ns,
    .native = np_cuda_stream,
    .problem = cuda_problem,
};

/* The device of that number, and whether it can do what is needed. */
static neap_status find_device(np_cuda *cuda, uint32_t number, neap_error *error)
{
    const np_cuda_driver *driver = &cuda->driver;
    char name[80] = "";
    int n_devices = 0;
    int has_virtual_memory = 0;
    np_cu_result result = driver->device_count(&n_devices);
    if (result == NP_CU_SUCCESS && number >= (uint32_t)n_devices) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "no device cuda:%u: there %s %d", number,
                       n_devices == 1 ? "is" : "are", n_devices);
    }
    if (result == NP_CU_SUCCESS) {
        result = driver->device_get(&cuda->ordinal, (int)number);
    }
    if (result == NP_CU_SUCCESS) {
        result = driver->device_name(name, sizeof name, cuda->ordinal);
    }
    if (result == NP_CU_SUCCESS) {
        result = driver->device_attribute(&has_virtual_memory, NP_CU_VIRTUAL_MEMORY, cuda->ordinal);
    }
    if (result == NP_CU_SUCCESS && !has_virtual_memory) {
        return np_fail(error, NEAP_DEVICE_FAILED, "cuda:%u (%s) has no virtual memory management", number, name);
    }
    return np_cuda_judge(cuda, result, "finding the device", NEAP_DEVICE_FAILED);
}

static bool is_power_of_two(uint64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* How large pages are, and how many there are. Within a visit. */
static neap_status size_up(np_cuda *cuda, const np_device_settings *settings, neap_error *error)
{
    np_cu_allocation allocation = np_cuda_allocation(cuda->ordinal);
    size_t least = 0;
    size_t usual = 0;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    uint64_t page_bytes;
    uint64_t n_pages;
    np_cu_result result = cuda->driver.granularity(&least, &allocation, NP_CU_GRANULARITY_MINIMUM);
    if (result == NP_CU_SUCCESS) {
        result = cuda->driver.granularity(&usual, &allocation, NP_CU_GRANULARITY_RECOMMENDED);
    }
    if (result == NP_CU_SUCCESS) {
        result = cuda->driver.memory_info(&free_bytes, &total_bytes);
    }
    if (result != NP_CU_SUCCESS) {
        return np_cuda_judge(cuda, result, "asking for its memory", NEAP_DEVICE_FAILED);
    }
    page_bytes = settings->page_bytes ? settings->page_bytes : usual;
    if (!is_power_of_two(page_bytes) || !is_power_of_two(least) || page_bytes < least) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "cuda:%d: pages of %llu bytes are not possible: %zu is the least",
                       cuda->ordinal, (unsigned long long)page_bytes, least);
    }
    n_pages = (settings->memory_bytes ? settings->memory_bytes : total_bytes) / page_bytes;
    if (n_pages == 0) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "the memory of device cuda is less than one page of %llu bytes",
                       (unsigned long long)page_bytes);
    }
    cuda->base.page_bytes = page_bytes;
    cuda->base.n_pages = n_pages < UINT32_MAX ? (uint32_t)n_pages : UINT32_MAX;
    return NEAP_OK;
}

static neap_status open_streams(np_cuda *cuda)
{
    neap_status status = NEAP_OK;
    for (np_stream i = 0; i < NP_N_STREAMS && status == NEAP_OK; i++) {
        if ((i < cuda->base.n_streams && !cuda->adopts) || i >= NP_MAX_STREAMS) {
            status = np_cuda_judge(cuda, cuda->driver.stream_create(&cuda->lanes[i].stream, NP_CU_STREAM_NON_BLOCKING),
                                   "cuStreamCreate", NEAP_DEVICE_FULL);
        }
    }
    return status;
}

static neap_status open_parts(np_cuda *cuda, const np_device_settings *settings, neap_error *error)
{
    np_cuda_visit visit;
    np_cu_context context = NULL;
    neap_status status = find_device(cuda, settings->number, error);
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.primary_retain(&context, cuda->ordinal), "cuDevicePrimaryCtxRetain",
                               NEAP_DEVICE_FULL);
    }
    if (status == NEAP_OK) {
        cuda->context = context;
        status = np_cuda_enter(cuda, &visit);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = size_up(cuda, settings, error);
    if (status == NEAP_OK) {
        np_pagemap_init(&cuda->pages, cuda->base.memory, cuda->base.page_bytes);
        status = open_streams(cuda);
    }
    if (status == NEAP_OK) {
        status = np_cuda_records_open(cuda);
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

neap_status np_cuda_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                         np_device **device)
{
    neap_error own = {""};
    neap_status status;
    np_cuda *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return np_fail_memory(error);
    }
    made->base = (np_device){.api = &cuda_interface,
                             .memory = memory,
                             .kind = "cuda",
                             .page_bytes = 1,
                             .n_streams = settings->n_streams,
                             .room_bytes = UINT64_MAX};
    made->link = settings->link;
    made->is_link_given = settings->link.out_gbs > 0;
    made->adopts = settings->adopts;
    np_pagemap_init(&made->pages, memory, 1);
    status = np_cuda_driver_load(&made->driver, &own);
    if (status == NEAP_OK) {
        status = open_parts(made, settings, &own);
    }
    if (status != NEAP_OK) {
        if (own.text[0] == '\0') {
            (void)np_fail(&own, status, "cuda:%u could not be opened: %s", settings->number,
                          made->problem[0] ? made->problem : neap_status_message(status));
        }
        cuda_free(&made->base);
        return np_fail(error, status, "%s", own.text);
    }
    *device = &made->base;
    return NEAP_OK;
}
