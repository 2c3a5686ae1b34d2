/* simulator.h: what simulations of one timeline work on, and how the swaps of one are made ready. For simulate.c alone. */
#ifndef NP_SWAP_SIMULATOR_H
#define NP_SWAP_SIMULATOR_H

#include "swap/simulate.h"

enum { NP_LIVES_AT_ONCE = 4 }; /* a swap's copies of so many successive periods are told apart */

/* One swap as the queues see it. Its n-th life begins in the n-th period; copies may be queued a period earlier or
 * later than that, when their keys say so. */
typedef struct np_copy_job {
    uint64_t bytes;
    double key;  /* of the queue it is sorted for */
    int32_t lap; /* periods after the life's own in which it is queued */
    uint32_t swap;
} np_copy_job;

typedef struct np_swap_state {
    uint64_t bytes;
    uint32_t from;
    uint32_t to;
    uint32_t in_after;
    uint32_t out_before;
    int32_t release;               /* exec whose end releases the copy out, counted on; negative in the period before */
    bool clean;                    /* the host still has what left before: no copy out */
    uint32_t absent_from;          /* see np_absence: the latest since the anchor (simulate.c), */
    uint32_t back_from;            /* and the earliest */
    bool is_out[NP_LIVES_AT_ONCE]; /* by life, modulo */
    bool is_back[NP_LIVES_AT_ONCE];
} np_swap_state;

struct np_simulator {
    const np_timeline *timeline;
    np_link link;
    double pause_ns;
    uint64_t *first_used; /* [exec]: bytes of blocks used for the first time */
    uint64_t *last_used;  /* [exec]: for the last time */
    uint64_t begin_bytes; /* held when a period begins, nothing being absent */
    /* Scratch, grown as needed. */
    np_array(np_swap_state) swaps;
    np_array(np_copy_job) out_jobs;
    np_array(np_copy_job) in_jobs;
    np_array(uint32_t) due_at; /* [exec]: into `due`, the swaps whose gap ends there */
    np_array(uint32_t) due;
    np_array(uint32_t) after_at; /* [exec]: into `after`, the swaps whose gap begins there */
    np_array(uint32_t) after;
    np_array(uint32_t) awaited_at; /* [exec]: into `awaited`, the swaps whose copy out it waits for */
    np_array(uint32_t) awaited;
};

/* Sorts the swaps into the queues and by exec; nothing has left yet. */
neap_status np_simulator_prepare(np_simulator *simulator, const np_swap *swaps, uint32_t n_swaps);

#endif
