/* test_cuda_adopt.c: work that the program gives to the driver by itself, on streams of its own that the device adopts:
 * over the stand-in driver. What must not happen yet is held back by a gate. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "device/cuda_state.h"
#include "device/kinds.h"
#include "device/standin_device.h"
#include "testing.h"

#define LONG_NS 60000000000u /* a minute: something is stuck */

typedef struct scene {
    np_device *device;
    np_cuda *cuda;
    np_cu_stream streams[3]; /* the program's */
    standin_counts before;
} scene;

static void visit(scene *s, void (*action)(scene *s))
{
    np_cuda_visit v;
    ASSERT_OK(np_cuda_enter(s->cuda, &v));
    action(s);
    np_cuda_leave(s->cuda, &v);
}

static void make_streams(scene *s)
{
    for (int i = 0; i < 3; i++) {
        ASSERT_EQ(s->cuda->driver.stream_create(&s->streams[i], NP_CU_STREAM_NON_BLOCKING), NP_CU_SUCCESS);
    }
}

static void destroy_streams(scene *s)
{
    for (int i = 0; i < 3; i++) {
        if (s->streams[i]) {
            ASSERT_EQ(s->cuda->driver.stream_destroy(s->streams[i]), NP_CU_SUCCESS);
        }
    }
}

static void open_scene(scene *s)
{
    np_device_settings settings = {.n_streams = NP_MAX_STREAMS, .adopts = true};
    *s = (scene){0};
    standin_use(65536);
    standin_get()->count(&s->before);
    ASSERT_OK(np_cuda_open(&settings, &np_memory_default, NULL, &s->device));
    s->cuda = (np_cuda *)s->device;
    visit(s, make_streams);
}

static void close_scene(scene *s)
{
    standin_counts counts;
    ASSERT_TRUE(np_cuda_is_valid(s->device));
    for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
        ASSERT_OK(s->device->api->sync(s->device, i, s->device->api->mark(s->device, i)));
        ASSERT_OK(s->device->api->adopt(s->device, i, NULL));
    }
    visit(s, destroy_streams);
    s->device->api->free(s->device);
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_streams, s->before.n_streams);
    ASSERT_EQ(counts.n_events, s->before.n_events);
}

/* ---- the program's work ---- */

static bool wait_for(atomic_bool *flag)
{
    uint64_t until = np_clock_ns() + LONG_NS;
    while (!atomic_load(flag) && np_clock_ns() < until) {
        (void)sched_yield();
    }
    return atomic_load(flag);
}

static void pass_gate(void *arg)
{
    (void)wait_for(*(atomic_bool **)arg);
}

static void raise_flag(void *arg)
{
    atomic_store(*(atomic_bool **)arg, true);
}

/* The program launches, and the device is told before and after. */
static uint64_t give(scene *s, np_stream lane, np_cu_stream stream, void (*run)(void *arg), atomic_bool *flag,
                     np_times *times)
{
    np_cuda_visit v;
    s->device->api->begin(s->device, lane, times);
    ASSERT_OK(np_cuda_enter_as_program(s->cuda, &v));
    ASSERT_EQ(standin_get()->launch(stream, run, &flag, sizeof flag), 0);
    np_cuda_leave(s->cuda, &v);
    return s->device->api->end(s->device, lane);
}

/* Nothing that was told to wait for the gate has run: looked at now and after a moment in which it would have. */
static bool stays_down(atomic_bool *flag)
{
    uint64_t until = np_clock_ns() + 20000000;
    while (np_clock_ns() < until && !atomic_load(flag)) {
        (void)sched_yield();
    }
    return !atomic_load(flag);
}

/* ---- begin and end ---- */

static void test_marks(void **state)
{
    scene s;
    atomic_bool flag = false;
    np_times times = {0};
    uint64_t mark;
    (void)state;
    open_scene(&s);
    ASSERT_TRUE(np_cuda_stream(s.device, 0) == NULL); /* none is made */
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    ASSERT_TRUE(np_cuda_stream(s.device, 0) == s.streams[0]);
    ASSERT_EQ(give(&s, 0, s.streams[0], raise_flag, &flag, NULL), 1);
    mark = give(&s, 0, s.streams[0], raise_flag, &flag, &times);
    ASSERT_EQ(mark, 2);
    ASSERT_EQ(s.device->api->mark(s.device, 0), 2);
    ASSERT_OK(s.device->api->sync(s.device, 0, mark));
    ASSERT_TRUE(atomic_load(&flag));
    ASSERT_TRUE(s.device->api->is_done(s.device, 0, mark));
    ASSERT_GT(times.start_ns, 0);
    close_scene(&s);
}

/* A begin that fails costs the times and nothing else. */
static void test_begin_fails(void **state)
{
    scene s;
    atomic_bool flag = false;
    np_times times = {0};
    uint64_t mark;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    standin_get()->fail_call("cuEventRecord", 1, 999, false);
    mark = give(&s, 0, s.streams[0], raise_flag, &flag, &times);
    ASSERT_EQ(standin_get()->n_failed(), 1);
    ASSERT_EQ(mark, 1);
    ASSERT_OK(s.device->api->sync(s.device, 0, mark));
    ASSERT_TRUE(atomic_load(&flag));
    ASSERT_EQ(times.start_ns, 0);
    standin_get()->fail_call("cuEventRecord", 2, 999, false); /* that of the end */
    mark = give(&s, 0, s.streams[0], raise_flag, &flag, &times);
    ASSERT_EQ(standin_get()->n_failed(), 1);
    ASSERT_OK(s.device->api->sync(s.device, 0, mark));
    standin_get()->fail_call(NULL, 0, 0, false);
    close_scene(&s);
}

/* ---- waits between adopted streams ---- */

static void test_wait(void **state)
{
    scene s;
    atomic_bool gate = false;
    atomic_bool flag = false;
    uint64_t mark;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    ASSERT_OK(s.device->api->adopt(s.device, 1, s.streams[1]));
    mark = give(&s, 0, s.streams[0], pass_gate, &gate, NULL);
    ASSERT_OK(s.device->api->wait(s.device, 1, 0, mark));
    (void)give(&s, 1, s.streams[1], raise_flag, &flag, NULL);
    ASSERT_TRUE(stays_down(&flag));
    atomic_store(&gate, true);
    ASSERT_TRUE(wait_for(&flag));
    close_scene(&s);
}

/* ---- another stream in a lane's place ---- */

/* Its work comes after the work of the one before. */
static void test_follows_work(void **state)
{
    scene s;
    atomic_bool gate = false;
    atomic_bool flag = false;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    (void)give(&s, 0, s.streams[0], pass_gate, &gate, NULL);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[1]));
    (void)give(&s, 0, s.streams[1], raise_flag, &flag, NULL);
    ASSERT_TRUE(stays_down(&flag));
    atomic_store(&gate, true);
    ASSERT_TRUE(wait_for(&flag));
    close_scene(&s);
}

/* And after what the lane was told to wait for, whether work came of it or not: bytes were given away on that promise. */
static void follow_wait(bool is_destroyed_before, bool is_destroyed_between)
{
    scene s;
    atomic_bool gate = false;
    atomic_bool flag = false;
    uint64_t mark;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    ASSERT_OK(s.device->api->adopt(s.device, 1, s.streams[1]));
    (void)give(&s, 0, s.streams[0], raise_flag, &flag, NULL);
    ASSERT_OK(s.device->api->sync(s.device, 0, s.device->api->mark(s.device, 0)));
    atomic_store(&flag, false);
    mark = give(&s, 1, s.streams[1], pass_gate, &gate, NULL);
    if (is_destroyed_before) {
        ASSERT_OK(s.device->api->adopt(s.device, 0, NULL));
    }
    ASSERT_OK(s.device->api->wait(s.device, 0, 1, mark));
    if (is_destroyed_between) {
        ASSERT_OK(s.device->api->adopt(s.device, 0, NULL));
    }
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[2]));
    (void)give(&s, 0, s.streams[2], raise_flag, &flag, NULL);
    ASSERT_TRUE(stays_down(&flag) || (atomic_store(&gate, true), false));
    atomic_store(&gate, true);
    ASSERT_TRUE(wait_for(&flag));
    close_scene(&s);
}

static void test_follows_wait(void **state)
{
    (void)state;
    follow_wait(false, false);
}

static void test_follows_wait_of_destroyed(void **state)
{
    (void)state;
    follow_wait(false, true);
}

static void test_follows_wait_without_stream(void **state)
{
    (void)state;
    follow_wait(true, false);
}

/* Waits that were given to the stream before are not taken for the new one's. */
static void test_waits_anew(void **state)
{
    scene s;
    atomic_bool gate = false;
    atomic_bool flag = false;
    uint64_t mark;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    ASSERT_OK(s.device->api->adopt(s.device, 1, s.streams[1]));
    mark = give(&s, 1, s.streams[1], pass_gate, &gate, NULL);
    ASSERT_OK(s.device->api->wait(s.device, 0, 1, mark));
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[2]));
    ASSERT_OK(s.device->api->wait(s.device, 0, 1, mark));
    (void)give(&s, 0, s.streams[2], raise_flag, &flag, NULL);
    ASSERT_TRUE(stays_down(&flag));
    atomic_store(&gate, true);
    ASSERT_TRUE(wait_for(&flag));
    close_scene(&s);
}

/* A stream that goes: its last work is waited for as before, by its mark. */
static void test_destroyed(void **state)
{
    scene s;
    atomic_bool gate = false;
    atomic_bool flag = false;
    uint64_t mark;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    ASSERT_OK(s.device->api->adopt(s.device, 1, s.streams[1]));
    mark = give(&s, 0, s.streams[0], pass_gate, &gate, NULL);
    ASSERT_OK(s.device->api->adopt(s.device, 0, NULL));
    ASSERT_FALSE(s.device->api->is_done(s.device, 0, mark));
    ASSERT_OK(s.device->api->wait(s.device, 1, 0, mark));
    (void)give(&s, 1, s.streams[1], raise_flag, &flag, NULL);
    ASSERT_TRUE(stays_down(&flag));
    atomic_store(&gate, true);
    ASSERT_OK(s.device->api->sync(s.device, 0, mark));
    ASSERT_TRUE(wait_for(&flag));
    close_scene(&s);
}

/* The same one again changes nothing, and costs no call. */
static void test_same_again(void **state)
{
    scene s;
    standin_counts before;
    standin_counts after;
    uint64_t n_waits;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    standin_get()->count(&before);
    n_waits = standin_get()->n_calls("cuStreamWaitEvent");
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    standin_get()->count(&after);
    ASSERT_EQ(before.n_events, after.n_events);
    ASSERT_EQ(standin_get()->n_calls("cuStreamWaitEvent"), n_waits);
    close_scene(&s);
}

/* An adopt that fails leaves the lane as it was. */
static void test_adopt_fails(void **state)
{
    scene s;
    atomic_bool gate = false;
    (void)state;
    open_scene(&s);
    ASSERT_OK(s.device->api->adopt(s.device, 0, s.streams[0]));
    (void)give(&s, 0, s.streams[0], pass_gate, &gate, NULL);
    standin_get()->fail_call("cuStreamWaitEvent", 1, 999, false);
    ASSERT_STATUS(NEAP_DEVICE_FAILED, s.device->api->adopt(s.device, 0, s.streams[1]));
    ASSERT_TRUE(np_cuda_stream(s.device, 0) == s.streams[0]);
    standin_get()->fail_call(NULL, 0, 0, false);
    atomic_store(&gate, true);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_begin_fails),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_follows_work),
        cmocka_unit_test(test_follows_wait),
        cmocka_unit_test(test_follows_wait_of_destroyed),
        cmocka_unit_test(test_follows_wait_without_stream),
        cmocka_unit_test(test_waits_anew),
        cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_adopt_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
