/* loss.c: softmax and cross-entropy, the mean over the batch. */
#include <math.h>

#include "layers.h"

void nets_loss_forward(void *arg)
{
    const nets_loss_args *a = arg;
    double sum = 0;
    for (size_t n = 0; n < a->n; n++) {
        const float *logits = a->logits + n * a->classes;
        float *probabilities = a->probabilities + n * a->classes;
        float largest = logits[0];
        for (size_t k = 1; k < a->classes; k++) {
            largest = logits[k] > largest ? logits[k] : largest;
        }
        double total = 0;
        for (size_t k = 0; k < a->classes; k++) {
            total += exp((double)(logits[k] - largest)); /* at most 1 each, the largest 1 */
        }
        for (size_t k = 0; k < a->classes; k++) {
            probabilities[k] = (float)(exp((double)(logits[k] - largest)) / total);
        }
        sum += log(total) - (double)(logits[a->labels[n]] - largest);
    }
    *a->loss = (float)(sum / (double)a->n);
}

void nets_loss_backward(void *arg)
{
    const nets_loss_args *a = arg;
    float share = 1 / (float)a->n;
    for (size_t n = 0; n < a->n; n++) {
        for (size_t k = 0; k < a->classes; k++) {
            float is_label = a->labels[n] == (int32_t)k ? 1 : 0;
            a->dlogits[n * a->classes + k] = (a->probabilities[n * a->classes + k] - is_label) * share;
        }
    }
}

void nets_loss_read(void *arg)
{
    const nets_loss_args *a = arg;
    *a->to = *a->loss;
}
