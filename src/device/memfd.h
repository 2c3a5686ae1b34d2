/* memfd.h: pages and addresses of a device whose memory is the machine's own.
 *
 * Physical memory is a file without a name, page after page; an address range is mapped onto any part of it, and onto the
 * same part twice where asked. Committed pages are taken from the system at once, so that it is the call that fails and
 * not a touch later on. A touch of what is not mapped is a fault.
 *
 * Preconditions as in device.h. All numbers of pages are of the device's, which may be larger than the system's. */
#ifndef NP_DEVICE_MEMFD_H
#define NP_DEVICE_MEMFD_H

#include "neap.h"

typedef struct np_memfd {
    int file;
    uint64_t page_bytes;
    void *spares; /* mappings of the kernel's held in reserve, so that unmapping does not fail when its table is full */
} np_memfd;

/* page_bytes: a multiple of the system's. */
neap_status np_memfd_open(np_memfd *memfd, uint64_t page_bytes);
void np_memfd_close(np_memfd *memfd);

neap_status np_memfd_commit(np_memfd *memfd, uint32_t first_page, uint32_t n_pages);
void np_memfd_release(np_memfd *memfd, uint32_t first_page, uint32_t n_pages);
neap_status np_memfd_reserve(np_memfd *memfd, uint64_t n_pages, char **address);
void np_memfd_unreserve(np_memfd *memfd, char *address, uint64_t n_pages);
neap_status np_memfd_map(np_memfd *memfd, char *address, uint32_t first_page, uint32_t n_pages);
void np_memfd_unmap(np_memfd *memfd, char *address, uint64_t n_pages);

uint64_t np_memfd_system_page(void);   /* bytes */
uint64_t np_memfd_system_memory(void); /* bytes */

#endif
