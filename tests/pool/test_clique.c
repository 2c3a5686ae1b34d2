#include "pool/clique.h"

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "testing.h"

static void add(np_problem *problem, uint64_t size, const np_piece *pieces, uint32_t n_pieces)
{
    ASSERT_OK(np_problem_add(problem, size, NEAP_NO_OFFSET, pieces, n_pieces));
}

/* Three buffers of which each pair meets at a moment of its own: no moment has more than two. */
static void finds_three_that_never_meet_together(void **state)
{
    static const np_piece a[] = {{0, 1}, {2, 3}}, b[] = {{0, 2}}, c[] = {{1, 3}};
    np_problem problem;
    uint64_t bound, load;
    (void)state;
    np_problem_init(&problem, &np_memory_default, 1, 3);
    add(&problem, 5, a, 2);
    add(&problem, 6, b, 1);
    add(&problem, 7, c, 1);
    ASSERT_OK(np_problem_load(&problem, &load));
    ASSERT_EQ(load, 13);
    ASSERT_OK(np_clique_bound(&problem, &bound));
    ASSERT_EQ(bound, 18);
    ASSERT_EQ(brute_optimum(&problem), 18);
    np_problem_free(&problem);
}

static void nothing_is_no_weight(void **state)
{
    np_problem problem;
    uint64_t bound = 1;
    (void)state;
    np_problem_init(&problem, &np_memory_default, 1, 3);
    ASSERT_OK(np_clique_bound(&problem, &bound));
    ASSERT_EQ(bound, 0);
    np_problem_free(&problem);
}

/* The heaviest clique, by trying all subsets. */
static uint64_t heaviest(const np_problem *problem)
{
    uint32_t n = (uint32_t)problem->buffers.n;
    uint32_t meets[BRUTE_MAX] = {0};
    uint64_t best = 0;
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            meets[a] |= a == b || buffers_meet(problem, a, b) ? 1u << b : 0;
        }
    }
    for (uint32_t set = 1; set < 1u << n; set++) {
        uint64_t weight = 0;
        bool is_clique = true;
        for (uint32_t a = 0; a < n && is_clique; a++) {
            if (set >> a & 1) {
                weight += problem->buffers.items[a].size;
                is_clique = (meets[a] & set) == set;
            }
        }
        best = is_clique && weight > best ? weight : best;
    }
    return best;
}

/* Fixed buffers may stand above the heaviest clique: then their ends are the bound. */
static uint64_t highest_fixed(const np_problem *problem)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *buffer = &problem->buffers.items[i];
        uint64_t end = buffer->fixed == NEAP_NO_OFFSET ? 0 : buffer->fixed + buffer->size;
        highest = end > highest ? end : highest;
    }
    return highest;
}

static void is_a_bound(void **state)
{
    np_rng rng = np_rng_make(4);
    uint32_t n_above_load = 0, n_exact = 0, n = TEST_SANITIZED ? 300 : 3000;
    (void)state;
    for (uint32_t round = 0; round < n; round++) {
        problem_shape shape = random_shape(&rng, 9);
        np_problem problem;
        uint64_t bound, clique, fixed, load;
        shape.max_pieces = round % 2 ? 4 : shape.max_pieces;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_clique_bound(&problem, &bound));
        ASSERT_OK(np_problem_load(&problem, &load));
        clique = heaviest(&problem);
        fixed = highest_fixed(&problem);
        ASSERT_GE(bound, load_by_hand(&problem));
        ASSERT_LE(bound, clique > fixed ? clique : fixed);
        if (round % 10 == 0) {
            ASSERT_LE(bound, brute_optimum(&problem));
        }
        n_above_load += bound > load;
        n_exact += bound >= clique;
        np_problem_free(&problem);
    }
    ASSERT_GT(n_above_load, n / 100);
    ASSERT_GT(n_exact, n * 9 / 10); /* greedy, but rarely wrong on small ones */
}

static neap_status bound_within(const neap_memory *memory, void *user)
{
    np_problem problem = *(const np_problem *)user;
    uint64_t bound;
    problem.memory = memory;
    return np_clique_bound(&problem, &bound);
}

static void fails_without_memory(void **state)
{
    np_rng rng = np_rng_make(4);
    problem_shape shape = {.n_buffers = 9, .n_times = 10, .max_size = 10, .max_pieces = 3};
    np_problem problem;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_GT(test_memory_fail_each(bound_within, &problem), 3);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_three_that_never_meet_together),
        cmocka_unit_test(nothing_is_no_weight),
        cmocka_unit_test(is_a_bound),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
