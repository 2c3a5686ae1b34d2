/* lane.h: a stream as a thread with a queue.
 *
 * A lane has two counters: `given` tells its thread how many entries there are, `done` tells everybody else how many
 * pieces of work are done. A mark is a value of `done`: to wait for it needs no other object, and one that is asked for
 * late costs nothing. A lane is given work by one thread at a time. */
#ifndef NP_DEVICE_LANE_H
#define NP_DEVICE_LANE_H

#include "device/counter.h"
#include "device/device.h"
#include "device/queue.h"

typedef struct np_lane {
    np_queue queue;
    uint64_t n_given; /* entries, waits included */
    uint64_t mark;    /* of the last work given */
    np_counter given;
    np_counter done;
    double imitated; /* bytes a ns of copies: they take so long at least; 0: as fast as they go */
    pthread_t thread;
} np_lane;

neap_status np_lane_open(const neap_memory *memory, double imitated, np_lane **lane);

/* Lanes wait for each other, so those of a device end together: first all are ended, then all joined, then all freed. */
void np_lane_end(np_lane *lane);  /* nothing more is given; returns at once */
void np_lane_join(np_lane *lane); /* returns when all work is done */
void np_lane_free(np_lane *lane);

neap_status np_lane_launch(np_lane *lane, const np_task *task);
neap_status np_lane_copy(np_lane *lane, char *to, const char *from, uint64_t bytes);
neap_status np_lane_wait(np_lane *lane, np_lane *other, uint64_t mark);

bool np_lane_is_valid(const np_lane *lane); /* all it was given is done */

#endif
