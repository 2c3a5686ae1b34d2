/* device_settle.h: what programs need that measure on a device: to open one, to repeat themselves until they run on its
 * plan, and to hear what it has to say meanwhile. */
#ifndef NEAP_BENCH_DEVICE_SETTLE_H
#define NEAP_BENCH_DEVICE_SETTLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "run/manager.h"

/* Host memory and a device, or the end. */
static inline void *bench_allocate(size_t n, size_t bytes)
{
    void *made = calloc(n > 0 ? n : 1, bytes);
    if (!made) {
        (void)fputs("bench: no memory\n", stderr);
        exit(2);
    }
    return made;
}

static inline neap_device *bench_open(const char *name, const neap_device_options *options)
{
    neap_device *device;
    neap_error error = {""};
    if (neap_open(name, options, NULL, &error, &device) != NEAP_OK) {
        (void)fprintf(stderr, "bench: %s: %s\n", name, error.text);
        exit(2);
    }
    return device;
}

/* ---- the log ---- */

/* What a device's log said. Several threads write it: it is to be read when the device is closed. */
typedef struct heard {
    pthread_mutex_t lock;
    char last[256];        /* line */
    bool limit_was_raised; /* in any line */
} heard;

#define HEARD_NOTHING                                            \
    {                                                            \
        .lock = PTHREAD_MUTEX_INITIALIZER, .last = "no word why" \
    }

/* A neap_log. */
static inline void hear(void *user, neap_log_level level, const char *line)
{
    heard *h = user;
    (void)level;
    (void)pthread_mutex_lock(&h->lock);
    (void)snprintf(h->last, sizeof h->last, "%s", line);
    h->limit_was_raised |= strstr(line, "limit is raised") != NULL;
    (void)pthread_mutex_unlock(&h->lock);
}

/* ---- the plan ---- */

/* Waits while a plan is being made. Planning goes on beside the program, which here may be over before the plan is. */
static inline void wait_for_planner(neap_device *device)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&device->learner.is_busy) && !atomic_load(&device->learner.has_news)) {
        (void)nanosleep(&pause, NULL);
    }
}

/* One iteration; false: it failed. */
typedef bool iterate(void *user);

/* Iterates until `n_laps` iterations were served from the plan since it was last left. False: not within 20 s. */
static inline bool settle(neap_device *device, iterate *once, void *user, uint64_t n_laps)
{
    const uint64_t until_ns = np_clock_ns() + UINT64_C(20000000000);
    neap_stats stats;
    uint64_t n_departures = 0, n_before = 0;
    do {
        if (!once(user)) {
            (void)fprintf(stderr, "bench: %s\n", neap_device_error());
            return false;
        }
        neap_get_stats(device, &stats);
        if (stats.state != NEAP_STATE_RUN) {
            wait_for_planner(device);
        }
        if (stats.n_departures != n_departures) {
            n_departures = stats.n_departures;
            n_before = stats.n_iterations;
        }
        if (stats.state == NEAP_STATE_RUN && stats.n_iterations >= n_before + n_laps) {
            return true;
        }
    } while (np_clock_ns() < until_ns);
    return false;
}

#endif
