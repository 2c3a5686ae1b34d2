#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

enum { N = 3, IN = 7, OUT = 5 };

typedef struct problem {
    float x[N * IN], weight[OUT * IN], bias[OUT], dy[N * OUT];
} problem;

static double value_at(const problem *p, const double *x, const double *weight, const double *bias, size_t n,
                       size_t out)
{
    double sum = bias ? bias[out] : (double)p->bias[out];
    for (size_t i = 0; i < IN; i++) {
        sum += (x ? x[n * IN + i] : (double)p->x[n * IN + i]) *
               (weight ? weight[out * IN + i] : (double)p->weight[out * IN + i]);
    }
    return sum;
}

static double loss_of(const problem *p, const double *x, const double *weight, const double *bias)
{
    double loss = 0;
    for (size_t i = 0; i < N * OUT; i++) {
        loss += (double)p->dy[i] * value_at(p, x, weight, bias, i / OUT, i % OUT);
    }
    return loss;
}

static double loss_by_x(const void *user, const double *x, size_t n)
{
    (void)n;
    return loss_of(user, x, NULL, NULL);
}

static double loss_by_weight(const void *user, const double *weight, size_t n)
{
    (void)n;
    return loss_of(user, NULL, weight, NULL);
}

static double loss_by_bias(const void *user, const double *bias, size_t n)
{
    (void)n;
    return loss_of(user, NULL, NULL, bias);
}

static void test_forward_and_backward(void **state)
{
    (void)state;
    problem p;
    float y[N * OUT], dx[N * IN], dweight[OUT * IN], dbias[OUT];
    gradient_fill(p.x, N * IN, 1);
    gradient_fill(p.weight, OUT * IN, 2);
    gradient_fill(p.bias, OUT, 3);
    gradient_fill(p.dy, N * OUT, 4);
    nets_linear_args args = {.n = N,
                             .in = IN,
                             .out = OUT,
                             .x = p.x,
                             .weight = p.weight,
                             .bias = p.bias,
                             .dy = p.dy,
                             .y = y,
                             .dx = dx,
                             .dweight = dweight,
                             .dbias = dbias};
    nets_linear_forward(&args);
    nets_linear_backward_input(&args);
    nets_linear_backward_weight(&args);
    for (size_t i = 0; i < N * OUT; i++) {
        ASSERT_NEAR(y[i], value_at(&p, NULL, NULL, NULL, i / OUT, i % OUT), 1e-6);
    }
    gradient_check(loss_by_x, &p, p.x, dx, N * IN);
    gradient_check(loss_by_weight, &p, p.weight, dweight, OUT * IN);
    gradient_check(loss_by_bias, &p, p.bias, dbias, OUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward_and_backward)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
