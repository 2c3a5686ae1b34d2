/* test_arena.c: the arena shrinks, from its end, as far as nobody has data there; views of plans that are not followed let go
 * of what it gives back; and it grows again with the next plan. */
#include <string.h>

#include "run/little_program.h"
#include "testing.h"

/* On a plan with swaps, then off it, between two iterations. */
static void start(little_program *p)
{
    little_options options = {.device = {.limit_share = 0.6}};
    little_start(p, &options);
    (void)little_run_until_plan(p, 20);
    little_laps(p, 2);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_GT(p->device->pattern->program.swaps.n, 0);
    np_beneath_begin(p->device, 0, 0);
    ASSERT_OK(np_beneath_home(p->device, "a test"));
    ASSERT_GT(p->device->n_arena, 0);
}

/* A plan that needs so many pages. */
static void shrink_to(little_program *p, uint32_t n_pages)
{
    static np_pattern fake;
    memset(&fake, 0, sizeof fake);
    fake.program.footprint = (uint64_t)n_pages * p->raw->page_bytes;
    np_arena_shrink_for(p->device, &fake);
    if (np_manager_find_flaw(p->device)) {
        test_fail(__FILE__, __LINE__, "%s", np_manager_find_flaw(p->device));
    }
}

static uint32_t last_used(const little_program *p)
{
    const neap_device *m = p->device;
    uint32_t n = m->n_arena;
    while (n > 0 && m->pages.pages.items[m->arena.numbers[n - 1]].n_users == 0) {
        n--;
    }
    return n;
}

/* No further than the last page with data; the bytes in it are as they were. */
static void test_shrink_to_data(void **state)
{
    static little_program p;
    uint32_t n_used;
    (void)state;
    start(&p);
    n_used = last_used(&p);
    shrink_to(&p, p.device->n_arena); /* as it is */
    ASSERT_GE(p.device->n_arena, n_used);
    shrink_to(&p, 0);
    ASSERT_EQ(p.device->n_arena, n_used);
    little_laps(&p, 4);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    little_end(&p);
}

/* Where nothing has data there, all of it goes, page by page, and is given back to the device at once. */
static void test_shrink_to_nothing(void **state)
{
    static little_program p;
    neap_device *m;
    uint32_t n;
    (void)state;
    start(&p);
    m = p.device;
    for (uint32_t i = 0; i < p.options.n_layers; i++) {
        ASSERT_OK(np_block_depart(m, p.weights[i].block));
    }
    ASSERT_EQ(last_used(&p), 0);
    n = m->n_arena;
    shrink_to(&p, n - 1);
    ASSERT_EQ(m->n_arena, n - 1);
    n = m->pages.n_held - m->n_arena;
    shrink_to(&p, 0);
    ASSERT_EQ(m->n_arena, 0);
    ASSERT_EQ(m->pages.n_arena, 0);
    ASSERT_EQ(m->pages.n_held, n);
    for (uint32_t i = 0; i < m->pattern->n_blocks; i++) { /* what a page was mapped to is gone with it */
        const np_view *view = &m->pattern->blocks[i].view;
        ASSERT_EQ(view->n_missing, view->n_pages);
    }
    little_laps(&p, 4);
    ASSERT_EQ(m->state, NEAP_STATE_RUN);
    ASSERT_GT(m->n_arena, 0);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shrink_to_data),
        cmocka_unit_test(test_shrink_to_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
