/* circle.h: a period's lives as a placement problem.
 *
 * A plan is a circle: it repeats after one *round* of one or more periods. A block that lives across the round's end is a
 * buffer with a hole in time. One that lives longer than a round needs several places, each taken all round, since the
 * blocks of successive rounds take turns in them; a round of more periods avoids that, and can be lower too: on a circle
 * the load is not always reachable (three blocks that each live two thirds of it have load 2 and need 3), but over two
 * rounds the same blocks fit. */
#ifndef NP_POOL_CIRCLE_H
#define NP_POOL_CIRCLE_H

#include "pool/problem.h"
#include "trace/period.h"

/* Which block a buffer of the problem stands for. */
typedef struct np_circle_buffer {
    uint32_t life;  /* index into the period's lives */
    uint32_t place; /* 0, 1, ...: of a block of later periods of the round, or one of several places */
    uint32_t begin; /* time in the round */
    uint32_t end;   /* counted on: above the round's length where it lives across its end */
} np_circle_buffer;

typedef struct np_circle {
    const neap_memory *memory;
    uint32_t n_periods;                 /* in a round */
    np_problem problem;                 /* times are events of the round */
    np_array(np_circle_buffer) buffers; /* one for each of the problem's */
} np_circle;

/* NEAP_BAD_ARGUMENT: a fixed offset is not a multiple of the alignment. */
neap_status np_circle_make(const np_period *period, uint64_t alignment, uint32_t n_periods, const neap_memory *memory,
                           np_circle *circle);
void np_circle_free(np_circle *circle);

/* Does any block live across the period's end? For how many periods does the longest live, rounded up? */
bool np_circle_has_crossing(const np_period *period);
uint32_t np_circle_longest(const np_period *period);

/* The peak load in bytes, sizes rounded up to the alignment: no plan of any round is lower. */
neap_status np_circle_load(const np_period *period, uint64_t alignment, uint64_t *load);

#endif
