#include "swap/link.h"

#include "testing.h"

static void known_by_name(void **state)
{
    neap_link link;
    size_t n = 0;
    (void)state;
    ASSERT_OK(neap_link_find("h200-pcie5", &link));
    ASSERT_TRUE(link.out_gbs == 55 && link.in_gbs == 55 && link.both_gbs == 100);
    ASSERT_OK(neap_link_find("1080ti-pcie3", &link));
    ASSERT_TRUE(link.out_gbs == 13.2 && link.in_gbs == 12.1 && link.both_gbs == 0);
    ASSERT_OK(neap_link_find("a100-pcie4", &link));
    for (; neap_link_name(n); n++) {
        ASSERT_OK(neap_link_find(neap_link_name(n), &link));
        ASSERT_TRUE(link.out_gbs > 0 && link.in_gbs > 0 && link.latency_us >= 0);
        ASSERT_TRUE(link.both_gbs == 0 || link.both_gbs <= link.out_gbs + link.in_gbs);
    }
    ASSERT_EQ(n, 3);
    ASSERT_TRUE(neap_link_name(n + 100) == NULL);
}

static void unknown_names_change_nothing(void **state)
{
    static const char *const names[] = {"", "h200", "h200-pcie5 ", "H200-PCIE5", "h200-pcie55"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        neap_link link = {.out_gbs = 7};
        ASSERT_STATUS(NEAP_BAD_ARGUMENT, neap_link_find(names[i], &link));
        ASSERT_TRUE(link.out_gbs == 7);
    }
}

/* A byte a ns is 10^9 bytes a second; latencies are in us outside and in ns inside. */
static void units_are_bytes_and_ns(void **state)
{
    neap_link link = {.out_gbs = 13.2, .in_gbs = 12.1, .both_gbs = 20, .latency_us = 2.5};
    np_link inside = np_link_from(&link);
    (void)state;
    ASSERT_TRUE(inside.out == 13.2 && inside.in == 12.1 && inside.both == 20 && inside.latency_ns == 2500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_by_name),
        cmocka_unit_test(unknown_names_change_nothing),
        cmocka_unit_test(units_are_bytes_and_ns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
