/* Against an array of booleans, one for each ns of the period. */
#include "swap/idle.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { PERIOD = 40 };

typedef struct naive {
    bool busy[PERIOD];
} naive;

static bool is_idle(const naive *n, int at)
{
    return !n->busy[((at % PERIOD) + PERIOD) % PERIOD];
}

/* Stretches end where the period does, as the ones of np_idle: a copy never goes over it. */
static bool ends_at(const naive *n, int at, int to)
{
    return at == to || !is_idle(n, at) || at % PERIOD == 0;
}

static bool naive_first(const naive *n, int from, int to, int least, int most, int *begin, int *end)
{
    for (int at = from; at < to; at++) {
        if (is_idle(n, at)) {
            int stop = at + 1;
            while (!ends_at(n, stop, to)) {
                stop++;
            }
            if (stop - at >= least) {
                *begin = at;
                *end = stop - at > most ? at + most : stop;
                return true;
            }
            at = stop - 1;
        }
    }
    return false;
}

static bool naive_last(const naive *n, int from, int to, int least, int most, int *begin, int *end)
{
    for (int at = to; at > from; at--) {
        if (is_idle(n, at - 1)) {
            int start = at - 1;
            while (start > from && start % PERIOD != 0 && is_idle(n, start - 1)) {
                start--;
            }
            if (at - start >= least) {
                *begin = at - start > most ? at - most : start;
                *end = at;
                return true;
            }
            at = start + 1;
        }
    }
    return false;
}

static void assert_same_spans(const np_idle *idle, const naive *n)
{
    bool seen[PERIOD] = {false};
    ASSERT_TRUE(np_idle_is_valid(idle));
    for (size_t i = 0; i < idle->spans.n; i++) {
        for (int at = (int)lround(idle->spans.items[i].begin); at < (int)lround(idle->spans.items[i].end); at++) {
            seen[at] = true;
        }
    }
    for (int at = 0; at < PERIOD; at++) {
        ASSERT_EQ(seen[at], !n->busy[at]);
    }
}

static void asks_and_takes(np_rng *rng, np_idle *idle, naive *n)
{
    bool last = np_rng_below(rng, 2);
    int from = (int)np_rng_below(rng, 4 * PERIOD) - 2 * PERIOD;
    int to = from + (int)np_rng_below(rng, PERIOD + 1);
    int least = 1 + (int)np_rng_below(rng, 6);
    int most = least + (int)np_rng_below(rng, 6);
    int begin = 0, end = 0;
    np_idle_span found = {0, 0};
    bool wanted = (last ? naive_last : naive_first)(n, from, to, least, most, &begin, &end);
    bool got = (last ? np_idle_last : np_idle_first)(idle, from, to, least, most, &found);
    ASSERT_EQ(got, wanted);
    if (!got) {
        return;
    }
    ASSERT_TRUE(fabs(found.begin - begin) < 1e-9);
    ASSERT_TRUE(fabs(found.end - end) < 1e-9);
    if (np_rng_below(rng, 2)) {
        ASSERT_OK(np_idle_take(idle, &np_memory_default, found));
        for (int at = begin; at < end; at++) {
            n->busy[((at % PERIOD) + PERIOD) % PERIOD] = true;
        }
        assert_same_spans(idle, n);
    }
}

static void equals_booleans(void **state)
{
    np_rng rng = np_rng_make(2);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 100 : 1000); round++) {
        np_idle idle;
        naive n = {{false}};
        ASSERT_OK(np_idle_init(&idle, &np_memory_default, PERIOD));
        for (int i = 0; i < 60; i++) {
            asks_and_takes(&rng, &idle, &n);
        }
        np_idle_free(&idle, &np_memory_default);
    }
}

/* Numbers that are not whole: whatever is found lies in idle time and is asked for; nothing is found twice, and in the end
 * nothing is left. */
static void takes_everything_once(void **state)
{
    np_rng rng = np_rng_make(3);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 50 : 500); round++) {
        double period = 1e8 * (0.5 + np_rng_unit(&rng));
        double taken = 0;
        np_idle idle;
        np_idle_span found;
        ASSERT_OK(np_idle_init(&idle, &np_memory_default, period));
        for (int i = 0; i < 400; i++) {
            double from = (4 * np_rng_unit(&rng) - 2) * period;
            double to = from + np_rng_unit(&rng) * period;
            double least = np_rng_unit(&rng) * 1e6;
            double most = least * (1 + np_rng_unit(&rng));
            if (!(np_rng_below(&rng, 2) ? np_idle_first : np_idle_last)(&idle, from, to, least, most, &found)) {
                continue;
            }
            ASSERT_TRUE(found.begin >= from && found.end <= to);
            ASSERT_TRUE(found.end - found.begin >= least * (1 - 1e-9));
            ASSERT_TRUE(found.end - found.begin <= most * (1 + 1e-9) + 1e-6);
            ASSERT_OK(np_idle_take(&idle, &np_memory_default, found));
            ASSERT_TRUE(np_idle_is_valid(&idle));
            taken += found.end - found.begin;
        }
        while (np_idle_first(&idle, 0, period, 0, INFINITY, &found)) {
            ASSERT_OK(np_idle_take(&idle, &np_memory_default, found));
            taken += found.end - found.begin;
        }
        ASSERT_EQ(idle.spans.n, 0);
        ASSERT_TRUE(fabs(taken - period) <= 1e-9 * period + 1); /* what is shorter than 0.001 ns is forgotten */
        ASSERT_FALSE(np_idle_first(&idle, -period, 0, 0, 1, &found));
        ASSERT_FALSE(np_idle_last(&idle, -period, 0, 0, 1, &found));
        np_idle_free(&idle, &np_memory_default);
    }
}

static neap_status take_within(const neap_memory *memory, void *user)
{
    np_idle idle;
    neap_status status = np_idle_init(&idle, memory, 100);
    (void)user;
    for (int i = 0; i < 20 && status == NEAP_OK; i++) {
        status = np_idle_take(&idle, memory, (np_idle_span){5.0 * i + 1, 5.0 * i + 2});
    }
    np_idle_free(&idle, memory);
    return status;
}

static void fails_without_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(take_within, NULL), 1);
}

/* A stretch that begins at a lap's end may begin just before it by rounding, and one may be too short to be told. */
static void stretches_are_rounded(void **state)
{
    const double period_ns = 3.3005241961687622e17;
    const double lap_ns = nextafter(period_ns, 0);
    np_idle idle;
    (void)state;
    ASSERT_OK(np_idle_init(&idle, &np_memory_default, period_ns));
    ASSERT_OK(np_idle_take(&idle, &np_memory_default, (np_idle_span){0.5 * period_ns, period_ns}));
    ASSERT_OK(np_idle_take(&idle, &np_memory_default, (np_idle_span){lap_ns, 1.25 * period_ns}));
    ASSERT_EQ(idle.spans.n, 1);
    ASSERT_TRUE(fabs(idle.spans.items[0].begin / period_ns - 0.25) < 1e-9);
    ASSERT_TRUE(idle.spans.items[0].end == 0.5 * period_ns);
    ASSERT_OK(np_idle_take(&idle, &np_memory_default, (np_idle_span){lap_ns, lap_ns}));
    ASSERT_EQ(idle.spans.n, 1);
    ASSERT_TRUE(np_idle_is_valid(&idle));
    np_idle_free(&idle, &np_memory_default);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_booleans),
        cmocka_unit_test(takes_everything_once),
        cmocka_unit_test(stretches_are_rounded),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
