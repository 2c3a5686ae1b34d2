/* test_manager.c: the way of a program through the six states, and what becomes of its blocks and calls on the way.
 *
 * Where the planner's thread takes part, it is held in its allocations until the test lets it go on: nothing here
 * depends on how long planning takes. */
#include <sys/resource.h>

#include "run/little_program.h"
#include "testing.h"

/* ---- a planner that waits ---- */

/* A memory hook in which the planner's thread stands still while it is in one of its phases. */
typedef struct gate {
    neap_memory hook;
    pthread_t main;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const atomic_int *phase; /* the planner's; NULL: not yet known */
    int closed;              /* np_phase in which it is held; NP_PHASE_NONE: it is not */
    uint32_t n_held;         /* times that it was */
    int priority;            /* that it had then */
} gate;

static void *gate_resize(void *user, void *block, size_t old_bytes, size_t new_bytes)
{
    gate *g = user;
    if (!pthread_equal(pthread_self(), g->main)) {
        (void)pthread_mutex_lock(&g->lock);
        if (g->phase && g->closed != NP_PHASE_NONE && atomic_load(g->phase) == g->closed) {
            g->n_held++;
            g->priority = getpriority(PRIO_PROCESS, 0);
            (void)pthread_cond_broadcast(&g->changed);
            while (atomic_load(g->phase) == g->closed) {
                (void)pthread_cond_wait(&g->changed, &g->lock);
            }
        }
        (void)pthread_mutex_unlock(&g->lock);
    }
    return np_memory_default.resize(np_memory_default.user, block, old_bytes, new_bytes);
}

static void gate_init(gate *g)
{
    *g = (gate){.main = pthread_self(), .closed = NP_PHASE_NONE};
    g->hook = (neap_memory){gate_resize, g};
    (void)pthread_mutex_init(&g->lock, NULL);
    (void)pthread_cond_init(&g->changed, NULL);
}

/* It is held in this phase from now on, and no longer where it stands. */
static void gate_close(gate *g, int phase)
{
    (void)pthread_mutex_lock(&g->lock);
    g->closed = phase;
    (void)pthread_cond_broadcast(&g->changed);
    (void)pthread_mutex_unlock(&g->lock);
}

/* Until it is held once more than `n` times. */
static void gate_await(gate *g, uint32_t n)
{
    (void)pthread_mutex_lock(&g->lock);
    while (g->n_held <= n) {
        (void)pthread_cond_wait(&g->changed, &g->lock);
    }
    (void)pthread_mutex_unlock(&g->lock);
}

/* ---- the states ---- */

typedef struct journey {
    neap_state states[16];
    size_t n;
} journey;

static void note_state(little_program *p)
{
    journey *j = p->user;
    neap_state now = little_stats(p).state;
    if (j->n == 0 || j->states[j->n - 1] != now) {
        ASSERT_LT(j->n, 16);
        j->states[j->n++] = now;
    }
}

/* Observe, detect, plan swaps, plan pool, run, leave: in this order, each for as long as it takes, while the program's
 * requests are served all the time. */
static void test_six_states(void **state)
{
    static const neap_state expected[] = {NEAP_STATE_OBSERVE,   NEAP_STATE_DETECT, NEAP_STATE_PLAN_SWAPS,
                                          NEAP_STATE_PLAN_POOL, NEAP_STATE_RUN,    NEAP_STATE_LEAVE,
                                          NEAP_STATE_RUN};
    little_program p;
    journey j = {.n = 0};
    gate g;
    little_options options = {.has_planner_thread = true, .memory = &g.hook, .device = {.limit_share = 0.6}};
    neap_stats stats;
    (void)state;
    gate_init(&g);
    little_start(&p, &options);
    p.after_event = note_state;
    p.user = &j;
    g.phase = &p.device->learner.phase;
    gate_close(&g, NP_PHASE_SWAPS);
    while (little_stats(&p).state < NEAP_STATE_PLAN_SWAPS) {
        little_laps(&p, 1);
    }
    gate_await(&g, 0);
    little_laps(&p, 20);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_PLAN_SWAPS);
    gate_close(&g, NP_PHASE_PLACES);
    gate_await(&g, 1);
#ifdef __linux__ /* the program goes first */
    ASSERT_TRUE(g.priority > getpriority(PRIO_PROCESS, 0) || g.priority == 19);
#endif
    little_laps(&p, 20);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_PLAN_POOL);
    stats = little_stats(&p);
    ASSERT_EQ(stats.n_events, 12 + 48 * (stats.n_events / 48)); /* all of them were served */
    gate_close(&g, NP_PHASE_NONE);
    while (!atomic_load(&p.device->learner.has_news)) {}
    little_laps(&p, 2);
    little_lap(&p, (little_twist){LITTLE_OTHER_WORK, 3});
    little_laps(&p, 2);
    ASSERT_EQ(j.n, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < j.n; i++) {
        ASSERT_STR_EQ(neap_state_name(j.states[i]), neap_state_name(expected[i]));
    }
    p.after_event = NULL;
    little_end(&p);
}

/* ---- activation ---- */

typedef struct entry {
    uint64_t first_event; /* of an iteration */
    uint64_t entered_at;  /* number of the event with which the plan was entered; 0: it was not yet */
} entry;

static void note_entry(little_program *p)
{
    entry *e = p->user;
    neap_stats stats = little_stats(p);
    if (stats.state == NEAP_STATE_RUN && e->entered_at == 0) {
        e->entered_at = stats.n_events;
    }
}

/* A plan becomes active with the first event of an iteration, wherever in one it was ready. */
static void test_entered_at_a_start(void **state)
{
    (void)state;
    for (uint32_t n_layers = 5; n_layers < 13;
         n_layers++) { /* the detector is asked at other events of the iteration */
        little_options options = {.n_layers = n_layers, .device = {.limit_share = 0.7}};
        uint32_t n_events = 6 + 7 * n_layers;
        little_program p;
        entry e = {0};
        little_start(&p, &options);
        e.first_event = little_stats(&p).n_events;
        p.after_event = note_entry;
        p.user = &e;
        little_laps(&p, 8);
        ASSERT_GT(e.entered_at, 0);
        ASSERT_EQ((e.entered_at - e.first_event) % n_events, 1);
        ASSERT_EQ(little_stats(&p).n_events, e.first_event + 8 * n_events);
        p.after_event = NULL;
        little_end(&p);
    }
}

/* What is live at activation, of whatever kind, keeps its address and its bytes: weights, a block smaller than a page,
 * one that is never used again, one that the iteration before has left to this one. */
static void test_live_blocks_stay(void **state)
{
    static const char *const names[] = {"sim:page=4KiB,memory=64MiB,link=4GB/s", "cpu:page=4KiB,memory=64MiB",
                                        "cuda:0,memory=64MiB,link=8GB/s"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        little_options options = {.name = names[i % 3], .device = {.limit_share = i < 3 ? 0 : 0.6}};
        little_program p;
        shadow_block small;
        shadow_block unused;
        shadow_block handed = {0};
        const void *small_at;
        const void *unused_at;
        little_start(&p, &options);
        little_malloc(&p, 1000, &small);
        little_malloc(&p, 5 * LITTLE_PAGE + 100, &unused);
        small_at = neap_data(small.block);
        unused_at = neap_data(unused.block);
        for (int lap = 0; lap < 12; lap++) {
            const void *handed_at = handed.block ? neap_data(handed.block) : NULL;
            little_lap(&p, (little_twist){LITTLE_PLAIN, 0});
            if (handed.block) {
                ASSERT_TRUE(neap_data(handed.block) == handed_at);
                little_free(&p, &handed);
            }
            little_malloc(&p, 3 * LITTLE_PAGE, &handed);
            ASSERT_TRUE(neap_data(small.block) == small_at && neap_data(unused.block) == unused_at);
            little_check(&p);
        }
        ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
        ASSERT_EQ(little_stats(&p).n_departures, 0);
        little_free(&p, &handed);
        little_free(&p, &unused);
        little_free(&p, &small);
        little_end(&p);
    }
}

/* On the plan a request gets the same address in every iteration. */
static void compare_addresses(little_program *p)
{
    const void **addresses = p->user;
    for (uint32_t i = 0; i <= p->options.n_layers; i++) {
        const void *now = p->acts[i].block ? neap_data(p->acts[i].block) : NULL;
        ASSERT_TRUE(!now || !addresses[i] || now == addresses[i]);
        addresses[i] = now ? now : addresses[i];
    }
}

static void test_same_addresses(void **state)
{
    little_options options = {.device = {.limit_share = 0.6}};
    const void *addresses[LITTLE_LAYERS + 1] = {NULL};
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 20);
    p.after_event = compare_addresses;
    p.user = addresses;
    little_laps(&p, 5);
    ASSERT_EQ(little_stats(&p).n_departures, 0);
    p.after_event = NULL;
    little_end(&p);
}

/* With a planner that takes its time, on threads: nothing is held back, and the plan comes in the end. */
static void test_planner_beside(void **state)
{
    little_options options = {
        .name = "cpu:page=4KiB,memory=64MiB", .has_planner_thread = true, .device = {.limit_share = 0.6}};
    little_program p;
    (void)state;
    little_start(&p, &options);
    while (little_stats(&p).state != NEAP_STATE_RUN) {
        little_laps(&p, 1);
    }
    little_laps(&p, 5);
    ASSERT_GE(little_stats(&p).n_iterations, 4);
    little_end(&p);
}

/* It may be closed while the planner is at it. */
static void test_closed_while_planning(void **state)
{
    little_program p;
    gate g;
    little_options options = {.has_planner_thread = true, .memory = &g.hook, .device = {.limit_share = 0.6}};
    (void)state;
    gate_init(&g);
    little_start(&p, &options);
    g.phase = &p.device->learner.phase;
    gate_close(&g, NP_PHASE_SWAPS);
    while (little_stats(&p).state < NEAP_STATE_PLAN_SWAPS) {
        little_laps(&p, 1);
    }
    gate_await(&g, 0);
    gate_close(&g, NP_PHASE_NONE);
    little_close(&p);
}

/* A planner that finds nothing is asked again only after a while; the program goes on without. */
static void test_no_plan(void **state)
{
    little_program p;
    (void)state;
    little_start(&p, NULL);
    p.device->plan_not_before_ns = UINT64_MAX;
    little_laps(&p, 20);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_DETECT);
    p.device->plan_not_before_ns = 0;
    (void)little_run_until_plan(&p, 4);
    little_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_six_states),       cmocka_unit_test(test_entered_at_a_start),
        cmocka_unit_test(test_live_blocks_stay), cmocka_unit_test(test_same_addresses),
        cmocka_unit_test(test_planner_beside),   cmocka_unit_test(test_closed_while_planning),
        cmocka_unit_test(test_no_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
