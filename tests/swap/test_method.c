/* The paper's five methods on recorded training loops. */
#include "swap/method.h"

#include <math.h>
#include <string.h>

#include "swap/bound.h"
#include "swap/make_timeline.h"
#include "testing.h"

static const np_link fifty = {.out = 50, .in = 50};

typedef struct recording {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
    uint64_t peak; /* bytes needed at most */
    np_floor floor;
} recording;

static void open_recording(const char *name, recording *made)
{
    np_timeline_options options = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_CAREFUL};
    char path[TEST_PATH_BYTES];
    test_data_path(path, name);
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &made->trace));
    ASSERT_OK(np_period_find(made->trace, NULL, &made->period));
    ASSERT_OK(np_timeline_make(&made->period, &options, NULL, &made->timeline));
    ASSERT_OK(np_bound_floor(&made->timeline, &made->floor));
    made->peak = 0;
    for (uint32_t k = 0; k < made->timeline.n_execs; k++) {
        uint64_t needed = made->timeline.needed.items[k];
        made->peak = needed > made->peak ? needed : made->peak;
    }
}

static void close_recording(recording *made)
{
    np_timeline_free(&made->timeline);
    np_period_free(&made->period);
    neap_trace_free(made->trace);
}

/* The load by plan, with what was chosen away from the execs inside its gaps. */
static void assert_limit_held(const np_timeline *timeline, const np_chosen *chosen, uint64_t limit)
{
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        uint64_t load = timeline->needed.items[k];
        for (size_t i = 0; i < chosen->swaps.n; i++) {
            const np_gap *gap = &timeline->gaps.items[chosen->swaps.items[i].gap];
            bool inside = (gap->from < k && k < gap->to) || k + timeline->n_execs < gap->to;
            load -= inside ? chosen->swaps.items[i].bytes : 0;
        }
        ASSERT_LE(load, limit);
    }
    ASSERT_TRUE(chosen->simulation.possible);
    ASSERT_LE(chosen->simulation.peak, limit);
}

static void try_limit(const recording *made, uint64_t limit)
{
    double best = INFINITY;
    double weights[NP_N_SCORES] = {0};
    for (np_method method = 0; method < NP_N_METHODS; method++) {
        np_method_options options = {.method = method, .limit = limit, .seed = 1};
        np_chosen chosen;
        memcpy(options.weights, weights, sizeof weights);
        ASSERT_OK(np_swap_by_method(&made->timeline, &fifty, &options, &chosen));
        assert_limit_held(&made->timeline, &chosen, limit);
        if (method == NP_METHOD_BO) {
            assert_true(chosen.simulation.overhead <= best);
            memcpy(weights, chosen.weights, sizeof weights);
        } else if (method == NP_METHOD_WEIGHTS) { /* the best mix, given: the same plan */
            assert_true(chosen.simulation.overhead == best);
            ASSERT_EQ(memcmp(chosen.weights, weights, sizeof weights), 0);
        } else {
            ASSERT_EQ(chosen.n_evaluations, 1);
            assert_true(chosen.weights[method] == 1);
        }
        best = fmin(best, chosen.simulation.overhead);
        np_chosen_free(&chosen);
    }
}

/* From just below the peak to the floor itself. */
static void sweep(const char *name)
{
    recording made;
    np_method_options options = {.method = NP_METHOD_DOA};
    np_chosen chosen;
    int n_steps = TEST_SANITIZED ? 2 : 5;
    open_recording(name, &made);
    for (int step = 1; step <= n_steps; step++) {
        uint64_t range = made.peak - made.floor.bytes;
        try_limit(&made, made.peak - range * (uint64_t)step / (uint64_t)n_steps);
    }
    options.limit = made.floor.bytes - 1;
    ASSERT_STATUS(NEAP_NO_PLAN, np_swap_by_method(&made.timeline, &fifty, &options, &chosen));
    close_recording(&made);
}

static void vgg16(void **state)
{
    (void)state;
    sweep("traces/vgg16-100-32.neap.gz");
}

static void resnet18(void **state)
{
    (void)state;
    sweep("traces/resnet18-100-32-fp32.neap.gz");
}

static void resnet18_of_three_iterations(void **state)
{
    (void)state;
    sweep("traces/resnet18-100-log.neap.gz");
}

static void gpt2(void **state)
{
    (void)state;
    sweep("traces/gpt2-8.neap.gz");
}

static void lstm(void **state)
{
    (void)state;
    sweep("traces/lstm-64.neap.gz");
}

/* A tenth of vgg16's peak costs nothing on this link. */
static void a_tenth_for_nothing(void **state)
{
    recording made;
    np_method_options options = {.method = NP_METHOD_BO};
    np_chosen chosen;
    (void)state;
    open_recording("traces/vgg16-100-32.neap.gz", &made);
    options.limit = made.peak / 10 * 9;
    ASSERT_OK(np_swap_by_method(&made.timeline, &fifty, &options, &chosen));
    assert_true(chosen.simulation.overhead == 0);
    ASSERT_EQ(chosen.scope, NP_SCOPE_PEAK);
    np_chosen_free(&chosen);
    close_recording(&made);
}

static neap_status choose_once(const neap_memory *memory, void *user)
{
    np_timeline timeline = *(np_timeline *)user;
    np_method_options options = {.method = NP_METHOD_SWDOA, .min_bytes = 1, .limit = timeline.peak_load - 1};
    np_chosen chosen;
    neap_status status;
    timeline.memory = memory;
    status = np_swap_by_method(&timeline, &fifty, &options, &chosen);
    if (status == NEAP_OK) {
        np_chosen_free(&chosen);
    }
    return status;
}

static void survives_no_memory(void **state)
{
    static const double durations[] = {5, 5, 5, 5};
    static const block_shape blocks[] = {{.bytes = 10, .n_uses = 2, .uses = {0, 3}},
                                         {.bytes = 5, .n_uses = 2, .uses = {1, 2}}};
    static const timeline_shape shape = {.n_execs = 4, .durations_ns = durations, .blocks = blocks, .n_blocks = 2};
    np_timeline timeline;
    (void)state;
    make_timeline(&shape, NULL, &timeline);
    ASSERT_GT(test_memory_fail_each(choose_once, &timeline), 10);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vgg16),
        cmocka_unit_test(resnet18),
        cmocka_unit_test(resnet18_of_three_iterations),
        cmocka_unit_test(gpt2),
        cmocka_unit_test(lstm),
        cmocka_unit_test(a_tenth_for_nothing),
        cmocka_unit_test(survives_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
