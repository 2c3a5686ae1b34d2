/* cuda_busy.c: how fast copies are while the program's kernels run.
 *
 * Some kernels leave copies less than the link has: those of convolutions in full single precision, on an H200, 49 of 55 GB/s
 * out and 52 in; others nearly all of it. So a plan for such a program is to know, and it is measured: rows of large copies,
 * out and in in turn, on a stream of their own, between two events of the device's clock. They are given, and looked at when
 * they are done: neither the program nor its kernels wait. What they have of the link's speeds at their best is the
 * share. */
#include "device/cuda_state.h"

enum {
    MOST_BYTES = 16 << 20, /* of a copy: as fast as they get; a device that is nearly full is measured with less */
    LEAST_BYTES = 1 << 20,
    N_COPIES = 4, /* in a row */
};

#define LEAST_SHARE 0.25 /* below that something else happened */

#define TRY(call, name)                                                                           \
    do {                                                                                          \
        neap_status try_status = np_cuda_judge(cuda, cuda->driver.call, #name, NEAP_DEVICE_FULL); \
        if (try_status != NEAP_OK) {                                                              \
            return try_status;                                                                    \
        }                                                                                         \
    } while (0)

static neap_status open_with(np_cuda *cuda, uint64_t bytes)
{
    np_cuda_busy *busy = &cuda->busy;
    busy->bytes = bytes;
    TRY(stream_create(&busy->stream, NP_CU_STREAM_NON_BLOCKING), cuStreamCreate);
    TRY(event_create(&busy->begin, NP_CU_EVENT_DEFAULT), cuEventCreate);
    TRY(event_create(&busy->end, NP_CU_EVENT_DEFAULT), cuEventCreate);
    TRY(alloc(&busy->memory, bytes), cuMemAlloc);
    return np_cuda_host_alloc(&cuda->base, bytes, &busy->host);
}

void np_cuda_busy_close(np_cuda *cuda)
{
    np_cuda_busy *busy = &cuda->busy;
    const np_cuda_driver *driver = &cuda->driver;
    if (busy->stream) {
        (void)driver->stream_sync(busy->stream);
        (void)driver->stream_destroy(busy->stream);
    }
    if (busy->begin) {
        (void)driver->event_destroy(busy->begin);
    }
    if (busy->end) {
        (void)driver->event_destroy(busy->end);
    }
    if (busy->memory) {
        (void)driver->free(busy->memory);
    }
    if (busy->host) {
        np_cuda_host_free(&cuda->base, busy->host, busy->bytes);
    }
    *busy = (np_cuda_busy){0};
}

static neap_status give(np_cuda *cuda, uint32_t n_rounds)
{
    np_cuda_busy *busy = &cuda->busy;
    busy->n_rounds = n_rounds;
    TRY(event_record(busy->begin, busy->stream), cuEventRecord);
    for (uint32_t i = 0; i < 2 * N_COPIES * n_rounds; i++) {
        if (i / N_COPIES % 2 == 0) {
            TRY(copy_out(busy->host, busy->memory, busy->bytes, busy->stream), cuMemcpyDtoHAsync);
        } else {
            TRY(copy_in(busy->memory, busy->host, busy->bytes, busy->stream), cuMemcpyHtoDAsync);
        }
    }
    TRY(event_record(busy->end, busy->stream), cuEventRecord);
    return NEAP_OK;
}

neap_status np_cuda_time_busy(np_device *device, uint32_t n_rounds)
{
    np_cuda *cuda = (np_cuda *)device;
    np_cuda_visit visit;
    neap_status status;
    if (cuda->busy.stream || cuda->is_link_given || cuda->n_link_probes == 0) {
        return NEAP_BAD_ARGUMENT; /* there is nothing to compare with, or it is known */
    }
    status = np_cuda_enter(cuda, &visit);
    if (status != NEAP_OK) {
        return status;
    }
    status = NEAP_DEVICE_FULL;
    for (uint64_t bytes = MOST_BYTES; bytes >= LEAST_BYTES && status == NEAP_DEVICE_FULL; bytes /= 2) {
        np_cuda_busy_close(cuda);
        status = bytes <= device->room_bytes ? open_with(cuda, bytes) : NEAP_DEVICE_FULL;
    }
    if (status == NEAP_OK) {
        status = give(cuda, n_rounds);
    }
    if (status != NEAP_OK) {
        np_cuda_busy_close(cuda);
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

/* Of the speeds that the link has at its best. */
static double find_share(const np_cuda *cuda)
{
    const np_cuda_busy *busy = &cuda->busy;
    const neap_link *link = &cuda->link;
    double bytes = (double)busy->bytes * N_COPIES * busy->n_rounds; /* each way */
    float ms = 0;
    double share;
    if (cuda->driver.event_elapsed(&ms, busy->begin, busy->end) != NP_CU_SUCCESS || !(ms > 0)) {
        return 0;
    }
    share = (bytes / link->out_gbs + bytes / link->in_gbs) / ((double)ms * 1e6);
    return share >= LEAST_SHARE && share < 1 ? share : 0;
}

bool np_cuda_take_busy(np_device *device, double *share)
{
    np_cuda *cuda = (np_cuda *)device;
    np_cuda_visit visit;
    np_cu_result result;
    *share = cuda->link.busy_share;
    if (!cuda->busy.stream) {
        return true;
    }
    if (np_cuda_enter(cuda, &visit) != NEAP_OK) {
        return false;
    }
    result = cuda->driver.event_query(cuda->busy.end);
    if (result == NP_CU_SUCCESS) {
        *share = cuda->link.busy_share = find_share(cuda);
    }
    if (result != NP_CU_NOT_READY) {
        np_cuda_busy_close(cuda);
    }
    np_cuda_leave(cuda, &visit);
    return result != NP_CU_NOT_READY;
}
