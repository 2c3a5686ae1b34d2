/* pytorch_tables.h: PyTorch's two allocators, found in its libraries, and what is put in the places of their functions. */
#ifndef NP_HOOK_PYTORCH_TABLES_H
#define NP_HOOK_PYTORCH_TABLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "hook/forward.h"

typedef enum np_pytorch_deed {
    NP_PYTORCH_HANDED, /* async's until native is the allocator; then native's, also for code that remembers async */
    NP_PYTORCH_PASSED, /* native's, always */
    NP_PYTORCH_ASKING, /* the same, and np_the_forward.asked is called first */
    NP_PYTORCH_OWN,    /* that of the entry, */
    NP_PYTORCH_SHARED, /* which stands in native's place too */
} np_pytorch_deed;

typedef void np_pytorch_function(void);

typedef struct np_pytorch_entry {
    const char *name; /* of a virtual function: its length, then the name */
    np_pytorch_deed deed;
    bool is_needed; /* there is no PyTorch without it that is known */
    np_pytorch_function *own;
} np_pytorch_entry;

enum { NP_PYTORCH_MAX_ENTRIES = 32 };
#define NP_PYTORCH_NOWHERE ((size_t)-1)

typedef struct np_pytorch_table {
    void *head[2]; /* what comes before the functions: an offset, and the type */
    void *slots[NP_FORWARD_SLOTS];
} np_pytorch_table;

typedef struct np_pytorch_allocators {
    _Atomic(void *) *current; /* c10::cuda::CUDACachingAllocator::allocator */
    void *async;
    void *native;
    void **async_slots; /* as they were */
    void **native_slots;
    size_t n;
    size_t slot_of[NP_PYTORCH_MAX_ENTRIES]; /* of each entry */
    np_pytorch_table in_async;              /* what is to stand in their places */
    np_pytorch_table in_native;
} np_pytorch_allocators;

typedef enum np_pytorch_state {
    NP_PYTORCH_ABSENT,  /* its libraries are not there, or have not begun yet */
    NP_PYTORCH_UNKNOWN, /* one that is not known, or which has its own allocator already */
    NP_PYTORCH_FOUND,
} np_pytorch_state;

/* In the libraries that are loaded, and have begun: otherwise they would begin now. Nothing is changed in them. */
np_pytorch_state np_pytorch_find(np_pytorch_allocators *found, const np_pytorch_entry *entries, size_t n);

/* That is its table from now on. */
void np_pytorch_put(void *object, np_pytorch_table *made);

#endif
