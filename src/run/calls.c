/* calls.c: the calls of a device that are no events of its own. */
#include <string.h>

#include "run/manager.h"

void *neap_data(const neap_block *block)
{
    return block->address;
}

uint64_t neap_block_bytes(const neap_block *block)
{
    return block->bytes;
}

void *neap_stream_native(neap_device *device, unsigned stream)
{
    bool is_there = stream < device->device->n_streams && device->device->api->native;
    return is_there ? device->device->api->native(device->device, stream) : NULL;
}

neap_status neap_stream_wait(neap_device *device, unsigned stream, unsigned other)
{
    neap_status status;
    np_device_fail_clear();
    if (stream >= device->device->n_streams || other >= device->device->n_streams) {
        return np_device_fail(NEAP_BAD_ARGUMENT, "the device has %u streams", device->device->n_streams);
    }
    if (np_check_process(device) != NEAP_OK) {
        return NEAP_DEVICE_FAILED;
    }
    (void)pthread_mutex_lock(&device->lock);
    status = stream == other ? NEAP_OK
                             : device->device->api->wait(device->device, stream, other,
                                                         device->device->api->mark(device->device, other));
    (void)pthread_mutex_unlock(&device->lock);
    return status == NEAP_OK ? NEAP_OK : np_device_fail(status, "%s", neap_status_message(status));
}

neap_status neap_sync(neap_device *device)
{
    neap_status status;
    np_device_fail_clear();
    if (np_check_process(device) != NEAP_OK) {
        return NEAP_DEVICE_FAILED;
    }
    (void)pthread_mutex_lock(&device->lock);
    status = np_drain(device);
    (void)pthread_mutex_unlock(&device->lock);
    return status == NEAP_OK ? NEAP_OK : np_device_fail(status, "%s", neap_status_message(status));
}

static neap_status check_bounds(const neap_block *block, uint64_t offset, uint64_t bytes)
{
    np_device_fail_clear();
    return offset <= block->bytes && bytes <= block->bytes - offset
               ? NEAP_OK
               : np_device_fail(NEAP_BAD_ARGUMENT, "%llu bytes from byte %llu on, of a block of %llu",
                                (unsigned long long)bytes, (unsigned long long)offset,
                                (unsigned long long)block->bytes);
}

static neap_status copy_host(neap_device *m, const char *name, const neap_block *block, neap_access_kind kind,
                             const np_host_copy *copy)
{
    neap_block *used = (neap_block *)(uintptr_t)block; /* its contents are read only, its bookkeeping is not */
    neap_work work = {.name = name, .run = np_host_copy_run, .arg = copy, .arg_bytes = sizeof *copy};
    neap_use use = {.block = used, .kind = kind};
    neap_status status = neap_exec(m, &work, &use, 1);
    if (status != NEAP_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&m->lock); /* of stream 0 alone: others may be waiting for it */
    status = m->device->api->sync(m->device, 0, m->device->api->mark(m->device, 0));
    (void)pthread_mutex_unlock(&m->lock);
    return status == NEAP_OK ? NEAP_OK : np_device_fail(status, "%s: %s", name, neap_status_message(status));
}

neap_status neap_write(neap_device *device, neap_block *block, uint64_t offset, const void *from, uint64_t bytes)
{
    bool is_whole = offset == 0 && bytes == block->bytes;
    neap_status status = check_bounds(block, offset, bytes);
    if (status == NEAP_OK) {
        np_host_copy copy = {.to = block->address + offset, .from = from, .bytes = bytes};
        status = copy_host(device, "neap.write", block, is_whole ? NEAP_ACCESS_WRITE : NEAP_ACCESS_UNKNOWN, &copy);
    }
    return status;
}

neap_status neap_read(neap_device *device, const neap_block *block, uint64_t offset, void *to, uint64_t bytes)
{
    neap_status status = check_bounds(block, offset, bytes);
    if (status == NEAP_OK) {
        np_host_copy copy = {.to = to, .from = block->address + offset, .bytes = bytes};
        status = copy_host(device, "neap.read", block, NEAP_ACCESS_READ, &copy);
    }
    return status;
}
