/* recall.h: launches that were seen before.
 *
 * On the plan the same launch comes at the same event of every lap, most often with the same addresses among its
 * parameters. What a launch uses follows from those words that are addresses in blocks, its *hits*; the other words are
 * numbers, and may change. So every word is looked at, and the hits are compared with those of the last lap: where they are
 * equal, nothing has to be looked up. A word that could be an address and is not the hit that comes next is looked up: old
 * addresses, in which no block is now, are to be met by the dozen, others in every lap. */
#ifndef NP_HOOK_RECALL_H
#define NP_HOOK_RECALL_H

#include "hook/index.h"
#include "hook/kernels.h"

enum { NP_HOOK_NEAR = 7 };

/* What is compared stands together: two lines of memory for most launches, and those of the next launch follow. */
typedef struct np_hook_memory {
    const void *function; /* NULL: nothing is remembered */
    uint64_t epoch;
    const uint32_t *sizes; /* the kernel's, of its parameters; NULL: they are in a buffer */
    const uint64_t *hits;  /* in their order: `near`, or host memory of their own */
    neap_use *uses;
    uint32_t n_words; /* of all parameters */
    uint32_t n_hits;
    uint32_t n_parameters;
    uint32_t n_uses;
    uint32_t exec; /* its number in the period */
    uint8_t lane;
    bool is_quick;      /* the manager has nothing to do for it: see quick.c, */
    bool notes_uses;    /* but to note who has used its blocks, and written them */
    bool is_swapping;   /* the plan has swaps */
    uint64_t bytes_out; /* stats.bytes_out then */
    uint64_t near[NP_HOOK_NEAR];
} np_hook_memory;

typedef struct np_hook_recall {
    const neap_memory *memory;
    const void *plan; /* whose events these are */
    np_hook_memory *events;
    size_t n_events;
    uint64_t epoch;     /* what is of another one is not true any more */
    uint64_t n_settled; /* neap_device.n_settled when the epoch began */
} np_hook_recall;

void np_hook_recall_init(np_hook_recall *recall, const neap_memory *memory);
void np_hook_recall_free(np_hook_recall *recall);

/* Blocks that are not the plan's have come or gone, the plan was left, or handles may stand for other kernels. */
void np_hook_recall_forget(np_hook_recall *recall);

/* From here on the events are those of this plan, which has so many. */
void np_hook_recall_follow(np_hook_recall *recall, const void *plan, size_t n_events);

/* What is remembered of the launch of a kernel at an event, or NULL. */
np_hook_memory *np_hook_recall_find(const np_hook_recall *recall, size_t event, const void *function);

/* Are the hits of these parameters the same? */
bool np_hook_recall_is_equal(const np_hook_memory *memory, const np_hook_index *index,
                             const np_hook_parameters *parameters);

/* Remembers it, as far as there is host memory. NULL: it is not. */
np_hook_memory *np_hook_recall_keep(np_hook_recall *recall, size_t event, const np_hook_kernel *kernel,
                                    const np_hook_parameters *parameters, const uint64_t *hits, size_t n_hits,
                                    const neap_use *uses, size_t n_uses);

#endif
