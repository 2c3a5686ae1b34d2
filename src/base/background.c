#include "base/background.h"

#include <stddef.h>
#include <sys/resource.h>

/* Of a core that others want, too, a tenth: little for them, and on a machine that is busy all the time, with the workers that
 * load a program's data, not nothing. */
enum { LOWER = 10 };

/* To Linux a thread is a process of its own here; elsewhere all threads of the program would be meant. */
static void *do_work(void *user)
{
    const np_background *work = user;
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + LOWER); /* 19 at the most */
#endif
    work->job(work->user);
    return NULL;
}

void np_background_begin(np_background *work, void (*job)(void *user), void *user)
{
    work->job = job;
    work->user = user;
    work->is_begun = pthread_create(&work->thread, NULL, do_work, work) == 0;
}

void np_background_end(np_background *work)
{
    if (work->is_begun) {
        (void)pthread_join(work->thread, NULL);
    } else {
        work->job(work->user);
    }
}
