#include "memory/space.h"

#include <string.h>

#include "base/checked.h"

enum { MAX_SPARES = 1 << 14 };

#define NONE UINT32_MAX

void np_space_init(np_space *space, np_pages *pages, uint8_t number, uint64_t unit)
{
    *space = (np_space){.pages = pages, .number = number, .unit = unit, .free_spare = NONE};
    np_heap_init(&space->heap, pages->device->memory);
}

void np_space_free(np_space *space)
{
    const neap_memory *memory = space->pages->device->memory;
    np_space_drop_spares(space);
    np_space_give_back(space);
    np_heap_free(&space->heap);
    np_array_free(memory, &space->ids);
    np_array_free(memory, &space->numbers);
    np_array_free(memory, &space->newest);
    np_array_free(memory, &space->spares);
}

/* ---- places ---- */

/* The line is lengthened by what its last stretch, if that is free, has too little. */
static neap_status lengthen(np_space *space, uint64_t size, uint32_t *entry)
{
    np_heap *heap = &space->heap;
    uint64_t free_bytes = 0;
    if (heap->last != NP_HEAP_NONE && !heap->blocks.items[heap->last].used) {
        free_bytes = heap->blocks.items[heap->last].size;
    }
    return np_heap_extend(heap, size - free_bytes, entry);
}

/* Room for what is known of each page of the line. */
static neap_status reserve_pages(np_space *space)
{
    const neap_memory *memory = space->pages->device->memory;
    uint64_t page = space->pages->device->page_bytes;
    size_t n = (size_t)((space->heap.held + page - 1) / page);
    neap_status status = np_array_reserve(memory, &space->numbers, n);
    if (status == NEAP_OK) {
        status = np_array_reserve(memory, &space->newest, n);
    }
    if (status == NEAP_OK) {
        status = np_array_reserve(memory, &space->ids, space->heap.blocks.n + 1); /* taking may add one */
    }
    for (; space->numbers.n < n && status == NEAP_OK; space->numbers.n++) {
        space->numbers.items[space->numbers.n] = NP_NO_PAGE;
        space->newest.items[space->newest.n++] = NONE;
    }
    return status;
}

neap_status np_space_place(np_space *space, uint64_t id, uint64_t bytes, np_place *place)
{
    uint64_t size;
    uint32_t entry;
    neap_status status = np_round_up(bytes, space->unit, &size) ? NEAP_OK : NEAP_TOO_LARGE;
    if (status != NEAP_OK) {
        return status;
    }
    entry = np_heap_best_fit(&space->heap, size);
    if (entry == NP_HEAP_NONE) {
        status = lengthen(space, size, &entry);
    }
    if (status == NEAP_OK) {
        status = reserve_pages(space);
    }
    if (status == NEAP_OK) {
        status = np_heap_take(&space->heap, entry, size);
    }
    if (status == NEAP_OK) {
        space->ids.items[entry] = id;
        *place = (np_place){space->heap.blocks.items[entry].address, entry, space->number};
    }
    return status;
}

void np_space_leave(np_space *space, const np_place *place)
{
    np_heap_give(&space->heap, place->entry);
}

uint32_t np_space_first_page(const np_space *space, const np_place *place)
{
    return (uint32_t)(place->begin / space->pages->device->page_bytes);
}

uint32_t np_space_n_pages(const np_space *space, const np_place *place, uint64_t bytes)
{
    uint64_t page = space->pages->device->page_bytes;
    return (uint32_t)((place->begin % page + bytes + page - 1) / page);
}

uint64_t np_space_neighbour(const np_space *space, const np_place *place)
{
    uint32_t before = space->heap.blocks.items[place->entry].prev;
    bool shares_page = place->begin % space->pages->device->page_bytes != 0;
    bool has_one = shares_page && before != NP_HEAP_NONE && space->heap.blocks.items[before].used;
    return has_one ? space->ids.items[before] : NP_NO_NEIGHBOUR;
}

/* ---- the device's pages behind the line ---- */

uint32_t np_space_page(const np_space *space, const np_place *place, uint32_t k)
{
    return space->numbers.items[np_space_first_page(space, place) + k];
}

void np_space_back(np_space *space, const np_place *place, uint32_t k, uint32_t number)
{
    uint32_t at = np_space_first_page(space, place) + k;
    space->numbers.items[at] = number;
    np_pages_keep(space->pages, number, space->number, at);
}

void np_space_unback(np_space *space, uint32_t at)
{
    uint32_t number = space->numbers.items[at];
    space->numbers.items[at] = NP_NO_PAGE;
    np_pages_unkeep(space->pages, number);
}

/* The last page of the line first: it is the one that is needed least often. */
uint32_t np_space_steal(np_space *space)
{
    np_pages *pages = space->pages;
    for (size_t at = pages->n_idle > 0 ? space->numbers.n : 0; at-- > 0;) {
        uint32_t number = space->numbers.items[at];
        const np_page *page = number != NP_NO_PAGE ? &pages->pages.items[number] : NULL;
        if (page && page->n_users == 0 && !page->is_arena) {
            np_pages_use(pages, number);
            np_space_unback(space, (uint32_t)at);
            return number;
        }
    }
    return NP_NO_PAGE;
}

/* ---- spares ---- */

static bool is_idle(const np_space *space, uint32_t number)
{
    const np_page *page = &space->pages->pages.items[number];
    return page->n_users == 0 && !page->is_arena && page->kept_by == space->number;
}

/* Could the view show what stands behind the line from a page on, where idle pages change places? */
static bool can_show(const np_space *space, uint32_t first, const np_view *view)
{
    for (uint32_t k = 0; k < view->n_pages; k++) {
        uint32_t behind = space->numbers.items[first + k];
        bool can_change = is_idle(space, view->numbers[k]) && (behind == NP_NO_PAGE || is_idle(space, behind));
        if (view->numbers[k] != behind && !can_change) {
            return false;
        }
    }
    return true;
}

/* The view shows what stands behind the line after that. */
static void change_places(np_space *space, uint32_t first, const np_view *view)
{
    for (uint32_t k = 0; k < view->n_pages; k++) {
        uint32_t number = view->numbers[k];
        uint32_t behind = space->numbers.items[first + k];
        if (behind != number) {
            uint32_t at = space->pages->pages.items[number].kept_at;
            space->numbers.items[at] = behind;
            space->numbers.items[first + k] = number;
            space->pages->pages.items[number].kept_at = first + k;
            if (behind != NP_NO_PAGE) {
                space->pages->pages.items[behind].kept_at = at;
            }
        }
    }
}

/* Does the view show what stands behind the line from a page on? */
static bool is_shown(const np_space *space, uint32_t first, const np_view *view)
{
    return view->n_missing == 0 && first + view->n_pages <= space->numbers.n &&
           memcmp(&space->numbers.items[first], view->numbers, view->n_pages * sizeof *view->numbers) == 0;
}

/* On a page that is the arena's, too, there may be blocks that have their place there. */
static bool is_free_of_plans(const np_space *space, const np_view *view)
{
    for (uint32_t k = 0; k < view->n_pages; k++) {
        const np_page *page = &space->pages->pages.items[view->numbers[k]];
        if (page->is_arena && page->is_home) {
            return false;
        }
    }
    return true;
}

bool np_space_take_spare(np_space *space, const np_place *place, uint64_t bytes, np_view *view)
{
    uint32_t first = np_space_first_page(space, place);
    uint32_t n = np_space_n_pages(space, place, bytes);
    for (uint32_t *link = &space->newest.items[first]; *link != NONE; link = &space->spares.items[*link].next) {
        uint32_t index = *link;
        np_spare *spare = &space->spares.items[index];
        if (spare->view.n_pages == n && can_show(space, first, &spare->view) && is_free_of_plans(space, &spare->view)) {
            change_places(space, first, &spare->view);
            *link = spare->next;
            *view = spare->view;
            view->lead = place->begin % space->pages->device->page_bytes;
            *spare = (np_spare){.next = space->free_spare};
            space->free_spare = index;
            space->n_spares--;
            for (uint32_t k = 0; k < n; k++) {
                np_pages_use(space->pages, view->numbers[k]);
            }
            return true;
        }
    }
    return false;
}

/* A free entry of the array; NONE: there is no room for one more. */
static uint32_t find_entry(np_space *space)
{
    uint32_t index = space->free_spare;
    if (index != NONE) {
        space->free_spare = space->spares.items[index].next;
    } else if (space->n_spares < MAX_SPARES &&
               np_array_push(space->pages->device->memory, &space->spares, (np_spare){.next = NONE}) == NEAP_OK) {
        index = (uint32_t)(space->spares.n - 1);
    }
    return index;
}

bool np_space_keep_spare(np_space *space, const np_place *place, np_view *view)
{
    np_device *device = space->pages->device;
    uint32_t first = np_space_first_page(space, place);
    uint32_t index = is_shown(space, first, view) ? find_entry(space) : NONE;
    np_spare *spare;
    if (index == NONE) {
        return false;
    }
    spare = &space->spares.items[index];
    if (np_pages_unuse_later(space->pages, view->numbers, view->n_pages) != NEAP_OK) {
        spare->next = space->free_spare;
        space->free_spare = index;
        return false;
    }
    spare->view = *view;
    for (np_stream s = 0; s < device->n_streams; s++) {
        spare->after[s] = device->api->mark(device, s);
    }
    spare->next = space->newest.items[first];
    space->newest.items[first] = index;
    space->n_spares++;
    *view = (np_view){0};
    return true;
}

void np_space_drop_spares(np_space *space)
{
    for (size_t i = 0; i < space->spares.n; i++) {
        np_view_free(space->pages, &space->spares.items[i].view, NP_UNCOUNTED);
    }
    for (size_t at = 0; at < space->newest.n; at++) {
        space->newest.items[at] = NONE;
    }
    space->spares.n = 0;
    space->n_spares = 0;
    space->free_spare = NONE;
}

void np_space_give_back(np_space *space)
{
    for (size_t at = 0; at < space->numbers.n; at++) {
        uint32_t number = space->numbers.items[at];
        if (number != NP_NO_PAGE && space->pages->pages.items[number].n_users == 0) {
            np_space_unback(space, (uint32_t)at);
        }
    }
}

bool np_space_is_valid(const np_space *space)
{
    uint32_t n_spares = 0;
    for (size_t at = 0; at < space->numbers.n; at++) {
        uint32_t number = space->numbers.items[at];
        if (number != NP_NO_PAGE) {
            const np_page *page = &space->pages->pages.items[number];
            if (!page->is_held || page->kept_by != space->number || page->kept_at != at) {
                return false;
            }
        }
        for (uint32_t i = space->newest.items[at]; i != NONE; i = space->spares.items[i].next) {
            if (!np_view_is_valid(space->pages, &space->spares.items[i].view) || ++n_spares > space->n_spares) {
                return false;
            }
        }
    }
    return n_spares == space->n_spares && np_heap_is_valid(&space->heap);
}
