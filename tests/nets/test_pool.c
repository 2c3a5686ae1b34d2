#include <string.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

enum { PLANES = 3, H = 4, W = 6, IN = PLANES * H * W, OUT = IN / 4 };

/* The largest of a window, in doubles. */
static double largest_of(const double *x, size_t out)
{
    size_t plane = out / (H / 2 * (W / 2));
    size_t row = out / (W / 2) % (H / 2);
    size_t column = out % (W / 2);
    const double *first = x + (plane * H + 2 * row) * W + 2 * column;
    double largest = first[0];
    for (size_t i = 1; i < 4; i++) {
        double other = first[i / 2 * W + i % 2];
        largest = other > largest ? other : largest;
    }
    return largest;
}

static double max_loss(const void *user, const double *x, size_t n)
{
    const float *dy = user;
    double loss = 0;
    (void)n;
    for (size_t i = 0; i < OUT; i++) {
        loss += (double)dy[i] * largest_of(x, i);
    }
    return loss;
}

static void test_max(void **state)
{
    (void)state;
    float x[IN], y[OUT], dy[OUT], dx[IN];
    uint8_t largest[OUT];
    double wide[IN];
    gradient_fill(x, IN, 1);
    gradient_fill(dy, OUT, 2);
    memset(dx, 0xff, sizeof dx);
    nets_pool_args args = {.planes = PLANES, .h = H, .w = W, .x = x, .y = y, .largest = largest, .dy = dy, .dx = dx};
    nets_pool_max_forward(&args);
    nets_pool_max_backward(&args);
    for (size_t i = 0; i < IN; i++) {
        wide[i] = (double)x[i];
    }
    for (size_t i = 0; i < OUT; i++) {
        ASSERT_NEAR(y[i], largest_of(wide, i), 1e-7);
    }
    gradient_check(max_loss, dy, x, dx, IN);
}

static void test_max_takes_the_first_of_equals(void **state)
{
    (void)state;
    float x[4] = {1, 2, 2, 2}, y, dy = 5, dx[4];
    uint8_t largest;
    nets_pool_args args = {.planes = 1, .h = 2, .w = 2, .x = x, .y = &y, .largest = &largest, .dy = &dy, .dx = dx};
    nets_pool_max_forward(&args);
    nets_pool_max_backward(&args);
    ASSERT_EQ(memcmp(dx, (float[]){0, 5, 0, 0}, sizeof dx), 0);
}

static double average_loss(const void *user, const double *x, size_t n)
{
    const float *dy = user;
    double loss = 0;
    for (size_t i = 0; i < n; i++) {
        loss += (double)dy[i / (H * W)] * x[i] / (H * W);
    }
    return loss;
}

static void test_average(void **state)
{
    (void)state;
    float x[IN], y[PLANES], dy[PLANES], dx[IN];
    gradient_fill(x, IN, 1);
    gradient_fill(dy, PLANES, 2);
    nets_pool_args args = {.planes = PLANES, .h = H, .w = W, .x = x, .y = y, .dy = dy, .dx = dx};
    nets_pool_average_forward(&args);
    nets_pool_average_backward(&args);
    for (size_t p = 0; p < PLANES; p++) {
        double sum = 0;
        for (size_t i = 0; i < H * W; i++) {
            sum += (double)x[p * H * W + i];
        }
        ASSERT_NEAR(y[p], sum / (H * W), 1e-6);
    }
    gradient_check(average_loss, dy, x, dx, IN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max),
        cmocka_unit_test(test_max_takes_the_first_of_equals),
        cmocka_unit_test(test_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
