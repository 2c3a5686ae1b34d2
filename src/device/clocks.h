/* clocks.h: which work is certain to be done before which: vector clocks.
 *
 * Three things order work: work of one stream runs in the order given; a wait lets the later work of a stream follow a
 * mark of another; and all work follows what the host knew to be done when it gave it. What is ordered before a piece of
 * work is a clock: for each stream, the highest mark that is done before it begins. Clocks of past work are kept, for
 * others may wait for it, until the host knows it to be done: from then on they say nothing new. */
#ifndef NP_DEVICE_CLOCKS_H
#define NP_DEVICE_CLOCKS_H

#include "device/device.h"

typedef struct np_clock {
    uint64_t marks[NP_N_STREAMS]; /* 0: nothing of that stream */
} np_clock;

typedef struct np_clock_since {
    uint64_t mark; /* the clock of this work and of those after it, up to the next entry's */
    np_clock clock;
} np_clock_since;

typedef struct np_stream_clock {
    np_clock now;                     /* of the work to be given next */
    bool changed;                     /* since the last entry of the history */
    uint64_t host_version;            /* of the host's knowledge, as far as it is part of `now` */
    np_array(np_clock_since) history; /* marks ascending */
} np_stream_clock;

typedef struct np_clocks {
    const neap_memory *memory;
    np_clock host; /* what the host knows to be done */
    uint64_t host_version;
    np_stream_clock streams[NP_N_STREAMS];
} np_clocks;

void np_clocks_init(np_clocks *clocks, const neap_memory *memory);
void np_clocks_free(np_clocks *clocks);

/* Work is given to a stream: room for it first, then the work itself. Returns its clock, valid until the next call. */
neap_status np_clocks_reserve(np_clocks *clocks, np_stream stream);
const np_clock *np_clocks_give(np_clocks *clocks, np_stream stream, uint64_t mark);

void np_clocks_wait(np_clocks *clocks, np_stream stream, np_stream other, uint64_t mark);
void np_clocks_host_knows(np_clocks *clocks, np_stream stream, uint64_t mark);

bool np_clocks_is_valid(const np_clocks *clocks);

#endif
