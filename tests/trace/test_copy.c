/* test_copy.c: a copy is equal to the trace, whatever that has, and its own. */
#include "trace/copy.h"

#include <string.h>

#include "testing.h"
#include "trace/make_trace.h"

static neap_trace *parse(const char *text)
{
    neap_error error;
    neap_trace *trace = NULL;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace));
    return trace;
}

/* Takes the trace over. */
static void copy_and_compare(neap_trace *trace)
{
    neap_trace *copy = NULL;
    neap_trace *again = NULL;
    ASSERT_OK(np_trace_copy(trace, &np_memory_default, &copy));
    ASSERT_TRUE(np_trace_is_valid(copy));
    ASSERT_TRUE(np_trace_is_equal(trace, copy));
    neap_trace_free(trace);
    ASSERT_OK(np_trace_copy(copy, &np_memory_default, &again)); /* it does not need the first any more */
    ASSERT_TRUE(np_trace_is_equal(copy, again));
    neap_trace_free(copy);
    neap_trace_free(again);
}

static void test_small(void **state)
{
    static const char *const texts[] = {
        "neap-trace 1\n",
        "neap-trace 1\nlive 7 100\n",
        "neap-trace 1\niteration\n",
        "neap-trace 1\nexec alone 5 6\n", /* no blocks at all */
        "neap-trace 1\nmeta step_ms=3 device=sim empty= step_ms=4\n",
        "neap-trace 1\niteration\nmalloc 1 10\niteration\niteration\nfree 1\niteration\n", /* marks after the end */
        "neap-trace 1\nlive 9 1\nlive 3 2\nmalloc 18446744073709551615 4\nexec k 1 2 r9 w3 x18446744073709551615\n",
        "neap-trace 1\nlive 3 2\nexec k 1 2 x3\nfree 3\n",
        "neap-trace 1\nmalloc 4 4\nexec k 5 6 w4\nexec other 7 8\nexec k 9 1 x4\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        copy_and_compare(parse(texts[i]));
    }
}

/* Streams are no part of the file format, but of a recording. */
static void test_streams(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nmalloc 1 10\nexec a 0 1 w1\nexec b 1 1 r1\nexec c 2 1\n");
    neap_trace *copy = NULL;
    (void)state;
    trace->events.items[2].stream = 3;
    trace->events.items[3].stream = 15;
    ASSERT_OK(np_trace_copy(trace, &np_memory_default, &copy));
    for (size_t i = 0; i < trace->events.n; i++) {
        ASSERT_EQ(copy->events.items[i].stream, trace->events.items[i].stream);
    }
    neap_trace_free(trace);
    neap_trace_free(copy);
}

/* A placement problem stays one, its fixed offsets with it. */
static void test_csv(void **state)
{
    (void)state;
    copy_and_compare(parse("id,lower,upper,size\na,0,5,10\nb,2,4,20\nc,4,9,30\n"));
    copy_and_compare(parse("id,lower,upper,size,offset\n1,0,5,10,64\n2,2,4,20,\n3,4,9,30,0\n"));
}

static void test_training(void **state)
{
    static const training kinds[] = {
        {.seed = 1},
        {.seed = 2, .loss_kept = true, .leak_bytes = 512, .log_every = 2, .false_accesses = 3, .long_lives = 2},
        {.seed = 3, .zero_grad_at_start = true, .other_every = 2, .queue_depth = 3, .freed_once = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        neap_trace *trace = make_training(&kinds[i]);
        ASSERT_TRUE(trace != NULL);
        copy_and_compare(trace);
    }
}

/* Without blocks below a size, what is left is a trace of its own. */
static void test_large(void **state)
{
    neap_trace *trace =
        parse("neap-trace 1\nmeta a=b\nlive 1 10\nlive 2 99\niteration\nmalloc 3 100\n"
              "exec k 1 2 r1 w3 r2 x3\nmalloc 4 20\niteration\nexec n 3 4 w4\nfree 4\nfree 3\nfree 2\n");
    neap_trace *wanted = parse("neap-trace 1\nmeta a=b\nlive 2 99\niteration\nmalloc 3 100\n"
                               "exec k 1 2 w3 r2 x3\niteration\nexec n 3 4\nfree 3\nfree 2\n");
    neap_trace *copy = NULL;
    (void)state;
    ASSERT_OK(np_trace_copy_large(trace, 99, &np_memory_default, &copy));
    ASSERT_TRUE(np_trace_is_valid(copy));
    ASSERT_TRUE(np_trace_is_equal(copy, wanted));
    neap_trace_free(copy);
    ASSERT_OK(np_trace_copy_large(trace, 10, &np_memory_default, &copy));
    ASSERT_TRUE(np_trace_is_equal(copy, trace));
    neap_trace_free(copy);
    neap_trace_free(trace);
    neap_trace_free(wanted);
    trace = parse("id,lower,upper,size,offset\n1,0,5,10,64\n2,2,4,20,\n3,4,9,30,0\n");
    ASSERT_OK(np_trace_copy_large(trace, 11, &np_memory_default, &copy));
    ASSERT_EQ(copy->blocks.n, 2);
    ASSERT_EQ(copy->blocks.items[0].fixed_offset, NEAP_NO_OFFSET);
    ASSERT_EQ(copy->blocks.items[1].fixed_offset, 0);
    neap_trace_free(copy);
    neap_trace_free(trace);
}

static neap_status copy_once(const neap_memory *memory, void *user)
{
    neap_trace *copy = NULL;
    neap_status status = np_trace_copy(user, memory, &copy);
    ASSERT_EQ(copy != NULL, status == NEAP_OK);
    neap_trace_free(copy);
    return status;
}

static void test_no_memory(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nmeta a=b\nlive 1 2\niteration\nmalloc 2 3\nexec k 1 2 r1 w2\nfree 1\n");
    (void)state;
    ASSERT_GE(test_memory_fail_each(copy_once, trace), 5);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),    cmocka_unit_test(test_streams), cmocka_unit_test(test_csv),
        cmocka_unit_test(test_training), cmocka_unit_test(test_large),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
