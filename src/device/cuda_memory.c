/* cuda_memory.c: pages are memory handles, addresses are reservations, and mapping joins the two.
 *
 * A page is one handle of its own, so that any page can be mapped anywhere: the driver maps whole handles only. What
 * is mapped where is kept in a pagemap as well, because the driver is stricter than device.h: it maps only where
 * nothing is, and unmaps only what is there, whole mappings at a time. Access is set anew after every mapping, for the
 * whole range at once, as the driver takes longer for a call than for a page.
 *
 * Host memory is taken from the hook, touched and then registered: that is fifteen times faster than to let the driver
 * allocate it. The block begins at a page of the system of its own, as pages are what is registered, and one must not
 * be registered twice. */
#define _DEFAULT_SOURCE /* madvise */
#include <sys/mman.h>

#include "base/checked.h"
#include "device/cuda_state.h"
#include "device/memfd.h"

enum { LARGE_PAGE = 2 << 20 }; /* of the host */

static np_cuda *cuda_of(np_device *device)
{
    return (np_cuda *)device;
}

static np_cu_address address_of(const char *at)
{
    return (np_cu_address)(uintptr_t)at;
}

/* ---- pages ---- */

np_cu_allocation np_cuda_allocation(np_cu_device ordinal)
{
    return (np_cu_allocation){.type = NP_CU_ALLOCATION_PINNED, .location = {NP_CU_LOCATION_DEVICE, ordinal}};
}

/* Releases the first n of them. */
static void release_handles(np_cuda *cuda, uint32_t first_page, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        (void)np_cuda_judge(cuda, cuda->driver.release(cuda->handles.items[first_page + i]), "cuMemRelease",
                            NEAP_DEVICE_FULL);
    }
}

static neap_status create_handles(np_cuda *cuda, uint32_t first_page, uint32_t n_pages)
{
    np_cu_allocation allocation = np_cuda_allocation(cuda->ordinal);
    for (uint32_t i = 0; i < n_pages; i++) {
        np_cu_result result =
            cuda->driver.create(&cuda->handles.items[first_page + i], cuda->base.page_bytes, &allocation, 0);
        if (result != NP_CU_SUCCESS) {
            release_handles(cuda, first_page, i);
            return np_cuda_judge(cuda, result, "cuMemCreate", NEAP_DEVICE_FULL);
        }
    }
    return NEAP_OK;
}

neap_status np_cuda_commit(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    neap_status status = np_array_reserve(device->memory, &cuda->handles, (size_t)first_page + n_pages);
    if (status == NEAP_OK) {
        status = np_pagemap_reserve_commit(&cuda->pages, first_page, n_pages);
    }
    if (status == NEAP_OK) {
        status = np_cuda_enter(cuda, &visit);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = create_handles(cuda, first_page, n_pages);
    if (status == NEAP_OK) {
        (void)np_pagemap_commit(&cuda->pages, first_page, n_pages);
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

void np_cuda_release(np_device *device, uint32_t first_page, uint32_t n_pages)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    (void)np_cuda_enter(cuda, &visit);
    release_handles(cuda, first_page, n_pages);
    (void)np_pagemap_release(&cuda->pages, first_page, n_pages);
    np_cuda_leave(cuda, &visit);
}

/* ---- addresses ---- */

neap_status np_cuda_reserve(np_device *device, uint64_t n_pages, char **address)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    np_cu_address found = 0;
    uint64_t bytes;
    neap_status status;
    if (n_pages == 0 || !np_mul_u64(n_pages, device->page_bytes, &bytes)) {
        return NEAP_NO_MEMORY;
    }
    status = np_cuda_rest_expect(cuda, cuda->pages.reservations.n + 1);
    if (status == NEAP_OK) {
        status = np_cuda_enter(cuda, &visit);
    }
    if (status != NEAP_OK) {
        return status;
    }
    status = np_cuda_addresses_reserve(cuda, bytes, &found);
    if (status == NEAP_OK) {
        status = np_pagemap_add(&cuda->pages, (char *)(uintptr_t)found, n_pages);
        if (status != NEAP_OK) {
            (void)np_cuda_judge(cuda, cuda->driver.unreserve(found, bytes), "cuMemAddressFree", NEAP_NO_MEMORY);
        } else {
            *address = (char *)(uintptr_t)found;
        }
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

/* ---- mappings ---- */

/* Pages of an address range, and onto which physical ones they are mapped. */
typedef struct span {
    char *address;
    uint64_t n_pages;
    bool is_mapped;
    uint32_t first_page; /* of consecutive ones, where it is mapped */
} span;

/* What the range begins with: pages that are not mapped, or are, onto consecutive pages. */
static span span_at(const np_cuda *cuda, char *address, uint64_t n_pages)
{
    uint64_t page = cuda->base.page_bytes;
    span found = {.address = address};
    np_piece piece;
    if (np_pagemap_find(&cuda->pages, address, n_pages * page, &piece)) {
        found.is_mapped = true;
        found.first_page = (uint32_t)(piece.begin / page);
        found.n_pages = (piece.end - piece.begin) / page;
        return found;
    }
    do {
        found.n_pages++;
    } while (found.n_pages < n_pages && !np_pagemap_find(&cuda->pages, address + found.n_pages * page, page, &piece));
    return found;
}

/* The mapped pages from some place in the range on, however they are mapped, as one span; n_pages 0: there are none. */
static span next_mapped(const np_cuda *cuda, char *address, uint64_t n_pages)
{
    uint64_t page = cuda->base.page_bytes;
    span run = span_at(cuda, address, n_pages);
    if (!run.is_mapped) {
        address += run.n_pages * page;
        n_pages -= run.n_pages;
        run = (span){.address = address};
    } else {
        run.n_pages = 0;
    }
    while (run.n_pages < n_pages) {
        span next = span_at(cuda, address + run.n_pages * page, n_pages - run.n_pages);
        if (!next.is_mapped) {
            break;
        }
        run.n_pages += next.n_pages;
    }
    return run;
}

static neap_status unmap_range(np_cuda *cuda, const char *address, uint64_t n_pages)
{
    return np_cuda_judge(cuda, cuda->driver.unmap(address_of(address), n_pages * cuda->base.page_bytes), "cuMemUnmap",
                         NEAP_DEVICE_FULL);
}

/* Onto consecutive pages, where nothing is mapped now. On failure nothing is. */
static neap_status map_range(np_cuda *cuda, const char *address, uint32_t first_page, uint64_t n_pages)
{
    uint64_t page = cuda->base.page_bytes;
    np_cu_access access = {{NP_CU_LOCATION_DEVICE, cuda->ordinal}, NP_CU_ACCESS_READ_WRITE};
    neap_status status = NEAP_OK;
    uint64_t n = 0;
    for (; n < n_pages && status == NEAP_OK; n += status == NEAP_OK) {
        status = np_cuda_judge(
            cuda, cuda->driver.map(address_of(address) + n * page, page, 0, cuda->handles.items[first_page + n], 0),
            "cuMemMap", NEAP_DEVICE_FULL);
    }
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.set_access(address_of(address), n_pages * page, &access, 1),
                               "cuMemSetAccess", NEAP_DEVICE_FULL);
    }
    if (status != NEAP_OK && n > 0) {
        (void)unmap_range(cuda, address, n);
    }
    return status;
}

/* Puts the first n pages of the range back to what the pagemap says. Should the driver refuse even that, they stay
 * unmapped, and the pagemap is told. */
static void restore(np_cuda *cuda, char *address, uint64_t n_pages)
{
    while (n_pages > 0) {
        span was = span_at(cuda, address, n_pages);
        if (was.is_mapped && map_range(cuda, was.address, was.first_page, was.n_pages) != NEAP_OK) {
            (void)np_pagemap_unmap(&cuda->pages, was.address, was.n_pages);
        }
        address += was.n_pages * cuda->base.page_bytes;
        n_pages -= was.n_pages;
    }
}

/* Unmaps whatever is mapped in the range, for the driver alone: the pagemap still knows. On failure all is as it was.
 * */
static neap_status clear_range(np_cuda *cuda, char *address, uint64_t n_pages)
{
    uint64_t page = cuda->base.page_bytes;
    uint64_t n_seen = 0;
    while (n_seen < n_pages) {
        span run = next_mapped(cuda, address + n_seen * page, n_pages - n_seen);
        if (run.n_pages > 0) {
            neap_status status = unmap_range(cuda, run.address, run.n_pages);
            if (status != NEAP_OK) {
                restore(cuda, address, n_seen);
                return status;
            }
        }
        n_seen = (uint64_t)(run.address - address) / page + run.n_pages;
    }
    return NEAP_OK;
}

neap_status np_cuda_map(np_device *device, char *address, uint32_t first_page, uint32_t n_pages)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    neap_status status = n_pages > 0 ? np_cuda_enter(cuda, &visit) : NEAP_OK;
    if (status != NEAP_OK || n_pages == 0) {
        return status;
    }
    status = clear_range(cuda, address, n_pages);
    if (status == NEAP_OK) {
        status = map_range(cuda, address, first_page, n_pages);
        if (status == NEAP_OK) {
            (void)np_pagemap_map(&cuda->pages, address, first_page, n_pages);
        } else {
            restore(cuda, address, n_pages);
        }
    }
    np_cuda_leave(cuda, &visit);
    return status;
}

/* What the driver refuses to unmap stays mapped, and known to be. Whether nothing is mapped there any more. */
static bool unmap_all(np_cuda *cuda, char *address, uint64_t n_pages)
{
    uint64_t page = cuda->base.page_bytes;
    bool are_unmapped = true;
    while (n_pages > 0) {
        span run = next_mapped(cuda, address, n_pages);
        uint64_t n_seen = (uint64_t)(run.address - address) / page + run.n_pages;
        if (run.n_pages > 0 && unmap_range(cuda, run.address, run.n_pages) == NEAP_OK) {
            (void)np_pagemap_unmap(&cuda->pages, run.address, run.n_pages);
        } else {
            are_unmapped = are_unmapped && run.n_pages == 0;
        }
        address += n_seen * page;
        n_pages -= n_seen;
    }
    return are_unmapped;
}

void np_cuda_unmap(np_device *device, char *address, uint64_t n_pages)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    (void)np_cuda_enter(cuda, &visit);
    (void)unmap_all(cuda, address, n_pages);
    np_cuda_leave(cuda, &visit);
}

/* Where something could not be unmapped, the addresses are kept: it is tried again in the end. */
void np_cuda_unreserve(np_device *device, char *address, uint64_t n_pages)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    (void)np_cuda_enter(cuda, &visit);
    if (unmap_all(cuda, address, n_pages)) {
        (void)np_pagemap_remove(&cuda->pages, address, n_pages);
        np_cuda_rest(cuda, address_of(address), n_pages * device->page_bytes);
    }
    np_cuda_leave(cuda, &visit);
}

void np_cuda_memory_free(np_cuda *cuda)
{
    for (size_t i = 0; i < cuda->pages.reservations.n; i++) {
        const np_reservation *r = &cuda->pages.reservations.items[i];
        char *address = (char *)(uintptr_t)r->address;
        if (unmap_all(cuda, address, r->n_pages)) {
            (void)cuda->driver.unreserve(address_of(address), r->n_pages * cuda->base.page_bytes);
        }
    }
    for (size_t i = 0; i < cuda->pages.physical.n; i++) {
        if (cuda->pages.physical.items[i].committed) {
            release_handles(cuda, (uint32_t)i, 1);
        }
    }
    np_cuda_rest_free(cuda);
    np_pagemap_free(&cuda->pages);
    np_array_free(cuda->base.memory, &cuda->handles);
}

/* ---- host memory ---- */

/* Large pages where a block has any: the system has less to clear and the driver less to register. Of a GB, on an H200's
 * host, 0.3 s instead of 0.8. */
static uint64_t host_alignment(uint64_t bytes)
{
    return bytes < LARGE_PAGE ? np_memfd_system_page() : LARGE_PAGE;
}

/* A host block's bytes are rounded up to whole pages of the system, and what the hook gave begins in the page before. */
static bool host_sizes(uint64_t bytes, uint64_t *block_bytes, uint64_t *all_bytes)
{
    uint64_t page = np_memfd_system_page();
    return np_round_up(bytes > 0 ? bytes : 1, page, block_bytes) &&
           np_add_u64(*block_bytes, page + host_alignment(bytes), all_bytes) && *all_bytes <= SIZE_MAX;
}

/* Takes the pages from the system now, so that registering them does not have to, one by one. */
static void touch(char *block, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_PAGE) {
        (void)madvise(block, bytes, MADV_HUGEPAGE); /* or small ones: it is a wish */
    }
#endif
    for (uint64_t i = 0; i < bytes; i += np_memfd_system_page()) {
        ((volatile char *)block)[i] = 0;
    }
}

neap_status np_cuda_host_alloc(np_device *device, uint64_t bytes, char **host)
{
    np_cuda *cuda = cuda_of(device);
    uint64_t alignment = host_alignment(bytes);
    np_cuda_visit visit;
    uint64_t block_bytes;
    uint64_t all_bytes;
    char *given;
    char *block;
    neap_status status;
    if (!host_sizes(bytes, &block_bytes, &all_bytes) || !(given = np_memory_alloc(device->memory, all_bytes, 1))) {
        return NEAP_NO_MEMORY;
    }
    block = given + sizeof given;
    block += (alignment - (uintptr_t)block % alignment) % alignment;
    ((char **)(void *)block)[-1] = given;
    touch(block, block_bytes);
    status = np_cuda_enter(cuda, &visit);
    if (status == NEAP_OK) {
        status = np_cuda_judge(cuda, cuda->driver.host_register(block, block_bytes, NP_CU_HOST_REGISTER_PORTABLE),
                               "cuMemHostRegister", NEAP_NO_MEMORY);
        np_cuda_leave(cuda, &visit);
    }
    if (status != NEAP_OK) {
        np_memory_free(device->memory, given, all_bytes, 1);
        return status;
    }
    *host = block;
    return NEAP_OK;
}

void np_cuda_host_free(np_device *device, char *host, uint64_t bytes)
{
    np_cuda *cuda = cuda_of(device);
    np_cuda_visit visit;
    uint64_t block_bytes;
    uint64_t all_bytes;
    neap_status status;
    if (!host || !host_sizes(bytes, &block_bytes, &all_bytes)) {
        return;
    }
    (void)np_cuda_enter(cuda, &visit);
    status = np_cuda_judge(cuda, cuda->driver.host_unregister(host), "cuMemHostUnregister", NEAP_NO_MEMORY);
    np_cuda_leave(cuda, &visit);
    if (status == NEAP_OK) { /* else the device may still hold its pages: they are not anybody else's again */
        np_memory_free(device->memory, ((char **)(void *)host)[-1], all_bytes, 1);
    }
}
