/* test_away.c: where everything leaves that can, and what of it comes to stay: each plan is within the limit, what it is
 * said to be, and no dearer; what a layout does not ask for is left out, and its places hold without it. */
#include "swap/away.h"

#include "base/clock.h"
#include "base/rng.h"
#include "swap/bound.h"
#include "swap/make_timeline.h"
#include "swap/recorded.h"
#include "swap/vacate.h"
#include "testing.h"

static neap_error an_error;

static np_planner planner_for(const np_timeline *timeline, np_link link, uint64_t page)
{
    np_planner planner = {.timeline = timeline, .link = link, .min_block = page > 1000 ? 1 << 20 : 1, .page = page};
    planner.seed = 5;
    planner.n_threads = 1;
    planner.deadline_ns = np_clock_ns() + 1000000000;
    planner.error = &an_error;
    ASSERT_OK(np_simulator_create(timeline, &link, &planner.simulator));
    return planner;
}

/* The judgement, found out again. */
static void check(const np_planner *planner, uint64_t limit, const np_judged *judged)
{
    np_simulation again;
    ASSERT_OK(np_simulate(planner->simulator, judged->limit, judged->swaps.items, (uint32_t)judged->swaps.n, &again));
    ASSERT_TRUE(again.possible);
    ASSERT_TRUE(again.overhead == judged->simulation.overhead);
    ASSERT_EQ(judged->layout.footprint, judged->place.footprint);
    ASSERT_LE(judged->place.footprint, limit);
    for (size_t i = 0; i < judged->swaps.n; i++) {
        const np_swap *swap = &judged->swaps.items[i];
        const np_gap *gap = &planner->timeline->gaps.items[swap->gap];
        ASSERT_GT(swap->bytes, 0);
        ASSERT_LE(swap->bytes, gap->bytes);
        ASSERT_TRUE(gap->from <= swap->in_after && swap->in_after < gap->to);
        ASSERT_TRUE(swap->out_before == 0 || (gap->from < swap->out_before && swap->out_before < gap->to));
    }
}

/* ---- by hand ---- */

static const double tens[] = {10, 10, 10, 10, 10, 10, 10, 10};

typedef struct by_hand {
    np_timeline timeline;
    np_planner planner;
    np_judged judged;
    np_swap_array asked;
} by_hand;

/* A timeline of 8 execs, with the first gap whole, absent all through it. */
static void begin(by_hand *h, const block_shape *blocks, uint32_t n_blocks)
{
    const timeline_shape shape = {.n_execs = 8, .durations_ns = tens, .blocks = blocks, .n_blocks = n_blocks};
    const np_gap *gap;
    np_swap swap = {0};
    *h = (by_hand){0};
    make_timeline(&shape, NULL, &h->timeline);
    h->planner = planner_for(&h->timeline, (np_link){.out = 10, .in = 10}, 10);
    gap = &h->timeline.gaps.items[0];
    swap = (np_swap){.bytes = gap->bytes, .in_after = gap->to - 1, .out_before = gap->from + 1};
    swap.out_key = gap->release_ns;
    ASSERT_OK(np_array_push(h->timeline.memory, &h->judged.swaps, swap));
    ASSERT_OK(np_planner_judge(&h->planner, UINT64_MAX, 0.01, 0, &h->judged));
    ASSERT_TRUE(h->judged.simulation.possible);
}

static void vacate(by_hand *h, bool keeps_views)
{
    np_vacate_options options = {.page = 10, .keeps_views = keeps_views};
    ASSERT_OK(np_vacate(&h->timeline, &options, h->judged.swaps.items, &h->judged.layout, &h->asked));
}

static void end(by_hand *h)
{
    np_array_free(h->timeline.memory, &h->asked);
    np_judged_free(&h->judged, h->timeline.memory);
    np_simulator_free(h->planner.simulator);
    np_timeline_free(&h->timeline);
}

/* A block of 4 pages that is away during execs 1 to 6; another of 2 is there for execs 3 and 4 alone, in its bytes. */
static void leaves_for_visitors_alone(void **state)
{
    static const block_shape blocks[] = {{.bytes = 40, .n_uses = 2, .uses = {0, 7}},
                                         {.bytes = 20, .n_uses = 2, .uses = {3, 4}}};
    by_hand h;
    (void)state;
    begin(&h, blocks, 2);
    ASSERT_EQ(h.judged.place.footprint, 40);
    vacate(&h, false);
    ASSERT_EQ(h.asked.n, 1);
    ASSERT_EQ(h.asked.items[0].bytes, 20); /* of its first bytes, wherever they stood before */
    ASSERT_EQ(h.asked.items[0].out_before, 3);
    ASSERT_EQ(h.asked.items[0].in_after, 4);
    end(&h);
}

/* Nobody comes: it stays, or a page of it leaves where views are kept. */
static void stays_where_nobody_comes(void **state)
{
    static const block_shape blocks[] = {{.bytes = 40, .persistent = true, .n_uses = 2, .uses = {0, 6}}};
    by_hand h;
    (void)state;
    begin(&h, blocks, 1);
    vacate(&h, false);
    ASSERT_EQ(h.asked.n, 0);
    vacate(&h, true);
    ASSERT_EQ(h.asked.n, 1);
    ASSERT_EQ(h.asked.items[0].bytes, 10);
    ASSERT_EQ(h.asked.items[0].out_before, 0);
    end(&h);
}

/* ---- at random ---- */

/* What is asked for is no more than there was, and the layout holds for it, but for blocks that came to be in one piece. */
static void check_vacated(np_planner *planner, const np_judged *judged, uint32_t *n_held, uint32_t *n_possible)
{
    const neap_memory *memory = planner->timeline->memory;
    np_vacate_options options = {.page = planner->page, .keeps_views = true};
    np_place_options places = np_planner_place_options(planner, 0, judged->place.footprint);
    np_judged copy = {0};
    np_swap_array asked = {0};
    np_layout layout;
    np_place_result place;
    np_simulation simulation;
    uint64_t excess;
    uint64_t bytes = 0;
    ASSERT_OK(np_judged_copy(judged, memory, &copy));
    ASSERT_OK(np_vacate(planner->timeline, &options, copy.swaps.items, &copy.layout, &asked));
    ASSERT_LE(asked.n, copy.swaps.n);
    for (size_t i = 0; i < asked.n; i++) {
        bytes += asked.items[i].bytes;
    }
    ASSERT_LE(bytes, judged->simulation.bytes_in);
    ASSERT_OK(np_simulate(planner->simulator, judged->limit, asked.items, (uint32_t)asked.n, &simulation));
    if (simulation.possible) {
        ASSERT_OK(np_place_near(planner->timeline, planner->simulator, asked.items, (uint32_t)asked.n, &places,
                                &copy.layout, 12, &an_error, &place, &layout, &excess));
        *n_possible += 1;
        *n_held += excess == 0;
        np_layout_free(&layout);
    }
    np_array_free(memory, &asked);
    np_judged_free(&copy, memory);
}

static void small_ones_stay_right(void **state)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 10, .max_bytes = 64, .reads = true};
    np_rng rng = np_rng_make(21);
    uint32_t n_fitted = 0, n_cheaper = 0, n_held = 0, n_possible = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 40 : 300); round++) {
        np_link link = {.out = 1 + 10 * np_rng_unit(&rng), .in = 1 + 10 * np_rng_unit(&rng)};
        np_judged judged = {0};
        np_timeline timeline;
        np_planner planner;
        uint64_t limit;
        bool fits;
        make_random_timeline(&small, &rng, NULL, &timeline);
        planner = planner_for(&timeline, link, 1 + np_rng_below(&rng, 8));
        limit = timeline.peak_load - np_rng_below(&rng, timeline.peak_load / 2 + 1);
        ASSERT_OK(np_away_begin(&planner, limit, 0.005, &judged, &fits));
        if (fits) {
            double before = judged.simulation.overhead;
            check(&planner, limit, &judged);
            check_vacated(&planner, &judged, &n_held, &n_possible);
            ASSERT_OK(np_away_improve(&planner, limit, np_clock_ns() + 5000000, (uint64_t)round, &judged));
            check(&planner, limit, &judged);
            ASSERT_TRUE(judged.simulation.overhead <= before);
            n_fitted++;
            n_cheaper += judged.simulation.overhead < before;
        }
        np_judged_free(&judged, timeline.memory);
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_fitted, 10);
    ASSERT_GT(n_cheaper, 5);
    ASSERT_GE(20 * n_held, 19 * n_possible);
}

typedef struct given {
    np_timeline timeline;
    np_judged judged;
} given;

static neap_status vacate_within(const neap_memory *memory, void *user)
{
    given *g = user;
    np_vacate_options options = {.page = 1, .keeps_views = true};
    np_timeline timeline = g->timeline;
    np_swap_array asked = {0};
    neap_status status;
    timeline.memory = memory;
    status = np_vacate(&timeline, &options, g->judged.swaps.items, &g->judged.layout, &asked);
    np_array_free(memory, &asked);
    return status;
}

static void fails_without_memory(void **state)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 10, .max_bytes = 64, .reads = true};
    np_rng rng = np_rng_make(3);
    np_planner planner;
    given g = {0};
    bool fits;
    (void)state;
    make_random_timeline(&small, &rng, NULL, &g.timeline);
    planner = planner_for(&g.timeline, (np_link){.out = 1, .in = 1}, 1);
    ASSERT_OK(np_away_begin(&planner, g.timeline.peak_load * 2, 0.01, &g.judged, &fits));
    ASSERT_TRUE(fits);
    ASSERT_GT(test_memory_fail_each(vacate_within, &g), 5);
    np_judged_free(&g.judged, g.timeline.memory);
    np_simulator_free(planner.simulator);
    np_timeline_free(&g.timeline);
}

/* Not far above what one exec needs at once, where a load that is planned has no places. */
static void recordings_get_close_to_the_floor(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 1 : 3); i++) {
        np_judged judged = {0};
        np_planner planner;
        np_floor floor;
        uint64_t limit;
        double before;
        recorded r;
        bool fits;
        recorded_open(&r, recorded_name(i));
        planner = planner_for(&r.timeline, link, 2 << 20);
        ASSERT_OK(np_bound_floor(&r.timeline, &floor));
        limit = floor.bytes + (r.timeline.peak_load - floor.bytes) / 4;
        ASSERT_OK(np_away_begin(&planner, limit, 1, &judged, &fits));
        ASSERT_TRUE(fits);
        check(&planner, limit, &judged);
        before = judged.simulation.overhead;
        planner.deadline_ns = np_clock_ns() + 1000000000;
        ASSERT_OK(np_away_improve(&planner, limit, planner.deadline_ns, 1, &judged));
        check(&planner, limit, &judged);
        ASSERT_TRUE(judged.simulation.overhead < before);
        np_judged_free(&judged, r.timeline.memory);
        np_simulator_free(planner.simulator);
        recorded_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_for_visitors_alone),
        cmocka_unit_test(stays_where_nobody_comes),
        cmocka_unit_test(small_ones_stay_right),
        cmocka_unit_test(fails_without_memory),
        cmocka_unit_test(recordings_get_close_to_the_floor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
