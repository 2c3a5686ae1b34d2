/* Convolution against the definition, one product at a time, over shapes that take each of its ways: several images in one
 * product with and without a rest, one image a product, 1 x 1 windows with and without a copy, steps of two. */
#include <stdlib.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

typedef struct problem {
    nets_conv_shape s;
    float *x, *weight, *dy, *y, *dx, *dweight, *work;
    size_t n_x, n_weight, n_y, n_work;
} problem;

static float *floats(size_t n, uint64_t seed)
{
    float *x = malloc((n + 1) * sizeof *x);
    ASSERT_TRUE(x != NULL);
    gradient_fill(x, n, seed);
    x[n] = 12345; /* nothing may be written behind the end */
    return x;
}

static problem problem_make(size_t n, size_t in_c, size_t size, size_t out_c, size_t kernel, size_t stride)
{
    problem p = {.s = nets_conv_shape_make(n, in_c, size, out_c, kernel, stride)};
    p.n_x = n * in_c * size * size;
    p.n_weight = out_c * in_c * kernel * kernel;
    p.n_y = n * out_c * p.s.out_h * p.s.out_w;
    p.n_work = nets_conv_work(&p.s);
    p.x = floats(p.n_x, 1);
    p.weight = floats(p.n_weight, 2);
    p.dy = floats(p.n_y, 3);
    p.y = floats(p.n_y, 4);
    p.dx = floats(p.n_x, 5);
    p.dweight = floats(p.n_weight, 6);
    p.work = floats(p.n_work, 7);
    return p;
}

static void problem_free(problem *p)
{
    ASSERT_TRUE(p->y[p->n_y] == 12345 && p->dx[p->n_x] == 12345 && p->dweight[p->n_weight] == 12345);
    ASSERT_TRUE(p->work[p->n_work] == 12345);
    free(p->x);
    free(p->weight);
    free(p->dy);
    free(p->y);
    free(p->dx);
    free(p->dweight);
    free(p->work);
}

/* One result, by the definition. One of x and weight is given in doubles, the other is the problem's. */
static double value_at(const problem *p, const double *x, const double *weight, size_t n, size_t c, size_t y,
                       size_t col)
{
    const nets_conv_shape *s = &p->s;
    double sum = 0;
    for (size_t ic = 0; ic < s->in_c; ic++) {
        for (size_t ky = 0; ky < s->kernel; ky++) {
            for (size_t kx = 0; kx < s->kernel; kx++) {
                size_t row = y * s->stride + ky;
                size_t column = col * s->stride + kx;
                if (row < s->pad || row - s->pad >= s->in_h || column < s->pad || column - s->pad >= s->in_w) {
                    continue;
                }
                size_t at = ((n * s->in_c + ic) * s->in_h + row - s->pad) * s->in_w + column - s->pad;
                size_t with = ((c * s->in_c + ic) * s->kernel + ky) * s->kernel + kx;
                sum += (x ? x[at] : (double)p->x[at]) * (weight ? weight[with] : (double)p->weight[with]);
            }
        }
    }
    return sum;
}

static double loss_of(const problem *p, const double *x, const double *weight)
{
    const nets_conv_shape *s = &p->s;
    double loss = 0;
    size_t i = 0;
    for (size_t n = 0; n < s->n; n++) {
        for (size_t c = 0; c < s->out_c; c++) {
            for (size_t y = 0; y < s->out_h; y++) {
                for (size_t column = 0; column < s->out_w; column++, i++) {
                    loss += (double)p->dy[i] * value_at(p, x, weight, n, c, y, column);
                }
            }
        }
    }
    return loss;
}

static double loss_by_x(const void *user, const double *x, size_t n)
{
    (void)n;
    return loss_of(user, x, NULL);
}

static double loss_by_weight(const void *user, const double *weight, size_t n)
{
    (void)n;
    return loss_of(user, NULL, weight);
}

static void check(size_t n, size_t in_c, size_t size, size_t out_c, size_t kernel, size_t stride)
{
    problem p = problem_make(n, in_c, size, out_c, kernel, stride);
    nets_conv_args args = {.shape = p.s, .x = p.x, .weight = p.weight, .dy = p.dy, .work = p.work};
    args.y = p.y;
    nets_conv_forward(&args);
    args.dx = p.dx;
    nets_conv_backward_input(&args);
    args.dweight = p.dweight;
    nets_conv_backward_weight(&args);
    for (size_t i = 0; i < p.n_y; i++) {
        size_t pixel = i % (p.s.out_h * p.s.out_w);
        size_t plane = i / (p.s.out_h * p.s.out_w);
        double expected = value_at(&p, NULL, NULL, plane / out_c, plane % out_c, pixel / p.s.out_w, pixel % p.s.out_w);
        ASSERT_NEAR(p.y[i], expected, 1e-5);
    }
    gradient_check(loss_by_x, &p, p.x, p.dx, p.n_x);
    gradient_check(loss_by_weight, &p, p.weight, p.dweight, p.n_weight);
    problem_free(&p);
}

static void test_several_images_in_a_product(void **state)
{
    (void)state;
    check(3, 2, 4, 3, 3, 1);
    check(2, 3, 2, 2, 3, 1);
    check(3, 2, 1, 2, 3, 1);
    check(1, 2, 4, 3, 3, 1);
}

static void test_a_rest_of_images(void **state)
{
    (void)state;
    check(5, 1, 10, 2, 3, 1); /* two at a time, then one */
}

static void test_one_image_a_product(void **state)
{
    (void)state;
    check(2, 1, 16, 2, 3, 1);
    check(2, 1, 17, 2, 3, 1);
}

static void test_steps_of_two(void **state)
{
    (void)state;
    check(2, 2, 6, 2, 3, 2);
    check(2, 2, 7, 2, 3, 2);
    check(2, 1, 32, 1, 3, 2);
}

static void test_windows_of_one(void **state)
{
    (void)state;
    check(2, 3, 4, 2, 1, 1);
    check(2, 3, 16, 2, 1, 1);
    check(2, 2, 6, 3, 1, 2);
    nets_conv_shape whole = nets_conv_shape_make(2, 3, 16, 2, 1, 1);
    ASSERT_EQ(nets_conv_work(&whole), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_images_in_a_product),
        cmocka_unit_test(test_a_rest_of_images),
        cmocka_unit_test(test_one_image_a_product),
        cmocka_unit_test(test_steps_of_two),
        cmocka_unit_test(test_windows_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
