/* test_limits.c: what a limit promises: bytes from the first malloc on, per cent from the first plan on; raised only
 * where it must be, and then in a line that says why; and what is said when the device itself is full. */
#include <stdio.h>

#include "run/little_program.h"
#include "testing.h"

enum { PEAK_PAGES = 6 * 2 + 9 * 8 }; /* of the program as it is: weights, and activations with two gradients */

enum { N_DEVICES = 3 };
static const char *const names[N_DEVICES] = {"sim:page=4KiB,memory=64MiB,link=4GB/s",
                                             "cpu:page=4KiB,memory=64MiB,link=8GB/s", "cuda:0,memory=64MiB,link=8GB/s"};

/* Leaves its plan in several ways, and returns to it. */
static void wander(little_program *p)
{
    little_lap(p, (little_twist){LITTLE_EXTRA_MALLOC, 2});
    little_laps(p, 2);
    little_lap(p, (little_twist){LITTLE_OTHER_SIZE, 3});
    little_lap(p, (little_twist){LITTLE_CUT_SHORT, 4});
    little_laps(p, 2);
    little_lap(p, (little_twist){LITTLE_LATE_FREE, 2});
    little_laps(p, 2);
}

/* ---- bytes ---- */

static void test_bytes(void **state)
{
    static const uint32_t per_cent[] = {95, 80, 70, 60, 50};
    (void)state;
    for (int i = 0; i < 5 * N_DEVICES; i++) {
        uint64_t limit = (uint64_t)PEAK_PAGES * per_cent[i / N_DEVICES] / 100 * LITTLE_PAGE + 100; /* no whole page */
        little_options options = {.name = names[i % N_DEVICES], .device = {.limit = limit}};
        little_program p;
        neap_stats stats;
        little_start(&p, &options);
        ASSERT_EQ(little_stats(&p).limit, limit - 100);
        little_laps(&p, 2);
        stats = little_stats(&p);
        ASSERT_LT(stats.state, NEAP_STATE_RUN);
        ASSERT_GT(stats.bytes_out, 0); /* without a plan the least recently used leave */
        ASSERT_LE(stats.peak_held, limit);
        (void)little_run_until_plan(&p, 10);
        little_laps(&p, 5);
        wander(&p);
        stats = little_stats(&p);
        ASSERT_EQ(stats.state, NEAP_STATE_RUN);
        ASSERT_EQ(stats.limit, limit - 100);
        ASSERT_LE(stats.peak_held, limit);
        ASSERT_EQ(little_count(&p, "raised"), 0);
        little_end(&p);
    }
}

/* ---- per cent ---- */

static void check_held(little_program *p)
{
    neap_stats stats = little_stats(p);
    if (stats.n_iterations > 0 || stats.state == NEAP_STATE_RUN) {
        ASSERT_GT(stats.limit, 0);
        ASSERT_LE(stats.held, stats.limit);
        ASSERT_LE(stats.footprint, stats.limit);
    } else if (stats.state < NEAP_STATE_PLAN_SWAPS) {
        ASSERT_EQ(stats.bytes_out, 0);
    }
}

static void test_per_cent(void **state)
{
    static const double shares[] = {0.9, 0.7, 0.5};
    (void)state;
    for (int i = 0; i < 3 * N_DEVICES; i++) {
        little_options options = {.name = names[i % N_DEVICES], .device = {.limit_share = shares[i / N_DEVICES]}};
        little_program p;
        little_open(&p, &options);
        p.after_event = check_held;
        little_begin(&p);
        (void)little_run_until_plan(&p, 10);
        little_laps(&p, 5);
        wander(&p);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_EQ(little_stats(&p).limit, (uint64_t)(shares[i / N_DEVICES] * PEAK_PAGES) * LITTLE_PAGE);
        ASSERT_EQ(little_count(&p, "raised"), 0);
        p.after_event = NULL;
        little_end(&p);
    }
}

/* ---- a limit that is none ---- */

static void test_above_the_peak(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * N_DEVICES; i++) {
        little_options options = {.name = names[i % N_DEVICES]};
        little_program p;
        if (i < N_DEVICES) {
            options.device.limit = (uint64_t)PEAK_PAGES * LITTLE_PAGE;
        } else {
            options.device.limit_share = 1;
        }
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 10);
        little_laps(&p, 3);
        ASSERT_EQ(p.device->pattern->program.swaps.n, 0);
        ASSERT_EQ(little_stats(&p).bytes_out, 0);
        ASSERT_EQ(little_stats(&p).waits, 0);
        little_end(&p);
    }
}

/* ---- raised ---- */

/* One piece of work needs more at once: it is named. */
static void test_raised_for_work(void **state)
{
    (void)state;
    for (int i = 0; i < N_DEVICES; i++) {
        little_options options = {.name = names[i], .device = {.limit = 12 * LITTLE_PAGE}};
        little_program p;
        neap_stats stats;
        little_start(&p, &options);
        ASSERT_EQ(little_count(&p, "raised"), 0);
        little_laps(&p, 1);
        ASSERT_EQ(little_count(&p, "forward needs 73728 bytes of device memory at once: the limit of 49152 is raised"),
                  1);
        ASSERT_EQ(little_count(&p, "backward needs 98304 bytes of device memory at once: the limit of 49152 is raised"),
                  1);
        ASSERT_EQ(little_stats(&p).peak_held, 24 * LITTLE_PAGE);
        little_laps(&p, 8);
        stats = little_stats(&p);
        ASSERT_LE(stats.peak_held, stats.limit); /* a plan that was found above it */
        ASSERT_EQ(little_count(&p, "needs"), 2);
        little_end(&p);
    }
}

/* Swapping reaches no lower than load_min: two gradients, and what the pass at hand uses. */
static void test_raised_to_load_min(void **state)
{
    little_options options = {.device = {.limit_share = 0.2}};
    little_program p;
    neap_stats stats;
    char line[120];
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 3);
    stats = little_stats(&p);
    (void)snprintf(line, sizeof line, "the limit is raised to %llu bytes", (unsigned long long)stats.limit);
    ASSERT_EQ(little_count(&p, line), 1);
    ASSERT_EQ(little_count(&p, "load_min"), 1);
    ASSERT_EQ(little_count(&p, "raised"), 1);
    ASSERT_GE(stats.limit, 24 * LITTLE_PAGE);
    ASSERT_LT(stats.limit, PEAK_PAGES * LITTLE_PAGE * 6 / 10);
    ASSERT_LE(stats.held, stats.limit);
    little_end(&p);
}

/* ---- small blocks ---- */

/* Blocks smaller than a page stay, and are within the limit all the same. */
static void test_small_blocks(void **state)
{
    (void)state;
    for (int i = 0; i < N_DEVICES; i++) {
        uint64_t limit = (uint64_t)(PEAK_PAGES * 7 / 10 + 64) * LITTLE_PAGE;
        little_options options = {.name = names[i], .device = {.limit = limit}};
        shadow_block blocks[200];
        little_program p;
        little_start(&p, &options);
        for (int k = 0; k < 200; k++) {
            little_malloc(&p, 700 + (uint64_t)k, &blocks[k]);
        }
        (void)little_run_until_plan(&p, 30);
        for (int lap = 0; lap < 4; lap++) {
            for (int k = lap; k < 200; k += 7) { /* by ones that come and go in another order each time */
                little_free(&p, &blocks[k]);
                little_malloc(&p, 300 + (uint64_t)(k * 11 % 1000), &blocks[k]);
            }
            little_laps(&p, 2);
        }
        ASSERT_GT(little_stats(&p).bytes_out, 0);
        ASSERT_LE(little_stats(&p).peak_held, limit);
        ASSERT_EQ(little_count(&p, "raised"), 0);
        for (int k = 0; k < 200; k++) {
            little_free(&p, &blocks[k]);
        }
        little_end(&p);
    }
}

/* ---- a full device ---- */

/* What was asked for and what is held is said; nothing is lost; the program goes on, and gets its plan. */
static void test_full(void **state)
{
    char text[80];
    little_options options = {.name = "sim:page=4KiB,memory=400KiB,link=4GB/s"};
    little_program p;
    shadow_block large;
    shadow_block other;
    neap_block *none = NULL;
    shadow_use uses[] = {{&large, SHADOW_WRITE}, {&other, SHADOW_WRITE}};
    (void)state;
    little_start(&p, &options);
    little_laps(&p, 1);
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(p.device, 401 * 1024, &none));
    ASSERT_CONTAINS(neap_device_error(), "410624 bytes were asked for");
    (void)snprintf(text, sizeof text, "%llu of the device's 409600 are held",
                   (unsigned long long)little_stats(&p).held);
    ASSERT_CONTAINS(neap_device_error(), text);
    ASSERT_TRUE(none == NULL);
    ASSERT_OK(shadow_malloc(&p.streams, 300 * 1024, &large)); /* others leave for it */
    ASSERT_OK(shadow_malloc(&p.streams, 300 * 1024, &other)); /* and it for this one */
    ASSERT_STATUS(NEAP_DEVICE_FULL, shadow_exec(&p.streams, "both", 0, 1000, uses, 2));
    ASSERT_CONTAINS(neap_device_error(), "both");
    little_check(&p);
    ASSERT_OK(shadow_exec(&p.streams, "one", 0, 1000, &uses[0], 1));
    ASSERT_OK(shadow_exec(&p.streams, "other", 0, 1000, &uses[1], 1));
    little_free(&p, &large);
    little_free(&p, &other);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 3);
    ASSERT_STATUS(NEAP_DEVICE_FULL, neap_malloc(p.device, 401 * 1024, &none));
    little_laps(&p, 2);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    little_end(&p);
}

/* ---- a copy out that fails ---- */

/* Somebody must leave for the work, and his copy fails: the work was not given, that is said, and nothing has moved; the
 * next time it succeeds, and every byte is as it was. On the plan, the plan is left, and no call fails. */
static void test_copy_out_fails(void **state)
{
    little_options options = {.device = {.limit = 20 * LITTLE_PAGE}, .is_faulty = true};
    little_program p;
    shadow_block blocks[3];
    neap_block *none = NULL;
    uint64_t bytes_out;
    uint64_t n_events;
    (void)state;
    little_open(&p, &options);
    for (int i = 0; i < 3; i++) {
        little_malloc(&p, 8 * LITTLE_PAGE, &blocks[i]);
    }
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
    bytes_out = little_stats(&p).bytes_out;
    n_events = little_stats(&p).n_events;
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << FAULTY_COPY, .every = 1});
    ASSERT_STATUS(NEAP_DEVICE_FAILED,
                  shadow_exec(&p.streams, "third", 0, 1000, &(shadow_use){&blocks[0], SHADOW_UPDATE}, 1));
    ASSERT_STR_EQ(neap_device_error(),
                  "third could not be given to the device: the device failed; nothing is lost, and it "
                  "can be tried again");
    faulty_set(p.faulty, &(faulty_plan){0});
    ASSERT_EQ(little_stats(&p).bytes_out, bytes_out);
    ASSERT_EQ(little_stats(&p).n_events, n_events);
    ASSERT_FALSE(np_block_is_here(blocks[0].block));
    ASSERT_TRUE(np_block_is_here(blocks[1].block) && np_block_is_here(blocks[2].block));
    little_check(&p);
    little_exec(&p, "third", 0, &(shadow_use){&blocks[0], SHADOW_UPDATE}, 1);
    ASSERT_STR_EQ(neap_device_error(), "");
    np_beneath_begin(p.device, 0, 0); /* there, malloc makes room */
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << FAULTY_COPY, .every = 1});
    ASSERT_STATUS(NEAP_DEVICE_FAILED, neap_malloc(p.device, 8 * LITTLE_PAGE, &none));
    ASSERT_STR_EQ(neap_device_error(), "the device failed");
    faulty_set(p.faulty, &(faulty_plan){0});
    ASSERT_TRUE(none == NULL);
    little_check(&p);
    for (int i = 0; i < 3; i++) {
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

typedef struct faults {
    uint32_t events; /* left until copies fail */
    uint32_t n_retries;
} faults;

static void fail_soon(little_program *p)
{
    faults *f = p->user;
    if (f->events > 0 && --f->events == 0) {
        faulty_set(p->faulty, &(faulty_plan){.calls = 1u << FAULTY_COPY, .every = 1});
    }
}

/* The program tries again, and the device is well again. */
static neap_status be_well(void *user, neap_status status)
{
    little_program *p = user;
    faults *f = p->user;
    ASSERT_EQ(status, NEAP_DEVICE_FAILED);
    ASSERT_CONTAINS(neap_device_error(), "the device failed");
    f->n_retries++;
    faulty_set(p->faulty, &(faulty_plan){0});
    return NEAP_OK;
}

static void test_planned_copy_out_fails(void **state)
{
    uint32_t n_left = 0;
    (void)state;
    for (uint32_t first = 1; first < 24; first++) {
        little_options options = {.device = {.limit_share = 0.6}, .is_faulty = true};
        little_program p;
        faults f = {.events = first};
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 10);
        little_laps(&p, 2);
        ASSERT_GT(p.device->pattern->program.swaps.n, 0);
        p.user = &f;
        p.after_event = fail_soon;
        p.streams.retry = be_well;
        p.streams.retry_user = &p;
        little_laps(&p, 1);
        p.after_event = NULL;
        faulty_set(p.faulty, &(faulty_plan){0});
        ASSERT_LE(f.n_retries, 1);
        ASSERT_EQ(little_stats(&p).departures[NEAP_DEPARTURE_FAILED], little_stats(&p).n_departures);
        n_left += little_stats(&p).n_departures > 0;
        ASSERT_EQ(little_count(&p, "left the plan") > 0, little_stats(&p).n_departures > 0);
        little_laps(&p, 4);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        little_end(&p);
    }
    ASSERT_GE(n_left, 10);
}

/* Blocks that an iteration leaks take ever more, until others must leave for them. No call fails for that. */
static void test_leak_fills_the_device(void **state)
{
    little_options options = {.name = "sim:page=4KiB,memory=1400KiB,link=4GB/s", .act_bytes = 32 * LITTLE_PAGE};
    enum { N_LEAKED = 40 };
    shadow_block leaked[N_LEAKED];
    little_program p;
    uint64_t n_iterations;
    (void)state;
    little_start(&p, &options);
    for (int i = 0; i < N_LEAKED; i++) {
        little_lap(&p, (little_twist){LITTLE_PLAIN, 0});
        little_malloc(&p, 2 * LITTLE_PAGE, &leaked[i]);
    }
    n_iterations = little_stats(&p).n_iterations;
    ASSERT_GE(n_iterations, 5);
    ASSERT_GT(little_stats(&p).departures[NEAP_DEPARTURE_FAILED], 0); /* the device had no room beside the arena */
    for (int i = 0; i < N_LEAKED; i++) {
        little_free(&p, &leaked[i]);
    }
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_copy_out_fails),
        cmocka_unit_test(test_planned_copy_out_fails),
        cmocka_unit_test(test_per_cent),
        cmocka_unit_test(test_above_the_peak),
        cmocka_unit_test(test_raised_for_work),
        cmocka_unit_test(test_raised_to_load_min),
        cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_leak_fills_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
