/* test_heed.c: an iteration that leaves its plan over one use of a block that is away, and has more that were not planned: the
 * next plan knows them all. Who is away when is seen on the plan, from outside, an iteration earlier. */
#include "run/little_program.h"
#include "testing.h"

enum { MAX_EXPECTED = 64 };

typedef struct expectation {
    np_doubt doubts[MAX_EXPECTED];
    bool is_away[MAX_EXPECTED]; /* the block, when it is used */
    uint32_t n;
    uint32_t n_persistent; /* of them */
    uint32_t n_here;       /* uses of what is not away */
    uint32_t n_planned;    /* and those that the plan knows of */
    uint32_t n_events;     /* seen of the iteration so far */
} expectation;

static bool is_out(const np_pattern *pattern, uint32_t life)
{
    for (size_t i = 0; i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == life && pattern->is_out[i]) {
            return true;
        }
    }
    return false;
}

static void expect_use(little_program *p, const np_program_event *event, const neap_block *block)
{
    expectation *e = p->user;
    const np_program *program = &p->device->pattern->program;
    ASSERT_TRUE(block->life != NP_NO_LIFE);
    for (uint32_t i = 0; i < event->n_uses; i++) {
        if (program->uses.items[event->first_use + i].life == block->life) {
            e->n_planned++;
            return;
        }
    }
    ASSERT_LT(e->n, MAX_EXPECTED);
    e->is_away[e->n] = is_out(p->device->pattern, block->life);
    e->n_here += !e->is_away[e->n];
    e->doubts[e->n++] = (np_doubt){.life = block->life, .exec = event->subject};
    e->n_persistent += p->device->pattern->program.lives.items[block->life].persistent;
}

/* Before each layer's update; five events for each layer. */
static void look_at_updates(little_program *p)
{
    expectation *e = p->user;
    const np_pattern *pattern = p->device->pattern;
    uint32_t n_forward = 2 * p->options.n_layers + 4;
    uint32_t number = ++e->n_events;
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    if (number >= n_forward + 2 && (number - n_forward - 2) % 5 == 0 &&
        (number - n_forward - 2) / 5 < p->options.n_layers) {
        uint32_t layer = p->options.n_layers - 1 - (number - n_forward - 2) / 5;
        const np_program_event *event = &pattern->program.events.items[p->device->cursor % pattern->program.events.n];
        ASSERT_EQ(event->kind, NEAP_EVENT_EXEC);
        if (layer >= 2) {
            expect_use(p, event, p->acts[layer - 2].block);
            expect_use(p, event, p->weights[layer - 2].block);
        }
        if (layer + 2 < p->options.n_layers) {
            expect_use(p, event, p->weights[layer + 2].block);
        }
    }
}

static void look(little_program *p, expectation *e)
{
    *e = (expectation){0};
    p->user = e;
    p->after_event = look_at_updates;
    little_laps(p, 1);
    p->after_event = NULL;
}

static void start(little_program *p, const neap_memory *memory)
{
    little_options options = {
        .device = {.limit_share = 0.6}, .memory = memory, .n_layers = 10, .weight_bytes = (uint64_t)8 * LITTLE_PAGE};
    little_start(p, &options);
    (void)little_run_until_plan(p, 20);
    np_beneath_begin(p->device, 0, 0);
    p->device->is_limit_late = true;
    p->device->visit.bytes_max = 0; /* what is away is a departure */
    little_laps(p, 2);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
}

static uint32_t count(const np_doubt *doubts, size_t n_doubts, np_doubt doubt)
{
    uint32_t n = 0;
    for (size_t i = 0; i < n_doubts; i++) {
        n += doubts[i].life == doubt.life && doubts[i].exec == doubt.exec;
    }
    return n;
}

/* Those of the plan at hand are the ones that it was made with, each once, and it has none of them away. */
static void check_plan(little_program *p, const expectation *e)
{
    static expectation now;
    const np_pattern *pattern = p->device->pattern;
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(pattern->program.swaps.n > 0);
    ASSERT_EQ(little_count(p, "a plan for"), 2);
    ASSERT_EQ(pattern->doubts.n, e->n);
    look(p, &now);
    for (uint32_t i = 0; i < e->n; i++) {
        ASSERT_EQ(count(pattern->doubts.items, pattern->doubts.n, e->doubts[i]), 1);
    }
    for (uint32_t i = 0; i < now.n; i++) {
        ASSERT_TRUE(!now.is_away[i] || count(e->doubts, e->n, now.doubts[i]) == 0);
    }
}

/* All of the iteration's, of blocks that live for ever and of others, away or not. */
static void test_all_uses(void **state)
{
    static little_program p;
    static expectation e;
    const np_pattern *old;
    (void)state;
    start(&p, NULL);
    look(&p, &e);
    ASSERT_GE(e.n, 4);
    ASSERT_GE(e.n_persistent, 2);
    ASSERT_LT(e.n_persistent, e.n);
    ASSERT_GE(e.n_here, 2);
    old = p.device->pattern;
    little_lap(&p, (little_twist){LITTLE_OTHER_BLOCKS, 0});
    ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_ABSENT], 1);
    ASSERT_EQ(p.device->stats.n_departures, 1);
    ASSERT_EQ(old->doubts.n, 1); /* the iteration is over when the next begins */
    ASSERT_FALSE(atomic_load(&p.device->learner.is_busy));
    little_laps(&p, 3);
    check_plan(&p, &e);
    ASSERT_EQ(p.device->stats.n_departures, 1);
    little_end(&p);
}

/* Beneath a program from the start there is a plan of the pool alone for the same events: the iteration is of the one that was
 * followed, and that one is made anew. */
static void test_two_plans(void **state)
{
    static little_program p;
    const little_options options = {
        .device = {.limit_share = 0.6}, .n_layers = 10, .weight_bytes = (uint64_t)8 * LITTLE_PAGE};
    (void)state;
    little_start(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    p.device->is_limit_late = true;
    p.device->visit.bytes_max = 0;
    for (int i = 0; i < 400 && !(p.device->state == NEAP_STATE_RUN && p.device->pattern->program.swaps.n > 0); i++) {
        little_laps(&p, 1);
    }
    little_laps(&p, 2);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_TRUE(p.device->pattern->program.swaps.n > 0);
    ASSERT_EQ(p.device->patterns.n, 2);
    ASSERT_EQ(p.device->patterns.items[0]->hash, p.device->patterns.items[1]->hash);
    little_lap(&p, (little_twist){LITTLE_OTHER_BLOCKS, 0});
    ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_ABSENT], 1);
    little_laps(&p, 3);
    ASSERT_EQ(little_count(&p, "were used while they were away"), 1);
    ASSERT_GE(p.device->pattern->doubts.n, 4);
    little_end(&p);
}

/* What another plan has away at other times is seen with it: in the end there is nothing left to see. */
static void test_comes_to_an_end(void **state)
{
    static little_program p;
    uint64_t n_departures = UINT64_MAX;
    uint32_t n = 0;
    (void)state;
    start(&p, NULL);
    while (n_departures != p.device->stats.n_departures) {
        n_departures = p.device->stats.n_departures;
        little_lap(&p, (little_twist){LITTLE_OTHER_BLOCKS, 0});
        little_laps(&p, 3);
        ASSERT_LE(++n, 3 * p.options.n_layers); /* there are not as many uses */
    }
    ASSERT_GE(n_departures, 1);
    ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_ABSENT], n_departures);
    ASSERT_GE(p.device->pattern->doubts.n, n_departures + 3); /* not one by one */
    little_end(&p);
}

static void interfere(little_program *p)
{
    static shadow_block extra;
    if (p->device->state == NEAP_STATE_LEAVE) {
        p->after_event = NULL;
        little_malloc(p, (uint64_t)2 * LITTLE_PAGE, &extra);
        little_free(p, &extra);
    }
}

/* An iteration that goes on as none of the plan's tells nothing about it but what it was left over. */
static void test_other_iteration(void **state)
{
    static little_program p;
    (void)state;
    start(&p, NULL);
    p.after_event = interfere;
    little_lap(&p, (little_twist){LITTLE_OTHER_BLOCKS, 0});
    ASSERT_TRUE(p.after_event == NULL);
    ASSERT_EQ(p.device->stats.n_departures, 1);
    np_heed_iteration(p.device, p.device->pattern); /* not even where it is asked to */
    ASSERT_EQ(p.device->pattern->doubts.n, 1);
    little_laps(&p, 4);
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_EQ(little_count(&p, "a plan for"), 2);
    ASSERT_EQ(p.device->pattern->doubts.n, 1);
    little_end(&p);
}

/* No host memory to look at all of it: the use that it was left over is in the next plan, the others are seen later. */
static void test_no_memory(void **state)
{
    (void)state;
    for (size_t fail = 1; fail <= 2; fail++) {
        static little_program p;
        test_memory memory;
        np_pattern *pattern;
        test_memory_init(&memory);
        start(&p, &memory.hook);
        pattern = p.device->pattern;
        little_lap(&p, (little_twist){LITTLE_OTHER_BLOCKS, 0});
        ASSERT_EQ(pattern->doubts.n, 1);
        memory.fail_at = memory.n_calls + fail;
        np_heed_iteration(p.device, pattern);
        ASSERT_EQ(memory.n_failed, 1);
        memory.fail_at = 0;
        ASSERT_EQ(pattern->doubts.n, 1);
        np_heed_iteration(p.device, pattern);
        ASSERT_GT(pattern->doubts.n, 1);
        little_laps(&p, 3);
        ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
        little_end(&p);
        test_memory_finish(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_uses),        cmocka_unit_test(test_two_plans),
        cmocka_unit_test(test_comes_to_an_end), cmocka_unit_test(test_other_iteration),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
