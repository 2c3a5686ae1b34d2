/* test_fit.c: one buffer after the other: the paper's pool on an instance worked by hand, and what holds for every order. */
#include "pool/fit.h"

#include <string.h>

#include "pool/make_problem.h"
#include "testing.h"

enum { MAX_BUFFERS = 64 };

/* Largest first, they pile up; b and e end early and leave holes of 9 at 10 and of 6 at 34. */
static const struct {
    uint64_t size;
    np_piece life;
    uint64_t first_fit, best_fit;
} worked[] = {
    {2, {7, 9}, 17, 38},  /* first: what x and y left of the lower hole; best: exactly what x left of the upper one */
    {10, {0, 10}, 0, 0},  /* a */
    {9, {0, 5}, 10, 10},  /* b */
    {8, {0, 10}, 19, 19}, /* c */
    {1, {0, 10}, 45, 45}, /* no hole all through: the pool is extended */
    {7, {0, 10}, 27, 27}, /* d */
    {6, {0, 3}, 34, 34},  /* e */
    {5, {0, 10}, 40, 40}, /* f */
    {4, {6, 9}, 10, 34},  /* x: the lowest hole, the smallest hole */
    {3, {6, 8}, 14, 10},  /* y: x left 2 of the smallest, so the other one */
};
enum { N_WORKED = sizeof worked / sizeof *worked };

static void place(const np_sections *sections, np_order order, np_fit_rule rule, uint64_t *offsets, uint64_t *height)
{
    *height = 0;
    for (size_t p = 0; p < sections->parts.n; p++) {
        const np_part *part = &sections->parts.items[p];
        uint32_t items[MAX_BUFFERS];
        uint64_t own[MAX_BUFFERS];
        uint64_t top = 0;
        np_occupied occupied;
        ASSERT_OK(np_occupied_init(&occupied, NULL, part->sections));
        ASSERT_OK(np_fit_order(sections, part, order, items));
        ASSERT_OK(np_fit_place(sections, part, items, rule, NULL, &occupied, own, &top));
        ASSERT_TRUE(np_occupied_is_valid(&occupied));
        np_occupied_free(&occupied);
        for (uint32_t i = 0; i < part->n_items; i++) {
            offsets[sections->items.items[part->first_item + i].buffer] = sections->base + own[i];
        }
        *height = top > *height ? top : *height;
    }
    *height += sections->base;
}

static void make_worked(np_problem *problem, np_sections *sections)
{
    static const np_piece short_life = {2, 4};
    np_problem_init(problem, NULL, 1, 10);
    for (size_t i = 0; i < N_WORKED; i++) {
        ASSERT_OK(np_problem_add(problem, worked[i].size, NEAP_NO_OFFSET, &worked[i].life, 1));
    }
    /* One that is fixed far above, so that nothing is set aside and all offsets are the rule's own. */
    ASSERT_OK(np_problem_add(problem, 1, 100, &short_life, 1));
    ASSERT_OK(np_sections_make(problem, sections));
}

static void test_the_papers_pool_worked_by_hand(void **state)
{
    np_problem problem;
    np_sections sections;
    uint64_t offsets[MAX_BUFFERS];
    uint64_t height;
    (void)state;
    make_worked(&problem, &sections);
    place(&sections, NP_ORDER_SIZE, NP_FIT_FIRST, offsets, &height);
    for (size_t i = 0; i < N_WORKED; i++) {
        ASSERT_EQ(offsets[i], worked[i].first_fit);
    }
    place(&sections, NP_ORDER_SIZE, NP_FIT_BEST, offsets, &height);
    for (size_t i = 0; i < N_WORKED; i++) {
        ASSERT_EQ(offsets[i], worked[i].best_fit);
    }
    ASSERT_EQ(height, 101);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static void test_every_order_and_rule_gives_a_placement(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 30 : 300;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, 40);
        np_problem problem;
        np_sections sections;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (unsigned turn = 0; turn < 2 * NP_N_ORDERS; turn++) {
            uint64_t offsets[MAX_BUFFERS];
            uint64_t height, true_height;
            for (size_t i = 0; i < sections.everywhere.n; i++) { /* set aside: one upon the other */
                uint32_t last = i ? sections.everywhere.items[i - 1] : 0;
                offsets[sections.everywhere.items[i]] = i ? offsets[last] + problem.buffers.items[last].size : 0;
            }
            place(&sections, (np_order)(turn / 2), turn % 2 ? NP_FIT_BEST : NP_FIT_FIRST, offsets, &height);
            ASSERT_TRUE(placement_is_right(&problem, offsets, &true_height));
            ASSERT_EQ(height, true_height);
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* Blocks at pages, each cut into pieces that are alike, among others at any offset. */
static void make_pieces(np_rng *rng, np_problem *problem)
{
    np_problem_init(problem, NULL, 1, 20);
    while (problem->buffers.n < 50) {
        uint32_t begin = (uint32_t)np_rng_below(rng, 9);
        np_piece pieces[2] = {{begin, begin + 1 + (uint32_t)np_rng_below(rng, 3)}};
        bool is_paged = np_rng_below(rng, 2) == 0;
        uint64_t size = 1 + np_rng_below(rng, 12);
        uint64_t n = is_paged ? 1 + np_rng_below(rng, 8) : 1;
        pieces[1] = (np_piece){pieces[0].end + 1, pieces[0].end + 2 + (uint32_t)np_rng_below(rng, 7)};
        for (uint64_t i = 0; i < n; i++) {
            ASSERT_OK(np_problem_add_aligned(problem, size, is_paged ? 4 : 1, is_paged ? size % 4 : 0, NEAP_NO_OFFSET,
                                             pieces, 1 + (size > 5)));
        }
    }
}

/* The offsets are those of one first-fit after the other; what the tree foretells of the second of two comes true, where
 * the next is the same again. */
static void check_first_fits(const np_sections *sections, const np_part *part, const uint32_t *items,
                             const uint64_t *offsets)
{
    np_occupied occupied;
    uint64_t two[2] = {0};
    ASSERT_OK(np_occupied_init(&occupied, NULL, part->sections));
    for (uint32_t i = 0; i < part->n_items; i++) {
        const np_item *item = &sections->items.items[items[i]];
        const np_item *last = &sections->items.items[items[i > 0 ? i - 1 : 0]];
        const np_range *ranges = &sections->ranges.items[item->first_range];
        np_fitted fitted = {item->size, item->align, sections->base + (item->align - item->lead) % item->align};
        bool is_same = i > 0 && item->size == last->size && item->align == last->align && item->lead == last->lead &&
                       item->n_ranges == last->n_ranges &&
                       memcmp(ranges, &sections->ranges.items[last->first_range], item->n_ranges * sizeof *ranges) == 0;
        uint64_t at;
        ASSERT_OK(np_occupied_first_fit(&occupied, ranges, item->n_ranges, &fitted, &at));
        ASSERT_EQ(offsets[items[i] - part->first_item], at);
        ASSERT_TRUE(!is_same || two[1] == at);
        ASSERT_OK(np_occupied_first_fits(&occupied, ranges, item->n_ranges, &fitted, 2, two));
        ASSERT_EQ(two[0], at);
        ASSERT_OK(np_occupied_add(&occupied, ranges, item->n_ranges, at, at + item->size));
    }
    np_occupied_free(&occupied);
}

/* Pieces that are alike are placed with one look, where one after the other would have been. */
static void test_pieces_stand_where_each_fits_first(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 200; seed++) {
        np_rng rng = np_rng_make(seed);
        np_problem problem;
        np_sections sections;
        make_pieces(&rng, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            const np_part *part = &sections.parts.items[p];
            uint32_t items[MAX_BUFFERS];
            uint64_t offsets[MAX_BUFFERS];
            uint64_t height;
            np_occupied occupied;
            ASSERT_OK(np_fit_order(&sections, part, (np_order)(seed % NP_N_ORDERS), items));
            ASSERT_OK(np_occupied_init(&occupied, NULL, part->sections));
            ASSERT_OK(np_fit_place(&sections, part, items, NP_FIT_FIRST, NULL, &occupied, offsets, &height));
            np_occupied_free(&occupied);
            check_first_fits(&sections, part, items, offsets);
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
}

/* What an order goes by, counted anew. */
static double rank_by_hand(const np_sections *sections, const np_part *part, const np_item *item, np_order order)
{
    double size = (double)item->size;
    double length = (double)item->n_sections;
    double highest = 0;
    for (uint32_t k = 0; k < item->n_ranges; k++) {
        np_range range = sections->ranges.items[item->first_range + k];
        for (uint32_t s = range.begin; s < range.end; s++) {
            double load = 0;
            for (uint32_t i = 0; i < part->n_items; i++) {
                const np_item *other = &sections->items.items[part->first_item + i];
                for (uint32_t j = 0; j < other->n_ranges; j++) {
                    np_range r = sections->ranges.items[other->first_range + j];
                    load += r.begin <= s && s < r.end ? (double)other->size : 0;
                }
            }
            highest = load > highest ? load : highest;
        }
    }
    switch (order) {
    case NP_ORDER_SIZE:
        return size;
    case NP_ORDER_AREA:
        return size * length;
    case NP_ORDER_LENGTH:
        return length;
    case NP_ORDER_LENGTH_SIZE:
        return length * length * size;
    case NP_ORDER_SIZE_LENGTH:
        return size * size * length;
    case NP_ORDER_LOAD:
    case NP_ORDER_LOAD_LENGTH:
        return highest;
    case NP_ORDER_HOLES: /* those with holes before all others */
        return (item->n_ranges > 1 ? (double)sections->n_sections : 0) -
               (double)sections->ranges.items[item->first_range].begin;
    case NP_ORDER_END:
        return (double)sections->ranges.items[item->first_range + item->n_ranges - 1].end;
    case NP_ORDER_BEGIN:
    default:
        return -(double)sections->ranges.items[item->first_range].begin;
    }
}

static void check_order(const np_sections *sections, const np_part *part, np_order order)
{
    uint32_t items[MAX_BUFFERS];
    double ranks[MAX_BUFFERS];
    bool seen[MAX_BUFFERS] = {false};
    ASSERT_OK(np_fit_ranks(sections, part, order, ranks));
    ASSERT_OK(np_fit_order(sections, part, order, items));
    for (uint32_t i = 0; i < part->n_items; i++) {
        uint32_t at = items[i] - part->first_item;
        const np_item *item = &sections->items.items[items[i]];
        ASSERT_LT(at, part->n_items);
        ASSERT_FALSE(seen[at]);
        seen[at] = true;
        ASSERT_TRUE(ranks[at] == rank_by_hand(sections, part, item, order));
        if (i > 0) {
            uint32_t before = items[i - 1] - part->first_item;
            const np_item *last = &sections->items.items[items[i - 1]];
            bool by_length = order == NP_ORDER_LOAD_LENGTH;
            uint64_t tie = by_length ? item->n_sections : item->size;
            uint64_t tie_before = by_length ? last->n_sections : last->size;
            ASSERT_TRUE(ranks[before] > ranks[at] ||
                        (ranks[before] == ranks[at] && (tie_before > tie || (tie_before == tie && before < at))));
        }
    }
}

static void test_orders(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++) {
        np_rng rng = np_rng_make(seed);
        problem_shape shape = random_shape(&rng, 30);
        np_problem problem;
        np_sections sections;
        make_problem(&shape, &rng, NULL, &problem);
        ASSERT_OK(np_sections_make(&problem, &sections));
        for (size_t p = 0; p < sections.parts.n; p++) {
            for (unsigned order = 0; order < NP_N_ORDERS; order++) {
                check_order(&sections, &sections.parts.items[p], (np_order)order);
            }
        }
        np_sections_free(&sections);
        np_problem_free(&problem);
    }
    for (unsigned i = 0; i < NP_N_ORDERS; i++) {
        for (unsigned k = 0; k < i; k++) {
            ASSERT_NE(strcmp(np_order_name((np_order)i), np_order_name((np_order)k)), 0);
        }
    }
}

static bool stop_now(void *user)
{
    (void)user;
    return true;
}

static void test_stops_when_told(void **state)
{
    problem_shape shape = {.n_buffers = 1500, .n_times = 50, .longest = 40, .max_size = 5};
    np_rng rng = np_rng_make(1);
    np_stop stop = {stop_now, NULL};
    static uint32_t items[1500];
    static uint64_t offsets[1500];
    uint64_t height = 0;
    np_problem problem;
    np_sections sections;
    np_occupied occupied;
    const np_part *part;
    (void)state;
    make_problem(&shape, &rng, NULL, &problem);
    ASSERT_OK(np_sections_make(&problem, &sections));
    part = &sections.parts.items[0];
    ASSERT_GT(part->n_items, 1000);
    ASSERT_OK(np_occupied_init(&occupied, NULL, part->sections));
    ASSERT_OK(np_fit_order(&sections, part, NP_ORDER_SIZE, items));
    ASSERT_OK(np_fit_place(&sections, part, items, NP_FIT_FIRST, &stop, &occupied, offsets, &height));
    ASSERT_EQ(height, UINT64_MAX);
    np_occupied_free(&occupied);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

static neap_status order_and_place(const neap_memory *memory, void *user)
{
    np_sections sections = *(np_sections *)user;
    const np_part *part = &sections.parts.items[0];
    uint32_t items[MAX_BUFFERS];
    uint64_t offsets[MAX_BUFFERS];
    uint64_t height;
    np_occupied occupied;
    neap_status status;
    sections.memory = memory;
    status = np_fit_order(&sections, part, NP_ORDER_LOAD, items);
    if (status != NEAP_OK) {
        return status;
    }
    status = np_occupied_init(&occupied, memory, part->sections);
    if (status == NEAP_OK) {
        status = np_fit_place(&sections, part, items, NP_FIT_BEST, NULL, &occupied, offsets, &height);
        if (status == NEAP_OK) {
            status = np_fit_place(&sections, part, items, NP_FIT_FIRST, NULL, &occupied, offsets, &height);
        }
        np_occupied_free(&occupied);
    }
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    np_problem problem;
    np_sections sections;
    (void)state;
    make_worked(&problem, &sections);
    ASSERT_GT(test_memory_fail_each(order_and_place, &sections), 10);
    np_sections_free(&sections);
    np_problem_free(&problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_papers_pool_worked_by_hand),
        cmocka_unit_test(test_every_order_and_rule_gives_a_placement),
        cmocka_unit_test(test_pieces_stand_where_each_fits_first),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_stops_when_told),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/fit", tests, NULL, NULL);
}
