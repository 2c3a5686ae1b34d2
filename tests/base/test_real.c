/* Numbers with a decimal point: written and read the same in every locale. */
#include "base/real.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "comma.h"
#include "testing.h"

static void test_written(void **state)
{
    (void)state;
    ASSERT_STR_EQ(np_real_fixed(0.5, 1).text, "0.5");
    ASSERT_STR_EQ(np_real_fixed(-1234567.891, 2).text, "-1234567.89");
    ASSERT_STR_EQ(np_real_fixed(2.5, 0).text, "2");
    ASSERT_STR_EQ(np_real_digits(0.00001234, 3).text, "1.23e-05");
    ASSERT_STR_EQ(np_real_digits(3e20, 4).text, "3e+20");
    ASSERT_STR_EQ(np_real_digits(54.321, 3).text, "54.3");
    ASSERT_STR_EQ(np_real_shortest(0.1).text, "0.1");
    ASSERT_STR_EQ(np_real_shortest(0.1 + 0.2).text, "0.30000000000000004");
    ASSERT_STR_EQ(np_real_shortest(-7).text, "-7");
    ASSERT_STR_EQ(np_real_fixed(INFINITY, 2).text, "inf");
    ASSERT_STR_EQ(np_real_shortest(NAN).text, "nan");
    ASSERT_EQ(strlen(np_real_fixed(1.7e308, 10).text), 309 + 1 + 10);
    ASSERT_EQ(strlen(np_real_fixed(1.7e308, 500).text), NP_REAL_CHARS - 1);
}

static void test_read(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        double value;
    } cases[] = {
        {"12", 2, 12},
        {"1.5", 3, 1.5},
        {"1.5GB/s", 3, 1.5},
        {"1.", 1, 1},
        {"1,5", 1, 1},
        {"0.018500", 8, 0.0185},
        {"2e-3", 4, 2e-3},
        {"2E+3x", 4, 2e3},
        {"2e", 1, 2},
        {"2e+", 1, 2},
        {"2eggs", 1, 2},
        {"007", 3, 7},
        {"0e99999999999", 13, 0},
        {"1e-99999999999", 14, 0},
        {"5e-324", 6, 5e-324},
        {"1.7976931348623157e308", 22, 1.7976931348623157e308},
        {"18446744073709551616", 20, 0x1p64},
        {"99999999999999999999999999", 26, 1e26},
        {"0.000000000000000000000000000000123456789", 41, 1.23456789e-31},
    };
    static const char *const none[] = {"", ".5", "-1", "+1", " 1", "x", "e5", "inf", "nan", "1e309", "1e99999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = -1;
        ASSERT_EQ(np_real_read(cases[i].text, strlen(cases[i].text), &value), cases[i].n);
        ASSERT_TRUE(value == cases[i].value);
    }
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double value = -1;
        ASSERT_EQ(np_real_read(none[i], strlen(none[i]), &value), 0);
        ASSERT_TRUE(value == -1);
    }
}

/* Not a byte behind the n that are given is looked at. */
static void test_bounds(void **state)
{
    static const char text[] = "12.50e2";
    static const struct {
        size_t used;
        double value;
    } expected[] = {{0, -1}, {1, 1}, {2, 12}, {2, 12}, {4, 12.5}, {5, 12.5}, {5, 12.5}, {7, 1250}};
    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = malloc(n + (n == 0));
        double value = -1;
        ASSERT_TRUE(copy != NULL);
        memcpy(copy, text, n);
        ASSERT_EQ(np_real_read(copy, n, &value), expected[n].used);
        ASSERT_TRUE(value == expected[n].value);
        free(copy);
    }
}

/* The nearest double, or its neighbour; what was written as the shortest, nearly always the same. */
static void test_there_and_back(void **state)
{
    np_rng rng = np_rng_make(1);
    uint32_t n_same = 0;
    const uint32_t n = 20000;
    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        double value = ldexp((double)np_rng_next(&rng), (int)np_rng_below(&rng, 120) - 90);
        np_real_text text = np_real_shortest(value);
        double back;
        ASSERT_EQ(np_real_read(text.text, strlen(text.text), &back), strlen(text.text));
        ASSERT_TRUE(back == value || back == nextafter(value, back));
        n_same += back == value;
    }
    ASSERT_GE(n_same, n - n / 100);
}

static void test_any_locale(void **state)
{
    test_comma_begin();
    test_written(state);
    test_read(state);
    test_bounds(state);
    test_there_and_back(state);
    test_comma_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written),        cmocka_unit_test(test_read),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_any_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
