/* bench_device.c: what a malloc and a free cost on the plan, beside CnMem's algorithm (pool/cnmem.h) and the C library's.
 *
 *     bench_device [--csv PATH]
 *
 * All are measured in turn, round by round, in one process, and the medians are compared. A round is a thousand pairs or
 * more between two looks at the clock.
 *
 * All are safe to call from several threads. neap locks; CnMem locks once in each call, and so does what stands for it
 * here (what it would take without is noted: "bare"); the C library does what it does where a program has several threads,
 * as every program with a device has. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device_figures.h"
#include "device_settle.h"
#include "neap.h"
#include "pool/cnmem.h"

enum { ROUNDS_MAX = 2001 };

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
    uint32_t *bytes; /* by block, group after group */
    uint32_t *order; /* in which a group's blocks are freed */
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
               .bytes = bench_allocate(n, sizeof *p.bytes),
               .order = bench_allocate(c->n_live, sizeof *p.order),
               .blocks = bench_allocate(c->n_live, sizeof(neap_block *)),
               .taken = bench_allocate(c->n_live, sizeof *p.taken),
               .pointers = bench_allocate(c->n_live, sizeof(void *))};
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
    p.device = bench_open("cpu", NULL);
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
    static void (*const runs[N_ALLOCATORS])(pairs * p) = {run_neap, run_cnmem, run_bare, run_libc};
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

int main(int argc, char **argv)
{
    const char *path = bench_csv_argument(&argc, &argv);
    figures f = figures_open(path);
    (void)printf("  %-42s %8s %8s %8s %8s   below 60 ns, faster than CnMem and libc\n", "ns a malloc and free", "neap",
                 "CnMem", "bare", "libc");
    for (size_t i = 0; i < sizeof pair_cases / sizeof *pair_cases; i++) {
        measure_pairs(&f, &pair_cases[i]);
    }
    return figures_close(&f);
}
