/* random_loop.h: loops made at random: what a program does in one iteration.
 *
 * A slot is a variable of the program: it holds the blocks malloc'd for it that are not freed yet, oldest first. Most hold
 * one block at a time; those that cross the iteration's end hold more. Slots below n_lasting are filled before the loop.
 *
 * Two forms: as training goes (a chain of layers forward, then backward, most blocks used twice), and anything at all. */
#ifndef TESTS_RUN_RANDOM_LOOP_H
#define TESTS_RUN_RANDOM_LOOP_H

#include "base/rng.h"
#include "run/shadow.h"

enum { LOOP_SLOTS = 72, LOOP_LIVES = 24, LOOP_STEPS = 192, LOOP_USES = 6 };

typedef enum step_kind { STEP_MALLOC, STEP_FREE, STEP_EXEC, STEP_HOST_WRITE, STEP_HOST_READ, STEP_SYNC } step_kind;

typedef struct step_use {
    uint8_t slot;
    uint8_t kind;   /* shadow_kind */
    bool is_oldest; /* of the slot's blocks; otherwise the newest */
} step_use;

typedef struct step {
    step_kind kind;
    uint32_t slot;       /* of all but execs */
    uint32_t min_length; /* free: of the oldest block, where the slot has so many */
    bool leaks;          /* malloc: the program forgets the block */
    uint64_t bytes;      /* malloc */
    uint32_t name;       /* exec */
    uint32_t stream;
    uint64_t duration_ns;
    uint32_t n_uses;
    step_use uses[LOOP_USES];
} step;

typedef struct loop {
    uint32_t first_slot; /* of its own, */
    uint32_t end_slot;
    uint32_t n_steps;
    step steps[LOOP_STEPS];
} loop;

typedef struct loop_form {
    uint32_t n_lasting;  /* slots 0 to n_lasting - 1: live before the loop begins */
    uint32_t first_slot; /* of the iteration's */
    uint32_t n_streams;
    uint32_t max_execs;
    uint32_t max_lives;
    uint64_t page_bytes;
    uint32_t max_pages;   /* of a block */
    uint32_t small_share; /* per cent of the blocks that are smaller than a page */
    bool may_leak;
    uint32_t first_name; /* loops with different ones have no name in common */
} loop_form;

uint64_t random_bytes(np_rng *rng, const loop_form *form);
shadow_kind later_kind(np_rng *rng); /* of a block that was written before */
void make_loop(np_rng *rng, const loop_form *form, loop *made);

/* The same, but for a few sizes, or a part in the middle or at the end that is missing. */
void vary_loop(np_rng *rng, const loop_form *form, loop *l);

/* Pages that an iteration has live at once, about. */
uint32_t loop_peak_pages(const loop *l, uint64_t page_bytes);

#endif
