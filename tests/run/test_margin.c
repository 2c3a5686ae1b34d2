/* test_margin.c: uses widened in time, against a way of saying the same that is slow and plain: an exec has a use of a
 * life where one of the execs around it, on the period's circle, uses it, or it is in doubt itself, and the life holds at
 * the exec. */
#include "run/margin.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { MOST_EXECS = 4096, MOST_USES = 64, N_DOUBTS = 5 };

/* What a period says before. */
typedef struct before {
    uint32_t n_execs;
    uint32_t times[MOST_EXECS];
    uint32_t *at;
    neap_access *accesses;
    np_doubt doubts[N_DOUBTS];
    size_t n_doubts;
} before;

static void remember(const np_period *period, before *b)
{
    b->n_execs = 0;
    for (uint32_t t = 0; t < period->length; t++) {
        if (period->trace->events.items[period->origin + t].kind == NEAP_EVENT_EXEC) {
            ASSERT_LT(b->n_execs, MOST_EXECS);
            b->times[b->n_execs++] = t;
        }
    }
    b->at = np_memory_alloc(&np_memory_default, period->length + 1, sizeof *b->at);
    b->accesses = np_memory_alloc(&np_memory_default, period->accesses.n, sizeof *b->accesses);
    ASSERT_TRUE(b->at && b->accesses);
    memcpy(b->at, period->access_at.items, (period->length + 1) * sizeof *b->at);
    memcpy(b->accesses, period->accesses.items, period->accesses.n * sizeof *b->accesses);
}

/* Does an instance of the life, of whatever lap, hold between its malloc and its free at that time? */
static bool holds(const np_period *period, uint32_t life, uint32_t time)
{
    const np_life *l = &period->lives.items[life];
    if (l->persistent) {
        return true;
    }
    for (uint32_t t = time; t < l->end; t += period->length) {
        if (t > l->begin) {
            return true;
        }
    }
    return false;
}

static bool is_used(const before *b, uint32_t exec, uint32_t life)
{
    uint32_t time = b->times[exec];
    for (uint32_t i = b->at[time]; i < b->at[time + 1]; i++) {
        if (b->accesses[i].block == life) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const np_period *period, const before *b, uint32_t exec, uint32_t life, uint32_t margin)
{
    if (is_used(b, exec, life)) {
        return true;
    }
    for (size_t i = 0; i < b->n_doubts; i++) {
        if (b->doubts[i].exec == exec && b->doubts[i].life == life && holds(period, life, b->times[exec])) {
            return true;
        }
    }
    for (uint32_t away = 1; away <= margin && away < b->n_execs; away++) {
        if ((is_used(b, (exec + away) % b->n_execs, life) ||
             is_used(b, (exec + b->n_execs - away) % b->n_execs, life)) &&
            holds(period, life, b->times[exec])) {
            return true;
        }
    }
    return false;
}

/* An exec's own, each life once: two instances of a life that is longer than a period are one. */
static uint32_t list_own(const before *b, uint32_t time, neap_access *own)
{
    uint32_t n = 0;
    for (uint32_t i = b->at[time]; i < b->at[time + 1]; i++) {
        uint32_t k = 0;
        while (k < n && own[k].block != b->accesses[i].block) {
            k++;
        }
        if (k == n) {
            own[n++] = b->accesses[i];
        } else if (own[k].kind != b->accesses[i].kind) {
            own[k].kind = NEAP_ACCESS_UNKNOWN;
        }
        ASSERT_LT(n, MOST_USES);
    }
    return n;
}

/* Its own first, as they were; then others, each once, of which nothing is known. */
static void check_exec(const np_period *period, const before *b, uint32_t exec, uint32_t margin)
{
    neap_access own[MOST_USES];
    uint32_t time = b->times[exec];
    uint32_t n_own = list_own(b, time, own);
    uint32_t first = period->access_at.items[time];
    uint32_t n = period->access_at.items[time + 1] - first;
    uint32_t n_wanted = 0;
    ASSERT_GE(n, n_own);
    for (uint32_t i = 0; i < n; i++) {
        neap_access access = period->accesses.items[first + i];
        if (i < n_own) {
            ASSERT_EQ(access.block, own[i].block);
            ASSERT_EQ(access.kind, own[i].kind);
        } else {
            ASSERT_EQ(access.kind, NEAP_ACCESS_UNKNOWN);
            ASSERT_TRUE(is_wanted(period, b, exec, access.block, margin));
        }
        for (uint32_t k = 0; k < i; k++) {
            ASSERT_NE(period->accesses.items[first + k].block, access.block);
        }
    }
    for (uint32_t life = 0; life < period->lives.n; life++) {
        n_wanted += is_wanted(period, b, exec, life, margin);
    }
    ASSERT_EQ(n, n_wanted);
}

/* Some that hold, some that do not, one that there is not. */
static void make_doubts(const np_period *period, np_rng *rng, before *b)
{
    b->n_doubts = np_rng_below(rng, 2) ? N_DOUBTS : 0;
    for (size_t i = 0; i < b->n_doubts; i++) {
        b->doubts[i] = (np_doubt){.life = (uint32_t)np_rng_below(rng, period->lives.n + (i == 0)),
                                  .exec = (uint32_t)np_rng_below(rng, b->n_execs)};
    }
}

static void check_trace(neap_trace *trace, uint32_t margin, np_rng *rng, bool *has_grown)
{
    static before b;
    np_period period;
    size_t n_before;
    uint32_t exec = 0;
    ASSERT_OK(np_period_find(trace, &np_memory_default, &period));
    ASSERT_GT(period.length, 0);
    n_before = period.accesses.n;
    remember(&period, &b);
    make_doubts(&period, rng, &b);
    ASSERT_OK(np_margin_widen(&period, margin, b.doubts, b.n_doubts));
    ASSERT_EQ(period.access_at.items[period.length], period.accesses.n);
    for (uint32_t t = 0; t < period.length; t++) {
        if (exec < b.n_execs && b.times[exec] == t) {
            if (margin > 0 || b.n_doubts > 0) {
                check_exec(&period, &b, exec, margin);
            }
            exec++;
        } else {
            ASSERT_EQ(period.access_at.items[t], period.access_at.items[t + 1]);
        }
    }
    ASSERT_TRUE(np_period_is_valid(&period));
    ASSERT_TRUE(margin > 0 || b.n_doubts > 0 || period.accesses.n == n_before);
    *has_grown |= period.accesses.n > n_before;
    np_memory_free(&np_memory_default, b.at, period.length + 1, sizeof *b.at);
    np_memory_free(&np_memory_default, b.accesses, n_before, sizeof *b.accesses);
    np_period_free(&period);
}

static void test_against_plain(void **state)
{
    static const uint32_t margins[] = {0, 1, 2, 5, 100000};
    np_rng rng = np_rng_make(1);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 6 : 20); round++) {
        training options = {.seed = np_rng_next(&rng),
                            .n_layers = 1 + (uint32_t)np_rng_below(&rng, 6),
                            .n_iterations = 6,
                            .loss_kept = np_rng_below(&rng, 2) == 0,
                            .zero_grad_at_start = np_rng_below(&rng, 2) == 0,
                            .long_lives = (uint32_t)np_rng_below(&rng, 2),
                            .false_accesses = (uint32_t)np_rng_below(&rng, 3)};
        neap_trace *trace = make_training(&options);
        ASSERT_TRUE(trace != NULL);
        for (size_t i = 0; i < sizeof margins / sizeof *margins; i++) {
            bool has_grown = false;
            check_trace(trace, margins[i], &rng, &has_grown);
            ASSERT_TRUE(has_grown || margins[i] == 0);
        }
        neap_trace_free(trace);
    }
}

/* ---- host memory ---- */

static neap_status widen(const neap_memory *memory, void *user)
{
    np_period period;
    neap_status status = np_period_find(user, memory, &period);
    if (status == NEAP_OK) {
        size_t n = period.accesses.n;
        np_doubt doubt = {0, 0};
        status = np_margin_widen(&period, 2, &doubt, 1);
        if (status != NEAP_OK && period.accesses.n != n) {
            status = NEAP_INTERNAL; /* it is as it was */
        }
        np_period_free(&period);
    }
    return status;
}

static void test_host_memory(void **state)
{
    training options = {.seed = 3, .n_layers = 3, .n_iterations = 5};
    neap_trace *trace = make_training(&options);
    (void)state;
    ASSERT_TRUE(trace != NULL);
    ASSERT_GT(test_memory_fail_each(widen, trace), 4);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_plain),
        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
