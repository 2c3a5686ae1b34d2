/* bench_nets.c: networks trained on the CPU device: is what they learn the same to the bit, do they stay within their
 * limits, and what does the plan cost where nothing is limited?
 *
 *     bench_nets [--csv PATH]
 *
 *     step time   two devices in one process take turns, step by step: on a plan without a limit, and plain allocation.
 *                 The median of the ratios has an interval; a target inside of it is not resolved
 *     nine nets   each trained plainly, on a plan, and under four limits, for as many steps. Losses and weights are
 *                 compared to the bit, and what was held to the limit (which neap may raise, and says so) */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device_figures.h"
#include "device_settle.h"
#include "nets/nets.h"

/* A network on a device of its own. */
typedef struct trained {
    neap_device *device;
    nets *net;
    heard said;
} trained;

static void trained_open(trained *t, const char *name, size_t batch, neap_device_options options)
{
    const nets_options net_options = {.net = name, .batch = batch, .seed = 1};
    neap_error error = {""};
    *t = (trained){.said = HEARD_NOTHING};
    options.log = hear;
    options.log_user = &t->said;
    t->device = bench_open("cpu", &options);
    if (nets_create(t->device, &net_options, &error, &t->net) != NEAP_OK) {
        (void)fprintf(stderr, "bench_nets: %s: %s\n", name, error.text);
        exit(2);
    }
}

static void trained_close(trained *t)
{
    nets_free(t->net);
    neap_close(t->device);
}

static bool step(trained *t, float *loss)
{
    neap_error error = {""};
    if (nets_step(t->net, &error, loss) != NEAP_OK) {
        (void)fprintf(stderr, "bench_nets: %s\n", error.text);
        return false;
    }
    return true;
}

static bool step_once(void *user)
{
    float loss;
    return step(user, &loss);
}

/* ---------------------------------------------------------------- step time ---- */

static bool time_step(trained *t, double *ns)
{
    uint64_t begin_ns = np_clock_ns();
    bool ok = step_once(t);
    *ns = (double)(np_clock_ns() - begin_ns);
    return ok;
}

static bool time_both(trained *planned, trained *plain, bool plain_first, double ns[2])
{
    return plain_first ? time_step(plain, &ns[1]) && time_step(planned, &ns[0])
                       : time_step(planned, &ns[0]) && time_step(plain, &ns[1]);
}

static void judge_step_time(figures *f, const char *input, double *ratios, double *plain_ns, size_t n)
{
    median m = median_of(ratios, n);
    double plain = median_of(plain_ns, n).value;
    figure_note(f, "step_plain", input, plain * 1e-6, "ms");
    const char *met = figure_judge_median(f, "step_by_plain", input, m, "ratio", 1.02);
    (void)printf("  %-22s %9.1f %9.4f   %.4f to %.4f, %zu pairs   %s\n", input, plain * 1e-6, m.value, m.low, m.high, n,
                 met);
    (void)fflush(stdout);
}

static void measure_step_time(figures *f, const char *name, size_t batch)
{
    enum { N_PAIRS = 31, N_QUICK = 7 };
    const size_t n = f->is_quick ? N_QUICK : N_PAIRS;
    double ratios[N_PAIRS], plain_ns[N_PAIRS];
    trained planned, plain;
    neap_stats stats;
    char input[64];
    (void)snprintf(input, sizeof input, "%s batch %zu", name, batch);
    trained_open(&planned, name, batch, (neap_device_options){0});
    trained_open(&plain, name, batch, (neap_device_options){.mode = NEAP_MODE_PLAIN});
    bool ok = settle(planned.device, step_once, &planned, 3) && step_once(&plain) && step_once(&plain);
    for (size_t i = 0; i < n && ok; i++) {
        double ns[2];
        ok = time_both(&planned, &plain, i % 2 == 1, ns);
        ratios[i] = ok ? ns[0] / ns[1] : NAN;
        plain_ns[i] = ok ? ns[1] : NAN;
    }
    neap_get_stats(planned.device, &stats);
    trained_close(&plain);
    trained_close(&planned);
    if (ok && stats.n_departures == 0) {
        judge_step_time(f, input, ratios, plain_ns, n);
    } else {
        (void)fprintf(stderr, "bench_nets: %s: not on the plan: %s: %s\n", input, neap_state_name(stats.state),
                      planned.said.last);
        f->failed = true;
    }
}

/* ---------------------------------------------------------------- nine nets ---- */

enum { N_STEPS = 12 };

/* What came of a training. */
typedef struct outcome {
    float losses[N_STEPS];
    uint64_t weights;
    neap_stats stats; /* after the last step */
    double step_ns;   /* median of the later half */
    bool was_raised;  /* the limit was, and that was said */
    bool ok;
} outcome;

static void take_outcome(trained *t, outcome *o)
{
    neap_error error = {""};
    (void)neap_sync(t->device);
    neap_get_stats(t->device, &o->stats);
    o->ok = nets_checksum(t->net, &error, &o->weights) == NEAP_OK;
}

static outcome train(const char *name, size_t batch, neap_device_options options)
{
    outcome o = {.ok = false};
    double times[N_STEPS];
    trained t;
    trained_open(&t, name, batch, options);
    for (size_t i = 0; i < N_STEPS; i++) {
        uint64_t begin_ns = np_clock_ns();
        if (!step(&t, &o.losses[i])) {
            trained_close(&t);
            return o;
        }
        times[i] = (double)(np_clock_ns() - begin_ns);
        neap_get_stats(t.device, &o.stats);
        if (o.stats.state != NEAP_STATE_RUN) {
            wait_for_planner(t.device); /* a step takes less time here than a plan */
        }
    }
    o.step_ns = median_of(times + N_STEPS / 2, N_STEPS - N_STEPS / 2).value;
    take_outcome(&t, &o);
    trained_close(&t);
    o.was_raised = t.said.limit_was_raised;
    return o;
}

static bool is_identical(const outcome *a, const outcome *b)
{
    return a->ok && b->ok && a->weights == b->weights && memcmp(a->losses, b->losses, sizeof a->losses) == 0;
}

static void note_outcome(figures *f, const char *input, const outcome *o)
{
    figure_note(f, "step", input, o->step_ns * 1e-6, "ms");
    figure_note(f, "peak_load", input, (double)o->stats.peak_load, "bytes");
    figure_note(f, "footprint", input, (double)o->stats.footprint, "bytes");
    figure_note(f, "forecast_overhead", input, o->stats.plan_overhead * 100, "%");
    figure_note(f, "measured_overhead", input, o->stats.overhead * 100, "%");
}

/* neap may raise a limit that cannot be reached; then it says so. Otherwise it is what was asked for, in whole pages. */
static bool judge_limit(figures *f, const char *input, const outcome *o, double asked)
{
    const neap_stats *s = &o->stats;
    const double limit = s->limit > 0 ? (double)s->limit : NAN;
    bool missed = *figure_judge(f, "footprint_by_limit", input, (double)s->footprint / limit, "ratio", AT_MOST, 1);
    figure_note(f, "limit", input, limit, "bytes");
    figure_note(f, "limit_was_raised", input, o->was_raised, "bool");
    if (!o->was_raised) {
        missed |= *figure_judge(f, "limit_by_asked", input, limit / asked, "ratio", AT_MOST, 1);
    }
    return missed;
}

/* `limit_share` 0: none. */
static void judge_outcome(figures *f, const char *input, const outcome *plain, const outcome *o, double limit_share)
{
    const neap_stats *s = &o->stats;
    const double load = s->peak_load > 0 ? (double)s->peak_load : NAN, held = (double)s->footprint;
    const double metadata = s->peak_load > 0 ? (double)s->metadata_bytes : NAN;
    bool missed = false;
    note_outcome(f, input, o);
    missed |= *figure_judge(f, "identical", input, is_identical(plain, o), "bool", EQUAL, 1);
    missed |= *figure_judge(f, "on_plan", input, s->state == NEAP_STATE_RUN, "bool", EQUAL, 1);
    missed |= *figure_judge(f, "served", input, (double)s->n_iterations, "iterations", AT_LEAST, 3);
    missed |= *figure_judge(f, "departures", input, (double)s->n_departures, "count", EQUAL, 0);
    missed |= *figure_judge(f, "metadata", input, metadata, "bytes per event", BELOW, 256);
    missed |= limit_share > 0 ? judge_limit(f, input, o, limit_share * load)
                              : *figure_judge(f, "ratio", input, held / load, "ratio", AT_MOST, 1.01) != '\0';
    (void)printf("  %-24s %8.1f %8.1f %8.1f %7.4f %-6s %6" PRIu64 " %6" PRIu64 " %6.0f %8.1f %8.1f   %s%s\n", input,
                 load * 1e-6, (double)s->limit * 1e-6, held * 1e-6, held / (limit_share > 0 ? (double)s->limit : load),
                 is_identical(plain, o) ? "same" : "OTHER", s->n_iterations, s->n_departures, metadata,
                 o->step_ns * 1e-6, s->plan_overhead * 100, o->was_raised ? "limit raised " : "",
                 missed ? "MISSED" : "");
    (void)fflush(stdout);
}

static void train_net(figures *f, const char *name, size_t batch)
{
    static const double limits[] = {0, 1, 0.8, 0.6, 0.5};
    outcome plain = train(name, batch, (neap_device_options){.mode = NEAP_MODE_PLAIN});
    if (!plain.ok) {
        (void)fprintf(stderr, "bench_nets: %s: plain training failed\n", name);
        f->failed = true;
        return;
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char input[64];
        outcome o = train(name, batch, (neap_device_options){.limit_share = limits[i]});
        if (limits[i] > 0) {
            (void)snprintf(input, sizeof input, "%s batch %zu %.0f %%", name, batch, limits[i] * 100);
        } else {
            (void)snprintf(input, sizeof input, "%s batch %zu", name, batch);
        }
        f->failed |= !o.ok;
        judge_outcome(f, input, &plain, &o, limits[i]);
    }
}

/* So that all takes a few minutes. */
static size_t batch_of(const char *name)
{
    bool is_shallow = strncmp(name, "vgg", 3) == 0 || strcmp(name, "resnet18") == 0;
    return is_shallow ? 4 : 2;
}

int main(int argc, char **argv)
{
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    (void)printf("  %-22s %9s %9s   at most 1.02\n", "a step, nothing limited", "plain ms", "planned");
    measure_step_time(&f, "vgg11", f.is_quick ? 2 : 16);
    if (!f.is_quick) {
        measure_step_time(&f, "vgg16", 16);
        measure_step_time(&f, "resnet18", 16);
    }
    (void)printf("\n  %-24s %8s %8s %8s %7s %-6s %6s %6s %6s %8s %8s\n", "training", "load MB", "limit", "held",
                 "ratio", "bits", "served", "left", "B/ev", "ms", "forec. %");
    for (size_t i = 0; nets_name(i) && i < (f.is_quick ? 1 : SIZE_MAX); i++) {
        train_net(&f, nets_name(i), f.is_quick ? 1 : batch_of(nets_name(i)));
    }
    return figures_close(&f);
}
