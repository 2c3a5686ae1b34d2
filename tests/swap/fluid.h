/* fluid.h: small random programs and the best that any plan can do with them, by linear programming.
 *
 * The fluid optimum: bytes flow in and out at any rate the link allows, in any amounts, at every moment; the execs of a
 * period may each be made to wait. It is a relaxation of every real plan and shares no code with the bounds: it starts
 * from the uses of blocks, not from gaps. Plans that do not repeat are no better: the average over their periods is a
 * plan that does, since every condition is linear. */
#ifndef TESTS_SWAP_FLUID_H
#define TESTS_SWAP_FLUID_H

#include "base/rng.h"
#include "swap/link.h"
#include "swap/timeline.h"

#define FLUID_EXECS_MAX 40  /* for the linear programs: about 10 */
#define FLUID_BLOCKS_MAX 30 /* about 6 */

typedef struct fluid_block {
    uint64_t bytes;
    bool persistent;
    uint32_t n_uses;
    np_use uses[FLUID_EXECS_MAX]; /* ascending; a block that is not persistent may go on into the next period */
} fluid_block;

typedef struct fluid_program {
    uint32_t n_execs;
    uint32_t n_blocks;
    double pause_ns[FLUID_EXECS_MAX]; /* before the exec */
    double duration_ns[FLUID_EXECS_MAX];
    fluid_block blocks[FLUID_BLOCKS_MAX];
} fluid_program;

/* At least 3 and at most n_execs_max execs. Sizes are multiples of 1000 bytes, times whole ns. */
fluid_program fluid_random(np_rng *rng, uint32_t n_execs_max, uint32_t n_blocks_max);

/* The program as a timeline, made anew from the definitions in timeline.h. Its `period` is NULL. */
void fluid_timeline(const fluid_program *program, np_timeline *timeline);

/* The lowest peak in bytes when a period may wait for wait_ns in all. */
double fluid_peak(const fluid_program *program, const np_link *link, double wait_ns);

/* The least wait a period under a limit; INFINITY where it cannot be held. */
double fluid_overhead(const fluid_program *program, const np_link *link, double limit);

#endif
