/* test_pagemap.c: the tables of pages and addresses, against one flat array. */
#include "device/pagemap.h"

#include "base/rng.h"
#include "testing.h"

enum { PAGE = 16, N_PAGES = 20, N_RANGES = 6, RANGE_PAGES = 12 };

static char space[N_RANGES * RANGE_PAGES * PAGE];

static const char *range(uint32_t i)
{
    return space + i * RANGE_PAGES * PAGE;
}

static void test_pieces(void **state)
{
    np_pagemap map;
    np_piece piece;
    (void)state;
    np_pagemap_init(&map, NULL, PAGE);
    ASSERT_OK(np_pagemap_reserve_commit(&map, 0, N_PAGES));
    ASSERT_TRUE(np_pagemap_commit(&map, 0, N_PAGES));
    ASSERT_OK(np_pagemap_add(&map, range(1), 6));
    ASSERT_TRUE(np_pagemap_map(&map, range(1), 3, 2));
    ASSERT_TRUE(np_pagemap_map(&map, range(1) + 2 * PAGE, 5, 1)); /* goes on */
    ASSERT_TRUE(np_pagemap_map(&map, range(1) + 3 * PAGE, 3, 2)); /* does not */
    ASSERT_TRUE(np_pagemap_find(&map, range(1) + 5, 100, &piece));
    ASSERT_EQ(piece.begin, 3 * PAGE + 5);
    ASSERT_EQ(piece.end, 6 * PAGE);
    ASSERT_TRUE(np_pagemap_find(&map, range(1) + 5, 20, &piece));
    ASSERT_EQ(piece.end, 3 * PAGE + 25);
    ASSERT_TRUE(np_pagemap_find(&map, range(1) + 3 * PAGE, 100, &piece));
    ASSERT_EQ(piece.begin, 3 * PAGE);
    ASSERT_EQ(piece.end, 5 * PAGE); /* the last page is not mapped */
    ASSERT_FALSE(np_pagemap_find(&map, range(1) + 5 * PAGE, 1, &piece));
    ASSERT_FALSE(np_pagemap_find(&map, range(1) + 6 * PAGE, 1, &piece));
    ASSERT_FALSE(np_pagemap_find(&map, range(1) - 1, 1, &piece));
    ASSERT_TRUE(np_pagemap_is_valid(&map));
    np_pagemap_free(&map);
}

/* What the tables should say. */
typedef struct flat {
    bool committed[N_PAGES];
    bool reserved[N_RANGES];
    uint32_t pages[N_RANGES][RANGE_PAGES]; /* page + 1 */
} flat;

static bool flat_is_mapped(const flat *f, uint32_t page)
{
    for (uint32_t r = 0; r < N_RANGES; r++) {
        for (uint32_t i = 0; i < RANGE_PAGES; i++) {
            if (f->pages[r][i] == page + 1) {
                return true;
            }
        }
    }
    return false;
}

static void commit_or_release(np_pagemap *map, flat *f, uint32_t first, uint32_t n, bool commits)
{
    bool was_right = true;
    for (uint32_t i = first; i < first + n; i++) {
        was_right = was_right && (commits ? !f->committed[i] : f->committed[i] && !flat_is_mapped(f, i));
    }
    if (commits) {
        ASSERT_OK(np_pagemap_reserve_commit(map, first, n));
        ASSERT_EQ(np_pagemap_commit(map, first, n), was_right);
        for (uint32_t i = first; i < first + n; i++) {
            f->committed[i] = true;
        }
    } else if (was_right) { /* a wrong release leaves the tables in doubt */
        ASSERT_TRUE(np_pagemap_release(map, first, n));
        for (uint32_t i = first; i < first + n; i++) {
            f->committed[i] = false;
        }
    }
}

static void map_or_unmap(np_pagemap *map, flat *f, np_rng *rng, uint32_t r, bool maps)
{
    uint32_t at = (uint32_t)np_rng_below(rng, RANGE_PAGES);
    uint32_t n = 1 + (uint32_t)np_rng_below(rng, RANGE_PAGES - at);
    uint32_t first = (uint32_t)np_rng_below(rng, N_PAGES - n + 1);
    bool was_right = f->reserved[r];
    for (uint32_t i = 0; maps && i < n; i++) {
        was_right = was_right && f->committed[first + i];
    }
    ASSERT_EQ(maps ? np_pagemap_map(map, range(r) + at * PAGE, first, n)
                   : np_pagemap_unmap(map, range(r) + at * PAGE, n),
              was_right);
    for (uint32_t i = 0; was_right && i < n; i++) {
        f->pages[r][at + i] = maps ? first + i + 1 : 0;
    }
}

static void reserve_or_not(np_pagemap *map, flat *f, uint32_t r)
{
    if (!f->reserved[r]) {
        ASSERT_OK(np_pagemap_add(map, range(r), RANGE_PAGES));
    } else {
        bool is_empty = true;
        for (uint32_t i = 0; i < RANGE_PAGES; i++) {
            is_empty = is_empty && f->pages[r][i] == 0;
            f->pages[r][i] = 0;
        }
        ASSERT_EQ(np_pagemap_remove(map, range(r), RANGE_PAGES), is_empty);
    }
    f->reserved[r] = !f->reserved[r];
}

static void compare(const np_pagemap *map, const flat *f)
{
    for (uint32_t r = 0; r < N_RANGES; r++) {
        for (uint32_t i = 0; i < RANGE_PAGES; i++) {
            np_piece piece;
            bool found = np_pagemap_find(map, range(r) + i * PAGE + 3, 1, &piece);
            ASSERT_EQ(found, f->pages[r][i] > 0);
            if (found) {
                ASSERT_EQ(piece.begin, (f->pages[r][i] - 1) * PAGE + 3);
                ASSERT_EQ(piece.end, piece.begin + 1);
            }
        }
    }
    ASSERT_TRUE(np_pagemap_is_valid(map));
}

static void test_random_calls(void **state)
{
    np_pagemap map;
    np_rng rng = np_rng_make(1);
    flat f = {0};
    (void)state;
    np_pagemap_init(&map, NULL, PAGE);
    for (int i = 0; i < 5000; i++) {
        uint32_t r = (uint32_t)np_rng_below(&rng, N_RANGES);
        uint32_t first = (uint32_t)np_rng_below(&rng, N_PAGES);
        uint32_t n = 1 + (uint32_t)np_rng_below(&rng, N_PAGES - first);
        switch (np_rng_below(&rng, 16)) {
        case 0:
            reserve_or_not(&map, &f, r);
            break;
        case 1:
        case 2:
            commit_or_release(&map, &f, first, n, true);
            break;
        case 3:
            commit_or_release(&map, &f, first, n < 3 ? n : 3, false);
            break;
        default:
            map_or_unmap(&map, &f, &rng, r, np_rng_below(&rng, 2) == 0);
        }
        compare(&map, &f);
    }
    np_pagemap_free(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_random_calls),
    };
    return cmocka_run_group_tests_name("device/pagemap", tests, NULL, NULL);
}
