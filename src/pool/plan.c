/* plan.c: the public planner: a trace's period, made a circle, solved, checked and handed over. */
#include <string.h>

#include "base/clock.h"
#include "base/parallel.h"
#include "base/real.h"
#include "base/status.h"
#include "pool/circle.h"
#include "pool/solve.h"

enum { MAX_PERIODS = 4, MAX_LONG_ROUND = 200000, DEFAULT_THREADS = 8 };

struct neap_plan {
    const neap_memory *memory;
    neap_plan_summary summary;
    neap_plan_buffer *buffers;
    char found_by[64];
};

typedef struct planning {
    const neap_memory *memory;
    const np_period *period;
    neap_plan_options options; /* with the defaults filled in */
    uint64_t load;             /* bytes */
    uint64_t begin_ns;
    neap_error *error;
} planning;

void neap_plan_free(neap_plan *plan)
{
    if (plan) {
        np_memory_free(plan->memory, plan->buffers, plan->summary.n_buffers, sizeof *plan->buffers);
        np_memory_free(plan->memory, plan, 1, sizeof *plan);
    }
}

const neap_plan_summary *neap_plan_get_summary(const neap_plan *plan)
{
    return &plan->summary;
}

const neap_plan_buffer *neap_plan_buffers(const neap_plan *plan, size_t *n_buffers)
{
    *n_buffers = plan->summary.n_buffers;
    return plan->buffers;
}

static const char *solver_name(neap_solver solver)
{
    switch (solver) {
    case NEAP_SOLVER_SEARCH:
        return "search";
    case NEAP_SOLVER_BESTFIT:
        return "bestfit";
    case NEAP_SOLVER_FIRSTFIT:
        return "firstfit";
    }
    return "unknown";
}

static void summarise(const planning *p, const np_circle *circle, const np_solution *solution, neap_plan *plan)
{
    uint64_t unit = circle->problem.unit;
    neap_plan_summary *summary = &plan->summary;
    memcpy(plan->found_by, solution->found_by, sizeof solution->found_by);
    *summary = (neap_plan_summary){
        .n_buffers = circle->buffers.n,
        .begin = p->period->origin,
        .length = circle->problem.n_times,
        .n_periods = circle->n_periods,
        .alignment = unit,
        .load = p->load,
        .bound = solution->bound * unit,
        .footprint = solution->height * unit,
        .ratio = p->load > 0 ? (double)(solution->height * unit) / (double)p->load : 1.0,
        .optimal = solution->bound == solution->height,
        .solver = solver_name(p->options.solver),
        .found_by = plan->found_by,
    };
}

static neap_status make_plan(const planning *p, const np_circle *circle, const np_solution *solution, neap_plan **plan)
{
    uint64_t unit = circle->problem.unit;
    neap_plan *made = np_memory_alloc_zero(p->memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = p->memory;
    made->buffers = np_memory_alloc(p->memory, circle->buffers.n, sizeof *made->buffers);
    if (!made->buffers) {
        np_memory_free(p->memory, made, 1, sizeof *made);
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < circle->buffers.n; i++) {
        const np_circle_buffer *from = &circle->buffers.items[i];
        made->buffers[i] = (neap_plan_buffer){
            .block = p->period->lives.items[from->life].block,
            .place = from->place,
            .size = circle->problem.buffers.items[i].size * unit,
            .offset = solution->offsets[i] * unit,
            .begin = from->begin,
            .end = from->end,
        };
    }
    summarise(p, circle, solution, made);
    *plan = made;
    return NEAP_OK;
}

/* Plans with rounds of so many periods. */
static neap_status plan_round(const planning *p, uint32_t n_periods, double seconds, neap_plan **plan)
{
    np_solve_options options = {.solver = p->options.solver,
                                .seconds = seconds,
                                .seed = p->options.seed,
                                .n_threads = p->options.n_threads,
                                .progress = p->options.progress,
                                .progress_user = p->options.progress_user};
    np_circle circle;
    np_solution solution;
    neap_status status = np_circle_make(p->period, p->options.alignment, n_periods, p->memory, &circle);
    if (status == NEAP_BAD_ARGUMENT) {
        return np_fail(p->error, NEAP_BAD_INPUT, "a fixed offset is not a multiple of the alignment, %llu bytes",
                       (unsigned long long)p->options.alignment);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = np_solve(&circle.problem, &options, p->error, &solution);
    if (status == NEAP_OK) {
        status = make_plan(p, &circle, &solution, plan);
        np_solution_free(&solution);
    }
    np_circle_free(&circle);
    return status;
}

static bool is_long_round_worthwhile(const planning *p, const neap_plan *plan, uint32_t n_periods)
{
    return p->options.solver == NEAP_SOLVER_SEARCH && plan->summary.footprint > p->load &&
           np_circle_has_crossing(p->period) && p->period->lives.n * n_periods <= MAX_LONG_ROUND &&
           !p->period->trace->is_csv;
}

/* One period a round; where blocks live across its end and the load was not reached, more. The lower plan wins. */
static neap_status plan_best(const planning *p, neap_plan **plan)
{
    uint32_t longest = np_circle_longest(p->period);
    uint32_t n_periods = longest < 2 ? 2 : longest < MAX_PERIODS ? longest : MAX_PERIODS;
    bool has_crossing = np_circle_has_crossing(p->period);
    neap_plan *one = NULL;
    neap_plan *more = NULL;
    neap_status status = plan_round(p, 1, has_crossing ? p->options.seconds / 2 : p->options.seconds, &one);
    if (status != NEAP_OK || !one) {
        return status != NEAP_OK ? status : NEAP_INTERNAL;
    }
    if (is_long_round_worthwhile(p, one, n_periods)) {
        double left = p->options.seconds - 1e-9 * (double)(np_clock_ns() - p->begin_ns);
        status = plan_round(p, n_periods, left > 0 ? left : 0, &more);
        if (status != NEAP_OK) {
            neap_plan_free(one);
            return status;
        }
    }
    if (more && more->summary.footprint < one->summary.footprint) {
        neap_plan_free(one);
        one = more;
    } else {
        neap_plan_free(more);
    }
    one->summary.seconds = 1e-9 * (double)(np_clock_ns() - p->begin_ns);
    *plan = one;
    return NEAP_OK;
}

static neap_status check_capacity(const planning *p, const neap_plan *plan)
{
    unsigned long long capacity = p->options.capacity;
    /* The plan's bound is of rounds as long as its own; where blocks cross the end, longer ones might do with less. */
    unsigned long long needed = np_circle_has_crossing(p->period) ? p->load : plan->summary.bound;
    if (capacity == 0 || plan->summary.footprint <= capacity) {
        return NEAP_OK;
    }
    if (needed > capacity) {
        return np_fail(p->error, NEAP_NO_PLAN, "no plan fits into %llu bytes: %llu are needed at least", capacity,
                       needed);
    }
    return np_fail(p->error, NEAP_NO_PLAN,
                   "no plan within %llu bytes was found in %s s: the lowest needs %llu, the bound is %llu", capacity,
                   np_real_fixed(plan->summary.seconds, 1).text, (unsigned long long)plan->summary.footprint,
                   (unsigned long long)plan->summary.bound);
}

static neap_plan_options with_defaults(const neap_plan_options *options, const neap_trace *trace)
{
    neap_plan_options filled = {0};
    if (options) {
        filled = *options;
    }
    if (filled.alignment == 0) {
        filled.alignment = neap_trace_is_csv(trace) ? 1 : 512;
    }
    if (!(filled.seconds > 0)) {
        filled.seconds = 5;
    }
    if (filled.seconds > 1e6) {
        filled.seconds = 1e6;
    }
    if (filled.n_threads == 0) {
        unsigned cores = np_parallel_cores();
        filled.n_threads = cores < DEFAULT_THREADS ? cores : DEFAULT_THREADS;
    }
    return filled;
}

neap_status neap_plan_make(const neap_trace *trace, const neap_plan_options *options, const neap_memory *memory,
                           neap_error *error, neap_plan **plan)
{
    planning p = {.memory = np_memory_or_default(memory), .error = error, .begin_ns = np_clock_ns()};
    neap_error nothing;
    np_period period;
    neap_plan *made = NULL;
    neap_status status;

    p.error = error ? error : &nothing;
    p.error->text[0] = '\0';
    p.options = with_defaults(options, trace);
    status = np_period_find(trace, p.memory, &period);
    if (status == NEAP_OK) {
        p.period = &period;
        if (period.length == 0 && !(trace->is_csv)) {
            status = NEAP_NO_PERIOD;
        }
        if (status == NEAP_OK) {
            status = np_circle_load(&period, p.options.alignment, &p.load);
        }
        if (status == NEAP_OK) {
            status = plan_best(&p, &made);
        }
        if (status == NEAP_OK) {
            status = check_capacity(&p, made);
        }
        np_period_free(&period);
    }
    if (status != NEAP_OK) {
        neap_plan_free(made);
        return p.error->text[0] ? status : np_fail(p.error, status, "%s", neap_status_message(status));
    }
    *plan = made;
    return NEAP_OK;
}
