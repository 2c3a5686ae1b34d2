/* make_program.h: periods with swaps and a simple layout, at random or spelled out, to make programs from. */
#ifndef NEAP_MAKE_PROGRAM_H
#define NEAP_MAKE_PROGRAM_H

#include "base/rng.h"
#include "run/program.h"

/* A period in slots. A slot is the mallocs that come before an exec, the exec, and the frees after it. */
typedef struct life_shape {
    uint64_t bytes;
    bool persistent;
    uint32_t begin; /* slot of its malloc */
    uint32_t end;   /* of its free, counted on over the period's end: begin <= end */
} life_shape;

typedef struct use_shape {
    uint32_t slot;
    uint32_t life;
    neap_access_kind kind;
} use_shape;

typedef struct period_shape {
    uint32_t n_slots;
    const uint32_t *streams; /* [slot], NULL: all 0 */
    const life_shape *lives;
    uint32_t n_lives;
    const use_shape *uses; /* by slot */
    uint32_t n_uses;
    uint64_t leak_bytes; /* malloc'd in every period and kept; 0: nothing */
    bool held;           /* the timeline counts blocks from malloc to free */
} period_shape;

/* All that np_program_make needs. */
typedef struct scene {
    neap_trace *trace;
    np_period period;
    np_timeline timeline;
    np_array(np_swap) swaps;
    np_layout layout;
} scene;

/* The period over and over; there are no swaps and no layout yet. Execs take 1000 ns each. Life i of the shape has the
 * numbers from 1000 i on in the trace. */
void make_scene(const period_shape *shape, scene *made);
void free_scene(scene *made);

uint32_t scene_life(const scene *made, uint32_t shape_life); /* index among the period's lives */

/* Adds a swap of the gap that begins with exec `from` of a life (of the shape); `bytes` 0: all of it. */
void add_swap(scene *made, uint32_t shape_life, uint32_t from, uint64_t bytes);

/* Simulates the swaps with keys in the paper's way, or, with `rng`, at random, and places everything, large ones first,
 * each as low as it can be, or (at random) by np_place_swaps. Swapped lives are cut into pieces of at most `piece` bytes,
 * a multiple of 512. False: the simulation halts. */
bool make_layout(scene *made, const np_link *link, np_rng *rng, uint64_t piece);

typedef struct random_scene {
    uint32_t max_slots;
    uint32_t max_lives;
    uint32_t max_streams;
    uint32_t swap_share; /* of the gaps, in per cent */
    uint32_t max_pages;  /* of 512 bytes, of a life */
    bool long_lives;
} random_scene;

/* False: there is nothing to be made of this one. */
bool make_random_scene(const random_scene *random, np_rng *rng, scene *made);

#endif
