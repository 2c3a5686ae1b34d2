/* test_room.c: which blocks are on the device off the plan: who leaves, who stays, and what it costs. */
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recent_leaves), cmocka_unit_test(test_copies_no_more_than_needed),
        cmocka_unit_test(test_limit_is_raised),     cmocka_unit_test(test_device_is_full),
        cmocka_unit_test(test_slab_within_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
