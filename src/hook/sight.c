/* sight.c: one driver call, before and after: what the manager makes of it. Which blocks it uses, gather.c finds. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hook/core.h"
#include "run/stray.h"

void *np_hook_stream_of(const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    void *stream = (void *)(uintptr_t)np_hook_pointer_at(data, call->stream);
    if (call->kind == NP_CALL_LAUNCH_EX) { /* CUlaunchConfig: seven numbers, then the stream */
        const char *config = np_hook_pointer_at(data, 0);
        memcpy(&stream, config + 32, sizeof stream);
    }
    if (!stream) {
        return per_thread ? NP_HOOK_OWN : NP_HOOK_LEGACY;
    }
    return stream;
}

/* Are bytes used through one address now, and through another later? Only swapped blocks have views onto bytes of others. */
static bool has_aliases(const neap_device *m)
{
    return m->state == NEAP_STATE_RUN && m->pattern->program.swaps.n > 0;
}

/* May the kernel begin before the one before it has ended? CUlaunchAttribute: a number, and at 8 its value of 64 bytes. */
bool np_hook_is_overlapping(const np_hook_call *call, const np_cupti_data *data)
{
    enum { SERIALIZATION = 6, ATTRIBUTE_BYTES = 72 };
    const char *config = np_hook_pointer_at(data, 0);
    const char *attributes;
    unsigned int n;
    if (call->kind != NP_CALL_LAUNCH_EX) {
        return false;
    }
    memcpy(&attributes, config + 40, sizeof attributes);
    memcpy(&n, config + 48, sizeof n);
    for (unsigned int i = 0; i < n && attributes; i++) {
        int id;
        int value;
        memcpy(&id, attributes + (size_t)i * ATTRIBUTE_BYTES, sizeof id);
        memcpy(&value, attributes + (size_t)i * ATTRIBUTE_BYTES + 8, sizeof value);
        if (id == SERIALIZATION && value != 0) {
            return true;
        }
    }
    return false;
}

/* Bytes that were freed may be another block's by now, which the kernel writes to while the one in front of it still reads. */
bool np_hook_is_early(const np_hook_device *device, const np_hook_call *call, const np_cupti_data *data, np_stream lane)
{
    return device->n_parted[lane] != device->n_frees && np_hook_is_overlapping(call, data);
}

/* An event between the two: the first is done, and what it wrote is seen, before the second begins. */
static void part(np_hook_device *device, np_stream lane)
{
    np_device *d = device->manager->device;
    (void)d->api->is_done(d, lane, d->api->mark(d, lane));
}

/* Nothing may be under way that would not be known: all of it is waited for, and then anything may be touched. */
static void go_home(np_hook_device *device, const char *name)
{
    device->facts.n_unknown++;
    if (device->facts.n_unknown == 1) {
        np_hook_say("cuda:%d: %s: what it touches cannot be seen; everything comes home before each such call",
                    device->ordinal, name);
    }
    if (np_hook_home(device, name) != NEAP_OK || np_hook_wait(device) != NEAP_OK) {
        np_hook_say("cuda:%d: not everything could be brought home before %s: going on would be wrong", device->ordinal,
                    name);
        abort();
    }
}

/* What cannot be made ready cannot be let go on: the kernel would read other bytes than the program's. */
static void give_up(const np_hook_device *device, const char *name, neap_status status)
{
    np_hook_say("cuda:%d: the blocks of %s could not be brought to the device: %s", device->ordinal, name,
                neap_status_message(status));
    abort();
}

static void fix_all(np_hook_device *device)
{
    for (size_t i = 0; i < device->uses.n; i++) {
        if (np_hook_fix(device, device->uses.items[i].block, NP_HOOK_OF_KERNEL) != NEAP_OK) {
            go_home(device, "a block that must stay");
        }
    }
}

static void make_ready(np_hook_sight *s, const char *name, uint64_t key, void *stream)
{
    np_hook_device *device = s->device;
    neap_device *m = device->manager;
    np_stream lane = 0;
    neap_status status;
    if (s->is_fixing) {
        fix_all(device);
    }
    if (s->is_blind) {
        go_home(device, name);
    }
    if (device->keeper) {
        device->keeper->ready(s, name);
        return;
    }
    status = np_hook_lane(device, stream, &lane);
    device->work = (neap_work){.name = name, .stream = lane};
    m->is_blind = s->is_blind;
    if (status == NEAP_OK && s->is_stray) {
        status = np_stray_ready(m, &device->work, device->uses.items, device->uses.n, &device->given);
        device->facts.n_strays += device->uses.n > 0;
    } else if (status == NEAP_OK) {
        status = np_exec_ready(m, &device->work, key, device->uses.items, device->uses.n, &device->given);
    }
    m->is_blind = false;
    if (status != NEAP_OK) {
        give_up(device, name, status);
    }
    if (s->memory) {
        np_hook_quick_note(device, s->memory);
    }
    m->device->api->begin(m->device, lane, device->given.times);
    device->is_given = true;
}

/* Blocks leave from now on, and nobody has tried whether all that kernels use is seen. */
static void say_unverified(np_hook_device *device)
{
    if (device->manager->first_swap_ns == 0 || device->is_unverified_said || np_the_hook.settings.is_verified) {
        return;
    }
    device->is_unverified_said = true;
    if (np_the_hook.settings.log_level >= NEAP_LOG_WARN) {
        np_hook_say("cuda:%d: the plan has swaps, and the program is not verified (see neap verify)", device->ordinal);
    }
}

/* Work of a capture is not done now: what it names must stay from here on. */
static void note_captured(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    if (call->kind == NP_CALL_GRAPH_LAUNCH) { /* it becomes a part of what is captured */
        np_hook_capture_join(s->device, np_hook_pointer_at(data, call->to));
    }
    if (s->is_blind) {
        np_hook_capture_blind(s->device);
    }
    for (size_t i = 0; i < s->device->uses.n; i++) {
        np_hook_capture_use(s->device, s->device->uses.items[i].block);
    }
}

/* A copy between the host and blocks that are too small for plans: a number that is printed, a learning rate. It is no part
 * of an iteration, since programs make it in some of them alone. */
static bool is_copy_of_nothing(const np_hook_sight *s, const np_hook_call *call)
{
    return call->kind == NP_CALL_COPY && s->device->uses.n == 0;
}

static void see_work(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    np_hook_sight s = {.device = device};
    void *stream = np_hook_stream_of(call, per_thread, data);
    const char *name;
    uint64_t key;
    bool is_timed = device->facts.n_launches % NP_HOOK_TIMED_EVERY == 0;
    uint64_t begin_ns = is_timed ? np_clock_ns() : 0;
    np_hook_gather(&s, call, data);
    device->facts.scan_ns += is_timed ? NP_HOOK_TIMED_EVERY * (np_clock_ns() - begin_ns) : 0;
    s.is_blind |= stream == NP_HOOK_OWN; /* other threads' work cannot be made to wait for it */
    name = s.kernel ? s.kernel->name : call->kind != NP_CALL_UNKNOWN && call->exec ? call->exec : data->function_name;
    key = s.kernel ? s.kernel->key : np_program_name_key(name, strlen(name));
    if (device->n_captures > 0 && np_hook_is_capturing(device, stream)) {
        note_captured(&s, call, data);
        return;
    }
    s.is_stray = (np_hook_is_copier || is_copy_of_nothing(&s, call)) && !s.is_blind && !s.is_fixing;
    make_ready(&s, name, key, stream == NP_HOOK_OWN ? NP_HOOK_LEGACY : stream); /* which waits for all of those */
    say_unverified(device);
    if (np_hook_is_early(device, call, data, device->work.stream) ||
        (has_aliases(device->manager) && np_hook_is_overlapping(call, data))) {
        part(device, device->work.stream);
    }
}

/* Does a call that is not known change graphs, some way or other? */
static bool is_of_graphs(const np_hook_call *call, const np_cupti_data *data)
{
    const char *name = data->function_name;
    return call->kind == NP_CALL_UNKNOWN && strncmp(name, "cuGraph", 7) == 0 && strncmp(name, "cuGraphics", 10) != 0;
}

/* A copy that the host waits for: on the legacy stream, as the driver has it. */
void np_hook_see_before(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    void *stream;
    const void *address;
    neap_block *block;
    if ((call->kind == NP_CALL_LAUNCH || call->kind == NP_CALL_LAUNCH_EX) && !per_thread &&
        np_hook_quick_begin(device, call, data)) {
        return;
    }
    stream = np_hook_stream_of(call, per_thread, data);
    address = np_hook_pointer_at(data, call->to);
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_STREAM_DESTROY:
        for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
            if (device->streams[i] == stream) {
                (void)device->manager->device->api->adopt(device->manager->device, i, NULL);
                device->streams[i] = NULL;
            }
        }
        while (np_hook_has_capture(device, stream)) { /* which nobody can end any more */
            np_hook_capture_end(device, stream, NULL);
        }
        break;
    case NP_CALL_CAPTURE_BEGIN:
        np_hook_capture_begin(device, stream);
        break;
    case NP_CALL_GRAPH_JOIN: /* before it is known to succeed: too much is never wrong */
        np_hook_graph_join(device, (void *)(uintptr_t)address, np_hook_pointer_at(data, call->from));
        break;
    case NP_CALL_GRAPH_DESTROY:
        np_hook_graph_destroy(device, (void *)(uintptr_t)address);
        break;
    case NP_CALL_UNLOAD:
        np_hook_kernels_forget(&device->kernels);
        np_hook_recall_forget(&device->recall);
        break;
    case NP_CALL_EXPORT:
        block = np_hook_block_at(device, address);
        if (block && np_hook_fix(device, block, NP_HOOK_OF_OTHERS) != NEAP_OK) {
            go_home(device, call->name);
        }
        break;
    case NP_CALL_HOLD: /* home once is not enough: every kernel to come may use it */
        if (!np_hook_hold(device, call, data)) {
            np_hook_step_aside("a block that a texture names could not be kept on the device");
        }
        break;
    case NP_CALL_CAPTURE_END:
    case NP_CALL_GRAPH_CREATE:
    case NP_CALL_INSTANTIATE:
    case NP_CALL_PEER:
    case NP_CALL_NONE:
        break;
    default:
        if (is_of_graphs(call, data)) {
            np_hook_graphs_blind(device);
        }
        see_work(device, call, per_thread, data);
        device->facts.n_launches++;
    }
}

static bool has_succeeded(const np_cupti_data *data)
{
    int result = 0;
    if (data->result) {
        memcpy(&result, data->result, sizeof result);
    }
    return result == 0;
}

/* What the call wrote where an argument points. */
static void *result_at(const np_cupti_data *data, uint8_t offset)
{
    void *const *where = np_hook_pointer_at(data, offset);
    return where && has_succeeded(data) ? *where : NULL;
}

/* A block was to be others' too. What the driver would do with memory of its own it may refuse to do with mapped pages. */
static void see_exported(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data)
{
    const void *address = np_hook_pointer_at(data, call->to);
    if (!np_hook_block_at(device, address) && !np_side_has(device->manager, address)) {
        return;
    }
    if (has_succeeded(data)) {
        np_hook_say_fixed(device, NP_HOOK_OF_OTHERS);
    } else if (!device->is_refusal_said && np_the_hook.settings.log_level >= NEAP_LOG_WARN) {
        device->is_refusal_said = true;
        np_hook_say(
            "cuda:%d: %s was refused: what neap serves is mapped page by page, and the driver does not share such "
            "memory in this way",
            device->ordinal, call->name);
    }
}

void np_hook_see_after(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    neap_device *m = device->manager;
    /* It has begun, or will, after all that was given before those frees. */
    if ((device->quick || device->is_given) && has_succeeded(data)) {
        device->n_parted[device->quick ? device->quick->lane : device->work.stream] = device->n_frees;
    }
    if (device->quick) {
        np_hook_quick_end(device);
        return;
    }
    if (device->is_given) {
        device->is_given = false;
        np_exec_given(m, &device->given, m->device->api->end(m->device, device->work.stream));
    }
    if (call->kind == NP_CALL_CAPTURE_BEGIN && !has_succeeded(data)) {
        np_hook_capture_end(device, np_hook_stream_of(call, per_thread, data), NULL);
    } else if (call->kind == NP_CALL_CAPTURE_END) {
        np_hook_capture_end(device, np_hook_stream_of(call, per_thread, data), result_at(data, call->to));
    } else if (call->kind == NP_CALL_GRAPH_CREATE) {
        np_hook_graph_create(device, result_at(data, call->to));
    } else if (call->kind == NP_CALL_INSTANTIATE && has_succeeded(data)) {
        np_hook_graph_instantiate(device, (void *)(uintptr_t)np_hook_pointer_at(data, call->from),
                                  result_at(data, call->to));
    } else if (call->kind == NP_CALL_EXPORT) {
        see_exported(device, call, data);
    } else if (call->kind == NP_CALL_PEER && has_succeeded(data)) {
        np_hook_step_aside(np_hook_peers);
    }
}
