/* gather.c: which blocks a call uses.
 *
 * A launch's parameters are looked through for addresses, eight bytes at a time, all of them, every time: the same word
 * can be an address in one launch and a leftover in the next. Copies and memsets name what they use. */
#include <string.h>

#include "hook/core.h"

neap_block *np_hook_block_at(const np_hook_device *device, const void *address)
{
    const np_hook_entry *entry = np_hook_index_find(&device->index, address);
    return entry ? entry->block : NULL;
}

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
        if (!entry) {
            continue;
        }
        if (np_array_push(device->manager->memory, &device->hits, (uint64_t)(uintptr_t)address) != NEAP_OK) {
            s->is_blind = true;
        }
        if (entry->block->pinned_by != device->manager->pin) { /* all uses of a call that is scanned are alike */
            add_use(s, entry->block, NEAP_ACCESS_UNKNOWN);
        }
    }
}

np_hook_parameters np_hook_parameters_of(const np_hook_call *call, const np_cupti_data *data)
{
    enum { END = 0, POINTER = 1, SIZE = 2 }; /* CU_LAUNCH_PARAM_... */
    np_hook_parameters found = {.each = np_hook_pointer_at(data, call->to)};
    void *const *extra = found.each ? NULL : np_hook_pointer_at(data, call->from);
    for (size_t i = 0; extra && (uintptr_t)extra[i] != END; i += 2) {
        if ((uintptr_t)extra[i] == POINTER) {
            found.packed = extra[i + 1];
        } else if ((uintptr_t)extra[i] == SIZE) {
            memcpy(&found.packed_bytes, extra[i + 1], sizeof found.packed_bytes);
        }
    }
    return found;
}

/* The event of the plan that this launch should be. */
static size_t planned_event(const neap_device *m)
{
    return m->cursor < m->pattern->program.events.n ? m->cursor : 0;
}

static bool recall_launch(np_hook_sight *s, const np_hook_kernel *kernel, const np_hook_parameters *parameters)
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

static void scan_launch(np_hook_sight *s, const np_hook_kernel *kernel, const np_hook_parameters *parameters)
{
    np_hook_device *device = s->device;
    const neap_device *m = device->manager;
    for (uint32_t i = 0; parameters->each && i < kernel->n_parameters; i++) {
        scan(s, parameters->each[i], kernel->sizes[i]);
    }
    if (!parameters->each) {
        scan(s, parameters->packed, parameters->packed_bytes);
    }
    if (m->state == NEAP_STATE_RUN && !s->is_blind && !s->is_fixing) {
        s->memory = np_hook_recall_keep(&device->recall, planned_event(m), kernel, parameters, device->hits.items,
                                        device->hits.n, device->uses.items, device->uses.n);
    }
}

static const np_hook_kernel *gather_launch(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    np_hook_device *device = s->device;
    void *function = (void *)(uintptr_t)np_hook_pointer_at(data, call->bytes);
    np_hook_parameters parameters = np_hook_parameters_of(call, data);
    const np_hook_kernel *kernel =
        np_hook_kernels_get(&device->kernels, &np_the_hook.driver, function, data->symbol_name);
    if (!kernel || (!kernel->is_known && !parameters.packed)) {
        s->is_blind = true;
        return kernel;
    }
    s->is_fixing = kernel->is_pinned;
    if ((parameters.each || parameters.packed) && !recall_launch(s, kernel, &parameters)) {
        scan_launch(s, kernel, &parameters);
    }
    return kernel;
}

/* The whole of a block is written: nothing of what was in it is looked at again. */
static bool is_whole(const np_hook_device *device, const void *address, size_t bytes)
{
    const np_hook_entry *entry = np_hook_index_find(&device->index, address);
    return entry && entry->begin == (const char *)address && (uint64_t)bytes >= entry->block->bytes;
}

static void gather_copy(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    const void *to = np_hook_pointer_at(data, call->to);
    const void *from = np_hook_pointer_at(data, call->from);
    size_t bytes = (size_t)(uintptr_t)np_hook_pointer_at(data, call->bytes);
    neap_block *target = np_hook_block_at(s->device, to);
    neap_block *source = from ? np_hook_block_at(s->device, from) : NULL;
    if (source) {
        add_use(s, source, NEAP_ACCESS_READ);
    }
    if (target) {
        add_use(s, target, is_whole(s->device, to, bytes) ? NEAP_ACCESS_WRITE : NEAP_ACCESS_UNKNOWN);
    }
    if (from && !source) {
        np_hook_scan_copied(s, call, from, bytes);
    }
}

void np_hook_gather(np_hook_sight *s, const np_hook_call *call, const np_cupti_data *data)
{
    s->device->manager->pin++;
    s->device->uses.n = 0;
    s->device->hits.n = 0;
    switch ((np_hook_call_kind)call->kind) {
    case NP_CALL_LAUNCH:
    case NP_CALL_LAUNCH_EX:
        s->kernel = gather_launch(s, call, data);
        break;
    case NP_CALL_COPY:
        gather_copy(s, call, data);
        break;
    case NP_CALL_DESCRIBED:
        scan(s, np_hook_pointer_at(data, call->to), call->bytes);
        np_hook_scan_described(s, call, np_hook_pointer_at(data, call->to));
        break;
    case NP_CALL_GRAPH_LAUNCH:
        s->is_blind = !np_hook_graph_is_known(s->device, np_hook_pointer_at(data, call->to));
        break;
    default:
        s->is_blind = true;
    }
}
