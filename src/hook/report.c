/* report.c: the facts of a device as lines for people, as a JSON object, and as one line for a terminal.
 *
 * Every line of the text begins with what it is about, in a column of its own; a line that has nothing to say is left
 * out. The object has every fact there is, flat, under the name it has in the structures; what is not known is null.
 * report_write.c puts them where they belong. Nothing here calls a driver or takes host memory. */
#include "hook/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hook/sink.h"

/* Which of several processes of one job: what torchrun and its like say. -1: there is one alone. */
int np_hook_report_rank(void)
{
    static const char *const names[] = {"RANK", "LOCAL_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): programs set it before they begin */
        size_t n = text ? strspn(text, "0123456789") : 0;
        if (n > 0 && n < 7 && text[n] == '\0') {
            return atoi(text); /* NOLINT(cert-err34-c): digits alone, and few */
        }
    }
    return -1;
}

/* ---- what lines and numbers are about ---- */

static uint64_t peak_of(const np_hook_facts *facts)
{
    return facts->stats.peak_load ? facts->stats.peak_load : facts->stats.peak_live;
}

static uint64_t held_of(const np_hook_facts *facts)
{
    return facts->stats.footprint ? facts->stats.footprint : facts->stats.peak_held;
}

static double ratio_of(const np_hook_facts *facts)
{
    uint64_t peak = peak_of(facts);
    return peak ? (double)held_of(facts) / (double)peak : NAN;
}

static bool had_plan(const np_hook_facts *facts)
{
    return facts->stats.footprint != 0;
}

static void put_begin(np_hook_sink *sink, const np_hook_facts *facts)
{
    int rank = np_hook_report_rank();
    np_hook_sink_put(sink, "neap: ");
    if (rank >= 0) {
        np_hook_sink_put(sink, "rank %d: ", rank);
    }
    np_hook_sink_put(sink, "cuda:%d: ", facts->ordinal);
}

/* ---- the text, a line a function ---- */

static void put_label(np_hook_sink *sink, const np_hook_facts *facts, const char *label)
{
    put_begin(sink, facts);
    np_hook_sink_put(sink, "%-9s ", label);
}

static void put_memory(np_hook_sink *sink, const np_hook_facts *facts)
{
    put_label(sink, facts, "peak load");
    np_hook_sink_put_bytes(sink, peak_of(facts));
    np_hook_sink_put(sink, ", held ");
    np_hook_sink_put_bytes(sink, held_of(facts));
    if (isfinite(ratio_of(facts))) {
        np_hook_sink_put(sink, " (x ");
        np_hook_sink_put_fixed(sink, 4, ratio_of(facts));
        np_hook_sink_put(sink, ")");
    }
    if (facts->caching_bytes) {
        np_hook_sink_put(sink, "; PyTorch's own allocator would have held ");
        np_hook_sink_put_bytes(sink, facts->caching_bytes);
    }
    np_hook_sink_put(sink, "\n");
}

/* A limit that was asked for, and does not hold, is said, with the reason. */
static void put_limit_asked(np_hook_sink *sink, const np_hook_facts *facts)
{
    put_label(sink, facts, "limit");
    if (facts->share_asked > 0) {
        np_hook_sink_put_share(sink, facts->share_asked);
        np_hook_sink_put(sink, " of the peak load");
    } else {
        np_hook_sink_put_bytes(sink, facts->limit_asked);
    }
    np_hook_sink_put(sink, " asked, not in force: %s\n",
                     facts->aside ? "neap has stepped aside" : "the load has not risen to its height twice");
}

static void put_limit(np_hook_sink *sink, const np_hook_facts *facts)
{
    if (facts->stats.limit == 0 && (facts->share_asked > 0 || facts->limit_asked > 0)) {
        put_limit_asked(sink, facts);
    }
    if (facts->stats.limit == 0) {
        return;
    }
    put_label(sink, facts, "limit");
    np_hook_sink_put_bytes(sink, facts->stats.limit);
    if (facts->stats.peak_load) {
        np_hook_sink_put(sink, ", ");
        np_hook_sink_put_share(sink, (double)facts->stats.limit / (double)facts->stats.peak_load);
        np_hook_sink_put(sink, " of the peak load");
    }
    if (held_of(facts) > facts->stats.limit) {
        np_hook_sink_put(sink, "; more was held");
    }
    np_hook_sink_put(sink, "\n");
    if (facts->stats.is_limit_unplanned) {
        put_label(sink, facts, "slow");
        np_hook_sink_put(sink,
                         "the limit is held without a plan: blocks move when work needs them, and the program waits. "
                         "Where sizes differ in each iteration, fewer of them help\n");
    }
}

static void put_swapped(np_hook_sink *sink, const np_hook_facts *facts)
{
    const neap_stats *stats = &facts->stats;
    if (stats->bytes_out == 0 && stats->bytes_in == 0 && stats->host_bytes == 0) {
        return;
    }
    put_label(sink, facts, "swapped");
    np_hook_sink_put_bytes(sink, stats->bytes_out);
    np_hook_sink_put(sink, " out, ");
    np_hook_sink_put_bytes(sink, stats->bytes_in);
    np_hook_sink_put(sink, " in; host memory ");
    np_hook_sink_put_bytes(sink, stats->host_bytes);
    np_hook_sink_put(sink, "; %s\n", facts->is_verified ? "verified" : "not verified (see neap verify)");
}

static void put_overhead(np_hook_sink *sink, const np_hook_facts *facts)
{
    const neap_stats *stats = &facts->stats;
    bool is_measured = isfinite(stats->overhead);
    if (!had_plan(facts) || (!is_measured && !(stats->plan_overhead > 0))) {
        return;
    }
    put_label(sink, facts, "overhead");
    if (is_measured) {
        np_hook_sink_put_share(sink, stats->overhead);
        np_hook_sink_put(sink, " measured, ");
    }
    np_hook_sink_put_share(sink, stats->plan_overhead);
    np_hook_sink_put(sink, " planned");
    if (stats->iteration_ns > 0) {
        np_hook_sink_put(sink, ", of an iteration of ");
        np_hook_sink_put_seconds(sink, stats->iteration_ns * 1e-9);
    }
    np_hook_sink_put(sink, "\n");
}

static const char *state_text(neap_state state)
{
    switch (state) {
#define STATE_TEXT(name, word, text) \
    case name:                       \
        return text;
        NEAP_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
    }
    return "";
}

static void put_plan(np_hook_sink *sink, const np_hook_facts *facts)
{
    const neap_stats *stats = &facts->stats;
    if (!had_plan(facts)) {
        put_label(sink, facts, "no plan");
        np_hook_sink_put(sink, "in ");
        np_hook_sink_put_seconds(sink, facts->seconds);
        np_hook_sink_put(sink, ": %s\n", state_text(stats->state));
        return;
    }
    put_label(sink, facts, "plan");
    np_hook_sink_put(sink, "%" PRIu64 " iteration%s on it%s", stats->n_iterations, stats->n_iterations == 1 ? "" : "s",
                     stats->plan_was_loaded ? "; loaded" : "");
    if (facts->pool_iteration != UINT64_MAX) {
        np_hook_sink_put(sink, "; active after %" PRIu64 " iteration%s, ", facts->pool_iteration,
                         facts->pool_iteration == 1 ? "" : "s");
        np_hook_sink_put_seconds(sink, facts->pool_seconds);
    }
    if (facts->swap_seconds > 0) {
        np_hook_sink_put(sink, ", with swaps after ");
        np_hook_sink_put_seconds(sink, facts->swap_seconds);
    }
    if (stats->n_patterns > 1) {
        np_hook_sink_put(sink, "; %" PRIu64 " patterns", stats->n_patterns);
    }
    np_hook_sink_put(sink, "\n");
}

static void put_visits(np_hook_sink *sink, const np_hook_facts *facts)
{
    uint64_t n = facts->stats.n_visits;
    if (n > 0) {
        put_label(sink, facts, "visits");
        np_hook_sink_put(sink, "%" PRIu64 " time%s a block that was away came for one kernel\n", n, n == 1 ? "" : "s");
    }
}

static void put_departures(np_hook_sink *sink, const np_hook_facts *facts)
{
    const neap_stats *stats = &facts->stats;
    if (stats->n_departures == 0) {
        return;
    }
    put_label(sink, facts, "left plan");
    np_hook_sink_put(sink, "%" PRIu64 " time%s", stats->n_departures, stats->n_departures == 1 ? "" : "s");
    const char *mark = ": ";
    for (int i = 0; i < NEAP_N_DEPARTURES; i++) {
        if (stats->departures[i]) {
            np_hook_sink_put(sink, "%s%s (%" PRIu64 ")", mark, neap_departure_text((neap_departure)i),
                             stats->departures[i]);
            mark = ", ";
        }
    }
    np_hook_sink_put(sink, "\n");
}

static void put_doubts(np_hook_sink *sink, const np_hook_facts *facts)
{
    if (facts->peak_fixed) {
        put_label(sink, facts, "fixed");
        np_hook_sink_put_bytes(sink, facts->peak_fixed);
        np_hook_sink_put(sink, " that never leave: graphs, exports, collectives, tables of pointers\n");
    }
    if (facts->n_unknown) {
        put_label(sink, facts, "unknown");
        np_hook_sink_put(sink, "%" PRIu64 " driver call%s of a kind that neap does not know\n", facts->n_unknown,
                         facts->n_unknown == 1 ? "" : "s");
    }
    if (facts->aside) {
        put_label(sink, facts, "aside");
        np_hook_sink_put(sink, "%s\n", facts->aside);
    }
}

size_t np_hook_report_text(const np_hook_facts *facts, char *text, size_t bytes)
{
    np_hook_sink sink = np_hook_sink_begin(text, bytes);
    put_memory(&sink, facts);
    put_limit(&sink, facts);
    put_swapped(&sink, facts);
    put_overhead(&sink, facts);
    put_plan(&sink, facts);
    put_visits(&sink, facts);
    put_departures(&sink, facts);
    put_doubts(&sink, facts);
    return sink.length;
}

size_t np_hook_report_line(const np_hook_facts *facts, char *text, size_t bytes)
{
    const neap_stats *stats = &facts->stats;
    np_hook_sink sink = np_hook_sink_begin(text, bytes);
    put_begin(&sink, facts);
    if (facts->aside) {
        np_hook_sink_put(&sink, "stepped aside: %s", facts->aside);
        return sink.length;
    }
    np_hook_sink_put(&sink, "%s, holds ", neap_state_name(stats->state));
    np_hook_sink_put_bytes(&sink, stats->held);
    if (stats->limit) {
        np_hook_sink_put(&sink, " of ");
        np_hook_sink_put_bytes(&sink, stats->limit);
    }
    if (stats->is_limit_unplanned) {
        np_hook_sink_put(&sink, " (slow: without a plan)");
    }
    if (stats->peak_load) {
        np_hook_sink_put(&sink, ", peak load ");
        np_hook_sink_put_bytes(&sink, stats->peak_load);
    }
    if (stats->n_iterations) {
        np_hook_sink_put(&sink, ", %" PRIu64 " iterations", stats->n_iterations);
    }
    if (stats->bytes_out) {
        np_hook_sink_put(&sink, ", ");
        np_hook_sink_put_bytes(&sink, stats->bytes_out);
        np_hook_sink_put(&sink, " out");
    }
    if (stats->n_iterations && isfinite(stats->overhead)) {
        np_hook_sink_put(&sink, ", overhead ");
        np_hook_sink_put_share(&sink, stats->overhead);
    }
    if (stats->n_departures) {
        np_hook_sink_put(&sink, ", left %" PRIu64, stats->n_departures);
    }
    return sink.length;
}

/* ---- the object ---- */

static void key(np_hook_sink *sink, const char *name)
{
    np_hook_sink_put(sink, ", \"%s\": ", name);
}

static void put_uint(np_hook_sink *sink, const char *name, uint64_t value)
{
    key(sink, name);
    np_hook_sink_put(sink, "%" PRIu64, value);
}

static void put_uint_if(np_hook_sink *sink, const char *name, bool is_known, uint64_t value)
{
    if (is_known) {
        put_uint(sink, name, value);
    } else {
        key(sink, name);
        np_hook_sink_put(sink, "null");
    }
}

/* 0 stands for what is not known, or not there. */
static void put_known(np_hook_sink *sink, const char *name, uint64_t value)
{
    put_uint_if(sink, name, value != 0, value);
}

static void put_real(np_hook_sink *sink, const char *name, double value)
{
    key(sink, name);
    np_hook_sink_put_real(sink, value);
}

static void put_bool(np_hook_sink *sink, const char *name, bool value)
{
    key(sink, name);
    np_hook_sink_put(sink, "%s", value ? "true" : "false");
}

/* NEAP_DEPARTURE_MALLOC is "departures_malloc". */
static const char *departure_key(neap_departure departure, char *text, size_t bytes)
{
    static const char *const names[] = {
#define DEPARTURE_NAME(name, text) #name,
        NEAP_DEPARTURE_MAP(DEPARTURE_NAME)
#undef DEPARTURE_NAME
    };
    (void)snprintf(text, bytes, "departures_%s", names[departure] + sizeof "NEAP_DEPARTURE_" - 1);
    for (char *at = text; *at; at++) {
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    }
    return text;
}

static void put_stats(np_hook_sink *sink, const neap_stats *stats)
{
    put_known(sink, "limit", stats->limit);
    put_uint(sink, "live", stats->live);
    put_uint(sink, "held", stats->held);
    put_uint(sink, "peak_live", stats->peak_live);
    put_uint(sink, "peak_held", stats->peak_held);
    put_known(sink, "peak_load", stats->peak_load);
    put_known(sink, "footprint", stats->footprint);
    put_known(sink, "planned_footprint", stats->planned_footprint);
    put_uint(sink, "bytes_out", stats->bytes_out);
    put_uint(sink, "bytes_in", stats->bytes_in);
    put_uint(sink, "host_bytes", stats->host_bytes);
    put_uint(sink, "waits", stats->waits);
    put_uint(sink, "giving_ns", stats->giving_ns);
    put_uint(sink, "n_events", stats->n_events);
    put_uint(sink, "n_iterations", stats->n_iterations);
    put_uint(sink, "n_patterns", stats->n_patterns);
    put_uint(sink, "n_departures", stats->n_departures);
    put_uint(sink, "n_branches", stats->n_branches);
    put_uint(sink, "n_beside", stats->n_beside);
    put_uint(sink, "n_visits", stats->n_visits);
    for (int i = 0; i < NEAP_N_DEPARTURES; i++) {
        char name[32];
        put_uint(sink, departure_key((neap_departure)i, name, sizeof name), stats->departures[i]);
    }
    put_real(sink, "plan_overhead", stats->planned_footprint ? stats->plan_overhead : NAN);
    put_real(sink, "overhead", stats->overhead);
    put_real(sink, "iteration_ns", stats->iteration_ns > 0 ? stats->iteration_ns : NAN);
    put_uint(sink, "metadata_bytes", stats->metadata_bytes);
    put_bool(sink, "is_limit_unplanned", stats->is_limit_unplanned);
    put_bool(sink, "plan_was_loaded", stats->plan_was_loaded);
    put_bool(sink, "is_planning", stats->is_planning);
}

size_t np_hook_report_json(const np_hook_facts *facts, char *text, size_t bytes)
{
    np_hook_sink sink = np_hook_sink_begin(text, bytes);
    int rank = np_hook_report_rank();
    np_hook_sink_put(&sink, "{\"device\": \"cuda:%d\", \"ordinal\": %d", facts->ordinal, facts->ordinal);
    put_uint(&sink, "pid", (uint64_t)getpid());
    put_uint_if(&sink, "rank", rank >= 0, (uint64_t)rank);
    key(&sink, "state");
    np_hook_sink_put_string(&sink, neap_state_name(facts->stats.state));
    key(&sink, "aside");
    np_hook_sink_put_string(&sink, facts->aside);
    put_real(&sink, "seconds", facts->seconds);
    put_real(&sink, "ratio", ratio_of(facts));
    put_stats(&sink, &facts->stats);
    put_uint(&sink, "side_bytes", facts->side_bytes);
    put_uint(&sink, "side_live", facts->side_live);
    put_uint(&sink, "held_fixed", facts->held_fixed);
    put_uint(&sink, "peak_fixed", facts->peak_fixed);
    put_known(&sink, "caching_bytes", facts->caching_bytes);
    put_uint(&sink, "n_launches", facts->n_launches);
    put_uint(&sink, "n_quick", facts->n_quick);
    put_uint(&sink, "n_rests", facts->n_rests);
    put_uint(&sink, "n_strays", facts->n_strays);
    put_uint(&sink, "n_words", facts->n_words);
    put_uint(&sink, "scan_ns", facts->scan_ns);
    put_uint(&sink, "n_unknown", facts->n_unknown);
    put_uint(&sink, "n_doubtful", facts->n_doubtful);
    put_uint_if(&sink, "pool_iteration", facts->pool_iteration != UINT64_MAX, facts->pool_iteration);
    put_real(&sink, "pool_seconds", facts->pool_iteration != UINT64_MAX ? facts->pool_seconds : NAN);
    put_real(&sink, "swap_seconds", facts->swap_seconds > 0 ? facts->swap_seconds : NAN);
    put_known(&sink, "limit_asked", facts->limit_asked);
    put_real(&sink, "share_asked", facts->share_asked > 0 ? facts->share_asked : NAN);
    put_bool(&sink, "is_learning", facts->is_learning);
    put_bool(&sink, "is_verified", facts->is_verified);
    np_hook_sink_put(&sink, "}");
    return sink.length;
}
