/* pytorch_tables.c: libc10_cuda.so shows which allocator is chosen; the other is found by the name of its type. Both have the same
 * interface as CUDAPluggableAllocator in libtorch_cuda.so, whose functions are shown by name: what stands at a place there does
 * the same here. */
#include "hook/pytorch_tables.h"

#include <dlfcn.h>
#include <string.h>

#include "hook/virtual.h"

static const char native_type[] = "N3c104cuda20CUDACachingAllocator6Native22NativeCachingAllocatorE";
static const char async_type[] = "N3c104cuda20CUDACachingAllocator15CudaMallocAsync24CudaMallocAsyncAllocatorE";
static const char named[] = "22CUDAPluggableAllocator";

enum { FIRST_SLOT = 2 /* after the destructors */ };

static bool find_slots(np_pytorch_allocators *found, void *const *pluggable, const np_pytorch_entry *entries, size_t n)
{
    size_t n_slots = np_virtual_count(pluggable);
    n_slots = n_slots < found->n ? n_slots : found->n;
    for (size_t i = 0; i < n; i++) {
        found->slot_of[i] = np_virtual_slot(pluggable, n_slots, named, entries[i].name);
        if (found->slot_of[i] == NP_PYTORCH_NOWHERE && entries[i].is_needed) {
            return false;
        }
    }
    return true;
}

static void *replaced(const np_pytorch_entry *entry, size_t slot, bool is_native)
{
    switch (entry->deed) {
    case NP_PYTORCH_SHARED:
        return (void *)(uintptr_t)entry->own;
    case NP_PYTORCH_OWN:
        return is_native ? NULL : (void *)(uintptr_t)entry->own;
    case NP_PYTORCH_PASSED:
        return is_native ? NULL : np_forward_slot((unsigned)slot);
    case NP_PYTORCH_ASKING:
        return is_native ? NULL : np_forward_asking((unsigned)slot);
    case NP_PYTORCH_HANDED:
        break;
    }
    return NULL;
}

static void copy_table(const np_pytorch_allocators *found, np_pytorch_table *made, void *const *slots)
{
    memcpy(made->head, slots - 2, sizeof made->head);
    memcpy(made->slots, slots, found->n * sizeof *slots);
}

/* What async has from the interface alone, and native itself, is native's. */
static void pass_inherited(np_pytorch_allocators *found, void *const *pluggable)
{
    for (size_t i = FIRST_SLOT; i < found->n; i++) {
        if (found->async_slots[i] != found->native_slots[i] && !np_virtual_has_name(pluggable, i, named)) {
            found->in_async.slots[i] = np_forward_slot((unsigned)i);
        }
    }
}

static void fill(np_pytorch_allocators *found, const np_pytorch_entry *entries, size_t n, bool is_native)
{
    np_pytorch_table *made = is_native ? &found->in_native : &found->in_async;
    for (size_t i = 0; i < n; i++) {
        size_t slot = found->slot_of[i];
        void *function = slot == NP_PYTORCH_NOWHERE ? NULL : replaced(&entries[i], slot, is_native);
        if (function) {
            made->slots[slot] = function;
        }
    }
}

static bool find_tables(np_pytorch_allocators *found)
{
    size_t n_native;
    found->native =
        np_virtual_is(found->async, async_type) ? np_virtual_find((const void *)found->current, native_type) : NULL;
    if (!found->native || !np_forward_slot(0)) {
        return false;
    }
    found->async_slots = np_virtual_slots(found->async);
    found->native_slots = np_virtual_slots(found->native);
    n_native = np_virtual_count(found->native_slots);
    found->n = np_virtual_count(found->async_slots);
    found->n = n_native < found->n ? n_native : found->n;
    return found->n <= NP_FORWARD_SLOTS;
}

static np_pytorch_state find_in(np_pytorch_allocators *found, const np_pytorch_entry *entries, size_t n, void *c10_cuda,
                                void *torch_cuda)
{
    void *const *pluggable = dlsym(torch_cuda, "_ZTVN5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocatorE");
    found->current = dlsym(c10_cuda, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
    if (!found->current || !pluggable) {
        return NP_PYTORCH_UNKNOWN;
    }
    found->async = atomic_load(found->current);
    if (!found->async || !np_virtual_slots(found->async)) {
        return NP_PYTORCH_ABSENT; /* it is loaded, and another that it needs begins */
    }
    if (!find_tables(found) || !find_slots(found, pluggable + 2, entries, n)) {
        return NP_PYTORCH_UNKNOWN;
    }
    copy_table(found, &found->in_async, found->async_slots);
    copy_table(found, &found->in_native, found->native_slots);
    pass_inherited(found, pluggable + 2);
    fill(found, entries, n, false);
    fill(found, entries, n, true);
    return NP_PYTORCH_FOUND;
}

np_pytorch_state np_pytorch_find(np_pytorch_allocators *found, const np_pytorch_entry *entries, size_t n)
{
    np_pytorch_state state = NP_PYTORCH_ABSENT;
    void *torch_cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
    void *c10_cuda = torch_cuda ? dlopen("libc10_cuda.so", RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (c10_cuda) {
        state = find_in(found, entries, n, c10_cuda, torch_cuda);
        (void)dlclose(c10_cuda);
    }
    if (torch_cuda) {
        (void)dlclose(torch_cuda);
    }
    return state;
}

void np_pytorch_put(void *object, np_pytorch_table *made)
{
    void *slots = made->slots;
    __atomic_store((void **)object, &slots, __ATOMIC_RELEASE);
}
