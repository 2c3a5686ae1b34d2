/* recall.h: launches that were seen before.
 *
 * On the plan the same launch comes at the same event of every lap, most often with the same parameters to the last byte. Then
 * its uses are the same too, as long as the same blocks live at that event, which is what being on the plan means: every
 * byte is compared, and nothing has to be looked up. */
#ifndef NP_HOOK_RECALL_H
#define NP_HOOK_RECALL_H

#include "hook/kernels.h"

typedef struct np_hook_memory {
    const void *function; /* NULL: nothing is remembered */
    uint64_t epoch;
    char *bytes; /* of the parameters, one after the other */
    size_t n_bytes;
    neap_use *uses;
    size_t n_uses;
} np_hook_memory;

typedef struct np_hook_recall {
    const neap_memory *memory;
    const void *plan; /* whose events these are */
    np_hook_memory *events;
    size_t n_events;
    uint64_t epoch; /* what is of another one is not true any more */
} np_hook_recall;

void np_hook_recall_init(np_hook_recall *recall, const neap_memory *memory);
void np_hook_recall_free(np_hook_recall *recall);

/* Blocks that are not the plan's have come or gone, the plan was left, or handles may stand for other kernels. */
void np_hook_recall_forget(np_hook_recall *recall);

/* The launch at an event of a plan with so many: what is remembered of it, or NULL. */
const np_hook_memory *np_hook_recall_find(np_hook_recall *recall, const void *plan, size_t n_events, size_t event,
                                          const np_hook_kernel *kernel, void *const *parameters);

/* Remembers it, as far as there is host memory. */
void np_hook_recall_keep(np_hook_recall *recall, size_t event, const np_hook_kernel *kernel, void *const *parameters,
                         const neap_use *uses, size_t n_uses);

#endif
