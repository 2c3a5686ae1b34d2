/* capture.c: stream captures, and the graphs they make.
 *
 * A graph is the list of its work in the order it was captured, which is an order it may be done in: a launch puts all
 * of it on one stream. Which calls a capture forbids is as cuda.h has it: a capture in global mode forbids unsafe
 * calls of every thread, one in thread-local mode those of its own, one in relaxed mode none; a thread that is itself
 * in thread-local mode minds its own captures alone, one in relaxed mode none at all. A forbidden call fails, and the
 * capture is invalid. */
#include <stdlib.h>
#include <string.h>

#include "standin/standin_state.h"

static _Thread_local np_cu_capture_mode mode_of_thread = NP_CU_CAPTURE_GLOBAL;

bool capture_forbids(void)
{
    bool is_forbidden = false;
    for (capture *c = standin.captures; c; c = c->next) {
        bool is_own = pthread_equal(c->thread, pthread_self()) != 0;
        if (!c->is_active || c->mode == NP_CU_CAPTURE_RELAXED || mode_of_thread == NP_CU_CAPTURE_RELAXED) {
            continue;
        }
        if (is_own || (c->mode == NP_CU_CAPTURE_GLOBAL && mode_of_thread == NP_CU_CAPTURE_GLOBAL)) {
            c->is_invalid = true;
            is_forbidden = true;
        }
    }
    return is_forbidden;
}

/* All work cannot be waited for where some of it is captured, in no mode. The real one has it so for every thread; here those
 * that are not in relaxed mode are let off, as the trainer's two networks wait without asking each other. */
bool capture_forbids_waiting(void)
{
    bool is_forbidden = false;
    for (capture *c = standin.captures; c && mode_of_thread == NP_CU_CAPTURE_RELAXED; c = c->next) {
        c->is_invalid |= c->is_active;
        is_forbidden |= c->is_active;
    }
    return is_forbidden;
}

void capture_invalidate(capture *c)
{
    c->is_invalid = true;
}

static void add_item(graph *g, item *work)
{
    if (g->last) {
        g->last->next = work;
    } else {
        g->first = work;
    }
    g->last = work;
}

void capture_add(stream *s, item *work)
{
    add_item(s->capture->graph, work);
    s->is_joined = false;
}

np_cu_result cuThreadExchangeStreamCaptureMode(np_cu_capture_mode *mode)
{
    np_cu_capture_mode old = mode_of_thread;
    BEGIN(NEEDS_INIT, mode);
    if ((unsigned)*mode > NP_CU_CAPTURE_RELAXED) {
        return end(NP_CU_INVALID_VALUE);
    }
    mode_of_thread = *mode;
    *mode = old;
    return end(NP_CU_SUCCESS);
}

/* ---- captures ---- */

np_cu_result cuStreamBeginCapture_v2(np_cu_stream on, np_cu_capture_mode mode)
{
    stream *s;
    capture *c;
    BEGIN(NEEDS_CONTEXT, on, mode);
    s = stream_of(on, __func__);
    if (s->is_default || s->capture) {
        return end((np_cu_result)CU_CAPTURE_UNSUPPORTED);
    }
    c = calloc(1, sizeof *c);
    if (!c) {
        misuse("the machine has no memory left");
    }
    c->id = ++standin.n_captures;
    c->mode = mode;
    c->thread = pthread_self();
    c->origin = s;
    c->is_active = true;
    c->graph = object_make(sizeof *c->graph, GRAPH);
    c->next = standin.captures;
    standin.captures = c;
    s->capture = c;
    s->is_joined = true;
    return end(NP_CU_SUCCESS);
}

static void free_items(graph *g)
{
    while (g->first) {
        item *next = g->first->next;
        free(g->first);
        g->first = next;
    }
    g->last = NULL;
}

/* Whether all streams of the capture but its first are waited for; none is part of it from then on. */
static bool dissolve(capture *c)
{
    bool are_joined = true;
    for (object *o = standin.objects; o; o = o->next) {
        stream *s = (stream *)(void *)o;
        if (o->kind == STREAM && s->capture == c) {
            are_joined = are_joined && (s == c->origin || s->is_joined);
            s->capture = NULL;
        }
    }
    c->is_active = false;
    return are_joined;
}

np_cu_result cuStreamEndCapture(np_cu_stream on, void **made)
{
    stream *s;
    capture *c;
    bool are_joined;
    BEGIN(NEEDS_CONTEXT, on, made);
    s = stream_of(on, __func__);
    c = s->capture;
    *made = NULL;
    if (!c || c->origin != s) {
        return end((np_cu_result)CU_CAPTURE_UNMATCHED);
    }
    if (c->mode != NP_CU_CAPTURE_RELAXED && !pthread_equal(c->thread, pthread_self())) {
        return end((np_cu_result)CU_CAPTURE_WRONG_THREAD);
    }
    are_joined = dissolve(c);
    if (c->is_invalid || !are_joined) {
        free_items(c->graph);
        c->graph->base.is_alive = false;
        return end((np_cu_result)(c->is_invalid ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_UNJOINED));
    }
    standin.counts.n_graphs++;
    *made = c->graph;
    return end(NP_CU_SUCCESS);
}

/* 0: none, 1: active, 2: invalidated. */
static int status_of(const stream *s)
{
    return !s->capture ? 0 : s->capture->is_invalid ? 2 : 1;
}

np_cu_result cuStreamIsCapturing(np_cu_stream on, int *status)
{
    BEGIN(NEEDS_CONTEXT, on, status);
    *status = status_of(stream_of(on, __func__));
    return end(NP_CU_SUCCESS);
}

/* The graph and what the next node would depend on are not told. */
static np_cu_result tell(np_cu_stream on, int *status, unsigned long long *id, const char *symbol)
{
    const stream *s = stream_of(on, symbol);
    *status = status_of(s);
    if (id && s->capture) {
        *id = s->capture->id;
    }
    return NP_CU_SUCCESS;
}

np_cu_result cuStreamGetCaptureInfo_v2(np_cu_stream on, int *status, unsigned long long *id, void **made,
                                       const void **nodes, size_t *n_nodes)
{
    BEGIN(NEEDS_CONTEXT, on, status, id, made, nodes, n_nodes);
    (void)made;
    (void)nodes;
    (void)n_nodes;
    return end(tell(on, status, id, __func__));
}

np_cu_result cuStreamGetCaptureInfo_v3(np_cu_stream on, int *status, unsigned long long *id, void **made,
                                       const void **nodes, const void **edges, size_t *n_nodes)
{
    BEGIN(NEEDS_CONTEXT, on, status, id, made, nodes, edges, n_nodes);
    (void)made;
    (void)nodes;
    (void)edges;
    (void)n_nodes;
    return end(tell(on, status, id, __func__));
}

/* ---- graphs ---- */

static item *copy_of(const item *work)
{
    item *made = item_make(work->kind, work->data_bytes);
    memcpy(made, work, sizeof *work + work->data_bytes);
    made->next = NULL;
    return made;
}

static void add_copies(graph *g, const graph *of)
{
    for (const item *work = of->first; work; work = work->next) {
        add_item(g, copy_of(work));
    }
}

np_cu_result cuGraphCreate(void **made, unsigned int flags)
{
    BEGIN(NEEDS_INIT, made, flags);
    (void)flags;
    *made = object_make(sizeof(graph), GRAPH);
    standin.counts.n_graphs++;
    return end(NP_CU_SUCCESS);
}

/* A node is its graph: nobody asks one for more. What it comes after is not looked at: the order of adding is one. */
np_cu_result cuGraphAddChildGraphNode(void **node, void *handle, const void *after, size_t n_after, void *child)
{
    graph *g;
    const graph *part;
    BEGIN(NEEDS_INIT, node, handle, after, n_after, child);
    (void)after;
    (void)n_after;
    g = object_check(handle, GRAPH, __func__);
    part = object_check(child, GRAPH, __func__);
    if (part == g) {
        return end(NP_CU_INVALID_VALUE);
    }
    add_copies(g, part);
    *node = g;
    return end(NP_CU_SUCCESS);
}

/* CUDA_KERNEL_NODE_PARAMS_v2. */
typedef struct kernel_node {
    void *function;
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    void **parameters;
    void **extra;
    void *kernel;
    np_cu_context context;
} kernel_node;

np_cu_result cuGraphAddKernelNode_v2(void **node, void *handle, const void *after, size_t n_after,
                                     const kernel_node *of)
{
    graph *g;
    item *work;
    np_cu_result result;
    BEGIN(NEEDS_CONTEXT, node, handle, after, n_after, of);
    (void)after;
    (void)n_after;
    g = object_check(handle, GRAPH, __func__);
    result = kernel_item_make(of->function, of->parameters, of->extra, __func__, &work);
    if (result == NP_CU_SUCCESS) {
        add_item(g, work);
        *node = g;
    }
    return end(result);
}

np_cu_result cuGraphInstantiateWithFlags(void **made, void *of, unsigned long long flags)
{
    graph *exec;
    const graph *g;
    BEGIN(NEEDS_CONTEXT | IS_UNSAFE, made, of, flags);
    (void)flags;
    g = object_check(of, GRAPH, __func__);
    exec = object_make(sizeof *exec, EXEC);
    add_copies(exec, g);
    standin.counts.n_graphs++;
    *made = exec;
    return end(NP_CU_SUCCESS);
}

np_cu_result cuGraphLaunch(void *handle, np_cu_stream on)
{
    const graph *exec;
    stream *s;
    np_cu_result result = NP_CU_SUCCESS;
    BEGIN(NEEDS_CONTEXT, handle, on);
    exec = object_check(handle, EXEC, __func__);
    s = stream_of(on, __func__);
    for (const item *work = exec->first; work && result == NP_CU_SUCCESS; work = work->next) {
        result = stream_give(s, copy_of(work));
    }
    return end(result);
}

static np_cu_result destroy(void *handle, uint32_t kind, const char *symbol)
{
    graph *g = object_check(handle, kind, symbol);
    free_items(g);
    g->base.is_alive = false;
    standin.counts.n_graphs--;
    return NP_CU_SUCCESS;
}

np_cu_result cuGraphDestroy(void *handle)
{
    BEGIN(NEEDS_INIT, handle);
    return end(destroy(handle, GRAPH, __func__));
}

np_cu_result cuGraphExecDestroy(void *handle)
{
    BEGIN(NEEDS_INIT, handle);
    return end(destroy(handle, EXEC, __func__));
}
