/* swap_inputs.h: what bench_swap.c measures: recordings with their reference figures, and a training loop made to size. */
#ifndef NEAP_BENCH_SWAP_INPUTS_H
#define NEAP_BENCH_SWAP_INPUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench.h"
#include "neap.h"

enum { MADE_EVENTS = 10000 };

typedef struct input {
    char name[64];
    neap_trace *trace;
    uint32_t n_events; /* of a period */
    uint64_t cnmem;    /* bytes that CnMem holds */
} input;

/* Peak reductions in % as a greedy planner and the bounds gave them when the recordings were made. */
static const struct reference {
    const char *name;
    double bound, bound_any, parts, floor;
} references[] = {
    {"vgg11-100-32", 38.3, 38.3, 38.2, 77.5},
    {"vgg13-100-32", 30.7, 36.5, 30.0, 81.2},
    {"vgg16-100-32", 29.2, 33.1, 29.2, 76.2},
    {"resnet18-100-32", 21.7, 34.4, 21.7, 86.6},
    {"resnet50-100-32", 12.5, 18.8, 12.5, 88.9},
    {"resnet152-100-32", 12.5, 19.9, 12.5, 94.8},
    {"vgg11-100-32-fp32", 39.5, 39.5, 39.4, 79.3},
    {"vgg16-100-32-fp32", 15.7, 34.9, 15.2, 38.8},
    {"resnet18-100-32-fp32", 27.8, 39.1, 27.8, 51.2},
    {"resnet50-100-32-fp32", 28.0, 34.3, 27.6, 86.7},
    {"resnet152-100-32-fp32", 31.8, 39.2, 31.7, 93.8},
    {"vgg16-64-224", 13.5, 13.5, 13.5, 62.3},
    {"resnet50-64-224", 9.9, 13.9, 9.8, 89.4},
    {"gpt2-8", 19.8, 28.8, 19.8, 68.7},
    {"gpt2-bf16-16", 9.5, 12.0, 9.5, 61.1},
    {"vit-64-224", 33.2, 43.7, 33.2, 95.0},
    {"mobilenet-64", 8.6, 10.0, 8.5, 82.0},
    {"lstm-64", 24.5, 32.9, 24.3, 42.5},
    {"resnet18-100-log", 24.9, 37.2, 24.6, 86.6},
    {"lstm-64-alt", 30.6, 38.3, 30.3, 47.1},
};

/* What the paper reports without overhead, and what must be reached, in %. */
static const struct paper_figure {
    const char *name;
    double paper, target;
} paper_figures[] = {{"resnet50-100-32-fp32", 34.2, 40}, {"vgg16-100-32", 30.9, 36}};

static inline const struct reference *reference_of(const char *name)
{
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        if (strcmp(references[i].name, name) == 0) {
            return &references[i];
        }
    }
    return NULL;
}

static inline bool read_input(const char *path, input *in)
{
    neap_error error = {""};
    neap_info *info;
    neap_baselines baselines;
    (void)snprintf(in->name, sizeof in->name, "%.*s", (int)strcspn(bench_name(path), "."), bench_name(path));
    if (neap_trace_read(path, NULL, &error, &in->trace) != NEAP_OK ||
        neap_info_make(in->trace, 0, NULL, &error, &info) != NEAP_OK ||
        neap_baselines_make(in->trace, 0, NULL, &error, &baselines) != NEAP_OK) {
        (void)fprintf(stderr, "bench_swap: %s: %s\n", path, error.text);
        return false;
    }
    in->n_events = info->period_length;
    in->cnmem = baselines.cnmem;
    neap_info_free(info);
    return true;
}

/* Training of a row of layers, three iterations: seven events a layer. */
static inline input made_input(void)
{
    enum { N_LAYERS = MADE_EVENTS / 7, N_BYTES = 4000000 };
    char *text = malloc(N_BYTES);
    size_t n = 0;
    unsigned block = N_LAYERS;
    input in = {.name = "made-10000-events", .n_events = 7 * N_LAYERS};
    neap_error error = {""};
    if (!text) {
        exit(2);
    }
#define PUT(...) (n += (size_t)snprintf(text + n, N_BYTES - n, __VA_ARGS__))
    PUT("neap-trace 1\n");
    for (int i = 0; i < N_LAYERS; i++) {
        PUT("live %d %d\n", i, (1 + i % 7) << 19);
    }
    for (int k = 0; k < 3; k++, block += 2 * N_LAYERS) {
        np_rng rng = np_rng_make(1);
        unsigned gradient = block + N_LAYERS;
        for (unsigned i = 0; i < N_LAYERS; i++) {
            PUT("malloc %u %u\n", block + i, (2 + (unsigned)np_rng_below(&rng, 30)) << 20);
            PUT("exec forward%u 0 %u x%u x%u x%u\n", i, 20000 + (unsigned)np_rng_below(&rng, 400000), i,
                block + i - (i > 0), block + i);
        }
        for (unsigned i = N_LAYERS; i-- > 0;) {
            PUT("malloc %u %u\n", gradient + i, (2 + (unsigned)np_rng_below(&rng, 30)) << 20);
            PUT("exec backward%u 0 %u x%u x%u x%u x%u\n", i, 40000 + (unsigned)np_rng_below(&rng, 800000), i, block + i,
                gradient + i, gradient + i + (i + 1 < N_LAYERS));
            PUT("free %u\n", block + i);
            if (i + 1 < N_LAYERS) {
                PUT("free %u\n", gradient + i + 1);
            }
            PUT("exec update%u 0 9000 x%u x%u\n", i, i, gradient + i);
        }
        PUT("free %u\n", gradient);
    }
#undef PUT
    if (n >= N_BYTES || neap_trace_parse(text, n, in.name, NULL, &error, &in.trace) != NEAP_OK) {
        (void)fprintf(stderr, "bench_swap: %s\n", error.text);
        exit(2);
    }
    free(text);
    return in;
}

#endif
