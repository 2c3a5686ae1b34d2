/* test_random.c: thousands of random programs, each a check of everything at once.
 *
 * They run in a few processes, so that one that crashes can be named. A program is known by its seed: the text of a failure
 * has the command that runs it again. What the programs went through is counted, and must be enough: a harness that never
 * reaches a plan would find nothing.
 *
 *     NEAP_RANDOM_SEED   the first seed, 1 where it is not set
 *     NEAP_RANDOM_N      how many programs
 *     NEAP_RANDOM_JOBS   processes
 *     NEAP_RANDOM_LOUD   prints every event
 *     NEAP_RANDOM_ALL    goes on after a failure, and lists them all */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/random_program.h"
#include "testing.h"

enum { MAX_JOBS = 64 };

/* What the processes share. */
typedef struct tally {
    uint64_t n_run;
    uint64_t n_planned;
    uint64_t n_swapped;
    uint64_t n_departed;
    uint64_t n_resumed;
    uint64_t n_several;
    uint64_t n_full;
    uint64_t n_events;
    uint64_t seed; /* of the program that runs, or failed */
    bool is_bad;
    bool is_over;
    char text[1200];
} tally;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static uint64_t usual_n(void)
{
    return TEST_RACES ? test_rounds(80, 300) : TEST_SANITIZED ? test_rounds(300, 1500) : test_rounds(500, 10000);
}

/* The simulated device has no threads: where races are looked for, programs run on the other one, and half of them have a
 * planner with a thread of its own. */
static random_settings settings_of(uint64_t seed)
{
    random_settings settings = random_settings_make(seed);
    if (TEST_RACES) {
        settings.is_sim = false;
        settings.learns_at_once = settings.learns_at_once && seed % 2 == 0;
    }
    settings.is_loud = getenv("NEAP_RANDOM_LOUD") != NULL;
    return settings;
}

static void count(tally *t, const random_outcome *outcome)
{
    t->n_run++;
    t->n_planned += outcome->has_planned;
    t->n_swapped += outcome->has_swapped;
    t->n_departed += outcome->has_departed;
    t->n_resumed += outcome->has_resumed;
    t->n_several += outcome->has_several;
    t->n_full += outcome->n_full > 0;
    t->n_events += outcome->n_events;
}

static void work(tally *t, uint64_t first, uint64_t end, uint64_t step)
{
    bool goes_on = getenv("NEAP_RANDOM_ALL") != NULL;
    for (uint64_t seed = first; seed < end && (goes_on || !t->is_bad); seed += step) {
        random_settings settings = settings_of(seed);
        random_outcome outcome;
        t->seed = t->is_bad ? t->seed : seed;
        random_program_run(&settings, &outcome);
        count(t, &outcome);
        if (!outcome.is_good && goes_on) {
            (void)fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, outcome.text);
        }
        if (!outcome.is_good && !t->is_bad) {
            t->is_bad = true;
            (void)snprintf(t->text, sizeof t->text, "%s", outcome.text);
        }
    }
    t->is_over = true;
}

static void add(tally *sum, const tally *t)
{
    sum->n_run += t->n_run;
    sum->n_planned += t->n_planned;
    sum->n_swapped += t->n_swapped;
    sum->n_departed += t->n_departed;
    sum->n_resumed += t->n_resumed;
    sum->n_several += t->n_several;
    sum->n_full += t->n_full;
    sum->n_events += t->n_events;
}

static double per_cent(uint64_t n, uint64_t of)
{
    return of > 0 ? 100 * (double)n / (double)of : 0;
}

static void print_tally(const tally *t)
{
    print_message(
        "%llu programs, %llu events each: %.1f %% ran on a plan, %.1f %% with swaps, %.1f %% departed, %.1f %% "
        "resumed, %.1f %% followed several patterns, %.1f %% filled the device\n",
        (unsigned long long)t->n_run, (unsigned long long)(t->n_run ? t->n_events / t->n_run : 0),
        per_cent(t->n_planned, t->n_run), per_cent(t->n_swapped, t->n_run), per_cent(t->n_departed, t->n_run),
        per_cent(t->n_resumed, t->n_run), per_cent(t->n_several, t->n_run), per_cent(t->n_full, t->n_run));
}

static void report(const tally *t)
{
    test_fail(__FILE__, __LINE__,
              "the program of seed %llu failed: %s\n  again: NEAP_RANDOM_SEED=%llu NEAP_RANDOM_N=1 "
              "tests/run/test_random",
              (unsigned long long)t->seed, t->is_over ? t->text : "it crashed", (unsigned long long)t->seed);
}

static void run_all(uint64_t first, uint64_t n, uint32_t n_jobs, tally *tallies)
{
    pid_t jobs[MAX_JOBS];
    for (uint32_t i = 0; i < n_jobs; i++) {
        (void)fflush(NULL);
        jobs[i] = fork();
        ASSERT_GE(jobs[i], 0);
        if (jobs[i] == 0) {
            work(&tallies[i], first + i, first + n, n_jobs);
            exit(0);
        }
    }
    for (uint32_t i = 0; i < n_jobs; i++) {
        int status;
        ASSERT_EQ(waitpid(jobs[i], &status, 0), jobs[i]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            tallies[i].is_bad = true;
        }
    }
}

static void test_random_programs(void **state)
{
    uint64_t n = number_from("NEAP_RANDOM_N", usual_n());
    uint64_t first = number_from("NEAP_RANDOM_SEED", 1);
    uint32_t n_jobs = (uint32_t)number_from("NEAP_RANDOM_JOBS", 2);
    tally sum = {0};
    tally *tallies;
    (void)state;
    n_jobs = n == 1 ? 1 : n_jobs < 1 ? 1 : n_jobs > MAX_JOBS ? MAX_JOBS : n_jobs;
    tallies = mmap(NULL, n_jobs * sizeof *tallies, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_TRUE(tallies != MAP_FAILED);
    run_all(first, n, n_jobs, tallies);
    for (uint32_t i = 0; i < n_jobs; i++) {
        add(&sum, &tallies[i]);
    }
    print_tally(&sum);
    for (uint32_t i = 0; i < n_jobs; i++) {
        if (tallies[i].is_bad) {
            report(&tallies[i]);
        }
    }
    ASSERT_EQ(sum.n_run, n);
    if (n >= 250) { /* far below what is usual, far above nothing */
        ASSERT_GE(sum.n_planned * 100, n * 35);
        ASSERT_GE(sum.n_swapped * 100, n * 8);
        ASSERT_GE(sum.n_departed * 100, n * 30);
        ASSERT_GE(sum.n_resumed * 100, n * 10);
        ASSERT_GE(sum.n_several * 100, n * 2);
        ASSERT_GE(sum.n_full * 100, n * 1);
    }
    (void)munmap(tallies, n_jobs * sizeof *tallies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
