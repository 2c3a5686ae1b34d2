/* neap.h: everything a program that embeds neap may use.
 *
 * neap lowers the high-water mark of device memory in programs that repeat themselves. The words, once:
 *
 *   block      one device allocation
 *   event      one malloc, free or exec; logical time is an event's index
 *   trace      a recorded sequence of events
 *   period     the repeating run of events that leaves the live blocks unchanged: one training iteration
 *   load       bytes of live blocks at a moment; peak load is its maximum over the period
 *   buffer     a block as the planner sees it: a size, and the part of the period's circle in which it lives
 *   footprint  bytes of device memory held; ratio = footprint / peak load, 1 is perfect
 *
 * This header reads in the order of use: status and errors, host memory, traces, periods, plans, baselines,
 * swapping, devices.
 *
 * Conventions, for every function below:
 *   - What can fail returns `neap_status`. Results come last and are written only on success.
 *   - `error` may be NULL; otherwise it receives one line of text when a call fails.
 *   - `memory` may be NULL: the C library's allocator.
 *   - Intervals are half-open. Sizes and offsets are bytes.
 *   - Nothing here prints, exits, or keeps global state (but the text of neap_device_error, by thread). Distinct objects may be used by distinct threads at once.
 *   - The same input, options and seed give the same plan, unless a time limit cut the search short.
 *   - Programs built against 0.N run with every 0.N.P: within a minor version functions and structures stay as they are. Another
 *     minor version is another library (libneap.so.0.N), until 1.0.
 */
#ifndef NEAP_H
#define NEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEAP_VERSION_MAJOR 0
#define NEAP_VERSION_MINOR 1
#define NEAP_VERSION_PATCH 0
#define NEAP_VERSION_STRING "0.1.0"

/* The version of the library that is linked, as "major.minor.patch". */
const char *neap_version(void);

/* ---------------------------------------------------------------- status and errors ---- */

#define NEAP_STATUS_MAP(X)                                         \
    X(NEAP_OK, "success")                                          \
    X(NEAP_NO_MEMORY, "host memory is exhausted")                  \
    X(NEAP_BAD_INPUT, "the input is not what it claims to be")     \
    X(NEAP_BAD_ARGUMENT, "an argument is out of its range")        \
    X(NEAP_IO, "a file could not be read or written")              \
    X(NEAP_TOO_LARGE, "the input exceeds what neap can represent") \
    X(NEAP_NO_PERIOD, "the trace never repeats")                   \
    X(NEAP_NO_PLAN, "no plan within the given capacity was found") \
    X(NEAP_DEVICE_FULL, "the device has no memory left")           \
    X(NEAP_DEVICE_FAILED, "the device failed")                     \
    X(NEAP_INTERNAL, "neap found a mistake of its own")

typedef enum neap_status {
#define NEAP_STATUS_ENUM(name, text) name,
    NEAP_STATUS_MAP(NEAP_STATUS_ENUM)
#undef NEAP_STATUS_ENUM
} neap_status;

const char *neap_status_name(neap_status status);    /* "NEAP_BAD_INPUT" */
const char *neap_status_message(neap_status status); /* "the input is not what it claims to be" */

typedef struct neap_error {
    char text[512]; /* one line without a newline; empty when the call succeeded or had nothing to add */
} neap_error;

/* ---------------------------------------------------------------- host memory ---- */

/* One function serves every host allocation of the library.
 *   resize(user, NULL, 0, n)  allocates n > 0 bytes
 *   resize(user, p, old, n)   grows or shrinks p, moving it if need be; on failure returns NULL and p stays valid
 *   resize(user, p, old, 0)   frees p and returns NULL
 * It must be safe to call from several threads. It must outlive every object made with it. */
typedef struct neap_memory {
    void *(*resize)(void *user, void *block, size_t old_bytes, size_t new_bytes);
    void *user;
} neap_memory;

/* ---------------------------------------------------------------- traces ---- */

typedef struct neap_trace neap_trace;

#define NEAP_NEVER UINT32_MAX     /* an event index that does not exist */
#define NEAP_NO_OFFSET UINT64_MAX /* a buffer that may stand anywhere */

typedef enum neap_event_kind { NEAP_EVENT_MALLOC, NEAP_EVENT_FREE, NEAP_EVENT_EXEC } neap_event_kind;
typedef enum neap_access_kind { NEAP_ACCESS_READ, NEAP_ACCESS_WRITE, NEAP_ACCESS_UNKNOWN } neap_access_kind;

typedef struct neap_trace_block {
    uint64_t id;           /* the number it has in the file */
    uint64_t bytes;        /* as asked for, not rounded */
    uint64_t fixed_offset; /* where it must stand, or NEAP_NO_OFFSET (placement CSVs only) */
    uint32_t malloc_event; /* index of its malloc, NEAP_NEVER if it was live before the first event */
    uint32_t free_event;   /* index of its free, NEAP_NEVER if it outlives the trace */
} neap_trace_block;

typedef struct neap_event {
    neap_event_kind kind;
    uint32_t subject;      /* malloc, free: index into the blocks; exec: index of its name */
    uint32_t n_accesses;   /* exec only */
    uint32_t stream;       /* exec only: which of the program's streams; 0 where a file does not say */
    uint64_t first_access; /* exec only: index into the accesses */
    uint64_t start_ns;     /* exec only: device time */
    uint64_t duration_ns;  /* exec only */
} neap_event;

typedef struct neap_access {
    uint32_t block; /* index into the blocks */
    neap_access_kind kind;
} neap_access;

/* Reads a trace ("neap-trace 1", gzip'd or not) or a placement CSV (id,lower,upper,size[,offset]), told apart by their
 * first bytes. `path` "-" is standard input. Bad input is NEAP_BAD_INPUT, and `error` says "file:line: what was
 * expected". Memory is linear in the (uncompressed) input. */
neap_status neap_trace_read(const char *path, const neap_memory *memory, neap_error *error, neap_trace **trace);

/* The same from bytes in memory; `name` stands for the file in messages. */
neap_status neap_trace_parse(const void *bytes, size_t n_bytes, const char *name, const neap_memory *memory,
                             neap_error *error, neap_trace **trace);

/* Writes "neap-trace 1"; gzip'd if `path` ends in ".gz". Reading it back gives an equal trace. On failure no file is
 * left behind under `path`. Traces from placement CSVs cannot be written where they carry fixed offsets. */
neap_status neap_trace_write(const neap_trace *trace, const char *path, neap_error *error);

/* Reads a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot, gzip'd or not; "-" is standard input): the
 * allocations of one device, without execs, since a snapshot does not tell what used them. The pickle is read as data:
 * nothing in it is imported or called. NEAP_ANY_DEVICE: the one with the most entries. The trace's meta "device" names
 * it; "lost_entries", where there is any, counts entries whose other half was not recorded. */
#define NEAP_ANY_DEVICE UINT32_MAX
neap_status neap_trace_read_snapshot(const char *path, uint32_t device, const neap_memory *memory, neap_error *error,
                                     neap_trace **trace);

/* Takes the next bytes of what is written; false: it could not, and nothing more is put. */
typedef bool neap_put(void *user, const void *bytes, size_t n_bytes);

/* The trace as such a snapshot, for pytorch.org/memory_viz: what was allocated and freed when, every block at the lowest
 * address that was free. Reading it back gives the same blocks and sizes, in order. NEAP_IO where `put` could not. */
neap_status neap_trace_put_snapshot(const neap_trace *trace, neap_put *put, void *user, neap_error *error);

void neap_trace_free(neap_trace *trace); /* NULL is allowed */

/* Views into the trace, valid until it is freed. */
const neap_event *neap_trace_events(const neap_trace *trace, size_t *n_events);
const neap_trace_block *neap_trace_blocks(const neap_trace *trace, size_t *n_blocks);
const neap_access *neap_trace_accesses(const neap_trace *trace, size_t *n_accesses);
const char *neap_trace_exec_name(const neap_trace *trace, uint32_t name_index);
const char *neap_trace_meta(const neap_trace *trace, const char *key); /* NULL where the file has no such key */
bool neap_trace_is_csv(const neap_trace *trace); /* a placement problem: one period by definition, no execs */

/* ---------------------------------------------------------------- periods ---- */

typedef struct neap_variant {
    uint32_t begin;         /* event, counted from the period's begin */
    uint32_t length;        /* events */
    uint32_t kind;          /* iterations of equal events have equal kinds: 0, 1, ... in order of appearance */
    uint32_t shared_prefix; /* events it has in common with the first iteration of the period, from its start on */
} neap_variant;

typedef struct neap_info {
    size_t n_events;
    size_t n_blocks;
    size_t n_execs;
    bool has_period;
    uint32_t period_begin;  /* event at which the run of equal periods begins */
    uint32_t period_length; /* events */
    uint32_t run_length;    /* events over which the period was seen to repeat, two periods at least */
    uint32_t cut;           /* event of lowest load in the period chosen for planning: begin <= cut < begin + length */
    uint32_t first_answer;  /* event after which the online detector first answered with this period for good */
    uint64_t leak_bytes;    /* growth of the load from one period to the next, tolerated where small */
    const neap_variant *variants; /* the iterations inside the period where it has several, else NULL */
    size_t n_variants;
    uint64_t n_accesses;        /* in one period: certain ones */
    uint64_t doubtful_accesses; /* in the whole run: accesses that do not recur at their place */
    uint64_t peak_load;   /* bytes, sizes rounded up to `alignment`; of the whole trace where there is no period */
    uint64_t needed_load; /* the peak when blocks count only from their first to their last certain access */
    uint64_t alignment;   /* 512 for traces, 1 for CSVs, unless asked otherwise */
    double step_ms;       /* from the trace's meta, 0 where it is not given */
} neap_info;

/* Finds how the trace repeats and what one period needs. A trace without a period succeeds with has_period false. */
neap_status neap_info_make(const neap_trace *trace, uint64_t alignment /* 0: default */, const neap_memory *memory,
                           neap_error *error, neap_info **info);
void neap_info_free(neap_info *info);

/* ---------------------------------------------------------------- plans ---- */

typedef struct neap_plan neap_plan;

typedef enum neap_solver {
    NEAP_SOLVER_SEARCH,   /* the default: closes what the greedy fits leave, with a proof where there is one */
    NEAP_SOLVER_BESTFIT,  /* the paper's: largest first, smallest hole that fits */
    NEAP_SOLVER_FIRSTFIT, /* the paper's: largest first, lowest hole that fits */
} neap_solver;

/* Called from the planning thread now and then, with the lowest footprint so far; return false to stop there. A greedy
 * solver that is stopped has no plan: NEAP_NO_PLAN. */
typedef bool neap_progress(void *user, double seconds, uint64_t footprint, uint64_t bound);

typedef struct neap_plan_options {
    neap_solver solver;
    double seconds; /* the search stops by then; 0: 5 s */
    uint64_t seed;
    uint64_t alignment; /* 0: 512 for traces, 1 for CSVs */
    uint64_t capacity;  /* 0: none; otherwise NEAP_NO_PLAN when no plan of at most this size is found */
    unsigned n_threads; /* 0: as many as there are cores, at most 8 */
    neap_progress *progress;
    void *progress_user;
} neap_plan_options;

typedef struct neap_plan_buffer {
    uint32_t block;  /* index into the trace's blocks; the first period's block stands for those of all periods */
    uint32_t place;  /* 0; 1, 2, ... for the block's like in later periods of a round, and for the further places of
                       * one that lives longer than a round */
    uint64_t size;   /* rounded up to the alignment */
    uint64_t offset; /* the plan */
    uint32_t begin;  /* events after the plan's begin: lives [begin, end), over the round's end if end > length */
    uint32_t end;
} neap_plan_buffer;

typedef struct neap_plan_summary {
    size_t n_buffers;
    uint32_t begin;     /* event of the trace that is time 0 of the plan */
    uint32_t length;    /* events of one round, after which the plan starts over */
    uint32_t n_periods; /* in a round: 1, unless blocks that live across the period's end fit better over several */
    uint64_t alignment;
    uint64_t load;  /* peak load: a lower bound on every footprint */
    uint64_t bound; /* the best proven lower bound for rounds of this length, at least `load` */
    uint64_t footprint;
    double ratio;         /* footprint / load */
    bool optimal;         /* true only with a proof: no plan with rounds of this length is lower */
    const char *solver;   /* "search", "bestfit", "firstfit" */
    const char *found_by; /* which part of the solver found the plan */
    double seconds;       /* planning time */
} neap_plan_summary;

/* Plans the period of the trace (or the CSV). Every plan returned has passed the independent checker.
 * NEAP_NO_PERIOD where the trace never repeats. `options` NULL: the defaults. */
neap_status neap_plan_make(const neap_trace *trace, const neap_plan_options *options, const neap_memory *memory,
                           neap_error *error, neap_plan **plan);
void neap_plan_free(neap_plan *plan);

const neap_plan_summary *neap_plan_get_summary(const neap_plan *plan);
const neap_plan_buffer *neap_plan_buffers(const neap_plan *plan, size_t *n_buffers);

/* ---------------------------------------------------------------- baselines ---- */

/* What other allocators hold at most on the same trace: replayed from its first event to its last, so that warm-up and
 * fragmentation over several periods count. */
typedef struct neap_baselines {
    uint64_t cudamalloc; /* one allocation a block: the load itself */
    uint64_t cnmem;      /* one best-fit free list, 512-byte granularity, growth by blocks */
    uint64_t caching;    /* PyTorch's caching allocator, default settings */
    uint64_t expandable; /* the same with expandable segments */
    uint64_t bestfit;    /* the paper's pool on the period; 0 where the trace has none, or planning it
                          * would take many seconds (hundreds of thousands of buffers) */
    uint64_t firstfit;
} neap_baselines;

neap_status neap_baselines_make(const neap_trace *trace, uint64_t alignment, const neap_memory *memory,
                                neap_error *error, neap_baselines *baselines);

/* ---------------------------------------------------------------- swapping ---- */

/* The way between device and host memory. */
typedef struct neap_link {
    double out_gbs;    /* 10^9 bytes a second, device to host */
    double in_gbs;     /* host to device */
    double both_gbs;   /* the two together when both are busy; 0: they do not disturb each other */
    double latency_us; /* of every copy */
    double busy_share; /* of a way's speed, what it has while the program's work runs; 0: all of it */
} neap_link;

/* Links by name: "h200-pcie5", "a100-pcie4", "1080ti-pcie3". NEAP_BAD_ARGUMENT where there is none of that name. */
neap_status neap_link_find(const char *name, neap_link *link);
const char *neap_link_name(size_t index); /* of the known ones in turn; NULL after the last */

typedef enum neap_swap_method {
    NEAP_SWAP_SEARCH, /* the default: fills the idle time of the link, then stalls as little as it can */
    NEAP_SWAP_BO,     /* the paper's mix of the four scores, tuned by Bayesian optimisation */
    NEAP_SWAP_DOA,    /* the paper's scores: duration of absence, */
    NEAP_SWAP_AOA,    /* area of absence, */
    NEAP_SWAP_WDOA,   /* weighted duration of absence, */
    NEAP_SWAP_SWDOA,  /* submodular weighted duration of absence */
    NEAP_SWAP_N_METHODS,
} neap_swap_method;

const char *neap_swap_method_name(neap_swap_method method); /* "search", "bo", "doa", ... */

typedef struct neap_swap_options {
    neap_swap_method method;
    neap_link link;
    double slower;      /* a GPU this many times slower than the recorded one; 0: 1 */
    uint64_t limit;     /* bytes; 0: limit_share */
    double limit_share; /* of the peak load, 0 to 1; 0 with limit 0: the lowest limit that costs at most `overhead` */
    bool on_load; /* limits are on the load, as in the paper: places are not looked at, and a footprint can be higher */
    double overhead;    /* allowed where no limit is given; 0: none */
    uint64_t min_block; /* smaller blocks are no candidates; 0: 1 MiB */
    uint64_t page;      /* parts of blocks are multiples of it; 0: 2 MiB */
    uint64_t alignment; /* of places; 0: 512 */
    double seconds;     /* 0: 2 s */
    uint64_t seed;
    unsigned n_threads; /* 0: as many as there are cores, at most 8 */
} neap_swap_options;

typedef struct neap_swap_entry {
    uint32_t block;       /* index into the trace's blocks */
    uint64_t bytes;       /* the whole block, or a part of it */
    uint32_t used_before; /* events of the trace: the exec whose end begins the gap, */
    uint32_t
        back_after; /* the exec whose end lets the copy in begin (in a later period where it is before the first) */
    uint32_t used_after; /* and the exec that needs it back */
    double gap_ns;       /* from the end of the use before to the start of the use after, undisturbed */
    double copies_ns;    /* out and in together */
    uint64_t at;         /* its first byte in the block; NEAP_NO_OFFSET: its memory is free in no exec all through */
    double out_start_ns; /* copies as simulated, in ns from the begin of a period under the plan: starts lie in it, */
    double out_end_ns;   /* ends may lie beyond. NaN: the host has these bytes, nothing is copied out */
    double in_start_ns;
    double in_end_ns;
} neap_swap_entry;

/* Bytes [at, at + bytes) of a block stand at `offset` of the device memory in the events [begin, end), counted from
 * summary.begin. Under a plan of swaps a block needs memory from its first use to its last, but where it is away. What is
 * there over the period's end has a stay before it and one after. No two stays share a byte at one time. */
typedef struct neap_swap_stay {
    uint32_t block; /* index into the trace's blocks */
    uint32_t place; /* 0; 1, 2, ... for the further places of a block that lives longer than a period */
    uint64_t at;
    uint64_t bytes;
    uint64_t offset;
    uint32_t begin;
    uint32_t end; /* at most summary.length */
} neap_swap_stay;

/* When an exec runs under the plan, waits for copies and memory included, in ns from the begin of a period. */
typedef struct neap_swap_exec {
    uint32_t event; /* of the trace */
    double start_ns;
    double end_ns;
} neap_swap_exec;

typedef struct neap_swap_summary {
    uint64_t limit;            /* asked for, or found */
    uint64_t peak_load;        /* without swapping, blocks held from malloc to free */
    uint64_t planned_peak;     /* the most that is held at once under the plan */
    uint64_t lowest_peak;      /* of the plans tried, where no limit was given: the plan itself is the one of lowest
                                * footprint, and can have a higher peak */
    uint64_t load_min;         /* the peak when every candidate gap is swapped */
    uint64_t floor;            /* the lowest limit under which the program can run at all */
    uint32_t floor_event;      /* event of the exec that needs it */
    uint32_t begin;            /* event of the trace that is time 0 of the plan */
    uint32_t length;           /* events of the period */
    double iteration_ns;       /* of a period, undisturbed */
    double overhead;           /* (period with the plan - without) / without */
    double bound_overhead;     /* no swap-only plan at this limit has less */
    double bound_overhead_any; /* the same, had all directions of accesses been known and been the best possible */
    size_t n_swaps;
    uint64_t bytes_out; /* a period */
    uint64_t bytes_in;
    uint64_t
        footprint; /* device memory to hold, every block returning to its place: at most the limit, if that is on it */
    uint64_t
        footprint_bound;   /* no placement of these swaps is lower: the heaviest clique found, planned_peak at least */
    double ratio;          /* footprint / planned_peak */
    double bound_peak;     /* lowest peak of any swap-only plan at the overhead allowed, and */
    double bound_peak_any; /* the same for the best possible directions */
    const char *method;
    double seconds;
} neap_swap_summary;

typedef struct neap_swap_plan neap_swap_plan;

/* Plans swaps for the period of the trace. Every plan was simulated, placed, and its placement checked.
 * NEAP_NO_PERIOD; NEAP_NO_PLAN: the limit is below the floor (the error names it and the exec), or no plan was found. */
neap_status neap_swap_make(const neap_trace *trace, const neap_swap_options *options, const neap_memory *memory,
                           neap_error *error, neap_swap_plan **plan);
void neap_swap_free(neap_swap_plan *plan);
const neap_swap_summary *neap_swap_get_summary(const neap_swap_plan *plan);
const neap_swap_entry *neap_swap_entries(const neap_swap_plan *plan, size_t *n_entries);
const neap_swap_stay *neap_swap_stays(const neap_swap_plan *plan, size_t *n_stays);
const neap_swap_exec *neap_swap_execs(const neap_swap_plan *plan, size_t *n_execs); /* in order */

/* Overheads over a range of limits, from the peak down to the floor. */
typedef struct neap_sweep_row {
    uint64_t limit;
    double overhead[NEAP_SWAP_N_METHODS]; /* by method; infinite where it found no plan */
    double bound_overhead;
    double bound_overhead_any;
    uint64_t footprint; /* of the search's plan; 0: it found none */
} neap_sweep_row;

/* n_rows equal steps, the peak load first and the floor last. `rows` has room for them. A plan that holds a limit holds all
 * higher ones: no overhead falls as the limit does. Limits are on the footprint, or, with options->on_load, on the load, as
 * in the paper's figure. options->method and the limits are not looked at. */
neap_status neap_swap_sweep(const neap_trace *trace, const neap_swap_options *options, size_t n_rows,
                            const neap_memory *memory, neap_error *error, neap_sweep_row *rows);

/* What `neap run` would plan for the program of a recording. It plans for less than neap_swap_make does: small blocks stand
 * aside, within the limit; blocks have their places from malloc to free; a use lasts some launches longer; what some
 * iterations use and others do not stays. Here the recording is given to the planner of the run itself. */
#define NEAP_RUN_MIN_BLOCK (1 << 18) /* bytes: what `neap run` takes where it is not told otherwise */
#define NEAP_RUN_MARGIN 2            /* launches */
#define NEAP_RUN_THREADS 2

typedef struct neap_foresee_options {
    neap_link link;
    uint64_t limit; /* bytes; 0: limit_share */
    double
        limit_share; /* of the load that is planned, 0 to 1; 0 with limit 0: the lowest limit that costs at most `overhead` */
    double overhead;    /* allowed where no limit is given; 0: none */
    uint64_t min_block; /* smaller blocks stand aside; 0: NEAP_RUN_MIN_BLOCK */
    uint32_t
        margin; /* launches that a block stays after a use, and is back before one: NEAP_RUN_MARGIN, or less, or more */
    uint64_t page;  /* of the device; 0: 2 MiB */
    double seconds; /* for each plan, of which the lowest limit takes several; 0: 2 s */
    uint64_t seed;
    unsigned n_threads; /* 0: NEAP_RUN_THREADS */
} neap_foresee_options;

typedef struct neap_foreseen {
    uint64_t peak_load;        /* without swapping: blocks of all sizes, from malloc to free */
    uint64_t planned_load;     /* of the blocks that take part in the plan: a limit in per cent is a share of this */
    uint64_t beside;           /* held for the others, which stand aside: within the limit */
    uint64_t limit;            /* asked for, found, or raised */
    bool limit_was_raised;     /* nothing was found within the one asked for */
    uint64_t load_min;         /* the peak when every candidate gap is swapped, and what stands aside */
    uint64_t footprint;        /* device memory to hold, what stands aside included */
    double iteration_ns;       /* of a period, undisturbed */
    double overhead;           /* (period with the plan - without) / without */
    double looking;            /* of that, what it costs that launches are looked at; 0: nothing, or not known */
    double bound_overhead;     /* no swap-only plan at this limit has less, whatever its constraints, */
    double bound_overhead_any; /* nor would it, had all directions of accesses been known and been the best possible */
    size_t n_swaps;
    uint64_t bytes_out; /* a period */
    uint64_t bytes_in;
    double seconds;
} neap_foreseen;

/* NEAP_NO_PERIOD: the trace never repeats. NEAP_NO_PLAN: neap run would find none and swap nothing. NEAP_BAD_INPUT: there
 * are no execs in the period. */
neap_status neap_foresee(const neap_trace *trace, const neap_foresee_options *options, const neap_memory *memory,
                         neap_error *error, neap_foreseen *foreseen);

/* ---------------------------------------------------------------- devices ---- */

/* A program allocates, frees and executes through a device. neap watches; once the program repeats itself, it plans, and
 * serves every request from the plan. What the program computes does not change by a bit.
 *
 *     neap_open("cpu", &options, NULL, &error, &device);
 *     neap_malloc(device, bytes, &block);
 *     neap_exec(device, &work, uses, n_uses);          work.run finds its blocks by neap_data
 *     neap_free(device, block);
 *     neap_close(device);
 *
 * Every function of this section may be called from several threads at once. */
typedef struct neap_device neap_device;
typedef struct neap_block neap_block; /* one allocation on a device; its address never changes */

typedef enum neap_log_level { NEAP_LOG_NONE, NEAP_LOG_WARN, NEAP_LOG_INFO, NEAP_LOG_DEBUG } neap_log_level;

/* One line, without a newline. Called from any thread that uses the device, and from the planner's. It must not call
 * the device. */
typedef void neap_log(void *user, neap_log_level level, const char *line);

typedef enum neap_mode {
    NEAP_MODE_PLAN,  /* the default */
    NEAP_MODE_PLAIN, /* every block is an allocation of its own, nothing is watched: for comparison */
} neap_mode;

typedef struct neap_device_options {
    neap_mode mode;
    uint64_t limit;         /* bytes of device memory to hold at most; 0: limit_share */
    double limit_share;     /* of the peak load, 0 to 1: holds from the first plan on; 0 with limit 0: no limit */
    const char *plan_cache; /* folder in which plans are kept from run to run; NULL: $NEAP_PLAN_CACHE, or none */
    uint64_t min_block;     /* smaller blocks are never swapped by a plan; 0: 1 MiB */
    double plan_seconds;    /* for planning, beside the program; 0: 2 s */
    unsigned plan_threads;  /* 0: 1 */
    unsigned refinements;   /* plans tried on measured iterations, where swapping costs time; 0: 12, UINT_MAX: none */
    uint64_t seed;
    neap_log_level log_level; /* 0 with a log function: NEAP_LOG_WARN */
    neap_log *log;            /* NULL: quiet */
    void *log_user;
} neap_device_options;

/* By name: "cpu", "cuda:0", "sim:h200-pcie5" (any name that neap_link_find knows), then settings: "cpu:page=64KiB,link=2GB/s".
 *   page=BYTES     the unit in which memory is mapped (a power of two, 4 KiB at least)
 *   memory=BYTES   what the device has
 *   streams=N      of the program, 1 to 16
 *   link=SPEED     of copies between device and host (cpu: imitated; sim: both ways)
 * NEAP_BAD_ARGUMENT where there is no such device or setting; the error lists what there is. */
neap_status neap_open(const char *name, const neap_device_options *options, const neap_memory *memory,
                      neap_error *error, neap_device **device);

/* Waits for all work, then frees everything, blocks that are still live included. NULL is allowed.
 *
 * A forked child cannot use its parent's devices: its calls fail with NEAP_DEVICE_FAILED, neap_get_stats gives zeros, and
 * neap_close does nothing. It can open devices of its own. */
void neap_close(neap_device *device);

/* Why the last call of this thread on a device failed: one line; empty where it did not. */
const char *neap_device_error(void);

/* Blocks are aligned to 512 bytes. Their contents are undefined at first. NEAP_DEVICE_FULL: the device has no room even
 * with everything else moved to the host; nothing is lost, and the program can go on. 0 bytes: NEAP_BAD_ARGUMENT. */
neap_status neap_malloc(neap_device *device, uint64_t bytes, neap_block **block);

/* Work that uses the block may still be under way. NULL is allowed. NEAP_BAD_ARGUMENT: it was freed before, or is no block
 * of this device; nothing is changed. (Blocks that come later may have the same handle as one that was freed.) */
neap_status neap_free(neap_device *device, neap_block *block);

/* The block's address, the same from malloc to free. Only work that names the block may touch it: at any other time
 * its bytes may be elsewhere. */
void *neap_data(const neap_block *block);
uint64_t neap_block_bytes(const neap_block *block);

/* A block that a piece of work touches. NEAP_ACCESS_WRITE: none of its old contents are looked at or kept where they are
 * not overwritten; one that reads and writes, or writes a part, is NEAP_ACCESS_UNKNOWN. */
typedef struct neap_use {
    neap_block *block;
    neap_access_kind kind;
} neap_use;

typedef struct neap_work {
    const char *name;       /* the same for the same kind of work: part of the pattern. One word, no blanks */
    unsigned stream;        /* 0 to streams - 1: work of one stream runs in order */
    void (*run)(void *arg); /* on the device's own thread; must not call the device */
    const void *arg;        /* copied */
    size_t arg_bytes;       /* at most NEAP_ARG_MAX */
    uint64_t duration_ns;   /* "sim" only: how long it takes there */
} neap_work;

#define NEAP_ARG_MAX 512

/* Queues the work and returns. The blocks it uses are on the device while it runs, at their addresses. */
neap_status neap_exec(neap_device *device, const neap_work *work, const neap_use *uses, size_t n_uses);

/* What the device's driver calls a stream: on "cuda" the CUstream that work.run gives its kernels to, from the thread that
 * called neap_exec. NULL on devices that run work themselves. */
void *neap_stream_native(neap_device *device, unsigned stream);

/* Work given to `stream` from now on waits for all given to `other` so far. Work of different streams that uses the
 * same block is the program's to order. */
neap_status neap_stream_wait(neap_device *device, unsigned stream, unsigned other);

/* Returns when all work given so far is done. */
neap_status neap_sync(neap_device *device);

/* Copies between host memory and a block, as work named "neap.write" or "neap.read" of stream 0, and waits for it. */
neap_status neap_write(neap_device *device, neap_block *block, uint64_t offset, const void *from, uint64_t bytes);
neap_status neap_read(neap_device *device, const neap_block *block, uint64_t offset, void *to, uint64_t bytes);

/* Where a device stands on the way of its data. */
#define NEAP_STATE_MAP(X)                                                    \
    X(NEAP_STATE_OBSERVE, "observe", "nothing repeats yet")                  \
    X(NEAP_STATE_DETECT, "detect", "a period is seen, and being confirmed")  \
    X(NEAP_STATE_PLAN_SWAPS, "plan swaps", "choosing what leaves when")      \
    X(NEAP_STATE_PLAN_POOL, "plan pool", "placing, and waiting for a start") \
    X(NEAP_STATE_RUN, "run", "every request is served from the plan")        \
    X(NEAP_STATE_LEAVE, "leave", "off the plan until the next known start")

typedef enum neap_state {
#define NEAP_STATE_ENUM(name, word, text) name,
    NEAP_STATE_MAP(NEAP_STATE_ENUM)
#undef NEAP_STATE_ENUM
} neap_state;

const char *neap_state_name(neap_state state); /* "plan swaps" */

/* Why a program left its plan. */
#define NEAP_DEPARTURE_MAP(X)                                       \
    X(NEAP_DEPARTURE_MALLOC, "an allocation that was not planned")  \
    X(NEAP_DEPARTURE_SIZE, "an allocation of another size")         \
    X(NEAP_DEPARTURE_FREE, "a free that was not planned")           \
    X(NEAP_DEPARTURE_EXEC, "work that was not planned")             \
    X(NEAP_DEPARTURE_USES, "work on other blocks than planned")     \
    X(NEAP_DEPARTURE_ABSENT, "work on a block that is not there")   \
    X(NEAP_DEPARTURE_STREAM, "work on another stream than planned") \
    X(NEAP_DEPARTURE_BLIND, "a call whose accesses cannot be seen") \
    X(NEAP_DEPARTURE_FAILED, "a copy or an allocation of the device failed")

typedef enum neap_departure {
#define NEAP_DEPARTURE_ENUM(name, text) name,
    NEAP_DEPARTURE_MAP(NEAP_DEPARTURE_ENUM)
#undef NEAP_DEPARTURE_ENUM
        NEAP_N_DEPARTURES,
} neap_departure;

const char *neap_departure_text(neap_departure departure);

typedef struct neap_stats {
    neap_state state;
    uint64_t limit;     /* bytes, raised where it had to be; 0: none (yet) */
    uint64_t live;      /* bytes of live blocks, as asked for */
    uint64_t held;      /* bytes of device memory held now */
    uint64_t peak_live; /* the most there ever was */
    uint64_t peak_held;
    uint64_t peak_load;         /* the highest of all iterations that have a plan: sizes rounded up to 512 */
    uint64_t footprint;         /* the most that was held since the first plan became active; 0: none has */
    uint64_t planned_footprint; /* of the plan that is active, or was last */
    uint64_t bytes_out;         /* copied to the host so far */
    uint64_t bytes_in;
    uint64_t host_bytes; /* host memory held for absent blocks */
    uint64_t waits;      /* times that the program's work was made to wait for a copy */
    uint64_t giving_ns;  /* host time, of the program's threads, in which plans' copies and waits were given */
    uint64_t n_events;
    uint64_t n_iterations; /* served from a plan from begin to end */
    uint64_t n_patterns;   /* that have a plan */
    uint64_t departures[NEAP_N_DEPARTURES];
    uint64_t n_departures;
    uint64_t n_branches;  /* times that an iteration turned out to be of another kind, whose plan was followed then */
    uint64_t n_beside;    /* pieces of work that were in no plan, and needed none: a loss that is logged */
    uint64_t n_visits;    /* pieces of work for which blocks that were away came, on the plan, and went again */
    double plan_overhead; /* as simulated for the active plan */
    double overhead;      /* measured: the median planned iteration against the undisturbed one; NaN: not known */
    double iteration_ns;  /* the undisturbed one; 0: not known */
    uint64_t metadata_bytes; /* of the plans, for each event of their periods */
    bool
        is_limit_unplanned; /* the limit is held, but no plan was followed yet: blocks move when work needs them: slow */
    bool plan_was_loaded;   /* from the plan cache */
    bool is_planning;       /* a plan is being made, or others are being tried: what is active may not be the last */
} neap_stats;

void neap_get_stats(neap_device *device, neap_stats *stats);

/* What the plan at hand was made from, or, off the plan, what has been recorded since it was left, as a trace.
 * NEAP_NO_PERIOD where there is neither: the plan was loaded, or the planner has it at present. */
neap_status neap_device_trace(neap_device *device, const neap_memory *memory, neap_error *error, neap_trace **trace);

#ifdef __cplusplus
}
#endif
#endif
