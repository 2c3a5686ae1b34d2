/* brute.h: the lowest height of a small placement, by trying every order.
 *
 * Why that is exact. Take any placement of the free buffers and put them anew, in the order of their offsets, each at
 * the lowest offset that will do (a multiple of its alignment, free of the fixed ones and of those put before it). By induction none comes to stand higher
 * than it stood: what was put before it and meets it ended below it, and still does. Doing this again and again, the
 * sum of the offsets falls until nothing changes, and then each buffer is put no lower than the one before it. So some
 * order, put from the bottom up and never going back down, gives an optimal placement: all such orders are tried. */
#ifndef NEAP_BRUTE_H
#define NEAP_BRUTE_H

#include "pool/sections.h"

enum { BRUTE_MAX = 16 }; /* buffers */

uint64_t brute_optimum(const np_problem *problem);

/* The same for a part alone, its fixed items' ends included, counted from the base. */
uint64_t brute_part_optimum(const np_sections *sections, const np_part *part);

#endif
