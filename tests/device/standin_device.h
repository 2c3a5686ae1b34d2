/* standin_device.h: a cuda device over the stand-in driver (standin/standin.h), for tests of anything that uses a
 * device.
 *
 * Work of a cuda device puts kernels on its stream. Tests have plain functions instead, which touch memory themselves:
 * the wrapper here puts each of them on the stream as a kernel of its own. */
#ifndef TESTS_DEVICE_STANDIN_DEVICE_H
#define TESTS_DEVICE_STANDIN_DEVICE_H

#include "device/device.h"
#include "standin/standin.h"

/* Makes the stand-in the driver of cuda devices opened from now on, with pages of that size, a power of two. Called
 * before the first of them; again, it changes nothing. */
void standin_use(uint64_t page_bytes);

/* What can be asked of it. */
const standin_control *standin_get(void);

/* A cuda device whose work is functions of the host. Takes the device over. */
np_device *standin_wrap(np_device *cuda);
np_device *standin_inner(np_device *wrapped);

#endif
