/* place.h: the device memory that a set of swaps needs when every block returns to its place.
 *
 * A block's bytes fall into segments that leave and return together; each is a buffer with holes in time, wherever its
 * parts are absent. A swapped block is a view, whose pages need not be neighbours on the device: its segments have places
 * of their own, each beginning at a page, and long ones are cut up, since small pieces find room more easily. With
 * `held`, where anything is swapped, the few blocks of a thirty-second of the peak load and more are views, too; or, with
 * `cuts`, all from eight pages on, as far as some thousand pages go.
 *
 * Persistent blocks are views too, and not all of them begin where a page does. Those that begin in the page in which
 * another ends, and never leave, are placed together: a *rod*, which has no gaps.
 *
 * Blocks need their place from first to last use, in execs, as in the bounds; or, with `held`, from malloc to free, in
 * events: what a program can be run with, since a block's data must not be lost before its free. */
#ifndef NP_SWAP_PLACE_H
#define NP_SWAP_PLACE_H

#include "swap/simulate.h"

/* Where a persistent life stands already. */
typedef struct np_home {
    const uint32_t *pages; /* of the device, one for each page of its view; NULL: it has no place yet, and gets one */
    uint64_t lead;         /* where in a page it begins */
    uint32_t neighbour;    /* life that ends in the page in which it begins, before it; NP_NO_HOME: none */
    bool is_outside;       /* it is kept elsewhere: it has no place, and no swaps */
    bool is_view;          /* not persistent: it is to be seen at a place of its own choice, and begins at a page */
} np_home;

#define NP_NO_HOME UINT32_MAX

typedef struct np_place_options {
    double seconds;
    uint64_t goal;     /* bytes; a footprint as low as this is low enough; 0: as low as can be */
    uint64_t hopeless; /* bytes: what is first found to be above is not worth the time to lower it; 0: all is */
    uint64_t page;     /* pieces of a swapped block begin at multiples of it, in the block and on the device */
    uint64_t seed;
    unsigned n_threads;
    bool cuts;            /* with `held`: as many blocks are cut up as may be, not only the few largest */
    bool held;            /* times are events; every life of the period has a place, used or not */
    const np_home *homes; /* with `held`, by life. NULL: nothing stands yet, nor is to be a view for that */
} np_place_options;

typedef struct np_place_result {
    uint64_t footprint; /* bytes; checked */
    uint64_t load;      /* bytes present at most, by execs */
    uint64_t bound;     /* no placement of these swaps is lower: what was proved on the way */
    size_t n_buffers;
} np_place_result;

/* Bytes [at, at + bytes) of a life's block stand at `offset` of the arena. */
typedef struct np_placed {
    uint64_t at;
    uint64_t bytes; /* of the last segment: rounded up to the alignment */
    uint64_t offset;
    uint32_t life;  /* index into the period's lives */
    uint32_t place; /* 0; 1, 2, ... where a life needs several places (longer than a period) */
} np_placed;

/* What leaves in a swap: bytes [begin, end) of the block, absent while the execs [absent_from, back_from) run, counted on
 * as the gap's `to` is. Swaps that free no memory in any exec have none. */
typedef struct np_left {
    uint64_t begin;
    uint64_t end;
    uint32_t swap; /* index into the swaps */
    uint32_t absent_from;
    uint32_t back_from;
} np_left;

typedef struct np_layout {
    const neap_memory *memory;
    uint64_t footprint;         /* bytes */
    np_array(np_placed) placed; /* by life, then place, then `at` */
    np_array(np_left) left;     /* by swap */
} np_layout;

/* A bound that is often higher: the heaviest set found of buffers that pairwise meet (pool/clique.h). For one answer, not
 * for many trials: it takes its time. Arguments as below. */
neap_status np_place_bound(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, uint64_t *bound);

void np_layout_free(np_layout *layout);
neap_status np_layout_copy(const np_layout *layout, np_layout *copy);
uint64_t np_layout_excess(const np_layout *layout, uint64_t limit); /* bytes of what does not end below the limit */

/* The simulator must have simulated just these swaps: their absences are taken from it. `layout` may be NULL; otherwise
 * it is made: with `held` of all lives, else of those that some exec uses. A hole in time covers, in events, all after the exec before absent_from up to the
 * exec back_from, both left out. */
neap_status np_place_swaps(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                           uint32_t n_swaps, const np_place_options *options, neap_error *error,
                           np_place_result *result, np_layout *layout);

/* The same near another layout, of swaps that differ little: quick. It ends at options->goal, or after n_steps. *excess
 * is what stands above that goal, in bytes. */
neap_status np_place_near(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                          uint32_t n_swaps, const np_place_options *options, const np_layout *near, uint32_t n_steps,
                          neap_error *error, np_place_result *result, np_layout *layout, uint64_t *excess);

#endif
