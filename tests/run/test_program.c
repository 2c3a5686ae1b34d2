/* Programs worked out by hand, thousands at random, and those of recordings, each followed by the checker. */
#include "run/program.h"

#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "run/make_program.h"
#include "run/program_arena.h"
#include "swap/planner.h"
#include "swap/recorded.h"
#include "testing.h"

static const np_link fast = {.out = 100, .in = 100};

static np_program make(const scene *made)
{
    np_program program;
    neap_error error = {""};
    ASSERT_OK(
        np_program_make(&made->timeline, made->swaps.items, (uint32_t)made->swaps.n, &made->layout, NULL, &program));
    ASSERT_TRUE(np_program_is_valid(&program));
    (void)np_program_check(&program, &error);
    ASSERT_STR_EQ(error.text, "");
    return program;
}

static uint32_t count_ops(const np_program *program, np_op_kind kind)
{
    uint32_t n = 0;
    for (size_t i = 0; i < program->ops.n; i++) {
        n += program->ops.items[i].kind == kind;
    }
    return n;
}

static bool has_op(const np_program *program, uint32_t first, uint32_t n, np_op op)
{
    for (uint32_t i = first; i < first + n; i++) {
        const np_op *other = &program->ops.items[i];
        if (other->kind == op.kind && other->index == op.index && other->stream == op.stream) {
            return true;
        }
    }
    return false;
}

/* The event before (after) which an operation stands; NEAP_NEVER: none. */
static uint32_t find_op(const np_program *program, np_op_kind kind, uint32_t index, uint32_t stream, bool after)
{
    np_op op = {.kind = (uint8_t)kind, .index = index, .stream = (uint8_t)stream};
    for (uint32_t t = 0; t < program->events.n; t++) {
        const np_program_event *event = &program->events.items[t];
        if (after ? has_op(program, event->first_op + event->n_before, event->n_after, op)
                  : has_op(program, event->first_op, event->n_before, op)) {
            return t;
        }
    }
    return NEAP_NEVER;
}

static uint32_t event_of_exec(const np_program *program, uint32_t exec)
{
    for (uint32_t t = 0; t < program->events.n; t++) {
        if (program->events.items[t].kind == NEAP_EVENT_EXEC && program->events.items[t].subject == exec) {
            return t;
        }
    }
    return NEAP_NEVER;
}

static uint32_t event_of_life(const np_program *program, neap_event_kind kind, uint32_t life)
{
    for (uint32_t t = 0; t < program->events.n; t++) {
        if (program->events.items[t].kind == kind && program->events.items[t].subject == life) {
            return t;
        }
    }
    return NEAP_NEVER;
}

static uint64_t offset_of(const np_program *program, uint32_t life)
{
    return program->placed.items[program->lives.items[life].first_placed].offset;
}

#define ARRAY(a) .a = (a), .n_##a = sizeof(a) / sizeof *(a)

/* ---- by hand ---- */

/* Two blocks after each other in the same bytes, and a persistent one. */
static const life_shape two_in_turn[] = {
    {.bytes = 1000, .begin = 0, .end = 1},
    {.bytes = 1024, .begin = 2, .end = 3},
    {.bytes = 100, .persistent = true},
};
static const use_shape uses_in_turn[] = {
    {0, 0, NEAP_ACCESS_WRITE}, {1, 0, NEAP_ACCESS_READ},    {2, 1, NEAP_ACCESS_WRITE},
    {3, 2, NEAP_ACCESS_READ},  {3, 1, NEAP_ACCESS_UNKNOWN},
};

static void one_stream_needs_no_waits(void **state)
{
    const life_shape *lives = two_in_turn;
    period_shape shape = {.n_slots = 4, .lives = lives, .n_lives = 3, .uses = uses_in_turn, .n_uses = 5};
    scene made;
    np_program p;
    const np_program_event *exec;
    uint32_t first, second, kept;
    (void)state;
    make_scene(&shape, &made);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 512));
    p = make(&made);
    first = scene_life(&made, 0);
    second = scene_life(&made, 1);
    kept = scene_life(&made, 2);
    ASSERT_EQ(p.ops.n, 0);
    ASSERT_EQ(p.events.n, 8);
    ASSERT_EQ(p.n_execs, 4);
    ASSERT_EQ(p.footprint, 1024 + 512);
    ASSERT_EQ(p.peak_load, 1024 + 512);
    ASSERT_EQ(offset_of(&p, first), offset_of(&p, second));
    ASSERT_TRUE(p.lives.items[kept].persistent);
    ASSERT_EQ(p.lives.items[kept].id, 3010);
    ASSERT_EQ(p.lives.items[first].bytes, 1000);
    ASSERT_EQ(p.events.items[event_of_life(&p, NEAP_EVENT_MALLOC, first)].key, 1000);
    exec = &p.events.items[event_of_life(&p, NEAP_EVENT_FREE, second) - 1];
    ASSERT_EQ(exec->kind, NEAP_EVENT_EXEC);
    ASSERT_EQ(exec->key, np_program_name_key("k3", 2));
    ASSERT_NE(exec->key, np_program_name_key("k2", 2));
    ASSERT_EQ(exec->n_uses, 2);
    ASSERT_EQ(p.uses.items[exec->first_use].life, kept);
    ASSERT_EQ(p.uses.items[exec->first_use].kind, NEAP_ACCESS_READ);
    ASSERT_EQ(p.uses.items[exec->first_use + 1].life, second);
    np_program_free(&p);
    free_scene(&made);
}

/* The same with the second block on a stream of its own: its first use waits for the first block's last, and the other
 * way round. */
static void streams_wait_where_bytes_change_hands(void **state)
{
    static const uint32_t streams[] = {0, 0, 3, 3};
    period_shape shape = {
        .n_slots = 4, .streams = streams, .lives = two_in_turn, .n_lives = 3, .uses = uses_in_turn, .n_uses = 5};
    scene made;
    np_program p;
    (void)state;
    make_scene(&shape, &made);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 512));
    p = make(&made);
    ASSERT_EQ(p.ops.n, 2);
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_EXEC, 1, 3, false), event_of_exec(&p, 2));
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_EXEC, 3, 0, false), event_of_exec(&p, 0));
    np_program_free(&p);
    free_scene(&made);
}

/* Block 0 is away while block 1 lives in its bytes. */
static const life_shape one_away[] = {
    {.bytes = 2048, .begin = 0, .end = 5},
    {.bytes = 2048, .begin = 2, .end = 3},
};
static const use_shape uses_one_away[] = {
    {0, 0, NEAP_ACCESS_WRITE}, {2, 1, NEAP_ACCESS_WRITE}, {3, 1, NEAP_ACCESS_READ}, {5, 0, NEAP_ACCESS_READ}};

static void a_swap_is_ordered(void **state)
{
    period_shape shape = {.n_slots = 6, .lives = one_away, .n_lives = 2, .uses = uses_one_away, .n_uses = 4};
    scene made;
    np_program p;
    uint32_t second;
    (void)state;
    make_scene(&shape, &made);
    add_swap(&made, 0, 0, 0);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 4096));
    ASSERT_EQ(made.layout.footprint, 2048);
    p = make(&made);
    second = scene_life(&made, 1);
    ASSERT_EQ(p.swaps.n, 1);
    ASSERT_EQ(p.swaps.items[0].begin, 0);
    ASSERT_EQ(p.swaps.items[0].end, 2048);
    ASSERT_EQ(p.swaps.items[0].life, scene_life(&made, 0));
    ASSERT_FALSE(p.swaps.items[0].starts_absent);
    ASSERT_TRUE(p.lives.items[p.swaps.items[0].life].swapped);
    ASSERT_FALSE(p.lives.items[second].swapped);
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true), event_of_exec(&p, 0));
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_EXEC, 0, NP_STREAM_OUT, true), event_of_exec(&p, 0));
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_OUT, 0, 0, false), event_of_exec(&p, 2));
    ASSERT_GE(find_op(&p, NP_OP_IN, 0, NP_STREAM_IN, true), event_of_life(&p, NEAP_EVENT_FREE, second));
    ASSERT_LT(find_op(&p, NP_OP_IN, 0, NP_STREAM_IN, true), event_of_exec(&p, 5));
    ASSERT_NE(find_op(&p, NP_OP_WAIT_EXEC, 3, NP_STREAM_IN, true), NEAP_NEVER);
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_IN, 0, 0, false), event_of_exec(&p, 5));
    ASSERT_EQ(p.ops.n, 6);
    np_program_free(&p);
    free_scene(&made);
}

/* The copy out follows the last write; the reads after it end before others have the bytes. */
static void a_copy_out_does_not_wait_for_reads(void **state)
{
    static const use_shape uses[] = {{0, 0, NEAP_ACCESS_WRITE},
                                     {1, 0, NEAP_ACCESS_READ},
                                     {2, 1, NEAP_ACCESS_WRITE},
                                     {3, 1, NEAP_ACCESS_READ},
                                     {5, 0, NEAP_ACCESS_READ}};
    static const uint32_t streams[] = {0, 1, 0, 0, 0, 0};
    period_shape shape = {.n_slots = 6, .streams = streams, .lives = one_away, .n_lives = 2, ARRAY(uses)};
    scene made;
    np_program p;
    (void)state;
    make_scene(&shape, &made);
    add_swap(&made, 0, 1, 0);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 4096));
    ASSERT_EQ(made.layout.footprint, 2048);
    p = make(&made);
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true), event_of_exec(&p, 0));
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_EXEC, 1, NP_STREAM_OUT, true), NEAP_NEVER);
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_EXEC, 1, 0, false), event_of_exec(&p, 2));
    ASSERT_EQ(find_op(&p, NP_OP_WAIT_OUT, 0, 0, false), event_of_exec(&p, 2));
    np_program_free(&p);
    free_scene(&made);
}

/* A persistent block that is away over the period's end. */
static void what_is_away_at_the_start_is_said_so(void **state)
{
    static const life_shape lives[] = {{.bytes = 4096, .persistent = true}, {.bytes = 512, .begin = 2, .end = 3}};
    static const use_shape uses[] = {{2, 0, NEAP_ACCESS_UNKNOWN}, {3, 0, NEAP_ACCESS_READ}, {2, 1, NEAP_ACCESS_WRITE}};
    period_shape shape = {.n_slots = 6, ARRAY(lives), ARRAY(uses)};
    scene made;
    np_program p;
    uint32_t from;
    (void)state;
    make_scene(&shape, &made);
    from = made.timeline.gaps.items[0].from;
    add_swap(&made, 0, from, 2048);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 1024));
    p = make(&made);
    ASSERT_EQ(p.swaps.n, 1);
    ASSERT_EQ(p.swaps.items[0].end, 2048);
    ASSERT_EQ(p.swaps.items[0].starts_absent,
              find_op(&p, NP_OP_IN, 0, NP_STREAM_IN, true) < find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true));
    ASSERT_GE(p.lives.items[p.swaps.items[0].life].n_placed, 2);
    np_program_free(&p);
    free_scene(&made);
}

/* One that lives for two periods and a half takes turns in three places; one is malloc'd in every period and kept. */
static void long_lives_take_turns_and_leaks_have_no_place(void **state)
{
    static const life_shape lives[] = {{.bytes = 512, .begin = 1, .end = 11}, {.bytes = 65536, .persistent = true}};
    static const use_shape uses[] = {{1, 0, NEAP_ACCESS_WRITE}, {2, 0, NEAP_ACCESS_READ}, {3, 1, NEAP_ACCESS_READ}};
    static const uint32_t streams[] = {0, 1, 2, 0};
    period_shape shape = {.n_slots = 4, .streams = streams, ARRAY(lives), ARRAY(uses), .leak_bytes = 4};
    scene made;
    np_program p;
    uint32_t life, n_leaks = 0;
    (void)state;
    make_scene(&shape, &made);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 512));
    p = make(&made);
    life = scene_life(&made, 0);
    ASSERT_EQ(p.lives.items[life].n_places, 3);
    ASSERT_EQ(p.lives.items[life].n_placed, 1);
    for (size_t t = 0; t < p.events.n; t++) {
        n_leaks += p.events.items[t].kind == NEAP_EVENT_MALLOC && p.events.items[t].subject == NP_NO_LIFE &&
                   p.events.items[t].key == 4;
    }
    ASSERT_EQ(n_leaks, 1);
    np_program_free(&p);
    free_scene(&made);
}

static void a_period_without_execs_is_a_program(void **state)
{
    scene made;
    np_program p;
    neap_trace *trace;
    static const char csv[] = "id,lower,upper,size\n0,0,3,512\n1,3,6,512\n";
    np_timeline_options options = {.alignment = 512, .slower = 1};
    (void)state;
    ASSERT_OK(neap_trace_parse(csv, sizeof csv - 1, "csv", NULL, NULL, &trace));
    made = (scene){.trace = trace};
    ASSERT_OK(np_period_find(trace, NULL, &made.period));
    ASSERT_OK(np_timeline_make(&made.period, &options, NULL, &made.timeline));
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 512));
    p = make(&made);
    ASSERT_EQ(p.n_execs, 0);
    ASSERT_EQ(p.ops.n, 0);
    np_program_free(&p);
    free_scene(&made);
}

/* Copies of two execs each. The first block is written first, but the second one's copy is before it in the queue. It
 * waits for it as long as its bytes are its own; then it overtakes. */
static void copies_go_in_the_order_of_their_keys(void **state)
{
    static const life_shape lives[] = {{.bytes = 2048, .begin = 0, .end = 9}, {.bytes = 2048, .begin = 0, .end = 9}};
    static const use_shape uses[] = {
        {0, 0, NEAP_ACCESS_WRITE}, {1, 1, NEAP_ACCESS_WRITE}, {8, 0, NEAP_ACCESS_READ}, {9, 1, NEAP_ACCESS_READ}};
    static const np_link slow = {.out = 1.1, .in = 4};
    period_shape shape = {.n_slots = 10, ARRAY(lives), ARRAY(uses)};
    scene made;
    np_program p;
    (void)state;
    make_scene(&shape, &made);
    add_swap(&made, 0, 0, 0);
    add_swap(&made, 1, 1, 0);
    ASSERT_TRUE(make_layout(&made, &slow, NULL, 4096));
    p = make(&made);
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true), event_of_exec(&p, 0));
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 1, NP_STREAM_OUT, true), event_of_exec(&p, 1));
    np_program_free(&p);
    made.swaps.items[0].out_key = made.swaps.items[1].out_key + 1;
    p = make(&made);
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true), event_of_exec(&p, 1));
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 1, NP_STREAM_OUT, true), event_of_exec(&p, 1));
    ASSERT_EQ(p.ops.items[p.events.items[event_of_exec(&p, 1)].first_op + 1].index, 1);
    np_program_free(&p);
    made.layout.left.items[0].absent_from = 1;
    p = make(&made);
    ASSERT_EQ(find_op(&p, NP_OP_OUT, 0, NP_STREAM_OUT, true), event_of_exec(&p, 0));
    np_program_free(&p);
    free_scene(&made);
}

/* ---- bad arguments ---- */

static neap_status try_make(const scene *made)
{
    np_program program;
    neap_status status =
        np_program_make(&made->timeline, made->swaps.items, (uint32_t)made->swaps.n, &made->layout, NULL, &program);
    if (status == NEAP_OK) {
        np_program_free(&program);
    }
    return status;
}

static void refuses_what_does_not_fit_together(void **state)
{
    period_shape shape = {.n_slots = 6, .lives = one_away, .n_lives = 2, .uses = uses_one_away, .n_uses = 4};
    scene made;
    np_left *left;
    np_placed *placed;
    (void)state;
    make_scene(&shape, &made);
    add_swap(&made, 0, 0, 0);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 4096));
    left = made.layout.left.items;
    placed = made.layout.placed.items;
#define WITH(field, value)                                 \
    do {                                                   \
        __typeof__(field) kept = field;                    \
        field = (value);                                   \
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, try_make(&made)); \
        field = kept;                                      \
        ASSERT_OK(try_make(&made));                        \
    } while (0)
    WITH(left->swap, 1);
    WITH(left->end, 0);
    WITH(left->absent_from, 0);
    WITH(left->back_from, left->absent_from);
    WITH(left->back_from, 6);
    WITH(left->absent_from, 3); /* the other block is malloc'd before that */
    WITH(made.swaps.items->in_after, 5);
    WITH(placed->bytes, 512);
    WITH(placed->bytes, 0);
    WITH(placed->at, 512);
    WITH(placed->offset, 512);
    WITH(placed->place, 1);
    WITH(made.layout.footprint, 2047);
    WITH(made.layout.placed.n, 1);
    WITH(made.layout.left.n, 0); /* they are in each other's way then */
#undef WITH
    free_scene(&made);
}

static void refuses_too_many_streams(void **state)
{
    static const uint32_t streams[] = {0, NP_MAX_STREAMS, 0, 0};
    period_shape shape = {
        .n_slots = 4, .streams = streams, .lives = two_in_turn, .n_lives = 3, .uses = uses_in_turn, .n_uses = 5};
    scene made;
    (void)state;
    make_scene(&shape, &made);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 512));
    ASSERT_STATUS(NEAP_TOO_LARGE, try_make(&made));
    free_scene(&made);
}

/* ---- at random ---- */

static void follow_all(const random_scene *random, uint64_t first_seed, uint32_t n, uint32_t *n_swaps)
{
    for (uint32_t i = 0; i < n; i++) {
        np_rng rng = np_rng_make(first_seed + i);
        scene made;
        neap_error error = {""};
        np_program p;
        if (!make_random_scene(random, &rng, &made)) {
            continue;
        }
        p = make(&made);
        (void)np_program_check_skipping(&p, &(np_skipping){50, i}, &error);
        ASSERT_STR_EQ(error.text, "");
        ASSERT_EQ(count_ops(&p, NP_OP_OUT), p.swaps.n);
        ASSERT_EQ(count_ops(&p, NP_OP_IN), p.swaps.n);
        ASSERT_EQ(p.swaps.n, made.layout.left.n);
        *n_swaps += (uint32_t)p.swaps.n;
        np_program_free(&p);
        free_scene(&made);
    }
}

static void random_programs_are_right(void **state)
{
    uint32_t n = TEST_SANITIZED ? 300 : 5000;
    uint32_t n_swaps = 0;
    random_scene random = {.max_slots = 12, .max_lives = 10, .max_streams = 3, .swap_share = 60, .max_pages = 8};
    (void)state;
    follow_all(&random, 0, n, &n_swaps);
    random.long_lives = true;
    random.max_slots = random.max_lives = 30;
    follow_all(&random, 100000, n / 2, &n_swaps);
    random.max_slots = random.max_lives = 60;
    random.max_streams = 16;
    random.swap_share = 90;
    follow_all(&random, 200000, n / 10, &n_swaps);
    random.max_streams = 1;
    follow_all(&random, 300000, n / 10, &n_swaps);
    ASSERT_GT(n_swaps, n);
}

/* ---- recordings ---- */

static void open_held(recorded *r, const char *name)
{
    np_timeline_options options = {.alignment = 512, .slower = 1, .held = true};
    recorded_open(r, name);
    np_timeline_free(&r->timeline);
    ASSERT_OK(np_timeline_make(&r->period, &options, NULL, &r->timeline));
}

/* Planned by the paper's quick method, at four fifths of the peak. */
static void recorded_programs_are_right(void **state)
{
    static const char *const names[] = {"vgg16-100-32", "gpt2-8"};
    neap_link named;
    np_link link;
    (void)state;
    ASSERT_OK(neap_link_find("h200-pcie5", &named));
    link = np_link_from(&named);
    for (int i = 0; i < 2; i++) {
        recorded r;
        np_planner planner;
        np_judged judged = {0};
        np_program p;
        neap_error error = {""};
        open_held(&r, names[i]);
        planner = (np_planner){.timeline = &r.timeline, .link = link, .min_block = 1 << 20, .page = 2 << 20};
        planner.held = true;
        planner.n_threads = 1;
        planner.deadline_ns = UINT64_MAX; /* it ends by itself, soon */
        planner.error = &error;
        ASSERT_OK(np_simulator_create(&r.timeline, &link, &planner.simulator));
        ASSERT_OK(np_plan_within_limit(&planner, NEAP_SWAP_SWDOA, r.timeline.peak_load / 5 * 4, &judged));
        ASSERT_OK(np_program_make(&r.timeline, judged.swaps.items, (uint32_t)judged.swaps.n, &judged.layout, NULL, &p));
        (void)np_program_check(&p, &error);
        ASSERT_STR_EQ(error.text, "");
        ASSERT_GT(p.swaps.n, 0);
        ASSERT_LE(count_ops(&p, NP_OP_WAIT_EXEC) + count_ops(&p, NP_OP_WAIT_IN) + count_ops(&p, NP_OP_WAIT_OUT),
                  5 * p.swaps.n);
        np_program_free(&p);
        np_judged_free(&judged, r.timeline.memory);
        np_simulator_free(planner.simulator);
        recorded_close(&r);
    }
}

/* ---- out of memory ---- */

static neap_status make_and_check(const neap_memory *memory, void *user)
{
    const scene *made = user;
    np_program program;
    neap_status status =
        np_program_make(&made->timeline, made->swaps.items, (uint32_t)made->swaps.n, &made->layout, memory, &program);
    if (status == NEAP_OK) {
        status = np_program_check(&program, NULL);
        np_program_free(&program);
    }
    return status;
}

static void survives_without_memory(void **state)
{
    random_scene random = {.max_slots = 30, .max_lives = 20, .max_streams = 3, .swap_share = 60, .max_pages = 8};
    (void)state;
    for (uint64_t seed = 0, n = 0; n < 5; seed++) {
        np_rng rng = np_rng_make(seed);
        scene made;
        if (make_random_scene(&random, &rng, &made)) {
            ASSERT_GT(test_memory_fail_each(make_and_check, &made), 20);
            free_scene(&made);
            n++;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_needs_no_waits),
        cmocka_unit_test(streams_wait_where_bytes_change_hands),
        cmocka_unit_test(a_swap_is_ordered),
        cmocka_unit_test(a_copy_out_does_not_wait_for_reads),
        cmocka_unit_test(what_is_away_at_the_start_is_said_so),
        cmocka_unit_test(long_lives_take_turns_and_leaks_have_no_place),
        cmocka_unit_test(a_period_without_execs_is_a_program),
        cmocka_unit_test(copies_go_in_the_order_of_their_keys),
        cmocka_unit_test(refuses_what_does_not_fit_together),
        cmocka_unit_test(refuses_too_many_streams),
        cmocka_unit_test(random_programs_are_right),
        cmocka_unit_test(recorded_programs_are_right),
        cmocka_unit_test(survives_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
