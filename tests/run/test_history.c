/* test_history.c: what is expected after what, and that the runs are the longest there are. */
#include "run/history.h"

#include "base/rng.h"
#include "testing.h"

static void add_all(np_history *history, const char *kinds)
{
    for (; *kinds; kinds++) {
        np_history_add(history, (uint64_t)*kinds);
    }
}

/* '-': nothing. */
static char predict_after(const char *kinds)
{
    np_history history = {.n = 0};
    uint64_t kind = '-';
    add_all(&history, kinds);
    return np_history_predict(&history, &kind) ? (char)kind : '-';
}

static void test_examples(void **state)
{
    (void)state;
    ASSERT_EQ(predict_after(""), '-');
    ASSERT_EQ(predict_after("a"), '-');
    ASSERT_EQ(predict_after("ab"), '-');
    ASSERT_EQ(predict_after("aa"), 'a');
    ASSERT_EQ(predict_after("aba"), 'b');
    ASSERT_EQ(predict_after("aaab"), '-');
    ASSERT_EQ(predict_after("aaaba"), 'a');       /* twice an a came after an a, and once a b */
    ASSERT_EQ(predict_after("aaabaaabaaa"), 'b'); /* three of them, and a b before */
    ASSERT_EQ(predict_after("aaabaaabaa"), 'a');
    ASSERT_EQ(predict_after("ababcababcab"), 'a');
    ASSERT_EQ(predict_after("ababcababcabab"), 'c');
    ASSERT_EQ(predict_after("aaaaaaaabbb"), 'b'); /* it has changed for good */
}

/* Every n-th is another: known from its third time on at the latest, however long that is. */
static void test_every_nth(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 120; n++) {
        np_history history = {.n = 0};
        uint32_t n_wrong = 0;
        for (uint32_t i = 0; i < 12 * n; i++) {
            uint64_t actual = i % n == n - 1 ? 2 : 1;
            uint64_t expected = 1;
            bool is_known = np_history_predict(&history, &expected);
            n_wrong += i >= 3 * n && (!is_known || expected != actual);
            np_history_add(&history, actual);
        }
        ASSERT_EQ(history.n, 12 * n < NP_HISTORY ? 12 * n : NP_HISTORY);
        ASSERT_EQ(n_wrong, 0);
    }
}

/* By definition, the slow way: from the last n kinds, the last one last. */
static bool predict_slowly(const uint64_t *kinds, uint64_t n, uint64_t *kind)
{
    uint32_t longest = 0;
    uint32_t n_best = 0;
    for (int pass = 0; pass < 2; pass++) {
        uint32_t n_times[4] = {0};
        for (uint64_t at = n; at > 1 && --at > 0;) {
            uint32_t length = 0;
            while (length < at && kinds[at - 1 - length] == kinds[n - 1 - length]) {
                length++;
            }
            longest = pass == 0 && length > longest ? length : longest;
            if (pass == 1 && longest > 0 && length == longest && ++n_times[kinds[at]] > n_best) {
                n_best = n_times[kinds[at]];
                *kind = kinds[at];
            }
        }
    }
    return n_best > 0;
}

static void test_random_histories(void **state)
{
    np_rng rng = np_rng_make(1);
    (void)state;
    for (int round = 0; round < (TEST_SANITIZED ? 200 : 2000); round++) {
        np_history history = {.n = 0};
        uint64_t n_kinds = 1 + np_rng_below(&rng, 3);
        uint64_t n = np_rng_below(&rng, round % 10 == 0 ? 2 * NP_HISTORY : 20);
        uint64_t expected = 9;
        uint64_t found = 9;
        uint64_t kinds[2 * NP_HISTORY];
        uint64_t forgotten = n > NP_HISTORY ? n - NP_HISTORY : 0;
        for (uint64_t i = 0; i < n; i++) {
            kinds[i] = np_rng_below(&rng, 4) ? i * n_kinds / 3 % n_kinds : np_rng_below(&rng, n_kinds);
            np_history_add(&history, kinds[i]);
        }
        ASSERT_EQ(np_history_predict(&history, &found), predict_slowly(kinds + forgotten, n - forgotten, &expected));
        ASSERT_EQ(found, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_every_nth),
        cmocka_unit_test(test_random_histories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
