/* visit_watch.h: moments at which work of a little program could use a block that is away, and what its visit must come to.
 *
 * What is to be expected is found from the plan by painting a map of the arena, in another way than the library does it. A
 * seeker waits for a moment of the wanted kind, makes the work use the block, and compares. */
#ifndef TESTS_RUN_VISIT_WATCH_H
#define TESTS_RUN_VISIT_WATCH_H

#include "run/little_program.h"

/* Of what is away of a block, the worst. */
typedef enum visit_place {
    VISIT_STILL_THERE, /* only its copy out was given: planned work uses it there before it comes back */
    VISIT_EMPTY,       /* nobody stands in its place */
    VISIT_OCCUPIED,    /* somebody does whom the work does not use, */
    VISIT_IN_USE,      /* or whom it does, or who is fixed */
} visit_place;

typedef struct visit_chance {
    shadow_block *block;
    visit_place place;
    uint64_t bytes_there; /* of what is away: still there, */
    uint64_t bytes_empty; /* with nobody in their place, */
    uint64_t bytes_taken; /* with somebody */
    uint32_t n_parts;     /* swaps of it */
    uint32_t n_pages;     /* that it needs elsewhere, */
    uint32_t n_free;      /* and that there are */
    bool is_weight;
    bool is_partly_here;
    bool is_planned; /* the work is to read it */
    bool is_vital;   /* who stands in its place is going to be read */
    bool is_quiet;   /* the plan copies nothing right after the work */
} visit_chance;

/* Could the work that is about to be given use the block, and does not? */
bool visit_look(little_program *p, const shadow_use *uses, uint32_t n_uses, shadow_block *block, visit_chance *chance);

/* The k-th of the program's blocks, live or not; NULL: there are no more. */
shadow_block *visit_candidate(little_program *p, uint32_t k);

typedef struct visit_seeker {
    bool (*is_wanted)(little_program *p, const visit_chance *chance); /* NULL: any is */
    void (*before)(little_program *p, const visit_chance *chance);    /* NULL, or right before the work is given, */
    void (*after)(little_program *p, const visit_chance *chance);     /* and right after */
    shadow_kind kind;
    uint32_t n_wanted; /* how many are still to be made */
    uint32_t n_made;
    uint32_t n_refused; /* of them, that were departures; only where it is said that they may be: */
    bool may_be_refused;
    visit_chance made; /* by the work that is being given; no block: none is */
    neap_stats stats;  /* before it */
    uint64_t n_maps;
} visit_seeker;

/* A program on a plan with swaps, beneath which neap is from here on. Two streams. */
void visit_start(little_program *p, const little_options *options);

/* Laps with the seeker at work, `most` at most, until all that it wanted was found; false: there were fewer. */
bool visit_seek(little_program *p, visit_seeker *seeker, uint32_t most);

/* As a seeker does it: the uses of a work with one more. */
uint32_t visit_add(shadow_use *uses, uint32_t n_uses, shadow_block *block, shadow_kind kind);

#endif
