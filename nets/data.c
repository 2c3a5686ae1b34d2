#include "data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rng.h"

enum {
    N_FILES = 5,
    FILE_RECORDS = 10000,
    RECORD_BYTES = 1 + NETS_PIXELS,
    FILE_BYTES = FILE_RECORDS * RECORD_BYTES,
    GRID = 8, /* a template is GRID x GRID fields of one value a channel */
};

/* What random numbers are for: each use has its own key. */
enum { KEY_ORDER = 101, KEY_TEMPLATE, KEY_LABEL, KEY_NOISE };

/* ---- CIFAR-10 ---- */

static neap_status failed(neap_status status, neap_error *error, const char *path, const char *why)
{
    if (error) {
        (void)snprintf(error->text, sizeof error->text, "%.300s: %s", path, why);
    }
    return status;
}

static neap_status io_failed(neap_error *error, const char *path, int why)
{
    char text[128];
    return failed(NEAP_IO, error, path, strerror_r(why, text, sizeof text) == 0 ? text : "cannot be read");
}

static neap_status read_file(const char *path, uint8_t *records, neap_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        return io_failed(error, path, errno);
    }
    errno = 0;
    size_t n = fread(records, 1, FILE_BYTES, file);
    bool is_longer = n == FILE_BYTES && fgetc(file) != EOF;
    int why = ferror(file) ? (errno ? errno : EIO) : 0;
    (void)fclose(file);
    if (why) {
        return io_failed(error, path, why);
    }
    if (n < FILE_BYTES || is_longer) {
        return failed(NEAP_BAD_INPUT, error, path, "not CIFAR-10's binary version: 30,730,000 bytes are expected");
    }
    for (size_t i = 0; i < FILE_RECORDS; i++) {
        if (records[i * RECORD_BYTES] >= NETS_CLASSES) {
            return failed(NEAP_BAD_INPUT, error, path, "not CIFAR-10's binary version: a label is above 9");
        }
    }
    return NEAP_OK;
}

neap_status nets_data_open(const char *folder, uint64_t seed, neap_error *error, nets_data *data)
{
    if (!folder) {
        *data = (nets_data){.seed = seed};
        return NEAP_OK;
    }
    size_t path_bytes = strlen(folder) + 32;
    char *path = malloc(path_bytes);
    uint8_t *records = malloc((size_t)N_FILES * FILE_BYTES);
    neap_status status = path && records ? NEAP_OK : NEAP_NO_MEMORY;
    for (int i = 0; status == NEAP_OK && i < N_FILES; i++) {
        (void)snprintf(path, path_bytes, "%s/data_batch_%d.bin", folder, i + 1);
        status = read_file(path, records + (size_t)i * FILE_BYTES, error);
    }
    free(path);
    if (status != NEAP_OK) {
        free(records);
        return status;
    }
    *data = (nets_data){.records = records, .n_records = (size_t)N_FILES * FILE_RECORDS, .seed = seed};
    return NEAP_OK;
}

void nets_data_close(nets_data *data)
{
    free(data->records);
    *data = (nets_data){0};
}

/* Number i of a shuffled 0 .. n - 1. A Feistel network is a bijection of 2^2k numbers, for the smallest such power that
 * holds them all; it is applied again and again until the number is one of them. No order has to be kept. */
static size_t shuffled(uint64_t key, size_t i, size_t n)
{
    unsigned half = 1;
    while (UINT64_C(1) << (2 * half) < n) {
        half++;
    }
    uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t x = i;
    do {
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t right = x & mask;
            x = right << half | ((x >> half) ^ (nets_random(key + round, right) & mask));
        }
    } while (x >= n);
    return (size_t)x;
}

static void load_record(const nets_data *data, uint64_t number, float *x, int32_t *label)
{
    uint64_t pass = number / data->n_records;
    size_t i = shuffled(nets_key(data->seed, KEY_ORDER, pass), number % data->n_records, data->n_records);
    const uint8_t *record = data->records + i * RECORD_BYTES;
    *label = record[0];
    for (size_t k = 0; k < NETS_PIXELS; k++) {
        x[k] = (float)record[1 + k] * (1 / 63.75f) - 2; /* 0 to 255 becomes -2 to 2 */
    }
}

/* ---- synthetic images ---- */

/* The template of its class, a coarse picture, and some noise. */
static void make_image(const nets_data *data, uint64_t number, float *x, int32_t *label)
{
    uint64_t class = nets_random(nets_key(data->seed, KEY_LABEL, 0), number) % NETS_CLASSES;
    uint64_t fields = nets_key(data->seed, KEY_TEMPLATE, class);
    uint64_t noise = nets_key(data->seed, KEY_NOISE, number);
    *label = (int32_t) class;
    for (size_t k = 0; k < NETS_PIXELS; k++) {
        size_t channel = k / (NETS_SIZE * NETS_SIZE);
        size_t row = k / NETS_SIZE % NETS_SIZE * GRID / NETS_SIZE;
        size_t column = k % NETS_SIZE * GRID / NETS_SIZE;
        float field = nets_uniform(fields, (channel * GRID + row) * GRID + column);
        x[k] = 3 * field + nets_uniform(noise, k) - 2;
    }
}

void nets_batch_load(void *arg)
{
    const nets_batch_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        uint64_t number = a->step * a->n + i;
        float *x = a->x + i * NETS_PIXELS;
        if (a->data->records) {
            load_record(a->data, number, x, &a->labels[i]);
        } else {
            make_image(a->data, number, x, &a->labels[i]);
        }
    }
}
