/* space.h: where blocks off the plan stand: a line of bytes, as long as it has to be, with pages of the device behind it.
 *
 * A block gets the smallest free stretch that it fits into, so that the line is hardly longer than the load is high. Each
 * block is seen through a view of its own: where blocks leave, return or take their place in a plan, addresses stay the same.
 * Blocks that share a page of the line share the device's page behind it, each through its own view.
 *
 * A page of the line in which no block has data keeps the device's page behind it, which is then *idle*: for the next block
 * that stands there, or for any other that needs a page (np_space_steal).
 *
 * The view of a block that was freed is kept as a *spare*. A program that repeats itself asks for the same places again, and
 * mapping takes long. A spare holds no pages: others use them meanwhile. It serves a block at the same place once its pages
 * are idle again. */
#ifndef NP_MEMORY_SPACE_H
#define NP_MEMORY_SPACE_H

#include "memory/view.h"
#include "pool/baseline_heap.h"

#define NP_SPACE_UNIT 512 /* bytes: places begin at multiples of it at the least */
#define NP_NO_NEIGHBOUR UINT64_MAX

/* Where a block stands. */
typedef struct np_place {
    uint64_t begin; /* byte of the line */
    uint32_t entry; /* of the space's heap; NP_HEAP_NONE: it stands nowhere */
    uint8_t space;  /* number of the space */
} np_place;

#define NP_NO_PLACE ((np_place){.entry = NP_HEAP_NONE})

typedef struct np_spare {
    np_view view;
    uint64_t after[NP_MAX_STREAMS]; /* the last work that may have used it, by stream */
    uint32_t next;                  /* spare that begins at the same page, or free entry of the array */
} np_spare;

typedef struct np_space {
    np_pages *pages;
    uint8_t number;
    uint64_t unit;              /* bytes: a page, or NP_SPACE_UNIT */
    np_heap heap;               /* of places */
    np_array(uint64_t) ids;     /* by entry of the heap: the block that stands there */
    np_array(uint32_t) numbers; /* by page of the line: the device's page behind it, or NP_NO_PAGE */
    np_array(uint32_t) newest;  /* by page of the line: the spare that was kept last, of those that begin there */
    np_array(np_spare) spares;
    uint32_t free_spare; /* first free entry of the array */
    uint32_t n_spares;
} np_space;

void np_space_init(np_space *space, np_pages *pages, uint8_t number, uint64_t unit);
void np_space_free(np_space *space); /* no block stands there, no work is under way, and no other space has spares */

/* Finds a place for so many bytes. */
neap_status np_space_place(np_space *space, uint64_t id, uint64_t bytes, np_place *place);
void np_space_leave(np_space *space, const np_place *place);

/* The first page of the line that a place touches, and how many it does. */
uint32_t np_space_first_page(const np_space *space, const np_place *place);
uint32_t np_space_n_pages(const np_space *space, const np_place *place, uint64_t bytes);

/* The block whose bytes end where the place begins, in the same page; NP_NO_NEIGHBOUR: none's do. */
uint64_t np_space_neighbour(const np_space *space, const np_place *place);

/* The device's page behind page k of a place, or NP_NO_PAGE. */
uint32_t np_space_page(const np_space *space, const np_place *place, uint32_t k);

/* A held page stands behind page k of a place from now on; nothing did. */
void np_space_back(np_space *space, const np_place *place, uint32_t k, uint32_t number);

/* Nothing stands behind a page of the line any more. An idle page is given back: no spare shows it. */
void np_space_unback(np_space *space, uint32_t at);

/* An idle page, which has one user then and stands behind nothing; NP_NO_PAGE: there is none. Spares may show it: it is to
 * stand behind another page. */
uint32_t np_space_steal(np_space *space);

/* A spare that shows what stands behind a place, once idle pages have changed places: they have one user more then. False:
 * there is none. */
bool np_space_take_spare(np_space *space, const np_place *place, uint64_t bytes, np_view *view);

/* Keeps the view of a block at this place. Its pages lose a user, though work may still use them. False: it shows other pages
 * than those behind the place, or there are too many spares; nothing has changed. */
bool np_space_keep_spare(np_space *space, const np_place *place, np_view *view);

/* Gives up all spares. No work is under way. */
void np_space_drop_spares(np_space *space);

/* Gives up all idle pages. No spare of any space shows them. */
void np_space_give_back(np_space *space);

bool np_space_is_valid(const np_space *space);

#endif
