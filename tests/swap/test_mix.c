#include "swap/mix.h"

#include <math.h>
#include <string.h>

#include "swap/make_timeline.h"
#include "testing.h"

static const random_timeline medium = {.max_execs = 60, .max_blocks = 40, .max_bytes = 100, .reads = false};

static void standardises(void **state)
{
    double scores[] = {1, 2, 3, 4};
    double equal[] = {0.1, 0.1, 0.1};
    (void)state;
    np_mix_standardise(scores, 4); /* mean 2.5, variance 1.25 */
    assert_true(fabs(scores[0] + 1.5 / sqrt(1.25)) < 1e-12);
    assert_true(fabs(scores[2] - 0.5 / sqrt(1.25)) < 1e-12);
    np_mix_standardise(equal, 3);
    assert_true(equal[0] == 0 && equal[2] == 0);
    np_mix_standardise(scores, 0);
}

typedef struct setting {
    np_timeline timeline;
    np_candidates candidates;
    np_link link;
    np_swap_task task;
} setting;

/* A limit for which something must be done, on a slow link. */
static void set_up(setting *set, np_rng *rng)
{
    uint64_t room;
    make_random_timeline(&medium, rng, NULL, &set->timeline);
    ASSERT_OK(
        np_candidates_find(&set->timeline, np_rng_below(rng, 2) ? NP_SCOPE_PEAK : NP_SCOPE_ALL, 1, &set->candidates));
    room = set->timeline.peak_load - set->candidates.load_min;
    set->link = (np_link){.out = 2, .in = 3, .both = np_rng_below(rng, 2) ? 4 : 0, .latency_ns = 1};
    set->task = (np_swap_task){.timeline = &set->timeline, .link = &set->link, .candidates = &set->candidates};
    set->task.limit = set->candidates.load_min + np_rng_below(rng, room + 1);
    ASSERT_OK(np_simulator_create(&set->timeline, &set->link, &set->task.simulator));
}

static void tear_down(setting *set)
{
    np_simulator_free(set->task.simulator);
    np_candidates_free(&set->candidates);
    np_timeline_free(&set->timeline);
}

/* The least overhead of the four scores, unmixed. */
static double best_of_four(const setting *set)
{
    double best = INFINITY;
    for (np_score kind = 0; kind < NP_N_SCORES; kind++) {
        double scores[512];
        np_swap swaps[512];
        uint32_t n_swaps;
        np_simulation simulation;
        ASSERT_LT(set->candidates.gaps.n, 512);
        ASSERT_OK(np_score_candidates(&set->timeline, &set->link, &set->candidates, kind, scores));
        ASSERT_OK(np_select_and_simulate(&set->task, scores, swaps, &n_swaps, &simulation));
        ASSERT_TRUE(simulation.possible);
        best = fmin(best, simulation.overhead);
    }
    return best;
}

static void assert_mix(const setting *set, const np_mix *mix, const np_swap *swaps, uint32_t n_swaps)
{
    np_simulation simulation;
    ASSERT_OK(np_simulate(set->task.simulator, set->task.limit, swaps, n_swaps, &simulation));
    assert_true(simulation.overhead == mix->simulation.overhead); /* of these very swaps */
    ASSERT_TRUE(mix->simulation.possible);
    ASSERT_LE(mix->simulation.peak, set->task.limit);
    ASSERT_LE(mix->n_evaluations, 30);
    ASSERT_TRUE(mix->n_evaluations == 30 || mix->simulation.overhead == 0);
    for (int i = 0; i < NP_N_SCORES; i++) {
        assert_true(fabs(mix->weights[i]) <= 1);
    }
}

/* Never worse than the best of the four, better now and then, and the same for the same seed. */
static void mixes(void **state)
{
    np_rng rng = np_rng_make(6);
    int n_better = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 10 : 60); round++) {
        setting set;
        np_swap swaps[512], same[512];
        uint32_t n_swaps = 0, n_same = 0;
        np_mix mix, again;
        double best;
        set_up(&set, &rng);
        best = best_of_four(&set);
        ASSERT_OK(np_mix_scores(&set.task, 30, 7, swaps, &n_swaps, &mix));
        assert_mix(&set, &mix, swaps, n_swaps);
        assert_true(mix.simulation.overhead <= best);
        n_better += mix.simulation.overhead < best;
        ASSERT_OK(np_mix_scores(&set.task, 30, 7, same, &n_same, &again));
        ASSERT_EQ(n_swaps, n_same);
        ASSERT_EQ(memcmp(mix.weights, again.weights, sizeof mix.weights), 0);
        for (uint32_t i = 0; i < n_swaps; i++) {
            ASSERT_EQ(swaps[i].gap, same[i].gap);
        }
        tear_down(&set);
    }
    ASSERT_GE(n_better, TEST_SANITIZED ? 1 : 10);
}

/* The simulator keeps scratch memory of its own, so that each attempt needs a new one. */
static neap_status mix_once(const neap_memory *memory, void *user)
{
    setting set = *(setting *)user;
    np_swap swaps[512];
    uint32_t n_swaps;
    np_mix mix;
    neap_status status;
    set.timeline.memory = memory;
    set.task.timeline = &set.timeline;
    status = np_simulator_create(&set.timeline, &set.link, &set.task.simulator);
    if (status == NEAP_OK) {
        status = np_mix_scores(&set.task, 14, 8, swaps, &n_swaps, &mix);
        np_simulator_free(set.task.simulator);
    }
    return status;
}

static void survives_no_memory(void **state)
{
    np_rng rng = np_rng_make(9);
    setting set;
    (void)state;
    set_up(&set, &rng);
    set.task.limit = set.candidates.load_min;
    ASSERT_GT(test_memory_fail_each(mix_once, &set), 20);
    tear_down(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standardises),
        cmocka_unit_test(mixes),
        cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
