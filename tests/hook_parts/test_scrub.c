/* test_scrub.c: words that a function leaves on the stack are gone once it is scrubbed; and it is where somebody looks at
 * what seems to be used. */
#include "hook/core.h"
#include "testing.h"

enum { N_WORDS = 1024, FEW = 8 }; /* a frame in between may have places that it does not write */

#define WORD UINT64_C(0x7ea9c0dec0ffee01)

__attribute__((noinline)) static void leave_words(void)
{
    volatile uint64_t words[N_WORDS];
    for (int i = 0; i < N_WORDS; i++) {
        words[i] = WORD;
    }
    __asm__ volatile("" : : "r"(words) : "memory");
}

/* As a program does that does not set what it passes on. */
__attribute__((noinline)) static int count_words(void)
{
    volatile uint64_t words[2 * N_WORDS];
    int n = 0;
    __asm__ volatile("" : : "r"(words) : "memory"); /* as if they were set */
    for (int i = 0; i < 2 * N_WORDS; i++) {
        n += words[i] == WORD;
    }
    return n;
}

static void skip_where_nothing_is_left(void)
{
    leave_words();
    if (count_words() < N_WORDS / 2) { /* a compiler that sees to it */
        SKIP("nothing is left on the stack here");
    }
}

static void test_words_are_gone(void **state)
{
    (void)state;
    skip_where_nothing_is_left();
    leave_words();
    np_hook_scrub();
    ASSERT_LE(count_words(), FEW);
}

static int count_left(np_hook_settings settings, bool is_resting)
{
    np_the_hook.settings = settings;
    leave_words();
    np_hook_scrub_where_it_matters(is_resting);
    return count_words();
}

/* Where blocks may be swapped, or a recording is kept, and somebody looks; a program that has all it wants is not slowed down. */
static void test_where_it_matters(void **state)
{
    static const np_hook_settings none;
    np_hook_settings settings;
    (void)state;
    skip_where_nothing_is_left();
    ASSERT_GE(count_left(none, false), N_WORDS / 2);
    settings = none;
    settings.limit = 1;
    ASSERT_LE(count_left(settings, false), FEW);
    settings = none;
    settings.limit_share = 0.5;
    ASSERT_LE(count_left(settings, false), FEW);
    settings = none;
    settings.overhead = 0.01;
    ASSERT_LE(count_left(settings, false), FEW);
    ASSERT_GE(count_left(settings, true), N_WORDS / 2);
    settings = none;
    settings.record = "a.neap";
    ASSERT_LE(count_left(settings, false), FEW);
    ASSERT_GE(count_left(none, false), N_WORDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_gone),
        cmocka_unit_test(test_where_it_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
