/* trainer.c: trains, and prints a line an iteration. Options are --name or --name=N: see trainer.h. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "hook/trainer.h"
#include "standin_c10/c10.h"
#include "standin_cupti/cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

options option = {
#define VALUE(name, value, text) value,
    TRAINER_OPTIONS(VALUE)
#undef VALUE
};

static const struct {
    const char *name;
    unsigned long *value;
    const char *text;
} table[] = {
#define ROW(name, value, text) {#name, &option.name, text},
    TRAINER_OPTIONS(ROW)
#undef ROW
};

_Noreturn void fail(const char *what, const char *why)
{
    (void)fflush(stdout);
    (void)fprintf(stderr, "trainer: %s: %s\n", what, why);
    exit(1);
}

void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        char why[64];
        (void)snprintf(why, sizeof why, "%s (%d)", cudaGetErrorName(error), error);
        fail(what, why);
    }
}

uint32_t random_below(uint64_t *state, uint32_t n)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % n);
}

static void read_options(int n, char **texts)
{
    for (int i = 1; i < n; i++) {
        const char *name = texts[i] + 2;
        size_t length = strcspn(name, "=");
        bool is_known = false;
        for (size_t k = 0; k < sizeof table / sizeof *table && strncmp(texts[i], "--", 2) == 0; k++) {
            if (strncmp(table[k].name, name, length) == 0 && table[k].name[length] == '\0') {
                *table[k].value = name[length] ? strtoul(name + length + 1, NULL, 10) : 1;
                is_known = true;
            }
        }
        if (!is_known) {
            for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
                (void)fprintf(stderr, "  --%-12s %lu  %s\n", table[k].name, *table[k].value, table[k].text);
            }
            fail(texts[i], "is no option");
        }
    }
    if (option.layers < 4 || option.layers > MAX_LAYERS || option.scale < 1) {
        fail("options", "there are 4 to 24 layers, of some size");
    }
}

/* ---- other processes ---- */

/* The child has no device: every call fails, and says so. */
static void fork_child(void)
{
    int status = 0;
    uint64_t random = 1;
    void *some = some_address(&random); /* asked for here: another thread may have the lock at the fork, and keep it */
    void *first = first_block();
    pid_t child;
    (void)fflush(stdout);
    child = fork();
    if (child < 0) {
        fail("fork", "failed");
    }
    if (child == 0) {
        void *made = NULL;
        (void)cudaFree(some); /* that is not its own, and with that nothing happens */
        (void)cudaFreeAsync(first, NULL);
        (void)cudaFree(first);
        cudaError_t ordered = cudaMallocAsync(&made, 1 << 20, NULL);
        cudaError_t plain = cudaMalloc(&made, 1 << 20);
        _exit(10 * ordered + plain);
    }
    if (waitpid(child, &status, 0) != child) {
        fail("waitpid", "failed");
    }
    if (WIFSIGNALED(status)) {
        (void)printf("child: signal %d\n", WTERMSIG(status));
    } else {
        (void)printf("child: %d\n", WEXITSTATUS(status));
    }
}

/* Two more: one that ends by exit, with all its handlers; one that becomes another program. */
static void spawn_children(void)
{
    int status = 0;
    pid_t child;
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        __fpurge(stdout); /* what another thread has printed since: its own process will write it */
        exit(3);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        fail("fork", "failed");
    }
    (void)printf("child: %d\n", status);
    (void)printf("program: %d\n", system("exit 5"));
}

/* ---- others that use CUPTI ---- */

static void ignore(void *user, int domain, uint32_t id, const void *data)
{
    (void)user;
    (void)domain;
    (void)id;
    (void)data;
}

/* As one that is linked to it would call it. */
static void *cupti_function(const char *symbol)
{
    void *library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_GLOBAL);
    void *found = library ? dlsym(RTLD_DEFAULT, symbol) : NULL;
    if (!found) {
        fail("cupti", dlerror());
    }
    return found;
}

/* Of PyTorch's libraries (standin_c10): a snapshot of the allocator that it has now. Where that is another one afterwards, memory
 * comes from there. */
static void take_snapshot(void)
{
    typedef standin_c10_answer snapshot(void *self, uint64_t a, uint64_t b);
    void *c10 = dlopen("libc10_cuda.so", RTLD_NOW);
    _Atomic(void *) *allocator = c10 ? dlsym(c10, "_ZN3c104cuda20CUDACachingAllocator9allocatorE") : NULL;
    void *before;
    void **slots;
    if (!allocator) {
        fail("snapshot", dlerror());
    }
    before = atomic_load(allocator);
    memcpy(&slots, before, sizeof slots);
    (void)((snapshot *)(uintptr_t)slots[C10_SNAPSHOT])(before, 0, 0);
    if (atomic_load(allocator) != before) {
        memory_is_plain();
    }
}

static void tear_down(void)
{
    int (*finalize)(void);
    void *found = cupti_function("cuptiFinalize");
    memcpy(&finalize, &found, sizeof finalize);
    (void)finalize();
}

/* With `stays` for as long as the program runs. */
static void profile(bool stays)
{
    int (*subscribe)(void **handle, void (*callback)(void *, int, uint32_t, const void *), void *user);
    int (*unsubscribe)(void *handle);
    void *handle = NULL;
    void *found = cupti_function("cuptiSubscribe");
    memcpy(&subscribe, &found, sizeof subscribe);
    found = cupti_function("cuptiUnsubscribe");
    memcpy(&unsubscribe, &found, sizeof unsubscribe);
    if (subscribe(&handle, ignore, NULL) == 0 && !stays) {
        (void)unsubscribe(handle);
    }
}

/* One that allows others. Whether it was told of any call is seen when it ends. */
static void *tool;
static atomic_uint n_told;

static void count(void *user, int domain, uint32_t id, const void *data)
{
    (void)user;
    (void)domain;
    (void)id;
    (void)data;
    n_told++;
}

static void begin_tool(void)
{
    int (*subscribe)(void **handle, standin_cupti_callback callback, void *user, standin_cupti_params *params);
    int (*enable)(uint32_t enable, void *handle, int domain);
    standin_cupti_params params = {.struct_bytes = sizeof params, .name = "a tool", .allows_several = 1};
    void *found = cupti_function("cuptiSubscribe_v2");
    memcpy(&subscribe, &found, sizeof subscribe);
    found = cupti_function("cuptiEnableDomain");
    memcpy(&enable, &found, sizeof enable);
    if (subscribe(&tool, count, NULL, &params) != 0 || enable(1, tool, STANDIN_CUPTI_DRIVER_API) != 0) {
        fail("tool", "CUPTI does not let it");
    }
}

static void end_tool(void)
{
    int (*unsubscribe)(void *handle);
    void *found = cupti_function("cuptiUnsubscribe");
    memcpy(&unsubscribe, &found, sizeof unsubscribe);
    if (n_told == 0 || unsubscribe(tool) != 0) {
        fail("tool", "it was told of nothing");
    }
}

/* ---- training ---- */

static unsigned batch_of(unsigned iteration)
{
    return option.grow ? 4 + iteration % 60 : option.alternate && iteration % 2 ? 11 : 16;
}

static void pause_for(unsigned long ms)
{
    const struct timespec nap = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&nap, NULL);
}

/* When the first plans are there is then told by iterations, on a machine of any load: the one thing that the trainer knows of
 * neap. It is asked for the report that a Python program could ask for, which changes nothing. What is planned anew once there
 * are swaps may come when it likes. */
static bool is_awaited(const char *report)
{
    return strstr(report, "\"is_learning\": true") &&
           (strstr(report, "\"swap_seconds\": null") || !strstr(report, "\"state\": \"run\""));
}

static void await_planner(void)
{
    enum { PATIENCE_MS = 120000 }; /* for a hang, not for slowness */
    void *found = dlsym(RTLD_DEFAULT, "neap_hook_stats");
    const char *(*stats)(void);
    memcpy(&stats, &found, sizeof stats);
    for (int ms = 0; found && is_awaited(stats()); ms++) {
        if (ms == PATIENCE_MS) {
            fail("await", "the planner is at work for ever");
        }
        pause_for(1);
    }
}

static void between(unsigned iteration)
{
    if (option.fork && iteration == option.fork) {
        fork_child();
    }
    if (option.spawn && iteration == option.spawn) {
        spawn_children();
    }
    if (option.teardown && iteration == option.teardown) {
        tear_down();
    }
    if (option.snapshot && iteration == option.snapshot) {
        take_snapshot();
    }
    if (option.profiler && iteration == option.profiler) {
        profile(false);
    }
    if (option.tool && iteration == option.tool) {
        begin_tool();
    }
    if (option.tool && iteration == option.tool + 2) {
        end_tool();
    }
    if (option.peer && iteration == option.peer) {
        CHECK(cudaDeviceEnablePeerAccess(1, 0));
    }
}

static void train(network *net, const char *name, FILE *out, bool is_main)
{
    for (unsigned i = 0; i < option.iterations; i++) {
        result r = network_train(net, i, batch_of(i));
        (void)fprintf(out, "%s %u loss %08x norm %08x more %08x\n", name, i, r.loss, r.norm, r.more);
        if (option.evaluate && i % option.evaluate == option.evaluate - 1) {
            (void)fprintf(out, "%s %u evaluation %08x\n", name, i, network_evaluate(net, 9));
        }
        if (option.checkpoint && i % option.checkpoint == option.checkpoint - 1) {
            (void)fprintf(out, "%s %u checkpoint %08x\n", name, i, network_checkpoint(net));
        }
        if (option.devices && is_main && i == option.devices) {
            (void)printf("%s %u mirror %08x\n", name, i, network_mirror(net));
        }
        pause_for(option.pause);
        if (option.await) {
            await_planner();
        }
        if (is_main) {
            between(i);
        }
    }
    (void)fprintf(out, "%s weights %08x\n", name, network_checkpoint(net));
}

/* Its lines are kept until the other has printed its own: whoever compares finds them in one order. */
static void *train_second(void *user)
{
    FILE *out = user;
    cudaStream_t stream = NULL;
    network *net;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    net = network_make(option.seed + 100, stream);
    train(net, "second", out, false);
    network_free(net);
    CHECK(cudaStreamDestroy(stream));
    return NULL;
}

static void join_second(pthread_t second, FILE *out, char *const *lines)
{
    (void)pthread_join(second, NULL);
    (void)fclose(out);
    (void)fputs(*lines, stdout);
    free(*lines);
}

int main(int n, char **texts)
{
    pthread_t second;
    network *net;
    char *lines = NULL;
    size_t n_chars = 0;
    FILE *out = open_memstream(&lines, &n_chars);
    int n_devices = 0;
    read_options(n, texts);
    if (option.torch && !dlopen("libc10_cuda.so", RTLD_NOW)) {
        fail("torch", dlerror());
    }
    if (option.snapshot && !dlopen("libtorch_cuda.so", RTLD_NOW)) {
        fail("snapshot", dlerror());
    }
    if (option.profiled == 2) {
        begin_tool();
    } else if (option.profiled) {
        profile(true);
    }
    kernels_register();
    hidden_register();
    CHECK(cudaGetDeviceCount(&n_devices));
    CHECK(cudaSetDevice(0));
    net = network_make(option.seed, NULL);
    if (option.threads && (!out || pthread_create(&second, NULL, train_second, out) != 0)) {
        fail("threads", "no thread");
    }
    train(net, "main", stdout, true);
    if (option.threads) {
        join_second(second, out, &lines);
    }
    network_free(net);
    return 0;
}
