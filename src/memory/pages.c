#include "memory/pages.h"

void np_pages_init(np_pages *pages, np_device *device)
{
    *pages = (np_pages){.device = device, .next_freed = NP_NO_PAGE};
}

void np_pages_free(np_pages *pages)
{
    np_array_free(pages->device->memory, &pages->pages);
    np_array_free(pages->device->memory, &pages->freed);
}

static const np_page NO_PAGE_YET = {.freed = NP_NO_PAGE, .kept_by = NP_NO_SPACE};

static neap_status grow(np_pages *pages, uint32_t n_pages)
{
    neap_status status = np_array_reserve(pages->device->memory, &pages->pages, n_pages);
    if (status == NEAP_OK && n_pages > pages->pages.n) {
        for (size_t i = pages->pages.n; i < n_pages; i++) {
            pages->pages.items[i] = NO_PAGE_YET;
        }
        pages->pages.n = n_pages;
    }
    return status;
}

static bool is_free(const np_pages *pages, uint32_t number)
{
    return number >= pages->pages.n || !pages->pages.items[number].is_held;
}

/* The first run of free pages from `from` on, at most `n` long; 0 where the device ends. */
static uint32_t find_run(const np_pages *pages, uint32_t from, uint32_t n, uint32_t *first)
{
    uint32_t end = pages->device->n_pages;
    uint32_t length = 0;
    while (from < end && !is_free(pages, from)) {
        from++;
    }
    *first = from;
    while (length < n && from + length < end && is_free(pages, from + length)) {
        length++;
    }
    return length;
}

/* ---- what is to be waited for ---- */

/* The page no longer refers to a record. */
static void forget_freed(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    if (page->freed != NP_NO_PAGE) {
        np_freed *freed = &pages->freed.items[page->freed];
        if (--freed->n_pages == 0) {
            freed->next = pages->next_freed;
            pages->next_freed = page->freed;
        }
        page->freed = NP_NO_PAGE;
    }
}

/* A record of the last work of each stream, which no page refers to yet. */
static neap_status new_freed(np_pages *pages, uint32_t *index)
{
    np_device *device = pages->device;
    np_freed made = {.next = NP_NO_PAGE};
    if (pages->next_freed == NP_NO_PAGE) {
        neap_status status = np_array_push(device->memory, &pages->freed, made);
        if (status != NEAP_OK) {
            return status;
        }
        pages->next_freed = (uint32_t)(pages->freed.n - 1);
    }
    *index = pages->next_freed;
    pages->next_freed = pages->freed.items[*index].next;
    for (np_stream s = 0; s < device->n_streams; s++) {
        made.after[s] = device->api->mark(device, s);
    }
    pages->freed.items[*index] = made;
    return NEAP_OK;
}

bool np_pages_is_done(np_pages *pages, uint32_t number)
{
    np_device *device = pages->device;
    uint32_t index = pages->pages.items[number].freed;
    for (np_stream s = 0; index != NP_NO_PAGE && s < device->n_streams; s++) {
        if (!device->api->is_done(device, s, pages->freed.items[index].after[s])) {
            return false;
        }
    }
    forget_freed(pages, number);
    return true;
}

void np_pages_add_after(const np_pages *pages, uint32_t number, uint64_t after[NP_MAX_STREAMS])
{
    uint32_t index = pages->pages.items[number].freed;
    for (np_stream s = 0; index != NP_NO_PAGE && s < pages->device->n_streams; s++) {
        uint64_t mark = pages->freed.items[index].after[s];
        after[s] = mark > after[s] ? mark : after[s];
    }
}

/* ---- taking and giving back ---- */

/* Gives back held pages. */
static void give_back(np_pages *pages, uint32_t first, uint32_t n)
{
    if (n > 0) {
        pages->device->api->release(pages->device, first, n);
        for (uint32_t i = first; i < first + n; i++) {
            forget_freed(pages, i);
            pages->pages.items[i] = NO_PAGE_YET;
        }
        pages->n_held -= n;
        pages->lowest_free = first < pages->lowest_free ? first : pages->lowest_free;
    }
}

static void hold_run(np_pages *pages, uint32_t first, uint32_t length, uint32_t *numbers)
{
    for (uint32_t i = 0; i < length; i++) {
        pages->pages.items[first + i] =
            (np_page){.n_users = 1, .freed = NP_NO_PAGE, .kept_by = NP_NO_SPACE, .is_held = true};
        numbers[i] = first + i;
    }
    pages->n_held += length;
    pages->peak_held = pages->n_held > pages->peak_held ? pages->n_held : pages->peak_held;
    pages->recent_peak = pages->n_held > pages->recent_peak ? pages->n_held : pages->recent_peak;
}

neap_status np_pages_take(np_pages *pages, uint32_t n, uint32_t *numbers)
{
    uint32_t from = pages->lowest_free;
    uint32_t taken = 0;
    neap_status status = NEAP_OK;
    while (taken < n && status == NEAP_OK) {
        uint32_t first;
        uint32_t length = find_run(pages, from, n - taken, &first);
        if (length == 0) {
            status = NEAP_DEVICE_FULL;
            break;
        }
        status = grow(pages, first + length);
        if (status == NEAP_OK) {
            status = pages->device->api->commit(pages->device, first, length);
        }
        if (status == NEAP_OK) {
            hold_run(pages, first, length, &numbers[taken]);
            taken += length;
            from = first + length;
        }
    }
    if (status != NEAP_OK) {
        while (taken > 0) {
            give_back(pages, numbers[--taken], 1);
        }
        return status;
    }
    pages->lowest_free = from;
    return NEAP_OK;
}

uint32_t np_pages_borrow(np_pages *pages)
{
    if (pages->n_arena_unused == 0) {
        return NP_NO_PAGE;
    }
    for (uint32_t i = 0; i < pages->pages.n; i++) {
        np_page *page = &pages->pages.items[i];
        if (page->is_arena && page->n_users == 0) {
            np_pages_use(pages, i);
            return i;
        }
    }
    return NP_NO_PAGE;
}

/* ---- users ---- */

static bool is_kept(const np_page *page)
{
    return page->kept_by != NP_NO_SPACE;
}

/* Of a page that has just lost its last user (1), or is about to get its first (-1). */
static void count_unused(np_pages *pages, const np_page *page, uint32_t difference)
{
    pages->n_arena_unused += page->is_arena ? difference : 0;
    pages->n_idle += !page->is_arena && is_kept(page) ? difference : 0;
}

static bool is_counted(const np_pages *pages, const np_page *page)
{
    return !page->is_arena || !pages->is_arena_uncounted;
}

void np_pages_use(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    if (!is_counted(pages, page)) {
        return;
    }
    if (page->n_users == 0) {
        count_unused(pages, page, UINT32_MAX);
    }
    page->n_users++;
}

void np_pages_use_home(np_pages *pages, uint32_t number)
{
    np_pages_use(pages, number);
    pages->pages.items[number].is_home = true;
}

void np_pages_unuse(np_pages *pages, const uint32_t *numbers, uint32_t n)
{
    uint32_t first = 0; /* of a run to be given back in one */
    uint32_t length = 0;
    for (uint32_t i = 0; i < n; i++) {
        np_page *page;
        if (numbers[i] == NP_NO_PAGE) {
            continue;
        }
        page = &pages->pages.items[numbers[i]];
        if (!is_counted(pages, page) || --page->n_users > 0) {
            continue;
        }
        page->is_home = false;
        if (page->is_arena || is_kept(page)) {
            count_unused(pages, page, 1);
        } else if (length > 0 && first + length == numbers[i]) {
            length++;
        } else {
            give_back(pages, first, length);
            first = numbers[i];
            length = 1;
        }
    }
    give_back(pages, first, length);
}

neap_status np_pages_note_freed(np_pages *pages, const uint32_t *numbers, uint32_t n)
{
    uint32_t index;
    neap_status status = new_freed(pages, &index);
    if (status != NEAP_OK) {
        return status;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (numbers[i] != NP_NO_PAGE) {
            forget_freed(pages, numbers[i]);
            pages->pages.items[numbers[i]].freed = index;
            pages->freed.items[index].n_pages++;
        }
    }
    if (pages->freed.items[index].n_pages == 0) {
        pages->freed.items[index].next = pages->next_freed;
        pages->next_freed = index;
    }
    return NEAP_OK;
}

neap_status np_pages_unuse_later(np_pages *pages, const uint32_t *numbers, uint32_t n)
{
    neap_status status = np_pages_note_freed(pages, numbers, n);
    if (status == NEAP_OK) {
        np_pages_unuse(pages, numbers, n);
    }
    return status;
}

/* ---- spaces and the arena ---- */

void np_pages_keep(np_pages *pages, uint32_t number, uint8_t space, uint32_t at)
{
    np_page *page = &pages->pages.items[number];
    page->kept_by = space;
    page->kept_at = at;
    pages->n_idle += !page->is_arena && page->n_users == 0;
}

void np_pages_unkeep(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    bool is_idle = !page->is_arena && page->n_users == 0;
    page->kept_by = NP_NO_SPACE;
    if (is_idle) {
        pages->n_idle--;
        give_back(pages, number, 1);
    }
}

void np_pages_join_arena(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    pages->n_idle -= is_kept(page) && page->n_users == 0;
    page->is_arena = true;
    pages->n_arena++;
    pages->n_arena_unused += page->n_users == 0;
}

void np_pages_leave_arena(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    page->is_arena = false;
    pages->n_arena--;
    if (page->n_users == 0) {
        pages->n_arena_unused--;
        give_back(pages, number, 1);
    }
}

void np_pages_clear_arena(np_pages *pages, bool is_counted_now)
{
    pages->is_arena_uncounted = !is_counted_now;
    for (uint32_t i = 0; i < pages->pages.n; i++) {
        if (pages->pages.items[i].is_arena) {
            pages->pages.items[i].n_users = 0;
            pages->pages.items[i].is_home = false;
        }
    }
    pages->n_arena_unused = pages->n_arena;
}

bool np_pages_is_valid(const np_pages *pages)
{
    uint32_t n_held = 0;
    uint32_t n_arena = 0;
    uint32_t n_unused = 0;
    uint32_t n_idle = 0;
    for (uint32_t i = 0; i < pages->pages.n; i++) {
        const np_page *page = &pages->pages.items[i];
        n_held += page->is_held;
        n_arena += page->is_arena;
        n_unused += page->is_arena && page->n_users == 0;
        n_idle += !page->is_arena && is_kept(page) && page->n_users == 0;
        if (!page->is_held && (page->is_arena || is_kept(page) || page->n_users > 0 || i < pages->lowest_free)) {
            return false;
        }
        if (page->is_held && !page->is_arena && !is_kept(page) && page->n_users == 0) {
            return false;
        }
        if (page->freed != NP_NO_PAGE && pages->freed.items[page->freed].n_pages == 0) {
            return false;
        }
    }
    return n_held == pages->n_held && n_arena == pages->n_arena && n_unused == pages->n_arena_unused &&
           n_idle == pages->n_idle && pages->n_held <= pages->device->n_pages && pages->n_held <= pages->peak_held;
}
