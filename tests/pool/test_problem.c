/* test_problem.c: buffers are taken as they are given, rounded and joined; what makes no sense is refused. */
#include "pool/problem.h"

#include "pool/make_problem.h"
#include "testing.h"

static const np_piece whole[] = {{0, 10}};

static void test_sizes_are_rounded_up_to_units(void **state)
{
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 512, 10);
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, whole, 1));
    ASSERT_OK(np_problem_add(&problem, 512, 1024, whole, 1));
    ASSERT_OK(np_problem_add(&problem, 513, 0, whole, 1));
    ASSERT_EQ(problem.buffers.items[0].size, 1);
    ASSERT_EQ(problem.buffers.items[0].fixed, NEAP_NO_OFFSET);
    ASSERT_EQ(problem.buffers.items[1].size, 1);
    ASSERT_EQ(problem.buffers.items[1].fixed, 2);
    ASSERT_EQ(problem.buffers.items[2].size, 2);
    ASSERT_EQ(problem.buffers.items[2].fixed, 0);
    ASSERT_TRUE(np_problem_is_valid(&problem));
    np_problem_free(&problem);
}

static void test_touching_pieces_are_joined(void **state)
{
    const np_piece pieces[] = {{0, 2}, {2, 3}, {5, 6}, {6, 9}};
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 1, 10);
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, pieces, 4));
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, whole, 1));
    ASSERT_EQ(problem.buffers.items[0].n_pieces, 2);
    ASSERT_EQ(problem.pieces.items[0].end, 3);
    ASSERT_EQ(problem.pieces.items[1].begin, 5);
    ASSERT_EQ(problem.pieces.items[1].end, 9);
    ASSERT_EQ(problem.buffers.items[1].first_piece, 2);
    ASSERT_TRUE(np_problem_is_valid(&problem));
    np_problem_free(&problem);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    static const np_piece empty[] = {{3, 3}};
    static const np_piece late[] = {{3, 11}};
    static const np_piece backwards[] = {{5, 6}, {1, 2}};
    static const np_piece overlapping[] = {{1, 5}, {4, 6}};
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 4, 10);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 0, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, NEAP_NO_OFFSET, whole, 0));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, UINT64_MAX, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, 6, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, NEAP_NO_OFFSET, empty, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, NEAP_NO_OFFSET, late, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, NEAP_NO_OFFSET, backwards, 2));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add(&problem, 1, NEAP_NO_OFFSET, overlapping, 2));
    ASSERT_EQ(problem.buffers.n, 0);
    ASSERT_EQ(problem.pieces.n, 0);
    problem.unit = 1;
    ASSERT_STATUS(NEAP_TOO_LARGE, np_problem_add(&problem, 2, UINT64_MAX - 1, whole, 1)); /* its end is past 2^64 */
    ASSERT_EQ(problem.buffers.n, 0);
    np_problem_free(&problem);
}

static void test_load(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 300; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, 20);
        uint64_t expected;
        uint64_t load = 0;
        np_problem problem;
        make_problem(&shape, &rng, NULL, &problem);
        expected = load_by_hand(&problem);
        for (size_t i = 0; i < problem.buffers.n; i++) { /* fixed ends count */
            const np_buffer *buffer = &problem.buffers.items[i];
            if (buffer->fixed != NEAP_NO_OFFSET && buffer->fixed + buffer->size > expected) {
                expected = buffer->fixed + buffer->size;
            }
        }
        ASSERT_OK(np_problem_load(&problem, &load));
        ASSERT_EQ(load, expected);
        np_problem_free(&problem);
    }
}

static void test_sums_that_overflow_are_refused(void **state)
{
    np_problem problem;
    uint64_t load = 42;
    (void)state;
    np_problem_init(&problem, NULL, 1, 10);
    for (unsigned i = 0; i < 2; i++) {
        ASSERT_OK(np_problem_add(&problem, (uint64_t)1 << 62, NEAP_NO_OFFSET, whole, 1));
    }
    ASSERT_STATUS(NEAP_TOO_LARGE, np_problem_load(&problem, &load));
    ASSERT_EQ(load, 42);
    np_problem_free(&problem);
}

static void test_alignment_is_kept(void **state)
{
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 4, 10);
    ASSERT_OK(np_problem_add(&problem, 4, NEAP_NO_OFFSET, whole, 1));
    ASSERT_OK(np_problem_add_aligned(&problem, 4, 12, 0, NEAP_NO_OFFSET, whole, 1));
    ASSERT_OK(np_problem_add_aligned(&problem, 4, 12, 0, 24, whole, 1));
    ASSERT_EQ(problem.buffers.items[0].align, 1);
    ASSERT_EQ(problem.buffers.items[1].align, 3);
    ASSERT_EQ(problem.buffers.items[2].fixed, 6);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 12, 0, 8, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 6, 0, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 0, 0, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 12, 12, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 12, 2, NEAP_NO_OFFSET, whole, 1));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_problem_add_aligned(&problem, 4, 12, 8, 24, whole, 1));
    ASSERT_EQ(problem.buffers.n, 3);
    ASSERT_OK(np_problem_add_aligned(&problem, 4, 12, 8, 32, whole, 1));
    ASSERT_EQ(problem.buffers.items[3].lead, 2);
    ASSERT_EQ(problem.buffers.items[3].fixed, 8);
    ASSERT_TRUE(np_problem_is_valid(&problem));
    problem.buffers.items[3].lead = 3;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    problem.buffers.items[3].lead = 2;
    problem.buffers.items[2].align = 4;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    problem.buffers.items[2].align = 3;
    problem.buffers.items[1].align = 0;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    np_problem_free(&problem);
}

static void test_validity_sees_damage(void **state)
{
    const np_piece pieces[] = {{0, 2}, {5, 6}};
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 1, 10);
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, pieces, 2));
    ASSERT_TRUE(np_problem_is_valid(&problem));
    problem.pieces.items[1].begin = 2;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    problem.pieces.items[1] = (np_piece){5, 11};
    ASSERT_FALSE(np_problem_is_valid(&problem));
    problem.pieces.items[1] = (np_piece){5, 6};
    problem.buffers.items[0].size = 0;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    problem.buffers.items[0].size = 1;
    problem.buffers.items[0].fixed = UINT64_MAX - 1;
    ASSERT_TRUE(np_problem_is_valid(&problem));
    problem.buffers.items[0].size = 2;
    ASSERT_FALSE(np_problem_is_valid(&problem));
    np_problem_free(&problem);
}

static neap_status add_and_sum(const neap_memory *memory, void *user)
{
    np_problem problem;
    uint64_t load;
    neap_status status = NEAP_OK;
    (void)user;
    np_problem_init(&problem, memory, 1, 10);
    for (unsigned i = 0; i < 100 && status == NEAP_OK; i++) {
        size_t n_before = problem.buffers.n;
        status = np_problem_add(&problem, 1, NEAP_NO_OFFSET, whole, 1);
        ASSERT_EQ(problem.buffers.n, n_before + (status == NEAP_OK));
    }
    if (status == NEAP_OK) {
        status = np_problem_load(&problem, &load);
    }
    ASSERT_TRUE(np_problem_is_valid(&problem));
    np_problem_free(&problem);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(add_and_sum, NULL), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_rounded_up_to_units),  cmocka_unit_test(test_touching_pieces_are_joined),
        cmocka_unit_test(test_what_makes_no_sense_is_refused), cmocka_unit_test(test_load),
        cmocka_unit_test(test_sums_that_overflow_are_refused), cmocka_unit_test(test_alignment_is_kept),
        cmocka_unit_test(test_validity_sees_damage),           cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/problem", tests, NULL, NULL);
}
