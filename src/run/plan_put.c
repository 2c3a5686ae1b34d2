/* plan_put.c: origins and patterns to bytes.
 *
 * What follows from the rest is left out: indices that only count (first uses, operations and places, numbers of execs),
 * the key of an exec (it is that of its name) and the size of a malloc that has a life. So there are fewer things that
 * could be wrong in a file. */
#include <string.h>

#include "base/map.h"
#include "run/plan_code.h"

/* ---- origin ---- */

static void put_string(np_plan_writer *w, const char *text)
{
    np_plan_put_text(w, text, strlen(text));
}

void np_plan_put_origin(np_plan_writer *w, const np_plan_origin *origin)
{
    put_string(w, origin->version);
    put_string(w, origin->machine);
    put_string(w, origin->program);
    np_plan_put_number(w, origin->command);
    put_string(w, origin->device);
    np_plan_put_number(w, origin->page_bytes);
    np_plan_put_number(w, origin->n_pages);
    np_plan_put_number(w, origin->n_streams);
    np_plan_put_number(w, origin->limit);
    np_plan_put_double(w, origin->limit_share);
    np_plan_put_number(w, origin->min_block);
    np_plan_put_number(w, origin->seed);
    np_plan_put_double(w, origin->link.out_gbs);
    np_plan_put_double(w, origin->link.in_gbs);
    np_plan_put_double(w, origin->link.both_gbs);
    np_plan_put_double(w, origin->link.latency_us);
}

/* ---- patterns ---- */

/* Numbers the names by their keys. Names of equal keys are the same to a program. */
static void put_names(np_plan_writer *w, const np_pattern *pattern, np_map *numbers)
{
    const np_program *program = &pattern->program;
    np_array(const char *) names = {0};
    for (size_t i = 0; i < program->events.n && w->status == NEAP_OK; i++) {
        const np_program_event *event = &program->events.items[i];
        uint32_t number;
        bool found;
        if (event->kind != NEAP_EVENT_EXEC) {
            continue;
        }
        w->status = np_map_get_or_put(numbers, event->key, (uint32_t)names.n, &number, &found);
        if (w->status == NEAP_OK && !found) {
            w->status = np_array_push(w->memory, &names, pattern->names + pattern->name_at[event->subject]);
        }
    }
    np_plan_put_number(w, names.n);
    for (size_t i = 0; i < names.n; i++) {
        put_string(w, names.items[i]);
    }
    np_array_free(w->memory, &names);
}

static void put_life(np_plan_writer *w, const np_pattern *pattern, uint32_t index)
{
    const np_program_life *life = &pattern->program.lives.items[index];
    np_plan_put_number(w, life->bytes);
    np_plan_put_number(w, life->id);
    np_plan_put_number(w, (life->persistent ? NP_PLAN_PERSISTENT : 0u) | (life->swapped ? NP_PLAN_SWAPPED : 0u));
    np_plan_put_number(w, life->begin);
    np_plan_put_number(w, life->end);
    np_plan_put_number(w, life->n_places);
    np_plan_put_number(w, life->n_placed);
    for (uint32_t i = 0; i < life->n_places * life->n_placed; i++) {
        const np_placed *placed = &pattern->program.placed.items[life->first_placed + i];
        np_plan_put_number(w, placed->bytes);
        np_plan_put_number(w, placed->offset);
    }
}

static void put_ops(np_plan_writer *w, const np_program *program, const np_program_event *event)
{
    uint32_t n = (uint32_t)event->n_before + event->n_after;
    if (event->kind == NEAP_EVENT_EXEC) {
        np_plan_put_number(w, event->n_before);
    }
    np_plan_put_number(w, event->n_after);
    for (uint32_t i = 0; i < n; i++) {
        const np_op *op = &program->ops.items[event->first_op + i];
        np_plan_put_number(w, (uint64_t)op->index * 8 + op->kind);
        if (op->kind < NP_OP_OUT) {
            np_plan_put_number(w, op->stream);
        }
    }
}

static void put_event(np_plan_writer *w, const np_pattern *pattern, const np_program_event *event,
                      const np_map *numbers)
{
    const np_program *program = &pattern->program;
    np_plan_put_number(w, event->kind);
    if (event->kind == NEAP_EVENT_EXEC) {
        np_plan_put_number(w, np_map_get(numbers, event->key));
        np_plan_put_number(w, event->stream);
        np_plan_put_number(w, pattern->exec_ns[event->subject]);
        np_plan_put_number(w, event->n_uses);
        for (uint32_t i = 0; i < event->n_uses; i++) {
            const np_program_use *use = &program->uses.items[event->first_use + i];
            np_plan_put_number(w, (uint64_t)use->life * 4 + use->kind);
        }
    } else if (event->subject == NP_NO_LIFE) {
        np_plan_put_number(w, 0);
        np_plan_put_number(w, event->key);
    } else {
        np_plan_put_number(w, (uint64_t)event->subject + 1);
    }
    put_ops(w, program, event);
}

void np_plan_put_pattern(np_plan_writer *w, const np_pattern *pattern)
{
    const np_program *program = &pattern->program;
    np_map numbers;
    np_map_init(&numbers, w->memory);
    np_plan_put_number(w, program->footprint);
    np_plan_put_number(w, program->peak_load);
    np_plan_put_double(w, program->period_ns);
    np_plan_put_double(w, program->overhead);
    put_names(w, pattern, &numbers);
    np_plan_put_number(w, program->lives.n);
    for (uint32_t i = 0; i < program->lives.n && w->status == NEAP_OK; i++) {
        put_life(w, pattern, i);
    }
    np_plan_put_number(w, program->swaps.n);
    for (size_t i = 0; i < program->swaps.n && w->status == NEAP_OK; i++) {
        const np_program_swap *swap = &program->swaps.items[i];
        np_plan_put_number(w, swap->life);
        np_plan_put_number(w, swap->begin);
        np_plan_put_number(w, swap->end);
        np_plan_put_number(w, swap->starts_absent);
    }
    np_plan_put_number(w, program->events.n);
    for (size_t i = 0; i < program->events.n && w->status == NEAP_OK; i++) {
        put_event(w, pattern, &program->events.items[i], &numbers);
    }
    np_map_free(&numbers);
}
