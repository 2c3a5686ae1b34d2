/* test_refine.c: other plans are tried on the program itself, and the fastest stays. On virtual time, so that how long
 * an iteration takes is known to the nanosecond. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/little_program.h"
#include "testing.h"

/* A link on which swapping costs time. */
#define SLOW "sim:page=4KiB,memory=64MiB,link=600MB/s"

/* Enough for a plan on a busy machine too, under a sanitizer. */
#define PLAN_SECONDS 0.2

enum { MAX_PLANS = 32 };

/* What the plans took that were followed, one after the other. */
typedef struct trials {
    const np_pattern *followed;
    double lap_ns[MAX_PLANS]; /* NaN: not known */
    double weights[MAX_PLANS][4];
    size_t n_weights;
    size_t n;
    uint32_t n_tried;
} trials;

static void note_trial(little_program *p, trials *t)
{
    const np_refine *refine = &p->device->refine;
    neap_stats stats = little_stats(p); /* takes the times of the laps that are done */
    const np_pattern *pattern = p->device->pattern;
    ASSERT_EQ(stats.n_departures, 0);
    if (t->followed != pattern) {
        ASSERT_LT(t->n, MAX_PLANS);
        t->followed = pattern;
        t->n++;
    }
    t->lap_ns[t->n - 1] = np_pattern_lap_ns(pattern);
    if (refine->n_tried > t->n_tried) {
        t->n_tried = refine->n_tried;
        if (refine->has_weights) {
            memcpy(t->weights[t->n_weights++], refine->weights, sizeof refine->weights);
        }
    }
}

/* Makes a plan a bad one: work waits for every copy out before it begins. */
static void spoil(np_pattern *pattern)
{
    np_program *program = &pattern->program;
    np_array(np_op) ops = {0};
    for (size_t i = 0; i < program->events.n; i++) {
        np_program_event *event = &program->events.items[i];
        uint32_t first = (uint32_t)ops.n;
        for (uint32_t k = 0; k < program->swaps.n && event->kind == NEAP_EVENT_EXEC; k++) {
            np_op op = {.kind = NP_OP_WAIT_OUT, .index = k, .stream = event->stream};
            ASSERT_OK(np_array_push(program->memory, &ops, op));
        }
        for (uint32_t k = 0; k < (uint32_t)event->n_before + event->n_after; k++) {
            ASSERT_OK(np_array_push(program->memory, &ops, program->ops.items[event->first_op + k]));
        }
        event->n_before = (uint16_t)(ops.n - first - event->n_after);
        event->first_op = first;
    }
    np_array_free(program->memory, &program->ops);
    program->ops.items = ops.items;
    program->ops.n = ops.n;
    program->ops.capacity = ops.capacity;
    ASSERT_TRUE(np_program_is_valid(program));
    ASSERT_OK(np_program_check(program, NULL));
}

static void start(little_program *p, uint32_t refinements, bool is_spoiled)
{
    little_options options = {.name = SLOW,
                              .is_faulty = true,
                              .device = {.limit_share = 0.6, .refinements = refinements, .plan_seconds = PLAN_SECONDS}};
    little_start(p, &options);
    for (int lap = 0; lap < 10 && p->device->patterns.n == 0; lap++) {
        little_laps(p, 1);
        if (atomic_load(&p->device->learner.has_news)) {
            np_take_lesson(p->device);
        }
    }
    ASSERT_EQ(p->device->patterns.n, 1);
    ASSERT_NE(little_stats(p).state, NEAP_STATE_RUN);
    if (is_spoiled) {
        spoil(p->device->patterns.items[0]);
    }
    little_laps(p, 1);
    ASSERT_EQ(little_stats(p).state, NEAP_STATE_RUN);
}

static double fastest(const trials *t)
{
    double best = INFINITY;
    for (size_t i = 0; i < t->n; i++) {
        best = t->lap_ns[i] < best ? t->lap_ns[i] : best;
    }
    return best;
}

/* From a bad plan or a good one, it ends with the fastest of all. */
static void refine(bool is_spoiled, uint32_t n_trials, trials *t)
{
    little_program p;
    char line[40];
    double last;
    *t = (trials){.n = 0};
    (void)snprintf(line, sizeof line, "refined in %u trials", n_trials);
    start(&p, n_trials, is_spoiled);
    for (int lap = 0; lap < 400 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
        note_trial(&p, t);
    }
    ASSERT_EQ(little_count(&p, line), 1);
    little_laps(&p, 2); /* back to the fastest */
    t->followed = p.device->pattern;
    little_laps(&p, 80);
    last = (1 + little_stats(&p).overhead) * little_stats(&p).iteration_ns;
    ASSERT_TRUE(p.device->pattern == t->followed);
    ASSERT_TRUE(p.device->refine.measured == NULL);
    ASSERT_GE(t->n, n_trials / 2);
    ASSERT_TRUE(last <= t->lap_ns[0] * 1.001);
    ASSERT_TRUE(fabs(last - fastest(t)) <= 0.001 * last);
    ASSERT_TRUE(!is_spoiled || last < 0.99 * t->lap_ns[0]);
    ASSERT_EQ(little_stats(&p).n_patterns, 1);
    ASSERT_EQ(little_count(&p, "refined"), 1); /* and that is that */
    little_end(&p);
}

/* The first mixes are the scores themselves; from the fifth on they are the process's. */
static void check_weights(const trials *t)
{
    ASSERT_EQ(t->n_weights, 6);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            ASSERT_TRUE(t->weights[i][k] == (i == k ? 1 : 0));
        }
    }
    for (size_t i = 4; i < t->n_weights; i++) {
        bool is_mixed = false;
        for (size_t k = 0; k < 4; k++) {
            ASSERT_TRUE(fabs(t->weights[i][k]) <= 1);
            is_mixed |= t->weights[i][k] != 0 && fabs(t->weights[i][k]) != 1;
        }
        ASSERT_TRUE(is_mixed);
    }
}

static void test_fastest_stays(void **state)
{
    trials t;
    (void)state;
    refine(true, 12, &t);
    check_weights(&t);
    refine(false, 3, &t);
}

static void test_none_wanted(void **state)
{
    little_program p;
    const np_pattern *first;
    (void)state;
    start(&p, UINT_MAX, true);
    first = p.device->pattern;
    little_laps(&p, 100);
    ASSERT_TRUE(little_stats(&p).overhead > 0.01); /* there would have been something to win */
    ASSERT_TRUE(p.device->pattern == first);
    ASSERT_EQ(little_count(&p, "refined"), 0);
    little_end(&p);
}

/* Where swapping costs nothing, nothing is tried. */
static void test_not_worthwhile(void **state)
{
    little_options options = {.device = {.limit_share = 0.7, .refinements = 8}};
    little_program p;
    (void)state;
    little_start(&p, &options);
    (void)little_run_until_plan(&p, 10);
    little_laps(&p, 60);
    ASSERT_TRUE(little_stats(&p).overhead < 0.01);
    ASSERT_EQ(little_count(&p, "refined in 0 trials"), 1);
    little_end(&p);
}

/* The program leaves its plan while others are tried, now and then: they are tried all the same. */
static void test_departures_meanwhile(void **state)
{
    little_program p;
    (void)state;
    start(&p, 2, true);
    for (int lap = 0; lap < 300 && little_count(&p, "refined in") == 0; lap++) {
        little_lap(&p, (little_twist){lap % 19 == 18 ? LITTLE_EXTRA_WORK : LITTLE_PLAIN, 3});
        if (lap % 19 == 18) {
            little_check(&p);
        }
    }
    ASSERT_EQ(little_count(&p, "refined in 2 trials"), 1);
    little_end(&p);
}

static bool is_listed(const neap_device *m, const np_pattern *pattern)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        if (m->patterns.items[i] == pattern) {
            return true;
        }
    }
    return false;
}

/* The next one is to be followed from here on, and just then an iteration begins in another way: the old one stays, since
 * it is the one that is left, and could otherwise be given up while others still look at it. */
static void test_begins_otherwise(void **state)
{
    little_program p;
    shadow_block other;
    np_pattern *next;
    (void)state;
    start(&p, 2, true);
    for (int lap = 0; lap < 300 && !np_refine_wants_switch(p.device); lap++) {
        little_laps(&p, 1);
        if (atomic_load(&p.device->learner.has_news)) {
            np_take_lesson(p.device);
        }
    }
    ASSERT_TRUE(np_refine_wants_switch(p.device));
    next = p.device->refine.next;
    little_malloc(&p, 5 * LITTLE_PAGE, &other);
    ASSERT_EQ(little_stats(&p).n_departures, 1);
    ASSERT_TRUE(is_listed(p.device, p.device->pattern));
    ASSERT_TRUE(p.device->refine.next == next);
    little_free(&p, &other);
    for (int lap = 0; lap < 300 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(little_count(&p, "refined in 2 trials"), 1);
    little_end(&p);
}

/* A plan that cannot be entered, since the device has no more addresses, is none: the one before goes on. */
static void test_refused_by_the_device(void **state)
{
    little_program p;
    neap_stats before;
    const np_pattern *first;
    (void)state;
    start(&p, 2, true);
    first = p.device->pattern;
    little_laps(&p, 5);
    before = little_stats(&p);
    faulty_set(p.faulty, &(faulty_plan){.calls = 1u << FAULTY_RESERVE, .every = 1});
    for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_GE(little_count(&p, "could not be entered"), 1); /* a trial may find no plan in its time */
    ASSERT_GE(2, little_count(&p, "could not be entered"));
    ASSERT_EQ(little_count(&p, "refined in 2 trials"), 1);
    ASSERT_TRUE(p.device->pattern == first);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_departures, before.n_departures);
    faulty_set(p.faulty, &(faulty_plan){.calls = 0});
    little_end(&p);
}

/* A program that changes for good is refined anew. */
static void test_change_meanwhile(void **state)
{
    little_program p;
    (void)state;
    start(&p, 2, true);
    little_laps(&p, 30); /* some are tried */
    ASSERT_TRUE(p.device->refine.measured != NULL);
    p.options.act_bytes = 7 * LITTLE_PAGE;
    for (int lap = 0; lap < 400 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(little_count(&p, "refined in"), 1);
    ASSERT_EQ(p.device->pattern->program.peak_load, (6 * 2 + 9 * 7) * LITTLE_PAGE);
    little_check(&p);
    little_end(&p);
}

/* The plan that is being refined is made anew meanwhile, since a weight is another block now. */
static void test_replaced_meanwhile(void **state)
{
    little_program p;
    (void)state;
    start(&p, 2, true);
    little_laps(&p, 30);
    ASSERT_TRUE(p.device->refine.measured != NULL);
    p.options.act_bytes = 7 * LITTLE_PAGE;
    little_laps(&p, 12); /* another is followed */
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    little_free(&p, &p.weights[0]);
    little_malloc(&p, p.options.weight_bytes, &p.weights[0]);
    p.weights_at[0] = neap_data(p.weights[0].block);
    p.options.act_bytes = 8 * LITTLE_PAGE;
    little_laps(&p, 20);
    ASSERT_EQ(little_stats(&p).state, NEAP_STATE_RUN);
    ASSERT_EQ(little_stats(&p).n_patterns, 2);
    for (int lap = 0; lap < 200 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(little_count(&p, "refined in 2 trials"), 1);
    little_end(&p);
}

/* Closed in the middle of it: nothing is left behind. */
static void test_closed_meanwhile(void **state)
{
    (void)state;
    for (uint32_t n = 6; n < 40; n += 15) {
        little_program p;
        start(&p, 8, true);
        little_laps(&p, n);
        little_end(&p);
    }
}

/* ---- beneath a program of somebody else ---- */

enum { PATIENCE = 4 }; /* plans in a row that are no faster on paper, and then no more are made */

/* As it is where an iteration without swaps was measured before. */
static np_pattern *start_beneath(little_program *p, uint32_t refinements)
{
    start(p, refinements, false);
    np_beneath_begin(p->device, 0, 0);
    p->device->pattern->quiet_ns = p->device->pattern->program.period_ns;
    return p->device->pattern;
}

/* One iteration in three is as long as it is, and the others have pauses in them. */
static void lap_with_pauses(little_program *p, int lap)
{
    uint64_t exec_ns = p->options.exec_ns;
    p->options.exec_ns = lap % 3 == 0 ? exec_ns : 5 * exec_ns;
    little_laps(p, 1);
    p->options.exec_ns = exec_ns;
}

/* Until another plan is to be followed, which was not entered yet. */
static void run_until_next(little_program *p, bool has_pauses)
{
    for (int lap = 0; lap < 100 && !p->device->refine.next; lap++) {
        lap_with_pauses(p, has_pauses ? lap : 0);
        if (atomic_load(&p->device->learner.has_news)) {
            np_take_lesson(p->device);
        }
    }
    ASSERT_TRUE(p->device->refine.next != NULL);
}

/* The planner has what the plan was made from; a program that ends then leaves it to its user all the same. */
static void test_trace_is_kept(void **state)
{
    uint32_t n_asked = 0;
    little_program p;
    (void)state;
    start(&p, 8, false);
    for (int lap = 0; lap < 200 && n_asked < 4; lap++) {
        little_laps(&p, 1);
        if (p.device->refine.is_asked) {
            neap_trace *trace = NULL;
            neap_info *info = NULL;
            neap_error error;
            n_asked++;
            ASSERT_OK(neap_device_trace(p.device, NULL, &error, &trace));
            ASSERT_OK(neap_info_make(trace, 0, NULL, &error, &info));
            ASSERT_TRUE(info->has_period);
            neap_info_free(info);
            neap_trace_free(trace);
        }
    }
    ASSERT_EQ(n_asked, 4);
    little_end(&p);
}

/* No plan is faster than one that costs nothing on paper: none is tried, though this one was measured to be slow, and
 * slower yet for the pauses. */
static void in_vain(bool has_pauses)
{
    little_program p;
    const np_pattern *first = start_beneath(&p, 12);
    p.device->pattern->program.overhead = 0;
    for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
        lap_with_pauses(&p, has_pauses); /* none is without */
        ASSERT_TRUE(p.device->pattern == first);
        ASSERT_TRUE(p.device->refine.next == NULL);
    }
    ASSERT_EQ(little_count(&p, "refined in 4 trials"), 1);
    ASSERT_TRUE(np_pattern_quiet_lap_ns(first) > 1.01 * first->program.period_ns);
    little_laps(&p, 20);
    ASSERT_TRUE(p.device->pattern == first);
    ASSERT_EQ(little_count(&p, "refined"), 1);
    little_end(&p);
}

static void test_in_vain(void **state)
{
    (void)state;
    in_vain(false);
    in_vain(true);
}

/* One that is worth following makes good for those before it. */
static void test_in_vain_in_a_row(void **state)
{
    little_program p;
    np_pattern *first = start_beneath(&p, 12);
    char line[40];
    (void)state;
    first->program.overhead = 0;
    for (int lap = 0; lap < 100 && p.device->refine.n_vain < PATIENCE - 1; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(p.device->refine.n_vain, PATIENCE - 1);
    first->program.overhead = HUGE_VAL; /* now any will do */
    run_until_next(&p, false);
    (void)snprintf(line, sizeof line, "refined in %u trials", p.device->refine.n_tried + PATIENCE);
    first->program.overhead = 0;
    p.device->refine.next->program.overhead = 0;
    for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
        little_laps(&p, 1);
    }
    ASSERT_EQ(little_count(&p, line), 1);
    little_end(&p);
}

/* Of two plans the first is measured, then the second, one of them while the program pauses. Which it ends with does not
 * depend on that. */
static void judge(bool first_is_worse, bool first_has_pauses)
{
    little_program p;
    const np_pattern *second;
    np_pattern *first = start_beneath(&p, 1);
    if (first_is_worse) {
        spoil(first);
    }
    first->program.overhead = HUGE_VAL; /* on paper */
    run_until_next(&p, first_has_pauses);
    second = p.device->refine.next;
    if (!first_is_worse) {
        spoil(p.device->refine.next);
    }
    for (int lap = 0; lap < 100 && little_count(&p, "refined in") == 0; lap++) {
        lap_with_pauses(&p, first_has_pauses ? 0 : lap);
        ASSERT_TRUE(p.device->pattern == second || little_count(&p, "refined in") > 0);
    }
    ASSERT_EQ(little_count(&p, "refined in 1 trials"), 1);
    little_laps(&p, 2);
    ASSERT_TRUE(p.device->pattern == (first_is_worse ? second : first));
    little_end(&p);
}

static void test_pauses(void **state)
{
    (void)state;
    judge(false, true);
    judge(true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_is_kept),
        cmocka_unit_test(test_fastest_stays),
        cmocka_unit_test(test_none_wanted),
        cmocka_unit_test(test_not_worthwhile),
        cmocka_unit_test(test_departures_meanwhile),
        cmocka_unit_test(test_begins_otherwise),
        cmocka_unit_test(test_change_meanwhile),
        cmocka_unit_test(test_closed_meanwhile),
        cmocka_unit_test(test_refused_by_the_device),
        cmocka_unit_test(test_replaced_meanwhile),
        cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_in_vain_in_a_row),
        cmocka_unit_test(test_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
