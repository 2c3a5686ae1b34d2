/* solve.h: from a placement problem to offsets, a height and what is known about the best possible height. */
#ifndef NP_POOL_SOLVE_H
#define NP_POOL_SOLVE_H

#include "pool/sections.h"

typedef struct np_solve_options {
    neap_solver solver;
    double seconds;
    uint64_t goal;     /* units; a height as low as this is low enough for the search; 0: as low as can be */
    uint64_t hopeless; /* units; what the search first finds to be higher is left as it is; 0: nothing is */
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
void np_solution_free(np_solution *solution);

/* ---- for those who place ---- */

/* The places of a problem's items, above the base of its sections. */
typedef struct np_solved {
    const uint64_t *item_offsets;
    uint64_t height;
    uint64_t bound; /* no lower than the sections' load */
    const char *found_by;
} np_solved;

/* Gathers, checks, and only then hands over. NEAP_INTERNAL: the checker refused it. */
neap_status np_solution_make(const np_problem *problem, const np_sections *sections, const np_solved *solved,
                             neap_error *error, np_solution *solution);

/* NEAP_BAD_INPUT: fixed buffers stand in each other's way. */
neap_status np_solve_check_fixed(const np_problem *problem, const np_sections *sections, neap_error *error);

#endif
