/* test_visitors.c: blocks that visit (visit.h) again and again are planned for, after some of it, and only they. */
#include "run/visit_watch.h"
#include "testing.h"

enum { FIRST_WAIT = 3, SECOND_WAIT = 12 };

#define MADE_ANEW "were used while they were away"

static np_doubt noted; /* the last visitor */

static void note(little_program *p, const visit_chance *chance)
{
    const np_pattern *pattern = p->device->pattern;
    const np_program_event *event = &pattern->program.events.items[p->device->cursor % pattern->program.events.n];
    noted = (np_doubt){.life = chance->block->block->life, .exec = event->subject};
}

/* A lap in which the first that can visits, at the same moment each time; where there is none, false. */
static bool lap_with_visit(little_program *p)
{
    visit_seeker s = {.before = note, .kind = SHADOW_READ, .n_wanted = 1};
    return visit_seek(p, &s, 1);
}

/* So many laps with the same visitor: the plan is made anew at the first event after them, no earlier. */
static void wait_for_plan(little_program *p, uint32_t n_laps)
{
    np_doubt first = {0};
    size_t n = little_count(p, MADE_ANEW);
    for (uint32_t i = 0; i < n_laps; i++) {
        ASSERT_TRUE(lap_with_visit(p));
        first = i == 0 ? noted : first;
        ASSERT_EQ(noted.life, first.life);
        ASSERT_EQ(noted.exec, first.exec);
        ASSERT_EQ(little_count(p, MADE_ANEW), n);
    }
    little_laps(p, 3);
    ASSERT_EQ(little_count(p, MADE_ANEW), n + 1);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    noted = first;
}

static uint32_t count_doubts(const np_pattern *pattern, np_doubt doubt)
{
    uint32_t n = 0;
    for (size_t i = 0; i < pattern->doubts.n; i++) {
        n += pattern->doubts.items[i].life == doubt.life && pattern->doubts.items[i].exec == doubt.exec;
    }
    return n;
}

static void test_come_again(void **state)
{
    static little_program p;
    np_doubt first;
    (void)state;
    visit_start(&p, &(little_options){0});
    wait_for_plan(&p, FIRST_WAIT);
    ASSERT_EQ(p.device->pattern->doubts.n, 1);
    ASSERT_EQ(count_doubts(p.device->pattern, noted), 1);
    first = noted;
    wait_for_plan(&p, SECOND_WAIT); /* four times as long */
    ASSERT_EQ(count_doubts(p.device->pattern, first), 1);
    ASSERT_EQ(count_doubts(p.device->pattern, noted), 1);
    ASSERT_EQ(p.device->pattern->doubts.n, 2);
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_end(&p);
}

/* Many a lap cost more: fewer laps are waited for, but never fewer than the first time. */
static void test_many_a_lap(void **state)
{
    static little_program p;
    uint32_t n_laps = 0;
    (void)state;
    visit_start(&p, &(little_options){0});
    wait_for_plan(&p, FIRST_WAIT);
    while (little_count(&p, MADE_ANEW) == 1) {
        visit_seeker s = {.kind = SHADOW_READ, .n_wanted = 4};
        ASSERT_TRUE(visit_seek(&p, &s, 1));
        ASSERT_LT(++n_laps, SECOND_WAIT);
    }
    ASSERT_EQ(n_laps, FIRST_WAIT + 1); /* it is noticed in the one after */
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_laps(&p, 2);
    little_end(&p);
}

static np_doubt seen[64];
static uint32_t n_seen;

static bool is_stranger(little_program *p, const visit_chance *chance)
{
    np_doubt before = noted;
    np_doubt now;
    note(p, chance);
    now = noted;
    noted = before;
    for (uint32_t i = 0; i < n_seen; i++) {
        if (seen[i].life == now.life && seen[i].exec == now.exec) {
            return false;
        }
    }
    return !chance->is_planned && n_seen < 64;
}

static void note_stranger(little_program *p, const visit_chance *chance)
{
    note(p, chance);
    seen[n_seen++] = noted;
}

/* Another in every lap, as chance has it: no plan is made for them. */
static void test_strangers(void **state)
{
    static little_program p;
    (void)state;
    visit_start(&p, &(little_options){0});
    n_seen = 0;
    for (int i = 0; i < 15; i++) {
        visit_seeker s = {.is_wanted = is_stranger, .before = note_stranger, .kind = SHADOW_UPDATE, .n_wanted = 2};
        ASSERT_TRUE(visit_seek(&p, &s, 1));
    }
    little_laps(&p, 4);
    ASSERT_EQ(little_count(&p, MADE_ANEW), 0);
    ASSERT_EQ(p.device->pattern->visitors.n, 30);
    ASSERT_EQ(p.device->stats.n_visits, 30);
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_end(&p);
}

static void go_home(little_program *p)
{
    ASSERT_OK(np_beneath_home(p->device, "a test"));
    p->after_event = NULL;
}

/* The plan is left in every other lap: it never has three laps in a row, and those who come are planned for all the same. */
static void test_entered_anew(void **state)
{
    static little_program p;
    uint32_t n = 0;
    (void)state;
    visit_start(&p, &(little_options){0});
    while (little_count(&p, MADE_ANEW) == 0) {
        ASSERT_TRUE(lap_with_visit(&p));
        little_laps(&p, 1);
        p.after_event = go_home;
        little_laps(&p, 1);
        ASSERT_LT(++n, 6);
    }
    ASSERT_EQ(n, FIRST_WAIT); /* visits */
    little_end(&p);
}

/* While the planner is at work nobody is forgotten. */
static void test_planner_is_busy(void **state)
{
    static little_program p;
    np_pattern *pattern;
    (void)state;
    visit_start(&p, &(little_options){0});
    for (int i = 0; i < FIRST_WAIT; i++) {
        ASSERT_TRUE(lap_with_visit(&p));
    }
    pattern = p.device->pattern;
    np_visit_note(p.device, noted.life, noted.exec + 1, true); /* once */
    p.device->stats.n_iterations++;                            /* the lap that is over when the next begins */
    atomic_store(&p.device->learner.is_busy, true);
    np_visit_heed(p.device, pattern);
    ASSERT_EQ(pattern->visitors.n, 2);
    ASSERT_EQ(pattern->n_come_again, 1);
    ASSERT_FALSE(pattern->has_doubts);
    atomic_store(&p.device->learner.is_busy, false);
    np_visit_heed(p.device, pattern);
    ASSERT_EQ(pattern->visitors.n, 0);
    ASSERT_EQ(pattern->n_come_again, 0);
    ASSERT_TRUE(pattern->has_doubts);
    ASSERT_EQ(pattern->doubts.n, 1); /* and not for the other */
    ASSERT_EQ(count_doubts(pattern, noted), 1);
    p.device->stats.n_iterations--;
    little_laps(&p, 2);
    little_end(&p);
}

/* However many there are, few are known; those that came twice stay among them. */
static void test_many(void **state)
{
    static little_program p;
    np_pattern *pattern;
    uint32_t n_again = 0;
    (void)state;
    visit_start(&p, &(little_options){0});
    pattern = p.device->pattern;
    for (uint32_t i = 0; i < 3 * NP_MANY_VISITORS; i++) {
        np_visit_note(p.device, 1, i, true);
        ASSERT_LE(pattern->visitors.n, NP_MANY_VISITORS);
        if (i % 10 == 0) {
            np_visit_note(p.device, 1, i, true);
            ASSERT_EQ(pattern->n_come_again, ++n_again);
        }
    }
    for (uint32_t i = 0; i < 3 * NP_MANY_VISITORS; i += 10) {
        uint32_t n = 0;
        for (size_t k = 0; k < pattern->visitors.n; k++) {
            n += pattern->visitors.items[k].use.exec == i && pattern->visitors.items[k].n == 2;
        }
        ASSERT_EQ(n, 1);
    }
    for (uint32_t i = 0; i < 2 * NP_MANY_VISITORS; i++) {
        np_visit_note(p.device, 2, i, true);
        np_visit_note(p.device, 2, i, true);
    }
    ASSERT_EQ(pattern->visitors.n, NP_MANY_VISITORS);
    ASSERT_EQ(pattern->n_come_again, NP_MANY_VISITORS);
    pattern->visitors.n = pattern->n_come_again = 0; /* there are no such execs */
    little_end(&p);
}

/* Of a block that was there: nothing is asked for because of it, but a plan that is asked for knows it. */
static void test_there(void **state)
{
    static little_program p;
    np_pattern *pattern;
    np_doubt there;
    (void)state;
    visit_start(&p, &(little_options){0});
    ASSERT_TRUE(lap_with_visit(&p));
    pattern = p.device->pattern;
    there = (np_doubt){.life = noted.life, .exec = noted.exec + 1};
    np_visit_note(p.device, there.life, there.exec, false);
    np_visit_note(p.device, there.life, there.exec, false);
    np_visit_note(p.device, there.life, there.exec + 1, false); /* once */
    p.device->stats.n_iterations += FIRST_WAIT;
    np_visit_heed(p.device, pattern);
    ASSERT_EQ(pattern->visitors.n, 3);
    ASSERT_EQ(pattern->n_come_again, 0);
    ASSERT_FALSE(pattern->has_doubts);
    np_visit_note(p.device, noted.life, noted.exec, true);
    np_visit_note(p.device, noted.life, noted.exec, true);
    np_visit_heed(p.device, pattern);
    ASSERT_TRUE(pattern->has_doubts);
    ASSERT_EQ(pattern->doubts.n, 2);
    ASSERT_EQ(count_doubts(pattern, noted), 1);
    ASSERT_EQ(count_doubts(pattern, there), 1);
    p.device->stats.n_iterations -= FIRST_WAIT;
    little_laps(&p, 2);
    little_end(&p);
}

/* Seen while it was there, and then it came: twice in all. */
static void test_there_and_came(void **state)
{
    static little_program p;
    (void)state;
    visit_start(&p, &(little_options){0});
    np_visit_note(p.device, 1, 1, false);
    ASSERT_EQ(p.device->pattern->n_come_again, 0);
    np_visit_note(p.device, 1, 1, true);
    ASSERT_EQ(p.device->pattern->n_come_again, 1);
    np_visit_note(p.device, 1, 1, true);
    ASSERT_EQ(p.device->pattern->n_come_again, 1);
    ASSERT_EQ(p.device->pattern->visitors.n, 1);
    p.device->pattern->visitors.n = p.device->pattern->n_come_again = 0;
    little_end(&p);
}

/* However many there are, not all are planned with: nothing would be left to be swapped. */
static void test_there_many(void **state)
{
    static little_program p;
    np_pattern *pattern;
    (void)state;
    visit_start(&p, &(little_options){0});
    pattern = p.device->pattern;
    for (uint32_t i = 0; i < NP_MANY_VISITORS; i++) {
        np_visit_note(p.device, 1, i, false);
        np_visit_note(p.device, 1, i, false);
    }
    np_visit_expect(p.device, pattern);
    ASSERT_GT(pattern->doubts.n, 0);
    ASSERT_LE(pattern->doubts.n, pattern->program.uses.n / 16 + 1);
    ASSERT_EQ(pattern->visitors.n, 0);
    pattern->doubts.n = 0; /* there are no such execs */
    little_end(&p);
}

/* On a plan, and never in a recording, one exec uses an activation of the first layer. */
static uint32_t use_first(little_program *p, shadow_use *uses, uint32_t n_uses)
{
    const np_pattern *pattern = p->device->state == NEAP_STATE_RUN ? p->device->pattern : NULL;
    const np_program_event *event =
        pattern ? &pattern->program.events.items[p->device->cursor % pattern->program.events.n] : NULL;
    if (!event || event->kind != NEAP_EVENT_EXEC || event->subject != pattern->program.n_execs / 2 ||
        !p->acts[1].block) {
        return n_uses;
    }
    noted = (np_doubt){.life = p->acts[1].block->life, .exec = event->subject};
    return visit_add(uses, n_uses, &p->acts[1], SHADOW_READ);
}

/* What is seen on the plan without swaps is known to the first one with them. */
static void test_first_plan(void **state)
{
    static little_program p;
    (void)state;
    little_open(&p, &(little_options){.device = {.limit_share = 0.7}, .n_layers = 8});
    np_beneath_begin(p.device, 0, 0);
    p.device->is_limit_late = true;
    little_begin(&p);
    p.change_uses = use_first;
    for (int i = 0; i < 200 && (p.device->state != NEAP_STATE_RUN || p.device->pattern->program.swaps.n == 0); i++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
    ASSERT_GT(p.device->pattern->program.swaps.n, 0);
    ASSERT_EQ(count_doubts(p.device->pattern, noted), 1);
    little_laps(&p, 10);
    ASSERT_EQ(p.device->stats.n_visits, 0);
    ASSERT_EQ(p.device->stats.n_departures, 0);
    p.change_uses = NULL;
    little_end(&p);
}

/* No memory to note one: it is new when it comes again. */
static void test_no_memory(void **state)
{
    static little_program p;
    test_memory memory;
    (void)state;
    test_memory_init(&memory);
    visit_start(&p, &(little_options){.memory = &memory.hook});
    memory.fail_at = memory.n_calls + 1;
    np_visit_note(p.device, 1, 1, true);
    ASSERT_EQ(memory.n_failed, 1);
    memory.fail_at = 0;
    ASSERT_EQ(p.device->pattern->visitors.n, 0);
    np_visit_note(p.device, 1, 1, true);
    ASSERT_EQ(p.device->pattern->visitors.n, 1);
    ASSERT_EQ(p.device->pattern->n_come_again, 0);
    little_end(&p);
    test_memory_finish(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_come_again),     cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_entered_anew),   cmocka_unit_test(test_planner_is_busy),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_first_plan),     cmocka_unit_test(test_there),
        cmocka_unit_test(test_there_and_came), cmocka_unit_test(test_there_many),
        cmocka_unit_test(test_many_a_lap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
