/* program_order.c: the works of a period in the order they are given, the waits that the rules of program.h ask for, and
 * the operations that come of both. */
#include <assert.h>
#include <stdlib.h>

#include "run/program_make.h"
#include "run/program_order.h"

#define NONE UINT32_MAX

/* The uses of a stay by one stream. */
typedef struct stay_end {
    uint32_t stream;
    uint32_t first; /* execs below n_execs */
    uint32_t last;
    uint32_t last_write; /* NONE: it only reads */
} stay_end;

/* What is shared with the pruning, and what is not. */
typedef struct ordering {
    np_making *making;
    np_works works;
    uint32_t *end_at; /* [stay]: into `ends` */
    np_array(stay_end) ends;
} ordering;

static uint32_t work_out(const ordering *o, uint32_t trip)
{
    return o->making->n_execs + 2 * trip;
}

static uint32_t work_in(const ordering *o, uint32_t trip)
{
    return o->making->n_execs + 2 * trip + 1;
}

/* ---- the order in which works are given ---- */

/* Copies that are given after one event: those out first, since those in may wait for them; each by key. */
typedef struct given {
    uint32_t event;
    uint32_t work;
    double key; /* ns */
} given;

static int compare_given(const void *left, const void *right)
{
    const given *a = left;
    const given *b = right;
    bool a_in = a->work % 2;
    bool b_in = b->work % 2;
    if (a->event != b->event) {
        return a->event < b->event ? -1 : 1;
    }
    if (a_in != b_in) {
        return a_in ? 1 : -1;
    }
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->work < b->work ? -1 : a->work > b->work;
}

static uint32_t wrap(int64_t event, uint32_t length)
{
    int64_t rest = event % length;
    return (uint32_t)(rest < 0 ? rest + length : rest);
}

/* Counted from the start of the period in which it is given. */
static double wrap_key(const np_making *m, double key, int64_t event)
{
    int64_t laps = (event - wrap(event, m->length)) / m->length;
    return key - (double)laps * m->timeline->period_ns;
}

/* `work` counts copies from 0 here. */
static void list_copies(const np_making *m, given *copies)
{
    for (uint32_t i = 0; i < m->trips.n; i++) {
        const np_trip *t = &m->trips.items[i];
        copies[2 * i] = (given){wrap(t->out_at, m->length), 2 * i, wrap_key(m, t->out_key, t->out_at)};
        copies[2 * i + 1] = (given){wrap(t->in_at, m->length), 2 * i + 1, wrap_key(m, t->in_key, t->in_at)};
    }
    qsort(copies, 2 * m->trips.n, sizeof *copies, compare_given);
}

static void find_order(ordering *o, const given *copies)
{
    const np_making *m = o->making;
    size_t n_copies = 2 * m->trips.n;
    size_t c = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < m->n_execs; k++) {
        for (; c < n_copies && copies[c].event < m->timeline->times.items[k]; c++) {
            o->works.order[n++] = m->n_execs + copies[c].work;
        }
        o->works.order[n++] = k;
    }
    for (; c < n_copies; c++) {
        o->works.order[n++] = m->n_execs + copies[c].work;
    }
    for (uint32_t i = 0; i < n; i++) {
        o->works.place[o->works.order[i]] = i;
    }
}

static neap_status find_streams(ordering *o)
{
    const np_making *m = o->making;
    const np_period *period = m->timeline->period;
    for (uint32_t k = 0; k < m->n_execs; k++) {
        uint32_t stream = period->trace->events.items[period->origin + m->timeline->times.items[k]].stream;
        if (stream >= NP_MAX_STREAMS) {
            return NEAP_TOO_LARGE;
        }
        o->works.streams[k] = (uint8_t)stream;
    }
    for (uint32_t i = 0; i < m->trips.n; i++) {
        o->works.streams[work_out(o, i)] = NP_STREAM_OUT;
        o->works.streams[work_in(o, i)] = NP_STREAM_IN;
        o->works.optional[work_out(o, i)] = true; /* until a stay that it ends is found to be written */
    }
    return NEAP_OK;
}

/* ---- waits by the rules ---- */

static neap_status find_ends(ordering *o, uint32_t index)
{
    const np_making *m = o->making;
    const np_stay *stay = &m->stays.items[index];
    const np_use *uses = &m->uses.items[m->use_at.items[stay->life]];
    uint32_t n_uses = m->use_at.items[stay->life + 1] - m->use_at.items[stay->life];
    uint32_t first = (uint32_t)o->ends.n;
    for (uint32_t i = 0; i < stay->n_uses; i++) {
        const np_use *use = &uses[(stay->first_use + i) % n_uses];
        uint32_t exec = use->exec % m->n_execs;
        uint32_t e = first;
        while (e < o->ends.n && o->ends.items[e].stream != o->works.streams[exec]) {
            e++;
        }
        if (e == o->ends.n) {
            stay_end end = {o->works.streams[exec], exec, exec, NONE};
            if (np_array_push(m->memory, &o->ends, end) != NEAP_OK) {
                return NEAP_NO_MEMORY;
            }
        }
        o->ends.items[e].last = exec;
        o->ends.items[e].last_write = use->writes ? exec : o->ends.items[e].last_write;
    }
    o->end_at[index + 1] = (uint32_t)o->ends.n;
    return NEAP_OK;
}

static const stay_end *end_of(const ordering *o, uint32_t index)
{
    assert(o->ends.items && index < o->ends.n);
    return &o->ends.items[index];
}

static neap_status add_wait(ordering *o, np_wait added)
{
    return o->works.streams[added.work] == o->works.streams[added.on]
               ? NEAP_OK
               : np_array_push(o->making->memory, &o->works.waits, added);
}

/* Is an exec of a stay given in the same period as the copy out after it? A program may begin between the two, and know
 * nothing of the first. */
static bool is_same_lap(const ordering *o, uint32_t exec, uint32_t trip)
{
    const np_making *m = o->making;
    return m->timeline->times.items[exec] <= wrap(m->trips.items[trip].out_at, m->length);
}

/* Inside a stay: execs wait for the copy in, the copy out for what was written. Where nothing was, it is the copy in or
 * the first use that waited for whoever stood there before. */
static neap_status add_inner_waits(ordering *o, uint32_t index)
{
    const np_stay *stay = &o->making->stays.items[index];
    bool is_written = false;
    neap_status status = NEAP_OK;
    for (uint32_t e = o->end_at[index]; e < o->end_at[index + 1] && status == NEAP_OK; e++) {
        const stay_end *end = end_of(o, e);
        if (stay->in != NP_NO_TRIP) {
            status = add_wait(o, (np_wait){.work = end->first, .on = work_in(o, stay->in)});
        }
        if (stay->out != NP_NO_TRIP && end->last_write != NONE && status == NEAP_OK) {
            status = add_wait(o, (np_wait){.work = work_out(o, stay->out), .on = end->last_write});
            o->works.optional[work_out(o, stay->out)] &= !is_same_lap(o, end->last_write, stay->out);
            is_written = true;
        }
    }
    if (stay->out == NP_NO_TRIP || is_written || status != NEAP_OK) {
        return status;
    }
    if (stay->in != NP_NO_TRIP) {
        return add_wait(o, (np_wait){.work = work_out(o, stay->out), .on = work_in(o, stay->in)});
    }
    if (stay->n_uses == 0) { /* it was never there before: the host cannot have it */
        o->works.optional[work_out(o, stay->out)] = false;
        return NEAP_OK;
    }
    return add_wait(o, (np_wait){.work = work_out(o, stay->out), .on = end_of(o, o->end_at[index])->first});
}

/* Events from a stay's begin to an exec. */
static uint32_t time_in(const ordering *o, const np_stay *stay, uint32_t exec)
{
    uint32_t time = o->making->timeline->times.items[exec];
    return time >= stay->begin ? time - stay->begin : time + o->making->length - stay->begin;
}

/* A work that begins a stay waits for all uses of the one before; the copy in that began that one came before them, if
 * there are any. A stay may follow itself: its last use by one stream can come before its first by another, in each lap. */
static neap_status add_waits_on(ordering *o, uint32_t work, const np_meeting *meeting)
{
    const np_stay *stay = &o->making->stays.items[meeting->before];
    neap_status status = NEAP_OK;
    if (stay->out != NP_NO_TRIP) {
        status = add_wait(o, (np_wait){.work = work, .on = work_out(o, stay->out)});
    }
    if (stay->n_uses == 0 && stay->in != NP_NO_TRIP && status == NEAP_OK) {
        status = add_wait(o, (np_wait){.work = work, .on = work_in(o, stay->in)});
    }
    for (uint32_t e = o->end_at[meeting->before]; e < o->end_at[meeting->before + 1] && status == NEAP_OK; e++) {
        np_wait added = {.work = work, .on = end_of(o, e)->last};
        added.earlier = meeting->stay == meeting->before && work < o->making->n_execs &&
                        time_in(o, stay, added.on) < time_in(o, stay, work);
        added.dropped = added.earlier;
        status = add_wait(o, added);
    }
    return status;
}

static neap_status add_outer_waits(ordering *o, const np_meeting *meeting)
{
    const np_stay *stay = &o->making->stays.items[meeting->stay];
    neap_status status = NEAP_OK;
    if (!meeting->used) {
        return NEAP_OK;
    }
    if (stay->in != NP_NO_TRIP) {
        return add_waits_on(o, work_in(o, stay->in), meeting);
    }
    if (stay->n_uses == 0 && stay->out != NP_NO_TRIP) {
        return add_waits_on(o, work_out(o, stay->out), meeting);
    }
    for (uint32_t e = o->end_at[meeting->stay]; e < o->end_at[meeting->stay + 1] && status == NEAP_OK; e++) {
        status = add_waits_on(o, end_of(o, e)->first, meeting);
    }
    return status;
}

static neap_status gather_waits(ordering *o)
{
    const np_making *m = o->making;
    neap_status status = NEAP_OK;
    o->end_at[0] = 0;
    for (uint32_t i = 0; i < m->stays.n && status == NEAP_OK; i++) {
        status = find_ends(o, i);
    }
    for (uint32_t i = 0; i < m->stays.n && status == NEAP_OK; i++) {
        status = add_inner_waits(o, i);
    }
    for (size_t i = 0; i < m->meetings.n && status == NEAP_OK; i++) {
        status = add_outer_waits(o, &m->meetings.items[i]);
    }
    return status;
}

/* ---- operations ---- */

static neap_status add_work(const ordering *o, np_program *program, uint32_t work)
{
    const np_making *m = o->making;
    neap_status status = NEAP_OK;
    for (uint32_t i = o->works.wait_at[work]; i < o->works.wait_at[work + 1] && status == NEAP_OK; i++) {
        const np_wait *w = &o->works.waits.items[i];
        np_op op = {.stream = o->works.streams[work], .kind = NP_OP_WAIT_EXEC, .index = w->on};
        if (w->on >= m->n_execs) {
            op.kind = (w->on - m->n_execs) % 2 ? NP_OP_WAIT_IN : NP_OP_WAIT_OUT;
            op.index = (w->on - m->n_execs) / 2;
        }
        if (!w->dropped) {
            status = np_array_push(program->memory, &program->ops, op);
        }
    }
    if (work >= m->n_execs && status == NEAP_OK) {
        np_op op = {.stream = o->works.streams[work], .index = (work - m->n_execs) / 2};
        op.kind = (work - m->n_execs) % 2 ? NP_OP_IN : NP_OP_OUT;
        status = np_array_push(program->memory, &program->ops, op);
    }
    return status;
}

/* Works come in the order of events: an exec's operations before it, copies' after the event they are given after. */
static neap_status write_ops(const ordering *o, np_program *program, const given *copies)
{
    const np_making *m = o->making;
    size_t c = 0;
    neap_status status = NEAP_OK;
    for (uint32_t t = 0; t < m->length && status == NEAP_OK; t++) {
        np_program_event *event = &program->events.items[t];
        size_t first = program->ops.n;
        size_t past_before;
        event->first_op = (uint32_t)first;
        if (event->kind == NEAP_EVENT_EXEC) {
            status = add_work(o, program, event->subject);
        }
        past_before = program->ops.n;
        for (; c < 2 * m->trips.n && copies[c].event == t && status == NEAP_OK; c++) {
            status = add_work(o, program, m->n_execs + copies[c].work);
        }
        if (program->ops.n - past_before > UINT16_MAX || program->ops.n > UINT32_MAX) {
            return NEAP_TOO_LARGE;
        }
        event->n_before = (uint16_t)(past_before - first);
        event->n_after = (uint16_t)(program->ops.n - past_before);
    }
    return status;
}

static neap_status order(ordering *o, np_program *program)
{
    const neap_memory *memory = o->making->memory;
    size_t n_copies = 2 * o->making->trips.n;
    given *copies = np_memory_alloc(memory, n_copies, sizeof *copies);
    neap_status status = copies ? find_streams(o) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        list_copies(o->making, copies);
        find_order(o, copies);
        status = gather_waits(o);
    }
    if (status == NEAP_OK) {
        status = np_works_prune(&o->works);
    }
    if (status == NEAP_OK) {
        status = write_ops(o, program, copies);
    }
    np_memory_free(memory, copies, n_copies, sizeof *copies);
    return status;
}

neap_status np_program_add_ops(np_making *making, np_program *program)
{
    const neap_memory *memory = making->memory;
    size_t n = (size_t)making->n_execs + 2 * making->trips.n;
    size_t n_stays = making->stays.n;
    ordering o = {.making = making, .works = {.memory = memory, .n = (uint32_t)n}};
    neap_status status;
    o.works.order = np_memory_alloc(memory, n, sizeof *o.works.order);
    o.works.place = np_memory_alloc(memory, n, sizeof *o.works.place);
    o.works.streams = np_memory_alloc(memory, n, sizeof *o.works.streams);
    o.works.optional = np_memory_alloc_zero(memory, n, sizeof *o.works.optional);
    o.end_at = np_memory_alloc(memory, n_stays + 1, sizeof *o.end_at);
    o.works.wait_at = np_memory_alloc(memory, n + 2, sizeof *o.works.wait_at);
    status = o.works.order && o.works.place && o.works.streams && o.works.optional && o.end_at && o.works.wait_at
                 ? NEAP_OK
                 : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = order(&o, program);
    }
    np_memory_free(memory, o.works.order, n, sizeof *o.works.order);
    np_memory_free(memory, o.works.place, n, sizeof *o.works.place);
    np_memory_free(memory, o.works.streams, n, sizeof *o.works.streams);
    np_memory_free(memory, o.works.optional, n, sizeof *o.works.optional);
    np_memory_free(memory, o.end_at, n_stays + 1, sizeof *o.end_at);
    np_memory_free(memory, o.works.wait_at, n + 2, sizeof *o.works.wait_at);
    np_array_free(memory, &o.ends);
    np_array_free(memory, &o.works.waits);
    return status;
}
