/* score.c: DOA, AOA and WDOA are one pass. SWDOA is greedy on areas that only shrink, so an area computed earlier is an
 * upper limit of what it is now: candidates wait in a heap by what was known last, and only the top one is computed
 * again; if it stays on top it is chosen. Areas under a load that changes over ranges come from a binary indexed tree, so
 * both a look and a choice take logarithmic time. */
#include "swap/score.h"

/* ---- the area under the load ---- */

/* Prefix sums of the load's area over the execs of a period, with bytes taken away over ranges.
 * The area of the first k execs is before[k] - (sum of d_i * (span[k] - span[i]) over changes i < k), where d_i bytes
 * leave at exec i (negative: come back). */
typedef struct area {
    const np_timeline *timeline;
    double *before; /* [exec]: area of the execs before it, nothing taken away */
    double *taken;  /* tree over execs: sums of d_i */
    double *moment; /* tree over execs: sums of d_i * span[i] */
} area;

/* Time from the period's begin to the begin of exec k's step. */
static double span(const area *load, uint32_t k)
{
    return k > 0 ? load->timeline->end_ns.items[k - 1] : 0;
}

static void area_free(area *load)
{
    size_t n = (size_t)load->timeline->n_execs + 1;
    const neap_memory *memory = load->timeline->memory;
    np_memory_free(memory, load->before, n, sizeof *load->before);
    np_memory_free(memory, load->taken, n, sizeof *load->taken);
    np_memory_free(memory, load->moment, n, sizeof *load->moment);
}

static neap_status area_init(area *load, const np_timeline *timeline)
{
    size_t n = (size_t)timeline->n_execs + 1;
    *load = (area){.timeline = timeline};
    load->before = np_memory_alloc_zero(timeline->memory, n, sizeof *load->before);
    load->taken = np_memory_alloc_zero(timeline->memory, n, sizeof *load->taken);
    load->moment = np_memory_alloc_zero(timeline->memory, n, sizeof *load->moment);
    if (!load->before || !load->taken || !load->moment) {
        area_free(load);
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        double step_ns = span(load, k + 1) - span(load, k);
        load->before[k + 1] = load->before[k] + (double)timeline->needed.items[k] * step_ns;
    }
    return NEAP_OK;
}

static void take_from(area *load, uint32_t exec, double bytes)
{
    double moment = bytes * span(load, exec);
    for (uint32_t i = exec + 1; i <= load->timeline->n_execs; i += i & (0u - i)) {
        load->taken[i] += bytes;
        load->moment[i] += moment;
    }
}

/* Takes bytes from the execs inside the gap. */
static void area_take(area *load, const np_gap *gap)
{
    uint32_t n = load->timeline->n_execs;
    uint32_t first = gap->from + 1 < n ? gap->from + 1 : 0;
    uint32_t end = gap->from + 1 < n ? gap->to : gap->to - n;
    double bytes = (double)gap->bytes;
    take_from(load, first, bytes);
    if (end > n) { /* on from the period's start */
        take_from(load, 0, bytes);
        end -= n;
    }
    take_from(load, end, -bytes);
}

/* The area of the execs before k, k at most n_execs, and the bytes taken away from exec k - 1. */
static double area_before(const area *load, uint32_t k, double *taken)
{
    double moment = 0;
    *taken = 0;
    for (uint32_t i = k; i > 0; i -= i & (0u - i)) {
        *taken += load->taken[i];
        moment += load->moment[i];
    }
    return load->before[k] - (*taken * span(load, k) - moment);
}

/* The area between the gap's two uses: the execs inside, and the pause before the use after it. */
static double area_of(const area *load, const np_gap *gap)
{
    uint32_t n = load->timeline->n_execs;
    uint32_t to = gap->to % n;
    double pause_ns = load->timeline->start_ns.items[to] - span(load, to);
    double taken;
    double sum = -area_before(load, gap->from + 1, &taken);
    sum += gap->to > to ? area_before(load, n, &taken) : 0;
    sum += area_before(load, to, &taken);
    (void)area_before(load, to + 1, &taken);
    return sum + ((double)load->timeline->needed.items[to] - taken) * pause_ns;
}

/* ---- SWDOA ---- */

/* Candidates by the area known last, the largest on top, of equal ones the first. */
typedef struct heap {
    uint32_t *items;
    size_t n;
    const double *scores;
} heap;

static bool is_above(const heap *waiting, uint32_t a, uint32_t b)
{
    return waiting->scores[a] > waiting->scores[b] || (waiting->scores[a] == waiting->scores[b] && a < b);
}

static void sift_down(heap *waiting, size_t at)
{
    uint32_t item = waiting->items[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < waiting->n && is_above(waiting, waiting->items[child + 1], waiting->items[child])) {
            child++;
        }
        if (child >= waiting->n || !is_above(waiting, waiting->items[child], item)) {
            break;
        }
        waiting->items[at] = waiting->items[child];
        at = child;
    }
    waiting->items[at] = item;
}

static void choose_by_area(area *load, const np_candidates *candidates, double *scores, uint32_t *items)
{
    const np_gap *gaps = load->timeline->gaps.items;
    heap waiting = {.items = items, .n = candidates->gaps.n, .scores = scores};
    for (size_t i = waiting.n; i-- > 0;) {
        sift_down(&waiting, i);
    }
    while (waiting.n > 0) {
        uint32_t top = waiting.items[0];
        double now = area_of(load, &gaps[candidates->gaps.items[top]]);
        if (now < scores[top]) { /* others may be larger */
            scores[top] = now;
            sift_down(&waiting, 0);
            if (waiting.items[0] != top) {
                continue;
            }
        }
        area_take(load, &gaps[candidates->gaps.items[top]]);
        waiting.items[0] = waiting.items[--waiting.n];
        if (waiting.n > 0) {
            sift_down(&waiting, 0);
        }
    }
}

static neap_status score_by_area(const np_timeline *timeline, const np_candidates *candidates, bool choose,
                                 double *scores)
{
    size_t n = candidates->gaps.n;
    uint32_t *items = np_memory_alloc(timeline->memory, n, sizeof *items);
    area load;
    neap_status status = items ? area_init(&load, timeline) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        for (uint32_t i = 0; i < n; i++) {
            scores[i] = area_of(&load, &timeline->gaps.items[candidates->gaps.items[i]]);
            items[i] = i;
        }
        if (choose) {
            choose_by_area(&load, candidates, scores, items);
        }
        area_free(&load);
    }
    np_memory_free(timeline->memory, items, n, sizeof *items);
    return status;
}

/* ---- DOA and AOA ---- */

static double duration_of(const np_timeline *timeline, const np_link *link, const np_gap *gap)
{
    double copies_ns = (double)gap->bytes / link->out + (double)gap->bytes / link->in + 2 * link->latency_ns;
    return gap->due_ns - np_timeline_end(timeline, gap->from) - copies_ns;
}

neap_status np_score_candidates(const np_timeline *timeline, const np_link *link, const np_candidates *candidates,
                                np_score kind, double *scores)
{
    if (kind == NP_SCORE_WDOA || kind == NP_SCORE_SWDOA) {
        return score_by_area(timeline, candidates, kind == NP_SCORE_SWDOA, scores);
    }
    for (size_t i = 0; i < candidates->gaps.n; i++) {
        const np_gap *gap = &timeline->gaps.items[candidates->gaps.items[i]];
        double duration = duration_of(timeline, link, gap);
        double bytes = (double)gap->bytes;
        double absence = duration < 0 ? duration / bytes : duration * bytes;
        scores[i] = kind == NP_SCORE_DOA ? duration : absence;
    }
    return NEAP_OK;
}
