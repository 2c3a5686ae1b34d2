/* Where a kernel's parameters are: asked of the driver once, in the way that its handle wants, and forgotten together. */
#include "hook/kernels.h"

#include <stdio.h>
#include <string.h>

#include "run/program.h"
#include "testing.h"

/* ---- a driver ---- */

enum { MOST_PARAMETERS = 6, N_KINDS = 4 };

/* Handles are numbers: 4 * k + kind. */
typedef enum handle_kind {
    IS_KERNEL,
    IS_FUNCTION, /* to the function that asks kernels, it is an error of another sort */
    IS_UNKNOWN,
    IS_BROKEN, /* the driver fails after two parameters */
} handle_kind;

static uint32_t n_asked;

static void *handle_of(uint32_t number, handle_kind kind)
{
    return (void *)(uintptr_t)(N_KINDS * (number + 1) + (uint32_t)kind);
}

static uint32_t count_of(const void *handle)
{
    return (uint32_t)((uintptr_t)handle / N_KINDS % MOST_PARAMETERS);
}

static np_cu_result answer(const void *handle, size_t index, size_t *offset, size_t *bytes)
{
    if (index >= count_of(handle)) {
        return NP_CU_INVALID_VALUE;
    }
    *offset = 8 * index;
    *bytes = 4 * (index + 1);
    return NP_CU_SUCCESS;
}

static np_cu_result ask_kernel(np_cu_kernel handle, size_t index, size_t *offset, size_t *bytes)
{
    n_asked++;
    switch ((handle_kind)((uintptr_t)handle % N_KINDS)) {
    case IS_KERNEL:
        return answer(handle, index, offset, bytes);
    case IS_BROKEN:
        *bytes = 8;
        return index < 2 ? NP_CU_SUCCESS : NP_CU_UNKNOWN;
    default:
        return NP_CU_UNKNOWN;
    }
}

static np_cu_result ask_function(np_cu_function handle, size_t index, size_t *offset, size_t *bytes)
{
    n_asked++;
    return (uintptr_t)handle % N_KINDS == IS_FUNCTION ? answer(handle, index, offset, bytes) : NP_CU_UNKNOWN;
}

static np_cuda_driver driver = {.kernel_parameter = ask_kernel, .function_parameter = ask_function};

/* ---- layouts ---- */

static void test_layouts(void **state)
{
    np_hook_kernels kernels;
    (void)state;
    np_hook_kernels_init(&kernels, &np_memory_default);
    for (uint32_t i = 0; i < 40; i++) {
        handle_kind kind = (handle_kind)(i % N_KINDS);
        void *handle = handle_of(i, kind);
        const np_hook_kernel *kernel = np_hook_kernels_get(&kernels, &driver, handle, "gemm");
        ASSERT_TRUE(kernel != NULL);
        ASSERT_TRUE(kernel->function == handle);
        ASSERT_EQ(kernel->is_known, kind == IS_KERNEL || kind == IS_FUNCTION);
        ASSERT_EQ(kernel->n_parameters, kernel->is_known ? count_of(handle) : 0);
        for (uint32_t k = 0; k < kernel->n_parameters; k++) {
            ASSERT_EQ(kernel->sizes[k], 4 * (k + 1));
        }
        ASSERT_TRUE(np_hook_kernels_is_valid(&kernels));
    }
    n_asked = 0;
    for (uint32_t i = 0; i < 40; i++) { /* known by now */
        ASSERT_TRUE(np_hook_kernels_get(&kernels, &driver, handle_of(i, (handle_kind)(i % N_KINDS)), "x") != NULL);
    }
    ASSERT_EQ(n_asked, 0);
    np_hook_kernels_forget(&kernels);
    ASSERT_EQ(kernels.n, 0);
    ASSERT_TRUE(np_hook_kernels_get(&kernels, &driver, handle_of(1, IS_KERNEL), "x") != NULL);
    ASSERT_GT(n_asked, 0); /* the handle may stand for another kernel now */
    np_hook_kernels_forget(&kernels);
}

/* A driver that is too old to be asked: nothing is known of any kernel. */
static void test_old_driver(void **state)
{
    np_cuda_driver old = {0};
    np_hook_kernels kernels;
    const np_hook_kernel *kernel;
    (void)state;
    np_hook_kernels_init(&kernels, &np_memory_default);
    kernel = np_hook_kernels_get(&kernels, &old, handle_of(1, IS_KERNEL), "gemm");
    ASSERT_TRUE(kernel != NULL);
    ASSERT_FALSE(kernel->is_known);
    np_hook_kernels_forget(&kernels);
}

static void test_many(void **state)
{
    np_hook_kernels kernels;
    (void)state;
    np_hook_kernels_init(&kernels, &np_memory_default);
    for (uint32_t i = 0; i < 5000; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "kernel%u", i);
        ASSERT_TRUE(np_hook_kernels_get(&kernels, &driver, handle_of(i, IS_KERNEL), name) != NULL);
    }
    ASSERT_EQ(kernels.n, 5000);
    ASSERT_TRUE(np_hook_kernels_is_valid(&kernels));
    for (uint32_t i = 0; i < 5000; i++) {
        char name[24];
        const np_hook_kernel *kernel = np_hook_kernels_get(&kernels, &driver, handle_of(i, IS_KERNEL), "other");
        (void)snprintf(name, sizeof name, "kernel%u", i);
        ASSERT_STR_EQ(kernel->name, name);
        ASSERT_EQ(kernel->key, np_program_name_key(name, strlen(name)));
    }
    np_hook_kernels_forget(&kernels);
}

/* ---- names ---- */

static const np_hook_kernel *get_named(np_hook_kernels *kernels, const char *name)
{
    static uint32_t next = 1000;
    return np_hook_kernels_get(kernels, &driver, handle_of(next++, IS_KERNEL), name);
}

static void test_names(void **state)
{
    static const char *const pinned[] = {
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "prepare_grouped_gemm_data<float>",
        "void_getrf_pivot",
        "nvshmemi_kernel",
        "trsm_batched",
    };
    np_hook_kernels kernels;
    (void)state;
    np_hook_kernels_init(&kernels, &np_memory_default);
    ASSERT_STR_EQ(get_named(&kernels, "void gemm<int, 3>(float *)\n")->name, "void_gemm<int,_3>(float_*)_");
    ASSERT_STR_EQ(get_named(&kernels, NULL)->name, "kernel");
    ASSERT_STR_EQ(get_named(&kernels, "")->name, "kernel");
    ASSERT_STR_EQ(get_named(&kernels, "\x7f")->name, "_");
    ASSERT_FALSE(get_named(&kernels, "ampere_sgemm_128x64_nn")->is_pinned);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++) {
        ASSERT_TRUE(get_named(&kernels, pinned[i])->is_pinned);
    }
    np_hook_kernels_forget(&kernels);
}

/* ---- failures ---- */

static neap_status ask_many(const neap_memory *memory, void *user)
{
    np_hook_kernels kernels;
    neap_status status = NEAP_OK;
    (void)user;
    np_hook_kernels_init(&kernels, memory);
    for (uint32_t i = 0; i < 300 && status == NEAP_OK; i++) {
        status = np_hook_kernels_get(&kernels, &driver, handle_of(i, IS_KERNEL), "gemm") ? NEAP_OK : NEAP_NO_MEMORY;
        if (!np_hook_kernels_is_valid(&kernels)) {
            status = NEAP_INTERNAL;
        }
    }
    np_hook_kernels_forget(&kernels);
    return status;
}

static void test_host_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(ask_many, NULL), 300);
}

static void test_is_valid(void **state)
{
    np_hook_kernels kernels;
    (void)state;
    np_hook_kernels_init(&kernels, &np_memory_default);
    ASSERT_TRUE(np_hook_kernels_is_valid(&kernels));
    (void)get_named(&kernels, "a");
    kernels.n++;
    ASSERT_FALSE(np_hook_kernels_is_valid(&kernels));
    kernels.n--;
    for (size_t i = 0; i < kernels.n_slots; i++) { /* where nobody would look for it */
        if (kernels.slots[i].function) {
            np_hook_kernel kernel = kernels.slots[i];
            kernels.slots[i] = (np_hook_kernel){0};
            kernels.slots[(i + 2) % kernels.n_slots] = kernel;
            break;
        }
    }
    ASSERT_FALSE(np_hook_kernels_is_valid(&kernels));
    np_hook_kernels_forget(&kernels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_old_driver),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_host_memory), cmocka_unit_test(test_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
