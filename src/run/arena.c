/* arena.c: the arena: one address range, a physical page behind each of its pages.
 *
 * It is made when the first plan is entered, around the pages that persistent blocks already have, so that they are at
 * home without a copy; it grows when a plan needs more, and shrinks where a limit asks for that. */
#include "run/manager.h"

enum { ARENA_SPARE = 4 }; /* addresses are reserved for so many times the first plan's arena */

static uint32_t arena_pages_of(const neap_device *m, const np_pattern *pattern)
{
    return (uint32_t)((pattern->program.footprint + m->device->page_bytes - 1) / m->device->page_bytes);
}

/* The pages that persistent blocks already have where the plan wants them, for the arena's pages from `first` on. What
 * the plan says is absent at its start has left: no two blocks claim the same, but neighbours that share a page; where the
 * plan parts them, the first has it. */
static void find_own_pages(const neap_device *m, const np_pattern *pattern, uint32_t first, uint32_t n,
                           uint32_t *numbers, bool *is_claimed)
{
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const neap_block *block = pattern->actors[i].now[0];
        if (!pattern->program.lives.items[i].persistent || pattern->program.lives.items[i].n_placed == 0) {
            continue;
        }
        for (uint32_t k = 0; k < block->view.n_pages; k++) {
            uint32_t home = np_pattern_arena_page(pattern, i, k, m->device->page_bytes);
            uint32_t number = block->view.numbers[k];
            if (number != NP_NO_PAGE && !np_pages_is_arena(&m->pages, number) && home >= first && home < first + n &&
                !is_claimed[number] && numbers[home - first] == NP_NO_PAGE) {
                numbers[home - first] = number;
                is_claimed[number] = true;
            }
        }
    }
}

/* New pages for those that have none; *taken lists them. */
static neap_status take_missing(neap_device *m, uint32_t n, uint32_t *numbers, uint32_t *taken, uint32_t *n_taken)
{
    neap_status status;
    *n_taken = 0;
    for (uint32_t i = 0; i < n; i++) {
        *n_taken += numbers[i] == NP_NO_PAGE;
    }
    status = *n_taken > 0 ? np_room_take(m, *n_taken, taken) : NEAP_OK;
    for (uint32_t i = 0, k = 0; i < n && status == NEAP_OK; i++) {
        if (numbers[i] == NP_NO_PAGE) {
            numbers[i] = taken[k++];
        }
    }
    *n_taken = status == NEAP_OK ? *n_taken : 0;
    return status;
}

static neap_status grow_arena(neap_device *m, const np_pattern *pattern, uint32_t n_pages)
{
    uint32_t first = m->n_arena;
    uint32_t n = n_pages - first;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    uint32_t *taken = np_memory_alloc(m->memory, n, sizeof *taken);
    bool *is_claimed = np_memory_alloc_zero(m->memory, m->pages.pages.n, sizeof *is_claimed);
    size_t n_claimable = m->pages.pages.n; /* more may come */
    uint32_t n_taken = 0;
    neap_status status = numbers && taken && is_claimed ? NEAP_OK : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            numbers[i] = NP_NO_PAGE;
        }
        find_own_pages(m, pattern, first, n, numbers, is_claimed);
        status = take_missing(m, n, numbers, taken, &n_taken);
    }
    if (status == NEAP_OK) {
        status = np_view_map(&m->pages, &m->arena, first, n, numbers);
        if (status != NEAP_OK) {
            np_pages_unuse(&m->pages, taken, n_taken);
        }
    }
    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            np_pages_join_arena(&m->pages, numbers[i]);
            np_room_unback(m, numbers[i]);
        }
        np_pages_unuse(&m->pages, taken, n_taken);
        m->n_arena = n_pages;
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    np_memory_free(m->memory, taken, n, sizeof *taken);
    np_memory_free(m->memory, is_claimed, n_claimable, sizeof *is_claimed);
    return status;
}

neap_status np_arena_grow_for(neap_device *m, const np_pattern *pattern)
{
    uint32_t n = arena_pages_of(m, pattern);
    neap_status status = NEAP_OK;
    if (!m->arena.numbers) {
        uint64_t n_reserved = (uint64_t)n * ARENA_SPARE + 64;
        n_reserved = n_reserved < m->device->n_pages ? n_reserved : m->device->n_pages;
        status = n <= n_reserved ? np_view_make(&m->pages, (uint32_t)n_reserved, &m->arena) : NEAP_NO_PLAN;
    }
    if (status == NEAP_OK && n > m->arena.n_pages) {
        return NEAP_NO_PLAN;
    }
    if (status == NEAP_OK && n > m->n_arena) {
        status = grow_arena(m, pattern, n);
    }
    return status;
}

static void unmap_from(neap_device *m, np_pattern *pattern, uint32_t number)
{
    for (uint32_t i = 0; pattern && i < pattern->n_blocks; i++) {
        np_view *view = &pattern->blocks[i].view;
        for (uint32_t k = 0; k < view->n_pages; k++) {
            if (view->numbers[k] == number) {
                np_view_unmap(&m->pages, view, k, 1, NP_UNCOUNTED);
            }
        }
    }
}

/* Planned blocks that are not live keep their views mapped onto their places: no longer onto this page. */
static void unmap_everywhere(neap_device *m, uint32_t number)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        unmap_from(m, m->patterns.items[i], number);
    }
    unmap_from(m, m->refine.best, number);
    unmap_from(m, m->refine.next, number);
    unmap_from(m, m->refine.retired, number);
}

/* From its end on, as far as nothing has data there. */
void np_arena_shrink_for(neap_device *m, const np_pattern *pattern)
{
    uint32_t n = arena_pages_of(m, pattern);
    while (m->n_arena > n) {
        uint32_t number = m->arena.numbers[m->n_arena - 1];
        if (m->pages.pages.items[number].n_users > 0) {
            return;
        }
        unmap_everywhere(m, number);
        np_view_unmap(&m->pages, &m->arena, m->n_arena - 1, 1, NP_UNCOUNTED);
        np_pages_leave_arena(&m->pages, number);
        m->n_arena--;
    }
}

bool np_arena_could_fit(const neap_device *m, const np_pattern *pattern)
{
    return arena_pages_of(m, pattern) <= (pattern->limit_pages ? pattern->limit_pages : m->limit_pages);
}

void np_recount_arena(neap_device *m)
{
    np_pages_clear_arena(&m->pages);
    for (neap_block *block = m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(m, block, &first, &end);
            for (uint32_t k = first; k < end; k++) {
                np_pages_use(&m->pages, m->arena.numbers[k]);
            }
        }
        for (uint32_t i = 0; i < block->view.n_pages; i++) {
            if (block->view.numbers[i] != NP_NO_PAGE && np_pages_is_arena(&m->pages, block->view.numbers[i])) {
                np_pages_use(&m->pages, block->view.numbers[i]);
            }
        }
    }
}
