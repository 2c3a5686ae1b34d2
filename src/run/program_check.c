/* program_check.c: follows a program for a few laps as a device would, and looks for what must not be: with vector clocks
 * for the order of works, and program_arena.c for the bytes they use. */
#include "base/hash.h"
#include "base/status.h"
#include "run/program_arena.h"

enum { LAPS = 4 };

typedef struct swap_state {
    bool away;
    bool away_at_lap_start;
    uint32_t out; /* stamps of the last copies, 0: none */
    uint32_t in;
} swap_state;

typedef struct checking {
    const np_program *program;
    neap_error *error;
    uint32_t lap;
    uint32_t time;
    const np_skipping *skipping; /* which copies out are not given */
    np_arena arena;
    swap_state *swaps;
    bool *given;      /* [work]: ever, or skipped */
    np_stamps *known; /* [work]: what is done when it is: execs, then copies out, then in */
    np_stamps now[NP_N_STREAMS];
} checking;

#define COMPLAIN(c, ...) complain((c)->error, (c)->lap, (c)->time, __VA_ARGS__)

static neap_status complain(neap_error *error, uint32_t lap, uint32_t time, const char *what, uint32_t index)
{
    return np_fail(error, NEAP_INTERNAL, "lap %u, event %u: %s %u", lap, time, what, index);
}

/* ---- bytes ---- */

static neap_status take(checking *c, uint32_t part)
{
    uint32_t life = np_arena_take(&c->arena, part);
    return life == NP_NO_LIFE ? NEAP_OK : COMPLAIN(c, "overwrites the data of life", life);
}

static bool is_in_swap(const np_part *p, const np_program_swap *swap)
{
    return swap->begin <= p->begin && p->end <= swap->end;
}

/* ---- works ---- */

static uint32_t work_of(const checking *c, uint8_t kind, uint32_t index)
{
    uint32_t n_execs = c->program->n_execs;
    bool is_out = kind == NP_OP_WAIT_OUT || kind == NP_OP_OUT;
    if (kind == NP_OP_WAIT_EXEC) {
        return index;
    }
    return n_execs + index + (is_out ? 0 : (uint32_t)c->program->swaps.n);
}

static uint32_t give(checking *c, uint32_t stream, uint32_t work)
{
    uint32_t stamp = ++c->now[stream].of[stream];
    c->known[work] = c->now[stream];
    c->given[work] = true;
    return stamp;
}

/* For what was never given, in the first lap: nothing. */
static neap_status do_wait(checking *c, const np_op *op)
{
    uint32_t work = work_of(c, op->kind, op->index);
    if (c->lap > 0 && !c->given[work]) {
        return COMPLAIN(c, "waits for what is never given: operation of kind", op->kind);
    }
    np_stamps_join(&c->now[op->stream], &c->known[work]);
    return NEAP_OK;
}

/* What was used, but not written since it came, need not be copied out, if the host still has it. */
static bool is_skipped(const checking *c, const np_program_swap *swap, uint32_t index)
{
    static const np_stamps nothing;
    uint64_t chance = np_hash_combine(c->skipping->seed, (uint64_t)c->lap << 32 | index);
    for (uint32_t i = c->arena.part_at[swap->life]; i < c->arena.part_at[swap->life + 1]; i++) {
        const np_part *p = &c->arena.parts.items[i];
        if (is_in_swap(p, swap) && (np_stamps_know(&nothing, &p->used) || !np_stamps_know(&nothing, &p->written))) {
            return false;
        }
    }
    return chance % 100 < c->skipping->per_cent;
}

static neap_status do_out(checking *c, uint32_t index)
{
    const np_program_swap *swap = &c->program->swaps.items[index];
    const np_stamps *now = &c->now[NP_STREAM_OUT];
    swap_state *state = &c->swaps[index];
    bool skipped = is_skipped(c, swap, index);
    if (state->away) {
        return COMPLAIN(c, "copied out, and already away: swap", index);
    }
    if (state->in > now->of[NP_STREAM_IN]) {
        return COMPLAIN(c, "copied out over what may still be copied in: swap", index);
    }
    state->out = skipped ? state->out : now->of[NP_STREAM_OUT] + 1;
    for (uint32_t i = c->arena.part_at[swap->life]; i < c->arena.part_at[swap->life + 1]; i++) {
        np_part *p = &c->arena.parts.items[i];
        if (!is_in_swap(p, swap)) {
            continue;
        }
        if (p->state != NP_PART_THERE) {
            return COMPLAIN(c, "copied out, and not there: swap", index);
        }
        if (!np_stamps_know(now, &p->before) || !np_stamps_know(now, &p->written)) {
            return COMPLAIN(c, "copied out before it is written: swap", index);
        }
        p->used.of[NP_STREAM_OUT] = skipped ? 0 : state->out;
        p->state = NP_PART_OUT;
    }
    state->away = true;
    c->given[work_of(c, NP_OP_OUT, index)] = true;
    if (!skipped) {
        (void)give(c, NP_STREAM_OUT, work_of(c, NP_OP_OUT, index));
    }
    return NEAP_OK;
}

static neap_status do_in(checking *c, uint32_t index)
{
    const np_program_swap *swap = &c->program->swaps.items[index];
    const np_stamps *now = &c->now[NP_STREAM_IN];
    swap_state *state = &c->swaps[index];
    if (!state->away) {
        return COMPLAIN(c, "copied in, and not away: swap", index);
    }
    if (state->out > now->of[NP_STREAM_OUT]) {
        return COMPLAIN(c, "copied in before it is out: swap", index);
    }
    state->in = now->of[NP_STREAM_IN] + 1;
    for (uint32_t i = c->arena.part_at[swap->life]; i < c->arena.part_at[swap->life + 1]; i++) {
        np_part *p = &c->arena.parts.items[i];
        neap_status status;
        if (!is_in_swap(p, swap)) {
            continue;
        }
        if (p->state != NP_PART_OUT) {
            return COMPLAIN(c, "copied in, and not out: swap", index);
        }
        status = take(c, i);
        if (status != NEAP_OK) {
            return status;
        }
        if (!np_stamps_know(now, &p->before)) {
            return COMPLAIN(c, "copied in over what may still be used: swap", index);
        }
        p->before.of[NP_STREAM_IN] = p->used.of[NP_STREAM_IN] = state->in;
    }
    state->away = false;
    (void)give(c, NP_STREAM_IN, work_of(c, NP_OP_IN, index));
    return NEAP_OK;
}

static neap_status do_ops(checking *c, uint32_t first, uint32_t n)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = first; i < first + n && status == NEAP_OK; i++) {
        const np_op *op = &c->program->ops.items[i];
        status = op->kind == NP_OP_OUT  ? do_out(c, op->index)
                 : op->kind == NP_OP_IN ? do_in(c, op->index)
                                        : do_wait(c, op);
    }
    return status;
}

/* Which of the instances of a life that takes turns is meant is not known: all that are there. */
static neap_status use_life(checking *c, const np_program_use *use, uint32_t stream)
{
    const np_program_life *life = &c->program->lives.items[use->life];
    const np_stamps *now = &c->now[stream];
    bool is_there = life->n_placed == 0; /* kept outside of the arena */
    for (uint32_t i = c->arena.part_at[use->life]; i < c->arena.part_at[use->life + 1]; i++) {
        np_part *p = &c->arena.parts.items[i];
        bool is_readable = p->state == NP_PART_OUT && !p->taken && use->kind == NEAP_ACCESS_READ;
        if (p->state != NP_PART_THERE && !is_readable) {
            if (life->n_places > 1) {
                continue;
            }
            return COMPLAIN(c, "uses what is not there: life", use->life);
        }
        if (!np_stamps_know(now, &p->before)) {
            return COMPLAIN(c, "may use its bytes too early: life", use->life);
        }
        p->used.of[stream] = now->of[stream] + 1;
        if (use->kind != NEAP_ACCESS_READ) {
            p->written.of[stream] = now->of[stream] + 1;
        }
        is_there = true;
    }
    return is_there ? NEAP_OK : COMPLAIN(c, "uses what does not live: life", use->life);
}

static neap_status do_exec(checking *c, const np_program_event *event)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < event->n_uses && status == NEAP_OK; i++) {
        status = use_life(c, &c->program->uses.items[event->first_use + i], event->stream);
    }
    (void)give(c, event->stream, work_of(c, NP_OP_WAIT_EXEC, event->subject));
    return status;
}

/* ---- lives ---- */

/* The turn of the instance malloc'd in a lap, which may be below 0. */
static uint32_t turn_of(const np_program_life *life, int64_t lap)
{
    int64_t n = life->n_places;
    return (uint32_t)((lap % n + n) % n);
}

static neap_status begin_life(checking *c, uint32_t index, int64_t lap)
{
    uint32_t turn = turn_of(&c->program->lives.items[index], lap);
    neap_status status = NEAP_OK;
    for (uint32_t i = c->arena.part_at[index]; i < c->arena.part_at[index + 1] && status == NEAP_OK; i++) {
        if (c->arena.parts.items[i].place == turn) {
            status =
                c->arena.parts.items[i].state == NP_PART_FREE ? take(c, i) : COMPLAIN(c, "lives already: life", index);
        }
    }
    return status;
}

static neap_status end_life(checking *c, uint32_t index)
{
    const np_program_life *life = &c->program->lives.items[index];
    uint32_t turn = turn_of(life, (int64_t)c->lap - life->end / (uint32_t)c->program->events.n);
    for (uint32_t i = c->arena.part_at[index]; i < c->arena.part_at[index + 1]; i++) {
        np_part *p = &c->arena.parts.items[i];
        if (p->place != turn) {
            continue;
        }
        if (p->state != NP_PART_THERE) {
            return COMPLAIN(c, "freed, and not there: life", index);
        }
        p->state = NP_PART_FREE;
    }
    return NEAP_OK;
}

/* Before event 0: persistent blocks, and those of earlier laps that are freed in this one or later. What starts absent
 * takes no cells. */
static neap_status begin_all(checking *c)
{
    const np_program *program = c->program;
    neap_status status = NEAP_OK;
    for (size_t s = 0; s < program->swaps.n; s++) {
        const np_program_swap *swap = &program->swaps.items[s];
        const np_program_life *life = &program->lives.items[swap->life];
        if (!swap->starts_absent) {
            continue;
        }
        if (!life->persistent && life->end < program->events.n) {
            return COMPLAIN(c, "starts absent, and does not live: swap", (uint32_t)s);
        }
        c->swaps[s].away = true;
        for (uint32_t i = c->arena.part_at[swap->life]; i < c->arena.part_at[swap->life + 1]; i++) {
            np_part *p = &c->arena.parts.items[i];
            if (is_in_swap(p, swap) && p->state == NP_PART_OUT) {
                return COMPLAIN(c, "starts absent twice: life", swap->life);
            }
            if (is_in_swap(p, swap)) {
                p->state = NP_PART_OUT;
                p->taken = true;
            }
        }
    }
    for (uint32_t i = 0; i < c->arena.parts.n && status == NEAP_OK; i++) {
        np_part *p = &c->arena.parts.items[i];
        const np_program_life *life = &program->lives.items[p->life];
        int64_t n_before = life->persistent ? 1 : life->end / (uint32_t)program->events.n;
        for (int64_t lap = -n_before; lap < 0 && status == NEAP_OK; lap++) {
            if (turn_of(life, lap) == p->place && p->state != NP_PART_OUT) {
                status = p->state == NP_PART_FREE ? take(c, i) : COMPLAIN(c, "has too few places: life", p->life);
            }
        }
    }
    return status;
}

/* ---- laps ---- */

static neap_status do_event(checking *c)
{
    const np_program_event *event = &c->program->events.items[c->time];
    bool has_life = event->subject != NP_NO_LIFE;
    neap_status status = do_ops(c, event->first_op, event->n_before);
    if (status == NEAP_OK && event->kind == NEAP_EVENT_EXEC) {
        status = do_exec(c, event);
    } else if (status == NEAP_OK && event->kind == NEAP_EVENT_MALLOC && has_life) {
        status = begin_life(c, event->subject, c->lap);
    } else if (status == NEAP_OK && event->kind == NEAP_EVENT_FREE && has_life) {
        status = end_life(c, event->subject);
    }
    return status == NEAP_OK ? do_ops(c, event->first_op + event->n_before, event->n_after) : status;
}

static void begin_lap(checking *c)
{
    for (size_t i = 0; i < c->program->swaps.n; i++) {
        c->swaps[i].away_at_lap_start = c->swaps[i].away;
    }
    for (size_t i = 0; i < c->arena.parts.n; i++) {
        c->arena.parts.items[i].at_lap_start = c->arena.parts.items[i].state;
    }
}

/* A lap ends as it began, but for the turns that some take: as many of those. */
static neap_status end_lap(checking *c)
{
    for (uint32_t i = 0; i < c->program->swaps.n; i++) {
        if (c->swaps[i].away != c->swaps[i].away_at_lap_start) {
            return COMPLAIN(c, "does not end as it began: swap", i);
        }
    }
    for (uint32_t life = 0; life < c->program->lives.n; life++) {
        int64_t more = 0;
        for (uint32_t i = c->arena.part_at[life]; i < c->arena.part_at[life + 1]; i++) {
            const np_part *p = &c->arena.parts.items[i];
            more += (p->state == NP_PART_THERE) - (p->at_lap_start == NP_PART_THERE);
        }
        if (more != 0) {
            return COMPLAIN(c, "does not end as it began: life", life);
        }
    }
    return NEAP_OK;
}

static neap_status follow(checking *c)
{
    uint32_t n = (uint32_t)c->program->events.n;
    neap_status status = begin_all(c);
    for (c->lap = 0; c->lap < LAPS && status == NEAP_OK; c->lap++) {
        begin_lap(c);
        for (c->time = 0; c->time < n && status == NEAP_OK; c->time++) {
            status = do_event(c);
        }
        status = status == NEAP_OK ? end_lap(c) : status;
    }
    return status;
}

neap_status np_program_check_skipping(const np_program *program, const np_skipping *skipping, neap_error *error)
{
    const neap_memory *memory = program->memory;
    size_t n_swaps = program->swaps.n;
    size_t n_works = program->n_execs + 2 * n_swaps;
    checking c = {.program = program, .error = error, .skipping = skipping};
    neap_status status;
    if (!np_program_is_valid(program)) {
        return np_fail(error, NEAP_INTERNAL, "an index is out of its range");
    }
    status = np_arena_make(program, memory, &c.arena);
    if (status != NEAP_OK) {
        return np_fail_memory(error);
    }
    c.swaps = np_memory_alloc_zero(memory, n_swaps, sizeof *c.swaps);
    c.known = np_memory_alloc_zero(memory, n_works, sizeof *c.known);
    c.given = np_memory_alloc_zero(memory, n_works, sizeof *c.given);
    status = c.swaps && c.known && c.given ? follow(&c) : np_fail_memory(error);
    np_memory_free(memory, c.swaps, n_swaps, sizeof *c.swaps);
    np_memory_free(memory, c.known, n_works, sizeof *c.known);
    np_memory_free(memory, c.given, n_works, sizeof *c.given);
    np_arena_free(&c.arena);
    return status;
}

neap_status np_program_check(const np_program *program, neap_error *error)
{
    neap_status status = np_program_check_skipping(program, &(np_skipping){.per_cent = 0}, error);
    return status == NEAP_OK ? np_program_check_skipping(program, &(np_skipping){.per_cent = 100}, error) : status;
}
