/* driver.h: the driver's functions that the runtime uses, found when it is first used. */
#ifndef TESTS_STANDIN_CUDART_DRIVER_H
#define TESTS_STANDIN_CUDART_DRIVER_H

#include "device/cuda_types.h"
#include "standin_cudart/cudart.h"

/* As in cuda.h. */
typedef struct launch_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attributes;
    unsigned int n_attributes;
} launch_config;

typedef struct place { /* CUDA_MEMCPY2D: one side */
    size_t x;
    size_t y;
    int type;
    const void *host;
    np_cu_address device;
    void *array;
    size_t pitch;
} place;

typedef struct rectangle {
    place from;
    place to;
    size_t width;
    size_t height;
} rectangle;

/* clang-format off */
#define DRIVER_FUNCTIONS(X)                                                                                     \
    X(cuInit, (unsigned int flags))                                                                             \
    X(cuDeviceGet, (int *device, int ordinal))                                                                  \
    X(cuDeviceGetCount, (int *n))                                                                               \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                                   \
    X(cuCtxGetCurrent, (void **context))                                                                        \
    X(cuCtxSetCurrent, (void *context))                                                                         \
    X(cuCtxEnablePeerAccess, (void *peer, unsigned int flags))                                                  \
    X(cuCtxSynchronize, (void))                                                                                 \
    X(cuLibraryLoadData, (void **made, const void *code, const int *jit_options, void **jit_values,             \
                          unsigned int n_jit, const int *options, void **values, unsigned int n))               \
    X(cuLibraryGetKernel, (void **kernel, void *library, const char *name))                                     \
    X(cuMemAlloc_v2, (void **made, size_t bytes))                                                               \
    X(cuMemFree_v2, (void *freed))                                                                              \
    X(cuMemAllocAsync, (void **made, size_t bytes, cudaStream_t stream))                                        \
    X(cuMemAllocFromPoolAsync, (void **made, size_t bytes, cudaMemPool_t pool, cudaStream_t stream))            \
    X(cuMemFreeAsync, (void *freed, cudaStream_t stream))                                                       \
    X(cuMemHostAlloc, (void **made, size_t bytes, unsigned int flags))                                          \
    X(cuMemFreeHost, (void *freed))                                                                             \
    X(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))                                               \
    X(cuDeviceGetDefaultMemPool, (cudaMemPool_t *pool, int device))                                             \
    X(cuMemPoolGetAttribute, (cudaMemPool_t pool, int attribute, void *value))                                  \
    X(cuMemPoolSetAttribute, (cudaMemPool_t pool, int attribute, void *value))                                  \
    X(cuMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes))                                                      \
    X(cuIpcGetMemHandle, (cudaIpcMemHandle_t *handle, void *at))                                                \
    X(cuMemcpy, (void *to, const void *from, size_t bytes))                                                     \
    X(cuMemcpyAsync, (void *to, const void *from, size_t bytes, cudaStream_t stream))                           \
    X(cuMemcpyHtoD_v2, (void *to, const void *from, size_t bytes))                                              \
    X(cuMemcpyDtoH_v2, (void *to, const void *from, size_t bytes))                                              \
    X(cuMemcpyDtoD_v2, (void *to, const void *from, size_t bytes))                                              \
    X(cuMemcpyHtoDAsync_v2, (void *to, const void *from, size_t bytes, cudaStream_t stream))                    \
    X(cuMemcpyDtoHAsync_v2, (void *to, const void *from, size_t bytes, cudaStream_t stream))                    \
    X(cuMemcpyDtoDAsync_v2, (void *to, const void *from, size_t bytes, cudaStream_t stream))                    \
    X(cuMemcpy2DAsync_v2, (const rectangle *copied, cudaStream_t stream))                                       \
    X(cuMemsetD8_v2, (void *to, unsigned char value, size_t n))                                                 \
    X(cuMemsetD8Async, (void *to, unsigned char value, size_t n, cudaStream_t stream))                          \
    X(cuLaunchKernel, (void *function, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,    \
                       unsigned int, unsigned int shared_bytes, cudaStream_t stream, void **parameters,         \
                       void **extra))                                                                           \
    X(cuLaunchCooperativeKernel, (void *function, unsigned int, unsigned int, unsigned int, unsigned int,       \
                                  unsigned int, unsigned int, unsigned int shared_bytes, cudaStream_t stream,   \
                                  void **parameters))                                                           \
    X(cuLaunchKernelEx, (const launch_config *config, void *function, void **parameters, void **extra))         \
    X(cuStreamCreate, (cudaStream_t *made, unsigned int flags))                                                 \
    X(cuStreamDestroy_v2, (cudaStream_t stream))                                                                \
    X(cuStreamSynchronize, (cudaStream_t stream))                                                               \
    X(cuStreamQuery, (cudaStream_t stream))                                                                     \
    X(cuStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags))                          \
    X(cuEventCreate, (cudaEvent_t *made, unsigned int flags))                                                   \
    X(cuEventDestroy_v2, (cudaEvent_t event))                                                                   \
    X(cuEventRecord, (cudaEvent_t event, cudaStream_t stream))                                                  \
    X(cuEventQuery, (cudaEvent_t event))                                                                        \
    X(cuEventSynchronize, (cudaEvent_t event))                                                                  \
    X(cuStreamBeginCapture_v2, (cudaStream_t stream, int mode))                                                 \
    X(cuStreamEndCapture, (cudaStream_t stream, cudaGraph_t *made))                                             \
    X(cuStreamIsCapturing, (cudaStream_t stream, int *status))                                                  \
    X(cuGraphCreate, (cudaGraph_t *made, unsigned int flags))                                                   \
    X(cuGraphAddChildGraphNode, (cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,        \
                                 size_t n, cudaGraph_t child))                                                  \
    X(cuGraphInstantiateWithFlags, (cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags))        \
    X(cuGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream))                                               \
    X(cuGraphDestroy, (cudaGraph_t graph))                                                                      \
    X(cuGraphExecDestroy, (cudaGraphExec_t exec))
/* clang-format on */

typedef struct driver_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parameters of a function */
#define FIELD(symbol, parameters) int(*symbol) parameters;
    DRIVER_FUNCTIONS(FIELD)
#undef FIELD
} driver_functions;

extern driver_functions driver;

/* Loads and initialises it, once, and makes the primary context of the thread's device the thread's, where it has none. An
 * error, or 0. */
int driver_begin(void);

/* The thread's device: 0 until it selects another. */
int driver_selected(void);
int driver_select(int device);

/* Keeps the error for cudaGetLastError, and returns it. */
cudaError_t told(int result);

/* What every function begins with. */
#define BEGIN_RUNTIME                \
    do {                             \
        int begin_ = driver_begin(); \
        if (begin_ != cudaSuccess) { \
            return told(begin_);     \
        }                            \
    } while (0)

#endif
