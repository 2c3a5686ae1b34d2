/* test_parallel.c: every job is done once, lower ones are begun first, on no more threads than allowed. */
#include "base/parallel.h"

#include <stdatomic.h>

#include "testing.h"

enum { MAX_JOBS = 1000 };

typedef struct jobs {
    atomic_uint n_done[MAX_JOBS];
    atomic_uint n_begun;
    atomic_uint n_running;
    atomic_uint most_running;
    atomic_uint n_early; /* begun before a job that is more than `n_threads` lower */
    unsigned n_threads;
} jobs;

static void do_job(void *user, unsigned index)
{
    jobs *j = user;
    unsigned n_begun = atomic_fetch_add(&j->n_begun, 1);
    unsigned running = atomic_fetch_add(&j->n_running, 1) + 1;
    unsigned most = atomic_load(&j->most_running);
    while (running > most && !atomic_compare_exchange_weak(&j->most_running, &most, running)) {}
    /* Jobs are taken in order, so at most the other threads' jobs were taken but not yet counted. */
    if (n_begun + j->n_threads <= index) {
        atomic_fetch_add(&j->n_early, 1);
    }
    atomic_fetch_add(&j->n_done[index], 1);
    atomic_fetch_sub(&j->n_running, 1);
}

static void test_every_job_once(void **state)
{
    static const unsigned n_threads[] = {0, 1, 2, 4, 8, 1000};
    static const unsigned n_jobs[] = {0, 1, 2, 3, 7, MAX_JOBS};
    (void)state;
    for (size_t t = 0; t < sizeof n_threads / sizeof *n_threads; t++) {
        for (size_t k = 0; k < sizeof n_jobs / sizeof *n_jobs; k++) {
            static jobs j;
            j = (jobs){.n_threads = n_threads[t] ? n_threads[t] : 1};
            np_parallel_for(n_threads[t], n_jobs[k], do_job, &j);
            for (unsigned i = 0; i < MAX_JOBS; i++) {
                ASSERT_EQ(atomic_load(&j.n_done[i]), i < n_jobs[k]);
            }
            ASSERT_EQ(atomic_load(&j.n_early), 0);
            ASSERT_LE(atomic_load(&j.most_running), j.n_threads);
        }
    }
}

typedef struct order {
    unsigned n;
    unsigned seen[10];
} order;

static void note(void *user, unsigned index)
{
    order *o = user;
    o->seen[o->n++] = index;
}

static void test_one_thread_goes_in_order(void **state)
{
    order o = {0};
    (void)state;
    np_parallel_for(1, 10, note, &o);
    ASSERT_EQ(o.n, 10);
    for (unsigned i = 0; i < 10; i++) {
        ASSERT_EQ(o.seen[i], i);
    }
}

static void test_cores(void **state)
{
    (void)state;
    ASSERT_GE(np_parallel_cores(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_job_once),
        cmocka_unit_test(test_one_thread_goes_in_order),
        cmocka_unit_test(test_cores),
    };
    return cmocka_run_group_tests_name("base/parallel", tests, NULL, NULL);
}
