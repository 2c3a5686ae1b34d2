/* stop.h: how long work is asked whether to go on. */
#ifndef NP_BASE_STOP_H
#define NP_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

typedef struct np_stop {
    bool (*asked)(void *user); /* NULL: never */
    void *user;
} np_stop;

static inline bool np_stop_asked(const np_stop *stop)
{
    return stop && stop->asked && stop->asked(stop->user);
}

#endif
