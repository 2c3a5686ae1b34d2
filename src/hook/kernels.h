/* kernels.h: where a kernel's parameters are, so that they can be looked through for addresses.
 *
 * The driver tells offset and size of each parameter; asked once a kernel, and forgotten when any module goes, as a handle
 * may then stand for another kernel. */
#ifndef NP_HOOK_KERNELS_H
#define NP_HOOK_KERNELS_H

#include "base/memory.h"
#include "device/cuda_driver.h"

typedef struct np_hook_kernel {
    void *function;    /* CUfunction, or CUkernel in its place; NULL: the slot is empty */
    char *name;        /* one word */
    size_t name_bytes; /* its '\0' included */
    uint64_t key;      /* np_program_name_key of it */
    uint32_t *sizes;   /* of its parameters */
    uint32_t n_parameters;
    bool is_known;  /* its layout is */
    bool is_pinned; /* what it is given never leaves: it passes addresses on by ways that cannot be seen */
} np_hook_kernel;

/* What a launch gives to its kernel: each parameter at an address of its own, or all in one buffer, as cuBLAS has them. */
typedef struct np_hook_parameters {
    void *const *each;  /* NULL: in a buffer, */
    const void *packed; /* unless this is NULL, too: there are none */
    size_t packed_bytes;
} np_hook_parameters;

typedef struct np_hook_kernels {
    const neap_memory *memory;
    np_hook_kernel *slots; /* open addressing, at most half full */
    size_t n_slots;        /* a power of two, or 0 */
    size_t n;
} np_hook_kernels;

void np_hook_kernels_init(np_hook_kernels *kernels, const neap_memory *memory);
void np_hook_kernels_forget(np_hook_kernels *kernels); /* all of them */

/* Asks the driver at the first time. NULL: there is no host memory for it. */
const np_hook_kernel *np_hook_kernels_get(np_hook_kernels *kernels, const np_cuda_driver *driver, void *function,
                                          const char *name);

bool np_hook_kernels_is_valid(const np_hook_kernels *kernels);

#endif
