#include "swap/mix.h"

#include <math.h>
#include <string.h>

enum { N_RANDOM = 8 }; /* evaluations before the process is asked */

typedef struct tuning {
    const np_swap_task *task;
    size_t n;          /* candidates */
    double *scores;    /* [score][candidate], as they are */
    double *standard;  /* the same, standardised */
    double *mixed;     /* [candidate] */
    np_swap *swaps;    /* of the evaluation under way */
    np_point *points;  /* tried so far */
    double *overheads; /* INFINITY: not possible */
    np_gaussian process;
    /* The best so far, where the caller wants it. */
    np_swap *best;
    uint32_t n_best;
    np_mix mix;
} tuning;

void np_mix_standardise(double *scores, size_t n)
{
    double sum = 0;
    double squares = 0;
    double mean;
    double deviation;
    for (size_t i = 0; i < n; i++) {
        sum += scores[i];
    }
    mean = n > 0 ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++) {
        squares += (scores[i] - mean) * (scores[i] - mean);
    }
    deviation = n > 0 ? sqrt(squares / (double)n) : 0;
    for (size_t i = 0; i < n; i++) { /* equal scores may differ from their mean by rounding */
        scores[i] = deviation > 1e-12 * fabs(mean) ? (scores[i] - mean) / deviation : 0;
    }
}

/* ---- one evaluation ---- */

static const double *mix_by(tuning *tune, const np_point *weights)
{
    for (size_t i = 0; i < tune->n; i++) {
        tune->mixed[i] = 0;
        for (size_t s = 0; s < NP_N_SCORES; s++) {
            tune->mixed[i] += weights->x[s] * tune->standard[s * tune->n + i];
        }
    }
    return tune->mixed;
}

static neap_status evaluate(tuning *tune, np_point weights, const double *scores)
{
    uint32_t n_swaps;
    np_simulation simulation;
    uint32_t number = tune->mix.n_evaluations;
    neap_status status = np_select_and_simulate(tune->task, scores, tune->swaps, &n_swaps, &simulation);
    if (status != NEAP_OK) {
        return status;
    }
    tune->points[number] = weights;
    tune->overheads[number] = simulation.possible ? simulation.overhead : INFINITY;
    tune->mix.n_evaluations++;
    if (number == 0 || tune->overheads[number] < tune->mix.simulation.overhead) {
        tune->mix.simulation = simulation;
        tune->n_best = n_swaps;
        memcpy(tune->mix.weights, weights.x, sizeof tune->mix.weights);
        memcpy(tune->best, tune->swaps, n_swaps * sizeof *tune->swaps);
    }
    return NEAP_OK;
}

/* ---- which weights to try ---- */

/* What is not possible counts as one more than the worst that is: far enough, without bending all else. */
static neap_status learn(tuning *tune)
{
    double worst = 0;
    tune->process.n = 0;
    for (uint32_t i = 0; i < tune->mix.n_evaluations; i++) {
        worst = tune->overheads[i] < INFINITY ? fmax(worst, tune->overheads[i]) : worst;
    }
    for (uint32_t i = 0; i < tune->mix.n_evaluations; i++) {
        double value = tune->overheads[i] < INFINITY ? tune->overheads[i] : worst + 1;
        neap_status status = np_gaussian_add(&tune->process, tune->points[i], value);
        if (status != NEAP_OK) {
            return status;
        }
    }
    np_gaussian_fit(&tune->process);
    return NEAP_OK;
}

static neap_status evaluate_next(tuning *tune, np_rng *rng)
{
    uint32_t number = tune->mix.n_evaluations;
    np_point weights = {{0}};
    if (number < NP_N_SCORES) { /* the score as it is: standardising may round differences away */
        weights.x[number] = 1;
        return evaluate(tune, weights, &tune->scores[number * tune->n]);
    }
    if (number < NP_N_SCORES + N_RANDOM) {
        for (size_t s = 0; s < NP_N_SCORES; s++) {
            weights.x[s] = 2 * np_rng_unit(rng) - 1;
        }
        weights = np_gaussian_direction(weights);
    } else {
        neap_status status = learn(tune);
        if (status != NEAP_OK) {
            return status;
        }
        weights = np_gaussian_propose(&tune->process, rng);
    }
    return evaluate(tune, weights, mix_by(tune, &weights));
}

/* ---- all of it ---- */

static neap_status find_scores(tuning *tune)
{
    const np_swap_task *task = tune->task;
    for (size_t s = 0; s < NP_N_SCORES; s++) {
        double *scores = &tune->scores[s * tune->n];
        double *standard = &tune->standard[s * tune->n];
        neap_status status = np_score_candidates(task->timeline, task->link, task->candidates, (np_score)s, scores);
        if (status != NEAP_OK) {
            return status;
        }
        if (tune->n > 0) {
            memcpy(standard, scores, tune->n * sizeof *scores);
        }
        np_mix_standardise(standard, tune->n);
    }
    return NEAP_OK;
}

static neap_status set_up(tuning *tune, uint32_t n_evaluations)
{
    const neap_memory *memory = tune->task->timeline->memory;
    tune->scores = np_memory_alloc(memory, NP_N_SCORES * tune->n, sizeof *tune->scores);
    tune->standard = np_memory_alloc(memory, NP_N_SCORES * tune->n, sizeof *tune->standard);
    tune->mixed = np_memory_alloc(memory, tune->n, sizeof *tune->mixed);
    tune->swaps = np_memory_alloc(memory, tune->n, sizeof *tune->swaps);
    tune->points = np_memory_alloc(memory, n_evaluations, sizeof *tune->points);
    tune->overheads = np_memory_alloc(memory, n_evaluations, sizeof *tune->overheads);
    if (!tune->scores || !tune->standard || !tune->mixed || !tune->swaps || !tune->points || !tune->overheads) {
        return NEAP_NO_MEMORY;
    }
    return np_gaussian_init(&tune->process, n_evaluations, memory);
}

static void tear_down(tuning *tune, uint32_t n_evaluations)
{
    const neap_memory *memory = tune->task->timeline->memory;
    np_memory_free(memory, tune->scores, NP_N_SCORES * tune->n, sizeof *tune->scores);
    np_memory_free(memory, tune->standard, NP_N_SCORES * tune->n, sizeof *tune->standard);
    np_memory_free(memory, tune->mixed, tune->n, sizeof *tune->mixed);
    np_memory_free(memory, tune->swaps, tune->n, sizeof *tune->swaps);
    np_memory_free(memory, tune->points, n_evaluations, sizeof *tune->points);
    np_memory_free(memory, tune->overheads, n_evaluations, sizeof *tune->overheads);
    if (tune->process.memory) {
        np_gaussian_free(&tune->process);
    }
}

/* The score that is alone in the weights, above 0; NP_N_SCORES: there is none. */
static size_t lone_score(const double *weights)
{
    size_t lone = NP_N_SCORES;
    for (size_t s = 0; s < NP_N_SCORES; s++) {
        if (weights[s] != 0) {
            if (weights[s] < 0 || lone < NP_N_SCORES) {
                return NP_N_SCORES;
            }
            lone = s;
        }
    }
    return lone;
}

neap_status np_mix_by_weights(const np_swap_task *task, const double weights[NP_N_SCORES], np_swap *swaps,
                              uint32_t *n_swaps, np_mix *mix)
{
    tuning tune = {.task = task, .n = task->candidates->gaps.n, .best = swaps};
    size_t lone = lone_score(weights);
    np_point point;
    neap_status status = set_up(&tune, 1);
    memcpy(point.x, weights, sizeof point.x);
    if (status == NEAP_OK) {
        status = find_scores(&tune);
    }
    if (status == NEAP_OK) {
        status = evaluate(&tune, point, lone < NP_N_SCORES ? &tune.scores[lone * tune.n] : mix_by(&tune, &point));
    }
    tear_down(&tune, 1);
    if (status == NEAP_OK) {
        *mix = tune.mix;
        *n_swaps = tune.n_best;
    }
    return status;
}

neap_status np_mix_scores(const np_swap_task *task, uint32_t n_evaluations, uint64_t seed, np_swap *swaps,
                          uint32_t *n_swaps, np_mix *mix)
{
    tuning tune = {.task = task, .n = task->candidates->gaps.n, .best = swaps};
    np_rng rng = np_rng_make(seed);
    neap_status status;
    n_evaluations = n_evaluations > NP_N_SCORES ? n_evaluations : NP_N_SCORES;
    status = set_up(&tune, n_evaluations);
    if (status == NEAP_OK) {
        status = find_scores(&tune);
    }
    while (status == NEAP_OK && tune.mix.n_evaluations < n_evaluations &&
           (tune.mix.n_evaluations == 0 || tune.mix.simulation.overhead > 0)) {
        status = evaluate_next(&tune, &rng);
    }
    tear_down(&tune, n_evaluations);
    if (status == NEAP_OK) {
        *mix = tune.mix;
        *n_swaps = tune.n_best;
    }
    return status;
}
