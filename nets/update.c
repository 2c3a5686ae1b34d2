/* update.c: where the parameters come from, and how they learn: SGD with momentum and weight decay. */
#include "layers.h"
#include "rng.h"

void nets_fill(void *arg)
{
    const nets_fill_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        a->y[i] = a->bound * (2 * nets_uniform(a->key, i) - 1);
    }
}

void nets_sgd(void *arg)
{
    const nets_sgd_args *a = arg;
    for (size_t i = 0; i < a->n; i++) {
        a->velocity[i] = a->momentum * a->velocity[i] + (a->gradient[i] + a->decay * a->weight[i]);
        a->weight[i] -= a->rate * a->velocity[i];
    }
}
