/* Captures, graphs and what they name: who is kept for whom, and until when. The device is the simulated one; the hook's
 * own state is the test's. */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "hook/core.h"
#include "testing.h"

enum { PAGE = 4096 };

np_hook np_the_hook; /* core.c's is left out */

static const char *aside; /* why, or NULL */

void np_hook_step_aside(const char *why)
{
    aside = why;
}

static np_cu_capture_status capture_status;

static np_cu_result is_capturing(np_cu_stream stream, np_cu_capture_status *status)
{
    (void)stream;
    *status = capture_status;
    return NP_CU_SUCCESS;
}

typedef struct scene {
    test_memory memory;
    np_device *raw;
    np_hook_device device;
} scene;

static void open_scene(scene *s, uint64_t limit)
{
    neap_device_options options = {.limit = limit, .min_block = PAGE};
    memset(s, 0, sizeof *s);
    test_memory_init(&s->memory);
    ASSERT_OK(np_device_open("sim:page=4096,memory=4MiB,streams=2", &s->memory.hook, NULL, &s->raw));
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device.manager));
    np_beneath_begin(s->device.manager, 1, 0);
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_manager_is_valid(s->device.manager));
    np_array_free(s->device.manager->memory, &s->device.graphs);
    np_array_free(s->device.manager->memory, &s->device.kept);
    neap_close(s->device.manager);
    test_memory_finish(&s->memory);
}

static neap_block *make(scene *s)
{
    neap_block *block;
    ASSERT_OK(np_malloc_locked(s->device.manager, 3 * PAGE, &block));
    return block;
}

static void *handle(uintptr_t number)
{
    return (void *)(0x1000 * number);
}

/* The program frees a block: is it kept? */
static bool give(scene *s, neap_block *block)
{
    if (np_hook_capture_free(&s->device, block)) {
        return true;
    }
    ASSERT_OK(np_free_locked(s->device.manager, block));
    return false;
}

/* ---- one graph ---- */

static void test_graph(void **state)
{
    scene s;
    neap_block *before;
    neap_block *named;
    neap_block *other;
    (void)state;
    open_scene(&s, 0);
    before = make(&s);
    ASSERT_FALSE(give(&s, before)); /* no graph, nothing to keep */
    named = make(&s);
    other = make(&s);
    np_hook_capture_begin(&s.device, handle(1));
    ASSERT_EQ(s.device.n_captures, 1);
    np_hook_capture_use(&s.device, named);
    ASSERT_TRUE(named->is_fixed);
    ASSERT_TRUE(np_block_is_here(named));
    ASSERT_FALSE(give(&s, other)); /* it was not named */
    np_hook_capture_end(&s.device, handle(1), handle(2));
    ASSERT_EQ(s.device.n_captures, 0);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(2)));
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(3)));
    np_hook_graph_instantiate(&s.device, handle(2), handle(3));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(3)));
    ASSERT_TRUE(give(&s, named));
    ASSERT_EQ(s.device.kept.n, 1);
    np_hook_graph_destroy(&s.device, handle(2)); /* its executable is still there */
    ASSERT_EQ(s.device.kept.n, 1);
    np_hook_graph_destroy(&s.device, handle(3));
    ASSERT_EQ(s.device.kept.n, 0);
    ASSERT_EQ(s.device.manager->stats.live, 0);
    ASSERT_EQ(s.device.graphs.n, 0);
    close_scene(&s);
}

/* A graph that came later than the free cannot name the block; one that was there before can. */
static void test_later_graph(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    np_hook_capture_begin(&s.device, handle(1));
    np_hook_capture_use(&s.device, named);
    np_hook_capture_end(&s.device, handle(1), handle(2));
    ASSERT_TRUE(give(&s, named));
    np_hook_capture_begin(&s.device, handle(1));
    np_hook_capture_end(&s.device, handle(1), handle(4));
    np_hook_graph_destroy(&s.device, handle(2));
    ASSERT_EQ(s.device.kept.n, 0);
    np_hook_graph_destroy(&s.device, handle(4));
    close_scene(&s);
}

/* A capture that fails names nothing. */
static void test_failed_capture(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    np_hook_capture_begin(&s.device, handle(1));
    np_hook_capture_use(&s.device, named);
    ASSERT_TRUE(give(&s, named));
    np_hook_capture_end(&s.device, handle(1), NULL);
    ASSERT_EQ(s.device.n_captures, 0);
    ASSERT_EQ(s.device.graphs.n, 0);
    ASSERT_EQ(s.device.kept.n, 0);
    ASSERT_EQ(s.device.manager->stats.live, 0);
    np_hook_capture_end(&s.device, handle(1), NULL); /* one that never began */
    ASSERT_EQ(s.device.n_captures, 0);
    close_scene(&s);
}

/* Two streams are captured at once: each ends its own. */
static void test_two_captures(void **state)
{
    scene s;
    (void)state;
    open_scene(&s, 0);
    np_hook_capture_begin(&s.device, handle(1));
    np_hook_capture_begin(&s.device, handle(2));
    ASSERT_EQ(s.device.n_captures, 2);
    np_hook_capture_end(&s.device, handle(1), handle(5));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(5)));
    ASSERT_EQ(s.device.n_captures, 1);
    np_hook_capture_blind(&s.device); /* of the second alone: the first is over */
    np_hook_capture_end(&s.device, handle(2), NULL);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(5)));
    np_hook_graph_destroy(&s.device, NULL);
    ASSERT_EQ(s.device.graphs.n, 1);
    np_hook_graph_destroy(&s.device, handle(5));
    ASSERT_EQ(s.device.graphs.n, 0);
    close_scene(&s);
}

/* ---- graphs in graphs ---- */

static void capture_of(scene *s, neap_block *named, void *graph)
{
    np_hook_capture_begin(&s->device, handle(1));
    if (named) {
        np_hook_capture_use(&s->device, named);
    }
    np_hook_capture_end(&s->device, handle(1), graph);
}

/* What a part names is kept until the whole, and its executables, are gone, whatever becomes of the part. */
static void test_child(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    capture_of(&s, named, handle(2));
    np_hook_graph_create(&s.device, handle(4));
    np_hook_graph_create(&s.device, NULL);
    np_hook_graph_join(&s.device, NULL, NULL);
    ASSERT_EQ(s.device.graphs.n, 2);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(4)));
    np_hook_graph_join(&s.device, handle(4), handle(2));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(4)));
    np_hook_graph_instantiate(&s.device, handle(4), handle(5));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(5)));
    ASSERT_TRUE(give(&s, named));
    np_hook_graph_destroy(&s.device, handle(2));
    ASSERT_EQ(s.device.kept.n, 1);
    np_hook_graph_destroy(&s.device, handle(4));
    ASSERT_EQ(s.device.kept.n, 1);
    np_hook_graph_destroy(&s.device, handle(5));
    ASSERT_EQ(s.device.kept.n, 0);
    ASSERT_EQ(s.device.graphs.n, 0);
    ASSERT_EQ(s.device.manager->stats.live, 0);
    close_scene(&s);
}

/* A graph without captured work keeps nothing. */
static void test_empty(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    np_hook_graph_create(&s.device, handle(4));
    capture_of(&s, named, handle(2));
    ASSERT_TRUE(give(&s, named));
    np_hook_graph_destroy(&s.device, handle(2));
    ASSERT_EQ(s.device.kept.n, 0);
    np_hook_graph_destroy(&s.device, handle(4));
    close_scene(&s);
}

/* A captured graph gets a part that was captured before it: a node, an executable that is updated, a captured launch. */
static void test_earlier_part(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        scene s;
        neap_block *named;
        void *last = handle(way == 1 ? 5 : 4);
        open_scene(&s, 0);
        named = make(&s);
        capture_of(&s, named, handle(2));
        np_hook_graph_instantiate(&s.device, handle(2), handle(3));
        ASSERT_TRUE(give(&s, named)); /* so that only those that were there by now can need it */
        if (way >= 2) {
            np_hook_capture_begin(&s.device, handle(1));
            np_hook_capture_join(&s.device, handle(way == 2 ? 3 : 9)); /* 9: one that is not known */
            np_hook_capture_end(&s.device, handle(1), handle(4));
        } else {
            capture_of(&s, NULL, handle(4));
            np_hook_graph_instantiate(&s.device, handle(4), handle(5));
            np_hook_graph_join(&s.device, last, handle(2));
            np_hook_graph_destroy(&s.device, handle(way == 1 ? 4 : 5));
        }
        ASSERT_TRUE(np_hook_graph_is_known(&s.device, last));
        size_t n = s.device.graphs.n;
        np_hook_graph_join(&s.device, last, handle(2)); /* again: nothing is new */
        ASSERT_EQ(s.device.graphs.n, n);
        np_hook_graph_destroy(&s.device, handle(2));
        np_hook_graph_destroy(&s.device, handle(3));
        ASSERT_EQ(s.device.kept.n, 1);
        np_hook_graph_destroy(&s.device, last);
        ASSERT_EQ(s.device.kept.n, 0);
        ASSERT_EQ(s.device.graphs.n, 0);
        close_scene(&s);
    }
}

/* Nodes that were put in by hand: the graph is not known any more; nor is one of which no begin was seen, or one with
 * such a part. What they may have in them is kept. */
static void test_unseen_part(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    capture_of(&s, named, handle(2));
    np_hook_graph_instantiate(&s.device, handle(2), handle(3));
    np_hook_graph_join(&s.device, handle(2), NULL);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(2)));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(3))); /* which was made before */
    np_hook_graph_instantiate(&s.device, handle(2), handle(4));
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(4)));
    np_hook_graph_join(&s.device, handle(8), handle(3)); /* a stranger, with a known part */
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(8)));
    np_hook_graph_join(&s.device, handle(3), handle(9)); /* with an unknown one */
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(3)));
    np_hook_graph_create(&s.device, handle(6));
    np_hook_graph_join(&s.device, handle(6), NULL);
    ASSERT_TRUE(give(&s, named));
    for (uintptr_t i = 2; i <= 4; i++) {
        np_hook_graph_destroy(&s.device, handle(i));
    }
    np_hook_graph_destroy(&s.device, handle(8));
    ASSERT_EQ(s.device.kept.n, 1); /* any graph there was may be a part of it */
    np_hook_graph_destroy(&s.device, handle(6));
    ASSERT_EQ(s.device.kept.n, 0);
    ASSERT_EQ(s.device.graphs.n, 0);
    close_scene(&s);
}

/* A stream is captured into a graph that is there already; some graph was changed, who knows which. */
static void test_changed(void **state)
{
    scene s;
    neap_block *named;
    (void)state;
    open_scene(&s, 0);
    named = make(&s);
    np_hook_graph_create(&s.device, handle(2));
    np_hook_graph_join(&s.device, handle(2), NULL);
    capture_of(&s, named, handle(2));
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(2)));
    ASSERT_TRUE(give(&s, named));
    capture_of(&s, NULL, handle(3));
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, handle(3)));
    np_hook_graphs_blind(&s.device);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, handle(3)));
    np_hook_graph_destroy(&s.device, handle(2));
    ASSERT_EQ(s.device.graphs.n, 1);
    ASSERT_EQ(s.device.kept.n, 1); /* the other may have been changed to name it */
    np_hook_graph_destroy(&s.device, handle(3));
    ASSERT_EQ(s.device.kept.n, 0);
    close_scene(&s);
}

/* Before a capture everything is home, and its work is done; what it names stays, under a limit too. */
static void test_home(void **state)
{
    scene s;
    neap_block *blocks[3];
    neap_work work = {.name = "fill", .duration_ns = 100000};
    (void)state;
    open_scene(&s, 7 * PAGE);
    for (int i = 0; i < 3; i++) {
        neap_use use = {NULL, NEAP_ACCESS_WRITE};
        blocks[i] = use.block = make(&s);
        ASSERT_OK(neap_exec(s.device.manager, &work, &use, 1));
    }
    ASSERT_FALSE(np_block_is_here(blocks[0]));
    np_hook_capture_begin(&s.device, handle(1));
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(np_block_is_here(blocks[i]));
    }
    ASSERT_TRUE(s.raw->api->is_done(s.raw, 0, s.raw->api->mark(s.raw, 0)));
    np_hook_capture_use(&s.device, blocks[0]);
    np_hook_capture_end(&s.device, handle(1), handle(2));
    for (int i = 1; i < 3; i++) {
        neap_use use = {blocks[i], NEAP_ACCESS_READ};
        ASSERT_OK(neap_exec(s.device.manager, &work, &use, 1));
        ASSERT_TRUE(np_block_is_here(blocks[0]));
    }
    np_hook_graph_destroy(&s.device, handle(2));
    close_scene(&s);
}

static void test_capturing(void **state)
{
    scene s;
    (void)state;
    open_scene(&s, 0);
    np_the_hook.driver.stream_is_capturing = is_capturing;
    capture_status = NP_CU_CAPTURE_ACTIVE;
    ASSERT_TRUE(np_hook_is_capturing(&s.device, handle(1)));
    ASSERT_FALSE(np_hook_is_capturing(&s.device, NP_HOOK_LEGACY));
    capture_status = NP_CU_CAPTURE_INVALIDATED;
    ASSERT_TRUE(np_hook_is_capturing(&s.device, handle(1)));
    capture_status = NP_CU_CAPTURE_NONE;
    ASSERT_FALSE(np_hook_is_capturing(&s.device, handle(1)));
    np_the_hook.driver.stream_is_capturing = NULL;
    ASSERT_FALSE(np_hook_is_capturing(&s.device, handle(1)));
    close_scene(&s);
}

/* ---- host memory ---- */

/* Whatever could not be remembered: as long as the graph or its executable is there, what it names is not freed. */
static void test_host_memory(void **state)
{
    bool goes_on = true;
    (void)state;
    for (size_t n = 1; goes_on; n++) {
        scene s;
        neap_block *named;
        open_scene(&s, 0);
        named = make(&s);
        s.memory.fail_at = s.memory.n_calls + n;
        np_hook_capture_begin(&s.device, handle(1));
        np_hook_capture_use(&s.device, named);
        np_hook_capture_end(&s.device, handle(1), handle(2));
        np_hook_graph_instantiate(&s.device, handle(2), handle(3));
        np_hook_graph_create(&s.device, handle(4));
        np_hook_graph_join(&s.device, handle(4), handle(2));
        np_hook_graph_instantiate(&s.device, handle(4), handle(5));
        ASSERT_TRUE(np_hook_capture_free(&s.device, named));
        ASSERT_TRUE(named->is_live || s.device.manager->stats.live == 3 * PAGE);
        np_hook_graph_destroy(&s.device, handle(2));
        ASSERT_EQ(s.device.manager->stats.live, 3 * PAGE); /* the executable names it */
        np_hook_graph_destroy(&s.device, handle(3));
        np_hook_graph_destroy(&s.device, handle(4));
        ASSERT_EQ(s.device.manager->stats.live, 3 * PAGE); /* so does that of the graph around it */
        np_hook_graph_destroy(&s.device, handle(5));
        goes_on = s.memory.n_failed > 0;
        close_scene(&s);
    }
}

/* ---- random programs ---- */

enum { N_GRAPHS = 6, N_BLOCKS = 24 };

typedef struct model_graph {
    bool is_there[2];       /* the graph, its executable */
    bool names[N_BLOCKS];   /* by slot, */
    uint64_t ids[N_BLOCKS]; /* and which of its blocks that was */
} model_graph;

typedef struct model_block {
    neap_block *block;
    uint64_t id;
    bool is_freed; /* by the program */
} model_block;

typedef struct model {
    scene s;
    model_graph graphs[N_GRAPHS];
    model_block blocks[N_BLOCKS];
    uint64_t next_id;
} model;

static void *graph_handle(uint32_t graph, uint32_t which)
{
    return handle(10 + 2 * graph + which);
}

static bool is_named(const model *m, uint32_t slot)
{
    for (uint32_t i = 0; i < N_GRAPHS; i++) {
        const model_graph *g = &m->graphs[i];
        if ((g->is_there[0] || g->is_there[1]) && g->names[slot] && g->ids[slot] == m->blocks[slot].id) {
            return true;
        }
    }
    return false;
}

/* What a graph that is there names is live: on the manager's list. */
static void check(const model *m)
{
    for (uint32_t slot = 0; slot < N_BLOCKS; slot++) {
        const model_block *b = &m->blocks[slot];
        bool is_listed = false;
        if (!b->block || (b->is_freed && !is_named(m, slot))) {
            continue;
        }
        for (const neap_block *block = m->s.device.manager->live; block; block = block->next) {
            is_listed |= block == b->block;
        }
        ASSERT_TRUE(is_listed);
        ASSERT_TRUE(!is_named(m, slot) || np_block_is_here(b->block));
    }
}

static void capture(model *m, np_rng *rng, uint32_t graph)
{
    model_graph *g = &m->graphs[graph];
    if (g->is_there[0] || g->is_there[1]) {
        return;
    }
    *g = (model_graph){.is_there = {true, false}};
    np_hook_capture_begin(&m->s.device, handle(1));
    for (int i = 0; i < 4; i++) {
        uint32_t slot = (uint32_t)np_rng_below(rng, N_BLOCKS);
        if (m->blocks[slot].block && !m->blocks[slot].is_freed) {
            np_hook_capture_use(&m->s.device, m->blocks[slot].block);
            g->names[slot] = true;
            g->ids[slot] = m->blocks[slot].id;
        }
    }
    np_hook_capture_end(&m->s.device, handle(1), graph_handle(graph, 0));
}

/* One graph becomes a part of another: a node of it, and of its executable. */
static void join(model *m, uint32_t graph, uint32_t part)
{
    const model_graph *p = &m->graphs[part];
    model_graph *g = &m->graphs[graph];
    if (graph == part || (!p->is_there[0] && !p->is_there[1])) {
        return;
    }
    for (uint32_t which = 0; which < 2; which++) {
        if (g->is_there[which]) {
            np_hook_graph_join(&m->s.device, graph_handle(graph, which), graph_handle(part, !p->is_there[0]));
        }
    }
    for (uint32_t slot = 0; slot < N_BLOCKS; slot++) { /* of two blocks of a slot, the later is the one that is there */
        if (p->names[slot] && (!g->names[slot] || p->ids[slot] > g->ids[slot])) {
            g->names[slot] = true;
            g->ids[slot] = p->ids[slot];
        }
    }
}

static void act(model *m, np_rng *rng)
{
    uint32_t graph = (uint32_t)np_rng_below(rng, N_GRAPHS);
    uint32_t which = (uint32_t)np_rng_below(rng, 2);
    uint32_t slot = (uint32_t)np_rng_below(rng, N_BLOCKS);
    model_graph *g = &m->graphs[graph];
    model_block *b = &m->blocks[slot];
    switch (np_rng_below(rng, 6)) {
    case 0:
        capture(m, rng, graph);
        break;
    case 1:
        if (g->is_there[0] && !g->is_there[1]) {
            np_hook_graph_instantiate(&m->s.device, graph_handle(graph, 0), graph_handle(graph, 1));
            g->is_there[1] = true;
        }
        break;
    case 2:
        if (g->is_there[which]) {
            g->is_there[which] = false;
            np_hook_graph_destroy(&m->s.device, graph_handle(graph, which));
        }
        break;
    case 3:
        join(m, graph, (uint32_t)np_rng_below(rng, N_GRAPHS));
        break;
    case 4:
        if (!b->block || (b->is_freed && !is_named(m, slot))) {
            *b = (model_block){.block = make(&m->s), .id = m->next_id++};
        }
        break;
    default:
        if (b->block && !b->is_freed) {
            b->is_freed = true;
            (void)give(&m->s, b->block);
        }
    }
}

static void test_random(void **state)
{
    static model m;
    np_rng rng = np_rng_make(11);
    (void)state;
    memset(&m, 0, sizeof m);
    open_scene(&m.s, 0);
    for (int i = 0; i < 5000; i++) {
        act(&m, &rng);
        check(&m);
    }
    for (uint32_t i = 0; i < N_GRAPHS; i++) {
        np_hook_graph_destroy(&m.s.device, graph_handle(i, 0));
        np_hook_graph_destroy(&m.s.device, graph_handle(i, 1));
    }
    ASSERT_EQ(m.s.device.kept.n, 0);
    for (uint32_t slot = 0; slot < N_BLOCKS; slot++) {
        if (m.blocks[slot].block && !m.blocks[slot].is_freed) {
            ASSERT_FALSE(give(&m.s, m.blocks[slot].block));
        }
    }
    ASSERT_EQ(m.s.device.manager->stats.live, 0);
    close_scene(&m.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_graph),        cmocka_unit_test(test_later_graph),  cmocka_unit_test(test_failed_capture),
        cmocka_unit_test(test_two_captures), cmocka_unit_test(test_home),         cmocka_unit_test(test_capturing),
        cmocka_unit_test(test_random),       cmocka_unit_test(test_host_memory),  cmocka_unit_test(test_child),
        cmocka_unit_test(test_empty),        cmocka_unit_test(test_earlier_part), cmocka_unit_test(test_unseen_part),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
