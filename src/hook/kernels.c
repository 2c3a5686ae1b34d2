#include "hook/kernels.h"

#include <string.h>

#include "base/hash.h"
#include "run/program.h"

enum { FIRST_SLOTS = 256 };

/* Kernels that keep addresses where no parameter shows them: tables that are built in device memory, and queues of
 * collectives. */
static const char *const pinned_names[] = {
    "prepare_grouped_gemm_data", "nccl", "nvshmem", "getrf", "getrs", "getri", "geqrf", "potrf", "trsm",
};

void np_hook_kernels_init(np_hook_kernels *kernels, const neap_memory *memory)
{
    *kernels = (np_hook_kernels){.memory = memory};
}

static void kernel_free(const neap_memory *memory, np_hook_kernel *kernel)
{
    np_memory_free(memory, kernel->name, kernel->name_bytes, 1);
    np_memory_free(memory, kernel->sizes, kernel->n_parameters, sizeof *kernel->sizes);
}

void np_hook_kernels_forget(np_hook_kernels *kernels)
{
    for (size_t i = 0; i < kernels->n_slots; i++) {
        if (kernels->slots[i].function) {
            kernel_free(kernels->memory, &kernels->slots[i]);
        }
    }
    np_memory_free(kernels->memory, kernels->slots, kernels->n_slots, sizeof *kernels->slots);
    *kernels = (np_hook_kernels){.memory = kernels->memory};
}

static np_hook_kernel *slot_of(const np_hook_kernels *kernels, const void *function)
{
    size_t i = (size_t)np_mix64((uint64_t)(uintptr_t)function) & (kernels->n_slots - 1);
    while (kernels->slots[i].function && kernels->slots[i].function != function) {
        i = (i + 1) & (kernels->n_slots - 1);
    }
    return &kernels->slots[i];
}

static neap_status grow(np_hook_kernels *kernels)
{
    np_hook_kernels larger = {.memory = kernels->memory,
                              .n_slots = kernels->n_slots > 0 ? 2 * kernels->n_slots : FIRST_SLOTS,
                              .n = kernels->n};
    larger.slots = np_memory_alloc_zero(kernels->memory, larger.n_slots, sizeof *larger.slots);
    if (!larger.slots) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < kernels->n_slots; i++) {
        if (kernels->slots[i].function) {
            *slot_of(&larger, kernels->slots[i].function) = kernels->slots[i];
        }
    }
    np_memory_free(kernels->memory, kernels->slots, kernels->n_slots, sizeof *kernels->slots);
    *kernels = larger;
    return NEAP_OK;
}

/* ---- what the driver knows ---- */

static np_cu_result ask(const np_cuda_driver *driver, void *function, size_t index, bool as_kernel, size_t *bytes)
{
    size_t offset = 0;
    if (as_kernel) {
        return driver->kernel_parameter ? driver->kernel_parameter(function, index, &offset, bytes) : NP_CU_UNKNOWN;
    }
    return driver->function_parameter ? driver->function_parameter(function, index, &offset, bytes) : NP_CU_UNKNOWN;
}

/* A kernel's handle is of one of two kinds, and does not tell which. Behind the last parameter the driver says that the
 * index is no good; it says something else where it does not know the kernel. */
static neap_status find_layout(const neap_memory *memory, const np_cuda_driver *driver, np_hook_kernel *kernel)
{
    np_array(uint32_t) sizes = {0};
    np_cu_result result = NP_CU_UNKNOWN;
    neap_status status = NEAP_OK;
    for (int as_kernel = 1; as_kernel >= 0 && result != NP_CU_INVALID_VALUE && status == NEAP_OK; as_kernel--) {
        size_t bytes = 0;
        sizes.n = 0;
        while (status == NEAP_OK &&
               (result = ask(driver, kernel->function, sizes.n, as_kernel == 1, &bytes)) == NP_CU_SUCCESS) {
            status = bytes < UINT32_MAX ? np_array_push(memory, &sizes, (uint32_t)bytes) : NEAP_TOO_LARGE;
        }
    }
    kernel->is_known = status == NEAP_OK && result == NP_CU_INVALID_VALUE;
    kernel->n_parameters = kernel->is_known ? (uint32_t)sizes.n : 0;
    kernel->sizes = np_memory_alloc(memory, kernel->n_parameters, sizeof *kernel->sizes);
    if (!kernel->sizes) {
        status = NEAP_NO_MEMORY;
    } else if (kernel->n_parameters > 0) {
        memcpy(kernel->sizes, sizes.items, kernel->n_parameters * sizeof *kernel->sizes);
    }
    np_array_free(memory, &sizes);
    return status == NEAP_TOO_LARGE ? NEAP_OK : status;
}

static bool is_pinned_name(const char *name)
{
    for (size_t i = 0; i < sizeof pinned_names / sizeof *pinned_names; i++) {
        if (strstr(name, pinned_names[i])) {
            return true;
        }
    }
    return false;
}

/* A name is one word: anything else in it becomes '_'. */
static neap_status copy_name(const neap_memory *memory, const char *name, np_hook_kernel *kernel)
{
    const char *given = name && *name ? name : "kernel";
    kernel->name_bytes = strlen(given) + 1;
    kernel->name = np_memory_alloc(memory, kernel->name_bytes, 1);
    if (!kernel->name) {
        return NEAP_NO_MEMORY;
    }
    memcpy(kernel->name, given, kernel->name_bytes);
    for (char *c = kernel->name; *c; c++) {
        *c = (unsigned char)*c <= ' ' || *c == 127 ? '_' : *c;
    }
    kernel->key = np_program_name_key(kernel->name, kernel->name_bytes - 1);
    kernel->is_pinned = is_pinned_name(kernel->name);
    return NEAP_OK;
}

const np_hook_kernel *np_hook_kernels_get(np_hook_kernels *kernels, const np_cuda_driver *driver, void *function,
                                          const char *name)
{
    np_hook_kernel made = {.function = function};
    np_hook_kernel *slot;
    if (kernels->n_slots > 0) {
        slot = slot_of(kernels, function);
        if (slot->function) {
            return slot;
        }
    }
    if (2 * (kernels->n + 1) > kernels->n_slots && grow(kernels) != NEAP_OK) {
        return NULL;
    }
    if (copy_name(kernels->memory, name, &made) != NEAP_OK || find_layout(kernels->memory, driver, &made) != NEAP_OK) {
        kernel_free(kernels->memory, &made);
        return NULL;
    }
    slot = slot_of(kernels, function);
    *slot = made;
    kernels->n++;
    return slot;
}

bool np_hook_kernels_is_valid(const np_hook_kernels *kernels)
{
    size_t n = 0;
    for (size_t i = 0; i < kernels->n_slots; i++) {
        const np_hook_kernel *kernel = &kernels->slots[i];
        if (kernel->function && (!kernel->name || slot_of(kernels, kernel->function) != kernel)) {
            return false;
        }
        n += kernel->function != NULL;
    }
    return n == kernels->n && (kernels->n_slots & (kernels->n_slots - 1)) == 0 && 2 * n <= kernels->n_slots + 1;
}
