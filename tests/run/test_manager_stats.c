/* test_manager_stats.c: every figure of neap_stats is what neap.h says, counted independently: by the program, and by a
 * device that counts what is asked of it. */
#include <math.h>
#include <stdio.h>

#include "run/little_program.h"
#include "testing.h"

/* ---- a device that counts ---- */

/* The device's own functions, counted by others in their place. One device at a time. */
static struct counts {
    const np_device_interface *inner;
    np_device_interface api;
    uint64_t held_bytes;
    uint64_t peak_bytes;
    uint64_t recent_peak; /* since it was last set */
    uint64_t out_bytes;
    uint64_t in_bytes;
    uint64_t host_bytes;
} counts;

static neap_status count_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    neap_status status = counts.inner->commit(device, first_page, n_pages);
    counts.held_bytes += status == NEAP_OK ? n_pages * device->page_bytes : 0;
    counts.peak_bytes = counts.held_bytes > counts.peak_bytes ? counts.held_bytes : counts.peak_bytes;
    counts.recent_peak = counts.held_bytes > counts.recent_peak ? counts.held_bytes : counts.recent_peak;
    return status;
}

static void count_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    counts.inner->release(device, first_page, n_pages);
    counts.held_bytes -= n_pages * device->page_bytes;
}

static neap_status count_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                              uint64_t *mark)
{
    *(stream == NP_STREAM_OUT ? &counts.out_bytes : &counts.in_bytes) += bytes;
    return counts.inner->copy(device, stream, to, from, bytes, mark);
}

static neap_status count_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    neap_status status = counts.inner->host_alloc(device, bytes, host);
    counts.host_bytes += status == NEAP_OK ? bytes : 0;
    return status;
}

static void count_host_free(np_device *device, char *host, uint64_t bytes)
{
    counts.inner->host_free(device, host, bytes);
    counts.host_bytes -= bytes;
}

static void open_counted(little_program *p, const little_options *options)
{
    little_open(p, options);
    counts = (struct counts){.inner = p->raw->api, .api = *p->raw->api};
    counts.api.commit = count_commit;
    counts.api.release = count_release;
    counts.api.copy = count_copy;
    counts.api.host_alloc = count_host_alloc;
    counts.api.host_free = count_host_free;
    p->raw->api = &counts.api;
    little_begin(p);
}

/* ---- after every event ---- */

typedef struct tally {
    uint64_t n_events;
    uint64_t peak_live;
    bool has_plan;
} tally;

static uint64_t live_bytes(const little_program *p)
{
    uint64_t bytes = p->gradient.block ? p->gradient.bytes : 0;
    for (uint32_t i = 0; i < p->options.n_layers; i++) {
        bytes += p->weights[i].block ? p->weights[i].bytes : 0;
    }
    for (uint32_t i = 0; i <= p->options.n_layers; i++) {
        bytes += p->acts[i].block ? p->acts[i].bytes : 0;
    }
    return bytes;
}

static void compare(little_program *p)
{
    tally *t = p->user;
    neap_stats stats = little_stats(p);
    t->n_events++;
    ASSERT_EQ(stats.n_events, t->n_events);
    ASSERT_GE(stats.live, live_bytes(p)); /* the next gradient, and extra blocks, are not among those */
    t->peak_live = stats.live > t->peak_live ? stats.live : t->peak_live;
    ASSERT_EQ(stats.peak_live, t->peak_live);
    ASSERT_EQ(stats.held, counts.held_bytes);
    ASSERT_EQ(stats.peak_held, counts.peak_bytes);
    ASSERT_EQ(stats.bytes_out, counts.out_bytes);
    ASSERT_EQ(stats.bytes_in, counts.in_bytes);
    ASSERT_EQ(stats.host_bytes, counts.host_bytes);
    if (stats.state == NEAP_STATE_RUN && !t->has_plan) { /* it was entered with this event */
        t->has_plan = true;
        counts.recent_peak = counts.held_bytes;
    }
    ASSERT_EQ(stats.footprint, t->has_plan ? counts.recent_peak : 0);
}

static void test_counters(void **state)
{
    static const double shares[] = {0, 0.8, 0.5};
    (void)state;
    for (int i = 0; i < 3; i++) {
        little_options options = {.device = {.limit_share = shares[i]}};
        little_program p;
        tally t = {.n_events = 12};
        open_counted(&p, &options);
        t.peak_live = little_stats(&p).live;
        ASSERT_EQ(t.peak_live, 12 * LITTLE_PAGE);
        p.after_event = compare;
        p.user = &t;
        little_laps(&p, 8);
        ASSERT_EQ(live_bytes(&p), little_stats(&p).live);
        little_lap(&p, (little_twist){LITTLE_EXTRA_MALLOC, 2});
        little_lap(&p, (little_twist){LITTLE_CUT_SHORT, 2});
        little_laps(&p, 3);
        ASSERT_EQ(live_bytes(&p), little_stats(&p).live);
        ASSERT_EQ(little_stats(&p).bytes_out > 0, i > 0);
        p.after_event = NULL;
        little_end(&p);
        ASSERT_EQ(counts.host_bytes, 0);
    }
}

/* ---- the plan's ---- */

/* The most that an iteration has live at once: all weights, all activations, two gradients. */
static uint64_t peak_load(const little_program *p)
{
    uint64_t weight = (p->options.weight_bytes + 511) / 512 * 512;
    uint64_t act = (p->options.act_bytes + 511) / 512 * 512;
    return p->options.n_layers * weight + (p->options.n_layers + 1 + 2) * act;
}

static void test_plan_figures(void **state)
{
    little_options options = {
        .act_bytes = 8 * LITTLE_PAGE - 1000, .weight_bytes = 2 * LITTLE_PAGE - 100, .device = {.limit_share = 0.75}};
    little_program p;
    neap_stats stats;
    (void)state;
    open_counted(&p, &options);
    little_laps(&p, 2);
    stats = little_stats(&p);
    ASSERT_TRUE(stats.state < NEAP_STATE_RUN);
    ASSERT_EQ(stats.limit, 0); /* not yet */
    ASSERT_EQ(stats.peak_load, 0);
    ASSERT_EQ(stats.footprint, 0);
    ASSERT_EQ(stats.planned_footprint, 0);
    ASSERT_EQ(stats.n_patterns, 0);
    ASSERT_EQ(stats.n_iterations, 0);
    ASSERT_EQ(stats.metadata_bytes, 0);
    ASSERT_TRUE(stats.iteration_ns == 0 && isnan(stats.overhead) && !stats.plan_was_loaded);
    (void)little_run_until_plan(&p, 10);
    stats = little_stats(&p);
    ASSERT_EQ(stats.n_patterns, 1);
    ASSERT_EQ(stats.peak_load, peak_load(&p));
    ASSERT_EQ(stats.limit, (uint64_t)(0.75 * (double)stats.peak_load) / LITTLE_PAGE * LITTLE_PAGE);
    ASSERT_LE(stats.planned_footprint, stats.limit);
    ASSERT_GE(stats.planned_footprint, stats.limit * 9 / 10);
    ASSERT_LE(stats.footprint, stats.limit);
    ASSERT_GE(stats.footprint, stats.planned_footprint);
    ASSERT_GT(stats.metadata_bytes, 0);
    ASSERT_LE(stats.metadata_bytes, 1000);
    ASSERT_TRUE(stats.iteration_ns == 20.0 * (double)p.options.exec_ns);
    little_end(&p);
}

/* The overhead is not known before three iterations were measured; then it is what the virtual clock says. */
static void test_overhead_known(void **state)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,link=600MB/s", .device = {.limit_share = 0.6}};
    little_program p;
    neap_stats stats;
    uint64_t begin_ns;
    uint64_t end_ns;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(isnan(little_stats(&p).overhead));
        little_laps(&p, 1);
        ASSERT_OK(neap_sync(p.device));
    }
    little_laps(&p, 60);
    ASSERT_OK(neap_sync(p.device));
    begin_ns = p.raw->api->now_ns(p.raw);
    little_laps(&p, 7);
    ASSERT_OK(neap_sync(p.device));
    end_ns = p.raw->api->now_ns(p.raw);
    stats = little_stats(&p);
    ASSERT_GT(stats.waits, 0);
    ASSERT_TRUE(stats.overhead > 0.01);
    ASSERT_TRUE(fabs((double)(end_ns - begin_ns) / 7 / stats.iteration_ns - 1 - stats.overhead) <
                0.05 * (1 + stats.overhead));
    little_end(&p);
}

static void count_waits(double share, const char *link, bool *has_waited, bool *has_copied)
{
    char name[80];
    little_options options = {.name = name, .device = {.limit_share = share}};
    little_program p;
    uint64_t before;
    (void)snprintf(name, sizeof name, "sim:page=4KiB,memory=64MiB,link=%s", link);
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    before = little_stats(&p).waits;
    little_laps(&p, 5);
    *has_waited = little_stats(&p).waits > before;
    *has_copied = little_stats(&p).bytes_in > 0;
    little_end(&p);
}

/* Work waits for a copy where the copy is not done by then: never without swaps. */
static void test_waits(void **state)
{
    bool has_waited;
    bool has_copied;
    (void)state;
    count_waits(0, "1GB/s", &has_waited, &has_copied);
    ASSERT_TRUE(!has_waited && !has_copied);
    count_waits(0.5, "1GB/s", &has_waited, &has_copied);
    ASSERT_TRUE(has_waited && has_copied);
}

/* What is held off the plan counts, too, even if it is gone by the time that one looks. */
static void test_footprint_off_the_plan(void **state)
{
    little_program p;
    shadow_block large;
    uint64_t planned;
    (void)state;
    open_counted(&p, NULL);
    (void)little_run_until_plan(&p, 10);
    planned = little_stats(&p).footprint;
    little_laps(&p, 1);
    counts.recent_peak = 0;
    little_malloc(&p, 500 * LITTLE_PAGE, &large);
    little_free(&p, &large);
    little_laps(&p, 2);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_GE(counts.recent_peak, planned + 400 * LITTLE_PAGE);
    ASSERT_EQ(little_stats(&p).footprint, counts.recent_peak);
    ASSERT_LE(little_stats(&p).held, planned);
    little_end(&p);
}

/* When planning was seen to go on, from one event to the next. */
typedef struct planning {
    bool is_on;
    uint32_t n_begun;
    bool was_on_before_plan; /* off the plan, that is */
    bool is_on_while_tried;
} planning;

static void watch_planning(little_program *p)
{
    planning *seen = p->user;
    neap_stats stats = little_stats(p);
    seen->n_begun += stats.is_planning && !seen->is_on;
    seen->is_on = stats.is_planning;
    seen->was_on_before_plan |= stats.is_planning && stats.state < NEAP_STATE_RUN;
    seen->is_on_while_tried &= stats.is_planning || p->device->refine.n_tried == 0;
}

/* From the moment that a plan is asked for until it is there; and from the first measurement of one that may be refined
 * until the last trial is over. */
static void test_is_planning(void **state)
{
    (void)state;
    for (uint32_t refinements = 0; refinements <= 3; refinements += 3) {
        little_options options = {.name = "sim:page=4KiB,memory=64MiB,link=600MB/s",
                                  .device = {.limit_share = 0.6, .refinements = refinements}};
        planning seen = {.is_on_while_tried = true};
        little_program p;
        little_start(&p, &options);
        p.after_event = watch_planning;
        p.user = &seen;
        little_laps(&p, 2);
        ASSERT_EQ(seen.n_begun, 0);
        (void)little_run_until_plan(&p, 10);
        ASSERT_TRUE(seen.was_on_before_plan);
        ASSERT_EQ(seen.n_begun, 1);
        ASSERT_FALSE(little_stats(&p).is_planning);
        for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
            little_laps(&p, 1);
        }
        ASSERT_EQ(little_count(&p, "refined in 3 trials"), refinements > 0);
        ASSERT_EQ(seen.n_begun, refinements > 0 ? 2 : 1); /* without an end between the trials */
        ASSERT_TRUE(seen.is_on_while_tried);
        little_laps(&p, 2); /* back to the fastest */
        ASSERT_FALSE(little_stats(&p).is_planning);
        little_laps(&p, 20);
        ASSERT_EQ(seen.n_begun, refinements > 0 ? 2 : 1);
        little_end(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_plan_figures),
        cmocka_unit_test(test_overhead_known),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_footprint_off_the_plan),
        cmocka_unit_test(test_is_planning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
