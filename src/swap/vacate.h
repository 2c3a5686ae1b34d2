/* vacate.h: which swaps a layout asks for.
 *
 * Where everything leaves that can, places are found most easily, and most of it leaves for nothing: nobody comes into the
 * bytes while it is away. Those bytes can as well stay, in that gap; and what has to leave need not be away before the
 * first of the others comes, nor for longer than until the last has gone. The layout holds for what is left as well. */
#ifndef NP_SWAP_VACATE_H
#define NP_SWAP_VACATE_H

#include "swap/fill.h"
#include "swap/place.h"

typedef struct np_vacate_options {
    uint64_t page;        /* parts are so many, or to the block's end */
    bool held;            /* as the layout is (np_place_options) */
    bool keeps_views;     /* of each block that left a page still does, at least: in one piece it may have no place */
    const np_home *homes; /* likewise */
} np_vacate_options;

/* Of `swaps`, which `layout` was made of, those that it asks for, as far as it does: in the order they had. What leaves of
 * a block are its first bytes, so pieces of it that are alike change their places in the layout: first those in whose
 * bytes others come. `asked` is replaced. */
neap_status np_vacate(const np_timeline *timeline, const np_vacate_options *options, const np_swap *swaps,
                      np_layout *layout, np_swap_array *asked);

#endif
