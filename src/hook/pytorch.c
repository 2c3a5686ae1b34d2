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
#include "hook/forward.h"
#include "hook/virtual.h"

#if defined(__x86_64__) /* how arguments and results are passed is that of its ABI */

static const char native_type[] = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE";
static const char async_type[] = "N3c104cuda20CUDACachingAllocator15CudaMallocAsync24CudaMallocAsyncAllocatorE";
static const char named[] = "22CUDAPluggableAllocator";

enum { MAX_POOLS = 4096, DEVICE_CUDA = 1, FIRST_SLOT = 2 /* after the destructors */ };

#define NOWHERE ((size_t)-1)

/* ---- which function does what ---- */

typedef enum deed {
    HANDED, /* async's until native is the allocator; then native's, also for those who remember async */
    PASSED, /* native's, always */
    ASKING, /* the same, and native is the allocator from then on */
    OWN,    /* one of those below, */
    SHARED, /* which stands in native's place too */
} deed;

static void both_init(void *self, int n_devices);
static void both_limit(void *self, double fraction, signed char device);
static void begin_pool(void *self, signed char device, uint64_t first, uint64_t second, void *filter);
static void end_pool(void *self, signed char device, uint64_t first, uint64_t second);
static void release_pool(void *self, signed char device, uint64_t first, uint64_t second);
static void raw_free(void *self, void *address);
static void *share(void *result, void *self, void *address);
static bool is_begun(void *self);

typedef void any_function(void);

enum { INIT, LIMIT, BEGIN, END, RELEASE, FREE, SHARE, HISTORY, SNAPSHOT, OBSERVER, TRACKER, BEGUN };

static const struct entry {
    const char *name;
    deed deed;
    bool is_needed; /* there is no PyTorch without it that this knows */
    any_function *own;
} entries[] = {
    [INIT] = {"4init", OWN, true, (any_function *)both_init},
    [LIMIT] = {"17setMemoryFraction", OWN, false, (any_function *)both_limit},
    [BEGIN] = {"19beginAllocateToPool", OWN, true, (any_function *)begin_pool},
    [END] = {"17endAllocateToPool", SHARED, true, (any_function *)end_pool},
    [RELEASE] = {"11releasePool", SHARED, true, (any_function *)release_pool},
    [FREE] = {"10raw_delete", SHARED, true, (any_function *)raw_free},
    [SHARE] = {"14shareIpcHandle", SHARED, false, (any_function *)share},
    [HISTORY] = {"13recordHistory", ASKING, false, NULL},
    [SNAPSHOT] = {"8snapshot", ASKING, true, NULL},
    [OBSERVER] = {"25attachOutOfMemoryObserver", ASKING, false, NULL},
    [TRACKER] = {"27attachAllocatorTraceTracker", ASKING, false, NULL},
    [BEGUN] = {"11initialized", OWN, false, (any_function *)is_begun},
    {"8allocate", HANDED, true, NULL},
    {"9raw_alloc", HANDED, true, NULL},
    {"21raw_alloc_with_stream", HANDED, true, NULL},
    {"12getIpcDevPtr", PASSED, false, NULL},
    {"18getCheckpointState", PASSED, true, NULL},
    {"22setCheckpointPoolState", PASSED, true, NULL},
    {"25getExpandableSegmentSizes", PASSED, false, NULL},
};

enum { N_ENTRIES = sizeof entries / sizeof *entries };

/* ---- what was found ---- */

typedef struct table {
    void *head[2]; /* what comes before the functions: an offset, and the type */
    void *slots[NP_FORWARD_SLOTS];
} table;

static struct {
    _Atomic(void *) *current; /* c10::cuda::CUDACachingAllocator::allocator */
    void *async;
    void *native;
    void **async_slots; /* as they were */
    void **native_slots;
    size_t n;
    size_t slot_of[N_ENTRIES];
    table in_async; /* what stands in their places */
    table in_native;
} found;

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
            char *copy = strdup(*rest ? rest + 1 : "");
            if (copy) {
                (void)setenv(names[i], copy,
                             1); /* NOLINT(concurrency-mt-unsafe): it is there: its value alone changes */
            }
            free(copy);
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

static void set_slot(table *made, size_t slot, void *function)
{
    __atomic_store_n(&made->slots[slot], function, __ATOMIC_RELEASE);
}

static void set_table(void *object, table *made)
{
    void *slots = made->slots;
    __atomic_store((void **)object, &slots, __ATOMIC_RELEASE);
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
    set_table(found.native, &found.in_native);
    for (size_t i = 0; i < N_ENTRIES; i++) {
        if (entries[i].deed == HANDED) {
            set_slot(&found.in_async, found.slot_of[i], np_forward_slot((unsigned)found.slot_of[i]));
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

static bool find_slots(void *const *pluggable)
{
    size_t n = np_virtual_count(pluggable);
    n = n < found.n ? n : found.n;
    for (size_t i = 0; i < N_ENTRIES; i++) {
        found.slot_of[i] = np_virtual_slot(pluggable, n, named, entries[i].name);
        if (found.slot_of[i] == NOWHERE && entries[i].is_needed) {
            return false;
        }
    }
    return true;
}

static void *replaced(const struct entry *entry, size_t slot, bool is_native)
{
    switch (entry->deed) {
    case SHARED:
        return (void *)(uintptr_t)entry->own;
    case OWN:
        return is_native ? NULL : (void *)(uintptr_t)entry->own;
    case PASSED:
        return is_native ? NULL : np_forward_slot((unsigned)slot);
    case ASKING:
        return is_native ? NULL : np_forward_asking((unsigned)slot);
    case HANDED:
        break;
    }
    return NULL;
}

static void fill(table *made, void *const *slots, void *const *pluggable, bool is_native)
{
    memcpy(made->head, slots - 2, sizeof made->head);
    memcpy(made->slots, slots, found.n * sizeof *slots);
    for (size_t i = FIRST_SLOT; i < found.n && !is_native; i++) { /* from the interface alone */
        if (found.async_slots[i] != found.native_slots[i] && !np_virtual_has_name(pluggable, i, named)) {
            made->slots[i] = np_forward_slot((unsigned)i);
        }
    }
    for (size_t i = 0; i < N_ENTRIES; i++) {
        size_t slot = found.slot_of[i];
        void *function = slot == NOWHERE ? NULL : replaced(&entries[i], slot, is_native);
        if (function) {
            made->slots[slot] = function;
        }
    }
}

/* PyTorch's libraries are in the process. False: it is not one that is known, or it has its own allocator already. */
static bool find(void *torch_cuda)
{
    void *const *pluggable = dlsym(torch_cuda, "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE");
    size_t n_native;
    if (!pluggable || !np_virtual_is(found.async, async_type)) {
        return false;
    }
    found.native = np_virtual_find((const void *)found.current, native_type);
    if (!found.native) {
        return false;
    }
    found.async_slots = np_virtual_slots(found.async);
    found.native_slots = np_virtual_slots(found.native);
    n_native = np_virtual_count(found.native_slots);
    found.n = np_virtual_count(found.async_slots);
    found.n = n_native < found.n ? n_native : found.n;
    if (found.n > NP_FORWARD_SLOTS || !np_forward_slot(0) || !find_slots(pluggable + 2)) {
        return false;
    }
    fill(&found.in_async, found.async_slots, pluggable + 2, false);
    fill(&found.in_native, found.native_slots, pluggable + 2, true);
    np_the_forward = (np_forward){found.async, found.native, found.native_slots, asked};
    set_table(found.async, &found.in_async);
    return true;
}

static atomic_bool is_looked_for; /* once its libraries are there */

/* Its libraries are loaded, and then each begins: is an allocator chosen? */
static bool has_begun(void *c10_cuda)
{
    found.current = dlsym(c10_cuda, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    found.async = found.current ? atomic_load(found.current) : NULL;
    return !found.current || (found.async && np_virtual_slots(found.async));
}

static void look(void)
{
    static atomic_ullong n_looked; /* libraries that were loaded, when it was not there */
    unsigned long long n_loaded = np_virtual_n_loaded();
    if (n_loaded == atomic_load(&n_looked)) {
        return;
    }
    void *torch_cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    void *c10_cuda = torch_cuda ? dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (!c10_cuda) {
        atomic_store(&n_looked, n_loaded);
    }
    (void)pthread_mutex_lock(&lock);
    if (c10_cuda && !atomic_load(&is_looked_for) && has_begun(c10_cuda)) {
        atomic_store(&is_looked_for, true);
        if (!(found.current && find(torch_cuda)) && np_the_hook.settings.log_level >= NEAP_LOG_INFO) {
            np_hook_say(
                "this PyTorch's allocators are not known, or another was chosen: what its cudaMallocAsync has not "
                "will be an error");
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (c10_cuda) {
        (void)dlclose(c10_cuda);
    }
    if (torch_cuda) {
        (void)dlclose(torch_cuda);
    }
}

void np_hook_pytorch_look(void)
{
    if (!atomic_load(&is_looked_for) && np_hook_is_on() && !np_hook_is_over() && !np_the_hook.settings.keeps_backend) {
        look();
    }
}

#else

void np_hook_pytorch_look(void)
{
}

#endif
