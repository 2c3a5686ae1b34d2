#include "swap/planner.h"

#include <math.h>

#include "base/clock.h"
#include "swap/bound.h"
#include "swap/bound_overhead.h"
#include "swap/make_timeline.h"
#include "swap/recorded.h"
#include "testing.h"

static const random_timeline small = {.max_execs = 16, .max_blocks = 10, .max_bytes = 64, .reads = true};

static neap_error an_error;

static np_planner planner_for(const np_timeline *timeline, np_link link, uint64_t page, double seconds)
{
    np_planner planner = {.timeline = timeline, .link = link, .min_block = page > 1000 ? 1 << 20 : 1, .page = page};
    planner.seed = 5;
    planner.n_threads = 1;
    planner.deadline_ns = np_clock_ns() + (uint64_t)(1e9 * seconds);
    planner.error = &an_error;
    ASSERT_OK(np_simulator_create(timeline, &link, &planner.simulator));
    return planner;
}

static np_link random_link(np_rng *rng)
{
    np_link link = {.out = 1 + 10 * np_rng_unit(rng), .in = 1 + 10 * np_rng_unit(rng)};
    link.latency_ns = np_rng_below(rng, 2) ? 1 : 0;
    link.both = np_rng_below(rng, 2) ? link.out + link.in - 1 : 0;
    return link;
}

/* What is said of a plan, found out again from its swaps alone. */
static void check_judgement(const np_planner *planner, uint64_t limit, const np_judged *judged)
{
    const np_timeline *timeline = planner->timeline;
    uint32_t n = (uint32_t)judged->swaps.n;
    uint64_t load = 0;
    np_simulator *simulator;
    np_simulation again;
    ASSERT_OK(np_simulator_create(timeline, &planner->link, &simulator));
    ASSERT_OK(np_simulate(simulator, limit, judged->swaps.items, n, &again));
    ASSERT_TRUE(again.possible);
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        uint64_t present = timeline->needed.items[k];
        for (uint32_t i = 0; i < n; i++) {
            np_absence absence = np_simulator_absence(simulator, i);
            for (uint32_t at = absence.absent_from; at < absence.back_from; at++) {
                bool inside = at < timeline->gaps.items[judged->swaps.items[i].gap].to;
                present -= inside && at % timeline->n_execs == k ? judged->swaps.items[i].bytes : 0;
            }
        }
        load = present > load ? present : load;
    }
    np_simulator_free(simulator);
    ASSERT_EQ(judged->place.load, load);
    ASSERT_TRUE(again.overhead == judged->simulation.overhead);
    ASSERT_EQ(again.peak, judged->simulation.peak);
    ASSERT_LE(judged->simulation.peak, limit);
    ASSERT_GE(judged->place.bound, load);
    ASSERT_GE(judged->place.footprint, judged->place.bound);
}

static uint64_t footprint_without_swaps(const np_planner *planner)
{
    np_place_options options = {.seconds = 0.05, .page = planner->page, .seed = 1, .n_threads = 1};
    np_simulation simulation;
    np_place_result result;
    ASSERT_OK(np_simulate(planner->simulator, UINT64_MAX, NULL, 0, &simulation));
    ASSERT_OK(np_place_swaps(planner->timeline, planner->simulator, NULL, 0, &options, &an_error, &result, NULL));
    return result.footprint;
}

/* ---- no overhead ---- */

static void plans_without_overhead_have_none(void **state)
{
    np_rng rng = np_rng_make(14);
    uint32_t n_lower = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 8 : 24); round++) {
        np_timeline timeline;
        np_planner planner;
        np_judged best = {0};
        uint64_t lowest, bound, without;
        make_random_timeline(&small, &rng, NULL, &timeline);
        planner = planner_for(&timeline, random_link(&rng), 1 + np_rng_below(&rng, 8), 0.02);
        ASSERT_OK(np_plan_without_overhead(&planner, 0, &best, &lowest));
        ASSERT_TRUE(best.simulation.overhead == 0);
        check_judgement(&planner, best.limit, &best);
        ASSERT_OK(np_bound_peak(&timeline, &planner.link, 0, &bound));
        ASSERT_GE(lowest, bound);
        ASSERT_GE(best.simulation.peak, bound);
        without = footprint_without_swaps(&planner);
        ASSERT_LE(best.place.footprint, without); /* swapping nothing is a plan too */
        n_lower += best.place.footprint < without;
        np_judged_free(&best, timeline.memory);
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_lower, 3);
}

/* Between two execs as well: a copy in may have begun, and a copy out not ended. */
static void peaks_are_within_footprints(void **state)
{
    np_rng rng = np_rng_make(2);
    uint32_t n_within = 0; /* plans that had to be held to their footprint, or need a higher one */
    (void)state;
    for (int round = 0; round < 500; round++) {
        np_timeline timeline;
        np_planner planner;
        np_judged best = {0};
        uint64_t lowest;
        make_random_timeline(&small, &rng, NULL, &timeline);
        planner = planner_for(&timeline, random_link(&rng), 1 + np_rng_below(&rng, 8), 0.01);
        ASSERT_OK(np_plan_without_overhead(&planner, 0, &best, &lowest));
        ASSERT_TRUE(best.simulation.overhead * timeline.period_ns < 0.01); /* ns: fillings are as exact as that */
        ASSERT_LE(best.simulation.peak, best.place.footprint);
        ASSERT_LE(best.place.bound, best.place.footprint);
        n_within += best.limit < UINT64_MAX || best.simulation.peak > best.place.load;
        np_judged_free(&best, timeline.memory);
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_within, 0);
}

/* A tenth of an iteration may be lost, and no more than that is; the deadline is the caller's again. */
static void some_overhead_may_be_allowed(void **state)
{
    static const np_link link = {.out = 50, .in = 50};
    np_judged best = {0}, none = {0};
    np_planner planner;
    uint64_t lowest, bound, deadline_ns;
    recorded r;
    (void)state;
    recorded_open(&r, recorded_name(0));
    planner = planner_for(&r.timeline, link, 2 << 20, 0.2);
    ASSERT_OK(np_plan_without_overhead(&planner, 0, &none, &lowest));
    ASSERT_TRUE(none.simulation.overhead == 0);
    ASSERT_GE(none.place.footprint, lowest);
    planner.deadline_ns = deadline_ns = np_clock_ns() + 500000000;
    ASSERT_OK(np_plan_without_overhead(&planner, 0.1, &best, &lowest));
    ASSERT_EQ(planner.deadline_ns, deadline_ns);
    ASSERT_TRUE(best.simulation.overhead <= 0.1);
    ASSERT_OK(np_bound_peak(&r.timeline, &planner.link, 0.1, &bound));
    ASSERT_GE(best.simulation.peak, bound);
    ASSERT_LE(lowest, best.simulation.peak);
    np_judged_free(&best, r.timeline.memory);
    np_judged_free(&none, r.timeline.memory);
    np_simulator_free(planner.simulator);
    recorded_close(&r);
}

/* ---- under a limit ---- */

static void check_methods(np_planner *planner, uint64_t limit, uint32_t *n_found)
{
    const np_timeline *timeline = planner->timeline;
    double overheads[NEAP_SWAP_N_METHODS];
    np_swap_array swaps = {0};
    np_simulation said, again;
    double bound_ns;
    ASSERT_OK(np_bound_overhead(timeline, &planner->link, limit, &bound_ns));
    for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
        bool found;
        planner->deadline_ns = np_clock_ns() + 5000000;
        ASSERT_OK(np_plan_load(planner, (neap_swap_method)method, limit, &swaps, &said, &found));
        overheads[method] = found ? said.overhead : INFINITY;
        if (found) {
            ASSERT_OK(np_simulate(planner->simulator, limit, swaps.items, (uint32_t)swaps.n, &again));
            ASSERT_TRUE(again.possible && again.overhead == said.overhead);
            ASSERT_LE(again.peak, limit);
            ASSERT_TRUE(said.overhead >= bound_ns / timeline->period_ns - 1e-9);
            ++*n_found;
        }
    }
    ASSERT_TRUE(overheads[NEAP_SWAP_SEARCH] <= overheads[NEAP_SWAP_BO]);
    for (int method = NEAP_SWAP_DOA; method <= NEAP_SWAP_SWDOA; method++) {
        ASSERT_TRUE(overheads[NEAP_SWAP_BO] <= overheads[method]);
    }
    np_array_free(timeline->memory, &swaps);
}

static void methods_hold_the_limit(void **state)
{
    np_rng rng = np_rng_make(15);
    uint32_t n_found = 0, n_rounds = TEST_SANITIZED ? 6 : 12;
    (void)state;
    for (uint32_t round = 0; round < n_rounds; round++) {
        np_timeline timeline;
        np_planner planner;
        np_floor floor;
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        planner = planner_for(&timeline, random_link(&rng), 1 + np_rng_below(&rng, 8), 1);
        check_methods(&planner, floor.bytes + np_rng_below(&rng, timeline.peak_load - floor.bytes + 1), &n_found);
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_found, n_rounds * 3);
}

static void footprints_hold_the_limit(void **state)
{
    np_rng rng = np_rng_make(16);
    uint32_t n_found = 0, n_rounds = TEST_SANITIZED ? 6 : 12;
    (void)state;
    for (uint32_t round = 0; round < n_rounds; round++) {
        neap_swap_method method = (neap_swap_method)(round % NEAP_SWAP_N_METHODS);
        np_timeline timeline;
        np_planner planner;
        np_judged best = {0};
        np_floor floor;
        uint64_t limit;
        double bound_ns;
        neap_status status;
        make_random_timeline(&small, &rng, NULL, &timeline);
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        limit = floor.bytes + np_rng_below(&rng, timeline.peak_load - floor.bytes + 1);
        planner = planner_for(&timeline, random_link(&rng), 1 + np_rng_below(&rng, 8), 0.01);
        status = np_plan_within_limit(&planner, method, limit, &best);
        ASSERT_EQ(planner.seed, 5);
        if (status != NEAP_NO_PLAN) {
            ASSERT_OK(status);
            ASSERT_LE(best.place.footprint, limit);
            ASSERT_LE(best.place.load, limit);
            ASSERT_LE(best.simulation.peak, limit);
            ASSERT_OK(np_bound_overhead(&timeline, &planner.link, limit, &bound_ns));
            ASSERT_TRUE(best.simulation.overhead >= bound_ns / timeline.period_ns - 1e-9);
            n_found++;
        }
        np_judged_free(&best, timeline.memory);
        if (floor.bytes > 0) {
            ASSERT_STATUS(NEAP_NO_PLAN, np_plan_within_limit(&planner, method, floor.bytes - 1, &best));
            np_judged_free(&best, timeline.memory);
        }
        np_simulator_free(planner.simulator);
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_found, n_rounds / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_without_overhead_have_none), cmocka_unit_test(peaks_are_within_footprints),
        cmocka_unit_test(some_overhead_may_be_allowed),     cmocka_unit_test(methods_hold_the_limit),
        cmocka_unit_test(footprints_hold_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
