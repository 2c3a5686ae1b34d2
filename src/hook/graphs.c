/* graphs.c: captures, graphs, and what they name.
 *
 * While a stream is captured nothing runs: its launches become nodes of a graph, which is launched later, again and again,
 * with the addresses it was captured with. So everything is home before a capture begins, what captured work names is fixed
 * where it is, and what is freed while a graph needs it is kept until the graph and its executables are gone. */
#include "hook/core.h"

bool np_hook_is_capturing(np_hook_device *device, void *stream)
{
    np_cu_capture_status status = NP_CU_CAPTURE_NONE;
    (void)device;
    if (!np_the_hook.driver.stream_is_capturing || stream == NP_HOOK_LEGACY) { /* which cannot be captured */
        return false;
    }
    return np_the_hook.driver.stream_is_capturing(stream, &status) == NP_CU_SUCCESS && status != NP_CU_CAPTURE_NONE;
}

void np_hook_capture_begin(np_hook_device *device, void *stream)
{
    np_hook_graph graph = {.stream = stream, .number = device->next_graph++};
    if (np_array_push(device->manager->memory, &device->graphs, graph) != NEAP_OK) {
        np_hook_say("cuda:%d: no host memory to remember a graph: its blocks stay for good", device->ordinal);
        device->keeps_all = true;
    }
    device->n_captures++;
    (void)np_beneath_home(device->manager, "a capture");
    (void)np_drain(device->manager);
}

/* Is a graph there that was so early that it can name what was freed with that number? */
static bool is_needed(const np_hook_device *device, uint32_t number)
{
    for (size_t i = 0; i < device->graphs.n; i++) {
        if (device->graphs.items[i].number <= number) {
            return true;
        }
    }
    return false;
}

/* Frees what was kept for graphs that are gone. */
static void release_kept(np_hook_device *device)
{
    for (size_t i = device->kept.n; i-- > 0;) {
        np_hook_kept kept = device->kept.items[i];
        if (!device->keeps_all && !is_needed(device, kept.graph)) {
            device->kept.items[i] = device->kept.items[--device->kept.n];
            (void)np_free_locked(device->manager, kept.block);
        }
    }
}

void np_hook_capture_end(np_hook_device *device, void *stream, void *graph)
{
    for (size_t i = device->graphs.n; i-- > 0;) {
        np_hook_graph *g = &device->graphs.items[i];
        if (!g->handle && g->stream == stream) {
            if (graph) {
                g->handle = graph;
            } else {
                *g = device->graphs.items[--device->graphs.n];
            }
            break;
        }
    }
    device->n_captures -= device->n_captures > 0;
    if (!graph) {
        release_kept(device);
    }
}

void np_hook_graph_instantiate(np_hook_device *device, void *graph, void *executable)
{
    for (size_t i = 0; executable && i < device->graphs.n; i++) {
        if (device->graphs.items[i].handle == graph) {
            np_hook_graph made = device->graphs.items[i];
            made.handle = executable;
            device->keeps_all |= np_array_push(device->manager->memory, &device->graphs, made) != NEAP_OK;
            return;
        }
    }
}

bool np_hook_graph_is_known(const np_hook_device *device, const void *executable)
{
    for (size_t i = 0; i < device->graphs.n; i++) {
        if (device->graphs.items[i].handle == executable) {
            return !device->graphs.items[i].is_blind;
        }
    }
    return false;
}

void np_hook_capture_blind(np_hook_device *device)
{
    for (size_t i = 0; i < device->graphs.n; i++) {
        device->graphs.items[i].is_blind |= !device->graphs.items[i].handle;
    }
}

void np_hook_graph_destroy(np_hook_device *device, void *graph)
{
    for (size_t i = device->graphs.n; i-- > 0;) {
        if (graph && device->graphs.items[i].handle == graph) {
            device->graphs.items[i] = device->graphs.items[--device->graphs.n];
        }
    }
    release_kept(device);
}

void np_hook_capture_use(np_hook_device *device, neap_block *block)
{
    if (!block->is_fixed && np_beneath_fix(device->manager, block, false) != NEAP_OK) {
        np_hook_step_aside("a block that a graph names could not be kept on the device");
    }
}

bool np_hook_capture_free(np_hook_device *device, neap_block *block)
{
    np_hook_kept kept = {.block = block, .graph = device->next_graph - 1};
    if (!block->is_fixed || (device->graphs.n == 0 && !device->keeps_all)) {
        return false;
    }
    (void)np_array_push(device->manager->memory, &device->kept, kept); /* or it is kept for good */
    return true;
}
