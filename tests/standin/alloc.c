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

np_cu_result cuMemAlloc_v2(np_cu_address *address, size_t bytes)
{
    char *at;
    int device;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    device = current_context()->device;
    if (bytes == 0 || bytes > SIZE_MAX / 2) {
        return end(NP_CU_INVALID_VALUE);
    }
    if (!memory_take(device, bytes)) {
        return end(NP_CU_OUT_OF_MEMORY);
    }
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        misuse("the machine has no memory left");
    }
    memset(at, 0xa5, bytes);
    ranges_add(&allocations, (range){.at = at, .bytes = bytes, .device = device});
    standin.counts.n_allocations++;
    *address = (np_cu_address)(uintptr_t)at;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemFree_v2(np_cu_address address)
{
    range *r;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    if (address == 0) {
        return end(NP_CU_SUCCESS);
    }
    streams_drain();
    r = ranges_find(&allocations, pointer(address));
    if (!r || r->at != pointer(address)) {
        misuse("cuMemFree: %p was not allocated", (void *)pointer(address));
    }
    (void)munmap(r->at, r->bytes);
    memory_give(r->device, r->bytes);
    ranges_drop(&allocations, r);
    standin.counts.n_allocations--;
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
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
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
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    ranges_drop(&registered, check_registered(host, "cuMemHostUnregister"));
    standin.counts.n_registered--;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
    char *at;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    at = flags > 7 || bytes == 0 ? MAP_FAILED
                                 : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return end(NP_CU_INVALID_VALUE);
    }
    ranges_add(&registered, (range){.at = at, .bytes = bytes, .is_own = true});
    standin.counts.n_registered++;
    *host = at;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuMemFreeHost(void *host)
{
    range *r;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
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
