/* host.h: host memory for what is absent from the device.
 *
 * It comes in large chunks, since making host memory fit for fast copies costs by the call as well as by the byte, and is
 * cut into slots: best fit, with splitting and merging. Chunks stay: a program that repeats itself needs them again. They
 * can also be made beside the program (learn.c) and added when they are ready. */
#ifndef NP_RUN_HOST_H
#define NP_RUN_HOST_H

#include "device/device.h"
#include "pool/baseline_heap.h"

typedef struct np_slot {
    char *host;
    uint64_t bytes; /* rounded up */
    uint32_t block; /* of the heap */
} np_slot;

typedef struct np_host_chunk {
    char *host;
    uint64_t bytes;
    uint64_t begin; /* its address in the heap */
} np_host_chunk;

typedef struct np_host {
    np_device *device;
    np_heap heap;
    np_array(np_host_chunk) chunks; /* in order of `begin` */
    uint64_t used_bytes;
    uint64_t held_bytes; /* of all chunks */
} np_host;

void np_host_init(np_host *host, np_device *device);
void np_host_free(np_host *host); /* all slots have been given back */

/* A slot of so many bytes. NEAP_NO_MEMORY: there is none, and no more host memory. */
neap_status np_host_take(np_host *host, uint64_t bytes, np_slot *slot);
void np_host_give(np_host *host, np_slot *slot); /* an empty one is allowed */

/* What the device's host_alloc gave, taken over; on failure it is the caller's still. */
neap_status np_host_add(np_host *host, char *memory, uint64_t bytes);

bool np_host_is_valid(const np_host *host);

#endif
