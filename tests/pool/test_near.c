/* test_near.c: placements near another: right, true about what is above the goal, at once where nothing changed. */
#include "pool/near.h"

#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 48 };

static np_solution solve(const np_problem *problem)
{
    np_solve_options options = {.seconds = 0.005, .n_threads = 1, .seed = 3};
    np_solution solution;
    neap_error error = {""};
    ASSERT_OK(np_solve(problem, &options, &error, &solution));
    return solution;
}

/* What ends above the goal, counted by buffers. */
static uint64_t excess_by_hand(const np_problem *problem, const uint64_t *offsets, uint64_t goal)
{
    uint64_t excess = 0;
    for (size_t i = 0; i < problem->buffers.n; i++) {
        uint64_t size = problem->buffers.items[i].size;
        excess += offsets[i] + size > goal ? size : 0;
    }
    return excess;
}

static void check_near(const np_problem *problem, const np_near_options *options, bool set_aside)
{
    np_solution solution;
    neap_error error = {""};
    uint64_t excess, height;
    ASSERT_OK(np_solve_near(problem, options, &error, &solution, &excess));
    ASSERT_TRUE(placement_is_right(problem, solution.offsets, &height));
    ASSERT_EQ(solution.height, height);
    ASSERT_LE(solution.bound, height);
    ASSERT_EQ(excess == 0, height <= options->goal);
    if (!set_aside) {
        ASSERT_EQ(excess, excess_by_hand(problem, solution.offsets, options->goal));
    }
    np_solution_free(&solution);
}

static bool has_everywhere(const np_problem *problem)
{
    np_sections sections;
    bool has;
    ASSERT_OK(np_sections_make(problem, &sections));
    has = sections.everywhere.n > 0;
    np_sections_free(&sections);
    return has;
}

/* The order of the places there gives a placement that is no higher; with some places forgotten, a right one. */
static void test_random_problems(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 60 : 400;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, MAX_BUFFERS);
        np_near_options options = {.n_steps = 4, .seed = seed};
        np_problem problem;
        np_solution solution, again;
        neap_error error = {""};
        uint64_t excess;
        shape.max_align = seed % 2 ? 5 : 0;
        make_problem(&shape, &rng, NULL, &problem);
        solution = solve(&problem);
        options.offsets = solution.offsets;
        options.goal = solution.height;
        ASSERT_OK(np_solve_near(&problem, &options, &error, &again, &excess));
        ASSERT_EQ(excess, 0);
        ASSERT_LE(again.height, solution.height);
        np_solution_free(&again);
        for (size_t i = 0; i < solution.n_offsets; i++) {
            solution.offsets[i] = np_rng_below(&rng, 3) ? solution.offsets[i] : NEAP_NO_OFFSET;
        }
        check_near(&problem, &options, has_everywhere(&problem));
        options.goal = np_rng_below(&rng, solution.height + 1);
        check_near(&problem, &options, has_everywhere(&problem));
        np_solution_free(&solution);
        np_problem_free(&problem);
    }
}

/* More steps leave no more above the goal, and often less. */
static void test_steps_help(void **state)
{
    unsigned n_less = 0;
    (void)state;
    for (unsigned seed = 0; seed < 40; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = {.n_buffers = MAX_BUFFERS, .n_times = 40, .longest = 20, .max_size = 20, .max_pieces = 3};
        uint64_t nowhere[MAX_BUFFERS];
        np_near_options options = {.offsets = nowhere, .seed = seed};
        np_problem problem;
        np_solution solution;
        neap_error error = {""};
        uint64_t few, many;
        make_problem(&shape, &rng, NULL, &problem);
        for (size_t i = 0; i < MAX_BUFFERS; i++) {
            nowhere[i] = NEAP_NO_OFFSET;
        }
        ASSERT_OK(np_problem_load(&problem, &options.goal));
        ASSERT_OK(np_solve_near(&problem, &options, &error, &solution, &few));
        np_solution_free(&solution);
        options.n_steps = 30;
        ASSERT_OK(np_solve_near(&problem, &options, &error, &solution, &many));
        np_solution_free(&solution);
        ASSERT_LE(many, few);
        n_less += many < few;
        np_problem_free(&problem);
    }
    ASSERT_GT(n_less, 10);
}

static void test_fixed_ones_in_the_way(void **state)
{
    static const np_piece early = {0, 4}, late = {3, 8};
    static const uint64_t offsets[] = {10, 14};
    np_near_options options = {.offsets = offsets, .goal = 20};
    neap_error error = {""};
    np_problem problem;
    np_solution solution;
    uint64_t excess;
    (void)state;
    np_problem_init(&problem, NULL, 1, 8);
    ASSERT_OK(np_problem_add(&problem, 5, 10, &early, 1));
    ASSERT_OK(np_problem_add(&problem, 5, 14, &late, 1));
    ASSERT_STATUS(NEAP_BAD_INPUT, np_solve_near(&problem, &options, &error, &solution, &excess));
    np_problem_free(&problem);
}

static neap_status place_near(const neap_memory *memory, void *user)
{
    np_problem problem = *(const np_problem *)user;
    uint64_t nowhere[MAX_BUFFERS];
    np_near_options options = {.offsets = nowhere, .n_steps = 3};
    np_solution solution;
    uint64_t excess;
    neap_status status;
    for (size_t i = 0; i < MAX_BUFFERS; i++) {
        nowhere[i] = i;
    }
    problem.memory = memory;
    status = np_solve_near(&problem, &options, NULL, &solution, &excess);
    if (status == NEAP_OK) {
        np_solution_free(&solution);
    }
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    problem_shape shape = {.n_buffers = 20, .n_times = 20, .longest = 9, .max_size = 9, .max_pieces = 3, .n_fixed = 2};
    np_rng rng = np_rng_make(4);
    np_problem problem;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_GT(test_memory_fail_each(place_near, &problem), 10);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_steps_help),
        cmocka_unit_test(test_fixed_ones_in_the_way),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/near", tests, NULL, NULL);
}
