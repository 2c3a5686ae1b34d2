/* program_arena.h: the arena's bytes while a program is checked: who has them, and which uses of them must be done before
 * the next. For program_check.c only.
 *
 * The places of all lives are cut, where a swap's bytes begin or end, into *parts*; the arena is cut, where any part
 * begins or ends, into *cells*. A cell knows the part that has it, and all uses by those before. A part that takes its
 * cells must from then on be used only by works that know those uses to be done. A part that was copied out keeps its
 * cells until another takes them: until then it can still be read. */
#ifndef NP_RUN_PROGRAM_ARENA_H
#define NP_RUN_PROGRAM_ARENA_H

#include "device/device.h"
#include "run/program.h"

/* By stream: how many of its works are done, or how many had been given when something happened. */
typedef struct np_stamps {
    uint32_t of[NP_N_STREAMS];
} np_stamps;

typedef enum np_part_state { NP_PART_FREE, NP_PART_THERE, NP_PART_OUT } np_part_state;

typedef struct np_part {
    uint64_t begin; /* bytes of the block */
    uint64_t end;
    uint64_t offset; /* of the arena */
    uint32_t life;
    uint32_t place;
    uint32_t first_cell;
    uint32_t past_cell;
    np_part_state state;
    np_part_state at_lap_start;
    bool taken;        /* NP_PART_OUT: another has been in its cells since */
    np_stamps before;  /* uses of its cells that must be done first */
    np_stamps used;    /* since it took them */
    np_stamps written; /* by execs */
} np_part;

typedef struct np_cell {
    uint64_t begin;
    uint32_t owner; /* part, UINT32_MAX: none yet */
    np_stamps past; /* uses by those before */
} np_cell;

typedef struct np_arena {
    const neap_memory *memory;
    np_array(np_part) parts; /* by life */
    np_array(np_cell) cells; /* the last one begins at the end of all */
    uint32_t *part_at;       /* [life]: into `parts`; one more at the end */
    size_t n_lives;
} np_arena;

/* Nothing is there at first. The program must be valid. */
neap_status np_arena_make(const np_program *program, const neap_memory *memory, np_arena *arena);
void np_arena_free(np_arena *arena);

/* The part takes its cells from whoever had them. A life whose data are in one of them is returned, and the part has not
 * taken them all; NP_NO_LIFE: there is none. */
uint32_t np_arena_take(np_arena *arena, uint32_t part);

/* np_program_check with some of the copies out skipped that can be, by chance: those of bytes that were used, but not
 * written since they came, which the host may still have. */
typedef struct np_skipping {
    uint32_t per_cent;
    uint64_t seed;
} np_skipping;

neap_status np_program_check_skipping(const np_program *program, const np_skipping *skipping, neap_error *error);

void np_stamps_join(np_stamps *all, const np_stamps *more);         /* the later of each */
bool np_stamps_know(const np_stamps *clock, const np_stamps *uses); /* all of these are done */

#endif
