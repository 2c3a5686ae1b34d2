#include "pool/problem.h"

#include "base/checked.h"

void np_problem_init(np_problem *problem, const neap_memory *memory, uint64_t unit, uint32_t n_times)
{
    *problem = (np_problem){.memory = np_memory_or_default(memory), .unit = unit, .n_times = n_times};
}

void np_problem_free(np_problem *problem)
{
    np_array_free(problem->memory, &problem->buffers);
    np_array_free(problem->memory, &problem->pieces);
}

neap_status np_problem_add(np_problem *problem, uint64_t bytes, uint64_t fixed_bytes, const np_piece *pieces,
                           uint32_t n_pieces)
{
    return np_problem_add_aligned(problem, bytes, problem->unit, 0, fixed_bytes, pieces, n_pieces);
}

static bool pieces_are_valid(const np_problem *problem, const np_piece *pieces, uint32_t n_pieces)
{
    for (uint32_t i = 0; i < n_pieces; i++) {
        if (pieces[i].begin >= pieces[i].end || pieces[i].end > problem->n_times ||
            (i > 0 && pieces[i].begin < pieces[i - 1].end)) {
            return false;
        }
    }
    return n_pieces > 0;
}

neap_status np_problem_add_aligned(np_problem *problem, uint64_t bytes, uint64_t align_bytes, uint64_t lead_bytes,
                                   uint64_t fixed_bytes, const np_piece *pieces, uint32_t n_pieces)
{
    const neap_memory *memory = problem->memory;
    np_buffer buffer = {.fixed = NEAP_NO_OFFSET, .first_piece = (uint32_t)problem->pieces.n};
    uint64_t rounded;

    if (bytes == 0 || align_bytes == 0 || align_bytes % problem->unit != 0 || lead_bytes >= align_bytes ||
        lead_bytes % problem->unit != 0 || !pieces_are_valid(problem, pieces, n_pieces) ||
        !np_round_up(bytes, problem->unit, &rounded)) {
        return NEAP_BAD_ARGUMENT;
    }
    buffer.align = align_bytes / problem->unit;
    buffer.lead = lead_bytes / problem->unit;
    if (fixed_bytes != NEAP_NO_OFFSET) {
        if (fixed_bytes % align_bytes != lead_bytes) {
            return NEAP_BAD_ARGUMENT;
        }
        buffer.fixed = fixed_bytes / problem->unit;
        if (buffer.fixed > UINT64_MAX - rounded / problem->unit) {
            return NEAP_TOO_LARGE;
        }
    }
    if (problem->buffers.n >= NEAP_NEVER - 1 || problem->pieces.n + n_pieces >= NEAP_NEVER - 1) {
        return NEAP_TOO_LARGE;
    }
    if (np_array_reserve(memory, &problem->buffers, problem->buffers.n + 1) != NEAP_OK ||
        np_array_reserve(memory, &problem->pieces, problem->pieces.n + n_pieces) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n_pieces; i++) {
        np_piece *last = buffer.n_pieces ? &problem->pieces.items[problem->pieces.n - 1] : NULL;
        if (last && last->end == pieces[i].begin) {
            last->end = pieces[i].end;
        } else {
            problem->pieces.items[problem->pieces.n++] = pieces[i];
            buffer.n_pieces++;
        }
    }
    buffer.size = rounded / problem->unit;
    problem->buffers.items[problem->buffers.n++] = buffer;
    return NEAP_OK;
}

neap_status np_problem_load(const np_problem *problem, uint64_t *load)
{
    /* Changes of the load by time. Sums cannot pass 2^64: the sizes' total is checked first. */
    int64_t *delta;
    uint64_t total = 0;
    uint64_t now = 0;
    uint64_t peak = 0;

    for (size_t i = 0; i < problem->buffers.n; i++) {
        if (!np_add_u64(total, problem->buffers.items[i].size, &total) || total > INT64_MAX) {
            return NEAP_TOO_LARGE;
        }
    }
    delta = np_memory_alloc_zero(problem->memory, (size_t)problem->n_times + 1, sizeof *delta);
    if (!delta) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *b = &problem->buffers.items[i];
        for (uint32_t k = 0; k < b->n_pieces; k++) {
            const np_piece *piece = &problem->pieces.items[b->first_piece + k];
            delta[piece->begin] += (int64_t)b->size;
            delta[piece->end] -= (int64_t)b->size;
        }
        if (b->fixed != NEAP_NO_OFFSET && b->fixed + b->size > peak) {
            peak = b->fixed + b->size;
        }
    }
    for (uint32_t t = 0; t < problem->n_times; t++) {
        now += (uint64_t)delta[t];
        if (now > peak) {
            peak = now;
        }
    }
    np_memory_free(problem->memory, delta, (size_t)problem->n_times + 1, sizeof *delta);
    *load = peak;
    return NEAP_OK;
}

bool np_problem_is_valid(const np_problem *problem)
{
    size_t n_pieces = 0;
    if (problem->unit == 0) {
        return false;
    }
    for (size_t i = 0; i < problem->buffers.n; i++) {
        const np_buffer *b = &problem->buffers.items[i];
        if (b->size == 0 || b->align == 0 || b->lead >= b->align || b->n_pieces == 0 || b->first_piece != n_pieces) {
            return false;
        }
        if (b->fixed != NEAP_NO_OFFSET && (b->fixed > UINT64_MAX - b->size || b->fixed % b->align != b->lead)) {
            return false;
        }
        n_pieces += b->n_pieces;
        if (n_pieces > problem->pieces.n) {
            return false;
        }
        for (uint32_t k = 0; k < b->n_pieces; k++) {
            const np_piece *piece = &problem->pieces.items[b->first_piece + k];
            if (piece->begin >= piece->end || piece->end > problem->n_times ||
                (k > 0 && piece[-1].end >= piece->begin)) {
                return false;
            }
        }
    }
    return n_pieces == problem->pieces.n;
}
