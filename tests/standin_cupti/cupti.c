/* cupti.c: a CUPTI for tests, over the stand-in driver, which tells it of every call.
 *
 * One subscriber at a time, or several where each allows it (CUPTI 13.2). The ids are a permutation of 1, 2, ... by STANDIN_SEED. The end of a call is told of where its
 * begin was. */
#include "standin_cupti/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin/standin.h"
#include "standin_cupti/names.h"

enum { MAX_NAMES = 1024, MAX_SUBSCRIBERS = 64 };

typedef struct subscriber {
    standin_cupti_callback callback;
    void *user;
    char name[64];
    bool allows_several;
    atomic_bool is_there;
    atomic_bool is_enabled[MAX_NAMES]; /* by id */
} subscriber;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all calls but those of the driver */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t id_of_name[MAX_NAMES];
static uint32_t name_of_id[MAX_NAMES];
static subscriber all[MAX_SUBSCRIBERS]; /* a call may still be told of by one that has left: none is used again */
static atomic_size_t n_all;

static _Noreturn void misuse(const char *text, const char *more)
{
    (void)fprintf(stderr, "standin cupti: misuse: %s%s\n", text, more);
    abort();
}

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void shuffle(void)
{
    const char *seed = getenv("STANDIN_SEED");
    uint64_t state = seed ? strtoull(seed, NULL, 10) : 1;
    if (n_driver_names >= MAX_NAMES) {
        misuse("there are too many names", "");
    }
    for (uint32_t i = 0; i < n_driver_names; i++) {
        uint32_t j = (uint32_t)(random_next(&state) % (i + 1));
        id_of_name[i] = id_of_name[j];
        id_of_name[j] = i + 1;
    }
    for (uint32_t i = 0; i < n_driver_names; i++) {
        name_of_id[id_of_name[i]] = i;
    }
}

static bool is_id(uint32_t id)
{
    return id > 0 && id <= n_driver_names;
}

static int compare_names(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

/* ---- calls of the driver ---- */

static void traced(const standin_traced *call)
{
    const char *const *name = bsearch(call->symbol, driver_names, n_driver_names, sizeof *driver_names, compare_names);
    size_t n = atomic_load(&n_all);
    standin_cupti_data data = {.site = call->result ? STANDIN_CUPTI_EXIT : STANDIN_CUPTI_ENTER,
                               .function = call->symbol,
                               .parameters = call->parameters,
                               .result = call->result,
                               .symbol = call->kernel,
                               .context = call->context,
                               .context_id = call->context_id,
                               .data = call->data,
                               .correlation = call->correlation};
    uint32_t id;
    if (!name) {
        misuse("no name of the driver: ", call->symbol);
    }
    id = id_of_name[name - driver_names];
    for (size_t i = 0; i < n; i++) {
        if (atomic_load(&all[i].is_there) && atomic_load(&all[i].is_enabled[id])) {
            all[i].callback(all[i].user, STANDIN_CUPTI_DRIVER_API, id, &data);
        }
    }
}

static void set_tracer(standin_tracer tracer)
{
    standin_set_tracer_function set;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = driver ? dlsym(driver, "standin_set_tracer") : NULL;
    if (!found) {
        misuse("the driver is not the stand-in: ", dlerror());
    }
    memcpy(&set, &found, sizeof set);
    set(tracer);
}

/* ---- CUPTI ---- */

int cuptiSubscribe(void **handle, standin_cupti_callback callback, void *user);
int cuptiSubscribe_v2(void **handle, standin_cupti_callback callback, void *user, standin_cupti_params *params);
int cuptiUnsubscribe(void *handle);
int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t id);
int cuptiEnableDomain(uint32_t enable, void *handle, int domain);
int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
int cuptiGetResultString(int result, const char **text);
int cuptiGetVersion(uint32_t *version);
int cuptiFinalize(void);

/* NULL: there is none. */
static subscriber *first_there(void)
{
    for (size_t i = 0; i < atomic_load(&n_all); i++) {
        if (atomic_load(&all[i].is_there)) {
            return &all[i];
        }
    }
    return NULL;
}

static int add(void **handle, standin_cupti_callback callback, void *user, const standin_cupti_params *params)
{
    int result = STANDIN_CUPTI_SUCCESS;
    const subscriber *first;
    size_t n;
    if (!handle || (params && params->struct_bytes < offsetof(standin_cupti_params, allows_several))) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    (void)pthread_once(&once, shuffle);
    (void)pthread_mutex_lock(&lock);
    first = first_there();
    n = atomic_load(&n_all);
    if (first && params && params->old_name && params->old_name_bytes > 0) {
        (void)snprintf(params->old_name, params->old_name_bytes, "%s", first->name);
    }
    if (first && !(first->allows_several && params && params->allows_several)) {
        result = STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS;
    } else if (n == MAX_SUBSCRIBERS) {
        misuse("there were too many subscribers", "");
    } else {
        all[n].callback = callback;
        all[n].user = user;
        all[n].allows_several = params && params->allows_several;
        if (params && params->name) {
            (void)snprintf(all[n].name, sizeof all[n].name, "CUPTI for %s", params->name);
        }
        *handle = &all[n];
        atomic_store(&all[n].is_there, true);
        atomic_store(&n_all, n + 1);
        set_tracer(traced);
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

int cuptiSubscribe(void **handle, standin_cupti_callback callback, void *user)
{
    return add(handle, callback, user, NULL);
}

int cuptiSubscribe_v2(void **handle, standin_cupti_callback callback, void *user, standin_cupti_params *params)
{
    return add(handle, callback, user, params);
}

static bool is_subscribed(const void *handle)
{
    for (size_t i = 0; i < atomic_load(&n_all); i++) {
        if (handle == &all[i]) {
            return atomic_load(&all[i].is_there);
        }
    }
    return false;
}

static void leave(subscriber *s)
{
    atomic_store(&s->is_there, false);
    if (!first_there()) {
        set_tracer(NULL);
    }
}

int cuptiUnsubscribe(void *handle)
{
    int result = STANDIN_CUPTI_INVALID_PARAMETER;
    (void)pthread_mutex_lock(&lock);
    if (is_subscribed(handle)) {
        leave(handle);
        result = STANDIN_CUPTI_SUCCESS;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* For the whole process, whoever subscribed. */
int cuptiFinalize(void)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < atomic_load(&n_all); i++) {
        leave(&all[i]);
    }
    (void)pthread_mutex_unlock(&lock);
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t id)
{
    if (!is_subscribed(handle) || domain <= 0 || domain >= STANDIN_CUPTI_N_DOMAINS ||
        (domain == STANDIN_CUPTI_DRIVER_API && !is_id(id))) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    if (domain == STANDIN_CUPTI_DRIVER_API) {
        atomic_store(&((subscriber *)handle)->is_enabled[id], enable != 0);
    }
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiEnableDomain(uint32_t enable, void *handle, int domain)
{
    if (!is_subscribed(handle) || domain <= 0 || domain >= STANDIN_CUPTI_N_DOMAINS) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    for (uint32_t id = 1; domain == STANDIN_CUPTI_DRIVER_API && id <= n_driver_names; id++) {
        atomic_store(&((subscriber *)handle)->is_enabled[id], enable != 0);
    }
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
    (void)pthread_once(&once, shuffle);
    if (!name || domain != STANDIN_CUPTI_DRIVER_API || !is_id(id)) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    *name = driver_names[name_of_id[id]];
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiGetResultString(int result, const char **text)
{
    if (!text) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    *text = result == STANDIN_CUPTI_SUCCESS                ? "CUPTI_SUCCESS"
            : result == STANDIN_CUPTI_INVALID_PARAMETER    ? "CUPTI_ERROR_INVALID_PARAMETER"
            : result == STANDIN_CUPTI_NOT_INITIALIZED      ? "CUPTI_ERROR_NOT_INITIALIZED"
            : result == STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                           : "CUPTI_ERROR_UNKNOWN";
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiGetVersion(uint32_t *version)
{
    if (!version) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    *version = STANDIN_CUPTI_VERSION;
    return STANDIN_CUPTI_SUCCESS;
}
