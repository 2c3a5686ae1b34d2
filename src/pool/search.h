/* search.h: the lowest placement of one part that can be found in time.
 *
 * The search goes in rounds of independent attempts on a few threads. The first round is greedy fits in several orders;
 * the rounds after it are skyline searches (skyline.h) that aim at the lower bound at once, by different rules and
 * orders and with growing budgets, one that also proves, and, where a part is too large for skylines, reordered first
 * fits (reorder.h), as where items must stand at multiples of more than a unit, which a skyline knows nothing of. A round ends when all its attempts have ended or one has reached the goal; the best of the lowest
 * number wins. What an attempt does depends on the rounds before and the seed, never on the clock or on the number of
 * threads: the answer is the same every time, unless time runs out. */
#ifndef NP_POOL_SEARCH_H
#define NP_POOL_SEARCH_H

#include "pool/sections.h"

typedef struct np_search_options {
    uint64_t goal; /* units; a placement as low as this is low enough */
    uint64_t seed;
    uint64_t deadline_ns; /* on np_clock_ns; attempts end by then, but for the very first */
    unsigned n_threads;
} np_search_options;

typedef struct np_search np_search;

/* `options` is copied. `offsets`, indexed from the part's first item, receives the best placement; it must outlive the
 * search. */
neap_status np_search_create(const np_sections *sections, const np_part *part, const np_search_options *options,
                             uint64_t *offsets, np_search **search);
void np_search_free(np_search *search);

/* One round more. After the first there is a placement. */
neap_status np_search_round(np_search *search);

uint64_t np_search_height(const np_search *search);      /* of the best placement; UINT64_MAX before the first round */
uint64_t np_search_bound(const np_search *search);       /* proven: no placement of the part is lower */
bool np_search_is_done(const np_search *search);         /* the goal is reached, or nothing lower exists */
const char *np_search_found_by(const np_search *search); /* in words */

#endif
