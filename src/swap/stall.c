#include "swap/stall.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "swap/bound.h"

enum { MAX_STALLS_PUT = 2000, PARTS = 300 };

typedef struct stalling {
    const np_timeline *original;
    const np_link *link;
    np_stall_options options;
    np_timeline stretched; /* shares what does not depend on times with the original */
    double *stalls;        /* [exec]: before it */
    double *best_stalls;
    int32_t *release_execs; /* [gap] */
    np_simulator *simulator;
    np_swap_array trial;
    np_swap_array best;
    np_simulation best_simulation;
    bool has_best;
    double noise;
    uint64_t n_fills;
} stalling;

/* ---- stretching the line of times ---- */

static neap_status stretched_init(stalling *s)
{
    const np_timeline *from = s->original;
    const neap_memory *memory = from->memory;
    size_t n_execs = from->n_execs;
    size_t n_gaps = from->gaps.n;
    s->stretched = *from;
    memset(&s->stretched.start_ns, 0, sizeof s->stretched.start_ns);
    memset(&s->stretched.end_ns, 0, sizeof s->stretched.end_ns);
    memset(&s->stretched.gaps, 0, sizeof s->stretched.gaps);
    if (np_array_reserve(memory, &s->stretched.start_ns, n_execs) != NEAP_OK ||
        np_array_reserve(memory, &s->stretched.end_ns, n_execs) != NEAP_OK ||
        np_array_reserve(memory, &s->stretched.gaps, n_gaps) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    s->stretched.start_ns.n = s->stretched.end_ns.n = n_execs;
    s->stretched.gaps.n = n_gaps;
    for (size_t g = 0; g < n_gaps; g++) {
        const np_gap *gap = &from->gaps.items[g];
        s->stretched.gaps.items[g] = *gap;
        s->release_execs[g] = gap->release_ns > -INFINITY ? np_timeline_release_exec(from, gap) : INT32_MIN;
    }
    return NEAP_OK;
}

static void stretch(stalling *s)
{
    np_timeline *to = &s->stretched;
    double shift = 0;
    uint32_t n = to->n_execs;
    for (uint32_t k = 0; k < n; k++) {
        shift += s->stalls[k];
        to->start_ns.items[k] = s->original->start_ns.items[k] + shift;
        to->end_ns.items[k] = s->original->end_ns.items[k] + shift;
    }
    to->period_ns = s->original->period_ns + shift;
    for (size_t g = 0; g < to->gaps.n; g++) {
        np_gap *gap = &to->gaps.items[g];
        int32_t release = s->release_execs[g];
        gap->due_ns = np_timeline_start(to, gap->to);
        if (release != INT32_MIN) {
            gap->release_ns = release >= 0 ? np_timeline_end(to, (uint32_t)release)
                                           : np_timeline_end(to, (uint32_t)(release + (int32_t)n)) - to->period_ns;
        }
    }
}

/* A time of the stretched line on the original one: stalls have no length there. */
static double unstretch(const stalling *s, double time_ns)
{
    const np_timeline *to = &s->stretched;
    double laps = floor(time_ns / to->period_ns);
    double rest = time_ns - laps * to->period_ns;
    uint32_t low = 0;
    uint32_t high = to->n_execs;
    double at;
    while (low < high) { /* execs that have started by then */
        uint32_t middle = low + (high - low) / 2;
        if (to->start_ns.items[middle] <= rest) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    at = rest;
    if (low > 0) {
        at = s->original->start_ns.items[low - 1] + (rest - to->start_ns.items[low - 1]);
    }
    if (low < to->n_execs) {
        at = fmin(at, s->original->start_ns.items[low]);
    } else {
        at = fmin(at, s->original->period_ns);
    }
    return at + laps * s->original->period_ns;
}

/* ---- filling under stalls ---- */

static neap_status fill_stretched(stalling *s, np_fill_result *result)
{
    uint64_t peak = 0;
    np_fill_options options = {.target = s->options.limit,
                               .min_block = s->options.min_block,
                               .page = s->options.page,
                               .noise = s->noise,
                               .seed = s->options.seed,
                               .extra = s->options.extra,
                               .deadline_ns = s->options.deadline_ns,
                               .is_stopping = s->options.is_stopping,
                               .factors = s->options.factors};
    for (uint32_t k = 0; k < s->original->n_execs; k++) {
        peak = s->original->needed.items[k] > peak ? s->original->needed.items[k] : peak;
    }
    options.part = peak > s->options.limit ? (peak - s->options.limit) / PARTS : 0;
    options.part = options.part > s->options.page ? options.part : s->options.page;
    options.part = options.part > s->options.least_part ? options.part : s->options.least_part;
    s->n_fills++;
    stretch(s);
    return np_fill(&s->stretched, s->link, &options, &s->trial, result);
}

/* Simulates the trial on the true line and keeps it if it is the best. */
static neap_status judge(stalling *s)
{
    np_simulation simulation;
    neap_status status;
    for (size_t i = 0; i < s->trial.n; i++) {
        s->trial.items[i].out_key = unstretch(s, s->trial.items[i].out_key);
        s->trial.items[i].in_key = unstretch(s, s->trial.items[i].in_key);
    }
    status = np_simulate(s->simulator, s->options.limit, s->trial.items, (uint32_t)s->trial.n, &simulation);
    if (status == NEAP_OK && simulation.possible &&
        (!s->has_best || simulation.overhead < s->best_simulation.overhead)) {
        np_swap_array swapped = s->best;
        s->best = s->trial;
        s->trial = swapped;
        s->best_simulation = simulation;
        s->has_best = true;
        memcpy(s->best_stalls, s->stalls, s->original->n_execs * sizeof *s->stalls);
    }
    return status;
}

static bool is_late(const stalling *s)
{
    return np_clock_ns() > s->options.deadline_ns || (s->options.is_stopping && atomic_load(s->options.is_stopping));
}

/* Puts stalls until the limit is held. *held false: out of time, or nothing helps. */
static neap_status put_stalls(stalling *s, bool *held)
{
    uint32_t n = s->original->n_execs;
    double speed = fmin(s->link->out, s->link->in);
    neap_status status = NEAP_OK;
    *held = false;
    for (uint32_t i = 0; i < MAX_STALLS_PUT && status == NEAP_OK && !(i > 0 && is_late(s)); i++) {
        np_fill_result result;
        double missing;
        status = fill_stretched(s, &result);
        if (status != NEAP_OK || result.peak <= s->options.limit) {
            *held = status == NEAP_OK;
            break;
        }
        if (result.blocked_out == 0 && result.blocked_in == 0) {
            break; /* nothing there could leave however long we wait */
        }
        missing = (double)(result.peak - s->options.limit) / speed;
        missing = fmax(missing, (double)s->options.page / speed);
        s->stalls[result.blocked_out >= result.blocked_in ? result.exec : (result.exec + 1) % n] += missing;
    }
    return status;
}

/* Shortens each stall as far as the limit stays held. */
static neap_status trim_stalls(stalling *s)
{
    static const double cuts[] = {1, 0.5, 0.25};
    neap_status status = NEAP_OK;
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts && status == NEAP_OK; c++) {
        for (uint32_t k = 0; k < s->original->n_execs && status == NEAP_OK && !is_late(s); k++) {
            double before = s->stalls[k];
            np_fill_result result;
            if (before == 0) {
                continue;
            }
            s->stalls[k] = before * (1 - cuts[c]);
            status = fill_stretched(s, &result);
            if (status == NEAP_OK && result.peak <= s->options.limit) {
                status = judge(s);
            } else {
                s->stalls[k] = before;
            }
        }
    }
    return status;
}

static neap_status search(stalling *s)
{
    uint32_t n_rounds = s->options.n_rounds ? s->options.n_rounds : 8;
    neap_status status = NEAP_OK;
    for (uint32_t round = 0; status == NEAP_OK && !(round > 0 && is_late(s)) && round < n_rounds; round++) {
        bool held;
        s->noise = round == 0 ? s->options.noise : 0.5;
        s->options.seed += round;
        for (uint32_t k = 0; k < s->original->n_execs; k++) {
            s->stalls[k] = round == 0 && s->options.stalls ? s->options.stalls[k] : 0;
        }
        status = put_stalls(s, &held);
        if (status != NEAP_OK || !held) {
            continue;
        }
        status = judge(s);
        if (status == NEAP_OK && s->has_best && s->best_simulation.overhead == 0) {
            break;
        }
        if (status == NEAP_OK && !s->options.rough) {
            status = trim_stalls(s);
        }
    }
    return status;
}

static void stalling_free(stalling *s)
{
    const neap_memory *memory = s->original->memory;
    np_array_free(memory, &s->stretched.start_ns);
    np_array_free(memory, &s->stretched.end_ns);
    np_array_free(memory, &s->stretched.gaps);
    np_memory_free(memory, s->stalls, s->original->n_execs, sizeof *s->stalls);
    np_memory_free(memory, s->best_stalls, s->original->n_execs, sizeof *s->best_stalls);
    np_memory_free(memory, s->release_execs, s->original->gaps.n, sizeof *s->release_execs);
    np_array_free(memory, &s->trial);
    np_array_free(memory, &s->best);
    np_simulator_free(s->simulator);
}

neap_status np_stall_search(const np_timeline *timeline, const np_link *link, const np_stall_options *options,
                            np_swap_array *swaps, np_simulation *simulation, bool *found)
{
    const neap_memory *memory = timeline->memory;
    stalling s = {.original = timeline, .link = link, .options = *options};
    neap_status status;
    s.stalls = np_memory_alloc_zero(memory, timeline->n_execs, sizeof *s.stalls);
    s.best_stalls = np_memory_alloc_zero(memory, timeline->n_execs, sizeof *s.best_stalls);
    s.release_execs = np_memory_alloc(memory, timeline->gaps.n, sizeof *s.release_execs);
    status = s.stalls && s.best_stalls && s.release_execs ? stretched_init(&s) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_simulator_create(timeline, link, &s.simulator);
    }
    if (status == NEAP_OK) {
        status = search(&s);
    }
    if (status == NEAP_OK) {
        *found = s.has_best;
        if (s.has_best) {
            np_swap_array old = *swaps;
            *swaps = s.best;
            s.best = old;
            *simulation = s.best_simulation;
            if (options->stalls) {
                memcpy(options->stalls, s.best_stalls, timeline->n_execs * sizeof *s.best_stalls);
            }
        }
    }
    stalling_free(&s);
    return status;
}
