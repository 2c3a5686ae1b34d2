#include "run/host.h"

enum { UNIT = 4096, CHUNK_PAGES = 32 };

void np_host_init(np_host *host, np_device *device)
{
    *host = (np_host){.device = device};
    np_heap_init(&host->heap, device->memory);
}

void np_host_free(np_host *host)
{
    for (size_t i = 0; i < host->chunks.n; i++) {
        host->device->api->host_free(host->device, host->chunks.items[i].host, host->chunks.items[i].bytes);
    }
    np_array_free(host->device->memory, &host->chunks);
    np_heap_free(&host->heap);
    host->held_bytes = 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through the slots */
neap_status np_host_add(np_host *host, char *memory, uint64_t bytes)
{
    np_host_chunk chunk = {.host = memory, .bytes = bytes, .begin = host->heap.held};
    uint32_t block;
    neap_status status = np_array_reserve(host->device->memory, &host->chunks, host->chunks.n + 1);
    if (status == NEAP_OK) {
        status = np_heap_add_chunk(&host->heap, bytes, &block);
    }
    if (status == NEAP_OK) {
        host->chunks.items[host->chunks.n++] = chunk;
        host->held_bytes += bytes;
    }
    return status;
}

static neap_status grow_by(np_host *host, uint64_t bytes)
{
    char *memory;
    neap_status status = host->device->api->host_alloc(host->device, bytes, &memory);
    if (status == NEAP_OK) {
        status = np_host_add(host, memory, bytes);
        if (status != NEAP_OK) {
            host->device->api->host_free(host->device, memory, bytes);
        }
    }
    return status;
}

/* A whole chunk if there is as much, or else just what is needed. */
static neap_status grow(np_host *host, uint64_t bytes)
{
    uint64_t usual = CHUNK_PAGES * host->device->page_bytes / UNIT * UNIT;
    neap_status status = NEAP_NO_MEMORY;
    if (bytes < usual) {
        status = grow_by(host, usual);
    }
    return status == NEAP_OK ? NEAP_OK : grow_by(host, bytes);
}

static char *address_of(const np_host *host, uint64_t address)
{
    size_t low = 0;
    size_t high = host->chunks.n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (host->chunks.items[middle].begin <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return host->chunks.items[low].host + (address - host->chunks.items[low].begin);
}

neap_status np_host_take(np_host *host, uint64_t bytes, np_slot *slot)
{
    uint64_t size = bytes <= UINT64_MAX - UNIT ? (bytes + UNIT - 1) / UNIT * UNIT : bytes;
    uint32_t block = np_heap_best_fit(&host->heap, size);
    neap_status status = NEAP_OK;
    if (block == NP_HEAP_NONE) {
        status = grow(host, size);
        block = status == NEAP_OK ? np_heap_best_fit(&host->heap, size) : block;
    }
    if (status == NEAP_OK) {
        status = np_heap_take(&host->heap, block, size);
    }
    if (status == NEAP_OK) {
        *slot = (np_slot){address_of(host, host->heap.blocks.items[block].address), size, block};
        host->used_bytes += size;
    }
    return status;
}

void np_host_give(np_host *host, np_slot *slot)
{
    if (slot->host) {
        np_heap_give(&host->heap, slot->block);
        host->used_bytes -= slot->bytes;
    }
    *slot = (np_slot){0};
}

bool np_host_is_valid(const np_host *host)
{
    uint64_t held = 0;
    for (size_t i = 0; i < host->chunks.n; i++) {
        if (host->chunks.items[i].begin != held || !host->chunks.items[i].host) {
            return false;
        }
        held += host->chunks.items[i].bytes;
    }
    return held == host->held_bytes && held == host->heap.held && host->used_bytes <= held &&
           np_heap_is_valid(&host->heap);
}
