/* sight.c: one driver call, before and after: which blocks it uses, and what the manager makes of it.
 *
 * A launch's parameters are looked through for addresses, eight bytes at a time, all of them, every time: the same word
 * can be an address in one launch and a leftover in the next. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hook/core.h"

#define TABLE_BYTES ((size_t)1 << 20) /* copies from the host up to here are looked through for addresses */

static const void *pointer_at(const np_cupti_data *data, uint8_t offset)
{
    const void *value = NULL;
    if (offset != NP_CALL_NOWHERE) {
        memcpy(&value, (const char *)data->parameters + offset, sizeof value);
    }
    return value;
}

neap_block *np_hook_block_at(const np_hook_device *device, const void *address)
{
    const np_hook_entry *entry = np_hook_index_find(&device->index, address);
    return entry ? entry->block : NULL;
}

/* ---- gathering ---- */

static void add_use(np_hook_sight *s, neap_block *block, neap_access_kind kind)
{
    np_hook_device *device = s->device;
    neap_use use = {.block = block, .kind = kind};
    if (block->pinned_by == device->manager->pin) {
        for (size_t i = 0; i < device->uses.n; i++) {
            if (device->uses.items[i].block == block && device->uses.items[i].kind != kind) {
                device->uses.items[i].kind = NEAP_ACCESS_UNKNOWN;
            }
        }
        return;
    }
    block->pinned_by = device->manager->pin;
    if (device->uses.n >= UINT16_MAX || np_array_push(device->manager->memory, &device->uses, use) != NEAP_OK) {
        s->is_blind = true;
    }
}

static void scan(np_hook_sight *s, const void *words, size_t bytes)
{
    np_hook_device *device = s->device;
    const np_hook_index *index = &device->index;
    const char *at = words;
    size_t n = bytes / sizeof(uint64_t);
    device->facts.n_words += n;
    for (size_t i = 0; i < n; i++) {
        const char *address;
        const np_hook_entry *entry;
        memcpy(&address, at + i * sizeof address, sizeof address);
        if (!np_hook_index_may_have(index, address)) {
            continue;
        }
        entry = np_hook_index_search(index, address);
        if (np_array_push(device->manager->memory, &device->hits, (uint64_t)(uintptr_t)address) != NEAP_OK) {
            s->is_blind = true;
        }
        if (entry &&
            entry->block->pinned_by != device->manager->pin) { /* all uses of a call that is scanned are alike */
            add_use(s, entry->block, NEAP_ACCESS_UNKNOWN);
        }
    }
}

/* Addresses in what is copied to the device: whatever reads that table later touches blocks that nobody sees it touch. */
static void scan_table(np_hook_sight *s, const void *table, size_t bytes)
{
    np_hook_device *device = s->device;
    const char *at = table;
    for (size_t i = 0; i + sizeof(uint64_t) <= bytes; i += sizeof(uint64_t)) {
        const char *address;
        memcpy(&address, at + i, sizeof address);
        if (np_hook_index_may_have(&device->index, address)) {
            neap_block *block = np_hook_block_at(device, address);
            if (block && np_beneath_fix(device->manager, block, false) != NEAP_OK) {
                s->is_blind = true;
            }
        }
    }
}

static void gather_extra(np_hook_sight *s, void *const *extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    enum { END = 0, POINTER = 1, SIZE = 2 }; /* CU_LAUNCH_PARAM_... */
    for (size_t i = 0; (uintptr_t)extra[i] != END; i += 2) {
        if ((uintptr_t)extra[i] == POINTER) {
            buffer = extra[i + 1];
        } else if ((uintptr_t)extra[i] == SIZE) {
            memcpy(&bytes, extra[i + 1], sizeof bytes);
        }
    }
    if (buffer) {
        scan(s, buffer, bytes);
    }
}

/* The event of the plan that this launch should be. */
static size_t planned_event(const neap_device *m)
{
    return m->cursor < m->pattern->program.events.n ? m->cursor : 0;
}

static bool recall_launch(np_hook_sight *s, const np_hook_kernel *kernel, void *const *parameters)
{
    np_hook_device *device = s->device;
    const neap_device *m = device->manager;
    np_hook_memory *found;
    if (m->state != NEAP_STATE_RUN) {
        return false;
    }
    np_hook_quick_follow(device);
    found = np_hook_recall_find(&device->recall, planned_event(m), kernel->function);
    if (!found || !np_hook_recall_is_equal(found, &device->index, parameters) ||
        np_array_reserve(m->memory, &device->uses, found->n_uses) != NEAP_OK) {
        return false;
    }
    if (found->n_uses > 0) {
        memcpy(device->uses.items, found->uses, found->n_uses * sizeof *found->uses);
    }
    device->uses.n = found->n_uses;
    device->facts.n_words += found->n_words;
    s->memory = found;
    return true;
}

static void scan_launch(np_hook_sight *s, const np_hook_kernel *kernel, void *const *parameters)
{
    np_hook_device *device = s->device;
    const neap_device *m = device->manager;
    device->hits.n = 0;
    for (uint32_t i = 0; i < kernel->n_parameters; i++) {
        scan(s, parameters[i], kernel->sizes[i]);
    }
    if (m->state == NEAP_STATE_RUN && !s->is_blind && !s->is_fixing) {
        s->memory = np_hook_recall_keep(&device->recall, planned_event(m), kernel, device->hits.items, device->hits.n,
                                        device->uses.items, device->uses.n);
    }
}

static const np_hook_kernel *gather_launch(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    np_hook_device *device = s->device;
    void *function = (void *)(uintptr_t)pointer_at(data, call->bytes);
    void *const *parameters = pointer_at(data, call->to);
    void *const *extra = pointer_at(data, call->from);
    const np_hook_kernel *kernel =
        np_hook_kernels_get(&device->kernels, &np_the_hook.driver, function, data->symbol_name);
    if (!kernel || (!kernel->is_known && !extra)) {
        s->is_blind = true;
        return kernel;
    }
    s->is_fixing = kernel->is_pinned;
    if (!parameters && extra) {
        gather_extra(s, extra);
    } else if (parameters && !recall_launch(s, kernel, parameters)) {
        scan_launch(s, kernel, parameters);
    }
    return kernel;
}

/* The whole of a block is written: nothing of what was in it is looked at again. */
static bool is_whole(const np_hook_device *device, const void *address, size_t bytes)
{
    const np_hook_entry *entry = np_hook_index_find(&device->index, address);
    return entry && entry->begin == (const char *)address && (uint64_t)bytes >= entry->block->bytes;
}

/* A copy that does not say where it is from: memory that the driver does not know is the host's. */
static bool is_from_host(const np_hook_call *call, const void *from)
{
    const np_cuda_driver *driver = &np_the_hook.driver;
    unsigned int type = 0;
    np_cu_result result;
    if (strcmp(call->exec, "memcpy") != 0 || !driver->pointer_attribute) {
        return strcmp(call->exec, "memcpy.htod") == 0;
    }
    result = driver->pointer_attribute(&type, NP_CU_POINTER_MEMORY_TYPE, (np_cu_address)(uintptr_t)from);
    return result == NP_CU_INVALID_VALUE || (result == NP_CU_SUCCESS && type == NP_CU_MEMORY_HOST);
}

static void gather_copy(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    const void *to = pointer_at(data, call->to);
    const void *from = pointer_at(data, call->from);
    size_t bytes = (size_t)(uintptr_t)pointer_at(data, call->bytes);
    neap_block *target = np_hook_block_at(s->device, to);
    neap_block *source = from ? np_hook_block_at(s->device, from) : NULL;
    if (source) {
        add_use(s, source, NEAP_ACCESS_READ);
    }
    if (target) {
        add_use(s, target, is_whole(s->device, to, bytes) ? NEAP_ACCESS_WRITE : NEAP_ACCESS_UNKNOWN);
    }
    if (from && !source && bytes <= TABLE_BYTES && is_from_host(call, from)) {
        scan_table(s, from, bytes);
    }
}

/* ---- the call ---- */

void *np_hook_stream_of(const np_hook_call *call, const np_cupti_data *data)
{
    void *stream = (void *)(uintptr_t)pointer_at(data, call->stream);
    if (call->kind == NP_CALL_LAUNCH_EX) { /* CUlaunchConfig: seven numbers, then the stream */
        const char *config = pointer_at(data, 0);
        memcpy(&stream, config + 32, sizeof stream);
    }
    return stream ? stream : NP_HOOK_LEGACY;
}

/* Are bytes used through one address now, and through another later? Only swapped blocks have views onto bytes of others. */
static bool has_aliases(const neap_device *m)
{
    return m->state == NEAP_STATE_RUN && m->pattern->program.swaps.n > 0;
}

/* May the kernel begin before the one before it has ended? CUlaunchAttribute: a number, and at 8 its value of 64 bytes. */
static bool is_overlapping(const np_cupti_data *data)
{
    enum { SERIALIZATION = 6, ATTRIBUTE_BYTES = 72 };
    const char *config = pointer_at(data, 0);
    const char *attributes;
    unsigned int n;
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

/* Nothing may be under way that would not be known: all of it is waited for, and then anything may be touched. */
static void go_home(np_hook_device *device, const char *name)
{
    device->facts.n_unknown++;
    if (device->facts.n_unknown == 1) {
        np_hook_say("cuda:%d: %s: what it touches cannot be seen; everything comes home before each such call",
                    device->ordinal, name);
    }
    if (np_beneath_home(device->manager, name) != NEAP_OK || np_drain(device->manager) != NEAP_OK) {
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
        if (np_beneath_fix(device->manager, device->uses.items[i].block, false) != NEAP_OK) {
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
    status = np_hook_lane(device, stream, &lane);
    device->work = (neap_work){.name = name, .stream = lane};
    if (status == NEAP_OK) {
        status = np_exec_ready(m, &device->work, key, device->uses.items, device->uses.n, &device->given);
    }
    if (status != NEAP_OK) {
        give_up(device, name, status);
    }
    if (s->memory) {
        np_hook_quick_note(device, s->memory);
    }
    m->device->api->begin(m->device, lane, device->given.times);
    device->is_given = true;
}

/* Work of a capture is not done now: what it names must stay from here on. */
static void note_captured(np_hook_sight *s)
{
    if (s->is_blind) {
        np_hook_capture_blind(s->device);
    }
    for (size_t i = 0; i < s->device->uses.n; i++) {
        np_hook_capture_use(s->device, s->device->uses.items[i].block);
    }
}

void np_hook_gather(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    s->device->manager->pin++;
    s->device->uses.n = 0;
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_LAUNCH:
    case NP_CALL_LAUNCH_EX:
        s->kernel = gather_launch(s, call, data);
        break;
    case NP_CALL_COPY:
        gather_copy(s, call, data);
        break;
    case NP_CALL_DESCRIBED:
        scan(s, pointer_at(data, call->to), call->bytes);
        break;
    case NP_CALL_GRAPH_LAUNCH:
        s->is_blind = !np_hook_graph_is_known(s->device, pointer_at(data, call->to));
        break;
    default:
        s->is_blind = true;
    }
}

static void see_work(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data)
{
    np_hook_sight s = {.device = device};
    void *stream = np_hook_stream_of(call, data);
    const char *name;
    uint64_t key;
    bool is_timed = device->facts.n_launches % NP_HOOK_TIMED_EVERY == 0;
    uint64_t begin_ns = is_timed ? np_clock_ns() : 0;
    np_hook_gather(&s, call, data);
    device->facts.scan_ns += is_timed ? NP_HOOK_TIMED_EVERY * (np_clock_ns() - begin_ns) : 0;
    if (per_thread && (stream == NP_HOOK_LEGACY || stream == (void *)2)) {
        s.is_blind = true; /* a stream of the thread's own, which others cannot name */
        stream = NP_HOOK_LEGACY;
    }
    name = s.kernel ? s.kernel->name : call->kind != NP_CALL_UNKNOWN && call->exec ? call->exec : data->function_name;
    key = s.kernel ? s.kernel->key : np_program_name_key(name, strlen(name));
    if (device->n_captures > 0 && np_hook_is_capturing(device, stream)) {
        note_captured(&s);
        return;
    }
    make_ready(&s, name, key, stream);
    if (call->kind == NP_CALL_LAUNCH_EX && has_aliases(device->manager) && is_overlapping(data)) {
        /* a plain event between the two: the first is done, and what it wrote is seen, before the second begins */
        np_device *d = device->manager->device;
        (void)d->api->is_done(d, device->work.stream, d->api->mark(d, device->work.stream));
    }
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
    stream = np_hook_stream_of(call, data);
    address = pointer_at(data, call->to);
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_STREAM_DESTROY:
        for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
            if (device->streams[i] == stream) {
                (void)device->manager->device->api->adopt(device->manager->device, i, NULL);
                device->streams[i] = NULL;
            }
        }
        break;
    case NP_CALL_CAPTURE_BEGIN:
        np_hook_capture_begin(device, stream);
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
        if (block && np_beneath_fix(device->manager, block, true) != NEAP_OK) {
            go_home(device, call->name);
        }
        break;
    case NP_CALL_CAPTURE_END:
    case NP_CALL_INSTANTIATE:
    case NP_CALL_PEER:
    case NP_CALL_NONE:
        break;
    default:
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
    void *const *where = pointer_at(data, offset);
    return where && has_succeeded(data) ? *where : NULL;
}

void np_hook_see_after(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data)
{
    neap_device *m = device->manager;
    if (device->quick) {
        np_hook_quick_end(device);
        return;
    }
    if (device->is_given) {
        device->is_given = false;
        np_exec_given(m, &device->given, m->device->api->end(m->device, device->work.stream));
    }
    if (call->kind == NP_CALL_CAPTURE_END) {
        np_hook_capture_end(device, np_hook_stream_of(call, data), result_at(data, call->to));
    } else if (call->kind == NP_CALL_INSTANTIATE && has_succeeded(data)) {
        np_hook_graph_instantiate(device, (void *)(uintptr_t)pointer_at(data, call->from), result_at(data, call->to));
    } else if (call->kind == NP_CALL_PEER && has_succeeded(data)) {
        np_hook_step_aside("peer access was enabled: others may touch any block");
    }
}
