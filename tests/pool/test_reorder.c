/* test_reorder.c: reordered first-fits stay placements, never lose ground, and come down in the end. */
#include "pool/reorder.h"

#include <string.h>

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 64 };

static bool is_permutation(const np_reorder *reorder)
{
    bool seen[MAX_BUFFERS] = {false};
    for (uint32_t i = 0; i < reorder->part->n_items; i++) {
        uint32_t at = reorder->order[i] - reorder->part->first_item;
        if (at >= reorder->part->n_items || seen[at]) {
            return false;
        }
        seen[at] = true;
    }
    return true;
}

static bool part_is_right(const np_problem *problem, const np_sections *sections, const np_part *part,
                          const uint64_t *offsets, uint64_t height)
{
    const np_item *items = &sections->items.items[part->first_item];
    uint64_t top = 0;
    for (uint32_t i = 0; i < part->n_items; i++) {
        top = offsets[i] + items[i].size > top ? offsets[i] + items[i].size : top;
        if (items[i].fixed != NEAP_NO_OFFSET && items[i].fixed != offsets[i]) {
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (offsets[i] < offsets[k] + items[k].size && offsets[k] < offsets[i] + items[i].size &&
                buffers_meet(problem, items[i].buffer, items[k].buffer)) {
                return false;
            }
        }
    }
    return top == height;
}

static void test_steps_are_placements_and_lose_nothing(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 20 : 150;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, MAX_BUFFERS);
        np_problem problem;
        np_sections sections;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            const np_part *part = &sections.parts.items[p];
            np_reorder reorder;
            uint64_t excess = UINT64_MAX;
            ASSERT_OK(np_reorder_init(&reorder, &sections, part, NP_ORDER_SIZE, seed));
            for (unsigned step = 0; step < 20; step++) {
                uint64_t height = 0;
                ASSERT_OK(np_reorder_step(&reorder, part->load, NULL, &height));
                ASSERT_TRUE(part_is_right(&problem, &sections, part, reorder.offsets, height));
                ASSERT_TRUE(is_permutation(&reorder));
                ASSERT_LE(reorder.excess, excess);
                excess = reorder.excess;
                ASSERT_TRUE(sections.has_fixed || (excess == 0) == (reorder.n_too_high == 0));
            }
            np_reorder_free(&reorder);
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* On small problems some order is optimal, and a few hundred steps find one nearly always. */
static void test_comes_down(void **state)
{
    unsigned n_parts = 0, n_optimal = 0;
    (void)state;
    for (unsigned seed = 0; seed < 100; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = {.n_buffers = 8, .n_times = 16, .max_size = 9, .max_pieces = 2};
        np_problem problem;
        np_sections sections;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            const np_part *part = &sections.parts.items[p];
            uint64_t optimum = brute_part_optimum(&sections, part);
            uint64_t lowest = UINT64_MAX;
            np_reorder reorder;
            ASSERT_OK(np_reorder_init(&reorder, &sections, part, NP_ORDER_BEGIN, seed));
            for (unsigned step = 0; step < 300 && lowest > optimum; step++) {
                uint64_t height = 0;
                ASSERT_OK(np_reorder_step(&reorder, optimum, NULL, &height));
                ASSERT_GE(height, optimum);
                lowest = height < lowest ? height : lowest;
            }
            np_reorder_free(&reorder);
            n_parts++;
            n_optimal += lowest == optimum;
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
    ASSERT_GE(100 * n_optimal, 95 * n_parts);
}

static void test_same_seed_same_steps(void **state)
{
    problem_shape shape = {.n_buffers = MAX_BUFFERS, .n_times = 40, .longest = 12, .max_size = 9, .max_pieces = 3};
    np_rng rng = np_rng_make(4);
    np_problem problem;
    np_sections sections;
    np_reorder a, b;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_OK(np_reorder_init(&a, &sections, &sections.parts.items[0], NP_ORDER_SIZE, 7));
    ASSERT_OK(np_reorder_init(&b, &sections, &sections.parts.items[0], NP_ORDER_SIZE, 7));
    for (unsigned step = 0; step < 50; step++) {
        uint64_t height_a = 1, height_b = 2;
        ASSERT_OK(np_reorder_step(&a, sections.load, NULL, &height_a));
        ASSERT_OK(np_reorder_step(&b, sections.load, NULL, &height_b));
        ASSERT_EQ(height_a, height_b);
        ASSERT_EQ(memcmp(a.offsets, b.offsets, a.part->n_items * sizeof *a.offsets), 0);
    }
    np_reorder_free(&a);
    np_reorder_free(&b);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static neap_status init_and_step(const neap_memory *memory, void *user)
{
    np_sections sections = *(np_sections *)user;
    np_reorder reorder;
    uint64_t height;
    neap_status status;
    sections.memory = memory;
    status = np_reorder_init(&reorder, &sections, &sections.parts.items[0], NP_ORDER_AREA, 1);
    if (status == NEAP_OK) {
        for (unsigned step = 0; step < 5 && status == NEAP_OK; step++) {
            status = np_reorder_step(&reorder, 1, NULL, &height);
        }
        np_reorder_free(&reorder);
    }
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    problem_shape shape = {.n_buffers = 20, .n_times = 15, .max_size = 9, .max_pieces = 3};
    np_rng rng = np_rng_make(4);
    np_problem problem;
    np_sections sections;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_GT(test_memory_fail_each(init_and_step, &sections), 10);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_placements_and_lose_nothing),
        cmocka_unit_test(test_comes_down),
        cmocka_unit_test(test_same_seed_same_steps),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/reorder", tests, NULL, NULL);
}
