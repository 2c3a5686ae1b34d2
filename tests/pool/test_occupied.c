/* test_occupied.c: the tree of spans against a plain table of sections and units. */
#include "pool/occupied.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { MAX_SECTIONS = 40, MAX_UNITS = 400, MAX_RANGES = 4 };

typedef struct table {
    uint32_t first;
    uint32_t n_sections;
    bool taken[MAX_SECTIONS][MAX_UNITS];
} table;

static bool is_free(const table *t, const np_range *ranges, uint32_t n_ranges, uint64_t at, uint64_t size)
{
    for (uint32_t k = 0; k < n_ranges; k++) {
        for (uint32_t s = ranges[k].begin; s < ranges[k].end; s++) {
            for (uint64_t u = at; u < at + size; u++) {
                if (t->taken[s - t->first][u]) {
                    return false;
                }
            }
        }
    }
    return true;
}

static uint64_t first_fit(const table *t, const np_range *ranges, uint32_t n_ranges, const np_fitted *fitted)
{
    uint64_t at = 0;
    while ((at + fitted->base) % fitted->align != 0 || !is_free(t, ranges, n_ranges, at, fitted->size)) {
        at++;
    }
    return at;
}

static uint64_t next_aligned(const np_fitted *fitted, uint64_t at)
{
    while ((at + fitted->base) % fitted->align != 0) {
        at++;
    }
    return at;
}

static uint64_t best_fit(const table *t, const np_range *ranges, uint32_t n_ranges, const np_fitted *fitted)
{
    uint64_t best = UINT64_MAX;
    uint64_t best_bytes = UINT64_MAX;
    uint64_t begin = next_aligned(fitted, 0); /* of the hole */
    uint64_t top = begin;
    for (uint64_t u = 0; u < MAX_UNITS; u++) {
        if (!is_free(t, ranges, n_ranges, u, 1)) {
            if (u >= begin + fitted->size && u - begin < best_bytes) {
                best = begin;
                best_bytes = u - begin;
            }
            begin = top = next_aligned(fitted, u + 1);
        }
    }
    return best == UINT64_MAX ? top : best;
}

static void take(table *t, const np_range *ranges, uint32_t n_ranges, uint64_t at, uint64_t size)
{
    for (uint32_t k = 0; k < n_ranges; k++) {
        for (uint32_t s = ranges[k].begin; s < ranges[k].end; s++) {
            memset(&t->taken[s - t->first][at], true, size);
        }
    }
}

/* Sorted, disjoint, not touching, as items have them. */
static uint32_t random_ranges(np_rng *rng, const table *t, np_range *ranges)
{
    uint32_t n = 0;
    uint32_t at = t->first + (uint32_t)np_rng_below(rng, t->n_sections);
    uint32_t end = t->first + t->n_sections;
    uint32_t n_wanted = 1 + (uint32_t)np_rng_below(rng, MAX_RANGES);
    while (n < n_wanted && at < end) {
        uint32_t length = 1 + (uint32_t)np_rng_below(rng, end - at);
        ranges[n++] = (np_range){at, at + length};
        at += length + 1 + (uint32_t)np_rng_below(rng, 4);
    }
    return n;
}

static void check_random(np_occupied *occupied, np_rng *rng, table *t)
{
    for (unsigned step = 0; step < 60; step++) {
        np_range ranges[MAX_RANGES];
        uint32_t n = random_ranges(rng, t, ranges);
        np_fitted fitted = {.size = 1 + np_rng_below(rng, 8), .align = 1, .base = np_rng_below(rng, 9)};
        uint64_t size = fitted.size;
        uint64_t first = UINT64_MAX;
        uint64_t best = UINT64_MAX;
        uint64_t at;
        if (np_rng_below(rng, 2)) {
            fitted.align = 1 + np_rng_below(rng, 9);
        }
        ASSERT_OK(np_occupied_first_fit(occupied, ranges, n, &fitted, &first));
        ASSERT_EQ(first, first_fit(t, ranges, n, &fitted));
        ASSERT_OK(np_occupied_best_fit(occupied, ranges, n, &fitted, &best));
        ASSERT_EQ(best, best_fit(t, ranges, n, &fitted));
        at = np_rng_below(rng, 2) ? first : best;
        if (np_rng_below(rng, 4) == 0) { /* anywhere: that leaves holes of all sizes */
            at = np_rng_below(rng, 60);
        }
        if (at + size < MAX_UNITS / 2 && is_free(t, ranges, n, at, size)) {
            ASSERT_OK(np_occupied_add(occupied, ranges, n, at, at + size));
            take(t, ranges, n, at, size);
            ASSERT_TRUE(np_occupied_is_valid(occupied));
        }
    }
}

static void test_against_a_table(void **state)
{
    const unsigned n_rounds = TEST_SANITIZED ? 20 : 200;
    (void)state;
    for (unsigned seed = 0; seed < n_rounds; seed++) {
        np_rng rng = np_rng_make(seed);
        table t = {.first = (uint32_t)np_rng_below(&rng, 3) * 7};
        np_occupied occupied;
        t.n_sections = 1 + (uint32_t)np_rng_below(&rng, MAX_SECTIONS);
        ASSERT_OK(np_occupied_init(&occupied, NULL, (np_range){t.first, t.first + t.n_sections}));
        check_random(&occupied, &rng, &t);
        np_occupied_clear(&occupied);
        ASSERT_TRUE(np_occupied_is_valid(&occupied));
        memset(t.taken, 0, sizeof t.taken);
        check_random(&occupied, &rng, &t);
        np_occupied_free(&occupied);
    }
}

static void test_offsets_may_be_large(void **state)
{
    const np_range all = {0, 3};
    const uint64_t far = (uint64_t)1 << 60;
    const np_fitted as_large = {.size = far, .align = 1}, larger = {.size = far + 1, .align = 1};
    const np_fitted aligned = {.size = 1, .align = 3, .base = 1};
    np_occupied occupied;
    uint64_t at = 0;
    (void)state;
    ASSERT_OK(np_occupied_init(&occupied, NULL, all));
    ASSERT_OK(np_occupied_add(&occupied, &all, 1, far, 2 * far));
    ASSERT_OK(np_occupied_first_fit(&occupied, &all, 1, &as_large, &at));
    ASSERT_EQ(at, 0);
    ASSERT_OK(np_occupied_first_fit(&occupied, &all, 1, &larger, &at));
    ASSERT_EQ(at, 2 * far);
    ASSERT_OK(np_occupied_best_fit(&occupied, &all, 1, &larger, &at));
    ASSERT_EQ(at, 2 * far);
    ASSERT_OK(np_occupied_add(&occupied, &all, 1, 0, far));
    ASSERT_OK(np_occupied_first_fit(&occupied, &all, 1, &aligned, &at));
    ASSERT_EQ(at, 2 * far); /* 2^61 + 1 is a multiple of 3 */
    np_occupied_free(&occupied);
}

static void test_validity_sees_damage(void **state)
{
    const np_range all = {0, 3};
    np_occupied occupied;
    (void)state;
    ASSERT_OK(np_occupied_init(&occupied, NULL, (np_range){0, 4}));
    ASSERT_OK(np_occupied_add(&occupied, &all, 1, 3, 5));
    ASSERT_TRUE(np_occupied_is_valid(&occupied));
    occupied.own[2].spans[0].end = 6; /* the union no longer holds it */
    ASSERT_FALSE(np_occupied_is_valid(&occupied));
    occupied.own[2].spans[0].end = 3;
    ASSERT_FALSE(np_occupied_is_valid(&occupied));
    np_occupied_free(&occupied);
}

static neap_status add_and_ask(const neap_memory *memory, void *user)
{
    np_occupied occupied;
    np_rng rng = np_rng_make(1);
    table t = {.n_sections = MAX_SECTIONS};
    neap_status status = np_occupied_init(&occupied, memory, (np_range){0, MAX_SECTIONS});
    (void)user;
    if (status != NEAP_OK) {
        return status;
    }
    for (unsigned step = 0; step < 30 && status == NEAP_OK; step++) {
        np_range ranges[MAX_RANGES];
        uint32_t n = random_ranges(&rng, &t, ranges);
        uint64_t at;
        status = np_occupied_best_fit(&occupied, ranges, n, &(np_fitted){.size = 3, .align = 2}, &at);
        if (status == NEAP_OK) {
            status = np_occupied_add(&occupied, ranges, n, at, at + 3);
        }
    }
    np_occupied_free(&occupied);
    return status;
}

static void test_every_failure_is_reported(void **state)
{
    (void)state;
    ASSERT_GT(test_memory_fail_each(add_and_ask, NULL), 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_table),
        cmocka_unit_test(test_offsets_may_be_large),
        cmocka_unit_test(test_validity_sees_damage),
        cmocka_unit_test(test_every_failure_is_reported),
    };
    return cmocka_run_group_tests_name("pool/occupied", tests, NULL, NULL);
}
