/* test_virtual.c: virtual times, worked out by hand, and found again in the plainest way. */
#include "device/virtual.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-6 * (1 + fabs(b))) {
        test_fail(__FILE__, __LINE__, "%.9g is not %.9g", a, b);
    }
}

static void launch(np_virtual *time, np_stream stream, uint64_t ns, np_times *times)
{
    ASSERT_OK(np_virtual_reserve(time, stream));
    np_virtual_launch(time, stream, ns, times);
}

static void copy(np_virtual *time, np_stream stream, uint64_t bytes)
{
    ASSERT_OK(np_virtual_reserve(time, stream));
    np_virtual_copy(time, stream, bytes);
}

static void await(np_virtual *time, np_stream stream, np_stream other, uint64_t mark)
{
    ASSERT_OK(np_virtual_reserve(time, stream));
    np_virtual_wait(time, stream, other, mark);
}

/* The time at which the last work of a stream ends. */
static double end_of(np_virtual *time, np_stream stream)
{
    np_virtual_sync(time, stream, time->streams[stream].mark);
    ASSERT_EQ(time->streams[stream].done, time->streams[stream].mark);
    ASSERT_TRUE(np_virtual_is_valid(time));
    return time->now_ns;
}

/* ---- by hand ---- */

static void test_streams_side_by_side(void **state)
{
    const neap_link link = {.out_gbs = 1, .in_gbs = 1};
    np_virtual time;
    np_times times[4];
    (void)state;
    np_virtual_init(&time, NULL, &link);
    launch(&time, 0, 100, &times[0]);
    launch(&time, 0, 50, &times[1]);
    launch(&time, 1, 30, &times[2]);
    await(&time, 1, 0, 1);
    launch(&time, 1, 5, &times[3]);
    ASSERT_EQ(time.streams[0].done, 0); /* giving takes no time */
    assert_near(time.now_ns, 0);
    assert_near(end_of(&time, 1), 105); /* 30, then waits until 100 */
    ASSERT_EQ(times[3].start_ns, 100);
    ASSERT_EQ(times[3].duration_ns, 5);
    ASSERT_EQ(times[2].start_ns, 0);
    ASSERT_EQ(time.streams[0].done, 1); /* the other stream is at 105 too: in its second work */
    launch(&time, 1, 1, &times[2]);     /* given at 105 */
    assert_near(end_of(&time, 1), 106);
    ASSERT_EQ(times[2].start_ns, 105);
    assert_near(end_of(&time, 0), 150);
    assert_near(end_of(&time, 1), 150); /* long done: no time passes */
    np_virtual_free(&time);
}

static void test_copies_alone(void **state)
{
    const neap_link link = {.out_gbs = 4, .in_gbs = 2, .both_gbs = 0, .latency_us = 0.01};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    copy(&time, NP_STREAM_OUT, 400);
    copy(&time, NP_STREAM_OUT, 0);
    copy(&time, NP_STREAM_IN, 400); /* at the same time: nothing is shared */
    assert_near(end_of(&time, NP_STREAM_OUT), 10 + 100 + 10);
    assert_near(end_of(&time, NP_STREAM_IN), 10 + 200);
    np_virtual_free(&time);
}

static void test_copies_share_the_link(void **state)
{
    const neap_link link = {.out_gbs = 2, .in_gbs = 2, .both_gbs = 2};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    copy(&time, NP_STREAM_OUT, 100);
    copy(&time, NP_STREAM_IN, 60);
    assert_near(end_of(&time, NP_STREAM_IN), 60);       /* at 1 byte a ns */
    assert_near(end_of(&time, NP_STREAM_OUT), 60 + 20); /* the last 40 at 2 */
    np_virtual_free(&time);
}

/* A share is never more than a direction's own speed. */
static void test_a_share_has_its_limit(void **state)
{
    const neap_link link = {.out_gbs = 4, .in_gbs = 1, .both_gbs = 4};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    copy(&time, NP_STREAM_OUT, 100);
    copy(&time, NP_STREAM_IN, 50);
    assert_near(end_of(&time, NP_STREAM_IN), 50);  /* its own 1, below its half of 4 */
    assert_near(end_of(&time, NP_STREAM_OUT), 50); /* at 2 all the while */
    np_virtual_free(&time);
}

/* A copy in its latency keeps the other from the full speed already. */
static void test_latency_counts_as_busy(void **state)
{
    const neap_link link = {.out_gbs = 2, .in_gbs = 2, .both_gbs = 2, .latency_us = 0.01};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    launch(&time, 0, 20, NULL);
    copy(&time, NP_STREAM_OUT, 100); /* flows from 10 on: 20 bytes by 20 */
    await(&time, NP_STREAM_IN, 0, 1);
    copy(&time, NP_STREAM_IN, 10); /* latency from 20 to 30, then 10 ns at half speed */
    assert_near(end_of(&time, NP_STREAM_IN), 40);
    assert_near(end_of(&time, NP_STREAM_OUT), 40 + 30); /* 20 more bytes by 40, then 60 at 2 */
    np_virtual_free(&time);
}

/* The host comes back at 30 and gives a copy that shares with one under way. */
static void test_what_is_given_late_starts_late(void **state)
{
    const neap_link link = {.out_gbs = 2, .in_gbs = 2, .both_gbs = 2};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    copy(&time, NP_STREAM_OUT, 100);
    launch(&time, 0, 30, NULL);
    assert_near(end_of(&time, 0), 30);
    copy(&time, NP_STREAM_IN, 10);                 /* 30 to 40 */
    assert_near(end_of(&time, NP_STREAM_OUT), 55); /* 60 by 30, 10 by 40, then 30 at 2 */
    ASSERT_EQ(time.streams[NP_STREAM_IN].done, 1);
    np_virtual_free(&time);
}

static void test_work_without_duration(void **state)
{
    const neap_link link = {.out_gbs = 1, .in_gbs = 1};
    np_virtual time;
    np_times times = {9, 9};
    (void)state;
    np_virtual_init(&time, NULL, &link);
    launch(&time, 0, 0, &times);
    ASSERT_EQ(time.streams[0].done, 1); /* over as it is given */
    ASSERT_EQ(times.start_ns, 0);
    ASSERT_EQ(times.duration_ns, 0);
    launch(&time, 0, 10, NULL);
    await(&time, 1, 0, 2);
    launch(&time, 1, 0, &times);
    await(&time, 2, 1, 1);
    launch(&time, 2, 0, NULL);
    ASSERT_EQ(time.streams[2].done, 0);
    np_virtual_sync(&time, 0, 2); /* all that follows at once has happened too */
    ASSERT_EQ(time.streams[1].done, 1);
    ASSERT_EQ(time.streams[2].done, 1);
    ASSERT_EQ(times.start_ns, 10);
    np_virtual_free(&time);
}

/* Behind the host nothing is kept. */
static void test_queues_shrink(void **state)
{
    const neap_link link = {.out_gbs = 1, .in_gbs = 1};
    np_virtual time;
    (void)state;
    np_virtual_init(&time, NULL, &link);
    for (uint64_t i = 1; i <= 100000; i++) {
        launch(&time, 0, 10, NULL);
        if (i > 20) {
            np_virtual_sync(&time, 0, i - 20); /* twenty are always under way */
        }
    }
    ASSERT_LE(time.streams[0].items.capacity, 400);
    assert_near(end_of(&time, 0), 1000000);
    np_virtual_free(&time);
}

/* ---- the plainest way ----
 *
 * All that was ever given is kept in lists. Time goes in steps, each to the earliest end there can be; at every step the
 * state of every item is looked at anew. */

enum { N_STREAMS = 5, MAX_ITEMS = 200 };
static const np_stream stream_ids[N_STREAMS] = {0, 1, 2, NP_STREAM_OUT, NP_STREAM_IN};

typedef struct plain_item {
    np_virtual_kind kind;
    uint32_t other; /* index into stream_ids */
    uint64_t amount;
    bool begun, ended;
    double start_ns;
    double wait_left; /* latency, or all of a task */
    double bytes_left;
} plain_item;

typedef struct plain {
    neap_link link;
    bool exact; /* all times are sums of powers of two: what happens at once happens at once on both sides */
    double now_ns;
    plain_item items[N_STREAMS][MAX_ITEMS];
    uint32_t n[N_STREAMS];
} plain;

static uint64_t plain_done(const plain *p, uint32_t stream)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < p->n[stream]; i++) {
        done += p->items[stream][i].kind != NP_VIRTUAL_WAIT && p->items[stream][i].ended;
    }
    return done;
}

static plain_item *plain_running(plain *p, uint32_t stream)
{
    for (uint32_t i = 0; i < p->n[stream]; i++) {
        if (p->items[stream][i].begun && !p->items[stream][i].ended) {
            return &p->items[stream][i];
        }
    }
    return NULL;
}

static double plain_rate(plain *p, uint32_t stream)
{
    double own = stream == 3 ? p->link.out_gbs : p->link.in_gbs;
    bool both = plain_running(p, 3) && plain_running(p, 4);
    bool busy = plain_running(p, 0) || plain_running(p, 1) || plain_running(p, 2);
    own *= busy && p->link.busy_share > 0 ? p->link.busy_share : 1;
    return both && p->link.both_gbs > 0 ? fmin(own, p->link.both_gbs / 2) : own;
}

/* Something that happens now; false: nothing more does. */
static bool plain_happen(plain *p)
{
    for (uint32_t s = 0; s < N_STREAMS; s++) {
        plain_item *running = plain_running(p, s);
        if (running && running->wait_left <= 0 && running->bytes_left <= 1e-9) {
            running->ended = true;
            return true;
        }
    }
    for (uint32_t s = 0; s < N_STREAMS; s++) {
        for (uint32_t i = 0; i < p->n[s]; i++) {
            plain_item *item = &p->items[s][i];
            if (item->ended) {
                continue;
            }
            if (item->begun || (item->kind == NP_VIRTUAL_WAIT && plain_done(p, item->other) < item->amount)) {
                break;
            }
            item->begun = true;
            item->ended = item->kind == NP_VIRTUAL_WAIT;
            item->start_ns = p->now_ns;
            item->wait_left = item->kind == NP_VIRTUAL_TASK ? (double)item->amount : p->link.latency_us * 1e3;
            item->bytes_left = item->kind == NP_VIRTUAL_COPY ? (double)item->amount : 0;
            return true;
        }
    }
    return false;
}

static void plain_settle(plain *p)
{
    while (plain_happen(p)) {}
}

static void plain_pass(plain *p)
{
    double step = INFINITY;
    double rates[N_STREAMS];
    for (uint32_t s = 0; s < N_STREAMS; s++) {
        const plain_item *running = plain_running(p, s);
        rates[s] = plain_rate(p, s);
        if (running) {
            step = fmin(step, running->wait_left > 0 ? running->wait_left : running->bytes_left / rates[s]);
        }
    }
    ASSERT_TRUE(step < INFINITY);
    for (uint32_t s = 0; s < N_STREAMS; s++) {
        plain_item *running = plain_running(p, s);
        if (running && running->wait_left > 0) {
            running->wait_left = running->wait_left - step > 1e-9 ? running->wait_left - step : 0;
        } else if (running) {
            running->bytes_left -= step * rates[s];
        }
    }
    p->now_ns += step;
    plain_settle(p);
}

static void compare(const np_virtual *time, const plain *p)
{
    assert_near(time->now_ns, p->now_ns);
    for (uint32_t s = 0; s < N_STREAMS && p->exact; s++) {
        ASSERT_EQ(time->streams[stream_ids[s]].done, plain_done(p, s));
    }
    ASSERT_TRUE(np_virtual_is_valid(time));
}

/* One random thing that a host might do. */
static void do_something(np_virtual *time, plain *p, np_rng *rng, np_times times[N_STREAMS][MAX_ITEMS])
{
    uint32_t s = (uint32_t)np_rng_below(rng, N_STREAMS);
    uint32_t other = (uint32_t)np_rng_below(rng, N_STREAMS);
    np_stream id = stream_ids[s];
    uint64_t mark = np_rng_below(rng, time->streams[stream_ids[other]].mark + 1);
    plain_item *added = &p->items[s][p->n[s]];
    switch (np_rng_below(rng, 8)) {
    case 0:
        np_virtual_sync(time, stream_ids[other], mark);
        while (plain_done(p, other) < mark) {
            plain_pass(p);
        }
        compare(time, p);
        return;
    case 1:
    case 2:
        *added = (plain_item){.kind = NP_VIRTUAL_WAIT, .other = other, .amount = mark};
        await(time, id, stream_ids[other], mark);
        break;
    default:
        added->kind = s >= 3 ? NP_VIRTUAL_COPY : NP_VIRTUAL_TASK;
        *added = (plain_item){.kind = added->kind, .amount = np_rng_below(rng, 4) ? np_rng_below(rng, 100) : 0};
        if (s >= 3) {
            copy(time, id, added->amount);
        } else {
            launch(time, id, added->amount, &times[s][p->n[s]]);
        }
    }
    p->n[s]++;
    plain_settle(p);
    compare(time, p);
}

static void test_equals_the_plainest_way(void **state)
{
    static const double exact_speeds[] = {0.25, 0.5, 1, 2, 4};
    static const double speeds[] = {0.3, 0.7, 1, 1.7, 3};
    static plain p;
    static np_times times[N_STREAMS][MAX_ITEMS];
    enum { ROUNDS = TEST_SANITIZED ? 100 : 1000 };
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        np_rng rng = np_rng_make(round);
        np_virtual time;
        bool exact = round % 2 == 0;
        p = (plain){.exact = exact};
        p.link.out_gbs = (exact ? exact_speeds : speeds)[np_rng_below(&rng, 5)];
        p.link.in_gbs = (exact ? exact_speeds : speeds)[np_rng_below(&rng, 5)];
        p.link.both_gbs = np_rng_below(&rng, 4) ? (exact ? exact_speeds : speeds)[np_rng_below(&rng, 5)] : 0;
        p.link.latency_us = np_rng_below(&rng, 2) ? 0.0078125 : 0;
        p.link.busy_share = np_rng_below(&rng, 2) ? exact ? 0.5 : 0.9 : 0;
        np_virtual_init(&time, NULL, &p.link);
        for (int i = 0; i < 150; i++) {
            do_something(&time, &p, &rng, times);
        }
        for (uint32_t s = 0; s < N_STREAMS; s++) {
            (void)end_of(&time, stream_ids[s]);
            while (plain_done(&p, s) < time.streams[stream_ids[s]].mark) {
                plain_pass(&p);
            }
            compare(&time, &p);
        }
        for (uint32_t s = 0; s < 3; s++) {
            for (uint32_t i = 0; i < p.n[s]; i++) {
                if (p.items[s][i].kind == NP_VIRTUAL_TASK) {
                    ASSERT_EQ(times[s][i].duration_ns, p.items[s][i].amount);
                    ASSERT_TRUE(fabs((double)times[s][i].start_ns - p.items[s][i].start_ns) <= 0.51);
                }
            }
        }
        np_virtual_free(&time);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_side_by_side),    cmocka_unit_test(test_copies_alone),
        cmocka_unit_test(test_copies_share_the_link),   cmocka_unit_test(test_a_share_has_its_limit),
        cmocka_unit_test(test_latency_counts_as_busy),  cmocka_unit_test(test_what_is_given_late_starts_late),
        cmocka_unit_test(test_work_without_duration),   cmocka_unit_test(test_queues_shrink),
        cmocka_unit_test(test_equals_the_plainest_way),
    };
    return cmocka_run_group_tests_name("device/virtual", tests, NULL, NULL);
}
