/* cuda_driver.h: the CUDA driver, loaded at run time.
 *
 * One list says all: which functions are used, under which versioned name the driver exports them, whether they can be
 * done without, and what they take. The rest follows from it. Nothing is linked: the same library serves machines with
 * and without a GPU. */
#ifndef NP_DEVICE_CUDA_DRIVER_H
#define NP_DEVICE_CUDA_DRIVER_H

#include "device/cuda_types.h"
#include "neap.h"

/* clang-format off */
/* X(need, field, symbol, parameters): REQUIRED, or OPTIONAL and NULL where the driver is too old or too new for it. */
#define NP_CUDA_SYMBOLS(X)                                                                                            \
    X(REQUIRED, init, cuInit, (unsigned int flags))                                                                   \
    X(REQUIRED, error_name, cuGetErrorName, (np_cu_result result, const char **name))                                 \
    X(REQUIRED, error_string, cuGetErrorString, (np_cu_result result, const char **text))                             \
    X(REQUIRED, device_get, cuDeviceGet, (np_cu_device *device, int ordinal))                                         \
    X(REQUIRED, device_count, cuDeviceGetCount, (int *n))                                                             \
    X(REQUIRED, device_name, cuDeviceGetName, (char *name, int bytes, np_cu_device device))                           \
    X(REQUIRED, device_attribute, cuDeviceGetAttribute, (int *value, np_cu_attribute attribute, np_cu_device device)) \
    X(REQUIRED, primary_retain, cuDevicePrimaryCtxRetain, (np_cu_context *context, np_cu_device device))              \
    X(REQUIRED, primary_release, cuDevicePrimaryCtxRelease_v2, (np_cu_device device))                                 \
    X(REQUIRED, context_get, cuCtxGetCurrent, (np_cu_context *context))                                               \
    X(REQUIRED, context_push, cuCtxPushCurrent_v2, (np_cu_context context))                                           \
    X(REQUIRED, context_pop, cuCtxPopCurrent_v2, (np_cu_context *context))                                            \
    X(OPTIONAL, exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (np_cu_capture_mode *mode))                 \
    X(REQUIRED, memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes))                              \
    X(REQUIRED, granularity, cuMemGetAllocationGranularity,                                                           \
      (size_t *bytes, const np_cu_allocation *allocation, np_cu_granularity option))                                  \
    X(REQUIRED, create, cuMemCreate,                                                                                  \
      (np_cu_memory *memory, size_t bytes, const np_cu_allocation *allocation, unsigned long long flags))             \
    X(REQUIRED, release, cuMemRelease, (np_cu_memory memory))                                                         \
    X(REQUIRED, reserve, cuMemAddressReserve,                                                                         \
      (np_cu_address *address, size_t bytes, size_t alignment, np_cu_address hint, unsigned long long flags))         \
    X(REQUIRED, unreserve, cuMemAddressFree, (np_cu_address address, size_t bytes))                                   \
    X(REQUIRED, map, cuMemMap,                                                                                        \
      (np_cu_address address, size_t bytes, size_t offset, np_cu_memory memory, unsigned long long flags))            \
    X(REQUIRED, unmap, cuMemUnmap, (np_cu_address address, size_t bytes))                                             \
    X(REQUIRED, set_access, cuMemSetAccess,                                                                           \
      (np_cu_address address, size_t bytes, const np_cu_access *access, size_t n))                                    \
    X(REQUIRED, alloc, cuMemAlloc_v2, (np_cu_address *address, size_t bytes))                                         \
    X(REQUIRED, free, cuMemFree_v2, (np_cu_address address))                                                          \
    X(REQUIRED, host_register, cuMemHostRegister_v2, (void *host, size_t bytes, unsigned int flags))                  \
    X(REQUIRED, host_unregister, cuMemHostUnregister, (void *host))                                                   \
    X(REQUIRED, copy_in, cuMemcpyHtoDAsync_v2,                                                                        \
      (np_cu_address to, const void *from, size_t bytes, np_cu_stream stream))                                        \
    X(REQUIRED, copy_out, cuMemcpyDtoHAsync_v2, (void *to, np_cu_address from, size_t bytes, np_cu_stream stream))    \
    X(REQUIRED, copy_any, cuMemcpyAsync, (np_cu_address to, np_cu_address from, size_t bytes, np_cu_stream stream))   \
    X(REQUIRED, stream_create, cuStreamCreate, (np_cu_stream *stream, unsigned int flags))                            \
    X(REQUIRED, stream_destroy, cuStreamDestroy_v2, (np_cu_stream stream))                                            \
    X(REQUIRED, stream_sync, cuStreamSynchronize, (np_cu_stream stream))                                              \
    X(REQUIRED, stream_wait, cuStreamWaitEvent, (np_cu_stream stream, np_cu_event event, unsigned int flags))         \
    X(REQUIRED, event_create, cuEventCreate, (np_cu_event *event, unsigned int flags))                                \
    X(REQUIRED, event_destroy, cuEventDestroy_v2, (np_cu_event event))                                                \
    X(REQUIRED, event_record, cuEventRecord, (np_cu_event event, np_cu_stream stream))                                \
    X(REQUIRED, event_query, cuEventQuery, (np_cu_event event))                                                       \
    X(REQUIRED, event_sync, cuEventSynchronize, (np_cu_event event))                                                  \
    X(OPTIONAL, event_elapsed, cuEventElapsedTime_v2, (float *ms, np_cu_event start, np_cu_event end))                \
    X(OPTIONAL, event_elapsed_v1, cuEventElapsedTime, (float *ms, np_cu_event start, np_cu_event end))                \
    X(OPTIONAL, kernel_parameter, cuKernelGetParamInfo,                                                               \
      (np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes))                                             \
    X(OPTIONAL, function_parameter, cuFuncGetParamInfo,                                                               \
      (np_cu_function function, size_t index, size_t *offset, size_t *bytes))                                         \
    X(OPTIONAL, stream_is_capturing, cuStreamIsCapturing, (np_cu_stream stream, np_cu_capture_status *status))        \
    X(OPTIONAL, context_sync, cuCtxSynchronize, (void))                                                               \
    X(OPTIONAL, pointer_attribute, cuPointerGetAttribute,                                                             \
      (void *value, np_cu_pointer_attribute attribute, np_cu_address address))                                        \
    X(OPTIONAL, fill, cuMemsetD8Async,                                                                                \
      (np_cu_address address, unsigned char byte, size_t bytes, np_cu_stream stream))
/* clang-format on */

typedef struct np_cuda_driver {
    void *library;
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parameters of a function */
#define NP_CUDA_FIELD(need, field, symbol, parameters) np_cu_result(*field) parameters;
    NP_CUDA_SYMBOLS(NP_CUDA_FIELD)
#undef NP_CUDA_FIELD
} np_cuda_driver;

/* Loads libcuda.so.1, or what the environment names by NEAP_CUDA_DRIVER, and initialises it. NEAP_DEVICE_FAILED: there
 * is no driver, it lacks a function, or it finds no GPU; the error says which. A driver that was loaded stays loaded:
 * it has threads and exit handlers of its own. */
neap_status np_cuda_driver_load(np_cuda_driver *driver, neap_error *error);

/* "CUDA_ERROR_INVALID_VALUE: invalid argument", for messages. */
#define NP_CUDA_ERROR_CHARS 160
void np_cuda_driver_explain(const np_cuda_driver *driver, np_cu_result result, char text[NP_CUDA_ERROR_CHARS]);

#endif
