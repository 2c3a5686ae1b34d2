/* test_scrub.c: words that a function leaves on the stack are gone once it is scrubbed. */
#include "hook/core.h"
#include "testing.h"

enum { N_WORDS = 1024 };

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

static void test_words_are_gone(void **state)
{
    (void)state;
    leave_words();
    if (count_words() < N_WORDS / 2) { /* a compiler that sees to it */
        print_message("nothing is left on the stack here\n");
        skip();
    }
    leave_words();
    np_hook_scrub();
    ASSERT_EQ(count_words(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
