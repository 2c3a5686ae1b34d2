/* loose.c: malloc, free and exec off the plan.
 *
 * A large block has a view of its own and a place in a space (memory/space.h), where it may share its first and last page
 * with its neighbours. Under a limit pages come with the first work that uses the block, not with its malloc. */
#include <string.h>

#include "base/hash.h"
#include "run/manager.h"

/* ---- lists ---- */

void np_live_add(neap_device *m, neap_block *block)
{
    block->previous = NULL;
    block->next = m->live;
    if (m->live) {
        m->live->previous = block;
    }
    m->live = block;
    m->listed_sizes += np_mix64(block->bytes);
    block->is_live = true;
}

void np_live_remove(neap_device *m, neap_block *block)
{
    if (block->previous) {
        block->previous->next = block->next;
    } else {
        m->live = block->next;
    }
    if (block->next) {
        block->next->previous = block->previous;
    }
    block->previous = block->next = NULL;
    m->listed_sizes -= np_mix64(block->bytes);
    block->is_live = false;
}

/* ---- malloc ---- */

neap_status np_block_add_after(neap_device *m, neap_block *block, const uint32_t *numbers, uint32_t n_numbers)
{
    uint32_t n = m->device->n_streams;
    uint64_t after[NP_MAX_STREAMS] = {0};
    bool any = false;
    for (uint32_t i = 0; i < n_numbers; i++) {
        if (numbers[i] != NP_NO_PAGE) {
            np_pages_add_after(&m->pages, numbers[i], after);
        }
    }
    for (np_stream s = 0; s < n; s++) {
        any |= after[s] > 0;
    }
    if (!any || n == 1) { /* one stream is its own order */
        return NEAP_OK;
    }
    if (!block->after) {
        block->after = np_memory_alloc_zero(m->memory, n, sizeof *block->after);
    }
    if (!block->after) {
        return NEAP_NO_MEMORY;
    }
    for (np_stream s = 0; s < n; s++) {
        block->after[s] = after[s] > block->after[s] ? after[s] : block->after[s];
    }
    block->after_left = (1u << n) - 1;
    return NEAP_OK;
}

/* Where blocks are malloc'd in a row none of them may last, or all: see np_packing. */
static np_space *space_for(neap_device *m)
{
    bool is_packed = m->packing == NP_PACK_ALL || (m->packing == NP_PACK_ROWS && m->n_row >= NP_ROW_LEAST);
    return &m->spaces[is_packed ? NP_SPACE_PACKED : NP_SPACE_PAGED];
}

static neap_status take_new_view(neap_device *m, const np_space *space, neap_block *block)
{
    bool is_deferred = m->is_beneath ? m->is_deferring : m->limit_pages != UINT32_MAX;
    neap_status status = np_view_make(&m->pages, np_space_n_pages(space, &block->place, block->bytes), &block->view);
    if (status == NEAP_OK) {
        block->view.lead = block->place.begin % m->device->page_bytes;
        block->address = block->view.address + block->view.lead;
        if (!is_deferred) { /* malloc says that there is no room */
            status = np_block_return(m, block);
        }
        if (status != NEAP_OK) {
            np_recent_remove(m, block);
            np_view_free(&m->pages, &block->view, NP_COUNTED);
        }
    }
    return status;
}

static neap_status take_spare(neap_device *m, neap_block *block)
{
    neap_status status = np_block_add_after(m, block, block->view.numbers, block->view.n_pages);
    block->address = block->view.address + block->view.lead;
    if (status != NEAP_OK) {
        np_retire_view(m, &block->view);
    }
    return status;
}

static neap_status take_view(neap_device *m, neap_block *block)
{
    np_space *space = space_for(m);
    neap_status status = np_space_place(space, m->next_id, block->bytes, &block->place);
    if (status != NEAP_OK) {
        block->place = NP_NO_PLACE;
        return status;
    }
    status = np_space_take_spare(space, &block->place, block->bytes, &block->view) ? take_spare(m, block)
                                                                                   : take_new_view(m, space, block);
    if (status != NEAP_OK) {
        np_space_leave(space, &block->place);
    }
    return status;
}

static void block_free(neap_device *m, neap_block *block)
{
    if (block->after) {
        np_memory_free(m->memory, block->after, m->device->n_streams, sizeof *block->after);
    }
    np_memory_free(m->memory, block->home, block->n_home, sizeof *block->home);
    np_host_give(&m->host, &block->slot);
    np_block_pool_give(&m->blocks, block);
}

static neap_status take_small(neap_device *m, uint64_t bytes, neap_block *block)
{
    uint32_t n = np_small_pages_needed(&m->small, bytes);
    neap_status status = NEAP_OK;
    if (n > 0) {
        uint32_t *numbers = np_memory_alloc(m->memory, n, sizeof *numbers);
        status = numbers ? np_room_take_new(m, n, numbers) : NEAP_NO_MEMORY;
        if (status == NEAP_OK) {
            status = np_small_grow(&m->small, numbers);
            if (status != NEAP_OK) {
                np_pages_unuse(&m->pages, numbers, n);
            }
        }
        np_memory_free(m->memory, numbers, n, sizeof *numbers);
    }
    return status == NEAP_OK ? np_small_take(&m->small, bytes, block) : status;
}

static neap_status fail_full(const neap_device *m, uint64_t bytes)
{
    uint64_t page = m->device->page_bytes;
    return np_device_fail(NEAP_DEVICE_FULL,
                          "%llu bytes were asked for, %llu of the device's %llu are held, and no more can be moved to "
                          "the host; a smaller batch, or a device with more memory, would help",
                          (unsigned long long)bytes, (unsigned long long)m->pages.n_held * page,
                          (unsigned long long)m->device->n_pages * page);
}

neap_status np_loose_malloc(neap_device *m, uint64_t bytes, neap_block **block)
{
    neap_block *made = np_block_pool_take(&m->blocks, m->memory);
    neap_status status;
    if (!made) {
        return np_device_fail(NEAP_NO_MEMORY, "%s", neap_status_message(NEAP_NO_MEMORY));
    }
    made->bytes = bytes;
    made->life = NP_NO_LIFE;
    made->kind = bytes < m->device->page_bytes && !m->is_beneath ? NP_BLOCK_SMALL : NP_BLOCK_LOOSE;
    made->malloc_event = UINT64_MAX;
    made->place = NP_NO_PLACE;
    if (bytes > (uint64_t)m->device->n_pages * m->device->page_bytes) {
        status = NEAP_DEVICE_FULL;
    } else {
        m->pin++;
        status = made->kind == NP_BLOCK_SMALL ? take_small(m, bytes, made) : take_view(m, made);
    }
    if (status != NEAP_OK) {
        block_free(m, made);
        return status == NEAP_DEVICE_FULL ? fail_full(m, bytes)
                                          : np_device_fail(status, "%s", neap_status_message(status));
    }
    made->id = m->next_id++;
    m->n_row++;
    np_live_add(m, made);
    if (made->view.n_missing < made->view.n_pages) {
        np_recent_touch(m, made);
    }
    *block = made;
    return NEAP_OK;
}

/* ---- free ---- */

/* It may have stood for a life of another plan, in that one's place. */
void np_block_forget_home(neap_device *m, neap_block *block)
{
    np_memory_free(m->memory, block->home, block->n_home, sizeof *block->home);
    block->home = NULL;
    block->n_home = 0;
    block->life = block->own_life;
}

/* Its pages go to others, after the work that may still use them. */
static void free_planned(neap_device *m, neap_block *block)
{
    if (block->kind == NP_BLOCK_SWAPPED) {
        (void)np_drain(m);
        np_view_unmap(&m->pages, &block->view, 0, block->view.n_pages, NP_COUNTED);
        np_block_forget_home(m, block);
    } else if (!block->is_absent) {
        uint32_t first;
        uint32_t end;
        np_block_arena_pages(m, block, &first, &end);
        if (np_pages_unuse_later(&m->pages, &m->arena.numbers[first], end - first) != NEAP_OK) {
            (void)np_drain(m);
            np_pages_unuse(&m->pages, &m->arena.numbers[first], end - first);
        }
    }
    block->is_absent = false;
    block->life = block->own_life;
    block->clean.on_host = false;
    block->pattern->n_live--;
}

static void free_view(neap_device *m, neap_block *block)
{
    np_space *space = &m->spaces[block->place.space];
    bool is_plain = m->options.mode == NEAP_MODE_PLAIN;
    if (is_plain) {
        (void)np_drain(m); /* as cudaFree does */
        np_view_free(&m->pages, &block->view, NP_COUNTED);
    } else if (!np_space_keep_spare(space, &block->place, &block->view)) {
        np_retire_view(m, &block->view);
    }
    np_space_leave(space, &block->place);
    if (is_plain) {
        np_space_give_back(space);
    }
}

void np_loose_free(neap_device *m, neap_block *block)
{
    np_recent_remove(m, block);
    np_live_remove(m, block);
    m->n_row = 0;
    if (block->kind == NP_BLOCK_FLAT || block->kind == NP_BLOCK_SWAPPED) {
        free_planned(m, block);
        return;
    }
    if (block->kind == NP_BLOCK_SMALL) {
        np_small_give(&m->small, block);
    } else {
        free_view(m, block);
    }
    block_free(m, block);
}

/* ---- exec ---- */

neap_status np_wait_after(neap_device *m, neap_block *block, np_stream stream)
{
    np_device *device = m->device;
    for (np_stream other = 0; other < device->n_streams; other++) {
        if (other != stream && block->after[other] > 0) {
            neap_status status = device->api->wait(device, stream, other, block->after[other]);
            if (status != NEAP_OK) {
                return status;
            }
        }
    }
    block->after_left &= ~(1u << stream);
    return NEAP_OK;
}

static neap_status list_touches(neap_device *m, const neap_use *uses, size_t n_uses)
{
    neap_status status = np_array_reserve(m->memory, &m->touches, n_uses + 1);
    for (size_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        m->touches.items[i] = (np_touch){.address = uses[i].block->address,
                                         .bytes = uses[i].block->bytes,
                                         .writes = uses[i].kind != NEAP_ACCESS_READ};
    }
    return status;
}

neap_status np_launch(neap_device *m, const np_given *given, uint64_t *mark)
{
    const neap_work *work = given->work;
    np_task task = {.run = work->run,
                    .arg = work->arg,
                    .arg_bytes = work->arg_bytes,
                    .duration_ns = work->duration_ns,
                    .times = given->times};
    if (m->device->wants_touches) {
        neap_status status = list_touches(m, given->uses, given->n_uses);
        if (status != NEAP_OK) {
            return status;
        }
        task.touches = m->touches.items;
        task.n_touches = (uint32_t)given->n_uses;
    }
    return m->device->api->launch(m->device, work->stream, &task, mark);
}

/* Everything that the work uses is on the device when this succeeds. Where it had to come, the recording tells of longer
 * iterations than the program's own. */
neap_status np_loose_ready(neap_device *m, const np_given *given)
{
    const neap_use *uses = given->uses;
    uint64_t copied = m->stats.bytes_in + m->stats.bytes_out;
    neap_status status = NEAP_OK;
    m->pin++;
    if (m->is_fixed_away) { /* whoever holds it may touch it now, without being seen to */
        status = np_beneath_return_fixed(m);
    }
    m->exec_name = given->work->name;
    for (size_t i = 0; i < given->n_uses; i++) {
        uses[i].block->pinned_by = m->pin;
    }
    if (m->is_raised) { /* for work before this one */
        np_limit_update(m);
    }
    if (m->pages.n_held > m->limit_pages && !m->is_blind && status == NEAP_OK) {
        status = np_room_take(m, 0, NULL);
    }
    for (int flat = 1; flat >= 0; flat--) {
        for (size_t i = 0; i < given->n_uses && status == NEAP_OK; i++) {
            if ((uses[i].block->kind == NP_BLOCK_FLAT) == (flat == 1)) {
                status = np_block_return(m, uses[i].block);
            }
        }
    }
    for (size_t i = 0; i < given->n_uses && status == NEAP_OK; i++) {
        np_recent_touch(m, uses[i].block);
        if (uses[i].block->after_left & (1u << given->work->stream)) {
            status = np_wait_after(m, uses[i].block, given->work->stream);
        }
    }
    m->exec_name = NULL;
    m->recorder.is_disturbed |= copied != m->stats.bytes_in + m->stats.bytes_out;
    return status;
}

void np_loose_given(neap_device *m, const np_given *given)
{
    (void)m;
    for (size_t i = 0; i < given->n_uses; i++) {
        given->uses[i].block->clean.n_writes += given->uses[i].kind != NEAP_ACCESS_READ;
    }
}
