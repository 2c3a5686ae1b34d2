/* device_settle.h: repeating a program until it runs on its plan. */
#ifndef NEAP_BENCH_DEVICE_SETTLE_H
#define NEAP_BENCH_DEVICE_SETTLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "run/manager.h"

/* The log of a device. */
static inline void log_to_stderr(void *user, neap_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)fprintf(stderr, "neap: %s\n", line);
}

/* One iteration; false: it failed. */
typedef bool iterate(void *user);

/* Waits while a plan is being made. Planning goes on beside the program, which here may be over before the plan is. */
static inline void wait_for_planner(neap_device *device)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&device->learner.is_busy) && !atomic_load(&device->learner.has_news)) {
        (void)nanosleep(&pause, NULL);
    }
}

/* Iterates until `n_laps` iterations in a row were served from the plan; false: within a minute they were not. */
static inline bool settle(neap_device *device, iterate *once, void *user, uint64_t n_laps)
{
    const uint64_t until_ns = np_clock_ns() + UINT64_C(60000000000);
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
    } while ((stats.state != NEAP_STATE_RUN || stats.n_iterations < n_before + n_laps) && np_clock_ns() < until_ns);
    if (stats.state != NEAP_STATE_RUN) {
        (void)fprintf(stderr, "bench: the program does not run on a plan: %s\n", neap_state_name(stats.state));
        return false;
    }
    return true;
}

#endif
