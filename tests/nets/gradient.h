/* gradient.h: is a gradient right? Each layer is written down a second time in the tests, in doubles and in the plainest
 * way; differences of that are what a gradient must be. */
#ifndef TESTS_NETS_GRADIENT_H
#define TESTS_NETS_GRADIENT_H

#include <stddef.h>
#include <stdint.h>

/* Fills with numbers in [-1, 1) that follow from the seed. */
void gradient_fill(float *x, size_t n, uint64_t seed);

/* The loss as a function of one array, all else fixed. */
typedef double gradient_loss(const void *user, const double *x, size_t n);

/* Ends the test where `given` is not the gradient of `loss` at x, by central differences, to four digits. */
#define gradient_check(loss, user, x, given, n) gradient_check_at(__FILE__, __LINE__, (loss), (user), (x), (given), (n))
void gradient_check_at(const char *file, int line, gradient_loss *loss, const void *user, const float *x,
                       const float *given, size_t n);

/* Ends the test where two numbers differ by more than `tolerance` of the larger, or of 1. */
#define ASSERT_NEAR(a, b, tolerance) gradient_near(__FILE__, __LINE__, #a, (double)(a), #b, (double)(b), (tolerance))
void gradient_near(const char *file, int line, const char *text_a, double a, const char *text_b, double b,
                   double tolerance);

#endif
