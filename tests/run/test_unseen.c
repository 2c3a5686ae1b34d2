/* test_unseen.c: uses that were recorded in every iteration and are gone on the plan are not planned with; true ones are. */
#include "run/unseen.h"

#include "run/little_program.h"
#include "testing.h"
#include "trace/make_trace.h"

/* ---- a period ---- */

/* Every other access of every exec is not there; what is left is what it was, in the same order. */
static void test_drop(void **state)
{
    training options = {.seed = 1, .n_layers = 4, .n_iterations = 6};
    neap_trace *trace = make_training(&options);
    np_doubt_array unseen = {0};
    np_period before;
    np_period after;
    uint32_t exec = 0;
    (void)state;
    ASSERT_TRUE(trace != NULL);
    ASSERT_OK(np_period_find(trace, &np_memory_default, &before));
    ASSERT_OK(np_period_find(trace, &np_memory_default, &after));
    for (uint32_t t = 0; t < before.length; t++) {
        for (uint32_t i = before.access_at.items[t] + 1; i < before.access_at.items[t + 1]; i += 2) {
            np_doubt use = {.life = before.accesses.items[i].block, .exec = exec};
            ASSERT_OK(np_array_push(&np_memory_default, &unseen, use));
        }
        exec += before.trace->events.items[before.origin + t].kind == NEAP_EVENT_EXEC;
    }
    ASSERT_GE(unseen.n, 4);
    np_unseen_drop(&after, unseen.items, unseen.n);
    ASSERT_TRUE(np_period_is_valid(&after));
    ASSERT_EQ(after.accesses.n + unseen.n, before.accesses.n);
    for (uint32_t t = 0; t < before.length; t++) {
        uint32_t k = after.access_at.items[t];
        for (uint32_t i = before.access_at.items[t]; i < before.access_at.items[t + 1]; i += 2) {
            ASSERT_LT(k, after.access_at.items[t + 1]);
            ASSERT_EQ(after.accesses.items[k].block, before.accesses.items[i].block);
            ASSERT_EQ(after.accesses.items[k++].kind, before.accesses.items[i].kind);
        }
        ASSERT_EQ(k, after.access_at.items[t + 1]);
    }
    np_unseen_drop(&after, NULL, 0);
    ASSERT_EQ(after.accesses.n + unseen.n, before.accesses.n);
    np_array_free(&np_memory_default, &unseen);
    np_period_free(&before);
    np_period_free(&after);
    neap_trace_free(trace);
}

/* ---- a program ---- */

/* Execs of the plan that use a life, as recorded: no margin. */
static uint32_t count_uses(const np_program *program, uint32_t life)
{
    uint32_t n = 0;
    for (size_t i = 0; i < program->uses.n; i++) {
        n += program->uses.items[i].life == life;
    }
    return n;
}

static bool has_swaps(const little_program *p)
{
    return p->device->state == NEAP_STATE_RUN && p->device->pattern->program.swaps.n > 0;
}

/* Iterations until a plan with swaps is followed. `twist`: of those before the first plan, or of all. */
static void settle(little_program *p, little_twist twist, bool is_always)
{
    for (int i = 0; i < 400 && !has_swaps(p); i++) {
        bool is_first = p->device->state != NEAP_STATE_RUN;
        little_lap(p, is_first || is_always ? twist : (little_twist){LITTLE_PLAIN, 0});
    }
    ASSERT_TRUE(has_swaps(p));
}

static void count(little_twist twist, bool is_always, uint32_t *n_uses)
{
    static little_program p;
    const little_options options = {.device = {.limit_share = 0.7}, .n_layers = 8};
    const np_program *program;
    *n_uses = 0;
    little_start(&p, &options);
    np_beneath_begin(p.device, 0, 0);
    p.device->is_limit_late = true;
    settle(&p, twist, is_always);
    program = &p.device->pattern->program;
    for (uint32_t life = 0; life < program->lives.n; life++) {
        *n_uses += count_uses(program, life);
    }
    ASSERT_EQ(p.device->stats.n_departures, 0);
    little_end(&p);
}

static void test_chance_words(void **state)
{
    const little_twist plain = {LITTLE_PLAIN, 0};
    const little_twist other = {LITTLE_OTHER_BLOCK, 4};
    uint32_t n_plain;
    uint32_t n_gone;
    uint32_t n_true;
    (void)state;
    count(plain, true, &n_plain);
    count(other, false, &n_gone);
    count(other, true, &n_true);
    ASSERT_EQ(n_gone, n_plain);
    ASSERT_EQ(n_true, n_plain + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_chance_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
