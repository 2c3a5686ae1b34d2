/* cpu.c: a device made of the machine's own memory and threads.
 *
 * Pages are those of a memory file (memfd.h), every stream is a thread (lane.h). Copies out and in have threads of their
 * own, so that they overlap the program's work and each other for real. They are as fast as memory is, unless a slower
 * link is to be imitated. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "device/kinds.h"
#include "device/lane.h"
#include "device/memfd.h"

enum {
    PROBE_BYTES = 8 << 20, /* of a copy that measures: more than the caches near a core hold */
    PROBE_ROUNDS = 4,
};

typedef struct cpu_device {
    np_device base;
    np_memfd memfd;
    neap_link link;               /* imitated or measured; out_gbs 0: not yet */
    np_lane *lanes[NP_N_STREAMS]; /* by stream; NULL where there is none */
} cpu_device;

/* ---- work ---- */

static np_lane *lane_of(const np_device *device, np_stream stream)
{
    return ((const cpu_device *)device)->lanes[stream];
}

static neap_status cpu_launch(np_device *device, np_stream stream, const np_task *task, uint64_t *mark)
{
    np_lane *lane = lane_of(device, stream);
    neap_status status = np_lane_launch(lane, task);
    if (status == NEAP_OK) {
        *mark = lane->mark;
    }
    return status;
}

static neap_status cpu_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                            uint64_t *mark)
{
    np_lane *lane = lane_of(device, stream);
    neap_status status = np_lane_copy(lane, to, from, bytes);
    if (status == NEAP_OK) {
        *mark = lane->mark;
    }
    return status;
}

static neap_status cpu_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    return np_lane_wait(lane_of(device, stream), lane_of(device, other), mark);
}

static uint64_t cpu_mark(const np_device *device, np_stream stream)
{
    return lane_of(device, stream)->mark;
}

static bool cpu_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    return np_counter_value(&lane_of(device, stream)->done) >= mark;
}

static neap_status cpu_sync(np_device *device, np_stream stream, uint64_t mark)
{
    np_counter_wait(&lane_of(device, stream)->done, mark);
    return NEAP_OK;
}

/* ---- memory ---- */

static np_memfd *memfd_of(np_device *device)
{
    return &((cpu_device *)device)->memfd;
}

static neap_status cpu_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    return np_memfd_commit(memfd_of(device), first_page, n_pages);
}

static void cpu_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    np_memfd_release(memfd_of(device), first_page, n_pages);
}

static neap_status cpu_reserve(np_device *device, uint64_t n_pages, char **address)
{
    return np_memfd_reserve(memfd_of(device), n_pages, address);
}

static void cpu_unreserve(np_device *device, char *address, uint64_t n_pages)
{
    np_memfd_unreserve(memfd_of(device), address, n_pages);
}

static neap_status cpu_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    return np_memfd_map(memfd_of(device), address, first_page, n_pages);
}

static void cpu_unmap(np_device *device, char *address, uint64_t n_pages)
{
    np_memfd_unmap(memfd_of(device), address, n_pages);
}

static neap_status cpu_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    char *made = np_memory_alloc(device->memory, bytes, 1);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    *host = made;
    return NEAP_OK;
}

static void cpu_host_free(np_device *device, char *host, uint64_t bytes)
{
    np_memory_free(device->memory, host, bytes, 1);
}

/* ---- facts ---- */

/* The best of a few copies, in bytes a ns. */
static double probe(char *to, const char *from)
{
    uint64_t best_ns = UINT64_MAX;
    for (int i = 0; i < PROBE_ROUNDS; i++) {
        uint64_t start_ns = np_clock_ns();
        uint64_t ns;
        memcpy(to, from, PROBE_BYTES);
        ns = np_clock_ns() - start_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return (double)PROBE_BYTES / (double)(best_ns > 0 ? best_ns : 1);
}

static neap_status measure(np_device *device, neap_link *link)
{
    char *both;
    neap_status status = cpu_host_alloc(device, 2 * (uint64_t)PROBE_BYTES, &both);
    if (status == NEAP_OK) {
        double speed;
        memset(both, 1, 2 * (size_t)PROBE_BYTES);
        speed = probe(both, both + PROBE_BYTES);
        cpu_host_free(device, both, 2 * (uint64_t)PROBE_BYTES);
        *link = (neap_link){.out_gbs = speed, .in_gbs = speed};
    }
    return status;
}

static neap_status cpu_link(np_device *device, neap_link *link)
{
    neap_link *known = &((cpu_device *)device)->link;
    neap_status status = known->out_gbs > 0 ? NEAP_OK : measure(device, known);
    if (status == NEAP_OK) {
        *link = *known;
    }
    return status;
}

static uint64_t cpu_now_ns(const np_device *device)
{
    (void)device;
    return np_clock_ns();
}

/* ---- opening and closing ---- */

static void for_each_lane(cpu_device *cpu, void (*action)(np_lane *lane))
{
    for (uint32_t i = 0; i < NP_N_STREAMS; i++) {
        if (cpu->lanes[i]) {
            action(cpu->lanes[i]);
        }
    }
}

static void cpu_free(np_device *device)
{
    cpu_device *own = (cpu_device *)device;
    for_each_lane(own, np_lane_end);
    for_each_lane(own, np_lane_join);
    for_each_lane(own, np_lane_free);
    np_memfd_close(&own->memfd);
    np_memory_free(device->memory, own, 1, sizeof *own);
}

static const np_device_interface cpu_interface = {
    .free = cpu_free,
    .commit = cpu_commit,
    .release = cpu_release,
    .reserve = cpu_reserve,
    .unreserve = cpu_unreserve,
    .map = cpu_map,
    .unmap = cpu_unmap,
    .host_alloc = cpu_host_alloc,
    .host_free = cpu_host_free,
    .launch = cpu_launch,
    .copy = cpu_copy,
    .wait = cpu_wait,
    .mark = cpu_mark,
    .is_done = cpu_is_done,
    .sync = cpu_sync,
    .link = cpu_link,
    .now_ns = cpu_now_ns,
    .native = NULL,
    .problem = NULL,
};

static neap_status open_lanes(cpu_device *cpu)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < NP_N_STREAMS && status == NEAP_OK; i++) {
        if (i < cpu->base.n_streams || i >= NP_MAX_STREAMS) {
            double imitated = i == NP_STREAM_OUT ? cpu->link.out_gbs : i == NP_STREAM_IN ? cpu->link.in_gbs : 0;
            status = np_lane_open(cpu->base.memory, imitated, &cpu->lanes[i]);
        }
    }
    return status;
}

neap_status np_cpu_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                        np_device **device)
{
    neap_status status;
    cpu_device *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return np_fail_memory(error);
    }
    made->base = (np_device){.api = &cpu_interface,
                             .memory = memory,
                             .kind = "cpu",
                             .page_bytes = settings->page_bytes,
                             .n_pages = settings->n_pages,
                             .n_streams = settings->n_streams,
                             .room_bytes = UINT64_MAX};
    made->link = settings->link;
    status = np_memfd_open(&made->memfd, settings->page_bytes);
    if (status != NEAP_OK) {
        np_memory_free(memory, made, 1, sizeof *made);
        return np_fail(error, status, "cpu: no memory file could be made");
    }
    status = open_lanes(made);
    if (status != NEAP_OK) {
        cpu_free(&made->base);
        return np_fail(error, status, "cpu: a stream could not be made: %s", neap_status_message(status));
    }
    *device = &made->base;
    return NEAP_OK;
}
