/* cuda_types.h: the few types and values of the CUDA driver interface that are used here, with the layout of cuda.h.
 *
 * Declared anew, so that no CUDA header is needed to build. A test compares every size, offset, value and prototype
 * with the real header where there is one. */
#ifndef NP_DEVICE_CUDA_TYPES_H
#define NP_DEVICE_CUDA_TYPES_H

#include <stddef.h>

typedef int np_cu_device;                        /* CUdevice */
typedef unsigned long long np_cu_address;        /* CUdeviceptr */
typedef unsigned long long np_cu_memory;         /* CUmemGenericAllocationHandle */
typedef struct np_cu_context_s *np_cu_context;   /* CUcontext */
typedef struct np_cu_stream_s *np_cu_stream;     /* CUstream */
typedef struct np_cu_event_s *np_cu_event;       /* CUevent */
typedef struct np_cu_kernel_s *np_cu_kernel;     /* CUkernel */
typedef struct np_cu_function_s *np_cu_function; /* CUfunction */

typedef enum np_cu_result { /* CUresult */
                            NP_CU_SUCCESS = 0,
                            NP_CU_INVALID_VALUE = 1,
                            NP_CU_OUT_OF_MEMORY = 2,
                            NP_CU_NO_DEVICE = 100,
                            NP_CU_INVALID_DEVICE = 101,
                            NP_CU_NOT_READY = 600,
                            NP_CU_UNKNOWN = 999,
} np_cu_result;

typedef enum np_cu_attribute {                             /* CUdevice_attribute */
                               NP_CU_VIRTUAL_MEMORY = 102, /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
                               NP_CU_ATTRIBUTE_LAST = 0x7fffffff,
} np_cu_attribute;

typedef enum np_cu_capture_mode { /* CUstreamCaptureMode */
                                  NP_CU_CAPTURE_GLOBAL = 0,
                                  NP_CU_CAPTURE_THREAD_LOCAL = 1,
                                  NP_CU_CAPTURE_RELAXED = 2,
} np_cu_capture_mode;

typedef enum np_cu_capture_status { /* CUstreamCaptureStatus */
                                    NP_CU_CAPTURE_NONE = 0,
                                    NP_CU_CAPTURE_ACTIVE = 1,
                                    NP_CU_CAPTURE_INVALIDATED = 2,
} np_cu_capture_status;

typedef enum np_cu_pointer_attribute { /* CUpointer_attribute */
                                       NP_CU_POINTER_MEMORY_TYPE = 2,
} np_cu_pointer_attribute;

typedef enum np_cu_granularity { /* CUmemAllocationGranularity_flags */
                                 NP_CU_GRANULARITY_MINIMUM = 0,
                                 NP_CU_GRANULARITY_RECOMMENDED = 1,
} np_cu_granularity;

enum {
    NP_CU_STREAM_NON_BLOCKING = 1,
    NP_CU_EVENT_DEFAULT = 0,
    NP_CU_EVENT_DISABLE_TIMING = 2,
    NP_CU_HOST_REGISTER_PORTABLE = 1,
    NP_CU_ALLOCATION_PINNED = 1, /* CU_MEM_ALLOCATION_TYPE_PINNED */
    NP_CU_MEMORY_HOST = 1,       /* CU_MEMORYTYPE_HOST */
    NP_CU_LOCATION_DEVICE = 1,   /* CU_MEM_LOCATION_TYPE_DEVICE */
    NP_CU_ACCESS_READ_WRITE = 3, /* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
};

typedef struct np_cu_location { /* CUmemLocation */
    int type;
    int id;
} np_cu_location;

typedef struct np_cu_allocation { /* CUmemAllocationProp */
    int type;
    int handle_types;
    np_cu_location location;
    void *win32_meta;
    struct {
        unsigned char compression;
        unsigned char rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
} np_cu_allocation;

typedef struct np_cu_access { /* CUmemAccessDesc */
    np_cu_location location;
    int flags;
} np_cu_access;

#endif
