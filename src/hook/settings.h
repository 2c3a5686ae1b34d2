/* settings.h: what `neap run` tells the library it puts in front of a program, by the environment.
 *
 *     NEAP_HOOK          the verb: "run", "record" or "verify". Without it the library does nothing at all
 *     NEAP_LIMIT         bytes (a unit may follow: "8GiB"), or "70%" of the peak load
 *     NEAP_OVERHEAD      a share of the iteration that swapping may cost: 0.01 or "1%"; the lowest limit at that cost is
 *                        found
 *     NEAP_REPORT        file for the report at exit; without it, stderr. "-": none
 *     NEAP_REPORT_JSON   1: the report is one JSON document
 *     NEAP_RECORD        file for the trace
 *     NEAP_TELL_LIMIT    1: cudaMemGetInfo answers with the limit
 *     NEAP_KEEP_BACKEND  1: PyTorch keeps its cudaMallocAsync allocator, also where the program asks for what that has not
 *     NEAP_CUPTI_ALONE   1: no other subscriber of CUPTI is allowed, also where CUPTI can have several
 *     NEAP_LOG           "none", "warn", "info" or "debug"
 *     NEAP_LIVE          1: one line on stderr that updates in place, where it is a terminal
 *     NEAP_MIN_BLOCK     bytes: smaller blocks take no part in the plan
 *     NEAP_MARGIN        launches that a block stays after its last seen use, and is back before the next
 *     NEAP_PLAN_SECONDS  for planning, beside the program
 *     NEAP_PLAN_CACHE    folder for plans from run to run
 *     NEAP_VERIFY_LAUNCHES, NEAP_VERIFY_BLOCKS   "FIRST-END", half-open: what verify poisons; all where not set
 *     NEAP_VERIFY_TELL   1: verify says on stderr, at exit, what it poisoned: "neap-verify: launches N blocks M", and for
 *                        each launch and block of a range of one launch
 *                        "neap-verify: launch 123 KERNEL, block 45 (1048576 bytes)"
 *     NEAP_VERIFIED      1: `neap verify` has passed for this program
 *     NEAP_PID           the process that `neap run` became: it says so where it used nothing that neap sees */
#ifndef NP_HOOK_SETTINGS_H
#define NP_HOOK_SETTINGS_H

#include "neap.h"

enum {
    NP_HOOK_MIN_BLOCK = NEAP_RUN_MIN_BLOCK, /* what holds where nothing is set */
    NP_HOOK_MARGIN = NEAP_RUN_MARGIN,
};

typedef enum np_hook_mode { NP_HOOK_OFF, NP_HOOK_RUN, NP_HOOK_RECORD, NP_HOOK_VERIFY } np_hook_mode;

typedef struct np_hook_range {
    uint64_t first;
    uint64_t end;
} np_hook_range;

typedef struct np_hook_settings {
    np_hook_mode mode;
    uint64_t limit;     /* bytes; 0: limit_share */
    double limit_share; /* 0: none */
    double overhead;    /* 0: not asked for */
    uint64_t min_block;
    uint32_t margin;
    double plan_seconds; /* 0: the usual */
    neap_log_level log_level;
    bool tells_limit;
    bool is_limit_late;  /* a limit in per cent holds from the first plan with swaps on, once all is measured */
    bool keeps_backend;  /* what PyTorch's cudaMallocAsync allocator has not is an error */
    bool is_cupti_alone; /* no other subscriber of CUPTI is allowed */
    bool is_live;
    bool report_json;
    bool tells_verified; /* NEAP_VERIFY_TELL */
    bool is_verified;
    uint64_t process;   /* NEAP_PID; 0: not known */
    const char *report; /* NULL: stderr; they live as long as the process */
    const char *record;
    const char *plan_cache;
    np_hook_range verify_launches;
    np_hook_range verify_blocks;
} np_hook_settings;

/* From the environment, copied. What cannot be read is said on stderr in one line, and left at its default. */
void np_hook_settings_read(np_hook_settings *settings);

/* The copied texts; a process never needs to, a test does. */
void np_hook_settings_free(np_hook_settings *settings);

#endif
