/* facts.h: what the hook knows of one device, for reports, `neap top` and the Python module. */
#ifndef NP_HOOK_FACTS_H
#define NP_HOOK_FACTS_H

#include "neap.h"

typedef struct np_hook_facts {
    int ordinal; /* of the device, as the driver counts */
    neap_stats stats;
    const char *aside; /* NULL, or why neap has stepped aside: one line, static */
    double seconds;    /* since the device was first used */

    uint64_t side_bytes;    /* held for small blocks, which take no part in the plan: part of stats.held */
    uint64_t side_live;     /* of those, asked for */
    uint64_t held_fixed;    /* bytes of blocks that never leave: graphs, exports, collectives, pointer tables */
    uint64_t peak_fixed;    /* the most there were at once */
    uint64_t caching_bytes; /* what PyTorch's caching allocator would have held for the same requests; 0: not known */

    uint64_t n_launches; /* kernels, copies, memsets and graphs seen */
    uint64_t n_quick;    /* of them, that were just what the plan expected */
    uint64_t n_rests;    /* times that work was no longer looked at, as none of it mattered */
    uint64_t n_strays;   /* copies by threads that do nothing else: no plan counts them */
    uint64_t n_words;    /* of parameters, scanned */
    uint64_t scan_ns;    /* for all of them */
    uint64_t n_unknown;  /* calls of a kind that is not known: everything came home before each */
    uint64_t n_doubtful; /* uses that were not planned, of blocks that were there */

    uint64_t pool_iteration; /* iterations seen before the first plan was followed; UINT64_MAX: none was */
    double pool_seconds;
    double swap_seconds;  /* until the first plan with swaps; 0: none was */
    uint64_t limit_asked; /* bytes; 0: none was asked for in bytes */
    double share_asked;   /* of the peak load; 0: none was asked for */
    bool is_learning;     /* the planner's thread has work: it does not depend on what the program does meanwhile */
    bool is_verified;     /* neap verify has passed for this program */
} np_hook_facts;

/* How many devices the process has used through neap; facts of one. From any thread, also while the process ends. */
size_t np_hook_n_devices(void);
bool np_hook_get_facts(size_t index, np_hook_facts *facts);

#endif
