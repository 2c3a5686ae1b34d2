/* skyline.h: placing a part from the bottom up, so that it fits a given capacity.
 *
 * The state is a *skyline*: for every section the floor above which nothing stands yet. An item can only stand on the
 * highest floor of its sections (its *low* place). Two facts about any completion:
 *
 *   - A section's next item stands no lower than the lowest low place of its unplaced items: the floor can be raised to
 *     it. What is raised is wasted, and a section has no more to waste than capacity minus load. (Inference.)
 *   - In a valley (a run of sections with one floor between higher ones) every section is either filled right at the
 *     floor, by an item that fits into the valley, or wastes something.
 *
 * So a node of the search picks one section of one valley and tries each item that can fill it, then waste. Where the
 * capacity is the peak load, the sections at the peak may waste nothing at all and there is little to try.
 *
 * Failures carry the stretch of sections that caused them: decisions elsewhere are jumped over (backjumping). States
 * that failed are remembered, so that the same skyline over the same unplaced items is not searched twice (memory).
 * Equal items are tried once (symmetry). Items that must stand at multiples of more than a unit have no place here. Every switch can be turned off without changing the answer, only the time. */
#ifndef NP_POOL_SKYLINE_H
#define NP_POOL_SKYLINE_H

#include "base/stop.h"
#include "pool/sections.h"

typedef enum np_skyline_rule {
    NP_SKYLINE_FEWEST,   /* the section that the fewest items can fill */
    NP_SKYLINE_LOWEST,   /* the lowest section */
    NP_SKYLINE_TIGHTEST, /* sections that may waste nothing first, then as FEWEST */
    NP_SKYLINE_FAILING,  /* few items, and many failures there so far */
    NP_SKYLINE_N_RULES
} np_skyline_rule;

enum { /* np_skyline_query.switches_off */
       NP_SKYLINE_NO_BACKJUMPING = 1,
       NP_SKYLINE_NO_MEMORY = 2,
       NP_SKYLINE_NO_SYMMETRY = 4,
       NP_SKYLINE_NO_INFERENCE = 8,
};

typedef enum np_skyline_answer {
    NP_SKYLINE_PLACED,     /* offsets are written */
    NP_SKYLINE_IMPOSSIBLE, /* proved: no placement within the capacity */
    NP_SKYLINE_GAVE_UP,    /* the node budget ran out, or it was told to stop */
} np_skyline_answer;

typedef struct np_skyline_query {
    uint64_t capacity; /* units */
    np_skyline_rule rule;
    const double *preference; /* per item of the part: where several fill a section, the highest is tried first */
    bool leaps;               /* waste in large steps only: finds more, proves nothing */
    uint64_t max_nodes;
    unsigned switches_off;
    const np_stop *stop; /* may be NULL */
} np_skyline_query;

typedef struct np_skyline np_skyline;

/* Words of memory a skyline of this part takes, roughly: the sum of its items' sections. */
uint64_t np_skyline_weight(const np_sections *sections, const np_part *part);

neap_status np_skyline_create(const np_sections *sections, const np_part *part, np_skyline **skyline);
void np_skyline_free(np_skyline *skyline);

/* Searches from an empty skyline. What failed in earlier calls with the same capacity is remembered. `offsets` is
 * indexed from the part's first item and written only with NP_SKYLINE_PLACED. Fails for want of memory alone. */
neap_status np_skyline_search(np_skyline *skyline, const np_skyline_query *query, uint64_t *offsets,
                              np_skyline_answer *answer);

uint64_t np_skyline_nodes(const np_skyline *skyline); /* visited so far, over all searches */

bool np_skyline_is_valid(const np_skyline *skyline);

#endif
