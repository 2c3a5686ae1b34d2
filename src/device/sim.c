/* sim.c: a device without a device: real bytes, virtual time.
 *
 * Work runs at once, in the thread that gives it, on the machine's memory (memfd.h): whatever it waits for was given before
 * it, and so has run before it. When it would have run is another matter, and the virtual clock's (virtual.h). The same
 * calls give the same times, always.
 *
 * Running in the order given hides mistakes: a missing wait does no harm here. So every use of a byte is watched
 * (order.h), and `problem` tells of the first that is not ordered, or not mapped. Work that uses what is not mapped is not
 * run: it would be a fault.
 *
 * The clock stands still unless the host waits: a loop that asks is_done until it is true never ends. */
#include <stdatomic.h>
#include <string.h>

#include "base/status.h"
#include "device/kinds.h"
#include "device/memfd.h"
#include "device/order.h"
#include "device/virtual.h"

typedef struct sim_device {
    np_device base;
    np_memfd memfd;
    np_virtual time;
    np_order *order;
    _Atomic uint64_t now_ns; /* time.now_ns, for those who ask at any moment */
} sim_device;

/* ---- work ---- */

/* What a task is given is its own: aligned for any type, and free to be written. */
typedef union argument {
    max_align_t alignment;
    unsigned char bytes[NEAP_ARG_MAX];
} argument;

static neap_status sim_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark)
{
    sim_device *sim = (sim_device *)device;
    uint64_t given = sim->time.streams[stream].mark + 1;
    bool can_run;
    neap_status status = np_virtual_reserve(&sim->time, stream);
    if (status == NEAP_OK) {
        status = np_order_launch(sim->order, stream, given, task->touches, task->n_touches, &can_run);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (can_run && task->run) {
        argument arg;
        if (task->arg_bytes > 0) {
            memcpy(arg.bytes, task->arg, task->arg_bytes);
        }
        task->run(arg.bytes);
    }
    np_virtual_launch(&sim->time, stream, task->duration_ns, task->times);
    *mark = given;
    return NEAP_OK;
}

static neap_status sim_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                            uint64_t *mark)
{
    sim_device *sim = (sim_device *)device;
    uint64_t given = sim->time.streams[stream].mark + 1;
    bool can_run;
    neap_status status = np_virtual_reserve(&sim->time, stream);
    if (status == NEAP_OK) {
        status = np_order_copy(sim->order, stream, given, to, from, bytes, &can_run);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (can_run && bytes > 0) {
        memcpy(to, from, bytes);
    }
    np_virtual_copy(&sim->time, stream, bytes);
    *mark = given;
    return NEAP_OK;
}

static neap_status sim_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    sim_device *sim = (sim_device *)device;
    neap_status status = np_virtual_reserve(&sim->time, stream);
    if (status == NEAP_OK) {
        np_virtual_wait(&sim->time, stream, other, mark);
        np_order_wait(sim->order, stream, other, mark);
    }
    return status;
}

static uint64_t sim_mark(const np_device *device, np_stream stream)
{
    return ((const sim_device *)device)->time.streams[stream].mark;
}

/* To have asked is to know, for the one who checks. */
static bool sim_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    const sim_device *sim = (const sim_device *)device;
    if (sim->time.streams[stream].done < mark) {
        return false;
    }
    np_order_host_knows(sim->order, stream, mark);
    return true;
}

static neap_status sim_sync(np_device *device, np_stream stream, uint64_t mark)
{
    sim_device *sim = (sim_device *)device;
    np_virtual_sync(&sim->time, stream, mark);
    np_order_host_knows(sim->order, stream, mark);
    atomic_store(&sim->now_ns, (uint64_t)(sim->time.now_ns + 0.5));
    return NEAP_OK;
}

/* ---- memory ---- */

static neap_status sim_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    sim_device *sim = (sim_device *)device;
    neap_status status = np_pagemap_reserve_commit(&sim->order->pages, first_page, n_pages);
    if (status == NEAP_OK) {
        status = np_memfd_commit(&sim->memfd, first_page, n_pages);
    }
    return status == NEAP_OK ? np_order_commit(sim->order, first_page, n_pages) : status;
}

static void sim_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    sim_device *sim = (sim_device *)device;
    np_order_release(sim->order, first_page, n_pages);
    np_memfd_release(&sim->memfd, first_page, n_pages);
}

static neap_status sim_reserve(np_device *device, uint64_t n_pages, char **address)
{
    sim_device *sim = (sim_device *)device;
    char *found;
    neap_status status = np_memfd_reserve(&sim->memfd, n_pages, &found);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_order_reserve(sim->order, found, n_pages);
    if (status != NEAP_OK) {
        np_memfd_unreserve(&sim->memfd, found, n_pages);
        return status;
    }
    *address = found;
    return NEAP_OK;
}

static void sim_unreserve(np_device *device, char *address, uint64_t n_pages)
{
    sim_device *sim = (sim_device *)device;
    np_order_unreserve(sim->order, address, n_pages);
    np_memfd_unreserve(&sim->memfd, address, n_pages);
}

static neap_status sim_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    sim_device *sim = (sim_device *)device;
    neap_status status = np_memfd_map(&sim->memfd, address, first_page, n_pages);
    if (status == NEAP_OK) {
        np_order_map(sim->order, address, first_page, n_pages);
    }
    return status;
}

static void sim_unmap(np_device *device, char *address, uint64_t n_pages)
{
    sim_device *sim = (sim_device *)device;
    np_order_unmap(sim->order, address, n_pages);
    np_memfd_unmap(&sim->memfd, address, n_pages);
}

static neap_status sim_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    char *made = np_memory_alloc(device->memory, bytes, 1);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    *host = made;
    return NEAP_OK;
}

static void sim_host_free(np_device *device, char *host, uint64_t bytes)
{
    np_order_host_free(((sim_device *)device)->order, host, bytes);
    np_memory_free(device->memory, host, bytes, 1);
}

/* ---- facts ---- */

static neap_status sim_link(np_device *device, neap_link *link)
{
    *link = ((const sim_device *)device)->time.link;
    return NEAP_OK;
}

static uint64_t sim_now_ns(const np_device *device)
{
    return atomic_load(&((const sim_device *)device)->now_ns);
}

static const char *sim_problem(const np_device *device)
{
    return np_order_problem(((const sim_device *)device)->order);
}

/* ---- opening and closing ---- */

static void sim_free(np_device *device)
{
    sim_device *sim = (sim_device *)device;
    for (np_stream i = 0; i < NP_N_STREAMS; i++) {
        np_virtual_sync(&sim->time, i, sim->time.streams[i].mark);
    }
    np_virtual_free(&sim->time);
    np_order_free(sim->order);
    np_memfd_close(&sim->memfd);
    np_memory_free(device->memory, sim, 1, sizeof *sim);
}

static const np_device_interface sim_interface = {
    .free = sim_free,
    .commit = sim_commit,
    .release = sim_release,
    .reserve = sim_reserve,
    .unreserve = sim_unreserve,
    .map = sim_map,
    .unmap = sim_unmap,
    .host_alloc = sim_host_alloc,
    .host_free = sim_host_free,
    .launch = sim_launch,
    .copy = sim_copy,
    .wait = sim_wait,
    .mark = sim_mark,
    .is_done = sim_is_done,
    .sync = sim_sync,
    .link = sim_link,
    .now_ns = sim_now_ns,
    .native = NULL,
    .problem = sim_problem,
};

neap_status np_sim_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                        np_device **device)
{
    sim_device *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status = made ? np_order_create(memory, settings->page_bytes, &made->order) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_memfd_open(&made->memfd, settings->page_bytes);
    }
    if (status != NEAP_OK) {
        if (made) {
            np_order_free(made->order);
            np_memory_free(memory, made, 1, sizeof *made);
        }
        return np_fail(error, status, "sim: %s", neap_status_message(status));
    }
    made->base = (np_device){.api = &sim_interface,
                             .memory = memory,
                             .kind = "sim",
                             .page_bytes = settings->page_bytes,
                             .n_pages = settings->n_pages,
                             .n_streams = settings->n_streams,
                             .wants_touches = true,
                             .room_bytes = UINT64_MAX};
    np_virtual_init(&made->time, memory, &settings->link);
    *device = &made->base;
    return NEAP_OK;
}
