#include "swap/timeline.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/real.h"
#include "pool/circle.h"

#define LEAST_NS 1.0 /* of a period: shorter ones have no times */

void np_timeline_free(np_timeline *timeline)
{
    np_array_free(timeline->memory, &timeline->times);
    np_array_free(timeline->memory, &timeline->start_ns);
    np_array_free(timeline->memory, &timeline->end_ns);
    np_array_free(timeline->memory, &timeline->needed);
    np_array_free(timeline->memory, &timeline->blocks);
    np_array_free(timeline->memory, &timeline->uses);
    np_array_free(timeline->memory, &timeline->gaps);
}

/* ---- execs ---- */

static const neap_event *event_at(const np_period *period, uint32_t time)
{
    return &period->trace->events.items[period->origin + time];
}

/* The measured time of the period's iterations, 0 where the trace does not tell. */
static double step_ns(const np_period *period)
{
    const char *text = neap_trace_meta(period->trace, "step_ms");
    double n_iterations = period->variants.n ? (double)period->variants.n : 1;
    double step_ms = 0;
    (void)(text && np_real_read(text, strlen(text), &step_ms));
    return step_ms < 1e12 ? step_ms * 1e6 * n_iterations : 0;
}

static neap_status find_execs(np_timeline *timeline, double slower)
{
    const np_period *period = timeline->period;
    const neap_memory *memory = timeline->memory;
    double busy_ns = 0;
    double now_ns = 0;
    double pause_ns;
    for (uint32_t t = 0; t < period->length; t++) {
        if (event_at(period, t)->kind == NEAP_EVENT_EXEC) {
            if (np_array_push(memory, &timeline->times, t) != NEAP_OK) {
                return NEAP_NO_MEMORY;
            }
            busy_ns += (double)event_at(period, t)->duration_ns;
        }
    }
    timeline->n_execs = (uint32_t)timeline->times.n;
    timeline->period_ns = fmax(busy_ns, step_ns(period)) * slower;
    if (timeline->period_ns < LEAST_NS) {
        timeline->period_ns = timeline->n_execs;
    }
    pause_ns = timeline->n_execs ? fmax(timeline->period_ns - busy_ns * slower, 0) / timeline->n_execs : 0;
    if (np_array_reserve(memory, &timeline->start_ns, timeline->n_execs) != NEAP_OK ||
        np_array_reserve(memory, &timeline->end_ns, timeline->n_execs) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k < timeline->n_execs; k++) {
        now_ns += pause_ns;
        timeline->start_ns.items[k] = now_ns;
        now_ns += (double)event_at(period, timeline->times.items[k])->duration_ns * slower;
        timeline->end_ns.items[k] = now_ns;
    }
    timeline->start_ns.n = timeline->end_ns.n = timeline->n_execs;
    return NEAP_OK;
}

/* ---- uses ---- */

static bool is_write(neap_access_kind kind, np_directions directions)
{
    return kind == NEAP_ACCESS_WRITE || (kind == NEAP_ACCESS_UNKNOWN && directions == NP_DIRECTIONS_CAREFUL);
}

/* Counts, or with `at` fills, the uses of every life: one an exec, whatever the number of accesses. Accesses are in
 * order of time, but a life that crosses the period's end begins with the later ones: two passes, late ones first. */
static void gather_uses(const np_timeline *timeline, np_directions directions, uint32_t *counts, const uint32_t *at,
                        np_use *uses)
{
    const np_period *period = timeline->period;
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        for (uint32_t k = 0; k < timeline->n_execs; k++) {
            uint32_t t = timeline->times.items[k];
            for (uint32_t a = period->access_at.items[t]; a < period->access_at.items[t + 1]; a++) {
                const neap_access *access = &period->accesses.items[a];
                const np_life *life = &period->lives.items[access->block];
                uint32_t exec = wrapped ? k + timeline->n_execs : k;
                bool writes = is_write(access->kind, directions);
                if ((!life->persistent && t < life->begin) != (wrapped == 1)) {
                    continue;
                }
                if (at && counts[access->block] > 0 &&
                    uses[at[access->block] + counts[access->block] - 1].exec == exec) {
                    np_use *last = &uses[at[access->block] + counts[access->block] - 1];
                    last->writes = last->writes || writes;
                    continue;
                }
                if (at) {
                    uses[at[access->block] + counts[access->block]] = (np_use){exec, writes};
                }
                counts[access->block]++;
            }
        }
    }
}

/* Execs of the period whose events come before a time of it. */
static uint32_t execs_before(const np_timeline *timeline, uint32_t time)
{
    uint32_t low = 0;
    uint32_t high = timeline->n_execs;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->times.items[middle] < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The first exec after a life's malloc and the last before its free, counted on. False: there is none in between. Of a
 * persistent block, exec 0, where the load is lowest. */
static bool find_ends(const np_timeline *timeline, const np_life *life, uint32_t *first, uint32_t *last)
{
    uint32_t length = timeline->period->length;
    uint32_t laps = life->end / length;
    uint32_t past = life->persistent ? 1 : execs_before(timeline, life->end - laps * length) + laps * timeline->n_execs;
    *first = life->persistent ? 0 : execs_before(timeline, life->begin);
    *last = past - 1;
    return *first < past;
}

static neap_status push_use(np_timeline *timeline, np_swap_block *block, np_use use)
{
    block->n_uses++;
    return np_array_push(timeline->memory, &timeline->uses, use);
}

static neap_status add_block(np_timeline *timeline, uint32_t life_index, const np_use *uses, uint32_t n_uses,
                             np_directions directions)
{
    const np_life *life = &timeline->period->lives.items[life_index];
    np_swap_block block = {.life = life_index, .persistent = life->persistent};
    uint32_t first = 0;
    uint32_t last = 0;
    bool has_ends = timeline->held && find_ends(timeline, life, &first, &last);
    neap_status status = NEAP_OK;
    if (n_uses == 0 && !has_ends) {
        return NEAP_OK;
    }
    block.first_use = (uint32_t)timeline->uses.n;
    block.pinned = !life->persistent && life->end - life->begin >= timeline->period->length;
    if (block.persistent || block.pinned) { /* counted in every exec anyway: it needs a use, no more */
        has_ends = n_uses == 0;
        last = first;
    }
    if (!np_round_up(timeline->period->trace->blocks.items[life->block].bytes, timeline->alignment, &block.bytes)) {
        return NEAP_TOO_LARGE;
    }
    if (has_ends && (n_uses == 0 || uses[0].exec != first)) {
        status = push_use(timeline, &block, (np_use){.exec = first});
    }
    for (uint32_t i = 0; i < n_uses && status == NEAP_OK; i++) {
        np_use use = uses[i];
        if (i == 0 && !life->persistent && directions == NP_DIRECTIONS_ANY) {
            use.writes = true; /* something must have put there what is read later */
        }
        status = push_use(timeline, &block, use);
    }
    if (status == NEAP_OK && has_ends && timeline->uses.items[timeline->uses.n - 1].exec != last) {
        status = push_use(timeline, &block, (np_use){.exec = last});
    }
    if (status == NEAP_OK) {
        status = np_array_push(timeline->memory, &timeline->blocks, block);
    }
    return status;
}

static neap_status find_blocks(np_timeline *timeline, np_directions directions)
{
    const neap_memory *memory = timeline->memory;
    size_t n = timeline->period->lives.n;
    uint32_t *counts = np_memory_alloc_zero(memory, n, sizeof *counts);
    uint32_t *at = np_memory_alloc_zero(memory, n + 1, sizeof *at);
    np_use *uses = NULL;
    size_t n_uses = 0;
    neap_status status = counts && at ? NEAP_OK : NEAP_NO_MEMORY;

    if (status == NEAP_OK) { /* at most so many: several accesses of one exec are one use */
        gather_uses(timeline, directions, counts, NULL, NULL);
        for (size_t i = 0; i < n; i++) {
            at[i + 1] = at[i] + counts[i];
            counts[i] = 0;
        }
        n_uses = at[n];
        uses = np_memory_alloc(memory, n_uses, sizeof *uses);
        status = uses ? NEAP_OK : NEAP_NO_MEMORY;
    }
    if (status == NEAP_OK) {
        gather_uses(timeline, directions, counts, at, uses);
        for (uint32_t i = 0; i < n && status == NEAP_OK; i++) {
            status = add_block(timeline, i, &uses[at[i]], counts[i], directions);
        }
    }
    np_memory_free(memory, counts, n, sizeof *counts);
    np_memory_free(memory, at, n + 1, sizeof *at);
    np_memory_free(memory, uses, n_uses, sizeof *uses);
    return status;
}

/* ---- needs and gaps ---- */

static neap_status find_needs(np_timeline *timeline)
{
    uint32_t n = timeline->n_execs;
    uint64_t always = 0;
    uint64_t now = 0;
    if (np_array_reserve(timeline->memory, &timeline->needed, (size_t)n + 1) != NEAP_OK) {
        return NEAP_NO_MEMORY;
    }
    for (uint32_t k = 0; k <= n; k++) {
        timeline->needed.items[k] = 0; /* changes, modulo 2^64, until summed up */
    }
    for (size_t i = 0; i < timeline->blocks.n; i++) {
        const np_swap_block *block = &timeline->blocks.items[i];
        const np_use *uses = &timeline->uses.items[block->first_use];
        uint32_t first = uses[0].exec;
        uint32_t past = uses[block->n_uses - 1].exec + 1;
        if (block->pinned) {
            const np_life *life = &timeline->period->lives.items[block->life];
            always += block->bytes * ((life->end - life->begin) / timeline->period->length + 1);
        } else if (block->persistent) {
            always += block->bytes;
        } else {
            timeline->needed.items[first % n] += block->bytes;
            timeline->needed.items[past % n] -= block->bytes;
            always += first / n == past / n ? 0 : block->bytes;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        now += timeline->needed.items[k];
        timeline->needed.items[k] = now + always;
    }
    timeline->needed.n = n;
    return NEAP_OK;
}

/* The end of the last write at or before use i; persistent blocks look back into the period before. */
static double release_of(const np_timeline *timeline, const np_swap_block *block, uint32_t i)
{
    const np_use *uses = &timeline->uses.items[block->first_use];
    for (uint32_t k = i + 1; k-- > 0;) {
        if (uses[k].writes) {
            return np_timeline_end(timeline, uses[k].exec);
        }
    }
    for (uint32_t k = block->n_uses; block->persistent && k-- > i + 1;) {
        if (uses[k].writes) {
            return np_timeline_end(timeline, uses[k].exec) - timeline->period_ns;
        }
    }
    return -INFINITY;
}

static neap_status add_gap(np_timeline *timeline, uint32_t block_index, uint32_t i, uint32_t to)
{
    const np_swap_block *block = &timeline->blocks.items[block_index];
    uint32_t n = timeline->n_execs;
    uint32_t from = timeline->uses.items[block->first_use + i].exec;
    uint32_t laps = from / n;
    np_gap gap = {.bytes = block->bytes, .block = block_index, .from = from - laps * n, .to = to - laps * n};
    if (to <= from + 1) {
        return NEAP_OK;
    }
    gap.release_ns = release_of(timeline, block, i) - laps * timeline->period_ns;
    gap.due_ns = np_timeline_start(timeline, gap.to);
    return np_array_push(timeline->memory, &timeline->gaps, gap);
}

static neap_status find_gaps(np_timeline *timeline)
{
    neap_status status = NEAP_OK;
    for (uint32_t b = 0; b < timeline->blocks.n; b++) {
        const np_swap_block *block = &timeline->blocks.items[b];
        const np_use *uses = &timeline->uses.items[block->first_use];
        if (block->pinned) {
            continue;
        }
        for (uint32_t i = 0; i + 1 < block->n_uses && status == NEAP_OK; i++) {
            status = add_gap(timeline, b, i, uses[i + 1].exec);
        }
        if (block->persistent && status == NEAP_OK) {
            status = add_gap(timeline, b, block->n_uses - 1, uses[0].exec + timeline->n_execs);
        }
    }
    return status;
}

neap_status np_timeline_make(const np_period *period, const np_timeline_options *options, const neap_memory *memory,
                             np_timeline *timeline)
{
    np_timeline made = {.memory = np_memory_or_default(memory),
                        .period = period,
                        .alignment = options->alignment,
                        .held = options->held};
    neap_status status = np_circle_load(period, options->alignment, &made.peak_load);
    if (status == NEAP_OK) {
        status = find_execs(&made, options->slower);
    }
    if (status == NEAP_OK && made.n_execs > 0) {
        status = find_blocks(&made, options->directions);
    }
    if (status == NEAP_OK && made.n_execs > 0) {
        status = find_needs(&made);
    }
    if (status == NEAP_OK && made.n_execs > 0) {
        status = find_gaps(&made);
    }
    if (status != NEAP_OK) {
        np_timeline_free(&made);
        return status;
    }
    *timeline = made;
    return NEAP_OK;
}

int32_t np_timeline_release_exec(const np_timeline *timeline, const np_gap *gap)
{
    uint32_t low = 0;
    uint32_t high = timeline->n_execs;
    double at = gap->release_ns;
    int32_t laps = 0;
    if (at >= timeline->end_ns.items[gap->from]) {
        return (int32_t)gap->from;
    }
    while (at < timeline->end_ns.items[0]) {
        at += timeline->period_ns;
        laps++;
    }
    at += 0.5; /* against rounding: ends are whole ns or far apart */
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (timeline->end_ns.items[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (int32_t)low - laps * (int32_t)timeline->n_execs;
}

uint32_t np_timeline_last_ended(const np_timeline *timeline, const np_gap *gap, double time_ns)
{
    uint32_t low = gap->from;
    uint32_t high = gap->to;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (np_timeline_end(timeline, middle) <= time_ns) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

bool np_timeline_is_valid(const np_timeline *timeline)
{
    uint32_t n = timeline->n_execs;
    for (uint32_t k = 0; k < n; k++) {
        if (timeline->start_ns.items[k] > timeline->end_ns.items[k] ||
            (k > 0 && timeline->end_ns.items[k - 1] > timeline->start_ns.items[k])) {
            return false;
        }
    }
    for (size_t i = 0; i < timeline->gaps.n; i++) {
        const np_gap *gap = &timeline->gaps.items[i];
        if (gap->from >= n || gap->to <= gap->from + 1 || gap->to > gap->from + n || gap->bytes == 0 ||
            gap->release_ns > np_timeline_end(timeline, gap->from) ||
            gap->due_ns < np_timeline_end(timeline, gap->to - 1)) {
            return false;
        }
    }
    return true;
}
