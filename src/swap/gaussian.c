#include "swap/gaussian.h"

#include <float.h>
#include <math.h>

#define NOISE 1e-4 /* variance, of standardised values: a choice of swaps changes in steps, not smoothly */

enum {
    N_RANDOM = 256, /* directions tried for the next point */
    N_STARTS = 4,   /* of them, refined */
    N_STEPS = 40,   /* of a refinement */
};

static const double lengths[] = {0.15, 0.25, 0.4, 0.65, 1.0, 1.6, 2.5};

/* ---- making ---- */

void np_gaussian_free(np_gaussian *process)
{
    const neap_memory *memory = process->memory;
    size_t n = process->capacity;
    np_memory_free(memory, process->points, n, sizeof *process->points);
    np_memory_free(memory, process->values, n, sizeof *process->values);
    np_memory_free(memory, process->factor, n * n, sizeof *process->factor);
    np_memory_free(memory, process->alpha, n, sizeof *process->alpha);
    np_memory_free(memory, process->scratch, n, sizeof *process->scratch);
}

neap_status np_gaussian_init(np_gaussian *process, size_t capacity, const neap_memory *memory)
{
    np_gaussian made = {.memory = np_memory_or_default(memory), .capacity = capacity};
    made.points = np_memory_alloc(made.memory, capacity, sizeof *made.points);
    made.values = np_memory_alloc(made.memory, capacity, sizeof *made.values);
    made.factor = np_memory_alloc(made.memory, capacity * capacity, sizeof *made.factor);
    made.alpha = np_memory_alloc(made.memory, capacity, sizeof *made.alpha);
    made.scratch = np_memory_alloc(made.memory, capacity, sizeof *made.scratch);
    if (!made.points || !made.values || !made.factor || !made.alpha || !made.scratch) {
        np_gaussian_free(&made);
        return NEAP_NO_MEMORY;
    }
    *process = made;
    return NEAP_OK;
}

np_point np_gaussian_direction(np_point point)
{
    double largest = 0;
    for (int i = 0; i < NP_GAUSSIAN_DIMS; i++) {
        largest = fmax(largest, fabs(point.x[i]));
    }
    for (int i = 0; i < NP_GAUSSIAN_DIMS; i++) {
        point.x[i] = largest > 0 ? point.x[i] / largest : 1;
    }
    return point;
}

neap_status np_gaussian_add(np_gaussian *process, np_point point, double value)
{
    if (process->n == process->capacity) {
        return NEAP_TOO_LARGE;
    }
    process->points[process->n] = np_gaussian_direction(point);
    process->values[process->n++] = value;
    return NEAP_OK;
}

/* ---- fitting ---- */

static double covariance(const np_point *a, const np_point *b, double length)
{
    double square = 0;
    double r;
    for (int i = 0; i < NP_GAUSSIAN_DIMS; i++) {
        square += (a->x[i] - b->x[i]) * (a->x[i] - b->x[i]);
    }
    r = sqrt(5 * square) / length;
    return (1 + r + r * r / 3) * exp(-r);
}

/* Cholesky: the factor of the covariance of all points. The noise keeps its diagonal away from 0. */
static void find_factor(np_gaussian *process, double length)
{
    for (size_t i = 0; i < process->n; i++) {
        double *row = &process->factor[i * process->capacity];
        for (size_t j = 0; j <= i; j++) {
            const double *other = &process->factor[j * process->capacity];
            double sum = covariance(&process->points[i], &process->points[j], length) + (i == j ? NOISE : 0);
            for (size_t k = 0; k < j; k++) {
                sum -= row[k] * other[k];
            }
            row[j] = i == j ? sqrt(fmax(sum, NOISE / 2)) : sum / other[j];
        }
    }
}

/* x becomes L^-1 x. */
static void solve_lower(const np_gaussian *process, double *x)
{
    for (size_t i = 0; i < process->n; i++) {
        const double *row = &process->factor[i * process->capacity];
        double rest = x[i];
        for (size_t k = 0; k < i; k++) {
            rest -= row[k] * x[k];
        }
        x[i] = rest / row[i];
    }
}

/* x becomes L^-T x. */
static void solve_upper(const np_gaussian *process, double *x)
{
    for (size_t i = process->n; i-- > 0;) {
        double rest = x[i];
        for (size_t k = i + 1; k < process->n; k++) {
            rest -= process->factor[k * process->capacity + i] * x[k];
        }
        x[i] = rest / process->factor[i * process->capacity + i];
    }
}

/* Factor and alpha for a length; how likely the values are under it, as a logarithm less a constant. */
static double fit_length(np_gaussian *process, double length)
{
    double likelihood = 0;
    find_factor(process, length);
    for (size_t i = 0; i < process->n; i++) {
        process->alpha[i] = (process->values[i] - process->mean) / process->scale;
    }
    solve_lower(process, process->alpha);
    for (size_t i = 0; i < process->n; i++) {
        double diagonal = process->factor[i * process->capacity + i];
        likelihood -= process->alpha[i] * process->alpha[i] / 2 + log(diagonal);
    }
    solve_upper(process, process->alpha);
    return likelihood;
}

static void standardise(np_gaussian *process)
{
    double n = (double)process->n;
    double lowest = INFINITY;
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < process->n; i++) {
        sum += process->values[i];
        lowest = fmin(lowest, process->values[i]);
    }
    process->mean = sum / n;
    for (size_t i = 0; i < process->n; i++) {
        double difference = process->values[i] - process->mean;
        squares += difference * difference;
    }
    process->scale = squares > 0 ? sqrt(squares / n) : 1;
    process->lowest = (lowest - process->mean) / process->scale;
}

void np_gaussian_fit(np_gaussian *process)
{
    double best = -INFINITY;
    process->length = lengths[0];
    standardise(process);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double likelihood = fit_length(process, lengths[i]);
        if (likelihood > best) {
            best = likelihood;
            process->length = lengths[i];
        }
    }
    (void)fit_length(process, process->length);
}

/* ---- asking ---- */

/* In standardised units. */
static void predict(const np_gaussian *process, const np_point *point, double *mean, double *deviation)
{
    double *k = process->scratch;
    double explained = 0;
    *mean = 0;
    for (size_t i = 0; i < process->n; i++) {
        k[i] = covariance(point, &process->points[i], process->length);
        *mean += k[i] * process->alpha[i];
    }
    solve_lower(process, k);
    for (size_t i = 0; i < process->n; i++) {
        explained += k[i] * k[i];
    }
    *deviation = sqrt(fmax(1 - explained, 0));
}

void np_gaussian_predict(const np_gaussian *process, np_point point, double *mean, double *deviation)
{
    point = np_gaussian_direction(point);
    predict(process, &point, mean, deviation);
    *mean = process->mean + *mean * process->scale;
    *deviation *= process->scale;
}

/* E[max(lowest - value, 0)] for a normal value. */
static double improvement(const np_gaussian *process, const np_point *point)
{
    static const double sqrt_half = 0.70710678118654752;
    static const double one_by_sqrt_2pi = 0.39894228040143268;
    double mean;
    double deviation;
    double z;
    predict(process, point, &mean, &deviation);
    if (deviation < DBL_EPSILON) {
        return fmax(process->lowest - mean, 0);
    }
    z = (process->lowest - mean) / deviation;
    return deviation * (z * erfc(-z * sqrt_half) / 2 + one_by_sqrt_2pi * exp(-z * z / 2));
}

double np_gaussian_improvement(const np_gaussian *process, np_point point)
{
    point = np_gaussian_direction(point);
    return improvement(process, &point) * process->scale;
}

typedef struct promise {
    np_point point;
    double improvement;
} promise;

static np_point random_near(np_rng *rng, np_point point, double step)
{
    for (int i = 0; i < NP_GAUSSIAN_DIMS; i++) {
        point.x[i] += step * (2 * np_rng_unit(rng) - 1);
    }
    return np_gaussian_direction(point);
}

/* Random steps that shrink, each from the best so far. */
static void refine(const np_gaussian *process, np_rng *rng, promise *best)
{
    double step = 0.3;
    for (int i = 0; i < N_STEPS; i++) {
        promise tried = {.point = random_near(rng, best->point, step)};
        tried.improvement = improvement(process, &tried.point);
        if (tried.improvement > best->improvement) {
            *best = tried;
        }
        step *= 0.9;
    }
}

np_point np_gaussian_propose(const np_gaussian *process, np_rng *rng)
{
    promise best[N_STARTS]; /* descending */
    for (int i = 0; i < N_STARTS; i++) {
        best[i] = (promise){.improvement = -1};
    }
    for (int i = 0; i < N_RANDOM; i++) {
        promise tried = {.point = random_near(rng, (np_point){{0}}, 1)};
        tried.improvement = improvement(process, &tried.point);
        for (int k = 0; k < N_STARTS; k++) { /* into its place, the others one down */
            if (tried.improvement > best[k].improvement) {
                promise pushed = best[k];
                best[k] = tried;
                tried = pushed;
            }
        }
    }
    for (int i = 0; i < N_STARTS; i++) {
        refine(process, rng, &best[i]);
        if (best[i].improvement > best[0].improvement) {
            best[0] = best[i];
        }
    }
    return best[0].point;
}
