/* gaussian.h: a Gaussian process over four weights, and where to look next.
 *
 * Mixed scores give the same order whatever their scale: only the direction of the weights matters. So the points are
 * directions, scaled such that the weight of largest magnitude is 1 or -1, and points that are asked for are scaled so.
 * Prior: constant mean, Matern 5/2 covariance; the length is the one of a few under which the values seen are most likely.
 * The next point maximises the expected improvement over the lowest value. Values are minimised. */
#ifndef NP_SWAP_GAUSSIAN_H
#define NP_SWAP_GAUSSIAN_H

#include "base/memory.h"
#include "base/rng.h"

#define NP_GAUSSIAN_DIMS 4

typedef struct np_point {
    double x[NP_GAUSSIAN_DIMS];
} np_point;

typedef struct np_gaussian {
    const neap_memory *memory;
    size_t capacity;
    size_t n; /* points seen */
    np_point *points;
    double *values;
    /* Of the fit: */
    double length;  /* of the covariance, in units of the weights */
    double mean;    /* of the values */
    double scale;   /* their standard deviation, or 1 where it is 0 */
    double lowest;  /* standardised */
    double *factor; /* lower triangle L of the covariance, row by row, capacity * capacity */
    double *alpha;  /* covariance^-1 * standardised values */
    double *scratch;
} np_gaussian;

neap_status np_gaussian_init(np_gaussian *process, size_t capacity, const neap_memory *memory);
void np_gaussian_free(np_gaussian *process);

/* The point scaled to a direction; all zeros become (1, 1, 1, 1). */
np_point np_gaussian_direction(np_point point);

/* Adds what was seen: a point and a finite value. NEAP_TOO_LARGE: it is full. The fit is then out of date. */
neap_status np_gaussian_add(np_gaussian *process, np_point point, double value);

/* Must be called, with one point at least, before the functions below. */
void np_gaussian_fit(np_gaussian *process);

/* What the process expects at a point, and how sure it is (one standard deviation), in units of the values. */
void np_gaussian_predict(const np_gaussian *process, np_point point, double *mean, double *deviation);

/* By how much the value at a point is expected to fall below the lowest seen. */
double np_gaussian_improvement(const np_gaussian *process, np_point point);

/* The point of largest expected improvement found: the best of many random directions, then refined. */
np_point np_gaussian_propose(const np_gaussian *process, np_rng *rng);

#endif
