/* blocks.c: malloc and free of a program that does not know of neap.
 *
 * Large blocks are the manager's, and stand in the index; small ones come from the side pool of their stream. */
#include <pthread.h>

#include "hook/core.h"

enum { NO_ERROR = 0, ERROR_MEMORY = 2 }; /* cudaSuccess, cudaErrorMemoryAllocation */

static uint64_t free_bytes_of(np_hook_device *device)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    size_t free_bytes = 0;
    size_t total = 0;
    np_cu_context popped;
    if (driver->context_push(device->context) == NP_CU_SUCCESS) {
        if (driver->memory_info(&free_bytes, &total) != NP_CU_SUCCESS) {
            free_bytes = 0;
        }
        (void)driver->context_pop(&popped);
    }
    return free_bytes;
}

/* PyTorch asks how much there is, before it tries convolutions, by a request for all that it was told is free, or for a
 * half of it, a quarter, and gives it back at once. The pages of such a block come with the first work that uses it, if
 * there ever is any. What is no more than all there is so far is served like any other: it might well be a tensor. */
static bool is_question(const np_hook_device *device, uint64_t bytes)
{
    uint64_t told = device->told_free;
    while (told > bytes) {
        told /= 2;
    }
    return told == bytes && bytes > np_hook_reserved(device) && device->n_captures == 0;
}

/* What others were promised and have not used. Under a limit they make room for each other. */
static uint64_t promised_bytes(const neap_device *m)
{
    uint64_t n_pages = 0;
    for (const neap_block *block = m->limit_pages == UINT32_MAX ? m->live : NULL; block; block = block->next) {
        n_pages += block->view.n_missing;
    }
    return n_pages * m->device->page_bytes;
}

/* What a block needs that may begin in the middle of a page. */
static uint64_t needed_bytes(const neap_device *m, uint64_t bytes)
{
    uint64_t page = m->device->page_bytes;
    return (bytes + page - 1) / page * page + (m->packing == NP_PACK_NONE ? 0 : page);
}

/* The answer must be true: the device has them, and the limit allows them. A block that is larger than the limit raises it,
 * but not a question. */
static bool is_too_much(np_hook_device *device, uint64_t bytes)
{
    const neap_device *m = device->manager;
    uint64_t limit = m->limit_pages == UINT32_MAX ? UINT64_MAX : m->limit_pages * m->device->page_bytes;
    return bytes > limit ||
           needed_bytes(m, bytes) + promised_bytes(m) > free_bytes_of(device) + np_hook_reserved(device);
}

static void free_known(np_hook_device *device, neap_block *block, void *stream)
{
    if (np_hook_capture_free(device, block)) {
        np_hook_capture_freed_on(device, block, stream);
    } else {
        (void)np_hook_free_block(device, block);
    }
}

static neap_status new_block(np_hook_device *device, uint64_t bytes, bool is_asking, neap_block **block)
{
    neap_device *m = device->manager;
    neap_status status = is_asking && is_too_much(device, bytes) ? NEAP_DEVICE_FULL : NEAP_OK;
    if (status == NEAP_OK) {
        m->is_deferring = is_asking;
        status = np_malloc_locked(m, bytes, block);
        m->is_deferring = false;
    }
    if (status == NEAP_OK && device->n_captures > 0) {
        status = np_hook_fix(device, *block, NP_HOOK_OF_GRAPH); /* one may be about to name it */
        if (status != NEAP_OK) {
            (void)np_free_locked(m, *block);
        }
    }
    return status;
}

static neap_status take_block(np_hook_device *device, uint64_t bytes, void *stream, void **address)
{
    np_hook_entry entry = {0};
    bool is_asking = is_question(device, bytes);
    neap_status status = NEAP_OK;
    entry.block = device->n_captures > 0 ? np_hook_capture_reuse(device, stream, bytes) : NULL;
    if (!entry.block) {
        status = new_block(device, bytes, is_asking, &entry.block);
    }
    if (status != NEAP_OK) {
        return status;
    }
    entry.begin = entry.block->address;
    entry.end = entry.begin + bytes;
    if (!is_asking) {
        np_hook_baseline_take(device, bytes, &entry);
    }
    if (!entry.block->pattern) {
        np_hook_recall_forget(&device->recall);
    }
    status = np_hook_index_add(&device->index, &entry);
    if (status != NEAP_OK) {
        np_hook_baseline_give(device, &entry);
        free_known(device, entry.block, stream);
        return status;
    }
    *address = entry.block->address;
    return NEAP_OK;
}

/* The heap of a stream; NP_HOOK_NO_STREAM: of none. What a capture asks for will be used by a graph. */
static neap_status side_stream(np_hook_device *device, void *stream, np_stream *lane)
{
    if (stream == NP_HOOK_NO_STREAM) {
        *lane = NP_SIDE_NO_STREAM;
        return NEAP_OK;
    }
    if (device->n_captures > 0 && np_hook_is_capturing(device, stream ? stream : NP_HOOK_LEGACY)) {
        *lane = NP_SIDE_CAPTURED;
        return NEAP_OK;
    }
    /* Work on threads' own streams is waited for before any other of the kind, and the legacy one waits for it. */
    return np_hook_lane(device, stream && stream != NP_HOOK_OWN ? stream : NP_HOOK_LEGACY, lane);
}

static neap_status take(np_hook_device *device, uint64_t bytes, void *stream, void **address)
{
    neap_device *m = device->manager;
    np_stream lane;
    char *at = NULL;
    neap_status status;
    if (bytes >= m->options.min_block) {
        return take_block(device, bytes, stream, address);
    }
    status = side_stream(device, stream, &lane);
    if (status == NEAP_OK) {
        status = np_side_malloc(m, bytes, lane, &at);
    }
    if (status == NEAP_OK) {
        *address = at;
        np_hook_baseline_take_small(device, bytes, at);
        if (device->index.gap_begin != m->side.view.address) {
            np_hook_index_exclude(&device->index, m->side.view.address, m->side.view.n_pages * m->device->page_bytes);
        }
    }
    return status;
}

static void note_high(np_hook_device *device)
{
    uint64_t reserved = np_hook_reserved(device);
    uint64_t used = np_hook_used(device);
    device->reserved_high = reserved > device->reserved_high ? reserved : device->reserved_high;
    device->used_high = used > device->used_high ? used : device->used_high;
}

static void note_stream(const void *stream)
{
    if (stream == NP_HOOK_OWN && !np_the_hook.has_thread_streams) {
        np_the_hook.has_thread_streams = true;
    }
}

int np_hook_malloc(int ordinal, uint64_t bytes, void *stream, void **address)
{
    np_hook_device *device;
    neap_status status;
    bool is_resting;
    bool was_inside = np_hook_is_inside;
    np_hook_is_inside = true;
    np_hook_is_copier = false;
    note_stream(stream);
    device = np_hook_device_get(ordinal);
    if (!device || device->keeper) {
        int result = device ? device->keeper->malloc(device, bytes, address)
                            : np_hook_pool_malloc(ordinal, bytes, stream, address);
        np_hook_is_inside = was_inside;
        return result;
    }
    (void)pthread_mutex_lock(&device->manager->lock);
    np_hook_rest_before(device, stream);
    status = take(device, bytes, stream, address);
    if (status == NEAP_OK) {
        note_high(device);
    }
    np_hook_rest_after(device);
    is_resting = device->manager->rest.is_on;
    (void)pthread_mutex_unlock(&device->manager->lock);
    np_hook_rest_settle(device);
    np_hook_scrub_where_it_matters(is_resting);
    np_hook_is_inside = was_inside;
    if (status != NEAP_OK && status != NEAP_DEVICE_FULL) {
        np_hook_say("cuda:%d: %s", ordinal, neap_device_error());
    }
    return status == NEAP_OK ? NO_ERROR : ERROR_MEMORY;
}

static bool has_synced(np_hook_device *device)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    np_cu_context popped;
    bool is_done = false;
    if (driver->context_sync && driver->context_push(device->context) == NP_CU_SUCCESS) {
        is_done = driver->context_sync() == NP_CU_SUCCESS;
        (void)driver->context_pop(&popped);
    }
    return is_done;
}

/* Aside, no use of a block is seen: where the work cannot be waited for, it is kept for good; beside a capture,
 * which such a wait would break, until there is none. What comes from here on is the runtime's, which needs the room. */
static void free_aside(np_hook_device *device, neap_block *block, void *stream)
{
    if (np_hook_is_beside_capture()) {
        (void)np_array_push(device->manager->memory, &device->later, block); /* or it is kept for good */
        return;
    }
    if (!has_synced(device)) {
        return;
    }
    free_known(device, block, stream);
    while (device->later.n > 0) {
        free_known(device, device->later.items[--device->later.n], stream);
    }
    np_retired_give_back(device->manager);
}

static bool free_on(np_hook_device *device, void *address, void *stream)
{
    np_hook_entry entry;
    np_stream lane = 0;
    device->n_frees++;
    if (np_side_has(device->manager, address)) {
        np_hook_rest_before(device, stream);
        np_hook_baseline_give_small(device, address);
        if (!np_hook_capture_free_small(device, address) && side_stream(device, stream, &lane) == NEAP_OK) {
            (void)np_side_free(device->manager, address, lane);
        }
        return true;
    }
    if (!np_hook_index_remove(&device->index, address, &entry)) {
        return false;
    }
    np_hook_rest_before(device, stream);
    np_hook_baseline_give(device, &entry);
    if (!entry.block->pattern || device->manager->state != NEAP_STATE_RUN) {
        np_hook_recall_forget(&device->recall);
    }
    if (np_the_hook.aside) {
        free_aside(device, entry.block, stream);
    } else {
        free_known(device, entry.block, stream);
    }
    return true;
}

bool np_hook_has(const void *address)
{
    bool is_found = np_hook_pool_has(address);
    for (int i = 0; i < NP_HOOK_MAX_DEVICES && !is_found; i++) {
        np_hook_device *device = np_the_hook.devices[i];
        if (device) {
            (void)pthread_mutex_lock(&device->manager->lock);
            is_found = np_side_has(device->manager, address) || np_hook_index_find(&device->index, address) != NULL;
            (void)pthread_mutex_unlock(&device->manager->lock);
        }
    }
    return is_found;
}

bool np_hook_free(void *address, void *stream)
{
    bool was_inside = np_hook_is_inside;
    bool is_found = false;
    bool is_resting = false;
    np_hook_is_inside = true;
    note_stream(stream);
    for (int i = 0; i < NP_HOOK_MAX_DEVICES && !is_found; i++) {
        np_hook_device *device = np_the_hook.devices[i];
        if (device && device->keeper) {
            is_found = device->keeper->free(device, address);
        } else if (device) {
            (void)pthread_mutex_lock(&device->manager->lock);
            is_found = free_on(device, address, stream);
            np_hook_rest_after(device);
            is_resting = device->manager->rest.is_on;
            (void)pthread_mutex_unlock(&device->manager->lock);
            np_hook_rest_settle(device);
        }
    }
    is_found = is_found || np_hook_pool_free(address, stream);
    np_hook_scrub_where_it_matters(is_resting);
    np_hook_is_inside = was_inside;
    return is_found;
}

void np_hook_give_back(np_hook_device *device)
{
    bool was_inside = np_hook_is_inside;
    np_hook_is_inside = true;
    (void)pthread_mutex_lock(&device->manager->lock);
    if (!device->keeper && (device->manager->retired.n > 0 || device->manager->pages.n_idle > 0) &&
        device->n_captures == 0 && np_drain(device->manager) == NEAP_OK) {
        np_retired_give_back(device->manager);
    }
    (void)pthread_mutex_unlock(&device->manager->lock);
    np_hook_is_inside = was_inside;
}

/* ---- what the program is told of its pool ---- */

uint64_t np_hook_reserved(const np_hook_device *device)
{
    const neap_device *m = device->manager;
    return device->keeper ? m->stats.live : m->pages.n_held * m->device->page_bytes;
}

uint64_t np_hook_used(np_hook_device *device)
{
    return device->manager->stats.live + device->manager->side.live_bytes;
}
