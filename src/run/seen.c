/* seen.c: on the plan, with uses that were seen and not told: there can be more of them than planned, and fewer.
 *
 * A use that was planned and not seen costs nothing. One that was not planned may be a chance word among parameters, or
 * true: the block must be there, the work comes after all that were in its bytes before, and whoever takes the block
 * away, or comes into its bytes later, comes after this *late* use. What was away comes for it, where it can (visit.h);
 * otherwise it is a departure, and the next plan knows. */
#include "run/manager.h"

/* Work and copies come after what used bytes without being planned to, wherever it was given. */
neap_status np_seen_wait_late(neap_device *m, np_stream stream)
{
    neap_status status = NEAP_OK;
    for (np_stream s = 0; s < m->device->n_streams && status == NEAP_OK; s++) {
        if (m->late[s] > 0 && s != stream) {
            status = m->device->api->wait(m->device, stream, s, m->late[s]);
        }
    }
    return status;
}

/* Nobody in particular waits for it: all do. */
void np_seen_promote(neap_device *m, uint32_t life)
{
    np_pattern *pattern = m->pattern;
    np_stream stream = pattern->late_stream[life];
    m->late[stream] = pattern->late[life] > m->late[stream] ? pattern->late[life] : m->late[stream];
    m->has_late = true;
    pattern->late[life] = 0;
}

void np_seen_forget(neap_device *m)
{
    for (np_stream s = 0; s < m->device->n_streams; s++) {
        if (m->late[s] > 0 && !m->device->api->is_done(m->device, s, m->late[s])) {
            return;
        }
        m->late[s] = 0;
    }
    m->has_late = false;
}

/* What was planned to be read is not planned to be written: its copy out may be under way. */
static bool is_planned_use(const np_program_use *planned, uint32_t n, uint32_t *next, const neap_use *use)
{
    uint32_t life = use->block->life;
    uint32_t k = *next < n && planned[*next].life == life ? *next : 0;
    while (k < n && planned[k].life != life) {
        k++;
    }
    *next = k < n ? k + 1 : *next;
    return k < n && (planned[k].kind != NEAP_ACCESS_READ || use->kind == NEAP_ACCESS_READ);
}

bool np_seen_is_planned(const np_pattern *pattern, const np_program_event *event, const neap_use *use)
{
    uint32_t next = 0;
    return is_planned_use(&pattern->program.uses.items[event->first_use], event->n_uses, &next, use);
}

/* Is any part of the block away, or on its way? The swaps of a life stand together. */
bool np_seen_is_away(const np_pattern *pattern, uint32_t life)
{
    const np_program_life *of = &pattern->program.lives.items[life];
    for (uint32_t i = 0; of->swapped && i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == life && pattern->is_out[i]) {
            return true;
        }
    }
    return false;
}

static neap_status wait_for_streams(neap_device *m, np_stream stream, np_stream first, np_stream end)
{
    np_device *device = m->device;
    neap_status status = NEAP_OK;
    for (np_stream other = first; other < end && status == NEAP_OK; other++) {
        if (other != stream) {
            status = device->api->wait(device, stream, other, device->api->mark(device, other));
        }
    }
    return status;
}

neap_status np_seen_wait_copies(neap_device *m, np_stream stream, const np_copy_marks *copies)
{
    neap_status status = wait_for_streams(m, stream, 0, m->device->n_streams);
    if (status == NEAP_OK) {
        status = np_ops_wait(m, stream, NP_STREAM_OUT, copies->out);
    }
    return status == NEAP_OK ? np_ops_wait(m, stream, NP_STREAM_IN, copies->in) : status;
}

neap_status np_seen_wait_all(neap_device *m, np_stream stream)
{
    neap_status status = wait_for_streams(m, stream, 0, m->device->n_streams);
    return status == NEAP_OK ? wait_for_streams(m, stream, NP_MAX_STREAMS, NP_N_STREAMS) : status;
}

/* An empty piece of work of the planned stream, after the work, stands for it to all who wait for it there. Where that
 * cannot be, all work is waited for, and nobody has to. */
uint64_t np_seen_bring_back(neap_device *m, np_stream planned, np_stream stream, uint64_t mark)
{
    np_device *device = m->device;
    uint64_t stands = 0;
    if (device->api->wait(device, planned, stream, mark) != NEAP_OK ||
        device->api->copy(device, planned, m->arena.address, m->arena.address, 0, &stands) != NEAP_OK) {
        (void)np_drain(m);
        return device->api->mark(device, planned);
    }
    return stands;
}

/* The last copies in of the block's parts come before this work. Where no planned use of the stream has waited for those who
 * were in the bytes before, this one does. */
neap_status np_seen_wait_before(neap_device *m, neap_block *block, np_stream stream)
{
    np_copy_marks copies = {0};
    neap_status status;
    if (block->used_by & (1u << stream)) {
        np_meet_own_copies(m->pattern, block->life, &copies);
        status = np_ops_wait(m, stream, NP_STREAM_IN, copies.in);
    } else {
        copies = np_meet_copies(m->pattern, block->life);
        status = np_seen_wait_copies(m, stream, &copies);
    }
    block->used_by |= 1u << stream;
    return status;
}

/* What is used without being planned must be here, or come for it (visit.h). It may be a chance word among parameters, or it may be true: whoever
 * comes into these bytes later waits for it. */
bool np_seen_match(neap_device *m, const np_program_event *event, np_given *given, neap_departure *why)
{
    const np_program_use *planned = &m->pattern->program.uses.items[event->first_use];
    uint32_t next = 0;
    given->is_late = given->is_visited = false;
    for (size_t i = 0; i < given->n_uses; i++) {
        neap_block *block = given->uses[i].block;
        if (block->life == NP_NO_LIFE ? np_block_is_here(block)
                                      : is_planned_use(planned, event->n_uses, &next, &given->uses[i])) {
            continue;
        }
        if (block->life != NP_NO_LIFE && np_seen_is_away(m->pattern, block->life) && np_visit_is_small(m, block)) {
            given->is_visited = given->is_late = true;
        } else if (block->life == NP_NO_LIFE || np_seen_is_away(m->pattern, block->life)) {
            np_beneath_doubt_use(m, block, event->subject);
            *why = NEAP_DEPARTURE_ABSENT;
            return false;
        } else {
            np_visit_note(m, block->life, event->subject, false);
        }
        if (np_seen_wait_before(m, block, given->work->stream) != NEAP_OK) {
            *why = NEAP_DEPARTURE_FAILED;
            return false;
        }
        m->n_late += !np_follow_is_always_here(m, block);
        given->is_late |= !np_follow_is_always_here(m, block);
    }
    return true;
}

void np_seen_note_late(neap_device *m, uint32_t life, np_stream stream, uint64_t mark)
{
    np_pattern *pattern = m->pattern;
    if (pattern->late[life] > 0 && pattern->late_stream[life] != stream) {
        np_seen_promote(m, life);
    }
    pattern->late[life] = mark;
    pattern->late_stream[life] = (uint8_t)stream;
}

/* Whatever takes the block away, or comes after it, comes after this work. The mark is one of the planned stream, wherever
 * the work itself was given. */
void np_seen_note(neap_device *m, const np_program_event *event, const np_given *given, uint64_t mark)
{
    const np_program_use *planned = &m->pattern->program.uses.items[event->first_use];
    uint32_t next = 0;
    for (size_t i = 0; i < given->n_uses; i++) {
        const neap_block *block = given->uses[i].block;
        if (block->life != NP_NO_LIFE && !is_planned_use(planned, event->n_uses, &next, &given->uses[i])) {
            np_seen_note_late(m, block->life, event->stream, mark);
        }
    }
}
