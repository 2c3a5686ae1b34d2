/* timed.h: how long the execs of an iteration take, measured on the plan.
 *
 * What is planned from is recorded off the plan, where the host has much to do: the device waits for it, and the time in
 * which a kernel is on its way to the device counts as the kernel's own. On the plan the host is ahead. So a few laps are
 * timed there, exec by exec, before the plan is made that is to stay; as few as that, since it has its price. */
#ifndef NP_RUN_TIMED_H
#define NP_RUN_TIMED_H

#include "run/block.h"

typedef enum np_timed_state {
    NP_TIMED_NOT,
    NP_TIMED_WANTED, /* the next lap is timed */
    NP_TIMED_ON,     /* this one is */
    NP_TIMED_GIVEN,  /* one was, and is not over on the device */
    NP_TIMED_DONE,
} np_timed_state;

typedef struct np_timed {
    np_timed_state state;
    uint32_t n_laps;                /* timed so far */
    uint32_t n_execs;               /* 0 where there was no host memory for it: nothing is known then */
    np_times *times;                /* by exec: of the lap under way */
    bool *is_seen;                  /* by use of the program: it was, in any of the laps */
    uint32_t n_uses;                /* of it */
    uint64_t *shortest_ns;          /* by exec: of all laps, without the price of timing (price.h); 0: not known */
    const np_times *first;          /* of its first exec, which is timed in every lap */
    uint64_t marks[NP_MAX_STREAMS]; /* at its end */
} np_timed;

void np_timed_want(np_timed *timed, uint32_t n_execs, uint32_t n_uses, const neap_memory *memory);
void np_timed_free(np_timed *timed, const neap_memory *memory);

/* A lap has ended on the host. `first`: where the times of its first exec are, or will be. */
void np_timed_end_lap(np_timed *timed, np_device *device, const np_times *first);

/* The plan was left: what was under way is begun anew. */
void np_timed_break(np_timed *timed);

/* What an iteration takes that is not in anybody's way: its execs. */
double np_timed_sum(const np_timed *timed);

#endif
