#include <math.h>
#include <string.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

enum { N = 3, C = 2, HW = 13, ALL = N * C * HW };

typedef struct problem {
    float x[ALL], scale[2 * C], dy[ALL];
} problem;

static problem problem_make(void)
{
    problem p;
    gradient_fill(p.x, ALL, 1);
    gradient_fill(p.scale, 2 * C, 2);
    gradient_fill(p.dy, ALL, 3);
    for (size_t i = 0; i < ALL; i++) {
        p.x[i] += 3; /* a mean far from 0 */
    }
    return p;
}

static size_t at(size_t n, size_t c, size_t i)
{
    return (n * C + c) * HW + i;
}

/* What batch norm is, in doubles. */
static void reference(const double *x, const double *scale, double *y)
{
    for (size_t c = 0; c < C; c++) {
        double mean = 0;
        double variance = 0;
        for (size_t n = 0; n < N; n++) {
            for (size_t i = 0; i < HW; i++) {
                mean += x[at(n, c, i)] / (N * HW);
            }
        }
        for (size_t n = 0; n < N; n++) {
            for (size_t i = 0; i < HW; i++) {
                variance += (x[at(n, c, i)] - mean) * (x[at(n, c, i)] - mean) / (N * HW);
            }
        }
        for (size_t n = 0; n < N; n++) {
            for (size_t i = 0; i < HW; i++) {
                y[at(n, c, i)] = (x[at(n, c, i)] - mean) / sqrt(variance + 1e-5) * scale[c] + scale[C + c];
            }
        }
    }
}

static void widen(const float *from, double *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (double)from[i];
    }
}

static double loss_of(const problem *p, const double *x, const double *scale)
{
    double y[ALL];
    double loss = 0;
    reference(x, scale, y);
    for (size_t i = 0; i < ALL; i++) {
        loss += (double)p->dy[i] * y[i];
    }
    return loss;
}

static double loss_by_x(const void *user, const double *x, size_t n)
{
    const problem *p = user;
    double scale[2 * C];
    (void)n;
    widen(p->scale, scale, 2 * C);
    return loss_of(p, x, scale);
}

static double loss_by_scale(const void *user, const double *scale, size_t n)
{
    const problem *p = user;
    double x[ALL];
    (void)n;
    widen(p->x, x, ALL);
    return loss_of(p, x, scale);
}

static void test_forward_and_backward(void **state)
{
    (void)state;
    problem p = problem_make();
    float y[ALL], saved[2 * C], running[2 * C] = {0}, dx[ALL], dscale[2 * C];
    nets_norm_args args = {.n = N, .c = C, .hw = HW, .momentum = 0.1f, .epsilon = 1e-5f, .x = p.x, .scale = p.scale};
    args.y = y;
    args.saved = saved;
    args.running = running;
    nets_norm_forward(&args);
    args.dy = p.dy;
    args.dx = dx;
    args.dscale = dscale;
    nets_norm_backward(&args);

    double x[ALL], scale[2 * C], expected[ALL];
    widen(p.x, x, ALL);
    widen(p.scale, scale, 2 * C);
    reference(x, scale, expected);
    for (size_t i = 0; i < ALL; i++) {
        ASSERT_NEAR(y[i], expected[i], 1e-5);
    }
    gradient_check(loss_by_x, &p, p.x, dx, ALL);
    gradient_check(loss_by_scale, &p, p.scale, dscale, 2 * C);
}

static void test_running_statistics_come_nearer_to_the_batch(void **state)
{
    (void)state;
    float x[4] = {1, 2, 3, 6}; /* mean 3, variance of a sample 14 / 3 */
    float scale[2] = {1, 0}, y[4], saved[2], running[2] = {0, 1};
    nets_norm_args args = {.n = 2, .c = 1, .hw = 2, .momentum = 0.1f, .epsilon = 0, .x = x, .scale = scale};
    args.y = y;
    args.saved = saved;
    args.running = running;
    nets_norm_forward(&args);
    ASSERT_NEAR(saved[0], 3, 1e-6);
    ASSERT_NEAR(saved[1], 1 / sqrt(3.5), 1e-6);
    ASSERT_NEAR(running[0], 0.3, 1e-6);
    ASSERT_NEAR(running[1], 0.9 + 0.1 * 14 / 3, 1e-6);
    nets_norm_forward(&args);
    ASSERT_NEAR(running[0], 0.57, 1e-6);
}

static void test_init(void **state)
{
    (void)state;
    float scale[4], running[4];
    nets_norm_args args = {.c = 2, .gamma = 0.5f, .y = scale, .running = running};
    nets_norm_init(&args);
    ASSERT_EQ(memcmp(scale, (float[]){0.5f, 0.5f, 0, 0}, sizeof scale), 0);
    ASSERT_EQ(memcmp(running, (float[]){0, 0, 1, 1}, sizeof running), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_and_backward),
        cmocka_unit_test(test_running_statistics_come_nearer_to_the_batch),
        cmocka_unit_test(test_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
