/* manager.h: the manager's parts, and what each may ask of the others.
 *
 * The manager serves malloc, free and exec in one of two ways:
 *
 *   off the plan  (observe, detect, plan, leave) blocks come from small.h and from views of their own (loose.c). Under a
 *                 limit the least recently used ones leave and come back when work needs them (room.c). Every event is
 *                 recorded and fed to the detector (record.c).
 *   on the plan   (run) every event is compared with the next of the pattern's program; blocks, addresses, copies and
 *                 waits are all known (follow.c).
 *
 * Between the two stand enter.c (a start of a known pattern: blocks take their places) and leave.c (an event that does
 * not match: blocks become ordinary ones where they are). Both wait for all work first, so that neither way has to know
 * about work that the other gave. learn.c plans beside the program.
 *
 * All state is guarded by one lock; the planner's thread has its own input and output. */
#ifndef NP_RUN_MANAGER_H
#define NP_RUN_MANAGER_H

#include <pthread.h>

#include "base/process.h"
#include "run/block_pool.h"
#include "run/busy.h"
#include "run/history.h"
#include "run/learn.h"
#include "run/pattern.h"
#include "run/record.h"
#include "run/refine.h"
#include "run/rest.h"
#include "run/side.h"
#include "run/small.h"
#include "run/visit.h"

enum { NP_MAX_PATTERNS = 16, NP_MAX_UNKNOWN = 32 };

/* The view of a block that was freed, to be unmapped once the work given so far has ended. */
typedef struct np_retired {
    np_view view;
    uint64_t after[NP_N_STREAMS];
} np_retired;

/* Do blocks off the plan begin anywhere, so that neighbours share a page, or at pages? Where blocks leave page by page, a
 * page that two share has to wait for both. Rows of mallocs without a free between them are what lasts: weights, and an
 * optimizer's state. */
typedef enum np_packing { NP_PACK_NONE, NP_PACK_ROWS, NP_PACK_ALL } np_packing;

enum { NP_SPACE_PACKED, NP_SPACE_PAGED, NP_N_SPACES, NP_ROW_LEAST = 8 };

/* An iteration that was seen between two known starts and has no plan yet. */
typedef struct np_unknown {
    uint64_t hash;
    uint32_t n_seen;
} np_unknown;

/* A piece of work between being made ready and having been given to the device. */
typedef struct np_given {
    const neap_work *work;
    const neap_use *uses;
    size_t n_uses;
    np_times *times;   /* NULL, or to be filled in */
    bool is_planned;   /* it is the plan's next exec */
    bool is_late;      /* and uses more than was planned, */
    bool is_elsewhere; /* or is on another stream */
    bool is_visited;   /* by blocks that are away */
    bool is_stray;     /* it is no event (stray.h) */
} np_given;

struct neap_device {
    pthread_mutex_t lock;
    const neap_memory *memory;
    np_device *device;
    neap_device_options options;
    neap_state state;
    np_process process; /* that opened it: a forked child has no use for it */

    /* beneath a program that gives its work by itself (beneath.c) */
    double overhead;               /* a share of the iteration: the lowest limit at that cost is looked for; 0: none */
    bool is_limited_anew;          /* a limit has come with the plan that is being entered */
    bool is_beneath;               /* uses are what was seen: there can be more and less than planned */
    uint32_t margin;               /* execs that a block stays after a use, and is back before one */
    uint64_t late[NP_MAX_STREAMS]; /* marks of the last work that used what it was not planned to */
    bool is_blind;                 /* the work that is about to be given may touch anything: no plan begins with it */
    bool is_fixed_away;            /* a fixed block could not be brought back: tried again before any work */
    bool has_late;                 /* there is one: others' copies and work come after it */
    uint64_t n_late;               /* such uses so far */
    np_array(uint64_t) doubted;    /* numbers of blocks in the recording that must not be swapped */
    np_side side;
    np_visit visit;
    uint64_t first_plan_ns;     /* when the first plan was entered, by np_clock_ns; 0: none was */
    uint64_t first_plan_events; /* events before that */
    uint64_t first_swap_ns;     /* the same for one with swaps */

    /* off the plan */
    np_pages pages;
    np_host host;
    np_small small;
    np_block_pool blocks; /* structs of blocks that no plan has made */
    np_space spaces[NP_N_SPACES];
    np_packing packing;
    uint32_t n_row;               /* mallocs since the last free */
    np_array(np_retired) retired; /* oldest first */
    bool is_deferring;            /* beneath a program: a block's pages come with the first work that uses it */
    neap_block *live;             /* list of all live blocks, */
    uint64_t listed_sizes;        /* a sum that stands for their sizes, */
    uint64_t sizes_at_start;      /* and the one there was when a plan was entered at its start */
    neap_block *newest;           /* of those off the plan that can leave: most and */
    neap_block *oldest;           /* least recently used */
    uint64_t pin;                 /* number of the exec being made ready, or looked at */
    const char *exec_name;        /* its name, for messages */
    const neap_block *returning;  /* the block that is being brought to the device */
    uint32_t asked_pages;         /* the limit as asked for; UINT32_MAX: none, or not in force yet */
    uint32_t limit_pages;         /* the limit that holds now, raised where it has to be; UINT32_MAX: none */
    uint32_t most_raised;         /* the most it was said to be raised to */
    bool is_raised;               /* for the work at hand */
    bool is_unplanned_said;       /* that the limit is held without a plan */
    bool is_share_in_force;       /* asked_pages is a share of the highest load so far */
    bool is_limit_late;           /* a share holds from the first plan with swaps on, as before */
    bool is_load_high;            /* it has been near its height since it was last low */
    uint32_t n_heights;           /* times that it was */
    uint64_t last_high_event;     /* when the load was last above half of its highest */
    uint64_t next_id;
    np_recorder recorder;

    uint64_t plain_bytes; /* of plain blocks */
    uint64_t peak_plain_bytes;

    /* the arena */
    bool is_entering; /* the arena's unused pages are not for others now */
    np_view arena;    /* address range of the whole arena: page k of it is the arena's page k */
    uint32_t n_arena; /* pages in it so far */

    /* on the plan */
    np_pattern *pattern; /* followed now, or last; NULL: none was yet */
    uint32_t cursor;     /* next event of its program */
    uint32_t n_between;  /* pieces of work since the lap ended that are no part of it */
    np_rest rest;
    np_busy busy;
    np_array(np_pattern *) patterns;
    np_pattern *outlived; /* list of those that were given up while blocks of theirs live */
    np_array(np_unknown) unknown;
    np_history history;
    np_learner learner;
    neap_link link; /* that was planned for last */
    np_refine refine;
    np_array(np_touch) touches; /* scratch */
    np_array(neap_use) uses;    /* scratch */
    uint64_t n_unrecorded;      /* events since the recording was given up */
    uint32_t n_failed_plans;    /* in a row */
    uint64_t plan_not_before_ns;
    bool is_saved; /* the plan cache has the plans as they are */

    neap_stats stats; /* counters; what can be computed is filled in on request */

    uint64_t n_settled; /* times that a plan was left or entered, or that another block came to an address */
};

/* A manager on a device of the caller's making, which it takes over, also on failure. */
neap_status np_manager_open(np_device *device, const neap_device_options *options, neap_error *error,
                            neap_device **opened);

uint32_t np_pages_within(const neap_device *m, uint64_t limit); /* whole pages, one at the least; 0: UINT32_MAX */
bool np_is_plain(const neap_device *m);                         /* blocks come from the host's allocator */
void np_free_off_plan(neap_device *m, neap_block *block);

/* ---- ask.c ---- */
void np_look_for_pattern(neap_device *m); /* off the plan, after an event: does the program repeat itself? */
void np_look_for_start(neap_device *m, neap_event_kind kind, uint64_t key); /* before one: is it a start? */

/* What the planner is asked for. */
typedef struct np_plan_wish {
    neap_trace *trace; /* taken over */
    bool is_disturbed;
    bool is_refinement;     /* the plan is refine.c's */
    const double *weights;  /* NULL, or of a mix of the paper's scores */
    bool is_quick;          /* see np_lesson */
    bool is_replan;         /* of a plan that exists */
    bool is_urgent;         /* the one there is, is left again and again */
    bool is_anew;           /* nothing has to stand where it stands now */
    double lap_ns;          /* see np_lesson */
    double rested_ns;       /* see np_lesson */
    const np_timed *timed;  /* NULL, or of the pattern that the trace is of; copied */
    const np_doubt *doubts; /* copied */
    size_t n_doubts;
    const np_u32_array *forks;   /* NULL, or where other iterations part from this one; copied */
    const np_pattern *unseen_of; /* NULL, or the pattern that the trace is of, which knows what of it was never seen */
    const uint32_t *doubted;     /* lives of the trace's period that must not be swapped; copied */
    uint32_t n_doubted;
    uint64_t seed;
} np_plan_wish;

/* The planner must not be busy. False: it cannot be asked. */
bool np_ask_for_plan(neap_device *m, const np_plan_wish *wish);

/* How fast copies are, where there may be any. */
neap_status np_find_link(neap_device *m, neap_link *link);

/* Is there room for one more, or a pattern whose kind has not come for long? */
bool np_has_room_for_pattern(const neap_device *m);

uint64_t np_highest_load(const neap_device *m); /* bytes, of all iterations that have a plan */

/* Takes what the planner has made, if it has. */
void np_take_lesson(neap_device *m);

/* Gives a pattern up, which is not followed. */
void np_pattern_drop(neap_device *m, np_pattern *pattern);
void np_patterns_drop_outlived(neap_device *m); /* those of which nothing is live any more */

/* Whether it is a live block of this device, of any pointer. */
bool np_is_live_block(const neap_device *m, const neap_block *block);

/* In a forked child every call on a device of its parent fails, before the lock, which may be held for ever there. */
neap_status np_check_process(const neap_device *m);

/* ---- log.c ---- */
void np_log(neap_device *m, neap_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sets the text of neap_device_error for this thread and returns the status. */
neap_status np_device_fail(neap_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void np_device_fail_clear(void);

/* ---- limit.c ---- */
void np_limit_begin(neap_device *m);
uint32_t np_limit_with(const neap_device *m, const np_pattern *pattern); /* while it is followed */
void np_limit_update(neap_device *m);                                    /* what raised it is over */
void np_limit_note_load(neap_device *m);                                 /* after a malloc or free */
void np_limit_put_in_force(neap_device *m); /* a share of the load: the program has repeated itself */
void np_limit_raise(neap_device *m, uint32_t n_pages);

/* ---- room.c: which blocks are on the device ---- */

/* Waits for all work given so far. */
neap_status np_drain(neap_device *m);

/* Takes n pages within the limit: new ones or (off the plan) unused ones of the arena. Earlier users of them may not be done
 * (np_pages_add_after). Where there are not enough, the least recently used unpinned blocks leave for the host;
 * where that does not do, the limit is raised, in one line. NEAP_DEVICE_FULL: the device itself has no more. */
neap_status np_room_take(neap_device *m, uint32_t n, uint32_t *numbers);

/* The same, idle pages too: for a block that has a place in a space, in which they are to stand. */
neap_status np_room_take_for_place(neap_device *m, uint32_t n, uint32_t *numbers);

/* Pages that may be held without need: the limit, or a little more than the highest load so far. */
uint32_t np_room_usual(const neap_device *m);

/* Bytes that could be held for a moment, and no block has to leave. */
uint64_t np_room_left(const neap_device *m);

/* New ones alone: for what stays where it is. */
neap_status np_room_take_new(neap_device *m, uint32_t n, uint32_t *numbers);

/* The page, which has users or is the arena's, stands behind no space's any more. */
void np_room_unback(neap_device *m, uint32_t number);

/* Arena pages [first, end) that a flat block touches. */
void np_block_arena_pages(const neap_device *m, const neap_block *block, uint32_t *first, uint32_t *end);

/* Where a page of a block belongs in the arena: the physical page, or NP_NO_PAGE. */
uint32_t np_block_home_page(const neap_device *m, const neap_block *block, uint32_t page);

bool np_block_is_here(const neap_block *block); /* off the plan: all its bytes are on the device */

/* The list of blocks that can leave. */
void np_recent_touch(neap_device *m, neap_block *block);
void np_recent_remove(neap_device *m, neap_block *block);

/* ---- retire.c: views and pages that freed blocks leave behind ---- */

/* The block's view is unmapped once the work given so far has ended. */
void np_retire_view(neap_device *m, np_view *view);

/* Everything that freed blocks have left behind goes back to the device: no work is under way. */
void np_retired_give_back(neap_device *m);

/* The same where that needs no waiting; false: work under way may still use it. */
bool np_retired_try(neap_device *m);

/* ---- residents.c ---- */

/* Who is live, and where, for the planner. `is_anew`: wherever they are now, they may stand elsewhere in this plan. */
neap_status np_list_residents(neap_device *m, bool is_anew, np_lesson *lesson);

/* ---- move.c: blocks leave and come back ---- */

uint64_t np_block_host_bytes(const neap_device *m, const neap_block *block); /* that it needs there */

/* Moves a block's data to the host, off the plan. On failure it stays. */
neap_status np_block_depart(neap_device *m, neap_block *block);

/* The same for pages [first, end) of a view. */
neap_status np_block_depart_pages(neap_device *m, neap_block *block, uint32_t first, uint32_t end);

/* Brings pages [first, end) of a view, all missing, to their places in the arena. NEAP_NO_PLAN: something is there. */
neap_status np_block_return_home(neap_device *m, neap_block *block, uint32_t first, uint32_t end);

/* Brings all of a block to the device, off the plan. What stands in the bytes of a flat one leaves first, pinned or not:
 * flat blocks of an exec are brought before all others. */
neap_status np_block_return(neap_device *m, neap_block *block);

/* ---- loose.c: malloc, free, exec off the plan ---- */
void np_live_add(neap_device *m, neap_block *block);
void np_live_remove(neap_device *m, neap_block *block);
neap_status np_loose_malloc(neap_device *m, uint64_t bytes, neap_block **block);
void np_loose_free(neap_device *m, neap_block *block);
void np_block_forget_home(neap_device *m, neap_block *block); /* planned: it stands for its own life again */
/* Brings what the work uses; once it was given, notes it. */
neap_status np_loose_ready(neap_device *m, const np_given *given);
void np_loose_given(neap_device *m, const np_given *given);
neap_status np_wait_after(neap_device *m, neap_block *block, np_stream stream); /* see neap_block.after */
/* What may still use these pages, which the block has taken, is among what its first uses wait for. */
neap_status np_block_add_after(neap_device *m, neap_block *block, const uint32_t *numbers, uint32_t n_numbers);
neap_status np_launch(neap_device *m, const np_given *given, uint64_t *mark);

/* ---- events.c ---- */

/* The two halves of an exec: before the work is given to the device, and after. Under the lock. */
neap_status np_exec_ready(neap_device *m, const neap_work *work, uint64_t key, const neap_use *uses, size_t n_uses,
                          np_given *given);
void np_exec_given(neap_device *m, const np_given *given, uint64_t mark);
neap_status np_malloc_locked(neap_device *m, uint64_t bytes, neap_block **block);
neap_status np_free_locked(neap_device *m, neap_block *block);

/* ---- beneath.c: for a program that gives its work to the driver by itself. All under the lock ---- */

void np_beneath_begin(neap_device *m, uint32_t margin, double overhead);

/* Everything that is absent comes back, and the plan is left: somebody may touch what neap cannot see. *why: for the log. */
neap_status np_beneath_home(neap_device *m, const char *why);

/* The block is there from now on, until it is freed. `is_exported`: its very pages are. */
neap_status np_beneath_fix(neap_device *m, neap_block *block, bool is_exported);

/* Those that were pushed out by what had to stand where they stood. */
neap_status np_beneath_return_fixed(neap_device *m);

/* No plan is to swap the block, nor those that take its place in other iterations. */
void np_beneath_doubt(neap_device *m, neap_block *block);

/* On the plan, an exec of it has used a block that was away: the next plan has it there then. */
void np_beneath_doubt_use(neap_device *m, neap_block *block, uint32_t exec);
void np_beneath_doubt_life(neap_device *m, np_pattern *pattern, uint32_t life, uint32_t exec);
neap_status np_beneath_list_doubted(neap_device *m, const np_pattern *pattern, np_u32_array *lives);
void np_beneath_replan(neap_device *m); /* asks for the plans that doubts have made necessary */

/* ---- side.c ---- */
/* Of a stream, or NP_SIDE_NO_STREAM, NP_SIDE_CAPTURED. */
neap_status np_side_malloc(neap_device *m, uint64_t bytes, np_stream stream, char **address);
neap_status np_side_free(neap_device *m, const char *address,
                         np_stream stream);                          /* NEAP_BAD_ARGUMENT: no block is there */
bool np_side_has(const neap_device *m, const char *address);         /* is it an address of the side's? */
bool np_side_is_captured(const neap_device *m, const char *address); /* one of them: asked for in a capture? */
uint64_t np_side_bytes(neap_device *m, const char *address); /* of the block that begins there, rounded up; 0: none */
void np_side_close(neap_device *m);
bool np_side_is_valid(const np_side *side);

/* ---- plain.c ---- */
neap_status np_plain_malloc(neap_device *m, uint64_t bytes, neap_block **block);
void np_plain_free(neap_device *m, neap_block *block);

/* ---- follow.c: on the plan. *served false: the event is not the planned one, and the device is off the plan now ---- */
neap_status np_follow_malloc(neap_device *m, uint64_t bytes, bool *served, neap_block **block);
neap_status np_follow_free(neap_device *m, neap_block *block, bool *served);
/* The same, the work still to be given; *given says how. Then, once it was, what follows it. */
neap_status np_follow_ready(neap_device *m, uint64_t key, np_given *given, bool *served);
void np_follow_given(neap_device *m, const np_given *given, uint64_t mark);
void np_follow_failed(neap_device *m, const np_given *given); /* or, where it could not be given: it may come again */

/* Takes the times of the laps that are done. */
void np_follow_note_laps(neap_device *m);

bool np_follow_is_always_here(const neap_device *m, const neap_block *block);

/* The work comes after all who were in the bytes of blocks from beside the plan, and after late uses. */
neap_status np_follow_wait_beside(neap_device *m, const np_given *given);

/* ---- ops.c ---- */
neap_status np_ops_do(neap_device *m, uint32_t first, uint32_t n); /* of the pattern's program */

/* Later work of `stream` waits for a mark of another; 0: for nothing. */
neap_status np_ops_wait(neap_device *m, np_stream stream, np_stream other, uint64_t mark);

/* ---- seen.c: on the plan, beneath a program ---- */
bool np_seen_match(neap_device *m, const np_program_event *event, np_given *given, neap_departure *why);
bool np_seen_is_planned(const np_pattern *pattern, const np_program_event *event, const neap_use *use);
void np_seen_note(neap_device *m, const np_program_event *event, const np_given *given, uint64_t mark);
void np_seen_promote(neap_device *m, uint32_t life); /* nobody in particular waits for its late use: all do */
neap_status np_seen_wait_late(neap_device *m, np_stream stream);
void np_seen_forget(neap_device *m); /* late uses that are done */

/* Later work of the stream comes after all who were in the block's bytes before it, and after the block is back. */
neap_status np_seen_wait_before(neap_device *m, neap_block *block, np_stream stream);

/* Is any part of the block away, or on its way? */
bool np_seen_is_away(const np_pattern *pattern, uint32_t life);

/* Whatever takes the block away, or comes after it, comes after the mark. */
void np_seen_note_late(neap_device *m, uint32_t life, np_stream stream, uint64_t mark);

/* The stream comes after all work that was given so far, and after these copies; others may go on. */
neap_status np_seen_wait_copies(neap_device *m, np_stream stream, const np_copy_marks *copies);

/* Work on another stream than planned comes after all that was given so far, and before all that follows it on its planned
 * stream: frameworks take streams from a pool in turn. What stands for it there: a mark. */
neap_status np_seen_wait_all(neap_device *m, np_stream stream);
uint64_t np_seen_bring_back(neap_device *m, np_stream planned, np_stream stream, uint64_t mark);

/* ---- visit.c ---- */
void np_visit_begin(neap_device *m);
void np_visit_settle(neap_device *m); /* no work is under way */
void np_visit_free(neap_device *m);

/* Is what is away of the block little enough? Then the work can be made ready, and be visited. */
bool np_visit_is_small(const neap_device *m, const neap_block *block);

/* Right before the work is given: all that it uses and is away comes. False: it cannot be, and nothing has changed. */
bool np_visit_come(neap_device *m, const np_program_event *event, const np_given *given);

/* Right after it, whether the device has taken it or not. On failure the device is broken. */
neap_status np_visit_go(neap_device *m, np_stream stream);

/* ---- visitors.c ---- */
void np_visit_note(neap_device *m, uint32_t life, uint32_t exec, bool came); /* a use that was not planned */

/* What was seen again and again is to be in the next plan: the pattern doubts it. */
void np_visit_expect(neap_device *m, np_pattern *pattern);

/* At the end of a lap: where some came again and again, they are planned for, more and more seldom. */
void np_visit_heed(neap_device *m, np_pattern *pattern);

/* ---- elsewhere.c ---- */

/* Those of m->visit.parts that have no place are mapped onto other pages; on failure none are. Waits for all work. */
neap_status np_elsewhere_begin(neap_device *m, const np_program_event *event, const np_given *given);
/* And back. No work is under way. What fails is still elsewhere: the plan is to be left then, which unmaps it. */
neap_status np_elsewhere_end(neap_device *m);

/* ---- start.c ---- */

/* Called off the plan before an event is served: where it is the start of a known pattern, enters it. */
void np_enter_if_start(neap_device *m, neap_event_kind kind, uint64_t key);

/* The same, where an iteration of a kind without a plan has ended: it is noted, and another begins. */
void np_boundary_note(neap_device *m, neap_event_kind kind);

/* At the end of a lap: the pattern for the next, entered where it is another one. */
void np_enter_next_lap(neap_device *m, neap_event_kind kind, uint64_t key);

bool np_any_begins_with(const neap_device *m, neap_event_kind kind, uint64_t key); /* any pattern */

/* ---- cast.c ---- */

/* By numbers and events alone; or by sizes where that does not do: only where an iteration is known to begin. */
typedef enum np_casting { NP_CAST_EXACTLY, NP_CAST_BY_SIZE } np_casting;

/* Finds a block for every life that is alive at the start. False: one is missing (exactly), or one is in the way. */
bool np_cast(neap_device *m, np_pattern *pattern, np_casting how);

/* The same before event `cursor` of a pattern, with the blocks that another has given out in the iteration so far. `freed`:
 * NULL, or what that event frees. */
bool np_cast_branch(neap_device *m, const np_pattern *from, np_pattern *to, const uint32_t *life_of, uint32_t cursor,
                    neap_block *freed);

/* ---- branch.c ---- */

/* What the program does. */
typedef struct np_actual {
    neap_event_kind kind;
    uint64_t key;      /* bytes, or the key of an exec's name */
    neap_block *freed; /* NULL, or what is to be freed */
} np_actual;

/* On the plan, at an event that is not the planned one. True: another plan is followed, which has it next. False: none has,
 * and the plan may have been left. */
bool np_branch(neap_device *m, const np_actual *actual);

/* ---- fork.c ---- */

/* A fork is an event at which iterations of another kind part from the pattern. Blocks that live there must be views, which
 * can be seen at the place that the other plan gives them: where those were not, the pattern is to be planned anew. */
void np_fork_note(neap_device *m, np_pattern *pattern, uint32_t event);

/* Of an iteration from all patterns. They are noted there, too. */
neap_status np_forks_find(neap_device *m, const neap_trace *iteration, np_u32_array *forks);

/* ---- enter.c ---- */

/* Has the plan a place for the block, which stands for the life, where the block can be seen? */
bool np_block_has_place(const np_pattern *pattern, uint32_t life, const neap_block *block);
/* It has not, but could the block's pages be behind the place? */
bool np_block_can_lend(const np_pattern *pattern, uint32_t life, const neap_block *block);
bool np_enter(neap_device *m, np_pattern *pattern, np_casting how);       /* at its start; false: it could not be */
bool np_enter_cast(neap_device *m, np_pattern *pattern, uint32_t cursor); /* before that event; its blocks are known */

/* ---- arena.c ---- */
/* Makes the arena large enough for the pattern, whose blocks at the start are known, with their data where it is wanted as
 * far as that can be. No work is under way. */
neap_status np_arena_arrange(neap_device *m, const np_pattern *pattern);
/* To n pages, from its end on, as far as nothing has data there; off the plan. False: nothing has changed. */
bool np_arena_shrink(neap_device *m, uint32_t n);
void np_arena_shrink_for(neap_device *m, const np_pattern *pattern);      /* no larger than that */
bool np_arena_could_fit(const neap_device *m, const np_pattern *pattern); /* within the limit that holds with it */
void np_recount_arena(neap_device *m); /* counts anew who uses its pages: off the plan */

/* ---- leave.c ---- */

/* Unmaps what the pattern has given out: off the plan it is absent. */
void np_unmap_absent(neap_device *m, np_pattern *pattern);

/* Ends following: planned blocks become ordinary ones where they are. What the program does next is recorded. */
void np_settle(neap_device *m);
/* Counts a departure, and says so. */
void np_leave_note(neap_device *m, neap_departure why, const char *what);
/* Both. */
void np_leave(neap_device *m, neap_departure why, const char *what);

/* ---- refine.c ---- */
void np_refine_lap(neap_device *m);                       /* at the end of a lap */
bool np_refine_wants_switch(const neap_device *m);        /* at a start: is there another plan to be followed? */
np_pattern *np_refine_switch(neap_device *m);             /* it takes its place in the list, and is to be entered */
void np_refine_undo(neap_device *m, np_pattern *next);    /* it could not be entered: back to the one before */
void np_refine_take(neap_device *m, np_pattern *pattern); /* from the planner; NULL: it found none */
void np_refine_forget(neap_device *m, const np_pattern *pattern); /* it is about to be given up */
void np_refine_free(neap_device *m);                              /* the best so far is in the list then */

/* ---- heed.c ---- */

/* Uses that were not planned are so few that all go into the next plan, of blocks that were there, too. */
bool np_heed_takes_all(const np_pattern *pattern);

/* The recorded iteration is the pattern's, whole: what it used, and the plan did not know, is known from here on. */
void np_heed_iteration(neap_device *m, np_pattern *pattern);

/* ---- replay.c: iterations without a plan ---- */

/* Begins the recording with what was served from the plan since the iteration's start. */
void np_replay_lap(neap_device *m);

/* At a start, off the plan: notes the iteration that has ended. One that comes again gets a plan of its own. */
void np_unknown_note(neap_device *m);
bool np_unknown_waits(const neap_device *m);

/* ---- keep.c: plans in files ---- */
void np_plans_load(neap_device *m);
void np_plan_is_final(neap_device *m, np_pattern *pattern); /* it is worth keeping: none is to take its place */
void np_plans_save(neap_device *m);                         /* where there is something new */

/* ---- the whole ---- */
bool np_manager_is_valid(const neap_device *m);
const char *np_manager_find_flaw(const neap_device *m); /* why it is not; NULL: it is */

#endif
