#include <math.h>
#include <string.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

enum { N = 1000 };

static void test_relu(void **state)
{
    (void)state;
    float y[5] = {-2, -0.5f, 0, 0.5f, NAN};
    float dy[5] = {1, 2, 3, 4, 5};
    float dx[5];
    nets_relu_args args = {.n = 5, .y = y, .dy = dy, .dx = dx};
    nets_relu_forward(&args);
    ASSERT_TRUE(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 0.5f);
    ASSERT_TRUE(isnan(y[4])); /* it must not be hidden */
    nets_relu_backward(&args);
    ASSERT_EQ(memcmp(dx, (float[]){0, 0, 0, 4, 0}, sizeof dx), 0);
}

static void test_add(void **state)
{
    (void)state;
    float x[3] = {1, 2, 3};
    float y[3] = {10, 20, 30};
    nets_add(&(nets_add_args){.n = 3, .x = x, .y = y});
    ASSERT_EQ(memcmp(y, (float[]){11, 22, 33}, sizeof y), 0);
}

typedef struct dropped {
    float x[N], y[N], dy[N], dx[N];
    uint8_t mask[N];
} dropped;

static dropped drop(uint64_t key, float share)
{
    dropped d;
    gradient_fill(d.x, N, 1);
    gradient_fill(d.dy, N, 2);
    nets_dropout_args args = {
        .n = N, .key = key, .drop = share, .x = d.x, .y = d.y, .mask = d.mask, .dy = d.dy, .dx = d.dx};
    nets_dropout_forward(&args);
    nets_dropout_backward(&args);
    return d;
}

static void test_dropout_keeps_the_mean_and_its_mask(void **state)
{
    (void)state;
    dropped d = drop(7, 0.25f);
    size_t n_kept = 0;
    for (size_t i = 0; i < N; i++) {
        ASSERT_LE(d.mask[i], 1);
        n_kept += d.mask[i];
        ASSERT_NEAR(d.y[i], d.mask[i] ? d.x[i] / 0.75f : 0, 1e-6);
        ASSERT_NEAR(d.dx[i], d.mask[i] ? d.dy[i] / 0.75f : 0, 1e-6);
    }
    ASSERT_GT(n_kept, 700);
    ASSERT_LT(n_kept, 800);
}

static void test_dropout_follows_from_its_key(void **state)
{
    (void)state;
    dropped a = drop(7, 0.5f);
    dropped b = drop(7, 0.5f);
    dropped c = drop(8, 0.5f);
    ASSERT_EQ(memcmp(a.mask, b.mask, N), 0);
    size_t n_equal = 0;
    for (size_t i = 0; i < N; i++) {
        n_equal += a.mask[i] == c.mask[i];
    }
    ASSERT_GT(n_equal, 400); /* another key: another half */
    ASSERT_LT(n_equal, 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_dropout_keeps_the_mean_and_its_mask),
        cmocka_unit_test(test_dropout_follows_from_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
