/* pile.h: a few placed items in the order of their places, and where another one fits first.
 *
 * To find a place, what is placed is gone through from the bottom up. Whether two items meet is asked of 64 stretches of
 * the part's sections first, a bit each, which nearly always answers. That takes time in proportion to what is placed; up
 * to some thousand items it is quicker than the tree of occupied.h, which is for any number. */
#ifndef NP_POOL_PILE_H
#define NP_POOL_PILE_H

#include "pool/occupied.h"

enum { NP_PILE_ITEMS = 3072 }; /* worth it up to so many */

typedef struct np_pile {
    const np_sections *sections;
    const np_part *part;
    uint64_t *begins; /* units, ascending; all lists are in this order */
    uint64_t *ends;
    uint64_t *stretches; /* a bit for each that the item lives in */
    uint32_t *items;     /* indices into sections->items */
    uint32_t n;
} np_pile;

/* With room for all items of the part, none of which is there yet. */
neap_status np_pile_init(np_pile *pile, const np_sections *sections, const np_part *part);
void np_pile_free(np_pile *pile);

/* The lowest offset at which the item meets nothing that is there; for n items that are alike and live at the same times,
 * one after the other. */
void np_pile_first_fits(const np_pile *pile, uint32_t item, const np_fitted *fitted, uint32_t n, uint64_t *offsets);

/* The item stands at [begin, end), or several do that live at the same times, side by side. */
void np_pile_add(np_pile *pile, uint32_t item, uint64_t begin, uint64_t end);

#endif
