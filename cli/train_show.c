/* train_show.c: a training run for people and for programs. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table.h"
#include "term.h"
#include "train.h"
#include "units.h"

uint64_t train_footprint(const neap_stats *stats)
{
    return stats->footprint ? stats->footprint : stats->peak_held;
}

static const char *hash_text(uint64_t hash, char *text)
{
    (void)snprintf(text, UNITS_CHARS, "%016" PRIx64, hash);
    return text;
}

static double share_of(uint64_t bytes, uint64_t whole)
{
    return whole ? (double)bytes / (double)whole : NAN;
}

/* ---- for programs ---- */

static void put_request(json *out, const train_request *request)
{
    json_text(out, "net", request->net);
    json_text(out, "device", request->device);
    json_text(out, "data", request->data ? request->data : "synthetic");
    json_uint(out, "batch", request->batch);
    json_uint(out, "iters", request->iters);
    json_uint(out, "seed", request->seed);
}

static void put_known(json *out, const char *key, uint64_t value)
{
    if (value) {
        json_uint(out, key, value);
    } else {
        json_null(out, key);
    }
}

static void put_result(json *out, const train_request *request, const train_result *result)
{
    const neap_stats *stats = &result->stats;
    char hash[UNITS_CHARS];
    json_text(out, "allocation", result->allocation);
    json_uint(out, "parameters", result->n_parameters);
    put_known(out, "peak_load", stats->peak_load);
    put_known(out, "limit", stats->limit);
    json_uint(out, "footprint", train_footprint(stats));
    put_known(out, "planned_footprint", stats->planned_footprint);
    json_real(out, "ratio", share_of(train_footprint(stats), stats->peak_load));
    json_uint(out, "peak_held", stats->peak_held);
    json_real(out, "iteration_ms", result->iteration_ms);
    json_real(out, "overhead", stats->overhead);
    json_real(out, "plan_overhead", stats->planned_footprint ? stats->plan_overhead : NAN);
    json_text(out, "state", neap_state_name(stats->state));
    json_uint(out, "planned_iterations", stats->n_iterations);
    json_uint(out, "departures", stats->n_departures);
    json_bool(out, "plan_was_loaded", stats->plan_was_loaded);
    json_uint(out, "bytes_out", stats->bytes_out);
    json_uint(out, "bytes_in", stats->bytes_in);
    json_uint(out, "host_bytes", stats->host_bytes);
    json_text(out, "weights", hash_text(result->weights, hash));
    json_array_begin(out, "losses");
    for (uint64_t i = 0; i < request->iters; i++) {
        json_real(out, NULL, (double)result->losses[i]);
    }
    json_array_end(out);
}

void train_print_json(const train_request *request, const train_result *result)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    put_request(&out, request);
    put_result(&out, request, result);
    json_object_end(&out);
    json_end(&out);
}

static void print_compared_json(const train_request *request, const train_result *results, size_t n, bool is_identical)
{
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    put_request(&out, request);
    json_bool(&out, "identical", is_identical);
    json_array_begin(&out, "runs");
    for (size_t i = 0; i < n; i++) {
        json_object_begin(&out, NULL);
        put_result(&out, request, &results[i]);
        json_object_end(&out);
    }
    json_array_end(&out);
    json_object_end(&out);
    json_end(&out);
}

/* ---- for people ---- */

static void print_title(const train_request *request, const train_result *result)
{
    char count[UNITS_CHARS];
    (void)printf("%s%s%s on %s: %s parameters, %s images, batch %zu, %" PRIu64 " iterations, seed %" PRIu64 "\n\n",
                 term_on(TERM_BOLD), request->net, term_off(TERM_BOLD), request->device,
                 units_count(result->n_parameters, count), request->data ? "CIFAR-10" : "synthetic", request->batch,
                 request->iters, request->seed);
}

/* Ten in a row; of a long training, as many as fill ten rows, equally far apart, each the mean of its stretch. */
static void print_losses(const train_request *request, const train_result *result)
{
    enum { COLUMNS = 10, SHOWN_MAX = 100 };
    uint64_t stretch = (request->iters + SHOWN_MAX - 1) / SHOWN_MAX;
    (void)printf("  loss%s", stretch > 1 ? "" : "\n");
    if (stretch > 1) {
        (void)printf(", means of %" PRIu64 " iterations\n", stretch);
    }
    for (uint64_t i = 0; i < request->iters; i += stretch) {
        double sum = 0;
        uint64_t n = 0;
        for (; n < stretch && i + n < request->iters; n++) {
            sum += (double)result->losses[i + n];
        }
        uint64_t column = i / stretch % COLUMNS;
        bool is_last = column == COLUMNS - 1 || i + stretch >= request->iters;
        (void)printf("%s%.4f%s", column == 0 ? "    " : "  ", sum / (double)n, is_last ? "\n" : "");
    }
    (void)putchar('\n');
}

static void rows_of_memory(table *t, const train_request *request, const neap_stats *stats)
{
    char note[120] = "";
    char text[UNITS_CHARS];
    double share = request->options.limit_share;
    bool is_limited = request->options.limit > 0 || share > 0;
    if (stats->peak_load) {
        table_row_of_bytes(t, TERM_PLAIN, "peak load", stats->peak_load, "alive at once in an iteration");
    } else {
        table_row_of_bytes(t, TERM_PLAIN, "peak load", stats->peak_live,
                           "alive at once so far; no iteration was recognised");
    }
    if (is_limited && stats->limit) {
        if (share > 0) {
            (void)snprintf(note, sizeof note, "%g %% of the peak load was asked for", share * 100);
        } else if (stats->limit != request->options.limit) {
            (void)snprintf(note, sizeof note, "%s was asked for", units_bytes(request->options.limit, text));
        }
        table_row_of_bytes(t, TERM_PLAIN, "limit", stats->limit, note);
    } else {
        TABLE_ROW(t, TERM_PLAIN, "limit", is_limited ? "none yet" : "none", "",
                  is_limited ? "a share of the peak load holds from the first plan on" : "");
    }
    table_row_of_bytes(t, TERM_BOLD, "footprint", train_footprint(stats),
                       stats->footprint ? "the most that was held since the plan began" : "the most that was held");
    (void)snprintf(text, sizeof text, "%.4f", share_of(train_footprint(stats), stats->peak_load));
    TABLE_ROW(t, TERM_PLAIN, "ratio", stats->peak_load ? text : "not known", "", "footprint / peak load");
}

static void rows_of_time(table *t, const train_result *result)
{
    const neap_stats *stats = &result->stats;
    char text[UNITS_CHARS];
    char planned[UNITS_CHARS];
    char note[120];
    TABLE_ROW(t, TERM_PLAIN, "iteration", units_seconds(result->iteration_ms / 1e3, text), "",
              "median of the later half");
    (void)snprintf(note, sizeof note, "measured; the plan expects %s", units_share(stats->plan_overhead, planned));
    TABLE_ROW(t, TERM_PLAIN, "overhead", isfinite(stats->overhead) ? units_share(stats->overhead, text) : "not known",
              "", isfinite(stats->overhead) ? note : "");
}

void train_print_one(const train_request *request, const train_result *result)
{
    const neap_stats *stats = &result->stats;
    char text[UNITS_CHARS];
    char other[UNITS_CHARS];
    char note[120];
    print_title(request, result);
    print_losses(request, result);
    table t = table_begin("lrll");
    rows_of_memory(&t, request, stats);
    rows_of_time(&t, result);
    (void)snprintf(note, sizeof note, "%s iterations were served from %s", units_count(stats->n_iterations, text),
                   stats->plan_was_loaded ? "a plan of the cache" : "a plan");
    TABLE_ROW(&t, stats->state == NEAP_STATE_RUN ? TERM_GOOD : TERM_WARN, "state", neap_state_name(stats->state), "",
              note);
    TABLE_ROW(&t, TERM_PLAIN, "departures", units_count(stats->n_departures, text), "", "times that a plan was left");
    (void)snprintf(note, sizeof note, "to the host; %s back", units_bytes(stats->bytes_in, other));
    TABLE_ROW(&t, TERM_PLAIN, "copied", units_bytes(stats->bytes_out, text), "", note);
    table_end(&t, 2, stdout);
    (void)printf("\n  weights %s\n", hash_text(result->weights, text));
}

/* ---- runs side by side ---- */

static bool are_identical(const train_request *request, const train_result *results, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (results[i].weights != results[0].weights ||
            memcmp(results[i].losses, results[0].losses, (size_t)request->iters * sizeof(float)) != 0) {
            return false;
        }
    }
    return true;
}

/* Of the runs that recognised an iteration; plain allocation does not look for one. */
static uint64_t common_peak_load(const train_result *results, size_t n)
{
    uint64_t load = 0;
    for (size_t i = 0; i < n; i++) {
        load = results[i].stats.peak_load > load ? results[i].stats.peak_load : load;
    }
    return load;
}

static void row_of_run(table *t, const train_result *result, uint64_t load)
{
    const neap_stats *stats = &result->stats;
    char held[UNITS_CHARS];
    char ratio[UNITS_CHARS] = "";
    char time[UNITS_CHARS];
    char overhead[UNITS_CHARS] = "";
    char hash[UNITS_CHARS];
    uint64_t footprint = train_footprint(stats);
    if (load) {
        (void)snprintf(ratio, sizeof ratio, "%.4f", share_of(footprint, load));
    }
    if (isfinite(stats->overhead)) {
        (void)units_share(stats->overhead, overhead);
    }
    TABLE_ROW(t, TERM_PLAIN, result->allocation, units_bytes(footprint, held), ratio,
              units_seconds(result->iteration_ms / 1e3, time), overhead,
              stats->planned_footprint ? neap_state_name(stats->state) : "no plan", hash_text(result->weights, hash));
}

bool train_print_compared(const train_request *request, const train_result *results, size_t n)
{
    bool is_identical = are_identical(request, results, n);
    if (request->json) {
        print_compared_json(request, results, n, is_identical);
        return is_identical;
    }
    uint64_t load = common_peak_load(results, n);
    char text[UNITS_CHARS];
    print_title(request, &results[0]);
    print_losses(request, &results[0]);
    if (load) {
        (void)printf("  peak load %s\n\n", units_bytes(load, text));
    }
    table t = table_begin("lrrrrll");
    TABLE_ROW(&t, TERM_DIM, "allocation", "footprint", "of peak load", "iteration", "overhead", "state", "weights");
    for (size_t i = 0; i < n; i++) {
        row_of_run(&t, &results[i], load);
    }
    table_end(&t, 2, stdout);
    term_style style = is_identical ? TERM_GOOD : TERM_WARN;
    (void)printf("\n  %s%s%s\n", term_on(style),
                 is_identical ? "losses and weights are bit-identical in all runs"
                              : "LOSSES OR WEIGHTS DIFFER between the runs",
                 term_off(style));
    return is_identical;
}
