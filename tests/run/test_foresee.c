/* test_foresee.c: what is foreseen of a run is what the run then plans; limits, what stands aside, and the lowest limit at
 * a cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/little_program.h"
#include "testing.h"
#include "trace/make_trace.h"

enum { PAGE = 1 << 17 };

/* Execs of a microsecond with blocks of a MiB, and a link to match. */
static const neap_link fast = {.out_gbs = 1500, .in_gbs = 1500};
static const neap_link slow = {.out_gbs = 300, .in_gbs = 300};

static neap_trace *small_training(void)
{
    neap_trace *trace = make_training(&(training){.seed = 2, .n_layers = 5, .n_iterations = 5});
    ASSERT_TRUE(trace);
    return trace;
}

static neap_foresee_options options_for(const neap_link *link)
{
    const double seconds = TEST_RACES ? 0.5 : TEST_SANITIZED ? 0.3 : 0.1; /* enough to find any plan at all */
    return (neap_foresee_options){.link = *link, .min_block = 1, .page = PAGE, .seconds = seconds, .n_threads = 1};
}

static neap_foreseen foresee(const neap_trace *trace, const neap_foresee_options *options)
{
    neap_foreseen seen = {0};
    neap_error error;
    ASSERT_OK(neap_foresee(trace, options, NULL, &error, &seen));
    ASSERT_STR_EQ(error.text, "");
    ASSERT_LE(seen.footprint, seen.limit);
    ASSERT_LE(seen.planned_load, seen.peak_load);
    ASSERT_LE(seen.bytes_out, seen.bytes_in);
    ASSERT_EQ(seen.n_swaps > 0, seen.bytes_in > 0);
    ASSERT_TRUE(seen.n_swaps > 0 || seen.overhead == 0);
    ASSERT_TRUE(seen.overhead >= seen.bound_overhead - 1e-9);
    ASSERT_TRUE(seen.bound_overhead >= seen.bound_overhead_any - 1e-12);
    ASSERT_TRUE(seen.iteration_ns > 0 && seen.seconds > 0);
    return seen;
}

/* ---- the run ---- */

/* Runs the program beneath neap until it is on the plan that stays. What costs nothing is found long before the time is
 * over, so that nothing depends on it. */
static void run_beneath(little_program *p, double limit_share, uint32_t margin)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,link=4GB/s",
                              .device = {.limit_share = limit_share, .plan_seconds = 20}};
    little_open(p, &options);
    np_beneath_begin(p->device, margin, 0);
    little_begin(p);
    for (int i = 0; i < 200 && (p->device->state != NEAP_STATE_RUN || p->device->pattern->program.swaps.n == 0); i++) {
        little_laps(p, 1);
    }
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_GT(p->device->pattern->program.swaps.n, 0);
}

static void compare_with_run(double limit_share, uint32_t margin)
{
    static little_program p;
    const np_program *program;
    neap_foresee_options options = {.limit_share = limit_share, .margin = margin, .page = LITTLE_PAGE, .n_threads = 1};
    neap_foreseen seen;
    neap_trace *trace;
    np_toll toll;
    run_beneath(&p, limit_share, margin);
    program = &p.device->pattern->program;
    options.min_block = p.options.device.min_block;
    options.seconds = p.options.device.plan_seconds;
    ASSERT_OK(p.raw->api->link(p.raw, &options.link));
    ASSERT_OK(neap_device_trace(p.device, NULL, NULL, &trace));
    seen = foresee(trace, &options);
    ASSERT_EQ(seen.planned_load, program->peak_load);
    ASSERT_EQ(seen.peak_load, program->peak_load);
    ASSERT_EQ(seen.limit, (uint64_t)(limit_share * (double)program->peak_load));
    ASSERT_EQ(seen.beside, 0);
    ASSERT_FALSE(seen.limit_was_raised);
    ASSERT_TRUE(fabs(seen.iteration_ns - program->period_ns) < 1);
    ASSERT_EQ(seen.n_swaps, program->swaps.n);
    ASSERT_EQ(seen.footprint, program->footprint);
    ASSERT_TRUE(fabs(program->overhead - seen.overhead) < 1e-9);
    /* nothing waits: that is what swaps cost alone, and what kernels lose beside copies */
    toll = np_toll_of(&(np_traffic){0}, (double)p.options.exec_ns);
    ASSERT_TRUE(seen.overhead > (double)seen.n_swaps * toll.copy_ns / seen.iteration_ns);
    neap_trace_free(trace);
    little_end(&p);
}

static void test_as_the_run(void **state)
{
    (void)state;
    compare_with_run(0.9, 0);
    compare_with_run(0.8, 0);
    compare_with_run(0.9, 1);
}

/* Where nothing is worth swapping at a cost the first plan stays, and the trace of it is the one with measured times. */
static void test_plan_that_stays(void **state)
{
    static little_program p;
    const np_pattern *pattern = NULL;
    const neap_trace *first = NULL;
    neap_trace *kept;
    (void)state;
    little_open(&p, &(little_options){.name = "sim:page=4KiB,memory=64MiB,link=100MB/s"});
    np_beneath_begin(p.device, 0, 1e-6);
    little_begin(&p);
    for (int i = 0; i < 200 && (!pattern || little_stats(&p).is_planning || !pattern->trace || pattern->is_quick);
         i++) {
        little_laps(&p, 1);
        if (!pattern && p.device->state == NEAP_STATE_RUN && p.device->pattern->is_quick) {
            pattern = p.device->pattern;
            first = pattern->trace;
        }
    }
    ASSERT_TRUE(pattern && first);
    ASSERT_TRUE(p.device->pattern == pattern);
    ASSERT_EQ(pattern->program.swaps.n, 0);
    ASSERT_FALSE(pattern->is_quick);
    ASSERT_TRUE(pattern->trace != first);
    ASSERT_TRUE(fabs(pattern->program.period_ns - 20.0 * (double)p.options.exec_ns) < 1);
    ASSERT_OK(neap_device_trace(p.device, NULL, NULL, &kept));
    ASSERT_TRUE(neap_trace_meta(kept, "step_ms"));
    neap_trace_free(kept);
    little_end(&p);
}

/* ---- limits ---- */

static void test_limits(void **state)
{
    neap_trace *trace = small_training();
    neap_foresee_options options = options_for(&fast);
    neap_foreseen seen;
    (void)state;
    options.limit_share = 1;
    seen = foresee(trace, &options);
    ASSERT_EQ(seen.limit, seen.peak_load);
    options.limit_share = 0.8;
    seen = foresee(trace, &options);
    ASSERT_EQ(seen.limit, (uint64_t)(0.8 * (double)seen.planned_load));
    ASSERT_GT(seen.n_swaps, 0);
    options.limit = (uint64_t)(0.8 * (double)seen.planned_load) / PAGE * PAGE + PAGE - 1; /* whole pages count */
    options.limit_share = 0.1;
    seen = foresee(trace, &options);
    ASSERT_EQ(seen.limit, options.limit - (PAGE - 1));
    ASSERT_FALSE(seen.limit_was_raised);
    options.limit = 1; /* below what swapping can do */
    seen = foresee(trace, &options);
    ASSERT_TRUE(seen.limit_was_raised);
    ASSERT_LT(seen.limit, seen.load_min); /* blocks leave elsewhere than at the peak, too */
    neap_trace_free(trace);
}

/* Every use lasts for ever: hardly anything can leave, though much could without that. */
static void test_margin(void **state)
{
    neap_trace *trace = small_training();
    neap_foresee_options options = options_for(&fast);
    neap_foreseen before;
    neap_foreseen seen;
    (void)state;
    options.limit_share = 0.8;
    before = foresee(trace, &options);
    ASSERT_FALSE(before.limit_was_raised);
    options.margin = 1000;
    seen = foresee(trace, &options);
    ASSERT_TRUE(seen.limit_was_raised);
    ASSERT_GT(seen.load_min, before.load_min);
    ASSERT_GT(seen.footprint, before.limit);
    neap_trace_free(trace);
}

static void test_lowest_limit(void **state)
{
    neap_trace *trace = small_training();
    neap_foreseen before = {0};
    static const double costs[] = {0, 0.5, 3}; /* of a few microseconds: each swap costs some itself */
    (void)state;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        neap_foresee_options options = options_for(&slow);
        neap_foreseen seen;
        options.overhead = costs[i];
        seen = foresee(trace, &options);
        ASSERT_TRUE(seen.overhead <= fmax(costs[i], 1e-9));
        ASSERT_EQ(seen.limit % PAGE, 0);
        ASSERT_FALSE(seen.limit_was_raised);
        ASSERT_TRUE(i == 0 || seen.limit <= before.limit + before.limit / 20); /* what may cost more needs no more */
        ASSERT_GT(seen.load_min, 0);
        before = seen;
    }
    for (int i = 0; i < 5 && before.limit >= before.peak_load; i++) { /* how far a search gets depends on its time */
        neap_foresee_options options = options_for(&slow);
        options.overhead = 3;
        options.seconds *= 2 << i;
        before = foresee(trace, &options);
    }
    ASSERT_LT(before.limit, before.peak_load);
    neap_trace_free(trace);
}

/* A run has measured what an iteration takes that nobody looks at: costs are shares of that, and where looking costs more
 * than is allowed, nothing is swapped. */
static void test_looking(void **state)
{
    neap_trace *unrested = small_training();
    neap_trace *trace = small_training();
    neap_foresee_options options = options_for(&fast);
    neap_foreseen before;
    neap_foreseen seen;
    bool is_share = false;
    char text[32];
    (void)state;
    options.limit_share = 0.8;
    before = foresee(unrested, &options);
    ASSERT_TRUE(before.looking == 0);
    (void)snprintf(text, sizeof text, "%.9f", before.iteration_ns * 1e-6 / 1.25);
    ASSERT_OK(np_trace_add_meta(trace, "rested_ms", strlen("rested_ms"), text, strlen(text)));
    for (int i = 0; i < 8 && !is_share; i++) { /* how far a search gets depends on the time that it has */
        before = foresee(unrested, &options);
        seen = foresee(trace, &options);
        ASSERT_TRUE(fabs(seen.looking - 0.25) < 1e-3);
        ASSERT_TRUE(fabs(seen.iteration_ns - before.iteration_ns / 1.25) < 1);
        ASSERT_TRUE(seen.overhead > 0.25);
        is_share = fabs(seen.overhead - (1.25 * (1 + before.overhead) - 1)) < 1e-3;
    }
    ASSERT_TRUE(is_share);
    options.limit_share = 0;
    options.overhead = 0.2;
    seen = foresee(trace, &options);
    ASSERT_EQ(seen.n_swaps, 0);
    ASSERT_TRUE(seen.overhead == 0 && seen.looking > 0.2);
    (void)snprintf(text, sizeof text, "%.9f",
                   before.iteration_ns * 1e-6 * 2); /* longer than when it is looked at: noise */
    ASSERT_OK(np_trace_add_meta(trace, "rested_ms", strlen("rested_ms"), text, strlen(text)));
    options.limit_share = 0.8;
    seen = foresee(trace, &options);
    ASSERT_TRUE(seen.looking == 0 && seen.iteration_ns == before.iteration_ns);
    neap_trace_free(unrested);
    neap_trace_free(trace);
}

/* ---- what stands aside ---- */

/* An iteration with a small block and a large one, `n_kept` small ones that are always there, and meta. */
static neap_trace *with_small_blocks(int n_kept, const char *meta)
{
    static char text[1 << 16];
    int n = snprintf(text, sizeof text, "neap-trace 1\n%s", meta);
    neap_trace *trace;
    for (int i = 0; i < n_kept; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "live %d 100000\n", i + 1);
    }
    for (int i = 0; i < 8; i++) {
        int id = 1000 + 2 * i;
        n += snprintf(
            text + n, sizeof text - (size_t)n,
            "malloc %d 262143\nmalloc %d 4194304\nexec k %d 1000 w%d w%d\nexec n %d 1000 r%d\nfree %d\nfree %d\n", id,
            id + 1, i * 2000, id, id + 1, i * 2000 + 1000, id + 1, id, id + 1);
    }
    ASSERT_OK(neap_trace_parse(text, (size_t)n, "text", NULL, NULL, &trace));
    return trace;
}

static neap_foreseen beside_of(int n_kept, const char *meta, uint64_t min_block)
{
    neap_foresee_options options = {.link = fast, .min_block = min_block, .seconds = 0.05};
    neap_trace *trace = with_small_blocks(n_kept, meta);
    neap_foreseen seen = {0};
    ASSERT_OK(neap_foresee(trace, &options, NULL, NULL, &seen));
    neap_trace_free(trace);
    return seen;
}

static void test_beside(void **state)
{
    const uint64_t slab = (uint64_t)2 << 20;
    neap_foreseen seen = beside_of(0, "", 0);
    (void)state;
    ASSERT_EQ(seen.beside, 2 * slab); /* one, and room for one more */
    ASSERT_EQ(seen.planned_load, 4194304);
    ASSERT_EQ(seen.peak_load, 4194304 + 262144);
    ASSERT_EQ(seen.footprint, 4194304 + 2 * slab);
    ASSERT_EQ(seen.limit, seen.footprint);
    seen = beside_of(20, "", 0); /* 20 of 100352 bytes leave no room for the block of an iteration in theirs */
    ASSERT_EQ(seen.beside, 3 * slab);
    seen = beside_of(20, "", 1); /* none is too small */
    ASSERT_EQ(seen.beside, 0);
    ASSERT_EQ(seen.planned_load, seen.peak_load);
    seen = beside_of(0, "meta beside_bytes=6291456\n", 1); /* that were not recorded */
    ASSERT_EQ(seen.beside, 6291456 + slab);
    seen = beside_of(0, "meta beside_bytes=-1\n", 1); /* nonsense is left out */
    ASSERT_EQ(seen.beside, 0);
}

/* Below load_min, a limit is raised to that for all that is held, what stands beside included, or to less, if that can be:
 * here by swaps that are not at the peak. */
static void test_raised_with_beside(void **state)
{
    enum { BLOCK = 16 << 20, BESIDE = 6 << 20 };
    neap_foresee_options options = {.link = fast, .limit = 1, .min_block = 1, .seconds = 0.2};
    static char text[8192];
    neap_trace *trace;
    neap_foreseen seen;
    int n = snprintf(text, sizeof text, "neap-trace 1\nmeta beside_bytes=%d\n", BESIDE);
    (void)state;
    for (int i = 0; i < 8; i++) {
        int id = 10 * i;
        int t = 10000 * i;
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "malloc %d %d\nexec a %d 1000 w%d\nmalloc %d %d\nexec b %d 1000 w%d\nmalloc %d %d\n"
                      "exec c %d 1000 w%d\nfree %d\nexec d %d 1000 r%d\nfree %d\nexec e %d 1000 r%d\nfree %d\n",
                      id, BLOCK, t, id, id + 1, BLOCK, t + 1000, id + 1, id + 2, BLOCK, t + 2000, id + 2, id + 2,
                      t + 3000, id + 1, id + 1, t + 4000, id, id);
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "malloc %d %d\nexec f %d 1000 w%d\nmalloc %d %d\nexec g %d 1000 w%d\nfree %d\n"
                      "exec h %d 1000 r%d\nfree %d\n",
                      id + 3, BLOCK, t + 5000, id + 3, id + 4, BLOCK, t + 6000, id + 4, id + 4, t + 7000, id + 3,
                      id + 3);
    }
    ASSERT_OK(neap_trace_parse(text, (size_t)n, "text", NULL, NULL, &trace));
    seen = foresee(trace, &options);
    ASSERT_TRUE(seen.limit_was_raised);
    ASSERT_GT(seen.beside, 0);
    ASSERT_EQ(seen.load_min, 2 * BLOCK + seen.beside);
    ASSERT_LE(seen.limit, 2 * BLOCK);
    ASSERT_GE(seen.limit, BLOCK + seen.beside); /* an exec needs one at once */
    neap_trace_free(trace);
}

/* ---- what is refused ---- */

static neap_trace *read_text(const char *text)
{
    neap_trace *trace;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, NULL, &trace));
    return trace;
}

static void fails(const neap_trace *trace, const neap_foresee_options *options, neap_status status, const char *part)
{
    neap_foreseen seen = {.limit = 12345};
    neap_error error;
    ASSERT_STATUS(status, neap_foresee(trace, options, NULL, &error, &seen));
    ASSERT_CONTAINS(error.text, part);
    ASSERT_STATUS(status, neap_foresee(trace, options, NULL, NULL, &seen));
    ASSERT_EQ(seen.limit, 12345); /* untouched */
}

static void test_refused(void **state)
{
    neap_trace *trace = small_training();
    neap_trace *never = read_text("neap-trace 1\nmalloc 1 1000000\nexec k 0 10 w1\nfree 1\n");
    neap_trace *idle = read_text("neap-trace 1\nmalloc 1 1000000\nfree 1\nmalloc 2 1000000\nfree 2\nmalloc 3 1000000\n"
                                 "free 3\nmalloc 4 1000000\nfree 4\n");
    neap_foresee_options options = options_for(&fast);
    (void)state;
    options.limit_share = 0.8;
    fails(never, &options, NEAP_NO_PERIOD, "never repeats");
    fails(idle, &options, NEAP_BAD_INPUT, "no execs");
    options.limit_share = 1.5;
    fails(trace, &options, NEAP_BAD_ARGUMENT, "share");
    options.limit_share = NAN;
    fails(trace, &options, NEAP_BAD_ARGUMENT, "share");
    options = options_for(&fast);
    options.page = 1000;
    fails(trace, &options, NEAP_BAD_ARGUMENT, "page");
    options = options_for(&fast);
    options.link.in_gbs = 0;
    fails(trace, &options, NEAP_BAD_ARGUMENT, "link");
    neap_trace_free(idle);
    neap_trace_free(never);
    neap_trace_free(trace);
}

/* ---- without host memory ---- */

typedef struct question {
    const neap_trace *trace;
    neap_foresee_options options;
} question;

static neap_status ask(const neap_memory *memory, void *user)
{
    const question *q = user;
    neap_foreseen seen = {0};
    neap_status status = neap_foresee(q->trace, &q->options, memory, NULL, &seen);
    ASSERT_EQ(seen.limit > 0, status == NEAP_OK);
    return status;
}

static void test_no_memory(void **state)
{
    neap_trace *trace = with_small_blocks(3, "");
    question q = {.trace = trace, .options = {.link = slow, .limit = 9 << 20, .seconds = 0.001, .n_threads = 1}};
    (void)state;
    ASSERT_GE(test_memory_fail_each(ask, &q), 50);
    q.options.limit = 0;
    ASSERT_GE(test_memory_fail_each(ask, &q), 50);
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_run),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_margin),
        cmocka_unit_test(test_looking),
        cmocka_unit_test(test_lowest_limit),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_raised_with_beside),
        cmocka_unit_test(test_plan_that_stays),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
