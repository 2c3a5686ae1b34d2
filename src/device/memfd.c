/* memfd.c: Linux calls behind memfd.h. One call maps any number of pages, and the kernel melts neighbours together, so
 * that the number of its mappings, which is limited, stays that of the pieces a device's user makes. */
#define _GNU_SOURCE /* memfd_create, fallocate */
#include "device/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

enum { N_SPARES = 3 }; /* unmapping in the midst of a mapping makes three of one */

/* Mappings that do not melt together: each of a page of its own, all of one place far behind the memory's end. */
static void make_spares(np_memfd *memfd)
{
    size_t page = np_memfd_system_page();
    char *made = mmap(NULL, N_SPARES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memfd->spares = made == MAP_FAILED ? NULL : made;
    for (size_t i = 0; i < N_SPARES && memfd->spares; i++) {
        if (mmap(made + i * page, page, PROT_NONE, MAP_SHARED | MAP_FIXED, memfd->file, (off_t)1 << 60) == MAP_FAILED) {
            (void)munmap(made, N_SPARES * page);
            memfd->spares = NULL;
        }
    }
}

static void drop_spares(np_memfd *memfd)
{
    if (memfd->spares) {
        (void)munmap(memfd->spares, N_SPARES * np_memfd_system_page());
        memfd->spares = NULL;
    }
}

neap_status np_memfd_open(np_memfd *memfd, uint64_t page_bytes)
{
    int file = memfd_create("neap", MFD_CLOEXEC);
    if (file < 0) {
        return errno == ENOMEM ? NEAP_NO_MEMORY : NEAP_DEVICE_FAILED;
    }
    *memfd = (np_memfd){.file = file, .page_bytes = page_bytes};
    make_spares(memfd);
    return NEAP_OK;
}

void np_memfd_close(np_memfd *memfd)
{
    drop_spares(memfd);
    (void)close(memfd->file);
    memfd->file = -1;
}

/* fallocate that goes on after a signal. */
static int allocate(const np_memfd *memfd, int mode, uint32_t first_page, uint32_t n_pages)
{
    int failed;
    do {
        failed =
            fallocate(memfd->file, mode, (off_t)(first_page * memfd->page_bytes), (off_t)(n_pages * memfd->page_bytes));
    } while (failed && errno == EINTR);
    return failed;
}

neap_status np_memfd_commit(np_memfd *memfd, uint32_t first_page, uint32_t n_pages)
{
    return n_pages == 0 || allocate(memfd, 0, first_page, n_pages) == 0 ? NEAP_OK : NEAP_DEVICE_FULL;
}

void np_memfd_release(np_memfd *memfd, uint32_t first_page, uint32_t n_pages)
{
    if (n_pages > 0) {
        (void)allocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, first_page, n_pages);
    }
}

neap_status np_memfd_reserve(np_memfd *memfd, uint64_t n_pages, char **address)
{
    uint64_t system = np_memfd_system_page();
    uint64_t bytes;
    uint64_t with_slack;
    char *found;
    char *aligned;
    if (n_pages == 0 || !np_mul_u64(n_pages, memfd->page_bytes, &bytes) ||
        !np_add_u64(bytes, memfd->page_bytes - system, &with_slack) || with_slack > SIZE_MAX / 2) {
        return NEAP_NO_MEMORY;
    }
    found = mmap(NULL, with_slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
        return NEAP_NO_MEMORY;
    }
    /* Addresses are multiples of the device's page: what is too much on either side goes back. */
    aligned = found + (memfd->page_bytes - (uintptr_t)found % memfd->page_bytes) % memfd->page_bytes;
    if (aligned > found) {
        (void)munmap(found, (size_t)(aligned - found));
    }
    if (aligned + bytes < found + with_slack) {
        (void)munmap(aligned + bytes, (size_t)(found + with_slack - (aligned + bytes)));
    }
    *address = aligned;
    return NEAP_OK;
}

void np_memfd_unreserve(np_memfd *memfd, char *address, uint64_t n_pages)
{
    (void)munmap(address, n_pages * memfd->page_bytes);
}

neap_status np_memfd_map(np_memfd *memfd, char *address, uint32_t first_page, uint32_t n_pages)
{
    /* The kernel looks for room in its table before it takes away what was there: a failure changes nothing. */
    if (n_pages > 0 &&
        mmap(address, n_pages * memfd->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
             memfd->file, (off_t)(first_page * memfd->page_bytes)) == MAP_FAILED) {
        return errno == ENOMEM ? NEAP_NO_MEMORY : NEAP_DEVICE_FAILED;
    }
    return NEAP_OK;
}

void np_memfd_unmap(np_memfd *memfd, char *address, uint64_t n_pages)
{
    size_t bytes = n_pages * memfd->page_bytes;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (n_pages > 0 && mmap(address, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
        /* The kernel's table is full. Should it still be so without the spares, the old mapping stays: nobody uses it, and
         * what is mapped there next replaces it. */
        drop_spares(memfd);
        (void)mmap(address, bytes, PROT_NONE, flags, -1, 0);
        make_spares(memfd);
    }
}

uint64_t np_memfd_system_page(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    return bytes > 0 ? (uint64_t)bytes : 4096;
}

uint64_t np_memfd_system_memory(void)
{
    long n_pages = sysconf(_SC_PHYS_PAGES);
    return n_pages > 0 ? (uint64_t)n_pages * np_memfd_system_page() : (uint64_t)1 << 32;
}
