/* learn.h: from a recording to a program, beside the program that runs.
 *
 * A *lesson* is what there is to plan from and what comes out; learning one is a plain function. The learner is a thread
 * that takes one lesson at a time. It shares nothing with the manager but the lesson, which belongs to one of them. */
#ifndef NP_RUN_LEARN_H
#define NP_RUN_LEARN_H

#include <pthread.h>
#include <stdatomic.h>

#include "run/block.h"
#include "run/forecast.h"
#include "run/margin.h"
#include "run/program.h"

/* A block that was live when the lesson was given. */
typedef struct np_resident {
    uint64_t id;         /* its number in the trace */
    uint64_t lead;       /* of its view: bytes of its first page that are not its own */
    uint64_t neighbour;  /* id of the block that ends in that page before it; NP_NO_NEIGHBOUR: none does */
    uint32_t life;       /* (scratch of learn.c) */
    uint32_t first_page; /* into home_pages: where in the arena each of its pages stands; UINT32_MAX: nowhere yet */
    bool is_outside;     /* it is kept outside of the arena */
} np_resident;

typedef enum np_phase { NP_PHASE_NONE, NP_PHASE_SWAPS, NP_PHASE_PLACES } np_phase;

typedef struct np_lesson {
    const neap_memory *memory;

    /* what is given */
    np_array(uint64_t) doubted_ids; /* blocks of the trace that must not be swapped, nor their like in other periods */
    np_array(uint32_t) doubted_lives; /* the same for lives of the period */
    np_doubt_array doubts;            /* uses to be counted on, */
    np_doubt_array unseen;            /* and those that are not: sorted by exec */
    np_u32_array forks;               /* events at which other iterations part from this one (branch.h) */
    uint32_t margin;                  /* execs that a use lasts, before and after */
    bool is_replan;                   /* there is a plan already, and it stays where this one is not within the limit */
    bool may_raise;   /* the limit, where no plan is found within it though it is not too low: a plan is wanted most */
    bool is_quick;    /* the pool alone where the limit allows it, and quickly */
    double lap_ns;    /* an iteration without swaps, as measured; 0: it was not */
    double rested_ns; /* the same while nobody looked at its work; 0: taken from the trace, if that has it */
    np_array(uint64_t) measured_ns; /* of the period's execs, on a plan; empty: they were not */
    double overhead;                /* in place of a limit: the lowest footprint at this cost; 0: not asked for */
    neap_trace *trace;
    np_array(np_resident) residents; /* sorted by id */
    np_array(uint32_t) home_pages;   /* of the residents */
    bool is_disturbed;               /* times between execs mean nothing */
    uint64_t page_bytes;
    uint64_t limit;        /* bytes; 0: limit_share */
    double limit_share;    /* of the peak load; 0: no limit */
    uint64_t highest_load; /* of other iterations: if it is higher than this one's, the share is one of it */
    uint64_t beside_bytes; /* held beside the arena, within the limit: slabs, and what has no home */
    uint64_t min_block;
    neap_link link;
    bool has_tolls; /* swaps cost the program's kernels something beside what is waited for (toll.h) */
    double seconds;
    bool is_cast_by_size; /* blocks stand for lives by their sizes, too (cast.c) */
    bool is_hurried;      /* a few iterations are time enough: the program goes on without a plan meanwhile */
    bool is_held;         /* the limit holds without a plan: it is not raised for one */
    unsigned n_threads;
    uint64_t seed;
    bool is_refinement; /* for refine.h */
    bool has_weights;   /* plan by a mix of the paper's scores */
    double weights[4];

    np_device *host_device; /* NULL, or host memory for what leaves is made ready by it, beside the program */
    uint64_t host_bytes;    /* that there is already */
    uint64_t host_least;    /* that any plan within the limit needs; 0: not known */

    /* what comes out */
    np_array(np_slot) chunks; /* of host memory: to be added, or given back */
    neap_status status;       /* NEAP_NO_PERIOD, NEAP_NO_PLAN, ... */
    neap_error error;
    np_program program;
    np_forecast forecast;       /* of it; all 0 where nothing is swapped */
    np_array(uint64_t) exec_ns; /* by exec of the period */
    np_array(bool) is_awaited;  /* see np_exec_times */
    np_array(char) names;       /* of the period's execs, each ended by '\0' */
    np_array(uint32_t) name_at; /* by exec: into `names` */
    uint64_t limit_used;        /* bytes, for arena and all; 0: none. Higher than asked for where it had to be */
    bool limit_was_raised;
    uint32_t n_iterations; /* of different kinds in the period; 0: it is one */
    uint32_t margin_used;  /* less than was given where the limit allowed no more */
    uint64_t load_min;
    atomic_int *phase;              /* NULL, or told what is being planned: np_phase */
    const atomic_bool *is_stopping; /* NULL, or true: come to an end */
    bool is_cancelled;              /* it was ended before it was done */
} np_lesson;

/* Beneath a program, blocks that are planned need not be worth swapping: one of less than half a page frees little. */
static inline uint64_t np_lesson_least_swapped(uint64_t min_block, uint64_t page_bytes)
{
    return min_block > page_bytes / 2 ? min_block : page_bytes / 2;
}

/* What costs are shares of: an iteration without swaps, which nobody looks at, as far as that is known. */
double np_lesson_base_ns(const np_lesson *lesson);
/* What it costs, of that, that work is looked at. */
double np_lesson_looking(const np_lesson *lesson);
/* What the program costs in all; nothing where it does not swap: then nobody has to look at all. */
double np_lesson_overhead(const np_lesson *lesson);

/* What is left of a limit for the arena: whole pages. */
uint64_t np_lesson_arena_limit(const np_lesson *lesson, uint64_t limit);

/* What takes long is done by one thread, or several: it asks nothing of any device. */
void np_lesson_learn(np_lesson *lesson);

/* Host memory for what leaves: of it, as much as any plan needs, while the lesson is learned; and when it has been, all that
 * its plan needs. The driver is asked for it. */
void np_lesson_prepare_least(np_lesson *lesson);
void np_lesson_prepare_host(np_lesson *lesson);
void np_lesson_free(np_lesson *lesson); /* NULL is allowed */

typedef struct np_learner {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_started;
    atomic_bool is_stopping;
    bool learns_at_once;  /* in the caller, without a thread: for tests that must not depend on time */
    np_lesson *lesson;    /* to be learned, or being learned */
    np_lesson *learned;   /* to be taken */
    atomic_bool has_news; /* `learned` is there */
    atomic_bool is_busy;
    bool is_better;       /* the lesson under way makes better what there is: another may be more urgent */
    bool is_cancelled;    /* it is not wanted any more */
    atomic_bool must_end; /* as soon as it can: told to the lesson */
    atomic_int phase;     /* np_phase of the lesson under way */
} np_learner;

/* The thread begins with the first lesson. */
neap_status np_learner_init(np_learner *learner);
void np_learner_free(np_learner *learner); /* waits for the lesson under way */

/* Takes the lesson over on success. NEAP_DEVICE_FAILED: no thread could be started. The learner must not be busy. */
neap_status np_learner_give(np_learner *learner, np_lesson *lesson);
np_lesson *np_learner_take(np_learner *learner); /* NULL: nothing is ready */

/* A lesson that only makes better what there is comes to its end, and to nothing. */
void np_learner_cancel(np_learner *learner);

#endif
