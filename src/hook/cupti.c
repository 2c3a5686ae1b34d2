#include "hook/cupti.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const struct symbol {
    const char *name;
    size_t offset;
} symbols[] = {
#define SYMBOL(field, symbol, parameters) {#symbol, offsetof(np_cupti, field)},
    NP_CUPTI_SYMBOLS(SYMBOL)
#undef SYMBOL
};

static const char *const names[] = {
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so",
    "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
    "/usr/local/cuda/lib64/libcupti.so",
};

static void *open_any(int flags)
{
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++) {
        library = dlopen(names[i], flags);
    }
    return library;
}

/* The program's own copy comes first: two of them in one process get in each other's way. */
static void *open_library(void)
{
    const char *given = getenv("NEAP_CUPTI"); /* NOLINT(concurrency-mt-unsafe): nobody sets it meanwhile */
    void *library;
    if (given && *given) {
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    }
    library = open_any(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    return library ? library : open_any(RTLD_NOW | RTLD_LOCAL);
}

bool np_cupti_load(np_cupti *cupti, const char **why)
{
    np_cupti made = {.library = open_library()};
    if (!made.library) {
        *why = "CUPTI was not found (libcupti.so; NEAP_CUPTI can name it): kernels cannot be seen";
        return false;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(made.library, symbols[i].name);
        if (!found) {
            *why = "CUPTI lacks a function that is needed: kernels cannot be seen";
            return false;
        }
        memcpy((char *)&made + symbols[i].offset, &found, sizeof found);
    }
    *cupti = made;
    return true;
}
