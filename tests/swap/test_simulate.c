#include "swap/simulate.h"

#include <math.h>
#include <stdlib.h>

#include "swap/make_timeline.h"
#include "swap/naive_simulator.h"
#include "testing.h"

enum { MAX_SWAPS = 64 };

typedef struct counts {
    uint32_t n, n_impossible, n_late, n_cyclic, n_unsteady, bad;
} counts;

static uint32_t random_swaps(const np_timeline *timeline, const np_link *link, np_rng *rng, np_swap *swaps)
{
    uint32_t n = 0;
    uint32_t share = 1 + (uint32_t)np_rng_below(rng, 4);
    bool order_at_random = np_rng_below(rng, 4) == 0;
    for (uint32_t g = 0; g < timeline->gaps.n && n + 4 < MAX_SWAPS; g++) {
        uint64_t left = timeline->gaps.items[g].bytes;
        if (np_rng_below(rng, 4) >= share) {
            continue;
        }
        while (left > 0) {
            uint64_t bytes = np_rng_below(rng, 3) ? left : 1 + np_rng_below(rng, left);
            swaps[n++] = (np_swap){.bytes = bytes, .gap = g};
            left -= bytes;
            if (np_rng_below(rng, 4) == 0 || n + 4 >= MAX_SWAPS) {
                break;
            }
        }
    }
    ASSERT_OK(np_schedule_swaps(timeline, link, swaps, n));
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = &timeline->gaps.items[swaps[i].gap];
        if (np_rng_below(rng, 4) == 0) {
            swaps[i].in_after = gap->from + (uint32_t)np_rng_below(rng, gap->to - gap->from);
        }
        if (order_at_random) {
            double begin = ceil(np_timeline_start(timeline, gap->from));
            double span = floor(gap->due_ns - begin);
            swaps[i].out_key = begin + (double)np_rng_below(rng, 1 + (uint64_t)span / 2);
            swaps[i].in_key = gap->due_ns - (double)np_rng_below(rng, 1 + (uint64_t)span / 2);
        }
    }
    return n;
}

static void compare(np_rng *rng, bool dyadic, counts *c)
{
    static const random_timeline small = {.max_execs = 16, .max_blocks = 12, .max_bytes = 64, .reads = true};
    static const double speeds[] = {0.25, 0.5, 1, 2, 4, 8, 16, 32};
    np_link link = {.out = 0.3 + 20 * np_rng_unit(rng), .in = 0.3 + 20 * np_rng_unit(rng)};
    np_timeline timeline;
    np_simulator *simulator;
    np_simulation got;
    naive_result wanted;
    np_swap swaps[MAX_SWAPS];
    uint32_t n;
    uint64_t limit;
    if (dyadic) {
        link.out = speeds[np_rng_below(rng, 8)];
        link.in = speeds[np_rng_below(rng, 8)];
    }
    if (np_rng_below(rng, 2)) {
        link.both = dyadic ? speeds[np_rng_below(rng, 8)] : (link.out + link.in) * (0.3 + 0.7 * np_rng_unit(rng));
    }
    link.latency_ns = np_rng_below(rng, 2) ? (double)np_rng_below(rng, 4) : 0;
    make_random_timeline(&small, rng, NULL, &timeline);
    n = random_swaps(&timeline, &link, rng, swaps);
    limit = np_rng_below(rng, 3) == 0 ? UINT64_MAX : timeline.peak_load * (30 + np_rng_below(rng, 80)) / 100;
    ASSERT_OK(np_simulator_create(&timeline, &link, &simulator));
    ASSERT_OK(np_simulate(simulator, limit, swaps, n, &got));
    wanted = naive_simulate(&timeline, &link, limit, swaps, n, 60);
    c->n++;
    c->n_impossible += !wanted.possible;
    c->n_late += wanted.possible && wanted.period_ns > timeline.period_ns * 1.0001;
    c->n_cyclic += wanted.n_cycle > 1;
    c->n_unsteady += wanted.possible && !wanted.steady;
    bool ok = got.possible == wanted.possible;
    if (ok && wanted.possible) {
        ok = fabs(got.period_ns - wanted.period_ns) <= 1e-6 * wanted.period_ns && got.peak == wanted.peak;
        ok = ok && got.bytes_out == wanted.bytes_out && got.bytes_in == wanted.bytes_in;
    }
    if (ok && !wanted.possible) ok = got.halted_at == wanted.halted_at;
    if (!ok) {
        c->bad++;
        if (c->bad < 30)
        printf("%u: limit %d possible %d %d period %g %g (T %g) peak %lu %lu out %lu %lu in %lu %lu cycle %u after %u steady %d halt %u %u\n", c->n, (int)limit, got.possible, wanted.possible,
            got.period_ns, wanted.period_ns, timeline.period_ns, got.peak, wanted.peak, got.bytes_out, wanted.bytes_out, got.bytes_in, wanted.bytes_in,
            wanted.n_cycle, wanted.n_until, wanted.steady, got.halted_at, wanted.halted_at);
    } else if (wanted.possible && wanted.n_cycle == 1) {
        for (uint32_t i = 0; i < n; i++) {
            np_absence a = np_simulator_absence(simulator, i);
            naive_absence b = wanted.absences[i];
            uint32_t to = timeline.gaps.items[swaps[i].gap].to;
            if (a.back_from > to) a.back_from = to;
            if ((a.absent_from != b.absent_from && (a.absent_from < to || b.absent_from < to)) || (a.back_from != b.back_from && !b.tie)) {
                printf("%u: swap %u absence %u %u naive %u %u from %u to %u tie %d\n", c->n, i, a.absent_from, a.back_from, b.absent_from, b.back_from, timeline.gaps.items[swaps[i].gap].from, to, b.tie);
                c->bad++;
            }
        }
    }
    free(wanted.absences);
    np_simulator_free(simulator);
    np_timeline_free(&timeline);
}

static void equals_naive(void **state)
{
    (void)state;
    for (int dyadic = 0; dyadic < 2; dyadic++) {
        counts c = {0};
        np_rng rng = np_rng_make(11);
        for (int i = 0; i < 5000; i++) compare(&rng, dyadic, &c);
        printf("dyadic %d n %u impossible %u late %u cyclic %u unsteady %u bad %u\n", dyadic, c.n, c.n_impossible, c.n_late, c.n_cyclic, c.n_unsteady, c.bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_naive)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
