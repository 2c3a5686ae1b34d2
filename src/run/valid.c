/* valid.c: a walk over everything the manager knows, for tests: does it all agree?
 *
 * Who uses a page is counted anew from those who could (views of blocks and slabs, flat blocks, spares) and compared with
 * what the pages say. While a plan runs, its arena's pages are not counted. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "run/manager.h"

static bool is_running(const neap_device *m)
{
    return m->state == NEAP_STATE_RUN;
}

/* All patterns: those of the list, then those that refining holds. False: there are no more; NULL: not this one. */
static bool get_pattern(const neap_device *m, size_t i, const np_pattern **pattern)
{
    const np_pattern *held[] = {m->refine.best, m->refine.next, m->refine.retired};
    size_t n = m->patterns.n;
    if (i < n + sizeof held / sizeof *held) {
        *pattern = i < n ? m->patterns.items[i] : held[i - n];
        return true;
    }
    return false;
}

/* ---- blocks ---- */

static const char *find_block_flaw(const neap_device *m, const neap_block *block)
{
    bool has_view = block->kind == NP_BLOCK_LOOSE || block->kind == NP_BLOCK_SWAPPED;
    bool is_planned = block->kind == NP_BLOCK_FLAT || block->kind == NP_BLOCK_SWAPPED;
    if (!block->is_live || !block->address || block->bytes == 0) {
        return "a block in the list of live ones is not live";
    }
    if (is_planned != (block->pattern != NULL)) {
        return "a block has a pattern that it should not have, or none";
    }
    if (has_view != (block->view.numbers != NULL) ||
        (has_view && block->view.address + block->view.lead != block->address)) {
        return "a block's view is not its own";
    }
    if (has_view && !np_view_is_valid(&m->pages, &block->view)) {
        return "a block's view is not valid";
    }
    if (has_view && block->view.n_missing > 0 && block->clean.on_host && !block->slot.host) {
        return "an absent block has no bytes on the host";
    }
    if (block->kind == NP_BLOCK_FLAT && block->is_absent && !block->slot.host) {
        return "an absent flat block has no bytes on the host";
    }
    if (block->kind == NP_BLOCK_FLAT &&
        (block->address < m->arena.address ||
         block->address + block->bytes > m->arena.address + m->n_arena * m->device->page_bytes)) {
        return "a flat block is not in the arena";
    }
    return NULL;
}

/* The bytes of live blocks, planned ones included. */
static const char *walk_live(const neap_device *m)
{
    const neap_block *previous = NULL;
    const char *flaw = NULL;
    uint64_t bytes = 0;
    uint64_t sizes = 0;
    for (const neap_block *block = m->live; block; block = block->next) {
        sizes += np_mix64(block->bytes);
    }
    if (sizes != m->listed_sizes) {
        return "the sizes of live blocks are not what is said";
    }
    for (const neap_block *block = m->live; block && !flaw; block = block->next) {
        flaw = block->previous != previous                     ? "the list of live blocks is broken"
               : is_running(m) && block->pattern == m->pattern ? "a planned block is listed while its plan runs"
                                                               : find_block_flaw(m, block);
        bytes += block->bytes;
        previous = block;
    }
    for (uint32_t i = 0; is_running(m) && i < m->pattern->n_now; i++) {
        const neap_block *block = m->pattern->now[i];
        bytes += block && block->pattern ? block->bytes : 0;
    }
    return flaw ? flaw : bytes != m->stats.live ? "the bytes of live blocks are not what is said" : NULL;
}

static bool is_in_recent_list(const neap_device *m, const neap_block *block)
{
    return block->newer || m->newest == block;
}

static const char *walk_recent(const neap_device *m)
{
    const neap_block *newer = NULL;
    for (const neap_block *block = m->newest; block; block = block->older) {
        if (block->newer != newer || !block->is_live || block->kind == NP_BLOCK_SMALL) {
            return "the list of recently used blocks is broken";
        }
        newer = block;
    }
    if (newer != m->oldest) {
        return "the least recently used block is not the last";
    }
    for (const neap_block *block = m->live; block && !is_running(m); block = block->next) {
        bool can_leave = block->kind == NP_BLOCK_FLAT ? !block->is_absent : block->view.n_missing < block->view.n_pages;
        can_leave = can_leave && !block->is_fixed;
        if (block->kind != NP_BLOCK_SMALL && block->kind != NP_BLOCK_PLAIN &&
            can_leave != is_in_recent_list(m, block)) {
            return can_leave ? "a block that could leave is not listed" : "a block that has left is listed";
        }
    }
    return NULL;
}

/* ---- pages ---- */

static void count_view(const np_view *view, uint32_t *n_users)
{
    for (uint32_t i = 0; i < view->n_pages; i++) {
        if (view->numbers[i] != NP_NO_PAGE) {
            n_users[view->numbers[i]]++;
        }
    }
}

static void count_users(const neap_device *m, uint32_t *n_users)
{
    for (const neap_block *block = m->live; block; block = block->next) {
        count_view(&block->view, n_users);
        if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
            uint32_t first;
            uint32_t end;
            np_block_arena_pages(m, block, &first, &end);
            for (uint32_t k = first; k < end; k++) {
                n_users[m->arena.numbers[k]]++;
            }
        }
    }
    for (size_t i = 0; i < m->retired.n; i++) {
        count_view(&m->retired.items[i].view, n_users);
    }
    for (size_t i = 0; i < m->small.slabs.n; i++) {
        count_view(&m->small.slabs.items[i]->view, n_users);
    }
    count_view(&m->side.view, n_users);
}

static const char *walk_pages(const neap_device *m)
{
    size_t n = m->pages.pages.n;
    uint32_t *n_users = np_memory_alloc_zero(m->memory, n, sizeof *n_users);
    const char *flaw = NULL;
    if (!n_users) {
        return NULL; /* it cannot be looked at */
    }
    count_users(m, n_users);
    for (size_t i = 0; i < n && !flaw; i++) {
        const np_page *page = &m->pages.pages.items[i];
        if (!(page->is_arena && is_running(m)) && page->n_users != n_users[i]) {
            flaw =
                page->n_users > n_users[i] ? "a page has fewer users than it says" : "a page has users unknown to it";
        }
    }
    np_memory_free(m->memory, n_users, n, sizeof *n_users);
    return flaw ? flaw : np_pages_is_valid(&m->pages) ? NULL : "the pages are not valid";
}

static bool has_arena_page(const neap_device *m, const np_view *view)
{
    for (uint32_t i = 0; i < view->n_pages; i++) {
        if (view->numbers[i] != NP_NO_PAGE && np_pages_is_arena(&m->pages, view->numbers[i])) {
            return true;
        }
    }
    return false;
}

/* What a space keeps is kept by it alone. */
static const char *walk_spaces(const neap_device *m)
{
    for (int i = 0; i < NP_N_SPACES; i++) {
        if (!np_space_is_valid(&m->spaces[i])) {
            return "a space is not valid";
        }
    }
    for (size_t i = 0; i < m->pages.pages.n; i++) {
        const np_page *page = &m->pages.pages.items[i];
        if (page->kept_by != NP_NO_SPACE &&
            (page->kept_by >= NP_N_SPACES || page->kept_at >= m->spaces[page->kept_by].numbers.n ||
             m->spaces[page->kept_by].numbers.items[page->kept_at] != i)) {
            return "a page says that a space keeps it, which does not";
        }
        if (page->kept_by != NP_NO_SPACE && page->is_arena && is_running(m)) {
            return "a page of the arena stands behind a space while a plan runs";
        }
    }
    return NULL;
}

static const char *walk_arena(const neap_device *m)
{
    if (!m->arena.numbers) {
        return m->n_arena > 0 || m->pages.n_arena > 0 ? "pages are an arena's that is not there" : NULL;
    }
    if (!np_view_is_valid(&m->pages, &m->arena) || m->n_arena > m->arena.n_pages ||
        m->arena.n_missing != m->arena.n_pages - m->n_arena || m->pages.n_arena != m->n_arena) {
        return "the arena is not valid";
    }
    for (uint32_t k = 0; k < m->n_arena; k++) {
        if (m->arena.numbers[k] == NP_NO_PAGE || !np_pages_is_arena(&m->pages, m->arena.numbers[k])) {
            return "a page of the arena is not one";
        }
    }
    for (size_t i = 0; i < m->small.slabs.n; i++) {
        if (has_arena_page(m, &m->small.slabs.items[i]->view)) {
            return "a slab holds a page of the arena";
        }
    }
    return NULL;
}

/* ---- bytes ---- */

/* Bytes [begin, end) of the device's memory, counted by page number, are a block's. */
typedef struct stretch {
    uint64_t begin;
    uint64_t end;
} stretch;

typedef np_array(stretch) stretches;

static int compare_stretches(const void *left, const void *right)
{
    const stretch *a = left;
    const stretch *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Bytes [begin, end) of a page. */
static bool add_stretch(const neap_device *m, uint32_t number, uint64_t begin, uint64_t end, stretches *all)
{
    uint64_t base = number * m->device->page_bytes;
    stretch added = {base + begin, base + end};
    return np_array_push(m->memory, all, added) == NEAP_OK;
}

/* On the plan: has the page of a block been copied out, and not yet in again? */
static bool is_out(const neap_device *m, const neap_block *block, uint32_t k)
{
    const np_pattern *pattern = m->pattern;
    uint64_t page = m->device->page_bytes;
    for (uint32_t i = 0; is_running(m) && block->life != NP_NO_LIFE && i < pattern->program.swaps.n; i++) {
        const np_program_swap *swap = &pattern->program.swaps.items[i];
        if (swap->life == block->life && pattern->is_out[i] && pattern->actors[block->life].now[0] == block &&
            k >= np_view_page_of(&block->view, swap->begin, page) &&
            k < np_view_page_of(&block->view, swap->end + page - 1, page)) {
            return true;
        }
    }
    return false;
}

/* Of the block's bytes, which begin `lead` into the first of these pages. */
static bool add_pages(const neap_device *m, const neap_block *block, const uint32_t *numbers, uint64_t lead,
                      stretches *all)
{
    uint64_t page = m->device->page_bytes;
    bool is_added = true;
    for (uint32_t k = 0; k * page < lead + block->bytes && is_added; k++) {
        uint64_t left = lead + block->bytes - k * page;
        if (numbers[k] != NP_NO_PAGE && !(block->view.numbers && is_out(m, block, k))) {
            is_added = add_stretch(m, numbers[k], k == 0 ? lead : 0, left < page ? left : page, all);
        }
    }
    return is_added;
}

static bool add_block(const neap_device *m, const neap_block *block, stretches *all)
{
    if (block->view.numbers) {
        return add_pages(m, block, block->view.numbers, block->view.lead, all);
    }
    if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
        uint64_t offset = (uint64_t)(block->address - m->arena.address);
        uint64_t page = m->device->page_bytes;
        return add_pages(m, block, &m->arena.numbers[offset / page], offset % page, all);
    }
    return true;
}

/* No two blocks have the same bytes. */
static const char *walk_bytes(const neap_device *m)
{
    stretches all = {0};
    const char *flaw = NULL;
    bool is_seen = true; /* otherwise it cannot be looked at */
    for (const neap_block *block = m->live; block && is_seen; block = block->next) {
        is_seen = add_block(m, block, &all);
    }
    for (uint32_t i = 0; is_running(m) && i < m->pattern->n_now && is_seen; i++) {
        const neap_block *block = m->pattern->now[i];
        is_seen = !block || !block->pattern || add_block(m, block, &all);
    }
    if (is_seen && all.n > 0) {
        qsort(all.items, all.n, sizeof *all.items, compare_stretches);
    }
    for (size_t i = 1; i < all.n && is_seen && !flaw; i++) {
        flaw = all.items[i].begin < all.items[i - 1].end ? "two blocks have the same bytes" : NULL;
    }
    np_array_free(m->memory, &all);
    return flaw;
}

/* ---- host memory ---- */

static const char *walk_host(const neap_device *m)
{
    const np_pattern *pattern;
    uint64_t bytes = m->visit.scratch.bytes;
    for (const neap_block *block = m->live; block; block = block->next) {
        bytes += block->pattern || block->kind == NP_BLOCK_PLAIN ? 0 : block->slot.bytes;
    }
    for (size_t i = 0; get_pattern(m, i, &pattern); i++) {
        for (uint32_t k = 0; pattern && k < pattern->n_blocks; k++) {
            bytes += pattern->blocks[k].slot.bytes;
        }
    }
    for (pattern = m->outlived; pattern; pattern = pattern->next_outlived) {
        for (uint32_t k = 0; k < pattern->n_blocks; k++) {
            bytes += pattern->blocks[k].slot.bytes;
        }
    }
    return bytes != m->host.used_bytes || !np_host_is_valid(&m->host) ? "host memory was lost, or counted twice" : NULL;
}

/* ---- patterns ---- */

/* A block stands for one life at most, and knows for which. */
static const char *walk_followed(const neap_device *m)
{
    const np_pattern *pattern = m->pattern;
    if (!pattern || m->cursor > pattern->program.events.n) {
        return "a plan is followed that is not there";
    }
    if (m->rest.is_on && (pattern->program.swaps.n > 0 || pattern->program.ops.n > 0)) {
        return "nobody looks, though the plan has copies or waits";
    }
    for (uint32_t i = 0; i < pattern->program.lives.n; i++) {
        const np_program_life *life = &pattern->program.lives.items[i];
        for (uint32_t j = 0; j < life->n_places; j++) {
            const neap_block *block = pattern->actors[i].now[j];
            if (block && (!block->is_live || block->life != i || block->bytes != life->bytes)) {
                return "a block stands for a life that is not its own";
            }
        }
    }
    for (uint32_t i = 0; i < pattern->n_blocks; i++) {
        const neap_block *block = &pattern->blocks[i];
        if (block->kind == NP_BLOCK_SWAPPED && block->view.n_missing > 0) {
            return "a swapped block is not mapped onto its place";
        }
        for (uint32_t k = 0; block->kind == NP_BLOCK_SWAPPED && k < block->view.n_pages; k++) {
            if (block->view.numbers[k] != np_block_home_page(m, block, k)) {
                return "a swapped block is mapped elsewhere";
            }
        }
    }
    return NULL;
}

static const char *walk_patterns(const neap_device *m)
{
    const np_pattern *pattern;
    bool is_known = !m->pattern;
    for (size_t i = 0; get_pattern(m, i, &pattern); i++) {
        if (!pattern) {
            continue;
        }
        is_known |= pattern == m->pattern;
        if (!np_pattern_is_valid(pattern)) {
            return "a pattern is not valid";
        }
    }
    if (m->rest.is_on && !is_running(m)) {
        return "nobody looks, though no plan is followed";
    }
    return !is_known ? "the pattern is not one of the patterns" : is_running(m) ? walk_followed(m) : NULL;
}

static const char *walk_recorder(const neap_device *m)
{
    const neap_trace *trace = m->recorder.trace;
    if (!trace || is_running(m)) {
        return NULL;
    }
    if (!np_trace_is_valid(trace) || trace->events.n != m->recorder.n_events) {
        return "the recording is not valid";
    }
    for (const neap_block *block = m->live; block; block = block->next) {
        uint32_t index = np_trace_find_block(trace, block->id);
        if (index == NP_MAP_NONE || trace->blocks.items[index].free_event != NEAP_NEVER ||
            trace->blocks.items[index].bytes != block->bytes) {
            return "a live block is not in the recording";
        }
    }
    return NULL;
}

const char *np_manager_find_flaw(const neap_device *m)
{
    const char *(*const walks[])(const neap_device *) = {walk_live,   walk_recent,   walk_pages,
                                                         walk_spaces, walk_arena,    walk_bytes,
                                                         walk_host,   walk_patterns, walk_recorder};
    const char *flaw = np_small_is_valid(&m->small) ? NULL : "the small blocks are not valid";
    for (size_t i = 0; i < sizeof walks / sizeof *walks && !flaw; i++) {
        flaw = walks[i](m);
    }
    return flaw;
}

bool np_manager_is_valid(const neap_device *m)
{
    return np_manager_find_flaw(m) == NULL;
}
