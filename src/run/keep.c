/* keep.c: plans from one run of a program to the next, in the folder that the options or the environment name. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "run/manager.h"
#include "run/plan_file.h"

static neap_status find_path(neap_device *m, np_plan_origin *origin, neap_error *error, char path[NP_PLAN_PATH_BYTES])
{
    neap_link link;
    neap_status status = m->device->api->link(m->device, &link);
    if (status == NEAP_OK) {
        status = np_plan_origin_make(m->device, &m->options, &link, error, origin);
    }
    if (status == NEAP_OK && m->is_beneath) { /* as `neap run` was told: it is part of the command line there */
        origin->command = np_hash_combine(origin->command, np_hash_combine(m->margin, (uint64_t)(m->overhead * 1e9)));
    }
    return status == NEAP_OK ? np_plan_file_name(origin, m->options.plan_cache, error, path) : status;
}

void np_plans_load(neap_device *m)
{
    np_pattern *patterns[NP_MAX_PATTERNS];
    np_plan_origin origin;
    char path[NP_PLAN_PATH_BYTES];
    neap_error error = {{0}};
    uint64_t limit = 0;
    size_t n = 0;
    neap_status status;
    if (!m->options.plan_cache) {
        m->options.plan_cache = getenv("NEAP_PLAN_CACHE"); /* NOLINT(concurrency-mt-unsafe): nothing here sets it */
    }
    if (!m->options.plan_cache || !*m->options.plan_cache) {
        m->options.plan_cache = NULL;
        return;
    }
    status = find_path(m, &origin, &error, path);
    if (status == NEAP_OK) {
        status = np_plan_file_load(path, &origin, m->memory, &error, &limit, patterns, NP_MAX_PATTERNS, &n);
    }
    if (status == NEAP_OK && np_array_reserve(m->memory, &m->patterns, n) != NEAP_OK) {
        while (n > 0) {
            np_pattern_free(patterns[--n]);
        }
        (void)np_fail_memory(&error);
    }
    for (size_t i = 0; i < n && status == NEAP_OK; i++) {
        patterns[i]->limit_pages = (uint32_t)(limit / m->device->page_bytes);
        patterns[i]->quiet_ns = patterns[i]->program.period_ns;
        m->patterns.items[m->patterns.n++] = patterns[i];
    }
    if (n > 0) {
        m->stats.plan_was_loaded = true;
        m->is_saved = true;
        m->asked_pages = limit ? (uint32_t)(limit / m->device->page_bytes) : m->asked_pages;
        np_limit_update(m);
    }
    if (error.text[0]) {
        np_log(m, NEAP_LOG_WARN, "no saved plan is used: %s", error.text);
    }
}

void np_plan_is_final(neap_device *m, np_pattern *pattern)
{
    m->is_saved &= !pattern->is_provisional;
    pattern->is_provisional = false;
}

/* While other plans are tried in a pattern's place, the best of them stands for it. */
static const np_pattern *best_of(const neap_device *m, const np_pattern *pattern)
{
    const np_refine *refine = &m->refine;
    const np_pattern *best = refine->is_ending ? refine->next : refine->best;
    return pattern == refine->measured && best ? best : pattern;
}

/* A plan that was made in no time is not kept: another run would never ask for the real one. */
static size_t list_final(const neap_device *m, const np_pattern **patterns)
{
    size_t n = 0;
    for (size_t i = 0; i < m->patterns.n && n < NP_MAX_PATTERNS; i++) {
        if (!m->patterns.items[i]->is_provisional) {
            patterns[n++] = best_of(m, m->patterns.items[i]);
        }
    }
    return n;
}

void np_plans_save(neap_device *m)
{
    const np_pattern *patterns[NP_MAX_PATTERNS];
    np_plan_origin origin;
    char path[NP_PLAN_PATH_BYTES];
    neap_error error = {{0}};
    uint64_t limit = m->limit_pages == UINT32_MAX ? 0 : m->limit_pages * m->device->page_bytes;
    size_t n = m->options.plan_cache && !m->is_saved ? list_final(m, patterns) : 0;
    neap_status status;
    if (n == 0) {
        return;
    }
    m->is_saved = true;
    status = find_path(m, &origin, &error, path);
    if (status == NEAP_OK) {
        status = np_plan_file_save(path, &origin, limit, patterns, n, m->memory, &error);
    }
    if (status != NEAP_OK) {
        np_log(m, NEAP_LOG_WARN, "the plan was not saved: %s",
               error.text[0] ? error.text : neap_status_message(status));
    }
}
