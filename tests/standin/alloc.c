/* alloc.c: plain allocations on the device and the host, and registered host memory. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin/ranges.h"
#include "standin/standin_state.h"

static ranges allocations, registered;

static char *pointer(np_cu_address address)
{
    return (char *)(uintptr_t)address;
}

/* ---- on the device: freed once all work is done ---- */

np_cu_result allocation_make(int device, size_t bytes, allocation_kind kind, np_cu_address *address)
{
    char *at;
    if (bytes == 0 || bytes > SIZE_MAX / 2) {
        return NP_CU_INVALID_VALUE;
    }
    if (!memory_take(device, bytes)) {
        return NP_CU_OUT_OF_MEMORY;
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        misuse("the machine has no memory left");
    }
    (void)madvise(at, bytes, MADV_DONTFORK); /* a child has no device */
    memset(at, 0xa5, bytes);
    ranges_add(&allocations, (range){.at = at, .bytes = bytes, .device = device, .kind = (int)kind});
    standin.counts.n_allocations++;
    *address = (np_cu_address)(uintptr_t)at;
    return NP_CU_SUCCESS;
}

range *allocation_check(const char *at, const char *symbol)
{
    range *r = ranges_find(&allocations, at);
    if (!r || r->at != at) {
        misuse("%s: %p was not allocated", symbol, (const void *)at);
    }
    if (r->is_freed) {
        misuse("%s: %p was freed already", symbol, (const void *)at);
    }
    return r;
}

void allocation_end(char *at)
{
    const range *r = ranges_find(&allocations, at);
    (void)munmap(r->at, r->bytes);
    memory_give(r->device, r->bytes);
    ranges_drop(&allocations, r);
    standin.counts.n_allocations--;
}

np_cu_result cuMemAlloc_v2(np_cu_address *address, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, address, bytes);
    return end(allocation_make(current_context()->device, bytes, ALLOCATED_PLAIN, address));
}

np_cu_result cuMemFree_v2(np_cu_address address)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, address);
    if (address == 0) {
        return end(NP_CU_SUCCESS);
    }
    streams_drain();
    (void)allocation_check(pointer(address), "cuMemFree");
    allocation_end(pointer(address));
    return end(NP_CU_SUCCESS);
}

/* ---- what is known of an address ---- */

np_cu_result cuMemGetAddressRange_v2(np_cu_address *base, size_t *bytes, np_cu_address address)
{
    const range *r;
    BEGIN(NEEDS_CONTEXT, base, bytes, address);
    r = ranges_find(&allocations, pointer(address));
    if (!r) {
        return end((np_cu_result)CU_NOT_FOUND);
    }
    if (base) {
        *base = (np_cu_address)(uintptr_t)r->at;
    }
    if (bytes) {
        *bytes = r->bytes;
    }
    return end(NP_CU_SUCCESS);
}

/* CUipcMemHandle. */
typedef struct ipc_handle {
    char bytes[64];
} ipc_handle;

/* Plain allocations alone can be exported, as with the real one: neither mapped memory nor that of a pool. */
np_cu_result cuIpcGetMemHandle(ipc_handle *handle, np_cu_address address)
{
    const range *r;
    BEGIN(NEEDS_CONTEXT, handle, address);
    r = ranges_find(&allocations, pointer(address));
    if (!r || r->kind != ALLOCATED_PLAIN) {
        return end(NP_CU_INVALID_VALUE);
    }
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &r->at, sizeof r->at);
    return end(NP_CU_SUCCESS);
}

/* For others, such as a network card: from then on they use these bytes when they like. */
np_cu_result cuMemGetHandleForAddressRange(void *handle, np_cu_address address, size_t bytes, int type,
                                           unsigned long long flags)
{
    const int file = -1; /* nobody opens it */
    BEGIN(NEEDS_CONTEXT, handle, address, bytes, type, flags);
    if (!memory_is_device(pointer(address), bytes) || type != 1 || flags != 0) {
        return end(NP_CU_INVALID_VALUE);
    }
    memcpy(handle, &file, sizeof file);
    return end(NP_CU_SUCCESS);
}

enum { POINTER_MEMORY_TYPE = 2, POINTER_DEVICE_ORDINAL = 9 }; /* CUpointer_attribute */

np_cu_result cuPointerGetAttribute(void *data, int attribute, np_cu_address address)
{
    bool is_device;
    int value;
    BEGIN(NEEDS_CONTEXT, data, attribute, address);
    is_device = memory_is_any_device(pointer(address));
    if ((!is_device && !memory_is_registered(pointer(address), 1)) ||
        (attribute != POINTER_MEMORY_TYPE && attribute != POINTER_DEVICE_ORDINAL)) {
        return end(NP_CU_INVALID_VALUE);
    }
    value = attribute == POINTER_MEMORY_TYPE ? 1 + is_device : current_context()->device;
    memcpy(data, &value, sizeof value);
    return end(NP_CU_SUCCESS);
}

bool memory_is_device(const void *at, size_t bytes)
{
    const range *whole = ranges_find(&allocations, at);
    if (whole) {
        return (const char *)at + bytes <= whole->at + whole->bytes;
    }
    return memory_is_mapped(at, bytes);
}

bool memory_is_any_device(const void *at)
{
    return memory_is_reserved(at) || ranges_find(&allocations, at);
}

/* ---- host memory ---- */

bool memory_is_registered(const void *at, size_t bytes)
{
    const range *r = ranges_find(&registered, at);
    return r && (const char *)at + bytes <= r->at + r->bytes;
}

/* By whole pages of the system, as the real one does. */
np_cu_result cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)host / page * page;
    uintptr_t to = ((uintptr_t)host + bytes + page - 1) / page * page;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, host, bytes, flags);
    if (!host || bytes == 0 || flags > 15) {
        return end(NP_CU_INVALID_VALUE);
    }
    if (ranges_overlap(&registered, (char *)from, to - from)) {
        return end((np_cu_result)CU_HOST_ALREADY_REGISTERED);
    }
    ranges_add(&registered, (range){.at = (char *)from, .bytes = to - from});
    standin.counts.n_registered++;
    return end(NP_CU_SUCCESS);
}

static range *check_registered(char *host, const char *symbol)
{
    range *r = ranges_find(&registered, host);
    if (!r) {
        misuse("%s: %p is not registered", symbol, (void *)host);
    }
    streams_check_unused(r->at, r->bytes, symbol);
    return r;
}

np_cu_result cuMemHostUnregister(void *host)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, host);
    ranges_drop(&registered, check_registered(host, "cuMemHostUnregister"));
    standin.counts.n_registered--;
    return end(NP_CU_SUCCESS);
}

static np_cu_result host_alloc(void **host, size_t bytes, unsigned int flags)
{
    char *at = flags > 7 || bytes == 0 ? MAP_FAILED
                                       : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return NP_CU_INVALID_VALUE;
    }
    ranges_add(&registered, (range){.at = at, .bytes = bytes, .is_own = true});
    standin.counts.n_registered++;
    *host = at;
    return NP_CU_SUCCESS;
}

np_cu_result cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, host, bytes, flags);
    return end(host_alloc(host, bytes, flags));
}

np_cu_result cuMemAllocHost_v2(void **host, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, host, bytes);
    return end(host_alloc(host, bytes, 0));
}

np_cu_result cuMemFreeHost(void *host)
{
    range *r;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, host);
    streams_drain();
    r = check_registered(host, "cuMemFreeHost");
    if (r->at != host || !r->is_own) {
        misuse("cuMemFreeHost: %p was not allocated", host);
    }
    (void)munmap(r->at, r->bytes);
    ranges_drop(&registered, r);
    standin.counts.n_registered--;
    return end(NP_CU_SUCCESS);
}
