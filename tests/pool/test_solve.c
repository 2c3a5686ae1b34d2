/* test_solve.c: whole problems: right placements from every solver, bounds and optima that are true, the same every time. */
#include "pool/solve.h"

#include <limits.h>
#include <string.h>

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "testing.h"

static np_solution solve(const np_problem *problem, const np_solve_options *options)
{
    np_solution solution;
    neap_error error = {""};
    uint64_t height = 0;
    neap_status status = np_solve(problem, options, &error, &solution);
    if (status != NEAP_OK) {
        print_problem(problem);
        test_fail(__FILE__, __LINE__, "%s: %s", neap_status_name(status), error.text);
    }
    ASSERT_EQ(solution.n_offsets, problem->buffers.n);
    ASSERT_TRUE(placement_is_right(problem, solution.offsets, &height));
    ASSERT_EQ(solution.height, height);
    ASSERT_LE(solution.load, solution.bound);
    ASSERT_LE(solution.bound, solution.height);
    return solution;
}

/* Is the optimum above the load? */
static bool check_against_brute_force(const np_problem *problem, uint64_t seed)
{
    uint64_t load = 0;
    uint64_t optimum = brute_optimum(problem);
    for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
        np_solve_options options = {.solver = (neap_solver)solver, .seconds = 60, .seed = seed, .n_threads = 2};
        np_solution solution = solve(problem, &options);
        ASSERT_LE(solution.bound, optimum);
        ASSERT_GE(solution.height, optimum);
        if (solver == NEAP_SOLVER_SEARCH && (solution.height != optimum || solution.bound != optimum)) {
            print_problem(problem);
            test_fail(__FILE__, __LINE__, "height %llu, bound %llu, but the optimum is %llu",
                      (unsigned long long)solution.height, (unsigned long long)solution.bound,
                      (unsigned long long)optimum);
        }
        load = solution.load;
        np_solution_free(&solution);
    }
    return optimum > load;
}

static void test_small_problems_against_brute_force(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 200 : 2000;
    unsigned n_above_load = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, 8);
        np_problem problem;
        shape.unit = 1 + np_rng_below(&rng, 3) * 255;
        make_problem(&shape, &rng, NULL, &problem);
        n_above_load += check_against_brute_force(&problem, seed);
        np_problem_free(&problem);
    }
    ASSERT_GT(n_above_load, n_problems / 40); /* else the proofs were all trivial */
}

static bool stop_soon(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    unsigned *n_left = user;
    (void)seconds;
    (void)footprint;
    (void)bound;
    return *n_left > 0 && --*n_left > 0;
}

/* Buffers that must stand at multiples: right placements, and never a claim above the optimum. */
static void test_aligned_problems_against_brute_force(void **state)
{
    const unsigned n_problems = TEST_RACES ? 2 : TEST_SANITIZED ? test_rounds(15, 100) : test_rounds(120, 1000);
    unsigned n_solved = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed + 7000);
        problem_shape shape = random_shape(&rng, 8);
        uint64_t optimum;
        np_problem problem;
        shape.max_align = 2 + (uint32_t)np_rng_below(&rng, 4);
        make_problem(&shape, &rng, NULL, &problem);
        optimum = brute_optimum(&problem);
        for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
            unsigned n_left = solver == NEAP_SOLVER_SEARCH ? 3 : UINT_MAX;
            np_solve_options options = {.solver = (neap_solver)solver,
                                        .seconds = 60,
                                        .seed = seed,
                                        .n_threads = 1,
                                        .progress = stop_soon,
                                        .progress_user = &n_left};
            np_solution solution = solve(&problem, &options);
            ASSERT_LE(solution.bound, optimum);
            ASSERT_GE(solution.height, optimum);
            n_solved += solver == NEAP_SOLVER_SEARCH && solution.height == optimum;
            np_solution_free(&solution);
        }
        np_problem_free(&problem);
    }
    ASSERT_GT(n_solved, n_problems / 2);
}

/* Rounds of the search, counted; it stops after so many. */
typedef struct rounds {
    unsigned n;
    unsigned max;
    uint64_t unit;
    uint64_t last_height;
} rounds;

static bool count_rounds(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    rounds *r = user;
    ASSERT_TRUE(seconds >= 0);
    ASSERT_LE(bound, footprint);
    ASSERT_EQ(footprint % r->unit, 0);
    ASSERT_LE(footprint, r->last_height);
    r->last_height = footprint;
    return ++r->n < r->max;
}

static void test_the_same_every_time(void **state)
{
    static const unsigned n_threads[] = {1, 2, 4, 2};
    const unsigned n_problems = TEST_SANITIZED ? 1 : 2;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = {.n_buffers = 60, .n_times = 50, .longest = 15, .max_size = 20};
        np_problem problem;
        np_solution first = {0};
        shape.unit = 512;
        shape.max_pieces = 1 + seed % 3;
        make_problem(&shape, &rng, NULL, &problem);
        for (size_t i = 0; i < sizeof n_threads / sizeof *n_threads; i++) {
            rounds r = {.max = 4, .unit = 512, .last_height = UINT64_MAX};
            np_solve_options options = {.seconds = 1000,
                                        .seed = seed,
                                        .n_threads = n_threads[i],
                                        .progress = count_rounds,
                                        .progress_user = &r};
            np_solution solution = solve(&problem, &options);
            ASSERT_LE(r.n, r.max);
            if (i == 0) {
                first = solution;
                continue;
            }
            ASSERT_EQ(memcmp(solution.offsets, first.offsets, first.n_offsets * sizeof *first.offsets), 0);
            ASSERT_EQ(solution.height, first.height);
            ASSERT_EQ(solution.bound, first.bound);
            ASSERT_STR_EQ(solution.found_by, first.found_by);
            np_solution_free(&solution);
        }
        np_solution_free(&first);
        np_problem_free(&problem);
    }
}

/* What was cut out of a full rectangle fits into it again, most of the time at once. */
static void test_packed_problems_reach_their_load(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 3 : 20;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = {.n_buffers = 40, .n_times = 30, .max_pieces = 1 + seed % 3};
        np_solve_options options = {.seconds = 60, .seed = seed, .n_threads = 2};
        np_problem problem;
        np_solution solution;
        make_packed(&shape, 64, 0, &rng, &problem);
        solution = solve(&problem, &options);
        ASSERT_EQ(solution.load, 64);
        ASSERT_EQ(solution.height, 64);
        np_solution_free(&solution);
        np_problem_free(&problem);
    }
}

static void test_nothing_at_all(void **state)
{
    (void)state;
    for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
        np_solve_options options = {.solver = (neap_solver)solver, .seconds = 1, .n_threads = 1};
        np_problem problem;
        np_solution solution;
        np_problem_init(&problem, NULL, 1, 0);
        solution = solve(&problem, &options);
        ASSERT_EQ(solution.height, 0);
        ASSERT_EQ(solution.bound, 0);
        np_solution_free(&solution);
        np_problem_free(&problem);
    }
}

/* What lives everywhere alone, with nothing left to place. */
static void test_everything_set_aside(void **state)
{
    static const np_piece piece = {0, 4};
    np_solve_options options = {.seconds = 1, .n_threads = 1};
    np_problem problem;
    np_solution solution;
    (void)state;
    np_problem_init(&problem, NULL, 1, 4);
    for (unsigned i = 1; i <= 3; i++) {
        ASSERT_OK(np_problem_add(&problem, i, NEAP_NO_OFFSET, &piece, 1));
    }
    solution = solve(&problem, &options);
    ASSERT_EQ(solution.height, 6);
    ASSERT_EQ(solution.bound, 6);
    np_solution_free(&solution);
    np_problem_free(&problem);
}

static void test_fixed_buffers(void **state)
{
    static const np_piece early = {0, 4}, late = {3, 8}, all = {0, 8};
    np_solve_options options = {.seconds = 10, .n_threads = 1};
    np_problem problem;
    np_solution solution;
    (void)state;
    np_problem_init(&problem, NULL, 4, 8);
    ASSERT_OK(np_problem_add(&problem, 8, 16, &early, 1)); /* [4, 6) units */
    ASSERT_OK(np_problem_add(&problem, 8, 4, &late, 1));   /* [1, 3) */
    ASSERT_OK(np_problem_add(&problem, 4, NEAP_NO_OFFSET, &all, 1));
    ASSERT_OK(np_problem_add(&problem, 12, NEAP_NO_OFFSET, &early, 1));
    for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
        options.solver = (neap_solver)solver;
        solution = solve(&problem, &options);
        ASSERT_EQ(solution.offsets[0], 4);
        ASSERT_EQ(solution.offsets[1], 1);
        ASSERT_EQ(solution.load, 8);
        ASSERT_EQ(solution.height, 9); /* the 3 fit between the fixed ones nowhere */
        ASSERT_EQ(solution.bound, solver == NEAP_SOLVER_SEARCH ? 9 : 8);
        np_solution_free(&solution);
    }
    ASSERT_EQ(brute_optimum(&problem), 9);
    np_problem_free(&problem);
}

static void test_what_cannot_be_solved(void **state)
{
    static const np_piece early = {0, 4}, late = {3, 8};
    np_solve_options options = {.seconds = 1, .n_threads = 1};
    neap_error error = {""};
    np_problem problem;
    np_solution solution;
    (void)state;
    np_problem_init(&problem, NULL, 1, 8);
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, &early, 1));
    ASSERT_OK(np_problem_add(&problem, 5, 10, &early, 1));
    ASSERT_OK(np_problem_add(&problem, 5, 14, &late, 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_solve(&problem, &options, &error, &solution));
    ASSERT_CONTAINS(error.text, "1");
    ASSERT_CONTAINS(error.text, "2");
    ASSERT_CONTAINS(error.text, "overlap");
    problem.buffers.items[2].fixed = 15;
    options.solver = (neap_solver)17;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_solve(&problem, &options, &error, &solution));
    options.solver = NEAP_SOLVER_SEARCH;
    problem.buffers.items[0].size = (uint64_t)1 << 62;
    ASSERT_STATUS(NEAP_TOO_LARGE, np_solve(&problem, &options, &error, &solution));
    np_problem_free(&problem);
}

static bool stop_now(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    (void)user;
    (void)seconds;
    (void)footprint;
    (void)bound;
    return false;
}

/* Told to stop at once, the search has a placement; the paper's pool, which has no half of one, has none. */
static void test_stopping(void **state)
{
    problem_shape shape = {.n_buffers = 1500, .n_times = 300, .longest = 100, .max_size = 900, .max_pieces = 2};
    np_solve_options options = {.seconds = 60, .n_threads = 2, .progress = stop_now};
    np_rng rng = np_rng_make(1);
    np_problem problem;
    np_solution solution;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    solution = solve(&problem, &options);
    np_solution_free(&solution);
    options.solver = NEAP_SOLVER_BESTFIT;
    ASSERT_STATUS(NEAP_NO_PLAN, np_solve(&problem, &options, NULL, &solution));
    np_problem_free(&problem);
}

typedef struct task {
    const np_problem *problem;
    np_solve_options options;
} task;

static neap_status solve_task(const neap_memory *memory, void *user)
{
    const task *t = user;
    rounds r = {.max = 2, .unit = t->problem->unit, .last_height = UINT64_MAX};
    np_solve_options options = t->options;
    np_problem problem = *t->problem;
    np_solution solution;
    neap_status status;
    problem.memory = memory;
    options.progress = count_rounds;
    options.progress_user = &r;
    status = np_solve(&problem, &options, NULL, &solution);
    if (status == NEAP_OK) {
        np_solution_free(&solution);
    }
    return status;
}

/* On several threads a failure may fall into an attempt that is not waited for: then it does not matter. */
static void fail_each_on_threads(task *t)
{
    bool failed = true;
    for (size_t n = 1; failed; n++) {
        test_memory memory;
        neap_status status;
        test_memory_init(&memory);
        memory.fail_at = n;
        status = solve_task(&memory.hook, t);
        failed = memory.n_failed > 0;
        ASSERT_TRUE(status == NEAP_OK || (failed && status == NEAP_NO_MEMORY));
        test_memory_finish(&memory);
    }
}

static void test_every_failure_is_reported(void **state)
{
    problem_shape shape = {.n_buffers = 14, .n_times = 14, .longest = 6, .max_size = 9, .max_pieces = 3};
    task t = {.options = {.seconds = 60}};
    (void)state;
    for (unsigned n_fixed = 0; n_fixed < 3; n_fixed += 2) {
        np_rng rng = np_rng_make(12);
        np_problem problem;
        shape.n_fixed = n_fixed;
        make_problem(&shape, &rng, NULL, &problem);
        t.problem = &problem;
        for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
            t.options.solver = (neap_solver)solver;
            t.options.n_threads = 1;
            ASSERT_GT(test_memory_fail_each(solve_task, &t), 20);
        }
        t.options.solver = NEAP_SOLVER_SEARCH;
        t.options.n_threads = 2;
        fail_each_on_threads(&t);
        np_problem_free(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_problems_against_brute_force),
        cmocka_unit_test(test_aligned_problems_against_brute_force),
        cmocka_unit_test(test_the_same_every_time),
        cmocka_unit_test(test_packed_problems_reach_their_load),
        cmocka_unit_test(test_nothing_at_all),
        cmocka_unit_test(test_everything_set_aside),
        cmocka_unit_test(test_fixed_buffers),
        cmocka_unit_test(test_what_cannot_be_solved),
        cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/solve", tests, NULL, NULL);
}
