/* program_valid.c: is every index of a program within its range? What such a program then does is another question
 * (program_check.c), and one that may only be asked of a valid one. */
#include "base/checked.h"
#include "device/device.h"
#include "run/program.h"

static bool is_valid_op(const np_program *program, const np_op *op)
{
    switch (op->kind) {
    case NP_OP_WAIT_EXEC:
        return op->index < program->n_execs && op->stream < NP_N_STREAMS;
    case NP_OP_WAIT_OUT:
    case NP_OP_WAIT_IN:
        return op->index < program->swaps.n && op->stream < NP_N_STREAMS;
    case NP_OP_OUT:
        return op->index < program->swaps.n && op->stream == NP_STREAM_OUT;
    case NP_OP_IN:
        return op->index < program->swaps.n && op->stream == NP_STREAM_IN;
    default:
        return false;
    }
}

static bool is_within(uint64_t first, uint64_t n, size_t n_all)
{
    return first <= n_all && n <= n_all - first;
}

/* Operations and uses stand in the order of events, without holes. */
static bool is_valid_event(const np_program *program, uint32_t time, size_t *n_ops, size_t *n_uses, uint32_t *n_execs)
{
    const np_program_event *event = &program->events.items[time];
    uint32_t n = (uint32_t)event->n_before + event->n_after;
    if (event->first_op != *n_ops || !is_within(event->first_op, n, program->ops.n)) {
        return false;
    }
    *n_ops += n;
    if (event->kind == NEAP_EVENT_EXEC) {
        if (event->subject != *n_execs || event->stream >= NP_MAX_STREAMS || event->first_use != *n_uses ||
            !is_within(event->first_use, event->n_uses, program->uses.n)) {
            return false;
        }
        *n_uses += event->n_uses;
        ++*n_execs;
        return true;
    }
    if (event->kind > NEAP_EVENT_EXEC || event->n_uses > 0 || event->stream > 0 || event->n_before > 0) {
        return false;
    }
    return event->subject == NP_NO_LIFE || event->subject < program->lives.n;
}

/* The places of a life: each has bytes from the first on, inside the arena. */
static bool is_valid_life(const np_program *program, uint32_t index, size_t *n_placed)
{
    const np_program_life *life = &program->lives.items[index];
    uint64_t n = (uint64_t)life->n_placed * life->n_places;
    uint64_t at = 0;
    if (life->first_placed != *n_placed || (n == 0 && (!life->persistent || life->swapped)) ||
        !is_within(life->first_placed, n, program->placed.n) || life->begin >= life->end ||
        life->begin >= program->events.n || life->bytes == 0 ||
        (life->persistent && (life->begin != 0 || life->end != program->events.n || life->n_places != 1)) ||
        (life->swapped && life->n_places != 1) ||
        (!life->persistent && life->n_places <= (life->end - life->begin) / program->events.n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        const np_placed *placed = &program->placed.items[life->first_placed + i];
        at = i % life->n_placed == 0 ? 0 : at;
        if (placed->life != index || placed->place != i / life->n_placed || placed->at != at || placed->bytes == 0 ||
            !is_within(placed->offset, placed->bytes, program->footprint) || !np_add_u64(at, placed->bytes, &at)) {
            return false;
        }
        if ((i + 1) % life->n_placed == 0 && at < life->bytes) {
            return false;
        }
    }
    *n_placed += n;
    return true;
}

/* A malloc and a free for every life that needs them. */
static bool is_valid_subject(const np_program *program, uint32_t index)
{
    const np_program_life *life = &program->lives.items[index];
    const np_program_event *begin = &program->events.items[life->begin];
    const np_program_event *end = &program->events.items[life->end % program->events.n];
    return life->persistent || (begin->kind == NEAP_EVENT_MALLOC && begin->subject == index &&
                                begin->key == life->bytes && end->kind == NEAP_EVENT_FREE && end->subject == index);
}

static bool is_valid_swap(const np_program *program, const np_program_swap *swap)
{
    const np_program_life *life;
    const np_placed *last;
    if (swap->life >= program->lives.n || swap->begin >= swap->end) {
        return false;
    }
    life = &program->lives.items[swap->life];
    if (!life->swapped) {
        return false;
    }
    last = &program->placed.items[life->first_placed + life->n_placed - 1];
    return swap->end <= last->at + last->bytes;
}

bool np_program_is_valid(const np_program *program)
{
    size_t n_ops = 0;
    size_t n_uses = 0;
    size_t n_placed = 0;
    uint32_t n_execs = 0;
    if (program->events.n == 0 || program->events.n > UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < program->lives.n; i++) {
        if (!is_valid_life(program, i, &n_placed)) {
            return false;
        }
    }
    for (uint32_t t = 0; t < program->events.n; t++) {
        if (!is_valid_event(program, t, &n_ops, &n_uses, &n_execs)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < program->lives.n; i++) {
        if (!is_valid_subject(program, i)) {
            return false;
        }
    }
    for (size_t i = 0; i < program->uses.n; i++) {
        if (program->uses.items[i].life >= program->lives.n || program->uses.items[i].kind > NEAP_ACCESS_UNKNOWN) {
            return false;
        }
    }
    for (size_t i = 0; i < program->ops.n; i++) {
        if (!is_valid_op(program, &program->ops.items[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < program->swaps.n; i++) {
        if (!is_valid_swap(program, &program->swaps.items[i])) {
            return false;
        }
    }
    return n_ops == program->ops.n && n_uses == program->uses.n && n_placed == program->placed.n &&
           n_execs == program->n_execs;
}
