/* test_fork.c: a forked child and its parent's devices. The child has none of the threads and may find any lock held: no call
 * of it may wait, nor change a byte of the parent's. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/little_program.h"
#include "testing.h"

enum { PATIENCE = 60 }; /* s: a child that hangs is killed, and the test fails */

/* In a child: what does not hold ends it with a number of its own. */
#define CHILD_EXPECTS(number, condition) \
    do {                                 \
        if (!(condition)) {              \
            _exit(number);               \
        }                                \
    } while (0)

static void child_calls(neap_device *device, neap_block *block)
{
    static const neap_work work = {.name = "never"};
    neap_block *none = NULL;
    neap_trace *trace = NULL;
    neap_error error;
    neap_stats stats;
    char byte = 1;
    CHILD_EXPECTS(2, neap_malloc(device, 100, &none) == NEAP_DEVICE_FAILED && !none);
    CHILD_EXPECTS(3, strstr(neap_device_error(), "forked child") != NULL);
    CHILD_EXPECTS(4, neap_exec(device, &work, NULL, 0) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(5, neap_write(device, block, 0, &byte, 1) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(6, neap_read(device, block, 0, &byte, 1) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(7, neap_sync(device) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(8, neap_stream_wait(device, 0, 0) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(9, neap_free(device, block) == NEAP_DEVICE_FAILED);
    CHILD_EXPECTS(10, neap_device_trace(device, NULL, &error, &trace) == NEAP_DEVICE_FAILED && !trace);
    neap_get_stats(device, &stats);
    CHILD_EXPECTS(11, stats.n_events == 0);
}

/* A device of its own works there, beside the parent's. */
static void child_opens(void)
{
    neap_device *own = NULL;
    neap_block *block;
    neap_error error;
    char byte = 7;
    CHILD_EXPECTS(12, neap_open("cpu:memory=16MiB", NULL, NULL, &error, &own) == NEAP_OK);
    CHILD_EXPECTS(13, neap_malloc(own, 5000, &block) == NEAP_OK);
    CHILD_EXPECTS(14, neap_write(own, block, 0, &byte, 1) == NEAP_OK);
    byte = 0;
    CHILD_EXPECTS(15, neap_read(own, block, 0, &byte, 1) == NEAP_OK && byte == 7);
    neap_close(own);
}

static void fork_and_close(neap_device *device, neap_block *block)
{
    int status = -1;
    pid_t child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        (void)alarm(PATIENCE);
        child_calls(device, block);
        if (!TEST_RACES) { /* that sanitizer has no threads after a fork */
            child_opens();
        }
        neap_close(device);
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
}

static void test_child(void **state)
{
    static const char *const names[] = {"cpu:memory=16MiB,streams=2", "sim:page=4KiB,memory=16MiB"};
    static const uint64_t sizes[] = {100, 3 << 20};
    char out[100];
    char in[100];
    (void)state;
    memset(out, 0xA5, sizeof out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        neap_device *device = NULL;
        neap_block *blocks[2];
        neap_error error;
        ASSERT_OK(neap_open(names[i], NULL, NULL, &error, &device));
        for (int k = 0; k < 2; k++) {
            ASSERT_OK(neap_malloc(device, sizes[k], &blocks[k]));
            ASSERT_OK(neap_write(device, blocks[k], 0, out, sizeof out));
        }
        fork_and_close(device, blocks[1]);
        for (int k = 0; k < 2; k++) { /* the child's end has taken nothing with it */
            memset(in, 0, sizeof in);
            ASSERT_OK(neap_read(device, blocks[k], 0, in, sizeof in));
            ASSERT_TRUE(memcmp(in, out, sizeof in) == 0);
            ASSERT_OK(neap_free(device, blocks[k]));
        }
        neap_close(device);
    }
}

/* On a plan with swaps, every byte checked before and after. */
static void test_child_on_the_plan(void **state)
{
    little_options options = {.name = "cpu:page=4KiB,memory=64MiB", .device = {.limit_share = 0.7}};
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 2);
    fork_and_close(p.device, p.weights[0].block);
    little_laps(&p, 3);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_child_on_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
