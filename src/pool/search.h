/* search.h: the lowest placement of one part that can be found in time.
 *
 * The search goes in rounds of independent attempts on a few threads. The first round is greedy fits in several orders;
 * the rounds after it are skyline searches (skyline.h) that aim at the lower bound at once, by different rules and
 * orders and with growing budgets, one that also proves, and, where a part is too large for skylines, reordered first
 * fits (reorder.h). A round ends when all its attempts have ended or one has reached the goal; the best of the lowest
 * number wins. What an attempt does depends on the rounds before and the seed, never on the clock or on the number of
 * threads: the answer is the same every time, unless time runs out. */
#ifndef NP_POOL_SEARCH_H
#define NP_POOL_SEARCH_H

#include "pool/sections.h"

typedef struct np_search_options {
    uint64_t goal; /* units; low enough, the search ends there */
    uint64_t seed;
    uint64_t deadline_ns; /* on np_clock_ns */
    unsigned n_threads;
    bool (*progress)(void *user, uint64_t height, uint64_t bound); /* between rounds; false: stop. May be NULL */
    void *progress_user;
} np_search_options;

typedef struct np_search_result {
    uint64_t height;
    uint64_t bound; /* proven: no placement of the part is lower */
    char found_by[48];
} np_search_result;

/* `offsets` is indexed from the part's first item. */
neap_status np_search_part(const np_sections *sections, const np_part *part, const np_search_options *options,
                           uint64_t *offsets, np_search_result *result);

#endif
