/* trainer_network.h: a network's own state, for trainer_model.c and trainer_more.c. */
#ifndef TESTS_HOOK_TRAINER_NETWORK_H
#define TESTS_HOOK_TRAINER_NETWORK_H

#include <pthread.h>

#include "hook/trainer.h"

enum { MAX_EXTRAS = 16 };

typedef struct helper helper;

struct network {
    size_t n; /* layers */
    unsigned iteration;
    unsigned size; /* of the batch, of 16 */
    cudaStream_t stream;
    uint64_t random;
    word *weights[MAX_LAYERS];
    word *gradients[MAX_LAYERS];
    word *momenta[MAX_LAYERS];
    size_t weight_bytes[MAX_LAYERS];
    word *activations[MAX_LAYERS + 1];
    word *sums; /* 0: loss, 1: norm, 2 and 3: of what the options add; STEP words apart */
    word more;  /* what they add on the host */

    pthread_t worker; /* does the backward pass */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*work)(network *net); /* NULL: none */
    bool is_over;

    /* trainer_more.c */
    cudaStream_t side;
    cudaEvent_t event;
    word *side_sums;
    void *table;
    word *shared;
    bool is_exported;
    cudaStream_t captured;
    cudaGraphExec_t exec;
    word *workspace;
    unsigned asked;     /* how much there is, so often */
    word *reused;       /* asked for where the graph's memory was */
    word *scaled;       /* by the node that was put in by hand */
    word *secret;       /* what no parameter shows, */
    void *secret_table; /* but this table in device memory */
    helper *helper;     /* NULL: none */
    word *helped;       /* what it copies to */
    struct {
        word *at;
        unsigned left; /* places until it is freed */
    } extras[MAX_EXTRAS];
};

size_t activation_bytes(size_t layer, unsigned size);
size_t workspace_bytes(size_t layer, unsigned size);
word *load_input(network *net, unsigned iteration, unsigned size, word *into); /* into: NULL, a new block */
void forward_layer(network *net, size_t layer, const word *in, word *out, unsigned size, word *workspace,
                   cudaStream_t stream); /* workspace: NULL, a new block */
word read_sum(network *net, size_t index);

/* trainer_helper.c */
void helper_begin(network *net);
void helper_end(network *net);
void helper_ask(network *net);
void helper_use(network *net, word *sum); /* what it has brought meanwhile */

/* trainer_hidden.c: only where the option says so, each in its place */
enum { HIDDEN_PLAIN = 1, HIDDEN_SIDE, HIDDEN_GRAPH, HIDDEN_WRITE };
void hidden_begin(network *net);
void hidden_end(network *net);
void hidden_use(network *net, unsigned long place, word *sum, cudaStream_t stream);
void hidden_look(const network *net, word *sum); /* seen by all: at what it wrote */

void more_begin(network *net);
void more_end(network *net);
void more_before_forward(network *net);
void more_after_layer(network *net, size_t layer);
void more_before_backward(network *net);
void more_after_step(network *net);
void more_at_random(network *net);
void graph_forward(network *net);

#endif
