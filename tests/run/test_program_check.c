/* Programs that are right, and the same ones broken in one place: the checker must see it. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "run/make_program.h"
#include "run/program_arena.h"
#include "testing.h"

enum { N_KINDS = NP_OP_IN + 1 };

static const np_link fast = {.out = 100, .in = 100};

/* ---- breaking programs ---- */

/* A program and its operations and events as they were. */
typedef struct breakable {
    np_program program;
    np_op *ops;
    np_program_event *events;
    size_t n_ops;
} breakable;

static void keep(breakable *b)
{
    b->n_ops = b->program.ops.n;
    b->ops = calloc(b->n_ops + 1, sizeof *b->ops);
    b->events = calloc(b->program.events.n, sizeof *b->events);
    ASSERT_TRUE(b->ops && b->events);
    memcpy(b->events, b->program.events.items, b->program.events.n * sizeof *b->events);
    if (b->n_ops > 0) {
        memcpy(b->ops, b->program.ops.items, b->n_ops * sizeof *b->ops);
    }
}

static void mend(breakable *b)
{
    b->program.ops.n = b->n_ops;
    memcpy(b->program.events.items, b->events, b->program.events.n * sizeof *b->events);
    if (b->n_ops > 0) {
        memcpy(b->program.ops.items, b->ops, b->n_ops * sizeof *b->ops);
    }
}

static void drop(breakable *b)
{
    np_program_free(&b->program);
    free(b->ops);
    free(b->events);
}

static np_op remove_op(np_program *program, uint32_t index)
{
    np_op op = program->ops.items[index];
    memmove(&program->ops.items[index], &program->ops.items[index + 1], (--program->ops.n - index) * sizeof op);
    for (size_t t = 0; t < program->events.n; t++) {
        np_program_event *event = &program->events.items[t];
        if (event->first_op > index) {
            event->first_op--;
        } else if (index < event->first_op + event->n_before) {
            event->n_before--;
        } else if (index < event->first_op + event->n_before + event->n_after) {
            event->n_after--;
        }
    }
    return op;
}

/* Last of those after an event. */
static void insert_op(np_program *program, uint32_t time, np_op op)
{
    np_program_event *event = &program->events.items[time];
    uint32_t index = event->first_op + event->n_before + event->n_after;
    ASSERT_OK(np_array_push(program->memory, &program->ops, op));
    memmove(&program->ops.items[index + 1], &program->ops.items[index], (program->ops.n - 1 - index) * sizeof op);
    program->ops.items[index] = op;
    event->n_after++;
    for (size_t t = time + 1; t < program->events.n; t++) {
        program->events.items[t].first_op++;
    }
}

static uint32_t find_op(const np_program *program, np_op_kind kind)
{
    for (uint32_t i = 0; i < program->ops.n; i++) {
        if (program->ops.items[i].kind == kind) {
            return i;
        }
    }
    test_fail(__FILE__, __LINE__, "there is no operation of kind %d", kind);
}

static uint32_t event_of_exec(const np_program *program, uint32_t exec)
{
    for (uint32_t t = 0; t < program->events.n; t++) {
        if (program->events.items[t].kind == NEAP_EVENT_EXEC && program->events.items[t].subject == exec) {
            return t;
        }
    }
    test_fail(__FILE__, __LINE__, "there is no exec %u", exec);
}

#define ASSERT_BROKEN(p, why)                                       \
    do {                                                            \
        neap_error error_ = {""};                                   \
        ASSERT_TRUE(np_program_is_valid(p));                        \
        ASSERT_STATUS(NEAP_INTERNAL, np_program_check(p, &error_)); \
        ASSERT_CONTAINS(error_.text, why);                          \
    } while (0)

/* ---- by hand ---- */

/* Block 0 is away while block 1 is in its bytes; block 2 stands beside them. Two streams. */
static void make_small(breakable *b, scene *made)
{
    static const life_shape lives[] = {{.bytes = 2048, .begin = 0, .end = 5},
                                       {.bytes = 2048, .begin = 2, .end = 3},
                                       {.bytes = 1024, .begin = 0, .end = 5}};
    static const use_shape uses[] = {{0, 0, NEAP_ACCESS_WRITE}, {0, 2, NEAP_ACCESS_WRITE}, {2, 1, NEAP_ACCESS_WRITE},
                                     {3, 1, NEAP_ACCESS_READ},  {5, 0, NEAP_ACCESS_READ},  {5, 2, NEAP_ACCESS_READ}};
    static const uint32_t streams[] = {0, 0, 1, 1, 0, 0};
    period_shape shape = {.n_slots = 6, .streams = streams, .lives = lives, .n_lives = 3, .uses = uses, .n_uses = 6};
    make_scene(&shape, made);
    add_swap(made, 0, 0, 0);
    ASSERT_TRUE(make_layout(made, &fast, NULL, 4096));
    ASSERT_OK(
        np_program_make(&made->timeline, made->swaps.items, (uint32_t)made->swaps.n, &made->layout, NULL, &b->program));
    ASSERT_EQ(b->program.swaps.n, 1);
    ASSERT_OK(np_program_check(&b->program, NULL));
    keep(b);
}

static void sees_copies_that_are_missing_or_moved(void **state)
{
    breakable b;
    scene made;
    np_program *p = &b.program;
    np_op op;
    (void)state;
    make_small(&b, &made);
    (void)remove_op(p, find_op(p, NP_OP_OUT));
    ASSERT_BROKEN(p, "overwrites the data of life");
    mend(&b);
    (void)remove_op(p, find_op(p, NP_OP_IN));
    ASSERT_BROKEN(p, "uses what is not there: life");
    mend(&b);
    op = remove_op(p, find_op(p, NP_OP_OUT)); /* the other block is malloc'd by then */
    insert_op(p, event_of_exec(p, 2), op);
    ASSERT_BROKEN(p, "overwrites the data of life");
    mend(&b);
    op = remove_op(p, find_op(p, NP_OP_IN)); /* the other block is still there */
    insert_op(p, event_of_exec(p, 3), (np_op){.kind = NP_OP_WAIT_OUT, .index = 0, .stream = NP_STREAM_IN});
    insert_op(p, event_of_exec(p, 3), op);
    ASSERT_BROKEN(p, "overwrites the data of life");
    mend(&b);
    op = remove_op(p, find_op(p, NP_OP_IN)); /* too late */
    insert_op(p, event_of_exec(p, 5), op);
    ASSERT_BROKEN(p, "uses what is not there: life");
    mend(&b);
    op = p->ops.items[find_op(p, NP_OP_OUT)]; /* twice */
    insert_op(p, event_of_exec(p, 1), op);
    ASSERT_BROKEN(p, "already away");
    mend(&b);
    op = p->ops.items[find_op(p, NP_OP_IN)];
    insert_op(p, event_of_exec(p, 4), op);
    ASSERT_BROKEN(p, "not away");
    drop(&b);
    free_scene(&made);
}

static void sees_waits_that_are_missing(void **state)
{
    static const struct {
        np_op_kind kind;
        uint32_t stream;
        const char *why;
    } waits[] = {
        {NP_OP_WAIT_EXEC, NP_STREAM_OUT, "before it is written"},
        {NP_OP_WAIT_OUT, 1, "may use its bytes too early"},
        {NP_OP_WAIT_EXEC, NP_STREAM_IN, "copied in before it is out"},
        {NP_OP_WAIT_IN, 0, "may use its bytes too early"},
    };
    breakable b;
    scene made;
    np_program *p = &b.program;
    (void)state;
    make_small(&b, &made);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        uint32_t n_removed = 0;
        for (uint32_t k = 0; k < p->ops.n; k++) {
            if (p->ops.items[k].kind == waits[i].kind && p->ops.items[k].stream == waits[i].stream) {
                (void)remove_op(p, k);
                n_removed++;
                break;
            }
        }
        ASSERT_EQ(n_removed, 1);
        ASSERT_BROKEN(p, waits[i].why);
        mend(&b);
    }
    drop(&b);
    free_scene(&made);
}

static void sees_other_faults(void **state)
{
    breakable b;
    scene made;
    np_program *p = &b.program;
    np_program_event *exec;
    uint32_t second, third;
    uint64_t offset;
    (void)state;
    make_small(&b, &made);
    second = scene_life(&made, 1);
    third = scene_life(&made, 2);
    p->swaps.items[0].starts_absent = true;
    ASSERT_BROKEN(p, "starts absent, and does not live");
    p->swaps.items[0].starts_absent = false;
    offset = p->placed.items[p->lives.items[third].first_placed].offset; /* onto another's bytes */
    p->placed.items[p->lives.items[third].first_placed].offset = 0;
    ASSERT_BROKEN(p, "overwrites the data of life");
    p->placed.items[p->lives.items[third].first_placed].offset = offset;
    exec = &p->events.items[event_of_exec(p, 5)]; /* of a block that is free by then */
    p->uses.items[exec->first_use].life = second;
    ASSERT_BROKEN(p, "uses what is not there: life");
    p->uses.items[exec->first_use].life = scene_life(&made, 0);
    p->events.items[event_of_exec(p, 3)].stream = 0; /* whose end nobody on stream 1 waits for */
    ASSERT_BROKEN(p, "");
    mend(&b);
    insert_op(p, 0,
              (np_op){.kind = NP_OP_OUT, .index = 0, .stream = NP_STREAM_OUT}); /* nothing but the order is wrong */
    ASSERT_BROKEN(p, "");
    mend(&b);
    ASSERT_OK(np_program_check(p, NULL));
    drop(&b);
    free_scene(&made);
}

/* A persistent block that is written, and away over the period's end, or not. */
static void sees_a_wrong_start(void **state)
{
    static const life_shape lives[] = {{.bytes = 4096, .persistent = true}, {.bytes = 4096, .begin = 0, .end = 1}};
    static const use_shape uses[] = {{3, 0, NEAP_ACCESS_UNKNOWN}, {4, 0, NEAP_ACCESS_WRITE}, {0, 1, NEAP_ACCESS_WRITE}};
    period_shape shape = {.n_slots = 8, .lives = lives, .n_lives = 2, .uses = uses, .n_uses = 3};
    scene made;
    np_program p;
    (void)state;
    make_scene(&shape, &made);
    add_swap(&made, 0, made.timeline.gaps.items[0].from, 0);
    ASSERT_TRUE(make_layout(&made, &fast, NULL, 4096));
    ASSERT_OK(np_program_make(&made.timeline, made.swaps.items, 1, &made.layout, NULL, &p));
    ASSERT_OK(np_program_check(&p, NULL));
    p.swaps.items[0].starts_absent = !p.swaps.items[0].starts_absent;
    ASSERT_BROKEN(&p, "");
    np_program_free(&p);
    free_scene(&made);
}

/* Waits for copies of a swap that is never done. */
static void sees_waits_for_nothing(void **state)
{
    breakable b;
    scene made;
    np_program *p = &b.program;
    np_program_swap swap;
    (void)state;
    make_small(&b, &made);
    swap = p->swaps.items[0];
    ASSERT_OK(np_array_push(p->memory, &p->swaps, swap));
    insert_op(p, 0, (np_op){.kind = NP_OP_WAIT_OUT, .index = 1, .stream = 0});
    ASSERT_BROKEN(p, "waits for what is never given");
    drop(&b);
    free_scene(&made);
}

/* ---- at random ---- */

static const random_scene small = {
    .max_slots = 20, .max_lives = 16, .max_streams = 3, .swap_share = 60, .max_pages = 8, .long_lives = true};

/* The next random program from a seed on. */
static np_program next_program(const random_scene *random, uint64_t *seed)
{
    np_program program;
    scene made;
    np_rng rng;
    do {
        rng = np_rng_make((*seed)++);
    } while (!make_random_scene(random, &rng, &made));
    ASSERT_OK(np_program_make(&made.timeline, made.swaps.items, (uint32_t)made.swaps.n, &made.layout, NULL, &program));
    free_scene(&made);
    return program;
}

/* Every copy is needed, and nearly every wait. */
static void needs_what_is_there(void **state)
{
    uint32_t n_all[N_KINDS] = {0};
    uint32_t n_needless[N_KINDS] = {0};
    uint64_t seed = 0;
    (void)state;
    for (uint32_t round = 0; round < (TEST_SANITIZED ? 30 : 300); round++) {
        breakable b = {.program = next_program(&small, &seed)};
        keep(&b);
        for (uint32_t i = 0; i < b.n_ops; i++) {
            np_op op = remove_op(&b.program, i);
            ASSERT_TRUE(np_program_is_valid(&b.program));
            n_all[op.kind]++;
            n_needless[op.kind] += np_program_check(&b.program, NULL) == NEAP_OK;
            mend(&b);
        }
        ASSERT_OK(np_program_check(&b.program, NULL));
        drop(&b);
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        ASSERT_GT(n_all[kind], 10);
    }
    ASSERT_EQ(n_needless[NP_OP_OUT], 0);
    ASSERT_EQ(n_needless[NP_OP_IN], 0);
    ASSERT_LE(20 * n_needless[NP_OP_WAIT_IN], n_all[NP_OP_WAIT_IN]);
    ASSERT_LE(20 * n_needless[NP_OP_WAIT_OUT], n_all[NP_OP_WAIT_OUT]);
    ASSERT_LE(20 * n_needless[NP_OP_WAIT_EXEC], n_all[NP_OP_WAIT_EXEC]);
}

/* Two blocks change places with each other: seen wherever their sizes or times differ, harmless elsewhere; at least it is
 * seen often. And whatever is wrong at the start is seen. */
static void sees_random_faults(void **state)
{
    uint64_t seed = 1000000;
    uint32_t n_seen = 0, n_moved = 0;
    (void)state;
    for (uint32_t round = 0; round < (TEST_SANITIZED ? 30 : 300); round++) {
        np_program p = next_program(&small, &seed);
        for (size_t i = 0; i < p.swaps.n; i++) {
            p.swaps.items[i].starts_absent = !p.swaps.items[i].starts_absent;
            ASSERT_STATUS(NEAP_INTERNAL, np_program_check(&p, NULL));
            p.swaps.items[i].starts_absent = !p.swaps.items[i].starts_absent;
        }
        for (size_t i = 0; i < p.placed.n; i++) {
            uint64_t offset = p.placed.items[i].offset;
            if (offset > 0) {
                p.placed.items[i].offset = 0;
                n_moved++;
                n_seen += np_program_check(&p, NULL) != NEAP_OK;
                p.placed.items[i].offset = offset;
            }
        }
        ASSERT_OK(np_program_check(&p, NULL));
        np_program_free(&p);
    }
    ASSERT_GT(n_seen, n_moved / 2);
}

/* ---- validity ---- */

#define INVALID(field, value)                                    \
    do {                                                         \
        __typeof__(field) kept_ = field;                         \
        field = (value);                                         \
        ASSERT_FALSE(np_program_is_valid(p));                    \
        ASSERT_STATUS(NEAP_INTERNAL, np_program_check(p, NULL)); \
        field = kept_;                                           \
        ASSERT_TRUE(np_program_is_valid(p));                     \
    } while (0)

static void validity_looks_at_everything(void **state)
{
    breakable b;
    scene made;
    np_program *p = &b.program;
    np_program_event *exec;
    np_op *wait;
    (void)state;
    make_small(&b, &made);
    exec = &p->events.items[event_of_exec(p, 5)];
    wait = &p->ops.items[find_op(p, NP_OP_WAIT_EXEC)];
    INVALID(p->n_execs, p->n_execs + 1);
    INVALID(p->events.n, 0);
    INVALID(p->ops.n, p->ops.n - 1);
    INVALID(p->uses.n, p->uses.n - 1);
    INVALID(p->placed.n, p->placed.n - 1);
    INVALID(exec->subject, 4);
    INVALID(exec->stream, NP_MAX_STREAMS);
    INVALID(exec->first_use, exec->first_use + 1);
    INVALID(exec->first_op, exec->first_op + 1);
    INVALID(exec->n_uses, 7);
    INVALID(exec->n_after, 200);
    INVALID(exec->kind, 3);
    INVALID(p->events.items[0].subject, (uint32_t)p->lives.n);
    INVALID(p->events.items[0].subject, NP_NO_LIFE);
    INVALID(p->events.items[0].key, 1);
    INVALID(p->uses.items[0].life, (uint32_t)p->lives.n);
    INVALID(p->uses.items[0].kind, 3);
    INVALID(wait->index, p->n_execs);
    INVALID(wait->stream, NP_N_STREAMS);
    INVALID(wait->kind, N_KINDS);
    INVALID(p->ops.items[find_op(p, NP_OP_WAIT_IN)].index, 1);
    INVALID(p->ops.items[find_op(p, NP_OP_OUT)].index, 1);
    INVALID(p->ops.items[find_op(p, NP_OP_OUT)].stream, 0);
    INVALID(p->ops.items[find_op(p, NP_OP_IN)].stream, 0);
    INVALID(p->lives.items[0].n_placed, 0);
    INVALID(p->lives.items[0].n_places, 0);
    INVALID(p->lives.items[0].first_placed, 1);
    INVALID(p->lives.items[0].begin, p->lives.items[0].end);
    INVALID(p->lives.items[0].end, p->lives.items[0].end - 1);
    INVALID(p->lives.items[0].persistent, true);
    INVALID(p->lives.items[0].bytes, 5000);
    INVALID(p->placed.items[0].life, 1);
    INVALID(p->placed.items[0].place, 1);
    INVALID(p->placed.items[0].at, 512);
    INVALID(p->placed.items[0].bytes, 0);
    INVALID(p->placed.items[0].offset, p->footprint);
    INVALID(p->swaps.items[0].life, (uint32_t)p->lives.n);
    INVALID(p->swaps.items[0].life, scene_life(&made, 1));
    INVALID(p->swaps.items[0].end, 0);
    INVALID(p->swaps.items[0].end, 4096);
    drop(&b);
    free_scene(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sees_copies_that_are_missing_or_moved),
        cmocka_unit_test(sees_waits_that_are_missing),
        cmocka_unit_test(sees_other_faults),
        cmocka_unit_test(sees_a_wrong_start),
        cmocka_unit_test(sees_waits_for_nothing),
        cmocka_unit_test(needs_what_is_there),
        cmocka_unit_test(sees_random_faults),
        cmocka_unit_test(validity_looks_at_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
