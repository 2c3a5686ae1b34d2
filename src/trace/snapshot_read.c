/* snapshot_read.c: opening a snapshot and choosing the device whose list becomes the trace. */
#include "base/status.h"
#include "trace/message.h"
#include "trace/snapshot.h"

static neap_status fail_unrecorded(const char *name, neap_error *error, const char *what)
{
    return np_fail(error, NEAP_BAD_INPUT,
                   "%s: expected a history of allocations, found %s: call torch.cuda.memory._record_memory_history() "
                   "before the work to be seen",
                   name, what);
}

/* The lists of all devices. */
static neap_status find_lists(const np_pickle *pickle, const char *name, neap_error *error,
                              const np_pickle_value **lists, size_t *n)
{
    np_pickle_value traces;
    if (pickle->root.kind == NP_PICKLE_LIST) {
        return fail_unrecorded(name, error, "segments alone");
    }
    if (pickle->root.kind != NP_PICKLE_DICT) {
        return np_fail(error, NEAP_BAD_INPUT, "%s: expected a memory snapshot (a dict), found %s", name,
                       np_pickle_kind_name(pickle->root));
    }
    if (!np_pickle_find(pickle, pickle->root, "device_traces", &traces)) {
        return np_fail(error, NEAP_BAD_INPUT, "%s: expected a memory snapshot, found a dict without \"device_traces\"",
                       name);
    }
    *lists = np_pickle_items(pickle, traces, n);
    for (size_t i = 0; i < *n; i++) {
        if (traces.kind != NP_PICKLE_LIST || (*lists)[i].kind != NP_PICKLE_LIST) {
            return np_fail(error, NEAP_BAD_INPUT, "%s: expected a list of lists as \"device_traces\", found another",
                           name);
        }
    }
    return NEAP_OK;
}

static neap_status choose_device(const np_pickle *pickle, const char *name, neap_error *error, uint32_t *device,
                                 np_pickle_value *entries)
{
    const np_pickle_value *lists = NULL;
    size_t n = 0;
    size_t most = 0;
    uint32_t asked = *device;
    neap_status status = find_lists(pickle, name, error, &lists, &n);
    if (status != NEAP_OK) {
        return status;
    }
    if (asked != NEAP_ANY_DEVICE && asked >= n) {
        return np_fail(error, NEAP_BAD_ARGUMENT, "%s: expected a device below %zu, found %u", name, n, asked);
    }
    for (size_t i = 0; i < n && i < NEAP_ANY_DEVICE; i++) {
        size_t n_entries;
        (void)np_pickle_items(pickle, lists[i], &n_entries);
        if (n_entries > most && (asked == NEAP_ANY_DEVICE || asked == i)) {
            most = n_entries;
            *device = (uint32_t)i;
            *entries = lists[i];
        }
    }
    return most ? NEAP_OK : fail_unrecorded(name, error, asked == NEAP_ANY_DEVICE ? "none" : "none of that device");
}

/* Takes the input over. */
static neap_status read_all(np_pickle_input *input, uint32_t device, uint64_t memory_max, const neap_memory *memory,
                            neap_error *error, neap_trace **trace)
{
    np_pickle *pickle;
    np_pickle_value entries = {0};
    neap_status status = np_pickle_read(input, memory_max, memory, error, &pickle);
    if (status == NEAP_OK) {
        const char *name = np_pickle_input_name(input);
        status = choose_device(pickle, name, error, &device, &entries);
        if (status == NEAP_OK) {
            status = np_snapshot_to_trace(pickle, name, device, entries, memory, error, trace);
        }
        np_pickle_free(pickle);
    }
    np_pickle_input_close(input);
    return status;
}

neap_status neap_trace_read_snapshot(const char *path, uint32_t device, const neap_memory *memory, neap_error *error,
                                     neap_trace **trace)
{
    np_pickle_input *input;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    status = np_pickle_input_open(path, memory, error, &input);
    return status == NEAP_OK ? read_all(input, device, 0, memory, error, trace) : status;
}

neap_status np_snapshot_parse(const void *bytes, size_t n_bytes, const char *name, uint32_t device, uint64_t memory_max,
                              const neap_memory *memory, neap_error *error, neap_trace **trace)
{
    np_pickle_input *input;
    neap_status status;
    if (error) {
        error->text[0] = '\0';
    }
    status = np_pickle_input_open_bytes(bytes, n_bytes, name, memory, error, &input);
    return status == NEAP_OK ? read_all(input, device, memory_max, memory, error, trace) : status;
}
