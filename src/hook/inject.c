/* inject.c: the driver loads the library and calls InitializeInjection() at its start (CUDA_INJECTION64_PATH).
 *
 * There CUPTI is loaded and subscribed, and each driver call that matters is enabled: the names of all are asked for, since
 * their numbers change from version to version. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/core.h"
#include "hook/report.h"

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

/* Those that come by the thousand. */
static bool is_work(const np_hook_call *call)
{
    return call && (call->kind == NP_CALL_LAUNCH || call->kind == NP_CALL_LAUNCH_EX || call->kind == NP_CALL_COPY);
}

/* ---- one call: under the lock from its begin to its end ---- */

static NP_HOOK_THREAD uint32_t n_within; /* calls that the driver has made of itself within the one that is held */
static NP_HOOK_THREAD bool has_guard;
static pthread_key_t guard; /* whose destructor a thread that ends is called back by */

static void leave(np_hook_device *device, const watched *w, const np_cupti_data *data)
{
    np_hook_see_after(device, w->call, w->per_thread, data);
    np_hook_held = NULL;
    (void)pthread_mutex_unlock(&device->manager->lock);
}

/* A thread that is cancelled within a call is never told of the call's end: whatever it was has come to nothing. */
static void on_thread_end(void *unused)
{
    static const np_hook_call none = {.name = "", .kind = NP_CALL_NONE};
    static const watched nothing = {.call = &none};
    int failure = 1;
    const np_cupti_data data = {.site = NP_CUPTI_EXIT, .result = &failure};
    (void)unused;
    if (np_hook_held && !np_hook_is_over()) {
        np_hook_is_inside = true;
        n_within = 0;
        leave(np_hook_held, &nothing, &data);
        np_hook_is_inside = false;
    }
}

static void enter(np_hook_device *device, const watched *w, const np_cupti_data *data)
{
    np_hook_is_copier = np_hook_is_copier && !is_more_than_copying(w->call);
    if (!has_guard) {
        has_guard = pthread_setspecific(guard, &guard) == 0;
    }
    (void)pthread_mutex_lock(&device->manager->lock);
    if (device->is_left || np_hook_rest_passes(device, w->call)) {
        (void)pthread_mutex_unlock(&device->manager->lock);
        return;
    }
    np_hook_held = device;
    np_hook_see_before(device, w->call, w->per_thread, data);
    if (!device->quick) { /* it is left from further down the stack than it was entered */
        np_hook_scrub_where_it_matters(false);
    }
}

/* What is within another call is a part of it. A keeper has taken away what the outer one does not use: that comes home. */
static void see_within(const np_cupti_data *data)
{
    if (data->site == NP_CUPTI_ENTER) {
        n_within++;
        if (np_hook_held->keeper) {
            (void)np_hook_held->keeper->home(np_hook_held);
        }
    } else {
        n_within--;
    }
}

static void see(np_hook_device *device, const watched *w, const np_cupti_data *data)
{
    np_hook_is_inside = true;
    if (np_hook_held && (n_within > 0 || data->site == NP_CUPTI_ENTER)) {
        see_within(data);
    } else if (data->site == NP_CUPTI_ENTER) {
        enter(device, w, data);
    } else if (np_hook_held == device) {
        leave(device, w, data);
        np_hook_scrub_where_it_matters(false);
        if (device->is_left) { /* within this very call: nobody needs to be told of more */
            (void)np_hook_watch_work(false);
        }
    }
    np_hook_is_inside = false;
}

/* A program whose memory comes by ways that the library is not in front of. */
static void note_orphan(void)
{
    enum { MANY = 20000 };
    if (++np_the_hook.n_orphans == MANY) {
        np_hook_step_aside("the program allocates by a CUDA runtime of its own (linked statically, or loaded by JAX or "
                           "CuPy), which neap cannot stand in front of");
    }
}

/* Graphs, modules and what is held are the process's: such a call may come from any context, or without one. */
static bool is_of_any_context(const np_hook_call *call)
{
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_GRAPH_CREATE:
    case NP_CALL_GRAPH_JOIN:
    case NP_CALL_INSTANTIATE:
    case NP_CALL_GRAPH_DESTROY:
    case NP_CALL_UNLOAD:
    case NP_CALL_EXPORT:
    case NP_CALL_HOLD:
        return true;
    default:
        return false;
    }
}

static np_hook_device *device_of(const np_hook_call *call, const np_cupti_data *data)
{
    np_hook_device *device = np_hook_held ? np_hook_held : np_hook_device_of_context(data->context);
    bool is_ours = !data->context || is_of_any_context(call); /* where none is named, as far as is known */
    return !device && is_ours ? np_hook_first_device() : device;
}

/* A call in a context of which nothing was asked. Work there can name blocks of the device that is served: copies between
 * devices do, and so does whatever runs in a green context of the same one. They may be away, and nothing would wait. */
static void see_stranger(const np_hook_call *call)
{
    if (call->kind == NP_CALL_PEER) {
        np_hook_step_aside(np_hook_peers);
    } else if (!np_hook_first_device()) {
        note_orphan();
    } else if (is_work(call) || call->kind == NP_CALL_DESCRIBED || call->kind == NP_CALL_GRAPH_LAUNCH ||
               call->kind == NP_CALL_UNKNOWN) {
        np_hook_step_aside(np_hook_elsewhere);
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
    device = device_of(w->call, data);
    if (device && (!device->is_left || np_hook_held)) {
        see(device, w, data);
    } else if (!device && data->site == NP_CUPTI_ENTER && !np_the_hook.aside) {
        see_stranger(w->call);
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

/* With what CUPTI has to say of it. */
static void step_aside_of(int result, const char *why)
{
    static char text[320]; /* this is done once */
    const char *more = NULL;
    if (np_the_hook.cupti.explain(result, &more) != 0 || !more) {
        more = "an error that it does not know";
    }
    (void)snprintf(text, sizeof text, "%s (%s)", why, more);
    np_hook_step_aside(text);
}

static void step_aside_of_other(int result, const char *other)
{
    char text[2 * NP_CUPTI_NAME_BYTES + 64];
    (void)snprintf(text, sizeof text, "CUPTI has another subscriber already (%s), and kernels cannot be seen",
                   *other ? other : "a profiler?");
    step_aside_of(result, text);
}

static void subscribe(void)
{
    np_cupti *cupti = &np_the_hook.cupti;
    char other[NP_CUPTI_NAME_BYTES];
    const char *why = NULL;
    int result;
    if (!np_cupti_load(cupti, &why)) {
        np_hook_step_aside(why);
        return;
    }
    if (pthread_key_create(&guard, on_thread_end) != 0) {
        np_hook_step_aside("there is no key left for what a thread holds");
        return;
    }
    result = np_cupti_subscribe(cupti, np_the_hook.settings.is_cupti_alone, callback, &np_the_hook.subscriber, other);
    if (result != 0) {
        step_aside_of_other(result, other);
        return;
    }
    result = enable_all(cupti);
    if (result != 0) {
        (void)cupti->unsubscribe(np_the_hook.subscriber);
        step_aside_of(result, "CUPTI does not let kernels be seen");
        return;
    }
    np_the_hook.is_seeing = true;
}

void np_hook_subscribe(void)
{
    (void)pthread_once(&subscribing, subscribe);
}

/* What asked neap for nothing, and gave work: devices say the rest at their own end. */
static void at_end(void)
{
    if (!np_hook_is_over() && np_hook_n_devices() == 0 && atomic_load(&np_the_hook.n_orphans) > 0 &&
        np_the_hook.settings.mode != NP_HOOK_VERIFY) {
        np_hook_report_write(&np_the_hook.settings);
    }
}

/* Called by the driver, once. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    if (np_hook_is_on() && !np_hook_is_over()) {
        bool was_inside = np_hook_is_inside;
        np_hook_is_inside = true;
        np_hook_subscribe();
        (void)atexit(at_end);
        np_hook_is_inside = was_inside;
    }
    return 1;
}
