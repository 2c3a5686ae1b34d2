/* linear.c: y = x * weight' + bias, each image a row. */
#include <cblas.h>
#include <string.h>

#include "layers.h"

void nets_linear_forward(void *arg)
{
    const nets_linear_args *a = arg;
    int n = (int)a->n;
    int in = (int)a->in;
    int out = (int)a->out;
    for (size_t i = 0; i < a->n; i++) {
        memcpy(a->y + i * a->out, a->bias, a->out * sizeof *a->y);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, out, in, 1, a->x, in, a->weight, in, 1, a->y, out);
}

void nets_linear_backward_input(void *arg)
{
    const nets_linear_args *a = arg;
    int n = (int)a->n;
    int in = (int)a->in;
    int out = (int)a->out;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, in, out, 1, a->dy, out, a->weight, in, 0, a->dx, in);
}

void nets_linear_backward_weight(void *arg)
{
    const nets_linear_args *a = arg;
    int n = (int)a->n;
    int in = (int)a->in;
    int out = (int)a->out;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, n, 1, a->dy, out, a->x, in, 0, a->dweight, in);
    memcpy(a->dbias, a->dy, a->out * sizeof *a->dy);
    for (size_t i = 1; i < a->n; i++) {
        for (size_t k = 0; k < a->out; k++) {
            a->dbias[k] += a->dy[i * a->out + k];
        }
    }
}
