/* module.c: code that is loaded and unloaded. */
#include <string.h>

#include "standin/standin_state.h"

enum { MAX_KERNELS = 16 };

typedef struct module {
    object base;
    size_t n;
    standin_kernel *kernels[MAX_KERNELS];
} module;

/* Handles of unloaded kernels, the last one first to be used again. */
static standin_kernel *unused[256];
static size_t n_unused;

static module *load(const standin_image *image)
{
    module *m = object_make(sizeof *m, MODULE);
    if (image->n > MAX_KERNELS) {
        misuse("a module has at most %d kernels", MAX_KERNELS);
    }
    m->n = image->n;
    for (size_t i = 0; i < m->n; i++) {
        m->kernels[i] = kernel_make(n_unused > 0 ? unused[--n_unused] : NULL, &image->kernels[i]);
    }
    return m;
}

static np_cu_result find(void *handle, const char *name, void **kernel, const char *symbol)
{
    const module *m = object_check(handle, MODULE, symbol);
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(kernel_name_of(m->kernels[i]), name) == 0) {
            *kernel = m->kernels[i];
            return NP_CU_SUCCESS;
        }
    }
    return (np_cu_result)CU_NOT_FOUND;
}

/* Its kernels may still run. */
static np_cu_result unload(void *handle, const char *symbol)
{
    module *m = object_check(handle, MODULE, symbol);
    streams_drain();
    m->base.is_alive = false;
    for (size_t i = m->n; i-- > 0;) {
        ((object *)(void *)m->kernels[i])->is_alive = false;
        if (n_unused < sizeof unused / sizeof *unused) {
            unused[n_unused++] = m->kernels[i];
        }
    }
    return NP_CU_SUCCESS;
}

np_cu_result cuModuleLoadData(void **made, const void *image)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, made, image);
    *made = load(image);
    return end(NP_CU_SUCCESS);
}

np_cu_result cuModuleGetFunction(void **function, void *handle, const char *name)
{
    BEGIN(NEEDS_CONTEXT, function, handle, name);
    return end(find(handle, name, function, __func__));
}

np_cu_result cuModuleUnload(void *handle)
{
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, handle);
    return end(unload(handle, __func__));
}

np_cu_result cuLibraryLoadData(void **made, const void *code, const int *jit_options, void **jit_values,
                               unsigned int n_jit, const int *options, void **values, unsigned int n)
{
    BEGIN(NEEDS_INIT, made, code, jit_options, jit_values, n_jit, options, values, n);
    *made = load(code);
    return end(NP_CU_SUCCESS);
}

np_cu_result cuLibraryGetKernel(void **kernel, void *handle, const char *name)
{
    BEGIN(NEEDS_INIT, kernel, handle, name);
    return end(find(handle, name, kernel, __func__));
}

np_cu_result cuLibraryUnload(void *handle)
{
    BEGIN(NEEDS_INIT, handle);
    return end(unload(handle, __func__));
}
