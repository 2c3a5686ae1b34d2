/* trainer.h: a program that trains on the GPU and knows nothing of neap: the parts of trainer.c.
 *
 * All arithmetic is on integers, so that two runs of it print the same bytes unless memory was wrong. Kernels touch one
 * word in sixteen, at least one in every 64 bytes, of all they use. */
#ifndef TESTS_HOOK_TRAINER_H
#define TESTS_HOOK_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin_cudart/cudart.h"

/* ---- trainer.c: options. Numbers: 0 is "no"; most say every how many iterations something happens ---- */

/* clang-format off */
#define TRAINER_OPTIONS(X)                                                                      \
    X(iterations, 20, "how many")                                                               \
    X(layers, 10, "how many")                                                                   \
    X(scale, 16, "size of activations, in 256 KiB: the largest")                                \
    X(seed, 1, "of all that is random")                                                         \
    X(pause, 0, "milliseconds after each iteration")                                            \
    X(await, 0, "after each iteration, until the planner that is in front of it has no work, if there is one") \
    X(evaluate, 0, "every so many iterations, a forward pass of another size")                  \
    X(alternate, 0, "every second iteration has a smaller batch")                               \
    X(grow, 0, "every iteration has a larger batch than the one before: no two are equal")      \
    X(side, 0, "a branch of the network on a stream of its own")                                \
    X(clip, 0, "a norm of the gradients is read by the host in the middle")                     \
    X(checkpoint, 0, "every so many iterations, all weights are copied to the host")            \
    X(stale, 0, "one in so many unused fields of parameters is an address of some block, another each time") \
    X(table, 0, "a kernel finds its blocks in a table that the host copied in; 2: as a rectangle") \
    X(grouped, 0, "a kernel finds its blocks in a table that a kernel made")                    \
    X(hidden, 0, "a kernel finds a block in a table that nobody knows of; 2: on the side stream, 3: in the graph; 4: it writes") \
    X(graph, 0, "the forward pass is a graph; 2: its memory is allocated in the capture")       \
    X(child, 0, "the graph becomes a part of another, and is destroyed")                        \
    X(reuse, 0, "after a capture, memory of the same sizes is asked for on its stream, and stays") \
    X(byhand, 0, "the graph has a node that was put in by hand")                                \
    X(regraph, 0, "every so many iterations, the graph is captured anew")                       \
    X(fork, 0, "in this iteration, a child is forked that ends at once; 0: none")               \
    X(spawn, 0, "in this iteration, another program is run")                                    \
    X(ipc, 0, "blocks are shared with another process, which reads them when it likes")         \
    X(nic, 0, "a block is registered with a network card, which reads it when it likes")        \
    X(peer, 0, "in this iteration, another device is let in to this one's memory")              \
    X(unknown, 0, "every so many iterations, a driver call that nobody knows: a copy by its name") \
    X(future, 0, "every so many iterations, one that could do anything, by its name")           \
    X(extra, 0, "in one of so many places, at random, a block more")                            \
    X(oom, 0, "every so many iterations, more is asked for than there is")                      \
    X(plain, 0, "memory by cudaMalloc, not cudaMallocAsync")                                    \
    X(programmatic, 0, "kernels that may begin before those in front of them end")              \
    X(reload, 0, "every so many iterations, a module is unloaded and another loaded")           \
    X(copies, 0, "copies on the device, of rectangles, and memsets")                            \
    X(buffer, 0, "parameters as one buffer, by the driver")                                     \
    X(info, 0, "asks how much memory there is, in every iteration; 2: and says so on stderr")   \
    X(trim, 0, "every so many iterations, the pool is to give back what is not in use")         \
    X(ask, 0, "every so many iterations, all that is free is asked for, and half of it, until there is some") \
    X(teardown, 0, "in this iteration, CUPTI is torn down by somebody else")                    \
    X(profiler, 0, "in this iteration, somebody else wants to subscribe to CUPTI")              \
    X(devices, 0, "in this iteration, the weights are copied to a second GPU, and back")        \
    X(profiled, 0, "somebody else has subscribed to CUPTI before all else; 2: beside others")                     \
    X(cooperative, 0, "cooperative launches")                                                   \
    X(torch, 0, "a library of PyTorch's is loaded, and nothing asked of it")                    \
    X(tool, 0, "in this iteration, somebody else subscribes to CUPTI beside others, and is told of all calls for two iterations") \
    X(snapshot, 0, "in this iteration, PyTorch is asked for a snapshot, and has another allocator from then on") \
    X(helper, 0, "a thread does nothing but copy, when it likes; 2: into another block each time") \
    X(threads, 0, "a second thread trains a network of its own, on a stream of its own")
/* clang-format on */

typedef struct options {
#define FIELD(name, value, text) unsigned long name;
    TRAINER_OPTIONS(FIELD)
#undef FIELD
} options;

extern options option;

_Noreturn void fail(const char *what, const char *why);
void check(cudaError_t error, const char *what); /* ends the program where it is one */
#define CHECK(call) check(call, #call)

uint32_t random_below(uint64_t *state, uint32_t n);

/* ---- trainer_memory.c ---- */
void memory_is_plain(void); /* from here on, by cudaMalloc: what is there is freed as it was asked for */

/* As a framework's allocator does: an error is tried again once. */
void *get(size_t bytes, cudaStream_t stream);
void put(void *freed, cudaStream_t stream);
void *get_plain(size_t bytes); /* cudaMalloc, whatever is asked for */
void put_plain(void *freed);
void *some_address(uint64_t *random); /* in a block that is live at the moment */
void *first_block(void);              /* of those, where it begins; NULL: there is none */

/* ---- trainer_kernels.c ---- */

typedef uint32_t word;

enum { STEP = 16, MAX_TENSORS = 24 }; /* a word in so many is touched */

/* Of a multi-tensor kernel: the entries behind the first n are not used. */
typedef struct tensors {
    word *weights[MAX_TENSORS];
    word *gradients[MAX_TENSORS];
    word *momenta[MAX_TENSORS];
    size_t bytes[MAX_TENSORS];
    uint32_t n;
    word rate;
} tensors;

void kernels_register(void);
void fill(word *to, size_t bytes, word seed, cudaStream_t stream);
void forward(word *out, size_t out_bytes, const word *in, size_t in_bytes, const word *weights, size_t weight_bytes,
             word *workspace, size_t workspace_bytes, const void *unused, cudaStream_t stream);
void activate(word *inout, size_t bytes, cudaStream_t stream);
void backward_data(word *in_gradient, size_t in_bytes, const word *out_gradient, size_t out_bytes, const word *weights,
                   size_t weight_bytes, cudaStream_t stream);
void backward_weights(word *gradient, size_t weight_bytes, const word *out_gradient, size_t out_bytes, const word *in,
                      size_t in_bytes, cudaStream_t stream);
void update(const tensors *all, cudaStream_t stream);
void reduce(word *sum, const word *in, size_t bytes, cudaStream_t stream); /* adds to *sum */
void scale(word *inout, size_t bytes, word factor, cudaStream_t stream);
void by_table(word *sum, const void *table, size_t n, cudaStream_t stream); /* of {address, bytes} */
void make_table(void *table, word *const *blocks, const size_t *bytes, size_t n, cudaStream_t stream);
void reload_kernels(word *sum, const word *in, size_t bytes, unsigned which, cudaStream_t stream);
void reduce_by_buffer(word *sum, const word *in, size_t bytes, cudaStream_t stream);
void scale_by_node(cudaGraph_t graph, word *inout, size_t bytes, word factor); /* in each launch of the graph */
word sum_on_host(const word *in, size_t bytes);                                /* of what kernels touch */
void *driver_function(const char *symbol);

typedef struct table_entry {
    const word *at;
    size_t bytes;
} table_entry;

/* ---- trainer_hidden.c ---- */
void hidden_register(void);

/* ---- trainer_model.c ---- */

enum { MAX_LAYERS = MAX_TENSORS };

typedef struct network network;

network *network_make(uint64_t seed, cudaStream_t stream);
void network_free(network *net);

/* One iteration, with a batch of `size` of sixteen; prints nothing. */
typedef struct result {
    word loss;
    word norm;
    word more; /* of what the options add */
} result;

result network_train(network *net, unsigned iteration, unsigned size);
word network_evaluate(network *net, unsigned size);
word network_checkpoint(const network *net); /* a sum over all weights, on the host */
word network_mirror(const network *net);     /* all weights go to the second device and back; what they were */

#endif
