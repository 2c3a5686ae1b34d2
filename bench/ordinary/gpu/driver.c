/* driver.c: libcuda.so.1. See fk.h. */
#include "fk.h"
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "names.inc"

/* ---------------------------------------------------------------- calls */
unsigned char fk_enabled[2048];
fk_tracer fk_trace;
__thread int fk_from_runtime;
static __thread int depth;
static __thread CUcontext current;
static uint64_t n_correlations;
int fk_arch = 80;

static int id_of(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].id;
    return -1;
}
const char *fk_name_of(int id)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].id == id)
            return names[i].name;
    return NULL;
}
void fk_enter_slow(fk_call *c)
{
    fk_tracer t = fk_trace;
    if (!t)
        return;
    c->told = true;
    c->correlation = (uint32_t)__atomic_add_fetch(&n_correlations, 1, __ATOMIC_RELAXED);
    t(c, 0, current);
}
void fk_exit_slow(fk_call *c)
{
    fk_tracer t = fk_trace;
    if (t)
        t(c, 1, current);
}

#define F1(a) __typeof__(a) p1;
#define F2(a, b) F1(a) __typeof__(b) p2;
#define F3(a, b, c) F2(a, b) __typeof__(c) p3;
#define F4(a, b, c, d) F3(a, b, c) __typeof__(d) p4;
#define F5(a, b, c, d, e) F4(a, b, c, d) __typeof__(e) p5;
#define F6(a, b, c, d, e, f) F5(a, b, c, d, e) __typeof__(f) p6;
#define F7(a, b, c, d, e, f, g) F6(a, b, c, d, e, f) __typeof__(g) p7;
#define F8(a, b, c, d, e, f, g, h) F7(a, b, c, d, e, f, g) __typeof__(h) p8;
#define F9(a, b, c, d, e, f, g, h, i) F8(a, b, c, d, e, f, g, h) __typeof__(i) p9;
#define F10(a, b, c, d, e, f, g, h, i, j) F9(a, b, c, d, e, f, g, h, i) __typeof__(j) p10;
#define F11(a, b, c, d, e, f, g, h, i, j, k) F10(a, b, c, d, e, f, g, h, i, j) __typeof__(k) p11;
#define PICK(a, b, c, d, e, f, g, h, i, j, k, l, ...) l
#define FIELDS(...) PICK(__VA_ARGS__, F11, F10, F9, F8, F7, F6, F5, F4, F3, F2, F1)(__VA_ARGS__)
#define TRACE_AS(fn, sym, ...)                                                                                  \
    static int id_ = -2;                                                                                        \
    if (__builtin_expect(id_ == -2, 0))                                                                         \
        id_ = id_of(fn);                                                                                        \
    struct {                                                                                                    \
        FIELDS(__VA_ARGS__)                                                                                     \
    } args_ = {__VA_ARGS__};                                                                                    \
    __attribute__((cleanup(fk_cleanup))) fk_call c_ = {.id = id_, .name = fn, .params = &args_, .symbol = sym}; \
    if (__builtin_expect(id_ > 0 && fk_enabled[id_], 0))                                                        \
        fk_enter_slow(&c_);
#define TRACE(fn, ...) TRACE_AS(#fn, NULL, __VA_ARGS__)
#define TRACE0(fn) \
    int none_ = 0; \
    TRACE_AS(#fn, NULL, none_)
#define RET(x)               \
    do {                     \
        int r_ = (x);        \
        c_.result = r_;      \
        return (CUresult)r_; \
    } while (0)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void lock(void)
{
    pthread_mutex_lock(&mutex);
}
static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}
static void complain(const char *f, ...)
{
    static int n;
    if (__atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) > 40)
        return;
    va_list a;
    va_start(a, f);
    fprintf(stderr, "fakegpu: ");
    vfprintf(stderr, f, a);
    fputc('\n', stderr);
    va_end(a);
}
uint64_t fk_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static void sleep_until(uint64_t t)
{
    struct timespec s = {(time_t)(t / 1000000000u), (long)(t % 1000000000u)};
    if (fk_now() >= t)
        return;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &s, NULL) == EINTR) {}
}

/* ---------------------------------------------------------------- settings */
enum { MAX_DEVICES = 8 };
static int n_devices = 1;
static size_t device_bytes = (size_t)80 << 30;
static double slow = 1, gbs = 25, thread_ns = 0.004, base_ns = 2000;
static bool checks;            /* FAKE_CHECK: the oracle */
static bool reads_zero = true; /* FAKE_READS: the program reads what is there, not zeros */
static FILE *log_file;
static double number(const char *name, double otherwise)
{
    const char *v = getenv(name);
    return v && *v ? atof(v) : otherwise;
}

/* ---- order (FAKE_CHECK): which work comes before which, by clocks of streams. A granule of memory knows the last work of each
 * stream on it; what touches it must come after. Two of the program's own are its own business; one of them is neap's. */
enum { CLOCKS = 128, GRANULE = 64 << 10, GRANULES = (2 << 20) / GRANULE };
typedef struct clocks {
    uint32_t at[CLOCKS];
} clocks;
typedef struct granule {
    uint32_t program[CLOCKS], reads[CLOCKS], writes[CLOCKS];
} granule; /* by neap: reads out of it, writes into it */
static clocks host_seen;
static int n_clocks;
static uint64_t n_races;
static void merge(clocks *a, const clocks *b)
{
    for (int i = 0; i < CLOCKS; i++)
        if (b->at[i] > a->at[i])
            a->at[i] = b->at[i];
}
/* ---------------------------------------------------------------- objects */
typedef struct ctx {
    uint32_t magic;
    int device;
    unsigned n;
    struct stream *null_stream;
} ctx;
static ctx contexts[MAX_DEVICES];

/* What one node of a graph touches: the blocks that were there when it was captured. */
typedef struct use {
    char *at;
    size_t bytes;
    uint64_t serial;
    bool writes;
} use;
typedef struct node {
    char name[96];
    use *uses;
    size_t n;
} node;
typedef struct graph {
    uint32_t magic;
    int n_owners;
    double ns;
    node *nodes;
    uint64_t n, cap;
} graph;
typedef struct capture {
    graph *g;
    unsigned long long id;
    struct stream *origin;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool is_broken;
    struct capture *next;
} capture;
typedef struct stream {
    uint32_t magic;
    int device;
    bool is_null, blocking;
    int priority;
    uint64_t end; /* all that was given is done then */
    capture *capture;
    unsigned long long id;
    int clock; /* its index; those beyond share the last */
    clocks seen;
    struct stream *next;
} stream;
typedef struct event {
    uint32_t magic;
    unsigned flags;
    uint64_t at;
    bool recorded;
    capture *capture;
    clocks seen;
} event;
enum { STREAM = 0x5354524d, EVENT = 0x45564e54, GRAPH = 0x47525048, EXEC = 0x45584543, CTX = 0x43545854 };
static stream *streams;
static uint64_t engine_end[MAX_DEVICES][2];
static unsigned long long n_streams, n_captures;
static capture *captures;                         /* under way */
static __thread CUstreamCaptureMode capture_mode; /* of the thread: what calls it may make beside a capture */
static uint64_t n_replays, n_replayed, n_replay_wrong, n_unsafe;

static stream *stream_new(int device, unsigned flags, int priority, bool is_null)
{
    stream *s = calloc(1, sizeof *s);
    s->magic = STREAM;
    s->device = device;
    s->is_null = is_null;
    s->priority = priority;
    s->blocking = !is_null && !(flags & 1);
    s->id = ++n_streams;
    s->clock = n_clocks < CLOCKS - 1 ? n_clocks++ : CLOCKS - 1;
    s->next = streams;
    streams = s;
    return s;
}
static ctx *the_ctx(void)
{
    return current ? (ctx *)current : &contexts[0];
}
static stream *S(CUstream h)
{
    if ((uintptr_t)h <= 2)
        return the_ctx()->null_stream;
    stream *s = (stream *)h;
    if (s->magic != STREAM) {
        complain("no stream: %p", (void *)h);
        abort();
    }
    return s;
}
/* When work given now to s can begin. */
static uint64_t start_of(stream *s)
{
    uint64_t t = fk_now();
    if (s->end > t)
        t = s->end;
    if (s->is_null) {
        for (stream *o = streams; o; o = o->next)
            if (o->blocking && o->device == s->device && o->end > t)
                t = o->end;
    } else if (s->blocking && contexts[s->device].null_stream && contexts[s->device].null_stream->end > t) {
        t = contexts[s->device].null_stream->end;
    }
    return t;
}
/* The default stream and the blocking ones come after each other. */
static void order_null(stream *s)
{
    if (!checks)
        return;
    if (s->is_null) {
        for (stream *o = streams; o; o = o->next)
            if (o->blocking && o->device == s->device)
                merge(&s->seen, &o->seen);
    } else if (s->blocking && contexts[s->device].null_stream)
        merge(&s->seen, &contexts[s->device].null_stream->seen);
}
/* A piece of work begins: it has seen what the host has waited for. */
static void tick(stream *s)
{
    if (!checks)
        return;
    order_null(s);
    merge(&s->seen, &host_seen);
    s->seen.at[s->clock]++;
}
static node *node_new(graph *g)
{
    if (g->n == g->cap) {
        g->cap = g->cap ? 2 * g->cap : 64;
        g->nodes = realloc(g->nodes, g->cap * sizeof *g->nodes);
    }
    memset(&g->nodes[g->n], 0, sizeof *g->nodes);
    return &g->nodes[g->n++];
}
/* A call that may wait for the device, or changes what is mapped: not beside a capture, unless the thread says that it knows. */
static int unsafe(const char *who)
{
    int r = 0;
    pthread_mutex_lock(&mutex);
    for (capture *c = captures; c; c = c->next) {
        bool is_ours = pthread_equal(c->thread, pthread_self());
        if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED || c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        if (c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL || is_ours
                                                     : is_ours) {
            c->is_broken = true;
            r = 900;
        }
    }
    pthread_mutex_unlock(&mutex);
    if (r) {
        n_unsafe++;
        complain("%s beside a capture%s: it is broken", who, fk_from_runtime ? "" : " (neap's)");
    }
    return r;
}
/* Gives work of so many ns; where it ends. In a capture: 0. */
static uint64_t give(stream *s, double ns)
{
    tick(s);
    if (s->capture) {
        s->capture->g->ns += ns;
        node_new(s->capture->g);
        return 0;
    }
    s->end = start_of(s) + (uint64_t)ns;
    return s->end;
}
static uint64_t give_link(stream *s, int way, size_t n)
{
    double ns = 1500 + (double)n / gbs;
    if (s->capture)
        return give(s, ns);
    tick(s);
    uint64_t t = start_of(s);
    uint64_t *e = &engine_end[s->device][way];
    if (*e > t)
        t = *e;
    t += (uint64_t)ns;
    *e = t;
    s->end = t;
    return t;
}
static uint64_t latest_end(int device)
{
    uint64_t t = 0;
    for (stream *o = streams; o; o = o->next)
        if (o->device == device && o->end > t)
            t = o->end;
    return t;
}
static uint64_t end_of_all(int device)
{
    uint64_t t = 0;
    for (stream *o = streams; o; o = o->next)
        if (o->device == device) {
            if (o->end > t)
                t = o->end;
            merge(&host_seen, &o->seen);
        }
    return t;
}

/* ---------------------------------------------------------------- memory
 * Bytes are kept in chunks of 4 KiB, made when something is written to them; what is absent is zero. */
enum { CHUNK = 4096, PAGE_BITS = 21 };
#define PAGE ((size_t)1 << PAGE_BITS)
typedef struct store {
    size_t n;
    char **chunks;
} store; /* chunks made lazily */
typedef struct handle {
    uint32_t magic;
    size_t bytes;
    int device;
    int n_maps;
    bool released;
    store bytes_of;
    granule *granules;
} handle;
#define HANDLE 0x48414e44u
typedef struct region { /* of addresses: a reservation, or an allocation */
    char *at;
    size_t bytes;
    bool is_reservation, is_host, is_async, is_registered;
    handle **pages;
    unsigned char *access;
    store own;
    int device;
} region;
static region **regions;
static size_t n_regions, cap_regions;
static size_t used[MAX_DEVICES], used_high[MAX_DEVICES];
static uint64_t n_early_unmaps;
static size_t pool_used, pool_used_high, pool_reserved, pool_reserved_high;
static uint64_t n_maps, n_unmaps, n_access;

static size_t region_after(const void *at) /* the first whose begin is above at */
{
    size_t lo = 0, hi = n_regions;
    while (lo < hi) {
        size_t m = (lo + hi) / 2;
        if (regions[m]->at <= (const char *)at)
            lo = m + 1;
        else
            hi = m;
    }
    return lo;
}
static region *region_at(const void *at)
{
    size_t i = region_after(at);
    if (i == 0)
        return NULL;
    region *r = regions[i - 1];
    return (const char *)at < r->at + r->bytes ? r : NULL;
}
static void region_add(region *r)
{
    if (n_regions == cap_regions) {
        cap_regions = cap_regions ? 2 * cap_regions : 256;
        regions = realloc(regions, cap_regions * sizeof *regions);
    }
    size_t i = region_after(r->at);
    memmove(regions + i + 1, regions + i, (n_regions - i) * sizeof *regions);
    regions[i] = r;
    n_regions++;
}
static void region_drop(region *r)
{
    size_t i = region_after(r->at) - 1;
    memmove(regions + i, regions + i + 1, (n_regions - i - 1) * sizeof *regions);
    n_regions--;
}
static void store_free(store *s)
{
    for (size_t i = 0; s->chunks && i < s->n; i++)
        free(s->chunks[i]);
    free(s->chunks);
    s->chunks = NULL;
    s->n = 0;
}
static char **slot(store *s, size_t bytes, size_t offset)
{
    if (!s->chunks) {
        s->n = (bytes + CHUNK - 1) / CHUNK;
        s->chunks = calloc(s->n, sizeof *s->chunks);
    }
    return &s->chunks[offset / CHUNK];
}
/* Where the chunk of a device address is kept: NULL where nothing is mapped. */
static char **chunk_of(const char *at, region *r)
{
    if (!r || r->is_host)
        return NULL;
    if (!r->is_reservation)
        return slot(&r->own, r->bytes, (size_t)(at - r->at));
    size_t p = (size_t)(at - r->at) >> PAGE_BITS;
    handle *h = r->pages[p];
    if (!h || !r->access[p])
        return NULL;
    return slot(&h->bytes_of, h->bytes, (size_t)(at - r->at) & (PAGE - 1));
}
static bool is_device(const void *at)
{
    region *r = region_at(at);
    return r && !r->is_host;
}
static bool is_mapped(const char *at, size_t n)
{
    const char *end = at + n;
    while (at < end) {
        region *r = region_at(at);
        if (!r || r->is_host)
            return false;
        if (!r->is_reservation) {
            at = r->at + r->bytes;
            continue;
        }
        size_t p = (size_t)(at - r->at) >> PAGE_BITS;
        if (!r->pages[p] || !r->access[p])
            return false;
        at = r->at + ((p + 1) << PAGE_BITS);
    }
    return true;
}
static const char zeros[CHUNK];
static void piece(char *to, const char *from, size_t n) /* within a chunk on each side */
{
    region *rt = region_at(to), *rf = region_at(from);
    bool dt = rt && !rt->is_host, df = rf && !rf->is_host;
    const char *src = from;
    if (df) {
        char **c = chunk_of(from, rf);
        src = c && *c ? *c + ((size_t)(from - rf->at) & (CHUNK - 1)) : zeros;
    }
    if (dt) {
        char **c = chunk_of(to, rt);
        if (!c)
            return;
        if (!*c) {
            if (src == zeros || memcmp(src, zeros, n) == 0)
                return;
            *c = calloc(1, CHUNK);
        }
        memmove(*c + ((size_t)(to - rt->at) & (CHUNK - 1)), src, n);
    } else if (src != zeros) {
        memmove(to, src, n);
    } else if (memcmp(to, zeros, n) != 0) {
        memset(to, 0, n);
    }
}
static size_t room(const char *a) /* to the end of the chunk; regions begin at chunks, or are host */
{
    region *r = region_at(a);
    return r && !r->is_host ? CHUNK - ((size_t)(a - r->at) & (CHUNK - 1)) : CHUNK;
}
static void span(char *to, const char *from, size_t n)
{
    while (n > 0) {
        size_t m = n, a = room(to), b = room(from);
        if (a < m)
            m = a;
        if (b < m)
            m = b;
        piece(to, from, m);
        to += m;
        from += m;
        n -= m;
    }
}
static void move_bytes(char *to, const char *from, size_t n)
{
    enum { WHOLE = 128 << 10, END = 4 << 10 };
    if (n <= WHOLE) {
        span(to, from, n);
        return;
    }
    span(to, from, END);
    span(to + n - END, from + n - END, END);
}
static void set_bytes(char *to, const void *pattern, size_t width, size_t n)
{
    char buf[CHUNK];
    bool is_zero = true;
    for (size_t i = 0; i < width; i++)
        is_zero = is_zero && ((const char *)pattern)[i] == 0;
    if (n > (128 << 10) && !is_zero)
        n = 4096;
    for (size_t i = 0; i < CHUNK; i += width)
        memcpy(buf + i, pattern, width);
    while (n > 0) {
        size_t m = n, a = room(to);
        if (a < m)
            m = a;
        region *r = region_at(to);
        char **c = chunk_of(to, r);
        if (!r || r->is_host)
            memcpy(to, buf, m);
        else if (c && is_zero && m == CHUNK) {
            free(*c);
            *c = NULL;
        } else if (c && (*c || !is_zero)) {
            if (!*c)
                *c = calloc(1, CHUNK);
            memcpy(*c + ((size_t)(to - r->at) & (CHUNK - 1)), buf, m);
        }
        to += m;
        n -= m;
    }
}

/* ---- held against load. A freed block counts until the work before its free has ended. ---- */
typedef struct gone {
    uint64_t end;
    size_t bytes;
} gone;
static gone *gones;
static size_t first_gone, n_gones, cap_gones;
static size_t load, load_high;       /* of the blocks that the program has */
static size_t expected;              /* of blocks that it is asking for */
static size_t gone_bytes, busy_high; /* freed and still used; the highest of both */
static int64_t over_high;            /* the most held above 1.05 * the highest load so far + 64 MiB */
static int over_step = -1;
static size_t over_held, over_load; /* then */
typedef struct step {
    size_t held_high, load_high, held;
} step;
static step *steps;
static size_t n_steps, cap_steps;
static size_t step_held_high, step_load_high;
#define MOST_REAL ((long long)4 << 30) /* no program of these has a block that is larger */
static void note_load(void)
{
    uint64_t now = fk_now();
    while (first_gone < n_gones && gones[first_gone].end <= now)
        gone_bytes -= gones[first_gone++].bytes;
    if (first_gone == n_gones)
        first_gone = n_gones = 0;
    if (load > load_high)
        load_high = load;
    if (load > step_load_high)
        step_load_high = load;
    if (load + expected + gone_bytes > busy_high)
        busy_high = load + expected + gone_bytes;
}
static void note_gone(uint64_t end, size_t bytes)
{
    if (n_gones == cap_gones) {
        cap_gones = cap_gones ? 2 * cap_gones : 1024;
        gones = realloc(gones, cap_gones * sizeof *gones);
    }
    gones[n_gones++] = (gone){end, bytes};
    gone_bytes += bytes;
}
static void note_held(size_t held)
{
    int64_t over;
    if (held > step_held_high)
        step_held_high = held;
    note_load();
    over = (int64_t)held - (int64_t)(1.05 * (double)busy_high) - (64 << 20);
    if (over > over_high) {
        over_high = over;
        over_step = (int)n_steps;
        over_held = held;
        over_load = busy_high;
    }
}
void fk_block_expect(long long bytes)
{
    if (bytes > MOST_REAL || -bytes > MOST_REAL)
        return; /* asked for to see whether it is there: cudnn.benchmark */
    lock();
    expected += (size_t)bytes;
    note_load();
    unlock();
}
/* A step of the program ends (programs/meter.py). */
void fk_mark(void)
{
    lock();
    if (n_steps == cap_steps) {
        cap_steps = cap_steps ? 2 * cap_steps : 256;
        steps = realloc(steps, cap_steps * sizeof *steps);
    }
    steps[n_steps++] = (step){step_held_high, step_load_high, used[0]};
    step_held_high = used[0];
    step_load_high = load;
    unlock();
}
static bool take(int d, size_t n)
{
    if (used[d] + n > device_bytes)
        return false;
    used[d] += n;
    if (used[d] > used_high[d])
        used_high[d] = used[d];
    if (d == 0)
        note_held(used[0]);
    return true;
}

/* ---- the oracle: blocks that the program has, and what should be in them ---- */
typedef struct block {
    char *at;
    size_t bytes;
    uint64_t serial;
    uint64_t tag;
    bool tagged;
    char last[96];
} block;
static block **blocks;
static size_t n_blocks, cap_blocks;
static uint64_t n_checked, n_wrong, n_unmapped, n_words, n_stale, n_tags;
static size_t block_after(const void *at)
{
    size_t lo = 0, hi = n_blocks;
    while (lo < hi) {
        size_t m = (lo + hi) / 2;
        if (blocks[m]->at <= (const char *)at)
            lo = m + 1;
        else
            hi = m;
    }
    return lo;
}
static block *block_at(const void *at)
{
    size_t i = block_after(at);
    if (i == 0)
        return NULL;
    block *b = blocks[i - 1];
    return (const char *)at < b->at + b->bytes ? b : NULL;
}
static uint64_t n_overlaps;
static void trace_block(const char *what, const void *at, size_t n);
void fk_block_begin(const void *at, size_t bytes)
{
    if (!at)
        return;
    lock();
    if (n_blocks == cap_blocks) {
        cap_blocks = cap_blocks ? 2 * cap_blocks : 1024;
        blocks = realloc(blocks, cap_blocks * sizeof *blocks);
    }
    size_t i = block_after(at);
    if ((i > 0 && blocks[i - 1]->at + blocks[i - 1]->bytes > (const char *)at) ||
        (i < n_blocks && blocks[i]->at < (const char *)at + bytes)) {
        n_overlaps++;
        complain("ORACLE: a block that was just given, %p +%zu, overlaps one that is live", at, bytes);
    }
    block *b = calloc(1, sizeof *b);
    static uint64_t n_serial;
    b->at = (char *)at;
    b->bytes = bytes;
    b->serial = ++n_serial;
    memmove(blocks + i + 1, blocks + i, (n_blocks - i) * sizeof *blocks);
    blocks[i] = b;
    n_blocks++;
    load += bytes <= MOST_REAL ? bytes : 0;
    if (n_devices)
        trace_block("malloc", at, bytes);
    note_load();
    unlock();
}
void fk_block_end(const void *at)
{
    if (!at)
        return;
    lock();
    size_t i = block_after(at);
    if (i > 0 && blocks[i - 1]->at == at) {
        trace_block("free", at, blocks[i - 1]->bytes);
        if (blocks[i - 1]->bytes <= MOST_REAL) {
            load -= blocks[i - 1]->bytes;
            note_gone(latest_end(0), blocks[i - 1]->bytes);
        }
        free(blocks[i - 1]);
        memmove(blocks + i - 1, blocks + i, (n_blocks - i) * sizeof *blocks);
        n_blocks--;
    }
    unlock();
}
static size_t least_checked = 256 << 10;
static uint64_t *word_at(char *at, bool make)
{
    region *r = region_at(at);
    char **c = chunk_of(at, r);
    if (!c || (!*c && !make))
        return NULL;
    if (!*c)
        *c = calloc(1, CHUNK);
    return (uint64_t *)(*c + ((size_t)(at - r->at) & (CHUNK - 8)));
}
static char *tail_of(const block *b)
{
    return (char *)(((uintptr_t)b->at + b->bytes - 8) & ~(uintptr_t)7);
}
enum { BY_PROGRAM, NEAP_READS, NEAP_WRITES };
static const char *const by_names[] = {"the program's work", "neap's copy out", "neap's copy in"};
static void race(const char *who, int by, const char *at, const stream *s, int other, int by_other)
{
    if (n_races++ < 12)
        complain("ORDER: %s (%s, stream %d) at %p does not come after %s on stream %d", by_names[by], who, s->clock,
                 (void *)at, by_names[by_other], other);
}
/* After tick. Granules that are wholly in the range, in pages that are mapped. */
static void order(const stream *s, const char *at, size_t n, int by, const char *who)
{
    const char *end = at + n;
    char *g = (char *)(((uintptr_t)at + GRANULE - 1) / GRANULE * GRANULE);
    if (!checks)
        return;
    region *r = NULL;
    for (; g + GRANULE <= end; g += GRANULE) {
        if (!r || g >= r->at + r->bytes)
            r = region_at(g);
        if (!r || !r->is_reservation)
            return;
        handle *h = r->pages[(size_t)(g - r->at) >> PAGE_BITS];
        if (!h)
            continue;
        if (!h->granules)
            h->granules = calloc(GRANULES, sizeof *h->granules);
        granule *x = &h->granules[((size_t)(g - r->at) & (PAGE - 1)) / GRANULE];
        for (int i = 0; i < n_clocks; i++) {
            if (i == s->clock)
                continue;
            if (by != BY_PROGRAM && x->program[i] > s->seen.at[i]) {
                race(who, by, g, s, i, BY_PROGRAM);
                x->program[i] = 0;
            }
            if (by != NEAP_READS && x->reads[i] > s->seen.at[i]) {
                race(who, by, g, s, i, NEAP_READS);
                x->reads[i] = 0;
            }
            if (x->writes[i] > s->seen.at[i]) {
                race(who, by, g, s, i, NEAP_WRITES);
                x->writes[i] = 0;
            }
        }
        (by == BY_PROGRAM ? x->program : by == NEAP_READS ? x->reads : x->writes)[s->clock] = s->seen.at[s->clock];
    }
}
/* Work of the program touches the block: it must be there, with what was in it. Then it has something new in it. */
static void touch(block *b, const char *who, bool writes)
{
    if (b->bytes < least_checked)
        return;
    n_checked++;
    if (!is_mapped(b->at, b->bytes)) {
        n_unmapped++;
        complain("ORACLE: %s uses %p +%zu, which is not all mapped (last used by %s)", who, (void *)b->at, b->bytes,
                 b->last);
        return;
    }
    if (b->tagged) {
        uint64_t *h = word_at(b->at, false), *t = word_at(tail_of(b), false);
        if (!h || *h != b->tag || !t || *t != b->tag) {
            n_wrong++;
            complain("ORACLE: %s finds %p +%zu with other bytes than it had: %llx %llx, not %llx (last used by %s)",
                     who, (void *)b->at, b->bytes, h ? (unsigned long long)*h : 0, t ? (unsigned long long)*t : 0,
                     (unsigned long long)b->tag, b->last);
        }
    }
    if (!writes && b->tagged)
        return; /* what is only read need not be kept twice */
    b->tag = 0x3f8000003f800000u + (++n_tags & 0xfffff) + ((n_tags >> 20 & 0xfffff) << 32); /* two floats about one */
    b->tagged = true;
    uint64_t *h = word_at(b->at, true), *t = word_at(tail_of(b), true);
    if (h)
        *h = b->tag;
    if (t)
        *t = b->tag;
    snprintf(b->last, sizeof b->last, "%s", who);
}
/* In a capture nothing runs: what the node will touch is kept for each time the graph is launched. */
static void note_node(node *n, const char *who, const block *b, bool writes)
{
    snprintf(n->name, sizeof n->name, "%s", who);
    for (size_t i = 0; i < n->n; i++)
        if (n->uses[i].serial == b->serial) {
            n->uses[i].writes |= writes;
            return;
        }
    n->uses = realloc(n->uses, (n->n + 1) * sizeof *n->uses);
    n->uses[n->n++] = (use){b->at, b->bytes, b->serial, writes};
}
static void note_words(node *n, const char *who, const void *words, size_t bytes)
{
    snprintf(n->name, sizeof n->name, "%s", who);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        char *w;
        memcpy(&w, (const char *)words + i, 8);
        block *b = (uintptr_t)w < 0x10000 || (uintptr_t)w >> 47 ? NULL : block_at(w);
        if (b)
            note_node(n, who, b, true);
    }
}
static void touch_words(const char *who, const void *words, size_t bytes)
{
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        char *w;
        memcpy(&w, (const char *)words + i, 8);
        if ((uintptr_t)w < 0x10000 || (uintptr_t)w >> 47)
            continue;
        block *b = block_at(w);
        if (b) {
            n_words++;
            touch(b, who, true);
            continue;
        }
        region *r = region_at(w);
        if (r && r->is_reservation)
            n_stale++;
    }
}
static void touch_program_range(const char *who, const void *at, bool writes)
{
    if (!checks || !fk_from_runtime)
        return;
    block *b = block_at(at);
    if (b)
        touch(b, who, writes);
}
static void retag(const void *at) /* the program has written there */
{
    if (!checks || !fk_from_runtime)
        return;
    block *b = block_at(at);
    if (!b || b->bytes < least_checked || !b->tagged)
        return;
    uint64_t *h = word_at(b->at, true), *t = word_at(tail_of(b), true);
    if (h)
        *h = b->tag;
    if (t)
        *t = b->tag;
}

/* ---------------------------------------------------------------- start and end */
static bool open_;
static FILE *trace_file; /* FAKE_TRACE: every piece of the program's work */
static void trace(const char *what, const char *name, const void *at, size_t n)
{
    if (trace_file)
        fprintf(trace_file, "%.3f %s %s %p %zu\n", (double)fk_now() / 1e6, what, name, at, n);
}
static void trace_block(const char *what, const void *at, size_t n)
{
    trace(what, "-", at, n);
}
static void at_end(void)
{
    if (trace_file)
        fclose(trace_file);
    const char *path = getenv("FAKE_LOG");
    if (!path)
        return;
    FILE *f = fopen(path, "a");
    if (!f)
        return;
    fprintf(f,
            "{\"pid\": %d, \"device_high\": %zu, \"device_now\": %zu, \"pool_high\": %zu, \"load_high\": %zu, "
            "\"checked\": %llu, \"wrong\": %llu, \"unmapped\": %llu, "
            "\"overlaps\": %llu, \"races\": %llu, \"early_unmaps\": %llu, \"stale_words\": %llu, \"maps\": %llu, "
            "\"unmaps\": %llu, \"over\": %lld, \"over_step\": %d, \"over_held\": %zu, \"over_load\": %zu, "
            "\"graph_launches\": %llu, \"graph_checked\": %llu, \"graph_wrong\": %llu, \"capture_broken\": %llu, "
            "\"steps\": [",
            (int)getpid(), used_high[0], used[0], pool_used_high, load_high, (unsigned long long)n_checked,
            (unsigned long long)n_wrong, (unsigned long long)n_unmapped, (unsigned long long)n_overlaps,
            (unsigned long long)n_races, (unsigned long long)n_early_unmaps, (unsigned long long)n_stale,
            (unsigned long long)n_maps, (unsigned long long)n_unmaps, (long long)over_high, over_step, over_held,
            over_load, (unsigned long long)n_replays, (unsigned long long)n_replayed,
            (unsigned long long)n_replay_wrong, (unsigned long long)n_unsafe);
    for (size_t i = 0; i < n_steps; i++)
        fprintf(f, "%s[%zu, %zu, %zu]", i ? ", " : "", steps[i].held_high, steps[i].load_high, steps[i].held);
    fprintf(f, "]}\n");
    fclose(f);
}
static void inject(void)
{
    const char *p = getenv("CUDA_INJECTION64_PATH");
    if (!p || !*p)
        return;
    void *l = dlopen(p, RTLD_NOW);
    int (*f)(void) = NULL;
    if (l)
        *(void **)&f = dlsym(l, "InitializeInjection");
    if (f)
        f();
    else
        fprintf(stderr, "fakegpu: %s has no InitializeInjection: %s\n", p, dlerror());
}
static void open_once(void)
{
    n_devices = (int)number("FAKE_DEVICES", 1);
    device_bytes = (size_t)(number("FAKE_GIB", 80) * 1073741824.0);
    slow = number("FAKE_SLOW", 1);
    gbs = number("FAKE_GBS", 25);
    thread_ns = number("FAKE_THREAD_NS", 0.004);
    base_ns = number("FAKE_BASE_NS", 2000);
    fk_arch = (int)number("FAKE_ARCH", 80);
    checks = number("FAKE_CHECK", 0) != 0;
    reads_zero = getenv("FAKE_READS") == NULL;
    if (getenv("FAKE_TRACE"))
        trace_file = fopen(getenv("FAKE_TRACE"), "w");
    for (int i = 0; i < MAX_DEVICES; i++) {
        contexts[i].magic = CTX;
        contexts[i].device = i;
        contexts[i].null_stream = stream_new(i, 0, 0, true);
    }
    atexit(at_end);
    open_ = true;
    inject();
}
CUresult cuInit(unsigned flags)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static __thread bool within;
    (void)flags;
    if (within)
        return CUDA_SUCCESS;
    within = true;
    pthread_once(&once, open_once);
    within = false;
    return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *v)
{
    *v = 13000;
    return 0;
}
CUresult cuGetErrorName(CUresult e, const char **n)
{
    static __thread char b[32];
    switch ((int)e) {
    case 0:
        *n = "CUDA_SUCCESS";
        break;
    case 1:
        *n = "CUDA_ERROR_INVALID_VALUE";
        break;
    case 2:
        *n = "CUDA_ERROR_OUT_OF_MEMORY";
        break;
    default:
        snprintf(b, sizeof b, "CUDA_ERROR_%d", (int)e);
        *n = b;
    }
    return 0;
}
CUresult cuGetErrorString(CUresult e, const char **n)
{
    return cuGetErrorName(e, n);
}

/* ---------------------------------------------------------------- devices and contexts */
CUresult cuDeviceGet(CUdevice *d, int i)
{
    if (!open_)
        return 3;
    if (i < 0 || i >= n_devices)
        return 101;
    *d = i;
    return 0;
}
CUresult cuDeviceGetCount(int *n)
{
    if (!open_)
        return 3;
    *n = n_devices;
    return 0;
}
CUresult cuDeviceGetName(char *n, int l, CUdevice d)
{
    (void)d;
    snprintf(n, (size_t)l, "NVIDIA A100-SXM4-80GB (fake)");
    return 0;
}
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d)
{
    (void)d;
    *n = device_bytes;
    return 0;
}
CUresult cuDeviceGetUuid_v2(CUuuid *u, CUdevice d)
{
    memset(u, 0x11 + d, sizeof *u);
    return 0;
}
CUresult cuDeviceGetPCIBusId(char *s, int n, CUdevice d)
{
    snprintf(s, (size_t)n, "0000:%02x:00.0", d + 1);
    return 0;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
    (void)a;
    (void)b;
    *can = 0;
    return 0;
}
int fk_attribute(int a)
{
    switch (a) {
    case 1:
        return 1024;
    case 2:
        return 1024;
    case 3:
        return 1024;
    case 4:
        return 64;
    case 5:
        return 2147483647;
    case 6:
        return 65535;
    case 7:
        return 65535;
    case 8:
        return 49152;
    case 9:
        return 65536;
    case 10:
        return 32;
    case 11:
        return 2147483647;
    case 12:
        return 65536;
    case 13:
        return 1410000;
    case 14:
        return 512;
    case 15:
        return 1;
    case 16:
        return 108;
    case 17:
        return 0;
    case 18:
        return 0;
    case 19:
        return 1;
    case 20:
        return 0;
    case 31:
        return 1;
    case 33:
        return 1;
    case 34:
        return 0;
    case 36:
        return 1593000;
    case 37:
        return 5120;
    case 38:
        return 41943040;
    case 39:
        return 2048;
    case 40:
        return 3;
    case 41:
        return 1;
    case 75:
        return fk_arch / 10;
    case 76:
        return fk_arch % 10;
    case 78:
        return 1;
    case 79:
        return 1;
    case 80:
        return 1;
    case 81:
        return 167936;
    case 82:
        return 65536;
    case 83:
        return 1;
    case 84:
        return 0;
    case 86:
        return 1;
    case 87:
        return 2;
    case 88:
        return 1;
    case 89:
        return 1;
    case 90:
        return 1;
    case 91:
        return 1;
    case 92:
        return 1;
    case 93:
        return 1;
    case 94:
        return 1;
    case 95:
        return 1;
    case 96:
        return 1;
    case 97:
        return 166912;
    case 98:
        return 0;
    case 99:
        return 1;
    case 100:
        return 0;
    case 101:
        return 1;
    case 102:
        return 1;
    case 103:
        return 1;
    case 105:
        return 1;
    case 106:
        return 32;
    case 111:
        return 1024;
    case 115:
        return 1;
    case 116:
        return 0;
    case 121:
        return 1;
    case 122:
        return 1;
    case 123:
        return 1;
    case 132:
        return 0;
    default:
        return 0;
    }
}
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
    (void)d;
    *v = fk_attribute((int)a);
    return 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
    if (d < 0 || d >= n_devices)
        return 101;
    contexts[d].n++;
    *c = (CUcontext)&contexts[d];
    return 0;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
    contexts[d].n--;
    return 0;
}
CUresult cuDevicePrimaryCtxGetState(CUdevice d, unsigned *f, int *a)
{
    if (f)
        *f = 0;
    *a = contexts[d].n > 0;
    return 0;
}
CUresult cuCtxGetCurrent(CUcontext *c)
{
    *c = current;
    return 0;
}
CUresult cuCtxSetCurrent(CUcontext c)
{
    TRACE(cuCtxSetCurrent, c);
    current = c;
    RET(0);
}
static __thread CUcontext stack[16];
static __thread int n_stack;
CUresult cuCtxPushCurrent_v2(CUcontext c)
{
    stack[n_stack++] = current;
    current = c;
    return 0;
}
CUresult cuCtxPopCurrent_v2(CUcontext *c)
{
    if (c)
        *c = current;
    if (n_stack == 0)
        return 201;
    current = stack[--n_stack];
    return 0;
}
CUresult cuCtxGetDevice(CUdevice *d)
{
    *d = the_ctx()->device;
    return 0;
}
CUresult cuCtxGetStreamPriorityRange(int *l, int *g)
{
    if (l)
        *l = 0;
    if (g)
        *g = -5;
    return 0;
}
CUresult cuCtxGetId(CUcontext c, unsigned long long *id)
{
    *id = (unsigned long long)((c ? (ctx *)c : the_ctx())->device + 1);
    return 0;
}
CUresult cuCtxGetApiVersion(CUcontext c, unsigned *v)
{
    (void)c;
    *v = 3020;
    return 0;
}
CUresult cuCtxSynchronize(void)
{
    TRACE0(cuCtxSynchronize);
    int bad = unsafe("cuCtxSynchronize");
    if (bad)
        RET(bad);
    lock();
    uint64_t t = end_of_all(the_ctx()->device);
    unlock();
    sleep_until(t);
    RET(0);
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *m)
{
    CUstreamCaptureMode o = capture_mode;
    capture_mode = *m;
    *m = o;
    return 0;
}

/* ---------------------------------------------------------------- virtual memory */
CUresult cuMemGetAllocationGranularity(size_t *g, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags o)
{
    (void)p;
    (void)o;
    *g = PAGE;
    return 0;
}
CUresult cuMemGetInfo_v2(size_t *f, size_t *t)
{
    TRACE(cuMemGetInfo_v2, f, t);
    *t = device_bytes;
    *f = device_bytes - used[the_ctx()->device];
    RET(0);
}
CUresult cuMemCreate(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
    TRACE(cuMemCreate, h, n, p, flags);
    int d = p->location.id;
    if (n == 0 || n % PAGE)
        RET(1);
    lock();
    if (!take(d, n)) {
        unlock();
        RET(2);
    }
    unlock();
    handle *m = calloc(1, sizeof *m);
    m->magic = HANDLE;
    m->bytes = n;
    m->device = d;
    *h = (CUmemGenericAllocationHandle)(uintptr_t)m;
    RET(0);
}
static void handle_end(handle *h)
{
    if (h->released && h->n_maps == 0) {
        used[h->device] -= h->bytes;
        store_free(&h->bytes_of);
        free(h->granules);
        h->magic = 0;
        free(h);
    }
}
CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
    TRACE(cuMemRelease, h);
    handle *m = (handle *)(uintptr_t)h;
    if (m->magic != HANDLE || m->released) {
        complain("cuMemRelease of no handle");
        abort();
    }
    lock();
    m->released = true;
    handle_end(m);
    unlock();
    RET(0);
}
CUresult cuMemAddressReserve(CUdeviceptr *a, size_t n, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
    TRACE(cuMemAddressReserve, a, n, alignment, hint, flags);
    if (n == 0 || n % PAGE)
        RET(1);
    size_t al = alignment > PAGE ? alignment : PAGE;
    char *p = mmap((void *)(uintptr_t)hint, n + al, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        RET(2);
    char *q = (char *)(((uintptr_t)p + al - 1) / al * al);
    if (q > p)
        munmap(p, (size_t)(q - p));
    munmap(q + n, (size_t)(p + al - q));
    region *r = calloc(1, sizeof *r);
    r->at = q;
    r->bytes = n;
    r->is_reservation = true;
    r->pages = calloc(n / PAGE, sizeof *r->pages);
    r->access = calloc(n / PAGE, 1);
    lock();
    region_add(r);
    unlock();
    *a = (CUdeviceptr)(uintptr_t)q;
    RET(0);
}
CUresult cuMemAddressFree(CUdeviceptr a, size_t n)
{
    TRACE(cuMemAddressFree, a, n);
    lock();
    region *r = region_at((void *)(uintptr_t)a);
    if (!r || r->at != (char *)(uintptr_t)a || r->bytes != n || !r->is_reservation) {
        complain("cuMemAddressFree of no reservation");
        abort();
    }
    for (size_t i = 0; i < n / PAGE; i++)
        if (r->pages[i]) {
            complain("cuMemAddressFree: still mapped");
            abort();
        }
    region_drop(r);
    unlock();
    munmap(r->at, n);
    free(r->pages);
    free(r->access);
    free(r);
    RET(0);
}
CUresult cuMemMap(CUdeviceptr a, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
    TRACE(cuMemMap, a, n, offset, h, flags);
    handle *m = (handle *)(uintptr_t)h;
    if (m->magic != HANDLE || m->released) {
        complain("cuMemMap of no handle");
        abort();
    }
    if (n != m->bytes || offset != 0 || n != PAGE || a % PAGE) {
        complain("cuMemMap: only whole handles of one page (%zu)", n);
        RET(1);
    }
    lock();
    n_maps++;
    region *r = region_at((void *)(uintptr_t)a);
    if (!r || !r->is_reservation) {
        complain("cuMemMap: not reserved");
        abort();
    }
    size_t p = (size_t)((char *)(uintptr_t)a - r->at) >> PAGE_BITS;
    if (r->pages[p]) {
        complain("cuMemMap over a mapping");
        abort();
    }
    r->pages[p] = m;
    r->access[p] = 0;
    m->n_maps++;
    unlock();
    RET(0);
}
typedef struct flight {
    uint64_t end;
    const char *at;
    size_t n;
} flight; /* copies that are not done */
static flight *flights;
static size_t n_flights, cap_flights;
static void flight_add(uint64_t end, const void *at, size_t n)
{
    uint64_t now = fk_now();
    size_t k = 0;
    if (n_flights > 256) {
        for (size_t i = 0; i < n_flights; i++)
            if (flights[i].end > now)
                flights[k++] = flights[i];
        n_flights = k;
    }
    if (n_flights == cap_flights) {
        cap_flights = cap_flights ? 2 * cap_flights : 1024;
        flights = realloc(flights, cap_flights * sizeof *flights);
    }
    flights[n_flights++] = (flight){end, at, n};
}
CUresult cuMemUnmap(CUdeviceptr a, size_t n)
{
    TRACE(cuMemUnmap, a, n);
    char *at = (char *)(uintptr_t)a;
    lock();
    uint64_t now = fk_now();
    for (size_t i = 0; i < n_flights; i++) {
        if (flights[i].end > now && flights[i].at < at + n && at < flights[i].at + flights[i].n &&
            n_early_unmaps++ < 5) {
            complain("ORACLE: cuMemUnmap %p +%zu under work that ends in %.3f ms", (void *)at, n,
                     (double)(flights[i].end - now) / 1e6);
        }
    }
    region *r = region_at(at);
    if (!r || !r->is_reservation) {
        complain("cuMemUnmap: not reserved");
        abort();
    }
    for (size_t i = 0; i < n / PAGE; i++) {
        size_t p = ((size_t)(at - r->at) >> PAGE_BITS) + i;
        if (!r->pages[p]) {
            complain("cuMemUnmap: nothing is mapped at %p", (void *)(at + i * PAGE));
            abort();
        }
        n_unmaps++;
        r->pages[p]->n_maps--;
        handle_end(r->pages[p]);
        r->pages[p] = NULL;
    }
    unlock();
    RET(0);
}
CUresult cuMemSetAccess(CUdeviceptr a, size_t n, const CUmemAccessDesc *d, size_t nd)
{
    TRACE(cuMemSetAccess, a, n, d, nd);
    lock();
    n_access++;
    region *r = region_at((void *)(uintptr_t)a);
    if (!r || !r->is_reservation) {
        unlock();
        RET(1);
    }
    for (size_t i = 0; i < n / PAGE; i++) {
        size_t p = ((size_t)((char *)(uintptr_t)a - r->at) >> PAGE_BITS) + i;
        if (!r->pages[p]) {
            complain("cuMemSetAccess: nothing is mapped");
            unlock();
            RET(1);
        }
        r->access[p] = d->flags != 0;
    }
    unlock();
    RET(0);
}

/* ---------------------------------------------------------------- allocations */
static CUresult allocate(CUdeviceptr *a, size_t n, bool is_async)
{
    int d = the_ctx()->device;
    size_t whole = (n + (is_async ? 511 : 511)) / 512 * 512;
    if (n == 0)
        return 1;
    lock();
    if (!take(d, whole)) {
        unlock();
        return 2;
    }
    unlock();
    size_t al = n >= PAGE ? PAGE : CHUNK, m = (whole + al - 1) / al * al;
    char *p = mmap(NULL, m + al, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        lock();
        used[d] -= whole;
        unlock();
        return 2;
    }
    char *q = (char *)(((uintptr_t)p + al - 1) / al * al);
    if (q > p)
        munmap(p, (size_t)(q - p));
    munmap(q + m, (size_t)(p + al - q));
    region *r = calloc(1, sizeof *r);
    r->at = q;
    r->bytes = whole;
    r->device = d;
    r->is_async = is_async;
    lock();
    region_add(r);
    if (is_async) {
        pool_used += whole;
        if (pool_used > pool_used_high)
            pool_used_high = pool_used;
        if (pool_used > pool_reserved)
            pool_reserved = (pool_used + PAGE - 1) / PAGE * PAGE;
        if (pool_reserved > pool_reserved_high)
            pool_reserved_high = pool_reserved;
    }
    unlock();
    *a = (CUdeviceptr)(uintptr_t)q;
    return 0;
}
static CUresult deallocate(CUdeviceptr a)
{
    lock();
    region *r = region_at((void *)(uintptr_t)a);
    if (!r || r->at != (char *)(uintptr_t)a || r->is_reservation || r->is_host) {
        unlock();
        complain("free of no allocation: %p", (void *)(uintptr_t)a);
        return 1;
    }
    region_drop(r);
    used[r->device] -= r->bytes;
    if (r->is_async)
        pool_used -= r->bytes;
    unlock();
    munmap(r->at, (r->bytes + CHUNK - 1) / CHUNK * CHUNK);
    store_free(&r->own);
    free(r);
    return 0;
}
CUresult cuMemAlloc_v2(CUdeviceptr *a, size_t n)
{
    TRACE(cuMemAlloc_v2, a, n);
    int bad = unsafe("cuMemAlloc");
    RET(bad ? bad : (int)allocate(a, n, false));
}
CUresult cuMemFree_v2(CUdeviceptr a)
{
    TRACE(cuMemFree_v2, a);
    if (!a)
        RET(0);
    int bad = unsafe("cuMemFree");
    if (bad)
        RET(bad);
    lock();
    uint64_t t = end_of_all(the_ctx()->device);
    unlock();
    sleep_until(t);
    RET(deallocate(a));
}
CUresult cuMemAllocAsync(CUdeviceptr *a, size_t n, CUstream s)
{
    TRACE(cuMemAllocAsync, a, n, s);
    RET(allocate(a, n, true));
}
CUresult cuMemFreeAsync(CUdeviceptr a, CUstream s)
{
    TRACE(cuMemFreeAsync, a, s);
    RET(deallocate(a));
}
static int a_pool;
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *p, CUdevice d)
{
    (void)d;
    *p = (CUmemoryPool)&a_pool;
    return 0;
}
CUresult cuDeviceGetMemPool(CUmemoryPool *p, CUdevice d)
{
    (void)d;
    *p = (CUmemoryPool)&a_pool;
    return 0;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *v)
{
    TRACE(cuMemPoolGetAttribute, p, a, v);
    uint64_t x = 0;
    switch ((int)a) {
    case 5:
        x = pool_reserved;
        break;
    case 6:
        x = pool_reserved_high;
        break;
    case 7:
        x = pool_used;
        break;
    case 8:
        x = pool_used_high;
        break;
    default:
        *(int *)v = 1;
        RET(0);
    }
    *(uint64_t *)v = x;
    RET(0);
}
CUresult cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *v)
{
    TRACE(cuMemPoolSetAttribute, p, a, v);
    if ((int)a == 6)
        pool_reserved_high = pool_reserved;
    if ((int)a == 8)
        pool_used_high = pool_used;
    RET(0);
}
CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t n)
{
    TRACE(cuMemPoolTrimTo, p, n);
    pool_reserved = pool_used;
    RET(0);
}
CUresult cuMemPoolSetAccess(CUmemoryPool p, const CUmemAccessDesc *d, size_t n)
{
    TRACE(cuMemPoolSetAccess, p, d, n);
    RET(0);
}

/* ---- host ---- */
static CUresult host_alloc(void **h, size_t n)
{
    size_t m = (n + CHUNK - 1) / CHUNK * CHUNK;
    char *p = mmap(NULL, m ? m : CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return 2;
    region *r = calloc(1, sizeof *r);
    r->at = p;
    r->bytes = m ? m : CHUNK;
    r->is_host = true;
    lock();
    region_add(r);
    unlock();
    *h = p;
    return 0;
}
CUresult cuMemHostAlloc(void **h, size_t n, unsigned f)
{
    TRACE(cuMemHostAlloc, h, n, f);
    RET(host_alloc(h, n));
}
CUresult cuMemAllocHost_v2(void **h, size_t n)
{
    TRACE(cuMemAllocHost_v2, h, n);
    RET(host_alloc(h, n));
}
CUresult cuMemFreeHost(void *h)
{
    TRACE(cuMemFreeHost, h);
    lock();
    region *r = region_at(h);
    if (!r || r->at != h || !r->is_host) {
        unlock();
        RET(1);
    }
    region_drop(r);
    unlock();
    munmap(r->at, r->bytes);
    free(r);
    RET(0);
}
CUresult cuMemHostRegister_v2(void *h, size_t n, unsigned f)
{
    TRACE(cuMemHostRegister_v2, h, n, f);
    char *from = (char *)((uintptr_t)h / CHUNK * CHUNK), *to = (char *)(((uintptr_t)h + n + CHUNK - 1) / CHUNK * CHUNK);
    /* the bytes were touched alone: their pages go back to the system */
    if (!fk_from_runtime && (uintptr_t)h % CHUNK == 0 && n % CHUNK == 0 && n >= (1 << 20)) {
        bool all = true;
        for (size_t i = 0; i < n && all; i += CHUNK)
            all = *(uint64_t *)((char *)h + i) == 0;
        if (all)
            madvise(h, n, MADV_DONTNEED);
    }
    region *r = calloc(1, sizeof *r);
    r->at = from;
    r->bytes = (size_t)(to - from);
    r->is_host = true;
    r->is_registered = true;
    lock();
    region_add(r);
    unlock();
    RET(0);
}
CUresult cuMemHostUnregister(void *h)
{
    TRACE(cuMemHostUnregister, h);
    lock();
    region *r = region_at(h);
    if (r && r->is_registered) {
        region_drop(r);
        free(r);
        unlock();
        RET(0);
    }
    unlock();
    RET(713);
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *h, unsigned f)
{
    (void)f;
    *d = (CUdeviceptr)(uintptr_t)h;
    return 0;
}
CUresult cuMemHostGetFlags(unsigned *f, void *h)
{
    (void)h;
    *f = 0;
    return 0;
}
CUresult cuPointerGetAttribute(void *v, CUpointer_attribute a, CUdeviceptr p)
{
    lock();
    region *r = region_at((void *)(uintptr_t)p);
    unlock();
    if (!r)
        return 1;
    switch ((int)a) {
    case 1:
        *(void **)v = the_ctx();
        return 0;
    case 2:
        *(unsigned *)v = r->is_host ? 1 : 2;
        return 0;
    case 3:
        *(CUdeviceptr *)v = p;
        return 0;
    case 4:
        *(void **)v = r->is_host ? (void *)(uintptr_t)p : NULL;
        return r->is_host ? 0 : 1;
    case 7:
        *(unsigned long long *)v = (unsigned long long)(uintptr_t)r->at;
        return 0;
    case 8:
        *(int *)v = 0;
        return 0;
    case 9:
        *(int *)v = r->device;
        return 0;
    case 10:
        *(int *)v = 0;
        return 0;
    case 11:
        *(CUdeviceptr *)v = (CUdeviceptr)(uintptr_t)r->at;
        return 0;
    case 12:
        *(size_t *)v = r->bytes;
        return 0;
    case 13:
        *(int *)v = 1;
        return 0;
    default:
        memset(v, 0, 4);
        return 0;
    }
}
CUresult cuPointerSetAttribute(const void *v, CUpointer_attribute a, CUdeviceptr p)
{
    (void)v;
    (void)a;
    (void)p;
    return 0;
}
CUresult cuMemGetAddressRange_v2(CUdeviceptr *b, size_t *n, CUdeviceptr p)
{
    lock();
    region *r = region_at((void *)(uintptr_t)p);
    unlock();
    if (!r)
        return 500;
    if (b)
        *b = (CUdeviceptr)(uintptr_t)r->at;
    if (n)
        *n = r->bytes;
    return 0;
}
CUresult cuIpcGetMemHandle(CUipcMemHandle *h, CUdeviceptr p)
{
    TRACE(cuIpcGetMemHandle, h, p);
    lock();
    region *r = region_at((void *)(uintptr_t)p);
    unlock();
    if (!r || r->is_host || r->is_reservation || r->is_async)
        RET(1);
    memset(h, 0, sizeof *h);
    memcpy(h, &p, sizeof p);
    RET(0);
}
/* texture or export calls: known to fail */

/* ---------------------------------------------------------------- streams and events */
static CUresult stream_create(CUstream *s, unsigned f, int prio)
{
    lock();
    *s = (CUstream)stream_new(the_ctx()->device, f, prio, false);
    unlock();
    return 0;
}
CUresult cuStreamCreate(CUstream *s, unsigned f)
{
    TRACE(cuStreamCreate, s, f);
    RET(stream_create(s, f, 0));
}
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned f, int p)
{
    TRACE(cuStreamCreateWithPriority, s, f, p);
    RET(stream_create(s, f, p));
}
CUresult cuStreamDestroy_v2(CUstream h)
{
    TRACE(cuStreamDestroy_v2, h);
    stream *s = S(h);
    lock();
    for (stream **p = &streams; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    unlock();
    s->magic = 0; /* kept: a dead one is known */
    RET(0);
}
CUresult cuStreamGetPriority(CUstream h, int *p)
{
    *p = S(h)->priority;
    return 0;
}
CUresult cuStreamGetFlags(CUstream h, unsigned *f)
{
    stream *s = S(h);
    *f = s->is_null || s->blocking ? 0 : 1;
    return 0;
}
CUresult cuStreamGetCtx(CUstream h, CUcontext *c)
{
    *c = (CUcontext)&contexts[S(h)->device];
    return 0;
}
CUresult cuStreamGetId(CUstream h, unsigned long long *id)
{
    *id = S(h)->id;
    return 0;
}
CUresult cuStreamGetDevice(CUstream h, CUdevice *d)
{
    *d = S(h)->device;
    return 0;
}
CUresult cuStreamSynchronize(CUstream h)
{
    TRACE(cuStreamSynchronize, h);
    stream *s = S(h);
    if (s->capture)
        RET(900);
    lock();
    uint64_t t = s->is_null ? start_of(s) : s->end;
    order_null(s);
    merge(&host_seen, &s->seen);
    unlock();
    sleep_until(t);
    RET(0);
}
CUresult cuStreamQuery(CUstream h)
{
    TRACE(cuStreamQuery, h);
    stream *s = S(h);
    if (s->capture)
        RET(900);
    if (fk_now() < s->end)
        RET(600);
    lock();
    merge(&host_seen, &s->seen);
    unlock();
    RET(0);
}
static event *E(CUevent h)
{
    event *e = (event *)h;
    if (!e || e->magic != EVENT) {
        complain("no event: %p", (void *)h);
        abort();
    }
    return e;
}
CUresult cuEventCreate(CUevent *h, unsigned f)
{
    TRACE(cuEventCreate, h, f);
    event *e = calloc(1, sizeof *e);
    e->magic = EVENT;
    e->flags = f;
    *h = (CUevent)e;
    RET(0);
}
CUresult cuEventDestroy_v2(CUevent h)
{
    TRACE(cuEventDestroy_v2, h);
    event *e = E(h);
    e->magic = 0;
    free(e);
    RET(0);
}
static CUresult record(CUevent h, CUstream sh)
{
    event *e = E(h);
    stream *s = S(sh);
    lock();
    e->recorded = true;
    e->capture = s->capture;
    e->at = s->capture ? 0 : start_of(s);
    order_null(s);
    e->seen = s->seen;
    if (s->is_null && !s->capture)
        s->end = e->at;
    unlock();
    return 0;
}
CUresult cuEventRecord(CUevent e, CUstream s)
{
    TRACE(cuEventRecord, e, s);
    RET(record(e, s));
}
CUresult cuEventRecordWithFlags(CUevent e, CUstream s, unsigned f)
{
    TRACE(cuEventRecordWithFlags, e, s, f);
    RET(record(e, s));
}
CUresult cuEventQuery(CUevent h)
{
    TRACE(cuEventQuery, h);
    event *e = E(h);
    if (e->capture)
        RET(907);
    if (fk_now() < e->at)
        RET(600);
    lock();
    merge(&host_seen, &e->seen);
    unlock();
    RET(0);
}
CUresult cuEventSynchronize(CUevent h)
{
    TRACE(cuEventSynchronize, h);
    event *e = E(h);
    if (e->capture)
        RET(907);
    sleep_until(e->at);
    lock();
    merge(&host_seen, &e->seen);
    unlock();
    RET(0);
}
static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    event *x = E(a), *y = E(b);
    uint64_t now = fk_now();
    if (!x->recorded || !y->recorded)
        return 400;
    if (now < x->at || now < y->at)
        return 600;
    *ms = (float)((double)((int64_t)(y->at - x->at)) / 1e6);
    return 0;
}
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b)
{
    TRACE(cuEventElapsedTime, ms, a, b);
    RET(elapsed(ms, a, b));
}
CUresult cuEventElapsedTime_v2(float *ms, CUevent a, CUevent b)
{
    TRACE(cuEventElapsedTime_v2, ms, a, b);
    RET(elapsed(ms, a, b));
}
CUresult cuStreamWaitEvent(CUstream sh, CUevent h, unsigned f)
{
    TRACE(cuStreamWaitEvent, sh, h, f);
    stream *s = S(sh);
    event *e = E(h);
    static int drop = -1, n_waits; /* FAKE_DROP_WAITS=N: each N-th of neap's waits is lost, to see that it is found */
    if (drop < 0)
        drop = (int)number("FAKE_DROP_WAITS", 0);
    if (drop > 0 && !fk_from_runtime && ++n_waits % drop == 0)
        RET(0);
    lock();
    if (e->capture)
        s->capture = e->capture;
    else if (!s->capture && e->at > s->end)
        s->end = e->at;
    merge(&s->seen, &e->seen);
    unlock();
    RET(0);
}
/* ---- functions of the host: one thread calls them when their time has come ---- */
typedef struct job {
    uint64_t at;
    void (*run)(void *);
    void *arg;
    CUstreamCallback cb;
    CUstream stream;
    struct job *next;
} job;
static job *jobs;
static pthread_cond_t job_come = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t job_lock = PTHREAD_MUTEX_INITIALIZER;
static void *job_run(void *u)
{
    (void)u;
    for (;;) {
        pthread_mutex_lock(&job_lock);
        while (!jobs)
            pthread_cond_wait(&job_come, &job_lock);
        job *j = jobs;
        jobs = j->next;
        pthread_mutex_unlock(&job_lock);
        sleep_until(j->at);
        if (j->cb)
            j->cb(j->stream, 0, j->arg);
        else
            j->run(j->arg);
        free(j);
    }
    return NULL;
}
static void job_add(job made)
{
    static bool has_thread;
    pthread_mutex_lock(&job_lock);
    if (!has_thread) {
        pthread_t t;
        has_thread = true;
        pthread_create(&t, NULL, job_run, NULL);
        pthread_detach(t);
    }
    job *j = malloc(sizeof *j), **p = &jobs;
    *j = made;
    while (*p && (*p)->at <= j->at)
        p = &(*p)->next;
    j->next = *p;
    *p = j;
    pthread_cond_signal(&job_come);
    pthread_mutex_unlock(&job_lock);
}
CUresult cuLaunchHostFunc(CUstream h, CUhostFn f, void *arg)
{
    TRACE(cuLaunchHostFunc, h, f, arg);
    lock();
    uint64_t t = give(S(h), 5000);
    unlock();
    job_add((job){.at = t, .run = f, .arg = arg});
    RET(0);
}
CUresult cuStreamAddCallback(CUstream h, CUstreamCallback f, void *arg, unsigned fl)
{
    TRACE(cuStreamAddCallback, h, f, arg, fl);
    lock();
    uint64_t t = give(S(h), 5000);
    unlock();
    job_add((job){.at = t, .cb = f, .arg = arg, .stream = h});
    RET(0);
}

/* ---------------------------------------------------------------- captures and graphs
 * A graph is a list of nodes: how long they take together, and the blocks that each touches. At each launch of it those must be
 * mapped and, where they live, have what they had; no other block may live there. */
CUresult cuStreamBeginCapture_v2(CUstream h, CUstreamCaptureMode m)
{
    TRACE(cuStreamBeginCapture_v2, h, m);
    stream *s = S(h);
    if (s->is_null || s->capture)
        RET(900);
    capture *c = calloc(1, sizeof *c);
    c->g = calloc(1, sizeof *c->g);
    c->g->magic = GRAPH;
    c->g->n_owners = 1;
    c->id = ++n_captures;
    c->origin = s;
    c->mode = m;
    c->thread = pthread_self();
    lock();
    s->capture = c;
    c->next = captures;
    captures = c;
    unlock();
    RET(0);
}
static void graph_end(graph *g)
{
    if (--g->n_owners > 0)
        return;
    for (uint64_t i = 0; i < g->n; i++)
        free(g->nodes[i].uses);
    free(g->nodes);
    g->magic = 0;
    free(g);
}
CUresult cuStreamEndCapture(CUstream h, CUgraph *g)
{
    TRACE(cuStreamEndCapture, h, g);
    stream *s = S(h);
    if (!s->capture)
        RET(1);
    if (s->capture->origin != s)
        RET(904);
    lock();
    capture *c = s->capture;
    for (stream *o = streams; o; o = o->next)
        if (o->capture == c)
            o->capture = NULL;
    for (capture **p = &captures; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    unlock();
    *g = c->is_broken ? NULL : (CUgraph)c->g;
    if (c->is_broken)
        graph_end(c->g);
    RET(c->is_broken ? 901 : 0); /* the capture is kept: events may name it */
}
CUresult cuStreamIsCapturing(CUstream h, CUstreamCaptureStatus *st)
{
    TRACE(cuStreamIsCapturing, h, st);
    capture *c = S(h)->capture;
    *st = c ? c->is_broken ? 2 : 1 : 0;
    RET(0);
}
CUresult cuStreamGetCaptureInfo_v3(CUstream h, CUstreamCaptureStatus *st, cuuint64_t *id, CUgraph *g,
                                   const CUgraphNode **deps, const CUgraphEdgeData **ed, size_t *n)
{
    stream *s = S(h);
    *st = s->capture ? s->capture->is_broken ? 2 : 1 : 0;
    if (id)
        *id = s->capture ? s->capture->id : 0;
    if (g)
        *g = s->capture ? (CUgraph)s->capture->g : NULL;
    if (deps)
        *deps = NULL;
    if (ed)
        *ed = NULL;
    if (n)
        *n = 0;
    return 0;
}
typedef struct exec {
    uint32_t magic;
    graph *g;
} exec;
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph h, unsigned long long f)
{
    TRACE(cuGraphInstantiateWithFlags, x, h, f);
    graph *g = (graph *)h;
    if (!g || g->magic != GRAPH)
        RET(1);
    exec *e = calloc(1, sizeof *e);
    e->magic = EXEC;
    e->g = g;
    lock();
    g->n_owners++;
    unlock();
    *x = (CUgraphExec)e;
    RET(0);
}
CUresult cuGraphExecUpdate_v2(CUgraphExec x, CUgraph h, CUgraphExecUpdateResultInfo *info)
{
    TRACE(cuGraphExecUpdate_v2, x, h, info);
    exec *e = (exec *)x;
    graph *g = (graph *)h;
    if (e->magic != EXEC || g->magic != GRAPH)
        RET(1);
    lock();
    bool same = g->n == e->g->n;
    for (uint64_t i = 0; same && i < g->n; i++)
        same = strcmp(g->nodes[i].name, e->g->nodes[i].name) == 0;
    if (same) {
        g->n_owners++;
        graph_end(e->g);
        e->g = g;
    }
    unlock();
    if (info) {
        memset(info, 0, sizeof *info);
        info->result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    RET(same ? 0 : 910);
}
/* A block that the graph's own capture asked for later may stand where an earlier one of it stood. */
static bool has_block(const graph *g, uint64_t serial)
{
    for (uint64_t i = 0; i < g->n; i++)
        for (size_t j = 0; j < g->nodes[i].n; j++)
            if (g->nodes[i].uses[j].serial == serial)
                return true;
    return false;
}
static void replay(const graph *g, const node *n, stream *s, uint64_t end)
{
    for (size_t i = 0; i < n->n; i++) {
        const use *u = &n->uses[i];
        block *b = block_at(u->at);
        if (u->bytes < least_checked)
            continue;
        n_replayed++;
        if (!is_mapped(u->at, u->bytes)) {
            n_unmapped++;
            complain("ORACLE: %s of a graph uses %p +%zu, which is not all mapped", n->name, (void *)u->at, u->bytes);
            continue;
        }
        if (b && b->serial == u->serial)
            touch(b, n->name, u->writes);
        else {
            size_t j = block_after(u->at + u->bytes - 1);
            if (j > 0 && blocks[j - 1]->at + blocks[j - 1]->bytes > u->at && !has_block(g, blocks[j - 1]->serial) &&
                n_replay_wrong++ < 12)
                complain("ORACLE: %s of a graph writes to %p +%zu, which is now in another's block", n->name,
                         (void *)u->at, u->bytes);
        }
        flight_add(end, u->at, u->bytes);
        order(s, u->at, u->bytes, BY_PROGRAM, n->name);
    }
}
CUresult cuGraphLaunch(CUgraphExec x, CUstream h)
{
    TRACE(cuGraphLaunch, x, h);
    exec *e = (exec *)x;
    if (!e || e->magic != EXEC)
        RET(1);
    lock();
    stream *s = S(h);
    uint64_t t = give(s, e->g->ns);
    n_replays++;
    for (uint64_t i = 0; checks && t && i < e->g->n; i++)
        replay(e->g, &e->g->nodes[i], s, t);
    unlock();
    RET(0);
}
CUresult cuGraphDestroy(CUgraph h)
{
    TRACE(cuGraphDestroy, h);
    if (!h || ((graph *)h)->magic != GRAPH)
        RET(1);
    lock();
    graph_end((graph *)h);
    unlock();
    RET(0);
}
CUresult cuGraphExecDestroy(CUgraphExec x)
{
    TRACE(cuGraphExecDestroy, x);
    exec *e = (exec *)x;
    if (!e || e->magic != EXEC)
        RET(1);
    lock();
    graph_end(e->g);
    unlock();
    e->magic = 0;
    free(e);
    RET(0);
}
CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *n, size_t *c)
{
    (void)n;
    *c = ((graph *)g)->n;
    return 0;
}

/* ---------------------------------------------------------------- copies and memsets */
static void note_use(const void *at, size_t n, uint64_t end)
{
    if (end)
        flight_add(end, at, n);
}
static void note_range(graph *g, const char *who, const void *from, const void *to)
{
    block *a = checks && from ? block_at(from) : NULL, *b = checks && to ? block_at(to) : NULL;
    node *n = &g->nodes[g->n - 1];
    if (!fk_from_runtime)
        complain("neap has given %s into a capture", who);
    snprintf(n->name, sizeof n->name, "%s", who);
    if (a)
        note_node(n, who, a, false);
    if (b)
        note_node(n, who, b, true);
}
static CUresult copy(void *to, const void *from, size_t n, CUstream sh, bool waits, const char *who)
{
    if (n == 0)
        return 0;
    lock();
    if (fk_from_runtime)
        trace("copy", who, to, n);
    stream *s = S(sh);
    bool dt = is_device(to), df = is_device(from);
    region *hf = df ? NULL : region_at(from), *ht = dt ? NULL : region_at(to);
    bool pageable = (!df && !hf) || (!dt && !ht);
    uint64_t t;
    if (dt && !is_mapped(to, n)) {
        unlock();
        complain("ORACLE: %s%s to %p +%zu, which is not mapped", who, fk_from_runtime ? "" : " (neap's)", to, n);
        return fk_from_runtime ? 700 : 700;
    }
    if (df && !is_mapped(from, n)) {
        unlock();
        complain("ORACLE: %s%s from %p +%zu, which is not mapped", who, fk_from_runtime ? "" : " (neap's)", from, n);
        return 700;
    }
    if (df && !s->capture)
        touch_program_range(who, from, false);
    if (dt && !s->capture)
        touch_program_range(who, to, true);
    if (dt && df)
        t = give(s, 2000 + slow * (double)n / 700);
    else
        t = give_link(s, dt ? 1 : 0, n);
    if (s->capture) {
        note_range(s->capture->g, who, df ? from : NULL, dt ? to : NULL);
        unlock();
        return 0;
    }
    if (df)
        note_use(from, n, t);
    if (dt)
        note_use(to, n, t);
    if (df)
        order(s, from, n, fk_from_runtime ? BY_PROGRAM : NEAP_READS, who);
    if (dt)
        order(s, to, n, fk_from_runtime ? BY_PROGRAM : NEAP_WRITES, who);
    if (df && !dt && fk_from_runtime && reads_zero && n <= (1 << 20))
        memset(to, 0, n); /* no kernel has written it: what is there is chance */
    else
        move_bytes(to, from, n);
    if (dt)
        retag(to);
    unlock();
    if (t && (waits || (pageable && !dt)))
        sleep_until(t);
    return 0;
}
#define P(a) ((void *)(uintptr_t)(a))
CUresult cuMemcpy(CUdeviceptr d, CUdeviceptr s, size_t n)
{
    TRACE(cuMemcpy, d, s, n);
    RET(copy(P(d), P(s), n, 0, true, "memcpy"));
}
CUresult cuMemcpyAsync(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h)
{
    TRACE(cuMemcpyAsync, d, s, n, h);
    RET(copy(P(d), P(s), n, h, false, "memcpy"));
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *s, size_t n)
{
    TRACE(cuMemcpyHtoD_v2, d, s, n);
    RET(copy(P(d), s, n, 0, true, "memcpy.htod"));
}
CUresult cuMemcpyDtoH_v2(void *d, CUdeviceptr s, size_t n)
{
    TRACE(cuMemcpyDtoH_v2, d, s, n);
    RET(copy(d, P(s), n, 0, true, "memcpy.dtoh"));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr d, CUdeviceptr s, size_t n)
{
    TRACE(cuMemcpyDtoD_v2, d, s, n);
    RET(copy(P(d), P(s), n, 0, false, "memcpy.dtod"));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream h)
{
    TRACE(cuMemcpyHtoDAsync_v2, d, s, n, h);
    RET(copy(P(d), s, n, h, false, "memcpy.htod"));
}
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream h)
{
    TRACE(cuMemcpyDtoHAsync_v2, d, s, n, h);
    RET(copy(d, P(s), n, h, false, "memcpy.dtoh"));
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream h)
{
    TRACE(cuMemcpyDtoDAsync_v2, d, s, n, h);
    RET(copy(P(d), P(s), n, h, false, "memcpy.dtod"));
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *m, CUstream h)
{
    TRACE(cuMemcpy2DAsync_v2, m, h);
    const char *from = m->srcMemoryType == CU_MEMORYTYPE_HOST ? m->srcHost : P(m->srcDevice);
    char *to = m->dstMemoryType == CU_MEMORYTYPE_HOST ? m->dstHost : P(m->dstDevice);
    int r = 0;
    for (size_t i = 0; i < m->Height && r == 0; i++)
        r = copy(to + i * m->dstPitch, from + i * m->srcPitch, m->WidthInBytes, h, false, "memcpy.2d");
    RET(r);
}
static CUresult fill(void *d, const void *pattern, size_t width, size_t n, CUstream h, bool waits)
{
    if (n == 0)
        return 0;
    lock();
    if (fk_from_runtime)
        trace("copy", "memset", d, n);
    if (!is_mapped(d, n)) {
        unlock();
        complain("ORACLE: a memset%s of %p +%zu, which is not mapped", fk_from_runtime ? "" : " (neap's)", d, n);
        return 700;
    }
    if (!S(h)->capture)
        touch_program_range("memset", d, true);
    uint64_t t = give(S(h), 2000 + slow * (double)n / 1400);
    if (S(h)->capture) {
        note_range(S(h)->capture->g, "memset", NULL, d);
        unlock();
        return 0;
    }
    note_use(d, n, t);
    order(S(h), d, n, fk_from_runtime ? BY_PROGRAM : NEAP_WRITES, "memset");
    set_bytes(d, pattern, width, n);
    retag(d);
    unlock();
    if (waits && t)
        sleep_until(t);
    return 0;
}
CUresult cuMemsetD8_v2(CUdeviceptr d, unsigned char v, size_t n)
{
    TRACE(cuMemsetD8_v2, d, v, n);
    RET(fill(P(d), &v, 1, n, 0, false));
}
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char v, size_t n, CUstream h)
{
    TRACE(cuMemsetD8Async, d, v, n, h);
    RET(fill(P(d), &v, 1, n, h, false));
}
CUresult cuMemsetD16Async(CUdeviceptr d, unsigned short v, size_t n, CUstream h)
{
    TRACE(cuMemsetD16Async, d, v, n, h);
    RET(fill(P(d), &v, 2, 2 * n, h, false));
}
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream h)
{
    TRACE(cuMemsetD32Async, d, v, n, h);
    RET(fill(P(d), &v, 4, 4 * n, h, false));
}

/* ---------------------------------------------------------------- kernels */
fk_kernel *fk_kernel_make(const char *name, void *image, const void *host)
{
    fk_kernel *k = calloc(1, sizeof *k);
    k->magic = FK_KERNEL;
    k->name = strdup(name);
    k->image = image;
    k->host = host;
    return k;
}
void fk_kernel_look(fk_kernel *k)
{
    if (k->known)
        return;
    k->known = k->image && fk_fatbin_layout(k->image, k->name, fk_arch, &k->params, &k->n) ? 1 : -1;
    if (k->known < 0)
        complain("no layout for %s", k->name);
}
CUfunction fk_synthetic(const char *name, int n_pointers, int extra, bool as_struct)
{
    static struct {
        char key[200];
        fk_kernel *k;
    } all[4096];
    static int n_all;
    char key[200];
    snprintf(key, sizeof key, "%s/%d/%d/%d", name, n_pointers, extra, as_struct);
    lock();
    for (int i = 0; i < n_all; i++)
        if (strcmp(all[i].key, key) == 0) {
            unlock();
            return (CUfunction)all[i].k;
        }
    fk_kernel *k = fk_kernel_make(name, NULL, NULL);
    k->known = 1;
    k->n = as_struct ? 1 : (uint32_t)n_pointers + (extra > 0);
    k->params = calloc(k->n, sizeof *k->params);
    if (as_struct)
        k->params[0] = (fk_param){0, (uint32_t)(8 * n_pointers + extra)};
    else {
        for (int i = 0; i < n_pointers; i++)
            k->params[i] = (fk_param){(uint32_t)(8 * i), 8};
        if (extra)
            k->params[n_pointers] = (fk_param){(uint32_t)(8 * n_pointers), (uint32_t)extra};
    }
    strcpy(all[n_all].key, key);
    all[n_all++].k = k;
    unlock();
    return (CUfunction)k;
}
static const char *name_of(CUfunction f)
{
    fk_kernel *k = (fk_kernel *)f;
    return k && k->magic == FK_KERNEL ? k->name : NULL;
}
static CUresult param_info(fk_kernel *k, size_t i, size_t *offset, size_t *bytes)
{
    if (!k || k->magic != FK_KERNEL)
        return 400;
    fk_kernel_look(k);
    if (k->known < 0)
        return 500;
    if (i >= k->n)
        return 1;
    if (offset)
        *offset = k->params[i].offset;
    if (bytes)
        *bytes = k->params[i].size;
    return 0;
}
CUresult cuKernelGetParamInfo(CUkernel f, size_t i, size_t *offset, size_t *bytes)
{
    TRACE(cuKernelGetParamInfo, f, i, offset, bytes);
    RET(param_info((fk_kernel *)f, i, offset, bytes));
}
CUresult cuFuncGetParamInfo(CUfunction f, size_t i, size_t *offset, size_t *bytes)
{
    TRACE(cuFuncGetParamInfo, f, i, offset, bytes);
    RET(param_info((fk_kernel *)f, i, offset, bytes));
}
static __thread double hinted_ns;
void fk_hint_ns(double ns)
{
    hinted_ns = ns;
}
static CUresult launch(CUfunction f, double threads, CUstream h, void **params, void **extra)
{
    fk_kernel *k = (fk_kernel *)f;
    double ns = base_ns + slow * (k->ns > 0 ? k->ns : hinted_ns > 0 ? hinted_ns : threads * thread_ns);
    hinted_ns = 0;
    (void)extra;
    lock();
    k->n_launched++;
    trace("launch", k->name, h, 0);
    if (checks && params) {
        unlock();
        fk_kernel_look(k);
        lock();
    }
    bool captured = S(h)->capture != NULL;
    for (uint32_t i = 0; checks && params && !captured && i < k->n && k->known > 0; i++)
        touch_words(k->name, params[i], k->params[i].size);
    uint64_t t = give(S(h), ns);
    if (checks && params && captured) {
        graph *g = S(h)->capture->g;
        for (uint32_t i = 0; i < k->n && k->known > 0; i++)
            note_words(&g->nodes[g->n - 1], k->name, params[i], k->params[i].size);
    }
    if (checks && params && t) { /* what it uses must stay mapped until then */
        for (uint32_t i = 0; i < k->n && k->known > 0; i++)
            for (size_t j = 0; j + 8 <= k->params[i].size; j += 8) {
                char *w;
                memcpy(&w, (char *)params[i] + j, 8);
                block *b = (uintptr_t)w > 0x10000 && (uintptr_t)w >> 47 == 0 ? block_at(w) : NULL;
                if (b && b->bytes >= least_checked) {
                    flight_add(t, b->at, b->bytes);
                    order(S(h), b->at, b->bytes, BY_PROGRAM, k->name);
                }
            }
    }
    unlock();
    return 0;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned sh, CUstream s, void **params, void **extra)
{
    static int id = -2;
    if (id == -2)
        id = id_of("cuLaunchKernel");
    struct __attribute__((aligned(8))) {
        CUfunction f;
        unsigned a[7];
        CUstream s;
        void **p;
        void **e;
    } args = {f, {gx, gy, gz, bx, by, bz, sh}, s, params, extra};
    __attribute__((cleanup(fk_cleanup)))
    fk_call c_ = {.id = id, .name = "cuLaunchKernel", .params = &args, .symbol = name_of(f)};
    if (fk_enabled[id])
        fk_enter_slow(&c_);
    RET(launch(f, (double)gx * gy * gz * bx * by * bz, s, params, extra));
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned sh, CUstream s, void **params)
{
    static int id = -2;
    if (id == -2)
        id = id_of("cuLaunchCooperativeKernel");
    struct __attribute__((aligned(8))) {
        CUfunction f;
        unsigned a[7];
        CUstream s;
        void **p;
    } args = {f, {gx, gy, gz, bx, by, bz, sh}, s, params};
    __attribute__((cleanup(fk_cleanup)))
    fk_call c_ = {.id = id, .name = "cuLaunchCooperativeKernel", .params = &args, .symbol = name_of(f)};
    if (fk_enabled[id])
        fk_enter_slow(&c_);
    RET(launch(f, (double)gx * gy * gz * bx * by * bz, s, params, NULL));
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    TRACE_AS("cuLaunchKernelEx", name_of(f), c, f, params, extra);
    RET(launch(f, (double)c->gridDimX * c->gridDimY * c->gridDimZ * c->blockDimX * c->blockDimY * c->blockDimZ,
               c->hStream, params, extra));
}
CUresult fk_launch(CUstream s, const char *name, double ns, int n, const void *const *pointers)
{
    struct {
        const void *p[16];
        int rest[8];
    } all = {0};
    void *params[1] = {&all};
    for (int i = 0; i < n; i++)
        all.p[i] = pointers[i];
    /* the numbers come first in some structs and last in others; here the pointers do, and the rest is small */
    CUfunction f = fk_synthetic(name, n, 0, true);
    fk_hint_ns(ns);
    return cuLaunchKernel(f, 64, 1, 1, 256, 1, 1, 0, s, params, NULL);
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f)
{
    (void)f;
    switch ((int)a) {
    case 0:
        *v = 1024;
        break;
    case 1:
        *v = 0;
        break;
    case 4:
        *v = 64;
        break;
    case 5:
    case 6:
        *v = fk_arch;
        break;
    case 8:
        *v = 65536;
        break;
    default:
        *v = 0;
    }
    return 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v)
{
    (void)f;
    (void)a;
    (void)v;
    return 0;
}
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache c)
{
    (void)f;
    (void)c;
    return 0;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int b, size_t s)
{
    (void)f;
    (void)b;
    (void)s;
    *n = 2;
    return 0;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, CUfunction f, int b, size_t s, unsigned fl)
{
    (void)f;
    (void)b;
    (void)s;
    (void)fl;
    *n = 2;
    return 0;
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *m)
{
    *m = CU_MODULE_LAZY_LOADING;
    return 0;
}
CUresult cuProfilerStart(void)
{
    return 0;
}
CUresult cuProfilerStop(void)
{
    return 0;
}
CUresult cuGetProcAddress_v2(const char *name, void **f, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *q)
{
    char b[200];
    void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const char *suffixes[] = {"_v3", "_v2", ""};
    (void)version;
    (void)flags;
    *f = NULL;
    for (int i = 0; i < 3 && !*f; i++) {
        snprintf(b, sizeof b, "%s%s", name, suffixes[i]);
        *f = dlsym(self, b);
    }
    if (q)
        *q = *f ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *f ? 0 : 500;
}
