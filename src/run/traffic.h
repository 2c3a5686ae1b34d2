/* traffic.h: how much of the device's own bandwidth a program's execs use.
 *
 * Copies to the host and back read and write the device's memory beside the execs, and those that need its bandwidth
 * are slower meanwhile. How much of it they need is not recorded, but how much there was to read and write: the blocks an
 * exec uses, over its duration. The fastest ones tell what the device can do: an exec that comes near to them is held up
 * by memory, one that stays far below computes. */
#ifndef NP_RUN_TRAFFIC_H
#define NP_RUN_TRAFFIC_H

#include "trace/period.h"

typedef struct np_traffic {
    double peak; /* bytes a ns: what the fastest execs reach, for a thirtieth of the time; 0: not known */
    double use;  /* of it, on average over the time of the execs: 0 to 1 */
} np_traffic;

neap_status np_traffic_find(const np_period *period, np_traffic *traffic);

#endif
