/* order.h: watches what a device is told to do, and finds what only goes well by luck.
 *
 *   - Two uses of the same physical byte by different streams, one of them a write, which nothing orders: no wait, no
 *     stream order, nor the host that knew of the one when it gave the other. Through whatever addresses. Host memory of
 *     copies is watched the same way.
 *   - A page released, an address unmapped or mapped anew, or host memory freed, while work that uses it is not known to
 *     be done.
 *   - A use of an address that is not mapped; pages mapped that were not committed, released that are mapped, and so on.
 *
 * Only the first such problem is kept, as one line. What can fail changes nothing then. */
#ifndef NP_DEVICE_ORDER_H
#define NP_DEVICE_ORDER_H

#include "device/clocks.h"
#include "device/device.h"
#include "device/pagemap.h"
#include "device/uses.h"

typedef struct np_order_piece { /* of one piece of work: physical bytes it uses */
    np_piece bytes;
    bool writes;
} np_order_piece;

typedef struct np_order_address { /* used by work that is not known to be done */
    uintptr_t begin;
    uintptr_t end;
    np_byte_use use;
} np_order_address;

typedef struct np_order {
    const neap_memory *memory;
    uint64_t page_bytes;
    np_clocks clocks;
    np_pagemap pages;
    np_uses device_uses; /* of physical bytes */
    np_uses host_uses;   /* by address */
    np_array(np_order_address) addresses;
    size_t forget_at;                /* entries of `addresses`: time to look for work that is known by now */
    np_array(np_order_piece) pieces; /* scratch */
    char problem[320];               /* empty: none */
} np_order;

neap_status np_order_create(const neap_memory *memory, uint64_t page_bytes, np_order **order);
void np_order_free(np_order *order);

/* The calls of device.h, as they are made: those that can fail and succeeded, and the others. */
neap_status np_order_commit(np_order *order, uint32_t first_page, uint32_t n_pages);
void np_order_release(np_order *order, uint32_t first_page, uint32_t n_pages);
neap_status np_order_reserve(np_order *order, const char *address, uint64_t n_pages);
void np_order_unreserve(np_order *order, const char *address, uint64_t n_pages);
void np_order_map(np_order *order, const char *address, uint32_t first_page, uint32_t n_pages);
void np_order_unmap(np_order *order, const char *address, uint64_t n_pages);
void np_order_host_free(np_order *order, const char *host, uint64_t bytes);

/* Work that gets this mark. *can_run: all it uses is mapped. */
neap_status np_order_launch(np_order *order, np_stream stream, uint64_t mark, const np_touch *touches,
                            uint32_t n_touches, bool *can_run);
neap_status np_order_copy(np_order *order, np_stream stream, uint64_t mark, const char *to, const char *from,
                          uint64_t bytes, bool *can_run);
void np_order_wait(np_order *order, np_stream stream, np_stream other, uint64_t mark);
void np_order_host_knows(np_order *order, np_stream stream, uint64_t mark); /* that it is done */

const char *np_order_problem(const np_order *order); /* NULL: none */
bool np_order_is_valid(const np_order *order);

#endif
