/* nets.h: VGG and ResNet training on a neap device: the paper's workloads, in C, on neap.h alone.
 *
 * The networks are those for images of 3 x 32 x 32 and ten classes: VGG with batch norm and a classifier of two linear
 * layers with dropout between, ResNet with a first convolution of 3 x 3 and without its max pooling. They allocate as
 * frameworks do: weights and momentum once; activations, scratch and gradients as the layers run, freed as soon as
 * nothing needs them any more. Everything follows from the seed: same seed, same numbers, to the last bit.
 *
 *     neap_open("cpu", NULL, NULL, &error, &device);
 *     nets_create(device, &(nets_options){.net = "vgg16", .batch = 16}, &error, &net);
 *     nets_step(net, &error, &loss);                              as often as wanted
 *     nets_free(net);
 *     neap_close(device); */
#ifndef NETS_NETS_H
#define NETS_NETS_H

#include "neap.h"

typedef struct nets nets;

/* Names in turn: "vgg11", ..., "resnet152"; NULL after the last. */
const char *nets_name(size_t index);

enum { NETS_BATCH_MAX = 4096, NETS_WIDTH_MAX = 1024 };

typedef struct nets_options {
    const char *net;
    size_t batch; /* images a step, 1 to NETS_BATCH_MAX; 0: 16 */
    size_t width; /* channels of the first layers; 0: 64, as published */
    uint64_t seed;
    const char *data;     /* folder with CIFAR-10's data_batch_1.bin to _5.bin; NULL: synthetic images */
    double learning_rate; /* 0: 0.01 */
    double momentum;      /* 0: 0.9 */
    double weight_decay;  /* 0: 0.0005 */
} nets_options;

/* NEAP_BAD_ARGUMENT: there is no such net, or a number is out of its range. NEAP_IO, NEAP_BAD_INPUT: the data. Errors of
 * the device are passed on. The device must outlive the net. */
neap_status nets_create(neap_device *device, const nets_options *options, neap_error *error, nets **net);
void nets_free(nets *net); /* NULL is allowed */

/* One step of training: a batch forward and backward, then the update. With `loss`, waits for it, and gives the batch's
 * mean cross-entropy; NULL only queues the work. An error is the device's; what the failed step had allocated is freed,
 * and where that happened before the update, the weights are as they were. */
neap_status nets_step(nets *net, neap_error *error, float *loss);

uint64_t nets_n_parameters(const nets *net);

/* A hash of every parameter, and of the running statistics of batch norm. It reads them all, which is no part of the
 * training's pattern. */
neap_status nets_checksum(nets *net, neap_error *error, uint64_t *checksum);

#endif
