/* ops.c: what a plan has listed before and after an event: waits, and the two halves of swaps. */
#include "base/clock.h"
#include "run/manager.h"

neap_status np_ops_wait(neap_device *m, np_stream stream, np_stream other, uint64_t mark)
{
    np_device *device = m->device;
    if (mark == 0 || stream == other) {
        return NEAP_OK;
    }
    m->stats.waits += stream < NP_MAX_STREAMS && other >= NP_MAX_STREAMS && !device->api->is_done(device, other, mark);
    return device->api->wait(device, stream, other, mark);
}

/* The block of a swap, where it is one that stands in its place. */
static neap_block *block_of_swap(const np_pattern *pattern, const np_program_swap *swap)
{
    neap_block *block = pattern->actors[swap->life].now[0];
    return block && np_block_has_place(pattern, swap->life, block) ? block : NULL;
}

/* Where there is nothing to copy, the others' waits must still reach what the copy would have waited for. */
static neap_status give_nothing(neap_device *m, np_stream stream, uint64_t *mark)
{
    return m->device->api->copy(m->device, stream, m->arena.address, m->arena.address, 0, mark);
}

static neap_status give_out(neap_device *m, uint32_t index)
{
    np_pattern *pattern = m->pattern;
    const np_program_swap *swap = &pattern->program.swaps.items[index];
    neap_block *block = block_of_swap(pattern, swap);
    uint64_t bytes = swap->end - swap->begin;
    neap_status status = m->has_late ? np_seen_wait_late(m, NP_STREAM_OUT) : NEAP_OK;
    if (status == NEAP_OK && pattern->late[swap->life] > 0) {
        status =
            m->device->api->wait(m->device, NP_STREAM_OUT, pattern->late_stream[swap->life], pattern->late[swap->life]);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (!block || pattern->is_out[index] || np_clean_has(&block->clean, swap->begin, swap->end)) {
        status = give_nothing(m, NP_STREAM_OUT, &pattern->out_marks[index]);
        pattern->is_out[index] |= block && status == NEAP_OK;
        return status;
    }
    status = m->device->api->copy(m->device, NP_STREAM_OUT, block->slot.host + swap->begin,
                                  block->address + swap->begin, bytes, &pattern->out_marks[index]);
    if (status == NEAP_OK) {
        m->stats.bytes_out += bytes;
        np_clean_note(&block->clean, swap->begin, swap->end);
        pattern->is_out[index] = true;
    }
    return status;
}

static neap_status give_in(neap_device *m, uint32_t index)
{
    np_pattern *pattern = m->pattern;
    const np_program_swap *swap = &pattern->program.swaps.items[index];
    neap_block *block = block_of_swap(pattern, swap);
    uint64_t bytes = swap->end - swap->begin;
    neap_status status = m->has_late ? np_seen_wait_late(m, NP_STREAM_IN) : NEAP_OK;
    if (status != NEAP_OK) {
        return status;
    }
    if (!block || !pattern->is_out[index]) {
        return give_nothing(m, NP_STREAM_IN, &pattern->in_marks[index]);
    }
    status = m->device->api->copy(m->device, NP_STREAM_IN, block->address + swap->begin, block->slot.host + swap->begin,
                                  bytes, &pattern->in_marks[index]);
    if (status == NEAP_OK) {
        m->stats.bytes_in += bytes;
        pattern->is_out[index] = false;
    }
    return status;
}

static neap_status do_op(neap_device *m, const np_op *op)
{
    np_pattern *pattern = m->pattern;
    switch ((np_op_kind)op->kind) {
    case NP_OP_WAIT_EXEC:
        return np_ops_wait(m, op->stream, pattern->exec_streams[op->index], pattern->exec_marks[op->index]);
    case NP_OP_WAIT_OUT:
        return np_ops_wait(m, op->stream, NP_STREAM_OUT, pattern->out_marks[op->index]);
    case NP_OP_WAIT_IN:
        return np_ops_wait(m, op->stream, NP_STREAM_IN, pattern->in_marks[op->index]);
    case NP_OP_OUT:
        return give_out(m, op->index);
    case NP_OP_IN:
        return give_in(m, op->index);
    }
    return NEAP_INTERNAL;
}

neap_status np_ops_do(neap_device *m, uint32_t first, uint32_t n)
{
    const np_op *ops = m->pattern->program.ops.items;
    uint64_t begin_ns = np_clock_ns();
    neap_status status = NEAP_OK;
    for (uint32_t i = first; i < first + n && status == NEAP_OK; i++) {
        status = do_op(m, &ops[i]);
    }
    m->stats.giving_ns += np_clock_ns() - begin_ns;
    return status;
}
