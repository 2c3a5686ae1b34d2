#include "pool/solve.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/status.h"
#include "pool/check.h"
#include "pool/fit.h"
#include "pool/search.h"

typedef struct solving {
    const np_problem *problem;
    const np_solve_options *options;
    const np_sections *sections;
    uint64_t *item_offsets; /* above the base */
    uint64_t begin_ns;
    uint64_t height; /* of the parts placed so far, above the base */
    uint64_t bound;  /* likewise */
    char found_by[48];
} solving;

void np_solution_free(np_solution *solution)
{
    np_memory_free(solution->memory, solution->offsets, solution->n_offsets, sizeof *solution->offsets);
    *solution = (np_solution){0};
}

static bool report_progress(const solving *s, uint64_t height)
{
    const np_solve_options *options = s->options;
    uint64_t unit = s->problem->unit;
    return !options->progress ||
           options->progress(options->progress_user, 1e-9 * (double)(np_clock_ns() - s->begin_ns),
                             (height + s->sections->base) * unit, (s->bound + s->sections->base) * unit);
}

static bool should_stop(void *user)
{
    const solving *s = user;
    return !report_progress(s, s->height);
}

/* The paper's pool, part by part. NEAP_NO_PLAN: told to stop before all was placed. */
static neap_status place_greedily(solving *s, np_fit_rule rule)
{
    np_stop stop = {should_stop, s};
    const np_sections *sections = s->sections;
    const neap_memory *memory = sections->memory;
    uint32_t *order = np_memory_alloc(memory, sections->items.n, sizeof *order);
    np_occupied occupied = {.memory = memory};
    neap_status status;
    if (!order) {
        return NEAP_NO_MEMORY;
    }
    s->bound = sections->load;
    status = np_occupied_init(&occupied, memory, (np_range){0, sections->n_sections});
    for (size_t p = 0; p < sections->parts.n && status == NEAP_OK; p++) {
        const np_part *part = &sections->parts.items[p];
        uint64_t height = 0;
        status = np_fit_order(sections, part, NP_ORDER_SIZE, order);
        if (status == NEAP_OK) { /* parts share no section, so one index serves them all */
            status = np_fit_place(sections, part, order, rule, &stop, &occupied, &s->item_offsets[part->first_item],
                                  &height);
        }
        if (status == NEAP_OK && height == UINT64_MAX) {
            status = NEAP_NO_PLAN;
        }
        s->height = height > s->height ? height : s->height;
    }
    (void)snprintf(s->found_by, sizeof s->found_by, "%s-fit by size", rule == NP_FIT_FIRST ? "first" : "best");
    np_occupied_free(&occupied);
    np_memory_free(memory, order, sections->items.n, sizeof *order);
    return status;
}

static void free_searches(const np_sections *sections, np_search **searches)
{
    for (size_t p = 0; p < sections->parts.n && searches; p++) {
        np_search_free(searches[p]);
    }
    np_memory_free(sections->memory, searches, sections->parts.n, sizeof *searches);
}

/* Every part is placed somehow. */
static neap_status start_searches(solving *s, uint64_t deadline_ns, np_search **searches)
{
    uint64_t base = s->sections->base;
    uint64_t goal = s->options->goal > base ? s->options->goal - base : 0;
    np_search_options options = {.seed = s->options->seed, .deadline_ns = deadline_ns};
    neap_status status = NEAP_OK;
    options.goal = goal > s->sections->load ? goal : s->sections->load;
    options.n_threads = s->options->n_threads;
    for (size_t p = 0; p < s->sections->parts.n && status == NEAP_OK; p++) {
        const np_part *part = &s->sections->parts.items[p];
        status = np_search_create(s->sections, part, &options, &s->item_offsets[part->first_item], &searches[p]);
        if (status == NEAP_OK) {
            status = np_search_round(searches[p]);
        }
    }
    return status;
}

/* The part that stands highest is the one to work on. */
static np_search *highest(const np_sections *sections, np_search *const *searches)
{
    np_search *found = searches[0];
    for (size_t p = 1; p < sections->parts.n; p++) {
        if (np_search_height(searches[p]) > np_search_height(found)) {
            found = searches[p];
        }
    }
    return found;
}

static bool is_hopeless(const solving *s)
{
    return s->options->hopeless > 0 && s->sections->base + s->height > s->options->hopeless;
}

static neap_status place_by_search(solving *s)
{
    const np_sections *sections = s->sections;
    uint64_t deadline_ns = s->begin_ns + (uint64_t)(s->options->seconds * 1e9);
    np_search **searches = np_memory_alloc_zero(sections->memory, sections->parts.n, sizeof(np_search *));
    neap_status status = searches ? start_searches(s, deadline_ns, searches) : NEAP_NO_MEMORY;
    np_search *top = NULL;

    s->bound = sections->load;
    while (status == NEAP_OK && sections->parts.n > 0) {
        top = highest(sections, searches);
        s->height = np_search_height(top);
        s->bound = np_search_bound(top) > s->bound ? np_search_bound(top) : s->bound;
        if (is_hopeless(s) || np_search_is_done(top) || np_clock_ns() > deadline_ns || !report_progress(s, s->height)) {
            break;
        }
        status = np_search_round(top);
    }
    if (status == NEAP_OK) { /* no part at all: whatever lives, lives all the time */
        (void)snprintf(s->found_by, sizeof s->found_by, "%s", top ? np_search_found_by(top) : "stacking");
    }
    free_searches(sections, searches);
    return status;
}

static void gather_offsets(const np_problem *problem, const np_sections *sections, const uint64_t *item_offsets,
                           uint64_t *offsets)
{
    uint64_t at = 0;
    for (size_t i = 0; i < sections->everywhere.n; i++) {
        uint32_t buffer = sections->everywhere.items[i];
        offsets[buffer] = at;
        at += problem->buffers.items[buffer].size;
    }
    for (size_t i = 0; i < sections->items.n; i++) {
        offsets[sections->items.items[i].buffer] = sections->base + item_offsets[i];
    }
}

/* The fixed buffers alone must fit: no solver can mend that. */
static neap_status check_fixed(const np_problem *problem, neap_error *error)
{
    np_problem fixed;
    uint32_t *from = np_memory_alloc(problem->memory, problem->buffers.n, sizeof *from);
    uint64_t *offsets = np_memory_alloc(problem->memory, problem->buffers.n, sizeof *offsets);
    np_check_result result = {.verdict = NP_CHECK_RIGHT};
    neap_status status = from && offsets ? NEAP_OK : NEAP_NO_MEMORY;

    np_problem_init(&fixed, problem->memory, 1, problem->n_times);
    for (uint32_t i = 0; i < problem->buffers.n && status == NEAP_OK; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        if (buffer->fixed != NEAP_NO_OFFSET) {
            from[fixed.buffers.n] = i;
            offsets[fixed.buffers.n] = buffer->fixed;
            status = np_problem_add(&fixed, buffer->size, buffer->fixed, &problem->pieces.items[buffer->first_piece],
                                    buffer->n_pieces);
        }
    }
    if (status == NEAP_OK) {
        status = np_check(&fixed, offsets, UINT64_MAX, &result);
    }
    if (status == NEAP_OK && result.verdict != NP_CHECK_RIGHT) {
        status =
            np_fail(error, NEAP_BAD_INPUT, "fixed buffers %u and %u overlap", from[result.buffer], from[result.other]);
    }
    np_problem_free(&fixed);
    np_memory_free(problem->memory, from, problem->buffers.n, sizeof *from);
    np_memory_free(problem->memory, offsets, problem->buffers.n, sizeof *offsets);
    return status;
}

neap_status np_solve_check_fixed(const np_problem *problem, const np_sections *sections, neap_error *error)
{
    return sections->has_fixed ? check_fixed(problem, error) : NEAP_OK;
}

neap_status np_solution_make(const np_problem *problem, const np_sections *sections, const np_solved *solved,
                             neap_error *error, np_solution *solution)
{
    np_solution made = {.memory = problem->memory, .n_offsets = problem->buffers.n};
    np_check_result verdict;
    neap_status status;
    made.offsets = np_memory_alloc(made.memory, made.n_offsets, sizeof *made.offsets);
    if (!made.offsets) {
        return NEAP_NO_MEMORY;
    }
    gather_offsets(problem, sections, solved->item_offsets, made.offsets);
    made.height = sections->base + solved->height;
    made.load = sections->base + sections->load;
    made.bound = sections->base + solved->bound;
    (void)snprintf(made.found_by, sizeof made.found_by, "%s", solved->found_by);
    status = np_check(problem, made.offsets, made.height, &verdict);
    if (status == NEAP_OK && verdict.verdict != NP_CHECK_RIGHT) {
        status = np_fail(error, NEAP_INTERNAL, "the plan was refused by the checker: buffer %u, verdict %d",
                         verdict.buffer, (int)verdict.verdict);
    }
    if (status == NEAP_OK && made.bound > made.height) {
        status = np_fail(error, NEAP_INTERNAL, "a proven bound is above a plan that passed the checker");
    }
    if (status != NEAP_OK) {
        np_solution_free(&made);
        return status;
    }
    *solution = made;
    return NEAP_OK;
}

neap_status np_solve(const np_problem *problem, const np_solve_options *options, neap_error *error,
                     np_solution *solution)
{
    solving s = {.problem = problem, .options = options, .begin_ns = np_clock_ns()};
    np_sections sections;
    neap_status status = np_sections_make(problem, &sections);
    if (status != NEAP_OK) {
        return status;
    }
    s.sections = &sections;
    status = np_solve_check_fixed(problem, &sections, error);
    s.item_offsets = np_memory_alloc(problem->memory, sections.items.n, sizeof *s.item_offsets);
    if (status == NEAP_OK && !s.item_offsets) {
        status = NEAP_NO_MEMORY;
    }
    if (status == NEAP_OK) {
        switch (options->solver) {
        case NEAP_SOLVER_SEARCH:
            status = place_by_search(&s);
            break;
        case NEAP_SOLVER_BESTFIT:
            status = place_greedily(&s, NP_FIT_BEST);
            break;
        case NEAP_SOLVER_FIRSTFIT:
            status = place_greedily(&s, NP_FIT_FIRST);
            break;
        default:
            status = np_fail(error, NEAP_BAD_ARGUMENT, "unknown solver");
            break;
        }
    }
    if (status == NEAP_OK) {
        np_solved solved = {s.item_offsets, s.height, s.bound, s.found_by};
        status = np_solution_make(problem, &sections, &solved, error, solution);
    }
    np_memory_free(problem->memory, s.item_offsets, sections.items.n, sizeof *s.item_offsets);
    np_sections_free(&sections);
    return status;
}
