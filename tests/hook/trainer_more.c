/* trainer_more.c: what the options add to an iteration. */
#include <stdio.h>
#include <string.h>

#include "hook/trainer_network.h"

enum { TABLE_BYTES = 4096, SHARED_BYTES = 256 << 10 };

static bool is_turn(const network *net, unsigned long every)
{
    return every > 0 && net->iteration % every == every - 1;
}

static word *more_sum(const network *net)
{
    return net->sums + (size_t)2 * STEP;
}

/* ---- random blocks ---- */

void more_at_random(network *net)
{
    size_t bytes;
    size_t slot = MAX_EXTRAS;
    if (option.extra == 0) {
        return;
    }
    for (size_t i = 0; i < MAX_EXTRAS; i++) {
        if (!net->extras[i].at) {
            slot = i;
        } else if (net->extras[i].left-- == 0) {
            put(net->extras[i].at, net->stream);
            net->extras[i].at = NULL;
        }
    }
    if (slot == MAX_EXTRAS || random_below(&net->random, (uint32_t)option.extra) != 0) {
        return;
    }
    bytes = (size_t)512 << random_below(&net->random, 13);
    net->extras[slot].at = get(bytes, net->stream);
    net->extras[slot].left = random_below(&net->random, 30);
    fill(net->extras[slot].at, bytes, (word)bytes, net->stream);
    reduce(more_sum(net), net->extras[slot].at, bytes, net->stream);
}

/* ---- the side stream ---- */

/* A branch off the first layer's output: it begins when that is there, and the main stream waits for its end before the
 * backward pass, which frees what it reads. Its own memory is freed in its own order. */
static void side_branch(network *net)
{
    size_t bytes = activation_bytes(2, net->size);
    word *out;
    CHECK(cudaEventRecord(net->event, net->stream));
    CHECK(cudaStreamWaitEvent(net->side, net->event, 0));
    out = get(bytes, net->side);
    forward_layer(net, 1, net->activations[1], out, net->size, NULL, net->side);
    CHECK(cudaMemsetAsync(net->side_sums, 0, 512, net->side));
    reduce(net->side_sums, out, bytes, net->side);
    hidden_use(net, HIDDEN_SIDE, net->side_sums, net->side);
    put(out, net->side);
}

static void side_join(network *net)
{
    CHECK(cudaEventRecord(net->event, net->side));
    CHECK(cudaStreamWaitEvent(net->stream, net->event, 0));
    reduce(more_sum(net), net->side_sums, 512, net->stream);
}

/* ---- tables ---- */

static void copy_table(network *net)
{
    const table_entry table[] = {
        {net->activations[1], activation_bytes(1, net->size)},
        {net->weights[net->n - 1], net->weight_bytes[net->n - 1]},
        {net->activations[0], activation_bytes(0, net->size)},
    };
    if (option.table == 2) { /* out of one with wider rows */
        struct {
            table_entry entry;
            uint64_t unused;
        } rows[3] = {{table[0], 0}, {table[1], 0}, {table[2], 0}};
        CHECK(cudaMemcpy2DAsync(net->table, sizeof *table, rows, sizeof *rows, sizeof *table, 3, cudaMemcpyHostToDevice,
                                net->stream));
        return;
    }
    CHECK(cudaMemcpyAsync(net->table, table, sizeof table, cudaMemcpyHostToDevice, net->stream));
}

static void grouped(network *net)
{
    word *const blocks[] = {net->activations[2], net->weights[0], net->activations[1]};
    const size_t bytes[] = {activation_bytes(2, net->size), net->weight_bytes[0], activation_bytes(1, net->size)};
    make_table(net->table, blocks, bytes, 3, net->stream);
    by_table(more_sum(net), net->table, 3, net->stream);
}

/* ---- copies ---- */

static void copies(network *net)
{
    size_t bytes = activation_bytes(1, net->size) / 8192 * 8192;
    word *copy = get(bytes, net->stream);
    word *second = get(bytes, net->stream);
    CHECK(cudaMemsetAsync(second, 7, bytes, net->stream));
    CHECK(cudaMemcpyAsync(copy, net->activations[1], bytes, cudaMemcpyDeviceToDevice, net->stream));
    CHECK(cudaMemcpy2DAsync(second, 8192, copy, 8192, 4096, bytes / 8192, cudaMemcpyDeviceToDevice, net->stream));
    reduce(more_sum(net), second, bytes, net->stream);
    CHECK(cudaMemcpyAsync(copy, second, bytes / 2, cudaMemcpyDefault, net->stream));
    reduce(more_sum(net), copy, bytes, net->stream);
    put(copy, net->stream);
    put(second, net->stream);
}

/* ---- calls that are seldom ---- */

typedef int (*gather_function)(uint64_t to, const uint64_t *from, size_t n, size_t bytes, cudaStream_t stream);

static void unknown(network *net, const char *symbol)
{
    enum { PIECE = 16384 };
    uint64_t from[MAX_LAYERS];
    gather_function gather;
    void *found = driver_function(symbol);
    word *to = get(net->n * PIECE, net->stream);
    memcpy(&gather, &found, sizeof gather);
    for (size_t i = 0; i < net->n; i++) {
        from[i] = (uint64_t)(uintptr_t)net->weights[i];
    }
    CHECK(gather((uint64_t)(uintptr_t)to, from, net->n, PIECE, net->stream));
    reduce(more_sum(net), to, net->n * PIECE, net->stream);
    put(to, net->stream);
}

static void out_of_memory(network *net)
{
    void *made = NULL;
    net->more = net->more * 31 + (word)cudaMallocAsync(&made, (size_t)1 << 42, net->stream);
    net->more = net->more * 31 + (word)cudaGetLastError();
    net->more = net->more * 31 + (word)cudaMalloc(&made, (size_t)1 << 42);
    net->more = net->more * 31 + (word)cudaGetLastError();
    net->more = net->more * 31 + (made != NULL);
}

static void ask_memory(void)
{
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    uint64_t used = 0;
    cudaMemPool_t pool = NULL;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    if (free_bytes > total_bytes || total_bytes == 0 || (used == 0 && !option.plain)) {
        fail("memory", "what there is makes no sense");
    }
    if (option.info == 2) {
        (void)fprintf(stderr, "trainer: memory %zu of %zu\n", free_bytes, total_bytes);
    }
}

/* Little is held beside what is in use then; before it may be more. */
static void trim(void)
{
    enum { SLACK = 2 << 20 };
    uint64_t reserved = 0;
    uint64_t used = 0;
    cudaMemPool_t pool = NULL;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolTrimTo(pool, 0));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    if (reserved > used + SLACK) {
        fail("trim", "what is not in use was not given back");
    }
}

/* ---- shared with another process, or a network card ---- */

typedef int (*range_function)(void *handle, uint64_t address, size_t bytes, int type, unsigned long long flags);

static void share(network *net)
{
    cudaIpcMemHandle_t handle;
    net->shared = get_plain(SHARED_BYTES);
    net->is_exported = cudaIpcGetMemHandle(&handle, net->shared) == cudaSuccess;
    (void)cudaGetLastError();
}

static void register_block(network *net)
{
    int file = 0;
    range_function give;
    void *found = driver_function("cuMemGetHandleForAddressRange");
    memcpy(&give, &found, sizeof give);
    net->shared = get(SHARED_BYTES, net->stream);
    CHECK(cudaStreamSynchronize(net->stream));
    CHECK(give(&file, (uint64_t)(uintptr_t)net->shared, SHARED_BYTES, 1, 0));
    net->is_exported = true;
}

/* The other one does it, and tells nobody; where the driver refused to share, it is done here. */
static word read_shared(network *net)
{
    if (net->is_exported) {
        return sum_on_host(net->shared, SHARED_BYTES);
    }
    reduce(net->sums + (size_t)3 * STEP, net->shared, SHARED_BYTES, net->stream);
    return read_sum(net, 3);
}

/* ---- the graph of the forward pass ---- */

static void graph_begin(network *net)
{
    for (size_t i = 0; i <= net->n; i++) {
        net->activations[i] = get(activation_bytes(i, 16), net->stream);
    }
    net->workspace = option.graph == 1 ? get(activation_bytes(0, 16), net->stream) : NULL;
    CHECK(cudaStreamSynchronize(net->stream));
}

static void graph_end(network *net)
{
    CHECK(cudaStreamSynchronize(net->stream));
    CHECK(cudaGraphExecDestroy(net->exec));
    net->exec = NULL;
    if (net->reused) {
        put(net->reused, net->captured);
        net->reused = NULL;
    }
    for (size_t i = 0; i <= net->n; i++) {
        put(net->activations[i], net->stream);
    }
    if (net->workspace) {
        put(net->workspace, net->stream);
    }
}

/* A graph whose only node is the other one, which goes. */
static cudaGraph_t graph_around(cudaGraph_t part)
{
    cudaGraph_t graph = NULL;
    cudaGraphNode_t node = NULL;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, part));
    CHECK(cudaGraphDestroy(part));
    return graph;
}

static void capture(network *net)
{
    cudaGraph_t graph = NULL;
    CHECK(cudaStreamBeginCapture(net->captured, cudaStreamCaptureModeThreadLocal));
    for (size_t i = 0; i < net->n; i++) {
        forward_layer(net, i, net->activations[i], net->activations[i + 1], 16, net->workspace, net->captured);
    }
    hidden_use(net, HIDDEN_GRAPH, more_sum(net), net->captured);
    CHECK(cudaStreamEndCapture(net->captured, &graph));
    if (option.child) {
        graph = graph_around(graph);
    }
    if (option.byhand) {
        scale_by_node(graph, net->scaled, SHARED_BYTES, 3);
    }
    CHECK(cudaGraphInstantiate(&net->exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
}

/* What was freed in the capture is the graph's for as long as the graph is there: none of it may be given out again. */
static void reuse_begin(network *net)
{
    size_t bytes = workspace_bytes(0, 16);
    net->reused = get(bytes, net->captured);
    fill(net->reused, bytes, 9, net->captured);
    CHECK(cudaStreamSynchronize(net->captured));
}

void graph_forward(network *net)
{
    if (net->exec && is_turn(net, option.regraph)) {
        graph_end(net);
    }
    if (!net->exec) {
        graph_begin(net);
        capture(net);
        if (option.reuse) {
            reuse_begin(net);
        }
    }
    (void)load_input(net, net->iteration, 16, net->activations[0]);
    CHECK(cudaGraphLaunch(net->exec, net->stream));
    for (size_t i = 0; i < net->n; i++) {
        more_after_layer(net, i);
    }
}

/* ---- how much is there? ---- */

/* As PyTorch asks before it tries convolutions: what it gets it gives back at once. Every other time it is used: where
 * nothing is free, a small block in its place, so that what is computed does not depend on that. */
static void ask_by_malloc(network *net)
{
    enum { USED_BYTES = 4096 };
    bool is_used = net->asked++ % 2 == 1;
    size_t bytes = 0;
    size_t total = 0;
    void *found = NULL;
    CHECK(cudaMemGetInfo(&bytes, &total));
    while (bytes >= USED_BYTES && cudaMallocAsync(&found, bytes, net->stream) != cudaSuccess) {
        (void)cudaGetLastError();
        bytes /= 2;
    }
    if (is_used && bytes < USED_BYTES) {
        bytes = USED_BYTES;
        CHECK(cudaMallocAsync(&found, bytes, net->stream));
    }
    if (is_used) {
        word *end = (word *)((char *)found + (bytes - USED_BYTES) / USED_BYTES * USED_BYTES);
        fill(end, USED_BYTES, net->iteration, net->stream);
        reduce(more_sum(net), end, USED_BYTES, net->stream);
    }
    if (bytes >= USED_BYTES) {
        CHECK(cudaFreeAsync(found, net->stream));
    }
}

/* ---- the places ---- */

void more_begin(network *net)
{
    CHECK(cudaEventCreateWithFlags(&net->event, cudaEventDisableTiming));
    CHECK(cudaStreamCreateWithFlags(&net->side, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&net->captured, cudaStreamNonBlocking));
    net->side_sums = get(512, net->stream);
    net->table = get(TABLE_BYTES, net->stream);
    CHECK(cudaStreamSynchronize(net->stream)); /* the side stream uses them too */
    if (option.ipc) {
        share(net);
    } else if (option.nic) {
        register_block(net);
    }
    if (option.helper) {
        helper_begin(net);
    }
    if (option.byhand) {
        net->scaled = get(SHARED_BYTES, net->stream);
        fill(net->scaled, SHARED_BYTES, 5, net->stream);
    }
    hidden_begin(net);
}

void more_end(network *net)
{
    if (net->exec) {
        graph_end(net);
    }
    for (size_t i = 0; i < MAX_EXTRAS; i++) {
        if (net->extras[i].at) {
            put(net->extras[i].at, net->stream);
        }
    }
    if (net->shared && option.ipc) {
        put_plain(net->shared);
    } else if (net->shared) {
        put(net->shared, net->stream);
    }
    if (net->helper) {
        helper_end(net);
    }
    if (net->scaled) {
        put(net->scaled, net->stream);
    }
    hidden_end(net);
    CHECK(cudaDeviceSynchronize());
    put(net->table, net->stream);
    put(net->side_sums, net->stream);
    CHECK(cudaStreamDestroy(net->side));
    CHECK(cudaStreamDestroy(net->captured));
    CHECK(cudaEventDestroy(net->event));
}

void more_before_forward(network *net)
{
    if (net->shared) {
        fill(net->shared, SHARED_BYTES, net->iteration, net->stream);
    }
    if (option.helper) {
        helper_ask(net);
    }
    if (option.info) {
        ask_memory();
    }
    if (is_turn(net, option.oom)) {
        out_of_memory(net);
    }
    if (is_turn(net, option.ask)) {
        ask_by_malloc(net);
    }
}

void more_after_layer(network *net, size_t layer)
{
    more_at_random(net);
    if (layer == 0 && option.side) {
        side_branch(net);
    }
    if (layer == 1 && option.table) {
        copy_table(net);
    }
    if (layer == 2 && option.grouped) {
        grouped(net);
    }
    if (layer == 3 && option.copies) {
        copies(net);
    }
}

void more_before_backward(network *net)
{
    if (option.side) {
        side_join(net);
    }
    if (option.helper) {
        helper_use(net, more_sum(net));
    }
    hidden_use(net, HIDDEN_PLAIN, more_sum(net), net->stream);
    hidden_use(net, HIDDEN_WRITE, more_sum(net), net->stream);
    if (option.table) {
        by_table(more_sum(net), net->table, 3, net->stream);
    }
    if (option.grouped > 1) {
        by_table(more_sum(net), net->table, 3, net->stream);
    }
}

void more_after_step(network *net)
{
    if (is_turn(net, option.unknown)) {
        unknown(net, "cuMemcpyFutureAsync");
    }
    if (is_turn(net, option.future)) {
        unknown(net, "cuFutureGatherAsync");
    }
    if (is_turn(net, option.reload)) {
        reload_kernels(more_sum(net), net->weights[0], net->weight_bytes[0], net->iteration / 2, net->stream);
    }
    if (net->reused) {
        reduce(more_sum(net), net->reused, workspace_bytes(0, 16), net->stream);
    }
    if (option.byhand && is_turn(net, 4)) { /* between these, nothing but the graph's node uses it */
        reduce(more_sum(net), net->scaled, SHARED_BYTES, net->stream);
    }
    hidden_look(net, more_sum(net));
    if (option.buffer) {
        reduce_by_buffer(more_sum(net), net->weights[1], net->weight_bytes[1], net->stream);
    }
    if (is_turn(net, option.trim)) {
        trim();
    }
    if (net->shared) {
        CHECK(cudaStreamSynchronize(net->stream));
        net->more = net->more * 31 + read_shared(net);
    }
}
