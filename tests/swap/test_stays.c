/* What is said of where blocks stand and when copies run, against the trace itself: whatever an exec uses is there, whole,
 * and back in time. */
#include "swap/stays.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "swap/recorded.h"
#include "testing.h"
#include "trace/make_trace.h"

static const neap_link fifty = {.out_gbs = 50, .in_gbs = 50, .latency_us = 2};

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

/* ---- by the public interface ---- */

static uint64_t bytes_there(const neap_swap_stay *stays, size_t n, uint32_t block, uint32_t time)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        if (stays[i].block == block && stays[i].begin <= time && time < stays[i].end) {
            bytes += stays[i].bytes;
        }
    }
    return bytes;
}

/* Of blocks that live through the period: those malloc'd in it have likes in the periods before, under other names. */
static size_t check_uses(const neap_trace *trace, const neap_swap_plan *plan)
{
    const neap_swap_summary *s = neap_swap_get_summary(plan);
    size_t n, n_events, n_blocks, n_accesses, n_checked = 0;
    const neap_swap_stay *stays = neap_swap_stays(plan, &n);
    const neap_event *events = neap_trace_events(trace, &n_events);
    const neap_trace_block *blocks = neap_trace_blocks(trace, &n_blocks);
    const neap_access *accesses = neap_trace_accesses(trace, &n_accesses);
    for (uint32_t t = 0; t < s->length; t++) {
        const neap_event *event = &events[s->begin + t];
        for (uint32_t i = 0; event->kind == NEAP_EVENT_EXEC && i < event->n_accesses; i++) {
            uint32_t block = accesses[event->first_access + i].block;
            bool is_early = blocks[block].malloc_event == NEAP_NEVER || blocks[block].malloc_event < s->begin;
            bool is_ended = blocks[block].free_event < s->begin + s->length;
            if (!(is_early && is_ended)) { /* else it is the last period's */
                uint64_t size = (blocks[block].bytes + 511) / 512 * 512;
                ASSERT_EQ(bytes_there(stays, n, block, t), size);
                n_checked++;
            }
        }
    }
    return n_checked;
}

static void check_copies(const neap_swap_plan *plan)
{
    const neap_swap_summary *s = neap_swap_get_summary(plan);
    double period_ns = s->iteration_ns * (1 + s->overhead);
    size_t n, n_execs;
    const neap_swap_entry *entries = neap_swap_entries(plan, &n);
    const neap_swap_exec *execs = neap_swap_execs(plan, &n_execs);
    double *start_ns = calloc(s->length, sizeof *start_ns);
    double busy_out = 0, busy_in = 0;
    uint64_t bytes_out = 0;
    ASSERT_TRUE(start_ns);
    for (size_t k = 0; k < n_execs; k++) {
        start_ns[execs[k].event - s->begin] = execs[k].start_ns;
    }
    for (size_t i = 0; i < n; i++) {
        const neap_swap_entry *e = &entries[i];
        double due_ns = start_ns[e->used_after - s->begin];
        double slack_ns = 1e-6 * period_ns;
        ASSERT_TRUE(e->in_start_ns >= 0 && e->in_start_ns < period_ns && e->in_end_ns > e->in_start_ns);
        due_ns += e->in_start_ns >= due_ns ? period_ns : 0;
        ASSERT_TRUE(e->in_end_ns <= due_ns + slack_ns);
        busy_in += e->in_end_ns - e->in_start_ns;
        if (!isnan(e->out_start_ns)) {
            ASSERT_TRUE(e->out_start_ns >= 0 && e->out_start_ns < period_ns && e->out_end_ns > e->out_start_ns);
            busy_out += e->out_end_ns - e->out_start_ns;
            bytes_out += e->bytes;
        }
    }
    ASSERT_EQ(bytes_out, s->bytes_out);
    ASSERT_TRUE(busy_in <= period_ns * 1.000001 && busy_out <= period_ns * 1.000001); /* one copy at a time */
    free(start_ns);
}

static void what_is_used_is_there(void **state)
{
    static const double shares[] = {1, 0.8, 0.6};
    size_t n_swaps = 0;
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        neap_trace *trace = read_recorded(0);
        neap_swap_options options = {.link = fifty, .limit_share = shares[i], .seconds = 0.2, .n_threads = 1};
        neap_swap_plan *plan;
        size_t n_execs;
        ASSERT_OK(neap_swap_make(trace, &options, NULL, NULL, &plan));
        ASSERT_GT(check_uses(trace, plan), 300);
        check_copies(plan);
        (void)neap_swap_execs(plan, &n_execs);
        ASSERT_GT(n_execs, 100);
        n_swaps += neap_swap_get_summary(plan)->n_swaps;
        neap_swap_free(plan);
        neap_trace_free(trace);
    }
    ASSERT_GT(n_swaps, 10);
}

/* ---- inside ---- */

typedef struct plans {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
    np_planner planner;
    np_judged judged;
    neap_error error;
} plans;

static void make_plans(plans *p, neap_trace *trace, double share)
{
    np_timeline_options options = {.alignment = 512, .slower = 1, .directions = NP_DIRECTIONS_CAREFUL};
    *p = (plans){.trace = trace};
    ASSERT_OK(np_period_find(trace, NULL, &p->period));
    ASSERT_OK(np_timeline_make(&p->period, &options, NULL, &p->timeline));
    p->planner = (np_planner){.timeline = &p->timeline,
                              .link = np_link_from(&(neap_link){.out_gbs = 1500, .in_gbs = 1500}),
                              .min_block = 1,
                              .page = 1 << 17,
                              .n_threads = 1,
                              .deadline_ns = np_clock_ns() + (uint64_t)1e8,
                              .error = &p->error};
    ASSERT_OK(np_simulator_create(&p->timeline, &p->planner.link, &p->planner.simulator));
    ASSERT_OK(np_plan_within_limit(&p->planner, NEAP_SWAP_SEARCH, (uint64_t)(share * (double)p->timeline.peak_load),
                                   &p->judged));
}

static void free_plans(plans *p)
{
    np_judged_free(&p->judged, p->timeline.memory);
    np_simulator_free(p->planner.simulator);
    np_timeline_free(&p->timeline);
    np_period_free(&p->period);
    neap_trace_free(p->trace);
}

static void stays_never_meet(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        plans p;
        np_stays stays;
        neap_swap_entry *entries;
        make_plans(&p, make_training(&(training){.seed = seed, .n_layers = 5, .n_iterations = 5}), 0.75);
        entries = calloc(p.judged.swaps.n + 1, sizeof *entries);
        ASSERT_TRUE(entries);
        ASSERT_OK(np_stays_make(&p.planner, &p.judged, entries, &stays));
        ASSERT_GT(p.judged.swaps.n, 0);
        ASSERT_GT(stays.stays.n, p.judged.layout.placed.n); /* what leaves is there more than once */
        ASSERT_TRUE(np_stays_is_valid(&stays, &p.timeline, p.judged.place.footprint));
        stays.stays.items[0].offset = p.judged.place.footprint; /* and the walk sees what is wrong */
        ASSERT_TRUE(!np_stays_is_valid(&stays, &p.timeline, p.judged.place.footprint));
        stays.stays.items[0] = stays.stays.items[1];
        ASSERT_TRUE(!np_stays_is_valid(&stays, &p.timeline, p.judged.place.footprint));
        np_stays_free(&stays);
        free(entries);
        free_plans(&p);
    }
}

/* A layout that belongs to other swaps is noticed. */
static void another_layout_is_refused(void **state)
{
    plans p;
    np_stays stays;
    neap_swap_entry *entries;
    (void)state;
    make_plans(&p, make_training(&(training){.seed = 2, .n_layers = 5, .n_iterations = 5}), 0.75);
    entries = calloc(p.judged.swaps.n + 1, sizeof *entries);
    ASSERT_TRUE(entries);
    ASSERT_GT(p.judged.layout.placed.n, 1);
    p.judged.layout.placed.items[0].bytes++;
    ASSERT_STATUS(NEAP_INTERNAL, np_stays_make(&p.planner, &p.judged, entries, &stays));
    p.judged.layout.placed.items[0].bytes--;
    p.judged.layout.placed.n--;
    ASSERT_STATUS(NEAP_INTERNAL, np_stays_make(&p.planner, &p.judged, entries, &stays));
    free(entries);
    free_plans(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_used_is_there),
        cmocka_unit_test(stays_never_meet),
        cmocka_unit_test(another_layout_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
