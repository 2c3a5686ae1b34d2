/* bench_device.c: what neap costs a program that runs on its plan.
 *
 *     bench_device [--csv PATH]
 *
 *     malloc and free   a pair of them, beside CnMem's algorithm (pool/cnmem.h) and the C library's malloc and free
 *     exec              neap_exec beside giving the same tasks to the device directly
 *
 * All of one table are measured in turn, round by round, in one process, and the medians are compared. A round is about a
 * thousand calls between two looks at the clock.
 *
 * All allocators are safe to call from several threads. neap locks; CnMem locks once in each call, and so does what stands
 * for it here (what it would take without is noted: "bare"); the C library does what it does where a program has several
 * threads, as every program with a device has. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/device.h"
#include "device_figures.h"
#include "device_settle.h"
#include "neap.h"
#include "pool/cnmem.h"

enum { ROUNDS_MAX = 2001 };

static void *allocate(size_t n, size_t bytes)
{
    void *made = calloc(n, bytes);
    if (!made) {
        (void)fputs("bench_device: no memory\n", stderr);
        exit(2);
    }
    return made;
}

static neap_device *open_or_leave(const char *name, const neap_device_options *options)
{
    neap_device *device;
    neap_error error = {""};
    if (neap_open(name, options, NULL, &error, &device) != NEAP_OK) {
        (void)fprintf(stderr, "bench_device: %s: %s\n", name, error.text);
        exit(2);
    }
    return device;
}

/* ---------------------------------------------------------------- malloc and free ---- */

typedef enum free_order { LAST_FIRST, FIRST_FIRST, SHUFFLED } free_order;

/* Sizes up to some KiB are the C library's home ground; those up to some MiB are what networks have. */
static const struct pair_case {
    const char *name;
    size_t n_live;   /* blocks malloc'd, then all freed: one group */
    size_t n_groups; /* of an iteration, each with other sizes */
    free_order order;
    unsigned max_doublings; /* of 512 bytes: sizes have their logarithms spread evenly */
    size_t n_iterations;    /* of a round */
    size_t n_rounds;
} pair_cases[] = {
    {"1 live; one pair an iteration; to 4 KiB", 1, 1, LAST_FIRST, 3, 1000, 2001},
    {"1 live; 1000 pairs an iteration; to 4 KiB", 1, 1000, LAST_FIRST, 3, 1, 2001},
    {"1 live; 1000 pairs an iteration; to 4 MiB", 1, 1000, LAST_FIRST, 13, 1, 301},
    {"100 live; last freed first; to 4 KiB", 100, 1, LAST_FIRST, 3, 10, 2001},
    {"100 live; first freed first; to 4 KiB", 100, 1, FIRST_FIRST, 3, 10, 2001},
    {"100 live; freed in any order; to 4 KiB", 100, 1, SHUFFLED, 3, 10, 2001},
    {"100 live; last freed first; to 4 MiB", 100, 1, LAST_FIRST, 13, 10, 301},
    {"10000 live; last freed first; to 4 KiB", 10000, 1, LAST_FIRST, 3, 1, 301},
    {"10000 live; first freed first; to 4 KiB", 10000, 1, FIRST_FIRST, 3, 1, 301},
    {"10000 live; freed in any order; to 4 KiB", 10000, 1, SHUFFLED, 3, 1, 301},
};

/* What an iteration does, and room for each allocator's blocks. */
typedef struct pairs {
    size_t n_live;
    size_t n_groups;
    uint32_t *bytes;  /* by block, group after group */
    uint32_t *order;  /* in which a group's blocks are freed */
    neap_device *device;
    neap_block **blocks;
    np_cnmem cnmem;
    pthread_mutex_t cnmem_lock;
    uint32_t *taken;
    void **pointers;
    bool failed;
} pairs;

static void run_neap(pairs *p)
{
    bool failed = false;
    for (size_t g = 0; g < p->n_groups; g++) {
        const uint32_t *bytes = p->bytes + g * p->n_live;
        for (size_t i = 0; i < p->n_live; i++) {
            failed |= neap_malloc(p->device, bytes[i], &p->blocks[i]) != NEAP_OK;
        }
        for (size_t i = 0; i < p->n_live; i++) {
            failed |= neap_free(p->device, p->blocks[p->order[i]]) != NEAP_OK;
        }
    }
    p->failed |= failed;
}

static void run_cnmem(pairs *p)
{
    bool failed = false;
    for (size_t g = 0; g < p->n_groups; g++) {
        const uint32_t *bytes = p->bytes + g * p->n_live;
        for (size_t i = 0; i < p->n_live; i++) {
            (void)pthread_mutex_lock(&p->cnmem_lock);
            failed |= np_cnmem_take(&p->cnmem, bytes[i], &p->taken[i]) != NEAP_OK;
            (void)pthread_mutex_unlock(&p->cnmem_lock);
        }
        for (size_t i = 0; i < p->n_live; i++) {
            (void)pthread_mutex_lock(&p->cnmem_lock);
            np_cnmem_give(&p->cnmem, p->taken[p->order[i]]);
            (void)pthread_mutex_unlock(&p->cnmem_lock);
        }
    }
    p->failed |= failed;
}

static void run_bare(pairs *p)
{
    bool failed = false;
    for (size_t g = 0; g < p->n_groups; g++) {
        const uint32_t *bytes = p->bytes + g * p->n_live;
        for (size_t i = 0; i < p->n_live; i++) {
            failed |= np_cnmem_take(&p->cnmem, bytes[i], &p->taken[i]) != NEAP_OK;
        }
        for (size_t i = 0; i < p->n_live; i++) {
            np_cnmem_give(&p->cnmem, p->taken[p->order[i]]);
        }
    }
    p->failed |= failed;
}

static void run_libc(pairs *p)
{
    bool failed = false;
    for (size_t g = 0; g < p->n_groups; g++) {
        const uint32_t *bytes = p->bytes + g * p->n_live;
        for (size_t i = 0; i < p->n_live; i++) {
            p->pointers[i] = malloc(bytes[i]);
            failed |= !p->pointers[i];
        }
        for (size_t i = 0; i < p->n_live; i++) {
            free(p->pointers[p->order[i]]);
        }
    }
    p->failed |= failed;
}

static bool iterate_pairs(void *user)
{
    pairs *p = user;
    run_neap(p);
    return !p->failed;
}

static pairs pairs_make(const struct pair_case *c)
{
    const size_t n = c->n_live * c->n_groups;
    np_rng rng = np_rng_make(1);
    pairs p = {.n_live = c->n_live,
               .n_groups = c->n_groups,
               .bytes = allocate(n, sizeof *p.bytes),
               .order = allocate(c->n_live, sizeof *p.order),
               .blocks = allocate(c->n_live, sizeof(neap_block *)),
               .taken = allocate(c->n_live, sizeof *p.taken),
               .pointers = allocate(c->n_live, sizeof(void *))};
    for (size_t i = 0; i < n; i++) {
        p.bytes[i] = (uint32_t)(512 * exp2(c->max_doublings * (double)np_rng_below(&rng, 1 << 20) * 0x1p-20));
    }
    for (size_t i = 0; i < c->n_live; i++) {
        p.order[i] = (uint32_t)(c->order == LAST_FIRST ? c->n_live - 1 - i : i);
    }
    for (size_t i = c->order == SHUFFLED ? c->n_live : 0; i > 1; i--) {
        size_t k = (size_t)np_rng_below(&rng, i);
        uint32_t other = p.order[k];
        p.order[k] = p.order[i - 1];
        p.order[i - 1] = other;
    }
    p.device = open_or_leave("cpu", NULL);
    (void)pthread_mutex_init(&p.cnmem_lock, NULL);
    np_cnmem_init(&p.cnmem, np_memory_or_default(NULL));
    return p;
}

static void pairs_free(pairs *p)
{
    neap_close(p->device);
    np_cnmem_free(&p->cnmem);
    (void)pthread_mutex_destroy(&p->cnmem_lock);
    free(p->bytes);
    free(p->order);
    free(p->blocks);
    free(p->taken);
    free(p->pointers);
}

/* ns a pair */
static double time_pairs(pairs *p, void (*run)(pairs *p), size_t n_iterations)
{
    uint64_t begin_ns = np_clock_ns();
    for (size_t i = 0; i < n_iterations; i++) {
        run(p);
    }
    return (double)(np_clock_ns() - begin_ns) / (double)(n_iterations * p->n_live * p->n_groups);
}

enum { NEAP, CNMEM, BARE, LIBC, N_ALLOCATORS };

static void judge_pairs(figures *f, const char *name, const double ns[N_ALLOCATORS])
{
    const char *fast = figure_judge(f, "pair_neap", name, ns[NEAP], "ns", BELOW, 60);
    figure_note(f, "pair_cnmem", name, ns[CNMEM], "ns");
    figure_note(f, "pair_cnmem_bare", name, ns[BARE], "ns");
    figure_note(f, "pair_libc", name, ns[LIBC], "ns");
    const char *to_cnmem = figure_judge(f, "pair_neap_by_cnmem", name, ns[NEAP] / ns[CNMEM], "ratio", BELOW, 1);
    const char *to_libc = figure_judge(f, "pair_neap_by_libc", name, ns[NEAP] / ns[LIBC], "ratio", BELOW, 1);
    (void)printf("  %-42s %8.1f %8.1f %8.1f %8.1f   %s%s%s\n", name, ns[NEAP], ns[CNMEM], ns[BARE], ns[LIBC],
                 *fast ? "60 ns MISSED " : "", *to_cnmem ? "SLOWER THAN CNMEM " : "",
                 *to_libc ? "SLOWER THAN LIBC" : "");
    (void)fflush(stdout);
}

/* Medians, by allocator; false: the plan was left. */
static bool time_rounds(pairs *p, size_t n_iterations, size_t n_rounds, double ns[N_ALLOCATORS])
{
    static double times[N_ALLOCATORS][ROUNDS_MAX];
    static void (*const runs[N_ALLOCATORS])(pairs *p) = {run_neap, run_cnmem, run_bare, run_libc};
    neap_stats before, after;
    neap_get_stats(p->device, &before);
    for (size_t r = 0; r < n_rounds; r++) {
        for (size_t k = 0; k < N_ALLOCATORS; k++) { /* none is always the first */
            size_t who = (r + k) % N_ALLOCATORS;
            times[who][r] = time_pairs(p, runs[who], n_iterations);
        }
    }
    neap_get_stats(p->device, &after);
    for (size_t k = 0; k < N_ALLOCATORS; k++) {
        ns[k] = median_of(times[k], n_rounds).value;
    }
    return !p->failed && after.n_departures == before.n_departures && after.state == NEAP_STATE_RUN;
}

static void measure_pairs(figures *f, const struct pair_case *c)
{
    double ns[N_ALLOCATORS] = {NAN, NAN, NAN, NAN};
    pairs p = pairs_make(c);
    if (!settle(p.device, iterate_pairs, &p, 20) ||
        !time_rounds(&p, c->n_iterations, f->is_quick ? 21 : c->n_rounds, ns)) {
        (void)fprintf(stderr, "bench_device: %s: not on the plan\n", c->name);
        f->failed = true;
    }
    judge_pairs(f, c->name, ns);
    pairs_free(&p);
}

/* ---------------------------------------------------------------- exec ---- */

/* A chain of layers forward and backward on blocks that stay: 1 to 5 of them in each exec, the first written.
 *
 * The device's thread would be done with empty work sooner than it is given, sleep, and have to be woken: the waking would
 * be measured. So the first exec of every iteration has to pass a gate, which is shut while work is given. What is
 * measured is the giving alone. */
enum {
    N_BLOCKS = 64,
    BLOCK_BYTES = 32 << 10,
    N_EXECS = 256,      /* of an iteration */
    N_ITERATIONS = 4,   /* of a round: fewer than the host may be ahead of the device */
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

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static const unsigned char argument[ARG_BYTES];

static void pass_gate(void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&gate);
    (void)pthread_mutex_unlock(&gate);
}

static neap_work work_of(size_t exec)
{
    static const char *const names[] = {"layer.a", "layer.b", "layer.c", "layer.d", "layer.e", "layer.f", "layer.g"};
    return (neap_work){.name = exec == 0 ? "gate" : names[exec % 7],
                       .run = exec == 0 ? pass_gate : NULL,
                       .arg = argument,
                       .arg_bytes = ARG_BYTES};
}

static bool iterate_execs(void *user)
{
    exec_program *p = user;
    bool failed = false;
    for (size_t i = 0; i < N_EXECS; i++) {
        failed |= neap_exec(p->device, &p->works[i], p->uses[i], p->n_uses[i]) != NEAP_OK;
    }
    return !failed;
}

static bool iterate_and_sync(void *user)
{
    return iterate_execs(user) && neap_sync(((exec_program *)user)->device) == NEAP_OK;
}

static exec_program *execs_make(double limit_share)
{
    /* Small pages and blocks: copies cost the device little, and neap as much as any. */
    const neap_device_options options = {.limit_share = limit_share, .min_block = 4096, .refinements = UINT32_MAX};
    exec_program *p = allocate(1, sizeof *p);
    p->device = open_or_leave("cpu:page=4KiB", &options);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        if (neap_malloc(p->device, BLOCK_BYTES, &p->blocks[i]) != NEAP_OK) {
            (void)fprintf(stderr, "bench_device: %s\n", neap_device_error());
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

/* ns an exec, of giving it; all is done when this returns. */
static double time_execs(exec_program *p, bool *failed)
{
    (void)pthread_mutex_lock(&gate);
    uint64_t begin_ns = np_clock_ns();
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        *failed |= !iterate_execs(p);
    }
    uint64_t ns = np_clock_ns() - begin_ns;
    (void)pthread_mutex_unlock(&gate);
    *failed |= neap_sync(p->device) != NEAP_OK;
    return (double)ns / (N_ITERATIONS * N_EXECS);
}

static double time_tasks(np_device *device, const np_task *tasks, bool *failed)
{
    uint64_t mark = 0;
    (void)pthread_mutex_lock(&gate);
    uint64_t begin_ns = np_clock_ns();
    for (size_t i = 0; i < N_ITERATIONS; i++) {
        for (size_t k = 0; k < N_EXECS; k++) {
            *failed |= device->api->launch(device, 0, &tasks[k], &mark) != NEAP_OK;
        }
    }
    uint64_t ns = np_clock_ns() - begin_ns;
    (void)pthread_mutex_unlock(&gate);
    *failed |= device->api->sync(device, 0, mark) != NEAP_OK;
    return (double)ns / (N_ITERATIONS * N_EXECS);
}

static void judge_execs(figures *f, const char *name, const exec_program *p, double *all, double *net, size_t n)
{
    neap_stats stats;
    const np_program *plan = &p->device->pattern->program;
    double ns = median_of(net, n).value;
    neap_get_stats(p->device, &stats);
    if (stats.n_departures > 0 || stats.state != NEAP_STATE_RUN) {
        (void)fprintf(stderr, "bench_device: %s: the plan was left\n", name);
        f->failed = true;
    }
    const char *met = figure_judge(f, "exec_net", name, ns * 1e-3, "us", BELOW, 0.5);
    figure_note(f, "exec_whole", name, median_of(all, n).value * 1e-3, "us");
    figure_note(f, "exec_swaps", name, (double)plan->swaps.n / N_EXECS, "per exec");
    figure_note(f, "exec_operations", name, (double)plan->ops.n / N_EXECS, "per exec");
    (void)figure_judge(f, "metadata", name, (double)stats.metadata_bytes, "bytes per event", BELOW, 256);
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
    } plans[N_PLANS] = {{"pool alone", 0}, {"limit 80 %", 0.8}, {"limit 60 %", 0.6}};
    static double all[N_PLANS][N_ROUNDS], net[N_PLANS][N_ROUNDS], direct[N_ROUNDS];
    const size_t n_rounds = f->is_quick ? 21 : N_ROUNDS;
    exec_program *programs[N_PLANS];
    np_task tasks[N_EXECS];
    np_device *device;
    neap_error error = {""};
    bool failed = false;
    if (np_device_open("cpu:page=4KiB", np_memory_or_default(NULL), &error, &device) != NEAP_OK) {
        (void)fprintf(stderr, "bench_device: %s\n", error.text);
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
        direct[r] = time_tasks(device, tasks, &failed);
        for (size_t k = 0; k < N_PLANS; k++) {
            all[k][r] = time_execs(programs[k], &failed);
            net[k][r] = all[k][r] - direct[r];
        }
    }
    for (size_t k = 0; k < N_PLANS && !failed; k++) {
        judge_execs(f, plans[k].name, programs[k], all[k], net[k], n_rounds);
    }
    if (!failed) {
        figure_note(f, "exec_direct", "the device alone", median_of(direct, n_rounds).value * 1e-3, "us");
        (void)printf("  %-42s %8s %8.1f\n", "the device alone", "", direct[n_rounds / 2]);
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
    (void)printf("  %-42s %8s %8s %8s %8s   below 60 ns, faster than CnMem and libc\n",
                 "ns a malloc and free on the plan", "neap", "CnMem", "bare", "libc");
    for (size_t i = 0; i < sizeof pair_cases / sizeof *pair_cases; i++) {
        measure_pairs(&f, &pair_cases[i]);
    }
    (void)printf("\n  %-42s %8s %8s %8s %8s   net of the device's own, below 500 ns\n", "ns an exec of 1 to 5 blocks",
                 "net", "whole", "swaps", "ops");
    measure_execs(&f);
    return figures_close(&f);
}
