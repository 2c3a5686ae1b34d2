/* test_plan.c: the public planner from a trace to a plan. Every plan is checked here by trying all pairs of its buffers on
 * the circle of its round, and against the lives of the trace it was made from. */
#include <stdio.h>
#include <string.h>

#include "testing.h"
#include "trace/make_trace.h"
#include "trace/period.h"

static neap_trace *parse(const char *text)
{
    neap_trace *trace = NULL;
    neap_error error = {""};
    neap_status status = neap_trace_parse(text, strlen(text), "test", NULL, &error, &trace);
    if (status != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s", error.text);
    }
    return trace;
}

static bool meet_on_circle(const neap_plan_buffer *a, const neap_plan_buffer *b, uint32_t length)
{
    uint64_t b_begin = b->begin, b_end = b->end; /* three turns of one against the second turn of the other */
    uint64_t a_begin = (uint64_t)a->begin + length, a_end = (uint64_t)a->end + length;
    for (unsigned turn = 0; turn < 3; turn++, b_begin += length, b_end += length) {
        if (a_begin < b_end && b_begin < a_end) {
            return true;
        }
    }
    return false;
}

/* Right by itself: nothing overlaps, everything is aligned, the figures belong together. */
static void check_plan(const neap_plan *plan)
{
    const neap_plan_summary *summary = neap_plan_get_summary(plan);
    uint64_t height = 0;
    size_t n;
    const neap_plan_buffer *buffers = neap_plan_buffers(plan, &n);
    ASSERT_EQ(n, summary->n_buffers);
    for (size_t i = 0; i < n; i++) {
        const neap_plan_buffer *a = &buffers[i];
        ASSERT_TRUE(a->begin < summary->length && a->begin < a->end && a->end - a->begin <= summary->length);
        ASSERT_EQ(a->size % summary->alignment, 0);
        ASSERT_EQ(a->offset % summary->alignment, 0);
        height = a->offset + a->size > height ? a->offset + a->size : height;
        for (size_t k = 0; k < i; k++) {
            const neap_plan_buffer *b = &buffers[k];
            if (a->offset < b->offset + b->size && b->offset < a->offset + a->size) {
                ASSERT_FALSE(meet_on_circle(a, b, summary->length));
            }
        }
    }
    ASSERT_EQ(summary->footprint, height);
    ASSERT_LE(summary->load, summary->bound);
    ASSERT_LE(summary->bound, summary->footprint);
    ASSERT_EQ(summary->optimal, summary->bound == summary->footprint);
    ASSERT_TRUE(summary->load == 0 || summary->ratio == (double)summary->footprint / (double)summary->load);
}

/* Every life of the period has its places: one a period of the round, or enough for all that are alive at once. */
static void check_against_trace(const neap_trace *trace, const neap_plan *plan)
{
    const neap_plan_summary *summary = neap_plan_get_summary(plan);
    size_t n;
    const neap_plan_buffer *buffers = neap_plan_buffers(plan, &n);
    size_t n_expected = 0;
    np_period period;
    ASSERT_OK(np_period_find(trace, NULL, &period));
    ASSERT_EQ(summary->begin, period.origin);
    ASSERT_EQ(summary->length, period.length * summary->n_periods);
    for (size_t i = 0; i < period.lives.n; i++) {
        const np_life *life = &period.lives.items[i];
        uint32_t lived = life->end - life->begin;
        bool whole_round = life->persistent || lived >= summary->length;
        uint32_t n_places = 0;
        for (size_t k = 0; k < n; k++) {
            const neap_plan_buffer *buffer = &buffers[k];
            if (buffer->block != life->block) {
                continue;
            }
            ASSERT_EQ(buffer->place, n_places);
            ASSERT_GE(buffer->size, trace->blocks.items[life->block].bytes);
            ASSERT_LT(buffer->size - trace->blocks.items[life->block].bytes, summary->alignment);
            if (whole_round) {
                ASSERT_TRUE(buffer->begin == 0 && buffer->end == summary->length);
            } else {
                ASSERT_EQ(buffer->begin, (life->begin + n_places * period.length) % summary->length);
                ASSERT_EQ(buffer->end, buffer->begin + lived);
            }
            n_places++;
        }
        ASSERT_GE(n_places, 1);
        if (!life->persistent) {
            ASSERT_GE((uint64_t)n_places * period.length, lived);
            ASSERT_EQ(n_places % summary->n_periods, 0);
        }
        n_expected += n_places;
    }
    ASSERT_EQ(n, n_expected);
    np_period_free(&period);
}

static neap_plan *plan_of(const neap_trace *trace, const neap_plan_options *options)
{
    neap_plan *plan = NULL;
    neap_error error = {"left from before"};
    neap_status status = neap_plan_make(trace, options, NULL, &error, &plan);
    if (status != NEAP_OK) {
        test_fail(__FILE__, __LINE__, "%s: %s", neap_status_name(status), error.text);
    }
    ASSERT_STR_EQ(error.text, "");
    check_plan(plan);
    check_against_trace(trace, plan);
    return plan;
}

/* ---------------------------------------------------------------- made like training ---- */

/* All ways in which blocks can live across the iteration's end, planned by every solver. */
static void test_training(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 16; bits++) {
        training options = {.seed = bits, .n_iterations = 8, .n_layers = 4};
        neap_trace *trace;
        options.loss_kept = bits & 1;
        options.zero_grad_at_start = bits & 2;
        options.leak_bytes = bits & 4 ? 512 : 0;
        options.long_lives = bits & 8 ? 2 : 0;
        trace = make_training(&options);
        for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
            /* Where blocks live longer than a period the load may be out of reach, and the search goes on. */
            neap_plan_options plan_options = {.solver = (neap_solver)solver, .seconds = bits & 8 ? 0.2 : 20};
            neap_plan *plan = plan_of(trace, &plan_options);
            const neap_plan_summary *summary = neap_plan_get_summary(plan);
            ASSERT_EQ(summary->alignment, 512);
            if (solver != NEAP_SOLVER_SEARCH) {
                ASSERT_EQ(summary->n_periods, 1); /* as the paper has it */
            } else if (bits & 8) {
                ASSERT_TRUE(summary->ratio < 1.05);
            } else {
                ASSERT_EQ(summary->footprint, summary->load);
                ASSERT_TRUE(summary->optimal);
            }
            neap_plan_free(plan);
        }
        neap_trace_free(trace);
    }
}

static const char two_thirds[] = "free %u\nexec x 0 1\nmalloc %u 512\nexec p 0 1\n"
                                 "free %u\nexec x 0 1\nmalloc %u 512\nexec q 0 1\n"
                                 "free %u\nexec x 0 1\nmalloc %u 512\nexec r 0 1\n";

/* Three blocks of which two are alive at any time: over one period they need three places, over two they take turns. */
static void test_a_round_of_two_periods(void **state)
{
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "neap-trace 1\nlive 1 512\nlive 2 512\n");
    neap_plan_options options = {.seconds = 20};
    neap_trace *trace;
    neap_plan *plan;
    (void)state;
    for (unsigned first = 1; first < 1 + 3 * 8; first += 3) { /* the oldest is freed, then the next is malloc'd */
        n += (size_t)snprintf(text + n, sizeof text - n, two_thirds, first, first + 2, first + 1, first + 3, first + 2,
                              first + 4);
    }
    ASSERT_LT(n, sizeof text);
    trace = parse(text);
    plan = plan_of(trace, &options);
    ASSERT_EQ(neap_plan_get_summary(plan)->load, 1024);
    ASSERT_EQ(neap_plan_get_summary(plan)->n_periods, 2);
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 1024);
    ASSERT_EQ(neap_plan_get_summary(plan)->length, 24);
    neap_plan_free(plan);
    options.solver = NEAP_SOLVER_BESTFIT;
    plan = plan_of(trace, &options);
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 1536);
    neap_plan_free(plan);
    neap_trace_free(trace);
}

/* ---------------------------------------------------------------- recordings ---- */

static void test_recordings_reach_their_load(void **state)
{
    static const char *const names[] = {"gpt2-8",           "lstm-64",      "resnet18-100-32-fp32",
                                        "resnet18-100-log", "vgg11-100-32", "vgg16-100-32"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[TEST_PATH_BYTES];
        char name[64];
        neap_plan_options options = {.seconds = 60};
        neap_trace *trace = NULL;
        neap_plan *plan;
        (void)snprintf(name, sizeof name, "traces/%s.neap.gz", names[i]);
        test_data_path(path, name);
        ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
        plan = plan_of(trace, &options);
        ASSERT_EQ(neap_plan_get_summary(plan)->footprint, neap_plan_get_summary(plan)->load);
        ASSERT_TRUE(neap_plan_get_summary(plan)->optimal);
        ASSERT_STR_EQ(neap_plan_get_summary(plan)->solver, "search");
        neap_plan_free(plan);
        neap_trace_free(trace);
    }
}

/* ---------------------------------------------------------------- placement CSVs ---- */

static const char pentagon[] = "id,lower,upper,size\n"
                               "a,0,4,3\nb,2,6,4\nc,4,8,3\nd,0,2,4\ne,6,8,4\n";

static void test_capacity(void **state)
{
    neap_trace *trace = parse(pentagon);
    neap_plan_options options = {.seconds = 10, .capacity = 7};
    neap_error error = {""};
    neap_plan *plan = plan_of(trace, &options);
    (void)state;
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 7);
    neap_plan_free(plan);
    options.capacity = 6;
    plan = NULL;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_plan_make(trace, &options, NULL, &error, &plan));
    ASSERT_TRUE(plan == NULL);
    ASSERT_CONTAINS(error.text, "no plan fits into 6 bytes: 7 are needed at least");
    neap_trace_free(trace);
}

/* A greedy plan proves nothing: where it is too large, that is said as it is. */
static void test_capacity_that_greedy_misses(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size,offset\n1,0,2,3,\n2,1,3,2,\n3,2,4,3,2\n");
    neap_plan_options options = {.solver = NEAP_SOLVER_FIRSTFIT, .capacity = 5};
    neap_error error = {""};
    neap_plan *plan = NULL;
    (void)state;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_plan_make(trace, &options, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "no plan within 5 bytes was found");
    options.solver = NEAP_SOLVER_SEARCH;
    plan = plan_of(trace, &options);
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 5);
    neap_plan_free(plan);
    neap_trace_free(trace);
}

/* What a round of one period cannot do, a longer one may: only the load is out of the question for all of them. */
static void test_capacity_below_the_bound_of_a_round(void **state)
{
    training made = {.seed = 8, .n_iterations = 8, .n_layers = 4, .long_lives = 2};
    neap_trace *trace = make_training(&made);
    neap_plan_options options = {.seconds = 0.05};
    neap_error error = {""};
    neap_plan *plan = plan_of(trace, &options);
    neap_plan_summary summary = *neap_plan_get_summary(plan);
    (void)state;
    neap_plan_free(plan);
    ASSERT_GT(summary.footprint, summary.load);
    options.capacity = summary.load;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_plan_make(trace, &options, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "no plan within");
    options.capacity = summary.load - 1;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_plan_make(trace, &options, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "no plan fits into");
    neap_trace_free(trace);
}

static void test_fixed_offsets(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size,offset\n1,0,4,8,16\n2,3,8,8,0\n3,0,8,8,-1\n4,0,4,8,\n");
    neap_plan_options options = {.seconds = 10};
    neap_error error = {""};
    neap_plan *plan = plan_of(trace, &options);
    size_t n;
    const neap_plan_buffer *buffers = neap_plan_buffers(plan, &n);
    (void)state;
    ASSERT_EQ(n, 4);
    for (size_t i = 0; i < n; i++) {
        uint64_t fixed = trace->blocks.items[buffers[i].block].fixed_offset;
        ASSERT_TRUE(fixed == NEAP_NO_OFFSET || fixed == buffers[i].offset);
    }
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 32);
    ASSERT_TRUE(neap_plan_get_summary(plan)->optimal);
    neap_plan_free(plan);
    options.alignment = 16; /* sizes are rounded up: 2 of them no longer fit below 16 */
    plan = plan_of(trace, &options);
    ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 64);
    neap_plan_free(plan);
    options.alignment = 32;
    plan = NULL;
    ASSERT_STATUS(NEAP_BAD_INPUT, neap_plan_make(trace, &options, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "not a multiple of the alignment");
    ASSERT_TRUE(plan == NULL);
    neap_trace_free(trace);
}

static void test_fixed_offsets_that_overlap(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size,offset\n1,0,4,8,16\n2,3,8,8,23\n");
    neap_error error = {""};
    neap_plan *plan = NULL;
    (void)state;
    ASSERT_STATUS(NEAP_BAD_INPUT, neap_plan_make(trace, NULL, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "overlap");
    neap_trace_free(trace);
}

static void test_an_empty_csv(void **state)
{
    neap_trace *trace = parse("id,lower,upper,size\n");
    (void)state;
    for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
        neap_plan_options options = {.solver = (neap_solver)solver};
        neap_plan *plan = NULL;
        ASSERT_OK(neap_plan_make(trace, &options, NULL, NULL, &plan));
        ASSERT_EQ(neap_plan_get_summary(plan)->n_buffers, 0);
        ASSERT_EQ(neap_plan_get_summary(plan)->footprint, 0);
        ASSERT_TRUE(neap_plan_get_summary(plan)->optimal);
        ASSERT_TRUE(neap_plan_get_summary(plan)->ratio == 1.0);
        neap_plan_free(plan);
    }
    neap_trace_free(trace);
}

/* ---------------------------------------------------------------- what goes wrong ---- */

static void test_no_period(void **state)
{
    neap_trace *trace = parse("neap-trace 1\nmalloc 1 100\nmalloc 2 200\nfree 1\nmalloc 3 50\n");
    neap_error error = {""};
    neap_plan *plan = NULL;
    (void)state;
    ASSERT_STATUS(NEAP_NO_PERIOD, neap_plan_make(trace, NULL, NULL, &error, &plan));
    ASSERT_CONTAINS(error.text, "never repeats");
    ASSERT_STATUS(NEAP_NO_PERIOD, neap_plan_make(trace, NULL, NULL, NULL, &plan));
    neap_trace_free(trace);
}

static void test_the_same_every_time(void **state)
{
    training made = {.seed = 3, .n_iterations = 6, .zero_grad_at_start = true, .loss_kept = true};
    neap_trace *trace = make_training(&made);
    neap_plan *first = NULL;
    (void)state;
    for (unsigned n_threads = 1; n_threads <= 4; n_threads++) {
        neap_plan_options options = {.seconds = 1000, .seed = 9, .n_threads = n_threads};
        neap_plan *plan = plan_of(trace, &options);
        if (!first) {
            first = plan;
            continue;
        }
        size_t n, n_first;
        const neap_plan_buffer *buffers = neap_plan_buffers(plan, &n);
        const neap_plan_buffer *first_buffers = neap_plan_buffers(first, &n_first);
        ASSERT_EQ(n, n_first);
        for (size_t i = 0; i < n; i++) {
            ASSERT_EQ(buffers[i].offset, first_buffers[i].offset);
        }
        neap_plan_free(plan);
    }
    neap_plan_free(first);
    neap_trace_free(trace);
}

typedef struct task {
    const neap_trace *trace;
    neap_plan_options options;
} task;

static neap_status plan_task(const neap_memory *memory, void *user)
{
    const task *t = user;
    neap_plan *plan = NULL;
    neap_status status = neap_plan_make(t->trace, &t->options, memory, NULL, &plan);
    neap_plan_free(plan);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    training made = {.n_layers = 3, .n_iterations = 6, .zero_grad_at_start = true, .loss_kept = true};
    neap_trace *traces[] = {make_training(&made), parse(pentagon),
                            parse("id,lower,upper,size,offset\n1,0,4,8,16\n2,3,8,8,0\n3,0,8,8,-1\n4,0,4,8,\n")};
    (void)state;
    for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
        for (unsigned solver = NEAP_SOLVER_SEARCH; solver <= NEAP_SOLVER_FIRSTFIT; solver++) {
            task t = {traces[i], {.solver = (neap_solver)solver, .seconds = 60, .n_threads = 1}};
            ASSERT_GT(test_memory_fail_each(plan_task, &t), 20);
        }
        neap_trace_free(traces[i]);
    }
}

/* On two threads a failure may fall into an attempt that is not waited for: then it does not matter. */
static void test_failures_on_two_threads(void **state)
{
    neap_trace *trace = parse(pentagon);
    task t = {trace, {.seconds = 60, .n_threads = 2}};
    bool failed = true;
    (void)state;
    for (size_t n = 1; failed; n++) {
        test_memory memory;
        neap_status status;
        test_memory_init(&memory);
        memory.fail_at = n;
        status = plan_task(&memory.hook, &t);
        failed = memory.n_failed > 0;
        ASSERT_TRUE(status == NEAP_OK || (failed && status == NEAP_NO_MEMORY));
        test_memory_finish(&memory);
    }
    neap_trace_free(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_a_round_of_two_periods),
        cmocka_unit_test(test_recordings_reach_their_load),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_capacity_that_greedy_misses),
        cmocka_unit_test(test_capacity_below_the_bound_of_a_round),
        cmocka_unit_test(test_fixed_offsets),
        cmocka_unit_test(test_fixed_offsets_that_overlap),
        cmocka_unit_test(test_an_empty_csv),
        cmocka_unit_test(test_no_period),
        cmocka_unit_test(test_the_same_every_time),
        cmocka_unit_test(test_every_failure_is_reported),
        cmocka_unit_test(test_failures_on_two_threads),
    };
    return cmocka_run_group_tests_name("pool/plan", tests, NULL, NULL);
}
