/* trainer_model.c: the network: layers whose activations shrink and whose weights grow; forward in one thread, backward
 * in another, as PyTorch does it. What the options add is in trainer_more.c. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hook/trainer_network.h"

enum { KIB = 1024, SMALL = 512 };

/* ---- sizes ---- */

size_t activation_bytes(size_t layer, unsigned size)
{
    size_t whole = option.scale * 256 * KIB >> (layer / 3);
    size_t bytes = (whole < 64 * KIB ? 64 * KIB : whole) / 16 * size;
    return bytes - bytes % 512 + 512 * layer; /* no two equal */
}

static size_t weight_bytes(size_t layer)
{
    size_t bytes = option.scale * 4 * KIB << (layer / 3);
    return (bytes > 4096 * KIB ? 4096 * KIB : bytes) + 512 * layer;
}

size_t workspace_bytes(size_t layer, unsigned size)
{
    return layer % 3 == 0 ? SMALL : activation_bytes(layer, size) / 2 / 512 * 512;
}

/* ---- the thread of the backward pass ---- */

static void *worker_run(void *user)
{
    network *net = user;
    (void)pthread_mutex_lock(&net->lock);
    while (!net->is_over) {
        while (!net->work && !net->is_over) {
            (void)pthread_cond_wait(&net->changed, &net->lock);
        }
        if (net->work) {
            void (*work)(network *) = net->work;
            (void)pthread_mutex_unlock(&net->lock);
            work(net);
            (void)pthread_mutex_lock(&net->lock);
            net->work = NULL;
            (void)pthread_cond_broadcast(&net->changed);
        }
    }
    (void)pthread_mutex_unlock(&net->lock);
    return NULL;
}

static void worker_do(network *net, void (*work)(network *))
{
    (void)pthread_mutex_lock(&net->lock);
    net->work = work;
    (void)pthread_cond_broadcast(&net->changed);
    while (net->work) {
        (void)pthread_cond_wait(&net->changed, &net->lock);
    }
    (void)pthread_mutex_unlock(&net->lock);
}

/* ---- the network ---- */

network *network_make(uint64_t seed, cudaStream_t stream)
{
    network *net = calloc(1, sizeof *net);
    if (!net) {
        fail("network", "out of memory");
    }
    net->stream = stream;
    net->random = seed;
    net->n = option.layers;
    for (size_t i = 0; i < net->n; i++) {
        net->weight_bytes[i] = weight_bytes(i);
        net->weights[i] = get(net->weight_bytes[i], stream);
        fill(net->weights[i], net->weight_bytes[i], (word)(seed + i), stream);
    }
    net->sums = get(SMALL, stream);
    (void)pthread_mutex_init(&net->lock, NULL);
    (void)pthread_cond_init(&net->changed, NULL);
    more_begin(net);
    if (pthread_create(&net->worker, NULL, worker_run, net) != 0) {
        fail("network", "no thread");
    }
    return net;
}

static void zero_gradients(network *net)
{
    for (size_t i = 0; i < net->n; i++) {
        if (net->gradients[i]) {
            put(net->gradients[i], net->stream);
            net->gradients[i] = NULL;
        }
    }
}

void network_free(network *net)
{
    (void)pthread_mutex_lock(&net->lock);
    net->is_over = true;
    (void)pthread_cond_broadcast(&net->changed);
    (void)pthread_mutex_unlock(&net->lock);
    (void)pthread_join(net->worker, NULL);
    zero_gradients(net);
    more_end(net);
    for (size_t i = 0; i < net->n; i++) {
        put(net->weights[i], net->stream);
        if (net->momenta[i]) {
            put(net->momenta[i], net->stream);
        }
    }
    put(net->sums, net->stream);
    CHECK(cudaDeviceSynchronize());
    (void)pthread_mutex_destroy(&net->lock);
    (void)pthread_cond_destroy(&net->changed);
    free(net);
}

/* ---- passes ---- */

static void *stale_word(network *net)
{
    bool is_stale = option.stale > 0 && random_below(&net->random, (uint32_t)option.stale) == 0;
    return is_stale ? some_address(&net->random) : NULL;
}

word *load_input(network *net, unsigned iteration, unsigned size, word *into)
{
    size_t bytes = activation_bytes(0, size);
    word *host = malloc(bytes);
    word *in = into ? into : get(bytes, net->stream);
    if (!host) {
        fail("input", "out of memory");
    }
    for (size_t i = 0; i < bytes / sizeof *host; i++) {
        host[i] = (word)(i * 40503u) + iteration;
    }
    CHECK(cudaMemcpyAsync(in, host, bytes, cudaMemcpyHostToDevice, net->stream));
    free(host); /* it is pageable: the copy has taken it */
    return in;
}

void forward_layer(network *net, size_t layer, const word *in, word *out, unsigned size, word *workspace,
                   cudaStream_t stream)
{
    const void *unused = stale_word(net);
    size_t bytes = activation_bytes(layer + 1, size);
    word *own = workspace ? workspace : get(workspace_bytes(layer, size), stream);
    forward(out, bytes, in, activation_bytes(layer, size), net->weights[layer], net->weight_bytes[layer], own,
            workspace_bytes(layer, size), unused, stream);
    if (!workspace) {
        put(own, stream);
    }
    activate(out, bytes, stream);
}

word read_sum(network *net, size_t index)
{
    word host = 0;
    CHECK(cudaMemcpyAsync(&host, net->sums + index * STEP, sizeof host, cudaMemcpyDeviceToHost, net->stream));
    CHECK(cudaStreamSynchronize(net->stream));
    return host;
}

static void forward_pass(network *net)
{
    if (option.graph) {
        graph_forward(net);
        return;
    }
    net->activations[0] = load_input(net, net->iteration, net->size, NULL);
    for (size_t i = 0; i < net->n; i++) {
        net->activations[i + 1] = get(activation_bytes(i + 1, net->size), net->stream);
        forward_layer(net, i, net->activations[i], net->activations[i + 1], net->size, NULL, net->stream);
        more_after_layer(net, i);
    }
}

static void backward_pass(network *net)
{
    size_t bytes = activation_bytes(net->n, net->size);
    word *out_gradient = get(bytes, net->stream);
    more_before_backward(net);
    fill(out_gradient, bytes, net->iteration, net->stream);
    for (size_t i = net->n; i-- > 0;) {
        size_t in_bytes = activation_bytes(i, net->size);
        word *in_gradient = NULL;
        net->gradients[i] = get(net->weight_bytes[i], net->stream);
        backward_weights(net->gradients[i], net->weight_bytes[i], out_gradient, bytes, net->activations[i], in_bytes,
                         net->stream);
        if (!option.graph) {
            put(net->activations[i + 1], net->stream);
        }
        if (i > 0) {
            in_gradient = get(in_bytes, net->stream);
            backward_data(in_gradient, in_bytes, out_gradient, bytes, net->weights[i], net->weight_bytes[i],
                          net->stream);
        }
        put(out_gradient, net->stream);
        out_gradient = in_gradient;
        bytes = in_bytes;
        more_at_random(net);
    }
    if (!option.graph) {
        put(net->activations[0], net->stream);
    }
}

static void clip(network *net)
{
    word norm;
    for (size_t i = 0; i < net->n; i++) {
        reduce(net->sums + STEP, net->gradients[i], net->weight_bytes[i], net->stream);
    }
    norm = read_sum(net, 1);
    for (size_t i = 0; i < net->n; i++) {
        scale(net->gradients[i], net->weight_bytes[i], norm % 7 + 1, net->stream);
    }
}

/* Some layers at a time: the last launch uses fewer entries than there are. */
static void step_some(network *net, size_t from, size_t to)
{
    tensors some = {.n = (uint32_t)(to - from), .rate = 5};
    for (size_t i = 0; i < MAX_TENSORS; i++) {
        some.weights[i] = stale_word(net);
        some.gradients[i] = stale_word(net);
        some.momenta[i] = stale_word(net);
    }
    for (size_t i = from; i < to; i++) {
        if (!net->momenta[i]) {
            net->momenta[i] = get(net->weight_bytes[i], net->stream);
            fill(net->momenta[i], net->weight_bytes[i], 0, net->stream);
        }
        some.weights[i - from] = net->weights[i];
        some.gradients[i - from] = net->gradients[i];
        some.momenta[i - from] = net->momenta[i];
        some.bytes[i - from] = net->weight_bytes[i];
    }
    update(&some, net->stream);
}

static void step(network *net)
{
    enum { AT_ONCE = 4 };
    for (size_t i = 0; i < net->n; i += AT_ONCE) {
        step_some(net, i, i + AT_ONCE < net->n ? i + AT_ONCE : net->n);
    }
}

result network_train(network *net, unsigned iteration, unsigned size)
{
    result r = {0, 0, 0};
    net->iteration = iteration;
    net->size = option.graph ? 16 : size;
    zero_gradients(net);
    CHECK(cudaMemsetAsync(net->sums, 0, SMALL, net->stream));
    more_before_forward(net);
    forward_pass(net);
    reduce(net->sums, net->activations[net->n], activation_bytes(net->n, net->size), net->stream);
    r.loss = read_sum(net, 0);
    worker_do(net, backward_pass);
    if (option.clip) {
        clip(net);
        r.norm = read_sum(net, 1);
    }
    step(net);
    more_after_step(net);
    r.more = net->more + read_sum(net, 2);
    return r;
}

word network_evaluate(network *net, unsigned size)
{
    word *in = load_input(net, 1, size, NULL);
    CHECK(cudaMemsetAsync(net->sums, 0, SMALL, net->stream));
    for (size_t i = 0; i < net->n; i++) {
        word *out = get(activation_bytes(i + 1, size), net->stream);
        forward_layer(net, i, in, out, size, NULL, net->stream);
        put(in, net->stream);
        in = out;
    }
    reduce(net->sums, in, activation_bytes(net->n, size), net->stream);
    put(in, net->stream);
    return read_sum(net, 0);
}

/* Copies give and take blocks of both devices, whichever is the current one. */
word network_mirror(const network *net)
{
    word sum = 0;
    CHECK(cudaSetDevice(1));
    for (size_t i = 0; i < net->n; i++) {
        void *mirror = NULL;
        word *host = malloc(net->weight_bytes[i]);
        if (!host) {
            fail("mirror", "out of memory");
        }
        CHECK(cudaMalloc(&mirror, net->weight_bytes[i]));
        CHECK(cudaMemcpy(mirror, net->weights[i], net->weight_bytes[i], cudaMemcpyDefault));
        CHECK(cudaMemcpy(host, mirror, net->weight_bytes[i], cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(net->weights[i], mirror, net->weight_bytes[i], cudaMemcpyDeviceToDevice));
        CHECK(cudaFree(mirror));
        sum = 31 * sum + sum_on_host(host, net->weight_bytes[i]);
        free(host);
    }
    CHECK(cudaSetDevice(0));
    return sum;
}

word network_checkpoint(const network *net)
{
    word sum = 0;
    for (size_t i = 0; i < net->n; i++) {
        word *host = malloc(net->weight_bytes[i]);
        if (!host) {
            fail("checkpoint", "out of memory");
        }
        if (net->stream) {
            CHECK(cudaStreamSynchronize(net->stream));
        }
        CHECK(cudaMemcpy(host, net->weights[i], net->weight_bytes[i], cudaMemcpyDeviceToHost));
        sum = 31 * sum + sum_on_host(host, net->weight_bytes[i]);
        free(host);
    }
    return sum;
}
