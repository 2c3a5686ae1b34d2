#include "base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { MAX_THREADS = 64 };

typedef struct work {
    void (*job)(void *user, unsigned index);
    void *user;
    unsigned n_jobs;
    atomic_uint next;
} work;

static void *do_jobs(void *user)
{
    work *shared = user;
    unsigned i;
    while ((i = atomic_fetch_add(&shared->next, 1)) < shared->n_jobs) {
        shared->job(shared->user, i);
    }
    return NULL;
}

void np_parallel_for(unsigned n_threads, unsigned n_jobs, void (*job)(void *user, unsigned index), void *user)
{
    work shared = {.job = job, .user = user, .n_jobs = n_jobs};
    pthread_t threads[MAX_THREADS];
    unsigned n_started = 0;

    n_threads = n_threads < n_jobs ? n_threads : n_jobs;
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    while (n_started + 1 < n_threads && pthread_create(&threads[n_started], NULL, do_jobs, &shared) == 0) {
        n_started++;
    }
    do_jobs(&shared);
    for (unsigned i = 0; i < n_started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
}

unsigned np_parallel_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}
