/* make_problem.h: placement problems made at random: circles, gaps, fixed buffers, equal buffers. */
#ifndef NEAP_MAKE_PROBLEM_H
#define NEAP_MAKE_PROBLEM_H

#include "base/rng.h"
#include "pool/problem.h"

typedef struct problem_shape {
    uint32_t n_buffers;
    uint32_t n_times;
    uint32_t longest;    /* a piece lives at most so long; 0: n_times */
    uint32_t max_size;   /* units */
    uint32_t max_pieces; /* a buffer; 0: one. Half of those with several are lives across the circle's end */
    uint32_t n_fixed;    /* so many are fixed where there is room, in each other's way never */
    uint32_t n_alike;    /* so many are equal to an earlier one */
    uint32_t max_align;  /* half of them stand at multiples of 2 to so many units; 0: of one */
    uint64_t unit;       /* 0: 1 */
} problem_shape;

/* A problem with the given memory hook (NULL: the default); the caller frees it. */
void make_problem(const problem_shape *shape, np_rng *rng, const neap_memory *memory, np_problem *problem);

/* A problem that is known to fit `capacity` units, though nothing else about it is: a rectangle of n_times by `capacity`
 * cut into n_buffers, some of them with gaps (max_pieces above 1), of which `n_shrunk` are then made a little smaller. */
void make_packed(const problem_shape *shape, uint64_t capacity, uint32_t n_shrunk, np_rng *rng, np_problem *problem);

/* A shape of at most so many buffers, chosen at random: sparse or dense, with or without gaps and fixed buffers. */
problem_shape random_shape(np_rng *rng, uint32_t max_buffers);

/* Do the two buffers live at a common time? Tries all pairs of pieces. */
bool buffers_meet(const np_problem *problem, uint32_t a, uint32_t b);

/* Is it a placement? Tries all pairs of buffers, and shares no code with the library. *height is its height. */
bool placement_is_right(const np_problem *problem, const uint64_t *offsets, uint64_t *height);

/* The highest load of any time, counted time by time. */
uint64_t load_by_hand(const np_problem *problem);

/* Prints the problem to stderr, to be looked at when a test fails. */
void print_problem(const np_problem *problem);

#endif
