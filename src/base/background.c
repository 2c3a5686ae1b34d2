#include "base/background.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>

/* Of a core that others want, too, a tenth: little for them, and on a machine that is busy all the time, with the workers that
 * load a program's data, not nothing. */
enum { LOWER = 10 };

typedef struct work {
    void (*job)(void *user);
    void *user;
} work;

/* To Linux a thread is a process of its own here; elsewhere all threads of the program would be meant. */
static void *do_work(void *user)
{
    const work *given = user;
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + LOWER); /* 19 at the most */
#endif
    given->job(given->user);
    return NULL;
}

void np_in_background(void (*job)(void *user), void *user)
{
    work given = {.job = job, .user = user};
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_work, &given) == 0) {
        (void)pthread_join(thread, NULL);
    } else {
        job(user);
    }
}
