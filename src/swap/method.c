#include "swap/method.h"

#include <string.h>

void np_chosen_free(np_chosen *chosen)
{
    np_array_free(chosen->memory, &chosen->swaps);
}

static neap_status choose_by_score(const np_swap_task *task, np_score score, np_chosen *chosen)
{
    const neap_memory *memory = task->timeline->memory;
    size_t n = task->candidates->gaps.n;
    uint32_t n_swaps = 0;
    double *scores = np_memory_alloc(memory, n, sizeof *scores);
    neap_status status = NEAP_NO_MEMORY;
    if (scores) {
        status = np_score_candidates(task->timeline, task->link, task->candidates, score, scores);
    }
    if (status == NEAP_OK) {
        status = np_select_and_simulate(task, scores, chosen->swaps.items, &n_swaps, &chosen->simulation);
    }
    np_memory_free(memory, scores, n, sizeof *scores);
    chosen->swaps.n = n_swaps;
    chosen->n_evaluations = 1;
    chosen->weights[score] = 1;
    return status;
}

static neap_status choose_by_mix(const np_swap_task *task, const np_method_options *options, np_chosen *chosen)
{
    uint32_t n_evaluations = options->n_evaluations ? options->n_evaluations : NP_MIX_EVALUATIONS;
    uint32_t n_swaps = 0;
    np_mix mix = {0};
    neap_status status = options->method == NP_METHOD_BO
                             ? np_mix_scores(task, n_evaluations, options->seed, chosen->swaps.items, &n_swaps, &mix)
                             : np_mix_by_weights(task, options->weights, chosen->swaps.items, &n_swaps, &mix);
    chosen->swaps.n = n_swaps;
    chosen->simulation = mix.simulation;
    chosen->n_evaluations = mix.n_evaluations;
    memcpy(chosen->weights, mix.weights, sizeof chosen->weights);
    return status;
}

static neap_status choose(const np_swap_task *task, const np_method_options *options, np_chosen *chosen)
{
    if (np_array_reserve(chosen->memory, &chosen->swaps, task->candidates->gaps.n + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    return options->method >= NP_METHOD_BO ? choose_by_mix(task, options, chosen)
                                           : choose_by_score(task, (np_score)options->method, chosen);
}

neap_status np_swap_by_method(const np_timeline *timeline, const np_link *link, const np_method_options *options,
                              np_chosen *chosen)
{
    uint64_t min_bytes = options->min_bytes ? options->min_bytes : NP_CANDIDATE_BYTES;
    np_candidates candidates;
    np_chosen made = {.memory = timeline->memory};
    np_swap_task task = {.timeline = timeline, .link = link, .candidates = &candidates, .limit = options->limit};
    neap_status status = np_candidates_for_limit(timeline, min_bytes, options->limit, &candidates);
    if (status != NEAP_OK) {
        return status;
    }
    made.scope = candidates.scope;
    made.n_candidates = (uint32_t)candidates.gaps.n;
    status = np_simulator_create(timeline, link, &task.simulator);
    if (status == NEAP_OK) {
        status = choose(&task, options, &made);
        np_simulator_free(task.simulator);
    }
    np_candidates_free(&candidates);
    if (status != NEAP_OK) {
        np_chosen_free(&made);
        return status;
    }
    *chosen = made;
    return NEAP_OK;
}
