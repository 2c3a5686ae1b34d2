/* busy.h: how fast copies are beside the program's work, before a plan with swaps is made.
 *
 * Some kernels leave copies less than the link has. On the quick plan, whose iterations nothing is swapped in, copies of no
 * use are given beside one of them, and timed (device/cuda_busy.c); what comes of it is the link's busy_share. They wait
 * for nothing, so that they end whatever the program does. Where the device cannot tell, it is planned for as if it made
 * no difference. */
#ifndef NP_RUN_BUSY_H
#define NP_RUN_BUSY_H

#include <stdbool.h>

#include "neap.h"

typedef struct np_pattern np_pattern;

typedef struct np_busy {
    bool is_given; /* copies are under way */
    bool is_known; /* whatever came of it */
} np_busy;

/* Is it to be known before the pattern's plan with swaps is asked for? At the end of each lap until it is not: */
bool np_busy_is_awaited(const neap_device *m, const np_pattern *pattern);
void np_busy_lap(neap_device *m, const np_pattern *pattern);

/* The share while work runs, from the one that was measured while it ran for a part of the time: of that time, 0 to 1. */
double np_busy_share(double measured, double part);

#endif
