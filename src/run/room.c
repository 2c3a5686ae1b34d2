/* room.c: which blocks are on the device while there is no plan to say so.
 *
 * Under a limit the least recently used blocks leave for the host, and work brings back what it uses. All of this waits
 * for the device: slow, simple and right. It is only for the time until a plan exists, and for events outside one. */
#include "run/manager.h"

enum {
    HELD_SLACK = 2
}; /* pages that may be held before idle ones are used elsewhere, which would have to be mapped anew */

#define HELD_SHARE 1.01 /* and so much of the highest load */

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
    if (block->home) {
        home = block->home[page];
    } else if (block->kind == NP_BLOCK_SWAPPED) {
        home = np_pattern_arena_page(block->pattern, block->own_life, block->turn, page, m->device->page_bytes);
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

void np_room_unback(neap_device *m, uint32_t number)
{
    const np_page *page = &m->pages.pages.items[number];
    if (page->kept_by != NP_NO_SPACE) {
        np_space_unback(&m->spaces[page->kept_by], page->kept_at);
    }
}

/* ---- making room ---- */

static neap_block *oldest_unpinned(const neap_device *m)
{
    neap_block *block = m->oldest;
    while (block && block->pinned_by == m->pin) {
        block = block->newer;
    }
    return block;
}

/* What freed blocks have left behind, or a block less; *gone false: there is none that could go. */
static neap_status free_something(neap_device *m, bool *gone)
{
    neap_block *block = oldest_unpinned(m);
    *gone = true;
    if (m->retired.n > 0 || m->pages.n_idle > 0) {
        neap_status status = np_drain(m);
        if (status == NEAP_OK) {
            np_retired_give_back(m);
        }
        return status;
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

/* ---- taking pages ---- */

/* What is asked for. */
typedef struct demand {
    uint32_t n;
    bool may_borrow; /* of the arena's unused ones */
    bool may_steal;  /* idle ones of a space: they come to stand behind another of its pages */
} demand;

/* Pages that may be held before idle ones are used: what the program has needed at once, and a little more. */
static uint32_t usual_pages(const neap_device *m, uint32_t n)
{
    uint64_t page = m->device->page_bytes;
    uint64_t load = m->stats.live + n * page;
    double n_pages;
    load = (load > m->stats.peak_live ? load : m->stats.peak_live) + m->side.slabs.n * m->side.slab_bytes;
    n_pages = HELD_SHARE * (double)load / (double)page + HELD_SLACK;
    return n_pages < UINT32_MAX ? (uint32_t)n_pages : UINT32_MAX;
}

/* One that nothing uses: the arena's, or idle. There is one. */
static uint32_t take_unused(neap_device *m, const demand *d)
{
    uint32_t number = d->may_borrow ? np_pages_borrow(&m->pages) : NP_NO_PAGE;
    if (number != NP_NO_PAGE) {
        np_room_unback(m, number);
    }
    for (int i = 0; i < NP_N_SPACES && number == NP_NO_PAGE; i++) {
        number = np_space_steal(&m->spaces[i]);
    }
    return number;
}

/* New pages, then those that nothing uses. On failure none is taken. */
static neap_status take_now(neap_device *m, const demand *d, uint32_t n_new, uint32_t *numbers)
{
    neap_status status = n_new > 0 ? np_pages_take(&m->pages, n_new, numbers) : NEAP_OK;
    for (uint32_t n = n_new; n < d->n && status == NEAP_OK; n++) {
        numbers[n] = take_unused(m, d);
    }
    return status;
}

/* By n unused pages, or less: there are more than the limit allows. */
static bool shrink_arena(neap_device *m, uint32_t n)
{
    if (m->pages.n_arena_unused == 0 || np_drain(m) != NEAP_OK) {
        return false;
    }
    np_retired_give_back(m); /* spares may show what goes */
    return np_arena_shrink(m, m->n_arena > n ? m->n_arena - n : 0);
}

static neap_status take(neap_device *m, const demand *d, uint32_t *numbers)
{
    uint32_t most = m->limit_pages < m->device->n_pages ? m->limit_pages : m->device->n_pages;
    uint32_t usual = m->limit_pages < m->device->n_pages ? most : usual_pages(m, d->n);
    bool gone = true;
    neap_status status = NEAP_OK;
    while (status == NEAP_OK) {
        uint32_t held = m->pages.n_held;
        uint32_t n_unused = (d->may_steal ? m->pages.n_idle : 0) + (d->may_borrow ? m->pages.n_arena_unused : 0);
        uint32_t room = held < most ? most - held : 0;
        if (held <= most && (uint64_t)room + n_unused >= d->n) {
            uint32_t least = d->n > n_unused ? d->n - n_unused : 0;
            uint32_t n_new = held < usual ? usual - held : 0;
            n_new = n_new < d->n ? n_new : d->n;
            n_new = n_new < room ? n_new : room;
            n_new = n_new > least ? n_new : least;
            status = take_now(m, d, n_new, numbers);
            if (status != NEAP_DEVICE_FULL || n_new == 0) {
                return status;
            }
            most = held + (n_new > least ? least : least - 1); /* less is there than was said: fewer, or after others */
            usual = held;
            status = NEAP_OK;
            continue;
        }
        if (d->may_borrow && held > most && shrink_arena(m, held - most)) {
            continue; /* it was made for a plan that may hold more */
        }
        status = free_something(m, &gone);
        if (status == NEAP_OK && !gone) {
            uint64_t wanted = (uint64_t)d->n + needed_later(m);
            uint64_t needed = held + (wanted > n_unused ? wanted - n_unused : 0);
            if (m->limit_pages >= m->device->n_pages || most < m->limit_pages || needed > m->device->n_pages) {
                return NEAP_DEVICE_FULL;
            }
            np_limit_raise(m, (uint32_t)needed);
            most = usual = m->limit_pages;
        }
    }
    return status;
}

uint32_t np_room_usual(const neap_device *m)
{
    return m->limit_pages < m->device->n_pages ? m->limit_pages : usual_pages(m, 0);
}

uint64_t np_room_left(const neap_device *m)
{
    uint32_t most = m->pages.n_held > 0 ? np_room_usual(m) : m->limit_pages;
    most = most < m->device->n_pages ? most : m->device->n_pages;
    return (m->pages.n_held < most ? most - m->pages.n_held : 0) * m->device->page_bytes;
}

static bool may_borrow(const neap_device *m)
{
    return m->state != NEAP_STATE_RUN && !m->is_entering;
}

neap_status np_room_take(neap_device *m, uint32_t n, uint32_t *numbers)
{
    demand d = {.n = n, .may_borrow = may_borrow(m)};
    return take(m, &d, numbers);
}

neap_status np_room_take_for_place(neap_device *m, uint32_t n, uint32_t *numbers)
{
    demand d = {.n = n, .may_borrow = may_borrow(m), .may_steal = true};
    return take(m, &d, numbers);
}

neap_status np_room_take_new(neap_device *m, uint32_t n, uint32_t *numbers)
{
    demand d = {.n = n};
    return take(m, &d, numbers);
}
