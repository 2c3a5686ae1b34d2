/* test_search.c: rounds of attempts on one part: bounds that hold, the same answer on any number of threads. */
#include "pool/search.h"

#include <string.h>

#include "base/clock.h"
#include "pool/brute.h"
#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 64 };

static np_search_options options_of(uint64_t goal, uint64_t seed, unsigned n_threads)
{
    return (np_search_options){.goal = goal, .seed = seed, .deadline_ns = UINT64_MAX, .n_threads = n_threads};
}

static uint64_t height_of(const np_sections *sections, const np_part *part, const uint64_t *offsets)
{
    uint64_t height = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        uint64_t end = offsets[i] + sections->items.items[part->first_item + i].size;
        height = end > height ? end : height;
    }
    return height;
}

/* With time enough, small parts are solved with a proof, and no bound on the way is above the optimum. */
static void test_small_parts_are_solved_with_proof(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 100 : 1000;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, 8);
        np_problem problem;
        np_sections sections;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            const np_part *part = &sections.parts.items[p];
            uint64_t optimum = brute_part_optimum(&sections, part);
            np_search_options options = options_of(0, seed, 1 + seed % 2);
            uint64_t offsets[MAX_BUFFERS];
            np_search *search;
            ASSERT_OK(np_search_create(&sections, part, &options, offsets, &search));
            ASSERT_FALSE(np_search_is_done(search));
            for (unsigned round = 0; round < 200 && !np_search_is_done(search); round++) {
                ASSERT_OK(np_search_round(search));
                ASSERT_LE(np_search_bound(search), optimum);
                ASSERT_GE(np_search_height(search), optimum);
                ASSERT_EQ(np_search_height(search), height_of(&sections, part, offsets));
            }
            ASSERT_EQ(np_search_height(search), optimum);
            ASSERT_EQ(np_search_bound(search), optimum);
            ASSERT_NE(np_search_found_by(search)[0], '\0');
            np_search_free(search);
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* No bound of a part with aligned items is above its optimum, nothing is below, and most are solved. */
static void test_aligned_parts_are_bounded(void **state)
{
    const unsigned n_problems = TEST_RACES ? 2 : TEST_SANITIZED ? test_rounds(10, 60) : test_rounds(80, 500);
    unsigned n_parts = 0, n_solved = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed + 300000);
        problem_shape shape = random_shape(&rng, 8);
        np_problem problem;
        np_sections sections;
        shape.max_align = 4;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            const np_part *part = &sections.parts.items[p];
            uint64_t optimum = brute_part_optimum(&sections, part);
            np_search_options options = options_of(0, seed, 1);
            uint64_t offsets[MAX_BUFFERS];
            np_search *search;
            ASSERT_OK(np_search_create(&sections, part, &options, offsets, &search));
            for (unsigned round = 0; round < 3 && !np_search_is_done(search); round++) {
                ASSERT_OK(np_search_round(search));
                ASSERT_LE(np_search_bound(search), optimum);
                ASSERT_GE(np_search_height(search), optimum);
            }
            for (uint32_t i = 0; i < part->n_items; i++) {
                const np_item *item = &sections.items.items[part->first_item + i];
                ASSERT_EQ((sections.base + offsets[i]) % item->align, item->lead);
            }
            n_parts++;
            n_solved += np_search_height(search) == optimum;
            np_search_free(search);
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
    ASSERT_GE(n_solved, n_parts - n_parts / 20);
}

/* A goal above what is possible ends the search early, and nothing is claimed then. */
static void test_a_goal_is_low_enough(void **state)
{
    problem_shape shape = {.n_buffers = 30, .n_times = 30, .longest = 9, .max_size = 9, .max_pieces = 3};
    np_rng rng = np_rng_make(2);
    np_problem problem;
    np_sections sections;
    const np_part *part;
    np_search_options options;
    uint64_t offsets[MAX_BUFFERS];
    np_search *search;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_OK(np_sections_make(&problem, &sections));
    part = &sections.parts.items[0];
    options = options_of(3 * part->load, 0, 1);
    ASSERT_OK(np_search_create(&sections, part, &options, offsets, &search));
    ASSERT_OK(np_search_round(search));
    ASSERT_TRUE(np_search_is_done(search));
    ASSERT_EQ(np_search_bound(search), part->load);
    np_search_free(search);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

/* Heights, bounds and offsets of every round, one after the other. */
static uint64_t fingerprint(const np_sections *sections, unsigned n_threads, unsigned n_rounds)
{
    const np_part *part = &sections->parts.items[0];
    np_search_options options = options_of(0, 5, n_threads);
    uint64_t offsets[MAX_BUFFERS] = {0};
    uint64_t hash = 0;
    np_search *search;
    ASSERT_OK(np_search_create(sections, part, &options, offsets, &search));
    for (unsigned round = 0; round < n_rounds && !np_search_is_done(search); round++) {
        ASSERT_OK(np_search_round(search));
        hash = np_mix64(hash + np_search_height(search));
        hash = np_mix64(hash + np_search_bound(search));
        for (uint32_t i = 0; i < part->n_items; i++) {
            hash = np_mix64(hash + offsets[i]);
        }
    }
    np_search_free(search);
    return hash;
}

static void test_threads_do_not_change_the_answer(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 1 : 2;
    const unsigned n_rounds = TEST_SANITIZED ? test_rounds(2, 3) : 3;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = {.n_buffers = MAX_BUFFERS, .n_times = 50, .longest = 20, .max_size = 30};
        uint64_t one;
        np_problem problem;
        np_sections sections;
        shape.max_pieces = 3 - 2 * (seed % 2);
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        one = fingerprint(&sections, 1, n_rounds);
        ASSERT_EQ(fingerprint(&sections, 1, n_rounds), one);
        ASSERT_EQ(fingerprint(&sections, 2, n_rounds), one);
        ASSERT_EQ(fingerprint(&sections, 4, n_rounds), one);
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* Even where no time is left at all there is a placement after the first round. */
static void test_a_deadline_leaves_a_placement(void **state)
{
    problem_shape shape = {.n_buffers = MAX_BUFFERS, .n_times = 50, .longest = 20, .max_size = 30, .max_pieces = 3};
    np_rng rng = np_rng_make(9);
    np_search_options options = {.n_threads = 2, .deadline_ns = 0};
    uint64_t offsets[MAX_BUFFERS] = {0};
    np_problem problem;
    np_sections sections;
    np_search *search;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_OK(np_search_create(&sections, &sections.parts.items[0], &options, offsets, &search));
    ASSERT_OK(np_search_round(search));
    ASSERT_LT(np_search_height(search), UINT64_MAX);
    ASSERT_EQ(np_search_height(search), height_of(&sections, &sections.parts.items[0], offsets));
    np_search_free(search);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static neap_status search_some(const neap_memory *memory, void *user)
{
    np_sections sections = *(np_sections *)user;
    np_search_options options = options_of(0, 1, 1);
    uint64_t offsets[MAX_BUFFERS];
    np_search *search;
    neap_status status;
    sections.memory = memory;
    status = np_search_create(&sections, &sections.parts.items[0], &options, offsets, &search);
    if (status == NEAP_OK) {
        for (unsigned round = 0; round < 3 && status == NEAP_OK && !np_search_is_done(search); round++) {
            status = np_search_round(search);
        }
        np_search_free(search);
    }
    return status;
}

/* Three that live two thirds of a circle each, and two beside them: the load is out of reach, so all kinds of attempts
 * have their turn. */
static void test_every_failure_is_reported(void **state)
{
    const np_piece lives[5][2] = {{{0, 4}}, {{2, 6}}, {{0, 2}, {4, 6}}, {{1, 2}}, {{3, 5}}};
    np_problem problem;
    np_sections sections;
    (void)state;
    np_problem_init(&problem, NULL, 1, 6);
    for (unsigned i = 0; i < 5; i++) {
        ASSERT_OK(np_problem_add(&problem, i < 3 ? 3 : 1, NEAP_NO_OFFSET, lives[i], i == 2 ? 2 : 1));
    }
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_GT(brute_part_optimum(&sections, &sections.parts.items[0]), sections.parts.items[0].load);
    ASSERT_GT(test_memory_fail_each(search_some, &sections), 60);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_parts_are_solved_with_proof),
        cmocka_unit_test(test_aligned_parts_are_bounded),
        cmocka_unit_test(test_a_goal_is_low_enough),
        cmocka_unit_test(test_threads_do_not_change_the_answer),
        cmocka_unit_test(test_a_deadline_leaves_a_placement),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/search", tests, NULL, NULL);
}
