/* cuda.h: what is special about a device of kind "cuda".
 *
 * Its work is given by the program itself: np_task.run is called at once, in the thread that launches, with the
 * device's context current, and puts kernels, copies and whatever else on the stream named here. All that is on the
 * stream when it returns belongs to the work. */
#ifndef NP_DEVICE_CUDA_H
#define NP_DEVICE_CUDA_H

#include "device/device.h"

/* The CUstream behind a stream of a "cuda" device. It lives as long as the device does. */
void *np_cuda_stream(const np_device *device, np_stream stream);

/* The driver's name for the context that the device works in. */
void *np_cuda_context_of(const np_device *device);

#endif
