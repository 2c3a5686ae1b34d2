/* place_problem.h: blocks and their absences as a placement problem: buffers with holes in time (place.h). */
#ifndef NP_SWAP_PLACE_PROBLEM_H
#define NP_SWAP_PLACE_PROBLEM_H

#include "pool/problem.h"
#include "swap/place.h"

/* A part of a block in one of its gaps: the bytes [begin, end) of the block are absent in the execs [from, to). */
typedef struct np_absent_part {
    uint64_t begin;
    uint64_t end;
    uint32_t block;
    uint32_t gap;
    uint32_t swap;
    uint32_t from;
    uint32_t to;
    bool odd; /* not whole pages: the parts above it would not begin at a page */
} np_absent_part;

/* The buffer of the problem that some bytes are in, and how far into it they begin. */
typedef struct np_spot {
    uint32_t buffer;
    uint64_t at;
} np_spot;

typedef struct np_place_problem {
    const np_timeline *timeline;
    const np_place_options *options;
    uint32_t round;       /* times after which all repeats: execs, or events */
    uint64_t piece;       /* bytes: what is cut is cut into pieces no larger, */
    uint64_t large_piece; /* or what does not leave, and is large, into these */
    uint64_t large;       /* bytes: blocks from there on are cut though nothing of them leaves; UINT64_MAX: none are */
    np_problem problem;
    np_array(np_placed) placed; /* without offsets: by life, place, `at` */
    np_array(np_spot) spots;    /* one for each of them */
    np_spot *rods;              /* NULL, or by life: where it is in its rod; NP_NO_HOME: it is in none */
    np_absent_part *parts;      /* by block, gap, `begin` */
    uint32_t n_parts;
    size_t capacity;  /* of the lists */
    uint64_t *cuts;   /* scratch: where a block's segments end */
    np_piece *pieces; /* scratch: of one segment */
} np_place_problem;

/* Arguments as those of np_place_swaps; they must outlive it. */
neap_status np_place_problem_make(const np_timeline *timeline, const np_simulator *simulator, const np_swap *swaps,
                                  uint32_t n_swaps, const np_place_options *options, np_place_problem *problem);
void np_place_problem_free(np_place_problem *problem);

/* For np_place_problem_make: adds a buffer for each rod. */
neap_status np_place_rods_add(np_place_problem *problem);

#endif
