/* Programs that are right, and the same ones broken in one place: the checker must see it. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "run/make_program.h"
#include "testing.h"

enum { N_KINDS = NP_OP_IN + 1 };

static const random_scene small = {
    .max_slots = 20, .max_lives = 16, .max_streams = 3, .swap_share = 60, .max_pages = 8, .long_lives = false};

/* The next random program from a seed on. */
static np_program next_program(const random_scene *random, uint64_t *seed)
{
    np_program program;
    scene made;
    for (;;) {
        np_rng rng = np_rng_make((*seed)++);
        if (make_random_scene(random, &rng, &made)) {
            break;
        }
    }
    ASSERT_OK(np_program_make(&made.timeline, made.swaps.items, (uint32_t)made.swaps.n, &made.layout, NULL, &program));
    free_scene(&made);
    return program;
}

/* ---- operations left out ---- */

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

static void insert_op(np_program *program, uint32_t time, bool after, np_op op)
{
    np_program_event *event = &program->events.items[time];
    uint32_t index = event->first_op + event->n_before;
    ASSERT_OK(np_array_push(program->memory, &program->ops, op));
    memmove(&program->ops.items[index + 1], &program->ops.items[index],
            (program->ops.n - 1 - index) * sizeof op);
    program->ops.items[index] = op;
    *(after ? &event->n_after : &event->n_before) += 1;
    for (size_t t = time + 1; t < program->events.n; t++) {
        program->events.items[t].first_op++;
    }
}

static void copy_ops(const np_program *program, np_op *ops, np_program_event *events)
{
    memcpy(ops, program->ops.items, program->ops.n * sizeof *ops);
    memcpy(events, program->events.items, program->events.n * sizeof *events);
}

/* Every copy is needed, and nearly every wait: a few are implied by each other, in a circle of laps. */
static void misses_what_is_left_out(void **state)
{
    uint32_t n_all[N_KINDS] = {0};
    uint32_t n_missed[N_KINDS] = {0};
    uint64_t seed = 0;
    (void)state;
    for (uint32_t round = 0; round < (TEST_SANITIZED ? 30 : 300); round++) {
        np_program program = next_program(&small, &seed);
        size_t n_ops = program.ops.n;
        np_op *ops = calloc(n_ops + 1, sizeof *ops);
        np_program_event *events = calloc(program.events.n, sizeof *events);
        neap_error error;
        ASSERT_TRUE(ops && events);
        copy_ops(&program, ops, events);
        for (uint32_t i = 0; i < n_ops; i++) {
            np_op op = remove_op(&program, i);
            ASSERT_TRUE(np_program_is_valid(&program));
            n_all[op.kind]++;
            n_missed[op.kind] += np_program_check(&program, &error) == NEAP_OK;
            program.ops.n = n_ops;
            memcpy(program.ops.items, ops, n_ops * sizeof *ops);
            memcpy(program.events.items, events, program.events.n * sizeof *events);
        }
        ASSERT_OK(np_program_check(&program, &error));
        free(ops);
        free(events);
        np_program_free(&program);
    }
    for (int kind = 0; kind < N_KINDS; kind++) {
        print_message("kind %d: %u of %u\n", kind, n_missed[kind], n_all[kind]);
    }
    (void)insert_op;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_what_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
