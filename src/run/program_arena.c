#include "run/program_arena.h"

#include <stdlib.h>

#define NONE UINT32_MAX

void np_stamps_join(np_stamps *all, const np_stamps *more)
{
    for (uint32_t i = 0; i < NP_N_STREAMS; i++) {
        all->of[i] = more->of[i] > all->of[i] ? more->of[i] : all->of[i];
    }
}

bool np_stamps_know(const np_stamps *clock, const np_stamps *uses)
{
    for (uint32_t i = 0; i < NP_N_STREAMS; i++) {
        if (uses->of[i] > clock->of[i]) {
            return false;
        }
    }
    return true;
}

/* The next byte after `at`, `end` at most, where one of the life's swaps begins or ends. */
static uint64_t next_cut(const np_program *program, uint32_t life, uint64_t at, uint64_t end)
{
    for (size_t i = 0; program->lives.items[life].swapped && i < program->swaps.n; i++) {
        const np_program_swap *swap = &program->swaps.items[i];
        if (swap->life == life && swap->begin > at && swap->begin < end) {
            end = swap->begin;
        }
        if (swap->life == life && swap->end > at && swap->end < end) {
            end = swap->end;
        }
    }
    return end;
}

static neap_status add_parts(np_arena *arena, const np_program *program)
{
    for (uint32_t life = 0; life < program->lives.n; life++) {
        const np_program_life *l = &program->lives.items[life];
        arena->part_at[life] = (uint32_t)arena->parts.n;
        for (uint32_t i = 0; i < l->n_placed * l->n_places; i++) {
            const np_placed *placed = &program->placed.items[l->first_placed + i];
            uint64_t past = placed->at + placed->bytes;
            for (uint64_t at = placed->at; at < past;) {
                np_part p = {
                    .begin = at, .end = next_cut(program, life, at, past), .life = life, .place = placed->place};
                p.offset = placed->offset + (at - placed->at);
                at = p.end;
                if (np_array_push(arena->memory, &arena->parts, p) != NEAP_OK) {
                    return NEAP_NO_MEMORY;
                }
            }
        }
    }
    arena->part_at[program->lives.n] = (uint32_t)arena->parts.n;
    return NEAP_OK;
}

static int compare_cells(const void *left, const void *right)
{
    const np_cell *a = left;
    const np_cell *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static uint32_t find_cell(const np_arena *arena, uint64_t begin)
{
    uint32_t low = 0;
    uint32_t high = (uint32_t)arena->cells.n;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (arena->cells.items[middle].begin <= begin) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static neap_status add_cells(np_arena *arena)
{
    uint32_t n = 0;
    if (np_array_reserve(arena->memory, &arena->cells, 2 * arena->parts.n) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < arena->parts.n; i++) {
        const np_part *p = &arena->parts.items[i];
        arena->cells.items[arena->cells.n++] = (np_cell){.begin = p->offset, .owner = NONE};
        arena->cells.items[arena->cells.n++] = (np_cell){.begin = p->offset + (p->end - p->begin), .owner = NONE};
    }
    if (arena->cells.n > 0) {
        qsort(arena->cells.items, arena->cells.n, sizeof(np_cell), compare_cells);
    }
    for (size_t i = 0; i < arena->cells.n; i++) {
        if (n == 0 || arena->cells.items[n - 1].begin < arena->cells.items[i].begin) {
            arena->cells.items[n++] = arena->cells.items[i];
        }
    }
    arena->cells.n = n;
    for (size_t i = 0; i < arena->parts.n; i++) {
        np_part *p = &arena->parts.items[i];
        p->first_cell = find_cell(arena, p->offset);
        p->past_cell = find_cell(arena, p->offset + (p->end - p->begin));
    }
    return NEAP_OK;
}

neap_status np_arena_make(const np_program *program, const neap_memory *memory, np_arena *arena)
{
    np_arena made = {.memory = np_memory_or_default(memory), .n_lives = program->lives.n};
    neap_status status;
    made.part_at = np_memory_alloc(made.memory, made.n_lives + 1, sizeof *made.part_at);
    status = made.part_at ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = add_parts(&made, program);
    }
    if (status == NEAP_OK) {
        status = add_cells(&made);
    }
    if (status != NEAP_OK) {
        np_arena_free(&made);
        return status;
    }
    *arena = made;
    return NEAP_OK;
}

void np_arena_free(np_arena *arena)
{
    np_array_free(arena->memory, &arena->parts);
    np_array_free(arena->memory, &arena->cells);
    np_memory_free(arena->memory, arena->part_at, arena->n_lives + 1, sizeof *arena->part_at);
}

uint32_t np_arena_take(np_arena *arena, uint32_t part)
{
    np_part *p = &arena->parts.items[part];
    p->before = (np_stamps){{0}};
    for (uint32_t i = p->first_cell; i < p->past_cell; i++) {
        np_cell *here = &arena->cells.items[i];
        if (here->owner != NONE) {
            np_part *owner = &arena->parts.items[here->owner];
            if (owner->state == NP_PART_THERE) {
                return owner->life;
            }
            owner->taken = true;
            np_stamps_join(&here->past, &owner->used);
        }
        np_stamps_join(&p->before, &here->past);
        here->owner = part;
    }
    p->state = NP_PART_THERE;
    p->taken = false;
    p->used = p->written = (np_stamps){{0}};
    return NP_NO_LIFE;
}
