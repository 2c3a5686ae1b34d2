/* plan_fits.c: is a program one that the manager can follow on this device?
 *
 * The manager was written for programs that np_program_make made, and relies on what they are like. A program from a file
 * could be like anything. Here is what it relies on, beyond valid indices (program_valid.c) and an order of uses that
 * holds (program_check.c):
 *
 *   - The arena and every block fit in the device's pages; streams exist.
 *   - A malloc or free that has a life is that life's own.
 *   - A block in several pieces, or one that is swapped, stands in whole pages, and takes no turns; so does a persistent
 *     one, but it may begin in the middle of one. All others stand in one piece.
 *   - What leaves are whole pages of the block, all of them inside it.
 *
 * And the check itself, which is for honest programs, must come to an end soon. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/status.h"
#include "run/plan_code.h"

enum { ALIGNMENT = 512, MAX_PLACES = 1 << 12 };

#define MAX_CHECK_STEPS ((uint64_t)1 << 28) /* of the check, in one lap, about */

typedef struct fitting {
    const np_program *program;
    const np_plan_origin *device;
    uint64_t device_bytes;
} fitting;

static const np_placed *placed_of(const fitting *f, const np_program_life *life)
{
    return &f->program->placed.items[life->first_placed];
}

/* Bytes of a place, which has some. */
static uint64_t placed_bytes(const fitting *f, const np_program_life *life)
{
    const np_placed *last = placed_of(f, life) + life->n_placed - 1;
    return last->at + last->bytes;
}

/* ---- events ---- */

static bool is_own_event(const np_program *program, uint32_t time)
{
    const np_program_event *event = &program->events.items[time];
    const np_program_life *life;
    if (event->kind == NEAP_EVENT_EXEC || event->subject == NP_NO_LIFE) {
        return true;
    }
    life = &program->lives.items[event->subject];
    return !life->persistent &&
           time == (event->kind == NEAP_EVENT_MALLOC ? life->begin : life->end % program->events.n);
}

static bool has_streams(const fitting *f)
{
    for (size_t i = 0; i < f->program->events.n; i++) {
        if (f->program->events.items[i].stream >= f->device->n_streams) {
            return false;
        }
    }
    for (size_t i = 0; i < f->program->ops.n; i++) {
        uint8_t stream = f->program->ops.items[i].stream;
        if (stream >= f->device->n_streams && stream < NP_MAX_STREAMS) {
            return false;
        }
    }
    return true;
}

/* ---- places ---- */

/* Only what is persistent may have a lead: what the plan malloc's begins where its view does. */
static bool is_paged(const fitting *f, uint32_t index)
{
    const np_program_life *life = &f->program->lives.items[index];
    uint64_t page = f->device->page_bytes;
    uint64_t lead = np_program_lead(f->program, index, page);
    for (uint32_t i = 1; i < life->n_placed; i++) {
        const np_placed *placed = &placed_of(f, life)[i];
        if ((placed->at + lead) % page != 0 || placed->offset % page != 0) {
            return false;
        }
    }
    return lead % ALIGNMENT == 0 && (life->persistent || lead == 0);
}

static bool is_flat(const fitting *f, const np_program_life *life)
{
    for (uint32_t i = 0; i < life->n_places * life->n_placed; i++) {
        if (placed_of(f, life)[i].offset % ALIGNMENT != 0) {
            return false;
        }
    }
    return life->n_placed == 1;
}

static bool is_placed_well(const fitting *f, uint32_t index)
{
    const np_program_life *life = &f->program->lives.items[index];
    uint64_t lead = np_program_lead(f->program, index, f->device->page_bytes);
    uint64_t most; /* bytes of its view */
    if (life->n_places > MAX_PLACES || (life->n_places > 1 && life->n_placed > 1) || life->bytes > f->device_bytes ||
        !np_round_up(lead + life->bytes, f->device->page_bytes, &most)) {
        return false;
    }
    if (life->n_placed == 0) {
        return true;
    }
    for (uint32_t place = 0; place < life->n_places; place++) {
        const np_placed *last = placed_of(f, life) + (size_t)(place + 1) * life->n_placed - 1;
        if (lead + last->at + last->bytes > most) {
            return false;
        }
    }
    return life->persistent || life->swapped || life->n_placed > 1 ? is_paged(f, index) : is_flat(f, life);
}

static bool is_page_swap(const fitting *f, const np_program_swap *swap)
{
    const np_program_life *life = &f->program->lives.items[swap->life];
    uint64_t page = f->device->page_bytes;
    uint64_t lead = np_program_lead(f->program, swap->life, page);
    return (swap->begin == 0 || (swap->begin + lead) % page == 0) &&
           ((swap->end + lead) % page == 0 || swap->end == placed_bytes(f, life));
}

/* ---- the check's work ---- */

/* Every use, and every copy, looks at all parts of its life: its pieces, cut where its swaps begin and end. */
static uint64_t count_steps(const np_program *program, const uint64_t *n_parts)
{
    uint64_t n_steps = (uint64_t)program->swaps.n * (program->placed.n + 2 * program->swaps.n);
    for (size_t i = 0; i < program->uses.n; i++) {
        n_steps += n_parts[program->uses.items[i].life];
    }
    for (size_t i = 0; i < program->ops.n; i++) {
        const np_op *op = &program->ops.items[i];
        n_steps += op->kind >= NP_OP_OUT ? n_parts[program->swaps.items[op->index].life] : 0;
    }
    return n_steps;
}

static neap_status check_work(const np_program *program, const neap_memory *memory, neap_error *error)
{
    uint64_t *n_parts = np_memory_alloc(memory, program->lives.n, sizeof *n_parts);
    uint64_t n_steps;
    if (!n_parts) {
        return np_fail_memory(error);
    }
    for (size_t i = 0; i < program->lives.n; i++) {
        n_parts[i] = (uint64_t)program->lives.items[i].n_placed * program->lives.items[i].n_places;
    }
    for (size_t i = 0; i < program->swaps.n; i++) {
        n_parts[program->swaps.items[i].life] += 2;
    }
    n_steps = count_steps(program, n_parts);
    np_memory_free(memory, n_parts, program->lives.n, sizeof *n_parts);
    return n_steps <= MAX_CHECK_STEPS ? NEAP_OK : np_fail(error, NEAP_BAD_INPUT, "it would take too long to check");
}

neap_status np_plan_fits(const np_program *program, const np_plan_origin *device, const neap_memory *memory,
                         neap_error *error)
{
    fitting f = {.program = program, .device = device};
    if (device->page_bytes % ALIGNMENT != 0 || device->page_bytes == 0 ||
        !np_mul_u64(device->page_bytes, device->n_pages, &f.device_bytes) || f.device_bytes > INT64_MAX ||
        program->footprint > f.device_bytes) {
        return np_fail(error, NEAP_BAD_INPUT, "the device has less than %llu bytes",
                       (unsigned long long)program->footprint);
    }
    if (!has_streams(&f)) {
        return np_fail(error, NEAP_BAD_INPUT, "the device has only %u streams", device->n_streams);
    }
    for (uint32_t t = 0; t < program->events.n; t++) {
        if (!is_own_event(program, t)) {
            return np_fail(error, NEAP_BAD_INPUT, "event %u is not its block's own", t);
        }
    }
    for (uint32_t i = 0; i < program->lives.n; i++) {
        if (!is_placed_well(&f, i)) {
            return np_fail(error, NEAP_BAD_INPUT, "block %u does not fit its place", i);
        }
    }
    for (uint32_t i = 0; i < program->swaps.n; i++) {
        if (!is_page_swap(&f, &program->swaps.items[i])) {
            return np_fail(error, NEAP_BAD_INPUT, "swap %u is not of whole pages", i);
        }
    }
    return check_work(program, memory, error);
}
