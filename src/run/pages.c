#include "run/pages.h"

#include <string.h>

void np_pages_init(np_pages *pages, np_device *device)
{
    *pages = (np_pages){.device = device};
}

void np_pages_free(np_pages *pages)
{
    np_array_free(pages->device->memory, &pages->pages);
}

static neap_status grow(np_pages *pages, uint32_t n_pages)
{
    neap_status status = np_array_reserve(pages->device->memory, &pages->pages, n_pages);
    if (status == NEAP_OK && n_pages > pages->pages.n) {
        memset(&pages->pages.items[pages->pages.n], 0, (n_pages - pages->pages.n) * sizeof *pages->pages.items);
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

/* Gives back held pages. */
static void give_back(np_pages *pages, uint32_t first, uint32_t n)
{
    if (n > 0) {
        pages->device->api->release(pages->device, first, n);
        memset(&pages->pages.items[first], 0, n * sizeof *pages->pages.items);
        pages->n_held -= n;
        pages->lowest_free = first < pages->lowest_free ? first : pages->lowest_free;
    }
}

static void hold_run(np_pages *pages, uint32_t first, uint32_t length, uint32_t *numbers)
{
    for (uint32_t i = 0; i < length; i++) {
        pages->pages.items[first + i] = (np_page){.n_users = 1, .is_held = true};
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

void np_pages_use(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    if (page->is_arena && page->n_users == 0) {
        pages->n_arena_unused--;
    }
    page->n_users++;
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
        page->n_users--;
        if (page->n_users > 0) {
            continue;
        }
        if (page->is_arena) {
            pages->n_arena_unused++;
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

void np_pages_join_arena(np_pages *pages, uint32_t number)
{
    np_page *page = &pages->pages.items[number];
    page->is_arena = true;
    pages->n_arena++;
    pages->n_arena_unused += page->n_users == 0;
}

void np_pages_leave_arena(np_pages *pages, uint32_t number)
{
    pages->pages.items[number].is_arena = false;
    pages->n_arena--;
    pages->n_arena_unused--;
    give_back(pages, number, 1);
}

void np_pages_clear_arena(np_pages *pages)
{
    for (uint32_t i = 0; i < pages->pages.n; i++) {
        if (pages->pages.items[i].is_arena) {
            pages->pages.items[i].n_users = 0;
        }
    }
    pages->n_arena_unused = pages->n_arena;
}

bool np_pages_is_valid(const np_pages *pages)
{
    uint32_t n_held = 0;
    uint32_t n_arena = 0;
    uint32_t n_unused = 0;
    for (uint32_t i = 0; i < pages->pages.n; i++) {
        const np_page *page = &pages->pages.items[i];
        n_held += page->is_held;
        n_arena += page->is_arena;
        n_unused += page->is_arena && page->n_users == 0;
        if (!page->is_held && (page->is_arena || page->n_users > 0 || i < pages->lowest_free)) {
            return false;
        }
        if (page->is_held && !page->is_arena && page->n_users == 0) {
            return false;
        }
    }
    return n_held == pages->n_held && n_arena == pages->n_arena && n_unused == pages->n_arena_unused &&
           pages->n_held <= pages->device->n_pages && pages->n_held <= pages->peak_held;
}
