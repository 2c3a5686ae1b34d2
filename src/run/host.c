#include "run/host.h"

void np_host_init(np_host *host, np_device *device)
{
    *host = (np_host){.device = device};
}

static void drop(np_host *host, np_slot slot)
{
    host->device->api->host_free(host->device, slot.host, slot.bytes);
    host->held_bytes -= slot.bytes;
}

static void drop_spare(np_host *host)
{
    while (host->spare.n > 0) {
        drop(host, host->spare.items[--host->spare.n]);
    }
}

void np_host_free(np_host *host)
{
    drop_spare(host);
    np_array_free(host->device->memory, &host->spare);
}

neap_status np_host_take(np_host *host, uint64_t bytes, np_slot *slot)
{
    neap_status status;
    char *made;
    for (size_t i = host->spare.n; i-- > 0;) {
        if (host->spare.items[i].bytes == bytes) {
            *slot = host->spare.items[i];
            host->spare.items[i] = host->spare.items[--host->spare.n];
            return NEAP_OK;
        }
    }
    status = host->device->api->host_alloc(host->device, bytes, &made);
    if (status != NEAP_OK && host->spare.n > 0) {
        drop_spare(host);
        status = host->device->api->host_alloc(host->device, bytes, &made);
    }
    if (status != NEAP_OK) {
        return status;
    }
    *slot = (np_slot){made, bytes};
    host->held_bytes += bytes;
    return NEAP_OK;
}

void np_host_give(np_host *host, np_slot *slot)
{
    if (slot->host && np_array_push(host->device->memory, &host->spare, *slot) != NEAP_OK) {
        drop(host, *slot);
    }
    *slot = (np_slot){0};
}
