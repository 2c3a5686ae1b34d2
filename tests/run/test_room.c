/* test_room.c: which blocks are on the device off the plan: who leaves, who stays, and what it costs. */
#include <string.h>

#include "device/faulty.h"
#include "run/manager.h"
#include "run/shadow.h"
#include "testing.h"

enum { PAGE = 4096 };

typedef struct scene {
    np_device *raw;
    neap_device *device;
    shadow_report report;
    shadow_streams streams;
    uint32_t n_warnings;
} scene;

static void count_line(void *user, neap_log_level level, const char *line)
{
    scene *s = user;
    s->n_warnings += level == NEAP_LOG_WARN;
    (void)line;
}

static void open_scene(scene *s, const char *name, uint64_t limit_pages)
{
    neap_device_options options = {.limit = limit_pages * PAGE,
                                   .min_block = PAGE,
                                   .plan_seconds = 10,
                                   .refinements = UINT32_MAX,
                                   .log = count_line,
                                   .log_user = s};
    *s = (scene){0};
    shadow_report_init(&s->report, true);
    ASSERT_OK(np_device_open(name, NULL, NULL, &s->raw));
    s->raw = faulty_wrap(s->raw);
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device));
    s->device->learner.learns_at_once = true;
    shadow_streams_init(&s->streams, s->device, &s->report, 1, 1);
}

static void close_scene(scene *s)
{
    ASSERT_OK(shadow_sync(&s->streams));
    ASSERT_TRUE(np_manager_is_valid(s->device));
    ASSERT_TRUE(s->raw->api->problem(s->raw) == NULL);
    if (atomic_load(&s->report.is_bad)) {
        test_fail(__FILE__, __LINE__, "%s", s->report.text);
    }
    neap_close(s->device);
    shadow_report_free(&s->report);
}

static neap_status try_use(scene *s, shadow_kind kind, shadow_block *a, shadow_block *b)
{
    shadow_use uses[] = {{a, kind}, {b, kind}};
    return shadow_exec(&s->streams, "work", 0, 1000, uses, b ? 2 : 1);
}

static void use(scene *s, shadow_kind kind, shadow_block *a, shadow_block *b)
{
    ASSERT_OK(try_use(s, kind, a, b));
}

static bool is_here(const shadow_block *block)
{
    return np_block_is_here(block->block);
}

static void test_least_recent_leaves(void **state)
{
    scene s;
    shadow_block b[4];
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB", 12);
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(shadow_malloc(&s.streams, 4 * PAGE, &b[i]));
        ASSERT_FALSE(is_here(&b[i])); /* pages come with the first use */
    }
    use(&s, SHADOW_WRITE, &b[0], NULL);
    use(&s, SHADOW_WRITE, &b[1], NULL);
    use(&s, SHADOW_WRITE, &b[2], NULL);
    use(&s, SHADOW_READ, &b[0], NULL);
    use(&s, SHADOW_WRITE, &b[3], NULL);
    ASSERT_TRUE(is_here(&b[0]) && is_here(&b[2]) && is_here(&b[3]));
    ASSERT_FALSE(is_here(&b[1]));
    use(&s, SHADOW_READ, &b[1], &b[2]); /* whoever is used stays, though others were used later */
    ASSERT_TRUE(is_here(&b[1]) && is_here(&b[2]) && is_here(&b[3]));
    ASSERT_FALSE(is_here(&b[0]));
    ASSERT_EQ(s.device->pages.n_held, 12);
    ASSERT_EQ(s.n_warnings, 0);
    for (int i = 0; i < 4; i++) {
        use(&s, SHADOW_READ, &b[i], NULL);
    }
    close_scene(&s);
}

/* A block's bytes are copied, not those behind it in its last page; and not twice where they did not change. */
static void test_copies_no_more_than_needed(void **state)
{
    scene s;
    shadow_block a;
    shadow_block b;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB", 3);
    ASSERT_OK(shadow_malloc(&s.streams, PAGE + 100, &a));
    ASSERT_OK(shadow_malloc(&s.streams, 3 * PAGE, &b));
    use(&s, SHADOW_WRITE, &a, NULL);
    use(&s, SHADOW_WRITE, &b, NULL);
    ASSERT_EQ(s.device->stats.bytes_out, PAGE + 100);
    ASSERT_EQ(s.device->stats.bytes_in, 0); /* there was nothing to fetch */
    use(&s, SHADOW_READ, &a, NULL);
    ASSERT_EQ(s.device->stats.bytes_out, 4 * PAGE + 100);
    ASSERT_EQ(s.device->stats.bytes_in, PAGE + 100);
    use(&s, SHADOW_READ, &b, NULL); /* a has not changed */
    ASSERT_EQ(s.device->stats.bytes_out, 4 * PAGE + 100);
    use(&s, SHADOW_UPDATE, &a, NULL); /* nor has b */
    ASSERT_EQ(s.device->stats.bytes_out, 4 * PAGE + 100);
    use(&s, SHADOW_READ, &b, NULL);
    ASSERT_EQ(s.device->stats.bytes_out, 5 * PAGE + 200);
    use(&s, SHADOW_READ, &a, NULL);
    close_scene(&s);
}

static void test_limit_is_raised(void **state)
{
    scene s;
    neap_stats stats;
    shadow_block a;
    shadow_block b;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB", 5);
    ASSERT_OK(shadow_malloc(&s.streams, 4 * PAGE, &a));
    ASSERT_OK(shadow_malloc(&s.streams, 3 * PAGE, &b));
    use(&s, SHADOW_WRITE, &a, NULL);
    use(&s, SHADOW_WRITE, &b, NULL);
    ASSERT_EQ(s.n_warnings, 0);
    use(&s, SHADOW_READ, &a, &b); /* seven pages at once */
    neap_get_stats(s.device, &stats);
    ASSERT_EQ(stats.limit, 7 * PAGE);
    ASSERT_EQ(stats.held, 7 * PAGE);
    ASSERT_EQ(s.n_warnings, 1);
    close_scene(&s);
}

static void test_device_is_full(void **state)
{
    scene s;
    shadow_block a;
    shadow_block b;
    shadow_block c;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=32KiB", 0);
    ASSERT_OK(shadow_malloc(&s.streams, 5 * PAGE, &a));
    use(&s, SHADOW_WRITE, &a, NULL);
    ASSERT_OK(shadow_malloc(&s.streams, 5 * PAGE, &b)); /* a leaves */
    use(&s, SHADOW_WRITE, &b, NULL);
    ASSERT_FALSE(is_here(&a));
    ASSERT_STATUS(NEAP_DEVICE_FULL, shadow_malloc(&s.streams, 9 * PAGE, &c));
    ASSERT_CONTAINS(neap_device_error(), "36864 bytes");
    ASSERT_STATUS(NEAP_DEVICE_FULL, try_use(&s, SHADOW_UPDATE, &a, &b));
    ASSERT_TRUE(np_manager_is_valid(s.device));
    use(&s, SHADOW_UPDATE, &a, NULL); /* and the program goes on */
    use(&s, SHADOW_UPDATE, &b, NULL);
    ASSERT_OK(shadow_free(&s.streams, &a));
    ASSERT_OK(shadow_malloc(&s.streams, 3 * PAGE, &c));
    use(&s, SHADOW_WRITE, &c, NULL);
    use(&s, SHADOW_READ, &b, &c);
    close_scene(&s);
}

/* A loop that is planned, with swaps. */
static void run_iteration(scene *s, shadow_block *weight)
{
    shadow_block b[6];
    for (int i = 0; i < 6; i++) {
        ASSERT_OK(shadow_malloc(&s->streams, 3 * PAGE, &b[i]));
        use(s, SHADOW_WRITE, &b[i], NULL);
        use(s, SHADOW_READ, &b[i], weight);
    }
    for (int i = 6; i-- > 0;) {
        use(s, SHADOW_UPDATE, &b[i], weight);
        ASSERT_OK(shadow_free(&s->streams, &b[i]));
    }
}

/* The first small block needs a slab, and the arena's unused pages are none of its. */
static void test_slab_within_limit(void **state)
{
    scene s;
    neap_stats stats;
    shadow_block weight;
    shadow_block small;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB,link=4GB/s", 16);
    ASSERT_OK(shadow_malloc(&s.streams, 2 * PAGE, &weight));
    use(&s, SHADOW_WRITE, &weight, NULL);
    for (int i = 0; i < 12; i++) {
        run_iteration(&s, &weight);
    }
    ASSERT_EQ(s.device->state, NEAP_STATE_RUN);
    ASSERT_OK(shadow_malloc(&s.streams, 700, &small));
    use(&s, SHADOW_WRITE, &small, NULL);
    neap_get_stats(s.device, &stats);
    ASSERT_LE(stats.held, stats.limit);
    use(&s, SHADOW_READ, &small, &weight);
    close_scene(&s);
}

/* ---- what freed blocks leave behind ---- */

/* No plan is ever made. */
static void open_unplanned(scene *s)
{
    open_scene(s, "sim:page=4096,memory=16MiB", 0);
    s->device->plan_not_before_ns = UINT64_MAX;
}

static void take(scene *s, uint64_t bytes, shadow_block *block)
{
    ASSERT_OK(shadow_malloc(&s->streams, bytes, block));
    use(s, SHADOW_WRITE, block, NULL);
}

static void give(scene *s, shadow_block *block)
{
    use(s, SHADOW_READ, block, NULL);
    ASSERT_OK(shadow_free(&s->streams, block));
    ASSERT_TRUE(np_manager_is_valid(s->device));
}

/* So many pages may be held where that many were ever needed at once. */
static uint32_t held_most(uint32_t n_needed)
{
    return n_needed + n_needed / 50 + 5;
}

/* Blocks of ever other sizes: what was freed serves whatever comes next. */
static void test_pages_serve_any_block(void **state)
{
    scene s;
    shadow_block old;
    uint32_t sum = 10;
    (void)state;
    open_unplanned(&s);
    take(&s, 10 * PAGE, &old);
    for (uint32_t n = 10; n < 70; n++) {
        shadow_block block;
        take(&s, n * PAGE, &block);
        sum += n;
        ASSERT_LE(s.device->pages.n_held, held_most(10 + n));
        give(&s, &block);
        ASSERT_LE(s.device->pages.n_held, held_most(10 + n));
    }
    ASSERT_GT(sum, 4 * s.device->pages.peak_held);
    use(&s, SHADOW_READ, &old, NULL);
    close_scene(&s);
}

/* Holes between blocks that stay: their pages are used elsewhere. */
static void test_holes_are_used(void **state)
{
    enum { N = 40 };
    scene s;
    shadow_block stays[N];
    shadow_block goes[N];
    shadow_block large;
    (void)state;
    open_unplanned(&s);
    for (int i = 0; i < N; i++) {
        take(&s, 3 * PAGE, &stays[i]);
        take(&s, 4 * PAGE + 100, &goes[i]);
    }
    for (int i = 0; i < N; i++) {
        give(&s, &goes[i]);
    }
    take(&s, 100 * PAGE, &large);
    ASSERT_LE(s.device->pages.n_held, held_most((7 * N * PAGE + 100 * N) / PAGE + 1));
    for (int i = 0; i < N; i++) {
        use(&s, SHADOW_UPDATE, &stays[i], &large);
    }
    give(&s, &large);
    for (int i = 0; i < N; i++) {
        give(&s, &stays[i]);
    }
    close_scene(&s);
}

/* Each of the sizes once, never more than two at a time, beside a block that stays. */
static void run_sizes(scene *s, uint64_t odd_bytes)
{
    shadow_block blocks[2];
    for (uint32_t i = 0; i <= 13; i++) {
        if (i < 13) {
            take(s, (8 + i) * PAGE + odd_bytes, &blocks[i % 2]);
        }
        if (i > 0) {
            give(s, &blocks[(i - 1) % 2]);
        }
    }
}

/* A program that repeats itself finds the views that it needs, after a few iterations. */
static void test_spares_serve_a_loop(void **state)
{
    static const uint64_t odd_bytes[] = {0, 300};
    (void)state;
    for (size_t i = 0; i < sizeof odd_bytes / sizeof *odd_bytes; i++) {
        scene s;
        shadow_block weight;
        uint64_t n_views = 0;
        uint32_t n_held = 0;
        open_unplanned(&s);
        take(&s, 40 * PAGE, &weight);
        for (int lap = 0; lap < 8; lap++) {
            run_sizes(&s, odd_bytes[i]);
            if (lap == 3) {
                n_views = faulty_n_calls(s.raw, FAULTY_RESERVE);
                n_held = s.device->pages.n_held;
            }
        }
        ASSERT_EQ(faulty_n_calls(s.raw, FAULTY_RESERVE), n_views);
        ASSERT_EQ(s.device->pages.n_held, n_held);
        ASSERT_LE(n_held, held_most(40 + 20 + 19 + 1));
        ASSERT_NE(s.device->state, NEAP_STATE_RUN);
        use(&s, SHADOW_READ, &weight, NULL);
        close_scene(&s);
    }
}

/* What is asked for only to see whether it is there is no load. */
static void test_question_is_no_load(void **state)
{
    scene s;
    neap_stats stats;
    shadow_block weight;
    shadow_block block;
    (void)state;
    open_unplanned(&s);
    np_beneath_begin(s.device, 0, 0);
    take(&s, 10 * PAGE, &weight);
    s.device->is_deferring = true;
    ASSERT_OK(shadow_malloc(&s.streams, 100 * PAGE, &block));
    s.device->is_deferring = false;
    ASSERT_EQ(s.device->pages.n_held, 10);
    ASSERT_OK(shadow_free(&s.streams, &block));
    neap_get_stats(s.device, &stats);
    ASSERT_EQ(stats.peak_live, 10 * PAGE);
    ASSERT_EQ(stats.held, 10 * PAGE);
    use(&s, SHADOW_READ, &weight, NULL);
    close_scene(&s);
}

/* ---- a device of which others have taken a part ---- */

static struct partly {
    const np_device_interface *inner;
    np_device_interface api;
    uint32_t n_left; /* pages */
    uint32_t n_refused;
} partly;

static neap_status partly_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    neap_status status = NEAP_DEVICE_FULL;
    if (n_pages <= partly.n_left) {
        status = partly.inner->commit(device, first_page, n_pages);
    }
    partly.n_left -= status == NEAP_OK ? n_pages : 0;
    partly.n_refused += status == NEAP_DEVICE_FULL;
    return status;
}

static void partly_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    partly.inner->release(device, first_page, n_pages);
    partly.n_left += n_pages;
}

/* Less is there than the device has: as much leaves as is needed, and no more; then as if it had no more. */
static void test_less_than_was_said(void **state)
{
    scene s;
    shadow_block b[8];
    shadow_block large;
    uint32_t n_gone = 0;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB", 0);
    partly = (struct partly){.inner = s.raw->api, .api = *s.raw->api, .n_left = 100};
    partly.api.commit = partly_commit;
    partly.api.release = partly_release;
    s.raw->api = &partly.api;
    for (int i = 0; i < 8; i++) {
        take(&s, 5 * PAGE, &b[i]);
        use(&s, SHADOW_WRITE, &b[i], NULL);
    }
    ASSERT_EQ(partly.n_left, 60);
    take(&s, 71 * PAGE, &large);
    use(&s, SHADOW_WRITE, &large, NULL);
    for (int i = 0; i < 8; i++) {
        n_gone += !is_here(&b[i]);
    }
    ASSERT_EQ(n_gone, 3);
    ASSERT_LE(partly.n_refused, 4);
    for (int i = 0; i < 8; i++) {
        use(&s, SHADOW_READ, &b[i], NULL);
    }
    ASSERT_STATUS(NEAP_DEVICE_FULL, shadow_malloc(&s.streams, 101 * PAGE, &large));
    close_scene(&s);
}

/* ---- waiting for all that is under way ---- */

static uint32_t n_synced;

static uint64_t some_mark(const np_device *device, np_stream stream)
{
    (void)device;
    return stream + 1;
}

static neap_status sync_but_the_first(np_device *device, np_stream stream, uint64_t mark)
{
    (void)device;
    ASSERT_EQ(mark, stream + 1);
    n_synced++;
    return stream == 0 ? NEAP_DEVICE_FAILED : NEAP_OK;
}

/* One stream fails: the others, those that copy among them, are waited for all the same. */
static void test_drain_waits_for_all(void **state)
{
    static const np_device_interface api = {.mark = some_mark, .sync = sync_but_the_first};
    np_device device = {.api = &api, .n_streams = 3};
    neap_device m = {.device = &device};
    (void)state;
    ASSERT_STATUS(NEAP_DEVICE_FAILED, np_drain(&m));
    ASSERT_EQ(n_synced, 3 + NP_N_STREAMS - NP_MAX_STREAMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recent_leaves), cmocka_unit_test(test_copies_no_more_than_needed),
        cmocka_unit_test(test_limit_is_raised),     cmocka_unit_test(test_device_is_full),
        cmocka_unit_test(test_slab_within_limit),   cmocka_unit_test(test_pages_serve_any_block),
        cmocka_unit_test(test_holes_are_used),      cmocka_unit_test(test_spares_serve_a_loop),
        cmocka_unit_test(test_question_is_no_load), cmocka_unit_test(test_less_than_was_said),
        cmocka_unit_test(test_drain_waits_for_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
