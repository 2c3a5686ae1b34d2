#include "standin_cudart/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

driver_functions driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int loaded = cudaErrorInitializationError;
enum { MAX_DEVICES = 8 };
static pthread_mutex_t retaining = PTHREAD_MUTEX_INITIALIZER;
static void *primaries[MAX_DEVICES]; /* contexts, once they are used */
static _Thread_local int selected;
static _Thread_local cudaError_t last;

static void *find(void *library, const char *symbol)
{
    void *found = library ? dlsym(library, symbol) : NULL;
    if (!found) {
        (void)fprintf(stderr, "standin cudart: %s\n", dlerror());
        abort();
    }
    return found;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found;
#define FIND(symbol, parameters)    \
    found = find(library, #symbol); \
    memcpy(&driver.symbol, &found, sizeof found);
    DRIVER_FUNCTIONS(FIND)
#undef FIND
    loaded = driver.cuInit(0);
}

static int make_current(int device)
{
    int result = cudaSuccess;
    (void)pthread_mutex_lock(&retaining);
    if (!primaries[device]) {
        result = driver.cuDevicePrimaryCtxRetain(&primaries[device], device);
    }
    (void)pthread_mutex_unlock(&retaining);
    return result == cudaSuccess ? driver.cuCtxSetCurrent(primaries[device]) : result;
}

int driver_begin(void)
{
    void *current = NULL;
    int result;
    (void)pthread_once(&once, load);
    if (loaded != cudaSuccess) {
        return loaded;
    }
    result = driver.cuCtxGetCurrent(&current);
    if (result == cudaSuccess && !current) {
        result = make_current(selected);
    }
    return result;
}

int driver_selected(void)
{
    return selected;
}

int driver_select(int device)
{
    int n = 0;
    int result = driver.cuDeviceGetCount(&n);
    if (result != cudaSuccess) {
        return result;
    }
    if (device < 0 || device >= n || device >= MAX_DEVICES) {
        return cudaErrorInvalidDevice;
    }
    result = make_current(device);
    selected = result == cudaSuccess ? device : selected;
    return result;
}

cudaError_t told(int result)
{
    if (result != cudaSuccess && result != cudaErrorNotReady) {
        last = result;
    }
    return result;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;
    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaSuccess                    ? "cudaSuccess"
           : error == cudaErrorInvalidValue        ? "cudaErrorInvalidValue"
           : error == cudaErrorMemoryAllocation    ? "cudaErrorMemoryAllocation"
           : error == cudaErrorInitializationError ? "cudaErrorInitializationError"
           : error == cudaErrorNotReady            ? "cudaErrorNotReady"
                                                   : "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}
