#include "swap/bound.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "swap/fluid.h"
#include "testing.h"

static const np_link one_a_ns = {.out = 1, .in = 1};

static uint64_t peak_of(const fluid_program *program, const np_link *link, double overhead)
{
    np_timeline timeline;
    uint64_t peak = 0;
    fluid_timeline(program, &timeline);
    ASSERT_TRUE(np_timeline_is_valid(&timeline));
    ASSERT_OK(np_bound_peak(&timeline, link, overhead, &peak));
    np_timeline_free(&timeline);
    return peak;
}

/* ---- worked out by hand ---- */

/* A weight of 100 bytes is written by exec 0; exec 1 and 2 fill a block of 80. Four execs of 10 ns, pauses of 5. */
static const fluid_program weight_and_block = {
    .n_execs = 4,
    .n_blocks = 2,
    .pause_ns = {5, 5, 5, 5},
    .duration_ns = {10, 10, 10, 10},
    .blocks = {{.bytes = 100, .persistent = true, .n_uses = 1, .uses = {{0, true}}},
               {.bytes = 80, .n_uses = 2, .uses = {{1, true}, {2, true}}}},
};

static void test_way_out(void **state)
{
    (void)state;
    /* From the end of exec 0 to the start of exec 1 are 5 ns: 5 bytes can be gone then. */
    ASSERT_EQ(peak_of(&weight_and_block, &one_a_ns, 0), 175);
    ASSERT_EQ(peak_of(&weight_and_block, &(np_link){.out = 2, .in = 100}, 0), 170);
    /* A tenth of the 60 ns more: 6 bytes. */
    ASSERT_EQ(peak_of(&weight_and_block, &one_a_ns, 0.1), 169);
}

static void test_way_in(void **state)
{
    (void)state;
    /* Out is fast; from the end of exec 2 to the next exec 0 are 20 ns. */
    ASSERT_EQ(peak_of(&weight_and_block, &(np_link){.out = 1000, .in = 1}, 0), 160);
    ASSERT_EQ(peak_of(&weight_and_block, &(np_link){.out = 1000, .in = 1}, 0.1), 154);
    /* Nothing is lower than the weight itself. */
    ASSERT_EQ(peak_of(&weight_and_block, &(np_link){.out = 1000, .in = 1000}, 0), 100);
}

static void test_unchanged_block_needs_no_way_out(void **state)
{
    fluid_program program = weight_and_block;
    (void)state;
    program.blocks[0].uses[0].writes = false;
    ASSERT_EQ(peak_of(&program, &(np_link){.out = 1, .in = 1}, 0), 160); /* the way in alone */
}

/* Weight 0 is used by exec 3, weight 1 by exec 1. While exec 2 runs, one leaves and the other comes, byte for byte:
 * only 40 bytes are ever there. */
static void test_bytes_change_places_while_an_exec_runs(void **state)
{
    fluid_program program = {
        .n_execs = 4,
        .n_blocks = 2,
        .duration_ns = {100, 1, 40, 1},
        .blocks = {{.bytes = 40, .persistent = true, .n_uses = 1, .uses = {{3, true}}},
                   {.bytes = 40, .persistent = true, .n_uses = 1, .uses = {{1, true}}}},
    };
    (void)state;
    ASSERT_EQ(peak_of(&program, &one_a_ns, 0), 40);
    ASSERT_TRUE(fabs(fluid_peak(&program, &one_a_ns, 0) - 40) < 1e-3);
    program.duration_ns[2] = 30; /* 10 bytes find no time to change */
    ASSERT_EQ(peak_of(&program, &one_a_ns, 0), 50);
    ASSERT_TRUE(fabs(fluid_peak(&program, &one_a_ns, 0) - 50) < 1e-3);
    ASSERT_EQ(peak_of(&program, &(np_link){.out = 1, .in = 0.5}, 0), 65);
    ASSERT_TRUE(fabs(fluid_peak(&program, &(np_link){.out = 1, .in = 0.5}, 0) - 65) < 1e-3);
}

static void test_floor(void **state)
{
    np_timeline timeline;
    np_floor floor;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_OK(np_bound_floor(&timeline, &floor));
    ASSERT_EQ(floor.bytes, 100);
    ASSERT_EQ(floor.exec, 0);
    np_timeline_free(&timeline);
    fluid_program program = weight_and_block;
    program.blocks[1].bytes = 120;
    fluid_timeline(&program, &timeline);
    ASSERT_OK(np_bound_floor(&timeline, &floor));
    ASSERT_EQ(floor.bytes, 120);
    ASSERT_EQ(floor.exec, 1);
    np_timeline_free(&timeline);
}

static void test_bad_arguments(void **state)
{
    np_timeline timeline;
    uint64_t peak = 7;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_bound_peak(&timeline, &(np_link){.out = 0, .in = 1}, 0, &peak));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_bound_peak(&timeline, &(np_link){.out = 1, .in = (double)NAN}, 0, &peak));
    ASSERT_EQ(peak, 7);
    np_timeline_free(&timeline);
    timeline = (np_timeline){.memory = np_memory_or_default(NULL)}; /* no execs */
    ASSERT_OK(np_bound_peak(&timeline, &one_a_ns, 0, &peak));
    ASSERT_EQ(peak, 0);
}

/* ---- against the optimum ---- */

typedef struct tally {
    uint32_t n_between; /* programs whose optimum is between the floor and the most needed */
    uint32_t n_equal;   /* of these */
} tally;

static void compare_one(uint64_t seed, const np_link *link, double overhead, tally *t)
{
    np_rng rng = np_rng_make(seed);
    fluid_program program = fluid_random(&rng, 8, 6);
    np_timeline timeline;
    np_floor floor;
    uint64_t most = 0;
    double bound = (double)peak_of(&program, link, overhead);
    double best;
    fluid_timeline(&program, &timeline);
    ASSERT_OK(np_bound_floor(&timeline, &floor));
    for (uint32_t k = 0; k < timeline.n_execs; k++) {
        most = timeline.needed.items[k] > most ? timeline.needed.items[k] : most;
    }
    best = fluid_peak(&program, link, overhead * timeline.period_ns);
    np_timeline_free(&timeline);
    if (!(bound <= best + 1)) { /* bytes, of thousands; NAN too */
        test_fail(__FILE__, __LINE__, "seed %llu: bound %.1f above the optimum %.1f", (unsigned long long)seed, bound,
                  best);
    }
    if (best > (double)floor.bytes + 1 && best < (double)most - 1) {
        t->n_between++;
        t->n_equal += bound >= best - 1;
    }
}

static tally compare_many(const np_link *link, double overhead)
{
    uint64_t n = TEST_SANITIZED ? 400 : 4000;
    tally t = {0};
    for (uint64_t seed = 0; seed < n; seed++) {
        compare_one(seed, link, overhead, &t);
    }
    ASSERT_GE(t.n_between, n / 20);
    return t;
}

static void test_never_above_the_optimum(void **state)
{
    static const np_link links[] = {{.out = 1000, .in = 1000}, {.out = 700, .in = 1900}, {.out = 2500, .in = 400}};
    (void)state;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        tally t = compare_many(&links[i], 0);
        ASSERT_EQ(t.n_equal, t.n_between); /* without overhead it is the optimum */
    }
}

static void test_never_above_with_overhead(void **state)
{
    tally t = compare_many(&(np_link){.out = 1000, .in = 1000}, 0.1);
    (void)state;
    ASSERT_GE(t.n_equal * 4, t.n_between); /* each window may have all of the overhead here */
}

static void test_never_above_on_a_shared_link(void **state)
{
    tally t = compare_many(&(np_link){.out = 1000, .in = 1000, .both = 1500}, 0);
    (void)state;
    ASSERT_GE(t.n_equal * 4, t.n_between * 3);
}

/* ---- the traces ---- */

/* Reductions in per cent of the peak load at 50 GB/s each way, as the traces' README has them. Its bound takes it that
 * no byte comes in for another that leaves while an exec runs, which is why the true one can be further from the peak
 * by what one exec's time is worth: `more` points, where that exceeds the rounding. */
static const struct {
    const char *name;
    double bound, any, floor;
    double more, more_any;
} readme[] = {
    {"vgg11-100-32", 38.3, 38.3, 77.5, 0, 0},          {"vgg13-100-32", 30.7, 36.5, 81.2, 0, 0},
    {"vgg16-100-32", 29.2, 33.1, 76.2, 0, 0},          {"resnet18-100-32", 21.7, 34.4, 86.6, 0, 0},
    {"resnet50-100-32", 12.5, 18.8, 88.9, 0, 0},       {"resnet152-100-32", 12.5, 19.9, 94.8, 0, 0},
    {"vgg11-100-32-fp32", 39.5, 39.5, 79.3, 0, 0},     {"vgg16-100-32-fp32", 15.7, 34.9, 38.8, 0, 0},
    {"resnet18-100-32-fp32", 27.8, 39.1, 51.2, 0, 0},  {"resnet50-100-32-fp32", 28.0, 34.3, 86.7, 0, 0},
    {"resnet152-100-32-fp32", 31.8, 39.2, 93.8, 0, 0}, {"vgg16-64-224", 13.5, 13.5, 62.3, 0, 0},
    {"resnet50-64-224", 9.9, 13.9, 89.4, 0, 0},        {"gpt2-8", 19.8, 28.8, 68.7, 0, 0},
    {"gpt2-bf16-16", 9.5, 12.0, 61.1, 0, 0},           {"vit-64-224", 33.2, 43.7, 95.0, 0, 0.3},
    {"mobilenet-64", 8.6, 10.0, 82.0, 0, 0},           {"lstm-64", 24.5, 32.9, 42.5, 0.5, 0},
    {"resnet18-100-log", 24.9, 37.2, 86.6, 0, 0},      {"lstm-64-alt", 30.6, 38.3, 47.1, 0.5, 0},
};

#define N_README (sizeof readme / sizeof readme[0])

static void compare_figure(const char *name, const char *what, double expected, double more, double bytes, double load)
{
    double percent = 100 * (1 - bytes / load);
    if (percent < expected - 0.3 || percent > expected + 0.3 + more) {
        test_fail(__FILE__, __LINE__, "%s: %s is %.2f, expected %.1f", name, what, percent, expected);
    }
}

static void compare_trace(size_t index, const char *path)
{
    const np_link link = {.out = 50, .in = 50};
    neap_trace *trace = NULL;
    neap_info *info = NULL;
    neap_error error;
    np_period period;
    double load;
    ASSERT_OK(neap_trace_read(path, NULL, &error, &trace));
    ASSERT_OK(neap_info_make(trace, 512, NULL, &error, &info));
    ASSERT_OK(np_period_find(trace, NULL, &period));
    load = (double)info->peak_load;
    for (int any = 0; any < 2; any++) {
        np_timeline_options options = {
            .alignment = 512, .slower = 1, .directions = any ? NP_DIRECTIONS_ANY : NP_DIRECTIONS_CAREFUL};
        np_timeline timeline;
        uint64_t peak;
        np_floor floor;
        ASSERT_OK(np_timeline_make(&period, &options, NULL, &timeline));
        ASSERT_TRUE(np_timeline_is_valid(&timeline));
        ASSERT_OK(np_bound_peak(&timeline, &link, 0, &peak));
        ASSERT_OK(np_bound_floor(&timeline, &floor));
        compare_figure(readme[index].name, any ? "bound for any directions" : "bound",
                       any ? readme[index].any : readme[index].bound, any ? readme[index].more_any : readme[index].more,
                       (double)peak, load);
        compare_figure(readme[index].name, "floor", readme[index].floor, 0, (double)floor.bytes, load);
        np_timeline_free(&timeline);
    }
    np_period_free(&period);
    neap_info_free(info);
    neap_trace_free(trace);
}

static void test_own_traces(void **state)
{
    static const char *const own[] = {"gpt2-8",           "lstm-64",      "resnet18-100-32-fp32",
                                      "resnet18-100-log", "vgg11-100-32", "vgg16-100-32"};
    (void)state;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        for (size_t r = 0; r < N_README; r++) {
            char file[128];
            char path[TEST_PATH_BYTES];
            if (strcmp(own[i], readme[r].name) == 0) {
                snprintf(file, sizeof file, "traces/%s.neap.gz", own[i]);
                test_data_path(path, file);
                compare_trace(r, path);
            }
        }
    }
}

static void test_shared_traces(void **state)
{
    size_t n_compared = 0;
    (void)state;
    for (size_t r = 0; r < N_README; r++) {
        char file[128];
        char path[TEST_PATH_BYTES];
        snprintf(file, sizeof file, "traces/%s.neap.gz", readme[r].name);
        if (test_shared_path(path, file)) {
            compare_trace(r, path);
            n_compared++;
        }
    }
    if (n_compared < N_README) {
        SKIP("%zu of %zu recordings are not there", N_README - n_compared, N_README);
    }
}

/* ---- memory ---- */

static neap_status bounds_with(const neap_memory *memory, void *user)
{
    np_timeline timeline = *(const np_timeline *)user;
    np_floor floor = {0, 0};
    uint64_t peak = 3;
    neap_status status;
    timeline.memory = memory;
    status = np_bound_peak(&timeline, &one_a_ns, 0, &peak);
    if (status == NEAP_OK) {
        status = np_bound_floor(&timeline, &floor);
    } else {
        ASSERT_EQ(peak, 3);
    }
    return status;
}

static void test_no_memory(void **state)
{
    np_timeline timeline;
    (void)state;
    fluid_timeline(&weight_and_block, &timeline);
    ASSERT_GE(test_memory_fail_each(bounds_with, &timeline), 5);
    np_timeline_free(&timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_way_out),
        cmocka_unit_test(test_way_in),
        cmocka_unit_test(test_unchanged_block_needs_no_way_out),
        cmocka_unit_test(test_bytes_change_places_while_an_exec_runs),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_never_above_the_optimum),
        cmocka_unit_test(test_never_above_with_overhead),
        cmocka_unit_test(test_never_above_on_a_shared_link),
        cmocka_unit_test(test_own_traces),
        cmocka_unit_test(test_shared_traces),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
