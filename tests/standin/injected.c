/* injected.c: a library for CUDA_INJECTION64_PATH, which tells how it was called. */
#include <dlfcn.h>
#include <string.h>

int InitializeInjection(void);
int n_injected;
int result_in_injection = -1; /* of a driver call */

int InitializeInjection(void)
{
    int (*count)(int *n);
    int n;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, "cuDeviceGetCount") : NULL;
    n_injected++;
    if (found) {
        memcpy(&count, &found, sizeof count);
        result_in_injection = count(&n);
    }
    return 1;
}
