/* test_stray.c: work that comes when it likes: no plan waits for it, and none takes away what it uses. */
#include "base/rng.h"
#include "run/little_program.h"
#include "run/stray.h"
#include "testing.h"

enum { STREAM = 1 };

typedef struct visitor {
    shadow_block *block; /* that strays use, */
    uint32_t every;      /* after so many events; */
    uint32_t n_events;
    uint32_t n_strays;
} visitor;

static void come(little_program *p)
{
    visitor *v = p->user;
    if (++v->n_events % v->every == 0 && v->block->block) {
        shadow_use use = {v->block, SHADOW_UPDATE};
        ASSERT_OK(shadow_stray(&p->streams, "stray", STREAM, 1000, &use));
        v->n_strays++;
    }
}

/* Weights are as large as activations. */
static void begin(little_program *p, uint64_t limit_pages)
{
    little_options options = {.name = "sim:page=4KiB,memory=64MiB,streams=2,link=4GB/s",
                              .weight_bytes = 8 * LITTLE_PAGE,
                              .device = {.limit = limit_pages * LITTLE_PAGE}};
    little_start(p, &options);
    np_beneath_begin(p->device, 0, 0);
}

static bool is_ever_swapped(const little_program *p, const shadow_block *block)
{
    const np_program *program = &p->device->pattern->program;
    return block->block->life != NP_NO_LIFE && program->lives.items[block->block->life].swapped;
}

/* Never after the same events: a period is found, and its plan is followed. */
static void test_no_event(void **state)
{
    static little_program p;
    visitor v = {.block = &p.weights[2], .every = 37};
    uint64_t n_events;
    (void)state;
    begin(&p, 0);
    p.user = &v;
    p.after_event = come;
    (void)little_run_until_plan(&p, 20);
    ASSERT_GE(v.n_strays, 2);
    n_events = little_stats(&p).n_events;
    v.every = 1;
    little_laps(&p, 3);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    ASSERT_EQ(little_stats(&p).n_events - n_events, 3 * p.device->pattern->program.events.n);
    little_end(&p);
}

/* Under a limit the weight would be swapped, as the others are. */
static void test_is_not_swapped(void **state)
{
    static little_program p;
    visitor v = {.block = &p.weights[2], .every = 41};
    uint32_t n_swapped = 0;
    (void)state;
    begin(&p, 56);
    p.user = &v;
    p.after_event = come;
    little_laps(&p, 60);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(p.device->pattern->program.swaps.n > 0);
    ASSERT_FALSE(is_ever_swapped(&p, &p.weights[2]));
    for (uint32_t i = 0; i < p.options.n_layers; i++) {
        n_swapped += is_ever_swapped(&p, &p.weights[i]);
    }
    ASSERT_GE(n_swapped, 1);
    little_end(&p);
}

/* What is swapped comes home for it, and the next plan leaves it there. */
static void test_comes_home(void **state)
{
    static little_program p;
    visitor v = {.every = 1};
    (void)state;
    begin(&p, 56);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 40);
    for (uint32_t i = 0; i < p.options.n_layers && !v.block; i++) {
        v.block = is_ever_swapped(&p, &p.weights[i]) ? &p.weights[i] : NULL;
    }
    ASSERT_TRUE(v.block != NULL);
    p.user = &v;
    p.after_event = come;
    little_laps(&p, 1);
    ASSERT_GE(little_stats(&p).departures[NEAP_DEPARTURE_USES], 1);
    little_laps(&p, 40);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_FALSE(is_ever_swapped(&p, v.block));
    little_end(&p);
}

/* A planned block that lives for a part of the iteration: whoever is in its bytes after it comes after the stray. The
 * simulated device finds uses that nothing orders. */
static void test_planned_block(void **state)
{
    static little_program p;
    visitor v = {.every = 1};
    (void)state;
    begin(&p, 0);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 2);
    p.user = &v;
    p.after_event = come;
    for (uint32_t i = 0; i <= p.options.n_layers; i++) {
        v.block = &p.acts[i];
        little_laps(&p, 2);
    }
    ASSERT_GE(v.n_strays, 2 * p.options.n_layers);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    little_end(&p);
}

/* The same with swaps: what is away when it is used is not swapped any more, in the end. */
static void test_planned_block_with_swaps(void **state)
{
    static little_program p;
    visitor v = {.block = &p.acts[2], .every = 1};
    uint64_t n_departures;
    (void)state;
    begin(&p, 56);
    (void)little_run_until_plan(&p, 20);
    little_laps(&p, 20);
    p.user = &v;
    p.after_event = come;
    little_laps(&p, 60);
    n_departures = little_stats(&p).n_departures;
    little_laps(&p, 10);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(p.device->pattern->program.swaps.n > 0);
    ASSERT_EQ(little_stats(&p).n_departures, n_departures);
    little_end(&p);
}

/* Whoever touches a new block each time: what is known of the last ones is kept, of the others not. */
static void test_doubts_are_bounded(void **state)
{
    static little_program p;
    np_rng rng = np_rng_make(1);
    (void)state;
    begin(&p, 0);
    for (uint32_t i = 0; i < 9000; i++) {
        shadow_block block;
        shadow_use use = {&block, SHADOW_READ};
        little_malloc(&p, LITTLE_PAGE * (1 + np_rng_below(&rng, 9)), &block);
        ASSERT_OK(shadow_stray(&p.streams, "stray", STREAM, 1000, &use));
        ASSERT_EQ(p.device->doubted.items[p.device->doubted.n - 1], block.block->id);
        little_free(&p, &block);
    }
    ASSERT_LE(p.device->doubted.n, 4096);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_event),
        cmocka_unit_test(test_is_not_swapped),
        cmocka_unit_test(test_comes_home),
        cmocka_unit_test(test_planned_block),
        cmocka_unit_test(test_planned_block_with_swaps),
        cmocka_unit_test(test_doubts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
