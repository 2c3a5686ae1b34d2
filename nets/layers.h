/* layers.h: what one layer does to its numbers: pure functions, forward and backward.
 *
 * Each function is the `run` of a neap_work: it takes a copy of its arguments, and touches nothing but the arrays they
 * point to. Arrays are dense floats, images are (N,C,H,W): the last index moves fastest. A d before a name is the
 * gradient of the loss by it. One struct serves a layer's forward and backward functions; each uses the members that its
 * comment names, and writes an array from its first element to its last, unless it says otherwise.
 *
 * All sums are done in a fixed order, so that results do not depend on addresses: the same numbers in give the same bits
 * out. */
#ifndef NETS_LAYERS_H
#define NETS_LAYERS_H

#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------------- convolution (conv.c) ---- */

typedef struct nets_conv_shape {
    size_t n;      /* images */
    size_t in_c;   /* channels in */
    size_t in_h;   /* rows in */
    size_t in_w;   /* columns in */
    size_t out_c;  /* channels out */
    size_t out_h;  /* rows out */
    size_t out_w;  /* columns out */
    size_t kernel; /* rows and columns of the window */
    size_t stride; /* of the window in both directions */
    size_t pad;    /* zeros around the image */
} nets_conv_shape;

/* The shape with out_h and out_w filled in. */
nets_conv_shape nets_conv_shape_make(size_t n, size_t in_c, size_t in_size, size_t out_c, size_t kernel, size_t stride);

/* Floats of scratch that each of the three functions needs; may be 0. */
size_t nets_conv_work(const nets_conv_shape *shape);

typedef struct nets_conv_args {
    nets_conv_shape shape;
    const float *x;      /* (N,in_c,in_h,in_w) */
    const float *weight; /* (out_c,in_c,kernel,kernel) */
    const float *dy;     /* (N,out_c,out_h,out_w) */
    float *y;            /* as dy */
    float *dx;           /* as x */
    float *dweight;      /* as weight */
    float *work;         /* nets_conv_work floats, undefined before and after */
} nets_conv_args;

void nets_conv_forward(void *arg);         /* x, weight -> y */
void nets_conv_backward_input(void *arg);  /* dy, weight -> dx */
void nets_conv_backward_weight(void *arg); /* dy, x -> dweight */

/* ---------------------------------------------------------------- batch norm (norm.c) ---- */

typedef struct nets_norm_args {
    size_t n;           /* images */
    size_t c;           /* channels */
    size_t hw;          /* pixels of a channel */
    float momentum;     /* of the running statistics: the share of the newest batch */
    float epsilon;      /* added to the variance */
    float gamma;        /* to begin with */
    const float *x;     /* (N,C,HW) */
    const float *scale; /* (2,C): gamma, beta */
    const float *dy;    /* (N,C,HW) */
    float *y;           /* (N,C,HW) */
    float *saved;       /* (2,C): mean, 1 / standard deviation of this batch */
    float *running;     /* (2,C): mean, variance over batches; read and written */
    float *dx;          /* (N,C,HW) */
    float *dscale;      /* (2,C) */
} nets_norm_args;

void nets_norm_forward(void *arg);  /* x, scale, running -> y, saved, running */
void nets_norm_backward(void *arg); /* x, scale, saved, dy -> dx, dscale */
void nets_norm_init(void *arg);     /* c, gamma -> y as scale (gamma, 0), running (0, 1) */

/* ---------------------------------------------------------------- element by element (elements.c) ---- */

typedef struct nets_relu_args {
    size_t n; /* elements */
    float *y;
    const float *dy;
    float *dx;
} nets_relu_args;

void nets_relu_forward(void *arg);  /* y -> y, in place */
void nets_relu_backward(void *arg); /* y, dy -> dx */

typedef struct nets_add_args {
    size_t n; /* elements */
    const float *x;
    float *y;
} nets_add_args;

void nets_add(void *arg); /* x, y -> y, in place: y + x */

typedef struct nets_dropout_args {
    size_t n;     /* elements */
    uint64_t key; /* of the random numbers: another one each step */
    float drop;   /* share that becomes 0; the others are multiplied by 1 / (1 - drop) */
    const float *x;
    const float *dy;
    float *y;
    float *dx;
    uint8_t *mask; /* 1: kept */
} nets_dropout_args;

void nets_dropout_forward(void *arg);  /* x -> y, mask */
void nets_dropout_backward(void *arg); /* mask, dy -> dx */

/* ---------------------------------------------------------------- pooling (pool.c) ---- */

typedef struct nets_pool_args {
    size_t planes;    /* N * C */
    size_t h;         /* rows in, even for max pooling */
    size_t w;         /* columns in, likewise */
    const float *x;   /* (planes,H,W) */
    const float *dy;  /* (planes,H/2,W/2), average: (planes) */
    float *y;         /* as dy */
    float *dx;        /* as x */
    uint8_t *largest; /* as dy: which of the window's four was it, 2 * row + column */
} nets_pool_args;

void nets_pool_max_forward(void *arg);      /* x -> y, largest: the maximum of each 2 x 2 window, the first of equals */
void nets_pool_max_backward(void *arg);     /* largest, dy -> dx */
void nets_pool_average_forward(void *arg);  /* x -> y: one number a plane */
void nets_pool_average_backward(void *arg); /* dy -> dx */

/* ---------------------------------------------------------------- linear (linear.c) ---- */

typedef struct nets_linear_args {
    size_t n;            /* images */
    size_t in;           /* features in */
    size_t out;          /* features out */
    const float *x;      /* (N,in) */
    const float *weight; /* (out,in) */
    const float *bias;   /* (out) */
    const float *dy;     /* (N,out) */
    float *y;            /* (N,out) */
    float *dx;           /* (N,in) */
    float *dweight;      /* (out,in) */
    float *dbias;        /* (out) */
} nets_linear_args;

void nets_linear_forward(void *arg);         /* x, weight, bias -> y */
void nets_linear_backward_input(void *arg);  /* dy, weight -> dx */
void nets_linear_backward_weight(void *arg); /* dy, x -> dweight, dbias */

/* ---------------------------------------------------------------- loss (loss.c) ---- */

typedef struct nets_loss_args {
    size_t n; /* images */
    size_t classes;
    const float *logits;   /* (N,classes) */
    const int32_t *labels; /* (N) */
    float *probabilities;  /* (N,classes) */
    float *loss;           /* (1): mean cross-entropy */
    float *dlogits;        /* (N,classes) */
    float *to;             /* host memory: one float */
} nets_loss_args;

void nets_loss_forward(void *arg);  /* logits, labels -> probabilities, loss */
void nets_loss_backward(void *arg); /* probabilities, labels -> dlogits */
void nets_loss_read(void *arg);     /* loss -> to */

/* ---------------------------------------------------------------- parameters (update.c) ---- */

typedef struct nets_fill_args {
    size_t n;     /* elements */
    float bound;  /* uniform in [-bound, bound) */
    uint64_t key; /* of the random numbers */
    float *y;
} nets_fill_args;

void nets_fill(void *arg); /* -> y */

typedef struct nets_sgd_args {
    size_t n; /* elements */
    float rate;
    float momentum;
    float decay; /* of weights, added to their gradient */
    const float *gradient;
    float *weight;   /* read and written */
    float *velocity; /* read and written */
} nets_sgd_args;

void nets_sgd(void *arg); /* gradient, weight, velocity -> weight, velocity */

#endif
