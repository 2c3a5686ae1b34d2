/* test_skyline.c: the skyline search proves what it says. Small problems are compared with the brute-force optimum, under
 * every rule and every combination of switches; on larger ones the combinations must not contradict each other. */
#include "pool/skyline.h"

#include <stdlib.h>

#include "pool/brute.h"
#include "pool/make_problem.h"
#include "pool/skyline_state.h"
#include "testing.h"

enum { N_SWITCHES = 16, MAX_ITEMS = 512, MANY_NODES = 1000000 };

typedef struct fixture {
    np_problem problem;
    np_sections sections;
    np_rng rng;
} fixture;

static void fixture_make(fixture *f, const problem_shape *shape)
{
    make_problem(shape, &f->rng, NULL, &f->problem);
    ASSERT_OK(np_sections_make(&f->problem, &f->sections));
}

static void fixture_free(fixture *f)
{
    np_sections_free(&f->sections);
    np_problem_free(&f->problem);
}

/* Do the offsets place the part within the capacity? Tries all pairs of its buffers. */
static bool part_is_right(const fixture *f, const np_part *part, const uint64_t *offsets, uint64_t capacity)
{
    const np_item *items = &f->sections.items.items[part->first_item];
    for (uint32_t i = 0; i < part->n_items; i++) {
        if (offsets[i] + items[i].size > capacity ||
            (items[i].fixed != NEAP_NO_OFFSET && items[i].fixed != offsets[i])) {
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (offsets[i] < offsets[k] + items[k].size && offsets[k] < offsets[i] + items[i].size &&
                buffers_meet(&f->problem, items[i].buffer, items[k].buffer)) {
                return false;
            }
        }
    }
    return true;
}

/* One search with preferences drawn anew. What is placed must be right. */
static np_skyline_answer search(fixture *f, np_skyline *skyline, const np_part *part, np_skyline_query query)
{
    double preference[MAX_ITEMS];
    uint64_t offsets[MAX_ITEMS];
    np_skyline_answer answer;
    for (uint32_t i = 0; i < part->n_items; i++) {
        preference[i] = (double)np_rng_below(&f->rng, 8);
    }
    query.preference = preference;
    ASSERT_OK(np_skyline_search(skyline, &query, offsets, &answer));
    ASSERT_TRUE(np_skyline_is_valid(skyline));
    if (answer == NP_SKYLINE_PLACED && !part_is_right(f, part, offsets, query.capacity)) {
        print_problem(&f->problem);
        test_fail(__FILE__, __LINE__, "a wrong placement, capacity %llu, rule %d, switches off %u",
                  (unsigned long long)query.capacity, (int)query.rule, query.switches_off);
    }
    return answer;
}

static void expect(fixture *f, np_skyline *skyline, const np_part *part, np_skyline_query query,
                   np_skyline_answer expected)
{
    np_skyline_answer answer = search(f, skyline, part, query);
    if (answer != expected) {
        print_problem(&f->problem);
        test_fail(__FILE__, __LINE__, "answer %d, not %d: capacity %llu, rule %d, switches off %u", (int)answer,
                  (int)expected, (unsigned long long)query.capacity, (int)query.rule, query.switches_off);
    }
}

/* One skyline for all rules and switches: what it remembers of one search must be true in the next. */
static void check_kept_skyline(fixture *f, const np_part *part, uint64_t optimum)
{
    np_skyline *skyline;
    ASSERT_OK(np_skyline_create(&f->sections, part, &skyline));
    for (uint64_t capacity = optimum; capacity + 1 >= optimum && capacity > 0; capacity--) {
        for (unsigned turn = 0; turn < N_SWITCHES * NP_SKYLINE_N_RULES; turn++) {
            np_skyline_query query = {.capacity = capacity, .max_nodes = MANY_NODES};
            query.rule = (np_skyline_rule)(turn % NP_SKYLINE_N_RULES);
            query.switches_off = (turn / NP_SKYLINE_N_RULES * 7 + 3) % N_SWITCHES;
            expect(f, skyline, part, query, capacity == optimum ? NP_SKYLINE_PLACED : NP_SKYLINE_IMPOSSIBLE);
        }
    }
    np_skyline_free(skyline);
}

/* A new skyline for each combination. Before it proves, it leaps, which may find but not prove. */
static void check_new_skylines(fixture *f, const np_part *part, uint64_t optimum, unsigned first, unsigned step)
{
    for (unsigned off = first; off < N_SWITCHES; off += step) {
        np_skyline_query query = {.capacity = optimum, .max_nodes = MANY_NODES, .switches_off = off};
        np_skyline *skyline;
        ASSERT_OK(np_skyline_create(&f->sections, part, &skyline));
        query.rule = (np_skyline_rule)np_rng_below(&f->rng, NP_SKYLINE_N_RULES);
        query.leaps = true;
        ASSERT_NE(search(f, skyline, part, query), NP_SKYLINE_IMPOSSIBLE);
        query.capacity = optimum - 1; /* impossible only where that is plain from the start, which is a proof */
        ASSERT_NE(search(f, skyline, part, query), NP_SKYLINE_PLACED);
        query.leaps = false;
        expect(f, skyline, part, query, NP_SKYLINE_IMPOSSIBLE);
        query.capacity = optimum;
        expect(f, skyline, part, query, NP_SKYLINE_PLACED);
        np_skyline_free(skyline);
    }
}

static void test_small_problems_against_brute_force(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 150 : 1000;
    unsigned n_above_load = 0;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        fixture f = {.rng = np_rng_make(seed)};
        problem_shape shape = random_shape(&f.rng, 8);
        fixture_make(&f, &shape);
        for (size_t p = 0; p < f.sections.parts.n; p++) {
            const np_part *part = &f.sections.parts.items[p];
            uint64_t optimum = brute_part_optimum(&f.sections, part);
            n_above_load += optimum > part->load;
            check_kept_skyline(&f, part, optimum);
            check_new_skylines(&f, part, optimum, seed % 4, 4);
        }
        fixture_free(&f);
    }
    ASSERT_GT(n_above_load, n_problems / 30); /* else the proofs were all trivial */
}

/* Enough buffers for several components, long causes and deep jumps. They are known to fit, and who says that they do not
 * has made a mistake in what it blamed or remembered. */
static void check_fitting(fixture *f, const np_part *part, uint64_t capacity)
{
    np_skyline *skyline = NULL;
    for (unsigned turn = 0; turn < N_SWITCHES; turn++) {
        np_skyline_query query = {.capacity = capacity, .max_nodes = 500};
        query.rule = (np_skyline_rule)np_rng_below(&f->rng, NP_SKYLINE_N_RULES);
        query.switches_off = (unsigned)np_rng_below(&f->rng, N_SWITCHES);
        if (turn % 4 == 0) {
            np_skyline_free(skyline);
            ASSERT_OK(np_skyline_create(&f->sections, part, &skyline));
        }
        if (search(f, skyline, part, query) == NP_SKYLINE_IMPOSSIBLE) {
            print_problem(&f->problem);
            test_fail(__FILE__, __LINE__, "capacity %llu was called impossible: rule %d, switches off %u",
                      (unsigned long long)capacity, (int)query.rule, query.switches_off);
        }
    }
    np_skyline_free(skyline);
}

static void check_packed(unsigned seed)
{
    fixture f = {.rng = np_rng_make(seed)};
    problem_shape shape = {.n_buffers = 20 + (uint32_t)np_rng_below(&f.rng, 21)};
    uint64_t capacity = 4 + np_rng_below(&f.rng, 20);
    shape.n_times = 4 + (uint32_t)np_rng_below(&f.rng, 2 * shape.n_buffers);
    shape.max_pieces = 1 + (uint32_t)np_rng_below(&f.rng, 4);
    make_packed(&shape, capacity, (uint32_t)np_rng_below(&f.rng, shape.n_buffers), &f.rng, &f.problem);
    ASSERT_OK(np_sections_make(&f.problem, &f.sections));
    for (size_t p = 0; p < f.sections.parts.n; p++) {
        check_fitting(&f, &f.sections.parts.items[p], capacity - f.sections.base);
    }
    fixture_free(&f);
}

static void test_what_fits_is_never_called_impossible(void **state)
{
    /* These were, when a component's failure was remembered under the floors of another one, whose node its stretch
     * of blame reached. */
    static const unsigned once_wrong[] = {6097, 9470, 18007, 18224, 20670, 23852, 26857, 28556, 31101, 33416, 36559};
    const unsigned n_problems = TEST_SANITIZED ? 300 : 3000;
    (void)state;
    for (size_t i = 0; i < sizeof once_wrong / sizeof *once_wrong; i++) {
        check_packed(once_wrong[i]);
    }
    for (unsigned seed = 0; seed < n_problems; seed++) {
        check_packed(seed);
    }
}

/* All combinations at the load and a little above: what one reaches none may call impossible. */
static void check_agreement(fixture *f, const np_part *part)
{
    uint64_t capacity = part->load;
    bool placed = false;
    for (unsigned n_capacities = 0; n_capacities < 3 && !placed; n_capacities++, capacity++) {
        bool impossible = false;
        np_skyline *skyline = NULL;
        for (unsigned off = 0; off < N_SWITCHES; off++) {
            np_skyline_query query = {.capacity = capacity, .max_nodes = 300, .switches_off = off};
            np_skyline_answer answer;
            if (off % 4 == 0) {
                np_skyline_free(skyline);
                ASSERT_OK(np_skyline_create(&f->sections, part, &skyline));
            }
            query.rule = (np_skyline_rule)np_rng_below(&f->rng, NP_SKYLINE_N_RULES);
            answer = search(f, skyline, part, query);
            placed = placed || answer == NP_SKYLINE_PLACED;
            impossible = impossible || answer == NP_SKYLINE_IMPOSSIBLE;
            if (placed && impossible) {
                print_problem(&f->problem);
                test_fail(__FILE__, __LINE__, "capacity %llu was reached and called impossible, switches off %u",
                          (unsigned long long)capacity, off);
            }
        }
        np_skyline_free(skyline);
    }
}

static void test_switches_agree_on_larger_problems(void **state)
{
    const unsigned n_problems = TEST_SANITIZED ? 20 : 300;
    (void)state;
    for (unsigned seed = 0; seed < n_problems; seed++) {
        fixture f = {.rng = np_rng_make(seed + 1000000)};
        problem_shape shape = {.n_buffers = 15 + (uint32_t)np_rng_below(&f.rng, 26)};
        shape.n_times = shape.n_buffers + (uint32_t)np_rng_below(&f.rng, shape.n_buffers);
        shape.longest = 2 + (uint32_t)np_rng_below(&f.rng, shape.n_times / 3);
        shape.max_size = 2 + (uint32_t)np_rng_below(&f.rng, 8);
        shape.max_pieces = 1 + (uint32_t)np_rng_below(&f.rng, 4);
        shape.n_alike = (uint32_t)np_rng_below(&f.rng, 5);
        shape.n_fixed = (uint32_t)(np_rng_below(&f.rng, 3) ? 0 : np_rng_below(&f.rng, 4));
        fixture_make(&f, &shape);
        for (size_t p = 0; p < f.sections.parts.n; p++) {
            check_agreement(&f, &f.sections.parts.items[p]);
        }
        fixture_free(&f);
    }
}

/* Three that each live two thirds of a circle: two at any time, and no two of them apart. */
static void test_load_is_not_always_reachable(void **state)
{
    const np_piece lives[3][2] = {{{0, 2}}, {{1, 3}}, {{0, 1}, {2, 3}}};
    fixture f = {.rng = np_rng_make(1)};
    const np_part *part;
    (void)state;
    np_problem_init(&f.problem, NULL, 1, 3);
    for (unsigned i = 0; i < 3; i++) {
        ASSERT_OK(np_problem_add(&f.problem, 1, NEAP_NO_OFFSET, lives[i], i < 2 ? 1 : 2));
    }
    ASSERT_OK(np_sections_make(&f.problem, &f.sections));
    ASSERT_EQ(f.sections.load, 2);
    part = &f.sections.parts.items[0];
    ASSERT_EQ(brute_part_optimum(&f.sections, part), 3);
    check_kept_skyline(&f, part, 3);
    check_new_skylines(&f, part, 3, 0, 1);
    fixture_free(&f);
}

/* The middle floor rises to 4 because both of its items are held up, one by what stands in the first section. When the
 * other one is put there, the first section is still part of the reason: were it empty, something could stand below. */
static void test_floors_keep_what_raised_them(void **state)
{
    static const np_piece lives[] = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
    static const uint64_t sizes[] = {4, 1, 1, 4};
    fixture f = {.rng = np_rng_make(1)};
    sky_state sky;
    bool possible = false;
    (void)state;
    np_problem_init(&f.problem, NULL, 1, 3);
    for (unsigned i = 0; i < 4; i++) {
        ASSERT_OK(np_problem_add(&f.problem, sizes[i], NEAP_NO_OFFSET, &lives[i], 1));
    }
    ASSERT_OK(np_sections_make(&f.problem, &f.sections));
    ASSERT_OK(sky_state_init(&sky, &f.sections, &f.sections.parts.items[0]));
    ASSERT_OK(sky_state_reset(&sky, 20, &possible));
    ASSERT_OK(sky_state_place(&sky, 0, 0, &possible));
    ASSERT_EQ(sky.sections[1].floor, 0);
    ASSERT_OK(sky_state_place(&sky, 3, 0, &possible));
    ASSERT_EQ(sky.sections[1].floor, 4);
    ASSERT_TRUE(sky.sections[1].cause_begin == 0 && sky.sections[1].cause_end == 3);
    ASSERT_OK(sky_state_place(&sky, 2, 4, &possible));
    ASSERT_TRUE(possible);
    ASSERT_EQ(sky.sections[1].floor, 5);
    ASSERT_EQ(sky.sections[1].cause_begin, 0);
    ASSERT_TRUE(sky_state_is_valid(&sky));
    sky_state_free(&sky);
    fixture_free(&f);
}

static bool stop_at_once(void *user)
{
    ++*(unsigned *)user;
    return true;
}

static void test_gives_up_when_told(void **state)
{
    problem_shape shape = {.n_buffers = 400, .n_times = 60, .longest = 30, .max_size = 9, .max_pieces = 3};
    fixture f = {.rng = np_rng_make(3)};
    unsigned n_asked = 0;
    np_stop stop = {stop_at_once, &n_asked};
    np_skyline_query query = {.max_nodes = 7, .stop = &stop};
    np_skyline *skyline;
    const np_part *part;
    (void)state;
    fixture_make(&f, &shape);
    part = &f.sections.parts.items[0];
    ASSERT_GT(part->n_items, 300); /* as many nodes at the least */
    ASSERT_OK(np_skyline_create(&f.sections, part, &skyline));
    query.capacity = part->load + 1000;
    ASSERT_EQ(search(&f, skyline, part, query), NP_SKYLINE_GAVE_UP);
    ASSERT_LE(np_skyline_nodes(skyline), 8);
    ASSERT_EQ(n_asked, 0);
    query.max_nodes = MANY_NODES;
    ASSERT_EQ(search(&f, skyline, part, query), NP_SKYLINE_GAVE_UP);
    ASSERT_EQ(n_asked, 1);
    query.stop = NULL;
    ASSERT_EQ(search(&f, skyline, part, query), NP_SKYLINE_PLACED);
    np_skyline_free(skyline);
    fixture_free(&f);
}

/* A skyline and two searches in it, the second a proof. */
static neap_status make_and_search(const neap_memory *memory, void *user)
{
    const problem_shape shape = {
        .n_buffers = 9, .n_times = 12, .max_size = 5, .max_pieces = 3, .n_fixed = *(uint32_t *)user};
    np_rng rng = np_rng_make(11);
    np_problem problem;
    np_problem own;
    np_sections sections;
    np_skyline *skyline = NULL;
    double preference[MAX_ITEMS] = {0};
    uint64_t offsets[MAX_ITEMS];
    np_skyline_answer answer;
    neap_status status = NEAP_OK;
    make_problem(&shape, &rng, NULL, &problem);
    own = problem;
    own.memory = memory; /* nothing is added to it any more */
    status = np_sections_make(&own, &sections);
    if (status == NEAP_OK) {
        const np_part *part = &sections.parts.items[0];
        np_skyline_query query = {.capacity = part->load + 1, .preference = preference, .max_nodes = 1000};
        status = np_skyline_create(&sections, part, &skyline);
        for (; status == NEAP_OK && query.capacity + 1 >= part->load; query.capacity--) {
            status = np_skyline_search(skyline, &query, offsets, &answer);
        }
        np_skyline_free(skyline);
        np_sections_free(&sections);
    }
    np_problem_free(&problem);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    uint32_t n_fixed = 0;
    (void)state;
    ASSERT_GT(test_memory_fail_each(make_and_search, &n_fixed), 15);
    n_fixed = 2;
    ASSERT_GT(test_memory_fail_each(make_and_search, &n_fixed), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_problems_against_brute_force),
        cmocka_unit_test(test_what_fits_is_never_called_impossible),
        cmocka_unit_test(test_switches_agree_on_larger_problems),
        cmocka_unit_test(test_load_is_not_always_reachable),
        cmocka_unit_test(test_floors_keep_what_raised_them),
        cmocka_unit_test(test_gives_up_when_told),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/skyline", tests, NULL, NULL);
}
