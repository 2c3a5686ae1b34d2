/* pool.c: allocations in the order of streams. One pool a device, which holds no more than what is in use.
 *
 * The memory is there at once; what is freed goes back when its stream comes to it. In a capture, memory belongs to the
 * graph: a free in it is nothing, so that the graph finds the memory at every launch. */
#include <string.h>

#include "standin/ranges.h"
#include "standin/standin_state.h"

typedef struct pool {
    object base;
    int device;
    uint64_t release_threshold;
    uint64_t used; /* bytes */
    uint64_t most_used;
} pool;

static pool *pools[MAX_DEVICES];

enum { RELEASE_THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH }; /* CUmemPool_attribute */

static char *pointer(np_cu_address address)
{
    return (char *)(uintptr_t)address;
}

static pool *pool_of(int device)
{
    pool **p = &pools[device];
    if (!*p) {
        *p = object_make(sizeof **p, POOL);
        (*p)->device = device;
    }
    return *p;
}

/* ---- pools ---- */

static np_cu_result get_pool(void **handle, np_cu_device device)
{
    if (device < 0 || device >= standin.n_devices) {
        return NP_CU_INVALID_DEVICE;
    }
    *handle = pool_of(device);
    return NP_CU_SUCCESS;
}

np_cu_result cuDeviceGetDefaultMemPool(void **handle, np_cu_device device)
{
    BEGIN(NEEDS_INIT, handle, device);
    return end(get_pool(handle, device));
}

np_cu_result cuDeviceGetMemPool(void **handle, np_cu_device device)
{
    BEGIN(NEEDS_INIT, handle, device);
    return end(get_pool(handle, device));
}

np_cu_result cuMemPoolTrimTo(void *handle, size_t bytes)
{
    BEGIN(NEEDS_INIT, handle, bytes);
    (void)object_check(handle, POOL, __func__);
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemPoolSetAttribute(void *handle, int attribute, void *value)
{
    pool *p;
    uint64_t number;
    BEGIN(NEEDS_INIT, handle, attribute, value);
    p = object_check(handle, POOL, __func__);
    if (attribute < RELEASE_THRESHOLD) {
        return end(NP_CU_SUCCESS); /* how memory may be reused */
    }
    memcpy(&number, value, sizeof number);
    if (attribute == RELEASE_THRESHOLD) {
        p->release_threshold = number;
    } else if ((attribute != RESERVED_HIGH && attribute != USED_HIGH) || number != 0) {
        return end(NP_CU_INVALID_VALUE);
    } else {
        p->most_used = p->used;
    }
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemPoolGetAttribute(void *handle, int attribute, void *value)
{
    const pool *p;
    uint64_t number;
    BEGIN(NEEDS_INIT, handle, attribute, value);
    p = object_check(handle, POOL, __func__);
    if (attribute < 1 || attribute > USED_HIGH) {
        return end(NP_CU_INVALID_VALUE);
    }
    number = attribute == RELEASE_THRESHOLD                         ? p->release_threshold
             : attribute == RESERVED || attribute == USED           ? p->used
             : attribute == RESERVED_HIGH || attribute == USED_HIGH ? p->most_used
                                                                    : 1;
    memcpy(value, &number, attribute < RELEASE_THRESHOLD ? sizeof(int) : sizeof number);
    return end(NP_CU_SUCCESS);
}

/* ---- memory ---- */

static np_cu_result alloc(np_cu_address *address, size_t bytes, pool *p, np_cu_stream on, const char *symbol)
{
    const stream *s = stream_of(on, symbol);
    allocation_kind kind = s->capture ? ALLOCATED_IN_CAPTURE : ALLOCATED_ASYNC;
    size_t whole = bytes > SIZE_MAX / 2 ? bytes : (bytes + 511) / 512 * 512;
    np_cu_result result;
    if (s->capture && s->capture->is_invalid) {
        return (np_cu_result)CU_CAPTURE_INVALIDATED;
    }
    result = allocation_make(p->device, whole, kind, address);
    if (result == NP_CU_OUT_OF_MEMORY) { /* some may be on its way back */
        streams_drain();
        result = allocation_make(p->device, whole, kind, address);
    }
    if (result == NP_CU_SUCCESS) {
        p->used += whole;
        p->most_used = p->used > p->most_used ? p->used : p->most_used;
    }
    return result;
}

np_cu_result cuMemAllocAsync(np_cu_address *address, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, address, bytes, on);
    return end(alloc(address, bytes, pool_of(current_context()->device), on, __func__));
}

np_cu_result cuMemAllocFromPoolAsync(np_cu_address *address, size_t bytes, void *handle, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, address, bytes, handle, on);
    return end(alloc(address, bytes, object_check(handle, POOL, __func__), on, __func__));
}

np_cu_result cuMemFreeAsync(np_cu_address address, np_cu_stream on)
{
    stream *s;
    range *r;
    item *work;
    BEGIN(NEEDS_CONTEXT, address, on);
    s = stream_of(on, __func__);
    if (address == 0) {
        return end(NP_CU_SUCCESS);
    }
    r = allocation_check(pointer(address), __func__);
    if (s->capture) {
        return end(r->kind == ALLOCATED_IN_CAPTURE ? NP_CU_SUCCESS : NP_CU_INVALID_VALUE);
    }
    r->is_freed = true;
    if (r->kind != ALLOCATED_PLAIN) {
        pool_of(r->device)->used -= r->bytes;
    }
    work = item_make(ITEM_FREE, 0);
    work->to = r->at;
    return end(stream_give(s, work));
}
