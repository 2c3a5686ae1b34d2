/* cupti.c: a CUPTI for tests, over the stand-in driver, which tells it of every call.
 *
 * One subscriber at a time. The ids are a permutation of 1, 2, ... by STANDIN_SEED. The end of a call is told of where its
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

enum { MAX_NAMES = 1024 };

typedef struct subscriber {
    standin_cupti_callback callback;
    void *user;
} subscriber;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all calls but those of the driver */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t id_of_name[MAX_NAMES];
static uint32_t name_of_id[MAX_NAMES];
static atomic_bool is_enabled[MAX_NAMES]; /* by id */
static _Atomic(subscriber *) subscribed;

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
    const subscriber *s = atomic_load(&subscribed);
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
    if (s && atomic_load(&is_enabled[id])) {
        s->callback(s->user, STANDIN_CUPTI_DRIVER_API, id, &data);
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
int cuptiUnsubscribe(void *handle);
int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t id);
int cuptiEnableDomain(uint32_t enable, void *handle, int domain);
int cuptiGetCallbackName(int domain, uint32_t id, const char **name);
int cuptiGetResultString(int result, const char **text);
int cuptiGetVersion(uint32_t *version);
int cuptiFinalize(void);

int cuptiSubscribe(void **handle, standin_cupti_callback callback, void *user)
{
    static subscriber all[64]; /* a call may still be told of by one that has left */
    static size_t n;
    int result = STANDIN_CUPTI_SUCCESS;
    if (!handle) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    (void)pthread_once(&once, shuffle);
    (void)pthread_mutex_lock(&lock);
    if (atomic_load(&subscribed)) {
        result = STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS;
    } else if (n == sizeof all / sizeof *all) {
        misuse("there were too many subscribers", "");
    } else {
        all[n] = (subscriber){callback, user};
        *handle = &all[n];
        atomic_store(&subscribed, &all[n++]);
        set_tracer(traced);
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

static void unsubscribe(void)
{
    atomic_store(&subscribed, NULL);
    set_tracer(NULL);
    for (uint32_t id = 0; id < MAX_NAMES; id++) {
        atomic_store(&is_enabled[id], false);
    }
}

int cuptiUnsubscribe(void *handle)
{
    int result = STANDIN_CUPTI_INVALID_PARAMETER;
    (void)pthread_mutex_lock(&lock);
    if (handle && handle == atomic_load(&subscribed)) {
        unsubscribe();
        result = STANDIN_CUPTI_SUCCESS;
    }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

/* For the whole process, whoever subscribed. */
int cuptiFinalize(void)
{
    (void)pthread_mutex_lock(&lock);
    if (atomic_load(&subscribed)) {
        unsubscribe();
    }
    (void)pthread_mutex_unlock(&lock);
    return STANDIN_CUPTI_SUCCESS;
}

static bool is_subscribed(const void *handle)
{
    return handle && handle == atomic_load(&subscribed);
}

int cuptiEnableCallback(uint32_t enable, void *handle, int domain, uint32_t id)
{
    if (!is_subscribed(handle) || domain <= 0 || domain >= STANDIN_CUPTI_N_DOMAINS ||
        (domain == STANDIN_CUPTI_DRIVER_API && !is_id(id))) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    if (domain == STANDIN_CUPTI_DRIVER_API) {
        atomic_store(&is_enabled[id], enable != 0);
    }
    return STANDIN_CUPTI_SUCCESS;
}

int cuptiEnableDomain(uint32_t enable, void *handle, int domain)
{
    if (!is_subscribed(handle) || domain <= 0 || domain >= STANDIN_CUPTI_N_DOMAINS) {
        return STANDIN_CUPTI_INVALID_PARAMETER;
    }
    for (uint32_t id = 1; domain == STANDIN_CUPTI_DRIVER_API && id <= n_driver_names; id++) {
        atomic_store(&is_enabled[id], enable != 0);
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
