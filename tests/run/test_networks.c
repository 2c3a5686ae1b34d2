/* test_networks.c: plans for random networks at every limit, with the page and the margin of `neap run`; and on paper.
 *
 * The planner of a run passes each plan to the checker (program_check.c), and answers NEAP_INTERNAL where the checker
 * refuses it: no network and no limit may come to that. The clock is the test's own, so that a network that fails once
 * fails again. */
#include <math.h>

#include "base/clock.h"
#include "base/rng.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { LOOK_NS = 100000, N_LIMITS = 6 };

#define SECONDS 0.02

static uint64_t now_ns;

uint64_t np_clock_ns(void) /* in place of the library's: each look at it takes the same time */
{
    return now_ns += LOOK_NS;
}

static neap_trace *random_network(uint64_t seed)
{
    np_rng rng = np_rng_make(seed);
    training options = {.seed = seed, .n_iterations = 8};
    neap_trace *trace;
    options.n_layers = 3 + (uint32_t)np_rng_below(&rng, 12);
    options.loss_kept = np_rng_below(&rng, 4) == 0;
    options.zero_grad_at_start = np_rng_below(&rng, 3) == 0;
    options.long_lives = np_rng_below(&rng, 4) == 0 ? 1 : 0;
    options.n_micro = np_rng_below(&rng, 4) == 0 ? 2 : 0;
    trace = make_training(&options);
    ASSERT_TRUE(trace);
    return trace;
}

/* A link as fast beside the network as links are beside recorded ones, some slower, some faster. */
static neap_link random_link(np_rng *rng)
{
    double gbs = 100 * pow(30, np_rng_unit(rng));
    return (neap_link){.out_gbs = gbs, .in_gbs = gbs};
}

/* A plan, or none within the limit. */
static bool is_planned(const char *how, uint64_t seed, double share, neap_status status, const neap_error *error)
{
    if (status != NEAP_OK && status != NEAP_NO_PLAN) {
        test_fail(__FILE__, __LINE__, "%s of network %llu within %.2f: %s", how, (unsigned long long)seed, share,
                  error->text);
    }
    return status == NEAP_OK;
}

/* How many swaps the plan has that a run would follow. */
static size_t plan_run(const neap_trace *trace, uint64_t seed, double share, const neap_link *link)
{
    neap_foresee_options options = {.link = *link,
                                    .limit_share = share,
                                    .min_block = seed % 2 == 0 ? 1 : NEAP_RUN_MIN_BLOCK,
                                    .margin = NEAP_RUN_MARGIN,
                                    .seconds = SECONDS,
                                    .seed = seed,
                                    .n_threads = 1};
    neap_foreseen seen = {0};
    neap_error error = {""};
    neap_status status = neap_foresee(trace, &options, NULL, &error, &seen);
    if (!is_planned("the run", seed, share, status, &error)) {
        return 0;
    }
    ASSERT_LE(seen.footprint, seen.limit);
    ASSERT_TRUE(seen.overhead >= 0);
    return seen.n_swaps;
}

/* The same on paper. */
static size_t plan_paper(const neap_trace *trace, uint64_t seed, double share, const neap_link *link)
{
    neap_swap_options options = {.link = *link, .limit_share = share, .seconds = SECONDS, .seed = seed, .n_threads = 1};
    const neap_trace_block *blocks;
    const neap_swap_entry *entries;
    neap_error error = {""};
    neap_swap_plan *plan;
    size_t n_blocks, n_entries;
    neap_status status;
    options.method = seed % 3 == 0 ? (neap_swap_method)(seed / 3 % NEAP_SWAP_N_METHODS) : NEAP_SWAP_SEARCH;
    status = neap_swap_make(trace, &options, NULL, &error, &plan);
    if (!is_planned("the plan", seed, share, status, &error)) {
        return 0;
    }
    blocks = neap_trace_blocks(trace, &n_blocks);
    entries = neap_swap_entries(plan, &n_entries);
    for (size_t i = 0; i < n_entries; i++) {
        ASSERT_GT(entries[i].bytes, 0);
        ASSERT_LE(entries[i].bytes, (blocks[entries[i].block].bytes + 511) / 512 * 512);
    }
    ASSERT_LE(neap_swap_get_summary(plan)->footprint, neap_swap_get_summary(plan)->limit);
    neap_swap_free(plan);
    return n_entries;
}

/* In a short test each network has a limit of its own; in a long one, all of them. */
static void all_are_planned(void **state)
{
    const uint32_t n = test_rounds(TEST_SANITIZED ? 20 : 240, 4000);
    const bool is_long = n >= 4000;
    size_t n_run = 0;
    size_t n_paper = 0;
    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        np_rng rng = np_rng_make(~seed);
        neap_trace *trace = random_network(seed);
        neap_link link = random_link(&rng);
        for (uint32_t i = 0; i < N_LIMITS; i++) {
            double share = 0.95 - 0.15 * i;
            if (is_long || seed % N_LIMITS == i) {
                n_run += plan_run(trace, seed, share, &link);
                n_paper += plan_paper(trace, seed, share, &link);
            }
        }
        neap_trace_free(trace);
    }
    ASSERT_GT(n_run, n);
    ASSERT_GT(n_paper, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
