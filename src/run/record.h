/* record.h: what the program does off the plan, as a trace, and whether it repeats.
 *
 * Recording never fails the program: when host memory runs out the recording is given up, and begun anew later. Its
 * length is bounded. */
#ifndef NP_RUN_RECORD_H
#define NP_RUN_RECORD_H

#include "run/pattern.h"
#include "trace/period.h"

typedef struct np_recorder {
    const neap_memory *memory;
    neap_trace *trace; /* NULL: nothing is recorded at present */
    np_detector *detector;
    np_array(np_times *) chunks;     /* of exec times, which the device fills in */
    np_array(uint32_t) exec_events;  /* by exec: its event */
    uint64_t recent[NP_RECENT_KEYS]; /* np_pattern_hash(0, kind, key) of the last events, by index modulo */
    uint64_t n_events;               /* since it began */
    uint64_t peak_bytes;             /* the highest load after an event */
    uint64_t hash;                   /* np_pattern_hash of the events since it began */
    bool is_whole;                   /* it began with the start of an iteration */
    bool has_price;                  /* execs are timed by events of the device (price.h) */
    bool is_disturbed;               /* something had to leave or come back: times between execs mean nothing */
} np_recorder;

void np_recorder_init(np_recorder *recorder, const neap_memory *memory);
void np_recorder_free(np_recorder *recorder);

/* Begins anew with nothing live. */
void np_recorder_begin_empty(np_recorder *recorder);

/* What a block or an exec was, where there is none any more: for the part of an iteration that a plan served. */
void np_recorder_add_live(np_recorder *recorder, uint64_t id, uint64_t bytes);
void np_recorder_add_malloc(np_recorder *recorder, uint64_t id, uint64_t bytes);
void np_recorder_add_free(np_recorder *recorder, uint64_t id, uint64_t bytes);
void np_recorder_add_exec(np_recorder *recorder, const char *name, unsigned stream, uint64_t duration_ns,
                          const uint64_t *ids, const neap_access_kind *kinds, size_t n);

/* Begins anew. `live`: the blocks that are live now, through their `next`. No work that was recorded is under way. */
void np_recorder_begin(np_recorder *recorder, neap_block *live);

void np_recorder_malloc(np_recorder *recorder, neap_block *block);
void np_recorder_free_block(np_recorder *recorder, const neap_block *block);

/* Where the exec's times are to be written, or NULL. The accesses are recorded when the work has been given. */
np_times *np_recorder_times(np_recorder *recorder);
void np_recorder_exec(np_recorder *recorder, const neap_work *work, const neap_use *uses, size_t n_uses);

/* Has the program repeated itself for long enough that a plan is worth making? *seen: is there any period at all. */
bool np_recorder_is_ready(const np_recorder *recorder, bool *seen);

/* Fills in the times of what is recorded so far. All work recorded is done. */
void np_recorder_fill_times(np_recorder *recorder);

/* Hands the trace over, its times filled in, and stops recording. All work recorded is done. NULL: there is none. */
neap_trace *np_recorder_take(np_recorder *recorder);

#endif
