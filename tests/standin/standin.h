/* standin.h: a driver for tests, in place of libcuda.so.1, on a machine without a GPU: what tests may ask of it.
 *
 * It is a shared library that exports the driver's functions. Device memory is a file in memory, streams are threads
 * that dawdle at random, kernels are functions of the host. What the real driver leaves undefined, or punishes much
 * later, ends the process here, at once and in words: an unmap under a copy that is not done, a mapping over another,
 * a handle that was destroyed. Whatever is not mapped cannot be touched at all.
 *
 * From the environment, when cuInit is called:
 *     STANDIN_DEVICES      how many GPUs there are, 1 where it is not set
 *     STANDIN_MEMORY       bytes each of them has, 1 GiB
 *     STANDIN_GRANULARITY  bytes of a page, 2 MiB
 *     STANDIN_SEED         of the delays
 *     STANDIN_DELAY_US     the longest of them; 0: none
 *     STANDIN_FAIL         SYMBOL:N:CODE, the N-th call of a function fails with that number
 *     STANDIN_NO_VIRTUAL_MEMORY  set to anything: the devices cannot map memory
 *
 * A test that has loaded the library finds the functions below by dlsym(library, "standin_get_control"). */
#ifndef TESTS_STANDIN_STANDIN_H
#define TESTS_STANDIN_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What lives at the moment, and what was noticed. */
typedef struct standin_counts {
    uint64_t n_contexts; /* retained */
    uint64_t n_streams;  /* but for the default one */
    uint64_t n_events;
    uint64_t n_memories; /* handles that were not released, or are still mapped */
    uint64_t n_mappings;
    uint64_t n_reservations;
    uint64_t n_allocations; /* by cuMemAlloc */
    uint64_t n_registered;  /* ranges of host memory */
    uint64_t n_graphs;
    uint64_t n_unregistered_copies; /* since the start: copies of host memory that was not registered */
    uint64_t n_calls;               /* since the start */
    uint64_t device_bytes;          /* in use */
} standin_counts;

typedef struct standin_kernel standin_kernel; /* is a CUfunction and a CUkernel */

/* What cuModuleLoadData and cuLibraryLoadData take for code. Once a module is unloaded, the next one's kernels get the
 * handles of its kernels, as may be with the real one. */
typedef struct standin_image_kernel {
    const char *name;
    void (*run)(void **parameters);
    void (*early)(void **parameters); /* NULL, or what it does first: see cuLaunchKernelEx in kernel.c */
    size_t n;                         /* parameters */
    const size_t *bytes;              /* of each */
} standin_image_kernel;

typedef struct standin_image {
    size_t n;
    const standin_image_kernel *kernels;
} standin_image;

/* A call of a function, at its begin (result NULL) and its end: to the tracer, in the calling thread. */
typedef struct standin_traced {
    const char *symbol;
    const void *parameters; /* a struct of all of them, in order; NULL: there are none */
    const char *kernel;     /* name; NULL: no kernel is launched */
    void *context;
    unsigned context_id;
    unsigned correlation; /* the same at begin and end */
    uint64_t *data;       /* the tracer's own, kept from begin to end */
    void *result;         /* CUresult */
} standin_traced;

typedef void (*standin_tracer)(const standin_traced *call);
typedef void (*standin_set_tracer_function)(
    standin_tracer tracer); /* dlsym(library, "standin_set_tracer"); NULL: none */

typedef struct standin_control {
    void (*count)(standin_counts *counts);

    /* The n-th call from now on of a function, or of any where `symbol` is NULL, fails with `code`; with `sticky` all from
     * then on. n 0: none does. Functions that cannot fail (cuGetErrorName) are not counted. */
    void (*fail_call)(const char *symbol, uint64_t n, int code, bool sticky);
    uint64_t (*n_failed)(void);              /* since the last fail_call */
    uint64_t (*n_calls)(const char *symbol); /* since the start */
    const char *(*nth_symbol)(size_t index); /* of those called so far; NULL after the last */

    void (*set_memory)(uint64_t bytes); /* what each device has */
    void (*set_delay)(uint64_t longest_us);
    void (*set_hints)(bool are_refused); /* a reservation that names an address fails */

    /* Work on a stream: run(arg), arg copied. A kernel without a name. */
    int (*launch)(void *stream, void (*run)(void *arg), const void *arg, size_t arg_bytes);

    /* A kernel with parameters of these sizes, which are laid out as C would in a struct, each aligned to its size up to
     * 8 bytes. It runs once for a launch, whatever the grid. */
    standin_kernel *(*kernel_create)(const char *name, void (*run)(void **parameters), size_t n, const size_t *bytes);
    void (*kernel_free)(standin_kernel *kernel);
} standin_control;

typedef const standin_control *(*standin_get_control_function)(void);

#endif
