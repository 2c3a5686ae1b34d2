/* elsewhere.c: a place for a visiting block where its own is in use by the very work it comes for.
 *
 * The block's addresses are mapped onto other pages of the arena meanwhile: any that hold nothing the work uses, by plan
 * or as seen, nothing fixed, and nothing that visits too. What stands there is put aside as in the block's own place
 * (visit.c). Mapping is slow, and nothing may be under way where it is done: this is the last way out before the plan is
 * left. The view's own numbers stay as they are: it is mapped back onto them. */
#include "run/manager.h"

/* Pages of the arena that are not to be taken. */
typedef struct taken {
    const neap_device *m;
    bool *pages;
} taken;

static uint32_t n_planned(const neap_device *m)
{
    uint64_t page = m->device->page_bytes;
    return (uint32_t)((m->pattern->program.footprint + page - 1) / page);
}

static void take_bytes(const taken *t, uint64_t begin, uint64_t end)
{
    uint64_t page = t->m->device->page_bytes;
    for (uint64_t k = begin / page; k * page < end; k++) {
        t->pages[k] = true;
    }
}

static void take_life(const taken *t, uint32_t life)
{
    const np_program *program = &t->m->pattern->program;
    const np_program_life *of = &program->lives.items[life];
    for (uint32_t i = 0; i < of->n_placed * of->n_places; i++) {
        const np_placed *placed = &program->placed.items[of->first_placed + i];
        take_bytes(t, placed->offset, placed->offset + placed->bytes);
    }
}

static void take_fixed(const taken *t)
{
    const np_pattern *pattern = t->m->pattern;
    for (uint32_t life = 0; life < pattern->program.lives.n; life++) {
        for (uint32_t i = 0; i < pattern->program.lives.items[life].n_places; i++) {
            const neap_block *block = pattern->actors[life].now[i];
            if (block && (block->is_fixed || block->is_exported)) {
                take_life(t, life);
            }
        }
    }
}

/* What the work uses; the places of what visits are among that. */
static void take_used(const taken *t, const np_program_event *event, const np_given *given)
{
    for (uint32_t i = 0; i < event->n_uses; i++) {
        take_life(t, t->m->pattern->program.uses.items[event->first_use + i].life);
    }
    for (size_t i = 0; i < given->n_uses; i++) {
        if (given->uses[i].block->life != NP_NO_LIFE) {
            take_life(t, given->uses[i].block->life);
        }
    }
}

/* The pages of its view that a swap is of: [first, end). */
static void find_pages(const neap_device *m, const np_program_swap *swap, const neap_block **block, uint32_t *first,
                       uint32_t *end)
{
    uint64_t page = m->device->page_bytes;
    *block = m->pattern->actors[swap->life].now[0];
    *first = np_view_page_of(&(*block)->view, swap->begin, page);
    *end = np_view_page_of(&(*block)->view, swap->end + page - 1, page);
}

static neap_status map_home(neap_device *m, const np_program_swap *swap)
{
    const neap_block *block;
    uint32_t first;
    uint32_t end;
    uint32_t n_shown;
    find_pages(m, swap, &block, &first, &end);
    return np_view_show(&m->pages, &block->view, first, end - first, &block->view.numbers[first], &n_shown);
}

neap_status np_elsewhere_end(neap_device *m)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < m->visit.parts.n; i++) {
        np_visit_part *part = &m->visit.parts.items[i];
        if (part->is_elsewhere) {
            neap_status mapped = map_home(m, &m->pattern->program.swaps.items[part->swap]);
            part->is_elsewhere = mapped != NEAP_OK;
            status = status == NEAP_OK ? mapped : status;
        }
    }
    return status;
}

/* Finds pages for one part, and maps it onto them. NEAP_NO_PLAN: there are too few. */
static neap_status move(neap_device *m, const taken *t, np_visit_part *part, uint32_t *numbers)
{
    const np_program_swap *swap = &m->pattern->program.swaps.items[part->swap];
    const neap_block *block;
    uint32_t first;
    uint32_t end;
    uint32_t n = 0;
    uint32_t n_shown;
    find_pages(m, swap, &block, &first, &end);
    for (uint32_t k = 0; k < n_planned(m) && n < end - first; k++) {
        if (!t->pages[k]) {
            t->pages[k] = true;
            numbers[n++] = m->arena.numbers[k];
        }
    }
    if (n < end - first) {
        return NEAP_NO_PLAN;
    }
    part->is_elsewhere = true; /* even where only some of it could be mapped */
    return np_view_show(&m->pages, &block->view, first, n, numbers, &n_shown);
}

static neap_status move_all(neap_device *m, const taken *t, uint32_t *numbers)
{
    neap_status status = np_drain(m);
    for (size_t i = 0; i < m->visit.parts.n && status == NEAP_OK; i++) {
        np_visit_part *part = &m->visit.parts.items[i];
        if (part->has_no_place) {
            status = move(m, t, part, numbers);
        }
    }
    if (status != NEAP_OK) {
        (void)np_elsewhere_end(m);
    }
    return status;
}

neap_status np_elsewhere_begin(neap_device *m, const np_program_event *event, const np_given *given)
{
    uint32_t n = n_planned(m);
    taken t = {.m = m, .pages = np_memory_alloc_zero(m->memory, n, sizeof *t.pages)};
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    neap_status status = NEAP_NO_MEMORY;
    if (t.pages && numbers) {
        take_used(&t, event, given);
        take_fixed(&t);
        status = move_all(m, &t, numbers);
    }
    np_memory_free(m->memory, t.pages, n, sizeof *t.pages);
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}
