/* move.c: blocks leave for the host and come back, while there is no plan to say when.
 *
 * All of it waits for the device: a block that moves is used by no work under way. Copies end with the block: in the last
 * page of a view the bytes behind it may be another's. */
#include "run/manager.h"

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
    return status == NEAP_OK ? np_beneath_return_fixed(m) : status;
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
            uint32_t home = block->is_exported ? NP_NO_PAGE : np_block_home_page(m, block, i);
            if (home != NP_NO_PAGE && m->pages.pages.items[home].n_users == 0) {
                np_pages_use(&m->pages, home);
                numbers[i] = home;
            } else {
                n_rest++;
            }
        }
    }
    rest = np_memory_alloc(m->memory, n_rest, sizeof *rest);
    status = !rest                ? NEAP_NO_MEMORY
             : n_rest == 0        ? NEAP_OK
             : block->is_exported ? np_room_take_new(m, n_rest, rest)
                                  : np_room_take(m, n_rest, rest);
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
