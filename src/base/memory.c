#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static void *resize_with_libc(void *user, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)user;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_bytes);
}

const neap_memory np_memory_default = {resize_with_libc, NULL};

const neap_memory *np_memory_or_default(const neap_memory *memory)
{
    return memory ? memory : &np_memory_default;
}

/* Bytes asked from the hook for n elements: never 0, so that NULL always means failure. */
static bool array_bytes(size_t n, size_t elem_bytes, size_t *bytes)
{
    if (!np_mul_size(n, elem_bytes, bytes)) {
        return false;
    }
    if (*bytes == 0) {
        *bytes = 1;
    }
    return true;
}

void *np_memory_alloc(const neap_memory *memory, size_t n, size_t elem_bytes)
{
    size_t bytes;
    memory = np_memory_or_default(memory);
    return array_bytes(n, elem_bytes, &bytes) ? memory->resize(memory->user, NULL, 0, bytes) : NULL;
}

void *np_memory_alloc_zero(const neap_memory *memory, size_t n, size_t elem_bytes)
{
    void *block = np_memory_alloc(memory, n, elem_bytes);
    if (block) {
        memset(block, 0, n * elem_bytes);
    }
    return block;
}

void np_memory_free(const neap_memory *memory, void *block, size_t n, size_t elem_bytes)
{
    size_t bytes;
    if (!block || !array_bytes(n, elem_bytes, &bytes)) {
        return;
    }
    memory = np_memory_or_default(memory);
    memory->resize(memory->user, block, bytes, 0);
}

neap_status np_memory_reserve(const neap_memory *memory, void *items, size_t *capacity, size_t n_needed,
                              size_t elem_bytes)
{
    size_t wanted = *capacity + *capacity / 2;
    size_t old_bytes = *capacity * elem_bytes;
    size_t new_bytes;
    void *old, *grown;

    if (n_needed <= *capacity) {
        return NEAP_OK;
    }
    if (wanted < 16) {
        wanted = 16;
    }
    if (wanted < n_needed) {
        wanted = n_needed;
    }
    if (!array_bytes(wanted, elem_bytes, &new_bytes)) {
        return NEAP_NO_MEMORY;
    }
    memory = np_memory_or_default(memory);
    memcpy(&old, items, sizeof old); /* it is a T *, not a void *: read and written as bytes */
    grown = memory->resize(memory->user, old, old ? old_bytes : 0, new_bytes);
    if (!grown) {
        return NEAP_NO_MEMORY;
    }
    memcpy(items, &grown, sizeof grown);
    *capacity = wanted;
    return NEAP_OK;
}
