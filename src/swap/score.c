/* score.c: DOA and AOA are arithmetic, WDOA is a difference of prefix sums. SWDOA is greedy: after every choice each area
 * that is left shrinks by the chosen bytes times the time the two have in common, which takes a few operations a pair.
 * Choosing by areas known earlier (they only shrink) would save most of that where gaps differ, but takes far longer where
 * they are nearly alike, as the gaps of equal layers are. */
#include "swap/score.h"

/* ---- areas ---- */

/* Begin of exec k's step: where the exec before it ends. */
static double step_begin(const np_timeline *timeline, uint32_t k)
{
    return k > 0 ? timeline->end_ns.items[k - 1] : 0;
}

/* before[k]: the area of the execs before k, up to before[n_execs]. */
static void find_areas(const np_timeline *timeline, double *before)
{
    before[0] = 0;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        double step_ns = timeline->end_ns.items[k] - step_begin(timeline, k);
        before[k + 1] = before[k] + (double)timeline->needed.items[k] * step_ns;
    }
}

/* The area between the gap's two uses: the steps of the execs inside, and the pause before the use after it. */
static double area_of(const np_timeline *timeline, const double *before, const np_gap *gap)
{
    uint32_t to = gap->to % timeline->n_execs;
    double pause_ns = timeline->start_ns.items[to] - step_begin(timeline, to);
    double laps = gap->to > to ? before[timeline->n_execs] : 0;
    return laps + before[to] - before[gap->from + 1] + (double)timeline->needed.items[to] * pause_ns;
}

/* ---- SWDOA ---- */

/* A stretch of time on the period's circle: [begin, end), and [0, tail) where it goes on at the period's start. */
typedef struct stretch {
    double begin_ns;
    double end_ns;
    double tail_ns;
} stretch;

/* A candidate that is not chosen yet. */
typedef struct waiting {
    stretch time; /* between its uses */
    double area;
    uint32_t candidate;
} waiting;

/* From the end of exec `from` to a moment of the period in which exec `to`, counted on, lies. */
static stretch stretch_between(const np_timeline *timeline, uint32_t from, uint32_t to, double end_ns)
{
    double begin_ns = timeline->end_ns.items[from];
    if (to < timeline->n_execs) {
        return (stretch){begin_ns, end_ns, 0};
    }
    return (stretch){begin_ns, timeline->period_ns, end_ns};
}

static double between_uses_end(const np_timeline *timeline, const np_gap *gap)
{
    return timeline->start_ns.items[gap->to % timeline->n_execs];
}

/* Takes bytes over [begin, end) from the areas. */
static void shrink(waiting *left, size_t n, double begin_ns, double end_ns, double bytes)
{
    for (size_t i = 0; i < n; i++) {
        const stretch *time = &left[i].time;
        double first = time->begin_ns > begin_ns ? time->begin_ns : begin_ns;
        double common = (time->end_ns < end_ns ? time->end_ns : end_ns) - first;
        double tail = (time->tail_ns < end_ns ? time->tail_ns : end_ns) - begin_ns;
        left[i].area -= bytes * ((common > 0 ? common : 0) + (tail > 0 ? tail : 0));
    }
}

/* The largest area; of equal ones the first candidate. */
static size_t find_largest(const waiting *left, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (left[i].area > left[best].area ||
            (left[i].area == left[best].area && left[i].candidate < left[best].candidate)) {
            best = i;
        }
    }
    return best;
}

static void choose_by_area(const np_timeline *timeline, const np_candidates *candidates, waiting *left, double *scores)
{
    for (size_t n = candidates->gaps.n; n > 0; n--) {
        size_t best = find_largest(left, n);
        const np_gap *gap = &timeline->gaps.items[candidates->gaps.items[left[best].candidate]];
        uint32_t last = gap->to - 1; /* inside */
        stretch away = stretch_between(timeline, gap->from, last, timeline->end_ns.items[last % timeline->n_execs]);
        scores[left[best].candidate] = left[best].area;
        left[best] = left[n - 1];
        shrink(left, n - 1, away.begin_ns, away.end_ns, (double)gap->bytes);
        if (away.tail_ns > 0) {
            shrink(left, n - 1, 0, away.tail_ns, (double)gap->bytes);
        }
    }
}

static neap_status score_submodular(const np_timeline *timeline, const np_candidates *candidates, double *scores)
{
    size_t n = candidates->gaps.n;
    waiting *left = np_memory_alloc(timeline->memory, n, sizeof *left);
    if (!left) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++) {
        const np_gap *gap = &timeline->gaps.items[candidates->gaps.items[i]];
        left[i] = (waiting){.area = scores[i], .candidate = i};
        left[i].time = stretch_between(timeline, gap->from, gap->to, between_uses_end(timeline, gap));
    }
    choose_by_area(timeline, candidates, left, scores);
    np_memory_free(timeline->memory, left, n, sizeof *left);
    return NEAP_OK;
}

static neap_status score_weighted(const np_timeline *timeline, const np_candidates *candidates, double *scores)
{
    size_t n_before = (size_t)timeline->n_execs + 1;
    double *before = np_memory_alloc(timeline->memory, n_before, sizeof *before);
    if (!before) {
        return NEAP_NO_MEMORY;
    }
    find_areas(timeline, before);
    for (size_t i = 0; i < candidates->gaps.n; i++) {
        scores[i] = area_of(timeline, before, &timeline->gaps.items[candidates->gaps.items[i]]);
    }
    np_memory_free(timeline->memory, before, n_before, sizeof *before);
    return NEAP_OK;
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
        neap_status status = score_weighted(timeline, candidates, scores);
        return status == NEAP_OK && kind == NP_SCORE_SWDOA ? score_submodular(timeline, candidates, scores) : status;
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
