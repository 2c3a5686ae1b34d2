/* malloc and free of a program: while a stream is captured, once neap has stepped aside, and where it is a question. The
 * device is the simulated one; the driver is a double that says what it was asked, and fails on demand. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/faulty.h"
#include "hook/core.h"
#include "hook_parts/capture.h"
#include "testing.h"

/* What stands in front of the runtime's functions: it looks for them where the test says. */
static void *find_double(void *handle, const char *name);

#define dlsym find_double
#include "hook/runtime.c"
#undef dlsym

enum { PAGE = 4096, ERROR_MEMORY = 2 };

/* ---- doubles ---- */

np_hook np_the_hook; /* core.c and its like are left out */
NP_HOOK_THREAD bool np_hook_is_inside;
NP_HOOK_THREAD np_hook_device *np_hook_held;
NP_HOOK_THREAD bool np_hook_is_copier;

static np_hook_device device;
static uint32_t n_pool_mallocs;
static uint32_t n_pool_frees;

np_hook_device *np_hook_device_get(int ordinal)
{
    ASSERT_EQ(ordinal, 0);
    return np_the_hook.aside ? NULL : &device;
}

bool np_hook_is_on(void)
{
    return true;
}

bool np_hook_is_over(void)
{
    return false;
}

int np_hook_only_device(void)
{
    return 0;
}

void np_hook_step_aside(const char *why)
{
    np_the_hook.aside = why;
}

neap_status np_hook_lane(np_hook_device *of, void *stream, np_stream *lane)
{
    (void)of;
    *lane = (np_stream)((uintptr_t)stream % 2);
    return NEAP_OK;
}

void np_hook_subscribe(void)
{
}

bool np_hook_watch_work(bool is_watched)
{
    (void)is_watched;
    fail();
    return false;
}

bool np_hook_is_pytorch(void)
{
    return false; /* all work is looked at */
}

int np_hook_pool_malloc(int ordinal, uint64_t bytes, void *stream, void **address)
{
    (void)ordinal;
    (void)bytes;
    (void)stream;
    *address = &n_pool_mallocs;
    n_pool_mallocs++;
    return 0;
}

bool np_hook_pool_has(const void *address)
{
    return address == &n_pool_mallocs;
}

static uint32_t n_looks; /* for PyTorch */

void np_hook_pytorch_look(const void *caller)
{
    ASSERT_TRUE(caller != NULL);
    n_looks++;
}

bool np_hook_pool_free(void *address, void *stream)
{
    (void)stream;
    n_pool_frees++;
    return address == &n_pool_mallocs;
}

/* ---- the driver ---- */

typedef struct driver_double {
    uint32_t n_pushes;
    uint32_t n_syncs;
    uint32_t n_pops;
    uint32_t n_passed; /* requests to the runtime */
    np_cu_result push; /* what the calls return */
    np_cu_result sync;
    np_cu_result info;
    uint64_t free_bytes; /* of the device */
    uint64_t live;       /* bytes of blocks when work was waited for */
    void *capturing;     /* NULL: no stream is */
} driver_double;

static driver_double driver;

static np_cu_result push(np_cu_context context)
{
    ASSERT_TRUE(context == (void *)0x77);
    driver.n_pushes++;
    return driver.push;
}

static np_cu_result sync_all(void)
{
    ASSERT_EQ(driver.n_pushes, driver.n_pops + 1); /* in the context of the block */
    driver.n_syncs++;
    driver.live = device.manager->stats.live;
    return driver.sync;
}

static np_cu_result pop(np_cu_context *context)
{
    *context = (void *)0x77;
    driver.n_pops++;
    return NP_CU_SUCCESS;
}

static np_cu_result is_capturing(np_cu_stream stream, np_cu_capture_status *status)
{
    *status = driver.capturing && stream == driver.capturing ? NP_CU_CAPTURE_ACTIVE : NP_CU_CAPTURE_NONE;
    return NP_CU_SUCCESS;
}

static np_cu_result memory_info(size_t *free_bytes, size_t *total_bytes)
{
    ASSERT_EQ(driver.n_pushes, driver.n_pops + 1);
    if (driver.info == NP_CU_SUCCESS) {
        *free_bytes = driver.free_bytes;
        *total_bytes = 2 * driver.free_bytes;
    }
    return driver.info;
}

static int runtime_info(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = driver.free_bytes;
    *total_bytes = 2 * driver.free_bytes;
    return 0;
}

static int runtime_malloc(void **address, size_t bytes)
{
    *address = &driver;
    driver.n_passed++;
    return bytes <= driver.free_bytes ? 0 : 2;
}

static int runtime_get_device(int *ordinal)
{
    *ordinal = 0;
    return 0;
}

/* The runtime's captures: one stream is captured, or none. */
static void *captured;
static int capture_result; /* of the next call */

static int runtime_begin_capture(void *stream, int mode)
{
    ASSERT_EQ(mode, 1);
    captured = capture_result == 0 ? stream : captured;
    return capture_result;
}

static int runtime_end_capture(void *stream, void **graph)
{
    ASSERT_TRUE(stream != NULL);
    *graph = NULL;
    captured = stream == captured ? NULL : captured;
    return capture_result;
}

static int runtime_is_capturing(void *stream, int *status)
{
    *status = stream == captured;
    return 0;
}

static void **runtime_register(void *binary)
{
    return binary;
}

static void *find_double(void *handle, const char *name)
{
    int (*begin_double)(void *, int) = runtime_begin_capture;
    int (*end_double)(void *, void **) = runtime_end_capture;
    is_capturing_function *capturing_double = runtime_is_capturing;
    void **(*register_double)(void *) = runtime_register;
    info_function *info = runtime_info;
    get_device_function *get_device = runtime_get_device;
    malloc_function *malloc_double = runtime_malloc;
    void *found = NULL;
    ASSERT_TRUE(handle == RTLD_NEXT);
    if (strcmp(name, "cudaMemGetInfo") == 0) {
        memcpy(&found, &info, sizeof found);
    } else if (strcmp(name, "cudaGetDevice") == 0) {
        memcpy(&found, &get_device, sizeof found);
    } else if (strcmp(name, "cudaMalloc") == 0) {
        memcpy(&found, &malloc_double, sizeof found);
    } else if (strcmp(name, "cudaStreamBeginCapture") == 0) {
        memcpy(&found, &begin_double, sizeof found);
    } else if (strcmp(name, "cudaStreamEndCapture") == 0) {
        memcpy(&found, &end_double, sizeof found);
    } else if (strcmp(name, "cudaStreamIsCapturing") == 0) {
        memcpy(&found, &capturing_double, sizeof found);
    } else if (strcmp(name, "__cudaRegisterFatBinary") == 0) {
        memcpy(&found, &register_double, sizeof found);
    }
    return found;
}

/* ---- the scene ---- */

static np_device *raw;

static uint32_t n_spares(void)
{
    return device.manager->spaces[NP_SPACE_PACKED].n_spares + device.manager->spaces[NP_SPACE_PAGED].n_spares;
}

static void open_scene(const char *name, uint64_t limit)
{
    neap_device_options options = {.limit = limit, .min_block = PAGE};
    memset(&device, 0, sizeof device);
    memset(&np_the_hook, 0, sizeof np_the_hook);
    driver = (driver_double){.push = NP_CU_SUCCESS};
    n_pool_mallocs = n_pool_frees = 0;
    np_the_hook.driver.context_push = push;
    np_the_hook.driver.context_pop = pop;
    np_the_hook.driver.context_sync = sync_all;
    np_the_hook.driver.memory_info = memory_info;
    np_the_hook.driver.stream_is_capturing = is_capturing;
    np_the_hook.devices[0] = &device;
    device.context = (void *)0x77;
    ASSERT_OK(np_device_open(name, NULL, NULL, &raw));
    raw = faulty_wrap(raw);
    ASSERT_OK(np_manager_open(raw, &options, NULL, &device.manager));
    np_beneath_begin(device.manager, 0, 0);
    np_hook_index_init(&device.index, &np_memory_default);
    np_hook_recall_init(&device.recall, &np_memory_default);
    np_caching_init(&device.caching, false, &np_memory_default);
}

static void close_scene(void)
{
    ASSERT_TRUE(np_manager_is_valid(device.manager));
    ASSERT_TRUE(np_hook_index_is_valid(&device.index));
    ASSERT_FALSE(np_hook_is_inside);
    np_array_free(device.manager->memory, &device.graphs);
    np_array_free(device.manager->memory, &device.kept);
    np_array_free(device.manager->memory, &device.side_baseline);
    np_array_free(device.manager->memory, &device.later);
    np_hook_index_free(&device.index);
    np_hook_recall_free(&device.recall);
    np_caching_free(&device.caching);
    neap_close(device.manager);
}

static void *make(uint64_t bytes, void *stream)
{
    void *address = NULL;
    ASSERT_EQ(np_hook_malloc(0, bytes, stream, &address), 0);
    ASSERT_TRUE(address != NULL);
    return address;
}

static neap_block *block_of(const void *address)
{
    const np_hook_entry *entry = np_hook_index_find(&device.index, address);
    return entry ? entry->block : NULL;
}

#define STREAM ((void *)0x40)
#define OTHER ((void *)0x50)
#define GRAPH ((void *)0x60)
#define EXECUTABLE ((void *)0x70)

static void begin_capture(void)
{
    np_hook_capture_begin(&device, STREAM);
    driver.capturing = STREAM;
}

static void end_capture(void *graph)
{
    driver.capturing = NULL;
    np_hook_capture_end(&device, STREAM, graph);
}

/* ---- captures ---- */

/* A block that is asked for in a capture never leaves, and what is freed is kept for as long as the graph is there. */
static void test_captured(void **state)
{
    void *before;
    void *within;
    neap_block *block;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 12 * PAGE);
    before = make(3 * PAGE, OTHER);
    begin_capture();
    within = make(4 * PAGE, STREAM);
    block = block_of(within);
    ASSERT_TRUE(block->is_fixed && np_block_is_here(block));
    ASSERT_FALSE(block_of(before)->is_fixed);
    ASSERT_TRUE(np_hook_free(within, STREAM));
    ASSERT_TRUE(block_of(within) == NULL);
    ASSERT_EQ(device.kept.n, 1);
    ASSERT_TRUE(make(4 * PAGE, OTHER) != within); /* whose work may come before */
    end_capture(GRAPH);
    np_hook_graph_instantiate(&device, GRAPH, EXECUTABLE);
    np_hook_graph_destroy(&device, GRAPH);
    ASSERT_EQ(device.manager->stats.live, (3 + 4 + 4) * PAGE);
    np_hook_graph_destroy(&device, EXECUTABLE);
    ASSERT_EQ(device.manager->stats.live, (3 + 4) * PAGE);
    ASSERT_FALSE(block_of(make(3 * PAGE, OTHER))->is_fixed); /* the capture is over */
    close_scene();
}

/* What is freed on a stream that is captured is had again by what the same capture asks for on it, and by nothing else. */
static void test_capture_reuse(void **state)
{
    void *a;
    void *b;
    void *c;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    begin_capture();
    a = make(16 * PAGE, STREAM);
    b = make(17 * PAGE, STREAM);
    c = make(9 * PAGE, STREAM);
    ASSERT_TRUE(np_hook_free(a, STREAM) && np_hook_free(b, STREAM));
    ASSERT_TRUE(np_hook_free(c, OTHER)); /* after work that need not come before that of the capture's stream */
    ASSERT_EQ(device.kept.n, 3);
    ASSERT_TRUE(make(9 * PAGE, STREAM) != c);
    ASSERT_TRUE(make(16 * PAGE, STREAM) == a); /* the one that fits best, */
    ASSERT_EQ(device.kept.n, 2);
    ASSERT_TRUE(block_of(a) && block_of(a)->is_fixed);
    ASSERT_TRUE(make(16 * PAGE + 1, STREAM) == b); /* or nearly, */
    ASSERT_TRUE(np_hook_free(b, STREAM));
    ASSERT_TRUE(make(12 * PAGE, STREAM) != b); /* but not one that is much larger */
    end_capture(GRAPH);
    ASSERT_TRUE(make(17 * PAGE, STREAM) != b); /* the graph has it */
    begin_capture();
    ASSERT_TRUE(make(17 * PAGE, STREAM) != b); /* and so it has beside another */
    end_capture(NULL);
    ASSERT_EQ(device.kept.n, 2);
    np_hook_graph_destroy(&device, GRAPH);
    ASSERT_EQ(device.kept.n, 0);
    ASSERT_TRUE(np_hook_free(a, STREAM));
    ASSERT_EQ(device.manager->stats.live, (9 + 12 + 17 + 17) * PAGE);
    close_scene();
}

/* It cannot be fixed: the block is given back, and the program is told that there is no memory. */
static void test_captured_fails(void **state)
{
    static const faulty_call calls[] = {FAULTY_COMMIT, FAULTY_MAP};
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof calls / sizeof *calls); i++) {
        uint32_t n_held;
        void *address = &n_held;
        open_scene("sim:page=4096,memory=4MiB,streams=2", 12 * PAGE);
        (void)make(3 * PAGE, OTHER);
        begin_capture();
        n_held = device.manager->pages.n_held;
        device.manager->is_beneath = i < 2; /* or pages come with the first use: with the fix, not with the malloc */
        faulty_set(raw, &(faulty_plan){.calls = 1u << calls[i % 2], .every = 1});
        ASSERT_EQ(np_hook_malloc(0, 4 * PAGE, STREAM, &address), ERROR_MEMORY);
        faulty_set(raw, &(faulty_plan){0});
        device.manager->is_beneath = true;
        ASSERT_TRUE(address == &n_held);
        ASSERT_EQ(device.manager->stats.live, 3 * PAGE);
        ASSERT_EQ(device.index.n, 1);
        ASSERT_LE(device.manager->pages.n_held - device.manager->pages.n_idle,
                  n_held); /* the other one may have left */
        for (const neap_block *block = device.manager->live; block; block = block->next) {
            ASSERT_EQ(block->bytes, 3 * PAGE);
        }
        ASSERT_TRUE(block_of(make(4 * PAGE, STREAM))->is_fixed); /* later there is */
        end_capture(NULL);
        close_scene();
    }
}

/* There is no room beside what is fixed already: the program is told so, and what it has is as it was. */
static void test_captured_no_room(void **state)
{
    void *address = NULL;
    void *first;
    (void)state;
    open_scene("sim:page=4096,memory=64KiB,streams=2", 0);
    begin_capture();
    first = make(12 * PAGE, STREAM);
    ASSERT_EQ(np_hook_malloc(0, 12 * PAGE, STREAM, &address), ERROR_MEMORY);
    ASSERT_EQ(device.manager->stats.live, 12 * PAGE);
    ASSERT_TRUE(np_block_is_here(block_of(first)));
    end_capture(NULL);
    ASSERT_TRUE(np_hook_free(first, STREAM)); /* there is no graph to keep it for */
    ASSERT_EQ(device.manager->stats.live, 0);
    (void)make(12 * PAGE, STREAM);
    close_scene();
}

/* Small blocks that a capture asks for are the graph's too: nobody else gets their bytes. */
static void test_captured_small(void **state)
{
    void *plain;
    void *within;
    void *kept;
    void *other;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    plain = make(512, STREAM);
    ASSERT_TRUE(np_hook_free(plain, STREAM));
    begin_capture();
    within = make(512, STREAM);
    ASSERT_TRUE(within != plain);
    other = make(512, OTHER); /* which is not captured */
    ASSERT_FALSE(np_side_is_captured(device.manager, other));
    kept = make(512, STREAM);
    ASSERT_TRUE(np_hook_free(within, STREAM));
    ASSERT_TRUE(make(512, STREAM) != within);
    end_capture(GRAPH);
    ASSERT_TRUE(np_hook_free(kept, OTHER)); /* after the capture, on any stream */
    ASSERT_EQ(device.kept.n, 2);
    ASSERT_TRUE(np_hook_free(other, OTHER));
    ASSERT_EQ(device.kept.n, 2);
    ASSERT_TRUE(make(512, OTHER) == other);
    begin_capture();
    for (int i = 0; i < 4; i++) {
        other = make(512, STREAM);
        ASSERT_TRUE(other != within && other != kept);
    }
    end_capture(NULL);
    ASSERT_EQ(device.kept.n, 2);
    np_hook_graph_destroy(&device, GRAPH);
    ASSERT_EQ(device.kept.n, 0);
    begin_capture();
    ASSERT_TRUE(make(512, STREAM) == within || make(512, STREAM) == within); /* it is free again */
    end_capture(NULL);
    ASSERT_TRUE(np_side_is_valid(&device.manager->side));
    close_scene();
}

/* ---- a copy that fails ---- */

/* A block must leave for one that is asked for, and its copy fails: that is said once, the program is told that there is no
 * memory, and may try again. */
static void test_copy_fails(void **state)
{
    void *first;
    void *address = NULL;
    stderr_capture capture;
    char text[256];
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 7 * PAGE);
    first = make(6 * PAGE, STREAM);
    faulty_set(raw, &(faulty_plan){.calls = 1u << FAULTY_COPY, .every = 1});
    capture = capture_begin();
    ASSERT_EQ(np_hook_malloc(0, 4 * PAGE, STREAM, &address), ERROR_MEMORY);
    capture_end(&capture, text, sizeof text);
    faulty_set(raw, &(faulty_plan){0});
    ASSERT_STR_EQ(text, "neap: cuda:0: the device failed\n");
    ASSERT_TRUE(address == NULL);
    ASSERT_EQ(device.manager->stats.live, 6 * PAGE);
    ASSERT_TRUE(np_block_is_here(block_of(first)));
    ASSERT_TRUE(np_block_is_here(block_of(make(4 * PAGE, STREAM))));
    ASSERT_FALSE(np_block_is_here(block_of(first)));
    close_scene();
}

/* ---- aside ---- */

/* Nobody has seen what was done with a block since: all of the context's work is done before its pages go. */
static void test_aside_waits(void **state)
{
    void *a;
    void *b;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    a = make(3 * PAGE, STREAM);
    b = make(4 * PAGE, STREAM);
    ASSERT_TRUE(np_hook_free(a, STREAM));
    ASSERT_EQ(driver.n_syncs, 0); /* it is seen: nothing has to be waited for */
    ASSERT_EQ(device.manager->stats.live, 4 * PAGE);
    ASSERT_EQ(n_spares(), 1);
    np_hook_step_aside("a test");
    ASSERT_TRUE(np_hook_free(b, STREAM));
    ASSERT_EQ(driver.n_pushes, 1);
    ASSERT_EQ(driver.n_syncs, 1);
    ASSERT_EQ(driver.n_pops, 1);
    ASSERT_EQ(driver.live, 4 * PAGE); /* it was still there then */
    ASSERT_EQ(device.manager->stats.live, 0);
    ASSERT_EQ(device.manager->pages.n_held, 0);             /* nothing is kept: the runtime needs the room */
    ASSERT_TRUE(make(3 * PAGE, STREAM) == &n_pool_mallocs); /* from the plain pool */
    ASSERT_EQ(n_pool_frees, 0);
    ASSERT_FALSE(np_hook_free(b, STREAM)); /* it is no longer there */
    ASSERT_EQ(n_pool_frees, 1);
    close_scene();
}

/* It cannot be waited for: the block stays mapped for good, and the program is none the wiser. */
static void test_aside_keeps(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        void *a;
        neap_block *block;
        uint32_t n_held;
        open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
        a = make(3 * PAGE, STREAM);
        block = block_of(a);
        n_held = device.manager->pages.n_held;
        np_hook_step_aside("a test");
        driver.push = i == 0 ? NP_CU_UNKNOWN : NP_CU_SUCCESS;
        driver.sync = i == 1 ? NP_CU_UNKNOWN : NP_CU_SUCCESS;
        np_the_hook.driver.context_sync = i == 2 ? NULL : sync_all;
        ASSERT_TRUE(np_hook_free(a, STREAM)); /* it is neap's, and nobody else need try */
        ASSERT_EQ(n_pool_frees, 0);
        ASSERT_EQ(driver.n_syncs, i == 1);
        ASSERT_EQ(driver.n_pops, i == 1);
        ASSERT_TRUE(block_of(a) == NULL);
        ASSERT_EQ(device.manager->stats.live, 3 * PAGE);
        ASSERT_TRUE(device.manager->live == block && np_block_is_here(block));
        ASSERT_EQ(device.manager->pages.n_held, n_held);
        ASSERT_EQ(n_spares(), 0);
        close_scene();
    }
}

/* Beside a capture nothing can be waited for: what is freed then goes with the next one that is freed after it. */
static void test_aside_beside_capture(void **state)
{
    void *graph;
    void *a;
    void *b;
    void *c;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    a = make(3 * PAGE, STREAM);
    b = make(4 * PAGE, STREAM);
    c = make(5 * PAGE, STREAM);
    np_hook_step_aside("a test");
    capture_result = 1;
    ASSERT_EQ(cudaStreamBeginCapture(OTHER, 1), 1); /* none has begun */
    ASSERT_FALSE(np_hook_is_beside_capture());
    capture_result = 0;
    ASSERT_EQ(cudaStreamBeginCapture(OTHER, 1), 0);
    ASSERT_TRUE(np_hook_is_beside_capture());
    ASSERT_TRUE(np_hook_has(a) && !np_hook_has(&graph) && np_hook_has(&n_pool_mallocs));
    ASSERT_TRUE(np_hook_free(a, STREAM) && np_hook_free(b, STREAM));
    ASSERT_FALSE(np_hook_has(a));
    ASSERT_EQ(driver.n_syncs, 0);
    ASSERT_EQ(device.manager->stats.live, 12 * PAGE);
    capture_result = 1;
    ASSERT_EQ(cudaStreamEndCapture(STREAM, &graph), 1); /* another's: it goes on */
    ASSERT_TRUE(np_hook_is_beside_capture());
    ASSERT_EQ(cudaStreamEndCapture(OTHER, &graph), 1); /* it was broken, and has ended */
    ASSERT_FALSE(np_hook_is_beside_capture());
    capture_result = 0;
    ASSERT_EQ(cudaStreamBeginCapture(OTHER, 1), 0);
    ASSERT_TRUE(np_hook_is_beside_capture());
    ASSERT_EQ(cudaStreamEndCapture(OTHER, &graph), 0);
    ASSERT_FALSE(np_hook_is_beside_capture());
    ASSERT_TRUE(np_hook_free(c, STREAM));
    ASSERT_EQ(driver.n_syncs, 1);
    ASSERT_EQ(device.manager->stats.live, 0);
    ASSERT_EQ(device.manager->pages.n_held, 0);
    close_scene();
}

/* Each library with kernels is a chance to find PyTorch, and registers them as ever. */
static void test_register(void **state)
{
    int binary;
    uint32_t n = n_looks;
    (void)state;
    ASSERT_TRUE(__cudaRegisterFatBinary(&binary) == (void **)&binary);
    ASSERT_EQ(n_looks, n + 1);
}

/* ---- questions ---- */

enum { FREE_BYTES = 3 * 1024 * 1024 + 12345 };

/* So much is free, and the program was told so. */
static void tell_free(uint64_t bytes)
{
    size_t free_bytes = 0;
    size_t total = 0;
    driver.free_bytes = bytes;
    ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), 0);
}

static uint32_t n_held(void)
{
    return device.manager->pages.n_held;
}

/* Nothing is taken for it, and nothing is left of it. */
static void ask(uint64_t bytes)
{
    uint32_t before = n_held();
    uint32_t n_before = n_spares();
    uint64_t caching_bytes = device.caching_bytes;
    void *address = make(bytes, STREAM);
    ASSERT_EQ(n_held(), before);
    ASSERT_FALSE(device.manager->is_deferring); /* others are as they were */
    ASSERT_EQ(block_of(address)->view.n_missing, block_of(address)->view.n_pages);
    ASSERT_EQ(device.caching_bytes, caching_bytes);
    ASSERT_TRUE(np_hook_free(address, STREAM));
    ASSERT_EQ(n_held(), before);
    ASSERT_EQ(n_spares(), n_before);
    ASSERT_TRUE(device.has_baseline && np_caching_is_valid(&device.caching));
}

/* A request for all that is free, or a half of it, a quarter, ..., as long as it is more than what is held. */
static void test_question(void **state)
{
    uint64_t part = FREE_BYTES;
    void *address;
    uint32_t before;
    uint64_t caching_bytes;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    device.has_baseline = true;
    (void)make(12 * PAGE, STREAM);
    ASSERT_EQ(n_held(), 12);
    caching_bytes = device.caching_bytes;
    ASSERT_GT(caching_bytes, 0);
    tell_free(FREE_BYTES);
    for (; part > 12 * PAGE; part /= 2) {
        ask(part);
    }
    ASSERT_LT(2 * part + 1, 32 * PAGE); /* some were no more than what others ask for */
    ASSERT_EQ(device.caching_bytes, caching_bytes);
    before = n_held();
    address = make(2 * part - PAGE, STREAM); /* as this one, which is not a question, */
    ASSERT_GT(n_held(), before);
    ASSERT_TRUE(np_block_is_here(block_of(address)));
    before = n_held();
    address = make(part, STREAM); /* and this, of which there is enough: it was held before */
    ASSERT_TRUE(np_block_is_here(block_of(address)));
    ASSERT_GT(n_held(), before);
    close_scene();
}

/* What PyTorch's own allocator would have held is of all sizes: small blocks share segments of 2 MiB there. */
static void test_baseline(void **state)
{
    enum { SEGMENT = 2 << 20, N = 600 };
    void *small[N];
    void *large;
    (void)state;
    open_scene("sim:page=4096,memory=8MiB,streams=2", 0);
    device.has_baseline = true;
    small[0] = make(100, STREAM);
    ASSERT_EQ(device.caching_bytes, SEGMENT);
    for (int i = 1; i < N; i++) {
        small[i] = make(PAGE - 1, i % 2 ? STREAM : OTHER);
    }
    ASSERT_EQ(device.caching_bytes, 2 * SEGMENT); /* 600 of 4 KiB */
    for (int i = 0; i < N; i++) {
        ASSERT_TRUE(np_hook_free(small[i], i % 3 ? STREAM : OTHER));
    }
    for (int i = 0; i < N; i++) { /* they find room in what is held, */
        small[i] = make(PAGE - 1, STREAM);
    }
    ASSERT_EQ(device.caching_bytes, 2 * SEGMENT);
    large = make(256 * PAGE + 1, STREAM);
    ASSERT_EQ(device.caching_bytes, 2 * SEGMENT + (20 << 20)); /* and large ones do not */
    ASSERT_TRUE(np_hook_free(large, STREAM));
    for (int i = N; i-- > 0;) {
        ASSERT_TRUE(np_hook_free(small[i], STREAM));
    }
    ASSERT_TRUE(device.has_baseline && np_caching_is_valid(&device.caching));
    for (size_t i = 0; i < device.side_baseline.n; i++) {
        ASSERT_EQ(device.side_baseline.items[i], 0);
    }
    (void)make(PAGE - 1, STREAM); /* on the plan it is known: nothing is counted, and what was freed is */
    small[0] = make(PAGE - 1, STREAM);
    device.manager->state = NEAP_STATE_RUN;
    np_hook_baseline_give_small(&device, small[0]);
    np_hook_baseline_take_small(&device, 700, small[0]);
    device.manager->state = NEAP_STATE_OBSERVE;
    np_hook_baseline_give_small(&device, small[0]); /* none is given back twice */
    ASSERT_TRUE(np_caching_is_valid(&device.caching));
    close_scene();
}

static void assert_refused(uint64_t bytes)
{
    void *address = &driver;
    uint32_t before = n_held();
    uint32_t limit_pages = device.manager->limit_pages;
    uint64_t live = device.manager->stats.live;
    ASSERT_EQ(np_hook_malloc(0, bytes, STREAM, &address), ERROR_MEMORY);
    ASSERT_TRUE(address == &driver);
    ASSERT_EQ(n_held(), before);
    ASSERT_EQ(device.manager->limit_pages, limit_pages);
    ASSERT_EQ(device.manager->stats.live, live);
}

/* The answer is true: no more than the limit, and no more than the device has, together with what is held. */
static void test_refused(void **state)
{
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 64 * PAGE);
    device.has_baseline = true;
    (void)make(6 * PAGE, STREAM);
    tell_free(100 * PAGE);
    assert_refused(100 * PAGE);
    ask(50 * PAGE);
    tell_free(64 * PAGE);
    ask(64 * PAGE);
    tell_free(65 * PAGE);
    assert_refused(65 * PAGE);
    (void)make(66 * PAGE, STREAM); /* what is no question may raise it */
    ASSERT_GE(device.manager->limit_pages, 66);
    close_scene();
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    device.has_baseline = true;
    (void)make(6 * PAGE, STREAM);
    tell_free(200 * PAGE);
    driver.free_bytes = 100 * PAGE; /* others have taken some meanwhile */
    assert_refused(200 * PAGE);
    ask(100 * PAGE);
    driver.free_bytes = 95 * PAGE; /* it may begin in the middle of a page */
    ask(100 * PAGE);
    driver.free_bytes = 95 * PAGE - 1;
    assert_refused(100 * PAGE);
    driver.free_bytes = 100 * PAGE;
    (void)make(100 * PAGE, STREAM); /* it was promised */
    assert_refused(50 * PAGE);
    driver.info = NP_CU_UNKNOWN;
    assert_refused(100 * PAGE);
    driver.info = NP_CU_SUCCESS;
    ASSERT_EQ(driver.n_pushes, driver.n_pops);
    driver.push = NP_CU_UNKNOWN;
    assert_refused(100 * PAGE);
    driver.push = NP_CU_SUCCESS;
    close_scene();
}

/* Somebody means it: the pages come with the first use, within the limit, and nobody's bytes are lost. */
static void test_question_is_used(void **state)
{
    static char bytes[10 * PAGE];
    static char found[10 * PAGE];
    neap_block *other;
    neap_block *block;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 12 * PAGE);
    other = block_of(make(6 * PAGE, STREAM));
    memset(bytes, 0x11, sizeof bytes);
    ASSERT_OK(neap_write(device.manager, other, 0, bytes, 6 * PAGE));
    tell_free(10 * PAGE);
    block = block_of(make(10 * PAGE, STREAM));
    ASSERT_EQ(n_held(), 6);
    memset(bytes, 0x22, sizeof bytes);
    ASSERT_OK(neap_write(device.manager, block, 0, bytes, sizeof bytes));
    ASSERT_TRUE(np_block_is_here(block));
    ASSERT_FALSE(np_block_is_here(other));
    ASSERT_LE(n_held(), 12);
    ASSERT_OK(neap_read(device.manager, other, 0, found, 6 * PAGE));
    memset(bytes, 0x11, sizeof bytes);
    ASSERT_EQ(memcmp(found, bytes, 6 * PAGE), 0);
    ASSERT_OK(neap_read(device.manager, block, 0, found, sizeof found));
    memset(bytes, 0x22, sizeof bytes);
    ASSERT_EQ(memcmp(found, bytes, sizeof bytes), 0);
    ASSERT_LE(n_held(), 12);
    ASSERT_TRUE(np_hook_free(block->address, STREAM));
    close_scene();
}

/* In a capture it is none: a graph may be about to name the block. */
static void test_question_captured(void **state)
{
    neap_block *block;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    tell_free(FREE_BYTES / 4);
    begin_capture();
    block = block_of(make(FREE_BYTES / 4, STREAM));
    ASSERT_TRUE(block->is_fixed && np_block_is_here(block));
    end_capture(NULL);
    close_scene();
}

/* ---- what is only kept ---- */

static void test_trim(void **state)
{
    static char bytes[6 * PAGE];
    static char found[6 * PAGE];
    void *address;
    neap_block *other;
    (void)state;
    open_scene("sim:page=4096,memory=4MiB,streams=2", 0);
    ASSERT_EQ(cudaMemPoolTrimTo(NULL, 0), 0); /* there is nothing */
    other = block_of(make(6 * PAGE, STREAM));
    memset(bytes, 0x33, sizeof bytes);
    ASSERT_OK(neap_write(device.manager, other, 0, bytes, sizeof bytes));
    address = make(5 * PAGE, STREAM);
    ASSERT_TRUE(np_hook_free(address, STREAM));
    ASSERT_TRUE(np_hook_free(make(9 * PAGE, STREAM), OTHER));
    ASSERT_EQ(n_spares(), 2);
    ASSERT_EQ(np_hook_reserved(&device), 15 * PAGE);
    ASSERT_EQ(cudaMemPoolTrimTo(NULL, 0), 0);
    ASSERT_EQ(n_spares(), 0);
    ASSERT_EQ(np_hook_reserved(&device), 6 * PAGE);
    ASSERT_OK(neap_read(device.manager, other, 0, found, sizeof found));
    ASSERT_EQ(memcmp(found, bytes, sizeof bytes), 0);
    ASSERT_TRUE(np_block_is_here(block_of(make(5 * PAGE, STREAM))));
    close_scene();
}

/* Of a program that names streams, what it asks for without one is the runtime's: where there is little room, what neap
 * only keeps is given back first. */
static void test_room_for_the_runtime(void **state)
{
    static const uint64_t lack[] = {0, 1 << 20, 100 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof lack / sizeof *lack; i++) {
        bool is_little = lack[i] < 4 << 20;
        void *address = NULL;
        open_scene("sim:page=4096,memory=4MiB", 0);
        ASSERT_TRUE(np_hook_free(make(8 * PAGE, STREAM), STREAM));
        ASSERT_EQ(n_spares(), 1);
        atomic_store(&allocates_by_stream, true);
        driver.free_bytes = 1000 + lack[i];
        ASSERT_EQ(cudaMalloc(&address, 1000), 0);
        ASSERT_TRUE(address == &driver && driver.n_passed == 1);
        ASSERT_EQ(n_spares(), is_little ? 0 : 1);
        atomic_store(&allocates_by_stream, false);
        close_scene();
    }
}

/* What has left for the host is free to the driver, and in use to the program: PyTorch asserts that the two are no more than
 * all there is. */
static void test_free_and_used(void **state)
{
    (void)state;
    for (int tells = 0; tells < 2; tells++) {
        size_t free_bytes = 0;
        size_t total = 0;
        open_scene("sim:page=4096,memory=4MiB,streams=2", 10 * PAGE);
        np_the_hook.settings.tells_limit = tells == 1;
        for (int i = 0; i < 6; i++) {
            neap_block *block = block_of(make(5 * PAGE, STREAM));
            ASSERT_OK(np_block_return(device.manager, block));
        }
        ASSERT_LE(device.manager->pages.n_held, 10);
        driver.free_bytes = 20 * PAGE; /* of 40 */
        ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total), 0);
        ASSERT_EQ(np_hook_used(&device), 30 * PAGE);
        ASSERT_LE(free_bytes + np_hook_used(&device), total);
        ASSERT_EQ(free_bytes, tells == 1 ? 0 : 10 * PAGE);
        np_the_hook.settings.tells_limit = false;
        close_scene();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_and_used),
        cmocka_unit_test(test_captured),
        cmocka_unit_test(test_capture_reuse),
        cmocka_unit_test(test_captured_fails),
        cmocka_unit_test(test_captured_no_room),
        cmocka_unit_test(test_captured_small),
        cmocka_unit_test(test_copy_fails),
        cmocka_unit_test(test_aside_waits),
        cmocka_unit_test(test_aside_keeps),
        cmocka_unit_test(test_aside_beside_capture),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_baseline),
        cmocka_unit_test(test_question),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_question_is_used),
        cmocka_unit_test(test_question_captured),
        cmocka_unit_test(test_trim),
        cmocka_unit_test(test_room_for_the_runtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
