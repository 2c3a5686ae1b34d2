/* test_climb.c: climbing, roaming, trimming and leaving out: what is handed over is what it is said to be, within the limit, and no
 * dearer. */
#include "swap/climb.h"

#include <math.h>

#include "base/clock.h"
#include "base/rng.h"
#include "swap/make_timeline.h"
#include "swap/recorded.h"
#include "swap/roam.h"
#include "swap/stall.h"
#include "swap/thrift.h"
#include "swap/trim.h"
#include "testing.h"

static neap_error an_error;

static np_planner planner_for(const np_timeline *timeline, np_link link, uint64_t page)
{
    np_planner planner = {.timeline = timeline, .link = link, .min_block = page > 1000 ? 1 << 20 : 1, .page = page};
    planner.seed = 5;
    planner.n_threads = 1;
    planner.error = &an_error;
    ASSERT_OK(np_simulator_create(timeline, &link, &planner.simulator));
    return planner;
}

/* The judgement, found out again: the simulation, and a layout in which nothing is forgotten. */
static void check(const np_planner *planner, const np_judged *judged)
{
    np_simulation again;
    uint64_t top = 0;
    ASSERT_OK(np_simulate(planner->simulator, judged->limit, judged->swaps.items, (uint32_t)judged->swaps.n, &again));
    ASSERT_TRUE(again.possible);
    ASSERT_TRUE(again.overhead == judged->simulation.overhead);
    ASSERT_EQ(again.peak, judged->simulation.peak);
    ASSERT_EQ(judged->layout.footprint, judged->place.footprint);
    ASSERT_EQ(judged->layout.placed.n, judged->place.n_buffers);
    for (size_t i = 0; i < judged->layout.placed.n; i++) {
        const np_placed *placed = &judged->layout.placed.items[i];
        top = placed->offset + placed->bytes > top ? placed->offset + placed->bytes : top;
    }
    ASSERT_EQ(top, judged->place.footprint);
    ASSERT_LE(judged->place.load, judged->place.footprint);
}

/* A plan for the load, placed in little time. False: there is none. */
static bool plan(np_planner *planner, uint64_t aim, uint64_t limit, np_judged *judged)
{
    np_stall_options options = {.limit = aim,
                                .min_block = planner->min_block,
                                .page = planner->page,
                                .n_rounds = 1,
                                .deadline_ns = np_clock_ns() + 1000000000};
    bool found;
    ASSERT_OK(
        np_stall_search(planner->timeline, &planner->link, &options, &judged->swaps, &judged->simulation, &found));
    if (!found) {
        return false;
    }
    ASSERT_OK(np_planner_judge(planner, aim, 0.02, limit, judged));
    return judged->simulation.possible;
}

/* Fewer swaps, as cheap, and within the limit. How many fewer. */
static uint32_t save(np_planner *planner, uint64_t limit, uint64_t ms, np_judged *judged)
{
    size_t n = judged->swaps.n;
    double overhead = judged->simulation.overhead;
    uint64_t bytes = 0;
    uint64_t bytes_after = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += judged->swaps.items[i].bytes;
    }
    planner->deadline_ns = np_clock_ns() + ms * 1000000;
    ASSERT_OK(np_thrift(planner, limit, judged));
    check(planner, judged);
    ASSERT_LE(judged->place.footprint, limit);
    ASSERT_TRUE(judged->simulation.overhead <= overhead + 2e-6);
    ASSERT_LE(judged->swaps.n, n);
    for (size_t i = 0; i < judged->swaps.n; i++) {
        const np_swap *swap = &judged->swaps.items[i];
        ASSERT_LE(swap->bytes, planner->timeline->gaps.items[swap->gap].bytes);
        bytes_after += swap->bytes;
    }
    ASSERT_LE(bytes_after, bytes);
    return (uint32_t)(n - judged->swaps.n);
}

static void recordings_get_cheaper(void **state)
{
    static const np_link link = {.out = 10, .in = 10};
    uint32_t n_cheaper = 0;
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 1 : 3); i++) {
        np_judged judged = {0}, copy = {0};
        np_climb_options options;
        np_planner planner;
        uint64_t limit, aim;
        double before;
        recorded r;
        recorded_open(&r, recorded_name(i));
        planner = planner_for(&r.timeline, link, 2 << 20);
        limit = r.timeline.peak_load / 10 * 7;
        for (aim = limit; !plan(&planner, aim, limit, &judged) || judged.place.footprint > limit; aim -= limit / 20) {
            ASSERT_GT(aim, limit / 2);
        }
        check(&planner, &judged);
        before = judged.simulation.overhead;
        options = (np_climb_options){.aim = aim, .limit = limit, .deadline_ns = np_clock_ns() + 300000000};
        ASSERT_OK(np_climb(&planner, &options, &judged));
        check(&planner, &judged);
        ASSERT_LE(judged.place.footprint, limit);
        ASSERT_TRUE(judged.simulation.overhead <= before);
        ASSERT_OK(np_judged_copy(&judged, r.timeline.memory, &copy));
        check(&planner, &copy);
        planner.deadline_ns = np_clock_ns() + 200000000;
        ASSERT_OK(np_trim(&planner, limit, &copy));
        check(&planner, &copy);
        ASSERT_LE(copy.place.footprint, limit);
        ASSERT_TRUE(copy.simulation.overhead <= judged.simulation.overhead);
        n_cheaper += copy.simulation.overhead < before;
        (void)save(&planner, limit, 200, &copy);
        np_judged_free(&judged, r.timeline.memory);
        np_judged_free(&copy, r.timeline.memory);
        np_simulator_free(planner.simulator);
        recorded_close(&r);
    }
    ASSERT_GT(n_cheaper, 0);
}

/* Roaming, from a plan that fits and from one that does not. */
static void recordings_are_roamed(void **state)
{
    static const np_link link = {.out = 10, .in = 10};
    uint32_t n_cheaper = 0;
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 1 : 3); i++) {
        np_judged judged = {0}, too_high = {0};
        np_roam_options options;
        np_planner planner;
        uint64_t limit, aim;
        double before;
        recorded r;
        recorded_open(&r, recorded_name(i));
        planner = planner_for(&r.timeline, link, 2 << 20);
        planner.deadline_ns = UINT64_MAX;
        limit = r.timeline.peak_load / 10 * 7;
        ASSERT_TRUE(plan(&planner, limit, limit, &too_high));
        for (aim = limit; !plan(&planner, aim, limit, &judged) || judged.place.footprint > limit; aim -= limit / 20) {
            ASSERT_GT(aim, limit / 2);
        }
        before = judged.simulation.overhead;
        options = (np_roam_options){.aim = aim, .limit = limit, .deadline_ns = np_clock_ns() + 400000000};
        ASSERT_OK(np_roam(&planner, &options, &judged));
        check(&planner, &judged);
        ASSERT_LE(judged.place.footprint, limit);
        ASSERT_TRUE(judged.simulation.overhead <= before);
        n_cheaper += judged.simulation.overhead < before;
        options.deadline_ns = np_clock_ns() + 400000000;
        before = too_high.simulation.overhead;
        ASSERT_OK(np_roam(&planner, &options, &too_high));
        check(&planner, &too_high);
        ASSERT_TRUE(too_high.place.footprint <= limit || too_high.simulation.overhead == before);
        np_judged_free(&judged, r.timeline.memory);
        np_judged_free(&too_high, r.timeline.memory);
        np_simulator_free(planner.simulator);
        recorded_close(&r);
    }
    ASSERT_GT(n_cheaper, 0);
}

/* Not far below the load, where blocks leave in parts for nothing. */
static void recordings_need_fewer(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_judged judged = {0};
    np_planner planner;
    uint64_t limit, aim;
    recorded r;
    (void)state;
    recorded_open(&r, recorded_name(0));
    planner = planner_for(&r.timeline, link, 2 << 20);
    limit = r.timeline.peak_load / 100 * 80;
    for (aim = limit; !plan(&planner, aim, limit, &judged) || judged.place.footprint > limit; aim -= limit / 20) {
        ASSERT_GT(aim, limit / 2);
    }
    ASSERT_GT(judged.swaps.n, 3);
    ASSERT_GT(save(&planner, limit, TEST_SANITIZED ? 10000 : 2000, &judged), 0);
    np_judged_free(&judged, r.timeline.memory);
    np_simulator_free(planner.simulator);
    recorded_close(&r);
}

/* From plans that need not fit, on timelines of all kinds. */
static void small_ones_stay_right(void **state)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 10, .max_bytes = 64, .reads = true};
    np_rng rng = np_rng_make(8);
    uint32_t n_planned = 0, n_fitted = 0, n_fewer = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 12 : 60); round++) {
        np_link link = {.out = 1 + 10 * np_rng_unit(&rng), .in = 1 + 10 * np_rng_unit(&rng)};
        np_judged judged = {0};
        np_timeline timeline;
        np_planner planner;
        uint64_t limit;
        make_random_timeline(&small, &rng, NULL, &timeline);
        planner = planner_for(&timeline, link, 1 + np_rng_below(&rng, 8));
        limit = timeline.peak_load - np_rng_below(&rng, timeline.peak_load / 2 + 1);
        if (plan(&planner, limit, limit, &judged)) {
            bool fitted = judged.place.footprint <= limit;
            double before = judged.simulation.overhead;
            np_climb_options options = {
                .aim = limit, .limit = limit, .seed = (uint64_t)round, .deadline_ns = np_clock_ns() + 5000000};
            ASSERT_OK(np_climb(&planner, &options, &judged));
            check(&planner, &judged);
            if (fitted) {
                ASSERT_LE(judged.place.footprint, limit);
                ASSERT_TRUE(judged.simulation.overhead <= before);
            }
            n_planned++;
            n_fitted += judged.place.footprint <= limit;
            if (judged.place.footprint <= limit) {
                n_fewer += save(&planner, limit, 5, &judged);
            }
        }
        np_judged_free(&judged, timeline.memory);
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_planned, 5);
    ASSERT_GT(n_fitted, 2);
    ASSERT_GT(n_fewer, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_get_cheaper),
        cmocka_unit_test(recordings_are_roamed),
        cmocka_unit_test(recordings_need_fewer),
        cmocka_unit_test(small_ones_stay_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
