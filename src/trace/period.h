/* period.h: one period of a trace as the planners use it: where it lies, its iterations, its accesses, and for every
 * block when it lives on the period's circle.
 *
 * Time inside a period counts events from its cut, the event of lowest load: 0 <= t < length. */
#ifndef NP_TRACE_PERIOD_H
#define NP_TRACE_PERIOD_H

#include "trace/detect.h"
#include "trace/trace.h"

/* An event of the trace as the detector sees it. */
np_step np_trace_step(const neap_trace *trace, uint32_t event);

/* A block's life on the circle. Blocks of all periods that are malloc'd by the same event of the period are one. */
typedef struct np_life {
    uint32_t block;  /* index into the trace's blocks: the one malloc'd in the chosen period, or the persistent one */
    uint32_t begin;  /* time of its malloc; 0 for a persistent block */
    uint32_t end;    /* time of its free, counted on without wrapping: begin < end, end may exceed length, and
                        * end - begin may exceed length too (it lives longer than a period); `length` if persistent */
    bool persistent; /* lives through the whole period and is neither malloc'd nor freed in it */
    uint32_t first_use; /* time of the first certain access, counted as `begin` is; NEAP_NEVER: none */
    uint32_t last_use;  /* time of the last certain access, first_use <= last_use */
} np_life;

typedef struct np_period {
    const neap_memory *memory;
    const neap_trace *trace;
    uint32_t begin;        /* of the run (see detect.h) */
    uint32_t length;       /* events; 0: the trace has no period */
    uint32_t run_length;   /* events of the run */
    uint32_t first_answer; /* events after which the online detector answered with this run until its end; NEAP_NEVER:
                            * it is known from the end of the trace only */
    uint32_t origin;       /* event of the trace that is time 0: of lowest load, or the first of an iteration where
                          * that is known (is_cut); begin <= origin < begin + length; the period that starts there lies
                          * inside the run */
    uint64_t leak_bytes;
    np_array(np_life) lives;         /* in order of begin; leaked blocks (never freed, malloc'd anew) are left out */
    size_t n_leaked;                 /* blocks a period leaks */
    np_array(neap_variant) variants; /* in events from `begin`, the last one may end beyond `length` (it goes on at
                                        * the period's start); empty where the period is one iteration */
    /* Certain accesses of the period, in order of time; time -> range through access_at[t] .. access_at[t + 1]. */
    np_array(uint32_t) access_at;   /* length + 1 entries */
    np_array(neap_access) accesses; /* `block` here is an index into `lives` */
    uint64_t n_doubtful;            /* in the whole run */
} np_period;

/* Finds and fills. A trace that never repeats succeeds with length 0. A CSV is one period by definition, and so is
 * the snapshot of a program that never repeats: its run_length is its length, which is less than of any other's. */
neap_status np_period_find(const neap_trace *trace, const neap_memory *memory, np_period *period);
void np_period_free(np_period *period);
bool np_period_is_valid(const np_period *period);

#endif
