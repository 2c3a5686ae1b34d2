#include "neap.h"

#include <string.h>

#include "comma.h"
#include "testing.h"
#include "trace/check_period.h"
#include "trace/make_trace.h"

static neap_info *info_of(const neap_trace *trace, uint64_t alignment)
{
    neap_info *info = NULL;
    neap_error error;
    ASSERT_OK(neap_info_make(trace, alignment, NULL, &error, &info));
    return info;
}

static neap_trace *parse(const char *text)
{
    neap_trace *trace = NULL;
    neap_error error;
    if (neap_trace_parse(text, strlen(text), "text", NULL, &error, &trace) != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s", error.text);
    }
    return trace;
}

/* Block a is held long before and after it is used; weight 1 is touched, 2 is not. */
#define ITERATION(a, b)      \
    "malloc " a " 1000\n"    \
    "exec k 0 1 x1\n"        \
    "exec l 0 1 w" a "\n"    \
    "malloc " b " 3000\n"    \
    "exec m 0 1 r" a "\n"    \
    "exec n 0 1 w" b " x1\n" \
    "free " a "\n"           \
    "exec o 0 1 r" b "\n"    \
    "free " b "\n"

#define HEAD "neap-trace 1\nmeta step_ms=2.5\nlive 1 512\nlive 2 700\n"

static void test_loads(void **state)
{
    neap_trace *trace = parse(HEAD ITERATION("10", "11") "iteration\n" ITERATION("12", "13") ITERATION("14", "15"));
    neap_info *info = info_of(trace, 0);
    (void)state;
    ASSERT_EQ(info->n_events, 27);
    ASSERT_EQ(info->n_blocks, 8);
    ASSERT_EQ(info->n_execs, 15);
    ASSERT_TRUE(info->has_period);
    ASSERT_EQ(info->period_begin, 0);
    ASSERT_EQ(info->period_length, 9);
    ASSERT_EQ(info->run_length, 27);
    ASSERT_EQ(info->cut, 0);
    ASSERT_LE(info->first_answer, 27);
    ASSERT_EQ(info->n_accesses, 6);
    ASSERT_EQ(info->doubtful_accesses, 0);
    ASSERT_EQ(info->n_variants, 0);
    ASSERT_TRUE(info->variants == NULL);
    ASSERT_EQ(info->alignment, 512);
    ASSERT_EQ(info->peak_load, 512 + 1024 + 1024 + 3072);
    ASSERT_EQ(info->needed_load, 512 + 3072); /* a and b are never needed at once, weight 2 never */
    ASSERT_TRUE(info->step_ms == 2.5);
    neap_info_free(info);
    info = info_of(trace, 1);
    ASSERT_EQ(info->peak_load, 512 + 700 + 1000 + 3000);
    ASSERT_EQ(info->needed_load, 512 + 3000);
    neap_info_free(info);
    neap_trace_free(trace);
}

static void test_no_period(void **state)
{
    neap_trace *trace = parse(HEAD ITERATION("10", "11"));
    neap_info *info = info_of(trace, 0);
    (void)state;
    ASSERT_FALSE(info->has_period);
    ASSERT_EQ(info->period_length, 0);
    ASSERT_EQ(info->first_answer, NEAP_NEVER);
    ASSERT_EQ(info->peak_load, 512 + 1024 + 1024 + 3072);
    ASSERT_EQ(info->needed_load, 512 + 3072);
    neap_info_free(info);
    neap_trace_free(trace);
    trace = parse("neap-trace 1\n");
    info = info_of(trace, 0);
    ASSERT_FALSE(info->has_period);
    ASSERT_EQ(info->peak_load, 0);
    neap_info_free(info);
    neap_trace_free(trace);
}

static void test_csv(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size\n1,0,5,100\n2,2,9,50\n3,5,7,10\n");
    neap_info *info = info_of(trace, 0);
    (void)state;
    ASSERT_TRUE(info->has_period);
    ASSERT_EQ(info->period_length, 6);
    ASSERT_EQ(info->alignment, 1);
    ASSERT_EQ(info->peak_load, 150);
    ASSERT_EQ(info->needed_load, 150);
    neap_info_free(info);
    neap_trace_free(trace);
}

static void test_alignment_too_large(void **state)
{
    neap_trace *trace = parse(HEAD ITERATION("10", "11") ITERATION("12", "13"));
    neap_info *info = NULL;
    neap_error error;
    (void)state;
    ASSERT_STATUS(NEAP_TOO_LARGE, neap_info_make(trace, (uint64_t)1 << 62, NULL, &error, &info));
    ASSERT_TRUE(info == NULL);
    ASSERT_GT(strlen(error.text), 0);
    neap_trace_free(trace);
}

/* A block that lives for two iterations and a half counts three times, and twice in the backward pass with its peak. */
static void test_long_lives(void **state)
{
    training with = {.n_iterations = 8, .long_lives = 1}, without = {.n_iterations = 8};
    neap_trace *traces[] = {make_training(&with), make_training(&without)};
    neap_info *infos[] = {info_of(traces[0], 0), info_of(traces[1], 0)};
    (void)state;
    ASSERT_EQ(infos[0]->peak_load, infos[1]->peak_load + 2 * 4096);
    for (int i = 0; i < 2; i++) {
        neap_info_free(infos[i]);
        neap_trace_free(traces[i]);
    }
}

static void test_peak_loads_of_recordings(void **state)
{
    static const struct {
        const char *name;
        uint64_t peak_mib;
    } known[] = {{"vgg11-100-32", 333}, {"vgg16-100-32", 481}, {"resnet18-100-log", 638},
                 {"lstm-64", 3263},     {"gpt2-8", 15045},     {"resnet18-100-32-fp32", 744}};
    unsigned n_missing = 0;
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        neap_trace *trace = read_recording(known[i].name);
        neap_info *info;
        if (!trace) {
            n_missing++;
            continue;
        }
        info = info_of(trace, 0);
        ASSERT_EQ((info->peak_load + (1 << 19)) >> 20, known[i].peak_mib);
        ASSERT_LT(info->needed_load, info->peak_load);
        neap_info_free(info);
        neap_trace_free(trace);
    }
    if (n_missing) {
        SKIP("%u recordings are not there", n_missing);
    }
}

static neap_status make_and_free(const neap_memory *memory, void *user)
{
    neap_info *info;
    neap_status status = neap_info_make(user, 0, memory, NULL, &info);
    if (status == NEAP_OK) {
        neap_info_free(info);
    }
    return status;
}

static void test_no_memory(void **state)
{
    training options = {.n_layers = 2, .n_iterations = 6, .log_every = 3};
    neap_trace *trace = make_training(&options);
    (void)state;
    test_memory_fail_each(make_and_free, trace);
    neap_trace_free(trace);
    neap_info_free(NULL);
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_loads(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),      cmocka_unit_test(test_no_period),
        cmocka_unit_test(test_csv),        cmocka_unit_test(test_alignment_too_large),
        cmocka_unit_test(test_long_lives), cmocka_unit_test(test_peak_loads_of_recordings),
        cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
