#include "swap/place.h"

#include <stdlib.h>

#include "pool/clique.h"
#include "pool/solve.h"
#include "swap/load.h"
#include "swap/place_problem.h"

void np_layout_free(np_layout *layout)
{
    if (layout->memory) {
        np_array_free(layout->memory, &layout->placed);
        np_array_free(layout->memory, &layout->left);
    }
    *layout = (np_layout){0};
}

static neap_status find_load(const np_place_problem *p, uint64_t *load)
{
    const np_timeline *timeline = p->timeline;
    size_t n = (size_t)timeline->n_execs + 1;
    uint64_t *changes = np_memory_alloc_zero(timeline->memory, n, sizeof *changes);
    if (!changes) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const np_absent_part *part = &p->parts[i];
        np_load_take(changes, timeline->n_execs, part->from, part->to, part->end - part->begin);
    }
    *load = np_load_sum(timeline, changes);
    np_memory_free(timeline->memory, changes, n, sizeof *changes);
    return NEAP_OK;
}

static int compare_left(const void *left, const void *right)
{
    const np_left *a = left;
    const np_left *b = right;
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

static neap_status make_left(const np_place_problem *p, np_layout *layout)
{
    if (np_array_reserve(layout->memory, &layout->left, (size_t)p->n_parts + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const np_absent_part *part = &p->parts[i];
        layout->left.items[i] = (np_left){part->begin, part->end, part->swap, part->from, part->to};
    }
    layout->left.n = p->n_parts;
    qsort(layout->left.items, layout->left.n, sizeof(np_left), compare_left);
    return NEAP_OK;
}

/* Takes the list of places over. */
static neap_status make_layout(np_place_problem *p, const np_solution *solution, np_layout *layout)
{
    np_layout made = {.memory = p->timeline->memory, .footprint = solution->height * p->problem.unit};
    neap_status status = make_left(p, &made);
    if (status != NEAP_OK) {
        return status;
    }
    for (size_t i = 0; i < p->placed.n; i++) {
        p->placed.items[i].offset = solution->offsets[i] * p->problem.unit;
    }
    made.placed.items = p->placed.items;
    made.placed.n = p->placed.n;
    made.placed.capacity = p->placed.capacity;
    p->placed.items = NULL;
    p->placed.n = p->placed.capacity = 0;
    *layout = made;
    return NEAP_OK;
}

static neap_status solve(np_place_problem *p, neap_error *error, np_place_result *result, np_layout *layout)
{
    np_solve_options solve_options = {.solver = NEAP_SOLVER_SEARCH,
                                      .seconds = p->options->seconds,
                                      .goal = p->options->goal / p->problem.unit,
                                      .seed = p->options->seed,
                                      .n_threads = p->options->n_threads};
    uint64_t unit = p->problem.unit;
    np_place_result made = {.n_buffers = p->problem.buffers.n};
    np_solution solution;
    neap_status status = find_load(p, &made.load);
    if (status == NEAP_OK) {
        status = np_solve(&p->problem, &solve_options, error, &solution);
    }
    if (status != NEAP_OK) {
        return status;
    }
    made.footprint = solution.height * unit;
    made.bound = solution.bound * unit;
    if (status == NEAP_OK && layout) {
        status = make_layout(p, &solution, layout);
    }
    if (status == NEAP_OK) {
        *result = made;
    }
    np_solution_free(&solution);
    return status;
}

neap_status np_place_swaps(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, neap_error *error,
                           np_place_result *result, np_layout *layout)
{
    np_place_problem problem;
    neap_status status;
    if (layout && !options->held) {
        return NEAP_BAD_ARGUMENT;
    }
    status = np_place_problem_make(timeline, simulator, swaps, n_swaps, options, &problem);
    if (status == NEAP_OK) {
        status = solve(&problem, error, result, layout);
        np_place_problem_free(&problem);
    }
    return status;
}

neap_status np_place_bound(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, uint64_t *bound)
{
    np_place_problem problem;
    uint64_t clique = 0;
    neap_status status = np_place_problem_make(timeline, simulator, swaps, n_swaps, options, &problem);
    if (status == NEAP_OK) {
        status = np_clique_bound(&problem.problem, &clique);
        np_place_problem_free(&problem);
    }
    if (status == NEAP_OK) {
        *bound = clique * timeline->alignment;
    }
    return status;
}
