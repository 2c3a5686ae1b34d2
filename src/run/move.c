/* move.c: blocks leave for the host and come back, while there is no plan to say when.
 *
 * All of it waits for the device: a block that moves is used by no work under way. Copies begin and end with the block: in
 * the first and last page of a view there may be bytes of others. */
#include "run/manager.h"

/* The block's bytes in pages [.., end) of its view. */
static uint64_t end_of_pages(const neap_device *m, const neap_block *block, uint32_t end)
{
    uint64_t byte = np_view_byte_of(&block->view, end, m->device->page_bytes);
    return byte < block->bytes ? byte : block->bytes;
}

uint64_t np_block_host_bytes(const neap_device *m, const neap_block *block)
{
    uint64_t page = m->device->page_bytes;
    return (block->view.lead + block->bytes + page - 1) / page * page;
}

/* ---- who is where ---- */

/* Bytes [begin, end) of a physical page. */
typedef struct stretch {
    uint64_t begin;
    uint64_t end;
} stretch;

static stretch stretch_of(const neap_device *m, const neap_block *block, uint32_t page)
{
    uint64_t page_bytes = m->device->page_bytes;
    uint64_t begin = np_view_byte_of(&block->view, page, page_bytes);
    uint64_t past = end_of_pages(m, block, page + 1);
    uint64_t from = page == 0 ? block->view.lead : 0;
    return (stretch){from, from + (past - begin)};
}

static bool meet(stretch a, stretch b)
{
    return a.begin < b.end && b.begin < a.end;
}

/* Does the block, a view, have data in these bytes of the page? */
static bool has_bytes(const neap_device *m, const neap_block *block, uint32_t number, stretch bytes)
{
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        if (block->view.numbers[i] == number && meet(stretch_of(m, block, i), bytes)) {
            return true;
        }
    }
    return false;
}

/* Does another view have data there? Others may share the page, in other bytes. */
static bool is_taken(const neap_device *m, uint32_t number, stretch bytes)
{
    for (const neap_block *block = m->pages.pages.items[number].n_users > 0 ? m->live : NULL; block;
         block = block->next) {
        if (has_bytes(m, block, number, bytes)) {
            return true;
        }
    }
    return false;
}

/* The same for flat blocks, at page `at` of the arena. */
static bool is_under_flat(const neap_device *m, uint32_t at, stretch bytes)
{
    uint64_t base = at * m->device->page_bytes;
    for (const neap_block *block = m->live; block; block = block->next) {
        if (block->kind == NP_BLOCK_FLAT && !block->is_absent) {
            uint64_t offset = (uint64_t)(block->address - m->arena.address);
            if (meet((stretch){base + bytes.begin, base + bytes.end}, (stretch){offset, offset + block->bytes})) {
                return true;
            }
        }
    }
    return false;
}

/* ---- leaving ---- */

static neap_status copy_out(neap_device *m, neap_block *block, uint64_t begin, uint64_t end)
{
    np_device *device = m->device;
    uint64_t mark;
    neap_status status;
    if (!block->is_fixed && np_clean_has(&block->clean, begin, end)) { /* one that is fixed is written to unseen */
        return NEAP_OK;
    }
    status =
        device->api->copy(device, NP_STREAM_OUT, block->slot.host + begin, block->address + begin, end - begin, &mark);
    m->stats.bytes_out += status == NEAP_OK ? end - begin : 0;
    return status;
}

/* Those of the pages [first, end) of a view that are there, in runs. */
static neap_status copy_pages_out(neap_device *m, neap_block *block, uint32_t first, uint32_t end)
{
    uint64_t page = m->device->page_bytes;
    neap_status status = NEAP_OK;
    for (uint32_t i = first; i < end && status == NEAP_OK;) {
        uint32_t past = i;
        while (past < end && block->view.numbers[past] != NP_NO_PAGE) {
            past++;
        }
        if (past > i) {
            status = copy_out(m, block, np_view_byte_of(&block->view, i, page), end_of_pages(m, block, past));
        }
        i = past + 1;
    }
    return status;
}

neap_status np_block_depart_pages(neap_device *m, neap_block *block, uint32_t first, uint32_t end)
{
    uint64_t page = m->device->page_bytes;
    neap_status status = np_drain(m);
    if (status == NEAP_OK && !block->slot.host) {
        status = np_host_take(&m->host, np_block_host_bytes(m, block), &block->slot);
    }
    if (status == NEAP_OK) {
        status = copy_pages_out(m, block, first, end);
    }
    if (status == NEAP_OK) {
        status = np_drain(m);
    }
    if (status != NEAP_OK) { /* copies may be on their way into the slot, but the block is still where it was */
        return status;
    }
    np_view_unmap(&m->pages, &block->view, first, end - first, NP_COUNTED);
    np_clean_note(&block->clean, np_view_byte_of(&block->view, first, page), np_view_byte_of(&block->view, end, page));
    if (block->view.n_missing == block->view.n_pages) {
        np_recent_remove(m, block);
    }
    return NEAP_OK;
}

static neap_status depart_flat(neap_device *m, neap_block *block)
{
    uint32_t first;
    uint32_t end;
    neap_status status = np_drain(m);
    if (status == NEAP_OK && !block->slot.host) {
        status = np_host_take(&m->host, block->bytes, &block->slot);
    }
    if (status == NEAP_OK) {
        status = copy_out(m, block, 0, block->bytes);
    }
    if (status == NEAP_OK) {
        status = np_drain(m);
    }
    if (status != NEAP_OK) {
        return status;
    }
    np_block_arena_pages(m, block, &first, &end);
    np_pages_unuse(&m->pages, &m->arena.numbers[first], end - first);
    block->is_absent = true;
    np_clean_note(&block->clean, 0, block->bytes);
    np_recent_remove(m, block);
    return NEAP_OK;
}

neap_status np_block_depart(neap_device *m, neap_block *block)
{
    return block->kind == NP_BLOCK_FLAT ? depart_flat(m, block)
                                        : np_block_depart_pages(m, block, 0, block->view.n_pages);
}

/* ---- returning ---- */

/* Whatever else has data in the bytes [begin, end) of the arena leaves. */
static neap_status clear_arena(neap_device *m, uint64_t begin, uint64_t end)
{
    uint64_t page = m->device->page_bytes;
    neap_status status = NEAP_OK;
    for (uint32_t k = (uint32_t)(begin / page); k * page < end && status == NEAP_OK; k++) {
        uint32_t number = m->arena.numbers[k];
        stretch bytes = {begin > k * page ? begin - k * page : 0, end < (k + 1) * page ? end - k * page : page};
        bool is_used = m->pages.pages.items[number].n_users > 0;
        for (neap_block *block = is_used ? m->live : NULL; block && status == NEAP_OK; block = block->next) {
            if (has_bytes(m, block, number, bytes)) {
                status = np_block_depart(m, block);
            }
        }
    }
    return status;
}

static neap_status return_flat(neap_device *m, neap_block *block)
{
    uint32_t first;
    uint32_t end;
    uint64_t offset = (uint64_t)(block->address - m->arena.address);
    uint64_t mark = 0;
    neap_status status = np_drain(m); /* earlier users of the bytes may be under way */
    if (status == NEAP_OK) {
        status = clear_arena(m, offset, offset + block->bytes);
    }
    np_block_arena_pages(m, block, &first, &end);
    if (status == NEAP_OK) {
        status = m->device->api->copy(m->device, NP_STREAM_IN, block->address, block->slot.host, block->bytes, &mark);
    }
    if (status == NEAP_OK) {
        status = m->device->api->sync(m->device, NP_STREAM_IN, mark);
    }
    if (status == NEAP_OK) {
        m->stats.bytes_in += block->bytes;
        block->is_absent = false;
        for (uint32_t k = first; k < end; k++) {
            np_pages_use_home(&m->pages, m->arena.numbers[k]);
        }
    }
    return status == NEAP_OK ? np_beneath_return_fixed(m) : status;
}

/* Is a missing page's place in the arena free? */
static bool is_home_free(const neap_device *m, const neap_block *block, uint32_t page, uint32_t number)
{
    uint32_t at = block->home ? block->home[page] : NP_NO_PAGE;
    stretch bytes = stretch_of(m, block, page);
    return m->pages.pages.items[number].n_users == 0 ||
           (at != NP_NO_PAGE && !is_taken(m, number, bytes) && !is_under_flat(m, at, bytes));
}

/* May pages of the device stand behind the block's place? */
static bool has_place(const neap_block *block)
{
    return block->kind == NP_BLOCK_LOOSE && block->place.entry != NP_HEAP_NONE && !block->is_exported;
}

/* The page behind a block's place in its space, if the block can have it. */
static uint32_t find_behind(const neap_device *m, const neap_block *block, uint32_t page)
{
    uint32_t number =
        has_place(block) ? np_space_page(&m->spaces[block->place.space], &block->place, page) : NP_NO_PAGE;
    bool is_plans = number != NP_NO_PAGE && np_pages_is_arena(&m->pages, number) &&
                    (m->state == NEAP_STATE_RUN || m->is_entering || m->pages.pages.items[number].is_home);
    return is_plans ? NP_NO_PAGE : number;
}

/* A plan that is entered, or followed, gives its places to its own blocks: one of another plan has none there. */
static bool is_stranger(const neap_device *m, const neap_block *block)
{
    return m->is_entering ? !block->is_standing : m->state == NEAP_STATE_RUN && block->life == NP_NO_LIFE;
}

/* Its place in the arena, where nothing is there. */
static uint32_t find_home(const neap_device *m, const neap_block *block, uint32_t page)
{
    bool has_none = block->is_exported || is_stranger(m, block);
    uint32_t home = has_none ? NP_NO_PAGE : np_block_home_page(m, block, page);
    return home != NP_NO_PAGE && is_home_free(m, block, page, home) ? home : NP_NO_PAGE;
}

/* For each missing page of the view its own: in the arena, or else behind its place in its space. *n_rest have neither. All
 * homes come first: one that is found is used, and no longer behind the place of another. */
static void find_own(neap_device *m, const neap_block *block, uint32_t *numbers, uint32_t *n_rest)
{
    const np_view *view = &block->view;
    *n_rest = view->n_missing;
    for (uint32_t i = 0; i < view->n_pages; i++) {
        numbers[i] = NP_NO_PAGE;
    }
    for (int is_home = 1; is_home >= 0; is_home--) {
        for (uint32_t i = 0; i < view->n_pages; i++) {
            if (view->numbers[i] == NP_NO_PAGE && numbers[i] == NP_NO_PAGE) {
                numbers[i] = is_home ? find_home(m, block, i) : find_behind(m, block, i);
                if (numbers[i] != NP_NO_PAGE && is_home) {
                    np_pages_use_home(&m->pages, numbers[i]);
                } else if (numbers[i] != NP_NO_PAGE) {
                    np_pages_use(&m->pages, numbers[i]);
                }
                if (numbers[i] != NP_NO_PAGE) {
                    (*n_rest)--;
                }
            }
        }
    }
}

static neap_status take_others(neap_device *m, const neap_block *block, uint32_t n, uint32_t *numbers)
{
    return n == 0               ? NEAP_OK
           : has_place(block)   ? np_room_take_for_place(m, n, numbers)
           : block->is_exported ? np_room_take_new(m, n, numbers)
                                : np_room_take(m, n, numbers);
}

/* A page that the block got stands behind its place from now on: it may be one that spares show. */
static void stand_behind(neap_device *m, const neap_block *block, uint32_t page, uint32_t number)
{
    if (has_place(block)) {
        np_space *space = &m->spaces[block->place.space];
        if (np_space_page(space, &block->place, page) != NP_NO_PAGE) { /* a page of the arena, which others use now */
            np_space_unback(space, np_space_first_page(space, &block->place) + page);
        }
        np_space_back(space, &block->place, page, number);
    }
}

/* Physical pages for the missing ones of a view: its own places where nothing is there, others elsewhere. */
static neap_status find_pages(neap_device *m, neap_block *block, uint32_t *numbers)
{
    const np_view *view = &block->view;
    uint32_t n_rest;
    uint32_t *rest;
    neap_status status;
    find_own(m, block, numbers, &n_rest);
    rest = np_memory_alloc(m->memory, n_rest, sizeof *rest);
    status = rest ? take_others(m, block, n_rest, rest) : NEAP_NO_MEMORY;
    if (status != NEAP_OK) {
        np_pages_unuse(&m->pages, numbers, view->n_pages);
    }
    for (uint32_t i = 0, k = 0; i < view->n_pages && status == NEAP_OK; i++) {
        if (view->numbers[i] == NP_NO_PAGE && numbers[i] == NP_NO_PAGE) {
            numbers[i] = rest[k++];
            stand_behind(m, block, i, numbers[i]);
        }
    }
    np_memory_free(m->memory, rest, n_rest, sizeof *rest);
    return status;
}

/* Work that was given before the pages were freed may still use them: bytes are fetched into them after it, and what else
 * uses the block comes after it. */
static neap_status wait_for_earlier(neap_device *m, neap_block *block, const uint32_t *numbers)
{
    bool is_done = true;
    if (!block->clean.on_host) {
        return np_block_add_after(m, block, numbers, block->view.n_pages);
    }
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        is_done &= numbers[i] == NP_NO_PAGE || np_pages_is_done(&m->pages, numbers[i]);
    }
    return is_done ? NEAP_OK : np_drain(m);
}

/* Maps the run of missing pages [first, end) and fetches their bytes. On failure the run is missing as before. */
static neap_status return_run(neap_device *m, neap_block *block, uint32_t first, uint32_t end, const uint32_t *numbers)
{
    uint64_t begin = np_view_byte_of(&block->view, first, m->device->page_bytes);
    uint64_t bytes = end_of_pages(m, block, end) - begin;
    uint64_t mark = 0;
    neap_status status = np_view_map(&m->pages, &block->view, first, end - first, &numbers[first]);
    if (status != NEAP_OK) {
        np_pages_unuse(&m->pages, &numbers[first], end - first);
        return status;
    }
    if (!block->clean.on_host) {
        return NEAP_OK;
    }
    status =
        m->device->api->copy(m->device, NP_STREAM_IN, block->address + begin, block->slot.host + begin, bytes, &mark);
    if (status == NEAP_OK) {
        status = m->device->api->sync(m->device, NP_STREAM_IN, mark);
    }
    if (status != NEAP_OK) {
        np_view_unmap(&m->pages, &block->view, first, end - first, NP_COUNTED);
        return status;
    }
    m->stats.bytes_in += bytes;
    return NEAP_OK;
}

static neap_status return_view(neap_device *m, neap_block *block)
{
    uint32_t n = block->view.n_pages;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    neap_status status = numbers ? find_pages(m, block, numbers) : NEAP_NO_MEMORY;
    bool is_found = status == NEAP_OK;
    if (is_found) {
        status = wait_for_earlier(m, block, numbers);
    }
    for (uint32_t i = 0; i < n && is_found;) {
        uint32_t end = i;
        while (end < n && numbers[end] != NP_NO_PAGE) {
            end++;
        }
        if (end > i && status == NEAP_OK) {
            status = return_run(m, block, i, end, numbers);
        } else if (end > i) { /* those found for nothing */
            np_pages_unuse(&m->pages, &numbers[i], end - i);
        }
        i = end + 1;
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}

neap_status np_block_return(neap_device *m, neap_block *block)
{
    neap_status status;
    if (np_block_is_here(block)) {
        return NEAP_OK;
    }
    m->stats.waits += block->clean.on_host;
    block->pinned_by = m->pin;
    m->returning = block;
    status = block->kind == NP_BLOCK_FLAT ? return_flat(m, block) : return_view(m, block);
    m->returning = NULL;
    if (status == NEAP_OK || block->view.n_missing < block->view.n_pages) { /* what came may leave again */
        np_recent_touch(m, block);
    }
    return status;
}

neap_status np_block_return_home(neap_device *m, neap_block *block, uint32_t first, uint32_t end)
{
    uint32_t n = block->view.n_pages;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    neap_status status = numbers ? NEAP_OK : NEAP_NO_MEMORY;
    for (uint32_t i = first; i < end && status == NEAP_OK; i++) {
        numbers[i] = np_block_home_page(m, block, i);
        if (numbers[i] == NP_NO_PAGE || is_taken(m, numbers[i], stretch_of(m, block, i))) {
            np_pages_unuse(&m->pages, &numbers[first], i - first);
            status = NEAP_NO_PLAN;
        } else {
            np_pages_use_home(&m->pages, numbers[i]);
        }
    }
    if (status == NEAP_OK) {
        status = return_run(m, block, first, end, numbers); /* nothing is under way */
    }
    if (status == NEAP_OK) {
        np_recent_touch(m, block);
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}
