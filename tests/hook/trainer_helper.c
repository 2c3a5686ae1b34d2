/* trainer_helper.c: a thread that does nothing but copy, as gloo's do: what it brings from the host comes some time in the
 * forward pass, another time in every iteration. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hook/trainer_network.h"

enum { HELPED_BYTES = 256 << 10, NAP_NS = 500000 };

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    cudaStream_t stream;
    cudaEvent_t before; /* all that used the block before */
    cudaEvent_t after;
    uint64_t random;
    word *to; /* NULL: there is nothing to do */
    bool is_over;
    word from[HELPED_BYTES / sizeof(word)];
};

static void help(helper *h)
{
    const struct timespec nap = {0, (long)random_below(&h->random, NAP_NS)};
    (void)nanosleep(&nap, NULL);
    CHECK(cudaStreamWaitEvent(h->stream, h->before, 0));
    CHECK(cudaMemcpyAsync(h->to, h->from, HELPED_BYTES, cudaMemcpyHostToDevice, h->stream));
    CHECK(cudaEventRecord(h->after, h->stream));
}

static void *run_helper(void *user)
{
    helper *h = user;
    (void)pthread_mutex_lock(&h->lock);
    while (!h->is_over) {
        if (h->to) {
            help(h);
            h->to = NULL;
            (void)pthread_cond_broadcast(&h->changed);
        } else {
            (void)pthread_cond_wait(&h->changed, &h->lock);
        }
    }
    (void)pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* There is nothing left to do for it from before: it was waited for. */
static void give(helper *h, word *to, unsigned iteration)
{
    (void)pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < sizeof h->from / sizeof *h->from; i++) {
        h->from[i] = (word)i * 7 + iteration;
    }
    h->to = to;
    (void)pthread_cond_broadcast(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
}

static void wait_for(helper *h)
{
    (void)pthread_mutex_lock(&h->lock);
    while (h->to) {
        (void)pthread_cond_wait(&h->changed, &h->lock);
    }
    (void)pthread_mutex_unlock(&h->lock);
}

void helper_begin(network *net)
{
    helper *h = calloc(1, sizeof *h);
    if (!h) {
        fail("helper", "no memory");
    }
    net->helper = h;
    h->random = net->random;
    CHECK(cudaStreamCreateWithFlags(&h->stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&h->before, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&h->after, cudaEventDisableTiming));
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_cond_init(&h->changed, NULL);
    if (pthread_create(&h->thread, NULL, run_helper, h) != 0) {
        fail("helper", "no thread");
    }
    net->helped = option.helper == 1 ? get(HELPED_BYTES, net->stream) : NULL;
}

void helper_end(network *net)
{
    helper *h = net->helper;
    (void)pthread_mutex_lock(&h->lock);
    h->is_over = true;
    (void)pthread_cond_broadcast(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->thread, NULL);
    if (net->helped) {
        put(net->helped, net->stream);
    }
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaStreamDestroy(h->stream));
    CHECK(cudaEventDestroy(h->before));
    CHECK(cudaEventDestroy(h->after));
    (void)pthread_mutex_destroy(&h->lock);
    (void)pthread_cond_destroy(&h->changed);
    free(h);
}

void helper_ask(network *net)
{
    if (option.helper == 2) {
        net->helped = get(HELPED_BYTES, net->stream);
    }
    CHECK(cudaEventRecord(net->helper->before, net->stream));
    give(net->helper, net->helped, net->iteration);
}

void helper_use(network *net, word *sum)
{
    wait_for(net->helper);
    CHECK(cudaStreamWaitEvent(net->stream, net->helper->after, 0));
    reduce(sum, net->helped, HELPED_BYTES, net->stream);
    if (option.helper == 2) {
        put(net->helped, net->stream);
        net->helped = NULL;
    }
}
