/* Launches that were seen before: what is taken for the same launch, and what is not. */
#include "hook/recall.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { N_EVENTS = 40, SPACE = 1000 };

static int plans[2]; /* addresses only */
static char space[SPACE];

static neap_block *block_of(uintptr_t number)
{
    return (neap_block *)(0x1000 * (number + 1));
}

static uint64_t word_of(size_t offset)
{
    return (uint64_t)(uintptr_t)(space + offset);
}

/* One block, of all the space but for a byte at each end. */
static void fill_index(np_hook_index *index)
{
    np_hook_entry entry = {.begin = space + 1, .end = space + SPACE - 1, .block = block_of(0)};
    np_hook_index_init(index, &np_memory_default);
    ASSERT_OK(np_hook_index_add(index, &entry));
}

static void test_same_launch(void **state)
{
    uint32_t sizes[] = {8, 4, 27};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 3, .is_known = true};
    uint64_t a = word_of(10);
    uint32_t b = 5;
    uint64_t c[4] = {7, word_of(20), word_of(30), word_of(40)}; /* three whole words, and a part of one */
    void *each[] = {&a, &b, c};
    const np_hook_parameters parameters = {.each = each};
    const uint64_t hits[] = {word_of(10), word_of(20), word_of(30)};
    neap_use uses[] = {{block_of(1), NEAP_ACCESS_UNKNOWN}, {block_of(2), NEAP_ACCESS_READ}};
    const uint64_t others[] = {0, word_of(0), word_of(SPACE - 1), UINT64_MAX};
    const np_hook_memory *found;
    np_hook_index index;
    np_hook_recall recall;
    (void)state;
    fill_index(&index);
    np_hook_recall_init(&recall, &np_memory_default);
    ASSERT_TRUE(np_hook_recall_keep(&recall, 3, &kernel, &parameters, hits, 3, uses, 2) ==
                NULL); /* no plan: nothing is kept */
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS);
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) == NULL);
    ASSERT_TRUE(np_hook_recall_keep(&recall, 3, &kernel, &parameters, hits, 3, uses, 2) != NULL);
    found = np_hook_recall_find(&recall, 3, &sizes);
    ASSERT_TRUE(found != NULL);
    ASSERT_EQ(found->n_uses, 2);
    ASSERT_TRUE(found->uses[1].block == block_of(2) && found->uses[1].kind == NEAP_ACCESS_READ);
    ASSERT_EQ(found->n_words, 4);
    ASSERT_FALSE(found->is_quick);
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &parameters));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) { /* numbers may be others */
        c[0] = others[i];
        ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &parameters));
    }
    c[0] = word_of(1); /* one that could be an address may not, */
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    c[0] = word_of(10); /* whatever it is, */
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    c[0] = 7;
    for (int i = 0; i < 8; i++) { /* and every bit of an address counts */
        uint64_t *word = i % 2 ? &a : &c[2];
        *word ^= (uint64_t)1 << (7 * i);
        ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
        *word ^= (uint64_t)1 << (7 * i);
    }
    c[1] = word_of(30); /* so does their order */
    c[2] = word_of(20);
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    c[1] = word_of(20);
    c[2] = word_of(SPACE - 1); /* the last is missing */
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    np_hook_recall_free(&recall);
    np_hook_index_free(&index);
}

/* Parameters in a buffer: the same words, and as many. */
static void test_packed_launch(void **state)
{
    uint32_t sizes[] = {8, 8};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 2, .is_known = true};
    uint64_t words[4] = {5, word_of(10), word_of(20), 6};
    void *each[] = {&words[1], &words[2]};
    np_hook_parameters packed = {.packed = words, .packed_bytes = sizeof words};
    const np_hook_parameters apart = {.each = each};
    const uint64_t hits[] = {word_of(10), word_of(20)};
    neap_use use = {block_of(1), NEAP_ACCESS_UNKNOWN};
    const np_hook_memory *found;
    np_hook_index index;
    np_hook_recall recall;
    (void)state;
    fill_index(&index);
    np_hook_recall_init(&recall, &np_memory_default);
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS);
    found = np_hook_recall_keep(&recall, 3, &kernel, &packed, hits, 2, &use, 1);
    ASSERT_TRUE(found != NULL);
    ASSERT_EQ(found->n_words, 4);
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &packed));
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &apart)); /* the same hits, given in another way */
    words[3] = 7;
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &packed));
    words[3] = word_of(30);
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &packed));
    packed.packed_bytes = 3 * sizeof *words;
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &packed));
    found = np_hook_recall_keep(&recall, 3, &kernel, &apart, hits, 2, &use, 1);
    ASSERT_TRUE(found != NULL);
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &apart));
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &packed));
    np_hook_recall_free(&recall);
    np_hook_index_free(&index);
}

/* Words that could be addresses of blocks, with no block there: old ones, which may be others each time. */
static void test_old_addresses(void **state)
{
    uint32_t sizes[] = {24};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 1, .is_known = true};
    np_hook_entry first = {.begin = space, .end = space + 100, .block = block_of(0)};
    np_hook_entry last = {.begin = space + 900, .end = space + SPACE, .block = block_of(1)};
    np_hook_entry between = {.begin = space + 300, .end = space + 400, .block = block_of(2)};
    uint64_t words[3] = {word_of(50), word_of(300), word_of(950)};
    void *each[] = {words};
    const np_hook_parameters parameters = {.each = each};
    const uint64_t hits[] = {word_of(50), word_of(950)};
    neap_use use = {block_of(0), NEAP_ACCESS_UNKNOWN};
    const np_hook_memory *found;
    np_hook_index index;
    np_hook_recall recall;
    (void)state;
    np_hook_index_init(&index, &np_memory_default);
    ASSERT_OK(np_hook_index_add(&index, &first));
    ASSERT_OK(np_hook_index_add(&index, &last));
    np_hook_recall_init(&recall, &np_memory_default);
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS);
    found = np_hook_recall_keep(&recall, 3, &kernel, &parameters, hits, 2, &use, 1);
    ASSERT_TRUE(found && np_hook_index_may_have(&index, space + 300));
    for (size_t at = 100; at < 900; at += 50) {
        words[1] = word_of(at);
        ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &parameters));
    }
    words[1] = 0;
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &parameters));
    words[1] = word_of(99);
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    words[1] = word_of(350);
    ASSERT_TRUE(np_hook_recall_is_equal(found, &index, &parameters));
    ASSERT_OK(np_hook_index_add(&index, &between)); /* it is a block's now */
    ASSERT_FALSE(np_hook_recall_is_equal(found, &index, &parameters));
    np_hook_recall_free(&recall);
    np_hook_index_free(&index);
}

static void test_forgetting(void **state)
{
    uint32_t sizes[] = {8};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 1, .is_known = true};
    const uint64_t hit = word_of(10);
    void *each[] = {NULL};
    const np_hook_parameters parameters = {.each = each};
    neap_use use = {block_of(1), NEAP_ACCESS_UNKNOWN};
    np_hook_recall recall;
    (void)state;
    np_hook_recall_init(&recall, &np_memory_default);
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS);
    ASSERT_TRUE(np_hook_recall_keep(&recall, 3, &kernel, &parameters, &hit, 1, &use, 1) != NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) != NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &plans) == NULL); /* another kernel */
    ASSERT_TRUE(np_hook_recall_find(&recall, 4, &sizes) == NULL);
    ASSERT_TRUE(np_hook_recall_find(&recall, N_EVENTS, &sizes) == NULL); /* no such event */
    ASSERT_TRUE(np_hook_recall_keep(&recall, N_EVENTS, &kernel, &parameters, &hit, 1, &use, 1) == NULL);
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS); /* the same */
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) != NULL);
    np_hook_recall_forget(&recall);
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) == NULL);
    ASSERT_TRUE(np_hook_recall_keep(&recall, 3, &kernel, &parameters, &hit, 1, &use, 1) != NULL);
    np_hook_recall_follow(&recall, &plans[1], N_EVENTS); /* another plan */
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) == NULL);
    np_hook_recall_follow(&recall, &plans[0], N_EVENTS);
    ASSERT_TRUE(np_hook_recall_find(&recall, 3, &sizes) == NULL);
    np_hook_recall_free(&recall);
}

/* ---- random ---- */

enum { MOST = 12 }; /* more than stand near */

/* Parameters are so many words, some of them addresses. Two launches are equal if their hits are. */
static void test_random(void **state)
{
    np_rng rng = np_rng_make(9);
    uint64_t kept[N_EVENTS][MOST];
    size_t n_kept[N_EVENTS];
    bool is_kept[N_EVENTS] = {false};
    uint64_t numbers[N_EVENTS] = {0};
    uint32_t sizes[] = {8 * MOST};
    np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 1, .is_known = true};
    np_hook_index index;
    np_hook_recall recall;
    size_t n_equal = 0;
    int plan = 0;
    (void)state;
    fill_index(&index);
    np_hook_recall_init(&recall, &np_memory_default);
    for (int i = 0; i < 20000; i++) {
        size_t event = np_rng_below(&rng, N_EVENTS);
        uint64_t words[MOST];
        uint64_t hits[MOST];
        size_t n = 0;
        void *each[] = {words};
        const np_hook_parameters parameters = {.each = each};
        np_hook_memory *found;
        bool is_equal;
        for (size_t k = 0; k < MOST; k++) { /* all numbers, all addresses, or both */
            bool is_hit = np_rng_below(&rng, 8) < (event % 2 ? 0u : 8u) + (np_rng_below(&rng, 9) == 0);
            words[k] = is_hit ? word_of(1 + np_rng_below(&rng, 2)) : np_rng_below(&rng, 2) ? word_of(SPACE) : k;
            if (is_hit) {
                hits[n++] = words[k];
            }
        }
        np_hook_recall_follow(&recall, &plans[plan], N_EVENTS);
        found = np_hook_recall_find(&recall, event, &sizes);
        ASSERT_EQ(found != NULL, is_kept[event]);
        is_equal = found && n == n_kept[event] && memcmp(hits, kept[event], n * sizeof *hits) == 0;
        ASSERT_TRUE(!found || np_hook_recall_is_equal(found, &index, &parameters) == is_equal);
        ASSERT_TRUE(!found || (found->n_uses == 1 && found->uses[0].block == block_of(numbers[event])));
        n_equal += is_equal;
        if (!is_equal) {
            neap_use use = {block_of(numbers[event] = np_rng_below(&rng, 100)), NEAP_ACCESS_UNKNOWN};
            found = np_hook_recall_keep(&recall, event, &kernel, &parameters, hits, n, &use, 1);
            ASSERT_TRUE(found && np_hook_recall_is_equal(found, &index, &parameters));
            memcpy(kept[event], hits, sizeof hits);
            n_kept[event] = n;
            is_kept[event] = true;
        }
        if (np_rng_below(&rng, 300) == 0) {
            np_hook_recall_forget(&recall);
            memset(is_kept, 0, sizeof is_kept);
        } else if (np_rng_below(&rng, 300) == 0) {
            plan = 1 - plan;
            memset(is_kept, 0, sizeof is_kept);
        }
    }
    ASSERT_GT(n_equal, 1000);
    np_hook_recall_free(&recall);
    np_hook_index_free(&index);
}

/* Without host memory nothing is remembered, and nothing else happens. */
static void test_host_memory(void **state)
{
    bool goes_on = true;
    (void)state;
    for (size_t n = 1; goes_on; n++) {
        uint32_t sizes[] = {8 * MOST};
        uint64_t hits[MOST] = {7};
        void *each[] = {hits};
        const np_hook_parameters parameters = {.each = each};
        np_hook_kernel kernel = {.function = &sizes, .sizes = sizes, .n_parameters = 1, .is_known = true};
        neap_use use = {block_of(1), NEAP_ACCESS_READ};
        np_hook_recall recall;
        test_memory memory;
        test_memory_init(&memory);
        memory.fail_at = n;
        np_hook_recall_init(&recall, &memory.hook);
        np_hook_recall_follow(&recall, &plans[0], 3);
        for (size_t event = 0; event < 3; event++) {
            ASSERT_TRUE(np_hook_recall_find(&recall, event, &sizes) == NULL);
            (void)np_hook_recall_keep(&recall, event, &kernel, &parameters, hits, event == 1 ? MOST : 1, &use, 1);
        }
        for (size_t event = 0; event < 3; event++) {
            const np_hook_memory *found = np_hook_recall_find(&recall, event, &sizes);
            ASSERT_TRUE(!found || (found->uses[0].block == block_of(1) && found->hits[0] == 7));
            ASSERT_TRUE(found || memory.n_failed > 0);
        }
        goes_on = memory.n_failed > 0;
        np_hook_recall_free(&recall);
        test_memory_finish(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_launch), cmocka_unit_test(test_packed_launch), cmocka_unit_test(test_old_addresses),
        cmocka_unit_test(test_forgetting),  cmocka_unit_test(test_random),        cmocka_unit_test(test_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
