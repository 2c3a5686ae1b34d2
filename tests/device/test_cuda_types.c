/* test_cuda_types.c: sizes, offsets and values of cuda_types.h against the real cuda.h, where there is one. */
#include "device/cuda_types.h"

#include <stddef.h>

#include "testing.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#define SAME_SIZE(own, real) ASSERT_EQ(sizeof(own), sizeof(real))
#define SAME_PLACE(own, field, real, real_field)                               \
    do {                                                                       \
        ASSERT_EQ(offsetof(own, field), offsetof(real, real_field));           \
        ASSERT_EQ(sizeof(((own *)0)->field), sizeof(((real *)0)->real_field)); \
    } while (0)

static void test_sizes(void **state)
{
    (void)state;
    SAME_SIZE(np_cu_device, CUdevice);
    SAME_SIZE(np_cu_address, CUdeviceptr);
    SAME_SIZE(np_cu_memory, CUmemGenericAllocationHandle);
    SAME_SIZE(np_cu_context, CUcontext);
    SAME_SIZE(np_cu_stream, CUstream);
    SAME_SIZE(np_cu_event, CUevent);
    SAME_SIZE(np_cu_result, CUresult);
    SAME_SIZE(np_cu_attribute, CUdevice_attribute);
    SAME_SIZE(np_cu_capture_mode, CUstreamCaptureMode);
    SAME_SIZE(np_cu_granularity, CUmemAllocationGranularity_flags);
    SAME_SIZE(np_cu_location, CUmemLocation);
    SAME_SIZE(np_cu_allocation, CUmemAllocationProp);
    SAME_SIZE(np_cu_access, CUmemAccessDesc);
}

static void test_places(void **state)
{
    (void)state;
    SAME_PLACE(np_cu_location, type, CUmemLocation, type);
    SAME_PLACE(np_cu_location, id, CUmemLocation, id);
    SAME_PLACE(np_cu_allocation, type, CUmemAllocationProp, type);
    SAME_PLACE(np_cu_allocation, handle_types, CUmemAllocationProp, requestedHandleTypes);
    SAME_PLACE(np_cu_allocation, location, CUmemAllocationProp, location);
    SAME_PLACE(np_cu_allocation, win32_meta, CUmemAllocationProp, win32HandleMetaData);
    SAME_PLACE(np_cu_allocation, flags, CUmemAllocationProp, allocFlags);
    SAME_PLACE(np_cu_allocation, flags.compression, CUmemAllocationProp, allocFlags.compressionType);
    SAME_PLACE(np_cu_allocation, flags.rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
    SAME_PLACE(np_cu_allocation, flags.usage, CUmemAllocationProp, allocFlags.usage);
    SAME_PLACE(np_cu_access, location, CUmemAccessDesc, location);
    SAME_PLACE(np_cu_access, flags, CUmemAccessDesc, flags);
}

static void test_values(void **state)
{
    (void)state;
    ASSERT_EQ(NP_CU_SUCCESS, CUDA_SUCCESS);
    ASSERT_EQ(NP_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
    ASSERT_EQ(NP_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_EQ(NP_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
    ASSERT_EQ(NP_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
    ASSERT_EQ(NP_CU_NOT_READY, CUDA_ERROR_NOT_READY);
    ASSERT_EQ(NP_CU_UNKNOWN, CUDA_ERROR_UNKNOWN);
    ASSERT_EQ(NP_CU_VIRTUAL_MEMORY, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    ASSERT_EQ(NP_CU_CAPTURE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASSERT_EQ(NP_CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ASSERT_EQ(NP_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
    ASSERT_EQ(NP_CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    ASSERT_EQ(NP_CU_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    ASSERT_EQ(NP_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    ASSERT_EQ(NP_CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
    ASSERT_EQ(NP_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
    ASSERT_EQ(NP_CU_HOST_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
    ASSERT_EQ(NP_CU_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
    ASSERT_EQ(NP_CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
    ASSERT_EQ(NP_CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

#else

#define test_sizes test_skipped
#define test_places test_skipped
#define test_values test_skipped

static void test_skipped(void **state)
{
    (void)state;
    SKIP("no cuda.h was found");
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests_name("device/cuda_types", tests, NULL, NULL);
}
