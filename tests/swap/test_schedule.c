#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "swap/make_timeline.h"
#include "swap/simulate.h"
#include "testing.h"

enum { MAX_SWAPS = 256 };

static const random_timeline small = {.max_execs = 24, .max_blocks = 16, .max_bytes = 100, .reads = true};

/* Six execs of 10 ns. 10 bytes used at 0 and 4, 15 at 1 and 5, at 1 byte a ns: the second is due at 50 and starts at 35,
 * the first is due at 40 and makes way: 25. They wait for the ends of execs 1 (20) and 2 (30). */
static void makes_way(void **state)
{
    static const double tens[] = {10, 10, 10, 10, 10, 10};
    static const block_shape blocks[] = {
        {.bytes = 10, .n_uses = 2, .uses = {0, 4}},
        {.bytes = 15, .n_uses = 2, .uses = {1, 5}},
    };
    static const timeline_shape shape = {.n_execs = 6, .durations_ns = tens, .blocks = blocks, .n_blocks = 2};
    np_link link = {.out = 1, .in = 1};
    np_swap swaps[] = {{.bytes = 10, .gap = 0}, {.bytes = 15, .gap = 1}};
    np_timeline timeline;
    (void)state;
    make_timeline(&shape, NULL, &timeline);
    ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, 2));
    ASSERT_EQ(swaps[0].in_after, 1);
    ASSERT_EQ(swaps[1].in_after, 2);
    ASSERT_TRUE(swaps[0].in_key < swaps[1].in_key);
    ASSERT_TRUE(swaps[0].out_key == 10);
    ASSERT_TRUE(swaps[1].out_key == 20);
    link.latency_ns = 6; /* 29, and then 29 - 16 = 13 */
    ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, 2));
    ASSERT_EQ(swaps[0].in_after, 0);
    ASSERT_EQ(swaps[1].in_after, 1);
    link = (np_link){.out = 1, .in = 100};
    ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, 2)); /* 39.9 and 49.85 */
    ASSERT_EQ(swaps[0].in_after, 2);
    ASSERT_EQ(swaps[1].in_after, 3);
    np_timeline_free(&timeline);
}

/* Due early in a period, made way for at the end of the one before: a persistent block of 15 bytes used at exec 1 comes in
 * from 60 + 10 - 15 = 55 on; 10 bytes due at 50 are not disturbed, 10 due at 60 - 0 would be. */
static void makes_way_over_the_end(void **state)
{
    static const double tens[] = {10, 10, 10, 10, 10, 10};
    static const block_shape blocks[] = {
        {.bytes = 15, .persistent = true, .n_uses = 1, .uses = {1}},
        {.bytes = 10, .n_uses = 2, .uses = {0, 5}},
        {.bytes = 10, .persistent = true, .n_uses = 1, .uses = {0}},
    };
    timeline_shape shape = {.n_execs = 6, .durations_ns = tens, .blocks = blocks, .n_blocks = 3};
    np_link link = {.out = 1, .in = 1};
    np_swap swaps[] = {{.bytes = 15, .gap = 0}, {.bytes = 10, .gap = 1}, {.bytes = 10, .gap = 2}};
    np_timeline timeline;
    (void)state;
    make_timeline(&shape, NULL, &timeline);
    ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, 2));
    ASSERT_EQ(swaps[0].in_after, 4); /* 55 */
    ASSERT_EQ(swaps[1].in_after, 3); /* 40 */
    ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, 3));
    ASSERT_EQ(swaps[0].in_after, 4); /* 55 */
    ASSERT_EQ(swaps[2].in_after, 3); /* due at 60, 45 */
    ASSERT_EQ(swaps[1].in_after, 2); /* due at 50, 35 */
    np_timeline_free(&timeline);
}

typedef struct queued {
    double key, ready_ns, length_ns, due_ns;
    uint32_t swap;
} queued;

static int compare_keys(const void *left, const void *right)
{
    const queued *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

/* Runs the queue of copies in over several periods of the undisturbed line. Is each in time, from the third on? */
static bool is_in_time(const np_timeline *timeline, const np_link *link, const np_swap *swaps, uint32_t n)
{
    enum { LAPS = 6 };
    queued *queue = calloc((size_t)n * LAPS + 1, sizeof *queue);
    double now = -INFINITY;
    bool in_time = true;
    ASSERT_TRUE(queue);
    for (uint32_t i = 0; i < n * LAPS; i++) {
        const np_swap *swap = &swaps[i % n];
        double shift = (i / n) * timeline->period_ns;
        queue[i] = (queued){swap->in_key + shift, np_timeline_end(timeline, swap->in_after) + shift,
                            link->latency_ns + (double)swap->bytes / link->in,
                            timeline->gaps.items[swap->gap].due_ns + shift, i % n};
    }
    qsort(queue, (size_t)n * LAPS, sizeof *queue, compare_keys);
    for (uint32_t i = 0; i < n * LAPS; i++) {
        now = fmax(now, queue[i].ready_ns) + queue[i].length_ns;
        in_time = in_time && now <= queue[i].due_ns * (1 + 1e-12) + 1e-9;
    }
    free(queue);
    return in_time;
}

/* The latest starts by going back over many periods, one copy at a time. Do they all lie inside their gaps? */
static bool total_fits(const np_timeline *timeline, const np_link *link, const np_swap *swaps, uint32_t n)
{
    double next = INFINITY;
    bool fits = true;
    for (int lap = 8; lap >= 0; lap--) {
        bool done[MAX_SWAPS] = {false};
        for (uint32_t k = 0; k < n; k++) { /* the one due last of those left */
            uint32_t last = n;
            double due = -INFINITY;
            for (uint32_t i = 0; i < n; i++) {
                double d = fmod(timeline->gaps.items[swaps[i].gap].due_ns, timeline->period_ns);
                if (!done[i] && d >= due) {
                    due = d;
                    last = i;
                }
            }
            done[last] = true;
            next =
                fmin(next, due + lap * timeline->period_ns) - link->latency_ns - (double)swaps[last].bytes / link->in;
            if (lap < 3) {
                const np_gap *gap = &timeline->gaps.items[swaps[last].gap];
                double begin = lap * timeline->period_ns + due - (gap->due_ns - np_timeline_end(timeline, gap->from));
                fits = fits && next >= begin;
            }
        }
    }
    return fits;
}

static void latest_starts_are_in_time(void **state)
{
    np_rng rng = np_rng_make(8);
    uint32_t n_fit = 0, n_late = 0;
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 500 : 3000); round++) {
        np_link link = {.out = 1, .in = 0.5 + 40 * np_rng_unit(&rng), .latency_ns = (double)np_rng_below(&rng, 3)};
        np_timeline timeline;
        np_swap swaps[MAX_SWAPS];
        uint32_t n = 0;
        make_random_timeline(&small, &rng, NULL, &timeline);
        for (uint32_t g = 0; g < timeline.gaps.n; g++) {
            if (np_rng_below(&rng, 2)) {
                swaps[n++] = (np_swap){.bytes = 1 + np_rng_below(&rng, timeline.gaps.items[g].bytes), .gap = g};
            }
        }
        ASSERT_OK(np_schedule_swaps(&timeline, &link, swaps, n));
        for (uint32_t i = 0; i < n; i++) {
            const np_gap *gap = &timeline.gaps.items[swaps[i].gap];
            ASSERT_GE(swaps[i].in_after, gap->from);
            ASSERT_LT(swaps[i].in_after, gap->to);
            ASSERT_TRUE(swaps[i].out_key <= np_timeline_end(&timeline, gap->from));
            for (uint32_t k = 0; k < i; k++) { /* in order of due */
                double other = timeline.gaps.items[swaps[k].gap].due_ns;
                ASSERT_TRUE((swaps[k].in_key < swaps[i].in_key) == (other < gap->due_ns));
            }
        }
        if (total_fits(&timeline, &link, swaps, n)) {
            ASSERT_TRUE(is_in_time(&timeline, &link, swaps, n));
            n_fit++;
            for (uint32_t i = 0; i < n; i++) { /* and none could wait for a later exec */
                np_swap *later = &swaps[i];
                if (later->in_after + 1 < timeline.gaps.items[later->gap].to) {
                    later->in_after++;
                    n_late += !is_in_time(&timeline, &link, swaps, n);
                    later->in_after--;
                }
            }
        }
        np_timeline_free(&timeline);
    }
    ASSERT_GT(n_fit, 100);
    ASSERT_GT(n_late, 100);
}

typedef struct given {
    np_timeline timeline;
    np_swap swaps[MAX_SWAPS];
    uint32_t n;
} given;

static neap_status schedule_within(const neap_memory *memory, void *user)
{
    given *g = user;
    np_link link = {.out = 1, .in = 1};
    np_timeline timeline = g->timeline;
    timeline.memory = memory;
    return np_schedule_swaps(&timeline, &link, g->swaps, g->n);
}

static void fails_without_memory(void **state)
{
    np_rng rng = np_rng_make(1);
    given g = {.n = 0};
    (void)state;
    make_random_timeline(&small, &rng, NULL, &g.timeline);
    for (; g.n < g.timeline.gaps.n; g.n++) {
        g.swaps[g.n] = (np_swap){.bytes = g.timeline.gaps.items[g.n].bytes, .gap = g.n};
    }
    ASSERT_EQ(test_memory_fail_each(schedule_within, &g), 1);
    np_timeline_free(&g.timeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_way),
        cmocka_unit_test(makes_way_over_the_end),
        cmocka_unit_test(latest_starts_are_in_time),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
