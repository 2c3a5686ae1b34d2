/* test_standin.c: the stand-in driver itself: what tests rely on. That it notices a misuse is looked at from outside,
 * in a process of its own each. */
#define _GNU_SOURCE /* setenv */
#include "standin/standin.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cuda_driver.h"
#include "device/device_tools.h"
#include "device/standin_device.h"
#include "testing.h"

enum { PAGE = 65536 };

static np_cuda_driver driver;
static np_cu_context context;

/* Functions that the library does not use. */
static np_cu_result (*begin_capture)(np_cu_stream stream, np_cu_capture_mode mode);
static np_cu_result (*end_capture)(np_cu_stream stream, void **graph);
static np_cu_result (*is_capturing)(np_cu_stream stream, int *status);
static np_cu_result (*instantiate)(void **exec, void *graph, unsigned long long flags);
static np_cu_result (*graph_launch)(void *exec, np_cu_stream stream);
static np_cu_result (*graph_destroy)(void *graph);
static np_cu_result (*exec_destroy)(void *exec);
static np_cu_result (*graph_create)(void **graph, unsigned int flags);
static np_cu_result (*add_child)(void **node, void *graph, const void *after, size_t n, void *child);
static np_cu_result (*add_kernel)(void **node, void *graph, const void *after, size_t n, const void *of);
static np_cu_result (*fill)(np_cu_address at, unsigned char value, size_t n, np_cu_stream stream);
static np_cu_result (*launch_kernel)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                     unsigned, np_cu_stream stream, void **parameters, void **extra);
static np_cu_result (*parameter_info)(void *function, size_t index, size_t *offset, size_t *bytes);
static np_cu_result (*host_function)(np_cu_stream stream, void (*run)(void *user), void *user);

/* What a program without neap uses. */
static np_cu_result (*alloc_async)(np_cu_address *at, size_t bytes, np_cu_stream stream);
static np_cu_result (*free_async)(np_cu_address at, np_cu_stream stream);
static np_cu_result (*load_module)(void **module, const void *image);
static np_cu_result (*unload_module)(void *module);
static np_cu_result (*get_function)(void **function, void *module, const char *name);
static np_cu_result (*launch_ex)(const void *config, void *function, void **parameters, void **extra);
static np_cu_result (*copy_2d)(const void *copied, np_cu_stream stream);
static np_cu_result (*export_memory)(void *handle, np_cu_address at);

static const struct {
    const char *name;
    void *function;
} others[] = {
    {"cuStreamBeginCapture_v2", &begin_capture},
    {"cuStreamEndCapture", &end_capture},
    {"cuStreamIsCapturing", &is_capturing},
    {"cuGraphInstantiateWithFlags", &instantiate},
    {"cuGraphLaunch", &graph_launch},
    {"cuGraphDestroy", &graph_destroy},
    {"cuGraphExecDestroy", &exec_destroy},
    {"cuGraphCreate", &graph_create},
    {"cuGraphAddChildGraphNode", &add_child},
    {"cuGraphAddKernelNode_v2", &add_kernel},
    {"cuMemsetD8Async", &fill},
    {"cuLaunchKernel", &launch_kernel},
    {"cuFuncGetParamInfo", &parameter_info},
    {"cuLaunchHostFunc", &host_function},
    {"cuMemAllocAsync", &alloc_async},
    {"cuMemFreeAsync", &free_async},
    {"cuModuleLoadData", &load_module},
    {"cuModuleUnload", &unload_module},
    {"cuModuleGetFunction", &get_function},
    {"cuLaunchKernelEx", &launch_ex},
    {"cuMemcpy2DAsync_v2", &copy_2d},
    {"cuIpcGetMemHandle", &export_memory},
};

static void start(void)
{
    standin_use(PAGE);
    ASSERT_OK(np_cuda_driver_load(&driver, NULL));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        void *found = dlsym(driver.library, others[i].name);
        ASSERT_TRUE(found != NULL);
        memcpy(others[i].function, &found, sizeof found);
    }
    ASSERT_EQ(driver.primary_retain(&context, 0), NP_CU_SUCCESS);
    ASSERT_EQ(driver.context_push(context), NP_CU_SUCCESS);
}

static void stop(void)
{
    np_cu_context popped;
    ASSERT_EQ(driver.context_pop(&popped), NP_CU_SUCCESS);
    ASSERT_EQ(driver.primary_release(0), NP_CU_SUCCESS);
}

#define GOOD(call) ASSERT_EQ(call, NP_CU_SUCCESS)

static np_cu_memory make_memory(void)
{
    np_cu_allocation allocation = {.type = NP_CU_ALLOCATION_PINNED, .location = {NP_CU_LOCATION_DEVICE, 0}};
    np_cu_memory memory = 0;
    GOOD(driver.create(&memory, PAGE, &allocation, 0));
    return memory;
}

static char *reserve(size_t n_pages)
{
    np_cu_address at = 0;
    GOOD(driver.reserve(&at, n_pages * PAGE, 0, 0, 0));
    return (char *)(uintptr_t)at;
}

static np_cu_address address_of(const void *at)
{
    return (np_cu_address)(uintptr_t)at;
}

static void allow(char *at, size_t n_pages)
{
    np_cu_access access = {{NP_CU_LOCATION_DEVICE, 0}, NP_CU_ACCESS_READ_WRITE};
    GOOD(driver.set_access(address_of(at), n_pages * PAGE, &access, 1));
}

static np_cu_stream make_stream(void)
{
    np_cu_stream stream = NULL;
    GOOD(driver.stream_create(&stream, NP_CU_STREAM_NON_BLOCKING));
    return stream;
}

static np_cu_event make_event(void)
{
    np_cu_event event = NULL;
    GOOD(driver.event_create(&event, NP_CU_EVENT_DEFAULT));
    return event;
}

static atomic_bool gate;

static void pass_gate(void *user)
{
    (void)user;
    while (!atomic_load(&gate)) {
        (void)sched_yield();
    }
}

static void hold(np_cu_stream stream)
{
    atomic_store(&gate, false);
    GOOD(host_function(stream, pass_gate, NULL));
}

/* ---- misuse ---- */

static void map_twice(void)
{
    char *at = reserve(1);
    GOOD(driver.map(address_of(at), PAGE, 0, make_memory(), 0));
    (void)driver.map(address_of(at), PAGE, 0, make_memory(), 0);
}

static void map_nowhere(void)
{
    (void)driver.map(PAGE, PAGE, 0, make_memory(), 0);
}

static void unmap_nothing(void)
{
    (void)driver.unmap(address_of(reserve(1)), PAGE);
}

static void unmap_a_hole(void)
{
    char *at = reserve(3);
    GOOD(driver.map(address_of(at), PAGE, 0, make_memory(), 0));
    GOOD(driver.map(address_of(at + 2 * PAGE), PAGE, 0, make_memory(), 0));
    (void)driver.unmap(address_of(at), 3 * PAGE);
}

static void unmap_under_a_copy(void)
{
    static char host[100];
    np_cu_stream stream = make_stream();
    char *at = reserve(1);
    GOOD(driver.map(address_of(at), PAGE, 0, make_memory(), 0));
    allow(at, 1);
    GOOD(driver.host_register(host, sizeof host, 0));
    hold(stream);
    GOOD(driver.copy_out(host, address_of(at), sizeof host, stream));
    (void)driver.unmap(address_of(at), PAGE);
}

static void unregister_under_a_copy(void)
{
    static char host[100];
    np_cu_stream stream = make_stream();
    np_cu_address at = 0;
    GOOD(driver.alloc(&at, 100));
    GOOD(driver.host_register(host, sizeof host, 0));
    hold(stream);
    GOOD(driver.copy_in(at, host, sizeof host, stream));
    (void)driver.host_unregister(host);
}

static void copy_without_access(void)
{
    static char host[100];
    char *at = reserve(1);
    GOOD(driver.map(address_of(at), PAGE, 0, make_memory(), 0));
    (void)driver.copy_out(host, address_of(at), sizeof host, make_stream());
}

static void unreserve_mapped(void)
{
    char *at = reserve(1);
    GOOD(driver.map(address_of(at), PAGE, 0, make_memory(), 0));
    (void)driver.unreserve(address_of(at), PAGE);
}

static void release_twice(void)
{
    np_cu_memory memory = make_memory();
    GOOD(driver.release(memory));
    (void)driver.release(memory);
}

static void record_destroyed(void)
{
    np_cu_event event = make_event();
    GOOD(driver.event_destroy(event));
    (void)driver.event_record(event, NULL);
}

static void use_destroyed_stream(void)
{
    np_cu_stream stream = make_stream();
    GOOD(driver.stream_destroy(stream));
    (void)driver.event_record(make_event(), stream);
}

static void wrong_kind(void)
{
    (void)driver.event_record((np_cu_event)make_stream(), NULL);
}

static void call_from_work(void *user)
{
    np_cu_event event;
    (void)user;
    (void)driver.event_create(&event, 0);
}

static void call_driver_from_work(void)
{
    np_cu_stream stream = make_stream();
    GOOD(host_function(stream, call_from_work, NULL));
    GOOD(driver.stream_sync(stream));
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *says;
} misuses[] = {
    {"map_twice", map_twice, "cuMemMap: something is mapped"},
    {"map_nowhere", map_nowhere, "is not reserved"},
    {"unmap_nothing", unmap_nothing, "cuMemUnmap: "},
    {"unmap_a_hole", unmap_a_hole, "is not a range of whole mappings"},
    {"unmap_under_a_copy", unmap_under_a_copy, "cuMemUnmap: a copy that is not done"},
    {"unregister_under_a_copy", unregister_under_a_copy, "cuMemHostUnregister: a copy that is not done"},
    {"copy_without_access", copy_without_access, "is not mapped on the device"},
    {"unreserve_mapped", unreserve_mapped, "something is still mapped"},
    {"release_twice", release_twice, "cuMemRelease: the handle was destroyed"},
    {"record_destroyed", record_destroyed, "cuEventRecord: the handle was destroyed"},
    {"use_destroyed_stream", use_destroyed_stream, "cuEventRecord: the handle was destroyed"},
    {"wrong_kind", wrong_kind, "is no handle of the right kind"},
    {"call_driver_from_work", call_driver_from_work, "is called by work of a stream"},
};

static void run_apart(void (*run)(void), char text[400])
{
    int ends[2];
    size_t n_read = 0;
    ssize_t n;
    int status;
    pid_t child;
    ASSERT_EQ(pipe(ends), 0);
    child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        start();
        run();
        _exit(0);
    }
    (void)close(ends[1]);
    while (n_read < 399 && (n = read(ends[0], text + n_read, 399 - n_read)) > 0) {
        n_read += (size_t)n;
    }
    text[n_read] = '\0';
    (void)close(ends[0]);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_misuse_ends_the_process(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        char text[400];
        run_apart(misuses[i].run, text);
        if (!strstr(text, "standin: misuse: ") || !strstr(text, misuses[i].says)) {
            test_fail(__FILE__, __LINE__, "%s says: %s", misuses[i].name, text);
        }
    }
}

/* ---- memory ---- */

static void test_views_show_one_memory(void **state)
{
    np_cu_memory memory;
    char *first, *second;
    standin_counts counts;
    (void)state;
    start();
    memory = make_memory();
    first = reserve(1);
    second = reserve(2);
    GOOD(driver.map(address_of(first), PAGE, 0, memory, 0));
    GOOD(driver.map(address_of(second + PAGE), PAGE, 0, memory, 0));
    ASSERT_FALSE(device_is_readable(first)); /* until its access is set */
    allow(first, 1);
    ASSERT_TRUE(device_is_readable(first));
    ASSERT_FALSE(device_is_readable(second + PAGE));
    allow(second + PAGE, 1);
    ASSERT_NE(first[7], 0); /* garbage */
    first[7] = 3;
    ASSERT_EQ(second[PAGE + 7], 3);
    GOOD(driver.release(memory)); /* it lives as long as it is mapped */
    GOOD(driver.unmap(address_of(first), PAGE));
    ASSERT_FALSE(device_is_readable(first));
    ASSERT_EQ(second[PAGE + 7], 3);
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_memories, 1);
    GOOD(driver.unmap(address_of(second + PAGE), PAGE));
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_memories, 0);
    ASSERT_EQ(counts.device_bytes, 0);
    GOOD(driver.unreserve(address_of(first), PAGE));
    GOOD(driver.unreserve(address_of(second), 2 * PAGE));
    stop();
}

static void test_memory_ends(void **state)
{
    np_cu_allocation allocation = {.type = NP_CU_ALLOCATION_PINNED, .location = {NP_CU_LOCATION_DEVICE, 0}};
    np_cu_memory memories[3];
    np_cu_memory memory;
    np_cu_address at;
    size_t n_free, n_all;
    (void)state;
    start();
    standin_get()->set_memory(4 * PAGE);
    for (int i = 0; i < 3; i++) {
        memories[i] = make_memory();
    }
    GOOD(driver.memory_info(&n_free, &n_all));
    ASSERT_EQ(n_free, PAGE);
    ASSERT_EQ(n_all, 4 * PAGE);
    ASSERT_EQ(driver.create(&memory, 2 * PAGE, &allocation, 0), NP_CU_OUT_OF_MEMORY);
    ASSERT_EQ(driver.alloc(&at, PAGE + 1), NP_CU_OUT_OF_MEMORY);
    ASSERT_EQ(driver.create(&memory, PAGE + 1, &allocation, 0), NP_CU_INVALID_VALUE);
    for (int i = 0; i < 3; i++) {
        GOOD(driver.release(memories[i]));
    }
    standin_get()->set_memory(1u << 30);
    stop();
}

static void test_host_memory(void **state)
{
    static _Alignas(4096) char host[3 * 4096];
    standin_counts before, after;
    np_cu_address at = 0;
    np_cu_stream stream;
    (void)state;
    start();
    stream = make_stream();
    GOOD(driver.alloc(&at, 100));
    standin_get()->count(&before);
    GOOD(driver.host_register(host + 10, 10, 0));
    ASSERT_EQ(driver.host_register(host + 30, 10, 0), 712); /* the same page of the system */
    GOOD(driver.copy_in(at, host + 10, 100, stream));
    standin_get()->count(&after);
    ASSERT_EQ(after.n_unregistered_copies, before.n_unregistered_copies);
    GOOD(driver.copy_in(at, host + 2 * 4096, 100, stream)); /* allowed, and seen */
    standin_get()->count(&after);
    ASSERT_EQ(after.n_unregistered_copies, before.n_unregistered_copies + 1);
    GOOD(driver.stream_sync(stream));
    GOOD(driver.host_unregister(host + 10));
    GOOD(driver.free(at));
    GOOD(driver.stream_destroy(stream));
    stop();
}

/* ---- streams and events ---- */

static void test_events(void **state)
{
    np_cu_stream stream, other;
    np_cu_event event, plain = NULL;
    np_cu_address at = 0;
    float ms;
    char byte = 0;
    (void)state;
    start();
    stream = make_stream();
    other = make_stream();
    event = make_event();
    GOOD(driver.alloc(&at, 1));
    /* Never recorded: done, and nothing to wait for. */
    GOOD(driver.event_query(event));
    GOOD(driver.event_sync(event));
    hold(stream);
    GOOD(driver.stream_wait(other, event, 0));
    GOOD(fill(at, 1, 1, other));
    GOOD(driver.stream_sync(other));
    /* Recorded behind work that is not done. */
    GOOD(driver.event_record(event, stream));
    ASSERT_EQ(driver.event_query(event), NP_CU_NOT_READY);
    GOOD(driver.stream_wait(other, event, 0));
    GOOD(driver.event_record(event, other)); /* again: the wait was for the record before */
    GOOD(fill(at, 2, 1, other));
    ASSERT_EQ(driver.event_elapsed(&ms, event, event), NP_CU_NOT_READY);
    atomic_store(&gate, true);
    GOOD(driver.event_sync(event));
    GOOD(driver.copy_out(&byte, at, 1, other));
    ASSERT_EQ(byte, 2);
    GOOD(driver.event_elapsed(&ms, event, event));
    ASSERT_TRUE(ms == 0);
    GOOD(driver.event_create(&plain, NP_CU_EVENT_DISABLE_TIMING));
    GOOD(driver.event_record(plain, stream));
    GOOD(driver.event_sync(plain));
    ASSERT_EQ(driver.event_elapsed(&ms, event, plain), 400);
    GOOD(driver.event_destroy(plain));
    GOOD(driver.event_destroy(event));
    GOOD(driver.stream_destroy(stream));
    GOOD(driver.stream_destroy(other));
    GOOD(driver.free(at));
    stop();
}

/* The default stream and blocking ones are in order; those made here are not. */
static void test_the_default_stream(void **state)
{
    np_cu_stream blocking = NULL;
    np_cu_stream free_stream;
    np_cu_event event;
    (void)state;
    start();
    GOOD(driver.stream_create(&blocking, 0));
    free_stream = make_stream();
    event = make_event();
    hold(blocking);
    GOOD(driver.event_record(event, NULL));
    ASSERT_EQ(driver.event_query(event), NP_CU_NOT_READY);
    GOOD(driver.stream_sync(free_stream));
    atomic_store(&gate, true);
    GOOD(driver.event_sync(event));
    hold(free_stream);
    GOOD(driver.event_record(event, NULL));
    GOOD(driver.event_sync(event));
    atomic_store(&gate, true);
    GOOD(driver.event_destroy(event));
    GOOD(driver.stream_destroy(free_stream));
    GOOD(driver.stream_destroy(blocking));
    stop();
}

/* ---- kernels ---- */

static void add_numbers(void **parameters)
{
    char *to;
    uint32_t n;
    memcpy(&n, parameters[0], sizeof n);
    memcpy(&to, parameters[1], sizeof to);
    *to = (char)(*to + (char)n + *(char *)parameters[2]);
}

static void test_kernels(void **state)
{
    static const size_t sizes[] = {4, 8, 1};
    const standin_control *control;
    standin_kernel *kernel;
    np_cu_stream stream;
    np_cu_address at = 0;
    uint32_t n = 2;
    char more = 3;
    void *parameters[] = {&n, &at, &more};
    unsigned char buffer[17] = {20};
    size_t buffer_bytes = sizeof buffer;
    void *extra[] = {(void *)1, buffer, (void *)2, &buffer_bytes, NULL};
    size_t offset = 0, bytes = 0;
    char result = 0;
    (void)state;
    start();
    control = standin_get();
    kernel = control->kernel_create("add", add_numbers, 3, sizes);
    stream = make_stream();
    GOOD(driver.alloc(&at, 1));
    GOOD(fill(at, 10, 1, stream));
    GOOD(launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    n = 100; /* the launch has its own copy */
    GOOD(parameter_info(kernel, 1, &offset, &bytes));
    ASSERT_EQ(offset, 8);
    ASSERT_EQ(bytes, 8);
    GOOD(parameter_info(kernel, 2, &offset, &bytes));
    ASSERT_EQ(offset, 16);
    ASSERT_EQ(parameter_info(kernel, 3, &offset, &bytes), NP_CU_INVALID_VALUE);
    memcpy(buffer + 8, &at, sizeof at);
    GOOD(launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    GOOD(driver.copy_out(&result, at, 1, stream));
    ASSERT_EQ(result, 10 + 2 + 3 + 20);
    GOOD(driver.free(at));
    GOOD(driver.stream_destroy(stream));
    control->kernel_free(kernel);
    stop();
}

/* ---- modules ---- */

static void run_nothing(void **parameters)
{
    (void)parameters;
}

static void test_handles_come_again(void **state)
{
    static const size_t first_bytes[] = {8};
    static const size_t second_bytes[] = {4, 8};
    const standin_image_kernel first = {"first", run_nothing, NULL, 1, first_bytes};
    const standin_image_kernel second = {"second", run_nothing, NULL, 2, second_bytes};
    void *module = NULL;
    void *function = NULL;
    void *again = NULL;
    size_t offset = 0, bytes = 0;
    (void)state;
    start();
    GOOD(load_module(&module, &(standin_image){1, &first}));
    ASSERT_EQ(get_function(&function, module, "second"), 500);
    GOOD(get_function(&function, module, "first"));
    GOOD(unload_module(module));
    GOOD(load_module(&module, &(standin_image){1, &second}));
    GOOD(get_function(&again, module, "second"));
    ASSERT_TRUE(again == function);
    GOOD(parameter_info(again, 1, &offset, &bytes));
    ASSERT_EQ(offset, 8);
    GOOD(unload_module(module));
    stop();
}

/* ---- programmatic launches ---- */

static char steps[8];
static size_t n_steps;

static void note_step(void **parameters)
{
    steps[n_steps++] = *(char *)parameters[0];
}

static void note_early(void **parameters)
{
    steps[n_steps++] = (char)(*(char *)parameters[0] + 1);
}

/* CUlaunchConfig with one attribute: programmatic serialization. */
static void launch_programmatic(void *function, np_cu_stream stream, char number)
{
    int attribute[18] = {6, 0, 1};
    struct {
        unsigned int sizes[7];
        np_cu_stream stream;
        void *attributes;
        unsigned int n;
    } config = {{1, 1, 1, 1, 1, 1, 0}, stream, attribute, 1};
    void *parameters[] = {&number};
    GOOD(launch_ex(&config, function, parameters, NULL));
}

/* The second one's early part comes before the first one, unless something stands between them. */
static void test_programmatic_launches(void **state)
{
    static const size_t bytes[] = {1};
    const standin_image_kernel kernel = {"early", note_step, note_early, 1, bytes};
    np_cu_event event;
    np_cu_stream stream;
    void *module = NULL;
    void *function = NULL;
    (void)state;
    start();
    stream = make_stream();
    event = make_event();
    GOOD(load_module(&module, &(standin_image){1, &kernel}));
    GOOD(get_function(&function, module, "early"));
    for (int has_event = 0; has_event < 2; has_event++) {
        n_steps = 0;
        hold(stream);
        launch_programmatic(function, stream, 10);
        if (has_event) {
            GOOD(driver.event_record(event, stream));
        }
        launch_programmatic(function, stream, 20);
        atomic_store(&gate, true);
        GOOD(driver.stream_sync(stream));
        ASSERT_EQ(n_steps, 4);
        ASSERT_TRUE(memcmp(steps, has_event ? (char[]){11, 10, 21, 20} : (char[]){21, 11, 10, 20}, 4) == 0);
    }
    GOOD(unload_module(module));
    GOOD(driver.event_destroy(event));
    GOOD(driver.stream_destroy(stream));
    stop();
}

/* ---- allocations in the order of a stream ---- */

static void test_async_memory(void **state)
{
    np_cu_address at = 0, plain = 0;
    np_cu_stream stream;
    standin_counts counts;
    char handle[64];
    (void)state;
    start();
    stream = make_stream();
    GOOD(alloc_async(&at, 100, stream));
    GOOD(fill(at, 3, 100, stream));
    ASSERT_EQ(export_memory(handle, at), NP_CU_INVALID_VALUE);
    GOOD(driver.alloc(&plain, 100));
    GOOD(export_memory(handle, plain));
    GOOD(driver.free(plain));
    hold(stream);
    GOOD(fill(at, 4, 100, stream));
    GOOD(free_async(at, stream));
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_allocations, 1); /* the stream has not come to it */
    atomic_store(&gate, true);
    GOOD(driver.stream_sync(stream));
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_allocations, 0);
    ASSERT_EQ(alloc_async(&at, (size_t)1 << 50, stream), NP_CU_OUT_OF_MEMORY);
    GOOD(driver.stream_destroy(stream));
    stop();
}

static void test_rectangles(void **state)
{
    unsigned char host[24];
    unsigned char back[12];
    np_cu_address at = 0;
    struct side {
        size_t x, y;
        int type;
        void *host;
        np_cu_address device;
        void *array;
        size_t pitch;
    };
    struct {
        struct side from, to;
        size_t width, height;
    } copied = {.width = 3, .height = 2};
    (void)state;
    start();
    for (size_t i = 0; i < sizeof host; i++) {
        host[i] = (unsigned char)i;
    }
    GOOD(driver.alloc(&at, sizeof back));
    GOOD(fill(at, 99, sizeof back, NULL));
    copied.from = (struct side){.x = 2, .y = 1, .type = 1, .host = host, .pitch = 8};
    copied.to = (struct side){.x = 1, .y = 1, .type = 2, .device = at, .pitch = 4};
    GOOD(copy_2d(&copied, NULL));
    GOOD(driver.copy_out(back, at, sizeof back, NULL));
    ASSERT_TRUE(memcmp(back, (unsigned char[]){99, 99, 99, 99, 99, 10, 11, 12, 99, 18, 19, 20}, 12) == 0);
    GOOD(driver.free(at));
    stop();
}

/* ---- captures ---- */

static void test_graphs(void **state)
{
    np_cu_stream stream, other;
    np_cu_event fork_event, join_event;
    np_cu_address at = 0;
    void *graph = NULL;
    void *exec = NULL;
    char bytes[2] = {9, 9};
    int status = 0;
    (void)state;
    start();
    stream = make_stream();
    other = make_stream();
    fork_event = make_event();
    join_event = make_event();
    GOOD(driver.alloc(&at, 2));
    GOOD(fill(at, 0, 2, stream));
    GOOD(driver.stream_sync(stream));
    GOOD(begin_capture(stream, NP_CU_CAPTURE_GLOBAL));
    GOOD(is_capturing(stream, &status));
    ASSERT_EQ(status, 1);
    GOOD(fill(at, 1, 1, stream));
    GOOD(driver.event_record(fork_event, stream));
    GOOD(driver.stream_wait(other, fork_event, 0)); /* the other stream is part of it now */
    GOOD(is_capturing(other, &status));
    ASSERT_EQ(status, 1);
    GOOD(fill(at + 1, 2, 1, other));
    GOOD(driver.event_record(join_event, other));
    GOOD(driver.stream_wait(stream, join_event, 0));
    GOOD(end_capture(stream, &graph));
    GOOD(is_capturing(other, &status));
    ASSERT_EQ(status, 0);
    GOOD(driver.copy_out(bytes, at, 2, stream));
    ASSERT_EQ(bytes[0] + bytes[1], 0); /* nothing was done yet */
    GOOD(instantiate(&exec, graph, 0));
    GOOD(graph_destroy(graph));
    GOOD(graph_launch(exec, stream));
    GOOD(driver.copy_out(bytes, at, 2, stream));
    ASSERT_EQ(bytes[0], 1);
    ASSERT_EQ(bytes[1], 2);
    GOOD(exec_destroy(exec));
    /* Without the join. */
    GOOD(begin_capture(stream, NP_CU_CAPTURE_GLOBAL));
    GOOD(driver.event_record(fork_event, stream));
    GOOD(driver.stream_wait(other, fork_event, 0));
    GOOD(fill(at, 1, 1, other));
    ASSERT_EQ(end_capture(stream, &graph), 904);
    GOOD(driver.event_destroy(fork_event));
    GOOD(driver.event_destroy(join_event));
    GOOD(driver.free(at));
    GOOD(driver.stream_destroy(stream));
    GOOD(driver.stream_destroy(other));
    stop();
}

static void *call_unsafe(void *user)
{
    np_cu_capture_mode mode = *(np_cu_capture_mode *)user;
    np_cu_event event = NULL;
    np_cu_context popped;
    (void)driver.context_push(context);
    (void)driver.exchange_capture_mode(&mode);
    (void)driver.event_create(&event, 0);
    *(np_cu_capture_mode *)user = (np_cu_capture_mode)driver.event_query(event);
    (void)driver.event_destroy(event);
    (void)driver.context_pop(&popped);
    return NULL;
}

static void run_add(void **parameters)
{
    unsigned char *at;
    memcpy(&at, parameters[0], sizeof at);
    *at = (unsigned char)(*at + 5);
}

/* A graph in a graph, and a kernel by hand: done in the order in which they were added, whatever became of the part. */
static void test_made_graphs(void **state)
{
    static const size_t sizes[] = {8};
    standin_kernel *kernel;
    np_cu_stream stream;
    np_cu_address at = 0;
    standin_counts counts;
    void *node = NULL;
    void *part = NULL;
    void *graph = NULL;
    void *exec = NULL;
    unsigned char byte = 0;
    void *parameters[] = {&at};
    (void)state;
    start();
    kernel = standin_get()->kernel_create("add", run_add, 1, sizes);
    struct {
        void *function;
        unsigned int grid[3], block[3], shared_bytes;
        void **parameters, **extra;
        void *kernel, *context;
    } of = {.function = kernel, .parameters = parameters};
    stream = make_stream();
    GOOD(driver.alloc(&at, 1));
    GOOD(begin_capture(stream, NP_CU_CAPTURE_RELAXED));
    GOOD(fill(at, 1, 1, stream));
    GOOD(end_capture(stream, &part));
    GOOD(graph_create(&graph, 0));
    GOOD(add_child(&node, graph, NULL, 0, part));
    GOOD(add_kernel(&node, graph, NULL, 0, &of));
    ASSERT_EQ(add_child(&node, graph, NULL, 0, graph), NP_CU_INVALID_VALUE);
    GOOD(graph_destroy(part));
    GOOD(instantiate(&exec, graph, 0));
    GOOD(graph_destroy(graph));
    for (int i = 0; i < 2; i++) {
        GOOD(graph_launch(exec, stream));
        GOOD(driver.copy_out(&byte, at, 1, stream));
        ASSERT_EQ(byte, 6);
    }
    GOOD(exec_destroy(exec));
    standin_get()->count(&counts);
    ASSERT_EQ(counts.n_graphs, 0);
    standin_get()->kernel_free(kernel);
    GOOD(driver.free(at));
    GOOD(driver.stream_destroy(stream));
    stop();
}

/* Who may make unsafe calls while a stream is captured in which mode. */
static void test_captures_forbid(void **state)
{
    np_cu_stream stream;
    (void)state;
    start();
    stream = make_stream();
    for (int capture = 0; capture < 3; capture++) {
        for (int caller = 0; caller < 3; caller++) {
            np_cu_capture_mode mode = (np_cu_capture_mode)caller;
            bool is_forbidden = capture == NP_CU_CAPTURE_GLOBAL && caller == NP_CU_CAPTURE_GLOBAL;
            void *graph = NULL;
            pthread_t thread;
            GOOD(begin_capture(stream, (np_cu_capture_mode)capture));
            ASSERT_EQ(pthread_create(&thread, NULL, call_unsafe, &mode), 0);
            ASSERT_EQ(pthread_join(thread, NULL), 0);
            ASSERT_EQ(mode, is_forbidden ? 900 : 0);
            ASSERT_EQ(end_capture(stream, &graph), is_forbidden ? 901 : 0);
            if (graph) {
                GOOD(graph_destroy(graph));
            }
            /* The thread's own captures: thread-local ones too. */
            GOOD(begin_capture(stream, (np_cu_capture_mode)capture));
            mode = (np_cu_capture_mode)caller;
            (void)call_unsafe(&mode);
            is_forbidden = capture != NP_CU_CAPTURE_RELAXED && caller != NP_CU_CAPTURE_RELAXED;
            ASSERT_EQ(mode, is_forbidden ? 900 : 0);
            mode = NP_CU_CAPTURE_GLOBAL;
            GOOD(driver.exchange_capture_mode(&mode));
            ASSERT_EQ(end_capture(stream, &graph), is_forbidden ? 901 : 0);
            if (graph) {
                GOOD(graph_destroy(graph));
            }
        }
    }
    GOOD(driver.stream_destroy(stream));
    stop();
}

/* A wait for all work is one that no mode allows. */
static void test_captures_forbid_waiting(void **state)
{
    np_cu_stream stream;
    np_cu_capture_mode mode = NP_CU_CAPTURE_RELAXED;
    void *graph = NULL;
    (void)state;
    start();
    stream = make_stream();
    GOOD(driver.exchange_capture_mode(&mode));
    GOOD(driver.context_sync());
    GOOD(begin_capture(stream, NP_CU_CAPTURE_RELAXED));
    ASSERT_EQ(driver.context_sync(), 900);
    ASSERT_EQ(end_capture(stream, &graph), 901);
    GOOD(driver.context_sync());
    GOOD(driver.exchange_capture_mode(&mode));
    GOOD(driver.stream_destroy(stream));
    stop();
}

/* ---- failures ---- */

static void test_failures_on_demand(void **state)
{
    const standin_control *control = standin_get();
    np_cu_event event;
    uint64_t before;
    (void)state;
    start();
    before = control->n_calls("cuEventCreate");
    control->fail_call("cuEventCreate", 2, NP_CU_OUT_OF_MEMORY, false);
    GOOD(driver.event_create(&event, 0));
    GOOD(driver.event_destroy(event));
    ASSERT_EQ(driver.event_create(&event, 0), NP_CU_OUT_OF_MEMORY);
    ASSERT_EQ(control->n_failed(), 1);
    GOOD(driver.event_create(&event, 0));
    ASSERT_EQ(control->n_calls("cuEventCreate"), before + 3);
    control->fail_call(NULL, 1, 700, true);
    ASSERT_EQ(driver.event_query(event), 700);
    ASSERT_EQ(driver.event_destroy(event), 700);
    control->fail_call(NULL, 0, 0, false);
    GOOD(driver.event_destroy(event));
    stop();
}

/* A child of a process that uses the driver has none of it. */
static void test_forked_child(void **state)
{
    np_cu_address at = 0;
    np_cu_stream stream;
    int status = 0;
    pid_t child;
    (void)state;
    start();
    stream = make_stream();
    GOOD(alloc_async(&at, PAGE, stream));
    child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        _exit((int)driver.stream_sync(stream));
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 3 << 8);
    child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* not the sanitizer's */
        _exit(*(volatile char *)(uintptr_t)at);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV); /* its memory is not there */
    GOOD(free_async(at, stream));
    GOOD(driver.stream_destroy(stream));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misuse_ends_the_process), /* first: what forks has no threads yet */
        cmocka_unit_test(test_views_show_one_memory),
        cmocka_unit_test(test_memory_ends),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_the_default_stream),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_handles_come_again),
        cmocka_unit_test(test_programmatic_launches),
        cmocka_unit_test(test_async_memory),
        cmocka_unit_test(test_rectangles),
        cmocka_unit_test(test_forked_child),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_captures_forbid),
        cmocka_unit_test(test_captures_forbid_waiting),
        cmocka_unit_test(test_made_graphs),
        cmocka_unit_test(test_failures_on_demand),
    };
    return cmocka_run_group_tests_name("standin/standin", tests, NULL, NULL);
}
