#include "nets/gradient.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "testing.h"

void gradient_fill(float *x, size_t n, uint64_t seed)
{
    np_rng rng = np_rng_make(seed);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(2 * np_rng_unit(&rng) - 1);
    }
}

void gradient_near(const char *file, int line, const char *text_a, double a, const char *text_b, double b,
                   double tolerance)
{
    double scale = fmax(1, fmax(fabs(a), fabs(b)));
    if (!(fabs(a - b) <= tolerance * scale)) {
        test_fail(file, line, "%s is near %s\n  %.9g and %.9g", text_a, text_b, a, b);
    }
}

void gradient_check_at(const char *file, int line, gradient_loss *loss, const void *user, const float *x,
                       const float *given, size_t n)
{
    static const double step = 1e-5;
    double *moved = malloc(n * sizeof *moved);
    if (!moved) {
        test_fail(file, line, "host memory is exhausted");
    }
    for (size_t i = 0; i < n; i++) {
        moved[i] = (double)x[i];
    }
    for (size_t i = 0; i < n; i++) {
        double at = moved[i];
        moved[i] = at + step;
        double above = loss(user, moved, n);
        moved[i] = at - step;
        double below = loss(user, moved, n);
        moved[i] = at;
        double expected = (above - below) / (2 * step);
        if (!(fabs(expected - (double)given[i]) <= 1e-4 * fmax(1, fabs(expected)))) {
            free(moved);
            test_fail(file, line, "gradient of element %zu is %.9g, should be %.9g", i, (double)given[i], expected);
        }
    }
    free(moved);
}
