/* test_rules.c: the rules that keep every byte right, each with a test that fails where the rule is taken out.
 *
 *   1. One order per byte: the first use of bytes by a stream waits for every earlier use of them by others.
 *   3. A wait follows its record.
 *   4. Every hit on an absent block is an access: it is fetched.
 *
 * (The others are about devices with graphs, peers and a profiler.) The device is the simulated one, which finds two uses
 * that nothing orders, however well they went; contents are checked by the work itself. */
#include <stdio.h>
#include <string.h>

#include "run/manager.h"
#include "run/shadow.h"
#include "testing.h"

enum { PAGE = 4096, N_LAYERS = 8, N_LASTING = 2 };

/* ---- a program: layers forward on one stream, backward on the other ---- */

typedef struct scene {
    np_device *raw;
    neap_device *device;
    shadow_report report;
    shadow_streams streams;
    shadow_block weights[N_LASTING];
    shadow_block layers[N_LAYERS];
    shadow_block gradients[N_LAYERS];
} scene;

static void open_scene(scene *s, double limit_share)
{
    neap_device_options options = {
        .limit_share = limit_share, .min_block = PAGE, .plan_seconds = 0.2, .refinements = UINT32_MAX};
    *s = (scene){0};
    shadow_report_init(&s->report, true);
    ASSERT_OK(np_device_open("sim:page=4096,memory=64MiB,streams=2,link=4GB/s", NULL, NULL, &s->raw));
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device));
    s->device->learner.learns_at_once = true;
    shadow_streams_init(&s->streams, s->device, &s->report, 2, 1);
    for (int i = 0; i < N_LASTING; i++) {
        ASSERT_OK(shadow_malloc(&s->streams, 3 * PAGE + 100, &s->weights[i]));
        ASSERT_OK(shadow_host_write(&s->streams, &s->weights[i], true));
    }
}

static void close_scene(scene *s)
{
    neap_close(s->device);
    shadow_report_free(&s->report);
}

static const char *problem_of(const scene *s)
{
    return s->raw->api->problem(s->raw);
}

static void assert_no_problem(const scene *s)
{
    if (problem_of(s)) {
        test_fail(__FILE__, __LINE__, "%s", problem_of(s));
    }
    if (atomic_load(&s->report.is_bad)) {
        test_fail(__FILE__, __LINE__, "%s", s->report.text);
    }
}

static void do_exec(scene *s, const char *name, unsigned stream, shadow_use a, shadow_use b, shadow_use c)
{
    shadow_use uses[] = {a, b, c};
    ASSERT_OK(shadow_exec(&s->streams, name, stream, 40000, uses, c.block ? 3 : b.block ? 2 : 1));
}

static const shadow_use nothing = {NULL, SHADOW_READ};

static void run_layer_back(scene *s, int i)
{
    char name[24];
    shadow_use above = i + 1 < N_LAYERS ? (shadow_use){&s->gradients[i + 1], SHADOW_READ} : nothing;
    (void)snprintf(name, sizeof name, "back%d", i);
    ASSERT_OK(shadow_malloc(&s->streams, s->layers[i].bytes, &s->gradients[i]));
    do_exec(s, name, i % 2 == 0 ? 1 : 0, (shadow_use){&s->gradients[i], SHADOW_WRITE},
            (shadow_use){&s->layers[i], SHADOW_READ}, above);
    ASSERT_OK(shadow_free(&s->streams, &s->layers[i]));
    if (i + 1 < N_LAYERS) {
        ASSERT_OK(shadow_free(&s->streams, &s->gradients[i + 1]));
    }
}

/* One iteration; `extra`, where it is not NULL, is done after so many layers forward. */
static void run_iteration(scene *s, int extra_after, void (*extra)(scene *s))
{
    for (int i = 0; i < N_LAYERS; i++) {
        char name[24];
        shadow_use below = i > 0 ? (shadow_use){&s->layers[i - 1], SHADOW_READ} : nothing;
        (void)snprintf(name, sizeof name, "forth%d", i);
        ASSERT_OK(shadow_malloc(&s->streams, (uint64_t)(4 + i % 3) * PAGE, &s->layers[i]));
        do_exec(s, name, 0, (shadow_use){&s->layers[i], SHADOW_WRITE},
                (shadow_use){&s->weights[i % N_LASTING], SHADOW_READ}, below);
        if (extra && i == extra_after) {
            extra(s);
        }
    }
    for (int i = N_LAYERS; i-- > 0;) {
        run_layer_back(s, i);
    }
    do_exec(s, "update0", 1, (shadow_use){&s->weights[0], SHADOW_UPDATE}, (shadow_use){&s->gradients[0], SHADOW_READ},
            nothing);
    do_exec(s, "update1", 0, (shadow_use){&s->weights[1], SHADOW_UPDATE}, (shadow_use){&s->gradients[0], SHADOW_READ},
            nothing);
    ASSERT_OK(shadow_free(&s->streams, &s->gradients[0]));
}

/* Until a plan is followed, and a little longer. */
static void reach_plan(scene *s)
{
    for (int i = 0; i < 20 && s->device->stats.n_iterations < 2; i++) {
        run_iteration(s, 0, NULL);
    }
    ASSERT_EQ(s->device->state, NEAP_STATE_RUN);
    ASSERT_GE(s->device->stats.n_iterations, 2);
    assert_no_problem(s);
}

/* ---- rule 1 ---- */

static bool is_wait(const np_op *op)
{
    return op->kind == NP_OP_WAIT_EXEC || op->kind == NP_OP_WAIT_OUT || op->kind == NP_OP_WAIT_IN;
}

/* A stream waits for itself: nothing. */
static void take_out(np_pattern *pattern, np_op *op)
{
    op->stream = op->kind == NP_OP_WAIT_EXEC  ? pattern->exec_streams[op->index]
                 : op->kind == NP_OP_WAIT_OUT ? NP_STREAM_OUT
                                              : NP_STREAM_IN;
}

static void test_plan_orders_bytes(void **state)
{
    scene s;
    (void)state;
    open_scene(&s, 0.7);
    reach_plan(&s);
    ASSERT_GE(s.device->pattern->program.swaps.n, 1);
    for (int i = 0; i < 6; i++) {
        run_iteration(&s, 0, NULL);
        assert_no_problem(&s);
    }
    ASSERT_EQ(s.device->stats.n_departures, 0);
    close_scene(&s);
}

/* Without the waits of one kind the device finds uses that nothing orders. */
static void test_plan_without_waits(void **state)
{
    static const np_op_kind kinds[] = {NP_OP_WAIT_EXEC, NP_OP_WAIT_OUT, NP_OP_WAIT_IN};
    (void)state;
    for (int k = 0; k < 3; k++) {
        scene s;
        np_pattern *pattern;
        uint32_t n_waits = 0;
        open_scene(&s, 0.7);
        reach_plan(&s);
        pattern = s.device->pattern;
        for (size_t i = 0; i < pattern->program.ops.n; i++) {
            np_op *op = &pattern->program.ops.items[i];
            if (op->kind == kinds[k]) {
                take_out(pattern, op);
                n_waits++;
            }
        }
        ASSERT_GE(n_waits, 1);
        run_iteration(&s, 0, NULL);
        run_iteration(&s, 0, NULL);
        ASSERT_TRUE(problem_of(&s) != NULL);
        ASSERT_CONTAINS(problem_of(&s), "nothing orders the two");
        close_scene(&s);
    }
}

/* The k-th wait of the plan, or NULL. */
static np_op *find_wait(np_pattern *pattern, uint32_t k)
{
    for (size_t i = 0; i < pattern->program.ops.n; i++) {
        if (is_wait(&pattern->program.ops.items[i]) && k-- == 0) {
            return &pattern->program.ops.items[i];
        }
    }
    return NULL;
}

/* Each wait on its own. Some order what the program orders, too, and are not missed. */
static void test_plan_without_one_wait(void **state)
{
    uint32_t n_waits = 0;
    uint32_t n_missed = 0;
    bool is_over = false;
    (void)state;
    while (!is_over) {
        scene s;
        np_op *op;
        open_scene(&s, 0.7);
        reach_plan(&s);
        op = find_wait(s.device->pattern, n_waits);
        if (op) {
            take_out(s.device->pattern, op);
            run_iteration(&s, 0, NULL);
            run_iteration(&s, 0, NULL);
            n_waits++;
            n_missed += problem_of(&s) != NULL;
        }
        is_over = !op;
        close_scene(&s);
    }
    ASSERT_GE(n_waits, 3);
    ASSERT_GE(n_missed * 3, n_waits);
}

/* Off the plan: a block that stands in the bytes of one that another stream used. */
static void reuse_bytes(scene *s, uint64_t bytes, bool takes_out)
{
    shadow_block first;
    shadow_block second;
    ASSERT_OK(shadow_malloc(&s->streams, PAGE, &first)); /* the next begins at a page, as the one after it does */
    ASSERT_OK(shadow_free(&s->streams, &first));
    ASSERT_OK(shadow_malloc(&s->streams, bytes, &first));
    do_exec(s, "first", 1, (shadow_use){&first, SHADOW_WRITE}, nothing, nothing);
    ASSERT_OK(shadow_free(&s->streams, &first));
    ASSERT_OK(shadow_malloc(&s->streams, bytes, &second));
    ASSERT_NE(second.block->after_left, 0);
    if (takes_out) {
        second.block->after_left = 0;
    }
    do_exec(s, "second", 0, (shadow_use){&second, SHADOW_WRITE}, nothing, nothing);
    ASSERT_OK(shadow_free(&s->streams, &second));
}

static void test_off_plan_orders_bytes(void **state)
{
    static const uint64_t sizes[] = {700, 5 * PAGE};
    (void)state;
    for (int k = 0; k < 2; k++) {
        scene s;
        open_scene(&s, 0);
        ASSERT_OK(shadow_sync(&s.streams));
        reuse_bytes(&s, sizes[k], false);
        assert_no_problem(&s);
        ASSERT_OK(shadow_sync(&s.streams));
        reuse_bytes(&s, sizes[k], true);
        ASSERT_TRUE(problem_of(&s) != NULL);
        close_scene(&s);
    }
}

/* ---- rule 3 ---- */

static neap_status (*real_wait)(np_device *device, np_stream stream, np_stream other, uint64_t mark);
static uint32_t n_waits_seen;
static uint32_t n_early_waits;

static neap_status watched_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    n_waits_seen++;
    if (mark > device->api->mark(device, other)) {
        n_early_waits++;
        return NEAP_OK; /* the device itself may rely on it */
    }
    return real_wait(device, stream, other, mark);
}

static void test_wait_follows_record(void **state)
{
    scene s;
    np_device_interface watched;
    np_pattern *pattern;
    (void)state;
    open_scene(&s, 0.7);
    watched = *s.raw->api;
    real_wait = watched.wait;
    watched.wait = watched_wait;
    s.raw->api = &watched;
    n_waits_seen = n_early_waits = 0;
    reach_plan(&s); /* the first lap refers to work of a lap that never was */
    run_iteration(&s, 0, NULL);
    ASSERT_GE(n_waits_seen, 1);
    ASSERT_EQ(n_early_waits, 0);

    pattern = s.device->pattern;
    for (size_t i = 0; i < pattern->program.swaps.n; i++) { /* as if marks were given before the work */
        pattern->in_marks[i] += 1000;
        pattern->out_marks[i] += 1000;
    }
    for (uint32_t i = 0; i < pattern->program.n_execs; i++) {
        pattern->exec_marks[i] += 1000;
    }
    run_iteration(&s, 0, NULL);
    ASSERT_GE(n_early_waits, 1);
    close_scene(&s);
}

/* ---- rule 4 ---- */

/* A layer that the plan has absent now; all of it, or a part. */
static shadow_block *find_absent(scene *s)
{
    const np_pattern *pattern = s->device->pattern;
    for (size_t i = 0; i < pattern->program.swaps.n; i++) {
        const neap_block *block = pattern->actors[pattern->program.swaps.items[i].life].now[0];
        for (int k = 0; k < N_LAYERS && pattern->is_out[i] && block; k++) {
            if (s->layers[k].block == block) {
                return &s->layers[k];
            }
        }
    }
    return NULL;
}

static void use_absent(scene *s)
{
    shadow_block *block = find_absent(s);
    ASSERT_TRUE(block != NULL);
    do_exec(s, "peek", 1, (shadow_use){block, SHADOW_READ}, nothing, nothing);
}

static void test_absent_is_fetched(void **state)
{
    scene s;
    uint64_t n_iterations;
    (void)state;
    open_scene(&s, 0.7);
    reach_plan(&s);
    run_iteration(&s, N_LAYERS - 1, use_absent);
    ASSERT_EQ(s.device->stats.n_departures, 1);
    assert_no_problem(&s);
    n_iterations = s.device->stats.n_iterations;
    for (int i = 0; i < 3; i++) { /* and the plan goes on */
        run_iteration(&s, 0, NULL);
    }
    ASSERT_GT(s.device->stats.n_iterations, n_iterations);
    assert_no_problem(&s);
    close_scene(&s);
}

static neap_status (*real_copy)(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                                uint64_t *mark);

static neap_status copy_out_only(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes,
                                 uint64_t *mark)
{
    return real_copy(device, stream, to, from, stream == NP_STREAM_IN ? 0 : bytes, mark);
}

/* The same, and what is absent is not fetched. */
static void test_absent_is_not_fetched(void **state)
{
    scene s;
    np_device_interface blind;
    (void)state;
    open_scene(&s, 0.7);
    reach_plan(&s);
    blind = *s.raw->api;
    real_copy = blind.copy;
    blind.copy = copy_out_only;
    s.raw->api = &blind;
    run_iteration(&s, N_LAYERS - 1, use_absent);
    ASSERT_TRUE(atomic_load(&s.report.is_bad));
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_orders_bytes),     cmocka_unit_test(test_plan_without_waits),
        cmocka_unit_test(test_plan_without_one_wait), cmocka_unit_test(test_off_plan_orders_bytes),
        cmocka_unit_test(test_wait_follows_record),   cmocka_unit_test(test_absent_is_fetched),
        cmocka_unit_test(test_absent_is_not_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
