/* inject.c: cuInit loads the library that CUDA_INJECTION64_PATH names and calls its InitializeInjection, once, as the
 * real one does. No call works before that has returned. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

void inject(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    int (*initialize)(void);
    void *library;
    void *found;
    if (!path || !*path) {
        return;
    }
    standin.is_injecting = true;
    standin.injecting = pthread_self();
    unlock();
    library = dlopen(path, RTLD_NOW);
    found = library ? dlsym(library, "InitializeInjection") : NULL;
    if (!found) {
        misuse("CUDA_INJECTION64_PATH: %s", dlerror());
    }
    memcpy(&initialize, &found, sizeof initialize);
    (void)initialize();
    lock();
    standin.is_injecting = false;
    (void)pthread_cond_broadcast(&standin.progress);
}
