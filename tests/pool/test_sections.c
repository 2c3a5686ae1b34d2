/* test_sections.c: nothing about a problem is lost when it is seen through its sections. */
#include "pool/sections.h"

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 32 };

static bool lives_in(const np_sections *sections, const np_item *item, uint32_t section)
{
    for (uint32_t k = 0; k < item->n_ranges; k++) {
        np_range range = sections->ranges.items[item->first_range + k];
        if (range.begin <= section && section < range.end) {
            return true;
        }
    }
    return false;
}

static bool share_a_section(const np_sections *sections, const np_item *a, const np_item *b)
{
    for (uint32_t s = 0; s < sections->n_sections; s++) {
        if (lives_in(sections, a, s) && lives_in(sections, b, s)) {
            return true;
        }
    }
    return false;
}

/* Every buffer is an item once, or set aside; every pair of them meets as it did. */
static void check_pairs(const np_problem *problem, const np_sections *sections)
{
    const np_item *item_of[MAX_BUFFERS] = {NULL};
    bool is_everywhere[MAX_BUFFERS] = {false};
    for (size_t i = 0; i < sections->everywhere.n; i++) {
        is_everywhere[sections->everywhere.items[i]] = true;
    }
    for (size_t i = 0; i < sections->items.n; i++) {
        const np_item *item = &sections->items.items[i];
        ASSERT_TRUE(item_of[item->buffer] == NULL);
        ASSERT_EQ(item->size, problem->buffers.items[item->buffer].size);
        ASSERT_EQ(item->fixed, problem->buffers.items[item->buffer].fixed);
        ASSERT_EQ(item->align, problem->buffers.items[item->buffer].align);
        item_of[item->buffer] = item;
    }
    for (uint32_t i = 0; i < problem->buffers.n; i++) {
        ASSERT_EQ(item_of[i] != NULL, !is_everywhere[i]);
        for (uint32_t k = 0; k < i; k++) {
            bool meet = is_everywhere[i] || is_everywhere[k] || share_a_section(sections, item_of[i], item_of[k]);
            ASSERT_EQ(buffers_meet(problem, i, k), meet);
        }
    }
}

static uint64_t load_of_part(const np_sections *sections, const np_part *part)
{
    uint64_t peak = 0;
    for (uint32_t s = part->sections.begin; s < part->sections.end; s++) {
        uint64_t now = 0;
        for (uint32_t i = 0; i < part->n_items; i++) {
            const np_item *item = &sections->items.items[part->first_item + i];
            now += lives_in(sections, item, s) ? item->size : 0;
        }
        peak = now > peak ? now : peak;
    }
    for (uint32_t i = 0; i < part->n_items; i++) {
        const np_item *item = &sections->items.items[part->first_item + i];
        if (item->fixed != NEAP_NO_OFFSET && item->fixed + item->size > peak) {
            peak = item->fixed + item->size;
        }
    }
    return peak;
}

static void check_loads(const np_problem *problem, const np_sections *sections)
{
    uint64_t expected;
    uint64_t highest = 0;
    uint64_t base = 0;
    ASSERT_OK(np_problem_load(problem, &expected));
    ASSERT_EQ(sections->base + sections->load, expected);
    for (size_t p = 0; p < sections->parts.n; p++) {
        const np_part *part = &sections->parts.items[p];
        ASSERT_EQ(part->load, load_of_part(sections, part));
        highest = part->load > highest ? part->load : highest;
    }
    ASSERT_EQ(sections->load, highest);
    for (size_t i = 0; i < sections->everywhere.n; i++) {
        base += problem->buffers.items[sections->everywhere.items[i]].size;
    }
    ASSERT_EQ(sections->base, base);
}

/* Items of two parts never meet, and no part can be divided. */
static void check_parts(const np_sections *sections)
{
    for (size_t p = 0; p < sections->parts.n; p++) {
        const np_part *part = &sections->parts.items[p];
        for (uint32_t i = 0; i < sections->items.n; i++) {
            const np_item *item = &sections->items.items[i];
            bool own = i >= part->first_item && i < part->first_item + part->n_items;
            uint32_t n_inside = 0;
            for (uint32_t s = part->sections.begin; s < part->sections.end; s++) {
                n_inside += lives_in(sections, item, s);
            }
            ASSERT_EQ(n_inside, own ? item->n_sections : 0);
        }
        for (uint32_t s = part->sections.begin + 1; s < part->sections.end; s++) {
            bool crossed = false;
            for (uint32_t i = 0; i < part->n_items; i++) {
                const np_item *item = &sections->items.items[part->first_item + i];
                const np_range *ranges = &sections->ranges.items[item->first_range];
                crossed = crossed || (ranges[0].begin < s && s < ranges[item->n_ranges - 1].end);
            }
            ASSERT_TRUE(crossed);
        }
    }
}

static void test_random_problems(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 200 : 2000;
    unsigned n_with_parts = 0, n_set_aside = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, seed % 2 ? 8 : MAX_BUFFERS);
        np_problem problem;
        np_sections sections;
        shape.max_align = seed % 3 ? 0 : 4;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        ASSERT_TRUE(np_sections_is_valid(&sections));
        ASSERT_LE(sections.n_sections, problem.pieces.n);
        check_pairs(&problem, &sections);
        check_loads(&problem, &sections);
        check_parts(&sections);
        n_with_parts += sections.parts.n > 1;
        n_set_aside += sections.everywhere.n > 0;
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
    ASSERT_GT(n_with_parts, n_problems / 20);
    ASSERT_GT(n_set_aside, n_problems / 20);
}

/* Setting aside what lives everywhere and dividing the rest loses nothing: the optimum is the same. */
static void test_parts_have_the_optimum_of_the_whole(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 60 : 500;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed + 100000);
        problem_shape shape = random_shape(&rng, 7);
        np_problem problem;
        np_sections sections;
        uint64_t highest = 0;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            uint64_t optimum = brute_part_optimum(&sections, &sections.parts.items[p]);
            highest = optimum > highest ? optimum : highest;
        }
        ASSERT_EQ(sections.base + highest, brute_optimum(&problem));
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* What is set aside costs less than a step of the others' alignment; where its sizes are such steps, nothing. */
static void test_what_is_set_aside_keeps_others_aligned(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 60 : 500;
    unsigned n_aside = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed + 200000);
        problem_shape shape = random_shape(&rng, 7);
        uint64_t align = 2 + np_rng_below(&rng, 3);
        bool all_multiples = seed % 2 == 0;
        np_problem problem;
        np_sections sections;
        uint64_t highest = 0;
        uint64_t optimum;
        shape.n_fixed = 0;
        shape.longest = 0;
        make_problem(&shape, &rng, NULL, &problem);
        for (uint32_t i = 0; i < problem.buffers.n; i++) {
            np_buffer *buffer = &problem.buffers.items[i];
            buffer->align = np_rng_below(&rng, 2) ? align : 1;
            buffer->size *= all_multiples || buffer->align > 1 ? align : 1;
        }
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            uint64_t of_part = brute_part_optimum(&sections, &sections.parts.items[p]);
            highest = of_part > highest ? of_part : highest;
        }
        optimum = brute_optimum(&problem);
        ASSERT_GE(sections.base + highest, optimum);
        ASSERT_LT(sections.base + highest, optimum + (all_multiples ? 1 : align));
        n_aside += sections.everywhere.n > 0 && sections.items.n > 0;
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
    ASSERT_GT(n_aside, n_problems / 20);
}

/* Times without a begin before an end add no section. */
static void test_sections_are_the_maximal_moments(void **state)
{
    static const np_piece lives[] = {{0, 4}, {1, 3}, {2, 6}, {5, 8}, {9, 10}};
    np_problem problem;
    np_sections sections;
    (void)state;
    np_problem_init(&problem, NULL, 1, 12);
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
        ASSERT_OK(np_problem_add(&problem, i + 1, NEAP_NO_OFFSET, &lives[i], 1));
    }
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_EQ(sections.n_sections, 3); /* at 2: 0 1 2, at 5: 2 3, at 9: 4 */
    ASSERT_EQ(sections.parts.n, 2);
    ASSERT_EQ(sections.parts.items[0].load, 3 + 4);
    ASSERT_EQ(sections.parts.items[0].n_items, 4);
    ASSERT_EQ(sections.parts.items[1].load, 5);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static void test_nothing_at_all(void **state)
{
    np_problem problem;
    np_sections sections;
    (void)state;
    np_problem_init(&problem, NULL, 1, 0);
    ASSERT_OK(np_sections_make(&problem, &sections));
    ASSERT_EQ(sections.n_sections, 0);
    ASSERT_EQ(sections.parts.n, 0);
    ASSERT_EQ(sections.load + sections.base, 0);
    ASSERT_TRUE(np_sections_is_valid(&sections));
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static void test_too_large_is_refused(void **state)
{
    static const np_piece piece = {0, 1};
    np_problem problem;
    np_sections sections;
    (void)state;
    np_problem_init(&problem, NULL, 1, 1);
    ASSERT_OK(np_problem_add(&problem, (uint64_t)1 << 61, NEAP_NO_OFFSET, &piece, 1));
    ASSERT_STATUS(NEAP_TOO_LARGE, np_sections_make(&problem, &sections));
    problem.buffers.items[0].size = 1;
    problem.buffers.items[0].fixed = (uint64_t)1 << 61;
    ASSERT_STATUS(NEAP_TOO_LARGE, np_sections_make(&problem, &sections));
    np_problem_free(&problem);
}

static neap_status make(const neap_memory *memory, void *user)
{
    np_problem problem = *(np_problem *)user;
    np_sections sections;
    neap_status status;
    problem.memory = memory;
    status = np_sections_make(&problem, &sections);
    if (status == NEAP_OK) {
        np_sections_free(&sections);
    }
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    problem_shape shape = {.n_buffers = 30, .n_times = 20, .max_size = 5, .max_pieces = 3};
    np_rng rng = np_rng_make(5);
    np_problem problem;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_GT(test_memory_fail_each(make, &problem), 5);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_parts_have_the_optimum_of_the_whole),
        cmocka_unit_test(test_what_is_set_aside_keeps_others_aligned),
        cmocka_unit_test(test_sections_are_the_maximal_moments),
        cmocka_unit_test(test_nothing_at_all),
        cmocka_unit_test(test_too_large_is_refused),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/sections", tests, NULL, NULL);
}
