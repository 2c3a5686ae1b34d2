/* test_lane.c: marks and entries of one thread's queue. (Overlap and waits of several are in test_cpu.c.) */
#include "device/lane.h"

#include "testing.h"

static void add_one(void *arg)
{
    ++**(unsigned **)arg;
}

static void test_marks_and_waits(void **state)
{
    np_lane *lanes[2];
    unsigned n = 0;
    unsigned *arg = &n;
    np_task task = {.run = add_one, .arg = &arg, .arg_bytes = sizeof arg};
    (void)state;
    ASSERT_OK(np_lane_open(np_memory_or_default(NULL), 0, &lanes[0]));
    ASSERT_OK(np_lane_open(np_memory_or_default(NULL), 0, &lanes[1]));
    for (uint64_t i = 1; i <= 1000; i++) { /* the two take turns: n is never touched by both */
        ASSERT_OK(np_lane_wait(lanes[0], lanes[1], i - 1));
        ASSERT_OK(np_lane_launch(lanes[0], &task));
        ASSERT_EQ(lanes[0]->mark, i);
        ASSERT_OK(np_lane_wait(lanes[1], lanes[0], i));
        ASSERT_OK(np_lane_launch(lanes[1], &task));
    }
    np_counter_wait(&lanes[1]->done, 1000);
    ASSERT_EQ(n, 2000);
    np_counter_wait(&lanes[0]->done, 1000);
    ASSERT_TRUE(np_lane_is_valid(lanes[0]));
    ASSERT_TRUE(np_lane_is_valid(lanes[1]));
    ASSERT_LE(lanes[0]->n_given, 2000); /* a wait for what is done is no entry */
    n = 0;
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(np_lane_launch(lanes[0], &task));
    }
    ASSERT_OK(np_lane_wait(lanes[1], lanes[0], lanes[0]->mark)); /* nothing follows it */
    ASSERT_EQ(lanes[1]->mark, 1000);
    np_lane_end(lanes[0]);
    np_lane_end(lanes[1]);
    np_lane_join(lanes[0]);
    np_lane_join(lanes[1]);
    ASSERT_EQ(n, 100);
    np_lane_free(lanes[0]);
    np_lane_free(lanes[1]);
}

static void test_copies(void **state)
{
    np_lane *lane;
    char from[] = "some bytes";
    char to[sizeof from] = "";
    (void)state;
    ASSERT_OK(np_lane_open(np_memory_or_default(NULL), 0.001, &lane)); /* 1 MB/s */
    ASSERT_OK(np_lane_copy(lane, to, from, sizeof from));
    ASSERT_OK(np_lane_copy(lane, NULL, NULL, 0));
    np_counter_wait(&lane->done, 2);
    ASSERT_STR_EQ(to, from);
    ASSERT_TRUE(np_lane_is_valid(lane));
    np_lane_end(lane);
    np_lane_join(lane);
    np_lane_free(lane);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_and_waits),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests_name("device/lane", tests, NULL, NULL);
}
