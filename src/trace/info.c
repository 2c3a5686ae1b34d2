/* info.c: what a person wants to know of a trace: how it repeats, and how much memory that needs. */
#include <string.h>

#include "base/checked.h"
#include "base/real.h"
#include "base/status.h"
#include "trace/period.h"

/* neap_info and what it owns. */
typedef struct report {
    neap_info info; /* first, so that a pointer to it is one to the report */
    const neap_memory *memory;
    np_array(neap_variant) variants;
} report;

/* Bytes alive at each time of a circle. Sums are modulo 2^64 on the way and true in the end, since no load exceeds it. */
typedef struct curve {
    uint64_t *change; /* [time]: how much more than at the time before */
    uint32_t length;
    uint64_t level; /* alive at all times */
} curve;

/* Alive in [begin, end), which may go on over the circle's end, and round it more than once. */
static void add_interval(curve *c, uint32_t begin, uint32_t end, uint64_t bytes)
{
    uint32_t rounds = (end - begin) / c->length, from = begin % c->length, to = end % c->length;
    c->level += rounds * bytes;
    if (from == to) {
        return;
    }
    c->change[from] += bytes;
    c->change[to] -= bytes;
    if (to < from) {
        c->level += bytes;
    }
}

static uint64_t find_peak(const curve *c)
{
    uint64_t load = c->level, peak = load;
    for (uint32_t t = 0; t < c->length; t++) {
        load += c->change[t];
        peak = t == 0 || load > peak ? load : peak;
    }
    return peak;
}

/* The life of a block when one pass over the trace is all there is: from malloc to free. */
static np_life life_in_trace(const neap_trace *trace, uint32_t block)
{
    const neap_trace_block *b = &trace->blocks.items[block];
    np_life life = {block, b->malloc_event, b->free_event, false, NEAP_NEVER, NEAP_NEVER};
    life.persistent = b->malloc_event == NEAP_NEVER && b->free_event == NEAP_NEVER;
    life.begin = b->malloc_event == NEAP_NEVER ? 0 : b->malloc_event;
    life.end = b->free_event == NEAP_NEVER ? (uint32_t)trace->events.n : b->free_event;
    return life;
}

/* A period that is not one: the whole trace, every access taken for certain. Enough for its loads. */
static neap_status whole_trace(const neap_trace *trace, np_period *period)
{
    period->length = (uint32_t)trace->events.n;
    for (uint32_t i = 0; i < trace->blocks.n; i++) {
        if (np_array_push(period->memory, &period->lives, life_in_trace(trace, i)) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
    }
    for (uint32_t t = 0; t < trace->events.n; t++) {
        const neap_event *event = &trace->events.items[t];
        for (uint32_t k = 0; event->kind == NEAP_EVENT_EXEC && k < event->n_accesses; k++) {
            np_life *life = &period->lives.items[trace->accesses.items[event->first_access + k].block];
            life->first_use = life->first_use == NEAP_NEVER ? t : life->first_use;
            life->last_use = t;
        }
    }
    return NEAP_OK;
}

/* No sum of rounded sizes that are alive at once may pass 2^64. */
static bool loads_fit(const np_period *period, uint64_t alignment)
{
    uint64_t most = NP_TRACE_BYTES_MAX, rounding, n_alive;
    uint64_t laps = 1;
    for (size_t i = 0; i < period->lives.n; i++) {
        uint64_t n = (period->lives.items[i].end - period->lives.items[i].begin) / period->length + 1;
        laps = n > laps ? n : laps;
    }
    return np_mul_u64(period->lives.n, laps, &n_alive) && np_mul_u64(n_alive, alignment - 1, &rounding) &&
           np_add_u64(rounding, most, &most);
}

static neap_status fill_loads(const np_period *period, neap_info *info, bool has_accesses)
{
    const neap_trace *trace = period->trace;
    curve all = {.length = period->length}, needed = {.length = period->length};
    neap_status status = NEAP_NO_MEMORY;
    if (period->length == 0) { /* an empty trace */
        return NEAP_OK;
    }
    if (!loads_fit(period, info->alignment)) {
        return NEAP_TOO_LARGE;
    }
    all.change = np_memory_alloc_zero(period->memory, period->length, sizeof *all.change);
    needed.change = np_memory_alloc_zero(period->memory, period->length, sizeof *needed.change);
    if (all.change && needed.change) {
        for (size_t i = 0; i < period->lives.n; i++) {
            const np_life *life = &period->lives.items[i];
            uint64_t bytes = 0;
            if (!np_round_up(trace->blocks.items[life->block].bytes, info->alignment, &bytes)) {
                bytes = 0; /* cannot be: loads_fit */
            }
            add_interval(&all, life->begin, life->end, bytes);
            if (life->first_use != NEAP_NEVER && life->persistent) {
                add_interval(&needed, 0, period->length, bytes);
            } else if (life->first_use != NEAP_NEVER) {
                add_interval(&needed, life->first_use, life->last_use + 1, bytes);
            }
        }
        info->peak_load = find_peak(&all);
        info->needed_load = has_accesses ? find_peak(&needed) : info->peak_load;
        status = NEAP_OK;
    }
    np_memory_free(period->memory, all.change, period->length, sizeof *all.change);
    np_memory_free(period->memory, needed.change, period->length, sizeof *needed.change);
    return status;
}

static void fill_counts(const neap_trace *trace, neap_info *info)
{
    const char *step_ms = neap_trace_meta(trace, "step_ms");
    info->n_events = trace->events.n;
    info->n_blocks = trace->blocks.n;
    for (size_t i = 0; i < trace->events.n; i++) {
        info->n_execs += trace->events.items[i].kind == NEAP_EVENT_EXEC;
    }
    if (step_ms) {
        double value = 0;
        (void)np_real_read(step_ms, strlen(step_ms), &value);
        info->step_ms = value < 1e12 ? value : 0;
    }
}

static neap_status fill_period(report *r, const np_period *period)
{
    neap_info *info = &r->info;
    info->has_period = true;
    info->period_begin = period->begin;
    info->period_length = period->length;
    info->run_length = period->run_length;
    info->cut = period->origin;
    info->first_answer = period->first_answer;
    info->leak_bytes = period->leak_bytes;
    info->n_accesses = period->accesses.n;
    info->doubtful_accesses = period->n_doubtful;
    if (period->variants.n) {
        if (np_array_reserve(r->memory, &r->variants, period->variants.n) != NEAP_OK) {
            return NEAP_NO_MEMORY;
        }
        memcpy(r->variants.items, period->variants.items, period->variants.n * sizeof *r->variants.items);
        r->variants.n = period->variants.n;
        info->variants = r->variants.items;
        info->n_variants = r->variants.n;
    }
    return NEAP_OK;
}

static neap_status fill(report *r, const neap_trace *trace)
{
    np_period period;
    neap_status status = np_period_find(trace, r->memory, &period);
    if (status != NEAP_OK) {
        return status;
    }
    if (period.length) {
        status = fill_period(r, &period);
    } else {
        r->info.first_answer = NEAP_NEVER;
        status = whole_trace(trace, &period);
    }
    if (status == NEAP_OK) {
        status = fill_loads(&period, &r->info, !trace->is_csv);
    }
    np_period_free(&period);
    return status;
}

neap_status neap_info_make(const neap_trace *trace, uint64_t alignment, const neap_memory *memory, neap_error *error,
                           neap_info **info)
{
    report *made = np_memory_alloc_zero(memory, 1, sizeof *made);
    neap_status status;
    if (!made) {
        return np_fail_memory(error);
    }
    made->memory = np_memory_or_default(memory);
    made->info.alignment = alignment ? alignment : trace->is_csv ? 1 : 512;
    fill_counts(trace, &made->info);
    status = fill(made, trace);
    if (status != NEAP_OK) {
        neap_info_free(&made->info);
        return np_fail(error, status, "%s", neap_status_message(status));
    }
    *info = &made->info;
    return NEAP_OK;
}

void neap_info_free(neap_info *info)
{
    report *r = (report *)info;
    if (r) {
        np_array_free(r->memory, &r->variants);
        np_memory_free(r->memory, r, 1, sizeof *r);
    }
}
