/* test_patterns.c: programs with several kinds of iterations get a plan for each, and are followed without departures
 * once their order is known; programs that change for good get a new plan. */
#include "base/rng.h"
#include "run/little_program.h"
#include "testing.h"

/* A program as a schedule of iterations. */
typedef little_twist schedule(little_program *p, uint32_t lap);

static neap_stats run(little_program *p, schedule *of, uint32_t from, uint32_t n)
{
    for (uint32_t lap = from; lap < from + n; lap++) {
        little_lap(p, of(p, lap));
    }
    little_check(p);
    return little_stats(p);
}

static const little_twist plain = {LITTLE_PLAIN, 0};

/* After `n_learning` iterations there are so many plans, and none is left any more. `n_in_period`: iterations that the
 * plan takes for one. */
static void learn(schedule *of, double share, uint32_t n_learning, uint32_t n_patterns, uint32_t n_in_period)
{
    little_options options = {.device = {.limit_share = share}};
    little_program p;
    neap_stats before;
    neap_stats after;
    little_start(&p, &options);
    before = run(&p, of, 0, n_learning);
    after = run(&p, of, n_learning, 60);
    ASSERT_EQ(after.n_patterns, n_patterns);
    ASSERT_EQ(after.n_departures, before.n_departures);
    ASSERT_EQ(after.n_iterations, before.n_iterations + 60 / n_in_period);
    ASSERT_EQ(after.state, NEAP_STATE_RUN);
    ASSERT_TRUE(share == 0 || after.held <= after.limit);
    little_end(&p);
}

static void learn_all(schedule *of, uint32_t n_learning, uint32_t n_patterns)
{
    learn(of, 0, n_learning, n_patterns, 1);
    learn(of, 0.6, n_learning, n_patterns, 1);
}

/* ---- now and then ---- */

static little_twist logs_every_5(little_program *p, uint32_t lap)
{
    (void)p;
    return lap % 5 == 4 ? (little_twist){LITTLE_EXTRA_WORK, 5} : plain;
}

static little_twist logs_every_50(little_program *p, uint32_t lap)
{
    (void)p;
    return lap % 50 == 49 ? (little_twist){LITTLE_EXTRA_WORK, 5} : plain;
}

static void test_logging_step(void **state)
{
    (void)state;

    learn_all(logs_every_5, 30, 2);
    learn_all(logs_every_50, 210, 2);
}

static little_twist cut_every_4(little_program *p, uint32_t lap)
{
    (void)p;
    return lap % 4 == 3 ? (little_twist){LITTLE_CUT_SHORT, 2} : plain;
}

static void test_cut_short(void **state)
{
    (void)state;
    learn_all(cut_every_4, 30, 2);
}

/* Ten iterations, three evaluations. */
static little_twist evaluates(little_program *p, uint32_t lap)
{
    (void)p;
    return lap % 13 >= 10 ? (little_twist){LITTLE_FORWARD_ONLY, 0} : plain;
}

static void test_evaluation(void **state)
{
    (void)state;
    learn_all(evaluates, 13 * 6, 2);
}

/* ---- in no order, beneath a program ---- */

/* Which kind is next cannot be known: a step that logs parts from the others in the midst of its forward pass, an evaluation
 * after it. */
static little_twist drawn(little_program *p, uint32_t lap)
{
    np_rng rng = np_rng_make(lap + 1);
    uint64_t kind = lap < 12 ? 0 : np_rng_below(&rng, 3);
    (void)p;
    return kind == 0   ? plain
           : kind == 1 ? (little_twist){LITTLE_EXTRA_WORK, 5}
                       : (little_twist){LITTLE_FORWARD_ONLY, 0};
}

/* Of two lengths, one of which is not seen before the plan. */
static little_twist drawn_lengths(little_program *p, uint32_t lap)
{
    np_rng rng = np_rng_make(lap + 1);
    p->options.act_bytes = (lap >= 12 && np_rng_below(&rng, 2) == 0 ? 5 : 8) * LITTLE_PAGE;
    return plain;
}

static void learn_beneath(schedule *of, double share, bool has_crossing, uint32_t n_patterns)
{
    little_options options = {.device = {.limit_share = share}, .has_crossing = has_crossing};
    little_program p;
    neap_stats before;
    neap_stats after;
    little_open(&p, &options);
    np_beneath_begin(p.device, 1, 0);
    little_begin(&p);
    before = run(&p, of, 0, 160);
    after = run(&p, of, 160, 200);
    ASSERT_EQ(after.n_departures, before.n_departures);
    ASSERT_EQ(after.n_iterations, before.n_iterations + 200);
    ASSERT_GE(after.n_patterns, n_patterns);
    ASSERT_TRUE(share == 0 || after.held <= after.limit);
    little_end(&p);
}

static void test_drawn(void **state)
{
    (void)state;
    for (int crossing = 0; crossing <= 1; crossing++) {
        learn_beneath(drawn, 0, crossing, 3);
        learn_beneath(drawn, 0.7, crossing, 3);
        learn_beneath(drawn_lengths, 0, crossing, 2);
    }
    learn_beneath(drawn_lengths, 0.7, false,
                  2); /* a block of another length that lives on has no room within the limit */
}

/* ---- shapes in turn ---- */

static little_twist two_shapes(little_program *p, uint32_t lap)
{
    p->options.act_bytes = (lap > 12 && lap % 2 ? 5 : 8) * LITTLE_PAGE;
    return plain;
}

static little_twist three_shapes(little_program *p, uint32_t lap)
{
    static const uint8_t sizes[] = {8, 5, 8, 7};
    p->options.act_bytes = (uint64_t)sizes[lap > 12 ? lap % 4 : 0] * LITTLE_PAGE;
    return plain;
}

/* From the first iteration on: two of them are one period. */
static little_twist two_shapes_always(little_program *p, uint32_t lap)
{
    p->options.act_bytes = (lap % 2 ? 5 : 8) * LITTLE_PAGE;
    return plain;
}

static void test_shapes(void **state)
{
    (void)state;
    learn(two_shapes_always, 0, 20, 1, 2);
    learn(two_shapes_always, 0.6, 20, 1, 2);
    learn_all(two_shapes, 40, 2);
    learn_all(three_shapes, 60, 3);
}

/* ---- for good ---- */

/* The new loop gets a plan, and the old one, though it begins alike, is not entered any more. */
static void change_for_good(double share, bool begins_alike)
{
    little_options options = {.device = {.limit_share = share}};
    little_program p;
    neap_stats before;
    neap_stats after;
    const np_pattern *old;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 5);
    old = p.device->pattern;
    if (begins_alike) {
        p.options.n_layers = 5; /* the loss comes where a layer was */
    } else {
        p.options.act_bytes = 7 * LITTLE_PAGE;
    }
    little_laps(&p, 20);
    before = little_stats(&p);
    ASSERT_EQ(before.state, NEAP_STATE_RUN);
    ASSERT_TRUE(p.device->pattern != old);
    little_laps(&p, 20);
    after = little_stats(&p);
    ASSERT_EQ(after.n_departures, before.n_departures);
    ASSERT_EQ(after.n_iterations, before.n_iterations + 20);
    ASSERT_TRUE(p.device->pattern != old);
    ASSERT_EQ(after.n_patterns, 2);
    ASSERT_TRUE(share == 0 || after.held <= after.limit);
    p.options.n_layers = 6;
    little_end(&p);
}

static void test_for_good(void **state)
{
    (void)state;
    change_for_good(0, false);
    change_for_good(0, true);
    change_for_good(0.6, false);
    change_for_good(0.6, true);
}

/* And back again: the first plan is still known. */
static void test_and_back(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    little_program p;
    neap_stats stats;
    (void)state;
    little_start(&p, &options);
    little_laps(&p, 12);
    p.options.act_bytes = 7 * LITTLE_PAGE;
    little_laps(&p, 20);
    stats = little_stats(&p);
    p.options.act_bytes = 8 * LITTLE_PAGE;
    little_laps(&p, 5);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_GE(little_stats(&p).n_iterations, stats.n_iterations + 4);
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    little_end(&p);
}

/* ---- too many ---- */

/* One of twenty kinds of iterations that begin alike. */
static little_twist kind_of(uint64_t kind)
{
    return kind < 10 ? (little_twist){LITTLE_EXTRA_WORK, (uint32_t)kind}
                     : (little_twist){LITTLE_CUT_SHORT, (uint32_t)kind - 10};
}

/* More kinds of iterations than there can be plans for, in any order or one after the other. */
static void many_patterns(double share, bool in_any_order)
{
    little_options options = {.n_layers = 10, .act_bytes = 4 * LITTLE_PAGE, .device = {.limit_share = share}};
    little_program p;
    neap_stats stats;
    np_rng rng = np_rng_make(1);
    little_start(&p, &options);
    little_laps(&p, 10);
    for (uint32_t lap = 0; lap < 240; lap++) {
        little_lap(&p, kind_of(in_any_order ? np_rng_below(&rng, 20) : lap / 12));
        ASSERT_LE(little_stats(&p).n_patterns, NP_MAX_PATTERNS);
        ASSERT_TRUE(share == 0 || little_stats(&p).held <= little_stats(&p).limit);
    }
    little_check(&p);
    stats = little_stats(&p);
    ASSERT_EQ(stats.n_patterns, NP_MAX_PATTERNS);
    p.options.act_bytes = 5 * LITTLE_PAGE; /* one more, and this one stays */
    little_laps(&p, 20);
    stats = little_stats(&p);
    little_laps(&p, 20);
    ASSERT_EQ(little_stats(&p).n_departures, stats.n_departures);
    ASSERT_EQ(little_stats(&p).n_iterations, stats.n_iterations + 20);
    ASSERT_EQ(little_stats(&p).n_patterns, NP_MAX_PATTERNS);
    little_end(&p);
}

static void test_too_many(void **state)
{
    (void)state;
    many_patterns(0, true);
    many_patterns(0, false);
    many_patterns(0.7, true);
    many_patterns(0.7, false);
}

/* Those that have not come for long make room for one that begins like them. */
static void test_makes_room(void **state)
{
    little_options options = {.n_layers = 10, .act_bytes = 4 * LITTLE_PAGE, .device = {.limit_share = 0.7}};
    little_program p;
    neap_stats stats;
    (void)state;
    little_start(&p, &options);
    little_laps(&p, 10);
    for (uint32_t lap = 0; lap < 10 * (NP_MAX_PATTERNS - 1); lap++) {
        little_lap(&p, kind_of(lap / 10));
    }
    ASSERT_EQ(little_stats(&p).n_patterns, NP_MAX_PATTERNS);
    for (uint32_t lap = 0; lap < NP_HISTORY + 20; lap++) {
        little_lap(&p, kind_of(NP_MAX_PATTERNS));
    }
    stats = little_stats(&p);
    for (uint32_t lap = 0; lap < 20; lap++) {
        little_lap(&p, kind_of(NP_MAX_PATTERNS));
    }
    ASSERT_EQ(little_stats(&p).n_iterations, stats.n_iterations + 20);
    ASSERT_EQ(little_stats(&p).n_departures, stats.n_departures);
    ASSERT_EQ(little_stats(&p).n_patterns, NP_MAX_PATTERNS);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logging_step), cmocka_unit_test(test_cut_short), cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_drawn),        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_for_good),
        cmocka_unit_test(test_and_back),     cmocka_unit_test(test_too_many),  cmocka_unit_test(test_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
