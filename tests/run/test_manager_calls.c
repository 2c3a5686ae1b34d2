/* test_manager_calls.c: the calls one by one: what they refuse, what they allow, what they leave behind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/little_program.h"
#include "testing.h"

#define SIM "sim:page=4KiB,memory=1MiB,streams=2"

static neap_device *open_device(const char *name, const neap_device_options *options)
{
    neap_device *device = NULL;
    neap_error error;
    ASSERT_OK(neap_open(name, options, NULL, &error, &device));
    return device;
}

static neap_stats stats_of(neap_device *device)
{
    neap_stats stats;
    neap_get_stats(device, &stats);
    return stats;
}

/* ---- opening ---- */

static void test_options(void **state)
{
    static const neap_device_options bad[] = {
        {.limit_share = -0.1}, {.limit_share = 1.1},  {.limit_share = NAN},
        {.plan_seconds = -1},  {.plan_seconds = NAN}, {.mode = (neap_mode)2},
    };
    neap_device *device = NULL;
    neap_error error;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        error.text[0] = '\0';
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_open(SIM, &bad[i], NULL, &error, &device));
        ASSERT_TRUE(device == NULL && error.text[0] != '\0');
    }
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_open("abacus", NULL, NULL, &error, &device));
    neap_close(open_device(SIM, NULL));
    neap_close(NULL);
}

/* For ever is a time for planning, too. */
static void test_endless_planning(void **state)
{
    little_options options = {.device = {.plan_seconds = INFINITY}};
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_end(&p);
}

/* ---- malloc and free ---- */

static void test_malloc_sizes(void **state)
{
    static const uint64_t sizes[] = {1, 511, 512, 513, 4095, 4096, 4097, 65536, 500000};
    neap_device *device = open_device(SIM, NULL);
    neap_block *blocks[9];
    neap_block *none = NULL;
    (void)state;
    for (int i = 0; i < 9; i++) {
        ASSERT_OK(neap_malloc(device, sizes[i], &blocks[i]));
        ASSERT_EQ(neap_block_bytes(blocks[i]), sizes[i]);
        ASSERT_EQ((uintptr_t)neap_data(blocks[i]) % 512, 0);
    }
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_malloc(device, 0, &none));
    ASSERT_TRUE(none == NULL && neap_device_error()[0] != '\0');
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(device, UINT64_MAX, &none));
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(device, (1 << 20) + 1, &none));
    ASSERT_TRUE(none == NULL);
    ASSERT_OK(neap_free(device, NULL));
    ASSERT_STR_EQ(neap_device_error(), ""); /* it did not fail */
    ASSERT_EQ(stats_of(device).n_events, 9);
    for (int i = 0; i < 9; i++) {
        ASSERT_OK(neap_free(device, blocks[i]));
    }
    ASSERT_EQ(stats_of(device).live, 0);
    neap_close(device);
}

/* Where blocks come from the host's allocator, the device is as large as it was said to be all the same. */
static void test_plain_memory(void **state)
{
    neap_device_options options = {.mode = NEAP_MODE_PLAIN};
    neap_device *device = open_device("cpu:page=4KiB,memory=64KiB", &options);
    neap_block *blocks[2];
    neap_block *none = NULL;
    (void)state;
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(device, 64 * 1024 + 1, &none));
    ASSERT_OK(neap_malloc(device, 40 * 1024, &blocks[0]));
    ASSERT_OK(neap_malloc(device, 24 * 1024, &blocks[1]));
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(device, 1, &none));
    ASSERT_CONTAINS(neap_device_error(), "65536");
    ASSERT_OK(neap_free(device, blocks[0]));
    ASSERT_OK(neap_malloc(device, 40 * 1024, &blocks[0]));
    neap_close(device);
}

/* Freed twice, made up, or another device's: refused, and nothing is changed. */
static void test_free_twice(void **state)
{
    static const char *const names[] = {SIM, "cpu:memory=16MiB"};
    static const uint64_t sizes[] = {100, 100000};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
        neap_device_options options = {.mode = i < 2 ? NEAP_MODE_PLAN : NEAP_MODE_PLAIN};
        neap_device *device = open_device(names[i % 2], &options);
        neap_device *other = open_device(SIM, NULL);
        for (int k = 0; k < 2; k++) {
            neap_block *block;
            neap_block *kept;
            ASSERT_OK(neap_malloc(device, sizes[k], &block));
            ASSERT_OK(neap_malloc(device, sizes[k], &kept));
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(other, block));
            ASSERT_OK(neap_free(device, block));
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(device, block));
            ASSERT_CONTAINS(neap_device_error(), "freed before");
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(device, (neap_block *)(void *)((char *)kept + 8)));
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(device, (neap_block *)(void *)&options));
            ASSERT_EQ(stats_of(device).live, sizes[k]);
            ASSERT_OK(neap_free(device, kept));
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(device, block));
            ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(device, kept));
        }
        ASSERT_EQ(stats_of(device).n_events, 8);
        ASSERT_EQ(stats_of(device).live, 0);
        neap_close(other);
        neap_close(device);
    }
}

/* user: the blocks of activations as they were last. */
static void note_acts(little_program *p)
{
    neap_block **seen = p->user;
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        seen[i] = p->acts[i + 1].block ? p->acts[i + 1].block : seen[i];
    }
}

static void test_free_twice_on_the_plan(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    neap_block *freed[LITTLE_LAYERS] = {NULL};
    neap_stats before;
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    p.user = freed;
    p.after_event = note_acts;
    little_laps(&p, 2);
    before = little_stats(&p);
    for (uint32_t i = 0; i < p.options.n_layers; i++) {
        ASSERT_TRUE(freed[i] != NULL);
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_free(p.device, freed[i]));
    }
    ASSERT_EQ(little_stats(&p).n_events, before.n_events);
    ASSERT_EQ(little_stats(&p).n_departures, before.n_departures);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    little_laps(&p, 2);
    little_end(&p);
}

/* ---- exec ---- */

static void count_run(void *arg)
{
    int *n;
    memcpy(&n, arg, sizeof n);
    ++*n;
}

static void test_exec_arguments(void **state)
{
    neap_device *device = open_device(SIM, NULL);
    neap_use *uses = calloc((size_t)UINT16_MAX + 1, sizeof *uses);
    static char argument[NEAP_ARG_MAX + 1];
    static const char *const names[] = {NULL, "", "two words", "tab\there", "line\n", "\x7f", " "};
    neap_block *block;
    int n_run = 0;
    int *counter = &n_run;
    neap_work work = {.name = "fine", .run = count_run, .arg = argument, .arg_bytes = NEAP_ARG_MAX};
    (void)state;
    ASSERT_TRUE(uses != NULL);
    memcpy(argument, &counter, sizeof counter);
    ASSERT_OK(neap_malloc(device, 100, &block));
    for (size_t i = 0; i <= UINT16_MAX; i++) {
        uses[i] = (neap_use){block, NEAP_ACCESS_READ};
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        neap_work bad = work;
        bad.name = names[i];
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_exec(device, &bad, uses, 1));
        ASSERT_CONTAINS(neap_device_error(), "2 streams");
    }
    work.stream = 2;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_exec(device, &work, uses, 1));
    work.stream = 1;
    work.arg_bytes++;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_exec(device, &work, uses, 1));
    work.arg_bytes--;
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_exec(device, &work, uses, (size_t)UINT16_MAX + 1));
    ASSERT_EQ(n_run, 0);
    ASSERT_OK(neap_exec(device, &work, uses, UINT16_MAX)); /* the same block over and over is one use */
    ASSERT_OK(neap_exec(device, &work, NULL, 0));
    ASSERT_STR_EQ(neap_device_error(), "");
    ASSERT_OK(neap_sync(device));
    ASSERT_EQ(n_run, 2);
    ASSERT_EQ(stats_of(device).n_events, 3);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_stream_wait(device, 2, 0));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_stream_wait(device, 0, 2));
    ASSERT_OK(neap_stream_wait(device, 1, 0));
    ASSERT_OK(neap_stream_wait(device, 1, 1));
    free(uses);
    neap_close(device);
}

/* A block named twice is one use, on the plan and off it; read here and written there, it is both. */
static void test_twins(void **state)
{
    little_options options = {.device = {.limit_share = 0.6}};
    little_program p;
    neap_trace *trace;
    const neap_event *events;
    const neap_access *accesses;
    size_t n;
    neap_use uses[4];
    neap_work work = {.name = "twins", .duration_ns = 10000};
    (void)state;
    little_start(&p, &options);
    for (int lap = 0; lap < 8; lap++) {
        little_lap(&p, (little_twist){LITTLE_PLAIN, 0});
        uses[0] = uses[2] = (neap_use){p.weights[0].block, NEAP_ACCESS_READ};
        uses[1] = (neap_use){p.weights[1].block, NEAP_ACCESS_READ};
        uses[3] = (neap_use){p.weights[1].block, NEAP_ACCESS_UNKNOWN};
        ASSERT_OK(neap_exec(p.device, &work, uses, 4));
        if (lap == 0) {
            ASSERT_OK(neap_device_trace(p.device, NULL, NULL, &trace));
            events = neap_trace_events(trace, &n);
            accesses = neap_trace_accesses(trace, &n);
            ASSERT_EQ(events[12 + 48].n_accesses, 2);
            ASSERT_EQ(accesses[events[12 + 48].first_access].kind, NEAP_ACCESS_READ);
            ASSERT_EQ(accesses[events[12 + 48].first_access + 1].kind, NEAP_ACCESS_UNKNOWN);
            neap_trace_free(trace);
        }
    }
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    little_end(&p);
}

/* As many blocks as there may be, each once. */
static void test_many_uses(void **state)
{
    enum { N = TEST_SANITIZED ? 5000 : UINT16_MAX };
    neap_device *device = open_device("sim:page=64KiB,memory=64MiB", NULL);
    neap_use *uses = calloc(N, sizeof *uses);
    neap_work work = {.name = "all"};
    (void)state;
    ASSERT_TRUE(uses != NULL);
    for (size_t i = 0; i < N; i++) {
        ASSERT_OK(neap_malloc(device, 512, &uses[i].block));
        uses[i].kind = NEAP_ACCESS_WRITE;
    }
    ASSERT_OK(neap_exec(device, &work, uses, N));
    uses[N - 1].block = uses[0].block;
    ASSERT_OK(neap_exec(device, &work, uses, N));
    free(uses);
    neap_close(device);
}

/* ---- read and write ---- */

static void test_bounds(void **state)
{
    static const uint64_t bad[][2] = {{0, 1001}, {1000, 1}, {1001, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}, {500, 501}};
    neap_device *device = open_device(SIM, NULL);
    unsigned char bytes[1000];
    unsigned char again[1000];
    neap_block *block;
    (void)state;
    ASSERT_OK(neap_malloc(device, 1000, &block));
    for (int i = 0; i < 1000; i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_write(device, block, bad[i][0], bytes, bad[i][1]));
        ASSERT_CONTAINS(neap_device_error(), "of a block of 1000");
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_read(device, block, bad[i][0], again, bad[i][1]));
        ASSERT_CONTAINS(neap_device_error(), "of a block of 1000");
    }
    ASSERT_EQ(stats_of(device).n_events, 1);
    ASSERT_OK(neap_write(device, block, 0, bytes, 1000));
    ASSERT_STR_EQ(neap_device_error(), "");
    ASSERT_OK(neap_write(device, block, 1000, NULL, 0));
    ASSERT_OK(neap_read(device, block, 0, NULL, 0));
    ASSERT_OK(neap_write(device, block, 999, bytes, 1));
    ASSERT_OK(neap_read(device, block, 0, again, 1000));
    ASSERT_EQ(memcmp(bytes, again, 999), 0);
    ASSERT_EQ(again[999], bytes[0]);
    ASSERT_OK(neap_read(device, block, 100, again, 50));
    ASSERT_EQ(memcmp(bytes + 100, again, 50), 0);
    neap_close(device);
}

/* ---- closing ---- */

/* With blocks of every kind live, work under way, a plan followed or just left. */
static void test_close_anywhere(void **state)
{
    static const char *const names[] = {"sim:page=4KiB,memory=64MiB,link=4GB/s", "cpu:page=4KiB,memory=64MiB",
                                        "cuda:0,memory=64MiB,link=8GB/s"};
    (void)state;
    for (int i = 0; i < 30; i++) {
        int turn = i / 3;
        test_memory memory;
        little_options options = {.name = names[i % 3], .memory = &memory.hook, .device = {.limit_share = 0.6}};
        little_program p;
        test_memory_init(&memory);
        little_start(&p, &options);
        little_malloc(&p, 100, &p.kept);
        little_laps(&p, (uint32_t)turn);
        if (turn % 3 > 0) {
            little_malloc(&p, 10000, &p.acts[0]);
        }
        if (turn % 3 > 1) {
            ASSERT_OK(shadow_malloc(&p.streams, p.options.act_bytes, &p.acts[1]));
        }
        little_exec(&p, "last", 0, (shadow_use[]){{&p.weights[0], SHADOW_UPDATE}, {&p.kept, SHADOW_READ}}, 2);
        neap_close(p.device);
        ASSERT_FALSE(atomic_load(&p.report.is_bad));
        shadow_report_free(&p.report);
        (void)pthread_mutex_destroy(&p.lock);
        test_memory_finish(&memory);
    }
}

/* ---- plain ---- */

/* Nothing is watched, planned or limited, and everything works. */
static void test_plain(void **state)
{
    static const char *const names[] = {"sim:page=4KiB,memory=64MiB", "cpu:page=4KiB,memory=64MiB",
                                        "cuda:0,memory=64MiB"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        little_options options = {
            .name = names[i], .device = {.mode = NEAP_MODE_PLAIN, .limit = 5 * LITTLE_PAGE, .plan_cache = "/nowhere"}};
        little_program p;
        neap_trace *trace = NULL;
        neap_error error;
        neap_stats stats;
        little_start(&p, &options);
        little_laps(&p, 12);
        stats = little_stats(&p);
        ASSERT_EQ(stats.state, NEAP_STATE_OBSERVE);
        ASSERT_EQ(stats.limit, 0);
        ASSERT_EQ(stats.live, 12 * LITTLE_PAGE);
        ASSERT_GE(stats.held, stats.live);
        ASSERT_LE(stats.held, stats.live + 6 * 512); /* what is freed is given back */
        ASSERT_GE(stats.peak_held, stats.peak_live);
        ASSERT_LE(stats.peak_held, stats.peak_live + 15 * 512);
        ASSERT_EQ(stats.n_events, 12 + 12 * 48);
        ASSERT_EQ(stats.bytes_out + stats.bytes_in + stats.n_patterns + stats.n_iterations, 0);
        ASSERT_STATUS(NEAP_NO_PERIOD, neap_device_trace(p.device, NULL, &error, &trace));
        ASSERT_TRUE(trace == NULL && error.text[0] != '\0');
        ASSERT_EQ(p.n_lines, 0);
        little_end(&p);
    }
}

/* ---- traces ---- */

/* What the device recorded, or planned from, is a trace like any other: it is planned the same. */
static void test_device_trace(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    neap_plan_options plan_options = {.seconds = 0.05, .n_threads = 1};
    neap_swap_options swap_options = {
        .limit_share = 0.7, .min_block = 1, .page = 4096, .seconds = 0.05, .n_threads = 1};
    little_program p;
    (void)state;
    ASSERT_OK(neap_link_find("h200-pcie5", &swap_options.link));
    little_start(&p, &options);
    for (int i = 0; i < 3; i++) { /* observed, followed, left */
        neap_trace *trace = NULL;
        neap_plan *plan = NULL;
        neap_swap_plan *swaps = NULL;
        neap_error error;
        neap_info *info = NULL;
        if (i == 1) {
            (void)little_run_until_plan(&p, 10);
        } else {
            little_laps(&p, 3);
        }
        if (i == 2) {
            little_exec(&p, "odd", 0, NULL, 0);
            p.device->plan_not_before_ns = UINT64_MAX;
            for (int lap = 0; lap < 4; lap++) {
                little_lap(&p, (little_twist){LITTLE_PLAIN, 0});
            }
        }
        ASSERT_OK(neap_device_trace(p.device, NULL, &error, &trace));
        ASSERT_TRUE(np_trace_is_valid(trace));
        ASSERT_OK(neap_info_make(trace, 0, NULL, &error, &info));
        ASSERT_TRUE(info->has_period);
        ASSERT_EQ(info->period_length, 48);
        neap_info_free(info);
        ASSERT_OK(neap_plan_make(trace, &plan_options, NULL, &error, &plan));
        ASSERT_EQ(neap_plan_get_summary(plan)->load, 12 * LITTLE_PAGE + 9 * 8 * LITTLE_PAGE);
        ASSERT_OK(neap_swap_make(trace, &swap_options, NULL, &error, &swaps));
        ASSERT_LE(neap_swap_get_summary(swaps)->footprint, 7 * (12 + 72) * LITTLE_PAGE / 10);
        neap_plan_free(plan);
        neap_swap_free(swaps);
        neap_trace_free(trace);
    }
    little_end(&p);
}

/* A program that ends leaves its plan, and does what is no loop: what is worth keeping is what the plan was made from. */
static void test_trace_of_the_end(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    neap_trace *trace = NULL;
    neap_info *info = NULL;
    neap_error error;
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 3);
    for (int i = 0; i < 12; i++) {
        little_exec(&p, "goodbye", 0, NULL, 0);
    }
    ASSERT_NE(p.device->state, NEAP_STATE_RUN);
    ASSERT_OK(neap_device_trace(p.device, NULL, &error, &trace));
    ASSERT_OK(neap_info_make(trace, 0, NULL, &error, &info));
    ASSERT_TRUE(info->has_period);
    ASSERT_EQ(info->period_length, 48);
    neap_info_free(info);
    neap_trace_free(trace);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_of_the_end), cmocka_unit_test(test_options),
        cmocka_unit_test(test_endless_planning), cmocka_unit_test(test_malloc_sizes),
        cmocka_unit_test(test_exec_arguments),   cmocka_unit_test(test_twins),
        cmocka_unit_test(test_many_uses),        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_close_anywhere),   cmocka_unit_test(test_plain),
        cmocka_unit_test(test_device_trace),     cmocka_unit_test(test_plain_memory),
        cmocka_unit_test(test_free_twice),       cmocka_unit_test(test_free_twice_on_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
