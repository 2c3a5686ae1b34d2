/* train.c: `neap train NET`: trains one of the paper's networks on a device that neap manages, and says what was held.
 *
 * This file turns the arguments into a request and runs it; train_show.c prints what came out. */
#include "train.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "limit.h"
#include "nets/nets.h"
#include "printable.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

enum { DEFAULT_BATCH = 16, DEFAULT_ITERS = 30, ITERS_MAX = 1000000 };
static const double default_share = 0.6; /* of the peak load: the limit where runs are compared */

typedef struct train_args {
    common_args common;
    const char *device;
    const char *limit; /* as given, NULL: not at all */
    const char *data;
    const char *plan_cache;
    uint64_t batch;
    uint64_t iters;
    uint64_t seed;
    double plan_seconds;
    bool compare;
} train_args;

/* ---- from arguments to a request ---- */

static const char *known_net(const void *list, size_t i)
{
    (void)list;
    return nets_name(i);
}

static bool check_net(const char *net)
{
    char names[160] = "";
    size_t used = 0;
    for (size_t i = 0; nets_name(i); i++) {
        if (strcmp(nets_name(i), net) == 0) {
            return true;
        }
        used += used < sizeof names ? (size_t)snprintf(names + used, sizeof names - used, ", %s", nets_name(i)) : 0;
    }
    const char *nearest = options_nearest(net, known_net, NULL);
    return nearest ? options_wrong(&verb_train, "there is no net '%s'; did you mean '%s'?", net, nearest)
                   : options_wrong(&verb_train, "there is no net '%s'; there are %s", net, names + 2);
}

static bool parse_limit(const char *text, neap_device_options *options)
{
    limit parsed;
    bool is_good = limit_parse(&verb_train, text, LIMIT_DOUBTS, &parsed);
    options->limit = parsed.bytes;
    options->limit_share = parsed.share;
    return is_good;
}

/* The log of a device, while the flag at `user` says that a network is being trained. */
static void warn(void *user, neap_log_level level, const char *line)
{
    const atomic_bool *is_training = user;
    (void)level;
    if (atomic_load(is_training)) {
        printable_say("%s", line);
    }
}

static bool make_request(const train_args *args, train_request *request)
{
    *request = (train_request){
        .net = args->common.operand,
        .device = args->device ? args->device : "cpu",
        .data = args->data,
        .batch = (size_t)args->batch,
        .iters = args->iters,
        .seed = args->seed,
        .options = {.plan_cache = args->plan_cache, .plan_seconds = args->plan_seconds, .seed = args->seed},
        .json = args->common.json,
    };
    if (args->batch > NETS_BATCH_MAX) {
        return options_wrong(&verb_train, "--batch must be at most %d", NETS_BATCH_MAX);
    }
    if (args->iters > ITERS_MAX) {
        return options_wrong(&verb_train, "--iters must be at most %d", ITERS_MAX);
    }
    return check_net(request->net) && (!args->limit || parse_limit(args->limit, &request->options));
}

/* ---- one run ---- */

static double now_ms(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int compare_reals(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of the later half: when a plan is followed, where there is one. */
static double typical(double *times, size_t n)
{
    size_t first = n / 2;
    qsort(times + first, n - first, sizeof *times, compare_reals);
    return times[first + (n - first) / 2];
}

static void show_progress(const train_request *request, const train_result *result, uint64_t done, neap_device *device)
{
    enum { WIDTH = 20 };
    char bar[4 * WIDTH + 1];
    char held[UNITS_CHARS];
    neap_stats stats;
    neap_get_stats(device, &stats);
    term_progress("%s, %s: %llu of %llu, loss %.3f, %s, holds %s %s", request->net, result->allocation,
                  (unsigned long long)done, (unsigned long long)request->iters, (double)result->losses[done - 1],
                  neap_state_name(stats.state), units_bytes(stats.held, held),
                  term_bar((double)done / (double)request->iters, WIDTH, bar));
}

static neap_status train_net(const train_request *request, neap_device *device, nets *net, double *times,
                             neap_error *error, train_result *result)
{
    for (uint64_t i = 0; i < request->iters; i++) {
        double begin = now_ms();
        neap_status status = nets_step(net, error, &result->losses[i]);
        if (status != NEAP_OK) {
            return status;
        }
        times[i] = now_ms() - begin;
        show_progress(request, result, i + 1, device);
    }
    result->iteration_ms = typical(times, (size_t)request->iters);
    result->n_parameters = nets_n_parameters(net);
    neap_get_stats(device, &result->stats);
    return NEAP_OK;
}

static neap_status train_once(const train_request *request, const neap_device_options *options, neap_error *error,
                              train_result *result)
{
    atomic_bool is_training = true;
    neap_device_options logged = *options;
    logged.log = warn;
    logged.log_user = &is_training;
    neap_device *device;
    neap_status status = neap_open(request->device, &logged, NULL, error, &device);
    if (status != NEAP_OK) {
        return status;
    }
    const nets_options net_options = {
        .net = request->net, .batch = request->batch, .seed = request->seed, .data = request->data};
    nets *net = NULL;
    double *times = calloc((size_t)request->iters, sizeof *times);
    result->losses = calloc((size_t)request->iters, sizeof *result->losses);
    status = times && result->losses ? nets_create(device, &net_options, error, &net) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = train_net(request, device, net, times, error, result);
    }
    if (status == NEAP_OK) {
        atomic_store(&is_training, false); /* all weights are read: no plan has that, and nobody need be told */
        status = nets_checksum(net, error, &result->weights);
    }
    term_progress_clear();
    free(times);
    nets_free(net);
    neap_close(device);
    return status;
}

/* ---- the verb ---- */

static int train_alone(const train_request *request)
{
    neap_error error = {""};
    const neap_device_options *options = &request->options;
    bool has_limit = options->limit > 0 || options->limit_share > 0;
    train_result result = {.allocation = has_limit ? "SmartPool + AutoSwap" : "SmartPool"};
    neap_status status = train_once(request, options, &error, &result);
    if (status == NEAP_OK && request->json) {
        train_print_json(request, &result);
    } else if (status == NEAP_OK) {
        train_print_one(request, &result);
    }
    free(result.losses);
    return status == NEAP_OK ? EXIT_GOOD : report_failure(request->net, status, &error);
}

static int train_compared(const train_request *request)
{
    enum { N_RUNS = 3 };
    neap_error error = {""};
    neap_status status = NEAP_OK;
    train_result results[N_RUNS] = {
        {.allocation = "plain"}, {.allocation = "SmartPool"}, {.allocation = "SmartPool + AutoSwap"}};
    neap_device_options options[N_RUNS] = {request->options, request->options, request->options};
    options[0].mode = NEAP_MODE_PLAIN;
    options[0].limit = options[1].limit = 0;
    options[0].limit_share = options[1].limit_share = 0;
    if (options[2].limit == 0 && !(options[2].limit_share > 0)) {
        options[2].limit_share = default_share;
    }
    for (size_t i = 0; i < N_RUNS && status == NEAP_OK; i++) {
        status = train_once(request, &options[i], &error, &results[i]);
    }
    int code = EXIT_GOOD;
    if (status != NEAP_OK) {
        code = report_failure(request->net, status, &error);
    } else if (!train_print_compared(request, results, N_RUNS)) {
        code = EXIT_NO;
    }
    for (size_t i = 0; i < N_RUNS; i++) {
        free(results[i].losses);
    }
    return code;
}

static int run_train(const verb *self, int n_args, char **args)
{
    train_args parsed = {.batch = DEFAULT_BATCH, .iters = DEFAULT_ITERS, .seed = 1};
    train_request request;
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!make_request(&parsed, &request)) {
        return EXIT_BAD;
    }
    return parsed.compare ? train_compared(&request) : train_alone(&request);
}

#define TRAIN_OPTION(option_name, option_kind, field, ...)                                           \
    {                                                                                                \
        .name = option_name, .kind = option_kind, .offset = offsetof(train_args, field), __VA_ARGS__ \
    }

static const option train_options[] = {
    TRAIN_OPTION("device", OPTION_TEXT, device, .value = "NAME",
                 .help = "cpu unless given; cpu:link=2GB/s and the like, as neap_open takes it"),
    TRAIN_OPTION("batch", OPTION_UINT, batch, .value = "N", .least = 1, .help = "images a step; 16 unless given"),
    TRAIN_OPTION("iters", OPTION_UINT, iters, .value = "N", .least = 1, .help = "steps; 30 unless given"),
    TRAIN_OPTION("seed", OPTION_UINT, seed, .value = "N", .help = "of weights, images and dropout; 1 unless given"),
    TRAIN_OPTION("limit", OPTION_TEXT, limit, .value = "SIZE|SHARE",
                 .help = "device memory to hold at most: 127MB, or 60% of the peak load; none unless given"),
    TRAIN_OPTION("compare", OPTION_FLAG, compare,
                 .help =
                     "train three times: plain allocation, SmartPool, and AutoSwap under the limit (60% unless given)"),
    TRAIN_OPTION("data", OPTION_TEXT, data, .value = "FOLDER",
                 .help = "CIFAR-10's data_batch_1.bin to data_batch_5.bin; synthetic images unless given"),
    TRAIN_OPTION("plan-cache", OPTION_TEXT, plan_cache, .value = "FOLDER", .help = "keep plans there from run to run"),
    TRAIN_OPTION("plan-seconds", OPTION_SECONDS, plan_seconds, .value = "S",
                 .help = "for planning, beside the training; 2 unless given"),
    COMMON_OPTIONS,
};

const verb verb_train = {
    .name = "train",
    .operand = "NET",
    .operand_name = nets_name,
    .summary = "trains a network on a device that neap manages, and says what memory it held",
    .details =
        "NET is vgg11, vgg13, vgg16, vgg19, resnet18, resnet34, resnet50, resnet101 or resnet152, for images of\n"
        "3 x 32 x 32 and ten classes. The same seed gives the same losses to the bit, however memory is served:\n"
        "--compare gives exit code 1 where that does not hold. The time of an iteration is the median of the\n"
        "later half.\n",
    .options = train_options,
    .n_options = sizeof train_options / sizeof train_options[0],
    .run = run_train,
};
