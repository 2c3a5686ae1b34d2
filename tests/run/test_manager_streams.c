/* test_manager_streams.c: bytes that go from one block to another go from one use to the next in order, whichever
 * streams they are on: the device that checks finds nothing, on the plan and off it; and it would, were the waits not
 * there. */
#include "run/little_program.h"
#include "testing.h"

#define SIM3 "sim:page=4KiB,memory=64MiB,link=4GB/s,streams=3"

/* An iteration whose blocks are all of one size and are each used on one stream only, the next one always on the next:
 * there is no order between them but that of their bytes. `odd`: the iteration ends early. */
static void ring_lap(little_program *p, uint64_t bytes, bool odd)
{
    static const char *const names[] = {"zero", "one", "two"};
    for (uint32_t i = 0; i < (odd ? 5u : 12u); i++) {
        shadow_block block;
        ASSERT_OK(shadow_malloc(&p->streams, bytes, &block));
        little_exec(p, names[i % 3], i % 3, (shadow_use[]){{&block, SHADOW_WRITE}}, 1);
        little_exec(p, names[i % 3], i % 3, (shadow_use[]){{&block, SHADOW_READ}}, 1);
        ASSERT_OK(shadow_free(&p->streams, &block));
    }
}

static const char *problem_of(little_program *p)
{
    return p->raw->api->problem(p->raw);
}

static void test_reuse(void **state)
{
    static const uint64_t sizes[] = {4 * LITTLE_PAGE, 700}; /* views, and parts of slabs */
    (void)state;
    for (int i = 0; i < 2; i++) {
        little_options options = {.name = SIM3, .n_layers = 2};
        little_program p;
        little_start(&p, &options);
        for (int lap = 0; lap < 20; lap++) {
            ring_lap(&p, sizes[i], lap % 7 == 6);
            ASSERT_TRUE(problem_of(&p) == NULL);
        }
        ASSERT_GE(little_stats(&p).n_iterations, 5);
        ASSERT_LE(little_stats(&p).held, 30 * LITTLE_PAGE); /* the bytes were used again */
        little_end(&p);
    }
}

/* Without what makes the streams wait for each other, the device would have found it: off the plan, */
static void forget_order(little_program *p)
{
    for (neap_block *block = p->device->live; block; block = block->next) {
        block->after_left = 0;
    }
}

static void test_reuse_is_checked(void **state)
{
    static const uint64_t sizes[] = {4 * LITTLE_PAGE, 700};
    (void)state;
    for (int i = 0; i < 2; i++) {
        little_options options = {.name = SIM3, .n_layers = 2};
        little_program p;
        shadow_block block;
        little_start(&p, &options);
        for (uint32_t k = 0; k < 2; k++) {
            ASSERT_OK(shadow_malloc(&p.streams, sizes[i], &block));
            forget_order(&p);
            little_exec(&p, "write", k, (shadow_use[]){{&block, SHADOW_WRITE}}, 1);
            ASSERT_OK(shadow_free(&p.streams, &block));
        }
        ASSERT_TRUE(problem_of(&p) != NULL);
        neap_close(p.device);
        shadow_report_free(&p.report);
    }
}

/* and on it. */
static void test_waits_are_needed(void **state)
{
    little_options options = {.name = SIM3, .n_layers = 2};
    little_program p;
    np_program *program;
    uint32_t n_waits = 0;
    (void)state;
    little_start(&p, &options);
    for (int lap = 0; lap < 20 && little_stats(&p).state != NEAP_STATE_RUN; lap++) {
        ring_lap(&p, 4 * LITTLE_PAGE, false);
    }
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ring_lap(&p, 4 * LITTLE_PAGE, false);
    ASSERT_TRUE(problem_of(&p) == NULL);
    program = &p.device->pattern->program;
    ASSERT_OK(np_program_check(program, NULL));
    for (size_t i = 0; i < program->events.n; i++) {
        n_waits += program->events.items[i].n_before + program->events.items[i].n_after;
        program->events.items[i].n_before = program->events.items[i].n_after = 0;
    }
    ASSERT_GT(n_waits, 0);
    ASSERT_STATUS(NEAP_INTERNAL, np_program_check(program, NULL)); /* which it would not have passed */
    ring_lap(&p, 4 * LITTLE_PAGE, false);
    ASSERT_TRUE(problem_of(&p) != NULL);
    neap_close(p.device);
    shadow_report_free(&p.report);
}

/* With swaps: copies are ordered with the work of all streams, through departures and back. */
static void test_swaps(void **state)
{
    static const char *const names[] = {SIM3, "cpu:page=4KiB,memory=64MiB,streams=3",
                                        "cuda:0,memory=64MiB,streams=3,link=8GB/s"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        little_options options = {.name = names[i % 3], .update_stream = 1, .device = {.limit_share = i < 3 ? 0.6 : 0}};
        little_program p;
        if (i >= 3) {
            options.device.limit = 60 * LITTLE_PAGE;
        }
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 10);
        for (uint32_t k = 0; k < 6; k++) {
            little_laps(&p, 2);
            little_lap(&p, (little_twist){k % 2 ? LITTLE_OTHER_STREAM : LITTLE_EXTRA_MALLOC, k});
            little_lap(&p, (little_twist){k % 2 ? LITTLE_CUT_SHORT : LITTLE_OTHER_SIZE, k});
            little_check(&p);
        }
        ASSERT_GT(little_stats(&p).bytes_in, 0);
        little_end(&p);
    }
}

/* A block that was freed off the plan on one stream, and the plan entered with another's work first. */
static void test_entering_waits(void **state)
{
    little_options options = {.name = SIM3, .device = {.limit_share = 0.6}};
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    for (unsigned k = 0; k < 6; k++) {
        shadow_block block;
        ASSERT_OK(shadow_malloc(&p.streams, (8 + k) * LITTLE_PAGE, &block));
        little_exec(&p, "aside", 1 + k % 2, (shadow_use[]){{&block, SHADOW_WRITE}}, 1);
        ASSERT_OK(shadow_free(&p.streams, &block));
        little_laps(&p, 1);
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_TRUE(problem_of(&p) == NULL);
    }
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse), cmocka_unit_test(test_reuse_is_checked), cmocka_unit_test(test_waits_are_needed),
        cmocka_unit_test(test_swaps), cmocka_unit_test(test_entering_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
