/* runtime.c: the functions of the CUDA runtime that the library is put in front of (LD_PRELOAD).
 *
 * Where neap has nothing to do, each is the runtime's own. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "hook/core.h"
#include "hook/pytorch.h"

/* dlsym's RTLD_NEXT is not POSIX. */
#ifndef RTLD_NEXT
#define RTLD_NEXT ((void *)-1l)
#endif

enum {
    NOT_FOUND = 500 /* cudaErrorSymbolNotFound */,
    POOL_RESERVED = 5,
    POOL_RESERVED_HIGH,
    POOL_USED,
    POOL_USED_HIGH
};

/* The runtime's own, by name; NULL where it has none. */
static void *find_real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define REAL(name, type)                     \
    static type *real;                       \
    if (!real) {                             \
        void *found = find_real(name);       \
        memcpy(&real, &found, sizeof found); \
    }                                        \
    if (!real) {                             \
        return NOT_FOUND;                    \
    }

typedef int malloc_function(void **address, size_t bytes);
typedef int free_function(void *address);
typedef int malloc_async_function(void **address, size_t bytes, void *stream);
typedef int free_async_function(void *address, void *stream);
typedef int info_function(size_t *free_bytes, size_t *total_bytes);
typedef int attribute_function(void *pool, int attribute, void *value);
typedef int get_device_function(int *ordinal);
typedef int forget_function(void);
typedef int is_capturing_function(void *stream, int *status);

int np_hook_real_malloc(void **address, size_t bytes)
{
    REAL("cudaMalloc", malloc_function)
    return real(address, bytes);
}

int np_hook_real_free(void *address)
{
    REAL("cudaFree", free_function)
    return real(address);
}

int np_hook_real_forget_error(void)
{
    REAL("cudaGetLastError", forget_function)
    return real();
}

int np_hook_real_get_device(int *ordinal)
{
    REAL("cudaGetDevice", get_device_function)
    return real(ordinal);
}

/* A program that names streams does so for its tensors (PyTorch with backend:cudaMallocAsync). What it asks for by cudaMalloc
 * is something else then, small and often to be shared with others, which mapped memory cannot be: it passes through. */
static atomic_bool allocates_by_stream;

static bool is_serving(void)
{
    return np_hook_is_on() && !np_hook_is_over() && !np_hook_is_inside;
}

static int real_info(size_t *free_bytes, size_t *total_bytes)
{
    REAL("cudaMemGetInfo", info_function)
    return real(free_bytes, total_bytes);
}

static int ask_capturing(void *stream, int *status)
{
    REAL("cudaStreamIsCapturing", is_capturing_function)
    return real(stream, status);
}

static bool is_captured(void *stream)
{
    int status = 0;
    return ask_capturing(stream, &status) != 0 || status != 0;
}

/* Aside, nobody knows of graphs: memory that is asked for in a capture is the runtime's, and so is its free. */
static bool is_passed_on(void *stream)
{
    int status = 0;
    return np_the_hook.aside && ask_capturing(stream, &status) == 0 && status != 0;
}

static int serve_malloc(void **address, size_t bytes, void *stream)
{
    int ordinal = np_hook_only_device(); /* the runtime need not be asked where there is no choice */
    int result = ordinal >= 0 ? 0 : np_hook_real_get_device(&ordinal);
    if (result != 0) {
        return result;
    }
    if (bytes == 0) {
        *address = NULL;
        return 0;
    }
    result = np_hook_malloc(ordinal, bytes, stream, address);
    if (result != 0) { /* the runtime's last error is set by the runtime alone: by a request that it must refuse */
        void *none = NULL;
        (void)np_hook_real_malloc(&none, SIZE_MAX / 4);
    }
    return result;
}

/* For functions whose default stream is the calling thread's own. */
static void *own_by_default(void *stream)
{
    return stream ? stream : NP_HOOK_OWN;
}

static np_hook_device *current_device(void)
{
    int ordinal = 0;
    bool is_known =
        is_serving() && np_hook_real_get_device(&ordinal) == 0 && ordinal >= 0 && ordinal < NP_HOOK_MAX_DEVICES;
    return is_known ? np_the_hook.devices[ordinal] : NULL;
}

void np_hook_pass_on(void)
{
    atomic_store(&allocates_by_stream, true);
}

static atomic_uint n_captures;

bool np_hook_is_beside_capture(void)
{
    return atomic_load(&n_captures) > 0;
}

/* The runtime must find room for it beside what is kept. Asked before: a request that fails leaves an error behind. */
static int pass_malloc(void **address, size_t bytes)
{
    enum { SLACK = 4 << 20 };
    np_hook_device *device = current_device();
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (device && !np_hook_is_beside_capture() && real_info(&free_bytes, &total_bytes) == 0 &&
        (free_bytes < SLACK || free_bytes - SLACK < bytes)) {
        np_hook_give_back(device);
    }
    return np_hook_real_malloc(address, bytes);
}

/* ---- what the program calls ---- */

int cudaMalloc(void **address, size_t bytes);
int cudaMalloc(void **address, size_t bytes)
{
    return is_serving() && !atomic_load(&allocates_by_stream) ? serve_malloc(address, bytes, NP_HOOK_NO_STREAM)
                                                              : pass_malloc(address, bytes);
}

int cudaFree(void *address);
int cudaFree(void *address)
{
    if (address && np_hook_is_on() && np_hook_is_over()) {
        return 0; /* the process ends, and its memory with it */
    }
    return address && is_serving() && np_hook_free(address, NP_HOOK_NO_STREAM) ? 0 : np_hook_real_free(address);
}

int cudaMallocAsync(void **address, size_t bytes, void *stream);
int cudaMallocAsync(void **address, size_t bytes, void *stream)
{
    if (is_serving() && !is_passed_on(stream)) {
        if (!atomic_load_explicit(&allocates_by_stream, memory_order_relaxed)) {
            atomic_store(&allocates_by_stream, true);
        }
        return serve_malloc(address, bytes, stream);
    }
    REAL("cudaMallocAsync", malloc_async_function)
    return real(address, bytes, stream);
}

int cudaMallocAsync_ptsz(void **address, size_t bytes, void *stream);
int cudaMallocAsync_ptsz(void **address, size_t bytes, void *stream)
{
    if (is_serving() && !is_passed_on(own_by_default(stream))) {
        return serve_malloc(address, bytes, own_by_default(stream));
    }
    REAL("cudaMallocAsync_ptsz", malloc_async_function)
    return real(address, bytes, stream);
}

int cudaFreeAsync(void *address, void *stream);
int cudaFreeAsync(void *address, void *stream)
{
    if (np_hook_is_on() && np_hook_is_over()) {
        return 0;
    }
    if (is_serving() && np_hook_free(address, stream)) {
        return 0;
    }
    REAL("cudaFreeAsync", free_async_function)
    return real(address, stream);
}

int cudaFreeAsync_ptsz(void *address, void *stream);
int cudaFreeAsync_ptsz(void *address, void *stream)
{
    if (np_hook_is_on() && np_hook_is_over()) {
        return 0;
    }
    if (is_serving() && np_hook_free(address, own_by_default(stream))) {
        return 0;
    }
    REAL("cudaFreeAsync_ptsz", free_async_function)
    return real(address, stream);
}

/* ---- what the program is told ---- */

/* With --tell-limit, as if the device had no more than that. */
static void tell_limit(const np_hook_device *device, size_t *free_bytes, size_t *total_bytes)
{
    const neap_device *m = device->manager;
    uint64_t page = m->device->page_bytes;
    if (m->limit_pages != UINT32_MAX) {
        uint32_t held = m->pages.n_held;
        *total_bytes = m->limit_pages * page;
        *free_bytes = held < m->limit_pages ? (m->limit_pages - held) * page : 0;
    }
}

/* To the program all that it has not freed is in use, though some of it is on the host: what is free is no more than the
 * rest of what there is. PyTorch asserts it. */
static void tell_used(uint64_t used, size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = used > *total_bytes ? used : *total_bytes;
    *free_bytes = *free_bytes > *total_bytes - used ? *total_bytes - used : *free_bytes;
}

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    np_hook_device *device = current_device();
    int result = real_info(free_bytes, total_bytes);
    if (device && result == 0) {
        (void)pthread_mutex_lock(&device->manager->lock);
        if (!device->keeper && np_the_hook.settings.tells_limit) {
            tell_limit(device, free_bytes, total_bytes);
        }
        tell_used(np_hook_used(device), free_bytes, total_bytes);
        device->told_free = *free_bytes;
        (void)pthread_mutex_unlock(&device->manager->lock);
    }
    return result;
}

int cudaMemPoolGetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    np_hook_device *device = current_device();
    if (device && attribute >= POOL_RESERVED && attribute <= POOL_USED_HIGH) {
        uint64_t answer = 0;
        (void)pthread_mutex_lock(&device->manager->lock);
        answer = attribute == POOL_RESERVED        ? np_hook_reserved(device)
                 : attribute == POOL_RESERVED_HIGH ? device->reserved_high
                 : attribute == POOL_USED          ? np_hook_used(device)
                                                   : device->used_high;
        (void)pthread_mutex_unlock(&device->manager->lock);
        memcpy(value, &answer, sizeof answer);
        return 0;
    }
    REAL("cudaMemPoolGetAttribute", attribute_function)
    return real(pool, attribute, value);
}

/* PyTorch's empty_cache(). */
int cudaMemPoolTrimTo(void *pool, size_t bytes);
int cudaMemPoolTrimTo(void *pool, size_t bytes)
{
    typedef int trim_function(void *pool, size_t bytes);
    np_hook_device *device = current_device();
    if (device) {
        np_hook_give_back(device);
        return 0;
    }
    REAL("cudaMemPoolTrimTo", trim_function)
    return real(pool, bytes);
}

int cudaMemPoolSetAttribute(void *pool, int attribute, void *value);
int cudaMemPoolSetAttribute(void *pool, int attribute, void *value)
{
    np_hook_device *device = current_device();
    if (device && (attribute == POOL_RESERVED_HIGH || attribute == POOL_USED_HIGH)) { /* it can only be reset */
        (void)pthread_mutex_lock(&device->manager->lock);
        if (attribute == POOL_RESERVED_HIGH) {
            device->reserved_high = np_hook_reserved(device);
        } else {
            device->used_high = np_hook_used(device);
        }
        (void)pthread_mutex_unlock(&device->manager->lock);
        return 0;
    }
    REAL("cudaMemPoolSetAttribute", attribute_function)
    return real(pool, attribute, value);
}

/* Counted, since CUPTI may tell of nothing any more: beside a capture not all work can be waited for. */
int cudaStreamBeginCapture(void *stream, int mode);
int cudaStreamBeginCapture(void *stream, int mode)
{
    typedef int begin_function(void *stream, int mode);
    REAL("cudaStreamBeginCapture", begin_function)
    int result = real(stream, mode);
    n_captures += result == 0;
    return result;
}

int cudaStreamEndCapture(void *stream, void **graph);
int cudaStreamEndCapture(void *stream, void **graph)
{
    typedef int end_function(void *stream, void **graph);
    REAL("cudaStreamEndCapture", end_function)
    bool was_captured = is_captured(stream);
    int result = real(stream, graph);
    if (was_captured && !is_captured(stream) && atomic_load(&n_captures) > 0) { /* by an error, too */
        n_captures--;
    }
    return result;
}

/* Each library with kernels calls it when it is loaded: PyTorch's is looked for before any of it was called. */
void **__cudaRegisterFatBinary(void *binary);
void **__cudaRegisterFatBinary(void *binary)
{
    typedef void **register_function(void *binary);
    static register_function *real;
    if (!real) {
        void *found = find_real("__cudaRegisterFatBinary");
        memcpy(&real, &found, sizeof found);
    }
    np_hook_pytorch_look(__builtin_return_address(0));
    return real ? real(binary) : NULL;
}

/* Somebody ends CUPTI for the whole process: nothing can be seen from then on. */
int cuptiFinalize(void);
int cuptiFinalize(void)
{
    typedef int finalize_function(void);
    if (is_serving() && np_the_hook.is_seeing) {
        np_the_hook.is_seeing = false;
        np_hook_step_aside("CUPTI was ended for the whole process (TEARDOWN_CUPTI?)");
    }
    REAL("cuptiFinalize", finalize_function)
    return real();
}
