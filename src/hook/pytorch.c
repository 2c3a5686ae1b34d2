/* pytorch.c: back to PyTorch's own allocator, where a program asks for what its cudaMallocAsync one has not.
 *
 * Two allocators lie in libc10_cuda.so: PyTorch's own, "native", and the one over cudaMallocAsync, by which neap sees each
 * tensor ("async"). The second raises an error for memory pools of more than one graph (torch.compile's graph trees), MemPool,
 * snapshots, the history of memory, and observers. A program that runs without neap must not fail with it. So these functions
 * of async are replaced in a copy of its table of virtual functions: the first that is called makes neap step aside, and makes
 * native the allocator, as it would have been without neap. Tensors that async has made live on: each has with it by whom it
 * is freed, and native passes over what is not its own.
 *
 * Nothing here is compiled against PyTorch. Which function stands where in the tables, a third allocator tells, by names that
 * libtorch_cuda.so shows (CUDAPluggableAllocator); where its names or types are others than expected, nothing is replaced. A
 * function that async has only from the interface, and native has, is native's without more: it asks, or notes, something. */
#include "hook/pytorch.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hook/core.h"
#include "hook/pytorch_tables.h"
#include "hook/virtual.h"

#if defined(__x86_64__) /* how arguments and results are passed is that of its ABI */

enum { MAX_POOLS = 4096, DEVICE_CUDA = 1 };

/* ---- which function does what ---- */

static void both_init(void *self, int n_devices);
static void both_limit(void *self, double fraction, signed char device);
static void begin_pool(void *self, signed char device, uint64_t first, uint64_t second, void *filter);
static void end_pool(void *self, signed char device, uint64_t first, uint64_t second);
static void release_pool(void *self, signed char device, uint64_t first, uint64_t second);
static void raw_free(void *self, void *address);
static void *share(void *result, void *self, void *address);
static bool is_begun(void *self);

typedef np_pytorch_function any_function;

enum { INIT, LIMIT, BEGIN, END, RELEASE, FREE, SHARE, HISTORY, SNAPSHOT, OBSERVER, TRACKER, BEGUN };

static const np_pytorch_entry entries[] = {
    [INIT] = {"4init", NP_PYTORCH_OWN, true, (any_function *)both_init},
    [LIMIT] = {"17setMemoryFraction", NP_PYTORCH_OWN, false, (any_function *)both_limit},
    [BEGIN] = {"19beginAllocateToPool", NP_PYTORCH_OWN, true, (any_function *)begin_pool},
    [END] = {"17endAllocateToPool", NP_PYTORCH_SHARED, true, (any_function *)end_pool},
    [RELEASE] = {"11releasePool", NP_PYTORCH_SHARED, true, (any_function *)release_pool},
    [FREE] = {"10raw_delete", NP_PYTORCH_SHARED, true, (any_function *)raw_free},
    [SHARE] = {"14shareIpcHandle", NP_PYTORCH_SHARED, false, (any_function *)share},
    [HISTORY] = {"13recordHistory", NP_PYTORCH_ASKING, false, NULL},
    [SNAPSHOT] = {"8snapshot", NP_PYTORCH_ASKING, true, NULL},
    [OBSERVER] = {"25attachOutOfMemoryObserver", NP_PYTORCH_ASKING, false, NULL},
    [TRACKER] = {"27attachAllocatorTraceTracker", NP_PYTORCH_ASKING, false, NULL},
    [BEGUN] = {"11initialized", NP_PYTORCH_OWN, false, (any_function *)is_begun},
    {"8allocate", NP_PYTORCH_HANDED, true, NULL},
    {"9raw_alloc", NP_PYTORCH_HANDED, true, NULL},
    {"21raw_alloc_with_stream", NP_PYTORCH_HANDED, true, NULL},
    {"12getIpcDevPtr", NP_PYTORCH_PASSED, false, NULL},
    {"18getCheckpointState", NP_PYTORCH_PASSED, true, NULL},
    {"22setCheckpointPoolState", NP_PYTORCH_PASSED, true, NULL},
    {"25getExpandableSegmentSizes", NP_PYTORCH_PASSED, false, NULL},
};

enum { N_ENTRIES = sizeof entries / sizeof *entries };
_Static_assert(sizeof entries / sizeof *entries <= NP_PYTORCH_MAX_ENTRIES, "there is room for their places");

/* ---- what was found ---- */

static np_pytorch_allocators found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_handed_back;

/* Pools of graphs that async has: one to a graph, and each names what it allocated. */
static struct {
    uint64_t first;
    uint64_t second;
} pools[MAX_POOLS];
static size_t n_pools;
static unsigned n_recording; /* async allocates to one: nothing can be changed now */

#define ORIGINAL(which, object) ((any_function *)(uintptr_t)(object##_slots[found.slot_of[which]]))

static void *allocator_of_pools(void)
{
    return atomic_load(&is_handed_back) ? found.native : found.async;
}

/* ---- back ---- */

/* PyTorch reads its settings when it first needs one, and asserts then that the allocator is the one that they name. Processes that
 * the program starts from here on have PyTorch's own allocator. */
static void forget_backend(void)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};
    static const char backend[] = "backend:cudaMallocAsync";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): as every program does */
        const char *rest = value && strncmp(value, backend, strlen(backend)) == 0 ? value + strlen(backend) : NULL;
        if (rest && (*rest == ',' || *rest == '\0')) {
            /* It is there: its value alone changes. NOLINTNEXTLINE(concurrency-mt-unsafe) */
            (void)setenv(names[i], *rest ? rest + 1 : "", 1);
        }
    }
}

static void tell_registry(void)
{
    typedef void set_function(signed char type, void *allocator, unsigned char priority);
    set_function *set = NULL;
    void *c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = c10 ? dlsym(c10, "_ZN3c1012SetAllocatorENS_10DeviceTypeEPNS_9AllocatorEh") : NULL;
    if (symbol) {
        memcpy(&set, &symbol, sizeof set);
        set(DEVICE_CUDA, found.native, 0);
    }
    if (c10) {
        (void)dlclose(c10);
    }
}

/* Once. `what` the program does, in its user's words. */
static void hand_back(const char *what)
{
    static char why[320];
    bool was = false;
    if (atomic_load(found.current) != found.async || !atomic_compare_exchange_strong(&is_handed_back, &was, true)) {
        return;
    }
    (void)snprintf(why, sizeof why,
                   "the program %s, for which PyTorch needs its own allocator (--keep-backend: an error instead)",
                   what);
    np_hook_step_aside(why);
    np_hook_pass_on();
    forget_backend();
    np_pytorch_put(found.native, &found.in_native);
    for (size_t i = 0; i < N_ENTRIES; i++) {
        size_t slot = found.slot_of[i];
        if (entries[i].deed == NP_PYTORCH_HANDED) {
            __atomic_store_n(&found.in_async.slots[slot], np_forward_slot((unsigned)slot), __ATOMIC_RELEASE);
        }
    }
    atomic_store(found.current, found.native);
    tell_registry();
}

/* Before a function that async has not. */
static void asked(unsigned slot, uint64_t second)
{
    if (slot == found.slot_of[HISTORY]) {
        if (second & 0xff) { /* a bool: to be recorded from now on. Where nothing is, it ends without more */
            hand_back("records the history of its memory (torch.cuda.memory._record_memory_history)");
        }
    } else if (slot == found.slot_of[SNAPSHOT]) {
        hand_back("looks at PyTorch's memory block by block (torch.cuda.memory_snapshot)");
    } else {
        hand_back("watches PyTorch's allocator");
    }
}

/* ---- functions of both ---- */

static void both_init(void *self, int n_devices)
{
    typedef void function(void *self, int n_devices);
    (void)self;
    ((function *)ORIGINAL(INIT, found.async))(found.async, n_devices);
    ((function *)ORIGINAL(INIT, found.native))(found.native, n_devices);
}

static void both_limit(void *self, double fraction, signed char device)
{
    typedef void function(void *self, double fraction, signed char device);
    (void)self;
    ((function *)ORIGINAL(LIMIT, found.async))(found.async, fraction, device);
    ((function *)ORIGINAL(LIMIT, found.native))(found.native, fraction, device);
}

/* PyTorch asks before the program puts an allocator of its own in the place of this one. */
static bool is_begun(void *self)
{
    typedef bool function(void *self);
    bool is = ((function *)ORIGINAL(BEGUN, found.async))(found.async);
    (void)self;
    if (!is) {
        forget_backend();
    }
    return is;
}

/* ---- pools of graphs: a std::pair of numbers is passed as these two ---- */

static size_t find_pool(uint64_t first, uint64_t second)
{
    size_t i = 0;
    while (i < n_pools && (pools[i].first != first || pools[i].second != second)) {
        i++;
    }
    return i;
}

/* A pool that is the user's, or that another graph has: its memory is used again by the next graph, and by torch.compile's trees
 * of graphs set back to what it was. Async knows no pools. That of one graph alone it does not need. */
static bool is_shared(uint64_t first, uint64_t second)
{
    return second != 0 || find_pool(first, second) < n_pools || n_pools == MAX_POOLS;
}

static void begin_pool(void *self, signed char device, uint64_t first, uint64_t second, void *filter)
{
    typedef void function(void *self, signed char device, uint64_t first, uint64_t second, void *filter);
    (void)self;
    (void)pthread_mutex_lock(&lock);
    bool is_to_be_handed = n_recording == 0 && is_shared(first, second);
    (void)pthread_mutex_unlock(&lock);
    if (is_to_be_handed) {
        hand_back("has a memory pool for CUDA graphs or tensors (torch.compile with reduce-overhead or max-autotune "
                  "makes one)");
    }
    if (allocator_of_pools() == found.native) {
        ((function *)ORIGINAL(BEGIN, found.native))(found.native, device, first, second, filter);
        return;
    }
    ((function *)ORIGINAL(BEGIN, found.async))(found.async, device, first, second, filter); /* it may throw */
    (void)pthread_mutex_lock(&lock);
    n_recording++;
    if (n_pools < MAX_POOLS) {
        pools[n_pools].first = first;
        pools[n_pools++].second = second;
    }
    (void)pthread_mutex_unlock(&lock);
}

static void end_pool(void *self, signed char device, uint64_t first, uint64_t second)
{
    typedef void function(void *self, signed char device, uint64_t first, uint64_t second);
    (void)self;
    (void)pthread_mutex_lock(&lock);
    bool is_async = n_recording > 0;
    n_recording -= is_async;
    (void)pthread_mutex_unlock(&lock);
    if (is_async) {
        ((function *)ORIGINAL(END, found.async))(found.async, device, first, second);
    } else {
        ((function *)ORIGINAL(END, found.native))(found.native, device, first, second);
    }
}

static void release_pool(void *self, signed char device, uint64_t first, uint64_t second)
{
    typedef void function(void *self, signed char device, uint64_t first, uint64_t second);
    size_t i;
    bool is_async;
    (void)self;
    (void)pthread_mutex_lock(&lock);
    i = find_pool(first, second);
    is_async = i < n_pools;
    if (is_async) {
        pools[i] = pools[--n_pools];
    }
    (void)pthread_mutex_unlock(&lock);
    if (is_async) {
        ((function *)ORIGINAL(RELEASE, found.async))(found.async, device, first, second);
    } else {
        ((function *)ORIGINAL(RELEASE, found.native))(found.native, device, first, second);
    }
}

/* ---- memory by its address alone ---- */

static void raw_free(void *self, void *address)
{
    typedef void function(void *self, void *address);
    (void)self;
    if (!atomic_load(&is_handed_back) || np_hook_has(address)) {
        ((function *)ORIGINAL(FREE, found.async))(found.async, address);
    } else {
        ((function *)ORIGINAL(FREE, found.native))(found.native, address);
    }
}

/* To another process. What neap has served cannot be: the program gets its error, and its user is told why. */
static void *share(void *result, void *self, void *address)
{
    typedef void *function(void *result, void *self, void *address);
    static atomic_bool is_said;
    (void)self;
    if (atomic_load(&is_handed_back) && !np_hook_has(address)) {
        return ((function *)ORIGINAL(SHARE, found.native))(result, found.native, address);
    }
    if (!atomic_exchange(&is_said, true)) {
        np_hook_say(
            "a CUDA tensor is to be shared with another process: under neap it cannot be, as its memory is mapped "
            "page by page");
    }
    return ((function *)ORIGINAL(SHARE, found.async))(result, found.async, address);
}

/* ---- finding them ---- */

void np_hook_pytorch_look(const void *caller)
{
    static atomic_bool is_over; /* it was found, or will not be */
    np_pytorch_state state;
    if (atomic_load(&is_over) || !np_hook_is_on() || np_hook_is_over() || np_the_hook.settings.keeps_backend ||
        !np_virtual_is_in(caller, "libtorch_cuda.so")) {
        return;
    }
    state = np_pytorch_find(&found, entries, N_ENTRIES); /* libraries begin one after the other */
    if (state == NP_PYTORCH_FOUND) {
        np_the_forward = (np_forward){found.async, found.native, found.native_slots, asked};
        np_pytorch_put(found.async, &found.in_async);
    } else if (state == NP_PYTORCH_UNKNOWN && np_the_hook.settings.log_level >= NEAP_LOG_INFO) {
        np_hook_say("this PyTorch's allocators are not known, or another was chosen: what its cudaMallocAsync has not "
                    "will be an error");
    }
    atomic_store(&is_over, state != NP_PYTORCH_ABSENT);
}

#else

void np_hook_pytorch_look(const void *caller)
{
    (void)caller;
}

#endif
