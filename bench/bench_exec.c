/* bench_exec.c: what an exec costs on the plan, beside giving the same tasks to the device directly.
 *
 *     bench_exec [--csv PATH]
 *
 * A program of layers forward and backward on blocks that stay: 1 to 5 of them in each exec, the first written. It runs on
 * three plans, without swaps and with many; they and the device alone are measured in turn, round by round, and the
 * medians are compared.
 *
 * The device's thread would be done with empty work sooner than it is given, sleep, and have to be woken: the waking would
 * be measured. So the first exec of every iteration has to pass a gate, which is shut while work is given; the clock starts
 * when the thread stands before it. What is measured is the giving alone. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "device/device.h"
#include "device_figures.h"
#include "device_settle.h"
#include "neap.h"

enum {
    N_BLOCKS = 64,
    BLOCK_BYTES = 32 << 10,
    N_EXECS = 256,    /* of an iteration */
    N_ITERATIONS = 4, /* of a round: fewer than the host may be ahead of the device */
    MAX_USES = 5,
    ARG_BYTES = 64,
};

typedef struct exec_program {
    neap_device *device;
    neap_block *blocks[N_BLOCKS];
    neap_work works[N_EXECS];
    neap_use uses[N_EXECS][MAX_USES];
    size_t n_uses[N_EXECS];
} exec_program;

/* ---------------------------------------------------------------- the gate ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_at_gate;

/* A piece of work. Who leaves the plan meanwhile waits for it: it must not be for ever. */
static void pass_gate(void *arg)
{
    struct timespec until;
    (void)arg;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    atomic_store(&is_at_gate, true);
    if (pthread_mutex_timedlock(&gate, &until) == 0) {
        (void)pthread_mutex_unlock(&gate);
    }
}

static void shut_gate(void)
{
    (void)pthread_mutex_lock(&gate);
    atomic_store(&is_at_gate, false);
}

static void await_at_gate(void)
{
    const struct timespec pause = {.tv_nsec = 20000};
    while (!atomic_load(&is_at_gate)) {
        (void)nanosleep(&pause, NULL);
    }
}

static void open_gate(void)
{
    (void)pthread_mutex_unlock(&gate);
}

/* ---------------------------------------------------------------- the program ---- */

static const unsigned char argument[ARG_BYTES];

static neap_work work_of(size_t exec)
{
    static const char *const names[] = {"layer.a", "layer.b", "layer.c", "layer.d", "layer.e", "layer.f", "layer.g"};
    return (neap_work){.name = exec == 0 ? "gate" : names[exec % 7],
                       .run = exec == 0 ? pass_gate : NULL,
                       .arg = argument,
                       .arg_bytes = ARG_BYTES};
}

/* Of one iteration, from `first` on. */
static bool give_execs(exec_program *p, size_t first)
{
    bool failed = false;
    for (size_t i = first; i < N_EXECS; i++) {
        failed |= neap_exec(p->device, &p->works[i], p->uses[i], p->n_uses[i]) != NEAP_OK;
    }
    return !failed;
}

static bool iterate_and_sync(void *user)
{
    exec_program *p = user;
    return give_execs(p, 0) && neap_sync(p->device) == NEAP_OK;
}

static exec_program *execs_make(double limit_share)
{
    /* Small pages and blocks: copies cost the device little, and neap as much as any. */
    const neap_device_options options = {.limit_share = limit_share, .min_block = 4096, .refinements = UINT32_MAX};
    exec_program *p = bench_allocate(1, sizeof *p);
    p->device = bench_open("cpu:page=4KiB", &options);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        if (neap_malloc(p->device, BLOCK_BYTES, &p->blocks[i]) != NEAP_OK) {
            (void)fprintf(stderr, "bench_exec: %s\n", neap_device_error());
            exit(2);
        }
    }
    for (size_t i = 0; i < N_EXECS; i++) {
        size_t layer = (i < N_EXECS / 2 ? i : N_EXECS - 1 - i) * N_BLOCKS / (N_EXECS / 2);
        p->works[i] = work_of(i);
        p->n_uses[i] = 1 + i % MAX_USES;
        for (size_t k = 0; k < p->n_uses[i]; k++) {
            p->uses[i][k] = (neap_use){.block = p->blocks[(layer + k) % N_BLOCKS],
                                       .kind = k == 0 ? NEAP_ACCESS_UNKNOWN : NEAP_ACCESS_READ};
        }
    }
    return p;
}

static void execs_free(exec_program *p)
{
    neap_close(p->device);
    free(p);
}

/* ---------------------------------------------------------------- rounds ---- */

enum { N_TIMED = N_ITERATIONS * N_EXECS - 1 }; /* all but the first */

/* ns an exec, of giving it; all is done when this returns. */
static double time_execs(exec_program *p, bool *failed)
{
    shut_gate();
    *failed |= neap_exec(p->device, &p->works[0], p->uses[0], p->n_uses[0]) != NEAP_OK;
    await_at_gate();
    uint64_t begin_ns = np_clock_ns();
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        *failed |= !give_execs(p, i == 0);
    }
    uint64_t ns = np_clock_ns() - begin_ns;
    open_gate();
    *failed |= neap_sync(p->device) != NEAP_OK;
    return (double)ns / N_TIMED;
}

static double time_tasks(np_device *device, const np_task *tasks, bool *failed)
{
    uint64_t mark = 0;
    shut_gate();
    *failed |= device->api->launch(device, 0, &tasks[0], &mark) != NEAP_OK;
    await_at_gate();
    uint64_t begin_ns = np_clock_ns();
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        for (size_t k = i == 0; k < N_EXECS; k++) {
            *failed |= device->api->launch(device, 0, &tasks[k], &mark) != NEAP_OK;
        }
    }
    uint64_t ns = np_clock_ns() - begin_ns;
    open_gate();
    *failed |= device->api->sync(device, 0, mark) != NEAP_OK;
    return (double)ns / N_TIMED;
}

/* ---------------------------------------------------------------- figures ---- */

static void judge_execs(figures *f, const char *name, const exec_program *p, double *all, double *net, size_t n)
{
    neap_stats stats;
    const np_program *plan = &p->device->pattern->program;
    double ns = median_of(net, n).value;
    neap_get_stats(p->device, &stats);
    if (stats.n_departures > 0 || stats.state != NEAP_STATE_RUN) {
        (void)fprintf(stderr, "bench_exec: %s: the plan was left\n", name);
        f->failed = true;
    }
    const char *met = figure_judge(f, "exec_net", name, ns * 1e-3, "us", BELOW, 0.5);
    figure_note(f, "exec_whole", name, median_of(all, n).value * 1e-3, "us");
    figure_note(f, "exec_swaps", name, (double)plan->swaps.n / N_EXECS, "per exec");
    figure_note(f, "exec_operations", name, (double)plan->ops.n / N_EXECS, "per exec");
    figure_note(f, "metadata", name, (double)stats.metadata_bytes, "bytes per event"); /* asked of networks */
    (void)printf("  %-42s %8.1f %8.1f %8.2f %8.2f   %s\n", name, ns, all[n / 2], (double)plan->swaps.n / N_EXECS,
                 (double)plan->ops.n / N_EXECS, met);
    (void)fflush(stdout);
}

static void measure_execs(figures *f)
{
    enum { N_PLANS = 3, N_ROUNDS = 401 };
    static const struct {
        const char *name;
        double limit_share;
    } plans[N_PLANS] = {{"execs; pool alone", 0}, {"execs; limit 80 %", 0.8}, {"execs; limit 60 %", 0.6}};
    static double all[N_PLANS + 1][N_ROUNDS], net[N_PLANS][N_ROUNDS]; /* the last of all: the device alone */
    const size_t n_rounds = f->is_quick ? 21 : N_ROUNDS;
    exec_program *programs[N_PLANS];
    np_task tasks[N_EXECS];
    np_device *device;
    neap_error error = {""};
    bool failed = false;
    if (np_device_open("cpu:page=4KiB", np_memory_or_default(NULL), &error, &device) != NEAP_OK) {
        (void)fprintf(stderr, "bench_exec: %s\n", error.text);
        exit(2);
    }
    for (size_t i = 0; i < N_EXECS; i++) {
        neap_work work = work_of(i);
        tasks[i] = (np_task){.run = work.run, .arg = work.arg, .arg_bytes = work.arg_bytes};
    }
    for (size_t k = 0; k < N_PLANS; k++) {
        programs[k] = execs_make(plans[k].limit_share);
        failed |= !settle(programs[k]->device, iterate_and_sync, programs[k], 20);
    }
    for (size_t r = 0; r < n_rounds && !failed; r++) {
        for (size_t i = 0; i <= N_PLANS; i++) { /* none is always the first */
            size_t k = (r + i) % (N_PLANS + 1);
            all[k][r] = k == N_PLANS ? time_tasks(device, tasks, &failed) : time_execs(programs[k], &failed);
        }
        for (size_t k = 0; k < N_PLANS; k++) {
            net[k][r] = all[k][r] - all[N_PLANS][r];
        }
    }
    for (size_t k = 0; k < N_PLANS && !failed; k++) {
        judge_execs(f, plans[k].name, programs[k], all[k], net[k], n_rounds);
    }
    if (!failed) {
        double alone = median_of(all[N_PLANS], n_rounds).value;
        figure_note(f, "exec_direct", "the device alone", alone * 1e-3, "us");
        (void)printf("  %-42s %8s %8.1f\n", "the device alone", "", alone);
    }
    f->failed |= failed;
    for (size_t k = 0; k < N_PLANS; k++) {
        execs_free(programs[k]);
    }
    device->api->free(device);
}

int main(int argc, char **argv)
{
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    (void)printf("  %-42s %8s %8s %8s %8s   net of the device's own, below 500 ns\n", "ns an exec of 1 to 5 blocks",
                 "net", "whole", "swaps", "ops");
    measure_execs(&f);
    return figures_close(&f);
}
