/* test_circle.c: from lives on a period's circle to a placement problem. The blocks of many periods are laid out on a line,
 * each in the place that its turn gives it, and must fit there whenever the problem says that they do. */
#include "pool/circle.h"

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "pool/solve.h"
#include "testing.h"

enum { MAX_LIVES = 16 };

/* A period made by hand. */
typedef struct made {
    neap_trace_block blocks[MAX_LIVES];
    np_life lives[MAX_LIVES];
    neap_trace trace;
    np_period period;
} made;

static void made_init(made *m, uint32_t length)
{
    *m = (made){.period = {.memory = &np_memory_default, .length = length}};
    m->trace.blocks.items = m->blocks;
    m->period.lives.items = m->lives;
}

static void add_life(made *m, uint64_t bytes, uint32_t begin, uint32_t end)
{
    size_t i = m->trace.blocks.n++;
    m->period.trace = &m->trace;
    m->blocks[i] = (neap_trace_block){.id = i, .bytes = bytes, .fixed_offset = NEAP_NO_OFFSET};
    m->lives[m->period.lives.n++] = (np_life){.block = (uint32_t)i, .begin = begin, .end = end};
}

static void add_persistent(made *m, uint64_t bytes)
{
    add_life(m, bytes, 0, m->period.length);
    m->lives[m->period.lives.n - 1].persistent = true;
}

static uint64_t optimum_of(const made *m, uint32_t n_periods)
{
    np_circle circle;
    uint64_t optimum;
    ASSERT_OK(np_circle_make(&m->period, 1, n_periods, NULL, &circle));
    ASSERT_TRUE(np_problem_is_valid(&circle.problem));
    optimum = brute_optimum(&circle.problem);
    np_circle_free(&circle);
    return optimum;
}

static uint64_t load_of(const made *m, uint64_t alignment)
{
    uint64_t load = 0;
    ASSERT_OK(np_circle_load(&m->period, alignment, &load));
    return load;
}

static void test_crossing_lives_have_two_pieces(void **state)
{
    made m;
    np_circle circle;
    const np_piece *pieces;
    (void)state;
    made_init(&m, 10);
    add_life(&m, 1000, 2, 5);
    add_life(&m, 1, 8, 13);
    add_persistent(&m, 512);
    ASSERT_OK(np_circle_make(&m.period, 512, 1, NULL, &circle));
    pieces = circle.problem.pieces.items;
    ASSERT_EQ(circle.problem.buffers.n, 3);
    ASSERT_EQ(circle.problem.buffers.items[0].size, 2);
    ASSERT_EQ(circle.problem.buffers.items[0].n_pieces, 1);
    ASSERT_EQ(circle.problem.buffers.items[1].n_pieces, 2);
    ASSERT_TRUE(pieces[1].begin == 0 && pieces[1].end == 3 && pieces[2].begin == 8 && pieces[2].end == 10);
    ASSERT_TRUE(pieces[3].begin == 0 && pieces[3].end == 10);
    ASSERT_EQ(circle.buffers.items[1].life, 1);
    ASSERT_EQ(circle.buffers.items[1].end, 13);
    ASSERT_TRUE(np_circle_has_crossing(&m.period));
    ASSERT_EQ(np_circle_longest(&m.period), 1);
    ASSERT_EQ(load_of(&m, 512), 512 + 1024 + 512);
    np_circle_free(&circle);
}

/* Three unit blocks that each live two thirds: two at any time, three places in one period, two in two. */
static void test_three_that_live_two_thirds(void **state)
{
    made m;
    (void)state;
    made_init(&m, 3);
    add_life(&m, 1, 0, 2);
    add_life(&m, 1, 1, 3);
    add_life(&m, 1, 2, 4);
    ASSERT_EQ(load_of(&m, 1), 2);
    ASSERT_EQ(optimum_of(&m, 1), 3);
    ASSERT_EQ(optimum_of(&m, 2), 2);
}

/* A block that lives for one and a half periods needs two places in a round of one, and takes turns in a round of two. */
static void test_longer_than_a_period(void **state)
{
    made m;
    np_circle circle;
    (void)state;
    made_init(&m, 10);
    add_life(&m, 4, 3, 18);
    ASSERT_EQ(np_circle_longest(&m.period), 2);
    ASSERT_EQ(load_of(&m, 1), 8);
    ASSERT_OK(np_circle_make(&m.period, 1, 1, NULL, &circle));
    ASSERT_EQ(circle.buffers.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ASSERT_EQ(circle.buffers.items[i].place, i);
        ASSERT_EQ(circle.buffers.items[i].begin, 0);
        ASSERT_EQ(circle.buffers.items[i].end, 10);
    }
    np_circle_free(&circle);
    ASSERT_OK(np_circle_make(&m.period, 1, 2, NULL, &circle));
    ASSERT_EQ(circle.problem.n_times, 20);
    ASSERT_EQ(circle.buffers.n, 2);
    ASSERT_EQ(circle.buffers.items[0].begin, 3);
    ASSERT_EQ(circle.buffers.items[0].end, 18);
    ASSERT_EQ(circle.buffers.items[1].begin, 13);
    ASSERT_EQ(circle.buffers.items[1].end, 28);
    np_circle_free(&circle);
}

/* Where the block of this life that is malloc'd in period q stands. */
static uint64_t place_of(const np_circle *circle, const uint64_t *offsets, uint32_t life, uint64_t q)
{
    uint32_t n_places = 0;
    for (size_t i = 0; i < circle->buffers.n; i++) {
        n_places += circle->buffers.items[i].life == life;
    }
    ASSERT_GT(n_places, 0);
    for (size_t i = 0; i < circle->buffers.n; i++) {
        if (circle->buffers.items[i].life == life && circle->buffers.items[i].place == q % n_places) {
            return offsets[i];
        }
    }
    test_fail(__FILE__, __LINE__, "no place for life %u in period %llu", life, (unsigned long long)q);
}

/* All blocks of many periods, two by two. */
static void check_line(const made *m, const np_circle *circle, const uint64_t *offsets, uint64_t n_periods)
{
    uint64_t length = m->period.length;
    for (uint32_t a = 0; a < m->period.lives.n; a++) {
        for (uint32_t b = 0; b <= a; b++) {
            const np_life *x = &m->lives[a], *y = &m->lives[b];
            for (uint64_t p = 0; p < (x->persistent ? 1 : n_periods); p++) {
                for (uint64_t q = 0; q < (y->persistent ? 1 : n_periods); q++) {
                    uint64_t x_begin = p * length + x->begin, x_end = p * length + x->end;
                    uint64_t y_begin = q * length + y->begin, y_end = q * length + y->end;
                    uint64_t at, other;
                    if (a == b && p == q) {
                        continue;
                    }
                    x_end = x->persistent ? UINT64_MAX : x_end;
                    y_end = y->persistent ? UINT64_MAX : y_end;
                    at = place_of(circle, offsets, a, p);
                    other = place_of(circle, offsets, b, q);
                    ASSERT_FALSE(x_begin < y_end && y_begin < x_end && at < other + m->blocks[b].bytes &&
                                 other < at + m->blocks[a].bytes);
                }
            }
        }
    }
}

/* The most bytes alive at once, on the line, once all is in. */
static uint64_t load_on_line(const made *m)
{
    uint64_t peak = 0;
    uint64_t length = m->period.length;
    for (uint64_t t = 8 * length; t < 9 * length; t++) {
        uint64_t now = 0;
        for (uint32_t i = 0; i < m->period.lives.n; i++) {
            for (uint64_t p = 0; p < 10; p++) {
                const np_life *life = &m->lives[i];
                bool lives = p * length + life->begin <= t && t < p * length + life->end;
                now += lives || (life->persistent && p == 0) ? m->blocks[i].bytes : 0;
                if (life->persistent) {
                    break;
                }
            }
        }
        peak = now > peak ? now : peak;
    }
    return peak;
}

static void test_random_periods_on_the_line(void **state)
{
    const unsigned n_rounds = TEST_SANITIZED ? 40 : 300;
    unsigned n_long = 0, n_better = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_rounds; seed++) {
        np_rng rng = np_rng_make(seed);
        made m;
        uint64_t heights[4] = {0};
        made_init(&m, 3 + (uint32_t)np_rng_below(&rng, 10));
        for (unsigned i = 0; i < 2 + np_rng_below(&rng, 5); i++) {
            uint32_t begin = (uint32_t)np_rng_below(&rng, m.period.length);
            uint32_t longest = np_rng_below(&rng, 4) ? m.period.length - 1 : 3 * m.period.length;
            add_life(&m, 1 + np_rng_below(&rng, 6), begin, begin + 1 + (uint32_t)np_rng_below(&rng, longest));
        }
        if (np_rng_below(&rng, 3) == 0) {
            add_persistent(&m, 1 + np_rng_below(&rng, 6));
        }
        ASSERT_EQ(load_of(&m, 1), load_on_line(&m));
        n_long += np_circle_longest(&m.period) > 1;
        for (uint32_t n_periods = 1; n_periods <= 3; n_periods++) {
            np_solve_options options = {.solver = NEAP_SOLVER_BESTFIT};
            np_circle circle;
            np_solution solution;
            ASSERT_OK(np_circle_make(&m.period, 1, n_periods, NULL, &circle));
            ASSERT_OK(np_solve(&circle.problem, &options, NULL, &solution));
            ASSERT_GE(solution.height, load_of(&m, 1));
            check_line(&m, &circle, solution.offsets, 12);
            heights[n_periods] = solution.height;
            np_solution_free(&solution);
            np_circle_free(&circle);
        }
        n_better += heights[2] < heights[1] || heights[3] < heights[1];
    }
    ASSERT_GT(n_long, n_rounds / 10);
    ASSERT_GT(n_better, 0);
}

static void test_refusals(void **state)
{
    made m;
    np_circle circle;
    uint64_t load = 42;
    (void)state;
    made_init(&m, 10);
    add_life(&m, 100, 0, 5);
    m.blocks[0].fixed_offset = 100;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_circle_make(&m.period, 512, 1, NULL, &circle));
    m.blocks[0].fixed_offset = NEAP_NO_OFFSET;
    m.period.length = UINT32_MAX / 2;
    ASSERT_STATUS(NEAP_TOO_LARGE, np_circle_make(&m.period, 512, 2, NULL, &circle));
    m.period.length = 10;
    m.blocks[0].bytes = UINT64_MAX;
    ASSERT_STATUS(NEAP_TOO_LARGE, np_circle_load(&m.period, 512, &load));
    ASSERT_EQ(load, 42);
}

static neap_status make_and_sum(const neap_memory *memory, void *user)
{
    made *m = user;
    np_circle circle;
    uint64_t load;
    neap_status status;
    m->period.memory = memory;
    status = np_circle_load(&m->period, 1, &load);
    if (status == NEAP_OK) {
        status = np_circle_make(&m->period, 1, 3, memory, &circle);
    }
    if (status == NEAP_OK) {
        np_circle_free(&circle);
    }
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    made m;
    (void)state;
    made_init(&m, 10);
    add_life(&m, 1, 2, 25);
    add_life(&m, 1, 8, 12);
    add_persistent(&m, 3);
    ASSERT_GE(test_memory_fail_each(make_and_sum, &m), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crossing_lives_have_two_pieces),
        cmocka_unit_test(test_three_that_live_two_thirds),
        cmocka_unit_test(test_longer_than_a_period),
        cmocka_unit_test(test_random_periods_on_the_line),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/circle", tests, NULL, NULL);
}
