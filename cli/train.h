/* train.h: what the files behind `neap train` share: what was asked, and what came out. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include <stdbool.h>

#include "json.h"
#include "neap.h"

typedef struct train_request {
    const char *net;
    const char *device;
    const char *data; /* folder; NULL: synthetic images */
    size_t batch;
    uint64_t iters;
    uint64_t seed;
    neap_device_options options;
    bool json;
} train_request;

/* One training run. */
typedef struct train_result {
    const char *allocation; /* "plain", "SmartPool", "SmartPool + AutoSwap" */
    float *losses;          /* one an iteration */
    uint64_t n_parameters;
    neap_stats stats; /* after the last iteration */
    double iteration_ms;
    uint64_t weights; /* a hash of what was learned */
} train_result;

/* What is held on the device: since the first plan became active, where one has; otherwise from the start on. */
uint64_t train_footprint(const neap_stats *stats);

/* One run, or several of the same training side by side; true where their losses and weights are the same to the bit. */
void train_print_one(const train_request *request, const train_result *result);
void train_print_json(const train_request *request, const train_result *result);
bool train_print_compared(const train_request *request, const train_result *results, size_t n);

#endif
