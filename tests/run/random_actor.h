/* random_actor.h: one thread of a random program: runs loops, departs from them at random, checks as it goes. */
#ifndef TESTS_RUN_RANDOM_ACTOR_H
#define TESTS_RUN_RANDOM_ACTOR_H

#include "run/manager.h"
#include "run/random_loop.h"
#include "run/random_program.h"
#include "testing.h"

enum { ACTOR_QUEUE = 5, ACTOR_KEPT = 48, ACTOR_LATE = 16, ACTOR_SHARED = 3, ACTOR_FIXED = 12 };

/* The blocks of a slot, oldest first. */
typedef struct actor_slot {
    shadow_block blocks[ACTOR_QUEUE];
    uint32_t n;
} actor_slot;

typedef struct actor_late { /* a free that comes later than it should */
    shadow_block block;
    uint32_t n_steps; /* to go */
} actor_late;

typedef struct actor_fixed { /* a block that stays (random_beneath.h) */
    const neap_block *block;
    uint32_t serial;
    bool is_exported;
    uint64_t pages; /* a number for those it stands on */
} actor_fixed;

/* Which loop an iteration runs. */
typedef enum actor_policy {
    ACTOR_ONE,          /* the first, always */
    ACTOR_NOW_AND_THEN, /* the second every few iterations */
    ACTOR_IN_TURN,
    ACTOR_FOR_GOOD, /* the second from some iteration on */
    ACTOR_N_POLICIES,
} actor_policy;

typedef struct actor {
    const random_settings *settings;
    neap_device *device;
    shadow_report *report;
    test_memory *memory; /* of the library, where it is watched */
    shadow_streams streams;
    np_rng rng;
    uint32_t n_lasting;
    uint32_t n_iterations;
    actor_policy policy;
    uint32_t every;           /* of the policy */
    uint32_t n_alone;         /* first iterations, all of the first loop */
    uint32_t n_quiet;         /* first iterations without departures */
    uint32_t departure_share; /* per cent of the iterations after them */
    loop loops[2];
    uint64_t lasting_bytes[LOOP_SLOTS];
    loop_form form; /* of what is made up on the way */
    actor_slot slots[LOOP_SLOTS];
    shadow_block kept[ACTOR_KEPT]; /* blocks that the program has forgotten about, and keeps */
    uint32_t n_kept;
    actor_late late[ACTOR_LATE];
    uint32_t n_late;
    shadow_block shared[ACTOR_SHARED]; /* its own notes of blocks that all actors read and none writes */
    bool has_shared;
    shadow_use extra; /* of the next exec; no block: none */
    uint64_t n_full;
    uint64_t n_failed;
    uint32_t iteration;
    uint64_t n_on_plan_at_departure; /* iterations on a plan when it was first seen to have left one */
    actor_fixed fixed[ACTOR_FIXED];
    uint32_t n_fixed;
    uint32_t blur_share;  /* per mille of the execs that use more or less than usual, */
    uint32_t away_share;  /* that use what a plan has away, */
    uint32_t stray_share; /* of the steps after which work comes that is no event, */
    uint32_t home_share;  /* everything comes home, */
    uint32_t fix_share;   /* and a block is fixed */
    uint64_t n_blurred;
    uint64_t n_strays; /* for which the plan was not left */
    uint64_t n_home;
    bool has_swapped;
    bool has_resumed;
    bool has_several;
    const np_pattern *followed;
} actor;

/* What it will do, from the seed. */
void actor_make(actor *a, const random_settings *settings, uint64_t seed);
uint32_t actor_peak_pages(const actor *a);

/* True where the call did what it was to do; a failure that was not to be expected is reported. */
bool actor_passed(actor *a, neap_status status, const char *what);
void actor_say(const actor *a, const char *what, uint64_t x, uint64_t y); /* where it is loud */

bool actor_is_bad(const actor *a);      /* something was reported, by whomever */
void actor_look(actor *a, bool is_due); /* is the manager valid? */
void actor_look_at_device(actor *a);    /* what it has found, and what the manager says of itself */

/* What its steps are made of. */
bool actor_malloc(actor *a, uint64_t bytes, shadow_block *block);
void actor_free(actor *a, shadow_block *block);
void actor_keep(actor *a, shadow_block block);                        /* for ever */
void actor_free_late(actor *a, shadow_block block, uint32_t n_steps); /* after so many steps */
shadow_block actor_take_oldest(actor_slot *slot);
shadow_block *actor_any_block(actor *a); /* that is live, or NULL */
bool actor_is_named(const shadow_use *uses, uint32_t n, const shadow_block *block);
void actor_exec(actor *a, uint32_t name, uint32_t stream, uint64_t duration_ns, const shadow_use *uses, uint32_t n);
void actor_host_read(actor *a, const shadow_block *block);
void actor_step(actor *a, const step *s);

/* From the first malloc to the last free. `device` and `report` are set, and `streams`. */
void actor_run(actor *a);

#endif
