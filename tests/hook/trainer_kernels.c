/* trainer_kernels.c: the kernels, and the functions that launch them. */
#include <dlfcn.h>
#include <string.h>

#include "hook/trainer.h"

static const dim3 one = {1, 1, 1};

static void launch(const void *function, void **parameters, cudaStream_t stream)
{
    if (option.cooperative) {
        CHECK(cudaLaunchCooperativeKernel(function, one, one, parameters, 0, stream));
    } else {
        CHECK(cudaLaunchKernel(function, one, one, parameters, 0, stream));
    }
}

/* The i-th parameter. */
#define PARAMETER(type, i) (*(type *)parameters[i])

static size_t n_touched(size_t bytes)
{
    return bytes / (STEP * sizeof(word));
}

word sum_on_host(const word *in, size_t bytes)
{
    word sum = 0;
    for (size_t i = 0; i < n_touched(bytes); i++) {
        sum = sum * 31 + in[i * STEP];
    }
    return sum;
}

/* ---- kernels ---- */

static void run_fill(void **parameters)
{
    word *to = PARAMETER(word *, 0);
    size_t n = n_touched(PARAMETER(size_t, 1));
    word seed = PARAMETER(word, 2);
    for (size_t i = 0; i < n; i++) {
        to[i * STEP] = (word)(i * 2654435761u) ^ seed;
    }
}

/* Through the workspace, as a convolution does. The last parameter is not used. */
static void run_forward(void **parameters)
{
    word *out = PARAMETER(word *, 0);
    const word *in = PARAMETER(const word *, 1);
    const word *weights = PARAMETER(const word *, 2);
    word *workspace = PARAMETER(word *, 3);
    size_t n_out = n_touched(PARAMETER(size_t, 4));
    size_t n_in = n_touched(PARAMETER(size_t, 5));
    size_t n_weights = n_touched(PARAMETER(size_t, 6));
    size_t n_workspace = n_touched(PARAMETER(size_t, 7));
    for (size_t i = 0; i < n_workspace; i++) {
        workspace[i * STEP] = in[i % n_in * STEP] + 5 * weights[i % n_weights * STEP];
    }
    for (size_t i = 0; i < n_out; i++) {
        out[i * STEP] = 3 * in[i % n_in * STEP] + weights[7 * i % n_weights * STEP] + workspace[i % n_workspace * STEP];
    }
}

/* What a programmatic launch may do before the kernel in front of it is done: its output is its own. */
static void early_forward_programmatic(void **parameters)
{
    word *out = PARAMETER(word *, 0);
    size_t n_out = n_touched(PARAMETER(size_t, 4));
    for (size_t i = 0; i < n_out; i++) {
        out[i * STEP] = (word)i;
    }
}

static void run_forward_programmatic(void **parameters)
{
    word *out = PARAMETER(word *, 0);
    const word *in = PARAMETER(const word *, 1);
    const word *weights = PARAMETER(const word *, 2);
    word *workspace = PARAMETER(word *, 3);
    size_t n_out = n_touched(PARAMETER(size_t, 4));
    size_t n_in = n_touched(PARAMETER(size_t, 5));
    size_t n_weights = n_touched(PARAMETER(size_t, 6));
    size_t n_workspace = n_touched(PARAMETER(size_t, 7));
    for (size_t i = 0; i < n_workspace; i++) {
        workspace[i * STEP] = in[i % n_in * STEP] + 5 * weights[i % n_weights * STEP];
    }
    for (size_t i = 0; i < n_out; i++) {
        out[i * STEP] +=
            3 * in[i % n_in * STEP] + weights[7 * i % n_weights * STEP] + workspace[i % n_workspace * STEP];
    }
}

static void run_activate(void **parameters)
{
    word *inout = PARAMETER(word *, 0);
    size_t n = n_touched(PARAMETER(size_t, 1));
    for (size_t i = 0; i < n; i++) {
        inout[i * STEP] ^= inout[i * STEP] >> 3;
    }
}

static void run_backward_data(void **parameters)
{
    word *in_gradient = PARAMETER(word *, 0);
    const word *out_gradient = PARAMETER(const word *, 1);
    const word *weights = PARAMETER(const word *, 2);
    size_t n_in = n_touched(PARAMETER(size_t, 3));
    size_t n_out = n_touched(PARAMETER(size_t, 4));
    size_t n_weights = n_touched(PARAMETER(size_t, 5));
    for (size_t i = 0; i < n_in; i++) {
        in_gradient[i * STEP] = out_gradient[5 * i % n_out * STEP] * (weights[i % n_weights * STEP] | 1);
    }
}

static void run_backward_weights(void **parameters)
{
    word *gradient = PARAMETER(word *, 0);
    const word *out_gradient = PARAMETER(const word *, 1);
    const word *in = PARAMETER(const word *, 2);
    size_t n_weights = n_touched(PARAMETER(size_t, 3));
    size_t n_out = n_touched(PARAMETER(size_t, 4));
    size_t n_in = n_touched(PARAMETER(size_t, 5));
    size_t n = n_out > n_in ? n_out : n_in;
    for (size_t i = 0; i < n_weights; i++) {
        gradient[i * STEP] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        gradient[i % n_weights * STEP] += out_gradient[i % n_out * STEP] ^ in[i % n_in * STEP];
    }
}

static void run_update(void **parameters)
{
    const tensors *all = parameters[0];
    for (uint32_t t = 0; t < all->n; t++) {
        for (size_t i = 0; i < n_touched(all->bytes[t]); i++) {
            word *momentum = &all->momenta[t][i * STEP];
            *momentum = 3 * *momentum + all->gradients[t][i * STEP];
            all->weights[t][i * STEP] -= all->rate * *momentum;
        }
    }
}

static void run_reduce(void **parameters)
{
    word *sum = PARAMETER(word *, 0);
    *sum += sum_on_host(PARAMETER(const word *, 1), PARAMETER(size_t, 2));
}

static void run_scale(void **parameters)
{
    word *inout = PARAMETER(word *, 0);
    size_t n = n_touched(PARAMETER(size_t, 1));
    for (size_t i = 0; i < n; i++) {
        inout[i * STEP] *= PARAMETER(word, 2);
    }
}

static void run_by_table(void **parameters)
{
    word *sum = PARAMETER(word *, 0);
    const table_entry *table = PARAMETER(const table_entry *, 1);
    for (size_t i = 0; i < PARAMETER(size_t, 2); i++) {
        *sum += sum_on_host(table[i].at, table[i].bytes);
    }
}

typedef struct grouped {
    table_entry entries[MAX_TENSORS];
    size_t n;
} grouped;

static void run_make_table(void **parameters)
{
    table_entry *table = PARAMETER(table_entry *, 0);
    const grouped *of = parameters[1];
    memcpy(table, of->entries, of->n * sizeof *table);
}

/* Two of the same name and handle, in two modules, with other parameters: (sum, in, bytes) and (sum, nothing, bytes,
 * nothing, in). */
static void run_reloaded_first(void **parameters)
{
    *PARAMETER(word *, 0) += sum_on_host(PARAMETER(const word *, 1), PARAMETER(size_t, 2));
}

static void run_reloaded_second(void **parameters)
{
    *PARAMETER(word *, 0) += sum_on_host(PARAMETER(const word *, 4), PARAMETER(size_t, 2));
}

/* ---- their parameters ---- */

static const size_t fill_bytes[] = {8, 8, 4};
static const size_t forward_bytes[] = {8, 8, 8, 8, 8, 8, 8, 8, 8};
static const size_t activate_bytes[] = {8, 8};
static const size_t backward_bytes[] = {8, 8, 8, 8, 8, 8};
static const size_t update_bytes[] = {sizeof(tensors)};
static const size_t reduce_bytes[] = {8, 8, 8};
static const size_t make_table_bytes[] = {8, sizeof(grouped)};
static const size_t second_bytes[] = {8, 4, 8, 4, 8};

#define N(bytes) (sizeof(bytes) / sizeof *(bytes)), (bytes)

static const standin_image_kernel kernels[] = {
    {"_Z4fillPjmj", run_fill, NULL, N(fill_bytes)},
    {"_ZN5train7forwardEPjPKjS2_S0_mmmmPKv", run_forward, NULL, N(forward_bytes)},
    {"_ZN5train20forward_programmaticEPjPKjS2_S0_mmmmPKv", run_forward_programmatic, early_forward_programmatic,
     N(forward_bytes)},
    {"_ZN5train8activateEPjm", run_activate, NULL, N(activate_bytes)},
    {"_ZN5train13backward_dataEPjPKjS2_mmm", run_backward_data, NULL, N(backward_bytes)},
    {"_ZN5train16backward_weightsEPjPKjS2_mmm", run_backward_weights, NULL, N(backward_bytes)},
    {"_ZN2at6native25multi_tensor_apply_kernelI7tensorsEEvT_", run_update, NULL, N(update_bytes)},
    {"_ZN2at6native13reduce_kernelEPjPKjm", run_reduce, NULL, N(reduce_bytes)},
    {"_ZN5train5scaleEPjmj", run_scale, NULL, N(fill_bytes)},
    {"_ZN5train8by_tableEPjPK11table_entrym", run_by_table, NULL, N(reduce_bytes)},
    {"_ZN2at4cuda6detail25prepare_grouped_gemm_dataI7groupedEEvP11table_entryT_", run_make_table, NULL,
     N(make_table_bytes)},
};

enum {
    FILL,
    FORWARD,
    FORWARD_PROGRAMMATIC,
    ACTIVATE,
    BACKWARD_DATA,
    BACKWARD_WEIGHTS,
    UPDATE,
    REDUCE,
    SCALE,
    BY_TABLE,
    MAKE_TABLE
};

static const standin_image_kernel reloaded[] = {
    {"reloaded", run_reloaded_first, NULL, N(reduce_bytes)},
    {"reloaded", run_reloaded_second, NULL, N(second_bytes)},
};

void kernels_register(void)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        standin_register(&kernels[i], &kernels[i]);
    }
}

/* ---- launches ---- */

void fill(word *to, size_t bytes, word seed, cudaStream_t stream)
{
    void *parameters[] = {&to, &bytes, &seed};
    launch(&kernels[FILL], parameters, stream);
}

void forward(word *out, size_t out_bytes, const word *in, size_t in_bytes, const word *weights, size_t weight_bytes,
             word *workspace, size_t workspace_bytes, const void *unused, cudaStream_t stream)
{
    void *parameters[] = {&out,      &in,           &weights,         &workspace, &out_bytes,
                          &in_bytes, &weight_bytes, &workspace_bytes, &unused};
    if (option.programmatic) {
        cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
        cudaLaunchConfig_t config = {
            .gridDim = one, .blockDim = one, .stream = stream, .attrs = &attribute, .numAttrs = 1};
        attribute.val.programmaticStreamSerializationAllowed = 1;
        CHECK(cudaLaunchKernelExC(&config, &kernels[FORWARD_PROGRAMMATIC], parameters));
    } else {
        launch(&kernels[FORWARD], parameters, stream);
    }
}

void activate(word *inout, size_t bytes, cudaStream_t stream)
{
    void *parameters[] = {&inout, &bytes};
    launch(&kernels[ACTIVATE], parameters, stream);
}

void backward_data(word *in_gradient, size_t in_bytes, const word *out_gradient, size_t out_bytes, const word *weights,
                   size_t weight_bytes, cudaStream_t stream)
{
    void *parameters[] = {&in_gradient, &out_gradient, &weights, &in_bytes, &out_bytes, &weight_bytes};
    launch(&kernels[BACKWARD_DATA], parameters, stream);
}

void backward_weights(word *gradient, size_t weight_bytes, const word *out_gradient, size_t out_bytes, const word *in,
                      size_t in_bytes, cudaStream_t stream)
{
    void *parameters[] = {&gradient, &out_gradient, &in, &weight_bytes, &out_bytes, &in_bytes};
    launch(&kernels[BACKWARD_WEIGHTS], parameters, stream);
}

void update(const tensors *all, cudaStream_t stream)
{
    tensors copy = *all;
    void *parameters[] = {&copy};
    launch(&kernels[UPDATE], parameters, stream);
}

void reduce(word *sum, const word *in, size_t bytes, cudaStream_t stream)
{
    void *parameters[] = {&sum, &in, &bytes};
    launch(&kernels[REDUCE], parameters, stream);
}

void scale(word *inout, size_t bytes, word factor, cudaStream_t stream)
{
    void *parameters[] = {&inout, &bytes, &factor};
    launch(&kernels[SCALE], parameters, stream);
}

void by_table(word *sum, const void *table, size_t n, cudaStream_t stream)
{
    void *parameters[] = {&sum, &table, &n};
    launch(&kernels[BY_TABLE], parameters, stream);
}

void make_table(void *table, word *const *blocks, const size_t *bytes, size_t n, cudaStream_t stream)
{
    grouped of = {.n = n};
    void *parameters[] = {&table, &of};
    for (size_t i = 0; i < n; i++) {
        of.entries[i] = (table_entry){blocks[i], bytes[i]};
    }
    launch(&kernels[MAKE_TABLE], parameters, stream);
}

/* ---- by the driver ---- */

void *driver_function(const char *symbol)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = library ? dlsym(library, symbol) : NULL;
    if (!found) {
        fail(symbol, "is not there");
    }
    return found;
}

typedef int (*load_function)(void **made, const void *image);
typedef int (*find_function)(void **function, void *module, const char *name);
typedef int (*unload_function)(void *module);
typedef int (*launch_function)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                               cudaStream_t stream, void **parameters, void **extra);

#define DRIVER(type, name, symbol)                \
    type name;                                    \
    void *name##_found = driver_function(symbol); \
    memcpy(&(name), &name##_found, sizeof name##_found)

/* A module of one kernel, used once. The next one's kernel has the same handle. */
void reload_kernels(word *sum, const word *in, size_t bytes, unsigned which, cudaStream_t stream)
{
    const standin_image image = {1, &reloaded[which % 2]};
    void *module = NULL;
    void *function = NULL;
    int nothing = 0;
    void *first[] = {&sum, &in, &bytes};
    void *second[] = {&sum, &nothing, &bytes, &nothing, &in};
    DRIVER(load_function, load, "cuModuleLoadData");
    DRIVER(find_function, find, "cuModuleGetFunction");
    DRIVER(launch_function, launch_kernel, "cuLaunchKernel");
    DRIVER(unload_function, unload, "cuModuleUnload");
    CHECK(load(&module, &image));
    CHECK(find(&function, module, "reloaded"));
    CHECK(launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, which % 2 ? second : first, NULL));
    CHECK(unload(module));
}

void reduce_by_buffer(word *sum, const word *in, size_t bytes, cudaStream_t stream)
{
    static void *function; /* of a module that stays */
    struct {
        word *sum;
        const word *in;
        size_t bytes;
    } buffer = {sum, in, bytes};
    size_t buffer_bytes = sizeof buffer;
    void *extra[] = {(void *)1, &buffer, (void *)2, &buffer_bytes, NULL};
    DRIVER(load_function, load, "cuModuleLoadData");
    DRIVER(find_function, find, "cuModuleGetFunction");
    DRIVER(launch_function, launch_kernel, "cuLaunchKernel");
    if (!function) {
        const standin_image image = {1, &kernels[REDUCE]};
        void *module = NULL;
        CHECK(load(&module, &image));
        CHECK(find(&function, module, kernels[REDUCE].name));
    }
    CHECK(launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
}

/* CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct node_of_kernel {
    void *function;
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    void **parameters;
    void **extra;
    void *kernel;
    void *context;
} node_of_kernel;

typedef int (*add_function)(void **node, cudaGraph_t graph, const void *after, size_t n, const node_of_kernel *of);

void scale_by_node(cudaGraph_t graph, word *inout, size_t bytes, word factor)
{
    const standin_image image = {1, &kernels[SCALE]};
    void *parameters[] = {&inout, &bytes, &factor};
    node_of_kernel of = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = parameters};
    void *module = NULL; /* it stays */
    void *node = NULL;
    DRIVER(load_function, load, "cuModuleLoadData");
    DRIVER(find_function, find, "cuModuleGetFunction");
    DRIVER(add_function, add_node, "cuGraphAddKernelNode_v2");
    CHECK(load(&module, &image));
    CHECK(find(&of.function, module, kernels[SCALE].name));
    CHECK(add_node(&node, graph, NULL, 0, &of));
}
