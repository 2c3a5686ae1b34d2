/* graphs.c: captures, graphs, and what they name.
 *
 * While a stream is captured nothing runs: its launches become nodes of a graph, which is launched later, again and again,
 * with the addresses it was captured with. So everything is home before a capture begins, what captured work names is fixed
 * where it is, and what is freed while a graph needs it is kept until the graph and its executables are gone.
 *
 * A graph can be made a part of another, and then that one needs what its part does, whatever becomes of the part. It can
 * also be built node by node: what such nodes use is not looked at, and the graph is *blind*, as one whose captured work was
 * not seen in full. Before each launch of a blind graph everything comes home; so it does for one that is not known. */
#include "hook/core.h"

#define NAMES_NOTHING UINT32_MAX /* the number of a graph that has no captured work */

/* All that is known of a graph or executable, which has an entry for each part. False: nothing is. */
static bool find(const np_hook_device *device, const void *handle, np_hook_graph *found)
{
    bool is_found = false;
    *found = (np_hook_graph){.number = NAMES_NOTHING};
    for (size_t i = 0; i < device->graphs.n; i++) {
        const np_hook_graph *graph = &device->graphs.items[i];
        if (handle && graph->handle == handle) {
            found->handle = graph->handle;
            found->number = graph->number < found->number ? graph->number : found->number;
            found->is_blind |= graph->is_blind;
            is_found = true;
        }
    }
    return is_found;
}

static void add(np_hook_device *device, np_hook_graph graph)
{
    if (np_array_push(device->manager->memory, &device->graphs, graph) != NEAP_OK) {
        np_hook_say("cuda:%d: no host memory to remember a graph: its blocks stay for good", device->ordinal);
        device->keeps_all = true;
    }
}

/* Of the earliest graph there is: who has it needs whatever any of them needs. */
static uint32_t lowest_number(const np_hook_device *device)
{
    uint32_t lowest = NAMES_NOTHING;
    for (size_t i = 0; i < device->graphs.n; i++) {
        lowest = device->graphs.items[i].number < lowest ? device->graphs.items[i].number : lowest;
    }
    return lowest;
}

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
    add(device, (np_hook_graph){.stream = stream, .number = device->next_graph++});
    (void)np_hook_home(device, "a capture");
    (void)np_hook_wait(device);
    device->n_captures++; /* from here on not all work can be waited for: what is captured is not under way */
}

bool np_hook_has_capture(const np_hook_device *device, const void *stream)
{
    for (size_t i = 0; i < device->graphs.n; i++) {
        if (!device->graphs.items[i].handle && device->graphs.items[i].stream == stream) {
            return true;
        }
    }
    return false;
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
            (void)(kept.block ? np_hook_free_block(device, kept.block)
                              : np_side_free(device->manager, kept.small, NP_SIDE_CAPTURED));
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

void np_hook_graph_create(np_hook_device *device, void *graph)
{
    if (graph) {
        add(device, (np_hook_graph){.handle = graph, .number = NAMES_NOTHING});
    }
}

void np_hook_graph_instantiate(np_hook_device *device, void *graph, void *executable)
{
    np_hook_graph made;
    if (executable && find(device, graph, &made)) {
        made.handle = executable;
        add(device, made);
    }
}

void np_hook_graph_join(np_hook_device *device, void *graph, const void *part)
{
    np_hook_graph whole;
    np_hook_graph joined;
    bool is_known = find(device, graph, &whole);
    if (!find(device, part, &joined)) {
        joined.is_blind = true;
        joined.number = lowest_number(device);
    }
    joined.is_blind |= !is_known; /* what else is in it was not seen */
    joined.handle = graph;
    if (graph && ((joined.is_blind && !whole.is_blind) || joined.number < whole.number)) {
        add(device, joined);
    }
}

bool np_hook_graph_is_known(const np_hook_device *device, const void *executable)
{
    np_hook_graph found;
    return find(device, executable, &found) && !found.is_blind;
}

void np_hook_graphs_blind(np_hook_device *device)
{
    uint32_t lowest = lowest_number(device);
    for (size_t i = 0; i < device->graphs.n; i++) {
        device->graphs.items[i].is_blind = true;
        device->graphs.items[i].number = lowest;
    }
}

void np_hook_capture_join(np_hook_device *device, const void *executable)
{
    np_hook_graph part;
    if (!find(device, executable, &part)) {
        part.number = lowest_number(device);
    }
    for (size_t i = 0; i < device->graphs.n; i++) {
        np_hook_graph *graph = &device->graphs.items[i];
        if (!graph->handle) {
            graph->number = part.number < graph->number ? part.number : graph->number;
        }
    }
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
    if (!block->is_fixed && np_hook_fix(device, block, NP_HOOK_OF_GRAPH) != NEAP_OK) {
        np_hook_step_aside("a block that a graph names could not be kept on the device");
    }
}

/* False: there is no graph to keep it for. */
static bool keep(np_hook_device *device, np_hook_kept kept)
{
    if (device->graphs.n == 0 && !device->keeps_all) {
        return false;
    }
    kept.graph = device->next_graph - 1;
    kept.capture = NP_HOOK_NO_CAPTURE;
    (void)np_array_push(device->manager->memory, &device->kept, kept); /* or it is kept for good */
    return true;
}

bool np_hook_capture_free(np_hook_device *device, neap_block *block)
{
    return block->is_fixed && keep(device, (np_hook_kept){.block = block});
}

/* The number of the capture that began on that stream and has not ended. */
static uint32_t capture_on(const np_hook_device *device, const void *stream)
{
    for (size_t i = 0; i < device->graphs.n; i++) {
        if (!device->graphs.items[i].handle && device->graphs.items[i].stream == stream) {
            return device->graphs.items[i].number;
        }
    }
    return NP_HOOK_NO_CAPTURE;
}

void np_hook_capture_freed_on(np_hook_device *device, const neap_block *block, void *stream)
{
    np_hook_kept *last = device->kept.n > 0 ? &device->kept.items[device->kept.n - 1] : NULL;
    if (last && last->block == block && device->n_captures > 0) {
        last->capture = capture_on(device, stream);
        last->stream = stream;
    }
}

/* On one stream a graph's work comes in the order in which it was captured: what is freed there may be had by what is captured
 * after it, as in a pool of the stream. Without that a graph would hold all that was ever asked for in its capture. */
neap_block *np_hook_capture_reuse(np_hook_device *device, const void *stream, uint64_t bytes)
{
    uint32_t capture = capture_on(device, stream);
    uint64_t most = bytes + bytes / 8;
    size_t best = device->kept.n;
    neap_block *block;
    for (size_t i = 0; i < device->kept.n && capture != NP_HOOK_NO_CAPTURE; i++) {
        const np_hook_kept *kept = &device->kept.items[i];
        if (kept->block && kept->capture == capture && kept->stream == stream && kept->block->bytes >= bytes &&
            kept->block->bytes <= most) {
            most = kept->block->bytes - (kept->block->bytes > bytes);
            best = i;
        }
    }
    if (best == device->kept.n) {
        return NULL;
    }
    block = device->kept.items[best].block;
    device->kept.items[best] = device->kept.items[--device->kept.n];
    return block;
}

bool np_hook_capture_free_small(np_hook_device *device, const char *address)
{
    return np_side_is_captured(device->manager, address) && keep(device, (np_hook_kept){.small = address});
}
