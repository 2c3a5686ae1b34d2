/* inject.c: the driver loads the library and calls InitializeInjection() at its start (CUDA_INJECTION64_PATH).
 *
 * There CUPTI is loaded and subscribed, and each driver call that matters is enabled: the names of all are asked for, since
 * their numbers change from version to version. */
#include <pthread.h>
#include <string.h>

#include "hook/core.h"

enum { MAX_CALLS = 4096, MAX_UNNAMED = 64 };

typedef struct watched {
    const np_hook_call *call;
    bool per_thread;
} watched;

static watched watched_calls[MAX_CALLS]; /* by CUPTI's number */
static pthread_once_t subscribing = PTHREAD_ONCE_INIT;

static bool is_more_than_copying(const np_hook_call *call)
{
    return call->kind == NP_CALL_LAUNCH || call->kind == NP_CALL_LAUNCH_EX || call->kind == NP_CALL_GRAPH_LAUNCH ||
           call->kind == NP_CALL_UNKNOWN;
}

static void see(np_hook_device *device, const watched *w, const np_cupti_data *data)
{
    np_hook_is_inside = true;
    if (data->site == NP_CUPTI_ENTER) {
        np_hook_is_copier = np_hook_is_copier && !is_more_than_copying(w->call);
        (void)pthread_mutex_lock(&device->manager->lock);
        if (np_hook_rest_passes(device, w->call)) {
            (void)pthread_mutex_unlock(&device->manager->lock);
        } else {
            np_hook_held = device;
            np_hook_see_before(device, w->call, w->per_thread, data);
        }
    } else if (np_hook_held == device) {
        np_hook_see_after(device, w->call, data);
        np_hook_held = NULL;
        (void)pthread_mutex_unlock(&device->manager->lock);
        np_hook_scrub_where_it_matters(false);
    }
    np_hook_is_inside = false;
}

/* A program whose memory comes by ways that the library is not in front of. */
static void note_orphan(void)
{
    enum { MANY = 20000 };
    if (++np_the_hook.n_orphans == MANY && np_hook_n_devices() == 0 && !np_the_hook.aside) {
        np_hook_step_aside("the program allocates by a CUDA runtime of its own (linked statically, or loaded by JAX or "
                           "CuPy), which neap cannot stand in front of");
    }
}

static void callback(void *user, int domain, uint32_t id, const np_cupti_data *data)
{
    const watched *w = id < MAX_CALLS ? &watched_calls[id] : NULL;
    np_hook_device *device;
    (void)user;
    if (domain != NP_CUPTI_DRIVER || !w || !w->call || np_hook_is_inside || np_hook_is_over()) {
        return;
    }
    if (np_the_hook.settings.mode == NP_HOOK_VERIFY) {
        np_hook_is_inside = true;
        if (data->site == NP_CUPTI_ENTER) {
            np_hook_verify_before(w->call, data);
        } else {
            np_hook_verify_after(w->call, data);
        }
        np_hook_is_inside = false;
        return;
    }
    if (np_the_hook.aside && !np_hook_held) {
        return;
    }
    device = np_hook_device_of_context(data->context);
    if (device) {
        see(device, w, data);
    } else if (data->site == NP_CUPTI_ENTER) {
        note_orphan();
    }
}

static int enable_all(np_cupti *cupti)
{
    uint32_t n_unnamed = 0;
    int result = 0;
    for (uint32_t id = 1; id < MAX_CALLS && n_unnamed < MAX_UNNAMED && result == 0; id++) {
        const char *name = NULL;
        if (cupti->name(NP_CUPTI_DRIVER, id, &name) != 0 || !name) {
            n_unnamed++;
            continue;
        }
        n_unnamed = 0;
        watched_calls[id].call = np_hook_call_find(name, &watched_calls[id].per_thread);
        if (watched_calls[id].call) {
            result = cupti->enable(1, np_the_hook.subscriber, NP_CUPTI_DRIVER, id);
        }
    }
    return result;
}

/* Those that come by the thousand. */
static bool is_work(const np_hook_call *call)
{
    return call && (call->kind == NP_CALL_LAUNCH || call->kind == NP_CALL_LAUNCH_EX || call->kind == NP_CALL_COPY);
}

bool np_hook_watch_work(bool is_watched)
{
    int result = 0;
    for (uint32_t id = 1; id < MAX_CALLS; id++) {
        if (is_work(watched_calls[id].call)) {
            int one = np_the_hook.cupti.enable(is_watched ? 1u : 0u, np_the_hook.subscriber, NP_CUPTI_DRIVER, id);
            result = result == 0 ? one : result;
        }
    }
    return result == 0;
}

static void subscribe(void)
{
    np_cupti *cupti = &np_the_hook.cupti;
    const char *why = NULL;
    int result;
    if (!np_cupti_load(cupti, &why)) {
        np_hook_step_aside(why);
        return;
    }
    result = cupti->subscribe(&np_the_hook.subscriber, callback, NULL);
    if (result != 0) {
        np_hook_step_aside("CUPTI has another subscriber already (a profiler?): kernels cannot be seen");
        return;
    }
    result = enable_all(cupti);
    if (result != 0) {
        (void)cupti->unsubscribe(np_the_hook.subscriber);
        np_hook_step_aside("CUPTI does not let kernels be seen");
        return;
    }
    np_the_hook.is_seeing = true;
}

void np_hook_subscribe(void)
{
    (void)pthread_once(&subscribing, subscribe);
}

/* Called by the driver, once. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    if (np_hook_is_on() && !np_hook_is_over()) {
        bool was_inside = np_hook_is_inside;
        np_hook_is_inside = true;
        np_hook_subscribe();
        np_hook_is_inside = was_inside;
    }
    return 1;
}
