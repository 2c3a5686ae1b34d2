#include "run/meet.h"

/* Bytes of the arena. */
typedef struct span {
    uint64_t begin;
    uint64_t end;
} span;

/* Where a piece of a life's place has its bytes [begin, end), as far as they are in it; empty: they are not. */
static span span_of(const np_placed *placed, uint64_t begin, uint64_t end)
{
    uint64_t from = placed->at > begin ? placed->at : begin;
    uint64_t to = placed->at + placed->bytes < end ? placed->at + placed->bytes : end;
    return from < to ? (span){placed->offset + (from - placed->at), placed->offset + (to - placed->at)} : (span){0, 0};
}

static bool is_met(span a, span b)
{
    return a.begin < b.end && b.begin < a.end;
}

static void meet_piece(const np_pattern *pattern, span part, uint32_t life, const np_placed *placed, np_meeting *found)
{
    const neap_block *block = pattern->actors[life].now[placed->place];
    span piece = {placed->offset, placed->offset + placed->bytes};
    if (is_met(part, piece)) {
        found->any = true;
        found->here |= block != NULL; /* away or not: it may still be read there while it is copied out */
        found->fixed |= block && (block->is_fixed || block->is_exported);
    }
}

np_meeting np_meet_life(const np_pattern *pattern, uint32_t life, uint64_t begin, uint64_t end, uint32_t other)
{
    const np_program *program = &pattern->program;
    const np_program_life *own = &program->lives.items[life];
    const np_program_life *its = &program->lives.items[other];
    np_meeting found = {0};
    for (uint32_t i = 0; i < own->n_placed * own->n_places; i++) {
        span part = span_of(&program->placed.items[own->first_placed + i], begin, end);
        for (uint32_t k = 0; part.begin < part.end && k < its->n_placed * its->n_places; k++) {
            meet_piece(pattern, part, other, &program->placed.items[its->first_placed + k], &found);
        }
    }
    return found;
}

void np_meet_own_copies(const np_pattern *pattern, uint32_t life, np_copy_marks *marks)
{
    const np_program *program = &pattern->program;
    for (uint32_t i = 0; program->lives.items[life].swapped && i < program->swaps.n; i++) {
        if (program->swaps.items[i].life == life) {
            marks->out = pattern->out_marks[i] > marks->out ? pattern->out_marks[i] : marks->out;
            marks->in = pattern->in_marks[i] > marks->in ? pattern->in_marks[i] : marks->in;
        }
    }
}

np_copy_marks np_meet_copies(const np_pattern *pattern, uint32_t life)
{
    const np_program *program = &pattern->program;
    np_copy_marks marks = {0};
    for (uint32_t other = 0; other < program->lives.n; other++) {
        if (program->lives.items[other].swapped &&
            (other == life || np_meet_life(pattern, life, 0, UINT64_MAX, other).any)) {
            np_meet_own_copies(pattern, other, &marks);
        }
    }
    return marks;
}
