/* kernel.c: functions of the host in place of kernels, with the layouts of their parameters, and their launches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

enum { MAX_PARAMETERS = 64 };

struct standin_kernel {
    object base;
    char name[256];
    void (*run)(void **parameters);
    void (*early)(void **parameters);
    size_t n;
    size_t offsets[MAX_PARAMETERS];
    size_t bytes[MAX_PARAMETERS];
    size_t all_bytes;
};

/* As in cuda.h. */
typedef struct launch_attribute {
    int id;
    char padding[4];
    union {
        int number;
        np_cu_event event;
        char bytes[64];
    } value;
} launch_attribute;

typedef struct launch_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    np_cu_stream stream;
    launch_attribute *attributes;
    unsigned int n_attributes;
} launch_config;

enum { PROGRAMMATIC_SERIALIZATION = 6, PROGRAMMATIC_EVENT = 7, LAUNCH_COMPLETION_EVENT = 12 };

#define PARAMETERS_END ((void *)0x00)
#define PARAMETERS_POINTER ((void *)0x01)
#define PARAMETERS_BYTES ((void *)0x02)

/* ---- making them ---- */

standin_kernel *kernel_make(standin_kernel *over, const standin_image_kernel *of)
{
    standin_kernel *k = over ? over : object_make(sizeof *k, KERNEL);
    k->base.is_alive = true;
    k->all_bytes = 0;
    (void)snprintf(k->name, sizeof k->name, "%s", of->name);
    k->run = of->run;
    k->early = of->early;
    if (of->n > MAX_PARAMETERS) {
        misuse("a kernel has at most %d parameters", MAX_PARAMETERS);
    }
    k->n = of->n;
    for (size_t i = 0; i < of->n; i++) {
        size_t n = of->bytes[i];
        size_t alignment = n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1;
        k->offsets[i] = (k->all_bytes + alignment - 1) / alignment * alignment;
        k->bytes[i] = n;
        k->all_bytes = k->offsets[i] + n;
    }
    return k;
}

const char *kernel_name_of(const void *function)
{
    const standin_kernel *k = function;
    return k->base.kind == KERNEL ? k->name : NULL;
}

/* ---- for tests ---- */

standin_kernel *standin_kernel_create(const char *name, void (*run)(void **), size_t n, const size_t *bytes)
{
    standin_image_kernel of = {.name = name, .run = run, .n = n, .bytes = bytes};
    standin_kernel *k;
    lock();
    k = kernel_make(NULL, &of);
    unlock();
    return k;
}

void standin_kernel_free(standin_kernel *kernel)
{
    lock();
    ((standin_kernel *)object_check(kernel, KERNEL, "kernel_free"))->base.is_alive = false;
    unlock();
}

int standin_launch(void *handle, void (*run)(void *arg), const void *arg, size_t arg_bytes)
{
    item *work;
    np_cu_result result = begin(__func__, NEEDS_CONTEXT);
    if (result != NP_CU_SUCCESS) {
        return (int)result;
    }
    work = item_make(ITEM_CALL, arg_bytes);
    work->run = run;
    if (arg_bytes > 0) {
        memcpy(work->data, arg, arg_bytes);
    }
    result = stream_give(stream_of(handle, __func__), work);
    unlock();
    return (int)result;
}

/* ---- host functions ---- */

typedef struct host_call {
    void (*run)(void *user);
    void *user;
} host_call;

static void run_host_call(void *data)
{
    const host_call *call = data;
    call->run(call->user);
}

np_cu_result cuLaunchHostFunc(np_cu_stream on, void (*run)(void *user), void *user)
{
    host_call call = {run, user};
    item *work;
    BEGIN(NEEDS_CONTEXT, on, run, user);
    work = item_make(ITEM_CALL, sizeof call);
    work->run = run_host_call;
    memcpy(work->data, &call, sizeof call);
    return end(stream_give(stream_of(on, __func__), work));
}

/* ---- kernels ---- */

/* The data of its item: the kernel, then its parameters. */
static const standin_kernel *open_data(void *data, void **parameters)
{
    const standin_kernel *k;
    memcpy(&k, data, sizeof k);
    for (size_t i = 0; i < k->n; i++) {
        parameters[i] = (char *)data + 16 + k->offsets[i];
    }
    return k;
}

static void run_kernel(void *data)
{
    void *parameters[MAX_PARAMETERS];
    open_data(data, parameters)->run(parameters);
}

static void run_kernel_early(void *data)
{
    void *parameters[MAX_PARAMETERS];
    open_data(data, parameters)->early(parameters);
}

/* Parameters come one by one, or as one buffer. */
static np_cu_result gather(const standin_kernel *k, void **parameters, void **extra, unsigned char *to)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    if (parameters && extra) {
        return NP_CU_INVALID_VALUE;
    }
    for (size_t i = 0; parameters && i < k->n; i++) {
        memcpy(to + k->offsets[i], parameters[i], k->bytes[i]);
    }
    if (parameters || (!extra && k->n == 0)) {
        return NP_CU_SUCCESS;
    }
    for (; extra && *extra != PARAMETERS_END; extra += 2) {
        if (*extra == PARAMETERS_POINTER) {
            buffer = extra[1];
        } else if (*extra == PARAMETERS_BYTES) {
            memcpy(&bytes, extra[1], sizeof bytes);
        }
    }
    if (!buffer || bytes < k->all_bytes) {
        return NP_CU_INVALID_VALUE;
    }
    memcpy(to, buffer, k->all_bytes);
    return NP_CU_SUCCESS;
}

np_cu_result kernel_item_make(void *function, void **parameters, void **extra, const char *symbol, item **made)
{
    standin_kernel *k = object_check(function, KERNEL, symbol);
    item *work = item_make(ITEM_CALL, 16 + k->all_bytes);
    np_cu_result result = gather(k, parameters, extra, work->data + 16);
    if (result != NP_CU_SUCCESS) {
        free(work);
        return result;
    }
    memcpy(work->data, &k, sizeof k);
    work->run = run_kernel;
    work->early = k->early ? run_kernel_early : NULL;
    work->is_kernel = true;
    *made = work;
    return NP_CU_SUCCESS;
}

static np_cu_result give_kernel(void *function, np_cu_stream on, void **parameters, void **extra, const char *symbol)
{
    item *work;
    np_cu_result result = kernel_item_make(function, parameters, extra, symbol, &work);
    return result != NP_CU_SUCCESS ? result : stream_give(stream_of(on, symbol), work);
}

static bool is_empty(const unsigned int grid[3], const unsigned int block[3])
{
    return grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || block[0] == 0 || block[1] == 0 || block[2] == 0;
}

np_cu_result cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                            np_cu_stream on, void **parameters, void **extra)
{
    BEGIN_LAUNCH(NEEDS_CONTEXT, function, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, on,
                 parameters, extra);
    if (is_empty((unsigned int[]){grid_x, grid_y, grid_z}, (unsigned int[]){block_x, block_y, block_z})) {
        return end(NP_CU_INVALID_VALUE);
    }
    return end(give_kernel(function, on, parameters, extra, __func__));
}

np_cu_result cuLaunchCooperativeKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                       unsigned int shared_bytes, np_cu_stream on, void **parameters)
{
    BEGIN_LAUNCH(NEEDS_CONTEXT, function, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, on,
                 parameters);
    if (is_empty((unsigned int[]){grid_x, grid_y, grid_z}, (unsigned int[]){block_x, block_y, block_z})) {
        return end(NP_CU_INVALID_VALUE);
    }
    return end(give_kernel(function, on, parameters, NULL, __func__));
}

/* An event of the launch itself says nothing about the kernel's end: it is recorded in front of it. */
static np_cu_result give_launch_event(stream *s, np_cu_event handle)
{
    event *e = object_check(handle, EVENT, "cuLaunchKernelEx");
    item *work = item_make(ITEM_RECORD, 0);
    work->event = e;
    work->generation = ++e->n_recorded;
    return stream_give(s, work);
}

/* With programmatic serialization the kernel may begin while the one in front of it on the stream runs: what it does
 * early is done before that one then. Anything between the two prevents it, a wait too. */
np_cu_result cuLaunchKernelEx(const launch_config *config, void *function, void **parameters, void **extra)
{
    item *work;
    stream *s;
    np_cu_result result;
    BEGIN_LAUNCH(NEEDS_CONTEXT, function, config, function, parameters, extra);
    s = stream_of(config->stream, __func__);
    if (is_empty(config->grid, config->block)) {
        return end(NP_CU_INVALID_VALUE);
    }
    result = kernel_item_make(function, parameters, extra, __func__, &work);
    for (unsigned i = 0; result == NP_CU_SUCCESS && i < config->n_attributes; i++) {
        const launch_attribute *a = &config->attributes[i];
        if (a->id == PROGRAMMATIC_SERIALIZATION) {
            work->is_programmatic = a->value.number != 0;
        } else if ((a->id == PROGRAMMATIC_EVENT || a->id == LAUNCH_COMPLETION_EVENT) && !s->capture) {
            result = give_launch_event(s, a->value.event);
        }
    }
    return end(result != NP_CU_SUCCESS ? result : stream_give(s, work));
}

static np_cu_result parameter_of(void *function, size_t index, size_t *offset, size_t *bytes, const char *symbol)
{
    const standin_kernel *k = object_check(function, KERNEL, symbol);
    if (index >= k->n) {
        return NP_CU_INVALID_VALUE;
    }
    *offset = k->offsets[index];
    if (bytes) {
        *bytes = k->bytes[index];
    }
    return NP_CU_SUCCESS;
}

np_cu_result cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *bytes)
{
    BEGIN(NEEDS_INIT, kernel, index, offset, bytes);
    return end(parameter_of(kernel, index, offset, bytes, __func__));
}

np_cu_result cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    BEGIN(NEEDS_INIT, function, index, offset, bytes);
    return end(parameter_of(function, index, offset, bytes, __func__));
}

np_cu_result cuKernelGetName(const char **name, void *kernel)
{
    BEGIN(NEEDS_INIT, name, kernel);
    *name = ((standin_kernel *)object_check(kernel, KERNEL, __func__))->name;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuKernelGetFunction(void **function, void *kernel)
{
    BEGIN(NEEDS_CONTEXT, function, kernel);
    *function = object_check(kernel, KERNEL, __func__);
    return end(NP_CU_SUCCESS);
}

np_cu_result cuFuncGetName(const char **name, void *function)
{
    BEGIN(NEEDS_INIT, name, function);
    *name = ((standin_kernel *)object_check(function, KERNEL, __func__))->name;
    return end(NP_CU_SUCCESS);
}
