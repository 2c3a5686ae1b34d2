/* memory.h: host memory through the one hook of neap.h, and arrays that grow.
 *
 * Every allocation of the library passes through here, so that a test can make each of them fail in turn. */
#ifndef NP_BASE_MEMORY_H
#define NP_BASE_MEMORY_H

#include "neap.h"

extern const neap_memory np_memory_default; /* malloc, realloc, free */

/* The hook itself, or the default where it is NULL. */
const neap_memory *np_memory_or_default(const neap_memory *memory);

/* n * elem_bytes bytes, or NULL (no memory, or the product overflows). n 0 gives a valid pointer. */
void *np_memory_alloc(const neap_memory *memory, size_t n, size_t elem_bytes);
void *np_memory_alloc_zero(const neap_memory *memory, size_t n, size_t elem_bytes);

/* Frees what np_memory_alloc gave; n and elem_bytes as they were. NULL is allowed. */
void np_memory_free(const neap_memory *memory, void *block, size_t n, size_t elem_bytes);

/* Makes room for at least n_needed elements, growing by half. `items` points to the pointer to them, of whatever type; it
 * and `*capacity` change only on success. */
neap_status np_memory_reserve(const neap_memory *memory, void *items, size_t *capacity, size_t n_needed,
                              size_t elem_bytes);

/* A growing array of T: declare `np_array(uint32_t) ids = {0};`. */
#define np_array(T)      \
    struct {             \
        T *items;        \
        size_t n;        \
        size_t capacity; \
    }

#define np_array_reserve(memory, array, n_needed)                                                       \
    ((n_needed) <= (array)->capacity ? NEAP_OK                                                          \
                                     : np_memory_reserve((memory), &(array)->items, &(array)->capacity, \
                                                         (size_t)(n_needed), sizeof *(array)->items))

/* Evaluates to a status; the element is appended only on NEAP_OK. */
#define np_array_push(memory, array, value)                         \
    (np_array_reserve((memory), (array), (array)->n + 1) == NEAP_OK \
         ? ((array)->items[(array)->n++] = (value), NEAP_OK)        \
         : NEAP_NO_MEMORY)

#define np_array_free(memory, array)                                                         \
    do {                                                                                     \
        np_memory_free((memory), (array)->items, (array)->capacity, sizeof *(array)->items); \
        (array)->items = NULL;                                                               \
        (array)->n = (array)->capacity = 0;                                                  \
    } while (0)

#endif
