/* Back to PyTorch's own allocator: its two allocators are doubles (standin_c10), found by their names in libraries by the names of
 * PyTorch's. What is done is done once in a process: each test is one of its own. */
#define _GNU_SOURCE /* setenv */
#include "hook/pytorch.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook/core.h"
#include "hook_parts/capture.h"
#include "standin_c10/c10.h"
#include "testing.h"

/* ---- doubles ---- */

np_hook np_the_hook;
static const char *aside; /* why */
static uint32_t n_aside;
static bool passes_on;
static const void *ours; /* the one address that neap has served */

bool np_hook_is_on(void)
{
    return true;
}

bool np_hook_is_over(void)
{
    return false;
}

void np_hook_step_aside(const char *why)
{
    aside = why;
    n_aside++;
}

void np_hook_pass_on(void)
{
    passes_on = true;
}

bool np_hook_has(const void *address)
{
    return address == ours;
}

/* ---- a PyTorch ---- */

static void *async;
static void *native;
static _Atomic(void *) *current;
static const standin_c10_note *noted;

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    ASSERT_TRUE(found != NULL);
    return found;
}

static void *kernels; /* the library that has them */

/* As a library does that registers its own. */
static void look(void *library)
{
    np_hook_pytorch_look(dlsym(library, "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE"));
}

static void load(bool has_kernels)
{
    typedef void *get_function(void);
    void *c10 = dlopen(NEAP_STANDIN_DIR "/libc10_cuda.so", RTLD_NOW);
    get_function *get;
    void *found;
    ASSERT_TRUE(c10 != NULL);
    found = symbol(c10, "standin_c10_async");
    memcpy(&get, &found, sizeof found);
    async = get();
    found = symbol(c10, "standin_c10_native");
    memcpy(&get, &found, sizeof found);
    native = get();
    noted = symbol(c10, "standin_c10_noted");
    current = symbol(c10, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    if (has_kernels) {
        kernels = dlopen(NEAP_STANDIN_DIR "/libtorch_cuda.so", RTLD_NOW);
        ASSERT_TRUE(kernels != NULL);
    }
    ASSERT_EQ(setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync,pinned_use_background_threads:True", 1), 0);
    ASSERT_EQ(setenv("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", 1), 0);
    np_hook_pytorch_look(current); /* another library's, first */
    if (has_kernels) {
        look(kernels);
    }
}

typedef void any_function(void);

static any_function *function_of(void *object, standin_c10_slot slot)
{
    void **slots;
    memcpy(&slots, object, sizeof slots);
    return (any_function *)(uintptr_t)slots[slot];
}

/* As a C++ program calls it. */
static void call(void *object, standin_c10_slot slot, uint64_t a, uint64_t b, uint64_t c)
{
    typedef void function(void *self, uint64_t a, uint64_t b, uint64_t c);
    ((function *)function_of(object, slot))(object, a, b, c);
}

static standin_c10_answer ask(void *object, standin_c10_slot slot, uint64_t a, uint64_t b)
{
    typedef standin_c10_answer function(void *self, uint64_t a, uint64_t b);
    return ((function *)function_of(object, slot))(object, a, b);
}

static void record(void *object, bool enabled, const char *skipped)
{
    typedef void function(void *self, bool enabled, void *context, uint64_t n, int when, bool clears,
                          const char *skipped);
    ((function *)function_of(object, C10_HISTORY))(object, enabled, NULL, 7, 2, true, skipped);
}

static bool is_initialized(void *object)
{
    typedef bool function(void *self);
    return ((function *)function_of(object, C10_INITIALIZED))(object);
}

static void set_limit(void *object, double fraction)
{
    typedef void function(void *self, double fraction, signed char device);
    ((function *)function_of(object, C10_LIMIT))(object, fraction, 3);
}

#define NOTED(what_was, self_was, a, b, c)                                                                   \
    do {                                                                                                     \
        ASSERT_STR_EQ(noted->what, what_was);                                                                \
        ASSERT_TRUE(noted->self == (self_was));                                                              \
        ASSERT_TRUE(noted->arguments[0] == (a) && noted->arguments[1] == (b) && noted->arguments[2] == (c)); \
    } while (0)

static void is_back(const char *why)
{
    ASSERT_EQ(n_aside, 1);
    ASSERT_CONTAINS(aside, why);
    ASSERT_TRUE(passes_on);
    ASSERT_TRUE(atomic_load(current) == native);
    ASSERT_STR_EQ(getenv("PYTORCH_CUDA_ALLOC_CONF"), "pinned_use_background_threads:True");
    ASSERT_STR_EQ(getenv("PYTORCH_ALLOC_CONF"), "");
}

static void is_not_back(void)
{
    ASSERT_EQ(n_aside, 0);
    ASSERT_TRUE(atomic_load(current) == async);
    ASSERT_STR_EQ(getenv("PYTORCH_ALLOC_CONF"), "backend:cudaMallocAsync");
}

/* ---- what a program does, each in a process of its own ---- */

/* What async has stays its own; of what it has from the interface alone, native takes note. */
static void ordinary(void)
{
    load(true);
    (void)ask(async, C10_ALLOCATE, 4096, 0);
    NOTED("async allocate", async, 4096, 0, 0);
    call(async, C10_RAW_ALLOC, 1, 2, 3);
    NOTED("async raw_alloc", async, 1, 2, 3);
    call(async, C10_RAW_DELETE, 77, 0, 0);
    ASSERT_STR_EQ(noted->what, "async raw_delete");
    call(async, C10_METADATA, 5, 6, 7);
    NOTED("native metadata", native, 5, 6, 7);
    call(async, C10_INHERITED, 5, 6, 7);
    NOTED("inherited", async, 5, 6, 7);
    is_not_back();
}

static void begun(void)
{
    uint64_t n;
    load(true);
    n = noted->n;
    call(async, C10_INIT, 2, 0, 0);
    ASSERT_EQ(noted->n, n + 2); /* both of them */
    set_limit(async, 0.25);
    NOTED("native limit", native, 25, 3, 0);
    ASSERT_EQ(noted->n, n + 4);
    is_not_back();
}

static void by_snapshot(void)
{
    standin_c10_answer answer;
    load(true);
    answer = ask(async, C10_SNAPSHOT, 11, 12);
    ASSERT_STR_EQ(answer.by, "native");
    ASSERT_TRUE(answer.arguments[0] == 11 && answer.arguments[1] == 12);
    NOTED("native snapshot", native, 11, 12, 0);
    is_back("looks at PyTorch's memory block by block");
    (void)ask(async, C10_SNAPSHOT, 0, 0); /* once */
    is_back("looks at");
}

static void by_history(void)
{
    load(true);
    record(async, false, "a");
    ASSERT_STR_EQ(noted->what, "native history");
    is_not_back(); /* there is none to end */
    record(async, true, "on the stack");
    ASSERT_TRUE(noted->self == native);
    ASSERT_STR_EQ((const char *)(uintptr_t)noted->arguments[2], "on the stack");
    is_back("records the history of its memory");
}

static void by_observer(void)
{
    load(true);
    call(async, C10_OBSERVER, 1, 2, 3);
    NOTED("native observer", native, 1, 2, 3);
    is_back("watches PyTorch's allocator");
}

static void by_tracker(void)
{
    load(true);
    call(async, C10_TRACKER, 1, 2, 3);
    NOTED("native tracker", native, 1, 2, 3);
    is_back("watches PyTorch's allocator");
}

/* A pool that the program has made: of graphs that share it, or of tensors. */
static void by_pool(void)
{
    load(true);
    call(async, C10_BEGIN, 0, 0, 9);
    NOTED("native begin", native, 0, 0, 9);
    is_back("has a memory pool");
    call(native, C10_END, 0, 0, 9);
    NOTED("native end", native, 0, 0, 9);
    call(native, C10_RELEASE, 0, 0, 9);
    NOTED("native release", native, 0, 0, 9);
}

/* One graph alone needs no pool. The second one in it does, and the first ends where it began. */
static void by_second_graph(void)
{
    load(true);
    for (uint64_t pool = 1; pool <= 2; pool++) {
        call(async, C10_BEGIN, 0, pool, 0);
        NOTED("async begin", async, 0, pool, 0);
        call(async, C10_BEGIN, 0, pool, 0); /* while it records: nothing can be changed, and async has its error */
        NOTED("async begin", async, 0, pool, 0);
        call(async, C10_END, 0, pool, 0);
        call(async, C10_END, 0, pool, 0);
        NOTED("async end", async, 0, pool, 0);
    }
    is_not_back();
    call(async, C10_RELEASE, 0, 2, 0);
    call(async, C10_RELEASE, 0, 2, 0);
    call(async, C10_BEGIN, 0, 2, 0); /* no graph has it any more */
    NOTED("async begin", async, 0, 2, 0);
    call(async, C10_END, 0, 2, 0);
    is_not_back();
    call(async, C10_BEGIN, 0, 1, 0);
    NOTED("native begin", native, 0, 1, 0);
    is_back("has a memory pool");
    call(native, C10_END, 0, 1, 0);
    NOTED("native end", native, 0, 1, 0);
    call(native, C10_RELEASE, 0, 2, 0);
    NOTED("async release", async, 0, 2, 0);
    call(native, C10_RELEASE, 0, 1, 0);
    call(native, C10_RELEASE, 0, 1, 0);
    NOTED("async release", async, 0, 1, 0);
    call(native, C10_RELEASE, 0, 1, 0);
    NOTED("native release", native, 0, 1, 0);
}

/* What is older than the change goes back to where it came from, and what is asked of the old one comes from the new. */
static void afterwards(void)
{
    static char old;
    static char young;
    load(true);
    ours = &old;
    (void)ask(async, C10_SNAPSHOT, 0, 0);
    ASSERT_STR_EQ(ask(async, C10_ALLOCATE, 8, 0).by, "native");
    call(async, C10_RAW_ALLOC_WITH_STREAM, 1, 2, 3);
    NOTED("native raw_alloc_with_stream", native, 1, 2, 3);
    call(native, C10_RAW_DELETE, (uintptr_t)&old, 0, 0);
    ASSERT_TRUE(noted->self == async && strcmp(noted->what, "async raw_delete") == 0);
    call(native, C10_RAW_DELETE, (uintptr_t)&young, 0, 0);
    ASSERT_TRUE(noted->self == native && strcmp(noted->what, "native raw_delete") == 0);
    ASSERT_STR_EQ(ask(native, C10_SHARE, (uintptr_t)&old, 0).by, "async");
    ASSERT_STR_EQ(ask(native, C10_SHARE, (uintptr_t)&young, 0).by, "native");
}

/* To another process: async has its error, and one line says why. */
static void sharing(void)
{
    stderr_capture capture;
    char said[512];
    load(true);
    capture = capture_begin();
    ASSERT_STR_EQ(ask(async, C10_SHARE, 64, 0).by, "async");
    ASSERT_STR_EQ(ask(async, C10_SHARE, 64, 0).by, "async");
    capture_end(&capture, said, sizeof said);
    ASSERT_CONTAINS(said, "a CUDA tensor is to be shared with another process");
    ASSERT_TRUE(strchr(said, '\n') == said + strlen(said) - 1); /* once */
    is_not_back();
}

/* The program's own allocator takes this one's place: settings that name a backend would be an error of PyTorch's. */
static void by_its_own(void)
{
    load(true);
    ASSERT_FALSE(is_initialized(async));
    ASSERT_STR_EQ(getenv("PYTORCH_ALLOC_CONF"), "");
    ASSERT_EQ(n_aside, 0);
    atomic_store(current, &ours);
    (void)ask(async, C10_SNAPSHOT, 0, 0); /* nothing is put in the place of the program's */
    ASSERT_TRUE(atomic_load(current) == &ours && n_aside == 0);
}

/* Asked to leave it as it is; no PyTorch; another allocator chosen; another version of it. */
static void kept(void)
{
    np_the_hook.settings.keeps_backend = true;
    load(true);
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "async");
    is_not_back();
}

static void without_kernels(void)
{
    load(false);
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "async");
    kernels = dlopen(NEAP_STANDIN_DIR "/libtorch_cuda.so", RTLD_NOW);
    ASSERT_TRUE(kernels != NULL);
    np_hook_pytorch_look(noted); /* not its own */
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "async");
    look(kernels);
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "native");
}

/* A library that it needs begins before it, and registers kernels of its own. */
static void unready(void)
{
    void *c10 = dlopen(NEAP_STANDIN_DIR "/libc10_cuda.so", RTLD_NOW);
    _Atomic(void *) *chosen = symbol(c10, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    void *made = atomic_exchange(chosen, NULL);
    load(true);
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "async");
    atomic_store(chosen, made);
    look(kernels);
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "native");
}

static void another(void)
{
    void *c10 = dlopen(NEAP_STANDIN_DIR "/libc10_cuda.so", RTLD_NOW);
    _Atomic(void *) *chosen = symbol(c10, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    typedef void *get_function(void);
    void *found = symbol(c10, "standin_c10_native");
    get_function *get;
    memcpy(&get, &found, sizeof found);
    atomic_store(chosen, get());
    load(true);
    ASSERT_STR_EQ(ask(native, C10_SNAPSHOT, 0, 0).by, "native");
    ASSERT_STR_EQ(ask(async, C10_SNAPSHOT, 0, 0).by, "async");
    ASSERT_EQ(n_aside, 0);
}

/* ---- */

static void in_process(void **state)
{
    void (*action)(void) = *(void (**)(void))state[0];
    int status = -1;
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        action();
        _exit(0); /* an assertion that failed has not come here */
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define IN_PROCESS(action)                      \
    static void test_##action(void **state)     \
    {                                           \
        static void (*function)(void) = action; \
        void *at = &function;                   \
        (void)state;                            \
        in_process(&at);                        \
    }

#if defined(__x86_64__)
IN_PROCESS(ordinary)
IN_PROCESS(begun)
IN_PROCESS(by_snapshot)
IN_PROCESS(by_history)
IN_PROCESS(by_observer)
IN_PROCESS(by_tracker)
IN_PROCESS(by_pool)
IN_PROCESS(by_second_graph)
IN_PROCESS(afterwards)
IN_PROCESS(sharing)
IN_PROCESS(by_its_own)
IN_PROCESS(kept)
IN_PROCESS(without_kernels)
IN_PROCESS(another)
IN_PROCESS(unready)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary),        cmocka_unit_test(test_begun),
        cmocka_unit_test(test_by_snapshot),     cmocka_unit_test(test_by_history),
        cmocka_unit_test(test_by_observer),     cmocka_unit_test(test_by_tracker),
        cmocka_unit_test(test_by_pool),         cmocka_unit_test(test_by_second_graph),
        cmocka_unit_test(test_afterwards),      cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_by_its_own),      cmocka_unit_test(test_kept),
        cmocka_unit_test(test_another),         cmocka_unit_test(test_unready),
        cmocka_unit_test(test_without_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void test_machine(void **state)
{
    (void)state;
    SKIP("PyTorch's allocators are looked for on x86-64 alone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
