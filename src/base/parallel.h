/* parallel.h: a few independent jobs on a few threads. */
#ifndef NP_BASE_PARALLEL_H
#define NP_BASE_PARALLEL_H

/* Calls job(user, i) once for every i in [0, n_jobs), lower ones begun first, on at most n_threads threads of which the
 * caller is one. Returns when all are done. Where no thread can be started, the caller does the work alone. */
void np_parallel_for(unsigned n_threads, unsigned n_jobs, void (*job)(void *user, unsigned index), void *user);

/* Cores this process may use, 1 at least. */
unsigned np_parallel_cores(void);

#endif
