#include "run/forecast.h"

#include <math.h>

#include "device/virtual.h"
#include "run/clean.h"

enum {
    LAPS = 16, /* those from the first one that counts on are taken for the steady state */
    FIRST_LAP = 8,
    STEP_NS = 1600,     /* at most, from one exec to the next: measured on an H200, as kernels are timed */
    LAUNCHES_MAX = 1024 /* that the driver takes before the device has done the first */
};

typedef struct forecast {
    const np_program *program;
    np_exec_times execs;
    np_toll toll;
    uint64_t step_ns; /* from one exec to the next */
    uint64_t give_ns; /* the host, for each exec; 0: it is always ahead */
    double owed_ns;   /* by the next exec, for copies that were given */
    np_virtual time;
    uint64_t *exec_marks; /* by exec */
    uint8_t *exec_streams;
    uint64_t *out_marks; /* by swap */
    uint64_t *in_marks;
    bool *is_out;
    np_clean *cleans;      /* by life */
    np_times starts[LAPS]; /* of the first exec */
    uint64_t bytes_out;    /* of the lap under way */
    uint64_t bytes_in;
} forecast;

static neap_status wait(forecast *f, np_stream stream, np_stream other, uint64_t mark)
{
    neap_status status = mark > 0 && stream != other ? np_virtual_reserve(&f->time, stream) : NEAP_OK;
    if (status == NEAP_OK && mark > 0 && stream != other) {
        np_virtual_wait(&f->time, stream, other, mark);
    }
    return status;
}

/* The copy is given with the exec that the host is at. */
static neap_status wait_for_host(forecast *f, np_stream stream)
{
    return wait(f, stream, NP_VIRTUAL_HOST, f->time.streams[NP_VIRTUAL_HOST].mark);
}

/* A copy of nothing, where there is nothing to copy, holds its place in the order of copies (follow.c). */
static neap_status copy(forecast *f, np_stream stream, uint32_t swap, bool is_needed, uint64_t *marks)
{
    const np_program_swap *s = &f->program->swaps.items[swap];
    uint64_t bytes = is_needed ? s->end - s->begin : 0;
    neap_status status = wait_for_host(f, stream);
    if (status == NEAP_OK) {
        status = np_virtual_reserve(&f->time, stream);
    }
    if (status == NEAP_OK) {
        *(stream == NP_STREAM_OUT ? &f->bytes_out : &f->bytes_in) += bytes;
        f->owed_ns += is_needed ? f->toll.copy_ns + f->toll.byte_ns * (double)bytes : 0;
        np_virtual_copy(&f->time, stream, bytes);
        marks[swap] = f->time.streams[stream].mark;
    }
    return status;
}

/* The host gives an exec, once the driver takes it. */
static neap_status give(forecast *f, uint32_t exec)
{
    uint32_t n = f->program->n_execs;
    uint32_t first = (exec + n - (n < LAUNCHES_MAX ? n : LAUNCHES_MAX)) % n; /* of those that may be under way */
    uint32_t before = (exec + n - 1) % n;
    neap_status status = wait(f, NP_VIRTUAL_HOST, f->exec_streams[first], f->exec_marks[first]);
    if (status == NEAP_OK && f->execs.is_awaited && f->execs.is_awaited[before]) {
        status = wait(f, NP_VIRTUAL_HOST, f->exec_streams[before], f->exec_marks[before]);
    }
    if (status == NEAP_OK) {
        status = np_virtual_reserve(&f->time, NP_VIRTUAL_HOST);
    }
    if (status == NEAP_OK) {
        np_virtual_launch(&f->time, NP_VIRTUAL_HOST, f->give_ns, NULL);
    }
    return status;
}

static neap_status do_op(forecast *f, const np_op *op)
{
    const np_program_swap *swap = op->kind == NP_OP_OUT ? &f->program->swaps.items[op->index] : NULL;
    bool is_needed;
    switch ((np_op_kind)op->kind) {
    case NP_OP_WAIT_EXEC:
        return wait(f, op->stream, f->exec_streams[op->index], f->exec_marks[op->index]);
    case NP_OP_WAIT_OUT:
        return wait(f, op->stream, NP_STREAM_OUT, f->out_marks[op->index]);
    case NP_OP_WAIT_IN:
        return wait(f, op->stream, NP_STREAM_IN, f->in_marks[op->index]);
    case NP_OP_OUT:
        is_needed = !f->is_out[op->index] && !np_clean_has(&f->cleans[swap->life], swap->begin, swap->end);
        if (is_needed) {
            np_clean_note(&f->cleans[swap->life], swap->begin, swap->end);
        }
        f->is_out[op->index] = true;
        return copy(f, NP_STREAM_OUT, op->index, is_needed, f->out_marks);
    case NP_OP_IN:
        is_needed = f->is_out[op->index];
        f->is_out[op->index] = false;
        return copy(f, NP_STREAM_IN, op->index, is_needed, f->in_marks);
    }
    return NEAP_INTERNAL;
}

static neap_status do_ops(forecast *f, uint32_t first, uint32_t n)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = first; i < first + n && status == NEAP_OK; i++) {
        status = do_op(f, &f->program->ops.items[i]);
    }
    return status;
}

static neap_status launch(forecast *f, const np_program_event *event, uint32_t lap)
{
    np_times *times = event->subject == 0 ? &f->starts[lap] : NULL;
    neap_status status = wait_for_host(f, event->stream);
    if (status == NEAP_OK) {
        status = np_virtual_reserve(&f->time, event->stream);
    }
    if (status == NEAP_OK) {
        uint64_t ns = f->execs.ns[event->subject] + f->step_ns + (uint64_t)f->owed_ns;
        f->owed_ns = 0;
        np_virtual_launch(&f->time, event->stream, ns, times);
        f->exec_marks[event->subject] = f->time.streams[event->stream].mark;
        f->exec_streams[event->subject] = event->stream;
    }
    return status;
}

static neap_status do_event(forecast *f, const np_program_event *event, uint32_t lap)
{
    neap_status status = NEAP_OK;
    if (event->kind == NEAP_EVENT_EXEC && f->give_ns > 0) {
        status = give(f, event->subject);
    }
    if (status == NEAP_OK) {
        status = do_ops(f, event->first_op, event->n_before);
    }
    if (status == NEAP_OK && event->kind == NEAP_EVENT_EXEC) {
        status = launch(f, event, lap);
        for (uint32_t i = 0; i < event->n_uses; i++) {
            const np_program_use *use = &f->program->uses.items[event->first_use + i];
            f->cleans[use->life].n_writes += use->kind != NEAP_ACCESS_READ;
        }
    }
    if (event->kind == NEAP_EVENT_MALLOC && event->subject != NP_NO_LIFE) {
        f->cleans[event->subject].on_host = false;
    }
    return status == NEAP_OK ? do_ops(f, event->first_op + event->n_before, event->n_after) : status;
}

static void find_pace(forecast *f)
{
    const np_program *program = f->program;
    double n = program->n_execs;
    double sum = 0;
    for (uint32_t k = 0; k < program->n_execs; k++) {
        sum += (double)f->execs.ns[k];
    }
    if (program->period_ns > sum) {
        f->step_ns = (uint64_t)fmin((program->period_ns - sum) / n, STEP_NS);
    }
    if (program->period_ns > sum + STEP_NS * n) {
        f->give_ns = (uint64_t)(program->period_ns / n);
    }
}

static neap_status run(forecast *f, np_forecast *result)
{
    const np_program *program = f->program;
    neap_status status = NEAP_OK;
    find_pace(f);
    for (size_t i = 0; i < program->swaps.n; i++) {
        f->is_out[i] = program->swaps.items[i].starts_absent;
    }
    for (uint32_t lap = 0; lap < LAPS && status == NEAP_OK; lap++) {
        f->bytes_out = f->bytes_in = 0;
        for (size_t i = 0; i < program->events.n && status == NEAP_OK; i++) {
            status = do_event(f, &program->events.items[i], lap);
        }
    }
    for (np_stream s = 0; s < NP_VIRTUAL_STREAMS && status == NEAP_OK; s++) {
        np_virtual_sync(&f->time, s, f->time.streams[s].mark);
    }
    if (status == NEAP_OK) {
        uint64_t laps_ns = f->starts[LAPS - 1].start_ns - f->starts[FIRST_LAP].start_ns;
        *result = (np_forecast){
            .period_ns = (double)laps_ns / (LAPS - 1 - FIRST_LAP), .bytes_out = f->bytes_out, .bytes_in = f->bytes_in};
    }
    return status;
}

neap_status np_program_forecast(const np_program *program, const np_exec_times *execs, const neap_link *link,
                                const np_toll *toll, const neap_memory *memory, np_forecast *result)
{
    size_t n_swaps = program->swaps.n;
    forecast f = {.program = program, .execs = *execs, .toll = *toll};
    neap_status status;
    if (program->n_execs == 0) {
        *result = (np_forecast){0};
        return NEAP_OK;
    }
    np_virtual_init(&f.time, memory, link);
    f.exec_marks = np_memory_alloc_zero(memory, program->n_execs, sizeof *f.exec_marks);
    f.exec_streams = np_memory_alloc_zero(memory, program->n_execs, sizeof *f.exec_streams);
    f.out_marks = np_memory_alloc_zero(memory, n_swaps, sizeof *f.out_marks);
    f.in_marks = np_memory_alloc_zero(memory, n_swaps, sizeof *f.in_marks);
    f.is_out = np_memory_alloc_zero(memory, n_swaps, sizeof *f.is_out);
    f.cleans = np_memory_alloc_zero(memory, program->lives.n, sizeof *f.cleans);
    status = f.exec_marks && f.exec_streams && f.out_marks && f.in_marks && f.is_out && f.cleans ? run(&f, result)
                                                                                                 : NEAP_NO_MEMORY;
    np_memory_free(memory, f.exec_marks, program->n_execs, sizeof *f.exec_marks);
    np_memory_free(memory, f.exec_streams, program->n_execs, sizeof *f.exec_streams);
    np_memory_free(memory, f.out_marks, n_swaps, sizeof *f.out_marks);
    np_memory_free(memory, f.in_marks, n_swaps, sizeof *f.in_marks);
    np_memory_free(memory, f.is_out, n_swaps, sizeof *f.is_out);
    np_memory_free(memory, f.cleans, program->lives.n, sizeof *f.cleans);
    np_virtual_free(&f.time);
    return status;
}
