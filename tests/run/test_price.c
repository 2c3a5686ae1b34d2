/* test_price.c: what timing costs: the median of the gaps between execs, where there are enough of them. */
#include "run/price.h"

#include "testing.h"

enum { EXEC_NS = 1000 };

/* n execs more, each so long after the one before. */
static void add(np_price *price, uint64_t gap_ns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint64_t begin = price->last_end_ns > 0 ? price->last_end_ns : 500;
        np_price_add(price, begin + gap_ns, EXEC_NS);
    }
}

static np_price begin(void)
{
    np_price price = {0};
    add(&price, 0, 1); /* before which there is no gap */
    return price;
}

/* To the length that gaps are counted in. */
static void assert_near(const np_price *price, uint64_t ns)
{
    ASSERT_LE(np_price_ns(price), ns);
    ASSERT_GT(np_price_ns(price) + 32, ns);
}

static void test_median(void **state)
{
    np_price price = begin();
    (void)state;
    add(&price, 640, 20);
    assert_near(&price, 640);
    add(&price, 1500, 19);
    assert_near(&price, 640);
    add(&price, 1500, 1);
    assert_near(&price, 640); /* the lower of two */
    add(&price, 1500, 1);
    assert_near(&price, 1500);
    add(&price, 64, 2);
    assert_near(&price, 640);
    add(&price, 4095, 100); /* the longest that counts */
    assert_near(&price, 4095);
}

static void test_no_gap_is_free(void **state)
{
    np_price price = begin();
    (void)state;
    add(&price, 0, 40);
    ASSERT_EQ(price.n, 40);
    ASSERT_EQ(np_price_ns(&price), 0);
}

static void test_too_few(void **state)
{
    np_price price = {0};
    (void)state;
    ASSERT_EQ(np_price_ns(&price), 0);
    price = begin();
    ASSERT_EQ(price.n, 0);
    add(&price, 640, 15);
    ASSERT_EQ(np_price_ns(&price), 0);
    add(&price, 640, 1);
    assert_near(&price, 640);
}

/* The device waited for something else: such gaps neither count nor help to be enough. */
static void test_long_gaps(void **state)
{
    np_price price = begin();
    (void)state;
    add(&price, 4096, 50);
    add(&price, 1000000, 50);
    ASSERT_EQ(np_price_ns(&price), 0);
    add(&price, 640, 15);
    ASSERT_EQ(np_price_ns(&price), 0);
    add(&price, 640, 1);
    assert_near(&price, 640);
}

/* What overlaps has no gap; the next gap is from its end. What has no time is as if it were not there. */
static void test_no_gaps(void **state)
{
    np_price price = begin();
    (void)state;
    for (int i = 0; i < 40; i++) {
        np_price_add(&price, price.last_end_ns - 1, EXEC_NS);
    }
    ASSERT_EQ(price.n, 0);
    for (int i = 0; i < 40; i++) {
        uint64_t end = price.last_end_ns;
        np_price_add(&price, end + 200, 0);
        ASSERT_EQ(price.last_end_ns, end);
        add(&price, 640, 1);
    }
    ASSERT_EQ(price.n, 40);
    assert_near(&price, 640);
}

static void test_paid(void **state)
{
    (void)state;
    ASSERT_EQ(np_price_paid(5000, 0), 5000); /* not known */
    ASSERT_EQ(np_price_paid(5000, 1000), 4000);
    ASSERT_EQ(np_price_paid(5000, 3499), 1501);
    ASSERT_EQ(np_price_paid(5000, 3500), 1500); /* a share of what was seen, */
    ASSERT_EQ(np_price_paid(5000, 4000), 1500);
    ASSERT_EQ(np_price_paid(5000, 5000), 1500);
    ASSERT_EQ(np_price_paid(5000, UINT32_MAX), 1500); /* whatever the price */
    ASSERT_EQ(np_price_paid(0, 0), 0);
    ASSERT_EQ(np_price_paid(0, 1000), 0); /* what is not known stays so */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),    cmocka_unit_test(test_no_gap_is_free), cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_long_gaps), cmocka_unit_test(test_no_gaps),        cmocka_unit_test(test_paid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
