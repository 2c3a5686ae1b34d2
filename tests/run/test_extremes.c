/* test_extremes.c: traces whose sizes and durations are as small and as large as a file can say: 0 to 2^64 - 1.
 *
 * Each answer is a plan with finite figures, or a status that a user can act on; never NEAP_INTERNAL, and never a search
 * without an end. The clock is the test's own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "testing.h"

enum { LOOK_NS = 100000, LAYERS = 5, LAPS = 5, N_ROWS = 4 };

#define SECONDS 0.02

static uint64_t now_ns;

uint64_t np_clock_ns(void) /* in place of the library's: each look at it takes the same time */
{
    return now_ns += LOOK_NS;
}

/* One iteration's numbers; each is the same in all iterations. */
typedef struct numbers {
    uint64_t weight_bytes[LAYERS];
    uint64_t bytes[LAYERS];
    uint64_t duration_ns[2 * LAYERS];
    bool is_trained; /* weights are written, not only read */
} numbers;

typedef struct text {
    char *at;
    size_t room;
} text;

#define ADD(t, ...)                                        \
    do {                                                   \
        int n = snprintf((t)->at, (t)->room, __VA_ARGS__); \
        ASSERT_TRUE(n >= 0 && (size_t)n < (t)->room);      \
        (t)->at += n;                                      \
        (t)->room -= (size_t)n;                            \
    } while (0)

typedef unsigned long long ull;

static void add_iteration(text *t, const numbers *of, int lap)
{
    int first = 100 + lap * LAYERS;
    for (int l = 0; l < LAYERS; l++) {
        ADD(t, "malloc %d %llu\n", first + l, (ull)of->bytes[l]);
        ADD(t, "exec f%d 0 %llu r%d w%d\n", l, (ull)of->duration_ns[l], l + 1, first + l);
    }
    for (int l = LAYERS - 1; l >= 0; l--) {
        ADD(t, "exec b%d 0 %llu r%d %c%d\n", l, (ull)of->duration_ns[LAYERS + l], first + l, of->is_trained ? 'w' : 'r',
            l + 1);
        ADD(t, "free %d\n", first + l);
    }
}

/* NULL: more bytes live at once than a trace may have. */
static neap_trace *make_trace(const numbers *of)
{
    static char characters[1 << 16];
    text t = {characters, sizeof characters};
    neap_trace *trace = NULL;
    neap_error error = {""};
    neap_status status;
    ADD(&t, "neap-trace 1\n");
    for (int l = 0; l < LAYERS; l++) {
        ADD(&t, "live %d %llu\n", l + 1, (ull)of->weight_bytes[l]);
    }
    for (int lap = 0; lap < LAPS; lap++) {
        add_iteration(&t, of, lap);
    }
    status = neap_trace_parse(characters, (size_t)(t.at - characters), "text", NULL, &error, &trace);
    if (status != NEAP_OK) {
        ASSERT_TRUE(status == NEAP_TOO_LARGE || status == NEAP_BAD_INPUT);
        ASSERT_TRUE(error.text[0]);
        return NULL;
    }
    return trace;
}

/* NEAP_OK, or an answer that says why there is no plan. */
static bool is_answered(const char *what, uint64_t seed, neap_status status, const neap_error *error)
{
    if (status != NEAP_OK && status != NEAP_NO_PLAN && status != NEAP_TOO_LARGE && status != NEAP_NO_PERIOD) {
        test_fail(__FILE__, __LINE__, "%s of numbers %llu: %s", what, (ull)seed, error->text);
    }
    ASSERT_TRUE(status == NEAP_OK || error->text[0]);
    return status == NEAP_OK;
}

static bool is_share(double x)
{
    return isfinite(x) && x >= 0;
}

static uint32_t plan_swaps(const neap_trace *trace, uint64_t seed, double share, const neap_link *link)
{
    neap_swap_options options = {.link = *link,
                                 .limit_share = share,
                                 .min_block = seed % 2,
                                 .page = seed % 3 == 0 ? (uint64_t)512 << seed / 3 % 54 : 0,
                                 .seconds = SECONDS,
                                 .n_threads = 1};
    const neap_swap_summary *s;
    neap_error error = {""};
    neap_swap_plan *plan;
    if (!is_answered("the swaps", seed, neap_swap_make(trace, &options, NULL, &error, &plan), &error)) {
        return 0;
    }
    s = neap_swap_get_summary(plan);
    ASSERT_TRUE(is_share(s->overhead) && is_share(s->bound_overhead) && is_share(s->bound_overhead_any));
    ASSERT_TRUE(isfinite(s->iteration_ns) && s->iteration_ns > 0);
    ASSERT_LE(s->footprint, s->limit);
    neap_swap_free(plan);
    return 1;
}

static uint32_t plan_run(const neap_trace *trace, uint64_t seed, double share, const neap_link *link)
{
    neap_foresee_options options = {
        .link = *link, .limit_share = share, .margin = NEAP_RUN_MARGIN, .seconds = SECONDS, .n_threads = 1};
    neap_error error = {""};
    neap_foreseen seen;
    if (!is_answered("the run", seed, neap_foresee(trace, &options, NULL, &error, &seen), &error)) {
        return 0;
    }
    ASSERT_TRUE(is_share(seen.overhead) && is_share(seen.bound_overhead) && is_share(seen.looking));
    ASSERT_TRUE(isfinite(seen.iteration_ns) && seen.iteration_ns > 0);
    return 1;
}

static uint32_t sweep(const neap_trace *trace, uint64_t seed, const neap_link *link)
{
    neap_swap_options options = {.link = *link, .seconds = SECONDS, .n_threads = 1};
    neap_sweep_row rows[N_ROWS];
    neap_error error = {""};
    if (!is_answered("the sweep", seed, neap_swap_sweep(trace, &options, N_ROWS, NULL, &error, rows), &error)) {
        return 0;
    }
    for (int i = 0; i < N_ROWS; i++) {
        ASSERT_FALSE(isnan(rows[i].overhead[NEAP_SWAP_SEARCH]));
        ASSERT_TRUE(is_share(rows[i].bound_overhead));
    }
    return 1;
}

/* How many answers are plans. */
static uint32_t ask_all(const neap_trace *trace, uint64_t seed)
{
    np_rng rng = np_rng_make(seed);
    neap_link link = {.out_gbs = 55, .in_gbs = 55, .both_gbs = 100, .latency_us = 2};
    neap_plan_options pool = {.seconds = SECONDS, .n_threads = 1};
    double share = 0.3 + 0.7 * np_rng_unit(&rng);
    neap_error error = {""};
    neap_plan *plan;
    if (is_answered("the pool", seed, neap_plan_make(trace, &pool, NULL, &error, &plan), &error)) {
        neap_plan_free(plan);
    }
    return plan_swaps(trace, seed, 0, &link) + plan_swaps(trace, seed, share, &link) + plan_run(trace, seed, 0, &link) +
           plan_run(trace, seed, share, &link) + (seed % 4 == 0 ? sweep(trace, seed, &link) : 0);
}

/* ---- no time at all ---- */

static void no_exec_takes_any_time(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        numbers zero = {.is_trained = i == 0};
        neap_trace *trace;
        for (int l = 0; l < LAYERS; l++) {
            zero.bytes[l] = zero.weight_bytes[l] = 8 << 20;
        }
        trace = make_trace(&zero);
        ASSERT_TRUE(trace);
        ASSERT_EQ(ask_all(trace, 0), 5);
        neap_trace_free(trace);
    }
}

/* ---- at random ---- */

typedef struct lengths {
    uint32_t least; /* bits */
    uint32_t most;
} lengths;

/* All lengths are as frequent. */
static uint64_t any_number(np_rng *rng, const lengths *in)
{
    uint32_t n_bits = in->least + (uint32_t)np_rng_below(rng, in->most - in->least + 1);
    uint64_t number = np_rng_next(rng);
    return n_bits == 0 ? 0 : np_rng_below(rng, 8) == 0 ? UINT64_MAX >> (64 - n_bits) : number >> (64 - n_bits);
}

static void numbers_of_all_lengths(void **state)
{
    const uint32_t n = test_rounds(TEST_SANITIZED ? 60 : 400, 20000);
    static const lengths sizes[] = {{0, 28}, {0, 64}, {54, 61}};
    static const lengths times[] = {{0, 24}, {0, 64}, {54, 64}};
    uint32_t n_plans = 0;
    (void)state;
    for (uint64_t seed = 0; seed < n; seed++) {
        np_rng rng = np_rng_make(seed);
        numbers any = {.is_trained = np_rng_below(&rng, 2) == 0};
        const lengths *size_bits = &sizes[np_rng_below(&rng, 3)];
        const lengths *time_bits = &times[np_rng_below(&rng, 3)];
        neap_trace *trace;
        for (int l = 0; l < LAYERS; l++) {
            any.bytes[l] = any_number(&rng, size_bits) | 1;
            any.weight_bytes[l] = any_number(&rng, size_bits) | 1;
            any.duration_ns[l] = any_number(&rng, time_bits);
            any.duration_ns[LAYERS + l] = any_number(&rng, time_bits);
        }
        trace = make_trace(&any);
        if (trace) {
            n_plans += ask_all(trace, seed);
            neap_trace_free(trace);
        }
    }
    ASSERT_GT(n_plans, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_exec_takes_any_time),
        cmocka_unit_test(numbers_of_all_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
