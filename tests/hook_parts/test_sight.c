/* One call seen: which blocks it uses, and what comes of it before and after. Calls are made up, with the arguments that CUPTI
 * would give; the device is the simulated one, told of the work as the cuda one is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/core.h"
#include "hook_parts/capture.h"
#include "testing.h"

enum { PAGE = 4096, N_STREAMS = 2, MOST_PARAMETERS = 4 };

/* ---- doubles ---- */

np_hook np_the_hook; /* core.c and its like are left out */
NP_HOOK_THREAD bool np_hook_is_copier;
static const char *stepped_aside;

const char np_hook_peers[] = "peers";

void np_hook_step_aside(const char *why)
{
    stepped_aside = why;
}

neap_status np_hook_lane(np_hook_device *device, void *stream, np_stream *lane)
{
    (void)device;
    *lane = (np_stream)((uintptr_t)stream % N_STREAMS);
    return NEAP_OK;
}

/* Kernels are told by their numbers: parameters of 8 bytes each but the last, which has 24; the unknown one by an error. */
static const uintptr_t unknown_kernel = 0x500;

static np_cu_result kernel_parameter(np_cu_kernel kernel, size_t index, size_t *offset, size_t *bytes)
{
    if ((uintptr_t)kernel == unknown_kernel) {
        return NP_CU_UNKNOWN;
    }
    *offset = 8 * index;
    *bytes = index + 1 == MOST_PARAMETERS ? 24 : 8;
    return index < MOST_PARAMETERS ? NP_CU_SUCCESS : NP_CU_INVALID_VALUE;
}

static np_cu_capture_status capture_status;
static void *captured_stream; /* NULL: any */

static np_cu_result is_capturing(np_cu_stream stream, np_cu_capture_status *status)
{
    *status = !captured_stream || captured_stream == (void *)stream ? capture_status : NP_CU_CAPTURE_NONE;
    return NP_CU_SUCCESS;
}

/* ---- the device ---- */

static np_device_interface api;
static uint32_t n_begun;
static uint32_t n_asked; /* whether work is done: on cuda, an event between two kernels */
static bool (*real_is_done)(const np_device *device, np_stream stream, uint64_t mark);

static void note_begin(np_device *device, np_stream stream, np_times *times)
{
    (void)device;
    (void)stream;
    if (times) {
        *times = (np_times){1, 1};
    }
    n_begun++;
}

static uint64_t note_end(np_device *device, np_stream stream)
{
    np_task task = {.duration_ns = 20000};
    uint64_t mark = 0;
    ASSERT_OK(device->api->launch(device, stream, &task, &mark));
    return mark;
}

static np_stream left_lane; /* whose stream is about to go */

static neap_status note_adopt(np_device *device, np_stream stream, void *native)
{
    (void)device;
    left_lane = native ? left_lane : stream;
    return NEAP_OK;
}

static bool note_is_done(const np_device *device, np_stream stream, uint64_t mark)
{
    n_asked++;
    return real_is_done(device, stream, mark);
}

typedef struct scene {
    np_device *raw;
    np_hook_device device;
} scene;

static void open_scene(scene *s, uint64_t limit)
{
    neap_device_options options = {.limit = limit, .min_block = PAGE, .plan_seconds = 10, .refinements = UINT32_MAX};
    memset(s, 0, sizeof *s);
    np_the_hook.driver.kernel_parameter = kernel_parameter;
    np_the_hook.driver.stream_is_capturing = is_capturing;
    capture_status = NP_CU_CAPTURE_NONE;
    stepped_aside = NULL;
    ASSERT_OK(np_device_open("sim:page=4096,memory=4MiB,streams=2,link=4GB/s", NULL, NULL, &s->raw));
    api = *s->raw->api;
    real_is_done = api.is_done;
    api.begin = note_begin;
    api.end = note_end;
    api.adopt = note_adopt;
    api.is_done = note_is_done;
    s->raw->api = &api;
    ASSERT_OK(np_manager_open(s->raw, &options, NULL, &s->device.manager));
    s->device.manager->learner.learns_at_once = true;
    np_beneath_begin(s->device.manager, 0, 0);
    np_hook_index_init(&s->device.index, &np_memory_default);
    np_hook_kernels_init(&s->device.kernels, &np_memory_default);
    np_hook_recall_init(&s->device.recall, &np_memory_default);
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_manager_is_valid(s->device.manager));
    ASSERT_TRUE(np_hook_kernels_is_valid(&s->device.kernels));
    np_array_free(s->device.manager->memory, &s->device.uses);
    np_array_free(s->device.manager->memory, &s->device.hits);
    np_array_free(s->device.manager->memory, &s->device.graphs);
    np_array_free(s->device.manager->memory, &s->device.kept);
    np_hook_index_free(&s->device.index);
    np_hook_kernels_forget(&s->device.kernels);
    np_hook_recall_free(&s->device.recall);
    neap_close(s->device.manager);
}

static neap_block *make(scene *s, uint64_t bytes)
{
    np_hook_entry entry = {0};
    ASSERT_OK(np_malloc_locked(s->device.manager, bytes, &entry.block));
    entry.begin = entry.block->address;
    entry.end = entry.begin + bytes;
    ASSERT_OK(np_hook_index_add(&s->device.index, &entry));
    return entry.block;
}

static void drop(scene *s, neap_block *block)
{
    np_hook_entry entry;
    ASSERT_TRUE(np_hook_index_remove(&s->device.index, block->address, &entry));
    ASSERT_OK(np_free_locked(s->device.manager, block));
}

/* ---- calls ---- */

static void call_before(scene *s, const char *name, const void *parameters, const char *symbol)
{
    bool per_thread;
    const np_hook_call *call = np_hook_call_find(name, &per_thread);
    np_cupti_data data = {.function_name = name, .parameters = parameters, .symbol_name = symbol};
    ASSERT_TRUE(call != NULL);
    np_hook_see_before(&s->device, call, per_thread, &data);
}

static int call_result; /* what the driver says of it */

static void call_after(scene *s, const char *name, const void *parameters)
{
    bool per_thread;
    int result = call_result;
    const np_hook_call *call = np_hook_call_find(name, &per_thread);
    np_cupti_data data = {.site = 1, .function_name = name, .parameters = parameters, .result = &result};
    np_hook_see_after(&s->device, call, per_thread, &data);
}

static void call_whole(scene *s, const char *name, const void *parameters)
{
    call_before(s, name, parameters, NULL);
    call_after(s, name, parameters);
}

/* cuLaunchKernel's arguments, and room for its parameters. */
typedef struct launch {
    struct {
        void *function;
        unsigned int numbers[8];
        void *stream;
        void **parameters;
        void **extra;
    } arguments;
    void *pointers[MOST_PARAMETERS];
    uint64_t words[MOST_PARAMETERS + 2];
} launch;

static void make_launch(launch *l, uintptr_t kernel)
{
    memset(l, 0, sizeof *l);
    l->arguments.function = (void *)kernel;
    l->arguments.parameters = l->pointers;
    for (int i = 0; i < MOST_PARAMETERS; i++) {
        l->pointers[i] = &l->words[i];
    }
}

static void give(scene *s, launch *l, const char *symbol)
{
    call_before(s, "cuLaunchKernel", &l->arguments, symbol);
    call_after(s, "cuLaunchKernel", &l->arguments);
}

static uint64_t word_of(const neap_block *block, uint64_t offset)
{
    return (uint64_t)(uintptr_t)block->address + offset;
}

static bool uses(const scene *s, const neap_block *block, neap_access_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < s->device.uses.n; i++) {
        n += s->device.uses.items[i].block == block && s->device.uses.items[i].kind == kind;
        ASSERT_LE(n, 1);
    }
    return n == 1;
}

/* ---- launches ---- */

static void test_parameters(void **state)
{
    scene s;
    launch l;
    neap_block *a;
    neap_block *b;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 3 * PAGE);
    b = make(&s, 2 * PAGE);
    make_launch(&l, 0x100);
    l.words[0] = word_of(a, 0);
    l.words[1] = word_of(a, 5000); /* the same one again */
    l.words[4] = word_of(b, 2 * PAGE - 1);
    l.words[5] = word_of(b, 2 * PAGE); /* behind its end */
    give(&s, &l, "gemm");
    ASSERT_EQ(s.device.uses.n, 2);
    ASSERT_TRUE(uses(&s, a, NEAP_ACCESS_UNKNOWN));
    ASSERT_TRUE(uses(&s, b, NEAP_ACCESS_UNKNOWN));
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    ASSERT_EQ(s.device.facts.n_launches, 1);
    close_scene(&s);
}

/* Parameters in one buffer. */
static void test_buffer(void **state)
{
    scene s;
    launch l;
    neap_block *a;
    size_t bytes = sizeof l.words;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 3 * PAGE);
    make_launch(&l, unknown_kernel);
    void *extra[] = {(void *)1, l.words, (void *)2, &bytes, NULL};
    l.arguments.parameters = NULL;
    l.arguments.extra = extra;
    l.words[5] = word_of(a, 8);
    give(&s, &l, "gemm");
    ASSERT_TRUE(uses(&s, a, NEAP_ACCESS_UNKNOWN));
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    close_scene(&s);
}

static void fill_away(scene *s, neap_block **blocks)
{
    launch l;
    for (int i = 0; i < 3; i++) {
        blocks[i] = make(s, 3 * PAGE);
        make_launch(&l, 0x100);
        l.words[0] = word_of(blocks[i], 0);
        give(s, &l, "fill");
    }
    ASSERT_FALSE(np_block_is_here(blocks[0]));
}

/* A kernel of which nothing is known, and calls that are not: everything is home before them, and all work done. */
static void test_blind(void **state)
{
    uint64_t nothing[16] = {0};
    (void)state;
    for (int i = 0; i < 3; i++) {
        scene s;
        launch l;
        neap_block *blocks[3];
        open_scene(&s, 7 * PAGE);
        fill_away(&s, blocks);
        if (i == 0) {
            make_launch(&l, unknown_kernel);
            call_before(&s, "cuLaunchKernel", &l.arguments, "stranger");
        } else {
            call_before(&s, i == 1 ? "cuNobodyKnows" : "cuGraphLaunch", nothing, NULL);
        }
        ASSERT_EQ(s.device.facts.n_unknown, 1);
        for (int k = 0; k < 3; k++) {
            ASSERT_TRUE(np_block_is_here(blocks[k]));
        }
        for (np_stream k = 0; k < N_STREAMS; k++) {
            ASSERT_TRUE(real_is_done(s.raw, k, s.raw->api->mark(s.raw, k)));
        }
        call_after(&s,
                   i == 0   ? "cuLaunchKernel"
                   : i == 1 ? "cuNobodyKnows"
                            : "cuGraphLaunch",
                   i == 0 ? (const void *)&l.arguments : nothing);
        close_scene(&s);
    }
}

enum { N_LAYERS = 15, WITH_BLIND };

static void blind_call(scene *s, neap_block *const *blocks, size_t n)
{
    uint64_t nothing[16] = {0};
    call_before(s, "cuNobodyKnows", nothing, NULL);
    ASSERT_NE(s->device.manager->state, NEAP_STATE_RUN);
    for (size_t i = 0; i < n; i++) {
        ASSERT_TRUE(np_block_is_here(blocks[i]));
    }
    call_after(s, "cuNobodyKnows", nothing);
}

/* A plan begins after the last free of an iteration, and has some blocks away there. Where that place is a call of which
 * nothing is known, the plan is not entered with it. */
static void test_blind_start(void **state)
{
    uint32_t n_on_plan = 0;
    (void)state;
    for (int last = 1; last < WITH_BLIND; last++) { /* the free comes after this one: the call is next, or later */
        scene s;
        launch l;
        neap_block *blocks[N_LAYERS / 3];
        char name[32];
        open_scene(&s, 9 * PAGE);
        for (int i = 0; i < N_LAYERS / 3; i++) {
            blocks[i] = make(&s, 3 * PAGE);
        }
        for (int i = 0; i < 20 * WITH_BLIND; i++) {
            int at = i % WITH_BLIND;
            if (at == 0) {
                blind_call(&s, blocks, N_LAYERS / 3);
                continue;
            }
            make_launch(&l, 0x100 + 8 * (uintptr_t)at);
            l.words[0] = word_of(blocks[(at - 1) / 3], 0);
            (void)snprintf(name, sizeof name, "layer%d", at);
            give(&s, &l, name);
            n_on_plan += s.device.manager->state == NEAP_STATE_RUN;
            if (at == last) {
                neap_block *block = make(&s, 3 * PAGE);
                l.words[0] = word_of(block, 0);
                give(&s, &l, name);
                drop(&s, block);
            }
        }
        ASSERT_GT(s.device.manager->patterns.n, 0);
        close_scene(&s);
    }
    ASSERT_GT(n_on_plan, 100);
}

/* The default stream of a thread is one that others cannot name. */
static void test_thread_stream(void **state)
{
    scene s;
    launch l;
    (void)state;
    open_scene(&s, 0);
    make_launch(&l, 0x100);
    call_before(&s, "cuLaunchKernel_ptsz", &l.arguments, "gemm");
    ASSERT_EQ(s.device.facts.n_unknown, 1);
    call_after(&s, "cuLaunchKernel_ptsz", &l.arguments);
    l.arguments.stream = (void *)0x40;
    call_before(&s, "cuLaunchKernel_ptsz", &l.arguments, "gemm");
    ASSERT_EQ(s.device.facts.n_unknown, 1); /* a stream of its own is as good as any */
    call_after(&s, "cuLaunchKernel_ptsz", &l.arguments);
    l.arguments.stream = NP_HOOK_LEGACY;
    call_before(&s, "cuLaunchKernel_ptsz", &l.arguments, "gemm");
    ASSERT_EQ(s.device.facts.n_unknown, 1); /* and so is the one that all share */
    call_after(&s, "cuLaunchKernel_ptsz", &l.arguments);
    l.arguments.stream = NP_HOOK_OWN; /* by name: another one in each thread */
    give(&s, &l, "gemm");
    ASSERT_EQ(s.device.facts.n_unknown, 2);
    for (np_stream i = 0; i < NP_MAX_STREAMS; i++) {
        ASSERT_TRUE(s.device.streams[i] != NP_HOOK_OWN);
    }
    close_scene(&s);
}

/* It can be captured, too: nothing is given to it then, and the graph is one that may use anything. */
static void test_thread_stream_captured(void **state)
{
    scene s;
    launch l;
    void *graph = (void *)0x50;
    void *none = NULL;
    (void)state;
    open_scene(&s, 0);
    call_whole(&s, "cuStreamBeginCapture_v2_ptsz", &none);
    capture_status = NP_CU_CAPTURE_ACTIVE;
    captured_stream = NP_HOOK_OWN;
    n_begun = 0;
    make_launch(&l, 0x100);
    call_before(&s, "cuLaunchKernel_ptsz", &l.arguments, "gemm");
    call_after(&s, "cuLaunchKernel_ptsz", &l.arguments);
    ASSERT_EQ(n_begun, 0);
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    capture_status = NP_CU_CAPTURE_NONE;
    captured_stream = NULL;
    struct {
        void *stream;
        void **graph;
    } ended = {NP_HOOK_OWN, &graph}; /* named now, and the same */
    call_whole(&s, "cuStreamEndCapture", &ended);
    ASSERT_EQ(s.device.n_captures, 0);
    ASSERT_EQ(s.device.graphs.n, 1);
    ASSERT_TRUE(s.device.graphs.items[0].handle == graph);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, graph));
    call_whole(&s, "cuGraphDestroy", &graph);
    close_scene(&s);
}

/* Kernels name a texture, and not the block that it is of: that stays. */
static void test_textures(void **state)
{
    scene s;
    neap_block *blocks[4];
    uint64_t object = 0;
    (void)state;
    open_scene(&s, 0);
    for (int i = 0; i < 4; i++) {
        blocks[i] = make(&s, 2 * PAGE);
    }
    uint64_t description[18] = {2, word_of(blocks[0], PAGE)}; /* CUDA_RESOURCE_DESC of linear memory */
    struct {
        uint64_t *made;
        const void *description;
        const void *rest[2];
    } create = {&object, description, {NULL, NULL}};
    call_whole(&s, "cuTexObjectCreate", &create);
    ASSERT_TRUE(blocks[0]->is_fixed && !blocks[1]->is_fixed);
    struct {
        size_t *offset;
        void *texture;
        uint64_t address;
        size_t bytes;
    } set = {NULL, NULL, word_of(blocks[1], 0), PAGE};
    call_whole(&s, "cuTexRefSetAddress_v2", &set);
    ASSERT_TRUE(blocks[1]->is_fixed && !blocks[2]->is_fixed);
    set.address = word_of(blocks[2], 0);
    call_whole(&s, "cuTexRefSetAddress2D_v3", &set);
    ASSERT_TRUE(blocks[2]->is_fixed && !blocks[3]->is_fixed);
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    close_scene(&s);
}

/* Kernels that pass addresses on; tables of addresses that are copied in. */
static void test_fixing(void **state)
{
    scene s;
    launch l;
    neap_block *a;
    neap_block *b;
    neap_block *c;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 3 * PAGE);
    b = make(&s, 3 * PAGE);
    c = make(&s, 3 * PAGE);
    make_launch(&l, 0x100);
    l.words[0] = word_of(a, 0);
    give(&s, &l, "ncclDevKernel_AllReduce");
    ASSERT_TRUE(a->is_fixed && !b->is_fixed);
    uint64_t table[4] = {7, word_of(b, 100), 0, 0};
    struct {
        uint64_t to;
        const void *from;
        size_t bytes;
        void *stream;
    } copy = {word_of(c, 0), table, sizeof table, NULL};
    call_whole(&s, "cuMemcpyHtoDAsync_v2", &copy);
    ASSERT_TRUE(b->is_fixed && !c->is_fixed);
    close_scene(&s);
}

/* ---- a copy that fails ---- */

static neap_status fail_copy(np_device *of, np_stream stream, char *to, const char *from, uint64_t bytes,
                             uint64_t *mark)
{
    (void)of;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    (void)mark;
    return NEAP_DEVICE_FAILED;
}

/* In a child, since the call does not come back. */
static void die_of(scene *s, const neap_block *away, bool is_blind)
{
    uint64_t nothing[16] = {0};
    launch l;
    pid_t child = fork();
    int status = 0;
    ASSERT_GE(child, 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        api.copy = fail_copy;
        make_launch(&l, 0x200);
        l.words[0] = word_of(away, 0);
        if (is_blind) {
            call_before(s, "cuNobodyKnows", nothing, NULL);
        } else {
            call_before(s, "cuLaunchKernel", &l.arguments, "third");
        }
        _exit(0);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* A block must leave for a kernel, and its copy fails; or a block must come home, and does not: the kernel would read other
 * bytes than the program's. The process ends, and says of what. */
static void test_copy_fails(void **state)
{
    (void)state;
    for (int is_blind = 0; is_blind < 2; is_blind++) {
        scene s;
        neap_block *blocks[3];
        stderr_capture capture;
        char text[1024];
        open_scene(&s, 7 * PAGE);
        fill_away(&s, blocks);
        capture = capture_begin();
        die_of(&s, blocks[0], is_blind);
        capture_end(&capture, text, sizeof text);
        ASSERT_CONTAINS(
            text, is_blind ? "neap: cuda:0: not everything could be brought home before cuNobodyKnows: going on would "
                             "be wrong\n"
                           : "neap: cuda:0: the blocks of third could not be brought to the device: the device "
                             "failed\n");
        close_scene(&s);
    }
}

/* ---- tables of addresses ---- */

enum { TABLE_WORDS = (1 << 20) / 8 };

static uint64_t table[TABLE_WORDS + 1];
static np_cu_result attribute_result;
static unsigned int attribute_type;

static np_cu_result pointer_attribute(void *data, np_cu_pointer_attribute attribute, np_cu_address address)
{
    ASSERT_EQ(attribute, NP_CU_POINTER_MEMORY_TYPE);
    ASSERT_EQ(address, (np_cu_address)(uintptr_t)table);
    memcpy(data, &attribute_type, sizeof attribute_type);
    return attribute_result;
}

/* A way to copy a table, and whether what the table names is fixed by it. */
typedef struct way {
    const char *call;
    size_t words; /* that are copied: the last of them is the address */
    int result;   /* the driver's answer to where the table is: np_cu_result, */
    unsigned int type;
    bool is_without; /* a driver that cannot be asked */
    bool is_fixing;
} way;

/* clang-format off */
static const way ways[] = {
    {"cuMemcpyHtoDAsync_v2", 4,               0,                   0, false, true},
    {"cuMemcpyHtoD_v2",      4,               0,                   0, false, true},
    {"cuMemcpyHtoDAsync_v2", 1,               0,                   0, true,  true},
    {"cuMemcpyHtoDAsync_v2", TABLE_WORDS,     0,                   0, false, true},
    {"cuMemcpyHtoDAsync_v2", TABLE_WORDS + 1, 0,                   0, false, false}, /* data, not a table */
    {"cuMemcpyAsync",        4,               NP_CU_INVALID_VALUE, 0, false, true},  /* memory that nobody has registered */
    {"cuMemcpyAsync",        4,               0,                   1, false, true},  /* of the host */
    {"cuMemcpyAsync",        4,               0,                   2, false, false}, /* of a device */
    {"cuMemcpyAsync",        TABLE_WORDS,     0,                   1, false, true},
    {"cuMemcpy",             4,               0,                   1, false, true},
    {"cuMemcpyDtoHAsync_v2", 4,               0,                   1, false, false},
    {"cuMemcpyAsync",        4,               0,                   1, true,  false}, /* who could read it? */
    {NULL,                   4,               0,                   0, false, false},
};
/* clang-format on */

static void copy_table(scene *s, const way *w, neap_block *to, const neap_block *named)
{
    struct {
        uint64_t to;
        const void *from;
        size_t bytes;
        void *stream;
    } copy = {word_of(to, 0), table, 8 * w->words, NULL};
    attribute_result = (np_cu_result)w->result;
    attribute_type = w->type;
    np_the_hook.driver.pointer_attribute = w->is_without ? NULL : pointer_attribute;
    memset(table, 0, sizeof table);
    table[w->words - 1] = word_of(named, 3 * PAGE - 8);
    if (w->call) {
        call_whole(s, w->call, &copy);
    }
    np_the_hook.driver.pointer_attribute = NULL;
}

/* Is the block there? On the plan, the plan knows. */
static bool is_there(const scene *s, const neap_block *block)
{
    const neap_device *m = s->device.manager;
    const np_pattern *pattern = m->state == NEAP_STATE_RUN ? m->pattern : NULL;
    for (uint32_t i = 0; pattern && block->life != NP_NO_LIFE && i < pattern->program.swaps.n; i++) {
        if (pattern->program.swaps.items[i].life == block->life && pattern->is_out[i]) {
            return false;
        }
    }
    return pattern || np_block_is_here(block);
}

/* Iterations under a limit, off the plan and on it. True: the block was there all the time. */
static bool stays(scene *s, neap_block *const *blocks, const neap_block *block, bool *has_swapped)
{
    bool was_there = true;
    for (int i = 0; i < 20 * N_LAYERS; i++) {
        int at = i % N_LAYERS;
        char name[32];
        launch l;
        make_launch(&l, 0x100 + 8 * (uintptr_t)at);
        l.words[0] = word_of(blocks[at / 3], 0);
        (void)snprintf(name, sizeof name, "layer%d", at);
        give(s, &l, name);
        if (at == N_LAYERS - 1) {
            neap_block *other = make(s, 3 * PAGE);
            l.words[0] = word_of(other, 0);
            give(s, &l, name);
            drop(s, other);
        }
        was_there &= is_there(s, block);
        *has_swapped |= s->device.manager->state == NEAP_STATE_RUN && s->device.manager->pattern->program.swaps.n > 0;
    }
    return was_there;
}

/* What a table names that was copied in never leaves again; without such a copy it does. */
static void test_tables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        scene s;
        neap_block *blocks[N_LAYERS / 3];
        neap_block *target;
        bool has_swapped = false;
        open_scene(&s, 12 * PAGE + 257 * PAGE);
        target = make(&s, 257 * PAGE); /* where the table goes to: one MiB and more */
        ASSERT_OK(np_beneath_fix(s.device.manager, target, false));
        for (int k = 0; k < N_LAYERS / 3; k++) {
            blocks[k] = make(&s, 3 * PAGE);
        }
        copy_table(&s, &ways[i], target, blocks[1]);
        ASSERT_EQ(blocks[1]->is_fixed, ways[i].is_fixing);
        ASSERT_FALSE(blocks[0]->is_fixed || blocks[2]->is_fixed);
        ASSERT_EQ(s.device.facts.n_unknown, 0);
        ASSERT_EQ(stays(&s, blocks, blocks[1], &has_swapped), ways[i].is_fixing);
        ASSERT_TRUE(has_swapped);
        close_scene(&s);
    }
}

/* What is away comes back for the table, and stays. */
static void test_table_of_absent(void **state)
{
    scene s;
    neap_block *blocks[3];
    neap_block *small;
    (void)state;
    open_scene(&s, 8 * PAGE);
    small = make(&s, PAGE);
    fill_away(&s, blocks);
    copy_table(&s, &ways[0], small, blocks[0]);
    ASSERT_TRUE(blocks[0]->is_fixed && np_block_is_here(blocks[0]));
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    close_scene(&s);
}

/* ---- copies ---- */

static void test_copies(void **state)
{
    scene s;
    neap_block *a;
    neap_block *b;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 2 * PAGE);
    b = make(&s, 2 * PAGE);
    struct {
        uint64_t to;
        uint64_t from;
        size_t bytes;
        void *stream;
    } copy = {word_of(a, 0), word_of(b, 0), 2 * PAGE, NULL};
    call_whole(&s, "cuMemcpyDtoDAsync_v2", &copy);
    ASSERT_TRUE(uses(&s, a, NEAP_ACCESS_WRITE) && uses(&s, b, NEAP_ACCESS_READ));
    copy.bytes--; /* one byte is kept */
    call_whole(&s, "cuMemcpyDtoDAsync_v2", &copy);
    ASSERT_TRUE(uses(&s, a, NEAP_ACCESS_UNKNOWN));
    copy.from = word_of(a, PAGE);
    copy.bytes = PAGE;
    call_whole(&s, "cuMemcpyDtoDAsync_v2", &copy);
    ASSERT_TRUE(s.device.uses.n == 1 && uses(&s, a, NEAP_ACCESS_UNKNOWN)); /* within one block */
    struct {
        uint64_t to;
        unsigned char value;
        size_t n;
        void *stream;
    } set = {word_of(b, 0), 0, 2 * PAGE, NULL};
    call_whole(&s, "cuMemsetD8Async", &set);
    ASSERT_TRUE(uses(&s, b, NEAP_ACCESS_WRITE));
    call_whole(&s, "cuMemsetD32Async", &set); /* how many bytes that is, is not looked at */
    ASSERT_TRUE(uses(&s, b, NEAP_ACCESS_UNKNOWN));
    uint64_t described[25] = {0};
    const void *pointer = described;
    described[15] = word_of(a, 1);
    described[3] = word_of(b, 1);
    call_whole(&s, "cuMemcpy2DUnaligned_v2", &pointer);
    ASSERT_TRUE(uses(&s, a, NEAP_ACCESS_UNKNOWN) && uses(&s, b, NEAP_ACCESS_UNKNOWN));
    close_scene(&s);
}

/* ---- others ---- */

static void test_others_hold(void **state)
{
    scene s;
    neap_block *a;
    char handle[64];
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 2 * PAGE);
    struct {
        void *handle;
        uint64_t address;
    } export = {handle, word_of(a, 0)};
    call_whole(&s, "cuIpcGetMemHandle", &export);
    ASSERT_TRUE(a->is_fixed && a->is_exported && np_block_is_here(a));
    ASSERT_TRUE(stepped_aside == NULL);
    call_whole(&s, "cuCtxEnablePeerAccess", &export);
    ASSERT_TRUE(stepped_aside != NULL);
    close_scene(&s);
}

/* Captured work is not given, and what it names stays. */
static void test_captured(void **state)
{
    scene s;
    launch l;
    neap_block *a;
    uint64_t n_events;
    void *stream = (void *)0x40;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 2 * PAGE);
    call_whole(&s, "cuStreamBeginCapture_v2", &stream);
    capture_status = NP_CU_CAPTURE_ACTIVE;
    n_begun = 0;
    n_events = s.device.manager->stats.n_events;
    make_launch(&l, 0x100);
    l.words[0] = word_of(a, 0);
    l.arguments.stream = stream;
    give(&s, &l, "gemm");
    ASSERT_TRUE(a->is_fixed);
    ASSERT_EQ(n_begun, 0);
    ASSERT_EQ(s.device.manager->stats.n_events, n_events);
    make_launch(&l, unknown_kernel); /* its graph may touch anything: it is none that is known */
    l.arguments.stream = stream;
    give(&s, &l, "stranger");
    np_hook_capture_end(&s.device, stream, (void *)0x50);
    np_hook_graph_instantiate(&s.device, (void *)0x50, (void *)0x60);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, (void *)0x60));
    np_hook_graph_destroy(&s.device, (void *)0x50);
    np_hook_graph_destroy(&s.device, (void *)0x60);
    capture_status = NP_CU_CAPTURE_NONE;
    close_scene(&s);
}

/* A capture that could not begin is none, nor is one whose stream is gone. */
static void test_capture_without_end(void **state)
{
    scene s;
    void *stream = (void *)0x40;
    void *other = (void *)0x48;
    (void)state;
    open_scene(&s, 0);
    call_result = 1;
    call_whole(&s, "cuStreamBeginCapture_v2", &stream);
    call_result = 0;
    ASSERT_EQ(s.device.n_captures, 0);
    ASSERT_EQ(s.device.graphs.n, 0);
    call_whole(&s, "cuStreamBeginCapture_v2", &stream);
    call_whole(&s, "cuStreamBeginCapture_v2", &other);
    call_whole(&s, "cuStreamDestroy_v2", &stream);
    ASSERT_EQ(s.device.n_captures, 1);
    ASSERT_TRUE(np_hook_has_capture(&s.device, other) && !np_hook_has_capture(&s.device, stream));
    np_hook_capture_end(&s.device, other, (void *)0x50);
    ASSERT_EQ(s.device.n_captures, 0);
    call_whole(&s, "cuStreamDestroy_v2", &other);
    ASSERT_EQ(s.device.graphs.n, 1); /* that one is a graph by now */
    np_hook_graph_destroy(&s.device, (void *)0x50);
    close_scene(&s);
}

/* Graphs made of graphs, node by node, and by calls of which nothing is known: which of them are known. */
static void test_made_graphs(void **state)
{
    scene s;
    neap_block *a;
    launch l;
    void *graph = (void *)0x70;
    void *child = (void *)0x50;
    void *stream = (void *)0x40;
    void *node = NULL;
    (void)state;
    open_scene(&s, 0);
    a = make(&s, 2 * PAGE);
    call_whole(&s, "cuStreamBeginCapture_v2", &stream);
    capture_status = NP_CU_CAPTURE_ACTIVE;
    make_launch(&l, 0x100);
    l.words[0] = word_of(a, 0);
    l.arguments.stream = stream;
    give(&s, &l, "gemm");
    np_hook_capture_end(&s.device, stream, child);
    struct {
        void **made;
        unsigned int flags;
    } create = {&graph, 0};
    call_whole(&s, "cuGraphCreate", &create);
    struct {
        void **node;
        void *graph;
        const void *after;
        size_t n_after;
        const void *child;
    } add = {&node, graph, NULL, 0, child};
    call_whole(&s, "cuGraphAddChildGraphNode", &add);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, graph));
    call_whole(&s, "cuGraphDestroy", &child);
    ASSERT_TRUE(np_hook_capture_free(&s.device, a)); /* the graph around it has it still */
    ASSERT_EQ(s.device.kept.n, 1);
    /* a launch that is captured */
    call_whole(&s, "cuStreamBeginCapture_v2", &stream);
    struct {
        void *graph;
        void *stream;
    } launched = {graph, stream};
    call_whole(&s, "cuGraphLaunch", &launched);
    np_hook_capture_end(&s.device, stream, (void *)0x80);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, (void *)0x80));
    ASSERT_EQ(s.device.facts.n_unknown, 0);
    /* what is built by hand */
    call_whole(&s, "cuGraphAddKernelNode_v2", &add);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, graph));
    call_whole(&s, "cuGraphDestroy", &graph);
    ASSERT_EQ(s.device.kept.n, 1);
    /* what nobody knows, and what has the name alone */
    call_whole(&s, "cuGraphicsMapResources", &add);
    ASSERT_TRUE(np_hook_graph_is_known(&s.device, (void *)0x80));
    call_whole(&s, "cuGraphKernelNodeSetParams_v2", &add);
    ASSERT_FALSE(np_hook_graph_is_known(&s.device, (void *)0x80));
    np_hook_graph_destroy(&s.device, (void *)0x80);
    ASSERT_EQ(s.device.kept.n, 0);
    capture_status = NP_CU_CAPTURE_NONE;
    close_scene(&s);
}

/* A module is unloaded: what is known of kernels is not true any more. */
static void test_unload(void **state)
{
    scene s;
    launch l;
    void *module = &s;
    (void)state;
    open_scene(&s, 0);
    make_launch(&l, 0x100);
    give(&s, &l, "gemm");
    ASSERT_EQ(s.device.kernels.n, 1);
    call_whole(&s, "cuModuleUnload", &module);
    ASSERT_EQ(s.device.kernels.n, 0);
    close_scene(&s);
}

/* A stream goes: the end of its work is recorded while it is there, and its lane is free. */
static void test_stream_destroy(void **state)
{
    scene s;
    void *stream = (void *)0x40;
    (void)state;
    open_scene(&s, 0);
    s.device.streams[3] = stream;
    s.device.streams[4] = (void *)0x50;
    left_lane = NP_MAX_STREAMS;
    call_whole(&s, "cuStreamDestroy_v2", &stream);
    ASSERT_EQ(left_lane, 3);
    ASSERT_TRUE(s.device.streams[3] == NULL);
    ASSERT_TRUE(s.device.streams[4] == (void *)0x50);
    close_scene(&s);
}

/* ---- programmatic launches ---- */

/* CUlaunchConfig, and one attribute of it. */
typedef struct config {
    unsigned int numbers[7];
    unsigned int gap;
    void *stream;
    const void *attributes;
    unsigned int n_attributes;
} config;

static void launch_ex(scene *s, launch *l, bool is_programmatic)
{
    uint64_t attribute[9] = {0};
    uint32_t id = 6;
    uint32_t value = is_programmatic;
    config c = {.attributes = attribute, .n_attributes = 1};
    struct {
        const config *config;
        void *function;
        void **parameters;
        void **extra;
    } arguments = {&c, l->arguments.function, l->pointers, NULL};
    memcpy(attribute, &id, sizeof id);
    memcpy(&attribute[1], &value, sizeof value);
    n_asked = 0;
    call_before(s, "cuLaunchKernelEx", &arguments, "ex");
    is_programmatic = n_asked > 0;
    call_after(s, "cuLaunchKernelEx", &arguments);
    n_asked = is_programmatic;
}

/* On the plan, bytes are used again in the order of a stream: before a launch that may begin before the one in front of it
 * has ended there is an event; before others there is none. */
static void test_programmatic(void **state)
{
    scene s;
    neap_block *weight;
    uint32_t n_on_plan = 0;
    (void)state;
    open_scene(&s, 0);
    weight = make(&s, 2 * PAGE);
    for (int lap = 0; lap < 40 && n_on_plan < 12; lap++) {
        neap_block *block = make(&s, 3 * PAGE);
        launch l;
        make_launch(&l, 0x100);
        l.words[0] = word_of(block, 0);
        l.words[1] = word_of(weight, 0);
        give(&s, &l, "first");
        if (s.device.manager->state == NEAP_STATE_RUN) { /* with swaps there are views onto bytes of others */
            s.device.manager->pattern->program.swaps.n = n_on_plan % 3 == 2 ? 0 : 1;
        }
        launch_ex(&s, &l, lap % 2 == 0);
        if (s.device.manager->state == NEAP_STATE_RUN) {
            s.device.manager->pattern->program.swaps.n = 0;
            ASSERT_EQ(n_asked > 0, lap % 2 == 0 && n_on_plan % 3 != 2);
            n_on_plan++;
        }
        drop(&s, block);
    }
    ASSERT_EQ(n_on_plan, 12);
    close_scene(&s);
}

/* Where something was freed since work last began after all before it, there is one too; a launch that failed has begun after
 * nothing. */
static void test_early(void **state)
{
    scene s;
    launch l;
    (void)state;
    open_scene(&s, 0);
    make_launch(&l, 0x100);
    l.words[0] = word_of(make(&s, 2 * PAGE), 0);
    give(&s, &l, "first");
    launch_ex(&s, &l, true);
    ASSERT_EQ(n_asked, 0);
    s.device.n_frees++;
    launch_ex(&s, &l, false);
    ASSERT_EQ(n_asked, 0);
    launch_ex(&s, &l, true); /* after that one */
    ASSERT_EQ(n_asked, 0);
    s.device.n_frees++;
    launch_ex(&s, &l, true);
    ASSERT_GT(n_asked, 0);
    launch_ex(&s, &l, true);
    ASSERT_EQ(n_asked, 0);
    s.device.n_frees++;
    call_result = 1;
    give(&s, &l, "first");
    call_result = 0;
    launch_ex(&s, &l, true);
    ASSERT_GT(n_asked, 0);
    s.device.n_frees++;
    give(&s, &l, "first");
    launch_ex(&s, &l, true);
    ASSERT_EQ(n_asked, 0);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_thread_stream),
        cmocka_unit_test(test_fixing),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_others_hold),
        cmocka_unit_test(test_textures),
        cmocka_unit_test(test_thread_stream_captured),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_unload),
        cmocka_unit_test(test_blind_start),
        cmocka_unit_test(test_made_graphs),
        cmocka_unit_test(test_programmatic),
        cmocka_unit_test(test_stream_destroy),
        cmocka_unit_test(test_copy_fails),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_table_of_absent),
        cmocka_unit_test(test_early),
        cmocka_unit_test(test_capture_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
