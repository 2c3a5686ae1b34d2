#include "pool/circle.h"

#include "base/checked.h"

void np_circle_free(np_circle *circle)
{
    np_problem_free(&circle->problem);
    np_array_free(circle->memory, &circle->buffers);
}

static neap_status add_buffer(np_circle *circle, const neap_trace_block *block, np_circle_buffer buffer)
{
    uint32_t length = circle->problem.n_times;
    np_piece pieces[2] = {{buffer.begin, buffer.end}};
    uint32_t n_pieces = 1;
    neap_status status;
    if (buffer.end > length) {
        pieces[0] = (np_piece){0, buffer.end - length};
        pieces[1] = (np_piece){buffer.begin, length};
        n_pieces = 2;
    }
    status = np_problem_add(&circle->problem, block->bytes, block->fixed_offset, pieces, n_pieces);
    if (status == NEAP_OK) {
        status = np_array_push(circle->memory, &circle->buffers, buffer);
    }
    return status;
}

static neap_status add_life(np_circle *circle, const np_period *period, uint32_t index)
{
    const np_life *life = &period->lives.items[index];
    const neap_trace_block *block = &period->trace->blocks.items[life->block];
    uint64_t round = circle->problem.n_times;
    uint64_t lived = life->end - life->begin;
    neap_status status = NEAP_OK;

    if (life->persistent) {
        return add_buffer(circle, block, (np_circle_buffer){index, 0, 0, (uint32_t)round});
    }
    if (lived >= round) { /* the blocks of successive rounds take turns in places that are never free */
        uint32_t n_places = (uint32_t)(lived / round + 1) * circle->n_periods;
        for (uint32_t place = 0; place < n_places && status == NEAP_OK; place++) {
            status = add_buffer(circle, block, (np_circle_buffer){index, place, 0, (uint32_t)round});
        }
        return status;
    }
    for (uint32_t p = 0; p < circle->n_periods && status == NEAP_OK; p++) {
        uint64_t begin = ((uint64_t)life->begin + (uint64_t)p * period->length) % round;
        status = add_buffer(circle, block, (np_circle_buffer){index, p, (uint32_t)begin, (uint32_t)(begin + lived)});
    }
    return status;
}

neap_status np_circle_make(const np_period *period, uint64_t alignment, uint32_t n_periods, const neap_memory *memory,
                           np_circle *circle)
{
    np_circle made = {.memory = np_memory_or_default(memory), .n_periods = n_periods};
    neap_status status = NEAP_OK;
    if ((uint64_t)period->length * n_periods > UINT32_MAX / 2) {
        return NEAP_TOO_LARGE;
    }
    np_problem_init(&made.problem, memory, alignment, period->length * n_periods);
    for (uint32_t i = 0; i < period->lives.n && status == NEAP_OK; i++) {
        status = add_life(&made, period, i);
    }
    if (status != NEAP_OK) {
        np_circle_free(&made);
        return status;
    }
    *circle = made;
    return NEAP_OK;
}

bool np_circle_has_crossing(const np_period *period)
{
    for (size_t i = 0; i < period->lives.n; i++) {
        if (period->lives.items[i].end > period->length) {
            return true;
        }
    }
    return false;
}

uint32_t np_circle_longest(const np_period *period)
{
    uint32_t longest = 1;
    for (size_t i = 0; i < period->lives.n; i++) {
        const np_life *life = &period->lives.items[i];
        uint32_t n = life->persistent ? 1 : (life->end - life->begin) / period->length + 1;
        longest = n > longest ? n : longest;
    }
    return longest;
}

neap_status np_circle_load(const np_period *period, uint64_t alignment, uint64_t *load)
{
    /* Changes of the load by time, modulo 2^64; `now` is true once all that lives across time 0 is in. */
    uint64_t *change = np_memory_alloc_zero(period->memory, (size_t)period->length + 1, sizeof *change);
    uint64_t now = 0;
    uint64_t total = 0;
    uint64_t peak = 0;
    neap_status status = change ? NEAP_OK : NEAP_NO_MEMORY;

    for (size_t i = 0; i < period->lives.n && status == NEAP_OK; i++) {
        const np_life *life = &period->lives.items[i];
        uint64_t lived = life->end - life->begin;
        uint64_t most = lived / period->length + 1; /* alive at once */
        uint64_t bytes;
        uint64_t sum;
        if (!np_round_up(period->trace->blocks.items[life->block].bytes, alignment, &bytes) ||
            !np_mul_u64(bytes, most, &sum) || !np_add_u64(total, sum, &total)) {
            status = NEAP_TOO_LARGE;
            break;
        }
        change[life->begin] += bytes;
        change[life->end % period->length] -= bytes;
        now += bytes * (life->end / period->length); /* so many of its blocks are alive just before time 0 */
    }
    for (uint32_t t = 0; t < period->length && status == NEAP_OK; t++) {
        now += change[t];
        peak = now > peak ? now : peak;
    }
    np_memory_free(period->memory, change, (size_t)period->length + 1, sizeof *change);
    if (status == NEAP_OK) {
        *load = peak;
    }
    return status;
}
