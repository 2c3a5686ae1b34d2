/* bench_training.c: makes large placement problems in the likeness of training.
 *
 *     bench_training STYLE BUFFERS SEED               a placement CSV on standard output
 *     bench_training STYLE BUFFERS SEED ITERATIONS    the same as a trace that repeats
 *
 * A network is a row of layers drawn from a few shapes. Each layer saves activations for its backward pass, uses scratch
 * memory while it works, and has parameters with gradients and two optimiser moments. The styles differ in what makes
 * training hard to place:
 *
 *   deep         one pass over very many layers: lives nest like brackets, gradients pile up until the update
 *   accumulate   many small batches over one network; gradients stay, every later batch adds to them
 *   ragged       the same, but each batch has a length of its own, so that hardly two sizes are equal
 *   checkpoint   activations are dropped and computed again, a stretch of layers at a time
 *   pipeline     several batches in flight, forward and backward in turn: lives overlap like roof tiles, they do not nest
 *   skips        deep, with activations that live on into layers far away
 *
 * The number of layers or batches is chosen so that there are about as many buffers as asked for. The same arguments
 * give the same bytes, everywhere. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

enum { SAVED_MAX = 8, SCRATCH_MAX = 5, PARAMS_MAX = 3, N_SHAPES = 7, N_LAYERS = 48, IN_FLIGHT = 6, STRETCH = 8 };

#define NEVER UINT32_MAX

typedef struct buffer {
    uint32_t begin; /* every malloc, free and exec has a time of its own */
    uint32_t end;   /* NEVER: it is always there */
    uint64_t bytes;
} buffer;

typedef struct shape {
    uint32_t n_saved, n_scratch, n_params;
    uint64_t saved[SAVED_MAX], scratch[SCRATCH_MAX], params[PARAMS_MAX];
} shape;

typedef struct layer {
    const shape *shape;
    uint32_t saved[SAVED_MAX]; /* buffers */
    uint32_t gradients[PARAMS_MAX];
    uint32_t n_open; /* saved ones */
    bool has_gradients;
} layer;

typedef struct maker {
    buffer *buffers;
    uint32_t n, room;
    uint32_t now;
    np_rng rng;
    shape shapes[N_SHAPES];
    double scale; /* of activations: this batch's length */
} maker;

static void *grown(void *old, size_t bytes)
{
    void *made = realloc(old, bytes ? bytes : 1);
    if (!made) {
        (void)fputs("bench_training: no memory\n", stderr);
        exit(2);
    }
    return made;
}

static uint32_t between(maker *m, uint32_t least, uint32_t most)
{
    return least + (uint32_t)np_rng_below(&m->rng, most - least + 1);
}

static uint32_t add(maker *m, uint64_t bytes, uint32_t begin)
{
    if (m->n == m->room) {
        m->room = m->room ? 2 * m->room : 1024;
        m->buffers = grown(m->buffers, m->room * sizeof *m->buffers);
    }
    m->buffers[m->n] = (buffer){begin, NEVER, bytes};
    return m->n++;
}

static uint32_t open_buffer(maker *m, uint64_t bytes)
{
    return add(m, bytes, m->now++);
}

static uint32_t open_activation(maker *m, uint64_t bytes)
{
    uint64_t scaled = (uint64_t)((double)bytes * m->scale) / 4 * 4;
    return open_buffer(m, scaled ? scaled : 4);
}

static void close_buffer(maker *m, uint32_t i)
{
    m->buffers[i].end = m->now++;
}

static void work(maker *m)
{
    m->now++;
}

/* ---------------------------------------------------------------- layers ---- */

/* Sizes are products of dimensions, in floats. */
static shape make_shape(maker *m)
{
    static const uint64_t widths[] = {64, 96, 128, 192, 256, 384, 512, 768};
    uint64_t width = widths[between(m, 0, 7)];
    uint64_t tokens = 49 * (uint64_t)between(m, 1, 64);
    shape s = {between(m, 2, SAVED_MAX), between(m, 1, SCRATCH_MAX), between(m, 1, PARAMS_MAX), {0}, {0}, {0}};
    for (uint32_t i = 0; i < s.n_saved; i++) {
        s.saved[i] = 4 * tokens * (between(m, 0, 4) == 0 ? 1 : width * between(m, 1, 4)); /* statistics are small */
    }
    for (uint32_t i = 0; i < s.n_scratch; i++) {
        s.scratch[i] = 4 * tokens * width * between(m, 1, 6) / 2;
    }
    for (uint32_t i = 0; i < s.n_params; i++) {
        s.params[i] = 4 * width * (i ? 1 : width * between(m, 1, 4));
    }
    return s;
}

static void forward(maker *m, layer *l)
{
    const shape *s = l->shape;
    for (l->n_open = 0; l->n_open < s->n_saved; l->n_open++) {
        bool uses_scratch = l->n_open < s->n_scratch;
        uint32_t scratch = uses_scratch ? open_activation(m, s->scratch[l->n_open]) : 0;
        l->saved[l->n_open] = open_activation(m, s->saved[l->n_open]);
        work(m);
        if (uses_scratch) {
            close_buffer(m, scratch);
        }
    }
}

static void add_gradients(maker *m, layer *l)
{
    for (uint32_t i = 0; i < l->shape->n_params; i++) {
        uint32_t made = open_buffer(m, l->shape->params[i]);
        work(m);
        if (l->has_gradients) {
            work(m);
            close_buffer(m, made);
        } else {
            l->gradients[i] = made;
        }
    }
    l->has_gradients = true;
}

/* Takes the gradient of the layer's output, frees it, and gives that of its input. */
static uint32_t backward(maker *m, layer *l, uint32_t gradient)
{
    const shape *s = l->shape;
    while (l->n_open > 0) {
        uint32_t i = --l->n_open;
        uint32_t next = open_activation(m, s->saved[i]);
        uint32_t scratch = open_activation(m, s->scratch[i % s->n_scratch]);
        work(m);
        close_buffer(m, scratch);
        close_buffer(m, gradient);
        close_buffer(m, l->saved[i]);
        gradient = next;
    }
    add_gradients(m, l);
    return gradient;
}

static void update(maker *m, layer *layers, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < layers[k].shape->n_params; i++) {
            uint32_t a = open_buffer(m, layers[k].shape->params[i]);
            uint32_t b = open_buffer(m, layers[k].shape->params[i]);
            work(m);
            close_buffer(m, a);
            work(m);
            close_buffer(m, b);
            close_buffer(m, layers[k].gradients[i]);
        }
    }
}

static layer *make_layers(maker *m, uint32_t n, bool random)
{
    layer *layers = grown(NULL, n * sizeof *layers);
    for (uint32_t k = 0; k < n; k++) {
        layers[k] = (layer){.shape = &m->shapes[random ? between(m, 0, N_SHAPES - 1) : k % N_SHAPES]};
        for (uint32_t i = 0; i < 3 * layers[k].shape->n_params; i++) { /* weights and two moments */
            add(m, layers[k].shape->params[i / 3], 0);
        }
    }
    return layers;
}

static void backward_all(maker *m, layer *layers, uint32_t n)
{
    uint32_t gradient = open_buffer(m, 4);
    for (uint32_t k = n; k-- > 0;) {
        gradient = backward(m, &layers[k], gradient);
    }
    close_buffer(m, gradient);
}

/* ---------------------------------------------------------------- styles ---- */

static void make_deep(maker *m, uint32_t n_layers)
{
    layer *layers = make_layers(m, n_layers, true);
    for (uint32_t k = 0; k < n_layers; k++) {
        forward(m, &layers[k]);
    }
    backward_all(m, layers, n_layers);
    update(m, layers, n_layers);
    free(layers);
}

static void make_batches(maker *m, uint32_t n_batches, bool ragged)
{
    layer *layers = make_layers(m, N_LAYERS, false);
    for (uint32_t b = 0; b < n_batches; b++) {
        m->scale = ragged ? 0.25 + 0.75 * np_rng_unit(&m->rng) : 1;
        for (uint32_t k = 0; k < N_LAYERS; k++) {
            forward(m, &layers[k]);
        }
        backward_all(m, layers, N_LAYERS);
    }
    update(m, layers, N_LAYERS);
    free(layers);
}

static void make_accumulate(maker *m, uint32_t n)
{
    make_batches(m, n, false);
}

static void make_ragged(maker *m, uint32_t n)
{
    make_batches(m, n, true);
}

/* A stretch of layers keeps its input alone; before its backward pass it runs forward again. */
static void make_checkpoint(maker *m, uint32_t n_stretches)
{
    uint32_t n = n_stretches * STRETCH;
    layer *layers = make_layers(m, n, true);
    uint32_t *inputs = grown(NULL, n_stretches * sizeof *inputs);
    uint32_t gradient;
    for (uint32_t k = 0; k < n; k++) {
        if (k % STRETCH == 0) {
            inputs[k / STRETCH] = open_activation(m, layers[k].shape->saved[0]);
        }
        forward(m, &layers[k]);
        for (uint32_t i = 0; i < layers[k].n_open; i++) {
            close_buffer(m, layers[k].saved[i]);
        }
    }
    gradient = open_buffer(m, 4);
    for (uint32_t s = n_stretches; s-- > 0;) {
        for (uint32_t k = s * STRETCH; k < (s + 1) * STRETCH; k++) {
            forward(m, &layers[k]);
        }
        for (uint32_t k = (s + 1) * STRETCH; k-- > s * STRETCH;) {
            gradient = backward(m, &layers[k], gradient);
        }
        close_buffer(m, inputs[s]);
    }
    close_buffer(m, gradient);
    update(m, layers, n);
    free(inputs);
    free(layers);
}

/* Batch b runs forward while batch b - IN_FLIGHT runs backward, layer by layer in turn. */
static void make_pipeline(maker *m, uint32_t n_batches)
{
    layer *base = make_layers(m, N_LAYERS, false);
    layer flying[IN_FLIGHT + 1][N_LAYERS];
    for (uint32_t b = 0; b < n_batches + IN_FLIGHT; b++) {
        layer *ahead = flying[b % (IN_FLIGHT + 1)], *behind = flying[(b + 1) % (IN_FLIGHT + 1)];
        bool goes = b < n_batches, returns = b >= IN_FLIGHT;
        uint32_t gradient = returns ? open_buffer(m, 4) : 0;
        memcpy(ahead, base, sizeof flying[0]);
        for (uint32_t k = 0; k < N_LAYERS; k++) {
            uint32_t last = N_LAYERS - 1 - k;
            if (goes) {
                forward(m, &ahead[k]);
            }
            if (returns) {
                memcpy(behind[last].gradients, base[last].gradients, sizeof base[last].gradients);
                behind[last].has_gradients = base[last].has_gradients;
                gradient = backward(m, &behind[last], gradient);
                memcpy(base[last].gradients, behind[last].gradients, sizeof base[last].gradients);
                base[last].has_gradients = true;
            }
        }
        if (returns) {
            close_buffer(m, gradient);
        }
    }
    update(m, base, N_LAYERS);
    free(base);
}

/* Every third layer's output lives on: into a later layer's forward pass, or back into an earlier layer's backward. */
static void make_skips(maker *m, uint32_t n)
{
    layer *layers = make_layers(m, n, true);
    uint32_t *due = grown(NULL, 2 * n * sizeof *due); /* by step: one buffer to free then, or NEVER */
    uint32_t gradient;
    memset(due, 0xff, 2 * n * sizeof *due);
    for (uint32_t k = 0; k < n; k++) {
        forward(m, &layers[k]);
        uint32_t reach = between(m, 0, 3) ? between(m, 1, 40) : between(m, 1, n);
        uint32_t step = between(m, 0, 1) ? k + reach : 2 * n - 1 - (k > reach ? k - reach : 0);
        if (k % 3 == 0 && step < 2 * n && step > k && due[step] == NEVER) {
            due[step] = open_activation(m, layers[k].shape->saved[0]);
        }
        if (due[k] != NEVER) {
            close_buffer(m, due[k]);
        }
    }
    gradient = open_buffer(m, 4);
    for (uint32_t step = n; step < 2 * n; step++) {
        gradient = backward(m, &layers[2 * n - 1 - step], gradient);
        if (due[step] != NEVER) {
            close_buffer(m, due[step]);
        }
    }
    close_buffer(m, gradient);
    update(m, layers, n);
    free(due);
    free(layers);
}

static const struct style {
    const char *name;
    void (*make)(maker *, uint32_t n);
} styles[] = {
    {"deep", make_deep},         {"accumulate", make_accumulate},
    {"ragged", make_ragged},     {"checkpoint", make_checkpoint},
    {"pipeline", make_pipeline}, {"skips", make_skips},
};

static maker make(const struct style *style, uint64_t seed, uint32_t n)
{
    maker m = {.rng = np_rng_make(seed), .scale = 1};
    for (uint32_t i = 0; i < N_SHAPES; i++) {
        m.shapes[i] = make_shape(&m);
    }
    style->make(&m, n);
    return m;
}

/* ---------------------------------------------------------------- writing ---- */

static void write_csv(const maker *m)
{
    (void)puts("id,lower,upper,size");
    for (uint32_t i = 0; i < m->n; i++) {
        const buffer *b = &m->buffers[i];
        (void)printf("%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 "\n", i, b->begin,
                     b->end == NEVER ? m->now : b->end, b->bytes);
    }
}

static void write_iteration(const maker *m, const uint32_t *at, uint64_t first_id, uint64_t first_ns)
{
    for (uint32_t t = 0; t < m->now; t++) {
        const buffer *b = at[t] == NEVER ? NULL : &m->buffers[at[t]];
        if (!b) {
            (void)printf("exec work %" PRIu64 " 900\n", first_ns + 1000 * (uint64_t)t);
        } else if (b->begin == t) {
            (void)printf("malloc %" PRIu64 " %" PRIu64 "\n", first_id + at[t], b->bytes);
        } else {
            (void)printf("free %" PRIu64 "\n", first_id + at[t]);
        }
    }
}

static void write_trace(const maker *m, uint32_t n_iterations)
{
    uint32_t *at = grown(NULL, m->now * sizeof *at); /* by time: the buffer that comes or goes, NEVER: an exec */
    memset(at, 0xff, m->now * sizeof *at);
    (void)puts("neap-trace 1");
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->buffers[i].end == NEVER) {
            (void)printf("live %" PRIu32 " %" PRIu64 "\n", i, m->buffers[i].bytes);
        } else {
            at[m->buffers[i].begin] = at[m->buffers[i].end] = i;
        }
    }
    for (uint32_t k = 0; k < n_iterations; k++) {
        write_iteration(m, at, (uint64_t)m->n * (k + 1), 1000 * (uint64_t)m->now * k);
    }
    free(at);
}

int main(int argc, char **argv)
{
    const uint32_t trial = 100;
    const struct style *style = NULL;
    for (size_t i = 0; argc > 1 && i < sizeof styles / sizeof *styles; i++) {
        style = strcmp(argv[1], styles[i].name) == 0 ? &styles[i] : style;
    }
    if (!style || argc < 4 || argc > 5) {
        (void)fputs(
            "usage: bench_training deep|accumulate|ragged|checkpoint|pipeline|skips BUFFERS SEED [ITERATIONS]\n",
            stderr);
        return 2;
    }
    double wanted = strtod(argv[2], NULL);
    uint64_t seed = strtoull(argv[3], NULL, 10);
    maker m = make(style, seed, trial);
    double n = wanted / (double)m.n * trial;
    free(m.buffers);
    m = make(style, seed, n < 1 ? 1 : n > 1e6 ? 1000000 : (uint32_t)n + 1);
    if (argc > 4) {
        write_trace(&m, (uint32_t)strtoul(argv[4], NULL, 10));
    } else {
        write_csv(&m);
    }
    free(m.buffers);
    return fflush(stdout) != 0;
}
