#include <stdio.h>

#include "run/random_actor.h"

bool actor_is_bad(const actor *a)
{
    return atomic_load(&a->report->is_bad);
}

bool actor_passed(actor *a, neap_status status, const char *what)
{
    bool may_be_full = a->settings->memory_share > 0;
    if (status == NEAP_OK) {
        return true;
    }
    a->n_full += status == NEAP_DEVICE_FULL;
    if (a->settings->faults.calls && !a->settings->tries_again) {
        a->n_failed++;
    } else if (status != NEAP_DEVICE_FULL || !may_be_full) {
        shadow_say(a->report, "iteration %u: %s gave %s: %s", a->iteration, what, neap_status_name(status),
                   neap_device_error());
    }
    return false;
}

void actor_look(actor *a, bool is_due)
{
    if (is_due && !actor_is_bad(a)) {
        const char *flaw;
        (void)pthread_mutex_lock(&a->device->lock);
        flaw = np_manager_find_flaw(a->device);
        (void)pthread_mutex_unlock(&a->device->lock);
        if (flaw) {
            shadow_say(a->report, "iteration %u: %s", a->iteration, flaw);
        }
    }
}

void actor_look_at_device(actor *a)
{
    np_device *device = a->device->device;
    neap_stats stats;
    const char *problem;
    neap_get_stats(a->device, &stats);
    (void)pthread_mutex_lock(&a->device->lock);
    problem = device->api->problem ? device->api->problem(device) : NULL;
    if (problem) {
        shadow_say(a->report, "iteration %u: %s", a->iteration, problem);
    }
    if (a->device->pattern != a->followed && a->followed) {
        a->has_several = true;
    }
    a->followed = a->device->pattern;
    a->has_swapped |= stats.n_iterations > 0 && a->followed && a->followed->program.swaps.n > 0;
    (void)pthread_mutex_unlock(&a->device->lock);
    if (stats.n_departures > 0 && a->n_on_plan_at_departure == 0) {
        a->n_on_plan_at_departure = stats.n_iterations + 1;
    }
    a->has_resumed |= a->n_on_plan_at_departure > 0 && stats.n_iterations >= a->n_on_plan_at_departure;
    if (stats.limit > 0 && stats.state == NEAP_STATE_RUN && stats.held > stats.limit) {
        shadow_say(a->report, "iteration %u: %llu bytes are held, the limit is %llu", a->iteration,
                   (unsigned long long)stats.held, (unsigned long long)stats.limit);
    }
}

void actor_say(const actor *a, const char *what, uint64_t x, uint64_t y)
{
    if (a->settings->is_loud) {
        (void)fprintf(stderr, "  %u: %s %llu %llu\n", a->iteration, what, (unsigned long long)x, (unsigned long long)y);
    }
}
