/* norm.c: batch norm in training: every channel is brought to mean 0 and variance 1 over the batch, then scaled and
 * moved by what is learned.
 *
 * Sums are of doubles, in eight lanes that are added at the end: a fixed order, and fast. The variance is taken about
 * the mean, in a second pass, so that nothing cancels. */
#include <math.h>

#include "layers.h"

enum { LANES = 8 };

typedef struct lanes {
    double sum[LANES];
} lanes;

static double total(const lanes *l)
{
    return ((l->sum[0] + l->sum[1]) + (l->sum[2] + l->sum[3])) + ((l->sum[4] + l->sum[5]) + (l->sum[6] + l->sum[7]));
}

/* Adds x[i]. */
static void add_all(lanes *l, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            l->sum[k] += (double)x[i + k];
        }
    }
    for (; i < n; i++) {
        l->sum[i % LANES] += (double)x[i];
    }
}

/* Adds (x[i] - mean) * (z[i] - other). */
static void add_products(lanes *l, const float *x, double mean, const float *z, double other, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            l->sum[k] += ((double)x[i + k] - mean) * ((double)z[i + k] - other);
        }
    }
    for (; i < n; i++) {
        l->sum[i % LANES] += ((double)x[i] - mean) * ((double)z[i] - other);
    }
}

void nets_norm_forward(void *arg)
{
    const nets_norm_args *a = arg;
    double count = (double)(a->n * a->hw);
    for (size_t c = 0; c < a->c; c++) {
        lanes sum = {{0}};
        lanes squares = {{0}};
        for (size_t n = 0; n < a->n; n++) {
            add_all(&sum, a->x + (n * a->c + c) * a->hw, a->hw);
        }
        double mean = total(&sum) / count;
        for (size_t n = 0; n < a->n; n++) {
            const float *x = a->x + (n * a->c + c) * a->hw;
            add_products(&squares, x, mean, x, mean, a->hw);
        }
        double variance = total(&squares) / count;
        double inverse = 1 / sqrt(variance + (double)a->epsilon);
        float factor = (float)(inverse * (double)a->scale[c]);
        float offset = (float)((double)a->scale[a->c + c] - mean * inverse * (double)a->scale[c]);
        for (size_t n = 0; n < a->n; n++) {
            const float *x = a->x + (n * a->c + c) * a->hw;
            float *y = a->y + (n * a->c + c) * a->hw;
            for (size_t i = 0; i < a->hw; i++) {
                y[i] = x[i] * factor + offset;
            }
        }
        a->saved[c] = (float)mean;
        a->saved[a->c + c] = (float)inverse;
        /* The running variance is of the population, not of this sample. */
        float unbiased = (float)(count > 1 ? variance * count / (count - 1) : variance);
        a->running[c] += a->momentum * ((float)mean - a->running[c]);
        a->running[a->c + c] += a->momentum * (unbiased - a->running[a->c + c]);
    }
}

void nets_norm_backward(void *arg)
{
    const nets_norm_args *a = arg;
    double count = (double)(a->n * a->hw);
    for (size_t c = 0; c < a->c; c++) {
        lanes sum = {{0}};
        lanes products = {{0}};
        double mean = (double)a->saved[c];
        double inverse = (double)a->saved[a->c + c];
        for (size_t n = 0; n < a->n; n++) {
            const float *dy = a->dy + (n * a->c + c) * a->hw;
            add_all(&sum, dy, a->hw);
            add_products(&products, a->x + (n * a->c + c) * a->hw, mean, dy, 0, a->hw);
        }
        double dbeta = total(&sum);
        double dgamma = total(&products) * inverse;
        /* dx = gamma * inverse * (dy - dbeta / count - x^ * dgamma / count), x^ = (x - mean) * inverse */
        double factor = (double)a->scale[c] * inverse;
        float by_dy = (float)factor;
        float by_x = (float)(-factor * inverse * dgamma / count);
        float offset = (float)(factor * (mean * inverse * dgamma - dbeta) / count);
        for (size_t n = 0; n < a->n; n++) {
            const float *x = a->x + (n * a->c + c) * a->hw;
            const float *dy = a->dy + (n * a->c + c) * a->hw;
            float *dx = a->dx + (n * a->c + c) * a->hw;
            for (size_t i = 0; i < a->hw; i++) {
                dx[i] = dy[i] * by_dy + x[i] * by_x + offset;
            }
        }
        a->dscale[c] = (float)dgamma;
        a->dscale[a->c + c] = (float)dbeta;
    }
}

void nets_norm_init(void *arg)
{
    const nets_norm_args *a = arg;
    for (size_t c = 0; c < a->c; c++) {
        a->y[c] = a->gamma;
        a->y[a->c + c] = 0;
        a->running[c] = 0;
        a->running[a->c + c] = 1;
    }
}
