/* test_departures.c: every way to leave a plan is counted under its own reason and said in one line; the data is
 * right, and the plan resumes at the next start. */
#include "run/little_program.h"
#include "testing.h"

static void leave_once(const little_options *options, little_twist twist, neap_departure why)
{
    little_program p;
    neap_stats before;
    neap_stats after;
    little_start(&p, options);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 2);
    before = little_stats(&p);
    ASSERT_EQ(before.n_departures, 0);
    little_forget(&p);
    little_lap(&p, twist);
    little_check(&p);
    after = little_stats(&p);
    for (int i = 0; i < NEAP_N_DEPARTURES; i++) {
        ASSERT_EQ(after.departures[i], i == (int)why ? 1 : 0);
    }
    ASSERT_EQ(after.n_departures, 1);
    ASSERT_EQ(after.state, NEAP_STATE_LEAVE);
    ASSERT_EQ(after.n_iterations, before.n_iterations + 1);
    ASSERT_EQ(little_count(&p, "left the plan"), 1);
    ASSERT_EQ(little_count(&p, neap_departure_text(why)), 1);
    little_laps(&p, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    little_laps(&p, 2);
    ASSERT_EQ(little_stats(&p).n_iterations, after.n_iterations + 2);
    ASSERT_EQ(little_stats(&p).n_departures, 1);
    little_end(&p);
}

/* Where a plan is left with swaps under way, with and without streams, in virtual time and by threads. */
static const little_options variants[] = {
    {.device = {.limit_share = 0}},
    {.device = {.limit_share = 0.6}},
    {.name = "sim:page=4KiB,memory=64MiB,link=4GB/s,streams=2", .device = {.limit_share = 0.5}},
    {.name = "cpu:page=4KiB,memory=64MiB,streams=2", .device = {.limit_share = 0.6}},
    {.name = "cuda:0,memory=64MiB,streams=2,link=8GB/s", .device = {.limit_share = 0.6}},
};

static void leave(little_twist twist, neap_departure why)
{
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        leave_once(&variants[i], twist, why);
    }
}

static void test_extra_malloc(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_EXTRA_MALLOC, 3}, NEAP_DEPARTURE_MALLOC);
}

static void test_other_size(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_OTHER_SIZE, 2}, NEAP_DEPARTURE_SIZE);
}

static void test_early_free(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_EARLY_FREE, 4}, NEAP_DEPARTURE_FREE);
}

/* The free that does not come shows by what comes in its stead: another free. */
static void test_missing_free(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_LATE_FREE, 4}, NEAP_DEPARTURE_FREE);
}

static void test_other_work(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_OTHER_WORK, 1}, NEAP_DEPARTURE_EXEC);
    leave((little_twist){LITTLE_EXTRA_WORK, 5}, NEAP_DEPARTURE_EXEC);
}

static void test_other_uses(void **state)
{
    (void)state;
    leave((little_twist){LITTLE_OTHER_USES, 3}, NEAP_DEPARTURE_USES);
    leave((little_twist){LITTLE_OTHER_BLOCK, 5}, NEAP_DEPARTURE_USES);
}

static void test_other_stream(void **state)
{
    (void)state;
    leave_once(&variants[2], (little_twist){LITTLE_OTHER_STREAM, 2}, NEAP_DEPARTURE_STREAM);
    leave_once(&variants[3], (little_twist){LITTLE_OTHER_STREAM, 2}, NEAP_DEPARTURE_STREAM);
}

/* ---- a block that is not there ---- */

/* A block from beside the plan has left for the host when the plan was entered, since there is no room for it. */
static void test_absent(void **state)
{
    little_options options = {.device = {.limit_share = 0.6}};
    little_program p;
    neap_stats stats;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 1);
    little_lap(&p, (little_twist){LITTLE_KEPT_MALLOC, 3});
    ASSERT_EQ(little_stats(&p).departures[NEAP_DEPARTURE_MALLOC], 1);
    little_laps(&p, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_FALSE(np_block_is_here(p.kept.block));
    little_forget(&p);
    little_lap(&p, (little_twist){LITTLE_KEPT_USE, 4});
    stats = little_stats(&p);
    ASSERT_EQ(stats.departures[NEAP_DEPARTURE_ABSENT], 1);
    ASSERT_EQ(stats.n_departures, 2);
    ASSERT_EQ(little_count(&p, neap_departure_text(NEAP_DEPARTURE_ABSENT)), 1);
    ASSERT_LE(stats.held, stats.limit);
    little_check(&p);
    little_laps(&p, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 2);
    little_end(&p);
}

/* One that is there may be used on top of what is planned. */
static void test_beside(void **state)
{
    little_program p;
    (void)state;
    little_start(&p, NULL);
    (void)little_run_until_plan(&p, 20);
    little_lap(&p, (little_twist){LITTLE_KEPT_MALLOC, 3});
    little_laps(&p, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    for (uint32_t i = 0; i < 6; i++) {
        little_lap(&p, (little_twist){LITTLE_KEPT_USE, i});
    }
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 1);
    little_end(&p);
}

/* Two buffers that take turns: which one an iteration uses is no part of the pattern, and no departure. */
static void test_double_buffer(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        unsigned stream = i >= 2; /* there are two then */
        little_program p;
        shadow_block buffers[2];
        little_start(&p, &variants[i]);
        little_malloc(&p, 4 * LITTLE_PAGE, &buffers[0]);
        little_malloc(&p, 4 * LITTLE_PAGE, &buffers[1]);
        for (int lap = 0; lap < 30; lap++) {
            little_exec(&p, "load", stream, (shadow_use[]){{&buffers[lap % 2], SHADOW_WRITE}}, 1);
            little_laps(&p, 1);
            little_exec(&p, "use", 0, (shadow_use[]){{&buffers[lap % 2], SHADOW_READ}}, 1);
        }
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_EQ(little_stats(&p).n_departures, 0);
        ASSERT_GE(little_stats(&p).n_iterations, 20);
        little_free(&p, &buffers[0]);
        little_free(&p, &buffers[1]);
        little_end(&p);
    }
}

/* ---- a device that fails ---- */

static void mend(little_program *p)
{
    if (little_stats(p).n_departures > 0) {
        faulty_set(p->faulty, &(faulty_plan){.calls = 0});
    }
}

/* The n-th call of this kind fails: the plan is left, and no call of the program's fails. */
static void fail_nth(faulty_call call, uint64_t n)
{
    little_options options = {.is_faulty = true, .device = {.limit_share = 0.5}};
    little_program p;
    neap_stats stats;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 1);
    ASSERT_GT(p.device->pattern->program.swaps.n, 0);
    little_forget(&p);
    p.after_event = mend;
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << call, .every = n});
    little_laps(&p, 1);
    stats = little_stats(&p);
    ASSERT_EQ(stats.departures[NEAP_DEPARTURE_FAILED], 1);
    ASSERT_EQ(stats.n_departures, 1);
    ASSERT_EQ(faulty_n_failed(p.faulty, call), 1);
    ASSERT_EQ(little_count(&p, neap_departure_text(NEAP_DEPARTURE_FAILED)), 1);
    little_check(&p);
    little_laps(&p, 2);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 1);
    little_end(&p);
}

static void test_failed_copy(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 6; n++) {
        fail_nth(FAULTY_COPY, n);
    }
}

static void test_failed_wait(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 6; n++) {
        fail_nth(FAULTY_WAIT, n);
    }
}

/* Work that cannot be given is the program's to give again, on the plan as off it. */
static void test_failed_launch(void **state)
{
    little_options options = {.is_faulty = true, .device = {.limit_share = 0.5}};
    little_program p;
    shadow_use use = {&p.acts[0], SHADOW_WRITE};
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << FAULTY_LAUNCH, .every = 1});
    ASSERT_OK(shadow_malloc(&p.streams, p.options.act_bytes, &p.acts[0]));
    ASSERT_STATUS(NEAP_DEVICE_FAILED, shadow_exec(&p.streams, "input", 0, p.options.exec_ns, &use, 1));
    ASSERT_CONTAINS(neap_device_error(), "input");
    faulty_set(p.faulty, &(faulty_plan){.calls = 0});
    ASSERT_OK(shadow_exec(&p.streams, "input", 0, p.options.exec_ns, &use, 1));
    ASSERT_STR_EQ(neap_device_error(), "");
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    ASSERT_OK(shadow_free(&p.streams, &p.acts[0])); /* the iteration is cut short */
    little_laps(&p, 2);
    little_end(&p);
}

/* ---- between two iterations ---- */

static void test_at_a_start(void **state)
{
    little_program p;
    shadow_block block;
    neap_stats stats;
    (void)state;
    little_start(&p, &variants[1]);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 1);
    stats = little_stats(&p);
    little_exec(&p, "look", 0, (shadow_use[]){{&p.weights[0], SHADOW_READ}}, 1);
    ASSERT_EQ(little_stats(&p).departures[NEAP_DEPARTURE_EXEC], 1);
    ASSERT_EQ(little_stats(&p).n_iterations, stats.n_iterations + 1); /* its last event was served */
    ASSERT_EQ(little_count(&p, "at the start of an iteration"), 1);
    little_laps(&p, 1);
    little_malloc(&p, 3 * LITTLE_PAGE, &block);
    ASSERT_EQ(little_stats(&p).departures[NEAP_DEPARTURE_MALLOC], 1);
    little_free(&p, &block);
    little_laps(&p, 1);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 2);
    little_check(&p);
    ASSERT_OK(shadow_free(&p.streams, &p.weights[3])); /* and with it the pattern is gone */
    ASSERT_EQ(little_stats(&p).departures[NEAP_DEPARTURE_FREE], 1);
    little_check(&p);
    little_malloc(&p, p.options.weight_bytes, &p.weights[3]);
    p.weights_at[3] = neap_data(p.weights[3].block);
    ASSERT_NE(little_run_until_plan(&p, 20), 0);
    little_laps(&p, 2);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extra_malloc),  cmocka_unit_test(test_other_size),  cmocka_unit_test(test_early_free),
        cmocka_unit_test(test_missing_free),  cmocka_unit_test(test_other_work),  cmocka_unit_test(test_other_uses),
        cmocka_unit_test(test_other_stream),  cmocka_unit_test(test_absent),      cmocka_unit_test(test_beside),
        cmocka_unit_test(test_double_buffer), cmocka_unit_test(test_failed_copy), cmocka_unit_test(test_failed_wait),
        cmocka_unit_test(test_failed_launch), cmocka_unit_test(test_at_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
