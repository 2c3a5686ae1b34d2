#include "swap/gaussian.h"

#include <math.h>

#include "testing.h"

static np_point point(double a, double b, double c, double d)
{
    return (np_point){{a, b, c, d}};
}

static void directions(void **state)
{
    np_point scaled = np_gaussian_direction(point(0.5, -2, 1, 0));
    np_point zero = np_gaussian_direction(point(0, 0, 0, 0));
    (void)state;
    assert_true(scaled.x[0] == 0.25 && scaled.x[1] == -1 && scaled.x[2] == 0.5 && scaled.x[3] == 0);
    assert_true(zero.x[0] == 1 && zero.x[3] == 1);
}

/* What was seen is expected again, with certainty; far away the mean is expected, with the spread of the values. */
static void remembers_and_doubts(void **state)
{
    static const double values[] = {3, 1, 4, 2};
    np_gaussian process;
    double mean;
    double deviation;
    (void)state;
    ASSERT_OK(np_gaussian_init(&process, 4, NULL));
    for (int i = 0; i < 4; i++) {
        np_point seen = point(0, 0, 0, 0);
        seen.x[i] = 1;
        ASSERT_OK(np_gaussian_add(&process, seen, values[i]));
    }
    ASSERT_STATUS(NEAP_TOO_LARGE, np_gaussian_add(&process, point(1, 1, 1, 1), 0));
    np_gaussian_fit(&process);
    for (int i = 0; i < 4; i++) {
        np_point seen = point(0, 0, 0, 0);
        seen.x[i] = 7; /* the scale does not matter */
        np_gaussian_predict(&process, seen, &mean, &deviation);
        assert_true(fabs(mean - values[i]) < 0.01);
        assert_true(deviation < 0.05);
    }
    np_gaussian_predict(&process, point(-1, -1, -1, -1), &mean, &deviation);
    assert_true(fabs(mean - 2.5) < 0.5);
    assert_true(deviation > 0.5 && deviation <= sqrt(1.25) + 1e-9); /* the standard deviation of 1, 2, 3, 4 */
    np_gaussian_free(&process);
}

/* One point, value 5: the covariance at distance r and length l is (1 + s + s^2 / 3) exp(-s), s = sqrt(5) r / l. With one
 * value the scale is 1, and the expected improvement where mean and lowest are equal is deviation / sqrt(2 pi). */
static void one_point_by_hand(void **state)
{
    np_gaussian process;
    double mean, deviation, s, k;
    (void)state;
    ASSERT_OK(np_gaussian_init(&process, 8, NULL));
    ASSERT_OK(np_gaussian_add(&process, point(1, 0, 0, 0), 5));
    np_gaussian_fit(&process);
    s = sqrt(5) * 0.5 / process.length;
    k = (1 + s + s * s / 3) * exp(-s);
    np_gaussian_predict(&process, point(1, 0.3, -0.4, 0), &mean, &deviation);
    assert_true(fabs(mean - 5) < 1e-12);
    assert_true(fabs(deviation - sqrt(1 - k * k / (1 + 1e-4))) < 1e-9);
    assert_true(fabs(np_gaussian_improvement(&process, point(1, 0.3, -0.4, 0)) - deviation / sqrt(2 * acos(-1))) <
                1e-9);
    np_gaussian_free(&process);
}

/* Two points with values 0 and 2 are -1 and 1 when standardised; by symmetry the mean half way is 1. */
static void two_points_by_hand(void **state)
{
    np_gaussian process;
    double mean, deviation, near_mean, near_deviation;
    (void)state;
    ASSERT_OK(np_gaussian_init(&process, 8, NULL));
    ASSERT_OK(np_gaussian_add(&process, point(1, 0.5, 0, 0), 0));
    ASSERT_OK(np_gaussian_add(&process, point(1, -0.5, 0, 0), 2));
    np_gaussian_fit(&process);
    assert_true(process.mean == 1 && process.scale == 1 && process.lowest == -1);
    np_gaussian_predict(&process, point(1, 0, 0, 0), &mean, &deviation);
    assert_true(fabs(mean - 1) < 1e-9);
    np_gaussian_predict(&process, point(1, 0.45, 0, 0), &near_mean, &near_deviation);
    assert_true(near_mean < mean && near_deviation < deviation);
    np_gaussian_free(&process);
}

/* The same point again and again: the noise keeps the factor real. */
static void equal_points(void **state)
{
    np_gaussian process;
    double mean, deviation;
    (void)state;
    ASSERT_OK(np_gaussian_init(&process, 20, NULL));
    for (int i = 0; i < 20; i++) {
        ASSERT_OK(np_gaussian_add(&process, point(1, 1, 0, 0), i % 2));
    }
    np_gaussian_fit(&process);
    np_gaussian_predict(&process, point(1, 1, 0, 0), &mean, &deviation);
    assert_true(fabs(mean - 0.5) < 1e-3);
    assert_true(isfinite(deviation));
    assert_true(np_gaussian_improvement(&process, point(1, 0, 0, 0)) >= 0);
    np_gaussian_free(&process);
}

/* A proposal is better than random points, lies on the surface, and the same seed gives the same. */
static void proposes_the_best(void **state)
{
    np_gaussian process;
    np_rng rng = np_rng_make(5);
    np_rng again;
    np_point proposed, same;
    double largest = 0;
    (void)state;
    ASSERT_OK(np_gaussian_init(&process, 16, NULL));
    for (int i = 0; i < 16; i++) {
        np_point seen;
        for (int d = 0; d < 4; d++) {
            seen.x[d] = 2 * np_rng_unit(&rng) - 1;
        }
        seen = np_gaussian_direction(seen);
        ASSERT_OK(np_gaussian_add(&process, seen, seen.x[0] - seen.x[1]));
    }
    np_gaussian_fit(&process);
    again = rng;
    proposed = np_gaussian_propose(&process, &rng);
    same = np_gaussian_propose(&process, &again);
    for (int d = 0; d < 4; d++) {
        assert_true(proposed.x[d] == same.x[d]);
        largest = fmax(largest, fabs(proposed.x[d]));
    }
    assert_true(largest == 1);
    for (int i = 0; i < 200; i++) {
        np_point other =
            point(np_rng_unit(&rng) - 0.5, np_rng_unit(&rng) - 0.5, np_rng_unit(&rng) - 0.5, np_rng_unit(&rng) - 0.5);
        assert_true(np_gaussian_improvement(&process, proposed) >= np_gaussian_improvement(&process, other));
    }
    assert_true(proposed.x[0] < 0 && proposed.x[1] > 0); /* where the values fall */
    np_gaussian_free(&process);
}

/* Finding the direction of least angle to a given one in 30 looks, against as many random ones. */
static void finds_a_minimum(void **state)
{
    static const np_point goal = {{1, -0.3, 0.6, -0.8}};
    int n_won = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        np_rng rng = np_rng_make(seed);
        np_gaussian process;
        double best[2] = {INFINITY, INFINITY};
        ASSERT_OK(np_gaussian_init(&process, 30, NULL));
        for (int i = 0; i < 60; i++) { /* ten at random and twenty proposed; thirty at random */
            bool proposes = i >= 10 && i < 30;
            double distance = 0;
            np_point tried;
            if (proposes) {
                np_gaussian_fit(&process);
                tried = np_gaussian_propose(&process, &rng);
            }
            for (int d = 0; d < 4; d++) {
                tried.x[d] = proposes ? tried.x[d] : 2 * np_rng_unit(&rng) - 1;
            }
            tried = np_gaussian_direction(tried);
            for (int d = 0; d < 4; d++) {
                distance += (tried.x[d] - goal.x[d]) * (tried.x[d] - goal.x[d]);
            }
            best[i >= 30] = fmin(best[i >= 30], distance);
            if (i < 30) {
                ASSERT_OK(np_gaussian_add(&process, tried, distance));
            }
        }
        n_won += best[0] < best[1];
        assert_true(best[0] < 0.1);
        np_gaussian_free(&process);
    }
    ASSERT_GE(n_won, 9);
}

static neap_status make_one(const neap_memory *memory, void *user)
{
    np_gaussian process;
    neap_status status = np_gaussian_init(&process, 8, memory);
    (void)user;
    if (status == NEAP_OK) {
        np_gaussian_free(&process);
    }
    return status;
}

static void survives_no_memory(void **state)
{
    (void)state;
    ASSERT_EQ(test_memory_fail_each(make_one, NULL), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directions),        cmocka_unit_test(remembers_and_doubts),
        cmocka_unit_test(one_point_by_hand), cmocka_unit_test(two_points_by_hand),
        cmocka_unit_test(equal_points),      cmocka_unit_test(proposes_the_best),
        cmocka_unit_test(finds_a_minimum),   cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
