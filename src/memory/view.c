#include "memory/view.h"

neap_status np_view_make(np_pages *pages, uint32_t n_pages, np_view *view)
{
    np_device *device = pages->device;
    np_view made = {.n_pages = n_pages, .n_missing = n_pages};
    neap_status status;
    made.numbers = np_memory_alloc(device->memory, n_pages, sizeof *made.numbers);
    if (!made.numbers) {
        return NEAP_NO_MEMORY;
    }
    status = device->api->reserve(device, n_pages, &made.address);
    if (status != NEAP_OK) {
        np_memory_free(device->memory, made.numbers, n_pages, sizeof *made.numbers);
        return status;
    }
    for (uint32_t i = 0; i < n_pages; i++) {
        made.numbers[i] = NP_NO_PAGE;
    }
    *view = made;
    return NEAP_OK;
}

void np_view_free(np_pages *pages, np_view *view, np_counting counting)
{
    np_device *device = pages->device;
    if (view->numbers) {
        np_view_unmap(pages, view, 0, view->n_pages, counting);
        device->api->unreserve(device, view->address, view->n_pages);
        np_memory_free(device->memory, view->numbers, view->n_pages, sizeof *view->numbers);
        *view = (np_view){0};
    }
}

/* How many of the numbers from `at` on follow each other. */
static uint32_t run_length(const uint32_t *numbers, uint32_t at, uint32_t n)
{
    uint32_t length = 1;
    while (at + length < n && numbers[at + length] == numbers[at] + length) {
        length++;
    }
    return length;
}

neap_status np_view_show(np_pages *pages, const np_view *view, uint32_t first, uint32_t n, const uint32_t *numbers,
                         uint32_t *n_shown)
{
    np_device *device = pages->device;
    neap_status status = NEAP_OK;
    *n_shown = 0;
    while (*n_shown < n && status == NEAP_OK) {
        uint32_t length = run_length(numbers, *n_shown, n);
        char *address = view->address + (uint64_t)(first + *n_shown) * device->page_bytes;
        status = device->api->map(device, address, numbers[*n_shown], length);
        *n_shown += status == NEAP_OK ? length : 0;
    }
    return status;
}

neap_status np_view_map(np_pages *pages, np_view *view, uint32_t first, uint32_t n, const uint32_t *numbers)
{
    np_device *device = pages->device;
    uint32_t n_shown;
    neap_status status = np_view_show(pages, view, first, n, numbers, &n_shown);
    if (status != NEAP_OK) {
        device->api->unmap(device, view->address + (uint64_t)first * device->page_bytes, n_shown);
        return status;
    }
    for (uint32_t i = 0; i < n; i++) {
        view->n_missing--;
        view->numbers[first + i] = numbers[i];
    }
    return NEAP_OK;
}

void np_view_unmap(np_pages *pages, np_view *view, uint32_t first, uint32_t n, np_counting counting)
{
    np_device *device = pages->device;
    if (n > 0) {
        device->api->unmap(device, view->address + (uint64_t)first * device->page_bytes, n);
    }
    if (counting == NP_COUNTED) {
        np_pages_unuse(pages, &view->numbers[first], n);
    }
    for (uint32_t i = first; i < first + n; i++) {
        view->n_missing += view->numbers[i] != NP_NO_PAGE;
        view->numbers[i] = NP_NO_PAGE;
    }
}

bool np_view_is_valid(const np_pages *pages, const np_view *view)
{
    uint32_t n_missing = 0;
    for (uint32_t i = 0; i < view->n_pages; i++) {
        uint32_t number = view->numbers[i];
        n_missing += number == NP_NO_PAGE;
        if (number != NP_NO_PAGE && (number >= pages->pages.n || !pages->pages.items[number].is_held)) {
            return false;
        }
    }
    return n_missing == view->n_missing && view->lead < pages->device->page_bytes;
}
