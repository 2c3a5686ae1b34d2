/* test_view.c: address ranges of their own, mapped page by page. */
#include "memory/view.h"

#include <string.h>

#include "device/faulty.h"
#include "testing.h"

enum { PAGE = 4096 };

typedef struct scene {
    np_device *device;
    np_pages pages;
} scene;

static void open_scene(scene *s)
{
    np_device *inner;
    ASSERT_OK(np_device_open("sim:page=4096,memory=256KiB", NULL, NULL, &inner));
    s->device = faulty_wrap(inner);
    np_pages_init(&s->pages, s->device);
}

static void close_scene(scene *s)
{
    ASSERT_TRUE(np_pages_is_valid(&s->pages));
    ASSERT_EQ(s->pages.n_held, 0);
    ASSERT_TRUE(s->device->api->problem(s->device) == NULL);
    np_pages_free(&s->pages);
    s->device->api->free(s->device);
}

static void test_maps(void **state)
{
    static const uint32_t order[] = {4, 5, 1, 0};
    scene s;
    np_view view;
    np_view other;
    uint32_t numbers[6];
    (void)state;
    open_scene(&s);
    ASSERT_OK(np_pages_take(&s.pages, 6, numbers));
    ASSERT_OK(np_view_make(&s.pages, 6, &view));
    ASSERT_EQ(view.n_missing, 6);
    ASSERT_OK(np_view_map(&s.pages, &view, 1, 4, order));
    ASSERT_EQ(view.n_missing, 2);
    ASSERT_EQ(view.numbers[0], NP_NO_PAGE);
    ASSERT_EQ(view.numbers[3], 1);
    ASSERT_TRUE(np_view_is_valid(&s.pages, &view));
    memset(view.address + PAGE, 'a', PAGE);
    memset(view.address + 4 * PAGE, 'b', PAGE);

    ASSERT_OK(np_view_make(&s.pages, 2, &other)); /* the same pages elsewhere show the same bytes */
    np_pages_use(&s.pages, 0);
    np_pages_use(&s.pages, 4);
    ASSERT_OK(np_view_map(&s.pages, &other, 0, 2, (uint32_t[]){0, 4}));
    ASSERT_EQ(other.address[0], 'b');
    ASSERT_EQ(other.address[PAGE], 'a');

    np_view_unmap(&s.pages, &view, 0, 3, NP_COUNTED); /* what is missing is passed over */
    ASSERT_EQ(view.n_missing, 4);
    ASSERT_TRUE(np_view_is_valid(&s.pages, &view));
    ASSERT_EQ(s.pages.pages.items[5].is_held, false);
    ASSERT_EQ(s.pages.pages.items[4].n_users, 1);
    np_view_free(&s.pages, &view, NP_COUNTED);
    ASSERT_TRUE(view.numbers == NULL);
    np_view_free(&s.pages, &view, NP_COUNTED); /* an empty one */
    np_view_free(&s.pages, &other, NP_COUNTED);
    np_pages_unuse(&s.pages, (uint32_t[]){2, 3}, 2);
    close_scene(&s);
}

/* Uncounted views come and go without changing who uses a page. */
static void test_uncounted(void **state)
{
    scene s;
    np_view view;
    uint32_t numbers[3];
    (void)state;
    open_scene(&s);
    ASSERT_OK(np_pages_take(&s.pages, 3, numbers));
    ASSERT_OK(np_view_make(&s.pages, 3, &view));
    ASSERT_OK(np_view_map(&s.pages, &view, 0, 3, numbers));
    np_view_free(&s.pages, &view, NP_UNCOUNTED);
    ASSERT_EQ(s.pages.n_held, 3);
    np_pages_unuse(&s.pages, numbers, 3);
    close_scene(&s);
}

/* The n-th call fails: nothing is mapped then. */
static void test_map_fails(void **state)
{
    scene s;
    np_view view;
    uint32_t numbers[5];
    (void)state;
    open_scene(&s);
    ASSERT_OK(np_pages_take(&s.pages, 5, numbers));
    ASSERT_OK(np_view_make(&s.pages, 3, &view));
    for (uint64_t n = 1; n <= 3; n++) { /* three runs of one page each */
        faulty_set(s.device, &(faulty_plan){.calls = 1u << FAULTY_MAP, .every = n});
        ASSERT_STATUS(NEAP_NO_MEMORY, np_view_map(&s.pages, &view, 0, 3, (uint32_t[]){4, 2, 0}));
        ASSERT_EQ(view.n_missing, 3);
        ASSERT_TRUE(np_view_is_valid(&s.pages, &view));
    }
    faulty_set(s.device, &(faulty_plan){.calls = 1u << FAULTY_RESERVE, .every = 1});
    ASSERT_STATUS(NEAP_NO_MEMORY, np_view_make(&s.pages, 3, &view));
    faulty_set(s.device, &(faulty_plan){0});
    ASSERT_EQ(view.n_pages, 3); /* as it was */
    ASSERT_OK(np_view_map(&s.pages, &view, 0, 3, (uint32_t[]){4, 2, 0}));
    np_view_free(&s.pages, &view, NP_COUNTED);
    np_pages_unuse(&s.pages, (uint32_t[]){1, 3}, 2);
    close_scene(&s);
}

static void test_is_valid(void **state)
{
    scene s;
    np_view view;
    uint32_t number;
    (void)state;
    open_scene(&s);
    ASSERT_OK(np_pages_take(&s.pages, 1, &number));
    ASSERT_OK(np_view_make(&s.pages, 2, &view));
    ASSERT_OK(np_view_map(&s.pages, &view, 0, 1, &number));
    view.n_missing = 0;
    ASSERT_FALSE(np_view_is_valid(&s.pages, &view));
    view.n_missing = 1;
    view.numbers[0] = 7; /* nobody holds it */
    ASSERT_FALSE(np_view_is_valid(&s.pages, &view));
    view.numbers[0] = number;
    ASSERT_TRUE(np_view_is_valid(&s.pages, &view));
    np_view_free(&s.pages, &view, NP_COUNTED);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_map_fails),
        cmocka_unit_test(test_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
