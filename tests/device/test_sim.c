/* test_sim.c: the sim device's times, by hand and against the planner's simulators; real bytes; the same every time. */
#include "device/device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/device_tools.h"
#include "swap/make_timeline.h"
#include "swap/naive_simulator.h"
#include "testing.h"

static uint64_t sync_and_look(np_device *device, np_stream stream, uint64_t mark)
{
    device_sync(device, stream, mark);
    return device->api->now_ns(device);
}

/* ---- by hand ---- */

static void test_clock_moves_with_the_host(void **state)
{
    np_device *device = device_open("sim:streams=2,memory=1MiB", NULL);
    const np_device_interface *api = device->api;
    np_times times[3];
    uint64_t first, second;
    (void)state;
    ASSERT_EQ(api->now_ns(device), 0);
    first = device_pause(device, 0, 1000, &times[0]);
    second = device_pause(device, 0, 500, &times[1]);
    device_pause(device, 1, 1200, &times[2]);
    ASSERT_FALSE(api->is_done(device, 0, first));
    ASSERT_EQ(api->now_ns(device), 0);
    ASSERT_EQ(sync_and_look(device, 0, first), 1000);
    ASSERT_FALSE(api->is_done(device, 0, second));
    ASSERT_FALSE(api->is_done(device, 1, 1));
    ASSERT_EQ(sync_and_look(device, 0, second), 1500);
    ASSERT_TRUE(api->is_done(device, 1, 1)); /* it ended at 1200 */
    ASSERT_EQ(times[1].start_ns, 1000);
    ASSERT_EQ(times[2].duration_ns, 1200);
    ASSERT_EQ(sync_and_look(device, 1, 1), 1500);
    ASSERT_EQ(sync_and_look(device, 1, device_pause(device, 1, 1, NULL)), 1501);
    device_close(device);
}

/* 55 GB/s each way, 100 together, 2 us latency. */
static void test_copies_of_a_known_link(void **state)
{
    np_device *device = device_open("sim:h200-pcie5,memory=16MiB", NULL);
    uint32_t n_pages = 2700; /* 11,059,200 bytes */
    uint64_t bytes = 5500000;
    char *at = device_map(device, 0, n_pages);
    char *host;
    uint64_t mark;
    (void)state;
    ASSERT_OK(device->api->host_alloc(device, 2 * bytes, &host));
    memset(host, 3, 2 * bytes);
    memset(at, 2, bytes);

    /* One alone. */
    ASSERT_EQ(sync_and_look(device, NP_STREAM_OUT, device_copy(device, NP_STREAM_OUT, host, at, bytes)), 102000);
    ASSERT_EQ(host[bytes - 1], 2);

    /* Two at once, at 50 each. */
    device_copy(device, NP_STREAM_IN, at + bytes, host + bytes, bytes);
    mark = device_copy(device, NP_STREAM_OUT, host, at, bytes);
    ASSERT_EQ(sync_and_look(device, NP_STREAM_OUT, mark), 102000 + 112000);
    ASSERT_TRUE(device->api->is_done(device, NP_STREAM_IN, 1));
    ASSERT_EQ(at[bytes], 3);

    /* The copy in begins 52 us after the copy out, when that has 2,750,000 bytes left: 55 us at 50. By then 2,650,000
     * bytes are in, and the rest takes 51,818 ns at 55. */
    mark = device_copy(device, NP_STREAM_OUT, host, at, bytes);
    device_wait(device, NP_STREAM_IN, 0, device_pause(device, 0, 52000, NULL));
    device_copy(device, NP_STREAM_IN, at + bytes, host + bytes, bytes);
    ASSERT_EQ(sync_and_look(device, NP_STREAM_OUT, mark), 214000 + 107000);
    ASSERT_EQ(sync_and_look(device, NP_STREAM_IN, 2), 214000 + 158818);
    device_sync_all(device);
    device->api->host_free(device, host, 2 * bytes);
    device_unmap(device, at, 0, n_pages);
    device_close(device);
}

static void test_work_waits_for_copies(void **state)
{
    np_device *device = device_open("sim:link=1GB/s,memory=1MiB", NULL);
    char *at = device_map(device, 0, 1);
    char host[4096];
    np_times times;
    (void)state;
    memset(host, 5, sizeof host);
    device_wait(device, 0, NP_STREAM_IN, device_copy(device, NP_STREAM_IN, at, host, 4096));
    device_increment(device, 0, at, 4096);
    device_sync(device, 0, device_pause(device, 0, 10, &times));
    ASSERT_EQ(times.start_ns, 4096);
    ASSERT_EQ(device->api->now_ns(device), 4106);
    ASSERT_EQ(at[0], 6);
    device_unmap(device, at, 0, 1);
    device_close(device);
}

/* Work that would fault is not run; the device says so, and goes on. */
static void test_unmapped_work_is_not_run(void **state)
{
    np_device *device = device_open("sim:memory=1MiB", NULL);
    char *at;
    char host[100] = {0};
    uint64_t mark;
    (void)state;
    ASSERT_OK(device->api->reserve(device, 1, &at));
    ASSERT_TRUE(device->api->problem(device) == NULL);
    device_sync(device, 0, device_fill(device, 0, at, 100, 1));
    ASSERT_CONTAINS(device->api->problem(device), "work 1 of stream 0 uses");
    ASSERT_CONTAINS(device->api->problem(device), "which is not mapped");
    ASSERT_OK(device->api->copy(device, NP_STREAM_OUT, host, at, 100, &mark));
    device_sync_all(device);
    device->api->unreserve(device, at, 1);
    device->api->free(device);
}

static void test_a_missing_wait_is_found(void **state)
{
    np_device *device = device_open("sim:memory=1MiB", NULL);
    char *at = device_map(device, 0, 1);
    char host[100];
    (void)state;
    device_fill(device, 0, at, 100, 1);
    device_copy(device, NP_STREAM_OUT, host, at, 100);
    ASSERT_STR_EQ(
        device->api->problem(device),
        "copy 1 out reads bytes 0 to 100 of device memory, which work 1 of stream 0 writes: nothing orders the "
        "two");
    ASSERT_EQ(host[99], 1); /* it went well all the same: that is why it has to be looked for */
    device->api->free(device);
}

/* To ask and to be told that it is done is as good as to wait. */
static void test_is_done_is_knowledge(void **state)
{
    np_device *device = device_open("sim:memory=1MiB,streams=2", NULL);
    char *at = device_map(device, 0, 1);
    (void)state;
    device_fill(device, 0, at, 100, 1);
    ASSERT_TRUE(device->api->is_done(device, 0, 1)); /* it takes no time */
    device_fill(device, 1, at, 100, 2);
    device_sync_all(device);
    device_unmap(device, at, 0, 1);
    device_close(device);
}

/* ---- the same every time ---- */

typedef struct journal {
    uint64_t now_ns[400];
    np_times times[400];
    char bytes[4096];
} journal;

static void run_random(uint64_t seed, journal *made)
{
    np_device *device = device_open("sim:1080ti-pcie3,streams=3,memory=1MiB", NULL);
    np_rng rng = np_rng_make(seed);
    char *at = device_map(device, 0, 4);
    char *host;
    *made = (journal){0};
    ASSERT_OK(device->api->host_alloc(device, 4 * 4096, &host));
    memset(host, 0, 4 * 4096);
    for (int i = 0; i < 400; i++) {
        np_stream stream = (np_stream)np_rng_below(&rng, 3);
        np_stream other = (np_stream)np_rng_below(&rng, 3);
        uint64_t offset = np_rng_below(&rng, 4) * 4096;
        uint64_t bytes = np_rng_below(&rng, 4096);
        switch (np_rng_below(&rng, 6)) {
        case 0:
            device_sync(device, other, np_rng_below(&rng, device->api->mark(device, other) + 1));
            break;
        case 1:
            device_copy(device, NP_STREAM_OUT, host + offset, at + offset, bytes);
            break;
        case 2:
            device_copy(device, NP_STREAM_IN, at + offset, host + offset, bytes);
            break;
        case 3:
            device_wait(device, stream, other, device->api->mark(device, other));
            device_increment(device, stream, at + offset, bytes);
            break;
        default:
            device_pause(device, stream, np_rng_below(&rng, 3000), &made->times[i]);
        }
        made->now_ns[i] = device->api->now_ns(device);
    }
    device_sync_all(device);
    memcpy(made->bytes, at, sizeof made->bytes);
    device->api->host_free(device, host, 4 * 4096);
    device->api->free(device); /* it has found races: they are part of the program */
}

static void test_the_same_every_time(void **state)
{
    static journal first, second;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        run_random(seed, &first);
        run_random(seed, &second);
        ASSERT_EQ(memcmp(&first, &second, sizeof first), 0);
        ASSERT_GT(first.now_ns[399], 0);
    }
}

/* ---- against the planner ----
 *
 * A plan is run on the device, copy by copy and exec by exec, and takes as long as the planner's simulator says. Without
 * a limit, as there the memory decides who waits: that is the manager's to say by waits. */

enum { MAX_EXECS = 16, MAX_BLOCKS = 10, MAX_SWAPS = 100, PERIODS = 24 };

typedef struct turn {
    double key;
    uint32_t period;
    uint32_t swap;
} turn;

typedef struct replay {
    const np_timeline *timeline;
    const np_swap *swaps;
    uint32_t n_swaps;
    np_device *device;
    char *at;
    char *host;
    turn outs[MAX_SWAPS * PERIODS];
    turn ins[MAX_SWAPS * PERIODS];
    uint32_t n_turns;
    uint32_t next_out, next_in, next_exec;
    uint64_t out_marks[PERIODS][MAX_SWAPS]; /* 0: not given yet */
    uint64_t in_marks[PERIODS][MAX_SWAPS];
    uint64_t exec_marks[PERIODS * MAX_EXECS];
    np_times times[PERIODS * MAX_EXECS];
} replay;

static int compare_turns(const void *left, const void *right)
{
    const turn *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->swap < b->swap ? -1 : a->swap > b->swap;
}

static bool give_exec(replay *r)
{
    uint32_t n = r->timeline->n_execs;
    uint32_t k = r->next_exec % n;
    uint32_t period = r->next_exec / n;
    double duration = r->timeline->end_ns.items[k] - r->timeline->start_ns.items[k];
    if (r->next_exec == n * PERIODS) {
        return false;
    }
    for (uint32_t i = 0; i < r->n_swaps; i++) {
        if (r->timeline->gaps.items[r->swaps[i].gap].to == k && r->in_marks[period][i] == 0) {
            return false;
        }
    }
    device_pause(r->device, 0, (uint64_t)r->timeline->start_ns.items[0], NULL);
    for (uint32_t i = 0; i < r->n_swaps; i++) {
        if (r->timeline->gaps.items[r->swaps[i].gap].to == k) {
            device_wait(r->device, 0, NP_STREAM_IN, r->in_marks[period][i]);
        }
    }
    r->exec_marks[r->next_exec] = device_pause(r->device, 0, (uint64_t)duration, &r->times[r->next_exec]);
    r->next_exec++;
    return true;
}

/* All uses write, so a copy out follows the use before its gap. */
static bool give_out(replay *r)
{
    const turn *t = &r->outs[r->next_out];
    uint64_t exec;
    if (r->next_out == r->n_turns) {
        return false;
    }
    exec = r->exec_marks[t->period * r->timeline->n_execs + r->timeline->gaps.items[r->swaps[t->swap].gap].from];
    if (exec == 0) {
        return false;
    }
    device_wait(r->device, NP_STREAM_OUT, 0, exec);
    r->out_marks[t->period][t->swap] = device_copy(r->device, NP_STREAM_OUT, r->host, r->at, r->swaps[t->swap].bytes);
    r->next_out++;
    return true;
}

static bool give_in(replay *r)
{
    const turn *t = &r->ins[r->next_in];
    uint64_t exec, out;
    if (r->next_in == r->n_turns) {
        return false;
    }
    exec = r->exec_marks[t->period * r->timeline->n_execs + r->swaps[t->swap].in_after];
    out = r->out_marks[t->period][t->swap];
    if (exec == 0 || out == 0) {
        return false;
    }
    device_wait(r->device, NP_STREAM_IN, 0, exec);
    device_wait(r->device, NP_STREAM_IN, NP_STREAM_OUT, out);
    r->in_marks[t->period][t->swap] = device_copy(r->device, NP_STREAM_IN, r->at, r->host, r->swaps[t->swap].bytes);
    r->next_in++;
    return true;
}

static void play(replay *r)
{
    for (uint32_t period = 0; period < PERIODS; period++) {
        for (uint32_t i = 0; i < r->n_swaps; i++) {
            double shift = period * r->timeline->period_ns;
            r->outs[r->n_turns] = (turn){shift + r->swaps[i].out_key, period, i};
            r->ins[r->n_turns++] = (turn){shift + r->swaps[i].in_key, period, i};
        }
    }
    qsort(r->outs, r->n_turns, sizeof *r->outs, compare_turns);
    qsort(r->ins, r->n_turns, sizeof *r->ins, compare_turns);
    while (give_out(r) || give_in(r) || give_exec(r)) {}
    ASSERT_EQ(r->next_exec, PERIODS * r->timeline->n_execs);
    device_sync_all(r->device);
}

static double exec_end(const replay *r, uint32_t exec)
{
    return (double)(r->times[exec].start_ns + r->times[exec].duration_ns);
}

/* Non-persistent blocks that are written by every use, within the period; some of their gaps are swapped. */
static uint32_t random_plan(np_rng *rng, const np_link *link, np_timeline *timeline, np_swap swaps[MAX_SWAPS])
{
    static double durations[MAX_EXECS];
    block_shape blocks[MAX_BLOCKS];
    timeline_shape shape = {.n_execs = 6 + (uint32_t)np_rng_below(rng, MAX_EXECS - 5), .durations_ns = durations};
    uint32_t n_swaps = 0;
    shape.pause_ns = (double)np_rng_below(rng, 3) * 20;
    shape.n_blocks = 2 + (uint32_t)np_rng_below(rng, MAX_BLOCKS - 1);
    shape.blocks = blocks;
    for (uint32_t k = 0; k < shape.n_execs; k++) {
        durations[k] = 100 + (double)np_rng_below(rng, 1000);
    }
    for (uint32_t b = 0; b < shape.n_blocks; b++) {
        blocks[b] = (block_shape){.bytes = 1 + np_rng_below(rng, 4096)};
        for (uint32_t k = 0; k < shape.n_execs && blocks[b].n_uses < SHAPE_USES; k++) {
            if (np_rng_below(rng, 4) == 0 || (k + 1 == shape.n_execs && blocks[b].n_uses == 0)) {
                blocks[b].uses[blocks[b].n_uses++] = k;
            }
        }
    }
    make_timeline(&shape, NULL, timeline);
    for (uint32_t g = 0; g < timeline->gaps.n && n_swaps < MAX_SWAPS; g++) {
        if (np_rng_below(rng, 3) > 0) {
            swaps[n_swaps++] = (np_swap){.gap = g, .bytes = timeline->gaps.items[g].bytes};
        }
    }
    ASSERT_OK(np_schedule_swaps(timeline, link, swaps, n_swaps));
    return n_swaps;
}

static void test_plans_take_as_long_as_planned(void **state)
{
    static replay r;
    enum { ROUNDS = TEST_SANITIZED ? 20 : 150 };
    uint32_t n_slowed = 0;
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        static const char *const names[] = {"sim:h200-pcie5,memory=8KiB", "sim:1080ti-pcie3,memory=8KiB",
                                            "sim:link=2GB/s,memory=8KiB", "sim:a100-pcie4,memory=8KiB"};
        np_rng rng = np_rng_make(round);
        np_swap swaps[MAX_SWAPS];
        np_timeline timeline;
        np_simulator *simulator;
        np_simulation planned;
        naive_result naive;
        neap_link link;
        np_link bytes_a_ns;
        double period_ns;
        uint32_t n;
        r = (replay){.swaps = swaps, .timeline = &timeline, .device = device_open(names[round % 4], NULL)};
        r.at = device_map(r.device, 0, 1);
        ASSERT_OK(r.device->api->host_alloc(r.device, 4096, &r.host));
        memset(r.host, 0, 4096);
        ASSERT_OK(r.device->api->link(r.device, &link));
        bytes_a_ns = (np_link){link.out_gbs, link.in_gbs, link.both_gbs, link.latency_us * 1e3};
        r.n_swaps = random_plan(&rng, &bytes_a_ns, &timeline, swaps);
        n = timeline.n_execs;
        naive = naive_simulate(&timeline, &bytes_a_ns, UINT64_MAX, swaps, r.n_swaps, PERIODS);
        ASSERT_TRUE(naive.possible);
        play(&r);
        if (naive.steady) {
            uint32_t last = naive.n_until + naive.n_cycle;
            period_ns = (exec_end(&r, last * n - 1) - exec_end(&r, naive.n_until * n - 1)) / naive.n_cycle;
            ASSERT_TRUE(fabs(period_ns - naive.period_ns) <= 2); /* times are whole ns */
            ASSERT_OK(np_simulator_create(&timeline, &bytes_a_ns, &simulator));
            ASSERT_OK(np_simulate(simulator, UINT64_MAX, swaps, r.n_swaps, &planned));
            ASSERT_TRUE(fabs(period_ns - planned.period_ns) <= 2);
            np_simulator_free(simulator);
            n_slowed += period_ns > timeline.period_ns + 10;
        }
        free(naive.absences);
        np_timeline_free(&timeline);
        r.device->api->host_free(r.device, r.host, 4096);
        r.device->api->free(r.device); /* all copies use the same bytes here: races by design */
    }
    ASSERT_GT(n_slowed, ROUNDS / 10); /* copies did matter */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_moves_with_the_host), cmocka_unit_test(test_copies_of_a_known_link),
        cmocka_unit_test(test_work_waits_for_copies),     cmocka_unit_test(test_unmapped_work_is_not_run),
        cmocka_unit_test(test_a_missing_wait_is_found),   cmocka_unit_test(test_is_done_is_knowledge),
        cmocka_unit_test(test_the_same_every_time),       cmocka_unit_test(test_plans_take_as_long_as_planned),
    };
    return cmocka_run_group_tests_name("device/sim", tests, NULL, NULL);
}
