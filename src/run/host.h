/* host.h: host memory for what is absent from the device. Slots are kept by size when they are no longer needed: a
 * program that repeats itself asks for the same ones again. */
#ifndef NP_RUN_HOST_H
#define NP_RUN_HOST_H

#include "device/device.h"

typedef struct np_slot {
    char *host;
    uint64_t bytes;
} np_slot;

typedef struct np_host {
    np_device *device;
    np_array(np_slot) spare;
    uint64_t held_bytes; /* in use and spare */
} np_host;

void np_host_init(np_host *host, np_device *device);
void np_host_free(np_host *host); /* the spare ones; all others have been given back */

/* A slot of so many bytes. NEAP_NO_MEMORY after spare ones were given up. */
neap_status np_host_take(np_host *host, uint64_t bytes, np_slot *slot);
void np_host_give(np_host *host, np_slot *slot); /* an empty one is allowed */

#endif
