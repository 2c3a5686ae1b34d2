/* program.c: the parts of a program that need no thought: its events, lives and places. The rest is made in steps:
 * program_stays.c (who has which bytes when), program_bytes.c (who follows whom there), program_copies.c (when copies are
 * given) and program_order.c (what waits for what). */
#include "run/program.h"

#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "device/device.h"
#include "run/program_make.h"

#define NAME_SEED 0x6e6561702d6b6579u /* fixed: programs are kept from run to run */

uint64_t np_program_name_key(const char *name, size_t name_bytes)
{
    return np_hash_bytes(name, name_bytes, NAME_SEED);
}

void np_program_free(np_program *program)
{
    np_array_free(program->memory, &program->events);
    np_array_free(program->memory, &program->uses);
    np_array_free(program->memory, &program->ops);
    np_array_free(program->memory, &program->lives);
    np_array_free(program->memory, &program->placed);
    np_array_free(program->memory, &program->swaps);
}

/* ---- events ---- */

static neap_status add_uses(const np_period *period, uint32_t time, np_program *program, np_program_event *event)
{
    uint32_t first = period->access_at.items[time];
    uint32_t past = period->access_at.items[time + 1];
    if (past - first > UINT16_MAX || program->uses.n > UINT32_MAX - (past - first)) {
        return NEAP_TOO_LARGE;
    }
    event->first_use = (uint32_t)program->uses.n;
    event->n_uses = (uint16_t)(past - first);
    for (uint32_t a = first; a < past; a++) {
        const neap_access *access = &period->accesses.items[a];
        np_program_use use = {access->block, access->kind};
        if (np_array_push(program->memory, &program->uses, use) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    return NEAP_OK;
}

static neap_status add_event(const np_period *period, uint32_t time, np_program *program)
{
    const neap_trace *trace = period->trace;
    const neap_event *from = &trace->events.items[period->origin + time];
    np_program_event event = {.kind = (uint8_t)from->kind, .subject = NP_NO_LIFE};
    neap_status status = NEAP_OK;
    if (from->kind == NEAP_EVENT_MALLOC) {
        event.key = trace->blocks.items[from->subject].bytes;
    } else if (from->kind == NEAP_EVENT_EXEC) {
        const char *name = neap_trace_exec_name(trace, from->subject);
        if (from->stream >= NP_MAX_STREAMS) {
            return NEAP_TOO_LARGE;
        }
        event.key = np_program_name_key(name, strlen(name));
        event.subject = program->n_execs++;
        event.stream = (uint8_t)from->stream;
        status = add_uses(period, time, program, &event);
    }
    if (status != NEAP_OK) {
        return status;
    }
    return np_array_push(program->memory, &program->events, event);
}

static void set_subject(np_program *program, uint32_t time, neap_event_kind kind, uint32_t life)
{
    if (time < program->events.n && program->events.items[time].kind == kind) {
        program->events.items[time].subject = life;
    }
}

static neap_status add_events(const np_period *period, np_program *program)
{
    neap_status status = NEAP_OK;
    for (uint32_t t = 0; t < period->length && status == NEAP_OK; t++) {
        status = add_event(period, t, program);
    }
    for (uint32_t i = 0; i < period->lives.n && status == NEAP_OK; i++) {
        const np_life *life = &period->lives.items[i];
        if (!life->persistent) {
            set_subject(program, life->begin, NEAP_EVENT_MALLOC, i);
            set_subject(program, life->end % period->length, NEAP_EVENT_FREE, i);
        }
    }
    return status;
}

/* ---- lives and their places ---- */

/* Every place of a life has all its bytes, from the first on. */
static bool is_placed_well(const np_program_life *life, const np_placed *placed, uint64_t footprint)
{
    for (uint32_t i = 0; i < life->n_placed * life->n_places; i++) {
        uint64_t at = i % life->n_placed ? placed[i - 1].at + placed[i - 1].bytes : 0;
        uint64_t end;
        bool is_last = (i + 1) % life->n_placed == 0;
        if (placed[i].at != at || placed[i].place != i / life->n_placed || placed[i].bytes == 0 ||
            placed[i].bytes > footprint || placed[i].offset > footprint - placed[i].bytes ||
            !np_add_u64(at, placed[i].bytes, &end) || (is_last && end < life->bytes)) {
            return false;
        }
    }
    return true;
}

static neap_status add_life(const np_making *making, uint32_t index, size_t *at, np_program *program)
{
    const np_period *period = making->timeline->period;
    const np_layout *layout = making->layout;
    const np_life *from = &period->lives.items[index];
    const neap_trace_block *block = &period->trace->blocks.items[from->block];
    np_program_life life = {.bytes = block->bytes, .id = block->id, .persistent = from->persistent};
    size_t past = *at;
    life.begin = from->begin;
    life.end = from->end;
    life.first_placed = (uint32_t)*at;
    life.swapped = making->trip_at.items[index] < making->trip_at.items[index + 1];
    for (; past < layout->placed.n && layout->placed.items[past].life == index; past++) {
        life.n_places = layout->placed.items[past].place + 1;
    }
    if (past == *at && life.persistent && !life.swapped) { /* kept outside of the arena */
        life.n_places = 1;
        return np_array_push(program->memory, &program->lives, life);
    }
    if (life.n_places == 0 || life.n_places > past - *at || (past - *at) % life.n_places != 0 ||
        (life.n_places > 1 && life.swapped)) {
        return NEAP_BAD_ARGUMENT;
    }
    life.n_placed = (uint32_t)((past - *at) / life.n_places);
    if (!is_placed_well(&life, &layout->placed.items[*at], layout->footprint)) {
        return NEAP_BAD_ARGUMENT;
    }
    *at = past;
    return np_array_push(program->memory, &program->lives, life);
}

static neap_status add_lives(const np_making *making, np_program *program)
{
    const np_layout *layout = making->layout;
    size_t at = 0;
    neap_status status = layout->placed.n > UINT32_MAX ? NEAP_TOO_LARGE : NEAP_OK;
    if (status == NEAP_OK) {
        status = np_array_reserve(program->memory, &program->placed, layout->placed.n);
    }
    for (size_t i = 0; i < layout->placed.n && status == NEAP_OK; i++) {
        program->placed.items[program->placed.n++] = layout->placed.items[i];
    }
    for (uint32_t i = 0; i < making->timeline->period->lives.n && status == NEAP_OK; i++) {
        status = add_life(making, i, &at, program);
    }
    return status == NEAP_OK && at < layout->placed.n ? NEAP_BAD_ARGUMENT : status;
}

/* ---- swaps ---- */

static int64_t lap_of(int64_t event, uint32_t length)
{
    return event >= 0 ? event / length : -((length - 1 - event) / length);
}

static neap_status add_swaps(const np_making *making, np_program *program)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < making->trips.n && status == NEAP_OK; i++) {
        const np_trip *trip = &making->trips.items[i];
        np_program_swap swap = {.begin = trip->begin, .end = trip->end, .life = trip->life};
        swap.starts_absent = lap_of(trip->out_at, making->length) < lap_of(trip->in_at, making->length);
        status = np_array_push(program->memory, &program->swaps, swap);
    }
    return status;
}

/* ---- all of it ---- */

static neap_status make(np_making *making, const np_swap *swaps, uint32_t n_swaps, np_program *program)
{
    neap_status status = add_events(making->timeline->period, program);
    if (status == NEAP_OK) {
        status = np_program_find_trips(making, swaps, n_swaps);
    }
    if (status == NEAP_OK) {
        status = add_lives(making, program);
    }
    if (status == NEAP_OK) {
        status = np_program_find_stays(making, program);
    }
    if (status == NEAP_OK) {
        status = np_program_find_meetings(making);
    }
    if (status == NEAP_OK) {
        status = np_program_give_copies(making);
    }
    if (status == NEAP_OK) {
        status = add_swaps(making, program);
    }
    return status == NEAP_OK ? np_program_add_ops(making, program) : status;
}

neap_status np_program_make(const np_timeline *timeline, const np_swap *swaps, uint32_t n_swaps,
                            const np_layout *layout, const neap_memory *memory, np_program *program)
{
    np_making making = {.timeline = timeline, .layout = layout, .memory = np_memory_or_default(memory)};
    np_program made = {.memory = making.memory,
                       .footprint = layout->footprint,
                       .peak_load = timeline->peak_load,
                       .period_ns = timeline->period_ns};
    neap_status status;
    making.length = timeline->period->length;
    making.n_execs = timeline->n_execs;
    status = make(&making, swaps, n_swaps, &made);
    np_array_free(making.memory, &making.use_at);
    np_array_free(making.memory, &making.uses);
    np_array_free(making.memory, &making.trips);
    np_array_free(making.memory, &making.trip_at);
    np_array_free(making.memory, &making.trip_of);
    np_array_free(making.memory, &making.stays);
    np_array_free(making.memory, &making.meetings);
    if (status != NEAP_OK) {
        np_program_free(&made);
        return status;
    }
    *program = made;
    return NEAP_OK;
}
