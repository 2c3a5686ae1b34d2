#include "device/order.h"

#include <stdarg.h>
#include <stdio.h>

enum { FORGET_MIN = 64, NAME_CHARS = 48 };

neap_status np_order_create(const neap_memory *memory, uint64_t page_bytes, np_order **order)
{
    np_order *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    if (!made) {
        return NEAP_NO_MEMORY;
    }
    made->memory = memory;
    made->page_bytes = page_bytes;
    made->forget_at = FORGET_MIN;
    np_clocks_init(&made->clocks, memory);
    np_pagemap_init(&made->pages, memory, page_bytes);
    np_uses_init(&made->device_uses, memory);
    np_uses_init(&made->host_uses, memory);
    *order = made;
    return NEAP_OK;
}

void np_order_free(np_order *order)
{
    if (order) {
        np_clocks_free(&order->clocks);
        np_pagemap_free(&order->pages);
        np_uses_free(&order->device_uses);
        np_uses_free(&order->host_uses);
        np_array_free(order->memory, &order->addresses);
        np_array_free(order->memory, &order->pieces);
        np_memory_free(order->memory, order, 1, sizeof *order);
    }
}

/* ---- problems in words ---- */

static void say(np_order *order, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(np_order *order, const char *format, ...)
{
    if (order->problem[0] == '\0') {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(order->problem, sizeof order->problem, format, args);
        va_end(args);
    }
}

static const char *name_work(np_stream stream, uint64_t mark, char name[NAME_CHARS])
{
    if (stream < NP_MAX_STREAMS) {
        (void)snprintf(name, NAME_CHARS, "work %llu of stream %u", (unsigned long long)mark, (unsigned)stream);
    } else {
        (void)snprintf(name, NAME_CHARS, "copy %llu %s", (unsigned long long)mark,
                       stream == NP_STREAM_OUT ? "out" : "in");
    }
    return name;
}

static const char *verb(bool writes)
{
    return writes ? "writes" : "reads";
}

static void say_conflict(np_order *order, const char *memory, np_byte_use later, const np_conflict *conflict)
{
    char first[NAME_CHARS];
    char second[NAME_CHARS];
    say(order, "%s %s bytes %llu to %llu of %s memory, which %s %s: nothing orders the two",
        name_work(later.stream, later.mark, second), verb(later.writes), (unsigned long long)conflict->begin,
        (unsigned long long)conflict->end, memory, name_work(conflict->earlier.stream, conflict->earlier.mark, first),
        verb(conflict->earlier.writes));
}

/* ---- addresses in use ---- */

static void forget_addresses(np_order *order)
{
    size_t n = 0;
    for (size_t i = 0; i < order->addresses.n; i++) {
        const np_order_address *address = &order->addresses.items[i];
        if (address->use.mark > order->clocks.host.marks[address->use.stream]) {
            order->addresses.items[n++] = *address;
        }
    }
    order->addresses.n = n;
    order->forget_at = 2 * n > FORGET_MIN ? 2 * n : FORGET_MIN;
}

static neap_status reserve_addresses(np_order *order, size_t n_more)
{
    if (order->addresses.n > order->forget_at) {
        forget_addresses(order);
    }
    return np_array_reserve(order->memory, &order->addresses, order->addresses.n + n_more);
}

static void add_address(np_order *order, const char *address, uint64_t bytes, np_byte_use use)
{
    uintptr_t begin = (uintptr_t)address;
    order->addresses.items[order->addresses.n++] = (np_order_address){begin, begin + bytes, use};
}

static void check_addresses(np_order *order, const char *address, uint64_t n_pages, const char *what)
{
    uintptr_t begin = (uintptr_t)address;
    uintptr_t end = begin + n_pages * order->page_bytes;
    for (size_t i = 0; i < order->addresses.n; i++) {
        const np_order_address *used = &order->addresses.items[i];
        if (used->begin < end && begin < used->end && used->use.mark > order->clocks.host.marks[used->use.stream]) {
            char name[NAME_CHARS];
            say(order, "%p was %s under running work: %s %s it", (const void *)address, what,
                name_work(used->use.stream, used->use.mark, name), verb(used->use.writes));
            return;
        }
    }
}

/* ---- memory ---- */

neap_status np_order_commit(np_order *order, uint32_t first_page, uint32_t n_pages)
{
    neap_status status = np_pagemap_reserve_commit(&order->pages, first_page, n_pages);
    if (status == NEAP_OK && !np_pagemap_commit(&order->pages, first_page, n_pages)) {
        say(order, "%u pages from %u on were committed twice, some of them", (unsigned)n_pages, (unsigned)first_page);
    }
    return status;
}

void np_order_release(np_order *order, uint32_t first_page, uint32_t n_pages)
{
    np_conflict conflict;
    if (!np_uses_are_done(&order->device_uses, first_page * order->page_bytes,
                          ((uint64_t)first_page + n_pages) * order->page_bytes, &order->clocks.host, &conflict)) {
        char name[NAME_CHARS];
        say(order, "page %llu was released under running work: %s %s it",
            (unsigned long long)(conflict.begin / order->page_bytes),
            name_work(conflict.earlier.stream, conflict.earlier.mark, name), verb(conflict.earlier.writes));
    }
    if (!np_pagemap_release(&order->pages, first_page, n_pages)) {
        say(order, "%u pages from %u on were released, some of them mapped or not committed", (unsigned)n_pages,
            (unsigned)first_page);
    }
}

neap_status np_order_reserve(np_order *order, const char *address, uint64_t n_pages)
{
    return np_pagemap_add(&order->pages, address, n_pages);
}

void np_order_unreserve(np_order *order, const char *address, uint64_t n_pages)
{
    if (!np_pagemap_remove(&order->pages, address, n_pages)) {
        say(order, "%p was given back with pages mapped there, or was never reserved", (const void *)address);
    }
}

void np_order_map(np_order *order, const char *address, uint32_t first_page, uint32_t n_pages)
{
    check_addresses(order, address, n_pages, "mapped anew");
    if (!np_pagemap_map(&order->pages, address, first_page, n_pages)) {
        say(order, "%p was mapped onto %u pages from %u on, some not committed, or is not reserved",
            (const void *)address, (unsigned)n_pages, (unsigned)first_page);
    }
}

void np_order_unmap(np_order *order, const char *address, uint64_t n_pages)
{
    check_addresses(order, address, n_pages, "unmapped");
    if (!np_pagemap_unmap(&order->pages, address, n_pages)) {
        say(order, "%p was unmapped, and is not reserved", (const void *)address);
    }
}

void np_order_host_free(np_order *order, const char *host, uint64_t bytes)
{
    np_conflict conflict;
    if (!np_uses_are_done(&order->host_uses, (uintptr_t)host, (uintptr_t)host + bytes, &order->clocks.host,
                          &conflict)) {
        char name[NAME_CHARS];
        say(order, "host memory at %p was freed under running work: %s %s it", (const void *)host,
            name_work(conflict.earlier.stream, conflict.earlier.mark, name), verb(conflict.earlier.writes));
    }
}

/* ---- work ---- */

/* Gathers the physical bytes of a touch; where an address is not mapped, *is_mapped becomes false. */
static neap_status find_pieces(np_order *order, const np_touch *touch, bool *is_mapped, const char **unmapped)
{
    uint64_t done = 0;
    while (done < touch->bytes) {
        np_order_piece piece = {.writes = touch->writes};
        if (!np_pagemap_find(&order->pages, touch->address + done, touch->bytes - done, &piece.bytes)) {
            *unmapped = touch->address + done;
            *is_mapped = false;
            return NEAP_OK;
        }
        if (np_array_push(order->memory, &order->pieces, piece) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        done += piece.bytes.end - piece.bytes.begin;
    }
    return NEAP_OK;
}

/* All that can fail about a piece of work: its pieces, and room to note them. */
static neap_status prepare(np_order *order, np_stream stream, const np_touch *touches, uint32_t n_touches,
                           bool *is_mapped, const char **unmapped)
{
    order->pieces.n = 0;
    *is_mapped = true;
    for (uint32_t i = 0; i < n_touches; i++) {
        if (find_pieces(order, &touches[i], is_mapped, unmapped) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    if (np_clocks_reserve(&order->clocks, stream) != NEAP_OK || reserve_addresses(order, n_touches) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    return np_uses_reserve(&order->device_uses, order->pieces.n, &order->clocks.host);
}

static void note(np_order *order, np_stream stream, uint64_t mark, const np_touch *touches, uint32_t n_touches,
                 const np_clock *clock)
{
    for (size_t i = 0; i < order->pieces.n; i++) {
        const np_order_piece *piece = &order->pieces.items[i];
        np_byte_use use = {stream, mark, piece->writes};
        np_conflict conflict;
        if (!np_uses_add(&order->device_uses, piece->bytes.begin, piece->bytes.end, use, clock, &conflict)) {
            say_conflict(order, "device", use, &conflict);
        }
    }
    for (uint32_t i = 0; i < n_touches; i++) {
        add_address(order, touches[i].address, touches[i].bytes, (np_byte_use){stream, mark, touches[i].writes});
    }
}

static void say_unmapped(np_order *order, np_stream stream, uint64_t mark, const char *address)
{
    char name[NAME_CHARS];
    say(order, "%s uses %p, which is not mapped", name_work(stream, mark, name), (const void *)address);
}

neap_status np_order_launch(np_order *order, np_stream stream, uint64_t mark, const np_touch *touches,
                            uint32_t n_touches, bool *can_run)
{
    const char *unmapped = NULL;
    bool is_mapped;
    neap_status status = prepare(order, stream, touches, n_touches, &is_mapped, &unmapped);
    if (status != NEAP_OK) {
        return status;
    }
    note(order, stream, mark, touches, n_touches, np_clocks_give(&order->clocks, stream, mark));
    if (!is_mapped) {
        say_unmapped(order, stream, mark, unmapped);
    }
    *can_run = is_mapped;
    return NEAP_OK;
}

/* The streams for copies have one way each; on others it shows by where they lead. */
static bool is_way_out(const np_order *order, np_stream stream, const char *to)
{
    np_piece piece;
    return stream == NP_STREAM_OUT ||
           (stream != NP_STREAM_IN && !np_pagemap_find(&order->pages, to, order->page_bytes, &piece));
}

neap_status np_order_copy(np_order *order, np_stream stream, uint64_t mark, const char *to, const char *from,
                          uint64_t bytes, bool *can_run)
{
    bool is_out = is_way_out(order, stream, to);
    const np_touch touch = {.address = is_out ? from : to, .bytes = bytes, .writes = !is_out};
    uintptr_t host = (uintptr_t)(is_out ? to : from);
    np_byte_use use = {stream, mark, is_out};
    const char *unmapped = NULL;
    const np_clock *clock;
    np_conflict conflict;
    bool is_mapped;
    if (prepare(order, stream, &touch, 1, &is_mapped, &unmapped) != NEAP_OK ||
        np_uses_reserve(&order->host_uses, 1, &order->clocks.host) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    clock = np_clocks_give(&order->clocks, stream, mark);
    note(order, stream, mark, &touch, 1, clock);
    if (bytes > 0 && !np_uses_add(&order->host_uses, host, host + bytes, use, clock, &conflict)) {
        say_conflict(order, "host", use, &conflict);
    }
    if (!is_mapped) {
        say_unmapped(order, stream, mark, unmapped);
    }
    *can_run = is_mapped;
    return NEAP_OK;
}

void np_order_wait(np_order *order, np_stream stream, np_stream other, uint64_t mark)
{
    np_clocks_wait(&order->clocks, stream, other, mark);
}

void np_order_host_knows(np_order *order, np_stream stream, uint64_t mark)
{
    np_clocks_host_knows(&order->clocks, stream, mark);
}

const char *np_order_problem(const np_order *order)
{
    return order->problem[0] ? order->problem : NULL;
}

bool np_order_is_valid(const np_order *order)
{
    return np_clocks_is_valid(&order->clocks) && np_pagemap_is_valid(&order->pages) &&
           np_uses_is_valid(&order->device_uses) && np_uses_is_valid(&order->host_uses) &&
           order->addresses.n <= order->addresses.capacity;
}
