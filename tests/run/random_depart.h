/* random_depart.h: what a random program does in one iteration and not in others. */
#ifndef TESTS_RUN_RANDOM_DEPART_H
#define TESTS_RUN_RANDOM_DEPART_H

#include "run/random_actor.h"

typedef enum departure {
    DEPART_EXTRA_WORK,   /* a block more, used and freed */
    DEPART_EXTRA_MALLOC, /* a block more, freed later, or kept forever */
    DEPART_SIZE,
    DEPART_LATE_FREE,
    DEPART_EARLY_FREE,
    DEPART_KEPT,
    DEPART_CUT_SHORT,
    DEPART_ACCESS, /* work on any live block */
    DEPART_MORE_USES,
    DEPART_KEPT_USE, /* of a block that the program has kept, beside all others */
    DEPART_FEWER_USES,
    DEPART_OTHER_KIND,
    DEPART_OTHER_BLOCK, /* of the same slot */
    DEPART_STREAM,
    DEPART_NAME,
    DEPART_SKIP,
    DEPART_TWICE,
    DEPART_EXCHANGE, /* with the step after it, if both are mallocs or both frees */
    DEPART_HOST_READ,
    DEPART_HOST_WRITE,
    DEPART_SYNC,
    DEPART_N,
} departure;

/* Does it before step `at` of the loop, or changes the step in *s; *skip: the step itself is not to be done. False: it
 * cannot be done here, perhaps later. DEPART_CUT_SHORT is the caller's. */
bool actor_depart(actor *a, const loop *l, uint32_t at, departure d, step *s, bool *skip);

#endif
