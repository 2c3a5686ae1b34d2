/* test_pages.c: the device's pages: taken lowest first, given back at once, counted right. */
#include "memory/pages.h"

#include <string.h>

#include "base/rng.h"
#include "device/faulty.h"
#include "testing.h"

enum { N_PAGES = 64 };

typedef struct scene {
    np_device *device;
    np_pages pages;
} scene;

static void open_scene(scene *s, const char *name)
{
    np_device *inner;
    ASSERT_OK(np_device_open(name, NULL, NULL, &inner));
    s->device = faulty_wrap(inner);
    np_pages_init(&s->pages, s->device);
}

/* Nothing was taken that was not given back, and the device has seen nothing wrong. */
static void close_scene(scene *s)
{
    ASSERT_TRUE(np_pages_is_valid(&s->pages));
    ASSERT_TRUE(s->device->api->problem(s->device) == NULL);
    np_pages_free(&s->pages);
    s->device->api->free(s->device);
}

static void test_lowest_first(void **state)
{
    scene s;
    uint32_t a[4];
    uint32_t b[6];
    (void)state;
    open_scene(&s, "sim:page=4096,memory=256KiB");
    ASSERT_OK(np_pages_take(&s.pages, 4, a));
    ASSERT_EQ(a[0], 0);
    ASSERT_EQ(a[3], 3);
    np_pages_unuse(&s.pages, &a[1], 2);
    ASSERT_EQ(s.pages.n_held, 2);
    ASSERT_TRUE(np_pages_is_valid(&s.pages));
    ASSERT_OK(np_pages_take(&s.pages, 6, b)); /* the hole, then the rest */
    ASSERT_EQ(b[0], 1);
    ASSERT_EQ(b[1], 2);
    ASSERT_EQ(b[2], 4);
    ASSERT_EQ(b[5], 7);
    ASSERT_EQ(s.pages.n_held, 8);
    ASSERT_EQ(s.pages.peak_held, 8);
    np_pages_unuse(&s.pages, b, 6);
    np_pages_unuse(&s.pages, &a[0], 1);
    np_pages_unuse(&s.pages, &a[3], 1);
    ASSERT_EQ(s.pages.n_held, 0);
    ASSERT_EQ(s.pages.peak_held, 8);
    close_scene(&s);
}

static void test_full(void **state)
{
    scene s;
    uint32_t a[N_PAGES + 1];
    (void)state;
    open_scene(&s, "sim:page=4096,memory=256KiB");
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_pages_take(&s.pages, N_PAGES + 1, a));
    ASSERT_EQ(s.pages.n_held, 0);
    ASSERT_OK(np_pages_take(&s.pages, N_PAGES, a));
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_pages_take(&s.pages, 1, &a[N_PAGES]));
    np_pages_unuse(&s.pages, &a[10], 1);
    ASSERT_OK(np_pages_take(&s.pages, 1, &a[N_PAGES]));
    ASSERT_EQ(a[N_PAGES], a[10]);
    np_pages_unuse(&s.pages, a, N_PAGES);
    close_scene(&s);
}

/* Where the device fails in the middle, all is as before. */
static void test_commit_fails(void **state)
{
    scene s;
    uint32_t a[5];
    uint32_t b[4];
    (void)state;
    open_scene(&s, "sim:page=4096,memory=256KiB");
    ASSERT_OK(np_pages_take(&s.pages, 5, a));
    np_pages_unuse(&s.pages, &a[1], 1);
    np_pages_unuse(&s.pages, &a[3], 1);
    faulty_set(s.device, &(faulty_plan){.calls = 1u << FAULTY_COMMIT, .every = 3});
    ASSERT_STATUS(NEAP_DEVICE_FULL, np_pages_take(&s.pages, 4, b)); /* in three runs: 1, 3, 5 and 6 */
    ASSERT_TRUE(np_pages_is_valid(&s.pages));
    ASSERT_EQ(s.pages.n_held, 3);
    faulty_set(s.device, &(faulty_plan){0});
    ASSERT_OK(np_pages_take(&s.pages, 4, b));
    ASSERT_EQ(b[0], 1);
    np_pages_unuse(&s.pages, b, 4);
    np_pages_unuse(&s.pages, &a[0], 1);
    np_pages_unuse(&s.pages, &a[2], 1);
    np_pages_unuse(&s.pages, &a[4], 1);
    close_scene(&s);
}

static void test_arena(void **state)
{
    scene s;
    uint32_t a[4];
    (void)state;
    open_scene(&s, "sim:page=4096,memory=256KiB");
    ASSERT_OK(np_pages_take(&s.pages, 4, a));
    ASSERT_EQ(np_pages_borrow(&s.pages), NP_NO_PAGE);
    np_pages_join_arena(&s.pages, a[1]);
    np_pages_join_arena(&s.pages, a[2]);
    ASSERT_EQ(s.pages.n_arena_unused, 0);
    np_pages_unuse(&s.pages, a, 4); /* the arena keeps its own */
    ASSERT_EQ(s.pages.n_held, 2);
    ASSERT_EQ(s.pages.n_arena_unused, 2);
    ASSERT_TRUE(np_pages_is_valid(&s.pages));
    ASSERT_EQ(np_pages_borrow(&s.pages), a[1]);
    np_pages_use(&s.pages, a[1]);
    np_pages_use(&s.pages, a[2]);
    ASSERT_EQ(np_pages_borrow(&s.pages), NP_NO_PAGE);
    np_pages_unuse(&s.pages, &a[1], 1);
    ASSERT_EQ(s.pages.n_arena_unused, 0); /* it has another user */
    np_pages_clear_arena(&s.pages, true);
    ASSERT_EQ(s.pages.n_arena_unused, 2);
    ASSERT_TRUE(np_pages_is_arena(&s.pages, a[2]));
    np_pages_leave_arena(&s.pages, a[2]); /* nobody has data there: it goes at once */
    ASSERT_FALSE(np_pages_is_arena(&s.pages, a[2]));
    ASSERT_EQ(s.pages.n_held, 1);
    ASSERT_EQ(s.pages.n_arena, 1);
    ASSERT_EQ(s.pages.n_arena_unused, 1);
    ASSERT_TRUE(np_pages_is_valid(&s.pages));
    ASSERT_OK(np_pages_take(&s.pages, 2, a)); /* and can be taken by anybody */
    ASSERT_EQ(s.pages.n_held, 3);
    np_pages_unuse(&s.pages, a, 2);
    close_scene(&s);
}

/* Takes and gives at random, beside a plain count of users. */
static void test_random(void **state)
{
    np_rng rng = np_rng_make(7);
    uint32_t n_users[N_PAGES] = {0};
    scene s;
    (void)state;
    open_scene(&s, "sim:page=4096,memory=256KiB");
    for (int round = 0; round < 4000; round++) {
        uint32_t numbers[8];
        uint32_t n = 1 + (uint32_t)np_rng_below(&rng, 8);
        uint32_t page = (uint32_t)np_rng_below(&rng, N_PAGES);
        if (np_rng_below(&rng, 2) && np_pages_take(&s.pages, n, numbers) == NEAP_OK) {
            for (uint32_t i = 0; i < n; i++) {
                ASSERT_EQ(n_users[numbers[i]], 0);
                n_users[numbers[i]] = 1;
            }
        } else if (n_users[page] > 0 && np_rng_below(&rng, 3) == 0) {
            np_pages_use(&s.pages, page);
            n_users[page]++;
        } else if (n_users[page] > 0) {
            np_pages_unuse(&s.pages, &page, 1);
            n_users[page]--;
        }
        ASSERT_TRUE(np_pages_is_valid(&s.pages));
        for (uint32_t i = 0; i < s.pages.pages.n; i++) {
            ASSERT_EQ(s.pages.pages.items[i].n_users, n_users[i]);
        }
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lowest_first), cmocka_unit_test(test_full),   cmocka_unit_test(test_commit_fails),
        cmocka_unit_test(test_arena),        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
