/* background.h: work that takes mostly what others leave of the machine. */
#ifndef NP_BASE_BACKGROUND_H
#define NP_BASE_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>

typedef struct np_background {
    void (*job)(void *user);
    void *user;
    pthread_t thread;
    bool is_begun; /* on that thread */
} np_background;

/* job(user) on a thread of lower priority, which those that it starts have, too. The work must stay where it is. */
void np_background_begin(np_background *work, void (*job)(void *user), void *user);

/* Returns when it is done. Where no thread could be started, the caller does it here. */
void np_background_end(np_background *work);

#endif
