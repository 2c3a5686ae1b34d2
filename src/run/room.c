/* room.c: which blocks are on the device while there is no plan to say so.
 *
 * Under a limit the least recently used blocks leave for the host, and work brings back what it uses. All of this waits
 * for the device: slow, simple and right. It is only for the time until a plan exists, and for events outside one. */
#include "run/manager.h"

enum { SPARE_TIMES = 2, SPARE_LEAST = 32 }; /* what is used at most, and pages: so much more is held */

/* Of all streams, even if one fails: whoever cannot go on without it waits at least for the others. */
neap_status np_drain(neap_device *m)
{
    np_device *device = m->device;
    neap_status status = NEAP_OK;
    for (np_stream s = 0; s < NP_N_STREAMS; s++) {
        if (s < device->n_streams || s >= NP_MAX_STREAMS) {
            neap_status synced = device->api->sync(device, s, device->api->mark(device, s));
            status = status == NEAP_OK ? synced : status;
        }
    }
    return status;
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
    if (block->kind == NP_BLOCK_SMALL || block->kind == NP_BLOCK_PLAIN || block->is_fixed || m->newest == block) {
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

static uint32_t count_spare_pages(const neap_device *m)
{
    uint32_t n = 0;
    for (size_t i = 0; i < m->spares.n; i++) {
        n += m->spares.items[i].view.n_pages;
    }
    return n;
}

void np_spares_trim(neap_device *m, uint32_t n)
{
    uint32_t n_spare = m->spares.n > 0 ? count_spare_pages(m) : 0;
    uint32_t used = m->pages.n_held + n;
    used = used > n_spare ? used - n_spare : 0; /* neighbours share pages */
    m->peak_used = used > m->peak_used ? used : m->peak_used;
    while (m->spares.n > 0 && m->pages.n_held + n > (1 + SPARE_TIMES) * m->peak_used + SPARE_LEAST) {
        if (dissolve_oldest_spare(m) != NEAP_OK) {
            return;
        }
    }
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
    np_seam_drop_page(m);
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
           m->exec_name ? m->exec_name : "the program", (unsigned long long)n_pages * page,
           (unsigned long long)m->limit_pages * page);
    m->limit_pages = n_pages;
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
            uint32_t least = n > n_unused ? n - n_unused : 0;
            n_new = n < n_new ? n : n_new;
            status = take_now(m, n, n_new, numbers);
            if (status != NEAP_DEVICE_FULL || n_new == 0) {
                return status;
            }
            most = held + (n_new > least ? least : least - 1); /* less is there than was said: fewer, or after others */
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
