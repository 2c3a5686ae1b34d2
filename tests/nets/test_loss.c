#include <math.h>

#include "nets/gradient.h"
#include "nets/layers.h"
#include "testing.h"

enum { N = 4, CLASSES = 5 };

static const int32_t labels[N] = {0, 4, 2, 2};

static double loss_by_logits(const void *user, const double *logits, size_t n)
{
    double loss = 0;
    (void)user;
    (void)n;
    for (size_t i = 0; i < N; i++) {
        double total = 0;
        for (size_t k = 0; k < CLASSES; k++) {
            total += exp(logits[i * CLASSES + k]);
        }
        loss -= log(exp(logits[i * CLASSES + (size_t)labels[i]]) / total) / N;
    }
    return loss;
}

static void test_forward_and_backward(void **state)
{
    (void)state;
    float logits[N * CLASSES], probabilities[N * CLASSES], dlogits[N * CLASSES], loss, to = 0;
    double wide[N * CLASSES];
    gradient_fill(logits, N * CLASSES, 1);
    nets_loss_args args = {.n = N,
                           .classes = CLASSES,
                           .logits = logits,
                           .labels = labels,
                           .probabilities = probabilities,
                           .loss = &loss,
                           .dlogits = dlogits,
                           .to = &to};
    nets_loss_forward(&args);
    nets_loss_backward(&args);
    nets_loss_read(&args);
    for (size_t i = 0; i < N * CLASSES; i++) {
        wide[i] = (double)logits[i];
    }
    ASSERT_NEAR(loss, loss_by_logits(NULL, wide, N * CLASSES), 1e-6);
    ASSERT_TRUE(to == loss);
    gradient_check(loss_by_logits, NULL, logits, dlogits, N * CLASSES);
}

static void test_large_logits_do_not_overflow(void **state)
{
    (void)state;
    float logits[2] = {1000, -1000}, probabilities[2], loss;
    const int32_t label = 1;
    nets_loss_args args = {
        .n = 1, .classes = 2, .logits = logits, .labels = &label, .probabilities = probabilities, .loss = &loss};
    nets_loss_forward(&args);
    ASSERT_NEAR(loss, 2000, 1e-6);
    ASSERT_TRUE(probabilities[0] == 1 && probabilities[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_and_backward),
        cmocka_unit_test(test_large_logits_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
