/* standin_state.h: the stand-in's own state. One lock guards all of it, from `begin` to `end` of every call; a stream's
 * thread lets go of it only while it does its work. */
#ifndef TESTS_STANDIN_STANDIN_STATE_H
#define TESTS_STANDIN_STANDIN_STATE_H

#include <pthread.h>

#include "device/cuda_types.h"
#include "standin/call.h"
#include "standin/standin.h"

/* Results beyond those of cuda_types.h, by the numbers of cuda.h. */
enum {
    CU_NOT_INITIALIZED = 3,
    CU_INVALID_CONTEXT = 201,
    CU_INVALID_HANDLE = 400,
    CU_NOT_FOUND = 500,
    CU_ILLEGAL_ADDRESS = 700,
    CU_HOST_ALREADY_REGISTERED = 712,
    CU_HOST_NOT_REGISTERED = 713,
    CU_NOT_PERMITTED = 800,
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_INVALIDATED = 901,
    CU_CAPTURE_UNMATCHED = 903,
    CU_CAPTURE_UNJOINED = 904,
    CU_CAPTURE_ISOLATION = 905,
    CU_CAPTURE_IMPLICIT = 906,
    CU_CAPTURED_EVENT = 907,
    CU_CAPTURE_WRONG_THREAD = 908,
};

enum { MAX_DEVICES = 8 };

typedef struct stream stream;
typedef struct event event;
typedef struct capture capture;

/* ---- work ---- */

typedef enum item_kind {
    ITEM_CALL,        /* run(data) */
    ITEM_COPY,        /* bytes from `from` to `to` */
    ITEM_FILL,        /* bytes at `to`, with a pattern of 1, 2 or 4 bytes */
    ITEM_RECORD,      /* event, generation */
    ITEM_WAIT_EVENT,  /* event, generation */
    ITEM_WAIT_STREAM, /* other, n: until it has done so many items */
    ITEM_FREE,        /* the allocation at `to` */
    ITEM_END,
} item_kind;

typedef struct item {
    struct item *next;
    item_kind kind;
    void (*run)(void *data);
    void (*early)(void *data); /* of a kernel, or NULL: done before run, once */
    bool is_kernel;
    bool is_programmatic; /* early may be done before the kernel in front of it */
    char *to;
    const char *from;
    size_t bytes;
    uint32_t pattern;
    unsigned pattern_bytes;
    event *event;
    uint64_t generation;
    stream *other;
    uint64_t n;
    size_t data_bytes;
    _Alignas(16) unsigned char data[]; /* of a call */
} item;

/* ---- objects: never freed, so that a dead one is known when it comes back ---- */

typedef struct object {
    uint32_t kind; /* one of the numbers below */
    bool is_alive;
    struct object *next; /* all there ever were: a leak checker finds them */
} object;

enum { STREAM = 0x57e1, EVENT, MEMORY, KERNEL, GRAPH, EXEC, CONTEXT, MODULE, POOL };

struct stream {
    object base;
    pthread_t thread;
    pthread_cond_t given;
    item *first; /* the one being done stays here until it is */
    item *last;
    uint64_t n_given;
    uint64_t n_done;
    uint64_t random;
    int device;
    bool is_default;
    bool is_blocking; /* keeps order with the default stream */
    capture *capture; /* NULL: none */
    bool is_joined;   /* capture: another stream waits for all it has */
};

struct event {
    object base;
    unsigned flags;
    uint64_t n_recorded;
    uint64_t n_done;
    uint64_t time_ns; /* of the last record that is done */
    capture *capture; /* it was last recorded in, NULL: none */
    stream *captured; /* the stream it was recorded in then */
};

typedef struct context {
    object base;
    int device;
    unsigned n_retained;
    stream *default_stream;
} context;

typedef struct graph {
    object base;
    item *first;
    item *last;
} graph;

struct capture {
    uint64_t id;
    np_cu_capture_mode mode;
    pthread_t thread;
    stream *origin;
    bool is_active;
    bool is_invalid;
    graph *graph;
    struct capture *next;
};

typedef struct standin {
    pthread_mutex_t lock;
    pthread_cond_t progress; /* an item is done */
    bool is_open;            /* cuInit was called */
    bool is_ready;           /* and has returned: there are devices */
    bool is_injecting;       /* it is at InitializeInjection, in this thread */
    pthread_t injecting;
    bool is_child; /* this process was forked after cuInit: nothing works in it */
    int n_devices;
    size_t memory_bytes;
    size_t granularity;
    uint64_t seed;
    uint64_t longest_delay_us;
    bool refuses_hints;
    context *contexts[MAX_DEVICES];
    object *objects;
    capture *captures;
    uint64_t n_captures;
    standin_counts counts;
} standin_state;

extern standin_state standin;

/* ---- context.c, call.c ---- */

/* Says what was done wrong, and ends the process. */
_Noreturn void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Of a function of the tests: as BEGIN, but nobody is told. */
np_cu_result begin(const char *symbol, unsigned needs);

void lock(void);
void unlock(void);
uint64_t now_ns(void);

context *current_context(void);

/* A new object, alive; one that a program names: it must be of that kind, and alive. */
void *object_make(size_t bytes, uint32_t kind);
void *object_check(void *handle, uint32_t kind, const char *symbol);

/* ---- failures.c ---- */
np_cu_result failure_of_call(const char *symbol); /* under the lock */
void failures_from_environment(void);

/* ---- inject.c ---- */
void inject(void); /* in cuInit, under the lock, which is let go of meanwhile */

/* ---- memory.c ---- */
void memory_open(void);
bool memory_is_mapped(const void *at, size_t bytes); /* all of it, and with access */
bool memory_is_reserved(const void *at);
bool memory_take(int device, size_t bytes); /* from what the device has; false: it is full */
void memory_give(int device, size_t bytes);

/* ---- alloc.c ---- */
bool memory_is_device(const void *at, size_t bytes); /* all of it is mapped or allocated */
bool memory_is_any_device(const void *at);           /* some device address, mapped or not */
bool memory_is_registered(const void *at, size_t bytes);

typedef enum allocation_kind { ALLOCATED_PLAIN, ALLOCATED_ASYNC, ALLOCATED_IN_CAPTURE } allocation_kind;
np_cu_result allocation_make(int device, size_t bytes, allocation_kind kind, np_cu_address *address);
struct range *allocation_check(const char *at, const char *symbol); /* the one that begins there, not freed yet */
void allocation_end(char *at);                                      /* its bytes are the device's again */

/* ---- stream.c ---- */
stream *stream_make(int device, unsigned flags, bool is_default);
void stream_end(stream *s);                          /* does all it was given first; lets go of the lock meanwhile */
stream *stream_of(void *handle, const char *symbol); /* NULL is the default one */
item *item_make(item_kind kind, size_t data_bytes);

/* Puts work on a stream, or into its capture. NP_CU_SUCCESS, or a capture forbids it; the item is taken over. */
np_cu_result stream_give(stream *s, item *work);
void stream_drain(stream *s); /* under the lock, which is let go of meanwhile */
void streams_drain(void);     /* all of them */

/* Ends the process where work that is not done uses these bytes. */
void streams_check_unused(const void *at, size_t bytes, const char *symbol);

/* ---- copy.c: they end the process where it is not so ---- */
void check_device(const void *at, size_t bytes, const char *symbol);
void check_host(const void *at, const char *symbol);

/* ---- kernel.c ---- */
const char *kernel_name_of(const void *function); /* NULL: it is none */
np_cu_result kernel_item_make(void *function, void **parameters, void **extra, const char *symbol, item **made);
standin_kernel *kernel_make(standin_kernel *over, const standin_image_kernel *of); /* over: a dead one, or NULL */

/* ---- capture.c ---- */
bool capture_forbids(void);         /* an unsafe call of this thread? The captures that do are invalid then */
bool capture_forbids_waiting(void); /* the same of a wait for all work */
void capture_add(stream *s, item *work);
void capture_invalidate(capture *c);
np_cu_capture_mode *thread_capture_mode(void);
extern _Thread_local bool is_stream_thread;

#endif
