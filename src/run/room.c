/* room.c: which blocks are on the device while there is no plan to say so.
 *
 * Under a limit the least recently used blocks leave for the host, and work brings back what it uses. All of this waits
 * for the device: slow, simple and right. It is only for the time until a plan exists, and for events outside one. */
#include "run/manager.h"

neap_status np_drain(neap_device *m)
{
    np_device *device = m->device;
    for (np_stream s = 0; s < NP_N_STREAMS; s++) {
        if (s < device->n_streams || s >= NP_MAX_STREAMS) {
            neap_status status = device->api->sync(device, s, device->api->mark(device, s));
            if (status != NEAP_OK) {
                return status;
            }
        }
    }
    return NEAP_OK;
}

/* ---- the list of blocks that can leave ---- */

void np_recent_remove(neap_device *m, neap_block *block)
{
    if (block->newer) {
        block->newer->older = block->older;
    } else if (m->newest == block) {
        m->newest = block->older;
    }
    if (block->older) {
        block->older->newer = block->newer;
    } else if (m->oldest == block) {
        m->oldest = block->newer;
    }
    block->newer = block->older = NULL;
}

void np_recent_touch(neap_device *m, neap_block *block)
{
    if (block->kind == NP_BLOCK_SMALL || block->kind == NP_BLOCK_PLAIN || m->newest == block) {
        return;
    }
    np_recent_remove(m, block);
    block->older = m->newest;
    if (m->newest) {
        m->newest->newer = block;
    }
    m->newest = block;
    m->oldest = m->oldest ? m->oldest : block;
}

/* ---- facts about a block ---- */

void np_block_arena_pages(const neap_device *m, const neap_block *block, uint32_t *first, uint32_t *end)
{
    uint64_t page = m->device->page_bytes;
    uint64_t offset = (uint64_t)(block->address - m->arena.address);
    *first = (uint32_t)(offset / page);
    *end = (uint32_t)((offset + block->bytes + page - 1) / page);
}

uint32_t np_block_home_page(const neap_device *m, const neap_block *block, uint32_t page)
{
    uint32_t home = NP_NO_PAGE;
    if (block->kind == NP_BLOCK_SWAPPED) {
        home = np_pattern_arena_page(block->pattern, block->life, page, m->device->page_bytes);
    } else if (block->home) {
        home = block->home[page];
    }
    return home == NP_NO_PAGE ? NP_NO_PAGE : m->arena.numbers[home];
}

bool np_block_is_here(const neap_block *block)
{
    switch ((np_block_kind)block->kind) {
    case NP_BLOCK_SMALL:
    case NP_BLOCK_PLAIN:
        return true;
    case NP_BLOCK_FLAT:
        return !block->is_absent;
    case NP_BLOCK_LOOSE:
    case NP_BLOCK_SWAPPED:
        break;
    }
    return block->view.n_missing == 0;
}

/* Where a run of pages that ends there ends: what follows the block in its last page is another's. */
static uint64_t end_of_pages(const neap_device *m, const neap_block *block, uint32_t end)
{
    uint64_t bytes = (uint64_t)end * m->device->page_bytes;
    return bytes < block->bytes ? bytes : block->bytes;
}

static uint64_t bytes_of_pages(const neap_device *m, const neap_block *block)
{
    return (uint64_t)block->view.n_pages * m->device->page_bytes;
}

/* ---- leaving ---- */

static neap_status copy_out(neap_device *m, neap_block *block, uint64_t begin, uint64_t end)
{
    np_device *device = m->device;
    uint64_t mark;
    neap_status status;
    if (np_clean_has(&block->clean, begin, end)) {
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
            status = copy_out(m, block, i * page, end_of_pages(m, block, past));
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
        status = np_host_take(&m->host, bytes_of_pages(m, block), &block->slot);
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
    np_clean_note(&block->clean, first * page, end * page);
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

/* ---- making room ---- */

static bool spare_is_idle(const neap_device *m, const np_spare *spare)
{
    for (np_stream s = 0; s < m->device->n_streams; s++) {
        if (!m->device->api->is_done(m->device, s, spare->after[s])) {
            return false;
        }
    }
    return true;
}

static neap_status dissolve_oldest_spare(neap_device *m)
{
    neap_status status = spare_is_idle(m, &m->spares.items[0]) ? NEAP_OK : np_drain(m);
    if (status == NEAP_OK) {
        np_view_free(&m->pages, &m->spares.items[0].view, NP_COUNTED);
        m->spares.n--;
        for (size_t i = 0; i < m->spares.n; i++) {
            m->spares.items[i] = m->spares.items[i + 1];
        }
    }
    return status;
}

void np_spares_dissolve(neap_device *m)
{
    for (size_t i = 0; i < m->spares.n; i++) {
        np_view_free(&m->pages, &m->spares.items[i].view, NP_COUNTED);
    }
    m->spares.n = 0;
}

static neap_block *oldest_unpinned(const neap_device *m)
{
    neap_block *block = m->oldest;
    while (block && block->pinned_by == m->pin) {
        block = block->newer;
    }
    return block;
}

/* A spare or a block less; *gone false: there is none that could go. */
static neap_status free_something(neap_device *m, bool *gone)
{
    neap_block *block = oldest_unpinned(m);
    *gone = true;
    if (m->spares.n > 0) {
        return dissolve_oldest_spare(m);
    }
    if (block && m->state != NEAP_STATE_RUN) {
        return np_block_depart(m, block);
    }
    *gone = false;
    return NEAP_OK;
}

/* Pages that the work being made ready is going to need beside those asked for now. */
static uint32_t needed_later(const neap_device *m)
{
    uint32_t n = 0;
    for (const neap_block *block = m->exec_name ? m->live : NULL; block; block = block->next) {
        n += block->pinned_by == m->pin && block != m->returning ? block->view.n_missing : 0;
    }
    return n;
}

static void raise_limit(neap_device *m, uint32_t n_pages)
{
    uint64_t page = m->device->page_bytes;
    np_log(m, NEAP_LOG_WARN, "%s needs %llu bytes of device memory at once: the limit is raised from %llu",
           m->exec_name ? m->exec_name : "the program", (unsigned long long)(n_pages * page),
           (unsigned long long)(m->limit_pages * page));
    m->limit_pages = n_pages;
    m->limit_was_raised = true;
}

/* New pages within the limit, then the arena's unused ones. */
static neap_status take_now(neap_device *m, uint32_t n, uint32_t n_new, uint32_t *numbers)
{
    neap_status status = n_new > 0 ? np_pages_take(&m->pages, n_new, numbers) : NEAP_OK;
    for (uint32_t i = n_new; i < n && status == NEAP_OK; i++) {
        numbers[i] = np_pages_borrow(&m->pages);
    }
    return status;
}

static neap_status take(neap_device *m, uint32_t n, bool may_borrow, uint32_t *numbers)
{
    uint32_t most = m->limit_pages < m->device->n_pages ? m->limit_pages : m->device->n_pages;
    bool gone = true;
    neap_status status = NEAP_OK;
    while (status == NEAP_OK) {
        uint32_t held = m->pages.n_held;
        uint32_t n_unused = may_borrow ? m->pages.n_arena_unused : 0;
        uint32_t n_new = held < most ? most - held : 0;
        if (held <= most && (uint64_t)n_new + n_unused >= n) {
            status = take_now(m, n, n < n_new ? n : n_new, numbers);
            if (status != NEAP_DEVICE_FULL) {
                return status;
            }
            most = held; /* less is there than was said: make do with what is held */
            status = NEAP_OK;
            continue;
        }
        status = free_something(m, &gone);
        if (status == NEAP_OK && !gone) {
            uint64_t wanted = (uint64_t)n + needed_later(m);
            uint64_t needed = held + (wanted > n_unused ? wanted - n_unused : 0);
            if (m->limit_pages >= m->device->n_pages || most < m->limit_pages || needed > m->device->n_pages) {
                return NEAP_DEVICE_FULL;
            }
            raise_limit(m, (uint32_t)needed);
            most = m->limit_pages;
        }
    }
    return status;
}

neap_status np_room_take(neap_device *m, uint32_t n, uint32_t *numbers)
{
    return take(m, n, m->state != NEAP_STATE_RUN && !m->is_entering, numbers);
}

neap_status np_room_take_new(neap_device *m, uint32_t n, uint32_t *numbers)
{
    return take(m, n, false, numbers);
}

/* ---- returning ---- */

/* Whatever else has data in these arena pages leaves. */
static neap_status clear_arena_pages(neap_device *m, uint32_t first, uint32_t end)
{
    neap_status status = NEAP_OK;
    bool is_used = false;
    for (uint32_t k = first; k < end; k++) {
        is_used |= m->pages.pages.items[m->arena.numbers[k]].n_users > 0;
    }
    for (neap_block *block = is_used ? m->live : NULL; block && status == NEAP_OK; block = block->next) {
        bool is_there = false;
        for (uint32_t i = 0; i < block->view.n_pages && !is_there; i++) {
            for (uint32_t k = first; k < end && !is_there; k++) {
                is_there = block->view.numbers[i] == m->arena.numbers[k];
            }
        }
        if (is_there) {
            status = np_block_depart(m, block);
        }
    }
    return status;
}

static neap_status return_flat(neap_device *m, neap_block *block)
{
    uint32_t first;
    uint32_t end;
    uint64_t mark = 0;
    neap_status status;
    np_block_arena_pages(m, block, &first, &end);
    status = clear_arena_pages(m, first, end);
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
            np_pages_use(&m->pages, m->arena.numbers[k]);
        }
    }
    return status;
}

/* Physical pages for the missing ones of a view: its own places in the arena where nothing is there, others elsewhere. */
static neap_status find_pages(neap_device *m, neap_block *block, uint32_t *numbers)
{
    const np_view *view = &block->view;
    uint32_t n_rest = 0;
    uint32_t *rest;
    neap_status status;
    for (uint32_t i = 0; i < view->n_pages; i++) {
        numbers[i] = NP_NO_PAGE;
        if (view->numbers[i] == NP_NO_PAGE) {
            uint32_t home = np_block_home_page(m, block, i);
            if (home != NP_NO_PAGE && m->pages.pages.items[home].n_users == 0) {
                np_pages_use(&m->pages, home);
                numbers[i] = home;
            } else {
                n_rest++;
            }
        }
    }
    rest = np_memory_alloc(m->memory, n_rest, sizeof *rest);
    status = rest ? n_rest > 0 ? np_room_take(m, n_rest, rest) : NEAP_OK : NEAP_NO_MEMORY;
    if (status != NEAP_OK) {
        np_pages_unuse(&m->pages, numbers, view->n_pages);
    }
    for (uint32_t i = 0, k = 0; i < view->n_pages && status == NEAP_OK; i++) {
        if (view->numbers[i] == NP_NO_PAGE && numbers[i] == NP_NO_PAGE) {
            numbers[i] = rest[k++];
        }
    }
    np_memory_free(m->memory, rest, n_rest, sizeof *rest);
    return status;
}

/* Maps the run of missing pages [first, end) and fetches their bytes. On failure the run is missing as before. */
static neap_status return_run(neap_device *m, neap_block *block, uint32_t first, uint32_t end, const uint32_t *numbers)
{
    uint64_t page = m->device->page_bytes;
    uint64_t bytes = end_of_pages(m, block, end) - first * page;
    uint64_t mark = 0;
    neap_status status = np_view_map(&m->pages, &block->view, first, end - first, &numbers[first]);
    if (status != NEAP_OK) {
        np_pages_unuse(&m->pages, &numbers[first], end - first);
        return status;
    }
    if (!block->clean.on_host) {
        return NEAP_OK;
    }
    status = m->device->api->copy(m->device, NP_STREAM_IN, block->address + first * page,
                                  block->slot.host + first * page, bytes, &mark);
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

/* Does another view have data on this page? Flat blocks may share it, in other bytes. */
static bool is_taken(const neap_device *m, uint32_t number)
{
    for (const neap_block *block = m->pages.pages.items[number].n_users > 0 ? m->live : NULL; block;
         block = block->next) {
        for (uint32_t i = 0; i < block->view.n_pages; i++) {
            if (block->view.numbers[i] == number) {
                return true;
            }
        }
    }
    return false;
}

neap_status np_block_return_home(neap_device *m, neap_block *block, uint32_t first, uint32_t end)
{
    uint32_t n = block->view.n_pages;
    uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
    neap_status status = numbers ? NEAP_OK : NEAP_NO_MEMORY;
    for (uint32_t i = first; i < end && status == NEAP_OK; i++) {
        numbers[i] = np_block_home_page(m, block, i);
        if (numbers[i] == NP_NO_PAGE || is_taken(m, numbers[i])) {
            np_pages_unuse(&m->pages, &numbers[first], i - first);
            status = NEAP_NO_PLAN;
        } else {
            np_pages_use(&m->pages, numbers[i]);
        }
    }
    if (status == NEAP_OK) {
        status = return_run(m, block, first, end, numbers);
    }
    if (status == NEAP_OK) {
        np_recent_touch(m, block);
    }
    np_memory_free(m->memory, numbers, n, sizeof *numbers);
    return status;
}
