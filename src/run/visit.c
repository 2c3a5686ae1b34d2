#include "run/visit.h"

#include "run/manager.h"

enum { FIRST_VISITS = 3, MANY_TRIES = 16 };

void np_visit_begin(neap_device *m)
{
    m->visit.bytes_max = NP_VISIT_BYTES_MAX;
    m->visit.wait_visits = FIRST_VISITS;
}

void np_visit_settle(neap_device *m)
{
    np_host_give(&m->host, &m->visit.scratch);
}

void np_visit_free(neap_device *m)
{
    np_visit_settle(m);
    np_array_free(m->memory, &m->visit.parts);
}

static const np_program_swap *swap_at(const np_pattern *pattern, uint32_t index)
{
    return &pattern->program.swaps.items[index];
}

bool np_visit_is_small(const neap_device *m, const neap_block *block)
{
    const np_pattern *pattern = m->pattern;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pattern->program.swaps.n; i++) {
        const np_program_swap *swap = swap_at(pattern, i);
        bytes += swap->life == block->life && pattern->is_out[i] ? swap->end - swap->begin : 0;
    }
    return block->slot.host && bytes <= m->visit.bytes_max;
}

/* ---- who stands in its place ---- */

static bool is_used(const neap_device *m, const np_program_event *event, const np_given *given, uint32_t life)
{
    for (uint32_t i = 0; i < event->n_uses; i++) {
        if (m->pattern->program.uses.items[event->first_use + i].life == life) {
            return true;
        }
    }
    for (size_t i = 0; i < given->n_uses; i++) {
        if (given->uses[i].block->life == life) {
            return true;
        }
    }
    return false;
}

static void look_around(neap_device *m, const np_program_event *event, const np_given *given, np_visit_part *part)
{
    const np_program_swap *swap = swap_at(m->pattern, part->swap);
    for (uint32_t life = 0; life < m->pattern->program.lives.n; life++) {
        if (life != swap->life) {
            np_meeting found = np_meet_life(m->pattern, swap->life, swap->begin, swap->end, life);
            if (found.any) {
                np_meet_own_copies(m->pattern, life, &m->visit.after);
            }
            part->has_no_place |= found.fixed || (found.any && is_used(m, event, given, life));
            part->aside = found.here || part->has_no_place ? 0 : part->aside;
        }
    }
}

/* ---- what comes ---- */

static bool is_given_in(const np_program *program, uint32_t first, uint32_t n, uint32_t swap)
{
    for (uint32_t i = first; i < first + n; i++) {
        if (program->ops.items[i].kind == NP_OP_IN && program->ops.items[i].index == swap) {
            return true;
        }
    }
    return false;
}

/* Its copy out was given, but its bytes are still where they were, and are read there before they come back. */
static bool is_in_place(const neap_device *m, uint32_t swap)
{
    const np_program *program = &m->pattern->program;
    uint32_t life = program->swaps.items[swap].life;
    for (size_t i = 0; i < program->events.n; i++) {
        const np_program_event *event = &program->events.items[(m->cursor + i) % program->events.n];
        if (i > 0 && is_given_in(program, event->first_op, event->n_before, swap)) {
            return false;
        }
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_uses; k++) {
            if (program->uses.items[event->first_use + k].life == life) {
                return true;
            }
        }
        if (is_given_in(program, event->first_op + event->n_before, event->n_after, swap)) {
            return false;
        }
    }
    return true;
}

/* NEAP_NO_PLAN: it is too much. */
static neap_status list_parts(neap_device *m, const np_program_event *event, const np_given *given)
{
    const np_pattern *pattern = m->pattern;
    uint64_t bytes = 0;
    neap_status status = NEAP_OK;
    m->visit.parts.n = 0;
    for (size_t k = 0; k < given->n_uses; k++) {
        uint32_t life = given->uses[k].block->life;
        bool is_planned = life == NP_NO_LIFE || np_seen_is_planned(pattern, event, &given->uses[k]);
        for (uint32_t i = 0; !is_planned && i < pattern->program.swaps.n && status == NEAP_OK; i++) {
            np_visit_part part = {.swap = i, .aside = NP_NOT_ASIDE};
            if (swap_at(pattern, i)->life == life && pattern->is_out[i]) {
                part.is_in_place = is_in_place(m, i);
                part.is_written = given->uses[k].kind != NEAP_ACCESS_READ;
                bytes += swap_at(pattern, i)->end - swap_at(pattern, i)->begin;
                status = np_array_push(m->memory, &m->visit.parts, part);
            }
        }
    }
    return status == NEAP_OK && bytes > m->visit.bytes_max ? NEAP_NO_PLAN : status;
}

/* Room on the host for all that is put aside. What is there may still be on its way back to the device. */
static neap_status make_room(neap_device *m)
{
    np_visit *visit = &m->visit;
    uint64_t bytes = 0;
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < visit->parts.n; i++) {
        np_visit_part *part = &visit->parts.items[i];
        if (part->aside != NP_NOT_ASIDE) {
            const np_program_swap *swap = swap_at(m->pattern, part->swap);
            part->aside = bytes;
            bytes += swap->end - swap->begin;
        }
    }
    if (bytes > visit->scratch.bytes) {
        status = np_drain(m);
        if (status == NEAP_OK) {
            np_host_give(&m->host, &visit->scratch);
            status = np_host_take(&m->host, bytes, &visit->scratch);
        }
    }
    return status;
}

/* ---- copies: all on the stream of the work, which keeps them in order ---- */

static neap_status copy(neap_device *m, np_stream stream, char *to, const char *from, uint64_t bytes, uint64_t *counted)
{
    uint64_t mark;
    neap_status status = m->device->api->copy(m->device, stream, to, from, bytes, &mark);
    *counted += status == NEAP_OK ? bytes : 0;
    return status;
}

static neap_status put_aside(neap_device *m, np_stream stream, const np_visit_part *part)
{
    const np_program_swap *swap = swap_at(m->pattern, part->swap);
    const neap_block *block = m->pattern->actors[swap->life].now[0];
    return part->aside == NP_NOT_ASIDE
               ? NEAP_OK
               : copy(m, stream, m->visit.scratch.host + part->aside, block->address + swap->begin,
                      swap->end - swap->begin, &m->stats.bytes_out);
}

static neap_status put_back(neap_device *m, np_stream stream, const np_visit_part *part)
{
    const np_program_swap *swap = swap_at(m->pattern, part->swap);
    const neap_block *block = m->pattern->actors[swap->life].now[0];
    return part->aside == NP_NOT_ASIDE
               ? NEAP_OK
               : copy(m, stream, block->address + swap->begin, m->visit.scratch.host + part->aside,
                      swap->end - swap->begin, &m->stats.bytes_in);
}

static neap_status come(neap_device *m, np_stream stream, const np_visit_part *part)
{
    const np_program_swap *swap = swap_at(m->pattern, part->swap);
    const neap_block *block = m->pattern->actors[swap->life].now[0];
    return part->is_in_place ? NEAP_OK
                             : copy(m, stream, block->address + swap->begin, block->slot.host + swap->begin,
                                    swap->end - swap->begin, &m->stats.bytes_in);
}

static neap_status go(neap_device *m, np_stream stream, const np_visit_part *part)
{
    const np_program_swap *swap = swap_at(m->pattern, part->swap);
    neap_block *block = m->pattern->actors[swap->life].now[0];
    neap_status status = NEAP_OK;
    if (part->is_written) {
        status = copy(m, stream, block->slot.host + swap->begin, block->address + swap->begin, swap->end - swap->begin,
                      &m->stats.bytes_out);
    }
    if (part->is_written && status == NEAP_OK) {
        np_clean_note(&block->clean, swap->begin, swap->end);
    }
    return status;
}

typedef neap_status for_part(neap_device *m, np_stream stream, const np_visit_part *part);

static neap_status for_all(neap_device *m, np_stream stream, for_part *each)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < m->visit.parts.n && status == NEAP_OK; i++) {
        status = each(m, stream, &m->visit.parts.items[i]);
    }
    return status;
}

/* What has come must go: whatever fails is tried again. */
static neap_status for_all_surely(neap_device *m, np_stream stream, for_part *each)
{
    size_t n_done = 0;
    for (int i = 0; i < MANY_TRIES && n_done < m->visit.parts.n;) {
        if (each(m, stream, &m->visit.parts.items[n_done]) == NEAP_OK) {
            n_done++;
        } else {
            i++;
        }
    }
    return n_done < m->visit.parts.n ? NEAP_DEVICE_FAILED : NEAP_OK;
}

static neap_status drain_surely(neap_device *m)
{
    neap_status status = np_drain(m);
    for (int i = 0; i < MANY_TRIES && status != NEAP_OK; i++) {
        status = np_drain(m);
    }
    return status;
}

static bool any_without_place(const neap_device *m)
{
    for (size_t i = 0; i < m->visit.parts.n; i++) {
        if (m->visit.parts.items[i].has_no_place) {
            return true;
        }
    }
    return false;
}

/* What must be copied, and could not be, leaves bytes wrong: the block's, or those of who stood in its place. */
static neap_status must(neap_device *m, neap_status status)
{
    m->visit.is_torn |= status != NEAP_OK;
    return status;
}

/* What is mapped elsewhere is mapped back, once nothing is under way there. */
static neap_status end_elsewhere(neap_device *m)
{
    neap_status status = NEAP_OK;
    if (any_without_place(m)) {
        status = drain_surely(m);
    }
    return status == NEAP_OK ? np_elsewhere_end(m) : status;
}

bool np_visit_come(neap_device *m, const np_program_event *event, const np_given *given)
{
    np_stream stream = given->work->stream;
    neap_status status = list_parts(m, event, given);
    m->visit.after = (np_copy_marks){0};
    for (size_t i = 0; i < m->visit.parts.n && status == NEAP_OK; i++) {
        np_meet_own_copies(m->pattern, swap_at(m->pattern, m->visit.parts.items[i].swap)->life, &m->visit.after);
        if (!m->visit.parts.items[i].is_in_place) {
            look_around(m, event, given, &m->visit.parts.items[i]);
        }
    }
    if (status == NEAP_OK) {
        status = make_room(m);
    }
    if (status == NEAP_OK && any_without_place(m)) {
        status = np_elsewhere_begin(m, event, given);
    }
    if (status != NEAP_OK) {
        return false;
    }
    status = np_seen_wait_copies(m, stream, &m->visit.after);
    if (status == NEAP_OK) {
        status = for_all(m, stream, put_aside);
    }
    if (status != NEAP_OK) {
        (void)end_elsewhere(m);
        return false;
    }
    status = for_all(m, stream, come);
    if (status != NEAP_OK) {
        (void)must(m, for_all_surely(m, stream, put_back));
        (void)end_elsewhere(m);
        return false;
    }
    m->stats.n_visits++;
    return true;
}

/* Whatever is given later, on whatever stream, comes after the last of it. */
neap_status np_visit_go(neap_device *m, np_stream stream)
{
    neap_status status = must(m, for_all_surely(m, stream, go));
    neap_status restored = must(m, for_all_surely(m, stream, put_back)); /* in any case */
    neap_status moved = end_elsewhere(m);
    m->late[stream] = m->device->api->mark(m->device, stream);
    m->has_late = true;
    status = status == NEAP_OK ? restored : status;
    return status == NEAP_OK ? moved : status;
}
