/* core.h: the hook's parts, and what each may ask of the others.
 *
 *   runtime.c   the functions of the CUDA runtime that the library puts itself in front of
 *   inject.c    the driver calls it at its start: CUPTI is loaded and subscribed
 *   calls.c     which driver calls matter, and where their arguments are
 *   sight.c     one call seen, before and after it
 *   gather.c    from a call's arguments to the blocks it uses
 *   tables.c    addresses of blocks in what is copied in
 *   quick.c     a launch that is just what the plan expects
 *   rest.c      looking away where no launch matters
 *   graphs.c    captures and graphs, and the blocks they name
 *   fixed.c     blocks that never leave
 *   keeper.c    who has the blocks: the manager, or another in its place
 *   core.c      the process and its devices, stepping aside
 *   blocks.c    malloc and free
 *   baseline.c  what PyTorch's own allocator would have held
 *   pool.c      a plain pool, for when neap has stepped aside
 *   pytorch*.c  back to PyTorch's own allocator, where the program needs it (forward.c, virtual.c)
 *   verify.c    a keeper that takes from a kernel everything that it is not seen to touch
 *   kernels.c, index.c, cupti.c, settings.c, report*.c, watch.c
 *
 * Each device has one manager, and the manager's lock guards all that the hook knows of the device. A call that gives
 * work is held under it from CUPTI's callback before to the one after: the order in which work is given is the order in
 * which it is known. The thread's own calls to the driver are not looked at meanwhile, nor is a call within another. */
#ifndef NP_HOOK_CORE_H
#define NP_HOOK_CORE_H

#include <stdatomic.h>
#include <string.h>

#include "hook/cupti.h"
#include "hook/facts.h"
#include "hook/index.h"
#include "hook/kernels.h"
#include "hook/put.h"
#include "hook/recall.h"
#include "hook/settings.h"
#include "pool/caching.h"
#include "run/manager.h"

enum { NP_HOOK_MAX_DEVICES = 16 };
/* Why a block never leaves. */
typedef enum np_hook_reason {
    NP_HOOK_OF_GRAPH,   /* a graph names it */
    NP_HOOK_OF_OTHERS,  /* its pages are others' too */
    NP_HOOK_OF_KERNEL,  /* it was given to a kernel that keeps addresses */
    NP_HOOK_OF_TABLE,   /* its address was copied in */
    NP_HOOK_OF_TEXTURE, /* kernels name it by a handle */
    NP_HOOK_N_REASONS,
} np_hook_reason;

enum { NP_HOOK_TIMED_EVERY = 64 }; /* one launch in so many is timed, and stands for the others */

/* What a graph names, from its capture to its destruction: an entry for each of its parts. */
typedef struct np_hook_graph {
    void *handle;    /* CUgraph or CUgraphExec; NULL: it is being captured */
    void *stream;    /* whose capture it is */
    uint32_t number; /* graphs and their executables of one capture share it; of more, the earliest's */
    bool is_blind;   /* it has work whose uses were not seen: everything is home before each launch of it */
} np_hook_graph;

#define NP_HOOK_NO_CAPTURE UINT32_MAX

/* A block that was freed while a graph needed it. */
typedef struct np_hook_kept {
    neap_block *block; /* NULL: a small one, at */
    const char *small;
    uint32_t graph;   /* of the latest that can name it: a number */
    uint32_t capture; /* NP_HOOK_NO_CAPTURE, or the one in which it was freed, */
    void *stream;     /* on this one, which is captured */
} np_hook_kept;

/* Whether the program's work is looked at: see rest.c. */
typedef struct np_hook_rest {
    void *stream;               /* that mallocs and frees have named, one and all, */
    uint64_t since;             /* since that iteration */
    uint64_t n_looked;          /* iterations, when it was last thought of */
    bool has_ended;             /* just now */
    bool is_refused;            /* CUPTI does not let work go untold */
    atomic_bool has_lost_sight; /* work could not be made to be seen again */
} np_hook_rest;

typedef struct np_hook_device {
    int ordinal;
    neap_device *manager;
    /* NULL: the manager has the blocks. Otherwise of the manager only lock, pin, memory and live bytes count. */
    const struct np_hook_keeper *keeper;
    void *context; /* CUcontext */
    uint64_t begin_ns;

    atomic_bool is_left; /* neap has stepped aside, and everything is home: calls are not looked at any more */
    np_hook_index index;
    np_hook_kernels kernels;
    np_hook_recall recall;
    np_hook_rest rest;
    void *streams[NP_MAX_STREAMS]; /* CUstream, NULL: none; the legacy stream is NP_HOOK_LEGACY */
    uint32_t last_lane;            /* of the last work */

    /* the call that is under way */
    np_given given;
    neap_work work;
    np_array(neap_use) uses;
    bool is_given;               /* there is one */
    np_array(uint64_t) hits;     /* words of a launch that could be addresses of blocks */
    const np_hook_memory *quick; /* NULL, or the launch under way is that one */

    /* graphs */
    uint32_t n_captures; /* under way */
    uint32_t next_graph;
    np_array(np_hook_graph) graphs;
    np_array(np_hook_kept) kept;
    bool keeps_all; /* a graph could not be remembered: nothing that is fixed is ever freed */

    /* blocks that never leave */
    uint64_t fixed_bytes; /* of those that live, or are kept for a graph, */
    uint64_t fixed_high;  /* and the most there were */
    bool is_reason_said[NP_HOOK_N_REASONS];
    bool is_refusal_said; /* others were to get one, and did not */

    /* what PyTorch's own allocator would have done, of all sizes */
    np_caching caching;
    uint64_t caching_bytes;
    np_array(uint32_t) side_baseline; /* of small blocks, by where they begin (baseline.c) */
    bool has_baseline;

    bool is_unverified_said;
    uint64_t n_leaving;     /* times that leaving a plan was to be said */
    np_hook_facts facts;    /* counters; the rest is filled in on request */
    uint64_t reserved_high; /* as the program may reset them */
    uint64_t used_high;
    uint64_t n_frees;                  /* by the program, so far, */
    uint64_t n_parted[NP_MAX_STREAMS]; /* and by lane, when work was last given to it that begins after all before it */
    np_array(neap_block *) later;      /* freed, when neap had stepped aside, beside a capture */
    uint64_t told_free;                /* bytes: what the program was told last when it asked how much is free */
} np_hook_device;

#define NP_HOOK_LEGACY ((void *)1)               /* CU_STREAM_LEGACY */
#define NP_HOOK_OWN ((void *)2)                  /* CU_STREAM_PER_THREAD: of whichever thread names it */
#define NP_HOOK_NO_STREAM ((void *)(intptr_t)-1) /* memory that any stream may use at once, and none frees */

typedef struct np_hook {
    np_hook_settings settings;
    np_cuda_driver driver;
    np_cupti cupti;
    void *subscriber;
    bool is_seeing;                               /* CUPTI is subscribed */
    atomic_bool has_thread_streams;               /* memory was asked for on streams that are a thread's own */
    _Atomic(const char *) aside;                  /* NULL, or why neap does nothing but serve memory plainly */
    np_hook_device *devices[NP_HOOK_MAX_DEVICES]; /* by ordinal; never removed */
    atomic_ullong n_orphans;                      /* calls of contexts of which nothing was asked */
} np_hook;

extern np_hook np_the_hook; /* a process has one */

/* The library is there from the program's start: its few bytes of each thread are found without a call. */
#define NP_HOOK_THREAD _Thread_local __attribute__((tls_model("initial-exec")))
extern NP_HOOK_THREAD bool np_hook_is_inside;       /* what the thread calls now is neap's own */
extern NP_HOOK_THREAD np_hook_device *np_hook_held; /* whose lock the thread holds, between two callbacks */
extern NP_HOOK_THREAD bool np_hook_is_copier;       /* it has neither malloc'd nor launched: its copies are strays */

/* ---- core.c ---- */

/* Is there anything to do in this process? Reads the settings at the first call. */
bool np_hook_is_on(void);
bool np_hook_is_over(void); /* the process ends, or is a forked child */

/* The device of that ordinal, opened at the first call. NULL: neap has stepped aside, as it does for a second one: copies and
 * kernels may name blocks of both, and only those of their own are known. */
np_hook_device *np_hook_device_get(int ordinal);
np_hook_device *np_hook_device_of_context(const void *context); /* NULL: none */
np_hook_device *np_hook_first_device(void);                     /* the one that is served; NULL: none */

bool np_hook_is_pytorch(void); /* is its allocator in the process? */

/* The ordinal of the one device there is, once it was opened; -1: there are several, or it was not. */
int np_hook_only_device(void);

/* Once: why, on stderr. Everything comes home; what is asked for from now on comes from the plain pool. */
void np_hook_step_aside(const char *why);
extern const char np_hook_elsewhere[]; /* a reason: there are several contexts */
extern const char np_hook_peers[];     /* and another */

/* The number of a stream, adopted at its first use. Under the lock. */
neap_status np_hook_lane(np_hook_device *device, void *stream, np_stream *lane);

/* ---- blocks.c ---- */

/* 0, or the CUDA runtime's number of an error. */
int np_hook_malloc(int ordinal, uint64_t bytes, void *stream, void **address);
/* Is it the address of memory that is ours, or was asked for through us? */
bool np_hook_has(const void *address);
/* False: the address is none of ours. */
bool np_hook_free(void *address, void *stream);

/* What is only kept goes back to the driver. */
void np_hook_give_back(np_hook_device *device);

/* Bytes: of the model of its pool that the program is told about. */
uint64_t np_hook_reserved(const np_hook_device *device);
uint64_t np_hook_used(np_hook_device *device);

/* ---- baseline.c: under the lock ---- */
void np_hook_baseline_take(np_hook_device *device, uint64_t bytes, np_hook_entry *entry);
void np_hook_baseline_give(np_hook_device *device, const np_hook_entry *entry);
void np_hook_baseline_take_small(np_hook_device *device, uint64_t bytes, const char *address); /* of the side pool's */
void np_hook_baseline_give_small(np_hook_device *device, const char *address);

/* ---- inject.c ---- */
void np_hook_subscribe(void); /* where it was not yet */
/* Are launches and copies to be told of? False: not all of them could be made to be, or not to be. */
bool np_hook_watch_work(bool is_watched);

/* ---- calls.c ---- */
typedef enum np_hook_call_kind {
    NP_CALL_NONE, /* of no interest */
    NP_CALL_LAUNCH,
    NP_CALL_LAUNCH_EX,
    NP_CALL_COPY,      /* and memsets */
    NP_CALL_DESCRIBED, /* a copy described by a struct */
    NP_CALL_GRAPH_LAUNCH,
    NP_CALL_STREAM_DESTROY,
    NP_CALL_CAPTURE_BEGIN,
    NP_CALL_CAPTURE_END,
    NP_CALL_GRAPH_CREATE,
    NP_CALL_GRAPH_JOIN, /* a graph, `to`, gets a part: another graph, `from`, or one that is not looked at */
    NP_CALL_INSTANTIATE,
    NP_CALL_GRAPH_DESTROY,
    NP_CALL_UNLOAD,
    NP_CALL_EXPORT,  /* of the block at an address, or its registration */
    NP_CALL_HOLD,    /* kernels will use a block without naming its address */
    NP_CALL_PEER,    /* others may touch any block from now on */
    NP_CALL_UNKNOWN, /* it could touch anything */
} np_hook_call_kind;

enum { NP_CALL_NOWHERE = 255 };

typedef struct np_hook_call {
    const char *name; /* of the driver's function */
    const char *exec; /* of the exec it becomes; NULL: none */
    uint8_t kind;     /* np_hook_call_kind */
    uint8_t to;       /* offsets of its arguments in the struct that CUPTI gives; NP_CALL_NOWHERE: it has none */
    uint8_t from;
    uint8_t bytes;
    uint8_t stream;
} np_hook_call;

/* By its name, _ptsz and _ptds included (*per_thread). NULL: of no interest. */
const np_hook_call *np_hook_call_find(const char *name, bool *per_thread);

/* An argument of the call, by its offset; NULL: it has none. */
static inline const void *np_hook_pointer_at(const np_cupti_data *data, uint8_t offset)
{
    const void *value = NULL;
    if (offset != NP_CALL_NOWHERE) {
        memcpy(&value, (const char *)data->parameters + offset, sizeof value);
    }
    return value;
}

/* ---- gather.c ---- */

/* What is seen of one call. */
typedef struct np_hook_sight {
    np_hook_device *device;
    const np_hook_kernel *kernel; /* NULL: it is no launch */
    np_hook_memory *memory;       /* NULL, or what is remembered of it */
    bool is_blind;                /* it may use what was not found */
    bool is_fixing;               /* what it uses must stay */
    bool is_stray;                /* it is a copy that is no event (run/stray.h) */
} np_hook_sight;

/* Into device->uses: the blocks that a call which gives work names, each once. */
void np_hook_gather(np_hook_sight *sight, const np_hook_call *call, const np_cupti_data *data);
neap_block *np_hook_block_at(const np_hook_device *device, const void *address);               /* NULL: none */
np_hook_parameters np_hook_parameters_of(const np_hook_call *call, const np_cupti_data *data); /* of a launch */

/* ---- tables.c: what the host copies to the device, if it does, is looked through for addresses ---- */
void np_hook_scan_copied(np_hook_sight *sight, const np_hook_call *call, const void *from, size_t bytes);
void np_hook_scan_described(np_hook_sight *sight, const np_hook_call *call, const void *given); /* by that struct */
/* Of a call that holds blocks: these stay. False: one of them could not be made to. */
bool np_hook_hold(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data);

/* ---- keeper.c: all under the lock ---- */

/* Who has the blocks in place of the manager. */
typedef struct np_hook_keeper {
    int (*malloc)(np_hook_device *device, uint64_t bytes, void **address); /* as np_hook_malloc, not under the lock */
    bool (*free)(np_hook_device *device, void *address);                   /* as np_hook_free, not under the lock */
    neap_status (*home)(np_hook_device *device);                           /* and all work has been waited for */
    neap_status (*fix)(np_hook_device *device, neap_block *block);
    void (*release)(np_hook_device *device, neap_block *block); /* the program has freed it before: it was kept */
    void (*ready)(const np_hook_sight *sight, const char *name);
} np_hook_keeper;

neap_status np_hook_home(np_hook_device *device, const char *why); /* everything is on the device */
neap_status np_hook_wait(np_hook_device *device);                  /* for all work that was given so far */

/* ---- scrub.c ---- */
void np_hook_scrub(void); /* what is below: in the function that the program has called, or near to it */
void np_hook_scrub_where_it_matters(bool is_resting);

/* ---- sight.c ---- */
bool np_hook_is_overlapping(const np_hook_call *call, const np_cupti_data *data); /* with the one in front of it */
/* May the launch begin before the work in front of it has ended, and touch what was freed since by then? */
bool np_hook_is_early(const np_hook_device *device, const np_hook_call *call, const np_cupti_data *data,
                      np_stream lane);
/* Where it names none: the legacy one, or the thread's own. */
void *np_hook_stream_of(const np_hook_call *call, bool per_thread, const np_cupti_data *data);
void np_hook_see_before(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data);
void np_hook_see_after(np_hook_device *device, const np_hook_call *call, bool per_thread, const np_cupti_data *data);

/* ---- rest.c: all under the lock, but for the last ---- */
void np_hook_rest_init(np_hook_device *device);
/* Around each malloc and free of the program. */
void np_hook_rest_before(np_hook_device *device, void *stream);
void np_hook_rest_after(np_hook_device *device);
/* Before a call: is it passed over? Where it matters, looking away ends here. */
bool np_hook_rest_passes(np_hook_device *device, const np_hook_call *call);
void np_hook_rest_end(np_hook_device *device, const char *why); /* by leaving the plan */
void np_hook_rest_settle(np_hook_device *device);               /* without the lock: steps aside where it must */

/* ---- quick.c: all under the lock ---- */

/* On the plan: what is remembered is of this plan, and true. */
void np_hook_quick_follow(np_hook_device *device);

/* The launch was made ready. May it be quick when it comes again? */
void np_hook_quick_note(np_hook_device *device, np_hook_memory *memory);

/* Before a launch, by a stream that is no thread's own: true where that is all, but for np_hook_quick_end after it. */
bool np_hook_quick_begin(np_hook_device *device, const np_hook_call *call, const np_cupti_data *data);
void np_hook_quick_end(np_hook_device *device);

/* ---- graphs.c: all under the lock ---- */
bool np_hook_is_capturing(np_hook_device *device, void *stream);
void np_hook_capture_begin(np_hook_device *device, void *stream);
void np_hook_capture_end(np_hook_device *device, void *stream, void *graph); /* NULL: it failed */
bool np_hook_has_capture(const np_hook_device *device, const void *stream);  /* one began there and has not ended */
void np_hook_graph_create(np_hook_device *device, void *graph);              /* an empty one */
void np_hook_graph_instantiate(np_hook_device *device, void *graph, void *executable);
/* The graph, or executable, needs what its new part needs. NULL, or a part that is not known: it may need anything. */
void np_hook_graph_join(np_hook_device *device, void *graph, const void *part);
/* The same, of a launch that is captured. */
void np_hook_capture_join(np_hook_device *device, const void *executable);
/* Nobody knows which graph was changed, nor how. */
void np_hook_graphs_blind(np_hook_device *device);
void np_hook_graph_destroy(np_hook_device *device, void *graph); /* or its executable */
/* Captured work was not seen in full: whatever is captured at present is not known. */
void np_hook_capture_blind(np_hook_device *device);
bool np_hook_graph_is_known(const np_hook_device *device, const void *executable);
/* Every block that captured work names stays. */
void np_hook_capture_use(np_hook_device *device, neap_block *block);
/* True: the block is kept until its graph goes. */
bool np_hook_capture_free(np_hook_device *device, neap_block *block);
/* What was freed last was freed on that stream. Where that is captured, later work of the same capture may have the bytes: */
void np_hook_capture_freed_on(np_hook_device *device, const neap_block *block, void *stream);
/* such a block of so many bytes, or a few more. NULL: there is none. */
neap_block *np_hook_capture_reuse(np_hook_device *device, const void *stream, uint64_t bytes);
bool np_hook_capture_free_small(np_hook_device *device, const char *address); /* the same, of one of the side pool's */

/* ---- fixed.c: under the lock. Blocks are fixed, and freed, nowhere else ---- */
neap_status np_hook_fix(np_hook_device *device, neap_block *block, np_hook_reason why);
void np_hook_say_fixed(np_hook_device *device, np_hook_reason why); /* that such blocks stay: once */
neap_status np_hook_free_block(np_hook_device *device, neap_block *block);

/* ---- pool.c ---- */
int np_hook_pool_malloc(int ordinal, uint64_t bytes, void *stream, void **address);
bool np_hook_pool_free(void *address, void *stream); /* false: none of its own */
bool np_hook_pool_has(const void *address);

/* ---- runtime.c: what stands behind ours ---- */
int np_hook_real_malloc(void **address, size_t bytes);
int np_hook_real_free(void *address);
int np_hook_real_get_device(int *ordinal);
int np_hook_real_forget_error(void);  /* the last one that the program could ask for */
void np_hook_pass_on(void);           /* what is asked for by cudaMalloc from now on is the runtime's */
bool np_hook_is_beside_capture(void); /* a capture is under way that was begun by the runtime */

/* ---- verify.c ---- */
neap_status np_hook_verify_open(np_hook_device *device,
                                neap_error *error); /* its keeper, and what there is of a manager */
void np_hook_verify_tell(void);                     /* at exit */

#endif
