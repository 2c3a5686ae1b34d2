/* test_random_cuda.c: the random programs of test_random.c on a cuda device, over the stand-in driver: whatever a kernel
 * touches that is not mapped faults at once, and streams dawdle. */
#include "device/standin_device.h"
#include "run/random_program.h"
#include "testing.h"

enum { FIRST_SEED = 50001, LEAST_PAGE = 4096 };

static uint32_t n_programs(void)
{
    return TEST_SANITIZED ? test_rounds(8, 15) : test_rounds(75, 120);
}

static void run_some(bool is_beneath)
{
    uint32_t n_planned = 0;
    uint32_t n_swapped = 0;
    uint64_t n_visits = 0;
    for (uint32_t i = 0; i < n_programs(); i++) {
        random_settings settings = random_settings_make(FIRST_SEED + i);
        random_outcome outcome;
        settings.is_sim = false;
        settings.is_cuda = true;
        settings.is_beneath = is_beneath;
        settings.margin = is_beneath ? i % 3 : 0;
        if (is_beneath && i % 2) { /* plans with swaps from before: there are blocks away from the start */
            settings.beneath_from = 6;
            settings.limit_bytes_share = 0;
            settings.limit_share = 0.4 + 0.001 * (i % 500);
        }
        random_program_run(&settings, &outcome);
        if (!outcome.is_good) {
            test_fail(__FILE__, __LINE__, "the program of seed %u: %s", FIRST_SEED + i, outcome.text);
        }
        n_planned += outcome.has_planned;
        n_swapped += outcome.has_swapped;
        n_visits += outcome.n_visits;
    }
    print_message("%u programs: %u on a plan, %u with swaps; %llu visits\n", n_programs(), n_planned, n_swapped,
                  (unsigned long long)n_visits);
    /* Far below what is usual, however few they are. */
    ASSERT_GE(n_planned * 5, n_programs());
    ASSERT_GE(n_swapped * 20, n_programs());
    ASSERT_GE(n_visits, is_beneath ? n_programs() / 4 : 0);
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
