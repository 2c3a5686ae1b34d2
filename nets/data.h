/* data.h: the images: CIFAR-10 from its binary files, or synthetic ones that can be learned. */
#ifndef NETS_DATA_H
#define NETS_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "neap.h"

enum {
    NETS_CHANNELS = 3,
    NETS_SIZE = 32, /* rows and columns of an image */
    NETS_PIXELS = NETS_CHANNELS * NETS_SIZE * NETS_SIZE,
    NETS_CLASSES = 10,
};

typedef struct nets_data {
    uint8_t *records; /* a byte of label, then the pixels, for each image; NULL: synthetic images */
    size_t n_records;
    uint64_t seed; /* of the order of the records, or of the synthetic images */
} nets_data;

/* `folder` holds data_batch_1.bin to data_batch_5.bin; NULL: synthetic images. NEAP_IO: a file is missing or cannot be
 * read; NEAP_BAD_INPUT: one has another size or a label above 9. `error` names the file. */
neap_status nets_data_open(const char *folder, uint64_t seed, neap_error *error, nets_data *data);
void nets_data_close(nets_data *data);

typedef struct nets_batch_args {
    const nets_data *data; /* host memory, which must outlive the work */
    uint64_t step;
    size_t n;        /* images */
    float *x;        /* (N,3,32,32), around 0 */
    int32_t *labels; /* (N) */
} nets_batch_args;

/* Work: fills x and labels with the batch of a step. Records come in an order that is another one in each pass over all
 * of them. */
void nets_batch_load(void *arg);

#endif
