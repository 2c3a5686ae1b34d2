/* block.h: a block as the manager knows it.
 *
 * There are four kinds in planning, told apart by how their address came to be:
 *
 *   small    shares a view with other small blocks; always on the device, never in a plan's arena
 *   loose    a large block from off the plan: a view of its own, its pages anywhere. It can leave page by page
 *   flat     a planned block that no swap touches: an address inside the arena. It can leave, and can only return to
 *            the same bytes
 *   swapped  a planned block with swaps, or one that lives across the period's end: a view of its own, mapped onto its
 *            place in the arena while the plan runs; off the plan its pages may be anywhere
 *
 * (And `plain` ones, from the host's own allocator, where nothing is planned: plain.c.)
 *
 * Blocks that are persistent in a plan (weights) are loose ones that have been given a *home* in the arena. So are blocks
 * that live when a plan is entered and that it expects to free: loose ones, and swapped ones of another plan.
 *
 * Off the plan a page of a view without a physical page is absent: its bytes are on the host if the block has left
 * before, and undefined otherwise. On the plan the plan says what is absent. */
#ifndef NP_RUN_BLOCK_H
#define NP_RUN_BLOCK_H

#include "memory/space.h"
#include "run/clean.h"
#include "run/host.h"
#include "run/program.h"

typedef enum np_block_kind {
    NP_BLOCK_SMALL,
    NP_BLOCK_LOOSE,
    NP_BLOCK_FLAT,
    NP_BLOCK_SWAPPED,
    NP_BLOCK_PLAIN,
} np_block_kind;

struct neap_block {
    char *address;
    uint64_t bytes;    /* as asked for */
    uint32_t life;     /* in the pattern that is followed now, or NP_NO_LIFE */
    uint32_t turn;     /* which of the life's places */
    uint32_t own_life; /* planned: the life in its own pattern */
    uint32_t *home;    /* NULL, or by page of its view its page in the arena, NP_NO_PAGE: none */
    uint32_t n_home;   /* pages of it */
    uint8_t kind;      /* np_block_kind */
    bool is_live;
    bool is_absent;   /* flat: its bytes are on the host, not in the arena */
    bool is_standing; /* (scratch of enter.c) part of what lives at a start */
    bool is_fixed;    /* it never leaves: a graph, another process or a table of pointers names it */
    bool is_exported; /* nor do its pages: they are others' too */
    bool is_doubted;  /* work was seen to name it where no plan expects it: no plan swaps it */
    bool is_lending;  /* its pages are those of its place in the arena, though not in order: it stays until its free */
    bool is_extra;    /* it was live at a start without being part of it: it stays through others, too */
    uint64_t pinned_by;    /* number of the exec that is being made ready and needs it */
    uint64_t id;           /* number in the recording */
    np_place place;        /* loose: in one of the manager's spaces */
    uint64_t malloc_event; /* index in the recording, or UINT64_MAX */
    np_clean clean;        /* of what is in `slot`; where it has left before, absent pages are there */
    np_slot slot;
    np_view view;         /* loose, swapped; of a small block: empty */
    uint64_t *after;      /* NULL, or by stream the mark that the first use by another stream must wait for */
    uint32_t used_by;     /* on the plan: streams, as bits, that come after all who were in these bytes before */
    uint32_t after_left;  /* streams, as bits, that have not yet waited */
    neap_block *previous; /* of all live blocks */
    neap_block *next;
    neap_block *older; /* of those that can leave, least recently used last */
    neap_block *newer;
    struct np_pattern *pattern; /* flat, swapped: whose it is */
};

#endif
