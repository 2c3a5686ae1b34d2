/* test_visit_failures.c: work that blocks visit (visit.h) cannot be given, or the device or host memory fails on the way.
 * Either the visit is over as if nothing had been, or the plan is left: no byte is wrong. */
#include "run/visit_watch.h"
#include "testing.h"

enum { MANY_LAPS = 12 };

static visit_place wanted;
static uint32_t n_skipped; /* moments of the right kind that are let go: not always the same one */

static bool is_wanted(little_program *p, const visit_chance *chance)
{
    bool is_right = chance->place == wanted && !chance->is_planned && (chance->is_vital || wanted != VISIT_OCCUPIED);
    (void)p;
    if (is_right && n_skipped > 0) {
        n_skipped--;
        return false;
    }
    return is_right;
}

/* Doubts would have another plan made: it is the same one that is to be followed again and again. */
static void forget_doubts(little_program *p)
{
    for (size_t i = 0; i < p->device->patterns.n; i++) {
        p->device->patterns.items[i]->doubts.n = 0;
        p->device->patterns.items[i]->has_doubts = false;
        p->device->patterns.items[i]->visitors.n = 0;
        p->device->patterns.items[i]->n_come_again = 0;
    }
}

/* ---- the work cannot be given ---- */

static bool goes_home;
static uint32_t n_retries;

static neap_status retry(void *user, neap_status status)
{
    little_program *p = user;
    (void)status;
    n_retries++;
    faulty_set(p->faulty, &(faulty_plan){0});
    if (goes_home) {
        ASSERT_OK(np_beneath_home(p->device, "a test"));
    }
    return NEAP_OK;
}

static void fail_launch(little_program *p, const visit_chance *chance)
{
    (void)chance;
    faulty_set(p->faulty, &(faulty_plan){.calls = 1u << FAULTY_LAUNCH, .every = 1});
}

static void no_check(little_program *p, const visit_chance *chance)
{
    (void)p;
    (void)chance;
}

/* The work is tried again at once, or everything comes home first. */
static void test_launch(void **state)
{
    static little_program p;
    (void)state;
    for (int home = 0; home < 2; home++) {
        visit_start(&p, &(little_options){.update_stream = 1});
        p.streams.retry = retry;
        p.streams.retry_user = &p;
        goes_home = home;
        for (int place = VISIT_STILL_THERE; place <= VISIT_IN_USE; place++) {
            for (int i = 0; i < 4; i++) {
                visit_seeker s = {.is_wanted = is_wanted,
                                  .before = fail_launch,
                                  .after = no_check,
                                  .kind = i % 2 ? SHADOW_UPDATE : SHADOW_READ,
                                  .n_wanted = 1};
                uint32_t n = n_retries;
                wanted = (visit_place)place;
                ASSERT_TRUE(visit_seek(&p, &s, 3) || place < VISIT_OCCUPIED);
                ASSERT_EQ(n_retries, n + s.n_made);
                ASSERT_EQ(p.device->state == NEAP_STATE_RUN, !home || s.n_made == 0);
                little_laps(&p, 2);
                little_check(&p);
                forget_doubts(&p);
            }
        }
        little_end(&p);
    }
}

/* ---- calls of the device ---- */

static faulty_plan plan;
static uint64_t n_failed;

static uint64_t count_failed(const little_program *p)
{
    uint64_t n = 0;
    for (int i = 0; i < FAULTY_N_KINDS; i++) {
        n += faulty_n_failed(p->faulty, (faulty_call)i);
    }
    return n;
}

static void fail_call(little_program *p, const visit_chance *chance)
{
    (void)chance;
    n_failed = count_failed(p);
    faulty_set(p->faulty, &plan);
}

static void fail_no_more(little_program *p, const visit_chance *chance)
{
    (void)chance;
    faulty_set(p->faulty, &(faulty_plan){0});
    n_failed = count_failed(p) - n_failed;
    if (plan.calls == 1u << FAULTY_MAP && n_failed > 0) { /* it is not where the plan has it: that is left */
        ASSERT_NE(p->device->state, NEAP_STATE_RUN);
    }
}

/* One visit with the n-th such call failing, and laps on or off the plan after it; false: there were fewer calls. */
static bool fail_once(little_program *p, uint64_t n, shadow_kind kind)
{
    visit_seeker s = {.is_wanted = is_wanted, .before = fail_call, .after = fail_no_more, .kind = kind, .n_wanted = 1};
    plan.every = n;
    n_skipped = (uint32_t)(n % 4);
    ASSERT_TRUE(visit_seek(p, &s, 3));
    n_skipped = 0;
    little_laps(p, 1);
    little_check(p);
    forget_doubts(p);
    little_laps(p, 1);
    ASSERT_EQ(p->device->state, NEAP_STATE_RUN);
    return n_failed > 0;
}

/* Each call of one kind in turn, alone, and each second, third ... with all that are tried again. Where the plan is left, one
 * who waits in vain takes the device for broken: of those only one fails. */
static uint64_t fail_each(little_program *p, faulty_call call, shadow_kind kind)
{
    uint64_t n = 0;
    for (int is_once = call == FAULTY_SYNC; is_once < 2; is_once++) {
        uint64_t at = 1;
        plan = (faulty_plan){.calls = 1u << call, .is_once = is_once};
        while (fail_once(p, at, kind)) {
            at++;
            ASSERT_LT(at, 1000);
        }
        n = at - 1;
    }
    return n;
}

static void test_calls(void **state)
{
    static little_program p;
    (void)state;
    for (int place = VISIT_OCCUPIED; place <= VISIT_IN_USE; place++) {
        bool is_elsewhere = place == VISIT_IN_USE;
        uint64_t n_broken;
        wanted = (visit_place)place;
        visit_start(&p, &(little_options){.n_layers = 6});
        p.streams.retry = retry;
        p.streams.retry_user = &p;
        goes_home = false;
        for (int is_read = 0; is_read < 2; is_read++) {
            shadow_kind kind = is_read ? SHADOW_READ : SHADOW_UPDATE;
            ASSERT_GE(fail_each(&p, FAULTY_COPY, kind), is_read ? 3 : 4); /* aside, in, out again, and back */
            ASSERT_GE(fail_each(&p, FAULTY_WAIT, kind), 2);
            ASSERT_GE(fail_each(&p, FAULTY_MAP, kind), is_elsewhere ? 2 : 0);
            n_broken = p.device->stats.departures[NEAP_DEPARTURE_FAILED];
            ASSERT_GE(fail_each(&p, FAULTY_SYNC, kind), is_elsewhere ? 8 : 0);
            ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_FAILED], n_broken); /* it was tried again */
            ASSERT_GE(fail_each(&p, FAULTY_LAUNCH, kind), 1);
            (void)fail_each(&p, FAULTY_HOST_ALLOC, kind);
        }
        little_end(&p);
    }
}

static bool is_all_taken(little_program *p, const visit_chance *chance)
{
    (void)p;
    return chance->place == VISIT_OCCUPIED && !chance->is_planned && chance->bytes_there + chance->bytes_empty == 0;
}

static bool is_back; /* it is the copies back that fail, not those out */

static void break_copies(little_program *p, const visit_chance *chance)
{
    plan.every = chance->n_parts * (is_back ? 3 : 2) + 1;
    fail_call(p, chance);
}

/* The device takes no copies any more: after those aside and in, what has come cannot go, or what was aside not come back; or
 * it does not even take the work. The plan is left at once, and nothing more is given to such a device. */
static void test_broken(void **state)
{
    (void)state;
    for (int back = 0; back < 3; back++) {
        static little_program p;
        visit_seeker s = {.is_wanted = is_all_taken,
                          .before = break_copies,
                          .after = fail_no_more,
                          .kind = SHADOW_UPDATE,
                          .n_wanted = 1};
        visit_start(&p, &(little_options){.n_layers = 6});
        is_back = back == 1;
        plan = (faulty_plan){.calls = 1u << FAULTY_COPY | (back == 2 ? 1u << FAULTY_LAUNCH : 0), .is_for_good = true};
        p.streams.retry = retry;
        p.streams.retry_user = &p;
        goes_home = false;
        ASSERT_TRUE(visit_seek(&p, &s, 3));
        ASSERT_GT(n_failed, 2);
        ASSERT_EQ(p.device->stats.departures[NEAP_DEPARTURE_FAILED], 1);
        ASSERT_EQ(little_count(&p, "a block that was there for one exec"), 1);
        ASSERT_TRUE(p.device->visit.is_torn);
        ASSERT_GT(p.n_refused, 0); /* nothing is given that would work on wrong bytes, though copies go well again */
        neap_close(p.device);      /* bytes were lost, and it was said */
        shadow_report_free(&p.report);
        (void)pthread_mutex_destroy(&p.lock);
    }
}

/* ---- host memory ---- */

static test_memory memory;
static size_t fail_at;
static size_t n_memory_failed;

static void fail_memory(little_program *p, const visit_chance *chance)
{
    (void)p;
    (void)chance;
    n_memory_failed = memory.n_failed;
    memory.fail_at = memory.n_calls + fail_at;
}

static void fail_memory_no_more(little_program *p, const visit_chance *chance)
{
    (void)p;
    (void)chance;
    memory.fail_at = 0;
    n_memory_failed = memory.n_failed - n_memory_failed;
}

/* The list of parts, the scratch on the host, the pages that are taken: each allocation in turn, of a first visit. */
static void test_host_memory(void **state)
{
    (void)state;
    for (int place = VISIT_OCCUPIED; place <= VISIT_IN_USE; place++) {
        wanted = (visit_place)place;
        n_memory_failed = 1;
        for (fail_at = 1; n_memory_failed > 0; fail_at++) {
            static little_program p;
            visit_seeker s = {.is_wanted = is_wanted,
                              .before = fail_memory,
                              .after = fail_memory_no_more,
                              .kind = SHADOW_UPDATE,
                              .n_wanted = 1};
            test_memory_init(&memory);
            visit_start(&p, &(little_options){.memory = &memory.hook, .n_layers = 6});
            p.streams.retry = retry;
            p.streams.retry_user = &p;
            goes_home = false;
            ASSERT_TRUE(visit_seek(&p, &s, 3));
            little_laps(&p, 2);
            ASSERT_EQ(p.device->state, NEAP_STATE_RUN);
            little_end(&p);
            test_memory_finish(&memory);
        }
        ASSERT_GE(fail_at, place == VISIT_IN_USE ? 5 : 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
