/* hello.c: the least a program has to do. It allocates, works and frees through a device, again and again; neap watches,
 * and serves the rest from a plan. */
#include <stdio.h>

#include "neap.h"

enum { N = 1 << 20 };

typedef struct arrays {
    const float *x;
    float *y;
} arrays;

static void count(void *arg) /* work: runs on the device's own thread */
{
    const arrays *a = arg;
    for (int i = 0; i < N; i++) {
        a->y[i] = a->x ? 2 * a->x[i] : (float)i;
    }
}

static void iterate(neap_device *device)
{
    neap_block *x = NULL, *y = NULL;
    if (neap_malloc(device, N * sizeof(float), &x) == NEAP_OK &&
        neap_malloc(device, N * sizeof(float), &y) == NEAP_OK) {
        arrays first = {NULL, neap_data(x)}, second = {neap_data(x), neap_data(y)};
        neap_work fill = {.name = "fill", .run = count, .arg = &first, .arg_bytes = sizeof first};
        neap_work twice = {.name = "twice", .run = count, .arg = &second, .arg_bytes = sizeof second};
        (void)neap_exec(device, &fill, &(neap_use){x, NEAP_ACCESS_WRITE}, 1);
        (void)neap_exec(device, &twice, (neap_use[]){{x, NEAP_ACCESS_READ}, {y, NEAP_ACCESS_WRITE}}, 2);
    }
    (void)neap_free(device, x); /* the work may still be under way */
    (void)neap_free(device, y);
}

int main(void)
{
    neap_device *device;
    neap_error error = {""};
    neap_stats stats = {0};
    if (neap_open("cpu", NULL, NULL, &error, &device) != NEAP_OK) {
        (void)fprintf(stderr, "hello: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < 10000 && stats.n_iterations < 10; i++) {
        iterate(device);
        (void)neap_sync(device);
        neap_get_stats(device, &stats);
    }
    (void)printf("hello: %s; %llu iterations from the plan; %llu bytes held for a load of %llu\n",
                 neap_state_name(stats.state), (unsigned long long)stats.n_iterations,
                 (unsigned long long)stats.footprint, (unsigned long long)stats.peak_load);
    neap_close(device);
    return stats.n_iterations >= 10 ? 0 : 1;
}
