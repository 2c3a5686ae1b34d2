/* test_random_cuda.c: the random programs of test_random.c on a cuda device, over the stand-in driver: whatever a kernel
 * touches that is not mapped faults at once, and streams dawdle. */
#include "device/standin_device.h"
#include "run/random_program.h"
#include "testing.h"

enum { FIRST_SEED = 50001, LEAST_PAGE = 4096 };

static uint32_t n_programs(void)
{
    return TEST_SANITIZED ? test_rounds(8, 15) : 120;
}

static void run_some(bool is_beneath)
{
    uint32_t n_planned = 0;
    uint32_t n_swapped = 0;
    for (uint32_t i = 0; i < n_programs(); i++) {
        random_settings settings = random_settings_make(FIRST_SEED + i);
        random_outcome outcome;
        settings.is_sim = false;
        settings.is_cuda = true;
        settings.is_beneath = is_beneath;
        settings.margin = is_beneath ? i % 3 : 0;
        random_program_run(&settings, &outcome);
        if (!outcome.is_good) {
            test_fail(__FILE__, __LINE__, "the program of seed %u: %s", FIRST_SEED + i, outcome.text);
        }
        n_planned += outcome.has_planned;
        n_swapped += outcome.has_swapped;
    }
    if (n_programs() >=
        100) { /* far below what is usual; beneath, plans with swaps come after measured laps, and late */
        ASSERT_GE(n_planned * 5, n_programs());
        ASSERT_GE(n_swapped * 40, is_beneath ? 0 : n_programs());
    }
}

static void test_told(void **state)
{
    (void)state;
    run_some(false);
}

static void test_seen(void **state)
{
    (void)state;
    run_some(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_seen),
    };
    standin_use(LEAST_PAGE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
