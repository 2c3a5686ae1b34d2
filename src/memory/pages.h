/* pages.h: the device's physical pages: which exist, which hold data, and how many may exist.
 *
 * A page is *held* when it is committed on the device. It is held for one of three reasons: something uses it; it belongs to
 * the arena, which keeps its pages between uses; or a space keeps it behind one of its pages (space.h). A page that is none
 * of these is given back to the device at once.
 *
 * A page that the host has freed may still be used by work under way. What is to be waited for stands in a record, which all
 * pages that are freed together share: the next use of the page by another stream waits for it.
 *
 * Pages are found lowest first, in runs as long as can be: few runs are few mappings. */
#ifndef NP_MEMORY_PAGES_H
#define NP_MEMORY_PAGES_H

#include "device/device.h"

#define NP_NO_PAGE UINT32_MAX
#define NP_NO_SPACE UINT8_MAX

typedef struct np_page {
    uint32_t n_users; /* blocks with data on it; of an arena page only off the plan: otherwise 0 */
    uint32_t kept_at; /* the page of the space that it stands behind */
    uint32_t freed;   /* into np_pages.freed: what work under way may still use it; NP_NO_PAGE: none does */
    uint8_t kept_by;  /* number of that space; NP_NO_SPACE: none keeps it */
    bool is_held;
    bool is_arena;
    bool is_home; /* the arena's, off the plan: a block uses it whose place in a plan it is */
} np_page;

/* The last work of each stream when pages were freed. */
typedef struct np_freed {
    uint64_t after[NP_MAX_STREAMS];
    uint32_t n_pages; /* that refer to it; 0: the record can be used again */
    uint32_t next;    /* such record */
} np_freed;

typedef struct np_pages {
    np_device *device;
    np_array(np_page) pages;  /* by number, as far as any was ever held */
    np_array(np_freed) freed; /* records */
    uint32_t next_freed;      /* the first that can be used again; NP_NO_PAGE: none can */
    uint32_t n_held;
    uint32_t n_arena;
    uint32_t n_arena_unused; /* arena pages without users; meaningful off the plan */
    bool is_arena_uncounted; /* a plan runs, which knows who uses the arena's pages */
    uint32_t n_idle;         /* pages without users that a space keeps, and that are not the arena's */
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

void np_pages_use(np_pages *pages, uint32_t number);      /* one more user */
void np_pages_use_home(np_pages *pages, uint32_t number); /* which has its place there */
/* One user less for each; given back where it was the last and nothing keeps the page. NP_NO_PAGE is passed over. */
void np_pages_unuse(np_pages *pages, const uint32_t *numbers, uint32_t n);

/* Work given so far may use these pages: their next users come after it. NEAP_NO_MEMORY: nothing has changed. */
neap_status np_pages_note_freed(np_pages *pages, const uint32_t *numbers, uint32_t n);

/* Both, for pages that are kept, or the arena's. NEAP_NO_MEMORY: nothing has changed. */
neap_status np_pages_unuse_later(np_pages *pages, const uint32_t *numbers, uint32_t n);

/* Has all work ended that used the page before it was freed? */
bool np_pages_is_done(np_pages *pages, uint32_t number);

/* Raises after[s] to the mark of each stream that the page's next user must wait for. */
void np_pages_add_after(const np_pages *pages, uint32_t number, uint64_t after[NP_MAX_STREAMS]);

/* A held page stands behind a page of a space from now on; or behind none, and is given back where nothing else holds it. */
void np_pages_keep(np_pages *pages, uint32_t number, uint8_t space, uint32_t at);
void np_pages_unkeep(np_pages *pages, uint32_t number);

/* Makes a held page part of the arena. */
void np_pages_join_arena(np_pages *pages, uint32_t number);

/* The page is no longer the arena's, and given back where it has no users. No space keeps it. */
void np_pages_leave_arena(np_pages *pages, uint32_t number);

/* No arena page has users any more. `is_counted`: from here on they are counted; or a plan runs, and they are not. */
void np_pages_clear_arena(np_pages *pages, bool is_counted);

static inline bool np_pages_is_arena(const np_pages *pages, uint32_t number)
{
    return pages->pages.items[number].is_arena;
}

bool np_pages_is_valid(const np_pages *pages);

#endif
