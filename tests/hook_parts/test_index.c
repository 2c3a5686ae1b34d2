/* From an address to the block it lies in: against an array that is looked through from end to end. */
#include "hook/index.h"

#include "base/rng.h"
#include "testing.h"

enum { SPACE = 4096, MOST = 200 };

static char space[SPACE]; /* addresses only */

static np_hook_entry entry_of(uint32_t begin, uint32_t end, uint32_t number)
{
    return (np_hook_entry){
        .begin = space + begin, .end = space + end, .block = (neap_block *)(uintptr_t)(number + 1), .baseline = number};
}

static void test_edges(void **state)
{
    np_hook_index index;
    np_hook_entry entry = entry_of(100, 200, 7);
    np_hook_entry taken = {0};
    (void)state;
    np_hook_index_init(&index, &np_memory_default);
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    ASSERT_TRUE(np_hook_index_find(&index, NULL) == NULL);
    ASSERT_TRUE(np_hook_index_find(&index, space) == NULL);
    ASSERT_FALSE(np_hook_index_remove(&index, space, &taken));
    ASSERT_OK(np_hook_index_add(&index, &entry));
    ASSERT_TRUE(np_hook_index_find(&index, space + 99) == NULL);
    ASSERT_TRUE(np_hook_index_find(&index, space + 100) != NULL);
    ASSERT_TRUE(np_hook_index_find(&index, space + 199) != NULL);
    ASSERT_TRUE(np_hook_index_find(&index, space + 200) == NULL);
    ASSERT_TRUE(np_hook_index_may_have(&index, space + 100));
    ASSERT_FALSE(np_hook_index_may_have(&index, space + 200));
    ASSERT_FALSE(np_hook_index_remove(&index, space + 101, &taken)); /* inside is not the begin */
    ASSERT_EQ(index.n, 1);
    ASSERT_TRUE(np_hook_index_remove(&index, space + 100, &taken));
    ASSERT_EQ(taken.baseline, 7);
    ASSERT_TRUE(taken.begin == space + 100 && taken.end == space + 200);
    ASSERT_FALSE(np_hook_index_may_have(&index, space + 100));
    ASSERT_FALSE(np_hook_index_may_have(&index, NULL));
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    np_hook_index_free(&index);
}

/* Addresses of which it is known that no block is there. */
static void test_gap(void **state)
{
    np_hook_index index;
    np_hook_entry low = entry_of(100, 200, 1);
    np_hook_entry high = entry_of(900, 1000, 2);
    (void)state;
    np_hook_index_init(&index, &np_memory_default);
    np_hook_index_exclude(&index, space + 200, 600);
    ASSERT_OK(np_hook_index_add(&index, &low));
    ASSERT_OK(np_hook_index_add(&index, &high));
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    ASSERT_TRUE(np_hook_index_may_have(&index, space + 199));
    ASSERT_FALSE(np_hook_index_may_have(&index, space + 200));
    ASSERT_FALSE(np_hook_index_may_have(&index, space + 799));
    ASSERT_TRUE(np_hook_index_may_have(&index, space + 800));
    ASSERT_TRUE(np_hook_index_find(&index, space + 199)->baseline == 1);
    ASSERT_TRUE(np_hook_index_find(&index, space + 900)->baseline == 2);
    np_hook_index_exclude(&index, space + 150, 600);
    ASSERT_FALSE(np_hook_index_is_valid(&index)); /* a block is in it */
    np_hook_index_exclude(&index, NULL, 0);
    ASSERT_TRUE(np_hook_index_may_have(&index, space + 300));
    np_hook_index_free(&index);
}

/* Blocks far apart: what is between them is told from them by its region. */
static void test_regions(void **state)
{
    const uint64_t gib = (uint64_t)1 << 30;
    const char *low = (const char *)(uintptr_t)(0x471100000000);
    const char *high = (const char *)(uintptr_t)(0x7f5000000000);
    np_hook_entry entries[] = {{.begin = low, .end = low + 9 * gib, .block = (neap_block *)(uintptr_t)16},
                               {.begin = high, .end = high + 100, .block = (neap_block *)(uintptr_t)32}};
    np_hook_index index;
    np_hook_entry taken;
    (void)state;
    np_hook_index_init(&index, &np_memory_default);
    ASSERT_OK(np_hook_index_add(&index, &entries[0]));
    ASSERT_OK(np_hook_index_add(&index, &entries[1]));
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    for (uint64_t at = 0; at < 9 * gib; at += gib / 2 + 1) { /* in each region of a long one */
        ASSERT_TRUE(np_hook_index_find(&index, low + at) != NULL);
    }
    ASSERT_TRUE(np_hook_index_find(&index, low + 9 * gib - 1) != NULL);
    ASSERT_TRUE(np_hook_index_find(&index, low + 9 * gib) == NULL);
    ASSERT_FALSE(np_hook_index_may_have(&index, low + 12 * gib));
    ASSERT_FALSE(np_hook_index_may_have(&index, (const char *)(uintptr_t)0x7f0000000001));
    ASSERT_FALSE(np_hook_index_may_have(&index, (const char *)(uintptr_t)0x550011223344));
    ASSERT_TRUE(np_hook_index_find(&index, high + 99) != NULL);
    ASSERT_TRUE(np_hook_index_remove(&index, low, &taken));
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    ASSERT_OK(np_hook_index_add(&index, &taken));
    ASSERT_TRUE(np_hook_index_find(&index, low + 5 * gib) != NULL);
    np_hook_index_free(&index);
}

/* ---- random ones ---- */

typedef struct model {
    np_hook_index index;
    np_hook_entry entries[MOST];
    uint32_t n;
    uint32_t next;
} model;

static bool is_free(const model *m, uint32_t begin, uint32_t end)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->entries[i].begin < space + end && space + begin < m->entries[i].end) {
            return false;
        }
    }
    return true;
}

static const np_hook_entry *find(const model *m, const char *address)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->entries[i].begin <= address && address < m->entries[i].end) {
            return &m->entries[i];
        }
    }
    return NULL;
}

static void add(model *m, np_rng *rng)
{
    uint32_t begin = (uint32_t)np_rng_below(rng, SPACE - 64);
    uint32_t end = begin + 1 + (uint32_t)np_rng_below(rng, 40);
    if (m->n < MOST && is_free(m, begin, end)) {
        m->entries[m->n] = entry_of(begin, end, m->next++);
        ASSERT_OK(np_hook_index_add(&m->index, &m->entries[m->n]));
        m->n++;
    }
}

static void take_out(model *m, np_rng *rng)
{
    np_hook_entry taken = {0};
    const char *at = space + np_rng_below(rng, SPACE);
    const np_hook_entry *known = find(m, at);
    bool is_begin;
    if (m->n > 0 && np_rng_below(rng, 2)) {
        known = &m->entries[np_rng_below(rng, m->n)];
        at = known->begin;
    }
    is_begin = known && known->begin == at;
    ASSERT_EQ(np_hook_index_remove(&m->index, at, &taken), is_begin);
    if (is_begin) {
        ASSERT_EQ(taken.baseline, known->baseline);
        ASSERT_TRUE(taken.block == known->block);
        m->entries[known - m->entries] = m->entries[--m->n];
    }
}

static void check(const model *m, np_rng *rng)
{
    for (int i = 0; i < 16; i++) {
        const char *at = space + np_rng_below(rng, SPACE);
        const np_hook_entry *known = find(m, at);
        const np_hook_entry *found = np_hook_index_find(&m->index, at);
        ASSERT_EQ(found != NULL, known != NULL);
        ASSERT_TRUE(!known || found->baseline == known->baseline);
        ASSERT_TRUE(!known || np_hook_index_may_have(&m->index, at));
    }
    ASSERT_EQ(m->index.n, m->n);
    ASSERT_TRUE(np_hook_index_is_valid(&m->index));
}

static void test_random(void **state)
{
    static model m;
    np_rng rng = np_rng_make(5);
    (void)state;
    np_hook_index_init(&m.index, &np_memory_default);
    for (int round = 0; round < 20000; round++) {
        if (np_rng_below(&rng, (uint64_t)(round / 2000) % 2 ? 3 : 5) < 2) {
            take_out(&m, &rng);
        } else {
            add(&m, &rng);
        }
        check(&m, &rng);
    }
    np_hook_index_free(&m.index);
}

/* ---- failures ---- */

static neap_status fill(const neap_memory *memory, void *user)
{
    np_hook_index index;
    neap_status status = NEAP_OK;
    (void)user;
    np_hook_index_init(&index, memory);
    for (uint32_t i = 0; i < 300 && status == NEAP_OK; i++) {
        np_hook_entry entry = entry_of(8 * (300 - i), 8 * (300 - i) + 8, i);
        status = np_hook_index_add(&index, &entry);
        if (!np_hook_index_is_valid(&index) || index.n != i + (status == NEAP_OK)) {
            status = NEAP_INTERNAL;
        }
    }
    np_hook_index_free(&index);
    return status;
}

static void test_host_memory(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(fill, NULL), 2);
}

static void test_is_valid(void **state)
{
    np_hook_index index;
    (void)state;
    np_hook_index_init(&index, &np_memory_default);
    for (uint32_t i = 0; i < 3; i++) {
        np_hook_entry entry = entry_of(100 * i, 100 * i + 50, i);
        ASSERT_OK(np_hook_index_add(&index, &entry));
    }
    ASSERT_TRUE(np_hook_index_is_valid(&index));
    index.leaves.items[0]->entries[1].end = space + 220; /* into the next */
    ASSERT_FALSE(np_hook_index_is_valid(&index));
    index.leaves.items[0]->entries[1].end = index.leaves.items[0]->entries[1].begin;
    ASSERT_FALSE(np_hook_index_is_valid(&index));
    index.leaves.items[0]->entries[1].end = space + 150;
    index.highest = space + 200;
    ASSERT_FALSE(np_hook_index_is_valid(&index));
    index.highest = space + 250;
    index.lowest = space + 1;
    ASSERT_FALSE(np_hook_index_is_valid(&index));
    np_hook_index_free(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),  cmocka_unit_test(test_gap),         cmocka_unit_test(test_regions),
        cmocka_unit_test(test_random), cmocka_unit_test(test_host_memory), cmocka_unit_test(test_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
