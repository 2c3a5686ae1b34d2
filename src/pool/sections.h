/* sections.h: the problem seen through its maximal moments.
 *
 * Of all times, only those matter at which the set of live buffers is maximal: any two buffers that ever meet, meet in
 * one of them, and no other time has a higher load. They are numbered 0, 1, ... in order of time and called *sections*.
 * There are at most as many as there are pieces, often far fewer, and every buffer's pieces become ranges of sections.
 *
 * What lives everywhere meets everything: it is set aside below all others, unless some buffer is fixed. That loses
 * nothing but where other buffers must stand at multiples of more than a unit: then those whose size is such a multiple
 * come first, which loses nothing either, and the others that may stand anywhere move the rest up by less than that. The
 * rest falls apart where no buffer lives on both sides of a boundary between sections: such *parts* are independent. */
#ifndef NP_POOL_SECTIONS_H
#define NP_POOL_SECTIONS_H

#include "pool/problem.h"

typedef struct np_range {
    uint32_t begin; /* sections, half-open */
    uint32_t end;
} np_range;

typedef struct np_part {
    uint32_t first_item; /* items of the part: a run of `items` */
    uint32_t n_items;
    np_range sections;
    uint64_t load; /* units */
} np_part;

typedef struct np_item {
    uint64_t size;  /* units */
    uint64_t fixed; /* units or NEAP_NO_OFFSET */
    uint64_t align; /* units: its offset from 0, not from `base`, is `lead` more than a multiple of this */
    uint64_t lead;
    uint32_t buffer;      /* index into the problem's buffers */
    uint32_t first_range; /* into `ranges`; sorted, disjoint, not touching */
    uint32_t n_ranges;
    uint32_t n_sections; /* it lives in: the sum over its ranges */
} np_item;

typedef struct np_sections {
    const neap_memory *memory;
    uint32_t n_sections;
    uint64_t base; /* units taken by what lives everywhere; other offsets count from there */
    uint64_t load; /* the highest of any section, `base` not counted */
    bool has_fixed;
    np_array(uint32_t) everywhere; /* buffers set aside, in the order in which they stand one upon the other from 0 */
    np_array(np_item) items;       /* the others, grouped by part */
    np_array(np_range) ranges;
    np_array(np_part) parts; /* in order of time */
} np_sections;

neap_status np_sections_make(const np_problem *problem, np_sections *sections);
void np_sections_free(np_sections *sections);
bool np_sections_is_valid(const np_sections *sections);

#endif
