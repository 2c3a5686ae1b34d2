/* rest.c: looking away from a program's work, where nothing of it matters (run/rest.h).
 *
 * What CUPTI takes for telling of a launch, and neap for looking at it, is half a microsecond and more: nothing where the
 * device is busy, some per cent where the host holds it up. Where nothing is swapped, once a plan was followed for some
 * iterations, launches and copies are no longer told of, and only mallocs and frees are looked at, as long as
 *
 *   - all of them name one stream, and so come in its order, as the work does that uses them. (What other streams do with
 *     a block is over for that stream when it is freed there: so cudaFreeAsync has it.)
 *   - no graph is captured, nothing is exported, no other device is used: each such call is still told of, and ends it
 *     before it is made.
 *   - the program is PyTorch, whose kernels bear with an allocator that gives freed bytes to the next block at once. Those
 *     that begin before the one in front of them has ended are otherwise kept apart from it after a free (sight.c). */
#include "hook/core.h"

enum { LAPS = 8, STREAM_LAPS = 2 }; /* on the plan, and with one stream, before it begins */

/* Under a limit in bytes blocks may have to leave at any time. */
static bool is_wanted(const np_hook_settings *settings)
{
    return settings->mode == NP_HOOK_RUN && settings->limit == 0;
}

void np_hook_rest_init(np_hook_device *device)
{
    device->rest = (np_hook_rest){.stream = NP_HOOK_NO_STREAM};
    device->manager->rest.is_offered = is_wanted(&np_the_hook.settings);
}

/* Work that was given so far, and not seen, has marks from here on: it can be waited for. */
static void mark_unseen(np_hook_device *device)
{
    np_device *d = device->manager->device;
    for (np_stream lane = 0; lane < NP_MAX_STREAMS; lane++) {
        if (device->streams[lane]) {
            (void)d->api->end(d, lane);
        }
    }
}

/* Under the lock, within whatever ends the plan. */
static void on_end(void *user)
{
    np_hook_device *device = user;
    device->rest.has_ended = true;
    if (!np_hook_watch_work(true)) {
        atomic_store(&device->rest.has_lost_sight, true);
    }
    mark_unseen(device);
}

static bool can_begin(const np_hook_device *device)
{
    const neap_device *m = device->manager;
    return m->rest.is_offered && np_hook_is_pytorch() && !device->rest.is_refused && np_the_hook.is_seeing &&
           !np_the_hook.aside && !np_the_hook.has_thread_streams && device->rest.stream != NP_HOOK_NO_STREAM &&
           m->stats.n_iterations - device->rest.since >= STREAM_LAPS && device->n_captures == 0 &&
           device->graphs.n == 0 && device->kept.n == 0 && m->pattern->n_laps >= LAPS && np_rest_is_possible(m);
}

void np_hook_rest_before(np_hook_device *device, void *stream)
{
    np_hook_rest *rest = &device->rest;
    if (stream == rest->stream) {
        return;
    }
    np_hook_rest_end(device, "memory of another stream");
    rest->stream = stream;
    rest->since = device->manager->stats.n_iterations;
}

void np_hook_rest_after(np_hook_device *device)
{
    np_hook_rest *rest = &device->rest;
    const neap_device *m = device->manager;
    if (rest->has_ended) { /* another thread may have given work that was not seen, and not waited for */
        rest->has_ended = false;
        mark_unseen(device);
    }
    if (m->state != NEAP_STATE_RUN || m->rest.is_on || rest->n_looked == m->stats.n_iterations) {
        return;
    }
    rest->n_looked = m->stats.n_iterations;
    if (can_begin(device)) {
        if (np_hook_watch_work(false)) {
            np_rest_begin(device->manager, on_end, device);
            device->facts.n_rests++;
        } else {
            rest->is_refused = true;
            if (!np_hook_watch_work(true)) {
                atomic_store(&rest->has_lost_sight, true);
            }
        }
    }
}

bool np_hook_rest_passes(np_hook_device *device, const np_hook_call *call)
{
    if (!device->manager->rest.is_on) {
        return false;
    }
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_LAUNCH:
    case NP_CALL_LAUNCH_EX:
    case NP_CALL_COPY:
    case NP_CALL_DESCRIBED:
        return true;
    case NP_CALL_STREAM_DESTROY:
    case NP_CALL_UNLOAD:
    case NP_CALL_NONE:
        return false;
    default:
        np_hook_rest_end(device, call->name);
        return false;
    }
}

void np_hook_rest_end(np_hook_device *device, const char *why)
{
    if (device->manager->rest.is_on) {
        np_leave(device->manager, NEAP_DEPARTURE_EXEC, why);
    }
}

void np_hook_rest_settle(np_hook_device *device)
{
    if (atomic_load(&device->rest.has_lost_sight)) {
        np_hook_step_aside("CUPTI does not let kernels be seen again");
    }
}
