#include "swap/fill.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "swap/idle.h"

enum { GAPS_A_LOOK = 64 }; /* looked at between two looks at the clock */

#define LATE_NS 50000000 /* what a filling has, late as it may be: nearly all end well before */

typedef struct ranked_gap {
    double rank; /* highest first */
    uint32_t gap;
} ranked_gap;

typedef struct filling {
    const np_timeline *timeline;
    np_fill_options options;
    double out_speed;
    double in_speed;
    double latency_ns;
    np_idle out;
    np_idle in;
    int64_t *load;  /* [exec] */
    uint64_t *left; /* [gap]: bytes not absent yet */
    ranked_gap *order;
    uint32_t n_order;
    np_swap_array *swaps;
    uint64_t deadline_ns; /* 0: none */
    np_fill_result result;
} filling;

static bool is_late(const filling *f)
{
    return (f->deadline_ns > 0 && np_clock_ns() > f->deadline_ns) ||
           (f->options.is_stopping && atomic_load(f->options.is_stopping));
}

static int compare_rank(const void *left, const void *right)
{
    const ranked_gap *a = left;
    const ranked_gap *b = right;
    if (a->rank != b->rank) {
        return a->rank > b->rank ? -1 : 1;
    }
    return a->gap < b->gap ? -1 : a->gap > b->gap;
}

static double release_of(const np_timeline *timeline, const np_gap *gap)
{
    return gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(timeline, gap->from);
}

static void rank_gaps(filling *f)
{
    np_rng rng = np_rng_make(f->options.seed);
    for (uint32_t g = 0; g < f->timeline->gaps.n; g++) {
        const np_gap *gap = &f->timeline->gaps.items[g];
        double length = gap->due_ns - release_of(f->timeline, gap);
        double shift = 1 + f->options.noise * (np_rng_unit(&rng) - 0.5);
        shift *= f->options.factors ? f->options.factors[g] : 1;
        f->left[g] = gap->bytes;
        if (gap->bytes >= f->options.min_block) {
            f->order[f->n_order++] = (ranked_gap){length * shift, g};
        }
    }
    qsort(f->order, f->n_order, sizeof *f->order, compare_rank);
}

/* The copies of one part. */
typedef struct part {
    uint64_t bytes;
    np_idle_span out;
    np_idle_span in;
} part;

/* Whole pages, or all that is left of the block. */
static uint64_t cut(const filling *f, uint64_t left, double bytes)
{
    uint64_t most = bytes < 9e18 ? (uint64_t)bytes : UINT64_MAX;
    if (most >= left) {
        return left;
    }
    return f->options.whole_blocks ? 0 : most / f->options.page * f->options.page;
}

/* Finds times for copies such that a part of the gap is absent during exec k (on the gap's own line). */
static bool find_part(filling *f, uint32_t g, uint32_t k, part *found)
{
    const np_timeline *timeline = f->timeline;
    const np_gap *gap = &timeline->gaps.items[g];
    uint64_t left = f->left[g];
    uint64_t most = f->options.part / f->options.page * f->options.page;
    uint64_t wish = left < most ? left : most;
    uint64_t least = f->options.whole_blocks || left < f->options.page ? left : f->options.page;
    double start = np_timeline_start(timeline, k);
    double end = np_timeline_end(timeline, k);
    bool copies_out = gap->release_ns > -INFINITY;
    part p = {.bytes = wish};

    if (copies_out) {
        if (!np_idle_first(&f->out, gap->release_ns, start, f->latency_ns + (double)least / f->out_speed,
                           f->latency_ns + (double)wish / f->out_speed, &p.out)) {
            f->result.blocked_out += left;
            return false;
        }
        p.bytes = cut(f, wish, (p.out.end - p.out.begin - f->latency_ns) * f->out_speed * (1 + 1e-12));
    }
    if (p.bytes == 0 || !np_idle_last(&f->in, end, gap->due_ns, f->latency_ns + (double)least / f->in_speed,
                                      f->latency_ns + (double)p.bytes / f->in_speed, &p.in)) {
        f->result.blocked_in += left;
        return false;
    }
    p.bytes = cut(f, p.bytes, (p.in.end - p.in.begin - f->latency_ns) * f->in_speed * (1 + 1e-12));
    if (p.bytes == 0) {
        return false;
    }
    p.out.end = p.out.begin + f->latency_ns + (double)p.bytes / f->out_speed;
    p.in.begin = p.in.end - f->latency_ns - (double)p.bytes / f->in_speed;
    *found = p;
    return true;
}

/* First exec after `from` that starts at or after the time, on the gap's line. */
static uint32_t first_started_after(const np_timeline *timeline, const np_gap *gap, double time_ns)
{
    uint32_t low = gap->from;
    uint32_t high = gap->to;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (np_timeline_start(timeline, middle) >= time_ns) {
            high = middle;
        } else {
            low = middle;
        }
    }
    return high;
}

#define SLOP_NS 1e-3

static neap_status commit(filling *f, uint32_t g, const part *p)
{
    const np_timeline *timeline = f->timeline;
    const np_gap *gap = &timeline->gaps.items[g];
    bool copies_out = gap->release_ns > -INFINITY;
    uint32_t first = copies_out ? first_started_after(timeline, gap, p->out.end - SLOP_NS) : gap->from + 1;
    uint32_t last = np_timeline_last_ended(timeline, gap, p->in.begin + SLOP_NS);
    np_swap swap = {.bytes = p->bytes, .gap = g, .in_after = last, .in_key = p->in.begin};
    neap_status status = NEAP_OK;
    swap.out_key = copies_out ? p->out.begin : np_timeline_end(timeline, gap->from);
    if (copies_out) {
        status = np_idle_take(&f->out, timeline->memory, p->out);
    }
    if (status == NEAP_OK) {
        status = np_idle_take(&f->in, timeline->memory, p->in);
    }
    if (status == NEAP_OK) {
        status = np_array_push(timeline->memory, f->swaps, swap);
    }
    for (uint32_t k = first; k <= last && status == NEAP_OK; k++) {
        f->load[k % timeline->n_execs] -= (int64_t)p->bytes;
    }
    f->left[g] -= p->bytes;
    return status;
}

static uint32_t highest_exec(const filling *f)
{
    uint32_t highest = 0;
    for (uint32_t k = 1; k < f->timeline->n_execs; k++) {
        highest = f->load[k] > f->load[highest] ? k : highest;
    }
    return highest;
}

/* Lowers the load at the highest exec. *lowered false: nothing can, or it is late. */
static neap_status lower(filling *f, uint32_t highest, bool *lowered)
{
    uint32_t n = f->timeline->n_execs;
    *lowered = false;
    f->result.blocked_out = f->result.blocked_in = 0;
    for (uint32_t i = 0; i < f->n_order && (i % GAPS_A_LOOK > 0 || !is_late(f)); i++) {
        uint32_t g = f->order[i].gap;
        const np_gap *gap = &f->timeline->gaps.items[g];
        uint32_t k = highest > gap->from ? highest : highest + n;
        part p;
        if (f->left[g] > 0 && k < gap->to && find_part(f, g, k, &p)) {
            *lowered = true;
            return commit(f, g, &p);
        }
    }
    return NEAP_OK;
}

static neap_status fill(filling *f)
{
    neap_status status = NEAP_OK;
    bool lowered = true;
    while (status == NEAP_OK && lowered) {
        uint32_t highest = highest_exec(f);
        f->result.peak = (uint64_t)f->load[highest];
        f->result.exec = highest;
        if (f->result.peak <= f->options.target) {
            break;
        }
        status = lower(f, highest, &lowered);
    }
    return status;
}

neap_status np_fill(const np_timeline *timeline, const np_link *link, const np_fill_options *options,
                    np_swap_array *swaps, np_fill_result *result)
{
    const neap_memory *memory = timeline->memory;
    size_t n_gaps = timeline->gaps.n;
    filling f = {.timeline = timeline, .options = *options, .latency_ns = link->latency_ns, .swaps = swaps};
    double share = link->both > 0 ? link->both / 2 : INFINITY;
    uint64_t late_ns = np_clock_ns() + LATE_NS;
    neap_status status;

    f.deadline_ns = options->deadline_ns > 0 && options->deadline_ns < late_ns ? late_ns : options->deadline_ns;
    f.out_speed = fmin(link->out, share); /* as if both directions were always busy */
    f.in_speed = fmin(link->in, share);
    f.load = np_memory_alloc(memory, timeline->n_execs, sizeof *f.load);
    f.left = np_memory_alloc(memory, n_gaps, sizeof *f.left);
    f.order = np_memory_alloc(memory, n_gaps, sizeof *f.order);
    status = f.load && f.left && f.order ? np_idle_init(&f.out, memory, timeline->period_ns) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = np_idle_init(&f.in, memory, timeline->period_ns);
    }
    if (status == NEAP_OK) {
        swaps->n = 0;
        for (uint32_t k = 0; k < timeline->n_execs; k++) {
            f.load[k] = (int64_t)(timeline->needed.items[k] + (options->extra ? options->extra[k] : 0));
        }
        rank_gaps(&f);
        status = fill(&f);
    }
    np_idle_free(&f.out, memory);
    np_idle_free(&f.in, memory);
    np_memory_free(memory, f.load, timeline->n_execs, sizeof *f.load);
    np_memory_free(memory, f.left, n_gaps, sizeof *f.left);
    np_memory_free(memory, f.order, n_gaps, sizeof *f.order);
    if (status == NEAP_OK) {
        *result = f.result;
    }
    return status;
}
