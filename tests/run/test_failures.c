/* test_failures.c: host memory and the device fail, and nothing is lost.
 *
 * The programs are random ones (random_program.h): a call that fails gives an error and has done nothing, the program tries
 * again or goes without, and every block is right at every access. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- the device ---- */

/* Fewer ways at a time find more: with everything failing often, no plan is ever entered. */
static unsigned random_calls(np_rng *rng)
{
    unsigned calls = 1u << np_rng_below(rng, FAULTY_N_CALLS);
    return np_rng_below(rng, 3) == 0 ? FAULTY_ALL
           : np_rng_below(rng, 2)    ? calls | 1u << np_rng_below(rng, FAULTY_N_CALLS)
                                     : calls;
}

static void run_faulty(uint64_t first, uint64_t n)
{
    uint64_t n_planned = 0;
    uint64_t n_departed = 0;
    uint64_t n_faults = 0;
    uint64_t n_failed = 0;
    for (uint64_t seed = first; seed < first + n; seed++) {
        np_rng rng = np_rng_make(seed);
        random_settings settings = random_settings_make(seed);
        random_outcome outcome;
        settings.learns_at_once = true;
        settings.n_threads = 1;
        settings.is_sim = settings.is_sim && !TEST_RACES; /* it has no threads */
        settings.is_loud = getenv("NEAP_RANDOM_LOUD") != NULL;
        settings.tries_again = np_rng_below(&rng, 2) == 0;
        settings.faults = (faulty_plan){.calls = random_calls(&rng),
                                        .probability = np_rng_below(&rng, 2) ? 0.002 : 0.05 * np_rng_unit(&rng),
                                        .seed = seed};
        run_or_fail(&settings, &outcome);
        n_planned += outcome.has_planned;
        n_departed += outcome.has_departed;
        n_faults += outcome.n_faults;
        n_failed += outcome.n_failed;
    }
    print_message(
        "%llu programs: %llu calls of the device failed, %llu of the library; %llu ran on a plan, %llu left one\n",
        (unsigned long long)n, (unsigned long long)n_faults, (unsigned long long)n_failed,
        (unsigned long long)n_planned, (unsigned long long)n_departed);
    ASSERT_GE(n_faults, n);
    ASSERT_GE(n_failed, n / 10);
    if (n >= 50) { /* far below what is usual, far above nothing */
        ASSERT_GE(n_planned, n / 10);
        ASSERT_GE(n_departed, n / 10);
    }
}

static uint64_t usual_n(void)
{
    return TEST_RACES ? test_rounds(20, 100) : TEST_SANITIZED ? test_rounds(40, 100) : test_rounds(60, 400);
}

static void test_device(void **state)
{
    const char *seed = getenv("NEAP_RANDOM_SEED");
    const char *n = getenv("NEAP_RANDOM_N");
    (void)state;
    run_faulty(seed ? strtoull(seed, NULL, 10) : 1, n ? strtoull(n, NULL, 10) : usual_n());
}

/* ---- host memory ---- */

static random_settings memory_settings(uint64_t seed, bool is_sim)
{
    random_settings settings = random_settings_make(seed);
    settings.is_sim = is_sim;
    settings.n_threads = 1;
    settings.memory_share = 0;
    settings.limit_share = 0.8;
    settings.limit_bytes_share = 0;
    settings.learns_at_once = true;
    settings.watches_memory = true;
    settings.tries_again = true;
    settings.is_valid_each_event = false;
    return settings;
}

/* A program in which everything happens, and not too long. Few are so: the first is number 201, unless the planner, whom
 * the clock stops, found other plans. */
static random_settings find_program(bool is_sim, size_t *n_calls)
{
    for (uint64_t seed = 201; seed < 701; seed++) {
        random_settings settings = memory_settings(seed, is_sim);
        random_outcome outcome;
        run_or_fail(&settings, &outcome);
        if (outcome.has_swapped && outcome.has_departed && outcome.has_resumed && outcome.n_memory_calls < 2500) {
            *n_calls = outcome.n_memory_calls;
            return settings;
        }
    }
    test_fail(__FILE__, __LINE__, "no such program");
}

/* One allocation in turn after the other, the later ones further apart the smaller `n_near` is: most are of the planner,
 * whose failures cost a plan and not a call. */
static void fail_each(bool is_sim, uint32_t n_memory_fails, size_t n_near)
{
    size_t n_calls;
    random_settings settings = find_program(is_sim, &n_calls);
    size_t n_made_to_fail = 0;
    size_t n_calls_failed = 0;
    settings.n_memory_fails = n_memory_fails;
    for (size_t n = 1; n <= n_calls; n += 1 + n / n_near) {
        random_outcome outcome;
        settings.memory_fails_at = n;
        random_program_run(&settings, &outcome);
        if (!outcome.is_good) {
            test_fail(__FILE__, __LINE__, "allocation %zu of seed %llu failed, and so did the program: %s", n,
                      (unsigned long long)settings.seed, outcome.text);
        }
        n_made_to_fail += outcome.n_memory_fails > 0;
        n_calls_failed += outcome.n_failed > 0;
    }
    ASSERT_GE(n_made_to_fail, 10);
    ASSERT_GE(n_calls_failed, 3);
}

static void test_memory_once(void **state)
{
    (void)state;
    if (!TEST_RACES) {
        fail_each(true, 0, TEST_SANITIZED ? 8 : 1000); /* every one */
    }
    fail_each(false, 0, TEST_SANITIZED ? 8 : test_rounds(40, 1000));
}

#if !TEST_RACES /* one thread */

/* All allocations from some point on, until a few calls have failed. */
static void test_memory_for_a_while(void **state)
{
    (void)state;
    fail_each(true, 3, TEST_SANITIZED ? 8 : test_rounds(40, 1000));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_memory_once),
#if !TEST_RACES
        cmocka_unit_test(test_memory_for_a_while),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
