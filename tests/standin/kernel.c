/* kernel.c: functions of the host in place of kernels, with the layouts of their parameters. */
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

enum { MAX_PARAMETERS = 64 };

struct standin_kernel {
    object base;
    char name[64];
    void (*run)(void **parameters);
    size_t n;
    size_t offsets[MAX_PARAMETERS];
    size_t bytes[MAX_PARAMETERS];
    size_t all_bytes;
};

/* As in cuda.h. */
typedef struct launch_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    np_cu_stream stream;
    void *attributes;
    unsigned int n_attributes;
} launch_config;

#define PARAMETERS_END ((void *)0x00)
#define PARAMETERS_POINTER ((void *)0x01)
#define PARAMETERS_BYTES ((void *)0x02)

/* ---- for tests ---- */

standin_kernel *standin_kernel_create(const char *name, void (*run)(void **), size_t n, const size_t *bytes)
{
    standin_kernel *k;
    lock();
    k = object_make(sizeof *k, KERNEL);
    (void)strncpy(k->name, name, sizeof k->name - 1);
    k->run = run;
    if (n > MAX_PARAMETERS) {
        misuse("a kernel has at most %d parameters", MAX_PARAMETERS);
    }
    k->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t alignment = bytes[i] % 8 == 0 ? 8 : bytes[i] % 4 == 0 ? 4 : bytes[i] % 2 == 0 ? 2 : 1;
        k->offsets[i] = (k->all_bytes + alignment - 1) / alignment * alignment;
        k->bytes[i] = bytes[i];
        k->all_bytes = k->offsets[i] + bytes[i];
    }
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
    return (int)end(stream_give(stream_of(handle, __func__), work));
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
    BEGIN(NEEDS_CONTEXT);
    work = item_make(ITEM_CALL, sizeof call);
    work->run = run_host_call;
    memcpy(work->data, &call, sizeof call);
    return end(stream_give(stream_of(on, __func__), work));
}

/* ---- kernels ---- */

static void run_kernel(void *data)
{
    const standin_kernel *k;
    void *parameters[MAX_PARAMETERS];
    memcpy(&k, data, sizeof k);
    for (size_t i = 0; i < k->n; i++) {
        parameters[i] = (char *)data + 16 + k->offsets[i];
    }
    k->run(parameters);
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

static np_cu_result give_kernel(void *function, np_cu_stream on, void **parameters, void **extra, const char *symbol)
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
    return stream_give(stream_of(on, symbol), work);
}

np_cu_result cuLaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                            np_cu_stream on, void **parameters, void **extra)
{
    BEGIN(NEEDS_CONTEXT);
    (void)shared_bytes;
    if (grid_x == 0 || grid_y == 0 || grid_z == 0 || block_x == 0 || block_y == 0 || block_z == 0) {
        return end(NP_CU_INVALID_VALUE);
    }
    return end(give_kernel(function, on, parameters, extra, __func__));
}

np_cu_result cuLaunchKernelEx(const launch_config *config, void *function, void **parameters, void **extra)
{
    BEGIN(NEEDS_CONTEXT);
    return end(give_kernel(function, config->stream, parameters, extra, __func__));
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
    BEGIN(NEEDS_INIT);
    return end(parameter_of(kernel, index, offset, bytes, __func__));
}

np_cu_result cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    BEGIN(NEEDS_INIT);
    return end(parameter_of(function, index, offset, bytes, __func__));
}

np_cu_result cuFuncGetName(const char **name, void *function)
{
    BEGIN(NEEDS_INIT);
    *name = ((standin_kernel *)object_check(function, KERNEL, __func__))->name;
    return end(NP_CU_SUCCESS);
}
