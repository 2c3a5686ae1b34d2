/* timeline.h: one period as swapping sees it: execs with times, blocks with the execs that use them, and gaps.
 *
 * Execs run one after the other in the order of their launches. The undisturbed period lasts as long as their durations
 * together or the measured step, whichever is longer; what is left is an even pause before every exec. A period without
 * any time lasts a nanosecond for each exec: plans hold as for any other, their costs mean nothing.
 *
 * A block malloc'd in the period needs memory from its first use to its last, a persistent one always (or never, if
 * nothing uses it): before the first use nothing is in it, after the last nobody looks. A *gap* lies between two
 * consecutive uses with at least one exec between them: there the block could be absent.
 *
 * A program that is run with a plan holds blocks from malloc to free. A timeline that is `held` counts them so: the first
 * exec after a malloc and the last before the free are uses, though they touch nothing, and what nothing uses at all is
 * there too. Such uses only read: before the first true use there is nothing to copy out, after the last nothing changed.
 * Bounds hold for timelines that are not held.
 *
 * The line of execs goes on from period to period: exec k of the next period is k + n_execs, one period later. */
#ifndef NP_SWAP_TIMELINE_H
#define NP_SWAP_TIMELINE_H

#include "trace/period.h"

/* How accesses of unknown direction are taken. */
typedef enum np_directions {
    NP_DIRECTIONS_CAREFUL, /* as reads and writes: plans are made so */
    NP_DIRECTIONS_ANY,     /* as reads, but for the first use of a fresh block: no truth allows more than that */
} np_directions;

typedef struct np_use {
    uint32_t exec; /* counted on: n_execs or more where the block lives across the period's end */
    bool writes;
} np_use;

typedef struct np_swap_block {
    uint64_t bytes;     /* rounded up to the alignment */
    uint32_t life;      /* index into the period's lives */
    uint32_t first_use; /* into `uses` */
    uint32_t n_uses;    /* 1 at least */
    bool persistent;
    bool pinned; /* lives longer than a period: never swapped, and counted in every exec */
} np_swap_block;

typedef struct np_gap {
    uint64_t bytes;
    double release_ns; /* the copy out may begin: the end of the last write before; -INFINITY: never written */
    double due_ns;     /* the copy in must have ended: the start of the use after */
    uint32_t block;    /* index into `blocks` */
    uint32_t from;     /* exec of the use before, below n_execs */
    uint32_t to;       /* exec of the use after, counted on: from + 1 < to */
} np_gap;

typedef struct np_timeline {
    const neap_memory *memory;
    const np_period *period;
    uint64_t alignment;
    bool held; /* blocks count from malloc to free */
    uint32_t n_execs;
    double period_ns;
    uint64_t peak_load;        /* bytes, blocks held from malloc to free */
    np_array(uint32_t) times;  /* [exec]: its event, as a time in the period */
    np_array(double) start_ns; /* [exec], undisturbed */
    np_array(double) end_ns;
    np_array(uint64_t) needed; /* [exec]: bytes of the blocks that need memory then */
    np_array(np_swap_block) blocks;
    np_array(np_use) uses; /* grouped by block, in order */
    np_array(np_gap) gaps; /* grouped by block, in order */
} np_timeline;

typedef struct np_timeline_options {
    uint64_t alignment; /* bytes */
    double slower;      /* a GPU this many times slower: scales durations and pauses; 1 as recorded */
    np_directions directions;
    bool held;
} np_timeline_options;

/* The period must have one (length above 0) and outlive the timeline. */
neap_status np_timeline_make(const np_period *period, const np_timeline_options *options, const neap_memory *memory,
                             np_timeline *timeline);
void np_timeline_free(np_timeline *timeline);
bool np_timeline_is_valid(const np_timeline *timeline);

/* The exec whose end releases the gap, counted on; negative in the period before. The gap must have been written. */
int32_t np_timeline_release_exec(const np_timeline *timeline, const np_gap *gap);

/* The last exec from the gap's `from` on that has ended by a time, on the gap's line; `from` at the least. */
uint32_t np_timeline_last_ended(const np_timeline *timeline, const np_gap *gap, double time_ns);

/* Start and end of an exec counted on over the periods. */
static inline double np_timeline_start(const np_timeline *timeline, uint32_t exec)
{
    uint32_t laps = exec / timeline->n_execs;
    return timeline->start_ns.items[exec - laps * timeline->n_execs] + timeline->period_ns * laps;
}

static inline double np_timeline_end(const np_timeline *timeline, uint32_t exec)
{
    uint32_t laps = exec / timeline->n_execs;
    return timeline->end_ns.items[exec - laps * timeline->n_execs] + timeline->period_ns * laps;
}

#endif
