/* skyline_state.h: floors, unplaced items and low places, with undo. Private to the skyline search (skyline.h). */
#ifndef NP_POOL_SKYLINE_STATE_H
#define NP_POOL_SKYLINE_STATE_H

#include "pool/skyline.h"

/* Sections and items are numbered from 0 inside the part here. Heights are units, signed for differences. */

typedef struct sky_item {
    int64_t size;
    int64_t fixed;          /* -1: may stand anywhere */
    const np_range *ranges; /* its sections, numbered inside the part */
    uint32_t n_ranges;
    uint32_t hull_begin;
    uint32_t hull_end;
    uint32_t slot;    /* into `slot_of`: its places in the lists of its sections, one a section in order */
    uint32_t same_as; /* items of one size and one life have one number */
    uint64_t mark;    /* random; stands for the item in hashes of unplaced sets */
} sky_item;

typedef struct sky_section {
    int64_t floor;
    int64_t unplaced; /* bytes of the unplaced items that live here */
    uint32_t list;    /* its items in `members`: the n_unplaced first ones are unplaced */
    uint32_t n_unplaced;
    uint32_t witness;        /* an unplaced item whose low place is the floor: it can fill the section */
    uint32_t next_witnessed; /* list of the sections with the same witness; NEAP_NEVER ends it */
    uint32_t last_witnessed;
    uint32_t cause_begin; /* the stretch of sections that made the floor what it is; the section itself included */
    uint32_t cause_end;
    uint32_t n_crossing;  /* unplaced items whose hull crosses the boundary before this section */
    uint64_t begin_marks; /* sum of the marks of unplaced items whose hull begins here */
    double failures;      /* how often it could not be filled, recent ones weigh more */
} sky_section;

typedef enum sky_change_kind { SKY_FLOOR, SKY_LOW, SKY_PLACED } sky_change_kind;

typedef struct sky_change {
    uint32_t kind;
    uint32_t index;       /* section or item */
    int64_t old_height;   /* SKY_FLOOR, SKY_LOW */
    uint32_t old_witness; /* SKY_FLOOR */
    uint32_t cause_begin; /* SKY_FLOOR */
    uint32_t cause_end;
} sky_change;

typedef np_array(sky_change) sky_change_array;
typedef np_array(uint32_t) sky_u32_array;

typedef struct sky_state {
    const neap_memory *memory;
    uint32_t n_sections;
    uint32_t n_items;
    uint32_t n_unplaced;
    uint32_t n_fixed;
    bool has_holes; /* some item has several ranges */
    bool no_inference;
    int64_t capacity;
    double failure_weight; /* what a failure counts now */
    sky_section *sections;
    sky_item *items;
    np_range *ranges;
    size_t n_ranges;
    uint32_t *members; /* items by section */
    uint32_t *slot_of; /* item and section -> place in the section's list */
    size_t n_members;
    int64_t *low;          /* by item: where it would stand now */
    int64_t *offset;       /* by item: where it stands */
    uint32_t *witnessed;   /* by item: the first section it is the witness of, or NEAP_NEVER */
    uint32_t *fixed_items; /* all fixed ones */
    uint32_t *blocked;     /* by section: the choice in which some item that fits there was not flat */
    uint32_t n_choices;    /* of sections, made so far */
    sky_change_array trail;
    sky_u32_array queue;  /* sections that may have lost their witness */
    uint32_t cause_begin; /* of the last failure */
    uint32_t cause_end;
} sky_state;

/* Runs through the sections an item lives in. */
/* NOLINTBEGIN(bugprone-macro-parentheses): s is a name to declare */
#define SKY_FOR_SECTIONS(item, s)                                                                       \
    for (const np_range *range_ = (item)->ranges; range_ < (item)->ranges + (item)->n_ranges; range_++) \
        for (uint32_t s = range_->begin; s < range_->end; s++)
/* NOLINTEND(bugprone-macro-parentheses) */

neap_status sky_state_init(sky_state *state, const np_sections *sections, const np_part *part);
void sky_state_free(sky_state *state);

/* Floors at 0 and every item unplaced; low places and witnesses are not set. */
void sky_state_empty(sky_state *state);

/* Empties the skyline and makes the first inferences; *possible false: the capacity is too small, provably. */
neap_status sky_state_reset(sky_state *state, int64_t capacity, bool *possible);

/* The item stands on `height` from now on, the floor of all its sections; draws the inferences. *possible false: no
 * completion exists, and the cause is set. */
neap_status sky_state_place(sky_state *state, uint32_t item, int64_t height, bool *possible);

/* Nothing stands on the section's floor: it is raised to `height`, for the given cause. */
neap_status sky_state_waste(sky_state *state, uint32_t section, int64_t height, np_range cause, bool *possible);

/* Back to an earlier length of the trail. */
void sky_state_undo(sky_state *state, size_t trail_length);

/* Widens *cause by the reason why the section's unplaced items whose low place is at least `below` cannot stand lower:
 * in the life of each, some floor is that high. The nearest such floors are blamed, and what raised them. */
void sky_state_explain(const sky_state *state, uint32_t section, int64_t below, np_range *cause);

/* Unplaced items that can fill the section; counting stops at `enough`. */
uint32_t sky_state_count_fitting(const sky_state *state, uint32_t section, uint32_t enough);

/* The section to branch on: in a valley, such that every item that fits there is flat. NEAP_NEVER: all are placed. */
uint32_t sky_choose_section(sky_state *state, np_skyline_rule rule);

bool sky_state_is_flat(const sky_state *state, uint32_t item); /* all its floors are equal */
bool sky_state_is_valid(const sky_state *state);

static inline void sky_widen(np_range *cause, uint32_t begin, uint32_t end)
{
    cause->begin = begin < cause->begin ? begin : cause->begin;
    cause->end = end > cause->end ? end : cause->end;
}

#endif
