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
    void *beside = dlsym(made.library, "cuptiSubscribe_v2");
    memcpy(&made.subscribe_beside, &beside, sizeof beside);
    *cupti = made;
    return true;
}

/* CUPTI 13.0 and 13.1 have the function, and know nothing of others: they may refuse the larger struct. */
int np_cupti_subscribe(const np_cupti *cupti, bool is_alone, np_cupti_callback *callback, void **subscriber,
                       char other[NP_CUPTI_NAME_BYTES])
{
    np_cupti_subscription subscription = {.struct_bytes = sizeof subscription,
                                          .name = "neap",
                                          .other = other,
                                          .other_bytes = NP_CUPTI_NAME_BYTES,
                                          .allows_others = 1};
    int result = -1;
    other[0] = '\0';
    if (cupti->subscribe_beside && !is_alone) {
        result = cupti->subscribe_beside(subscriber, callback, NULL, &subscription);
        other[NP_CUPTI_NAME_BYTES - 1] = '\0';
    }
    if (result != 0 && result != NP_CUPTI_TAKEN) {
        result = cupti->subscribe(subscriber, callback, NULL);
    }
    return result;
}
