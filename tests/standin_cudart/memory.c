/* memory.c: allocations, copies, memsets. */
#include "standin_cudart/driver.h"

/* ---- allocations ---- */

cudaError_t cudaMalloc(void **made, size_t bytes)
{
    BEGIN_RUNTIME;
    if (bytes == 0) {
        *made = NULL;
        return cudaSuccess;
    }
    return told(driver.cuMemAlloc_v2(made, bytes));
}

cudaError_t cudaFree(void *freed)
{
    BEGIN_RUNTIME;
    return freed ? told(driver.cuMemFree_v2(freed)) : cudaSuccess;
}

cudaError_t cudaMallocAsync(void **made, size_t bytes, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemAllocAsync(made, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **made, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemAllocFromPoolAsync(made, bytes, pool, stream));
}

cudaError_t cudaFreeAsync(void *freed, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemFreeAsync(freed, stream));
}

cudaError_t cudaMallocHost(void **made, size_t bytes)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemHostAlloc(made, bytes, 0));
}

cudaError_t cudaFreeHost(void *freed)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemFreeHost(freed));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemGetInfo_v2(free_bytes, total_bytes));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    BEGIN_RUNTIME;
    return told(driver.cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemPoolGetAttribute(pool, attribute, value));
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, int attribute, void *value)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemPoolSetAttribute(pool, attribute, value));
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemPoolTrimTo(pool, bytes));
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at)
{
    BEGIN_RUNTIME;
    return told(driver.cuIpcGetMemHandle(handle, at));
}

/* ---- copies and memsets ---- */

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    BEGIN_RUNTIME;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return told(driver.cuMemcpyHtoD_v2(to, from, bytes));
    case cudaMemcpyDeviceToHost:
        return told(driver.cuMemcpyDtoH_v2(to, from, bytes));
    case cudaMemcpyDeviceToDevice:
        return told(driver.cuMemcpyDtoD_v2(to, from, bytes));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        break;
    }
    return told(driver.cuMemcpy(to, from, bytes));
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return told(driver.cuMemcpyHtoDAsync_v2(to, from, bytes, stream));
    case cudaMemcpyDeviceToHost:
        return told(driver.cuMemcpyDtoHAsync_v2(to, from, bytes, stream));
    case cudaMemcpyDeviceToDevice:
        return told(driver.cuMemcpyDtoDAsync_v2(to, from, bytes, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        break;
    }
    return told(driver.cuMemcpyAsync(to, from, bytes, stream));
}

static place place_of(const void *at, size_t pitch, int is_device)
{
    place p = {.type = 1 + is_device, .pitch = pitch};
    if (is_device) {
        p.device = (np_cu_address)(uintptr_t)at;
    } else {
        p.host = at;
    }
    return p;
}

/* The kind must be one that names both sides. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    rectangle copied = {.width = width, .height = height};
    BEGIN_RUNTIME;
    copied.from = place_of(from, from_pitch, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
    copied.to = place_of(to, to_pitch, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice);
    return told(driver.cuMemcpy2DAsync_v2(&copied, stream));
}

cudaError_t cudaMemset(void *to, int value, size_t n)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemsetD8_v2(to, (unsigned char)value, n));
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuMemsetD8Async(to, (unsigned char)value, n, stream));
}
