/* cuda_context.c: every call of the device is a short visit to the driver.
 *
 * Calls come from any thread of the program, which may have another context current, or none, and which must find it
 * again. Asking which one is current costs some nanoseconds; only where it is another one is ours pushed. The thread's
 * capture mode is relaxed meanwhile: in the usual mode, calls such as cuEventQuery from any thread end a capture. */
#include <stdio.h>

#include "device/cuda_state.h"

neap_status np_cuda_judge(np_cuda *cuda, np_cu_result result, const char *call, neap_status when_full)
{
    char text[NP_CUDA_ERROR_CHARS];
    if (result == NP_CU_SUCCESS) {
        return NEAP_OK;
    }
    if (result == NP_CU_OUT_OF_MEMORY) {
        return when_full;
    }
    np_cuda_driver_explain(&cuda->driver, result, text);
    (void)snprintf(cuda->problem, sizeof cuda->problem, "cuda:%d: %s: %s", cuda->ordinal, call, text);
    return NEAP_DEVICE_FAILED;
}

neap_status np_cuda_enter_as_program(np_cuda *cuda, np_cuda_visit *visit)
{
    np_cu_context current = NULL;
    neap_status status = np_cuda_judge(cuda, cuda->driver.context_get(&current), "cuCtxGetCurrent", NEAP_NO_MEMORY);
    *visit = (np_cuda_visit){0};
    if (status == NEAP_OK && current != cuda->context) {
        status = np_cuda_judge(cuda, cuda->driver.context_push(cuda->context), "cuCtxPushCurrent", NEAP_NO_MEMORY);
        visit->has_pushed = status == NEAP_OK;
    }
    return status;
}

neap_status np_cuda_enter(np_cuda *cuda, np_cuda_visit *visit)
{
    neap_status status = np_cuda_enter_as_program(cuda, visit);
    if (status == NEAP_OK && cuda->driver.exchange_capture_mode) {
        visit->mode = NP_CU_CAPTURE_RELAXED;
        status = np_cuda_judge(cuda, cuda->driver.exchange_capture_mode(&visit->mode),
                               "cuThreadExchangeStreamCaptureMode", NEAP_NO_MEMORY);
        visit->has_mode = status == NEAP_OK;
        if (status != NEAP_OK) {
            np_cuda_leave(cuda, visit);
            *visit = (np_cuda_visit){0};
        }
    }
    return status;
}

void np_cuda_leave(np_cuda *cuda, const np_cuda_visit *visit)
{
    if (visit->has_mode) {
        np_cu_capture_mode mode = visit->mode;
        (void)np_cuda_judge(cuda, cuda->driver.exchange_capture_mode(&mode), "cuThreadExchangeStreamCaptureMode",
                            NEAP_NO_MEMORY);
    }
    if (visit->has_pushed) {
        np_cu_context popped;
        (void)np_cuda_judge(cuda, cuda->driver.context_pop(&popped), "cuCtxPopCurrent", NEAP_NO_MEMORY);
    }
}
