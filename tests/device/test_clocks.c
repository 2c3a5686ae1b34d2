/* test_clocks.c: what is before what, against sets of works that follow each other. */
#include "device/clocks.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

static const np_clock *give(np_clocks *clocks, np_stream stream, uint64_t mark)
{
    ASSERT_OK(np_clocks_reserve(clocks, stream));
    return np_clocks_give(clocks, stream, mark);
}

static void test_by_hand(void **state)
{
    np_clocks clocks;
    const np_clock *clock;
    (void)state;
    np_clocks_init(&clocks, NULL);
    ASSERT_EQ(give(&clocks, 0, 1)->marks[1], 0);
    np_clocks_wait(&clocks, 1, 0, 1);
    ASSERT_EQ(give(&clocks, 1, 1)->marks[0], 1);
    give(&clocks, 0, 2);
    np_clocks_wait(&clocks, 2, 1, 1);
    clock = give(&clocks, 2, 1);
    ASSERT_EQ(clock->marks[1], 1);
    ASSERT_EQ(clock->marks[0], 1); /* by way of stream 1 */
    np_clocks_host_knows(&clocks, 0, 2);
    ASSERT_EQ(clocks.host.marks[0], 2);
    ASSERT_EQ(clocks.host.marks[1], 0);
    clock = give(&clocks, 3, 1);
    ASSERT_EQ(clock->marks[0], 2); /* by way of the host */
    np_clocks_host_knows(&clocks, 2, 1);
    ASSERT_EQ(clocks.host.marks[1], 1);
    ASSERT_EQ(clocks.host.marks[0], 2);
    ASSERT_TRUE(np_clocks_is_valid(&clocks));
    np_clocks_free(&clocks);
}

enum { N = 5, MAX_MARKS = 300 };

/* [stream][mark]: for each stream the highest mark before that work, itself included, kept for ever. */
typedef struct history {
    uint64_t before[N][MAX_MARKS + 1][N];
    uint64_t pending[N][N];
    uint64_t host[N];
    uint64_t n[N];
} history;

static void join(uint64_t to[N], const uint64_t from[N])
{
    for (int i = 0; i < N; i++) {
        to[i] = from[i] > to[i] ? from[i] : to[i];
    }
}

static void test_random_programs(void **state)
{
    static history h;
    (void)state;
    for (uint64_t round = 0; round < 50; round++) {
        np_rng rng = np_rng_make(round);
        np_clocks clocks;
        np_clocks_init(&clocks, NULL);
        memset(&h, 0, sizeof h);
        for (int i = 0; i < 800; i++) {
            uint32_t s = (uint32_t)np_rng_below(&rng, N);
            uint32_t other = (uint32_t)np_rng_below(&rng, N);
            uint64_t mark = np_rng_below(&rng, h.n[other] + 1);
            uint64_t kind = np_rng_below(&rng, 20);
            if (kind == 0) {
                np_clocks_host_knows(&clocks, other, mark);
                join(h.host, h.before[other][mark]);
            } else if (kind < 8) {
                np_clocks_wait(&clocks, s, other, mark);
                join(h.pending[s], h.before[other][mark]);
            } else if (h.n[s] < MAX_MARKS) {
                const np_clock *clock = give(&clocks, s, ++h.n[s]);
                join(h.pending[s], h.host);
                for (uint32_t k = 0; k < N; k++) {
                    if (k != s) {
                        ASSERT_EQ(clock->marks[k], h.pending[s][k]);
                    }
                }
                h.pending[s][s] = h.n[s];
                memcpy(h.before[s][h.n[s]], h.pending[s], sizeof h.pending[s]);
            }
            for (uint32_t k = 0; k < N; k++) {
                ASSERT_EQ(clocks.host.marks[k], h.host[k]);
            }
            ASSERT_TRUE(np_clocks_is_valid(&clocks));
        }
        np_clocks_free(&clocks);
    }
}

static void test_the_past_is_forgotten(void **state)
{
    np_clocks clocks;
    (void)state;
    np_clocks_init(&clocks, NULL);
    for (uint64_t i = 1; i < 10000; i++) {
        np_clocks_wait(&clocks, 0, 1, i - 1);
        give(&clocks, 0, i);
        np_clocks_wait(&clocks, 1, 0, i);
        give(&clocks, 1, i);
        if (i > 10) {
            np_clocks_host_knows(&clocks, 0, i - 10);
        }
    }
    ASSERT_LE(clocks.streams[0].history.capacity, 100);
    ASSERT_LE(clocks.streams[1].history.capacity, 100);
    np_clocks_free(&clocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_the_past_is_forgotten),
    };
    return cmocka_run_group_tests_name("device/clocks", tests, NULL, NULL);
}
