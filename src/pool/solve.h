/* solve.h: from a placement problem to offsets, a height and what is known about the best possible height. */
#ifndef NP_POOL_SOLVE_H
#define NP_POOL_SOLVE_H

#include "pool/problem.h"

typedef struct np_solve_options {
    neap_solver solver;
    double seconds;
    uint64_t goal; /* units; a height as low as this is low enough for the search; 0: as low as can be */
    uint64_t seed;
    unsigned n_threads;
    neap_progress *progress; /* heights in bytes */
    void *progress_user;
} np_solve_options;

typedef struct np_solution {
    const neap_memory *memory;
    size_t n_offsets;
    uint64_t *offsets; /* units, by buffer of the problem */
    uint64_t height;   /* units */
    uint64_t load;     /* units */
    uint64_t bound;    /* units; no placement is lower */
    char found_by[48];
} np_solution;

/* NEAP_BAD_INPUT: two fixed buffers stand in each other's way. Every solution has passed the checker. */
neap_status np_solve(const np_problem *problem, const np_solve_options *options, neap_error *error,
                     np_solution *solution);
/* A placement near another one: `near` says where each buffer stood, NEAP_NO_OFFSET where that is not known. First-fits in
 * the order of those places, reordered up to n_steps times (reorder.h) until the height is at or below `goal`, in units:
 * quick where little has changed. *found false: it did not get there, and the solution is not written. */
typedef struct np_near {
    const uint64_t *offsets; /* units, by buffer of the problem */
    uint64_t goal;
    uint32_t n_steps;
    uint64_t seed;
} np_near;

neap_status np_solve_near(const np_problem *problem, const np_near *near, neap_error *error, np_solution *solution,
                          bool *found);

void np_solution_free(np_solution *solution);

#endif
