/* meet.h: who else has bytes of the arena that a life has, and the copies that a use of them comes after.
 *
 * A use that was not planned has no waits of its own in the plan. It comes after what was given before it in its bytes; but
 * to wait for all copies that were given so far would be to wait for all that is queued, which can be most of an
 * iteration. So it waits for those alone that have to do with its bytes: its own, and those of all lives whose places
 * touch its. */
#ifndef NP_RUN_MEET_H
#define NP_RUN_MEET_H

#include "run/pattern.h"

/* Copies of the plan, by stream; 0: none. */
typedef struct np_copy_marks {
    uint64_t out;
    uint64_t in;
} np_copy_marks;

typedef struct np_meeting {
    bool any;  /* a place of the life is met, whoever stands there */
    bool here; /* and a block may be there */
    bool fixed;
} np_meeting;

/* What of another life is in bytes [begin, end) of this one, wherever it has its places. */
np_meeting np_meet_life(const np_pattern *pattern, uint32_t life, uint64_t begin, uint64_t end, uint32_t other);

/* The last copies of a life's parts that were given so far, as far as they are later. */
void np_meet_own_copies(const np_pattern *pattern, uint32_t life, np_copy_marks *marks);

/* Those of the life, and of all whose places touch its. */
np_copy_marks np_meet_copies(const np_pattern *pattern, uint32_t life);

#endif
