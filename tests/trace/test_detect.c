#include "trace/detect.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"
#include "trace/detect_state.h"
#include "trace/make_steps.h"

static np_detector *feed_all(const steps *s)
{
    np_detector *d;
    ASSERT_OK(np_detector_create(NULL, &d));
    for (size_t i = 0; i < s->n; i++) {
        ASSERT_OK(np_detector_feed(d, s->items[i]));
    }
    ASSERT_TRUE(np_detector_is_valid(d));
    return d;
}

/* ---------------------------------------------------------------- keys ---- */

static void test_keys(void **state)
{
    (void)state;
    ASSERT_EQ(np_step_of_malloc(512).key, np_step_of_malloc(512).key);
    ASSERT_NE(np_step_of_malloc(512).key, np_step_of_malloc(1024).key);
    ASSERT_NE(np_step_of_malloc(512).key, np_step_of_exec(512).key);
    ASSERT_NE(np_step_of_free(512, 3).key, np_step_of_free(512, 4).key);
    ASSERT_NE(np_step_of_free(512, 3).key, np_step_of_free(1024, 3).key);
    ASSERT_EQ(np_step_of_malloc(512).live_hash_delta + np_step_of_free(512, 9).live_hash_delta, 0);
    ASSERT_EQ(np_step_of_malloc(512).live_bytes_delta, 512);
    ASSERT_EQ(np_step_of_free(512, 9).live_bytes_delta, -512);
    ASSERT_EQ(np_step_of_exec(7).live_bytes_delta, 0);
}

/* ---------------------------------------------------------------- against the definition ---- */

static bool same_run(const np_run *a, const np_run *b)
{
    return a->begin == b->begin && a->end == b->end && a->period == b->period && a->leak_bytes == b->leak_bytes;
}

/* The online answer must be the definition's wherever that has three periods, and never be better. */
static void compare_now(naive *n, np_detector *d, uint64_t seed, size_t i)
{
    np_run want = {0}, have = {0};
    bool any = naive_current(n, &want), found = np_detector_current(d, &have);
    bool must = any && want.end - want.begin >= 3 * want.period;
    if (found && (!any || have.end - have.begin > want.end - want.begin)) {
        test_fail(__FILE__, __LINE__, "seed %llu, event %zu: invented [%u, %u) of %u", (unsigned long long)seed, i,
                  have.begin, have.end, have.period);
    }
    if (must && (!found || !same_run(&want, &have))) {
        test_fail(__FILE__, __LINE__, "seed %llu, event %zu: [%u, %u) of %u, not [%u, %u) of %u",
                  (unsigned long long)seed, i, have.begin, have.end, have.period, want.begin, want.end, want.period);
    }
}

/* Returns whether the last answers are equal; they must be where the longest run has three periods. */
static bool compare_with(uint64_t seed, const steps *s, bool no_grams)
{
    naive *n = naive_create(s);
    np_detector *d;
    np_run want, have, longest;
    bool equal;
    ASSERT_OK(np_detector_create(NULL, &d));
    d->no_grams = no_grams;
    for (size_t i = 0; i < s->n; i++) {
        naive_feed(n);
        ASSERT_OK(np_detector_feed(d, s->items[i]));
        compare_now(n, d, seed, i);
    }
    ASSERT_TRUE(np_detector_is_valid(d));
    naive_best(n, &want, &longest);
    np_detector_best(d, &have);
    equal = same_run(&want, &have);
    if (!equal && longest.end - longest.begin >= 3 * longest.period) {
        test_fail(__FILE__, __LINE__, "seed %llu: best [%u, %u) of %u, not [%u, %u) of %u", (unsigned long long)seed,
                  have.begin, have.end, have.period, want.begin, want.end, want.period);
    }
    naive_free(n);
    np_detector_free(d);
    return equal;
}

static bool compare(uint64_t seed, const steps *s)
{
    return compare_with(seed, s, false);
}

static void test_random_programs(void **state)
{
    unsigned n_short = TEST_SANITIZED ? 300 : 3000, n_long = TEST_SANITIZED ? 10 : 150, n_equal = 0;
    (void)state;
    for (uint64_t seed = 0; seed < n_short + n_long; seed++) {
        steps s = steps_make_random(seed, seed < n_short ? 300 : 1500);
        n_equal += compare(seed, &s);
        steps_free(&s);
    }
    /* Runs between two and three periods may be missed, but hardly ever are. */
    ASSERT_GE(n_equal, (n_short + n_long) * 97 / 100);
}

/* Blocks of random letters in an order in which every pair of blocks occurs more than once a period, so that no gram is
 * alone: only the levels find it. */
static void test_periods_without_unique_grams(void **state)
{
    static const char *const orders[] = {"AAABABBB", "AABAB", "ABAABABA", "AAAABAABBABABBBB"};
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 8 : 40); seed++) {
        const char *order = orders[seed % 4];
        np_rng rng = np_rng_make(seed);
        char blocks[2][200];
        size_t length = 20 + np_rng_below(&rng, 100);
        steps s;
        char text[16 * 200 * 4];
        size_t n = 0;
        for (size_t i = 0; i < 2 * length; i++) {
            blocks[i % 2][i / 2] = (char)np_rng_below(&rng, 256);
        }
        for (unsigned k = 0; k < 3; k++) {
            for (const char *c = order; *c; c++) {
                memcpy(text + n, blocks[*c - 'A'], length);
                n += length;
            }
        }
        s = steps_make_text(text, n);
        compare(seed, &s);
        steps_free(&s);
    }
}

static void add_blocks(steps *s, char blocks[2][64], size_t length, uint64_t order, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (size_t k = 0; k < length; k++) {
            steps_add(s, np_step_of_exec((uint64_t)(unsigned char)blocks[order >> i & 1][k]), 0);
        }
    }
}

/* Three periods in the midst of text in which nothing is new: the levels are awake, or wake from behind other runs. */
static void test_periods_in_old_text(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 10 : 100); seed++) {
        np_rng rng = np_rng_make(seed);
        char blocks[2][64];
        size_t length = 4 + np_rng_below(&rng, 60);
        steps s = {0};
        for (size_t i = 0; i < 2 * length; i++) {
            blocks[i % 2][i / 2] = (char)np_rng_below(&rng, 200);
        }
        while (s.n < 2500) {
            uint64_t order = np_rng_next(&rng);
            unsigned n = 3 + (unsigned)np_rng_below(&rng, 12);
            add_blocks(&s, blocks, length, np_rng_next(&rng), (unsigned)np_rng_below(&rng, 20));
            for (unsigned k = 0; k < 2 + np_rng_below(&rng, 4); k++) {
                add_blocks(&s, blocks, length, order, n);
            }
        }
        s.n = 2500;
        compare_with(seed, &s, false);
        compare_with(seed, &s, true);
        steps_free(&s);
    }
}

/* Three periods exactly, of any length, that only the windows may find. */
static void test_windows_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (TEST_SANITIZED ? 10 : 100); seed++) {
        np_rng rng = np_rng_make(seed);
        steps s = {0};
        while (s.n < 2500) {
            size_t period = NP_SHORT + np_rng_below(&rng, np_rng_below(&rng, 2) ? 100 : 800), begin;
            for (size_t i = np_rng_below(&rng, 200); i > 0; i--) {
                steps_add(&s, np_step_of_exec(np_rng_below(&rng, 1000)), 0);
            }
            begin = s.n;
            for (size_t i = 0; i < 3 * period; i++) {
                np_step step = np_step_of_exec(np_rng_below(&rng, 1000));
                steps_add(&s, i < period ? step : s.items[begin + i - period], 0);
            }
        }
        compare_with(seed, &s, true);
        steps_free(&s);
    }
}

/* Keys whose bytes agree are told apart by the counters of short periods. */
static void test_keys_that_look_alike(void **state)
{
    steps s = {0};
    uint64_t names[3];
    size_t n_names = 0;
    (void)state;
    for (uint64_t name = 0; n_names < 3; name++) {
        if (np_step_of_exec(name).key >> 56 == 0) { /* all of them equal, and equal to what was there before the text */
            names[n_names++] = name;
        }
    }
    for (uint64_t seed = 0; seed < 200; seed++) {
        np_rng rng = np_rng_make(seed);
        while (s.n < 400) {
            size_t period = 1 + np_rng_below(&rng, 6), n = period * (1 + np_rng_below(&rng, 5)), begin = s.n;
            for (size_t i = 0; i < n; i++) {
                np_step step = i < period ? np_step_of_exec(names[np_rng_below(&rng, 3)]) : s.items[begin + i - period];
                steps_add(&s, step, 0);
            }
        }
        compare(seed, &s);
        s.n = 0;
    }
    steps_free(&s);
}

/* ---------------------------------------------------------------- strings ---- */

static char *make_fibonacci(size_t n)
{
    char *text = malloc(n);
    size_t a = 1, b = 2;
    assert_non_null(text);
    memcpy(text, "ab", 2);
    while (b < n) {
        size_t more = a < n - b ? a : n - b;
        memcpy(text + b, text, more);
        a = b;
        b += more;
    }
    return text;
}

static char *make_powers(size_t n, size_t k, unsigned letters)
{
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)(i % (k + 1) == k ? 'b' + i / (k + 1) % letters : 'a');
    }
    return text;
}

static char *make_thue_morse(size_t n)
{
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)('a' + __builtin_parityll(i));
    }
    return text;
}

static char *make_noise(size_t n, unsigned letters)
{
    np_rng rng = np_rng_make(letters);
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        text[i] = (char)('a' + np_rng_below(&rng, letters));
    }
    return text;
}

static char *make_hard(unsigned which, size_t n)
{
    switch (which) {
    case 0:
        return make_fibonacci(n);
    case 1:
        return make_thue_morse(n);
    case 2:
        return make_noise(n, 2);
    case 3:
        return make_noise(n, 20);
    case 4:
        return make_powers(n, n, 1);
    case 5:
        return make_powers(n, 31, 1);
    case 6:
        return make_powers(n, 1000, 1);
    case 7:
        return make_powers(n, n / 9, 1);
    case 8:
        return make_powers(n, 100, 3);
    default:
        return NULL;
    }
}

/* Operations an event stay below a constant, and do not grow as the string does. */
static void test_work_is_linear(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 9; which++) {
        double per_event[2];
        for (unsigned k = 0; k < 2; k++) {
            size_t n = k ? 200000 : 20000;
            char *text = make_hard(which, n);
            steps s = steps_make_text(text, n);
            np_detector *d;
            ASSERT_OK(np_detector_create(NULL, &d));
            for (size_t i = 0; i < n; i++) {
                uint64_t before = np_detector_work(d);
                ASSERT_OK(np_detector_feed(d, s.items[i]));
                ASSERT_LE(np_detector_work(d) - before, 40 * (uint64_t)n);
            }
            per_event[k] = (double)np_detector_work(d) / (double)n;
            np_detector_free(d);
            steps_free(&s);
            free(text);
        }
        if (per_event[1] > 32 || per_event[1] > 1.5 * per_event[0] + 1) {
            test_fail(__FILE__, __LINE__, "string %u: %.1f operations an event, then %.1f", which, per_event[0],
                      per_event[1]);
        }
    }
}

static void assert_best(const char *text, uint32_t begin, uint32_t end, uint32_t period)
{
    steps s = steps_make_text(text, strlen(text));
    np_detector *d = feed_all(&s);
    np_run run;
    np_detector_best(d, &run);
    ASSERT_EQ(run.period, period);
    ASSERT_EQ(run.begin, begin);
    ASSERT_EQ(run.end, end);
    np_detector_free(d);
    steps_free(&s);
}

static void test_small_strings(void **state)
{
    (void)state;
    assert_best("", 0, 0, 0);
    assert_best("a", 0, 0, 0);
    assert_best("abcdefg", 0, 0, 0);
    assert_best("aa", 0, 2, 1);
    assert_best("abab", 0, 4, 2);
    assert_best("xyabcabcabcz", 2, 11, 3);
    assert_best("abcabcxdede", 0, 6, 3); /* the longer */
}

static void test_ties(void **state)
{
    (void)state;
    assert_best("ababxcccc", 5, 9, 1); /* equal lengths: the smaller period */
    assert_best("aabbccdd", 0, 2, 1);  /* and then the smaller begin */
}

/* What was believed is given up at its first failure. */
static void test_given_up_at_once(void **state)
{
    steps s = steps_make_text("abababababcd", 12);
    np_detector *d;
    np_run run;
    (void)state;
    ASSERT_OK(np_detector_create(NULL, &d));
    ASSERT_FALSE(np_detector_current(d, &run));
    for (size_t i = 0; i < s.n; i++) {
        bool found;
        ASSERT_OK(np_detector_feed(d, s.items[i]));
        found = np_detector_current(d, &run);
        ASSERT_EQ(found, i >= 3 && i < 10);
        if (found) {
            ASSERT_EQ(run.period, 2);
            ASSERT_EQ(run.first_answer, 4);
            ASSERT_EQ(run.end, i + 1);
        }
    }
    np_detector_best(d, &run);
    ASSERT_EQ(run.end, 10);
    ASSERT_EQ(run.first_answer, 4);
    np_detector_free(d);
    steps_free(&s);
}

/* A recording of just two iterations, of which the gram at the end is no help. */
static void test_two_periods_exactly(void **state)
{
    char text[2 * 300];
    np_rng rng = np_rng_make(5);
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        text[i] = i < 150 ? (char)np_rng_below(&rng, 200) : 'z';
        text[300 + i] = text[i];
    }
    steps s = steps_make_text(text, sizeof text);
    np_detector *d = feed_all(&s);
    np_run run;
    np_detector_best(d, &run);
    ASSERT_EQ(run.period, 300);
    ASSERT_EQ(run.begin, 0);
    ASSERT_EQ(run.end, 600);
    np_detector_free(d);
    steps_free(&s);
}

/* ---------------------------------------------------------------- leaks and epochs ---- */

/* An iteration: blocks are malloc'd one after the other and freed in the opposite order. */
static void add_iteration(steps *s, size_t n_layers, uint64_t bytes, uint64_t leak_bytes)
{
    size_t begin = s->n;
    for (size_t i = 0; i < n_layers; i++) {
        steps_add(s, np_step_of_malloc(bytes + i), bytes + i);
        steps_add(s, np_step_of_exec(i), 0);
    }
    if (leak_bytes) {
        steps_add(s, np_step_of_malloc(leak_bytes), leak_bytes);
    }
    for (size_t i = n_layers; i-- > 0;) {
        steps_add(s, np_step_of_free(bytes + i, s->n - begin - 2 * i), bytes + i);
    }
}

static void test_leaks(void **state)
{
    static const struct {
        uint64_t leak_bytes;
        bool tolerated;
    } cases[] = {{0, true}, {512, true}, {4160, true}, {4161, false}, {65536, false}}; /* a 64th of 262142 and itself */
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        steps s = {0};
        np_detector *d;
        np_run run;
        for (size_t i = 0; i < 6; i++) {
            add_iteration(&s, 4, 65534, cases[k].leak_bytes);
        }
        d = feed_all(&s);
        np_detector_best(d, &run);
        ASSERT_EQ(run.period == s.n / 6, cases[k].tolerated);
        if (cases[k].tolerated) {
            ASSERT_EQ(run.leak_bytes, cases[k].leak_bytes);
            ASSERT_EQ(run.end - run.begin, s.n);
            ASSERT_LE(run.first_answer, 3 * run.period);
        }
        np_detector_free(d);
        steps_free(&s);
    }
}

/* Layers that keep their activations are no iterations, whatever else they allocate. */
static void test_layers_are_not_iterations(void **state)
{
    steps s = {0};
    np_detector *d;
    np_run run;
    (void)state;
    for (size_t i = 0; i < 400; i++) {
        steps_add(&s, np_step_of_malloc(1 << 16), 1 << 16);
        steps_add(&s, np_step_of_malloc(1 << 20), 1 << 20);
        steps_add(&s, np_step_of_exec(1), 0);
        steps_add(&s, np_step_of_free(1 << 20, 2), 1 << 20);
    }
    d = feed_all(&s);
    np_detector_best(d, &run);
    ASSERT_EQ(run.period, 0);
    ASSERT_FALSE(np_detector_current(d, &run));
    np_detector_free(d);
    steps_free(&s);
}

static void test_epochs(void **state)
{
    static const struct {
        size_t n_iterations; /* before each evaluation */
        uint64_t bytes;      /* of the iterations' blocks; the evaluation's have 65536 */
        size_t n_evaluation; /* its layers */
        bool short_period;
    } cases[] = {
        {10, 65536, 3, true},   {8, 65536, 3, true}, {2, 65536, 3, false}, /* too few in a row */
        {40, 1024, 3, false},                                              /* they hold too little */
        {10, 65536, 60, false},                                            /* they cover too little */
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        steps s = {0};
        np_detector *d;
        np_run run;
        size_t epoch = 0, iteration = 0;
        for (size_t e = 0; e < 4; e++) {
            for (size_t i = 0; i < cases[k].n_iterations; i++) {
                size_t begin = s.n;
                add_iteration(&s, 4, cases[k].bytes, 0);
                iteration = s.n - begin;
            }
            add_iteration(&s, cases[k].n_evaluation, 65536 - 3, 0);
            epoch = epoch ? epoch : s.n;
        }
        d = feed_all(&s);
        np_detector_best(d, &run);
        ASSERT_EQ(run.period, cases[k].short_period ? iteration : epoch);
        if (cases[k].short_period) {
            ASSERT_LE(run.first_answer, run.begin + 3 * iteration);
        }
        np_detector_free(d);
        steps_free(&s);
    }
}

/* ---------------------------------------------------------------- memory ---- */

static neap_status feed_program(const neap_memory *memory, void *user)
{
    const steps *s = user;
    np_detector *d;
    neap_status status = np_detector_create(memory, &d);
    if (status != NEAP_OK) {
        return status;
    }
    for (size_t i = 0; status == NEAP_OK && i < s->n; i++) {
        status = np_detector_feed(d, s->items[i]);
    }
    if (!np_detector_is_valid(d)) {
        status = NEAP_INTERNAL;
    }
    np_detector_free(d);
    return status;
}

static void test_no_memory(void **state)
{
    steps s = steps_make_random(3, 3000);
    (void)state;
    ASSERT_GT(test_memory_fail_each(feed_program, &s), 10);
    steps_free(&s);
}

static void test_memory_is_linear(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 9; which++) {
        size_t n = 50000;
        char *text = make_hard(which, n);
        steps s = steps_make_text(text, n);
        test_memory memory;
        test_memory_init(&memory);
        ASSERT_OK(feed_program(&memory.hook, &s));
        ASSERT_LE(memory.peak_bytes, 200 * n);
        test_memory_finish(&memory);
        steps_free(&s);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_periods_without_unique_grams),
        cmocka_unit_test(test_periods_in_old_text),
        cmocka_unit_test(test_windows_alone),
        cmocka_unit_test(test_keys_that_look_alike),
        cmocka_unit_test(test_work_is_linear),
        cmocka_unit_test(test_small_strings),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_given_up_at_once),
        cmocka_unit_test(test_two_periods_exactly),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_layers_are_not_iterations),
        cmocka_unit_test(test_epochs),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_memory_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
