#include <string.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

static void test_sgd(void **state)
{
    (void)state;
    float weight[2] = {1, -2}, velocity[2] = {0.5f, 0}, gradient[2] = {0.25f, 1};
    nets_sgd_args args = {.n = 2,
                          .rate = 0.1f,
                          .momentum = 0.9f,
                          .decay = 0.01f,
                          .gradient = gradient,
                          .weight = weight,
                          .velocity = velocity};
    nets_sgd(&args);
    ASSERT_NEAR(velocity[0], 0.9 * 0.5 + 0.25 + 0.01 * 1, 1e-6);
    ASSERT_NEAR(weight[0], 1 - 0.1 * 0.71, 1e-6);
    ASSERT_NEAR(velocity[1], 1 - 0.01 * 2, 1e-6);
    ASSERT_NEAR(weight[1], -2 - 0.1 * 0.98, 1e-6);
}

static void test_fill_is_uniform_and_follows_from_its_key(void **state)
{
    (void)state;
    enum { N = 4000 };
    static float a[N], b[N], c[N];
    nets_fill(&(nets_fill_args){.n = N, .bound = 0.5f, .key = 3, .y = a});
    nets_fill(&(nets_fill_args){.n = N, .bound = 0.5f, .key = 3, .y = b});
    nets_fill(&(nets_fill_args){.n = N, .bound = 0.5f, .key = 4, .y = c});
    ASSERT_EQ(memcmp(a, b, sizeof a), 0);
    ASSERT_NE(memcmp(a, c, sizeof a), 0);
    double mean = 0;
    double square = 0;
    for (size_t i = 0; i < N; i++) {
        ASSERT_TRUE(a[i] >= -0.5f && a[i] < 0.5f);
        mean += (double)a[i] / N;
        square += (double)(a[i] * a[i]) / N;
    }
    ASSERT_NEAR(mean, 0, 0.02);
    ASSERT_NEAR(square, 1.0 / 12, 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_fill_is_uniform_and_follows_from_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
