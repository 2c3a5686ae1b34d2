/* context.c: initialisation, devices, contexts, errors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin/standin_state.h"

standin_state standin = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};

_Thread_local bool is_stream_thread;
static _Thread_local context *stack[16];
static _Thread_local int n_stack;

/* ---- tools ---- */

_Noreturn void misuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fputs("standin: misuse: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void lock(void)
{
    (void)pthread_mutex_lock(&standin.lock);
}

void unlock(void)
{
    (void)pthread_mutex_unlock(&standin.lock);
}

uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void *object_make(size_t bytes, uint32_t kind)
{
    object *made = calloc(1, bytes);
    if (!made) {
        misuse("the machine has no memory left");
    }
    made->kind = kind;
    made->is_alive = true;
    made->next = standin.objects;
    standin.objects = made;
    return made;
}

void *object_check(void *handle, uint32_t kind, const char *symbol)
{
    object *o = handle;
    if (!o) {
        misuse("%s: the handle is NULL", symbol);
    }
    if (o->kind != kind) {
        misuse("%s: %p is no handle of the right kind", symbol, handle);
    }
    if (!o->is_alive) {
        misuse("%s: the handle was destroyed", symbol);
    }
    return o;
}

/* ---- initialisation and errors ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void before_fork(void)
{
    lock();
}

static void after_fork(void)
{
    unlock();
}

/* The child has none of the streams' threads. */
static void child_of_fork(void)
{
    standin.is_child = true;
    unlock();
}

static void open_driver(void)
{
    standin.n_devices = (int)number_from("STANDIN_DEVICES", 1);
    standin.memory_bytes = number_from("STANDIN_MEMORY", 1u << 30);
    standin.granularity = number_from("STANDIN_GRANULARITY", 2u << 20);
    standin.seed = number_from("STANDIN_SEED", 1);
    standin.longest_delay_us = number_from("STANDIN_DELAY_US", 50);
    failures_from_environment();
    if (standin.n_devices > MAX_DEVICES) {
        misuse("STANDIN_DEVICES is more than %d", MAX_DEVICES);
    }
    memory_open();
    if (!standin.is_open && pthread_atfork(before_fork, after_fork, child_of_fork) != 0) {
        misuse("the machine has no memory left");
    }
    standin.is_open = true;
}

np_cu_result cuInit(unsigned int flags)
{
    BEGIN(NEEDS_NOTHING, flags);
    if (standin.is_injecting && pthread_equal(standin.injecting, pthread_self())) {
        return end((np_cu_result)CU_NOT_INITIALIZED);
    }
    while (standin.is_injecting) {
        (void)pthread_cond_wait(&standin.progress, &standin.lock);
    }
    if (!standin.is_ready) {
        open_driver(); /* again, where it found no device */
        if (standin.n_devices > 0) {
            inject();
            standin.is_ready = true;
        }
    }
    return end(standin.is_ready ? NP_CU_SUCCESS : NP_CU_NO_DEVICE);
}

np_cu_result cuDriverGetVersion(int *version)
{
    BEGIN(NEEDS_NOTHING, version);
    *version = 13000;
    return end(NP_CU_SUCCESS);
}

static const struct {
    int result;
    const char *name;
    const char *text;
} results[] = {
    {NP_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {NP_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {NP_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NP_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {NP_CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NP_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CU_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CU_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {NP_CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static np_cu_result find_text(np_cu_result result, bool wants_name, const char **text)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].result == (int)result) {
            *text = wants_name ? results[i].name : results[i].text;
            return NP_CU_SUCCESS;
        }
    }
    *text = NULL;
    return NP_CU_INVALID_VALUE;
}

np_cu_result cuGetErrorName(np_cu_result result, const char **name)
{
    return find_text(result, true, name);
}

np_cu_result cuGetErrorString(np_cu_result result, const char **text)
{
    return find_text(result, false, text);
}

/* ---- devices ---- */

static bool is_device(int device)
{
    return device >= 0 && device < standin.n_devices;
}

np_cu_result cuDeviceGetCount(int *n)
{
    BEGIN(NEEDS_INIT, n);
    *n = standin.n_devices;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuDeviceGet(np_cu_device *device, int ordinal)
{
    BEGIN(NEEDS_INIT, device, ordinal);
    if (!is_device(ordinal)) {
        return end(NP_CU_INVALID_DEVICE);
    }
    *device = ordinal;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuDeviceGetName(char *name, int bytes, np_cu_device device)
{
    BEGIN(NEEDS_INIT, name, bytes, device);
    if (!is_device(device) || bytes < 1) {
        return end(NP_CU_INVALID_DEVICE);
    }
    (void)snprintf(name, (size_t)bytes, "Stand-in");
    return end(NP_CU_SUCCESS);
}

np_cu_result cuDeviceGetAttribute(int *value, np_cu_attribute attribute, np_cu_device device)
{
    BEGIN(NEEDS_INIT, value, attribute, device);
    if (!is_device(device)) {
        return end(NP_CU_INVALID_DEVICE);
    }
    *value = attribute == NP_CU_VIRTUAL_MEMORY && !getenv("STANDIN_NO_VIRTUAL_MEMORY");
    return end(NP_CU_SUCCESS);
}

/* ---- contexts ---- */

context *current_context(void)
{
    return n_stack > 0 ? stack[n_stack - 1] : NULL;
}

np_cu_result cuDevicePrimaryCtxRetain(np_cu_context *made, np_cu_device device)
{
    context **c;
    BEGIN(NEEDS_INIT, made, device);
    if (!is_device(device)) {
        return end(NP_CU_INVALID_DEVICE);
    }
    c = &standin.contexts[device];
    if (!*c) {
        *c = object_make(sizeof **c, CONTEXT);
        (*c)->device = device;
    }
    if ((*c)->n_retained++ == 0) {
        (*c)->default_stream = stream_make(device, 0, true);
    }
    standin.counts.n_contexts++;
    *made = (np_cu_context)*c;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuDevicePrimaryCtxRelease_v2(np_cu_device device)
{
    context *c;
    BEGIN(NEEDS_INIT, device);
    c = is_device(device) ? standin.contexts[device] : NULL;
    if (!c || c->n_retained == 0) {
        misuse("cuDevicePrimaryCtxRelease: the context is not retained");
    }
    standin.counts.n_contexts--;
    if (--c->n_retained == 0) {
        stream *ended = c->default_stream;
        c->default_stream = NULL;
        stream_end(ended);
    }
    return end(NP_CU_SUCCESS);
}

np_cu_result cuCtxGetCurrent(np_cu_context *current)
{
    BEGIN(NEEDS_INIT, current);
    *current = (np_cu_context)current_context();
    return end(NP_CU_SUCCESS);
}

np_cu_result cuCtxPushCurrent_v2(np_cu_context pushed)
{
    BEGIN(NEEDS_INIT, pushed);
    if (n_stack == (int)(sizeof stack / sizeof *stack)) {
        misuse("cuCtxPushCurrent: the stack of contexts is full");
    }
    stack[n_stack++] = object_check(pushed, CONTEXT, "cuCtxPushCurrent");
    return end(NP_CU_SUCCESS);
}

np_cu_result cuCtxPopCurrent_v2(np_cu_context *popped)
{
    BEGIN(NEEDS_INIT, popped);
    if (n_stack == 0) {
        return end((np_cu_result)CU_INVALID_CONTEXT);
    }
    n_stack--;
    if (popped) {
        *popped = (np_cu_context)stack[n_stack];
    }
    return end(NP_CU_SUCCESS);
}

np_cu_result cuCtxSetCurrent(np_cu_context set)
{
    BEGIN(NEEDS_INIT, set);
    if (!set) {
        n_stack -= n_stack > 0;
    } else {
        n_stack += n_stack == 0;
        stack[n_stack - 1] = object_check(set, CONTEXT, "cuCtxSetCurrent");
    }
    return end(NP_CU_SUCCESS);
}

np_cu_result cuCtxGetDevice(np_cu_device *device)
{
    BEGIN(NEEDS_CONTEXT, device);
    *device = current_context()->device;
    return end(NP_CU_SUCCESS);
}

/* Nothing comes of it here but that it was said. */
np_cu_result cuCtxEnablePeerAccess(np_cu_context peer, unsigned int flags)
{
    const context *other = (const context *)peer;
    BEGIN(NEEDS_CONTEXT, peer, flags);
    return end(other && other != current_context() && flags == 0 ? NP_CU_SUCCESS : (np_cu_result)CU_INVALID_CONTEXT);
}

np_cu_result cuCtxSynchronize(void)
{
    BEGIN_PLAIN(NEEDS_CONTEXT | IS_UNSAFE);
    if (capture_forbids_waiting()) {
        return end((np_cu_result)CU_CAPTURE_UNSUPPORTED);
    }
    streams_drain();
    return end(NP_CU_SUCCESS);
}
