/* pool.c: the largest of each window of 2 x 2, and the average of a whole plane. */
#include <string.h>

#include "layers.h"

void nets_pool_max_forward(void *arg)
{
    const nets_pool_args *a = arg;
    size_t out = 0;
    for (size_t p = 0; p < a->planes; p++) {
        for (size_t y = 0; y < a->h / 2; y++) {
            const float *row = a->x + (p * a->h + 2 * y) * a->w;
            for (size_t x = 0; x < a->w / 2; x++, out++) {
                const float window[4] = {row[2 * x], row[2 * x + 1], row[a->w + 2 * x], row[a->w + 2 * x + 1]};
                uint8_t largest = 0;
                for (uint8_t i = 1; i < 4; i++) {
                    largest = window[i] > window[largest] ? i : largest;
                }
                a->y[out] = window[largest];
                a->largest[out] = largest;
            }
        }
    }
}

void nets_pool_max_backward(void *arg)
{
    const nets_pool_args *a = arg;
    size_t out = 0;
    memset(a->dx, 0, a->planes * a->h * a->w * sizeof *a->dx);
    for (size_t p = 0; p < a->planes; p++) {
        for (size_t y = 0; y < a->h / 2; y++) {
            float *row = a->dx + (p * a->h + 2 * y) * a->w;
            for (size_t x = 0; x < a->w / 2; x++, out++) {
                row[(a->largest[out] >> 1) * a->w + 2 * x + (a->largest[out] & 1)] = a->dy[out];
            }
        }
    }
}

void nets_pool_average_forward(void *arg)
{
    const nets_pool_args *a = arg;
    size_t hw = a->h * a->w;
    for (size_t p = 0; p < a->planes; p++) {
        float sum = 0;
        for (size_t i = 0; i < hw; i++) {
            sum += a->x[p * hw + i];
        }
        a->y[p] = sum / (float)hw;
    }
}

void nets_pool_average_backward(void *arg)
{
    const nets_pool_args *a = arg;
    size_t hw = a->h * a->w;
    for (size_t p = 0; p < a->planes; p++) {
        for (size_t i = 0; i < hw; i++) {
            a->dx[p * hw + i] = a->dy[p] / (float)hw;
        }
    }
}
