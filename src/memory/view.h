/* view.h: an address range of its own, each page of it mapped onto a physical page or none.
 *
 * What is off the plan lives in views: a large block has one to itself, small ones share one. A planned block that is
 * swapped has one too, mapped onto its place in the arena. A page of a view without a physical page holds no data on
 * the device.
 *
 * A block need not begin where its view does: its first page may be one in whose first bytes another block ends (seam.c).
 * What lies between is the view's `lead`. Pages of a view are counted from its begin, bytes from the block's. */
#ifndef NP_MEMORY_VIEW_H
#define NP_MEMORY_VIEW_H

#include "memory/pages.h"

/* Is the view one of the users of its pages? Views of planned blocks are not while a plan runs. */
typedef enum np_counting { NP_COUNTED, NP_UNCOUNTED } np_counting;

typedef struct np_view {
    char *address;
    uint64_t lead;     /* bytes, less than a page */
    uint32_t *numbers; /* [n_pages]: physical page, or NP_NO_PAGE */
    uint32_t n_pages;
    uint32_t n_missing; /* pages without a physical one */
} np_view;

/* Reserves addresses; nothing is mapped. */
neap_status np_view_make(np_pages *pages, uint32_t n_pages, np_view *view);

/* Gives its pages up, and its addresses. No work under way uses it. */
void np_view_free(np_pages *pages, np_view *view, np_counting counting);

/* Maps pages [first, first + n) of the view, all missing, onto the physical pages given, which the caller has taken. On
 * failure nothing has changed. */
neap_status np_view_map(np_pages *pages, np_view *view, uint32_t first, uint32_t n, const uint32_t *numbers);

/* Shows other pages there, or again its own, for a while: what the view knows stays as it is. No work under way uses it. On
 * failure some are shown. */
neap_status np_view_show(np_pages *pages, const np_view *view, uint32_t first, uint32_t n, const uint32_t *numbers,
                         uint32_t *n_shown);

/* Unmaps them. No work under way uses them. */
void np_view_unmap(np_pages *pages, np_view *view, uint32_t first, uint32_t n, np_counting counting);

/* The first byte of the block that is in page k or behind it. */
static inline uint64_t np_view_byte_of(const np_view *view, uint32_t k, uint64_t page_bytes)
{
    return k == 0 ? 0 : k * page_bytes - view->lead;
}

/* The page in which a byte of the block is. */
static inline uint32_t np_view_page_of(const np_view *view, uint64_t byte, uint64_t page_bytes)
{
    return (uint32_t)((byte + view->lead) / page_bytes);
}

bool np_view_is_valid(const np_pages *pages, const np_view *view);

#endif
