/* test_cnmem.c: CnMem's decisions, by hand and against a model that walks a list as CnMem does. */
#include "pool/cnmem.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "testing.h"

static uint64_t address_of(const np_cnmem *pool, uint32_t block)
{
    return pool->heap.blocks.items[block].address;
}

static void test_grows_by_what_is_asked(void **state)
{
    np_cnmem pool;
    uint32_t a;
    uint32_t b;
    uint32_t c;
    (void)state;
    np_cnmem_init(&pool, NULL);
    ASSERT_OK(np_cnmem_take(&pool, 1, &a));
    ASSERT_EQ(pool.heap.held, 512);
    ASSERT_OK(np_cnmem_take(&pool, 513, &b));
    ASSERT_EQ(pool.heap.held, 512 + 1024);
    np_cnmem_give(&pool, b);
    ASSERT_OK(np_cnmem_take(&pool, 512, &c)); /* splits the block of 1024 */
    ASSERT_EQ(address_of(&pool, c), 512);
    ASSERT_EQ(pool.heap.held, 512 + 1024);
    np_cnmem_give(&pool, a);
    np_cnmem_give(&pool, c);
    ASSERT_OK(np_cnmem_take(&pool, 1536, &b)); /* 1536 are free, but in two chunks */
    ASSERT_EQ(pool.heap.held, 512 + 1024 + 1536);
    np_cnmem_free(&pool);
}

static void test_nothing_takes_nothing(void **state)
{
    np_cnmem pool;
    uint32_t block = 1;
    (void)state;
    np_cnmem_init(&pool, NULL);
    ASSERT_OK(np_cnmem_take(&pool, 0, &block));
    ASSERT_EQ(block, NP_HEAP_NONE);
    np_cnmem_give(&pool, block);
    ASSERT_EQ(pool.heap.held, 0);
    ASSERT_STATUS(NEAP_TOO_LARGE, np_cnmem_take(&pool, UINT64_MAX, &block));
    np_cnmem_free(&pool);
}

/* ---- the model: all blocks in an array sorted by address, searched from end to end ---- */

enum { MODEL_MAX = 4000 };

typedef struct model_block {
    uint64_t address;
    uint64_t size;
    bool used;
    bool is_head; /* of a chunk: not merged with what is below it */
} model_block;

typedef struct model {
    model_block blocks[MODEL_MAX];
    size_t n;
    uint64_t held;
} model;

static void model_insert(model *m, size_t at, model_block block)
{
    ASSERT_LT(m->n, MODEL_MAX);
    memmove(&m->blocks[at + 1], &m->blocks[at], (m->n - at) * sizeof *m->blocks);
    m->blocks[at] = block;
    m->n++;
}

static void model_remove(model *m, size_t at)
{
    m->n--;
    memmove(&m->blocks[at], &m->blocks[at + 1], (m->n - at) * sizeof *m->blocks);
}

static uint64_t model_take(model *m, uint64_t bytes)
{
    uint64_t size = (bytes + 511) / 512 * 512;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < m->n; i++) {
        if (!m->blocks[i].used && m->blocks[i].size >= size &&
            (best == SIZE_MAX || m->blocks[i].size < m->blocks[best].size)) {
            best = i;
        }
    }
    if (best == SIZE_MAX) {
        best = m->n;
        model_insert(m, best, (model_block){.address = m->held, .size = size, .is_head = true});
        m->held += size;
    }
    if (m->blocks[best].size > size) {
        model_insert(m, best + 1,
                     (model_block){.address = m->blocks[best].address + size, .size = m->blocks[best].size - size});
        m->blocks[best].size = size;
    }
    m->blocks[best].used = true;
    return m->blocks[best].address;
}

static void model_give(model *m, uint64_t address)
{
    size_t at = 0;
    while (m->blocks[at].address != address) {
        at++;
    }
    m->blocks[at].used = false;
    if (at + 1 < m->n && !m->blocks[at + 1].used && !m->blocks[at + 1].is_head) {
        m->blocks[at].size += m->blocks[at + 1].size;
        model_remove(m, at + 1);
    }
    if (at > 0 && !m->blocks[at - 1].used && !m->blocks[at].is_head) {
        m->blocks[at - 1].size += m->blocks[at].size;
        model_remove(m, at);
    }
}

static void test_decides_as_the_list_does(void **state)
{
    enum { N_LIVE = 100, N_STEPS = 3000 };
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 3 : 12); seed++) {
        np_rng rng = np_rng_make(seed);
        np_cnmem pool;
        model *m = calloc(1, sizeof *m);
        uint32_t live[N_LIVE];
        ASSERT_TRUE(m != NULL);
        memset(live, 0xff, sizeof live);
        np_cnmem_init(&pool, NULL);
        for (int step = 0; step < N_STEPS; step++) {
            uint32_t *at = &live[np_rng_below(&rng, N_LIVE)];
            if (*at == NP_HEAP_NONE) {
                uint64_t bytes = 1 + np_rng_below(&rng, UINT64_C(1) << (4 + np_rng_below(&rng, 12)));
                ASSERT_OK(np_cnmem_take(&pool, bytes, at));
                ASSERT_EQ(address_of(&pool, *at), model_take(m, bytes));
            } else {
                model_give(m, address_of(&pool, *at));
                np_cnmem_give(&pool, *at);
                *at = NP_HEAP_NONE;
            }
            ASSERT_EQ(pool.heap.held, m->held);
        }
        ASSERT_TRUE(np_cnmem_is_valid(&pool));
        np_cnmem_free(&pool);
        free(m);
    }
}

/* Half a million blocks alive, every second one freed and taken again: a list would need hours. */
static void test_many_blocks_are_fast(void **state)
{
    const size_t n = TEST_SANITIZED ? 50000 : 500000;
    np_cnmem pool;
    uint32_t *live = calloc(n, sizeof *live);
    np_rng rng = np_rng_make(1);
    uint64_t begin = test_cpu_ns();
    (void)state;
    ASSERT_TRUE(live != NULL);
    np_cnmem_init(&pool, NULL);
    for (size_t i = 0; i < n; i++) {
        ASSERT_OK(np_cnmem_take(&pool, 1 + np_rng_below(&rng, 1 << 20), &live[i]));
    }
    for (size_t i = 0; i < n; i += 2) {
        np_cnmem_give(&pool, live[i]);
    }
    for (size_t i = 0; i < n; i += 2) {
        ASSERT_OK(np_cnmem_take(&pool, 1 + np_rng_below(&rng, 1 << 20), &live[i]));
    }
    ASSERT_LT((test_cpu_ns() - begin) / 1000000, 20000);
    np_cnmem_free(&pool);
    free(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows_by_what_is_asked),
        cmocka_unit_test(test_nothing_takes_nothing),
        cmocka_unit_test(test_decides_as_the_list_does),
        cmocka_unit_test(test_many_blocks_are_fast),
    };
    return cmocka_run_group_tests_name("pool/cnmem", tests, NULL, NULL);
}
