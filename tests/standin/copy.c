/* copy.c: copies.
 *
 * Device addresses must be mapped when the call is made, and stay so until it is done (memory.c looks). Copies of host
 * memory that is not registered return only when they are done, as the real driver's may, and are counted. */
#include "standin/standin_state.h"

void check_device(const void *at, size_t bytes, const char *symbol)
{
    if (!memory_is_device(at, bytes)) {
        misuse("%s: %p, %zu bytes, is not mapped on the device", symbol, at, bytes);
    }
}

void check_host(const void *at, const char *symbol)
{
    if (!at || memory_is_any_device(at)) {
        misuse("%s: %p is no address of the host", symbol, at);
    }
}

static np_cu_result give_copy(np_cu_stream on, char *to, const char *from, size_t bytes, bool waits, const char *symbol)
{
    stream *s = stream_of(on, symbol);
    item *work = item_make(ITEM_COPY, 0);
    np_cu_result result;
    work->to = to;
    work->from = from;
    work->bytes = bytes;
    result = stream_give(s, work);
    if (result == NP_CU_SUCCESS && waits && !s->capture) {
        stream_drain(s);
    }
    return result;
}

/* Host memory at `host`: whether a copy of it must be waited for. */
static bool is_pageable(const void *host, size_t bytes)
{
    bool is = !memory_is_registered(host, bytes);
    standin.counts.n_unregistered_copies += is;
    return is;
}

static np_cu_result copy_in(np_cu_address to, const void *from, size_t bytes, np_cu_stream on, bool waits,
                            const char *symbol)
{
    if (bytes == 0) {
        return NP_CU_SUCCESS;
    }
    check_device((void *)(uintptr_t)to, bytes, symbol);
    check_host(from, symbol);
    waits = is_pageable(from, bytes) || waits;
    return give_copy(on, (char *)(uintptr_t)to, from, bytes, waits, symbol);
}

static np_cu_result copy_out(void *to, np_cu_address from, size_t bytes, np_cu_stream on, bool waits,
                             const char *symbol)
{
    if (bytes == 0) {
        return NP_CU_SUCCESS;
    }
    check_device((void *)(uintptr_t)from, bytes, symbol);
    check_host(to, symbol);
    waits = is_pageable(to, bytes) || waits;
    return give_copy(on, to, (const char *)(uintptr_t)from, bytes, waits, symbol);
}

static np_cu_result copy_device(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on, const char *symbol)
{
    if (bytes == 0) {
        return NP_CU_SUCCESS;
    }
    check_device((void *)(uintptr_t)to, bytes, symbol);
    check_device((void *)(uintptr_t)from, bytes, symbol);
    return give_copy(on, (char *)(uintptr_t)to, (const char *)(uintptr_t)from, bytes, false, symbol);
}

np_cu_result cuMemcpyHtoDAsync_v2(np_cu_address to, const void *from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, bytes, on);
    return end(copy_in(to, from, bytes, on, false, __func__));
}

np_cu_result cuMemcpyDtoHAsync_v2(void *to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, bytes, on);
    return end(copy_out(to, from, bytes, on, false, __func__));
}

np_cu_result cuMemcpyDtoDAsync_v2(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, bytes, on);
    return end(copy_device(to, from, bytes, on, __func__));
}

np_cu_result cuMemcpyHtoD_v2(np_cu_address to, const void *from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, from, bytes);
    return end(copy_in(to, from, bytes, NULL, true, __func__));
}

np_cu_result cuMemcpyDtoH_v2(void *to, np_cu_address from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, from, bytes);
    return end(copy_out(to, from, bytes, NULL, true, __func__));
}

np_cu_result cuMemcpyDtoD_v2(np_cu_address to, np_cu_address from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, from, bytes);
    return end(copy_device(to, from, bytes, NULL, __func__)); /* not waited for, as with the real one */
}

static np_cu_result copy_any(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on, bool waits,
                             const char *symbol)
{
    bool to_device = memory_is_any_device((void *)(uintptr_t)to);
    bool from_device = memory_is_any_device((void *)(uintptr_t)from);
    if (to_device && from_device) {
        return copy_device(to, from, bytes, on, symbol);
    }
    if (to_device) {
        return copy_in(to, (const void *)(uintptr_t)from, bytes, on, waits, symbol);
    }
    if (from_device) {
        return copy_out((void *)(uintptr_t)to, from, bytes, on, waits, symbol);
    }
    return give_copy(on, (char *)(uintptr_t)to, (const char *)(uintptr_t)from, bytes, true, symbol);
}

np_cu_result cuMemcpyAsync(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT, to, from, bytes, on);
    return end(copy_any(to, from, bytes, on, false, __func__));
}

np_cu_result cuMemcpy(np_cu_address to, np_cu_address from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, to, from, bytes);
    return end(copy_any(to, from, bytes, NULL, true, __func__));
}
