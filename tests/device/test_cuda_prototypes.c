/* test_cuda_prototypes.c: every function of cuda_driver.h is declared as the real cuda.h declares it, where there is
 * one.
 *
 * The names of cuda_types.h stand for the real types here, so that the compiler itself can compare. */
#if __has_include(<cuda.h>)
#include <cuda.h>

#define NP_DEVICE_CUDA_TYPES_H /* in its place: */
typedef CUdevice np_cu_device;
typedef CUdeviceptr np_cu_address;
typedef CUmemGenericAllocationHandle np_cu_memory;
typedef CUcontext np_cu_context;
typedef CUstream np_cu_stream;
typedef CUevent np_cu_event;
typedef CUresult np_cu_result;
typedef CUdevice_attribute np_cu_attribute;
typedef CUstreamCaptureMode np_cu_capture_mode;
typedef CUstreamCaptureStatus np_cu_capture_status;
typedef CUpointer_attribute np_cu_pointer_attribute;
typedef CUkernel np_cu_kernel;
typedef CUfunction np_cu_function;
typedef CUmemAllocationGranularity_flags np_cu_granularity;
typedef CUmemAllocationProp np_cu_allocation;
typedef CUmemAccessDesc np_cu_access;
#define HAS_CUDA 1
#else
#define HAS_CUDA 0
#endif

#include "device/cuda_driver.h"
#include "testing.h"

static void test_prototypes(void **state)
{
    (void)state;
#if HAS_CUDA
#define COMPARE(need, field, symbol, parameters)                                                          \
    if (!__builtin_types_compatible_p(__typeof__(&(symbol)), __typeof__(((np_cuda_driver *)0)->field))) { \
        test_fail(__FILE__, __LINE__, "%s is declared otherwise in cuda.h", #symbol);                     \
    }
    NP_CUDA_SYMBOLS(COMPARE)
#undef COMPARE
#else
    SKIP("no cuda.h was found");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prototypes),
    };
    return cmocka_run_group_tests_name("device/cuda_prototypes", tests, NULL, NULL);
}
