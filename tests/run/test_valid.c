/* test_valid.c: the walk over the manager finds what is wrong. */
#include "run/manager.h"
#include "run/shadow.h"
#include "testing.h"

enum { PAGE = 4096 };

typedef struct scene {
    neap_device *device;
    shadow_report report;
    shadow_streams streams;
    shadow_block weight;
    shadow_block small;
} scene;

static void use(scene *s, shadow_kind kind, shadow_block *a, shadow_block *b)
{
    shadow_use uses[] = {{a, kind}, {b, SHADOW_READ}};
    ASSERT_OK(shadow_exec(&s->streams, "work", 0, 1000, uses, b ? 2 : 1));
}

/* Some blocks, some of them absent. */
static void open_scene(scene *s)
{
    neap_device_options options = {
        .limit = 40 * PAGE, .min_block = PAGE, .plan_seconds = 10, .refinements = UINT32_MAX};
    np_device *raw;
    *s = (scene){0};
    shadow_report_init(&s->report, true);
    ASSERT_OK(np_device_open("sim:page=4096,memory=1MiB,link=4GB/s", NULL, NULL, &raw));
    ASSERT_OK(np_manager_open(raw, &options, NULL, &s->device));
    s->device->learner.learns_at_once = true;
    shadow_streams_init(&s->streams, s->device, &s->report, 1, 1);
    ASSERT_OK(shadow_malloc(&s->streams, 2 * PAGE, &s->weight));
    ASSERT_OK(shadow_malloc(&s->streams, 300, &s->small));
    use(s, SHADOW_WRITE, &s->weight, NULL);
    use(s, SHADOW_WRITE, &s->small, NULL);
    ASSERT_TRUE(np_manager_is_valid(s->device));
}

static void run_iteration(scene *s)
{
    shadow_block b[8];
    for (int i = 0; i < 8; i++) {
        ASSERT_OK(shadow_malloc(&s->streams, 3 * PAGE, &b[i]));
        use(s, SHADOW_WRITE, &b[i], &s->weight);
    }
    for (int i = 8; i-- > 0;) {
        use(s, SHADOW_UPDATE, &b[i], &s->weight);
        ASSERT_OK(shadow_free(&s->streams, &b[i]));
    }
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_manager_is_valid(s->device));
    ASSERT_FALSE(atomic_load(&s->report.is_bad));
    neap_close(s->device);
    shadow_report_free(&s->report);
}

/* With `what` set to `wrong` a flaw is found that contains the text; then it is as it was. */
#define ASSERT_FOUND(s, what, wrong, text)                        \
    do {                                                          \
        __typeof__(what) was = (what);                            \
        (what) = (wrong);                                         \
        ASSERT_CONTAINS(np_manager_find_flaw((s)->device), text); \
        ASSERT_FALSE(np_manager_is_valid((s)->device));           \
        (what) = was;                                             \
        ASSERT_TRUE(np_manager_find_flaw((s)->device) == NULL);   \
    } while (0)

static void test_off_plan(void **state)
{
    scene s;
    neap_device *m;
    neap_block *weight;
    (void)state;
    open_scene(&s);
    m = s.device;
    weight = s.weight.block;
    ASSERT_FOUND(&s, m->stats.live, m->stats.live + 1, "bytes of live blocks");
    ASSERT_FOUND(&s, m->live->next->previous, NULL, "list of live blocks");
    ASSERT_FOUND(&s, weight->is_live, false, "not live");
    ASSERT_FOUND(&s, weight->address, weight->address + PAGE, "view is not its own");
    ASSERT_FOUND(&s, weight->view.n_missing, 1, "view is not valid");
    ASSERT_FOUND(&s, m->oldest, NULL, "least recently used");
    ASSERT_FOUND(&s, m->pages.pages.items[weight->view.numbers[0]].n_users, 2, "fewer users");
    ASSERT_FOUND(&s, m->pages.pages.items[weight->view.numbers[0]].n_users, 0, "users unknown");
    ASSERT_FOUND(&s, m->pages.n_held, m->pages.n_held + 1, "pages are not valid");
    ASSERT_FOUND(&s, m->pages.n_arena, 1, "pages are not valid");
    ASSERT_FOUND(&s, m->host.held_bytes, m->host.held_bytes + 1, "host memory");
    ASSERT_FOUND(&s, m->recorder.n_events, m->recorder.n_events + 1, "recording is not valid");
    ASSERT_FOUND(&s, weight->id, 999, "not in the recording");
    ASSERT_FOUND(&s, m->small.slabs.items[0]->chunks.items[0].end, 1, "small blocks");
    close_scene(&s);
}

static void test_on_plan(void **state)
{
    scene s;
    neap_device *m;
    (void)state;
    open_scene(&s);
    for (int i = 0; i < 14; i++) {
        run_iteration(&s);
        ASSERT_TRUE(np_manager_is_valid(s.device));
    }
    m = s.device;
    ASSERT_EQ(m->state, NEAP_STATE_RUN);
    ASSERT_FOUND(&s, m->cursor, 10000, "not there");
    ASSERT_FOUND(&s, s.weight.block->life, s.weight.block->life + 1, "life that is not its own");
    ASSERT_FOUND(&s, m->pattern->n_live, 77, "a pattern is not valid");
    ASSERT_FOUND(&s, m->n_arena, m->n_arena - 1, "arena");
    ASSERT_FOUND(&s, m->pages.pages.items[m->arena.numbers[0]].is_arena, false, "");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off_plan),
        cmocka_unit_test(test_on_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
