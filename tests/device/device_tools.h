/* device_tools.h: small things that tests of devices need. Failures end the test. */
#ifndef TESTS_DEVICE_DEVICE_TOOLS_H
#define TESTS_DEVICE_DEVICE_TOOLS_H

#include "device/device.h"

/* A device by its name. "cuda" ones run over the stand-in driver, and work of theirs is what it is elsewhere:
 * functions that touch memory (standin_device.h). */
np_device *device_open(const char *name, const neap_memory *memory);

/* The device must have found nothing wrong. */
void device_close(np_device *device);

/* Commits pages and maps them at an address of their own; takes both back. */
char *device_map(np_device *device, uint32_t first_page, uint32_t n_pages);
void device_unmap(np_device *device, char *address, uint32_t first_page, uint32_t n_pages);

/* Work that sets bytes, or adds one to each; returns its mark. */
uint64_t device_fill(np_device *device, np_stream stream, char *at, uint64_t bytes, char value);
uint64_t device_increment(np_device *device, np_stream stream, char *at, uint64_t bytes);

/* Work that does nothing for so long. */
uint64_t device_pause(np_device *device, np_stream stream, uint64_t duration_ns, np_times *times);

uint64_t device_copy(np_device *device, np_stream stream, char *to, const char *from, uint64_t bytes);
void device_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark);
void device_sync(np_device *device, np_stream stream, uint64_t mark);
void device_sync_all(np_device *device);

/* Whether a byte there can be read, found out without a fault. */
bool device_is_readable(const char *address);

#endif
