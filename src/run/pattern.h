/* pattern.h: an iteration that the manager knows, with its plan and what following it needs. */
#ifndef NP_RUN_PATTERN_H
#define NP_RUN_PATTERN_H

#include "run/block.h"
#include "run/margin.h"
#include "run/timed.h"

enum { NP_RECENT_KEYS = 64 }; /* events that are looked back on to know a start */
enum { NP_LAPS = 16 };        /* whose times are kept, and how far the host may be ahead of the device, and more */

/* A life of the plan at run time. */
typedef struct np_actor {
    neap_block *planned; /* its blocks, one for each place; NULL: persistent, or it has no place */
    neap_block **now; /* by place: the block that stands for it while it lives, else NULL. The planned one, a persistent
                          * one, or one from off the plan that was alive when the plan was entered */
    uint32_t next_malloc; /* turn of the next malloc, */
    uint32_t next_free;   /* and free */
} np_actor;

/* A use by an exec of the plan that was not planned: the block was there, or came (visit.h). */
typedef struct np_visitor {
    np_doubt use;
    uint32_t n; /* times */
    bool came;  /* at least once */
} np_visitor;

typedef struct np_pattern {
    const neap_memory *memory;
    np_program program;
    np_actor *actors;   /* by life */
    neap_block *blocks; /* of all actors that are planned */
    neap_block **now;   /* of all actors */
    uint64_t *ids; /* of all actors, by place: number of its block in the recording that begins when the plan is left */
    uint32_t n_blocks;
    uint32_t n_now;
    uint8_t *exec_streams; /* by exec */
    uint64_t *exec_ns;     /* by exec: duration, as recorded */
    uint64_t *exec_marks;  /* by exec: of the last time it was given; 0: not since the plan was entered */
    uint64_t *out_marks;   /* by swap */
    uint64_t *in_marks;
    bool *is_out;   /* by swap: its copy out was given, its copy in was not */
    uint64_t *late; /* by life: mark of the last work that used it without being planned to; 0: none */
    uint8_t *late_stream;
    bool *doubted;         /* by life: it was used while it was away */
    np_doubt_array doubts; /* uses that were seen while the block was away */
    bool has_doubts;       /* and no plan without its swaps was asked for yet */
    np_u32_array forks;    /* events at which other iterations part from this one (branch.h), */
    uint32_t n_forks_made; /* of which so many were known when it was made, */
    bool has_new_fork;     /* and a plan that knows them all was not asked for yet */
    np_doubt_array unseen; /* uses that were recorded, and not planned with (unseen.h) */
    np_array(np_visitor) visitors;
    uint64_t n_come;       /* visits since the last time they were planned for */
    uint32_t n_come_again; /* of them: seen more than once, and came */
    char *names;           /* of the execs, each ended by '\0' */
    size_t names_bytes;
    uint32_t *name_at; /* by exec: into `names` */
    uint64_t hash;     /* of its events */
    uint32_t n_tail;   /* so many last events occur in this order only at the period's end; 0: no number below
                            * NP_RECENT_KEYS does */
    struct np_pattern *next_outlived; /* of those that were given up while blocks of theirs live */
    bool is_quick;                    /* the pool alone, made in no time: a better one is to be asked for, */
    bool is_provisional;              /* or was, and has not come: this one is not worth keeping for later runs */
    bool is_hurried;                  /* a program waited for it: with more time there may be a better one */
    uint32_t n_entered;               /* times */
    uint32_t n_left;                  /* times in the midst of a lap */
    uint32_t n_iterations; /* of different kinds in a lap, which may have come in this order by chance; 0: it is one */
    uint32_t
        limit_pages;    /* the limit while it is followed, if that is higher than asked for, or none was; 0: no other */
    uint64_t taken_at;  /* events recorded when it was taken from the planner */
    uint32_t n_live;    /* planned blocks that are live */
    uint32_t n_refused; /* starts at which it could not be entered, since the last time it was */

    bool was_refined;  /* or is one that refining has made */
    bool is_outdated;  /* another was asked for, to take its place: this one is not to be made better */
    neap_trace *trace; /* NULL, or what it was planned from, kept for refinement */
    bool is_disturbed; /* its times were */

    /* time on the device */
    uint64_t n_laps;             /* ended since it was entered */
    uint64_t n_noted;            /* of them, whose first exec's time was taken */
    np_times lap_times[NP_LAPS]; /* of the first exec of a lap, or what stands for it, by lap modulo */
    uint64_t lap_marks[NP_LAPS];
    bool is_lap_rested[NP_LAPS]; /* nobody looked when it began */
    uint64_t last_lap_start_ns;  /* of the last lap that was looked at; 0: none */
    np_array(double) laps_ns;    /* how long laps took, on the plan from begin to end */
    double quiet_ns;             /* an iteration without swaps, as measured, that it was planned with; 0: it was not */
    np_array(double) rests_ns;   /* how long laps took while nobody looked at its work (rest.h), */
    double rested_ns;            /* and an iteration, by these; 0: not measured */
    uint64_t looked_since;       /* laps, when work was last seen again */
    uint32_t n_rest_waits;       /* laps in which a rest was waited for, in vain so far */
    uint32_t n_rests;            /* turns of laps that nobody looked at */
    np_timed timed;
} np_pattern;

/* What a pattern knows beside its program. Copied. */
typedef struct np_pattern_facts {
    const uint64_t *exec_ns; /* by exec: duration */
    const uint32_t *name_at; /* by exec: into `names` */
    const char *names;
    size_t names_bytes;
    const uint32_t *forks;
    size_t n_forks;
} np_pattern_facts;

/* Takes the program over, also on failure. */
neap_status np_pattern_create(np_program *program, const np_pattern_facts *facts, uint64_t page_bytes,
                              const neap_memory *memory, np_pattern **pattern);
void np_pattern_free(np_pattern *pattern); /* its views and slots have been given back; NULL is allowed */

/* What stands for a sequence of events: kinds, sizes of what is malloc'd, names. Begin with 0. What is freed may be from an
 * iteration of another kind: its size is none of this one's. */
uint64_t np_pattern_hash(uint64_t hash, neap_event_kind kind, uint64_t key);

/* An event's key as it is hashed: bytes of a malloc, name of an exec; 0: a free. */
uint64_t np_pattern_key(const np_pattern *pattern, uint32_t event);

/* Where page k of a life's block has its place, of those that its blocks take in turns: a page of the arena. The blocks are
 * views. */
uint32_t np_pattern_arena_page(const np_pattern *pattern, uint32_t life, uint32_t turn, uint32_t k,
                               uint64_t page_bytes);

/* Bytes that the plan takes on the host. */
uint64_t np_pattern_metadata_bytes(const np_pattern *pattern);

/* How long a lap takes, of the last ones measured; NaN where there are fewer than three. */
double np_pattern_lap_ns(const np_pattern *pattern);

/* The same of laps that nobody looked at. */
double np_pattern_rest_ns(const np_pattern *pattern);

/* Have there been enough of them? */
bool np_pattern_is_measured(const np_pattern *pattern);
bool np_pattern_is_rest_measured(const np_pattern *pattern);

/* What an iteration takes that has no swaps, and that nobody looks at where that is known; and what the plan costs of it. */
double np_pattern_base_ns(const np_pattern *pattern);
double np_pattern_plan_overhead(const np_pattern *pattern);

/* The same, undisturbed: what a quarter of them are below. */
double np_pattern_quiet_lap_ns(const np_pattern *pattern);

bool np_pattern_is_valid(const np_pattern *pattern);

#endif
