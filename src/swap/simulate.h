/* simulate.h: what a set of swaps costs, exactly, before anything runs.
 *
 * Three queues work side by side: execs on the compute stream in their order, copies out, copies in, each first come first
 * served. Device memory holds what is needed and not absent, the copies under way included, and never exceeds the limit:
 *
 *   - An exec starts a pause after the one before it, once every block it uses is there. A block that is used for the
 *     first time takes its memory then; where that is not free, the exec waits for copies out.
 *   - A copy out starts when the queue comes to it and its gap is released; its memory is free when the copy has ended
 *     and the use before the gap is over. What the host already has is not copied, nor queued: it is gone after that use.
 *     Where a swap says so, an exec waits for the end of the copy out: the layout has given the memory to others then,
 *     however much there is.
 *   - A copy in starts when the queue comes to it, the exec it waits for has ended and its memory is free.
 *
 * Bytes flow at the link's speed in each direction; when both are busy and the link is shared, each gets its half of the
 * shared speed, or its own if that is less. The program repeats; the simulation goes from period to period until one ends
 * with the queues where an earlier one left them. From there on they repeat: that is the steady state, and what is reported
 * is its average period, its peak and what is absent in all of it. */
#ifndef NP_SWAP_SIMULATE_H
#define NP_SWAP_SIMULATE_H

#include "swap/link.h"
#include "swap/timeline.h"

/* One chosen gap, or a part of its block. */
typedef struct np_swap {
    uint64_t bytes; /* the gap's, or less */
    double out_key; /* place in the queue of copies out, ascending; ties in the order of the list. A time in ns on the
                        * undisturbed line, at or after the gap's release; below 0 in the period before */
    double in_key;  /* the same for copies in, on the line counted on as the gap's `to` is */
    uint32_t gap;   /* index into the timeline's gaps */
    uint32_t in_after; /* exec, counted on as the gap's `to` is: the copy in waits for its end. from <= in_after < to */
    uint32_t out_before; /* likewise: it waits for the end of the copy out, from < out_before < to; 0: none does. The
                          * out_key is not after its start on the undisturbed line, or the two may wait for each other */
} np_swap;

typedef struct np_simulation {
    bool possible;      /* false: under this limit the program comes to a halt with these swaps */
    double period_ns;   /* of the steady state */
    double overhead;    /* period_ns / the undisturbed period - 1 */
    uint64_t peak;      /* bytes held at most */
    uint64_t bytes_out; /* copied in a period */
    uint64_t bytes_in;
    double waited_ns;   /* by execs, in a period, for memory and for copies in */
    uint32_t halted_at; /* where not possible: the exec */
} np_simulation;

typedef struct np_simulator np_simulator; /* tables for one timeline, used for many simulations */

neap_status np_simulator_create(const np_timeline *timeline, const np_link *link, np_simulator **simulator);
void np_simulator_free(np_simulator *simulator);

/* `limit` UINT64_MAX: none. Linear in execs and swaps, times the few periods until it is steady. */
neap_status np_simulate(np_simulator *simulator, uint64_t limit, const np_swap *swaps, uint32_t n_swaps,
                        np_simulation *result);

/* When a swap of the last simulation was absent, in its steady state: the execs [absent_from, back_from), counted on as
 * the gap's `to` is, found its memory free from begin to end. There are none where back_from <= absent_from. */
typedef struct np_absence {
    uint32_t absent_from;
    uint32_t back_from;
} np_absence;

np_absence np_simulator_absence(const np_simulator *simulator, uint32_t swap);

/* When it all happened in the last period of a simulation, in ns from that period's begin. The start of a copy lies in the
 * period; its end may lie beyond. In a steady state of several periods each differs a little; this is one of them. */
typedef struct np_moment {
    double start_ns;
    double end_ns;
} np_moment;

typedef struct np_moments {
    const neap_memory *memory;
    uint32_t n_execs;
    uint32_t n_swaps;
    np_moment *execs; /* [exec] */
    np_moment *outs;  /* [swap]; NaN: the host had the bytes already, nothing is copied out */
    np_moment *ins;   /* [swap] */
} np_moments;

/* np_simulate, with the moments of a simulation that is possible; of others there are none: all arrays are NULL. */
neap_status np_simulate_moments(np_simulator *simulator, uint64_t limit, const np_swap *swaps, uint32_t n_swaps,
                                np_simulation *result, np_moments *moments);
void np_moments_free(np_moments *moments);

/* Fills in keys and in_after of a swap in the paper's way: out right after the use, in early enough that the queue of
 * copies in, all of them, ends every copy in time on the undisturbed line (the latest such start, in order of due). */
neap_status np_schedule_swaps(const np_timeline *timeline, const np_link *link, np_swap *swaps, uint32_t n_swaps);

#endif
