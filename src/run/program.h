/* program.h: a plan made ready to be followed: for every event of the period what must match, and what is to be done.
 *
 * Following it needs no search and no map: the next event is compared with the next entry, and its operations are done.
 * An operation is a wait of one stream for a piece of work of another, or one half of a swap. The waits are all that is
 * needed to give every byte of the arena one order of uses, whichever stream they come from:
 *
 *   - The first use of a block by a stream after its malloc waits for all uses of those bytes by other streams under the
 *     blocks that stood there before: their execs, and their copies.
 *   - A copy out waits for the execs that used the block; a copy in for all uses of its bytes under other blocks.
 *   - The first use of a block by a stream after a copy in waits for that copy.
 *
 * And two rules about the order in which the host gives work, so that a program may leave at any event and lose nothing:
 *
 *   - A copy in is given only when the blocks that stood in its bytes are freed, or their copies out given.
 *   - A block is malloc'd into bytes only when the same holds for them. (The layout sees to that.)
 *
 * A copy out may be skipped where the host still has the bytes, because they were not written since they were last copied:
 * a wait for it is then one for nothing, and no order is lost by that.
 *
 * Copies out are given in the order of their keys (np_swap), copies in likewise, each at the earliest event that the rules
 * allow. The period repeats: an operation may refer to work of the period before, and always means the last time that
 * piece of work was given. A wait that stream order or an earlier wait already implies, in every period after the first,
 * is left out. */
#ifndef NP_RUN_PROGRAM_H
#define NP_RUN_PROGRAM_H

#include "swap/place.h"

#define NP_NO_LIFE UINT32_MAX /* a malloc or free of a block that the plan has no place for (it leaks) */

typedef enum np_op_kind {
    NP_OP_WAIT_EXEC, /* `stream` waits for exec number `index` of the period */
    NP_OP_WAIT_OUT,  /* for the copy out of swap `index` */
    NP_OP_WAIT_IN,   /* for its copy in */
    NP_OP_OUT,       /* give the copy out of swap `index` to NP_STREAM_OUT */
    NP_OP_IN,        /* the copy in, to NP_STREAM_IN */
} np_op_kind;

typedef struct np_op {
    uint32_t index;
    uint8_t kind;   /* np_op_kind */
    uint8_t stream; /* of a wait: the one that waits */
} np_op;

typedef struct np_program_event {
    uint64_t key;       /* malloc: bytes asked for; exec: np_program_name_key of its name; free: 0 */
    uint32_t subject;   /* malloc, free: the life, or NP_NO_LIFE; exec: its number in the period */
    uint32_t first_use; /* exec: into `uses`; the certain accesses, in the order they were recorded */
    uint32_t first_op;  /* into `ops`: first those to be done before the event, then those after it */
    uint16_t n_uses;
    uint16_t n_before;
    uint16_t n_after;
    uint8_t kind;   /* neap_event_kind */
    uint8_t stream; /* exec */
} np_program_event;

typedef struct np_program_use {
    uint32_t life;
    uint32_t kind; /* neap_access_kind */
} np_program_use;

typedef struct np_program_life {
    uint64_t bytes; /* as asked for */
    uint64_t id;    /* of a persistent block: its number in the trace */
    uint32_t
        first_placed;  /* into `placed`: its bytes in order; n_placed for its first place, then as many for the next */
    uint32_t n_placed; /* 0: a persistent block that is kept outside of the arena */
    uint32_t n_places; /* 1, or more for one that lives longer than a period: its successors take turns */
    uint32_t begin;    /* event of its malloc; 0: persistent */
    uint32_t end;      /* of its free, counted on over the period's end; the period's length: persistent */
    bool persistent;
    bool swapped; /* has a swap: it needs a view */
} np_program_life;

typedef struct np_program_swap {
    uint64_t begin; /* bytes of the block that leave and return: [begin, end) */
    uint64_t end;
    uint32_t life;
    bool starts_absent; /* before event 0 the copy out and all uses before it are given, the copy in is not */
} np_program_swap;

typedef struct np_program {
    const neap_memory *memory;
    uint64_t footprint; /* bytes of the arena */
    uint64_t peak_load; /* bytes */
    double period_ns;   /* undisturbed */
    double overhead;    /* simulated: for the maker of the plan to fill in, 0 until then */
    uint32_t n_execs;
    np_array(np_program_event) events; /* of one period */
    np_array(np_program_use) uses;
    np_array(np_op) ops;
    np_array(np_program_life) lives;
    np_array(np_placed) placed;
    np_array(np_program_swap) swaps;
} np_program;

/* What stands for an exec's name in an event. */
uint64_t np_program_name_key(const char *name, size_t name_bytes);

/* Bytes of the first page of a life's view that are not its own: a page of the arena is a page of the view. 0: it has no
 * place. */
static inline uint64_t np_program_lead(const np_program *program, uint32_t life, uint64_t page_bytes)
{
    const np_program_life *l = &program->lives.items[life];
    return l->n_placed > 0 ? program->placed.items[l->first_placed].offset % page_bytes : 0;
}

/* The layout is one of lives held from malloc to free, made from just these swaps. `swaps` may be empty. Execs of the
 * period are those of the timeline. NEAP_NO_PLAN: the copies wait for each other in a circle. */
neap_status np_program_make(const np_timeline *timeline, const np_swap *swaps, uint32_t n_swaps,
                            const np_layout *layout, const neap_memory *memory, np_program *program);
void np_program_free(np_program *program);

/* An independent check: runs the program over several periods with vector clocks and a map of the arena's bytes, and
 * looks for two uses of a byte that are not ordered, a use of bytes that are not there, and data that would be lost if
 * the program left. NEAP_INTERNAL with the reason in `error`. It shares nothing with np_program_make. */
neap_status np_program_check(const np_program *program, neap_error *error);

bool np_program_is_valid(const np_program *program); /* every index within its range */

#endif
