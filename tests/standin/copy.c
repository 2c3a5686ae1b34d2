/* copy.c: copies and fills.
 *
 * Device addresses must be mapped when the call is made, and stay so until it is done (memory.c looks). Copies of host
 * memory that is not registered return only when they are done, as the real driver's may, and are counted. */
#include "standin/standin_state.h"

static void check_device(const void *at, size_t bytes, const char *symbol)
{
    if (!memory_is_device(at, bytes)) {
        misuse("%s: %p, %zu bytes, is not mapped on the device", symbol, at, bytes);
    }
}

static void check_host(const void *at, const char *symbol)
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
    BEGIN(NEEDS_CONTEXT);
    return end(copy_in(to, from, bytes, on, false, __func__));
}

np_cu_result cuMemcpyDtoHAsync_v2(void *to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT);
    return end(copy_out(to, from, bytes, on, false, __func__));
}

np_cu_result cuMemcpyDtoDAsync_v2(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT);
    return end(copy_device(to, from, bytes, on, __func__));
}

np_cu_result cuMemcpyHtoD_v2(np_cu_address to, const void *from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    return end(copy_in(to, from, bytes, NULL, true, __func__));
}

np_cu_result cuMemcpyDtoH_v2(void *to, np_cu_address from, size_t bytes)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE);
    return end(copy_out(to, from, bytes, NULL, true, __func__));
}

np_cu_result cuMemcpyAsync(np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream on)
{
    bool to_device;
    bool from_device;
    BEGIN(NEEDS_CONTEXT);
    to_device = memory_is_any_device((void *)(uintptr_t)to);
    from_device = memory_is_any_device((void *)(uintptr_t)from);
    if (to_device && from_device) {
        return end(copy_device(to, from, bytes, on, __func__));
    }
    if (to_device) {
        return end(copy_in(to, (const void *)(uintptr_t)from, bytes, on, false, __func__));
    }
    if (from_device) {
        return end(copy_out((void *)(uintptr_t)to, from, bytes, on, false, __func__));
    }
    return end(give_copy(on, (char *)(uintptr_t)to, (const char *)(uintptr_t)from, bytes, true, __func__));
}

static np_cu_result give_fill(np_cu_address to, uint32_t pattern, unsigned pattern_bytes, size_t n, np_cu_stream on,
                              const char *symbol)
{
    stream *s = stream_of(on, symbol);
    item *work;
    if (n == 0) {
        return NP_CU_SUCCESS;
    }
    check_device((void *)(uintptr_t)to, n * pattern_bytes, symbol);
    work = item_make(ITEM_FILL, 0);
    work->to = (char *)(uintptr_t)to;
    work->bytes = n * pattern_bytes;
    work->pattern = pattern;
    work->pattern_bytes = pattern_bytes;
    return stream_give(s, work);
}

np_cu_result cuMemsetD8Async(np_cu_address to, unsigned char value, size_t n, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT);
    return end(give_fill(to, value, 1, n, on, __func__));
}

np_cu_result cuMemsetD32Async(np_cu_address to, unsigned int value, size_t n, np_cu_stream on)
{
    BEGIN(NEEDS_CONTEXT);
    return end(give_fill(to, value, 4, n, on, __func__));
}
