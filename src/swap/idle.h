/* idle.h: the idle time of one direction of the link, on a circle of one period. */
#ifndef NP_SWAP_IDLE_H
#define NP_SWAP_IDLE_H

#include "base/memory.h"

typedef struct np_idle_span {
    double begin; /* ns, half-open, within [0, period) */
    double end;
} np_idle_span;

typedef struct np_idle {
    double period_ns;
    np_array(np_idle_span) spans; /* sorted, disjoint */
} np_idle;

neap_status np_idle_init(np_idle *idle, const neap_memory *memory, double period_ns);
void np_idle_free(np_idle *idle, const neap_memory *memory);

/* The first (last) idle stretch within [from, to) that is at least `least` long, cut to at most `most` from its front
 * (its back). Times are on the line; to - from is at most a period. False: there is none. */
bool np_idle_first(const np_idle *idle, double from, double to, double least, double most, np_idle_span *found);
bool np_idle_last(const np_idle *idle, double from, double to, double least, double most, np_idle_span *found);

/* The stretch, found before, is busy from now on. One that is shorter than times are rounded to takes no time. */
neap_status np_idle_take(np_idle *idle, const neap_memory *memory, np_idle_span stretch);

bool np_idle_is_valid(const np_idle *idle);

#endif
