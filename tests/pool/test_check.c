/* test_check.c: the checker's verdicts against those of trying all pairs, on right placements and on spoilt ones. */
#include "pool/check.h"

#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 64 };

/* A right placement, higher than need be: buffers in random order, each above a random number of those it meets. */
static void place_loosely(const np_problem *problem, np_rng *rng, uint64_t *offsets)
{
    uint32_t n = (uint32_t)problem->buffers.n;
    for (uint32_t i = 0; i < n; i++) {
        bool moved = true;
        uint64_t align = problem->buffers.items[i].align;
        uint64_t lead = problem->buffers.items[i].lead;
        offsets[i] = problem->buffers.items[i].fixed;
        if (offsets[i] == NEAP_NO_OFFSET) {
            offsets[i] = np_rng_below(rng, 5) * align + lead;
        } else {
            continue;
        }
        while (moved) {
            moved = false;
            for (uint32_t k = 0; k < n; k++) {
                const np_buffer *other = &problem->buffers.items[k];
                bool stands = k < i || other->fixed != NEAP_NO_OFFSET;
                uint64_t at = k < i ? offsets[k] : other->fixed;
                if (stands && k != i && buffers_meet(problem, i, k) && offsets[i] < at + other->size &&
                    at < offsets[i] + problem->buffers.items[i].size) {
                    offsets[i] = at + other->size + (np_rng_below(rng, 3) == 0);
                    offsets[i] = (offsets[i] + 2 * align - 1 - lead) / align * align - align + lead;
                    offsets[i] += offsets[i] < at + other->size ? align : 0;
                    moved = true;
                }
            }
        }
    }
}

static np_check_result check(const np_problem *problem, const uint64_t *offsets, uint64_t height)
{
    np_check_result result;
    ASSERT_OK(np_check(problem, offsets, height, &result));
    return result;
}

/* An overlap that is named must be one. */
static void check_named(const np_problem *problem, const uint64_t *offsets, const np_check_result *result)
{
    const np_buffer *both[2] = {&problem->buffers.items[result->buffer], &problem->buffers.items[result->other]};
    uint64_t at[2] = {offsets[result->buffer], offsets[result->other]};
    ASSERT_NE(result->buffer, result->other);
    ASSERT_TRUE(at[0] < at[1] + both[1]->size && at[1] < at[0] + both[0]->size);
    for (unsigned b = 0; b < 2; b++) {
        bool lives = false;
        for (uint32_t k = 0; k < both[b]->n_pieces; k++) {
            np_piece piece = problem->pieces.items[both[b]->first_piece + k];
            lives = lives || (piece.begin <= result->time && result->time < piece.end);
        }
        ASSERT_TRUE(lives);
    }
}

static void spoil(const np_problem *problem, np_rng *rng, uint64_t *offsets)
{
    uint32_t n = (uint32_t)problem->buffers.n;
    uint32_t i = (uint32_t)np_rng_below(rng, n);
    uint32_t k = (uint32_t)np_rng_below(rng, n);
    uint64_t other = offsets[k];
    switch (np_rng_below(rng, 3)) {
    case 0: /* a little lower or higher */
        offsets[i] += offsets[i] > 0 && np_rng_below(rng, 2) ? UINT64_MAX : 1;
        break;
    case 1: /* into another's place */
        offsets[i] = other;
        break;
    default: /* changed places */
        offsets[k] = offsets[i];
        offsets[i] = other;
        break;
    }
}

static void test_verdicts_against_all_pairs(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 60 : 600;
    unsigned n_verdicts[NP_CHECK_ALIGN + 1] = {0};
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, MAX_BUFFERS);
        uint64_t offsets[MAX_BUFFERS];
        uint64_t height;
        np_problem problem;
        shape.max_align = seed % 2 ? 0 : 6;
        make_problem(&shape, &rng, NULL, &problem);
        place_loosely(&problem, &rng, offsets);
        ASSERT_TRUE(placement_is_right(&problem, offsets, &height));
        ASSERT_EQ(check(&problem, offsets, height).verdict, NP_CHECK_RIGHT);
        ASSERT_EQ(check(&problem, offsets, height - 1).verdict, NP_CHECK_TOO_HIGH);
        for (unsigned step = 0; step < 12; step++) {
            np_check_result result;
            bool right;
            spoil(&problem, &rng, offsets);
            right = placement_is_right(&problem, offsets, &height);
            result = check(&problem, offsets, UINT64_MAX);
            n_verdicts[result.verdict]++;
            ASSERT_EQ(result.verdict == NP_CHECK_RIGHT, right);
            if (result.verdict == NP_CHECK_OVERLAP) {
                check_named(&problem, offsets, &result);
            } else if (result.verdict == NP_CHECK_FIXED) {
                const np_buffer *buffer = &problem.buffers.items[result.buffer];
                ASSERT_TRUE(buffer->fixed != NEAP_NO_OFFSET && buffer->fixed != offsets[result.buffer]);
            } else if (result.verdict == NP_CHECK_ALIGN) {
                ASSERT_NE(offsets[result.buffer] % problem.buffers.items[result.buffer].align,
                          problem.buffers.items[result.buffer].lead);
            }
            if (step % 4 == 3) {
                place_loosely(&problem, &rng, offsets);
            }
        }
        np_problem_free(&problem);
    }
    ASSERT_GT(n_verdicts[NP_CHECK_RIGHT], n_problems / 2);
    ASSERT_GT(n_verdicts[NP_CHECK_OVERLAP], n_problems / 2);
    ASSERT_GT(n_verdicts[NP_CHECK_FIXED], n_problems / 20);
    ASSERT_GT(n_verdicts[NP_CHECK_ALIGN], n_problems / 20);
}

/* Lifetimes and places are half-open: neighbours in time or space may touch. */
static void test_touching_is_right(void **state)
{
    static const np_piece lives[] = {{0, 5}, {5, 9}, {0, 9}};
    static const uint64_t together[] = {0, 0, 3};
    static const uint64_t overlapping[] = {0, 0, 2};
    np_problem problem;
    np_check_result result;
    (void)state;
    np_problem_init(&problem, NULL, 1, 9);
    for (unsigned i = 0; i < 3; i++) {
        ASSERT_OK(np_problem_add(&problem, 3, NEAP_NO_OFFSET, &lives[i], 1));
    }
    ASSERT_EQ(check(&problem, together, 6).verdict, NP_CHECK_RIGHT);
    result = check(&problem, together, 5);
    ASSERT_EQ(result.verdict, NP_CHECK_TOO_HIGH);
    ASSERT_EQ(result.buffer, 2);
    result = check(&problem, overlapping, 6);
    ASSERT_EQ(result.verdict, NP_CHECK_OVERLAP);
    ASSERT_EQ(result.time, 0);
    np_problem_free(&problem);
}

/* An overlap in one piece of several, at the end of time, is seen. */
static void test_overlap_in_a_late_piece(void **state)
{
    static const np_piece crossing[] = {{0, 2}, {8, 10}};
    static const np_piece late = {9, 10};
    static const uint64_t offsets[] = {0, 0};
    np_problem problem;
    np_check_result result;
    (void)state;
    np_problem_init(&problem, NULL, 1, 10);
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, crossing, 2));
    ASSERT_OK(np_problem_add(&problem, 1, NEAP_NO_OFFSET, &late, 1));
    result = check(&problem, offsets, 2);
    ASSERT_EQ(result.verdict, NP_CHECK_OVERLAP);
    ASSERT_EQ(result.time, 9);
    np_problem_free(&problem);
}

static void test_ends_past_the_last_byte_are_too_high(void **state)
{
    static const np_piece piece = {0, 1};
    static const uint64_t offsets[] = {UINT64_MAX - 1};
    np_problem problem;
    (void)state;
    np_problem_init(&problem, NULL, 1, 1);
    ASSERT_OK(np_problem_add(&problem, 2, NEAP_NO_OFFSET, &piece, 1));
    ASSERT_EQ(check(&problem, offsets, UINT64_MAX).verdict, NP_CHECK_TOO_HIGH);
    np_problem_free(&problem);
}

static neap_status check_one(const neap_memory *memory, void *user)
{
    np_problem problem = *(np_problem *)user;
    uint64_t offsets[MAX_BUFFERS] = {0};
    np_check_result result;
    problem.memory = memory;
    return np_check(&problem, offsets, UINT64_MAX, &result);
}

static void test_every_failure_is_reported(void **state)
{
    problem_shape shape = {.n_buffers = 9, .n_times = 9, .max_size = 3};
    np_rng rng = np_rng_make(1);
    np_problem problem;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_GE(test_memory_fail_each(check_one, &problem), 3);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_against_all_pairs), cmocka_unit_test(test_touching_is_right),
        cmocka_unit_test(test_overlap_in_a_late_piece),    cmocka_unit_test(test_ends_past_the_last_byte_are_too_high),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/check", tests, NULL, NULL);
}
