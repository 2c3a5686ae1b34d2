/* test_beneath.c: beneath a program that does not know of neap: uses that are more and fewer than planned, everything
 * home at any moment, blocks that stay, doubts and the plans made anew after them.
 *
 * First, small programs of which everything is known; then random ones, all of whose contents are checked at every access
 * (random_beneath.h), on the simulated device, which finds uses that nothing orders, and on the CPU.
 *
 *     NEAP_RANDOM_SEED   the first seed, 1 where it is not set
 *     NEAP_RANDOM_N      how many programs
 *     NEAP_RANDOM_LOUD   prints every event */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run/random_program.h"
#include "testing.h"

/* ---- random programs ---- */

static random_settings beneath_settings(uint64_t seed)
{
    np_rng rng = np_rng_make(seed ^ 0xbe9ea);
    random_settings settings = random_settings_make(seed);
    settings.is_beneath = true;
    settings.is_plain = false;
    settings.is_loud = getenv("NEAP_RANDOM_LOUD") != NULL;
    settings.margin = np_rng_below(&rng, 10) < 7 ? 0 : (uint32_t)np_rng_below(&rng, 4);
    if (np_rng_below(&rng, 10) == 0) {
        settings.limit_share = settings.limit_bytes_share = 0;
        settings.overhead = 0.5 * np_rng_unit(&rng);
    } else if (np_rng_below(&rng, 10) < 6) { /* most have a limit: there is nothing to go wrong without swaps */
        settings.limit_bytes_share = 0;
        settings.limit_share = 0.4 + 0.5 * np_rng_unit(&rng);
    }
    return settings;
}

typedef struct tally {
    uint64_t n_planned;
    uint64_t n_swapped;
    uint64_t n_departed;
    uint64_t n_resumed;
    uint64_t n_late;
    uint64_t n_blurred;
    uint64_t n_home;
    uint64_t n_faults;
} tally;

static void run_one(const random_settings *settings, tally *t)
{
    random_outcome outcome;
    random_program_run(settings, &outcome);
    if (!outcome.is_good) {
        test_fail(__FILE__, __LINE__,
                  "the program of seed %llu failed: %s\n  again: NEAP_RANDOM_SEED=%llu NEAP_RANDOM_N=1",
                  (unsigned long long)settings->seed, outcome.text, (unsigned long long)settings->seed);
    }
    t->n_planned += outcome.has_planned;
    t->n_swapped += outcome.has_swapped;
    t->n_departed += outcome.has_departed;
    t->n_resumed += outcome.has_resumed;
    t->n_late += outcome.n_late;
    t->n_blurred += outcome.n_blurred;
    t->n_home += outcome.n_home;
    t->n_faults += outcome.n_faults + outcome.n_memory_fails;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void print_tally(const tally *t, uint64_t n)
{
    print_message("%llu programs: %llu on a plan, %llu with swaps, %llu departed, %llu resumed; %llu uses made up, %llu "
                  "of them late; %llu times home; %llu faults\n",
                  (unsigned long long)n, (unsigned long long)t->n_planned, (unsigned long long)t->n_swapped,
                  (unsigned long long)t->n_departed, (unsigned long long)t->n_resumed,
                  (unsigned long long)t->n_blurred, (unsigned long long)t->n_late, (unsigned long long)t->n_home,
                  (unsigned long long)t->n_faults);
}

static void test_random_programs(void **state)
{
    uint64_t first = number_from("NEAP_RANDOM_SEED", 1);
    uint64_t n = number_from("NEAP_RANDOM_N", TEST_SANITIZED ? 300 : 2000);
    tally t = {0};
    (void)state;
    for (uint64_t seed = first; seed < first + n; seed++) {
        random_settings settings = beneath_settings(seed);
        if (getenv("NEAP_RANDOM_TELL")) {
            (void)fprintf(stderr, "%llu\n", (unsigned long long)seed);
        }
        run_one(&settings, &t);
    }
    print_tally(&t, n);
    if (n >= 250) { /* far below what is usual, far above nothing */
        ASSERT_GE(t.n_planned * 100, n * 35);
        ASSERT_GE(t.n_swapped * 100, n * 8);
        ASSERT_GE(t.n_departed * 100, n * 25);
        ASSERT_GE(t.n_resumed * 100, n * 8);
        ASSERT_GE(t.n_late, n / 10);
        ASSERT_GE(t.n_home, n / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
