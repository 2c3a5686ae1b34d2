/* arena.c: the arena: one address range, a physical page behind each of its pages.
 *
 * When a plan is entered, blocks that live then have their data on some pages, and the plan wants it at some pages of the
 * arena. So the arena is put together anew: behind a page of it comes the page that has the data already, wherever that was
 * before, and nothing is copied. Other pages stay where they are, or fill what is left; what is missing is taken, and what is
 * too much is given back.
 *
 * A block that cannot be seen at its place, since it begins elsewhere in a page, *lends* its pages: they stand behind its
 * place, in any order. The plan gives the place to no other block before its free. */
#include "run/manager.h"

enum { ARENA_SPARE = 4 }; /* addresses are reserved for so many times the first plan's arena */

static uint32_t arena_pages_of(const neap_device *m, const np_pattern *pattern)
{
    return (uint32_t)((pattern->program.footprint + m->device->page_bytes - 1) / m->device->page_bytes);
}

/* ---- what is wanted where ---- */

/* The arena as it is to be. */
typedef struct arrangement {
    neap_device *m;
    const np_pattern *pattern;
    uint32_t *numbers; /* by page of the arena: the page behind it, or NP_NO_PAGE */
    uint32_t n;        /* pages of the arena that the plan needs */
    uint32_t n_all;    /* or that there are, if those are more */
    bool *is_claimed;  /* by page: it stands behind one */
    size_t n_claimable;
    uint32_t *taken; /* [n] */
} arrangement;

static bool claim(arrangement *a, uint32_t at, uint32_t number)
{
    if (number == NP_NO_PAGE || number >= a->n_claimable || a->is_claimed[number] || a->numbers[at] != NP_NO_PAGE) {
        return false;
    }
    a->is_claimed[number] = true;
    a->numbers[at] = number;
    return true;
}

static uint32_t place_page(const arrangement *a, uint32_t life, uint32_t turn, uint32_t k)
{
    return np_pattern_arena_page(a->pattern, life, turn, k, a->m->device->page_bytes);
}

/* Neighbours may share a page; where the plan parts them, the first has it. */
static void claim_place(arrangement *a, uint32_t life, uint32_t turn, const neap_block *block)
{
    for (uint32_t k = 0; k < block->view.n_pages; k++) {
        (void)claim(a, place_page(a, life, turn, k), block->view.numbers[k]);
    }
}

/* Only pages that the block has alone, behind those that the place has alone. */
static void claim_lent(arrangement *a, uint32_t life, uint32_t turn, neap_block *block)
{
    uint32_t n = (uint32_t)(block->bytes / a->m->device->page_bytes);
    uint32_t k = 0;
    for (uint32_t i = 0; i < block->view.n_pages && k < n; i++) {
        uint32_t number = block->view.numbers[i];
        if (number != NP_NO_PAGE && a->m->pages.pages.items[number].n_users == 1) {
            k += claim(a, place_page(a, life, turn, k), number);
        }
    }
    block->is_lending = k > 0;
}

/* Blocks that have an address in the arena stay where they are. */
static void claim_flat(arrangement *a)
{
    for (const neap_block *block = a->m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(a->m, block, &first, &end);
            for (uint32_t k = first; k < end; k++) {
                (void)claim(a, k, a->m->arena.numbers[k]);
            }
        }
    }
}

static void claim_standing(arrangement *a)
{
    for (uint32_t i = 0; i < a->pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < a->pattern->program.lives.items[i].n_places; j++) {
            neap_block *block = a->pattern->actors[i].now[j];
            if (block && np_block_has_place(a->pattern, i, block)) {
                claim_place(a, i, j, block);
            }
        }
    }
    for (uint32_t i = 0; i < a->pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < a->pattern->program.lives.items[i].n_places; j++) {
            neap_block *block = a->pattern->actors[i].now[j];
            if (block && np_block_can_lend(a->pattern, i, block)) {
                claim_lent(a, i, j, block);
            }
        }
    }
}

/* What has a place, and cannot have its page behind it, goes by the host: two blocks may have had a page each, and share one
 * in the plan. It goes before new pages are taken, or there would be more than the limit allows. */
static neap_status send_unclaimed(arrangement *a, uint32_t life, uint32_t turn, neap_block *block)
{
    neap_status status = NEAP_OK;
    for (uint32_t k = 0; k < block->view.n_pages && status == NEAP_OK;) {
        uint32_t end = k;
        while (end < block->view.n_pages && block->view.numbers[end] != NP_NO_PAGE &&
               a->numbers[place_page(a, life, turn, end)] != block->view.numbers[end]) {
            end++;
        }
        if (end > k) {
            status = np_block_depart_pages(a->m, block, k, end);
        }
        k = end + 1;
    }
    return status;
}

static neap_status send_all_unclaimed(arrangement *a)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < a->pattern->program.lives.n; i++) {
        for (uint32_t j = 0; j < a->pattern->program.lives.items[i].n_places && status == NEAP_OK; j++) {
            neap_block *block = a->pattern->actors[i].now[j];
            if (block && np_block_has_place(a->pattern, i, block)) {
                status = send_unclaimed(a, i, j, block);
            }
        }
    }
    return status;
}

/* ---- what becomes of the others ---- */

/* The arena's pages that nothing wants elsewhere stay; then what is left fills what is empty. */
static void claim_rest(arrangement *a)
{
    const np_view *arena = &a->m->arena;
    uint32_t at = 0;
    for (uint32_t k = 0; k < a->m->n_arena; k++) {
        (void)claim(a, k, arena->numbers[k]);
    }
    for (uint32_t k = 0; k < a->m->n_arena; k++) {
        bool is_unused = a->m->pages.pages.items[arena->numbers[k]].n_users == 0;
        while (at < a->n_all && a->numbers[at] != NP_NO_PAGE) {
            at++;
        }
        if (at < a->n_all && is_unused) {
            (void)claim(a, at, arena->numbers[k]);
        }
    }
}

static void unmap_everywhere(neap_device *m, uint32_t number);

/* What changes is no longer to be seen in the arena; a page that stands nowhere in it any more is not its. */
static void clear_changed(arrangement *a)
{
    neap_device *m = a->m;
    for (uint32_t k = 0; k < m->n_arena; k++) {
        uint32_t number = m->arena.numbers[k];
        if (a->numbers[k] == number) {
            continue;
        }
        np_view_unmap(&m->pages, &m->arena, k, 1, NP_UNCOUNTED);
        if (!a->is_claimed[number]) {
            unmap_everywhere(m, number);
            np_pages_leave_arena(&m->pages, number);
        }
    }
}

/* The arena ends before page `at`: what was to stand behind it and later ones is no longer its. */
static void cut_arena(arrangement *a, uint32_t at)
{
    neap_device *m = a->m;
    for (uint32_t k = at; k < a->n_all; k++) {
        uint32_t number = a->numbers[k];
        if (k < m->arena.n_pages && m->arena.numbers[k] != NP_NO_PAGE) {
            np_view_unmap(&m->pages, &m->arena, k, 1, NP_UNCOUNTED);
        }
        if (number != NP_NO_PAGE && np_pages_is_arena(&m->pages, number)) {
            unmap_everywhere(m, number);
            np_pages_leave_arena(&m->pages, number);
        }
    }
    m->n_arena = at;
}

/* New pages where there are none, up to what the plan needs: what is behind that and empty, ends the arena. */
static neap_status take_missing(arrangement *a)
{
    uint32_t n = 0;
    neap_status status;
    for (uint32_t k = 0; k < a->n; k++) {
        n += a->numbers[k] == NP_NO_PAGE;
    }
    status = n > 0 ? np_room_take(a->m, n, a->taken) : NEAP_OK;
    for (uint32_t k = 0; k < a->n && n > 0 && status == NEAP_OK; k++) {
        if (a->numbers[k] == NP_NO_PAGE) {
            a->numbers[k] = a->taken[--n];
            np_pages_join_arena(&a->m->pages, a->numbers[k]);
            np_pages_unuse(&a->m->pages, &a->numbers[k], 1);
        }
    }
    return status;
}

/* Maps what is missing, in runs. */
static neap_status map_changed(arrangement *a, uint32_t *end)
{
    neap_device *m = a->m;
    neap_status status = NEAP_OK;
    *end = 0;
    while (*end < a->n_all && a->numbers[*end] != NP_NO_PAGE && status == NEAP_OK) {
        uint32_t past = *end;
        while (past < a->n_all && a->numbers[past] != NP_NO_PAGE && m->arena.numbers[past] == NP_NO_PAGE) {
            if (!np_pages_is_arena(&m->pages, a->numbers[past])) {
                np_pages_join_arena(&m->pages, a->numbers[past]);
                np_room_unback(m, a->numbers[past]);
            }
            past++;
        }
        if (past > *end) {
            status = np_view_map(&m->pages, &m->arena, *end, past - *end, &a->numbers[*end]);
        }
        *end = status != NEAP_OK ? *end : past > *end ? past : past + 1;
    }
    return status;
}

static neap_status arrange(arrangement *a)
{
    neap_status status;
    uint32_t end;
    claim_flat(a);
    claim_standing(a);
    status = send_all_unclaimed(a);
    if (status != NEAP_OK) {
        return status; /* the arena is as it was */
    }
    claim_rest(a);
    clear_changed(a);
    status = take_missing(a);
    if (status == NEAP_OK) {
        status = map_changed(a, &end);
    } else {
        end = 0;
        while (end < a->n_all && a->numbers[end] != NP_NO_PAGE && a->m->arena.numbers[end] == a->numbers[end]) {
            end++;
        }
    }
    cut_arena(a, end);
    return status;
}

static neap_status reserve_arena(neap_device *m, uint32_t n)
{
    uint64_t n_reserved = (uint64_t)n * ARENA_SPARE + 64;
    if (m->arena.numbers) {
        return n <= m->arena.n_pages ? NEAP_OK : NEAP_NO_PLAN;
    }
    n_reserved = n_reserved < m->device->n_pages ? n_reserved : m->device->n_pages;
    return n <= n_reserved ? np_view_make(&m->pages, (uint32_t)n_reserved, &m->arena) : NEAP_NO_PLAN;
}

neap_status np_arena_arrange(neap_device *m, const np_pattern *pattern)
{
    uint32_t n = arena_pages_of(m, pattern);
    uint32_t n_all = n > m->n_arena ? n : m->n_arena;
    arrangement a = {.m = m, .pattern = pattern, .n = n, .n_all = n_all, .n_claimable = m->pages.pages.n};
    neap_status status = reserve_arena(m, n);
    if (status != NEAP_OK) {
        return status;
    }
    a.numbers = np_memory_alloc(m->memory, n_all, sizeof *a.numbers);
    a.taken = np_memory_alloc(m->memory, n, sizeof *a.taken);
    a.is_claimed = np_memory_alloc_zero(m->memory, a.n_claimable, sizeof *a.is_claimed);
    status = a.numbers && a.taken && a.is_claimed ? NEAP_OK : NEAP_NO_MEMORY;
    for (uint32_t k = 0; k < n_all && status == NEAP_OK; k++) {
        a.numbers[k] = NP_NO_PAGE;
    }
    if (status == NEAP_OK) {
        status = arrange(&a);
    }
    np_memory_free(m->memory, a.numbers, n_all, sizeof *a.numbers);
    np_memory_free(m->memory, a.taken, n, sizeof *a.taken);
    np_memory_free(m->memory, a.is_claimed, a.n_claimable, sizeof *a.is_claimed);
    return status;
}

/* ---- smaller ---- */

static void unmap_from(neap_device *m, np_pattern *pattern, uint32_t number)
{
    for (uint32_t i = 0; pattern && i < pattern->n_blocks; i++) {
        np_view *view = &pattern->blocks[i].view;
        for (uint32_t k = 0; k < view->n_pages && !pattern->blocks[i].is_live; k++) {
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
    for (np_pattern *pattern = m->outlived; pattern; pattern = pattern->next_outlived) {
        unmap_from(m, pattern, number);
    }
}

/* Pages in which live blocks have their addresses, the bytes of which may be on the host. */
static uint32_t n_addressed(const neap_device *m)
{
    uint32_t n = 0;
    for (const neap_block *block = m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(m, block, &first, &end);
            n = end > n ? end : n;
        }
    }
    return n;
}

bool np_arena_shrink(neap_device *m, uint32_t n)
{
    uint32_t before = m->n_arena;
    uint32_t least = n_addressed(m);
    n = n > least ? n : least;
    while (m->n_arena > n) {
        uint32_t number = m->arena.numbers[m->n_arena - 1];
        if (m->pages.pages.items[number].n_users > 0) {
            break;
        }
        np_room_unback(m, number);
        unmap_everywhere(m, number);
        np_view_unmap(&m->pages, &m->arena, m->n_arena - 1, 1, NP_UNCOUNTED);
        np_pages_leave_arena(&m->pages, number);
        m->n_arena--;
    }
    return m->n_arena < before;
}

void np_arena_shrink_for(neap_device *m, const np_pattern *pattern)
{
    (void)np_arena_shrink(m, arena_pages_of(m, pattern));
}

bool np_arena_could_fit(const neap_device *m, const np_pattern *pattern)
{
    return arena_pages_of(m, pattern) <= np_limit_with(m, pattern);
}

void np_recount_arena(neap_device *m)
{
    np_pages_clear_arena(&m->pages, true);
    for (neap_block *block = m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(m, block, &first, &end);
            for (uint32_t k = first; k < end; k++) {
                np_pages_use_home(&m->pages, m->arena.numbers[k]);
            }
        }
        for (uint32_t i = 0; i < block->view.n_pages; i++) {
            if (block->view.numbers[i] != NP_NO_PAGE && np_pages_is_arena(&m->pages, block->view.numbers[i])) {
                np_pages_use_home(&m->pages, block->view.numbers[i]);
            }
        }
    }
}
