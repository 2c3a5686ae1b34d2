/* conv.c: convolution as matrix products (im2col).
 *
 * The windows of an image are laid out as the columns of a matrix, one row for each weight of a filter; the convolution
 * is then the product with the filters, one a row. Where the image is small, so would the matrix be, and the filters
 * would be read again for every image: several images then share one matrix, side by side, and their results, which lie
 * interleaved, are sorted apart. A filter of 1 x 1 that meets every pixel needs no copy: the image is the matrix. */
#include <cblas.h>
#include <string.h>

#include "layers.h"

enum { COLUMNS = 256 }; /* of one product, where there are images enough */

nets_conv_shape nets_conv_shape_make(size_t n, size_t in_c, size_t in_size, size_t out_c, size_t kernel, size_t stride)
{
    size_t pad = kernel / 2;
    size_t out_size = (in_size + 2 * pad - kernel) / stride + 1;
    return (nets_conv_shape){
        .n = n,
        .in_c = in_c,
        .in_h = in_size,
        .in_w = in_size,
        .out_c = out_c,
        .out_h = out_size,
        .out_w = out_size,
        .kernel = kernel,
        .stride = stride,
        .pad = pad,
    };
}

/* Images that share a matrix. */
static size_t group_of(const nets_conv_shape *s)
{
    size_t n = COLUMNS / (s->out_h * s->out_w);
    return n < 1 ? 1 : n > s->n ? s->n : n;
}

/* Rows of the matrix: weights of one filter. */
static size_t rows_of(const nets_conv_shape *s)
{
    return s->in_c * s->kernel * s->kernel;
}

static int is_pointwise(const nets_conv_shape *s)
{
    return s->kernel == 1 && s->stride == 1;
}

/* Floats of the windows' matrix, and of the interleaved results behind it. */
static size_t columns_floats(const nets_conv_shape *s)
{
    size_t group = group_of(s);
    return group == 1 && is_pointwise(s) ? 0 : rows_of(s) * group * s->out_h * s->out_w;
}

size_t nets_conv_work(const nets_conv_shape *s)
{
    size_t group = group_of(s);
    return columns_floats(s) + (group == 1 ? 0 : s->out_c * group * s->out_h * s->out_w);
}

/* ---- between images and columns ---- */

/* The output columns [begin, end) at which the window's column kx lies within the image. */
typedef struct span {
    size_t begin;
    size_t end;
} span;

static span inside(size_t in, size_t out, size_t stride, size_t pad, size_t k)
{
    /* 0 <= o * stride + k - pad < in */
    size_t begin = k >= pad ? 0 : (pad - k + stride - 1) / stride;
    size_t end = in + pad <= k ? 0 : (in + pad - k + stride - 1) / stride;
    end = end < out ? end : out;
    return (span){begin < end ? begin : end, end};
}

/* One image's windows as columns; `width` floats from one row to the next. */
static void image_to_columns(const nets_conv_shape *s, const float *x, float *columns, size_t width)
{
    for (size_t row = 0; row < rows_of(s); row++, columns += width) {
        size_t c = row / (s->kernel * s->kernel);
        size_t ky = row / s->kernel % s->kernel;
        size_t kx = row % s->kernel;
        span ys = inside(s->in_h, s->out_h, s->stride, s->pad, ky);
        span xs = inside(s->in_w, s->out_w, s->stride, s->pad, kx);
        for (size_t y = 0; y < s->out_h; y++) {
            float *to = columns + y * s->out_w;
            if (y < ys.begin || y >= ys.end || xs.begin == xs.end) {
                memset(to, 0, s->out_w * sizeof *to);
                continue;
            }
            const float *from = x + (c * s->in_h + y * s->stride + ky - s->pad) * s->in_w;
            memset(to, 0, xs.begin * sizeof *to);
            if (s->stride == 1) {
                memcpy(to + xs.begin, from + xs.begin + kx - s->pad, (xs.end - xs.begin) * sizeof *to);
            } else {
                for (size_t i = xs.begin; i < xs.end; i++) {
                    to[i] = from[i * s->stride + kx - s->pad];
                }
            }
            memset(to + xs.end, 0, (s->out_w - xs.end) * sizeof *to);
        }
    }
}

/* The way back: every pixel becomes the sum of its places in the columns. */
static void columns_to_image(const nets_conv_shape *s, const float *columns, size_t width, float *x)
{
    memset(x, 0, s->in_c * s->in_h * s->in_w * sizeof *x);
    for (size_t row = 0; row < rows_of(s); row++, columns += width) {
        size_t c = row / (s->kernel * s->kernel);
        size_t ky = row / s->kernel % s->kernel;
        size_t kx = row % s->kernel;
        span ys = inside(s->in_h, s->out_h, s->stride, s->pad, ky);
        span xs = inside(s->in_w, s->out_w, s->stride, s->pad, kx);
        for (size_t y = ys.begin; y < ys.end; y++) {
            const float *from = columns + y * s->out_w;
            float *to = x + (c * s->in_h + y * s->stride + ky - s->pad) * s->in_w;
            for (size_t i = xs.begin; i < xs.end; i++) {
                to[i * s->stride + kx - s->pad] += from[i];
            }
        }
    }
}

/* ---- a group of images, and its matrices ---- */

typedef struct group {
    size_t first;       /* image */
    size_t n;           /* images */
    size_t pixels;      /* of one result */
    size_t width;       /* n * pixels: columns of both matrices */
    float *columns;     /* (rows,width) */
    float *interleaved; /* (out_c,width); NULL: one image, whose result is the matrix */
} group;

static group group_at(const nets_conv_args *a, size_t first)
{
    const nets_conv_shape *s = &a->shape;
    size_t n = group_of(s);
    group g = {.first = first, .pixels = s->out_h * s->out_w, .columns = a->work};
    if (n > 1) {
        g.interleaved = a->work + columns_floats(s);
    }
    g.n = n < s->n - first ? n : s->n - first;
    g.width = g.n * g.pixels;
    return g;
}

/* The windows of the group's images; may point into x. */
static const float *columns_of(const nets_conv_args *a, const group *g)
{
    const nets_conv_shape *s = &a->shape;
    size_t image = s->in_c * s->in_h * s->in_w;
    if (columns_floats(s) == 0) {
        return a->x + g->first * image;
    }
    for (size_t i = 0; i < g->n; i++) {
        image_to_columns(s, a->x + (g->first + i) * image, g->columns + i * g->pixels, g->width);
    }
    return g->columns;
}

/* The group's part of dy as one matrix (out_c,width); may point into dy. */
static const float *results_of(const nets_conv_args *a, const group *g)
{
    size_t out_c = a->shape.out_c;
    const float *dy = a->dy + g->first * out_c * g->pixels;
    if (!g->interleaved) {
        return dy;
    }
    for (size_t i = 0; i < g->n; i++) {
        for (size_t c = 0; c < out_c; c++) {
            memcpy(g->interleaved + c * g->width + i * g->pixels, dy + (i * out_c + c) * g->pixels,
                   g->pixels * sizeof *dy);
        }
    }
    return g->interleaved;
}

/* ---- the three functions ---- */

void nets_conv_forward(void *arg)
{
    const nets_conv_args *a = arg;
    const nets_conv_shape *s = &a->shape;
    int n_rows = (int)rows_of(s);
    for (size_t first = 0; first < s->n; first += group_of(s)) {
        group g = group_at(a, first);
        const float *columns = columns_of(a, &g);
        float *y = a->y + first * s->out_c * g.pixels;
        /* (out_c,width) = weight (out_c,rows) * columns (rows,width) */
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)s->out_c, (int)g.width, n_rows, 1, a->weight,
                    n_rows, columns, (int)g.width, 0, g.interleaved ? g.interleaved : y, (int)g.width);
        for (size_t i = 0; g.interleaved && i < g.n; i++) {
            for (size_t c = 0; c < s->out_c; c++) {
                memcpy(y + (i * s->out_c + c) * g.pixels, g.interleaved + c * g.width + i * g.pixels,
                       g.pixels * sizeof *y);
            }
        }
    }
}

void nets_conv_backward_input(void *arg)
{
    const nets_conv_args *a = arg;
    const nets_conv_shape *s = &a->shape;
    size_t image = s->in_c * s->in_h * s->in_w;
    int n_rows = (int)rows_of(s);
    for (size_t first = 0; first < s->n; first += group_of(s)) {
        group g = group_at(a, first);
        const float *dy = results_of(a, &g);
        float *dx = a->dx + first * image;
        float *columns = columns_floats(s) ? g.columns : dx;
        /* (rows,width) = weight' (rows,out_c) * dy (out_c,width) */
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n_rows, (int)g.width, (int)s->out_c, 1, a->weight, n_rows,
                    dy, (int)g.width, 0, columns, (int)g.width);
        for (size_t i = 0; columns != dx && i < g.n; i++) {
            columns_to_image(s, columns + i * g.pixels, g.width, dx + i * image);
        }
    }
}

void nets_conv_backward_weight(void *arg)
{
    const nets_conv_args *a = arg;
    const nets_conv_shape *s = &a->shape;
    int n_rows = (int)rows_of(s);
    for (size_t first = 0; first < s->n; first += group_of(s)) {
        group g = group_at(a, first);
        const float *columns = columns_of(a, &g);
        const float *dy = results_of(a, &g);
        /* (out_c,rows) += dy (out_c,width) * columns' (width,rows); the first group sets it */
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)s->out_c, n_rows, (int)g.width, 1, dy, (int)g.width,
                    columns, (int)g.width, first == 0 ? 0 : 1, a->dweight, n_rows);
    }
}
