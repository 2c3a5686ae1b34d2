/* test_space.c: places of a space, the pages behind it, and spares: against a plain list of who has which bytes. */
#include "memory/space.h"

#include <string.h>

#include "base/rng.h"
#include "testing.h"

enum { PAGE = 4096, MOST = 48 };

typedef struct scene {
    np_device *device;
    np_pages pages;
    np_space space;
} scene;

typedef struct standing {
    np_place place;
    np_view view;
    uint64_t bytes; /* 0: none stands here */
} standing;

static void open_scene(scene *s, uint64_t unit)
{
    ASSERT_OK(np_device_open("sim:page=4096,memory=8MiB", NULL, NULL, &s->device));
    np_pages_init(&s->pages, s->device);
    np_space_init(&s->space, &s->pages, 0, unit);
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_space_is_valid(&s->space) && np_pages_is_valid(&s->pages));
    np_space_free(&s->space);
    ASSERT_EQ(s->pages.n_held, 0);
    ASSERT_TRUE(s->device->api->problem(s->device) == NULL);
    np_pages_free(&s->pages);
    s->device->api->free(s->device);
}

/* As the manager does: a spare, or a new view onto what stands behind the place, new pages where nothing does. */
static bool stand(scene *s, uint64_t id, uint64_t bytes, standing *block)
{
    uint32_t n;
    ASSERT_OK(np_space_place(&s->space, id, bytes, &block->place));
    block->bytes = bytes;
    if (np_space_take_spare(&s->space, &block->place, bytes, &block->view)) {
        return true;
    }
    n = np_space_n_pages(&s->space, &block->place, bytes);
    ASSERT_OK(np_view_make(&s->pages, n, &block->view));
    block->view.lead = block->place.begin % PAGE;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t number = np_space_page(&s->space, &block->place, k);
        if (number == NP_NO_PAGE) {
            ASSERT_OK(np_pages_take(&s->pages, 1, &number));
            np_space_back(&s->space, &block->place, k, number);
        } else {
            np_pages_use(&s->pages, number);
        }
        ASSERT_OK(np_view_map(&s->pages, &block->view, k, 1, &number));
    }
    return false;
}

static void leave(scene *s, standing *block)
{
    if (!np_space_keep_spare(&s->space, &block->place, &block->view)) {
        np_view_free(&s->pages, &block->view, NP_COUNTED);
    }
    np_space_leave(&s->space, &block->place);
    block->bytes = 0;
}

static void test_best_fit(void **state)
{
    scene s;
    standing b[5];
    (void)state;
    open_scene(&s, NP_SPACE_UNIT);
    for (uint64_t i = 0; i < 5; i++) {
        ASSERT_FALSE(stand(&s, i, (5 - i) * PAGE + 100, &b[i]));
    }
    ASSERT_EQ(b[1].place.begin, 5 * PAGE + 512);
    ASSERT_EQ(np_space_neighbour(&s.space, &b[1].place), 0);
    ASSERT_EQ(np_space_neighbour(&s.space, &b[0].place), NP_NO_NEIGHBOUR);
    leave(&s, &b[0]);
    leave(&s, &b[2]);
    ASSERT_EQ(np_space_neighbour(&s.space, &b[1].place), NP_NO_NEIGHBOUR);
    ASSERT_FALSE(stand(&s, 5, 2 * PAGE, &b[2])); /* the hole of 3 pages, not that of 5 */
    ASSERT_EQ(b[2].place.begin, 5 * PAGE + 512 + 4 * PAGE + 512);
    ASSERT_TRUE(stand(&s, 6, 5 * PAGE + 50, &b[0])); /* as it was */
    ASSERT_EQ(b[0].place.begin, 0);
    for (int i = 0; i < 5; i++) {
        leave(&s, &b[i]);
    }
    close_scene(&s);
}

/* Of pages that nothing uses: the last of the line, and none where there is none. */
static void test_steal(void **state)
{
    scene s;
    standing a;
    standing b;
    uint32_t number;
    (void)state;
    open_scene(&s, PAGE);
    (void)stand(&s, 1, 2 * PAGE, &a);
    (void)stand(&s, 2, 3 * PAGE, &b);
    ASSERT_EQ(np_space_steal(&s.space), NP_NO_PAGE);
    number = b.view.numbers[2];
    leave(&s, &b);
    ASSERT_EQ(s.pages.n_idle, 3);
    ASSERT_EQ(np_space_steal(&s.space), number);
    ASSERT_EQ(s.pages.n_idle, 2);
    ASSERT_FALSE(stand(&s, 3, 3 * PAGE, &b)); /* the spare shows a page that is used elsewhere */
    leave(&s, &b);
    leave(&s, &a);
    np_space_drop_spares(&s.space); /* they show it, too */
    np_pages_unuse(&s.pages, &number, 1);
    close_scene(&s);
}

/* A spare whose pages stand elsewhere in the line by now has them back. */
static void test_pages_change_places(void **state)
{
    scene s;
    standing a;
    standing b;
    uint32_t number;
    (void)state;
    open_scene(&s, PAGE);
    (void)stand(&s, 1, 2 * PAGE, &a);
    (void)stand(&s, 2, 4 * PAGE, &b);
    leave(&s, &b);
    number = np_space_steal(&s.space); /* for a place further on */
    (void)stand(&s, 3, 3 * PAGE, &b);
    np_space_back(&s.space, &b.place, 3, number);
    np_pages_unuse(&s.pages, &number, 1);
    leave(&s, &b);
    ASSERT_TRUE(stand(&s, 4, 4 * PAGE, &b));
    ASSERT_EQ(s.pages.n_held, 6);
    ASSERT_TRUE(np_space_is_valid(&s.space) && np_pages_is_valid(&s.pages));
    leave(&s, &b);
    leave(&s, &a);
    close_scene(&s);
}

/* No two blocks have the same bytes of the device; what they share is a page, in other bytes. */
static void check_bytes(const scene *s, const standing *blocks)
{
    static unsigned char taken[2048][PAGE / NP_SPACE_UNIT];
    memset(taken, 0, sizeof taken);
    for (int i = 0; i < MOST; i++) {
        for (uint64_t at = 0; at < blocks[i].bytes; at += NP_SPACE_UNIT) {
            uint64_t byte = blocks[i].view.lead + at;
            uint32_t number = blocks[i].view.numbers[byte / PAGE];
            ASSERT_EQ(taken[number][byte % PAGE / NP_SPACE_UNIT]++, 0);
            ASSERT_EQ(number, np_space_page(&s->space, &blocks[i].place, (uint32_t)(byte / PAGE)));
        }
    }
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= (uint64_t)test_rounds(20, 2000); seed++) {
        np_rng rng = np_rng_make(seed);
        standing blocks[MOST] = {{.bytes = 0}};
        scene s;
        open_scene(&s, seed % 2 ? NP_SPACE_UNIT : PAGE);
        for (int i = 0; i < 600; i++) {
            standing *block = &blocks[np_rng_below(&rng, MOST)];
            if (block->bytes > 0) {
                leave(&s, block);
            } else {
                (void)stand(&s, (uint64_t)i, 1 + np_rng_below(&rng, 8 * PAGE), block);
            }
            if (np_rng_below(&rng, 10) == 0) {
                uint32_t number = np_space_steal(&s.space);
                np_space_drop_spares(&s.space);
                if (number != NP_NO_PAGE) {
                    np_pages_unuse(&s.pages, &number, 1);
                }
            }
            ASSERT_TRUE(np_space_is_valid(&s.space) && np_pages_is_valid(&s.pages));
            check_bytes(&s, blocks);
        }
        for (int i = 0; i < MOST; i++) {
            if (blocks[i].bytes > 0) {
                leave(&s, &blocks[i]);
            }
        }
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_steal),
        cmocka_unit_test(test_pages_change_places),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests_name("memory/space", tests, NULL, NULL);
}
