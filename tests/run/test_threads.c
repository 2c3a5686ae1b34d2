/* test_threads.c: several threads of the host use one device at once.
 *
 * Each has a loop with departures, blocks and a stream of its own, and reads blocks that all share. What one thread does
 * comes between the events of another, so plans are rarely followed for long: entering and leaving is what is tested
 * here, and that nothing is touched without the lock (under the thread sanitizer). Then one thread has a loop that can be
 * planned, while others only look on: they ask for the device's state, read its recording, and order streams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/random_actor.h"
#include "testing.h"

static void run_or_fail(const random_settings *settings, random_outcome *outcome)
{
    random_program_run(settings, outcome);
    if (!outcome->is_good) {
        test_fail(__FILE__, __LINE__, "the program of seed %llu failed: %s", (unsigned long long)settings->seed,
                  outcome->text);
    }
}

static void test_loops(void **state)
{
    uint64_t n = TEST_SANITIZED ? 20 : 40;
    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        random_settings settings = random_settings_make(seed);
        random_outcome outcome;
        settings.n_threads = (uint32_t)(2 + seed % 2);
        settings.n_streams = (uint32_t)(1 + seed % 3);
        settings.learns_at_once = seed % 4 == 0;
        settings.is_sim = seed % 3 == 0;
        settings.is_loud = getenv("NEAP_RANDOM_LOUD") != NULL;
        run_or_fail(&settings, &outcome);
    }
}

/* ---- one program, and threads that look on ---- */

typedef struct onlooker {
    neap_device *device;
    atomic_bool is_over;
    uint64_t n_looks;
    uint64_t n_traces;
    neap_status status; /* the first that was bad */
} onlooker;

static void *look_on(void *user)
{
    onlooker *looker = user;
    while (!atomic_load(&looker->is_over)) {
        neap_stats stats;
        neap_trace *trace = NULL;
        neap_status status;
        neap_get_stats(looker->device, &stats);
        status = neap_stream_wait(looker->device, 0, 1);
        if (looker->status == NEAP_OK) {
            looker->status = status;
        }
        if (looker->n_looks++ % 16 == 0 && neap_device_trace(looker->device, NULL, NULL, &trace) == NEAP_OK) {
            looker->n_traces++;
            neap_trace_free(trace);
        }
    }
    return NULL;
}

typedef struct layer_loop {
    shadow_report report;
    shadow_streams streams;
    shadow_block weight;
    shadow_block layers[6];
} layer_loop;

static void run_iteration(layer_loop *l)
{
    for (int i = 0; i < 6; i++) {
        shadow_use uses[3] = {{&l->layers[i], SHADOW_WRITE}, {&l->weight, SHADOW_READ}, {NULL, SHADOW_READ}};
        uses[2].block = i > 0 ? &l->layers[i - 1] : NULL;
        ASSERT_OK(shadow_malloc(&l->streams, 20000, &l->layers[i]));
        ASSERT_OK(shadow_exec(&l->streams, "forth", 0, 1000, uses, i > 0 ? 3 : 2));
    }
    for (int i = 6; i-- > 0;) {
        shadow_use uses[2] = {{&l->layers[i], SHADOW_UPDATE}, {&l->weight, SHADOW_UPDATE}};
        ASSERT_OK(shadow_exec(&l->streams, "back", 1, 1000, uses, 2));
        ASSERT_OK(shadow_free(&l->streams, &l->layers[i]));
    }
}

/* Until the planner has nothing to do, or has something to say: how fast it is does not matter then. */
static void wait_for_planner(const neap_device *device)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < 60000 && atomic_load(&device->learner.is_busy) && !atomic_load(&device->learner.has_news);
         ms++) {
        (void)nanosleep(&pause, NULL);
    }
}

static void test_onlookers(void **state)
{
    neap_device_options options = {
        .limit_share = 0.8, .min_block = 4096, .plan_seconds = 0.2, .refinements = UINT32_MAX};
    layer_loop l = {0};
    onlooker looker = {0};
    neap_device *device;
    neap_stats stats;
    pthread_t thread;
    (void)state;
    ASSERT_OK(neap_open("cpu:page=4096,memory=64MiB,streams=2,link=20GB/s", &options, NULL, NULL, &device));
    shadow_report_init(&l.report, true);
    shadow_streams_init(&l.streams, device, &l.report, 2, 1);
    looker.device = device;
    ASSERT_OK(shadow_malloc(&l.streams, 30000, &l.weight));
    ASSERT_OK(shadow_host_write(&l.streams, &l.weight, true));
    ASSERT_EQ(pthread_create(&thread, NULL, look_on, &looker), 0);
    for (int i = 0; i < 2000; i++) { /* until it has run on a plan for a while */
        run_iteration(&l);
        neap_get_stats(device, &stats);
        if (stats.n_iterations >= 30) {
            break;
        }
        wait_for_planner(device);
    }
    ASSERT_OK(shadow_sync(&l.streams));
    atomic_store(&looker.is_over, true);
    ASSERT_EQ(pthread_join(thread, NULL), 0);
    ASSERT_STATUS(NEAP_OK, looker.status);
    ASSERT_GE(stats.n_iterations, 30);
    ASSERT_GE(looker.n_looks, 1);
    if (atomic_load(&l.report.is_bad)) {
        test_fail(__FILE__, __LINE__, "%s", l.report.text);
    }
    neap_close(device);
    shadow_report_free(&l.report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_onlookers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
