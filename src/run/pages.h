/* pages.h: the device's physical pages: which exist, which hold data, and how many may exist.
 *
 * A page is *held* when it is committed on the device. It is held for one of two reasons: something uses it, or it belongs
 * to the arena, which keeps its pages between uses. A page that is neither is given back to the device at once, so what is
 * held is what is needed.
 *
 * Pages are found lowest first, in runs as long as can be: few runs are few mappings. */
#ifndef NP_RUN_PAGES_H
#define NP_RUN_PAGES_H

#include "device/device.h"

#define NP_NO_PAGE UINT32_MAX

typedef struct np_page {
    uint32_t n_users; /* blocks with data on it; of an arena page only off the plan */
    bool is_held;
    bool is_arena;
} np_page;

typedef struct np_pages {
    np_device *device;
    np_array(np_page) pages; /* by number, as far as any was ever held */
    uint32_t n_held;
    uint32_t n_arena;
    uint32_t n_arena_unused; /* arena pages without users; meaningful off the plan */
    uint32_t lowest_free;    /* no page below it is free */
    uint32_t peak_held;
    uint32_t recent_peak; /* the same, since the first plan became active */
} np_pages;

void np_pages_init(np_pages *pages, np_device *device);
void np_pages_free(np_pages *pages); /* gives nothing back to the device */

/* Holds n new pages, each with one user, and writes their numbers. NEAP_DEVICE_FULL: the device has no more. */
neap_status np_pages_take(np_pages *pages, uint32_t n, uint32_t *numbers);

/* An arena page without users, taken by one user; NP_NO_PAGE where there is none. */
uint32_t np_pages_borrow(np_pages *pages);

void np_pages_use(np_pages *pages, uint32_t number); /* one more user */
/* One user less for each; given back where it was the last and the page is no arena's. NP_NO_PAGE is passed over. */
void np_pages_unuse(np_pages *pages, const uint32_t *numbers, uint32_t n);

/* Makes a held page part of the arena. */
void np_pages_join_arena(np_pages *pages, uint32_t number);

/* The page, without users, is no longer the arena's, and given back. */
void np_pages_leave_arena(np_pages *pages, uint32_t number);

/* No arena page has users: what a plan does with them is not counted while it runs. */
void np_pages_clear_arena(np_pages *pages);

static inline bool np_pages_is_arena(const np_pages *pages, uint32_t number)
{
    return pages->pages.items[number].is_arena;
}

bool np_pages_is_valid(const np_pages *pages);

#endif
