/* program_make.h: the steps by which a layout and its swaps become a program, and what they hand on. For program*.c only.
 *
 * Every life has a line of its own on which times and execs count on from the period of its malloc (for a persistent one:
 * from any period's start). Exec k of the next period is k + n_execs there, event t is t + length.
 *
 *   trip   one swap that the layout has: the block's bytes leave in a gap, and return
 *   stay   a stretch in which a range of the arena's bytes belongs to one block: from its malloc, or the giving of a copy
 *          in, to its free, or the giving of a copy out. Stays of one byte follow each other round the period's circle
 *   work   what is given to a stream: exec k is work k, the copies of trip i are n_execs + 2i (out) and + 2i + 1 (in) */
#ifndef NP_RUN_PROGRAM_MAKE_H
#define NP_RUN_PROGRAM_MAKE_H

#include "run/program.h"

#define NP_NO_TRIP UINT32_MAX

typedef struct np_trip {
    uint64_t begin; /* bytes of the block */
    uint64_t end;
    uint32_t life;
    uint32_t
        lap; /* periods from the gap's line to the life's: 1 where the life crosses the period's end before the gap */
    uint32_t from; /* execs on the life's line: of the use before the gap, */
    uint32_t to;   /* of the use after, */
    uint32_t in_after;
    uint32_t absent_from; /* and the layout's hole */
    uint32_t back_from;
    double out_key; /* ns, on the life's line */
    double in_key;
    int64_t out_at; /* events on the life's line after which the copies are given */
    int64_t in_at;
} np_trip;

typedef struct np_stay {
    uint64_t offset; /* bytes of the arena: [offset, end) */
    uint64_t end;
    uint32_t life;
    uint32_t in;        /* the trip that ends with it, NP_NO_TRIP: it begins with the malloc */
    uint32_t out;       /* the trip that it ends with, NP_NO_TRIP: with the free */
    uint32_t begin;     /* event from which the layout has it, below `length` */
    uint32_t span;      /* events, `length` at most */
    uint32_t first_use; /* among the life's uses, */
    uint32_t n_uses;    /* so many from there on, over the last to the first again */
} np_stay;

/* Two stays that share a byte, one next after the other. */
typedef struct np_meeting {
    uint32_t stay;
    uint32_t before;
    uint32_t pause; /* events between them, by the layout */
    bool used;      /* `before` is the last one that was used, not the very last */
} np_meeting;

typedef struct np_making {
    const np_timeline *timeline;
    const np_layout *layout;
    const neap_memory *memory;
    uint32_t length;
    uint32_t n_execs;
    np_array(uint32_t) use_at;  /* [life]: into `uses`; one more at the end */
    np_array(np_use) uses;      /* by life, in the order of its line */
    np_array(np_trip) trips;    /* as the layout has them */
    np_array(uint32_t) trip_at; /* [life]: into `trip_of`; one more at the end */
    np_array(uint32_t) trip_of; /* trips by life, in order of `from` */
    np_array(np_stay) stays;
    np_array(np_meeting) meetings; /* by stay */
} np_making;

/* Does anything use the bytes: an exec, or a copy? */
static inline bool np_stay_has_work(const np_stay *stay)
{
    return stay->n_uses > 0 || stay->in != NP_NO_TRIP || stay->out != NP_NO_TRIP;
}

/* An event on a life's line. */
static inline int64_t np_making_event(const np_making *making, uint32_t exec)
{
    uint32_t lap = exec / making->n_execs;
    return making->timeline->times.items[exec - lap * making->n_execs] + (int64_t)lap * making->length;
}

/* Each needs what those before it made. NEAP_BAD_ARGUMENT: swaps, layout and timeline do not fit together. */
neap_status np_program_find_trips(np_making *making, const np_swap *swaps, uint32_t n_swaps); /* uses and trips */
neap_status np_program_find_stays(np_making *making, const np_program *program); /* program: its lives and `placed` */
neap_status np_program_find_meetings(np_making *making);
neap_status np_program_give_copies(np_making *making);                  /* out_at and in_at of the trips */
neap_status np_program_add_ops(np_making *making, np_program *program); /* events and trips' times -> operations */

#endif
