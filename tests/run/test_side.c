/* test_side.c: small blocks beside plans: where they stand, how heaps grow, and that reuse is ordered.
 *
 * The random programs use blocks on any stream, ordered as a program must order them: a stream that uses a block waits for
 * the one it was malloc'd on and for its other users, the one that frees it for all of them. The simulated device finds
 * two uses of a byte that nothing orders; the work itself finds foreign bytes. */
#include <string.h>

#include "base/rng.h"
#include "device/faulty.h"
#include "run/manager.h"
#include "testing.h"

enum { PAGE = 4096, MIN_BLOCK = 8192, UNIT = 512, MOST = 300, N_STREAMS = 4 };

typedef struct scene {
    np_device *raw;
    neap_device *m;
} scene;

static neap_status try_open(scene *s, const char *name, const neap_memory *memory)
{
    neap_device_options options = {.min_block = MIN_BLOCK, .refinements = UINT32_MAX};
    neap_status status = np_device_open(name, memory, NULL, &s->raw);
    if (status == NEAP_OK) {
        status = np_manager_open(s->raw, &options, NULL, &s->m);
    }
    if (status == NEAP_OK) {
        np_beneath_begin(s->m, 1, 0);
    }
    return status;
}

static void open_scene(scene *s, const char *name)
{
    ASSERT_OK(try_open(s, name, NULL));
}

static void assert_no_problem(const scene *s)
{
    const char *problem = s->raw->api->problem(s->raw);
    if (problem) {
        test_fail(__FILE__, __LINE__, "%s", problem);
    }
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_side_is_valid(&s->m->side));
    ASSERT_TRUE(np_manager_is_valid(s->m));
    assert_no_problem(s);
    neap_close(s->m);
}

static char *take(scene *s, uint64_t bytes, np_stream stream)
{
    char *address = NULL;
    ASSERT_OK(np_side_malloc(s->m, bytes, stream, &address));
    ASSERT_EQ((uintptr_t)address % UNIT, 0);
    ASSERT_TRUE(np_side_has(s->m, address));
    ASSERT_EQ(np_side_bytes(s->m, address), (bytes + UNIT - 1) / UNIT * UNIT);
    ASSERT_TRUE(np_side_is_valid(&s->m->side));
    return address;
}

static void give(scene *s, const char *address, np_stream stream)
{
    ASSERT_OK(np_side_free(s->m, address, stream));
    ASSERT_EQ(np_side_bytes(s->m, address), 0);
    ASSERT_TRUE(np_side_is_valid(&s->m->side));
}

/* ---- places ---- */

static void test_places(void **state)
{
    scene s;
    char *a;
    char *b;
    char *c;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB,streams=2");
    ASSERT_FALSE(np_side_has(s.m, (char *)&s));
    ASSERT_EQ(s.m->pages.n_held, 0);
    a = take(&s, 1, 0);
    b = take(&s, 600, 0);
    ASSERT_EQ(b - a, UNIT);
    ASSERT_EQ(s.m->side.live_bytes, 3 * UNIT);
    ASSERT_EQ(s.m->side.n_live, 2);
    ASSERT_EQ(s.m->pages.n_held, 2 * MIN_BLOCK / PAGE); /* a slab holds two of the largest */
    c = take(&s, 1, 1);                                 /* a heap, and a slab, of its own */
    ASSERT_EQ(c - a, 2 * MIN_BLOCK);
    ASSERT_EQ(s.m->side.slabs.n, 2);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_side_free(s.m, a + 1, 0));
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_side_free(s.m, b + UNIT, 0)); /* inside a block */
    ASSERT_FALSE(np_side_has(s.m, c + 2 * MIN_BLOCK));
    give(&s, a, 0);
    ASSERT_STATUS(NEAP_BAD_ARGUMENT, np_side_free(s.m, a, 0)); /* twice */
    ASSERT_TRUE(take(&s, 512, 0) == a);
    give(&s, a, 0);
    give(&s, b, 0);
    ASSERT_TRUE(take(&s, 2 * MIN_BLOCK, 0) == a); /* all in one piece again */
    ASSERT_EQ(s.m->side.peak_bytes, 2 * MIN_BLOCK + UNIT);
    ASSERT_EQ(s.m->side.slabs.n, 2);
    give(&s, a, 0);
    give(&s, c, 1);
    ASSERT_EQ(s.m->side.live_bytes, 0);
    close_scene(&s);
}

/* On a device with large pages a slab is a page at the least. */
static void test_large_pages(void **state)
{
    scene s;
    char *a;
    (void)state;
    open_scene(&s, "sim:page=4MiB,memory=64MiB");
    a = take(&s, 100, 0);
    ASSERT_EQ(s.m->side.slab_bytes, 4 << 20);
    give(&s, a, 0);
    close_scene(&s);
    open_scene(&s, "sim:page=2MiB,memory=64MiB");
    a = take(&s, 100, 0);
    ASSERT_EQ(s.m->side.slab_bytes, 2 << 20);
    ASSERT_EQ(s.m->pages.n_held, 1);
    give(&s, a, 0);
    close_scene(&s);
}

/* What they hold is beside the arena, and under a limit others make room for it. */
static void test_limit(void **state)
{
    neap_device_options options = {.min_block = MIN_BLOCK, .limit = (uint64_t)8 * PAGE};
    scene s;
    neap_work work = {.name = "fill", .duration_ns = 1000};
    neap_use use = {.kind = NEAP_ACCESS_WRITE};
    neap_block *large;
    char *a;
    (void)state;
    ASSERT_OK(np_device_open("sim:page=4096,memory=1MiB", NULL, NULL, &s.raw));
    ASSERT_OK(np_manager_open(s.raw, &options, NULL, &s.m));
    np_beneath_begin(s.m, 1, 0);
    ASSERT_OK(neap_malloc(s.m, 6 * PAGE, &large));
    use.block = large;
    ASSERT_OK(neap_exec(s.m, &work, &use, 1));
    ASSERT_EQ(s.m->pages.n_held, 6);
    a = take(&s, 100, 0);
    ASSERT_EQ(s.m->pages.n_held, 4);
    ASSERT_FALSE(np_block_is_here(large)); /* it left for it */
    give(&s, a, 0);
    ASSERT_OK(neap_free(s.m, large));
    close_scene(&s);
}

/* ---- order ---- */

typedef struct job {
    unsigned char *at;
    uint64_t bytes;
    unsigned char expected; /* 0: anything */
    unsigned char next;     /* 0: not written */
    uint32_t *n_bad;
} job;

static void run_job(void *arg)
{
    const job *j = arg;
    for (uint64_t i = 0; i < j->bytes; i += 64) {
        *j->n_bad += j->expected && j->at[i] != j->expected;
        if (j->next) {
            j->at[i] = j->next;
        }
    }
}

static uint64_t work_on(scene *s, char *at, uint64_t bytes, np_stream stream, unsigned char expected,
                        unsigned char next, uint32_t *n_bad)
{
    job j = {(unsigned char *)at, bytes, expected, next, n_bad};
    np_touch touch = {at, bytes, next != 0};
    np_task task = {
        .run = run_job, .arg = &j, .arg_bytes = sizeof j, .duration_ns = 50000, .touches = &touch, .n_touches = 1};
    uint64_t mark;
    ASSERT_OK(s->raw->api->launch(s->raw, stream, &task, &mark));
    return mark;
}

/* A block that was used and freed on another stream: its own waits before the bytes are used again. Taken out (the wait
 * answered, and not given) the device finds it. */
static neap_status no_wait(np_device *device, np_stream stream, np_stream other, uint64_t mark)
{
    (void)device;
    (void)stream;
    (void)other;
    (void)mark;
    return NEAP_OK;
}

static void test_freed_elsewhere(void **state)
{
    (void)state;
    for (int is_without = 0; is_without < 2; is_without++) {
        scene s;
        uint32_t n_bad = 0;
        np_device_interface api;
        const np_device_interface *real;
        char *a;
        open_scene(&s, "sim:page=4096,memory=1MiB,streams=2");
        real = s.raw->api;
        api = *real;
        a = take(&s, 700, 0);
        ASSERT_OK(s.raw->api->wait(s.raw, 1, 0, s.raw->api->mark(s.raw, 0)));
        (void)work_on(&s, a, 700, 1, 0, 7, &n_bad);
        api.wait = is_without ? no_wait : api.wait;
        s.raw->api = &api;
        give(&s, a, 1);
        s.raw->api = real;
        ASSERT_TRUE(take(&s, 700, 0) == a);
        (void)work_on(&s, a, 700, 0, 0, 8, &n_bad);
        if (is_without) {
            ASSERT_TRUE(s.raw->api->problem(s.raw) != NULL);
            ASSERT_CONTAINS(s.raw->api->problem(s.raw), "nothing orders the two");
            neap_close(s.m);
        } else {
            close_scene(&s);
        }
    }
}

/* A stream that was told to wait, and has no work of its own, frees: what it waited for comes before the bytes are used
 * again. PyTorch frees so what several streams have used. */
static void test_freed_by_idle_stream(void **state)
{
    scene s;
    uint32_t n_bad = 0;
    uint64_t mark;
    char *a;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB,streams=3");
    a = take(&s, 700, 0);
    mark = work_on(&s, a, 700, 1, 0, 7, &n_bad);
    ASSERT_OK(s.raw->api->wait(s.raw, 2, 1, mark));
    give(&s, a, 2);
    ASSERT_TRUE(take(&s, 700, 0) == a);
    (void)work_on(&s, a, 700, 0, 0, 8, &n_bad);
    close_scene(&s);
}

/* What was asked for without a stream is for any stream at once, and was used by any: when it is freed, or freed without a
 * stream, all work is done. */
static void test_without_stream(void **state)
{
    static const np_stream streams[][2] = {
        {NP_SIDE_NO_STREAM, NP_SIDE_NO_STREAM}, {NP_SIDE_NO_STREAM, 1}, {0, NP_SIDE_NO_STREAM},
        {NP_SIDE_CAPTURED, NP_SIDE_CAPTURED},   {NP_SIDE_CAPTURED, 1},  {0, NP_SIDE_CAPTURED}};
    (void)state;
    for (int i = 0; i < 6; i++) {
        scene s;
        uint32_t n_bad = 0;
        uint64_t mark;
        char *a;
        open_scene(&s, "sim:page=4096,memory=1MiB,streams=3");
        a = take(&s, 700, streams[i][0]);
        ASSERT_EQ(np_side_is_captured(s.m, a), streams[i][0] == NP_SIDE_CAPTURED);
        mark = work_on(&s, a, 700, 1, 0, 7, &n_bad);
        ASSERT_FALSE(s.raw->api->is_done(s.raw, 1, mark));
        give(&s, a, streams[i][1]);
        ASSERT_TRUE(s.raw->api->is_done(s.raw, 1, mark));
        ASSERT_TRUE(take(&s, 700, streams[i][0]) == a);
        (void)work_on(&s, a, 700, 2, 7, 8, &n_bad);
        ASSERT_OK(np_drain(s.m));
        ASSERT_EQ(n_bad, 0);
        close_scene(&s);
    }
}

/* Where the device cannot be told to wait, the host waits; where that fails too, the bytes are never used again. */
static void test_wait_fails(void **state)
{
    scene s;
    neap_device_options options = {.min_block = MIN_BLOCK};
    uint32_t n_bad = 0;
    char *a;
    (void)state;
    ASSERT_OK(np_device_open("sim:page=4096,memory=1MiB,streams=2", NULL, NULL, &s.raw));
    s.raw = faulty_wrap(s.raw);
    ASSERT_OK(np_manager_open(s.raw, &options, NULL, &s.m));
    a = take(&s, 700, 0);
    (void)work_on(&s, a, 700, 1, 0, 7, &n_bad);
    faulty_set(s.raw, &(faulty_plan){.calls = 1u << FAULTY_WAIT, .every = 1});
    give(&s, a, 1);
    faulty_set(s.raw, &(faulty_plan){0});
    ASSERT_TRUE(take(&s, 700, 0) == a);
    (void)work_on(&s, a, 700, 0, 7, 8, &n_bad);
    ASSERT_OK(np_drain(s.m));
    ASSERT_EQ(n_bad, 0);
    give(&s, a, 0);
    close_scene(&s);
}

/* ---- random programs ---- */

typedef struct held {
    char *address;
    uint64_t bytes;
    np_stream own;
    unsigned char value; /* 0: never written */
    uint64_t used[N_STREAMS];
} held;

typedef struct program {
    scene s;
    np_rng rng;
    held blocks[MOST];
    uint32_t n;
    unsigned char next;
    uint32_t n_bad;
} program;

static np_stream any_stream(program *p)
{
    return (np_stream)np_rng_below(&p->rng, N_STREAMS);
}

/* What a program does with an event: it is recorded now, after all that the stream was told, its waits included. */
static uint64_t record(program *p, np_stream stream)
{
    np_task task = {.duration_ns = 0};
    uint64_t mark;
    ASSERT_OK(p->s.raw->api->launch(p->s.raw, stream, &task, &mark));
    return mark;
}

/* `stream` comes after all that used the block. No work follows the wait: as often as not, the free is all there is. */
static void order(program *p, const held *h, np_stream stream)
{
    for (np_stream other = 0; other < N_STREAMS; other++) {
        if (other != stream && h->used[other] > 0) {
            ASSERT_OK(p->s.raw->api->wait(p->s.raw, stream, other, h->used[other]));
        }
    }
}

static void random_malloc(program *p)
{
    held *h = &p->blocks[p->n];
    uint64_t bytes = 1 + np_rng_below(&p->rng, np_rng_below(&p->rng, 2) ? 2000 : MIN_BLOCK - 1);
    np_stream own = any_stream(p);
    if (p->n < MOST) {
        *h = (held){.bytes = bytes, .own = own, .address = take(&p->s, bytes, own)};
        h->used[own] = record(p, own);
        for (uint32_t i = 0; i < p->n; i++) {
            ASSERT_TRUE(h->address + h->bytes <= p->blocks[i].address ||
                        p->blocks[i].address + p->blocks[i].bytes <= h->address);
        }
        p->n++;
    }
}

static void random_use(program *p)
{
    held *h = &p->blocks[np_rng_below(&p->rng, p->n)];
    np_stream stream = any_stream(p);
    unsigned char next = np_rng_below(&p->rng, 2) ? 0 : p->next;
    p->next = p->next == 255 ? 1 : p->next + 1;
    order(p, h, stream);
    h->used[stream] = work_on(&p->s, h->address, h->bytes, stream, h->value, next, &p->n_bad);
    h->value = next ? next : h->value;
}

static void random_free(program *p)
{
    held *h = &p->blocks[np_rng_below(&p->rng, p->n)];
    np_stream stream = np_rng_below(&p->rng, 2) ? h->own : any_stream(p);
    order(p, h, stream);
    give(&p->s, h->address, stream);
    *h = p->blocks[--p->n];
}

static void test_random(void **state)
{
    int n_rounds = (int)(TEST_SANITIZED ? test_rounds(100, 1000) : test_rounds(2000, 12000));
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        static program p;
        p = (program){.rng = np_rng_make(seed), .next = 1};
        open_scene(&p.s, seed % 2 ? "sim:page=4096,memory=8MiB,streams=4" : "sim:page=16384,memory=8MiB,streams=4");
        for (int round = 0; round < n_rounds; round++) {
            uint64_t dice = np_rng_below(&p.rng, 100);
            if (dice < 35 || p.n == 0) {
                random_malloc(&p);
            } else if (dice < 67) {
                random_use(&p);
            } else {
                random_free(&p);
            }
            assert_no_problem(&p.s);
        }
        ASSERT_EQ(p.s.m->side.n_live, p.n);
        while (p.n > 0) {
            random_free(&p);
        }
        ASSERT_OK(np_drain(p.s.m));
        ASSERT_EQ(p.n_bad, 0);
        ASSERT_EQ(p.s.m->side.live_bytes, 0);
        close_scene(&p.s);
    }
}

/* ---- failures ---- */

/* Forty mallocs and frees; what fails is tried again once memory is there. True where an allocation was made to fail. */
static bool use_side(test_memory *memory, size_t fails_at)
{
    scene s;
    char *addresses[40];
    bool has_failed;
    ASSERT_OK(try_open(&s, "sim:page=4096,memory=1MiB,streams=2", &memory->hook));
    memory->fail_at = memory->n_calls + fails_at;
    for (int i = 0; i < 40; i++) {
        np_stream stream = (np_stream)(i % 2);
        neap_status status = np_side_malloc(s.m, 3000 + 40 * (uint64_t)i, stream, &addresses[i]);
        if (status != NEAP_OK) {
            ASSERT_EQ(status, NEAP_NO_MEMORY);
            ASSERT_TRUE(np_side_is_valid(&s.m->side));
            ASSERT_TRUE(np_manager_is_valid(s.m));
            ASSERT_EQ(s.m->side.n_live, i);
            ASSERT_OK(np_side_malloc(s.m, 3000 + 40 * (uint64_t)i, stream, &addresses[i]));
        }
    }
    ASSERT_TRUE(np_manager_is_valid(s.m));
    for (int i = 0; i < 40; i++) {
        ASSERT_OK(np_side_free(s.m, addresses[i], 0));
    }
    has_failed = memory->n_failed > 0;
    close_scene(&s);
    return has_failed;
}

static void test_host_memory(void **state)
{
    size_t n = 0;
    bool goes_on = true;
    (void)state;
    while (goes_on) {
        test_memory memory;
        test_memory_init(&memory);
        goes_on = use_side(&memory, ++n);
        test_memory_finish(&memory);
    }
    ASSERT_GT(n, 20);
}

/* The device is full: nothing is lost, and what fits still does. */
static void test_full(void **state)
{
    scene s;
    char *addresses[64];
    char *more = NULL;
    uint32_t n = 0;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=128KiB,streams=2");
    while (n < 64 && np_side_malloc(s.m, MIN_BLOCK, 0, &addresses[n]) == NEAP_OK) {
        n++;
    }
    ASSERT_EQ(n, 16);
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_side_malloc(s.m, 1, 1, &more));
    ASSERT_TRUE(np_side_is_valid(&s.m->side));
    give(&s, addresses[3], 0);
    addresses[3] = take(&s, MIN_BLOCK, 0);
    for (uint32_t i = 0; i < n; i++) {
        give(&s, addresses[i], 0);
    }
    close_scene(&s);
}

/* A walk that finds nothing is no walk. */
static void test_is_valid(void **state)
{
    scene s;
    char *a;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=1MiB,streams=2");
    a = take(&s, 100, 0);
    s.m->side.live_bytes += UNIT;
    ASSERT_FALSE(np_side_is_valid(&s.m->side));
    s.m->side.live_bytes -= UNIT;
    s.m->side.n_live++;
    ASSERT_FALSE(np_side_is_valid(&s.m->side));
    s.m->side.n_live--;
    s.m->side.slabs.items[0].stream = 1;
    ASSERT_FALSE(np_side_is_valid(&s.m->side));
    s.m->side.slabs.items[0].stream = 0;
    s.m->side.slabs.items[0].block_at[1] = s.m->side.slabs.items[0].block_at[0];
    ASSERT_FALSE(np_side_is_valid(&s.m->side));
    s.m->side.slabs.items[0].block_at[1] = NP_HEAP_NONE;
    give(&s, a, 0);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_large_pages),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_freed_elsewhere),
        cmocka_unit_test(test_freed_by_idle_stream),
        cmocka_unit_test(test_without_stream),
        cmocka_unit_test(test_wait_fails),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
