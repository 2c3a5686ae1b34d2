/* testing.h: what the unit tests stand on, on top of cmocka.
 *
 * Assertions that print both sides, skips that say why, a memory hook that counts and fails, and the places of data
 * files. A failed assertion ends its test at once. They are for the test's own thread only: other threads leave a result
 * behind for it to look at. */
#ifndef NEAP_TESTING_H
#define NEAP_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "neap.h"

/* 1 under a sanitizer, where a test may want to do a tenth of its rounds. */
#ifdef NEAP_SANITIZED
#define TEST_SANITIZED 1
#else
#define TEST_SANITIZED 0
#endif

/* 1 under the thread sanitizer, which finds races and nothing else: there, programs should have threads. */
#ifdef __SANITIZE_THREAD__
#define TEST_RACES 1
#else
#define TEST_RACES 0
#endif

/* How often a test repeats itself: `few` times in `make test`, `many` times where NEAP_SOAK is set, as `make soak` does. */
uint32_t test_rounds(uint32_t few, uint32_t many);

/* What this process has computed so far. What must not take for ever is held to this, never to a clock on the wall, which
 * goes on while others compute. */
uint64_t test_cpu_ns(void);

/* For what ends by the clock all the same, as a planner does: another try with more time, after this line. The summary of
 * `make test` counts and names them. A test that tries again has an end: TEST_TRIES. */
enum { TEST_TRIES = 5 };
void test_retried(const char *what, int n_tries);

/* ---------------------------------------------------------------- assertions ---- */

/* Integers of any type; they are compared by value, so -1 is below 0u. */
#define ASSERT_EQ(a, b) TEST_COMPARE(a, ==, b)
#define ASSERT_NE(a, b) TEST_COMPARE(a, !=, b)
#define ASSERT_LT(a, b) TEST_COMPARE(a, <, b)
#define ASSERT_LE(a, b) TEST_COMPARE(a, <=, b)
#define ASSERT_GT(a, b) TEST_COMPARE(a, >, b)
#define ASSERT_GE(a, b) TEST_COMPARE(a, >=, b)

#define ASSERT_TRUE(condition) ((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "%s\n  is false", #condition))
#define ASSERT_FALSE(condition) ((condition) ? test_fail(__FILE__, __LINE__, "%s\n  is true", #condition) : (void)0)

/* Calls that return neap_status. */
#define ASSERT_OK(call) ASSERT_STATUS(NEAP_OK, call)
#define ASSERT_STATUS(expected, call) test_status(__FILE__, __LINE__, #call, (expected), (call))

/* Strings; NULL equals nothing. */
#define ASSERT_STR_EQ(a, b) test_strings(__FILE__, __LINE__, #a, (a), false, #b, (b))
#define ASSERT_CONTAINS(text, part) test_strings(__FILE__, __LINE__, #text, (text), true, #part, (part))

/* Ends the test as skipped; the reason, made as printf would, appears in the summary of `make test`. */
#define SKIP(...) (test_skip_reason(__VA_ARGS__), skip())

/* ---------------------------------------------------------------- host memory that can fail ---- */

/* A neap_memory for tests. Give `&memory.hook` to the library. A resize always moves, freed bytes are overwritten, and
 * the bytes around a block are watched. Wrong uses are counted, from whatever thread they come, and reported by
 * test_memory_finish. */
typedef struct test_memory {
    neap_memory hook;
    pthread_mutex_t lock;
    size_t n_calls;      /* allocations and resizes asked for so far, the failed ones included */
    size_t fail_at;      /* the n-th of them fails, counted from 1; 0: none does */
    bool fail_from_then; /* and so do all after it */
    size_t n_failed;     /* how many were made to fail */
    size_t live_blocks;
    size_t live_bytes;
    size_t peak_bytes;
    size_t n_misuses; /* a wrong old_bytes, a block that is not ours or was freed, a write over its end */
    char misuse[160]; /* the first of them, in words */
} test_memory;

void test_memory_init(test_memory *memory);

/* The check at the end: nothing lives, nothing was misused. */
#define test_memory_finish(memory) test_memory_finish_at(__FILE__, __LINE__, (memory))

/* Runs an action that allocates, and frees all it allocated, again and again, and makes a later allocation fail each
 * time (each of the first 200, then ever fewer), until none is left to fail. It must give NEAP_NO_MEMORY and leave
 * nothing behind whenever one failed, and NEAP_OK in the end. Returns the number of its allocations. */
typedef neap_status (*test_action)(const neap_memory *memory, void *user);
#define test_memory_fail_each(action, user) test_memory_fail_each_at(__FILE__, __LINE__, (action), (user))

/* ---------------------------------------------------------------- files ---- */

#define TEST_PATH_BYTES 4096

/* The path of a file in the folder of large recordings ($NEAP_SHARED, or ../shared beside the repository). False where it
 * is not there: a reason to skip(), which then appears in the summary. */
bool test_shared_path(char path[TEST_PATH_BYTES], const char *name);

/* The path of tests/data/<name>; a name for a scratch file that no other process uses. */
void test_data_path(char path[TEST_PATH_BYTES], const char *name);
void test_temp_path(char path[TEST_PATH_BYTES], const char *name);

/* ---------------------------------------------------------------- behind the macros ---- */

typedef struct test_integer {
    unsigned long long magnitude;
    bool negative;
} test_integer;

/* Here, and not in testing.c: some tests compare by the million, and a call costs much under a sanitizer. */
static inline test_integer test_integer_of_signed(long long value)
{
    return value < 0 ? (test_integer){0ull - (unsigned long long)value, true}
                     : (test_integer){(unsigned long long)value, false};
}

static inline test_integer test_integer_of_unsigned(unsigned long long value)
{
    return (test_integer){value, false};
}

/* Below 0, 0, above 0. */
static inline int test_integer_compare(test_integer a, test_integer b)
{
    if (a.negative != b.negative) {
        return a.negative ? -1 : 1;
    }
    if (a.magnitude == b.magnitude) {
        return 0;
    }
    return (a.magnitude < b.magnitude) == !a.negative ? -1 : 1;
}

#define TEST_INTEGER(x)                          \
    _Generic((x), signed char                    \
             : test_integer_of_signed, char      \
             : test_integer_of_signed, short     \
             : test_integer_of_signed, int       \
             : test_integer_of_signed, long      \
             : test_integer_of_signed, long long \
             : test_integer_of_signed, default   \
             : test_integer_of_unsigned)(x)

#define TEST_COMPARE(a, relation, b)                                                  \
    do {                                                                              \
        test_integer test_a = TEST_INTEGER(a), test_b = TEST_INTEGER(b);              \
        if (!(test_integer_compare(test_a, test_b) relation 0)) {                     \
            test_fail_compare(__FILE__, __LINE__, #a, #relation, #b, test_a, test_b); \
        }                                                                             \
    } while (0)

_Noreturn void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void test_fail_compare(const char *file, int line, const char *text_a, const char *relation,
                                 const char *text_b, test_integer a, test_integer b);
void test_status(const char *file, int line, const char *call, neap_status expected, neap_status actual);
void test_strings(const char *file, int line, const char *text_a, const char *a, bool part, const char *text_b,
                  const char *b);
void test_skip_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));
void test_memory_finish_at(const char *file, int line, test_memory *memory);
size_t test_memory_fail_each_at(const char *file, int line, test_action action, void *user);

#endif
