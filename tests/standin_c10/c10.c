/* c10.c: a library by the name of PyTorch's allocators, libc10_cuda.so. A program that has it loaded is taken for PyTorch.
 *
 * In it lie two allocators as a C++ compiler lays objects out: a pointer to a table of virtual functions, before which are an
 * offset and what leads to the type's name. Each function notes who was asked for what, and with what arguments. */
#include "standin_c10/c10.h"

#include <stdatomic.h>

standin_c10_note standin_c10_noted;

static void note(const void *self, const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    standin_c10_noted =
        (standin_c10_note){.self = self, .what = what, .arguments = {a, b, c}, .n = standin_c10_noted.n + 1};
}

#define SAME(what)                                                            \
    static void async_##what(void *self, uint64_t a, uint64_t b, uint64_t c)  \
    {                                                                         \
        note(self, "async " #what, a, b, c);                                  \
    }                                                                         \
    static void native_##what(void *self, uint64_t a, uint64_t b, uint64_t c) \
    {                                                                         \
        note(self, "native " #what, a, b, c);                                 \
    }
SAME(destroy)
SAME(delete)
SAME(init)
SAME(begin)
SAME(end)
SAME(release)
SAME(metadata)
SAME(raw_alloc)
SAME(raw_alloc_with_stream)
SAME(raw_delete)
SAME(observer)
SAME(tracker)

/* Answers that do not fit into registers: the caller passes where they are to be, before all else. */
#define LARGE(what)                                                             \
    static standin_c10_answer async_##what(void *self, uint64_t a, uint64_t b)  \
    {                                                                           \
        note(self, "async " #what, a, b, 0);                                    \
        return (standin_c10_answer){.by = "async", .arguments = {a, b}};        \
    }                                                                           \
    static standin_c10_answer native_##what(void *self, uint64_t a, uint64_t b) \
    {                                                                           \
        note(self, "native " #what, a, b, 0);                                   \
        return (standin_c10_answer){.by = "native", .arguments = {a, b}};       \
    }
LARGE(allocate)
LARGE(snapshot)
LARGE(share)
LARGE(get_checkpoint)
LARGE(set_checkpoint)

static void async_limit(void *self, double fraction, signed char device)
{
    note(self, "async limit", (uint64_t)(fraction * 100), (uint64_t)device, 0);
}

static void native_limit(void *self, double fraction, signed char device)
{
    note(self, "native limit", (uint64_t)(fraction * 100), (uint64_t)device, 0);
}

/* So many arguments that the last is on the stack. */
static void async_history(void *self, bool enabled, void *context, uint64_t n, int when, bool clears,
                          const char *skipped)
{
    (void)context;
    (void)when;
    (void)clears;
    note(self, "async history", enabled, n, (uint64_t)(uintptr_t)skipped);
}

static void native_history(void *self, bool enabled, void *context, uint64_t n, int when, bool clears,
                           const char *skipped)
{
    (void)context;
    (void)when;
    (void)clears;
    note(self, "native history", enabled, n, (uint64_t)(uintptr_t)skipped);
}

static bool async_initialized(void *self)
{
    note(self, "async initialized", 0, 0, 0);
    return false;
}

static bool native_initialized(void *self)
{
    note(self, "native initialized", 0, 0, 0);
    return true;
}

static void inherited(void *self, uint64_t a, uint64_t b, uint64_t c)
{
    note(self, "inherited", a, b, c);
}

typedef void function(void);
typedef struct type {
    const void *table;
    const char *name;
} type;
typedef struct table {
    intptr_t offset;
    const type *type;
    function *slots[STANDIN_C10_N_SLOTS];
    intptr_t end; /* as what comes next: no function */
} table;

#define TABLE(of, of_type)                                \
    {                                                     \
        .type = (of_type),                                \
        .slots = {(function *)of##_destroy,               \
                  (function *)of##_delete,                \
                  (function *)of##_allocate,              \
                  (function *)of##_init,                  \
                  (function *)of##_limit,                 \
                  (function *)of##_begin,                 \
                  (function *)of##_end,                   \
                  (function *)of##_release,               \
                  (function *)of##_metadata,              \
                  (function *)of##_raw_alloc,             \
                  (function *)of##_raw_alloc_with_stream, \
                  (function *)of##_raw_delete,            \
                  (function *)of##_snapshot,              \
                  (function *)of##_history,               \
                  (function *)of##_observer,              \
                  (function *)of##_tracker,               \
                  (function *)of##_share,                 \
                  (function *)of##_get_checkpoint,        \
                  (function *)of##_set_checkpoint,        \
                  (function *)of##_initialized,           \
                  (function *)inherited},                 \
    }

static const char native_name[] = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE";
static const char longer_name[] =
    "ZN3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE12getIpcDevPtrEUlPvE_";
static const char async_name[] = "N3c104cuda20CUDACachingAllocator15CudaMallocAsync24CudaMallocAsyncAllocatorE";
static const type longer_type = {longer_name, longer_name};
static const type native_type = {longer_name, native_name};
static const type async_type = {longer_name, async_name};
static const type *const others[] = {&longer_type, &native_type}; /* types lead to types, too */
static const table native_table = TABLE(native, &native_type);
static const table async_table = TABLE(async, &async_type);

static struct {
    function *const *slots;
    const type *const *others;
} native = {native_table.slots, others}, async = {async_table.slots, others};

extern _Atomic(void *) standin_c10_allocator __asm__("_ZN3c104cuda20CUDACachingAllocator9allocatorE");
_Atomic(void *) standin_c10_allocator = &async;

void *standin_c10_native(void)
{
    return &native;
}

void *standin_c10_async(void)
{
    return &async;
}
