/* test_neighbours.c: blocks that stand beside each other share the page where one ends and the next begins, and nothing
 * else: not their bytes, not their way to the host and back. */
#include "run/little_program.h"
#include "testing.h"

enum { PAGE = LITTLE_PAGE, ODD = PAGE + 1536, MANY = 10 };

static uint64_t within_page(const shadow_block *block)
{
    return (uint64_t)(uintptr_t)neap_data(block->block) % PAGE;
}

static void check_block(little_program *p, shadow_block *block)
{
    little_exec(p, "look", 0, (shadow_use[]){{block, SHADOW_READ}}, 1);
    ASSERT_OK(neap_sync(p->device));
    little_check(p);
}

static void start(little_program *p, const little_options *options, uint64_t bytes, shadow_block *blocks)
{
    little_open(p, options);
    for (int i = 0; i < MANY; i++) {
        little_malloc(p, bytes, &blocks[i]);
    }
}

static void end(little_program *p, shadow_block *blocks)
{
    for (int i = 0; i < MANY; i++) {
        if (blocks[i].block) {
            little_free(p, &blocks[i]);
        }
    }
    little_close(p);
}

/* A block begins where the last one ended, and no page is held in vain. */
static void test_neighbours(void **state)
{
    little_options options = {0};
    little_program p;
    shadow_block blocks[MANY];
    (void)state;
    start(&p, &options, ODD, blocks);
    for (int i = 0; i < MANY; i++) {
        ASSERT_EQ(within_page(&blocks[i]), (uint64_t)i * ODD % PAGE);
    }
    ASSERT_EQ(little_stats(&p).held, ((uint64_t)MANY * ODD + PAGE - 1) / PAGE * PAGE);
    for (int i = 0; i < MANY; i++) {
        check_block(&p, &blocks[i]);
    }
    end(&p, blocks);
}

/* A size that ends in the middle of a unit of 512 bytes, and one that ends with its page. */
static void test_ends(void **state)
{
    little_options options = {0};
    little_program p;
    shadow_block blocks[4];
    (void)state;
    little_open(&p, &options);
    little_malloc(&p, PAGE + 1, &blocks[0]);
    little_malloc(&p, 2 * PAGE - 512, &blocks[1]);
    little_malloc(&p, 3 * PAGE, &blocks[2]);
    little_malloc(&p, PAGE, &blocks[3]);
    ASSERT_EQ(within_page(&blocks[0]), 0);
    ASSERT_EQ(within_page(&blocks[1]), 512);
    ASSERT_EQ(within_page(&blocks[2]), 0);
    ASSERT_EQ(within_page(&blocks[3]), 0);
    ASSERT_EQ(little_stats(&p).held, 7 * PAGE);
    for (int i = 0; i < 4; i++) {
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

/* A block that is freed leaves room for one that fits, and no more of its pages is held than others need. */
static void test_hole_is_filled(void **state)
{
    little_options options = {0};
    little_program p;
    shadow_block blocks[MANY];
    uint64_t held;
    (void)state;
    start(&p, &options, ODD, blocks);
    held = little_stats(&p).held;
    little_free(&p, &blocks[3]);
    little_malloc(&p, ODD, &p.kept);
    ASSERT_EQ(within_page(&p.kept), (uint64_t)3 * ODD % PAGE);
    ASSERT_EQ(little_stats(&p).held, held);
    for (int i = 0; i < MANY; i++) {
        if (i != 3) {
            check_block(&p, &blocks[i]);
        }
    }
    check_block(&p, &p.kept);
    little_free(&p, &p.kept);
    end(&p, blocks);
}

/* Where a limit in per cent is to come, long rows of mallocs without a free share pages: weights do, what comes and goes
 * within an iteration does not. */
static void test_rows(void **state)
{
    little_options options = {.device = {.limit_share = 0.7}};
    little_program p;
    shadow_block blocks[2 * MANY];
    (void)state;
    little_open(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    for (int i = 0; i < 2 * MANY; i++) {
        little_malloc(&p, ODD, &blocks[i]);
        ASSERT_EQ(within_page(&blocks[i]), i > NP_ROW_LEAST ? (uint64_t)(i - NP_ROW_LEAST) * ODD % PAGE : 0);
    }
    little_free(&p, &blocks[MANY]);
    little_malloc(&p, ODD, &blocks[MANY]);
    ASSERT_EQ(within_page(&blocks[MANY]), 0);
    for (int i = 0; i < 2 * MANY; i++) {
        check_block(&p, &blocks[i]);
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

/* Addresses that are used again end where they did: behind them another block begins. */
static void test_used_again(void **state)
{
    little_options options = {0};
    little_program p;
    const void *at;
    shadow_block blocks[MANY];
    (void)state;
    start(&p, &options, ODD, blocks);
    at = neap_data(blocks[0].block);
    little_free(&p, &blocks[0]);
    little_malloc(&p, ODD - 512, &blocks[0]); /* in as many pages */
    ASSERT_TRUE(neap_data(blocks[0].block) == at);
    for (int i = 0; i < MANY; i++) {
        check_block(&p, &blocks[i]);
    }
    little_free(&p, &blocks[0]);
    little_malloc(&p, ODD + 512, &blocks[0]); /* the next begins there */
    ASSERT_TRUE(neap_data(blocks[0].block) != at);
    for (int i = 0; i < MANY; i++) {
        check_block(&p, &blocks[i]);
    }
    end(&p, blocks);
}

/* One that leaves takes its own bytes along, and comes back to a page of its own. */
static void test_leaving(void **state)
{
    little_options options = {0};
    little_program p;
    shadow_block blocks[MANY];
    uint32_t n_idle;
    (void)state;
    start(&p, &options, ODD, blocks);
    ASSERT_OK(np_block_depart(p.device, blocks[2].block));
    n_idle = p.device->pages.n_idle; /* its pages at both ends are its neighbours' too */
    ASSERT_OK(np_block_depart(p.device, blocks[3].block));
    ASSERT_GT(p.device->pages.n_idle, n_idle);
    ASSERT_TRUE(np_manager_is_valid(p.device));
    for (int i = MANY - 1; i >= 0; i--) {
        check_block(&p, &blocks[i]);
    }
    ASSERT_EQ(little_stats(&p).bytes_out, 2 * ODD);
    ASSERT_EQ(little_stats(&p).bytes_in, 2 * ODD);
    for (int i = 0; i < MANY; i++) {
        little_exec(&p, "change", 0, (shadow_use[]){{&blocks[i], SHADOW_UPDATE}}, 1);
    }
    end(&p, blocks);
}

/* A plan holds no more than its load needs, and moves nothing to get there. */
static void test_planned_as_they_are(void **state)
{
    little_options options = {.n_layers = LITTLE_LAYERS, .weight_bytes = ODD};
    little_program p;
    neap_stats stats;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 5);
    stats = little_stats(&p);
    ASSERT_EQ(stats.state, NEAP_STATE_RUN);
    ASSERT_EQ(stats.bytes_out, 0);
    ASSERT_LT(stats.planned_footprint, stats.peak_load + PAGE);
    ASSERT_EQ(stats.footprint, (stats.peak_load + PAGE - 1) / PAGE * PAGE);
    little_lap(&p, (little_twist){LITTLE_EXTRA_MALLOC, 3}); /* left, and entered again */
    little_laps(&p, 4);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).bytes_out, 0);
    little_end(&p);
}

/* Where weights must leave: at every limit and over departures, each has its own bytes. */
static void test_swapped(void **state)
{
    static const double shares[] = {0.8, 0.6, 0.4};
    (void)state;
    for (int i = 0; i < 6; i++) {
        little_options options = {.n_layers = 12,
                                  .shares_pages = true,
                                  .weight_bytes = (uint64_t)9 * PAGE + 512u * (unsigned)(1 + 2 * i),
                                  .act_bytes = (uint64_t)2 * PAGE + (i % 2 ? 1024 : 0),
                                  .device = {.limit_share = shares[i % 3]}};
        little_program p;
        little_start(&p, &options);
        (void)little_run_until_plan(&p, 20);
        little_laps(&p, 4);
        ASSERT_GT(little_stats(&p).bytes_out, 0);
        for (uint32_t layer = 0; layer < 12; layer += 3) {
            little_lap(&p, (little_twist){layer % 2 ? LITTLE_OTHER_WORK : LITTLE_EXTRA_MALLOC, layer});
            little_check(&p);
            little_laps(&p, 3);
        }
        little_check(&p);
        little_end(&p);
    }
}

/* What others hold the pages of has them alone. */
static void test_exported(void **state)
{
    little_options options = {0};
    little_program p;
    shadow_block blocks[MANY];
    const np_view *view;
    (void)state;
    start(&p, &options, ODD, blocks);
    np_beneath_begin(p.device, 0, 0);
    ASSERT_OK(np_beneath_fix(p.device, blocks[5].block, true));
    view = &blocks[5].block->view;
    for (uint32_t i = 0; i < view->n_pages; i++) {
        ASSERT_EQ(p.device->pages.pages.items[view->numbers[i]].n_users, 1);
    }
    ASSERT_OK(np_beneath_fix(p.device, blocks[MANY - 1].block, true)); /* the next would have begun in its last page */
    little_malloc(&p, ODD, &p.kept);
    view = &blocks[MANY - 1].block->view;
    for (uint32_t i = 0; i < view->n_pages; i++) {
        ASSERT_EQ(p.device->pages.pages.items[view->numbers[i]].n_users, 1);
    }
    for (int i = 0; i < MANY; i++) {
        check_block(&p, &blocks[i]);
    }
    little_free(&p, &p.kept);
    end(&p, blocks);
}

/* Under a limit in bytes blocks leave from the first malloc on, page by page: each begins at one. */
static void test_where_there_are_none(void **state)
{
    little_options options = {.device = {.limit = 1 << 20}};
    little_program p;
    shadow_block blocks[2 * MANY];
    (void)state;
    little_open(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    for (int i = 0; i < 2 * MANY; i++) {
        little_malloc(&p, ODD, &blocks[i]);
        ASSERT_EQ(blocks[i].block->view.lead, 0);
    }
    for (int i = 0; i < 2 * MANY; i++) {
        little_free(&p, &blocks[i]);
    }
    little_close(&p);
}

/* ---- a plan that is entered and left ---- */

/* Unused pages of the arena may be lent; a plan that is entered again has them back. */
static void test_lent_pages(void **state)
{
    little_options options = {.n_layers = 12};
    little_program p;
    const np_view *view;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 2);
    np_beneath_begin(p.device, 0, 0); /* pages come with the malloc */
    np_leave(p.device, NEAP_DEPARTURE_BLIND, "a test");
    p.device->limit_pages = p.device->pages.n_held;
    little_malloc(&p, ODD, &p.kept);
    view = &p.kept.block->view;
    ASSERT_TRUE(np_pages_is_arena(&p.device->pages, view->numbers[view->n_pages - 1]));
    check_block(&p, &p.kept);
    little_free(&p, &p.kept);
    ASSERT_TRUE(np_manager_is_valid(p.device));
    little_laps(&p, 3);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(np_manager_is_valid(p.device));
    little_end(&p);
}

/* Of a weight that leaves in parts: one that does not begin with the block, and that the host has as it is. */
static const np_program_swap *find_part(const little_program *p, uint32_t *index)
{
    const np_pattern *pattern = p->device->pattern;
    for (uint32_t i = 0; i < pattern->program.swaps.n && p->device->state == NEAP_STATE_RUN; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        const neap_block *block = pattern->actors[swap->life].now[0];
        bool is_here = pattern->program.lives.items[swap->life].persistent && block->view.lead > 0;
        for (uint32_t k = 0; k < pattern->program.swaps.n; k++) {
            is_here = is_here && (pattern->program.swaps.items[k].life != swap->life || !pattern->is_out[k]);
        }
        if (is_here && swap->begin > 0 && np_clean_has(&block->clean, swap->begin, swap->end)) {
            *index = i;
            return swap;
        }
    }
    return NULL;
}

/* As if that part alone were away: the page before it is not, and stays. */
static void leave_without_part(little_program *p)
{
    uint32_t index;
    const np_program_swap *swap = find_part(p, &index);
    if (swap) {
        const neap_block *block = p->device->pattern->actors[swap->life].now[0];
        uint32_t first = (uint32_t)((swap->begin + block->view.lead) / PAGE);
        ASSERT_OK(np_drain(p->device)); /* its copy in may be under way */
        p->device->pattern->is_out[index] = true;
        np_leave(p->device, NEAP_DEPARTURE_BLIND, "a test");
        ASSERT_TRUE(first > 0 && block->view.numbers[first - 1] != NP_NO_PAGE);
        ASSERT_TRUE(block->view.numbers[first] == NP_NO_PAGE);
        ASSERT_EQ(block->view.n_missing, ((swap->end + block->view.lead + PAGE - 1) / PAGE) - first);
        little_check(p);
        p->after_event = NULL;
    }
}

static void test_part_is_away(void **state)
{
    little_options options = {.n_layers = 8,
                              .shares_pages = true,
                              .weight_bytes = (uint64_t)22 * PAGE + 1536,
                              .act_bytes = (uint64_t)2 * PAGE + 1024,
                              .device = {.limit_share = 0.7, .plan_seconds = 1e-6}}; /* parts are not put together */
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    p.after_event = leave_without_part;
    little_laps(&p, 2);
    ASSERT_TRUE(p.after_event == NULL);
    little_laps(&p, 3);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_hole_is_filled),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_used_again),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_planned_as_they_are),
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_exported),
        cmocka_unit_test(test_where_there_are_none),
        cmocka_unit_test(test_lent_pages),
        cmocka_unit_test(test_part_is_away),
    };
    return cmocka_run_group_tests_name("run/neighbours", tests, NULL, NULL);
}
