/* visit.h: on the plan, blocks that are away and are used all the same come for one piece of work, and go again.
 *
 * Words that stand among a kernel's parameters by chance name blocks that are away: others in every iteration, so that no
 * plan can know them all. They may also be true. To leave the plan over each would cost many iterations. So the bytes
 * that stand in the block's place are kept aside on the host, the block's are copied in, the work is done, the block's
 * are copied out again, as the work may have written them, and what stood there is put back. All of it is on the stream of
 * the work, after all work that was given before, and after the copies of the block and of all whose places its own
 * touches. Others may still be under way. Everything that is given later comes after it: nobody else sees it.
 *
 * Nothing may be aside that the work uses, or might without being seen to: what the plan counts as used then (its margin is
 * in that), and what is fixed. A block in whose place such a one stands comes to other pages of the arena (elsewhere.c).
 * Where there are too few, the plan is left. */
#ifndef NP_RUN_VISIT_H
#define NP_RUN_VISIT_H

#include "run/meet.h"

#define NP_VISIT_BYTES_MAX \
    ((uint64_t)256 << 20) /* of one piece of work: above that a plan is better left, and mended */

enum { NP_MANY_VISITORS = 512 }; /* of one plan: more are not known apart */

typedef struct np_visit_part {
    uint32_t swap;
    uint64_t aside;    /* where in `scratch` what stands there is kept; NP_NOT_ASIDE: nothing stands there */
    bool has_no_place; /* its own is in use by the work, or by something that is fixed: it gets another */
    bool is_elsewhere; /* and is there */
    bool is_in_place;  /* only its copy out was given: it need not come */
    bool is_written;   /* by the work, as far as is known */
} np_visit_part;

#define NP_NOT_ASIDE UINT64_MAX

typedef struct np_visit {
    uint64_t bytes_max;            /* 0: none may */
    np_array(np_visit_part) parts; /* of the work that is about to be given */
    np_slot scratch;
    np_copy_marks after;  /* of the work that is about to be given */
    uint64_t wait_visits; /* on a plan, before those that came twice are planned for */
    uint64_t since_lap;   /* of all on a plan: when the first of them came */
    bool is_torn; /* what had to go back could not, try as it might: bytes are wrong, and nothing more is given */
} np_visit;

#endif
