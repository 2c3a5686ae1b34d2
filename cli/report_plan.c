/* report_plan.c: everything a report needs planned: the pool, then swaps under one limit after the other. */
#include <math.h>
#include <stdlib.h>

#include "report.h"
#include "snapshot.h"
#include "swap.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

/* ---- the pool ---- */

static bool show_progress(void *user, double seconds, uint64_t footprint, uint64_t bound)
{
    const report_subject *subject = user;
    char held[UNITS_CHARS];
    char least[UNITS_CHARS];
    term_progress("%s: placing: %.1f s, footprint %s, bound %s", file_name(subject->path), seconds,
                  units_bytes(footprint, held), units_bytes(bound, least));
    return true;
}

int report_plan_pool(const report_request *request, const char *path, report_subject *subject, neap_status *status,
                     neap_error *error)
{
    const neap_plan_options options = {
        .seed = request->options.seed,
        .n_threads = request->options.n_threads,
        .progress = show_progress,
        .progress_user = subject,
    };
    *subject = (report_subject){.path = path};
    *status = snapshot_or_trace_read(path, error, &subject->trace);
    if (*status == NEAP_OK) {
        subject->link_name = request->link ? request->link : SWAP_DEFAULT_LINK;
        subject->link = request->options.link;
        swap_take_link(subject->trace, request->link, &subject->link_name, &subject->link);
        *status = neap_plan_make(subject->trace, &options, NULL, error, &subject->pool);
        term_progress_clear();
    }
    if (*status == NEAP_NO_PERIOD) {
        error->text[0] = '\0'; /* which of two files it is, is said with the status's own message */
    }
    return *status == NEAP_OK ? EXIT_GOOD : report_failure(path, *status, error);
}

void report_subject_free(report_subject *subject)
{
    for (size_t i = 0; i < subject->n_limits; i++) {
        neap_swap_free(subject->limits[i].made);
    }
    free(subject->limits);
    neap_plan_free(subject->pool);
    neap_trace_free(subject->trace);
    *subject = (report_subject){0};
}

/* ---- the limits ---- */

static bool has_execs(const report_subject *subject)
{
    size_t n_events;
    const neap_event *events = neap_trace_events(subject->trace, &n_events);
    const neap_plan_summary *pool = neap_plan_get_summary(subject->pool);
    for (uint32_t t = 0; t < pool->length / pool->n_periods && pool->begin + t < n_events; t++) {
        if (events[pool->begin + t].kind == NEAP_EVENT_EXEC) {
            return true;
        }
    }
    return false;
}

/* One plan. That there is none is an answer too; anything else that goes wrong is a failure. */
static neap_status plan_limit(const report_request *request, const report_subject *subject, report_limit *limit)
{
    neap_swap_options options = request->options;
    options.limit_share = limit->percent / 100.0;
    options.link = subject->link;
    limit->status = neap_swap_make(subject->trace, &options, NULL, &limit->error, &limit->made);
    limit->plan = limit->made;
    return limit->status == NEAP_NO_PLAN ? NEAP_OK : limit->status;
}

static const neap_swap_summary *free_summary(const report_subject *subject)
{
    return neap_swap_get_summary(subject->limits[0].plan);
}

/* The lowest limit that costs no time: it also tells where the floor is. Many are tried for it, so it has more time. */
static neap_status plan_free(const report_request *request, report_subject *subject, neap_error *error)
{
    report_request longer = *request;
    longer.options.seconds *= 2;
    subject->limits = calloc(request->n_limits + 1, sizeof *subject->limits);
    if (!subject->limits) {
        return NEAP_NO_MEMORY;
    }
    subject->n_limits = 1;
    term_progress("%s: looking for the lowest limit that costs no time", file_name(subject->path));
    neap_status status = plan_limit(&longer, subject, &subject->limits[0]);
    *error = subject->limits[0].error;
    return status == NEAP_OK ? subject->limits[0].status : status;
}

/* Whole per cents between the peak load and the lowest floor, evenly; as many as were asked for, or as there are. */
static size_t choose_percents(const report_request *request, const report_subject *subjects, size_t n_subjects,
                              unsigned *percents)
{
    double lowest = 1;
    for (size_t i = 0; i < n_subjects; i++) {
        if (subjects[i].n_limits > 0) {
            const neap_swap_summary *summary = free_summary(&subjects[i]);
            lowest = fmin(lowest, (double)summary->floor / (double)summary->peak_load);
        }
    }
    unsigned least = (unsigned)ceil(lowest * 100);
    size_t n_steps = least < 100 ? 100 - least : 0;
    size_t n = n_steps == 0 ? 0 : request->n_limits < n_steps - 1 ? request->n_limits : n_steps - 1;
    for (size_t i = 0; i < n; i++) {
        percents[i] = 100 - (unsigned)((i + 1) * n_steps / (n + 1));
    }
    return n;
}

static neap_status plan_row(const report_request *request, report_subject *subject, const unsigned *percents,
                            size_t n_percents, neap_error *error)
{
    neap_status status = NEAP_OK;
    for (size_t i = 0; i < n_percents && status == NEAP_OK; i++) {
        report_limit *limit = &subject->limits[subject->n_limits++];
        limit->percent = percents[i];
        term_progress("%s: planning swaps for %u %% of the peak load (%zu of %zu)", file_name(subject->path),
                      percents[i], i + 1, n_percents);
        status = plan_limit(request, subject, limit);
        *error = limit->error;
    }
    return status;
}

/* A plan that holds a limit holds all higher ones, too: searches differ in how far they get. A bound at a higher limit is
 * one at a lower limit as well. */
static void share_plans(report_subject *subject)
{
    double bound = 0;
    for (size_t i = 0; i < subject->n_limits; i++) {
        report_limit *limit = &subject->limits[i];
        const neap_swap_summary *own = limit->made ? neap_swap_get_summary(limit->made) : NULL;
        limit->bound_overhead = own ? own->bound_overhead : bound;
        limit->limit = own ? own->limit : (uint64_t)(limit->percent / 100.0 * (double)free_summary(subject)->peak_load);
        bound = i > 0 ? limit->bound_overhead : 0;
        for (size_t k = 0; k < subject->n_limits && i > 0; k++) {
            const neap_swap_summary *other =
                subject->limits[k].made ? neap_swap_get_summary(subject->limits[k].made) : NULL;
            if (other && other->footprint <= limit->limit &&
                (!limit->plan || other->overhead < neap_swap_get_summary(limit->plan)->overhead)) {
                limit->plan = subject->limits[k].made;
            }
        }
    }
}

int report_plan_limits(const report_request *request, report_subject *subjects, size_t n_subjects, neap_status *status,
                       neap_error *error)
{
    unsigned percents[REPORT_LIMITS_MAX];
    for (size_t i = 0; i < n_subjects; i++) {
        if (has_execs(&subjects[i])) {
            *status = plan_free(request, &subjects[i], error);
            if (*status != NEAP_OK) {
                term_progress_clear();
                return report_failure(subjects[i].path, *status, error);
            }
        }
    }
    size_t n_percents = choose_percents(request, subjects, n_subjects, percents);
    for (size_t i = 0; i < n_subjects; i++) {
        if (subjects[i].n_limits > 0) {
            *status = plan_row(request, &subjects[i], percents, n_percents, error);
            if (*status != NEAP_OK) {
                term_progress_clear();
                return report_failure(subjects[i].path, *status, error);
            }
            share_plans(&subjects[i]);
        }
    }
    term_progress_clear();
    return EXIT_GOOD;
}
