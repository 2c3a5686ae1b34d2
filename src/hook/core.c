/* core.c: the process and its devices as the hook knows them; stepping aside. */
#include "hook/core.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "device/cuda.h"
#include "device/kinds.h"
#include "hook/nothing.h"
#include "hook/report.h"
#include "hook/sink.h"
#include "hook/watch.h"

np_hook np_the_hook;
NP_HOOK_THREAD bool np_hook_is_inside;
NP_HOOK_THREAD np_hook_device *np_hook_held;
NP_HOOK_THREAD bool np_hook_is_copier = true;

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* of devices, one at a time */
static pthread_once_t reading = PTHREAD_ONCE_INIT;
static atomic_bool is_read; /* the settings are */
static atomic_int only_device = -1;
static atomic_bool is_over;
static _Atomic(np_hook_device *)
    open_devices[NP_HOOK_MAX_DEVICES]; /* the same as np_the_hook.devices, for a quick look */

/* ---- the process ---- */

/* A program that leaves its plan now and then is told so a few times, not for ever. Under the manager's lock. */
static void say_logged(void *user, neap_log_level level, const char *line)
{
    enum { SAID = 5 };
    static const char leaving[] = "left the plan";
    np_hook_device *device = user;
    bool is_leaving = level == NEAP_LOG_WARN && strncmp(line, leaving, sizeof leaving - 1) == 0;
    if (is_leaving && np_the_hook.settings.log_level < NEAP_LOG_DEBUG && device->n_leaving++ >= SAID) {
        if (device->n_leaving == SAID + 1) {
            np_hook_say("cuda:%d: left the plan again; from here on it is only counted (--log debug says each)",
                        device->ordinal);
        }
        return;
    }
    np_hook_say("cuda:%d: %s", device->ordinal, line);
}

static void in_child(void)
{
    atomic_store(&is_over, true); /* the device is the parent's */
    np_hook_watch_child();
}

static void read_settings(void)
{
    np_hook_settings_read(&np_the_hook.settings);
    if (np_the_hook.settings.mode != NP_HOOK_OFF) {
        (void)pthread_atfork(NULL, NULL, in_child);
    }
    atomic_store_explicit(&is_read, true, memory_order_release);
}

bool np_hook_is_on(void)
{
    if (!atomic_load_explicit(&is_read, memory_order_acquire)) {
        (void)pthread_once(&reading, read_settings);
    }
    return np_the_hook.settings.mode != NP_HOOK_OFF;
}

bool np_hook_is_over(void)
{
    return atomic_load(&is_over);
}

/* How fast the link of this machine is, for whoever plans on the trace. Where that is not known the trace is as good. */
static void add_link(np_device *device, neap_trace *trace)
{
    char speeds[96];
    char latency[32];
    char share[32];
    np_hook_sink sink = np_hook_sink_begin(speeds, sizeof speeds);
    neap_link link;
    if (device->api->link(device, &link) != NEAP_OK) {
        return;
    }
    np_hook_sink_put_fixed(&sink, 2, link.out_gbs);
    np_hook_sink_put(&sink, "/");
    np_hook_sink_put_fixed(&sink, 2, link.in_gbs);
    if (link.both_gbs > 0) {
        np_hook_sink_put(&sink, "/");
        np_hook_sink_put_fixed(&sink, 2, link.both_gbs);
    }
    np_hook_sink_put(&sink, "GB/s");
    (void)np_trace_add_meta(trace, "link", strlen("link"), speeds, strlen(speeds));
    sink = np_hook_sink_begin(latency, sizeof latency);
    np_hook_sink_put_fixed(&sink, 2, link.latency_us);
    (void)np_trace_add_meta(trace, "link_latency_us", strlen("link_latency_us"), latency, strlen(latency));
    if (link.busy_share > 0) {
        sink = np_hook_sink_begin(share, sizeof share);
        np_hook_sink_put_fixed(&sink, 4, link.busy_share);
        (void)np_trace_add_meta(trace, "link_busy_share", strlen("link_busy_share"), share, strlen(share));
    }
}

/* Small blocks are not recorded, but whoever plans on the trace should know what is held for them. */
static void add_beside(const neap_device *m, neap_trace *trace)
{
    char bytes[32];
    np_hook_sink sink = np_hook_sink_begin(bytes, sizeof bytes);
    np_hook_sink_put(&sink, "%" PRIu64, m->side.slabs.n * m->side.slab_bytes);
    (void)np_trace_add_meta(trace, "beside_bytes", strlen("beside_bytes"), bytes, strlen(bytes));
}

static void keep_trace(np_hook_device *device)
{
    char path[PATH_MAX];
    neap_error error = {""};
    neap_trace *trace = NULL;
    neap_status status;
    if (!np_hook_report_name(np_the_hook.settings.record, path, sizeof path)) {
        np_hook_say("cannot write the trace: its name is too long");
        return;
    }
    status = neap_device_trace(device->manager, NULL, &error, &trace);
    if (status == NEAP_OK) {
        add_link(device->manager->device, trace);
        add_beside(device->manager, trace);
        status = neap_trace_write(trace, path, &error);
        neap_trace_free(trace);
    }
    if (status != NEAP_OK) {
        np_hook_say("%s: %s", path, error.text[0] ? error.text : neap_status_message(status));
    } else {
        np_hook_say("the trace is in %s", path);
    }
}

/* At exit the driver still answers, but other threads may be at work: nothing is freed, and nothing more is looked at. */
static void at_exit(void)
{
    if (atomic_load(&is_over)) {
        return;
    }
    np_hook_is_inside = true;
    np_hook_watch_end();
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        if (np_the_hook.devices[i] && !np_the_hook.devices[i]->keeper && np_the_hook.settings.record) {
            keep_trace(np_the_hook.devices[i]);
            break; /* one file, one device */
        }
    }
    if (np_the_hook.settings.mode == NP_HOOK_VERIFY) {
        np_hook_verify_tell();
    } else {
        np_hook_report_write(&np_the_hook.settings);
    }
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        if (np_the_hook.devices[i] && !np_the_hook.devices[i]->keeper) {
            (void)pthread_mutex_lock(&np_the_hook.devices[i]->manager->lock);
            np_plans_save(np_the_hook.devices[i]->manager);
            (void)pthread_mutex_unlock(&np_the_hook.devices[i]->manager->lock);
        }
    }
    atomic_store(&is_over, true);
    np_hook_is_inside = false;
}

/* ---- devices ---- */

static neap_device_options options_of(const np_hook_settings *settings, np_hook_device *device)
{
    return (neap_device_options){
        .limit = settings->limit,
        .limit_share = settings->limit_share,
        .plan_cache = settings->plan_cache,
        .min_block = settings->min_block,
        .plan_threads = NEAP_RUN_THREADS,
        .plan_seconds = settings->plan_seconds,
        .log_level = settings->log_level,
        .log = say_logged,
        .log_user = device,
    };
}

static neap_status open_manager(np_hook_device *device, neap_error *error)
{
    const np_hook_settings *settings = &np_the_hook.settings;
    np_device_settings wanted = {.n_streams = NP_MAX_STREAMS, .number = (uint32_t)device->ordinal, .adopts = true};
    neap_device_options options = options_of(settings, device);
    np_device *opened;
    neap_status status = np_the_hook.driver.library ? NEAP_OK : np_cuda_driver_load(&np_the_hook.driver, error);
    if (status == NEAP_OK && (!np_the_hook.driver.kernel_parameter || !np_the_hook.driver.function_parameter)) {
        status =
            np_fail(error, NEAP_DEVICE_FAILED,
                    "the driver is too old (before CUDA 12.4): it does not tell how a kernel's parameters lie, and "
                    "what kernels use cannot be seen");
    }
    if (status == NEAP_OK) {
        status = np_cuda_open(&wanted, &np_memory_default, error, &opened);
    }
    if (status == NEAP_OK) {
        device->context = np_cuda_context_of(opened);
        status = np_manager_open(opened, &options, error, &device->manager);
    }
    if (status == NEAP_OK) {
        np_beneath_begin(device->manager, settings->margin, settings->overhead);
        device->manager->is_limit_late = settings->is_limit_late;
        device->manager->plan_not_before_ns = settings->mode == NP_HOOK_RECORD ? UINT64_MAX : 0;
    }
    return status;
}

static np_hook_device *open_device(int ordinal, const char **why)
{
    static char text[sizeof(neap_error)]; /* one device fails to open, and no other is tried */
    neap_error error = {""};
    neap_status status;
    np_hook_device *device = np_memory_alloc_zero(&np_memory_default, 1, sizeof *device);
    if (!device) {
        *why = "there is no host memory";
        return NULL;
    }
    device->ordinal = ordinal;
    device->begin_ns = np_clock_ns();
    device->facts.pool_iteration = UINT64_MAX;
    status = np_the_hook.settings.mode == NP_HOOK_VERIFY ? np_hook_verify_open(device, &error)
                                                         : open_manager(device, &error);
    if (status != NEAP_OK) {
        (void)snprintf(text, sizeof text, "%s", error.text[0] ? error.text : "the device could not be opened");
        *why = text;
        np_memory_free(&np_memory_default, device, 1, sizeof *device);
        return NULL;
    }
    np_hook_index_init(&device->index, &np_memory_default);
    np_hook_kernels_init(&device->kernels, &np_memory_default);
    np_hook_recall_init(&device->recall, &np_memory_default);
    np_hook_rest_init(device);
    np_caching_init(&device->caching, false, &np_memory_default);
    device->has_baseline = true;
    return device;
}

bool np_hook_is_pytorch(void)
{
    static atomic_bool is_there;
    void *library;
    if (!atomic_load(&is_there)) {
        library = dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
        if (library) {
            atomic_store(&is_there, true);
            (void)dlclose(library);
        }
    }
    return atomic_load(&is_there);
}

static bool has_one_device(void)
{
    int n = 0;
    return np_the_hook.driver.device_count && np_the_hook.driver.device_count(&n) == NP_CU_SUCCESS && n == 1;
}

int np_hook_only_device(void)
{
    return atomic_load_explicit(&only_device, memory_order_relaxed);
}

np_hook_device *np_hook_device_get(int ordinal)
{
    static bool has_begun;
    np_hook_device *device = NULL;
    const char *why = NULL;
    if (ordinal < 0 || ordinal >= NP_HOOK_MAX_DEVICES) {
        return NULL;
    }
    device = atomic_load_explicit(&open_devices[ordinal], memory_order_acquire);
    if (device) {
        return np_the_hook.aside ? NULL : device;
    }
    (void)pthread_mutex_lock(&opening);
    if (!np_the_hook.devices[ordinal] && !np_the_hook.aside) {
        np_hook_subscribe();
    }
    if (!np_the_hook.devices[ordinal] && !np_the_hook.aside && np_hook_n_devices() > 0) {
        why = np_hook_elsewhere;
    } else if (!np_the_hook.devices[ordinal] && !np_the_hook.aside) {
        np_the_hook.devices[ordinal] = open_device(ordinal, &why);
    }
    if (!has_begun) {
        has_begun = true;
        (void)atexit(at_exit);
        if (np_the_hook.settings.mode != NP_HOOK_VERIFY) { /* where there is nothing to watch */
            np_hook_watch_begin(&np_the_hook.settings);
        }
    }
    device = np_the_hook.devices[ordinal];
    if (device) {
        np_hook_nothing_is_wrong();
    }
    atomic_store_explicit(&open_devices[ordinal], device, memory_order_release);
    if (device && has_one_device()) {
        atomic_store_explicit(&only_device, ordinal, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&opening);
    if (why) {
        np_hook_step_aside(why);
    }
    return np_the_hook.aside ? NULL : device;
}

np_hook_device *np_hook_device_of_context(const void *context)
{
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        np_hook_device *device = atomic_load_explicit(&open_devices[i], memory_order_acquire);
        if (device && device->context == context) {
            return device;
        }
    }
    return NULL;
}

np_hook_device *np_hook_first_device(void)
{
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        np_hook_device *device = atomic_load_explicit(&open_devices[i], memory_order_acquire);
        if (device) {
            return device;
        }
    }
    return NULL;
}

neap_status np_hook_lane(np_hook_device *device, void *stream, np_stream *lane)
{
    np_device *d = device->manager->device;
    np_stream free_lane = NP_MAX_STREAMS;
    neap_status status;
    if (device->streams[device->last_lane] == stream) {
        *lane = device->last_lane;
        return NEAP_OK;
    }
    for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
        if (device->streams[i] == stream) {
            *lane = device->last_lane = i;
            return NEAP_OK;
        }
        free_lane = !device->streams[i] && free_lane == NP_MAX_STREAMS ? i : free_lane;
    }
    if (free_lane == NP_MAX_STREAMS) { /* they share the last one, in turns */
        free_lane = NP_MAX_STREAMS - 1;
    }
    status = d->api->adopt(d, free_lane, stream);
    if (status == NEAP_OK) {
        device->streams[free_lane] = stream;
        *lane = device->last_lane = free_lane;
    }
    return status;
}

/* ---- stepping aside ---- */

const char np_hook_elsewhere[] =
    "the program gives work in a second CUDA context (another GPU, a green context), and neap "
    "sees one (one process a GPU, as torchrun has it, is fine)";
const char np_hook_peers[] = "peer access was enabled: others may touch any block";

static void bring_home(np_hook_device *device, const char *why)
{
    bool was_held = np_hook_held == device;
    if (!was_held) {
        (void)pthread_mutex_lock(&device->manager->lock);
    }
    if (np_hook_home(device, why) != NEAP_OK) {
        np_hook_say("cuda:%d: not everything could be brought home: going on would be wrong", device->ordinal);
        abort();
    }
    device->manager->plan_not_before_ns = UINT64_MAX;
    device->manager->options.mode = NEAP_MODE_PLAIN;
    device->facts.aside = why;
    if (!device->keeper && device->n_captures == 0 && np_drain(device->manager) == NEAP_OK) {
        np_retired_give_back(device->manager); /* the runtime needs the room */
    }
    atomic_store(&device->is_left, true);
    if (!was_held) {
        (void)pthread_mutex_unlock(&device->manager->lock);
    }
}

/* Calls are looked at until everything is home: another thread may be about to launch a kernel. */
void np_hook_step_aside(const char *why)
{
    bool was_inside = np_hook_is_inside;
    const char *none = NULL;
    if (!atomic_compare_exchange_strong(&np_the_hook.aside, &none, why)) {
        return;
    }
    np_hook_say("%s; neap steps aside, and the program runs as it would without it", why);
    np_hook_is_inside = true;
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        if (np_the_hook.devices[i]) {
            bring_home(np_the_hook.devices[i], why);
        }
    }
    if (np_the_hook.is_seeing && !np_hook_held) { /* a call that is under way is told of to its end */
        (void)np_hook_watch_work(false);
    }
    np_hook_is_inside = was_inside;
}

/* ---- what is known ---- */

size_t np_hook_n_devices(void)
{
    size_t n = 0;
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        n += np_the_hook.devices[i] != NULL;
    }
    return n;
}

/* When plans became active. */
static void fill_beginning(const np_hook_device *device, np_hook_facts *facts)
{
    const neap_device *m = device->manager;
    if (m->first_plan_ns > 0 && m->pattern) {
        facts->pool_iteration = m->first_plan_events / m->pattern->program.events.n;
        facts->pool_seconds = (double)(m->first_plan_ns - device->begin_ns) * 1e-9;
    }
    if (m->first_swap_ns > 0) {
        facts->swap_seconds = (double)(m->first_swap_ns - device->begin_ns) * 1e-9;
    }
    facts->is_verified = np_the_hook.settings.is_verified;
    facts->limit_asked = np_the_hook.settings.limit;
    facts->share_asked = np_the_hook.settings.limit_share;
}

bool np_hook_get_facts(size_t index, np_hook_facts *facts)
{
    for (int i = 0; i < NP_HOOK_MAX_DEVICES; i++) {
        np_hook_device *device = np_the_hook.devices[i];
        if (device && !device->keeper && index-- == 0) {
            bool was_inside = np_hook_is_inside;
            np_hook_is_inside = true;
            neap_stats stats;
            neap_get_stats(device->manager, &stats);
            (void)pthread_mutex_lock(&device->manager->lock);
            *facts = device->facts;
            facts->stats = stats;
            facts->ordinal = device->ordinal;
            facts->aside = np_the_hook.aside;
            facts->is_learning =
                atomic_load(&device->manager->learner.is_busy) && !atomic_load(&device->manager->learner.has_news);
            facts->seconds = (double)(np_clock_ns() - device->begin_ns) * 1e-9;
            facts->side_bytes = device->manager->side.slabs.n * device->manager->side.slab_bytes;
            facts->side_live = device->manager->side.peak_bytes;
            facts->caching_bytes = device->has_baseline ? device->caching_bytes : 0;
            facts->n_doubtful = device->manager->n_late;
            facts->held_fixed = device->fixed_bytes;
            facts->peak_fixed = device->fixed_high;
            fill_beginning(device, facts);
            (void)pthread_mutex_unlock(&device->manager->lock);
            np_hook_is_inside = was_inside;
            return true;
        }
    }
    return false;
}
