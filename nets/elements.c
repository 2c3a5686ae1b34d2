/* elements.c: layers that look at one element at a time. */
#include "layers.h"
#include "rng.h"

void nets_relu_forward(void *arg)
{
    const nets_relu_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        a->y[i] = a->y[i] < 0 ? 0 : a->y[i]; /* what is not a number stays so, and is seen */
    }
}

void nets_relu_backward(void *arg)
{
    const nets_relu_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        a->dx[i] = a->y[i] > 0 ? a->dy[i] : 0;
    }
}

void nets_add(void *arg)
{
    const nets_add_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        a->y[i] += a->x[i];
    }
}

void nets_dropout_forward(void *arg)
{
    const nets_dropout_args *a = arg;
    float factor = 1 / (1 - a->drop);
    for (size_t i = 0; i < a->n; i++) {
        a->mask[i] = nets_uniform(a->key, i) >= a->drop;
        a->y[i] = a->mask[i] ? a->x[i] * factor : 0;
    }
}

void nets_dropout_backward(void *arg)
{
    const nets_dropout_args *a = arg;
    float factor = 1 / (1 - a->drop);
    for (size_t i = 0; i < a->n; i++) {
        a->dx[i] = a->mask[i] ? a->dy[i] * factor : 0;
    }
}
