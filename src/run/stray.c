#include "run/stray.h"

static bool is_allowed(const neap_device *m, const neap_block *block)
{
    return block->life == NP_NO_LIFE ? np_block_is_here(block) : !np_seen_is_away(m->pattern, block->life);
}

static neap_status wait_on_plan(neap_device *m, const np_given *given)
{
    np_stream stream = given->work->stream;
    neap_status status = np_follow_wait_beside(m, given);
    for (size_t i = 0; i < given->n_uses && status == NEAP_OK; i++) {
        if (given->uses[i].block->life != NP_NO_LIFE) {
            status = np_seen_wait_before(m, given->uses[i].block, stream);
        }
    }
    return status;
}

neap_status np_stray_ready(neap_device *m, const neap_work *work, const neap_use *uses, size_t n_uses, np_given *given)
{
    bool is_on_plan = m->state == NEAP_STATE_RUN;
    *given = (np_given){.work = work, .uses = uses, .n_uses = n_uses, .is_stray = true};
    if (m->visit.is_torn) {
        return NEAP_DEVICE_FAILED;
    }
    for (size_t i = 0; i < n_uses; i++) {
        is_on_plan = is_on_plan && is_allowed(m, uses[i].block);
        np_beneath_doubt(m, uses[i].block);
    }
    if (!is_on_plan && m->state == NEAP_STATE_RUN) {
        np_leave(m, NEAP_DEPARTURE_USES, work->name);
    }
    if (is_on_plan && wait_on_plan(m, given) != NEAP_OK) {
        np_leave(m, NEAP_DEPARTURE_FAILED, work->name);
        is_on_plan = false;
    }
    return is_on_plan ? NEAP_OK : np_loose_ready(m, given);
}

void np_stray_given(neap_device *m, const np_given *given, uint64_t mark)
{
    for (size_t i = 0; i < given->n_uses; i++) {
        neap_block *block = given->uses[i].block;
        block->clean.n_writes += given->uses[i].kind != NEAP_ACCESS_READ;
        if (m->state == NEAP_STATE_RUN && block->life != NP_NO_LIFE && !np_follow_is_always_here(m, block)) {
            np_seen_note_late(m, block->life, given->work->stream, mark);
        }
    }
}
