#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "swap/recorded.h"
#include "testing.h"
#include "trace/make_trace.h"

static const neap_link fifty = {.out_gbs = 50, .in_gbs = 50};

static neap_trace *read_text(const char *text)
{
    neap_trace *trace;
    ASSERT_OK(neap_trace_parse(text, strlen(text), "text", NULL, NULL, &trace));
    return trace;
}

static neap_trace *read_recorded(uint32_t index)
{
    char name[64];
    char path[TEST_PATH_BYTES];
    neap_trace *trace;
    (void)snprintf(name, sizeof name, "traces/%s.neap.gz", recorded_name(index));
    test_data_path(path, name);
    ASSERT_OK(neap_trace_read(path, NULL, NULL, &trace));
    return trace;
}

/* Execs of a microsecond with blocks of a MiB, and a link to match. */
static neap_trace *small_training(void)
{
    neap_trace *trace = make_training(&(training){.seed = 2, .n_layers = 5, .n_iterations = 5});
    ASSERT_TRUE(trace);
    return trace;
}

static neap_swap_options small_options(double seconds)
{
    return (neap_swap_options){
        .link = {.out_gbs = 1500, .in_gbs = 1500}, .min_block = 1, .page = 1 << 17, .seconds = seconds, .n_threads = 1};
}

/* ---- what holds for every plan ---- */

static void check_entries(const neap_trace *trace, const neap_swap_plan *plan)
{
    const neap_swap_summary *summary = neap_swap_get_summary(plan);
    size_t n = 0;
    const neap_swap_entry *entries = neap_swap_entries(plan, &n);
    uint64_t bytes_in = 0;
    size_t n_events, n_blocks;
    const neap_event *all = neap_trace_events(trace, &n_events);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    ASSERT_EQ(n, summary->n_swaps);
    for (size_t i = 0; i < n; i++) {
        const neap_swap_entry *e = &entries[i];
        const uint32_t events[] = {e->used_before, e->back_after, e->used_after};
        ASSERT_LT(e->block, n_blocks);
        ASSERT_GT(e->bytes, 0);
        ASSERT_LE(e->bytes, blocks[e->block].bytes + 511);
        for (int k = 0; k < 3; k++) {
            ASSERT_LT(events[k], n_events);
            ASSERT_EQ(all[events[k]].kind, NEAP_EVENT_EXEC);
        }
        ASSERT_TRUE(e->gap_ns > 0 && e->copies_ns > 0);
        bytes_in += e->bytes;
    }
    ASSERT_EQ(bytes_in, summary->bytes_in);
    ASSERT_LE(summary->bytes_out, summary->bytes_in);
}

static void check_summary(const neap_swap_summary *s)
{
    ASSERT_LE(s->footprint, s->limit);
    ASSERT_LE(s->planned_peak, s->limit);
    ASSERT_LE(s->footprint_bound, s->footprint);
    ASSERT_LE(s->lowest_peak, s->planned_peak);
    ASSERT_GE(s->planned_peak, s->floor);
    ASSERT_GE(s->load_min, s->floor);
    ASSERT_LE(s->floor, s->peak_load);
    ASSERT_TRUE(s->bound_peak >= (double)s->floor);
    ASSERT_TRUE(s->bound_peak_any <= s->bound_peak);
    ASSERT_TRUE(s->overhead >= 0);
    ASSERT_TRUE(s->overhead >= s->bound_overhead - 1e-9);
    ASSERT_TRUE(s->bound_overhead >= s->bound_overhead_any - 1e-12);
    ASSERT_TRUE(s->iteration_ns > 0);
    ASSERT_TRUE(fabs(s->ratio - (double)s->footprint / (double)s->planned_peak) < 1e-12);
}

/* ---- recordings ---- */

static void recordings_without_overhead(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 2 : N_RECORDED); i++) {
        neap_trace *trace = read_recorded(i);
        neap_swap_options options = {.link = fifty, .seconds = 0.2, .n_threads = 1};
        neap_swap_plan *plan;
        const neap_swap_summary *s;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
        s = neap_swap_get_summary(plan);
        check_summary(s);
        check_entries(trace, plan);
        ASSERT_TRUE(s->overhead == 0);
        ASSERT_EQ(s->limit, s->footprint);
        ASSERT_TRUE((double)s->lowest_peak >= s->bound_peak);        /* no plan beats the bound, */
        ASSERT_TRUE((double)s->lowest_peak <= s->bound_peak * 1.03); /* and the best is not far from it */
        ASSERT_LT(s->footprint, s->peak_load);
        ASSERT_STR_EQ(s->method, "search");
        neap_swap_free(plan);
        neap_trace_free(trace);
    }
}

static void recordings_under_a_limit(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < (TEST_SANITIZED ? 1 : 5); i++) {
        neap_trace *trace = read_recorded(i);
        neap_swap_options options = {.link = fifty, .limit_share = 0.75, .seconds = 0.1, .n_threads = 1};
        neap_swap_plan *plan;
        const neap_swap_summary *s;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
        s = neap_swap_get_summary(plan);
        check_summary(s);
        check_entries(trace, plan);
        ASSERT_EQ(s->limit, (uint64_t)(0.75 * (double)s->peak_load));
        neap_swap_free(plan);
        neap_trace_free(trace);
    }
}

static void every_method_keeps_its_promise(void **state)
{
    neap_trace *trace = read_recorded(0);
    (void)state;
    for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
        neap_swap_options options = {.link = fifty, .limit_share = 0.8, .seconds = 0.1, .n_threads = 1};
        neap_swap_plan *plan;
        options.method = (neap_swap_method)method;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
        check_summary(neap_swap_get_summary(plan));
        check_entries(trace, plan);
        ASSERT_STR_EQ(neap_swap_get_summary(plan)->method, neap_swap_method_name(options.method));
        neap_swap_free(plan);
    }
    neap_trace_free(trace);
}

/* Nothing to save: a limit at the peak costs nothing and swaps nothing. */
static void a_limit_at_the_peak_is_free(void **state)
{
    neap_trace *trace = read_recorded(0);
    neap_swap_options options = {.link = fifty, .limit_share = 1, .seconds = 0.2, .n_threads = 1};
    neap_swap_plan *plan;
    (void)state;
    ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
    check_summary(neap_swap_get_summary(plan));
    ASSERT_EQ(neap_swap_get_summary(plan)->limit, neap_swap_get_summary(plan)->peak_load);
    ASSERT_TRUE(neap_swap_get_summary(plan)->overhead == 0);
    ASSERT_EQ(neap_swap_get_summary(plan)->n_swaps, 0);
    neap_swap_free(plan);
    neap_trace_free(trace);
}

static void a_faster_link_never_raises_the_bound(void **state)
{
    neap_trace *trace = read_recorded(0);
    double before = INFINITY;
    (void)state;
    for (double speed = 10; speed <= 160; speed *= 2) {
        neap_swap_options options = {.link = {.out_gbs = speed, .in_gbs = speed}, .seconds = 0.05, .n_threads = 1};
        neap_swap_plan *plan;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
        ASSERT_TRUE(neap_swap_get_summary(plan)->bound_peak <= before);
        before = neap_swap_get_summary(plan)->bound_peak;
        neap_swap_free(plan);
    }
    neap_trace_free(trace);
}

/* ---- sweeps ---- */

static void sweeps_are_in_order(void **state)
{
    enum { N_ROWS = 4 };
    neap_trace *trace = read_recorded(0);
    neap_swap_options options = {.link = fifty, .on_load = true, .seconds = 0.1, .n_threads = 1};
    neap_sweep_row rows[N_ROWS];
    neap_swap_plan *plan;
    (void)state;
    ASSERT_OK(neap_swap_sweep(trace, &options, N_ROWS, NULL, NULL, rows));
    options.on_load = false;
    ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
    ASSERT_EQ(rows[0].limit, neap_swap_get_summary(plan)->peak_load);
    ASSERT_EQ(rows[N_ROWS - 1].limit, neap_swap_get_summary(plan)->floor);
    for (int i = 0; i < N_ROWS; i++) {
        const neap_sweep_row *row = &rows[i];
        ASSERT_TRUE(i == 0 || row->limit < rows[i - 1].limit);
        ASSERT_TRUE(row->overhead[NEAP_SWAP_SEARCH] <= row->overhead[NEAP_SWAP_BO]);
        for (int method = NEAP_SWAP_DOA; method <= NEAP_SWAP_SWDOA; method++) {
            ASSERT_TRUE(row->overhead[NEAP_SWAP_BO] <= row->overhead[method]);
        }
        ASSERT_TRUE(row->bound_overhead <= row->overhead[NEAP_SWAP_SEARCH] + 1e-9);
        ASSERT_TRUE(row->bound_overhead_any <= row->bound_overhead + 1e-12);
        ASSERT_TRUE(i == 0 || row->bound_overhead >= rows[i - 1].bound_overhead);
        ASSERT_TRUE(isfinite(row->overhead[NEAP_SWAP_SEARCH]));
        ASSERT_GT(row->footprint, 0);
    }
    ASSERT_TRUE(rows[0].overhead[NEAP_SWAP_SEARCH] == 0);
    neap_swap_free(plan);
    neap_trace_free(trace);
}

/* The paper's limit: the load is held, and the footprint is what the places come to. */
static void loads_are_held(void **state)
{
    neap_trace *trace = read_recorded(1);
    neap_swap_options options = {.link = fifty, .on_load = true, .limit_share = 0.28, .seconds = 0.1, .n_threads = 1};
    (void)state;
    for (int method = 0; method < NEAP_SWAP_N_METHODS; method++) {
        const neap_swap_summary *s;
        neap_swap_plan *plan;
        options.method = (neap_swap_method)method;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan)); /* no places are found within it */
        s = neap_swap_get_summary(plan);
        ASSERT_LE(s->planned_peak, s->limit);
        ASSERT_GT(s->footprint, s->limit);
        check_entries(trace, plan);
        neap_swap_free(plan);
    }
    neap_trace_free(trace);
}

static void sweeps_of_one_row_are_the_peak(void **state)
{
    neap_trace *trace = small_training();
    neap_swap_options options = small_options(0.05);
    neap_sweep_row row;
    (void)state;
    ASSERT_OK(neap_swap_sweep(trace, &options, 1, NULL, NULL, &row));
    ASSERT_TRUE(row.overhead[NEAP_SWAP_SEARCH] == 0);
    ASSERT_OK(neap_swap_sweep(trace, &options, 0, NULL, NULL, NULL));
    neap_trace_free(trace);
}

/* ---- what cannot be ---- */

static void below_the_floor_names_the_exec(void **state)
{
    neap_trace *trace = read_recorded(0);
    neap_swap_options options = {.link = fifty, .seconds = 0.05, .n_threads = 1};
    neap_swap_plan *plan, *none = NULL;
    const neap_swap_summary *s;
    const neap_event *event;
    neap_error error;
    char number[32];
    size_t n_events;
    (void)state;
    ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
    s = neap_swap_get_summary(plan);
    event = &neap_trace_events(trace, &n_events)[s->floor_event];
    ASSERT_EQ(event->kind, NEAP_EVENT_EXEC);
    options.limit = s->floor - 1;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_swap_make(trace, &options, NULL, &error, &none));
    ASSERT_TRUE(none == NULL);
    ASSERT_CONTAINS(error.text, neap_trace_exec_name(trace, event->subject));
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)s->floor);
    ASSERT_CONTAINS(error.text, number);
    options.limit = 1;
    ASSERT_STATUS(NEAP_NO_PLAN, neap_swap_make(trace, &options, NULL, NULL, &none));
    options.limit = 0;
    options.limit_share = 1e-15; /* of a byte, but a limit */
    ASSERT_STATUS(NEAP_NO_PLAN, neap_swap_make(trace, &options, NULL, NULL, &none));
    neap_swap_free(plan);
    neap_trace_free(trace);
}

static void traces_that_cannot_be_planned(void **state)
{
    static const char csv[] = "id,lower,upper,size\n1,0,4,10\n2,0,2,20\n3,2,4,30\n";
    static const char never[] = "neap-trace 1\nmalloc 1 1000\nexec a 1 50 w1\nmalloc 2 4000\nexec b 2 50 w2\nfree 1\n";
    static const char no_execs[] = "neap-trace 1\nmalloc 1 1000\nfree 1\nmalloc 2 1000\nfree 2\nmalloc 3 1000\nfree 3\n"
                                   "malloc 4 1000\nfree 4\n";
    static const struct {
        const char *text;
        neap_status status;
    } cases[] = {{csv, NEAP_BAD_INPUT}, {never, NEAP_NO_PERIOD}, {no_execs, NEAP_BAD_INPUT}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        neap_trace *trace = read_text(cases[i].text);
        neap_swap_options options = small_options(0.05);
        neap_swap_plan *none = NULL;
        neap_sweep_row row;
        neap_error error;
        ASSERT_STATUS(cases[i].status, neap_swap_make(trace, &options, NULL, &error, &none));
        ASSERT_TRUE(none == NULL);
        ASSERT_TRUE(error.text[0] != '\0');
        ASSERT_STATUS(cases[i].status, neap_swap_sweep(trace, &options, 1, NULL, &error, &row));
        neap_trace_free(trace);
    }
}

static void bad_arguments(void **state)
{
    neap_trace *trace = small_training();
    neap_swap_options good = small_options(0.05);
    neap_swap_options bad[14];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bad[i] = good;
    }
    bad[n++].link.out_gbs = 0;
    bad[n++].link.in_gbs = 0;
    bad[n++].link.out_gbs = -1;
    bad[n++].link.in_gbs = (double)NAN;
    bad[n++].link.out_gbs = (double)INFINITY;
    bad[n++].link.both_gbs = -1;
    bad[n++].link.both_gbs = (double)NAN;
    bad[n++].link.latency_us = -1;
    bad[n++].link.latency_us = (double)INFINITY;
    bad[n++].limit_share = -0.1;
    bad[n++].limit_share = 1.1;
    bad[n++].limit_share = (double)NAN;
    bad[n++].method = NEAP_SWAP_N_METHODS;
    bad[n++].page = 513;
    for (size_t i = 0; i < n; i++) {
        neap_swap_plan *none = NULL;
        neap_error error;
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_swap_make(trace, &bad[i], NULL, &error, &none));
        ASSERT_TRUE(none == NULL);
        ASSERT_TRUE(error.text[0] != '\0');
    }
    ASSERT_STR_EQ(neap_swap_method_name(NEAP_SWAP_BO), "bo");
    ASSERT_STR_EQ(neap_swap_method_name(NEAP_SWAP_N_METHODS), "unknown");
    neap_swap_free(NULL);
    neap_trace_free(trace);
}

/* ---- memory ---- */

typedef struct request {
    neap_trace *trace;
    neap_swap_options options;
    bool sweep;
} request;

static neap_status make_within(const neap_memory *memory, void *user)
{
    request *r = user;
    neap_swap_plan *plan;
    neap_sweep_row rows[2];
    neap_status status;
    if (r->sweep) {
        return neap_swap_sweep(r->trace, &r->options, 2, memory, NULL, rows);
    }
    status = neap_swap_make(r->trace, &r->options, memory, NULL, &plan);
    if (status == NEAP_OK) {
        neap_swap_free(plan);
    }
    return status;
}

/* Too little time for more than one try, so that each run is like the one before. */
static void fails_without_memory(void **state)
{
    request r = {.trace = small_training()};
    (void)state;
    r.options = small_options(1e-9);
    ASSERT_GT(test_memory_fail_each(make_within, &r), 50);
    r.options.limit_share = 0.9;
    ASSERT_GT(test_memory_fail_each(make_within, &r), 50);
    r.sweep = true;
    ASSERT_GT(test_memory_fail_each(make_within, &r), 50);
    neap_trace_free(r.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_without_overhead),
        cmocka_unit_test(recordings_under_a_limit),
        cmocka_unit_test(every_method_keeps_its_promise),
        cmocka_unit_test(a_limit_at_the_peak_is_free),
        cmocka_unit_test(a_faster_link_never_raises_the_bound),
        cmocka_unit_test(sweeps_are_in_order),
        cmocka_unit_test(loads_are_held),
        cmocka_unit_test(sweeps_of_one_row_are_the_peak),
        cmocka_unit_test(below_the_floor_names_the_exec),
        cmocka_unit_test(traces_that_cannot_be_planned),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
