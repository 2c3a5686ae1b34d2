/* test_order.c: every kind of mistake is found and named; programs that are in order are left alone; and on random small
 * programs the first mistake is the one that comparing all pairs of uses finds. */
#include "device/order.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { PAGE = 64, N_PAGES = 8 };

static char space[4 * N_PAGES * PAGE]; /* addresses: nothing is ever stored there */
static char host[1024];

#define ARENA space
#define VIEW (space + 2 * N_PAGES * PAGE)

/* Pages 0 to 7 are committed and mapped at ARENA; VIEW is reserved. */
static np_order *make_order(void)
{
    np_order *order;
    ASSERT_OK(np_order_create(np_memory_or_default(NULL), PAGE, &order));
    ASSERT_OK(np_order_commit(order, 0, N_PAGES));
    ASSERT_OK(np_order_reserve(order, VIEW, N_PAGES));
    ASSERT_OK(np_order_reserve(order, ARENA, N_PAGES));
    np_order_map(order, ARENA, 0, N_PAGES);
    return order;
}

static uint64_t marks[NP_N_STREAMS];

static np_order *begin(void)
{
    memset(marks, 0, sizeof marks);
    return make_order();
}

static uint64_t use(np_order *order, np_stream stream, const char *at, uint64_t bytes, bool writes)
{
    np_touch touch = {at, bytes, writes};
    bool can_run;
    ASSERT_OK(np_order_launch(order, stream, ++marks[stream], &touch, 1, &can_run));
    return marks[stream];
}

static uint64_t copy(np_order *order, np_stream stream, const char *device, const char *on_host, uint64_t bytes)
{
    bool is_out = stream == NP_STREAM_OUT;
    bool can_run;
    ASSERT_OK(np_order_copy(order, stream, ++marks[stream], is_out ? on_host : device, is_out ? device : on_host, bytes,
                            &can_run));
    return marks[stream];
}

static void expect(np_order *order, const char *problem)
{
    ASSERT_TRUE(np_order_is_valid(order));
    if (problem) {
        ASSERT_CONTAINS(np_order_problem(order), problem);
    } else if (np_order_problem(order)) {
        test_fail(__FILE__, __LINE__, "found: %s", np_order_problem(order));
    }
    np_order_free(order);
}

/* ---- two uses ---- */

static void test_unordered_uses(void **state)
{
    static const struct {
        bool first_writes;
        bool second_writes;
        const char *problem;
    } cases[] = {
        {false, false, NULL},
        {true, false, "work 1 of stream 1 reads bytes 10 to 20 of device memory, which work 1 of stream 0 writes"},
        {false, true, "work 1 of stream 1 writes bytes 10 to 20 of device memory, which work 1 of stream 0 reads"},
        {true, true, "work 1 of stream 1 writes bytes 10 to 20 of device memory, which work 1 of stream 0 writes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        np_order *order = begin();
        use(order, 0, ARENA, 20, cases[i].first_writes);
        use(order, 1, ARENA + 10, 20, cases[i].second_writes);
        expect(order, cases[i].problem);
        order = begin(); /* with a wait */
        np_order_wait(order, 1, 0, use(order, 0, ARENA, 20, cases[i].first_writes));
        use(order, 1, ARENA + 10, 20, cases[i].second_writes);
        expect(order, NULL);
        order = begin(); /* neighbours */
        use(order, 0, ARENA, 20, cases[i].first_writes);
        use(order, 1, ARENA + 20, 20, cases[i].second_writes);
        expect(order, NULL);
        order = begin(); /* one stream */
        use(order, 0, ARENA, 20, cases[i].first_writes);
        use(order, 0, ARENA + 10, 20, cases[i].second_writes);
        expect(order, NULL);
    }
}

static void test_waits_pass_on(void **state)
{
    np_order *order = begin();
    uint64_t mark = use(order, 0, ARENA, 20, true);
    (void)state;
    np_order_wait(order, 1, 0, mark);
    mark = use(order, 1, ARENA + 100, 20, true);
    np_order_wait(order, 2, 1, mark); /* 2 follows 1, which follows 0 */
    use(order, 2, ARENA, 20, true);
    expect(order, NULL);

    order = begin();
    mark = use(order, 0, ARENA + 100, 1, true);
    use(order, 0, ARENA, 20, true);
    np_order_wait(order, 1, 0, mark); /* not the last */
    use(order, 1, ARENA, 20, false);
    expect(order, "work 1 of stream 1 reads bytes 0 to 20 of device memory, which work 2 of stream 0 writes");

    order = begin();
    mark = use(order, 1, ARENA + 100, 1, true);
    np_order_wait(order, 1, 0, use(order, 0, ARENA, 20, true)); /* after that work was given: it does not pass on */
    np_order_wait(order, 2, 1, mark);
    use(order, 2, ARENA, 20, false);
    expect(order, "nothing orders the two");
}

/* A read does not stand for the write before it. */
static void test_a_read_hides_no_write(void **state)
{
    np_order *order = begin();
    uint64_t mark = use(order, 0, ARENA, 20, true);
    (void)state;
    np_order_wait(order, 1, 0, mark);
    use(order, 1, ARENA, 20, false);
    use(order, 2, ARENA, 20, false);
    expect(order, "work 1 of stream 2 reads bytes 0 to 20 of device memory, which work 1 of stream 0 writes");

    order = begin(); /* all readers are waited for, not just the last */
    mark = use(order, 0, ARENA, 20, false);
    np_order_wait(order, 2, 1, use(order, 1, ARENA, 20, false));
    use(order, 2, ARENA, 20, true);
    expect(order, "work 1 of stream 2 writes bytes 0 to 20 of device memory, which work 1 of stream 0 reads");

    order = begin();
    np_order_wait(order, 2, 0, use(order, 0, ARENA, 20, false));
    np_order_wait(order, 2, 1, use(order, 1, ARENA, 20, false));
    use(order, 2, ARENA, 20, true);
    expect(order, NULL);
}

static void test_addresses_of_one_page_are_one(void **state)
{
    np_order *order = begin();
    (void)state;
    np_order_map(order, VIEW, 3, 2);
    use(order, 0, VIEW + 10, PAGE, true);
    use(order, 1, ARENA + 3 * PAGE, 10, true); /* just before it */
    use(order, 1, ARENA + 4 * PAGE + 9, 1, true);
    expect(order, "work 2 of stream 1 writes bytes 265 to 266 of device memory, which work 1 of stream 0 writes");

    order = begin(); /* and one address on two pages is two */
    np_order_map(order, VIEW, 3, 1);
    np_order_host_knows(order, 0, use(order, 0, VIEW, PAGE, true));
    np_order_map(order, VIEW, 4, 1);
    use(order, 1, VIEW, PAGE, true);
    expect(order, NULL);
}

static void test_uses_over_scattered_pages(void **state)
{
    np_order *order = begin();
    (void)state;
    np_order_map(order, VIEW, 6, 1); /* pages 6, 2, 3 */
    np_order_map(order, VIEW + PAGE, 2, 2);
    use(order, 0, VIEW + 32, 2 * PAGE, true); /* 32 bytes of 6, all of 2, 32 bytes of 3 */
    use(order, 1, ARENA + 6 * PAGE, 32, true);
    use(order, 1, ARENA + 3 * PAGE + 32, 32, true);
    use(order, 1, ARENA, 2 * PAGE, true);
    use(order, 1, ARENA + 7 * PAGE, PAGE, true);
    use(order, 1, ARENA + 3 * PAGE + 31, 1, false);
    expect(order, "work 5 of stream 1 reads bytes 223 to 224 of device memory, which work 1 of stream 0 writes");
}

/* ---- copies ---- */

static void test_copies_use_both_sides(void **state)
{
    np_order *order = begin();
    (void)state;
    use(order, 0, ARENA, 20, true);
    copy(order, NP_STREAM_OUT, ARENA, host, 20);
    expect(order, "copy 1 out reads bytes 0 to 20 of device memory, which work 1 of stream 0 writes");

    order = begin();
    copy(order, NP_STREAM_OUT, ARENA, host, 20);
    use(order, 0, ARENA, 20, false);
    use(order, 0, ARENA, 20, true);
    expect(order, "work 2 of stream 0 writes bytes 0 to 20 of device memory, which copy 1 out reads");

    order = begin();
    copy(order, NP_STREAM_IN, ARENA, host, 20);
    use(order, 0, ARENA, 20, false);
    expect(order, "work 1 of stream 0 reads bytes 0 to 20 of device memory, which copy 1 in writes");

    order = begin(); /* host memory */
    copy(order, NP_STREAM_OUT, ARENA, host, 20);
    copy(order, NP_STREAM_IN, ARENA + 100, host + 19, 20);
    expect(order, "of host memory, which copy 1 out writes: nothing orders the two");

    order = begin();
    copy(order, NP_STREAM_IN, ARENA + 100, host + 19, 20);
    copy(order, NP_STREAM_OUT, ARENA, host, 20);
    expect(order, "of host memory, which copy 1 in reads: nothing orders the two");

    order = begin();
    np_order_wait(order, NP_STREAM_IN, NP_STREAM_OUT, copy(order, NP_STREAM_OUT, ARENA, host, 20));
    copy(order, NP_STREAM_IN, ARENA, host, 20);
    copy(order, NP_STREAM_IN, ARENA, host, 0);
    expect(order, NULL);
}

/* ---- the host ---- */

static void test_the_host_orders(void **state)
{
    np_order *order = begin();
    uint64_t mark = use(order, 0, ARENA, 20, true);
    (void)state;
    np_order_host_knows(order, 0, mark);
    use(order, 1, ARENA, 20, true);
    expect(order, NULL);

    order = begin(); /* what the host learns later helps no work given before */
    mark = use(order, 0, ARENA, 20, true);
    use(order, 1, ARENA, 20, true);
    np_order_host_knows(order, 0, mark);
    expect(order, "nothing orders the two");

    order = begin(); /* to know the end is to know what came before it */
    np_order_wait(order, 1, 0, use(order, 0, ARENA, 20, true));
    np_order_host_knows(order, 1, use(order, 1, ARENA + 100, 1, true));
    use(order, 2, ARENA, 20, true);
    np_order_unmap(order, ARENA + PAGE, 1);
    expect(order, NULL);
}

/* ---- memory under running work ---- */

static void test_memory_under_running_work(void **state)
{
    np_order *order = begin();
    uint64_t mark = use(order, 0, ARENA + 2 * PAGE, 20, false);
    (void)state;
    np_order_unmap(order, ARENA, 2); /* pages that nobody uses */
    ASSERT_TRUE(np_order_problem(order) == NULL);
    np_order_unmap(order, ARENA + 2 * PAGE, 1);
    expect(order, "was unmapped under running work: work 1 of stream 0 reads it");

    order = begin();
    mark = use(order, 0, ARENA + 2 * PAGE, 20, false);
    np_order_host_knows(order, 0, mark);
    np_order_unmap(order, ARENA, N_PAGES);
    np_order_release(order, 0, N_PAGES);
    expect(order, NULL);

    order = begin();
    use(order, 0, ARENA + 2 * PAGE, 20, false);
    np_order_map(order, ARENA + 2 * PAGE, 4, 1);
    expect(order, "was mapped anew under running work: work 1 of stream 0 reads it");

    order = begin(); /* another address of the page in use may come and go */
    use(order, 0, ARENA + 2 * PAGE, 20, false);
    np_order_map(order, VIEW, 2, 1);
    np_order_unmap(order, VIEW, 1);
    expect(order, NULL);

    order = begin(); /* however much was used since */
    use(order, 0, ARENA + 2 * PAGE, 20, false);
    for (int i = 0; i < 1000; i++) {
        np_order_host_knows(order, 1, use(order, 1, ARENA, 20, true));
    }
    np_order_unmap(order, ARENA, 2);
    ASSERT_TRUE(np_order_problem(order) == NULL);
    np_order_unmap(order, ARENA + 2 * PAGE, 1);
    expect(order, "was unmapped under running work: work 1 of stream 0 reads it");

    order = begin();
    copy(order, NP_STREAM_IN, ARENA + 2 * PAGE, host, 20);
    np_order_release(order, 2, 1);
    expect(order, "page 2 was released under running work: copy 1 in writes it");

    order = begin();
    copy(order, NP_STREAM_OUT, ARENA, host + 100, 20);
    np_order_host_free(order, host, 100);
    ASSERT_TRUE(np_order_problem(order) == NULL);
    np_order_host_free(order, host + 100, 1);
    expect(order, "was freed under running work: copy 1 out writes it");
}

/* ---- wrong calls ---- */

static void test_wrong_calls(void **state)
{
    np_order *order = begin();
    (void)state;
    use(order, 0, ARENA + N_PAGES * PAGE, 1, false);
    expect(order, "work 1 of stream 0 uses");

    order = begin();
    use(order, 0, VIEW, 1, true);
    expect(order, "which is not mapped");

    order = begin();
    np_order_unmap(order, ARENA + 3 * PAGE, 1);
    use(order, 0, ARENA, 3 * PAGE + 1, true);
    expect(order, "which is not mapped");

    order = begin();
    ASSERT_OK(np_order_commit(order, 7, 2));
    expect(order, "2 pages from 7 on were committed twice");

    order = begin();
    np_order_release(order, 7, 1);
    expect(order, "1 pages from 7 on were released, some of them mapped or not committed");

    order = begin();
    np_order_release(order, 70, 1);
    expect(order, "mapped or not committed");

    order = begin();
    np_order_map(order, VIEW, 7, 2);
    expect(order, "some not committed, or is not reserved");

    order = begin();
    np_order_map(order, VIEW + PAGE, 0, N_PAGES);
    expect(order, "some not committed, or is not reserved");

    order = begin();
    np_order_unmap(order, host, 1);
    expect(order, "was unmapped, and is not reserved");

    order = begin();
    np_order_unreserve(order, ARENA, N_PAGES);
    expect(order, "was given back with pages mapped there");

    order = begin();
    np_order_unmap(order, ARENA, N_PAGES);
    np_order_unreserve(order, ARENA, N_PAGES);
    np_order_release(order, 0, N_PAGES);
    np_order_unreserve(order, VIEW, N_PAGES);
    expect(order, NULL);
}

static void test_the_first_problem_stays(void **state)
{
    np_order *order = begin();
    (void)state;
    np_order_unmap(order, host, 1);
    use(order, 0, VIEW, 1, true);
    expect(order, "was unmapped, and is not reserved");
}

/* ---- all pairs ----
 *
 * A work's predecessors are a set of bits; bytes are looked at one by one. */

enum { MAX_WORKS = 60, N_ACTORS = 5, HOST_BYTES = 32 };
static const np_stream actors[N_ACTORS] = {0, 1, 2, NP_STREAM_OUT, NP_STREAM_IN};

typedef struct brute_work {
    uint64_t before; /* works */
    uint8_t device[N_PAGES * PAGE];
    uint8_t host[HOST_BYTES]; /* 0: unused, 1: read, 2: written */
} brute_work;

typedef struct brute {
    brute_work works[MAX_WORKS];
    uint32_t n;
    uint64_t pending[N_ACTORS]; /* what the next work of the stream follows */
    uint64_t known;             /* by the host */
    uint32_t of_mark[N_ACTORS][MAX_WORKS + 1];
    uint32_t n_marks[N_ACTORS];
    uint32_t view_page; /* first of the two that VIEW shows */
} brute;

static bool bytes_clash(const uint8_t *a, const uint8_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i] && b[i] && (a[i] == 2 || b[i] == 2)) {
            return true;
        }
    }
    return false;
}

/* Gives the last work its place; true: it is in conflict with an earlier one. */
static bool brute_give(brute *b, uint32_t actor)
{
    brute_work *work = &b->works[b->n];
    bool clashes = false;
    work->before = b->pending[actor] | b->known;
    for (uint32_t i = 0; i < b->n; i++) {
        const brute_work *other = &b->works[i];
        if (!(work->before >> i & 1)) {
            clashes = clashes || bytes_clash(work->device, other->device, sizeof work->device) ||
                      bytes_clash(work->host, other->host, sizeof work->host);
        }
    }
    b->pending[actor] = work->before | UINT64_C(1) << b->n;
    b->of_mark[actor][++b->n_marks[actor]] = b->n;
    b->n++;
    return clashes;
}

static uint64_t brute_up_to(const brute *b, uint32_t actor, uint32_t mark)
{
    uint32_t work = b->of_mark[actor][mark];
    return mark == 0 ? 0 : b->works[work].before | UINT64_C(1) << work;
}

static void mark_bytes(uint8_t *bytes, uint64_t begin, uint64_t n, bool writes)
{
    for (uint64_t i = begin; i < begin + n; i++) {
        bytes[i] = writes || bytes[i] == 2 ? 2 : 1;
    }
}

static bool give_random_launch(np_order *order, brute *b, np_rng *rng, uint32_t actor)
{
    np_touch touches[2];
    uint32_t n = 1 + (uint32_t)np_rng_below(rng, 2);
    bool can_run;
    for (uint32_t i = 0; i < n; i++) {
        bool in_view = np_rng_below(rng, 3) == 0;
        uint64_t pages = in_view ? 2 : N_PAGES;
        uint64_t offset = np_rng_below(rng, pages * PAGE);
        uint64_t most = np_rng_below(rng, 3) == 0 ? pages * PAGE - offset : 16;
        uint64_t bytes = np_rng_below(rng, (most < pages * PAGE - offset ? most : pages * PAGE - offset) + 1);
        bool writes = np_rng_below(rng, 3) == 0;
        touches[i] = (np_touch){(in_view ? VIEW : ARENA) + offset, bytes, writes};
        mark_bytes(b->works[b->n].device, (in_view ? b->view_page * PAGE : 0) + offset, bytes, writes);
    }
    ASSERT_OK(np_order_launch(order, actors[actor], b->n_marks[actor] + 1, touches, n, &can_run));
    ASSERT_TRUE(can_run);
    return brute_give(b, actor);
}

static bool give_random_copy(np_order *order, brute *b, np_rng *rng, uint32_t actor)
{
    bool is_out = actors[actor] == NP_STREAM_OUT;
    uint64_t device_at = np_rng_below(rng, N_PAGES * PAGE - HOST_BYTES);
    uint64_t host_at = np_rng_below(rng, HOST_BYTES);
    uint64_t bytes = np_rng_below(rng, HOST_BYTES - host_at + 1);
    const char *at = ARENA + device_at;
    bool can_run;
    mark_bytes(b->works[b->n].device, device_at, bytes, !is_out);
    mark_bytes(b->works[b->n].host, host_at, bytes, is_out);
    ASSERT_OK(np_order_copy(order, actors[actor], b->n_marks[actor] + 1, is_out ? host + host_at : at,
                            is_out ? at : host + host_at, bytes, &can_run));
    return brute_give(b, actor);
}

/* One step of a random program; true: a conflict. Now and then a wait is forgotten: `care` of 100 are not. */
static bool random_step(np_order *order, brute *b, np_rng *rng, uint64_t care)
{
    uint32_t actor = (uint32_t)np_rng_below(rng, N_ACTORS);
    if (np_rng_below(rng, 12) == 0) {
        uint32_t other = (uint32_t)np_rng_below(rng, N_ACTORS);
        uint32_t mark = (uint32_t)np_rng_below(rng, b->n_marks[other] + 1);
        b->known |= brute_up_to(b, other, mark);
        np_order_host_knows(order, actors[other], mark);
    }
    for (uint32_t other = 0; other < N_ACTORS; other++) {
        if (other != actor && np_rng_below(rng, 100) < care) {
            uint32_t mark =
                b->n_marks[other] - (uint32_t)np_rng_below(rng, np_rng_below(rng, 8) ? 1 : b->n_marks[other] + 1);
            b->pending[actor] |= brute_up_to(b, other, mark);
            np_order_wait(order, actors[actor], actors[other], mark);
        }
    }
    return actor < 3 ? give_random_launch(order, b, rng, actor) : give_random_copy(order, b, rng, actor);
}

static void test_equals_all_pairs(void **state)
{
    enum { ROUNDS = TEST_SANITIZED ? 400 : 6000 };
    static brute b;
    uint32_t n_found = 0;
    uint32_t n_late = 0;
    uint32_t n_clean = 0;
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        np_rng rng = np_rng_make(round);
        uint64_t care = 90 + np_rng_below(&rng, 11);
        uint32_t n_works = 5 + (uint32_t)np_rng_below(&rng, MAX_WORKS - 5);
        np_order *order = make_order();
        bool found = false;
        memset(&b, 0, sizeof b);
        b.view_page = (uint32_t)np_rng_below(&rng, N_PAGES - 1);
        np_order_map(order, VIEW, b.view_page, 2);
        while (b.n < n_works && !found) {
            found = random_step(order, &b, &rng, care);
            if (found != (np_order_problem(order) != NULL)) {
                test_fail(__FILE__, __LINE__, "round %u, work %u: %s", (unsigned)round, b.n,
                          found ? "a conflict was not found" : np_order_problem(order));
            }
            ASSERT_TRUE(np_order_is_valid(order));
        }
        n_found += found;
        n_late += found && b.n > 20;
        n_clean += !found;
        np_order_free(order);
    }
    ASSERT_GT(n_found, ROUNDS / 5); /* both kinds are there */
    ASSERT_GT(n_late, ROUNDS / 20);
    ASSERT_GT(n_clean, ROUNDS / 20);
}

/* ---- long programs ---- */

/* What lies behind the host is forgotten. */
static void test_memory_stays_small(void **state)
{
    test_memory memory;
    np_order *order;
    size_t early = 0;
    (void)state;
    test_memory_init(&memory);
    ASSERT_OK(np_order_create(&memory.hook, PAGE, &order));
    ASSERT_OK(np_order_commit(order, 0, N_PAGES));
    ASSERT_OK(np_order_reserve(order, ARENA, N_PAGES));
    np_order_map(order, ARENA, 0, N_PAGES);
    memset(marks, 0, sizeof marks);
    for (uint32_t i = 0; i < 20000; i++) {
        uint64_t at = i * 37 % (N_PAGES * PAGE - 20);
        np_order_wait(order, NP_STREAM_OUT, 0, use(order, 0, ARENA + at, 20, i % 2 == 0));
        np_order_wait(order, 0, NP_STREAM_OUT, copy(order, NP_STREAM_OUT, ARENA + at, host + i % 1000, 20));
        if (i % 50 == 0) {
            np_order_host_knows(order, NP_STREAM_OUT, marks[NP_STREAM_OUT]);
        }
        if (i == 2000) {
            early = memory.peak_bytes;
        }
    }
    ASSERT_TRUE(np_order_is_valid(order));
    ASSERT_TRUE(np_order_problem(order) == NULL);
    ASSERT_LE(memory.peak_bytes, 2 * early);
    np_order_free(order);
    test_memory_finish(&memory);
}

static neap_status run_program(const neap_memory *memory, void *user)
{
    np_order *order;
    bool can_run;
    neap_status status = np_order_create(memory, PAGE, &order);
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    status = np_order_commit(order, 0, N_PAGES);
    if (status == NEAP_OK) {
        status = np_order_reserve(order, ARENA, N_PAGES);
    }
    if (status == NEAP_OK) {
        np_order_map(order, ARENA, 0, N_PAGES);
    }
    for (uint32_t i = 1; i < 200 && status == NEAP_OK; i++) {
        uint64_t at = i * 37 % (N_PAGES * PAGE - 20);
        np_touch touches[2] = {{ARENA + at, 20, true}, {ARENA + at / 2, 7, false}};
        np_order_wait(order, i % 2, 1 - i % 2, i / 2);
        status = np_order_launch(order, i % 2, (i + 1) / 2, touches, 2, &can_run);
        if (status != NEAP_OK) { /* nothing has changed: other work with this mark is no trouble */
            np_order_wait(order, 2, 1 - i % 2, i / 2);
            ASSERT_OK(np_order_launch(order, 2, 1, touches, 2, &can_run));
            np_order_wait(order, i % 2, 2, 1);
            ASSERT_OK(np_order_launch(order, i % 2, (i + 1) / 2, touches, 2, &can_run));
        }
        ASSERT_TRUE(np_order_is_valid(order));
    }
    ASSERT_TRUE(np_order_problem(order) == NULL);
    np_order_free(order);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(run_program, NULL), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unordered_uses),
        cmocka_unit_test(test_waits_pass_on),
        cmocka_unit_test(test_a_read_hides_no_write),
        cmocka_unit_test(test_addresses_of_one_page_are_one),
        cmocka_unit_test(test_uses_over_scattered_pages),
        cmocka_unit_test(test_copies_use_both_sides),
        cmocka_unit_test(test_the_host_orders),
        cmocka_unit_test(test_memory_under_running_work),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_the_first_problem_stays),
        cmocka_unit_test(test_equals_all_pairs),
        cmocka_unit_test(test_memory_stays_small),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("device/order", tests, NULL, NULL);
}
