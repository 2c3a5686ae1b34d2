/* program_order.h: works in the order they are given, and the waits between them. For program_order.c, which gathers all
 * that the rules ask for, and program_prune.c, which leaves out what is implied. */
#ifndef NP_RUN_PROGRAM_ORDER_H
#define NP_RUN_PROGRAM_ORDER_H

#include "device/device.h"

typedef struct np_wait {
    uint32_t work; /* that waits, */
    uint32_t on;   /* for this one, */
    bool earlier;  /* which has been given once more since: the time before that would do */
    bool dropped;  /* implied */
} np_wait;

typedef struct np_works {
    const neap_memory *memory;
    uint32_t n;
    uint32_t *order;         /* works as they are given in a period */
    uint32_t *place;         /* [work]: in `order` */
    uint8_t *streams;        /* [work] */
    bool *optional;          /* [work]: a copy out of what was not written. Where the host has it, nothing is given: to
                              * wait for it then tells nothing */
    uint32_t *wait_at;       /* [work]: into `waits`, once pruned; n + 2 of them */
    np_array(np_wait) waits; /* in any order; by work, once pruned */
} np_works;

/* Groups the waits by work, and marks as dropped those that others, and the order of works on their streams, imply. */
neap_status np_works_prune(np_works *works);

#endif
