#include "swap/candidates.h"

#include "swap/load.h"

void np_candidates_free(np_candidates *candidates)
{
    np_array_free(candidates->memory, &candidates->peaks);
    np_array_free(candidates->memory, &candidates->gaps);
}

/* ---- peaks ---- */

/* The first exec of highest need among those with times in [begin, end); n_execs where there is none. */
static uint32_t find_peak(const np_timeline *timeline, uint32_t begin, uint32_t end)
{
    uint32_t peak = timeline->n_execs;
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        if (timeline->times.items[k] >= begin && timeline->times.items[k] < end &&
            (peak == timeline->n_execs || timeline->needed.items[k] > timeline->needed.items[peak])) {
            peak = k;
        }
    }
    return peak;
}

/* Iterations follow each other from the period's cut, so none of them goes on over the end of its times. */
static neap_status find_peaks(const np_timeline *timeline, np_candidates *candidates)
{
    const np_period *period = timeline->period;
    size_t n_iterations = period ? period->variants.n : 0;
    neap_status status = NEAP_OK;
    if (n_iterations == 0) {
        return np_array_push(candidates->memory, &candidates->peaks, find_peak(timeline, 0, UINT32_MAX));
    }
    for (size_t i = 0; i < n_iterations && status == NEAP_OK; i++) {
        const neap_variant *iteration = &period->variants.items[i];
        uint64_t begin = (uint64_t)iteration->begin + period->length - (period->origin - period->begin);
        uint32_t time = (uint32_t)(begin % period->length);
        uint32_t peak = find_peak(timeline, time, time + iteration->length);
        if (peak < timeline->n_execs) {
            status = np_array_push(candidates->memory, &candidates->peaks, peak);
        }
    }
    return status;
}

/* ---- gaps ---- */

/* Does exec k lie inside the gap, in this period or as the tail of one from the period before? */
static bool covers(const np_timeline *timeline, const np_gap *gap, uint32_t k)
{
    return (gap->from < k && k < gap->to) || k + timeline->n_execs < gap->to;
}

static bool covers_a_peak(const np_candidates *candidates, const np_timeline *timeline, const np_gap *gap)
{
    for (size_t i = 0; i < candidates->peaks.n; i++) {
        if (covers(timeline, gap, candidates->peaks.items[i])) {
            return true;
        }
    }
    return false;
}

static bool is_in_scope(const np_candidates *candidates, const np_timeline *timeline, const np_gap *gap,
                        uint64_t min_bytes)
{
    if (candidates->scope == NP_SCOPE_ALL) {
        return true;
    }
    return gap->bytes >= min_bytes && (candidates->scope == NP_SCOPE_LARGE || covers_a_peak(candidates, timeline, gap));
}

static neap_status find_load_min(const np_timeline *timeline, np_candidates *candidates)
{
    size_t n_changes = (size_t)timeline->n_execs + 1;
    uint64_t *changes = np_memory_alloc_zero(timeline->memory, n_changes, sizeof *changes);
    if (!changes) {
        return NEAP_NO_MEMORY;
    }
    for (size_t i = 0; i < candidates->gaps.n; i++) {
        const np_gap *gap = &timeline->gaps.items[candidates->gaps.items[i]];
        np_load_take(changes, timeline->n_execs, gap->from + 1, gap->to, gap->bytes);
    }
    candidates->load_min = np_load_sum(timeline, changes);
    np_memory_free(timeline->memory, changes, n_changes, sizeof *changes);
    return NEAP_OK;
}

neap_status np_candidates_find(const np_timeline *timeline, np_scope scope, uint64_t min_bytes,
                               np_candidates *candidates)
{
    np_candidates found = {.memory = timeline->memory, .scope = scope};
    neap_status status = find_peaks(timeline, &found);
    for (uint32_t i = 0; i < timeline->gaps.n && status == NEAP_OK; i++) {
        if (is_in_scope(&found, timeline, &timeline->gaps.items[i], min_bytes)) {
            status = np_array_push(found.memory, &found.gaps, i);
        }
    }
    if (status == NEAP_OK) {
        status = find_load_min(timeline, &found);
    }
    if (status != NEAP_OK) {
        np_candidates_free(&found);
        return status;
    }
    *candidates = found;
    return NEAP_OK;
}

neap_status np_candidates_for_limit(const np_timeline *timeline, uint64_t min_bytes, uint64_t limit,
                                    np_candidates *candidates)
{
    static const np_scope scopes[] = {NP_SCOPE_PEAK, NP_SCOPE_LARGE, NP_SCOPE_ALL};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        np_candidates found;
        neap_status status = np_candidates_find(timeline, scopes[i], min_bytes, &found);
        if (status != NEAP_OK) {
            return status;
        }
        if (found.load_min <= limit) {
            *candidates = found;
            return NEAP_OK;
        }
        np_candidates_free(&found);
    }
    return NEAP_NO_PLAN;
}

bool np_candidates_is_valid(const np_candidates *candidates, const np_timeline *timeline)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < candidates->peaks.n; i++) {
        uint32_t peak = candidates->peaks.items[i];
        if (peak >= timeline->n_execs || candidates->peaks.n > timeline->n_execs) {
            return false;
        }
        highest = timeline->needed.items[peak] > highest ? timeline->needed.items[peak] : highest;
    }
    for (size_t i = 0; i < candidates->gaps.n; i++) {
        uint32_t gap = candidates->gaps.items[i];
        if (gap >= timeline->gaps.n || (i > 0 && candidates->gaps.items[i - 1] >= gap)) {
            return false;
        }
        if (candidates->scope == NP_SCOPE_PEAK && !covers_a_peak(candidates, timeline, &timeline->gaps.items[gap])) {
            return false;
        }
    }
    return candidates->load_min <= highest;
}
