#include "swap/place.h"

#include <stdlib.h>
#include <string.h>

#include "pool/clique.h"
#include "pool/near.h"
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

neap_status np_layout_copy(const np_layout *layout, np_layout *copy)
{
    np_layout made = {.memory = layout->memory, .footprint = layout->footprint};
    if (!layout->memory) {
        *copy = made;
        return NEAP_OK;
    }
    if (np_array_reserve(made.memory, &made.placed, layout->placed.n + 1) != NEAP_OK ||
        np_array_reserve(made.memory, &made.left, layout->left.n + 1) != NEAP_OK) {
        np_layout_free(&made);
        return NEAP_NO_MEMORY;
    }
    made.placed.n = layout->placed.n;
    made.left.n = layout->left.n;
    if (made.placed.items && made.placed.n > 0) {
        memcpy(made.placed.items, layout->placed.items, layout->placed.n * sizeof *made.placed.items);
    }
    if (made.left.items && made.left.n > 0) {
        memcpy(made.left.items, layout->left.items, layout->left.n * sizeof *made.left.items);
    }
    *copy = made;
    return NEAP_OK;
}

uint64_t np_layout_excess(const np_layout *layout, uint64_t limit)
{
    uint64_t excess = 0;
    for (size_t i = 0; i < layout->placed.n; i++) {
        const np_placed *placed = &layout->placed.items[i];
        excess += placed->offset + placed->bytes > limit ? placed->bytes : 0;
    }
    return excess;
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
        const np_spot *spot = &p->spots.items[i];
        p->placed.items[i].offset = solution->offsets[spot->buffer] * p->problem.unit + spot->at;
    }
    made.placed.items = p->placed.items;
    made.placed.n = p->placed.n;
    made.placed.capacity = p->placed.capacity;
    p->placed.items = NULL;
    p->placed.n = p->placed.capacity = 0;
    *layout = made;
    return NEAP_OK;
}

/* Hands a solution over, and frees it. */
static neap_status hand_over(np_place_problem *p, np_solution *solution, np_place_result *result, np_layout *layout)
{
    uint64_t unit = p->problem.unit;
    np_place_result made = {.n_buffers = p->problem.buffers.n};
    neap_status status = find_load(p, &made.load);
    made.footprint = solution->height * unit;
    made.bound = solution->bound * unit;
    if (status == NEAP_OK && layout) {
        status = make_layout(p, solution, layout);
    }
    if (status == NEAP_OK) {
        *result = made;
    }
    np_solution_free(solution);
    return status;
}

static neap_status solve(np_place_problem *p, neap_error *error, np_place_result *result, np_layout *layout)
{
    np_solve_options solve_options = {.solver = NEAP_SOLVER_SEARCH,
                                      .seconds = p->options->seconds,
                                      .goal = p->options->goal / p->problem.unit,
                                      .hopeless = p->options->hopeless / p->problem.unit,
                                      .seed = p->options->seed,
                                      .n_threads = p->options->n_threads};
    np_solution solution;
    neap_status status = np_solve(&p->problem, &solve_options, error, &solution);
    return status == NEAP_OK ? hand_over(p, &solution, result, layout) : status;
}

/* Where the bytes of each buffer stood in another layout. Both lists are by life, place and `at`. */
static void find_near(const np_place_problem *p, const np_layout *near, uint64_t *offsets)
{
    size_t at = 0;
    for (size_t i = 0; i < p->problem.buffers.n; i++) {
        offsets[i] = NEAP_NO_OFFSET;
    }
    for (size_t i = 0; i < p->placed.n; i++) {
        const np_placed *placed = &p->placed.items[i];
        const np_spot *spot = &p->spots.items[i];
        const np_placed *other;
        while (at < near->placed.n && (near->placed.items[at].life < placed->life ||
                                       (near->placed.items[at].life == placed->life &&
                                        (near->placed.items[at].place < placed->place ||
                                         (near->placed.items[at].place == placed->place &&
                                          near->placed.items[at].at + near->placed.items[at].bytes <= placed->at))))) {
            at++;
        }
        other = at < near->placed.n ? &near->placed.items[at] : NULL;
        if (other && other->life == placed->life && other->place == placed->place && other->at <= placed->at &&
            other->offset + (placed->at - other->at) >= spot->at) {
            offsets[spot->buffer] = (other->offset + (placed->at - other->at) - spot->at) / p->problem.unit;
        }
    }
}

static neap_status solve_near(np_place_problem *p, const np_layout *layout_near, uint32_t n_steps, neap_error *error,
                              np_place_result *result, np_layout *layout, uint64_t *excess)
{
    const neap_memory *memory = p->timeline->memory;
    uint64_t *offsets = np_memory_alloc(memory, p->problem.buffers.n, sizeof *offsets);
    np_near_options near = {
        .offsets = offsets, .goal = p->options->goal / p->problem.unit, .n_steps = n_steps, .seed = p->options->seed};
    np_solution solution;
    uint64_t above = 0;
    neap_status status;
    if (!offsets) {
        return NEAP_NO_MEMORY;
    }
    find_near(p, layout_near, offsets);
    status = np_solve_near(&p->problem, &near, error, &solution, &above);
    np_memory_free(memory, offsets, p->problem.buffers.n, sizeof *offsets);
    if (status == NEAP_OK) {
        status = hand_over(p, &solution, result, layout);
    }
    if (status == NEAP_OK) {
        *excess = above * p->problem.unit;
    }
    return status;
}

neap_status np_place_swaps(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, neap_error *error,
                           np_place_result *result, np_layout *layout)
{
    np_place_problem problem;
    neap_status status = np_place_problem_make(timeline, simulator, swaps, n_swaps, options, &problem);
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

neap_status np_place_near(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                          uint32_t n_swaps, const np_place_options *options, const np_layout *near, uint32_t n_steps,
                          neap_error *error, np_place_result *result, np_layout *layout, uint64_t *excess)
{
    np_place_problem problem;
    neap_status status = np_place_problem_make(timeline, simulator, swaps, n_swaps, options, &problem);
    if (status == NEAP_OK) {
        status = solve_near(&problem, near, n_steps, error, result, layout, excess);
        np_place_problem_free(&problem);
    }
    return status;
}
