#include "device/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static const char usual_path[] = "libcuda.so.1";

enum need { OPTIONAL, REQUIRED };

static const struct symbol {
    enum need need;
    const char *name;
    size_t offset; /* of its field */
} symbols[] = {
#define SYMBOL(need, field, symbol, parameters) {need, #symbol, offsetof(np_cuda_driver, field)},
    NP_CUDA_SYMBOLS(SYMBOL)
#undef SYMBOL
};

/* False: a required one is not there; *missing is its name. */
static bool find_symbols(np_cuda_driver *driver, const char **missing)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(driver->library, symbols[i].name);
        if (!found && symbols[i].need == REQUIRED) {
            *missing = symbols[i].name;
            return false;
        }
        /* POSIX has pointers to functions and data of one size; C has no cast between them. */
        memcpy((char *)driver + symbols[i].offset, &found, sizeof found);
    }
    /* The two versions differ in what they do with events of other processes, which there are none of here. */
    driver->event_elapsed = driver->event_elapsed ? driver->event_elapsed : driver->event_elapsed_v1;
    *missing = "cuEventElapsedTime";
    return driver->event_elapsed != NULL;
}

void np_cuda_driver_explain(const np_cuda_driver *driver, np_cu_result result, char text[NP_CUDA_ERROR_CHARS])
{
    const char *name = NULL;
    const char *meaning = NULL;
    if (driver->error_name(result, &name) != NP_CU_SUCCESS || !name) {
        (void)snprintf(text, NP_CUDA_ERROR_CHARS, "CUDA error %d", (int)result);
        return;
    }
    if (driver->error_string(result, &meaning) != NP_CU_SUCCESS || !meaning) {
        meaning = "no description";
    }
    (void)snprintf(text, NP_CUDA_ERROR_CHARS, "%s: %s", name, meaning);
}

static neap_status start(np_cuda_driver *driver, neap_error *error)
{
    int n_devices = 0;
    char text[NP_CUDA_ERROR_CHARS];
    np_cu_result result = driver->init(0);
    if (result == NP_CU_SUCCESS) {
        result = driver->device_count(&n_devices);
    }
    if (result == NP_CU_NO_DEVICE || (result == NP_CU_SUCCESS && n_devices == 0)) {
        return np_fail(error, NEAP_DEVICE_FAILED, "no NVIDIA GPU was found: the driver is there, but sees no device");
    }
    if (result != NP_CU_SUCCESS) {
        np_cuda_driver_explain(driver, result, text);
        return np_fail(error, NEAP_DEVICE_FAILED, "the NVIDIA driver could not be started: %s", text);
    }
    return NEAP_OK;
}

neap_status np_cuda_driver_load(np_cuda_driver *driver, neap_error *error)
{
    const char *given = getenv("NEAP_CUDA_DRIVER"); /* NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile */
    const char *path = given && *given ? given : usual_path;
    const char *missing = NULL;
    np_cuda_driver made = {.library = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    neap_status status;
    if (!made.library) {
        const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): each thread has its own */
        return np_fail(error, NEAP_DEVICE_FAILED, "no NVIDIA driver was found (%s): %s", path, why ? why : "unknown");
    }
    if (!find_symbols(&made, &missing)) {
        (void)dlclose(made.library);
        return np_fail(error, NEAP_DEVICE_FAILED, "the NVIDIA driver (%s) has no function %s: it is too old", path,
                       missing);
    }
    status = start(&made, error);
    if (status == NEAP_OK) {
        *driver = made;
    }
    return status;
}
