/* test_background.c: work beside others has a lower priority, and nobody else gets it. */
#include "base/background.h"

#include <pthread.h>
#include <sys/resource.h>

#include "base/parallel.h"
#include "testing.h"

enum { N_JOBS = 4 };

typedef struct seen {
    pthread_t thread;
    int priorities[N_JOBS];
} seen;

static int priority_here(void)
{
    return getpriority(PRIO_PROCESS, 0);
}

static void note_priority(void *user, unsigned index)
{
    seen *noted = user;
    noted->priorities[index] = priority_here();
}

static void look(void *user)
{
    seen *noted = user;
    noted->thread = pthread_self();
    np_parallel_for(2, N_JOBS, note_priority, noted);
}

static void run(np_background *work, seen *noted)
{
    np_background_begin(work, look, noted);
    np_background_end(work);
}

static void test_lower_priority(void **state)
{
    np_background work;
    seen noted = {0};
    int lower = priority_here() + 10;
    (void)state;
    run(&work, &noted);
    assert_false(pthread_equal(noted.thread, pthread_self()));
#ifdef __linux__
    for (int i = 0; i < N_JOBS; i++) {
        assert_int_equal(noted.priorities[i], lower < 19 ? lower : 19);
    }
#endif
}

static void test_caller_keeps_its_own(void **state)
{
    np_background work;
    seen noted = {0};
    int before = priority_here();
    (void)state;
    run(&work, &noted);
    assert_int_equal(priority_here(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower_priority),
        cmocka_unit_test(test_caller_keeps_its_own),
    };
    return cmocka_run_group_tests_name("base/background", tests, NULL, NULL);
}
