/* test_baselines.c: the replay of a whole trace, and how near it comes to what PyTorch really reserved. */
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static neap_trace *parse(const char *text)
{
    neap_trace *trace = NULL;
    neap_error error = {""};
    ASSERT_OK(neap_trace_parse(text, strlen(text), "test", NULL, &error, &trace));
    return trace;
}

static neap_baselines baselines_of(const neap_trace *trace, uint64_t alignment)
{
    neap_baselines baselines = {0};
    neap_error error = {""};
    ASSERT_OK(neap_baselines_make(trace, alignment, NULL, &error, &baselines));
    ASSERT_STR_EQ(error.text, "");
    return baselines;
}

/* Blocks that live before the first event count, and the whole trace does, not its period alone. */
static const char never_repeats[] = "neap-trace 1\n"
                                    "live 1 1000\n"
                                    "malloc 2 100\n"
                                    "malloc 3 3000000\n"
                                    "free 2\n"
                                    "malloc 4 513\n"
                                    "free 3\n"
                                    "malloc 5 2000000\n";

static void test_replays_from_the_first_block_to_the_last(void **state)
{
    neap_trace *trace = parse(never_repeats);
    neap_baselines baselines = baselines_of(trace, 0);
    (void)state;
    ASSERT_EQ(baselines.cudamalloc, 1024 + 3000320 + 1024);
    /* 1024, 512 and 3000320 are obtained, 1024 more because the free 512 do not do; the last reuses 3000320. */
    ASSERT_EQ(baselines.cnmem, 1024 + 512 + 3000320 + 1024);
    ASSERT_EQ(baselines.caching, (2u + 20u) << 20);
    ASSERT_EQ(baselines.expandable, (2u + 20u) << 20);
    ASSERT_EQ(baselines.bestfit, 0); /* no period, nothing to plan */
    ASSERT_EQ(baselines.firstfit, 0);
    neap_trace_free(trace);
}

static void test_alignment_is_of_the_load_alone(void **state)
{
    neap_trace *trace = parse(never_repeats);
    neap_baselines exact = baselines_of(trace, 1);
    neap_baselines coarse = baselines_of(trace, 4096);
    (void)state;
    ASSERT_EQ(exact.cudamalloc, 1000 + 3000000 + 513);
    ASSERT_EQ(coarse.cudamalloc, 4096 + 3002368 + 4096);
    ASSERT_EQ(exact.cnmem, coarse.cnmem);
    ASSERT_EQ(exact.caching, coarse.caching);
    neap_trace_free(trace);
}

static const char csv[] = "id,lower,upper,size\n"
                          "1,0,4,10\n"
                          "2,0,2,20\n"
                          "3,2,4,30\n"
                          "4,1,3,5\n";

static void test_a_csv_is_replayed_too(void **state)
{
    neap_trace *trace = parse(csv);
    neap_baselines baselines = baselines_of(trace, 0);
    (void)state;
    ASSERT_EQ(baselines.cudamalloc, 45);
    ASSERT_GE(baselines.cnmem, 3 * 512);
    ASSERT_EQ(baselines.cnmem % 512, 0);
    ASSERT_EQ(baselines.caching, 2 << 20);
    ASSERT_GE(baselines.bestfit, 45);
    ASSERT_GE(baselines.firstfit, 45);
    neap_trace_free(trace);
}

/* Each is a little larger than the free blocks before it, so a pool that grows obtains 2^64 bytes in the end. */
static void test_sums_that_overflow_are_refused(void **state)
{
    neap_trace *trace = parse("neap-trace 1\n"
                              "malloc 1 4611686018427387904\nfree 1\n"
                              "malloc 2 4611686018427388416\nfree 2\n"
                              "malloc 3 4611686018427388928\nfree 3\n"
                              "malloc 4 4611686018427389440\n");
    neap_baselines baselines = {.cudamalloc = 42};
    neap_error error = {""};
    (void)state;
    ASSERT_STATUS(NEAP_TOO_LARGE, neap_baselines_make(trace, 0, NULL, &error, &baselines));
    ASSERT_NE(error.text[0], '\0');
    ASSERT_EQ(baselines.cudamalloc, 42); /* results are written on success alone */
    neap_trace_free(trace);
}

static neap_status make(const neap_memory *memory, void *user)
{
    neap_baselines baselines;
    return neap_baselines_make(user, 0, memory, NULL, &baselines);
}

static void test_every_failure_is_reported(void **state)
{
    neap_trace *trace = parse(csv);
    (void)state;
    ASSERT_GT(test_memory_fail_each(make, trace), 3);
    neap_trace_free(trace);
}

/* What PyTorch 2.11 reserved on an H200 in the programs that were recorded, in MiB. The recordings begin after warm-up,
 * where cuDNN tried algorithms with workspaces of their own, so a few per cent differ. */
static void test_comes_near_what_pytorch_reserves(void **state)
{
    static const struct {
        const char *trace;
        double caching, expandable;
    } cases[] = {
        {"traces/vgg16-100-32.neap.gz", 700, 536},      {"traces/resnet50-100-32.neap.gz", 3390, 2794},
        {"traces/resnet50-64-224.neap.gz", 6810, 5656}, {"traces/gpt2-bf16-16.neap.gz", 26082, 26016},
        {"traces/vit-64-224.neap.gz", 9236, 9076},
    };
    size_t n_done = 0;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TEST_PATH_BYTES];
        neap_trace *trace = NULL;
        neap_baselines baselines;
        if (!test_shared_path(path, cases[i].trace)) {
            continue;
        }
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
        baselines = baselines_of(trace, 0);
        double caching = (double)baselines.caching / 1048576 / cases[i].caching;
        double expandable = (double)baselines.expandable / 1048576 / cases[i].expandable;
        ASSERT_TRUE(caching > 0.98 && caching < 1.02);
        ASSERT_TRUE(expandable > 0.95 && expandable < 1.02);
        ASSERT_LE(baselines.cudamalloc, baselines.cnmem);
        neap_trace_free(trace);
        n_done++;
    }
    if (n_done == 0) {
        SKIP("the recordings in ../shared/traces are not there");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replays_from_the_first_block_to_the_last),
        cmocka_unit_test(test_alignment_is_of_the_load_alone),
        cmocka_unit_test(test_a_csv_is_replayed_too),
        cmocka_unit_test(test_sums_that_overflow_are_refused),
        cmocka_unit_test(test_every_failure_is_reported),
        cmocka_unit_test(test_comes_near_what_pytorch_reserves),
    };
    return cmocka_run_group_tests_name("pool/baselines", tests, NULL, NULL);
}
