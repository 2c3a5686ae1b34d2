/* test_timed.c: execs are timed on the plan, a few laps long.
 *
 * First by hand, on a device that says when its work is done as the test wants it; then beneath a program on virtual
 * time, whose work takes longer while there is no plan. */
#include "run/timed.h"

#include <math.h>
#include <string.h>

#include "run/little_program.h"
#include "testing.h"

/* ---- by hand ---- */

enum { N_EXECS = 4, N_STREAMS = 2 };

typedef struct slow_device {
    np_device base;
    uint64_t given[N_STREAMS];
    uint64_t done[N_STREAMS];
} slow_device;

static uint64_t mark_of(const np_device *device, np_stream stream)
{
    ASSERT_LT(stream, N_STREAMS);
    return ((const slow_device *)(const void *)device)->given[stream];
}

static bool is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    ASSERT_LT(stream, N_STREAMS);
    return ((const slow_device *)(const void *)device)->done[stream] >= mark;
}

static const np_device_interface interface = {.mark = mark_of, .is_done = is_done};

static slow_device open_device(void)
{
    return (slow_device){.base = {.api = &interface, .n_streams = N_STREAMS}};
}

typedef struct scene {
    test_memory memory;
    slow_device device;
    np_timed timed;
    np_times first; /* of the lap's first exec */
} scene;

static void open_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    test_memory_init(&s->memory);
    s->device = open_device();
}

static void close_scene(scene *s)
{
    np_timed_free(&s->timed, &s->memory.hook);
    ASSERT_EQ(s->timed.state, NP_TIMED_NOT);
    test_memory_finish(&s->memory);
}

static void end_lap(scene *s)
{
    np_timed_end_lap(&s->timed, &s->device.base, &s->first);
}

/* Work of a lap, which the device has not done when the lap ends. */
static void give_work(scene *s)
{
    s->device.given[0] += 3;
    s->device.given[1] += 2;
}

static void do_work(scene *s)
{
    memcpy(s->device.done, s->device.given, sizeof s->device.done);
}

/* A lap that is timed, and the one after it, at whose end its times are taken. Execs are apart. */
static void time_lap(scene *s, const uint64_t *ns)
{
    ASSERT_EQ(s->timed.state, NP_TIMED_ON);
    give_work(s);
    end_lap(s);
    ASSERT_EQ(s->timed.state, NP_TIMED_GIVEN);
    s->first = (np_times){.start_ns = 1000, .duration_ns = ns[0]};
    for (uint32_t i = 1; i < s->timed.n_execs; i++) {
        s->timed.times[i] = (np_times){.start_ns = 1000 + 1000000 * (uint64_t)i, .duration_ns = ns[i]};
    }
    do_work(s);
    end_lap(s);
}

static void begin(scene *s, uint32_t n_execs)
{
    np_timed_want(&s->timed, n_execs, 3, &s->memory.hook);
    ASSERT_EQ(s->timed.state, NP_TIMED_WANTED);
    end_lap(s);
    ASSERT_EQ(s->timed.state, NP_TIMED_ON);
}

static void test_states(void **state)
{
    static const uint64_t ns[N_EXECS] = {700, 800, 900, 1000};
    scene s;
    size_t n_calls;
    (void)state;
    open_scene(&s);
    end_lap(&s);
    ASSERT_EQ(s.timed.state, NP_TIMED_NOT); /* nobody wants it */
    begin(&s, N_EXECS);
    n_calls = s.memory.n_calls;
    np_timed_want(&s.timed, N_EXECS, 3, &s.memory.hook); /* it is wanted already */
    ASSERT_EQ(s.timed.state, NP_TIMED_ON);
    for (uint32_t lap = 1; lap <= 3; lap++) {
        time_lap(&s, ns);
        ASSERT_EQ(s.timed.n_laps, lap);
        ASSERT_EQ(s.timed.state, lap < 3 ? NP_TIMED_ON : NP_TIMED_DONE);
    }
    end_lap(&s);
    np_timed_want(&s.timed, N_EXECS, 3, &s.memory.hook);
    ASSERT_EQ(s.timed.state, NP_TIMED_DONE); /* and that is that */
    ASSERT_EQ(s.timed.n_laps, 3);
    ASSERT_EQ(s.memory.n_calls, n_calls);
    ASSERT_EQ(memcmp(s.timed.shortest_ns, ns, sizeof ns), 0);
    ASSERT_TRUE(np_timed_sum(&s.timed) == 3400);
    close_scene(&s);
}

/* The device is behind, on either stream: its times are not looked at before it has come so far. */
static void test_not_over(void **state)
{
    (void)state;
    for (int stream = 0; stream < N_STREAMS; stream++) {
        scene s;
        open_scene(&s);
        begin(&s, 2);
        give_work(&s);
        end_lap(&s);
        ASSERT_EQ(s.timed.state, NP_TIMED_GIVEN);
        for (int lap = 0; lap < 5; lap++) {
            give_work(&s);
            memcpy(s.device.done, s.timed.marks, sizeof s.device.done);
            s.device.done[stream]--;
            end_lap(&s);
            ASSERT_EQ(s.timed.state, NP_TIMED_GIVEN);
            ASSERT_EQ(s.timed.n_laps, 0);
            ASSERT_TRUE(np_timed_sum(&s.timed) == 0);
        }
        s.first = (np_times){.start_ns = 100, .duration_ns = 50};
        s.timed.times[1] = (np_times){.start_ns = 99999, .duration_ns = 60};
        s.device.done[stream]++; /* its last work; later laps' is not */
        end_lap(&s);
        ASSERT_EQ(s.timed.state, NP_TIMED_ON);
        ASSERT_EQ(s.timed.n_laps, 1);
        ASSERT_TRUE(np_timed_sum(&s.timed) == 110);
        close_scene(&s);
    }
}

/* Of three laps, each exec by itself; what is not known in one is known from the others, or not at all. */
static void test_shortest(void **state)
{
    static const uint64_t laps[3][N_EXECS] = {{500, 0, 70, 0}, {400, 90, 65, 0}, {450, 95, 0, 0}};
    static const uint64_t shortest[N_EXECS] = {400, 90, 65, 0};
    scene s;
    (void)state;
    open_scene(&s);
    begin(&s, N_EXECS);
    for (int lap = 0; lap < 3; lap++) {
        time_lap(&s, laps[lap]);
    }
    ASSERT_EQ(memcmp(s.timed.shortest_ns, shortest, sizeof shortest), 0);
    ASSERT_TRUE(np_timed_sum(&s.timed) == 555);
    close_scene(&s);
}

/* What timing costs itself is taken off, by each lap's own gaps. */
static void test_price_is_paid(void **state)
{
    enum { MANY = 24 };
    scene s;
    (void)state;
    open_scene(&s);
    begin(&s, MANY);
    for (uint64_t lap = 0; lap < 3; lap++) {
        uint64_t gap = 320 * (lap + 1);
        give_work(&s);
        end_lap(&s);
        s.first = (np_times){.start_ns = 1000, .duration_ns = 2000 + gap};
        for (uint64_t i = 1; i < MANY; i++) {
            s.timed.times[i] =
                (np_times){.start_ns = 1000 + i * (2000 + 2 * gap), .duration_ns = i == 7 ? 100 : 2000 + gap};
        }
        do_work(&s);
        end_lap(&s);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        ASSERT_EQ(s.timed.shortest_ns[i], i == 7 ? 30 : 2000);
    }
    close_scene(&s);
}

/* The plan was left in the middle of it: that lap is timed again, and what the others have told stays. */
static void test_break(void **state)
{
    static const uint64_t ns[N_EXECS] = {700, 800, 900, 1000};
    scene s;
    (void)state;
    open_scene(&s);
    np_timed_break(&s.timed);
    ASSERT_EQ(s.timed.state, NP_TIMED_NOT);
    begin(&s, N_EXECS);
    time_lap(&s, ns);
    np_timed_break(&s.timed);
    ASSERT_EQ(s.timed.state, NP_TIMED_WANTED);
    np_timed_break(&s.timed);
    ASSERT_EQ(s.timed.state, NP_TIMED_WANTED);
    end_lap(&s);
    give_work(&s);
    end_lap(&s);
    ASSERT_EQ(s.timed.state, NP_TIMED_GIVEN);
    np_timed_break(&s.timed);
    ASSERT_EQ(s.timed.state, NP_TIMED_WANTED);
    ASSERT_EQ(s.timed.n_laps, 1);
    ASSERT_TRUE(np_timed_sum(&s.timed) == 3400);
    end_lap(&s);
    time_lap(&s, ns);
    time_lap(&s, ns);
    ASSERT_EQ(s.timed.state, NP_TIMED_DONE);
    np_timed_break(&s.timed);
    ASSERT_EQ(s.timed.state, NP_TIMED_DONE);
    close_scene(&s);
}

/* No host memory for it: nothing is known, and nobody asks again. */
static void test_no_memory(void **state)
{
    (void)state;
    for (size_t fail = 1; fail <= 2; fail++) {
        scene s;
        open_scene(&s);
        s.memory.fail_at = fail;
        np_timed_want(&s.timed, N_EXECS, 3, &s.memory.hook);
        ASSERT_EQ(s.memory.n_failed, 1);
        ASSERT_EQ(s.memory.live_blocks, 0);
        ASSERT_EQ(s.timed.state, NP_TIMED_DONE);
        ASSERT_EQ(s.timed.n_execs, 0);
        ASSERT_TRUE(np_timed_sum(&s.timed) == 0);
        end_lap(&s);
        np_timed_break(&s.timed);
        np_timed_want(&s.timed, N_EXECS, 3, &s.memory.hook);
        ASSERT_EQ(s.timed.state, NP_TIMED_DONE);
        ASSERT_EQ(s.memory.live_blocks, 0);
        close_scene(&s);
    }
}

/* ---- beneath a program ---- */

enum { OFF_PLAN_NS = 60000, FORWARD_NS = 20000, BACKWARD_NS = 40000 };
enum { N_FORWARD = 7, N_BACKWARD = 13, N_WORK = N_FORWARD + N_BACKWARD };

static const double TRUE_NS = (double)N_FORWARD * FORWARD_NS + (double)N_BACKWARD * BACKWARD_NS;

/* The next work takes its time, if it is on the plan, and no lap that was timed is waited for. */
static void set_duration(little_program *p)
{
    const neap_device *m = p->device;
    bool is_slow = m->state != NEAP_STATE_RUN || m->pattern->timed.state == NP_TIMED_GIVEN;
    p->options.exec_ns = is_slow ? OFF_PLAN_NS : p->gradient.block ? BACKWARD_NS : FORWARD_NS;
}

static bool is_near(double ns, double expected)
{
    return fabs(ns - expected) <= 0.01 * expected;
}

/* A limit in bytes, and a link on which swapping costs time: there is no lap that nothing disturbs. Off the plan all work
 * seems to take the same, long time. */
static void start(little_program *p)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,link=400MB/s",
                              .device = {.limit = (uint64_t)52 * LITTLE_PAGE, .refinements = 3},
                              .exec_ns = OFF_PLAN_NS};
    little_open(p, &options);
    np_beneath_begin(p->device, 0, 0);
    little_begin(p);
    (void)little_run_until_plan(p, 20);
    p->after_event = set_duration;
    ASSERT_EQ(p->device->pattern->program.n_execs, N_WORK);
    ASSERT_GT(p->device->pattern->program.swaps.n, 0);
    ASSERT_TRUE(p->device->pattern->quiet_ns == 0);
    ASSERT_TRUE(p->device->pattern->program.period_ns >= 1.5 * TRUE_NS);
}

static void check_times(const np_pattern *pattern)
{
    ASSERT_GT(pattern->program.swaps.n, 0);
    ASSERT_TRUE(is_near(pattern->quiet_ns, TRUE_NS));
    ASSERT_TRUE(is_near(pattern->program.period_ns, TRUE_NS));
    for (uint32_t i = 0; i < N_WORK; i++) {
        ASSERT_TRUE(is_near((double)pattern->exec_ns[i], i < N_FORWARD ? FORWARD_NS : BACKWARD_NS));
    }
}

/* Laps until that was said so often. */
static void run_until(little_program *p, const char *what, size_t n)
{
    for (int lap = 0; lap < 200 && little_count(p, what) < n; lap++) {
        little_laps(p, 1);
    }
    ASSERT_EQ(little_count(p, what), n);
}

/* The plan that stays is made for an iteration as it is; so are those that are tried in its place, where it seems slow. */
static void test_plan_with_times(void **state)
{
    static little_program p;
    const np_pattern *first;
    uint32_t n_others = 0;
    (void)state;
    start(&p);
    run_until(&p, "execs were timed", 1);
    ASSERT_TRUE(np_pattern_quiet_lap_ns(p.device->pattern) > 1.05 * TRUE_NS); /* laps do not tell */
    run_until(&p, "a plan for", 2);
    little_laps(&p, 1);
    first = p.device->pattern;
    check_times(first);
    p.device->pattern->program.overhead = 9; /* as if it were a bad one, on paper: others are worth trying */
    little_forget(&p);
    p.after_event = NULL; /* and all work is slow */
    p.options.exec_ns = OFF_PLAN_NS;
    for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
        check_times(p.device->pattern);
        n_others += p.device->pattern != first;
    }
    ASSERT_EQ(little_count(&p, "refined in 3 trials"), 1);
    ASSERT_GT(n_others, 0);
    little_laps(&p, 80);
    check_times(p.device->pattern);
    ASSERT_EQ(little_count(&p, "execs were timed"), 0); /* not again */
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_end(&p);
}

/* The program leaves its plan while execs are timed: they are timed all the same, and none off the plan. */
static void test_departures_meanwhile(void **state)
{
    static little_program p;
    uint32_t n_breaks = 0;
    (void)state;
    start(&p);
    for (int lap = 0; lap < 300 && little_count(&p, "a plan for") < 2; lap++) {
        np_timed_state timed = p.device->pattern->timed.state;
        bool is_left = n_breaks < 6 && (timed == NP_TIMED_ON || timed == NP_TIMED_GIVEN) && lap % 4 == 3;
        little_lap(&p, (little_twist){is_left ? LITTLE_EXTRA_WORK : LITTLE_PLAIN, n_breaks});
        n_breaks += is_left;
        ASSERT_TRUE(!is_left || p.device->pattern->timed.state == NP_TIMED_WANTED);
    }
    ASSERT_GE(n_breaks, 1);
    ASSERT_EQ(p.device->stats.n_departures, n_breaks);
    little_laps(&p, 2);
    check_times(p.device->pattern);
    little_end(&p);
}

/* Where the first plan is slower than it was planned to be, the one that takes its place is refined, not that. */
static void test_second_is_refined(void **state)
{
    static little_program p;
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,link=400MB/s",
                              .device = {.limit = (uint64_t)52 * LITTLE_PAGE, .refinements = 3},
                              .exec_ns = 30000};
    (void)state;
    little_open(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    little_begin(&p);
    (void)little_run_until_plan(&p, 20);
    run_until(&p, "a plan for", 2);
    run_until(&p, "refined in 3 trials", 1);
    ASSERT_TRUE(p.device->refine.measured == NULL || p.device->refine.measured == p.device->pattern);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_not_over),
        cmocka_unit_test(test_shortest),
        cmocka_unit_test(test_price_is_paid),
        cmocka_unit_test(test_break),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_plan_with_times),
        cmocka_unit_test(test_departures_meanwhile),
        cmocka_unit_test(test_second_is_refined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
