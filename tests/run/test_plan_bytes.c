/* test_plan_bytes.c: numbers, doubles and texts come back, and nothing else does. */
#include <math.h>
#include <string.h>

#include "run/plan_code.h"
#include "testing.h"

static np_plan_reader reader_of(const np_plan_writer *writer)
{
    return (np_plan_reader){.at = writer->bytes.items, .end = writer->bytes.items + writer->bytes.n};
}

static void test_numbers(void **state)
{
    (void)state;
    for (int bit = 0; bit <= 64; bit++) {
        for (uint64_t less = 0; less < 3; less++) {
            np_plan_writer w = {0};
            uint64_t number = (bit < 64 ? (uint64_t)1 << bit : 0) - less;
            np_plan_reader r;
            np_plan_put_number(&w, number);
            ASSERT_OK(w.status);
            r = reader_of(&w);
            ASSERT_EQ(np_plan_get_number(&r), number);
            ASSERT_TRUE(r.at == r.end && !r.is_bad);
            for (size_t n = 0; n < w.bytes.n; n++) { /* cut short */
                r = reader_of(&w);
                r.end = r.at + n;
                ASSERT_EQ(np_plan_get_number(&r), 0);
                ASSERT_TRUE(r.is_bad && r.at == r.end);
            }
            np_array_free(NULL, &w.bytes);
        }
    }
}

/* In one way only, and below 2^64. */
static void test_wrong_numbers(void **state)
{
    static const struct {
        unsigned char bytes[11];
        size_t n;
    } wrong[] = {
        {{0x80, 0x00}, 2},
        {{0xff, 0x80, 0x00}, 3},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02}, 10},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x81, 0x00}, 11},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 11},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        np_plan_reader r = {.at = wrong[i].bytes, .end = wrong[i].bytes + wrong[i].n};
        ASSERT_EQ(np_plan_get_number(&r), 0);
        ASSERT_TRUE(r.is_bad && r.at == r.end);
        ASSERT_EQ(np_plan_get_number(&r), 0);
    }
}

static void test_doubles(void **state)
{
    static const double numbers[] = {0.0, -0.0, 1.5, -1e300, 5e-324, INFINITY};
    np_plan_writer w = {0};
    np_plan_reader r;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        np_plan_put_double(&w, numbers[i]);
    }
    r = reader_of(&w);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double number = np_plan_get_double(&r);
        ASSERT_EQ(memcmp(&number, &numbers[i], sizeof number), 0);
    }
    ASSERT_FALSE(r.is_bad);
    r.at = r.end - 7;
    ASSERT_TRUE(np_plan_get_double(&r) == 0 && r.is_bad);
    ASSERT_EQ(w.bytes.items[2 * 8 + 7], 0x3f); /* the lowest byte first, whatever the machine */
    np_array_free(NULL, &w.bytes);
}

static void test_bounds(void **state)
{
    static const unsigned char bytes[] = {5, 'a', 'b', 'c', 'd', 'e'};
    np_plan_reader whole = {.at = bytes, .end = bytes + sizeof bytes};
    np_plan_reader r = whole;
    size_t n;
    (void)state;
    ASSERT_EQ(memcmp(np_plan_get_text(&r, &n), "abcde", 5), 0);
    ASSERT_EQ(n, 5);
    ASSERT_TRUE(r.at == r.end && !r.is_bad);
    r = whole;
    r.end--;
    (void)np_plan_get_text(&r, &n);
    ASSERT_TRUE(n == 0 && r.is_bad);
    r = whole;
    ASSERT_EQ(np_plan_get_count(&r, 1), 5);
    r = whole;
    ASSERT_EQ(np_plan_get_count(&r, 2), 0);
    ASSERT_TRUE(r.is_bad);
    r = whole;
    ASSERT_EQ(np_plan_get_below(&r, 6), 5);
    r = whole;
    ASSERT_EQ(np_plan_get_below(&r, 5), 0);
    ASSERT_TRUE(r.is_bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
