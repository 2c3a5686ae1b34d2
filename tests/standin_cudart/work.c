/* work.c: devices, kernels, streams, events, graphs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "standin_cudart/driver.h"

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    BEGIN_RUNTIME;
    return told(driver.cuDeviceGetCount(n));
}

cudaError_t cudaGetDevice(int *device)
{
    BEGIN_RUNTIME;
    *device = driver_selected();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    BEGIN_RUNTIME;
    return told(driver_select(device));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    void *other = NULL;
    int result;
    BEGIN_RUNTIME;
    result = driver.cuDevicePrimaryCtxRetain(&other, peer);
    return told(result != cudaSuccess ? result : driver.cuCtxEnablePeerAccess(other, flags));
}

cudaError_t cudaDeviceSynchronize(void)
{
    BEGIN_RUNTIME;
    return told(driver.cuCtxSynchronize());
}

/* ---- kernels: loaded when they are first launched, as the real runtime does ---- */

enum { MAX_KERNELS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registered {
    const void *function;
    const standin_image_kernel *kernel;
    void *handle;
} registered[MAX_KERNELS];
static size_t n_registered;

void standin_register(const void *function, const standin_image_kernel *kernel)
{
    (void)pthread_mutex_lock(&lock);
    if (n_registered == MAX_KERNELS) {
        (void)fputs("standin cudart: there are too many kernels\n", stderr);
        abort();
    }
    registered[n_registered++] = (struct registered){.function = function, .kernel = kernel};
    (void)pthread_mutex_unlock(&lock);
}

static int load(struct registered *r)
{
    const standin_image image = {1, r->kernel};
    void *library = NULL;
    int result = driver.cuLibraryLoadData(&library, &image, NULL, NULL, 0, NULL, NULL, 0);
    return result != cudaSuccess ? result : driver.cuLibraryGetKernel(&r->handle, library, r->kernel->name);
}

static int find(const void *function, void **handle)
{
    int result = cudaErrorInvalidDeviceFunction;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_registered; i++) {
        if (registered[i].function == function) {
            result = registered[i].handle ? cudaSuccess : load(&registered[i]);
            *handle = registered[i].handle;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **parameters, size_t shared_bytes,
                             cudaStream_t stream)
{
    void *handle = NULL;
    int result;
    BEGIN_RUNTIME;
    result = find(function, &handle);
    return told(result != cudaSuccess ? result
                                      : driver.cuLaunchKernel(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                              (unsigned int)shared_bytes, stream, parameters, NULL));
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **parameters,
                                        size_t shared_bytes, cudaStream_t stream)
{
    void *handle = NULL;
    int result;
    BEGIN_RUNTIME;
    result = find(function, &handle);
    return told(result != cudaSuccess
                    ? result
                    : driver.cuLaunchCooperativeKernel(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       (unsigned int)shared_bytes, stream, parameters));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **parameters)
{
    launch_config given = {.grid = {config->gridDim.x, config->gridDim.y, config->gridDim.z},
                           .block = {config->blockDim.x, config->blockDim.y, config->blockDim.z},
                           .shared_bytes = (unsigned int)config->dynamicSmemBytes,
                           .stream = config->stream,
                           .attributes = config->attrs,
                           .n_attributes = config->numAttrs};
    void *handle = NULL;
    int result;
    BEGIN_RUNTIME;
    result = find(function, &handle);
    return told(result != cudaSuccess ? result : driver.cuLaunchKernelEx(&given, handle, parameters, NULL));
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreate(cudaStream_t *made)
{
    return cudaStreamCreateWithFlags(made, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *made, unsigned int flags)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamCreate(made, flags));
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamDestroy_v2(stream));
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamSynchronize(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamQuery(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *made, unsigned int flags)
{
    BEGIN_RUNTIME;
    return told(driver.cuEventCreate(made, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    BEGIN_RUNTIME;
    return told(driver.cuEventDestroy_v2(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuEventRecord(event, stream));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    BEGIN_RUNTIME;
    return told(driver.cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    BEGIN_RUNTIME;
    return told(driver.cuEventSynchronize(event));
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamBeginCapture_v2(stream, mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *made)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamEndCapture(stream, made));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, int *status)
{
    BEGIN_RUNTIME;
    return told(driver.cuStreamIsCapturing(stream, status));
}

cudaError_t cudaGraphCreate(cudaGraph_t *made, unsigned int flags)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphCreate(made, flags));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t n,
                                       cudaGraph_t child)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphAddChildGraphNode(node, graph, after, n, child));
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphInstantiateWithFlags(made, graph, flags));
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphLaunch(exec, stream));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphDestroy(graph));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    BEGIN_RUNTIME;
    return told(driver.cuGraphExecDestroy(exec));
}
