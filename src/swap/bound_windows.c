#include "swap/bound_windows.h"

#include <math.h>
#include <string.h>

/* ---- the highest of all k, while values change from some k on ---- */

static uint32_t stands_for(np_highest *list, uint32_t k)
{
    while (list->next[k] != k) {
        list->next[k] = list->next[list->next[k]];
        k = list->next[k];
    }
    return k;
}

/* Takes out what is no longer above `k` from in front of it. */
static void settle(np_highest *list, uint32_t k)
{
    while (k != list->head && list->step[k] >= 0) {
        uint32_t gone = list->before[k];
        list->next[gone] = k;
        list->before[k] = list->before[gone];
        if (gone == list->head) {
            list->head = k;
            list->first += list->step[k];
        } else {
            list->step[k] += list->step[gone];
        }
    }
}

/* k must be greater by 1 than the one appended before. */
static void append(np_highest *list, uint32_t k, double value)
{
    list->next[k] = k;
    if (list->empty) {
        list->empty = false;
        list->head = k;
        list->first = value;
    } else {
        list->before[k] = list->tail;
        list->step[k] = value - list->last;
        settle(list, k);
    }
    list->tail = k;
    list->last = value;
}

/* Adds to all from k on, where there are any. Nothing below 0. */
static void add_from(np_highest *list, uint32_t k, double bytes)
{
    if (list->empty || k > list->tail) {
        return;
    }
    k = stands_for(list, k);
    list->last += bytes;
    if (k == list->head) {
        list->first += bytes;
    } else {
        list->step[k] += bytes;
        settle(list, k);
    }
}

/* ---- tables ---- */

/* Execs from the last write to the use before the gap, which is use u of its block; UINT32_MAX: never written. */
static uint32_t written_before(const np_timeline *timeline, const np_swap_block *block, uint32_t u)
{
    const np_use *uses = &timeline->uses.items[block->first_use];
    for (uint32_t back = 0; back <= u; back++) {
        if (uses[u - back].writes) {
            return uses[u].exec - uses[u - back].exec;
        }
    }
    for (uint32_t w = block->n_uses; block->persistent && w-- > u + 1;) { /* in the period before */
        if (uses[w].writes) {
            return uses[u].exec + timeline->n_execs - uses[w].exec;
        }
    }
    return UINT32_MAX;
}

/* Puts every gap into both tables: counting sort, `at` counts first, then moves, then is put back. */
static void fill_tables(np_windows *windows)
{
    const np_timeline *timeline = windows->timeline;
    uint32_t n = timeline->n_execs;
    uint32_t use = 0; /* of the gap's block: the one before the gap */
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        windows->from_at[timeline->gaps.items[g].from + 1]++;
        windows->to_at[timeline->gaps.items[g].to % n + 1]++;
    }
    for (uint32_t k = 0; k < n; k++) {
        windows->from_at[k + 1] += windows->from_at[k];
        windows->to_at[k + 1] += windows->to_at[k];
    }
    for (size_t g = 0; g < timeline->gaps.n; g++) {
        const np_gap *gap = &timeline->gaps.items[g];
        const np_swap_block *block = &timeline->blocks.items[gap->block];
        uint32_t written;
        np_window_gap seen = {(double)gap->bytes, gap->to - gap->from, 0};
        use = g > 0 && gap[-1].block == gap->block ? use + 1 : 0;
        while (use + 1 < block->n_uses && timeline->uses.items[block->first_use + use].exec % n != gap->from) {
            use++;
        }
        written = written_before(timeline, block, use);
        seen.written = written;
        windows->from[windows->from_at[gap->from]++] = seen;
        seen.written = written == UINT32_MAX ? UINT32_MAX : written + seen.length;
        windows->to[windows->to_at[gap->to % n]++] = seen;
    }
    memmove(windows->from_at + 1, windows->from_at, n * sizeof *windows->from_at);
    memmove(windows->to_at + 1, windows->to_at, n * sizeof *windows->to_at);
    windows->from_at[0] = windows->to_at[0] = 0;
}

static void fill_execs(np_windows *windows)
{
    const np_timeline *timeline = windows->timeline;
    uint32_t n = timeline->n_execs;
    double now = 0;
    for (uint32_t k = 0; k < 2 * n; k++) {
        double needed = (double)timeline->needed.items[k % n];
        np_window_exec *exec = &windows->execs[k];
        uint32_t before = (k + n - 1) % n;
        *exec = (np_window_exec){
            .start_ns = np_timeline_start(timeline, k), .end_ns = np_timeline_end(timeline, k), .needed = needed};
        exec->ways = windows->link.in * exec->end_ns - windows->link.out * exec->start_ns -
                     fmin(windows->link.out, windows->link.in) * (exec->end_ns - exec->start_ns);
        exec->from = windows->from_at[before];
        exec->from_end = windows->from_at[before + 1];
        exec->to = windows->to_at[k % n];
        exec->to_end = windows->to_at[k % n + 1];
        windows->most_needed = fmax(windows->most_needed, needed);
    }
    for (size_t g = 0; g < timeline->gaps.n; g++) { /* changes, until summed up */
        const np_gap *gap = &timeline->gaps.items[g];
        windows->execs[(gap->from + 1) % n].covered += (double)gap->bytes;
        windows->execs[gap->to % n].covered -= (double)gap->bytes;
        now += (gap->from + 1) / n == gap->to / n ? 0 : (double)gap->bytes;
    }
    for (uint32_t k = 0; k < n; k++) {
        now += windows->execs[k].covered;
        windows->execs[k].covered = windows->execs[k + n].covered = now;
    }
}

neap_status np_windows_init(np_windows *windows, const np_timeline *timeline, const np_link *link)
{
    const neap_memory *memory = timeline->memory;
    size_t n = timeline->n_execs;
    size_t n_gaps = timeline->gaps.n;
    np_windows made = {.timeline = timeline, .link = *link};
    if (!(link->out > 0) || !(link->in > 0)) {
        return NEAP_BAD_ARGUMENT;
    }
    if (n > UINT32_MAX / 4) {
        return NEAP_TOO_LARGE;
    }
    made.longest = (uint32_t)(n > 6000 ? 36000000 / n + 1 : n);
    made.execs = np_memory_alloc(memory, 2 * n, sizeof *made.execs);
    made.from = np_memory_alloc(memory, n_gaps, sizeof *made.from);
    made.to = np_memory_alloc(memory, n_gaps, sizeof *made.to);
    made.from_at = np_memory_alloc_zero(memory, n + 1, sizeof *made.from_at);
    made.to_at = np_memory_alloc_zero(memory, n + 1, sizeof *made.to_at);
    made.highest.step = np_memory_alloc(memory, 2 * n, sizeof *made.highest.step);
    made.highest.next = np_memory_alloc(memory, 2 * n, sizeof *made.highest.next);
    made.highest.before = np_memory_alloc(memory, 2 * n, sizeof *made.highest.before);
    made.left = np_memory_alloc(memory, n, sizeof *made.left);
    if (!made.from || !made.to || !made.from_at || !made.to_at || !made.execs || !made.highest.step ||
        !made.highest.next || !made.highest.before || !made.left) {
        np_windows_free(&made);
        return NEAP_NO_MEMORY;
    }
    if (n > 0) {
        fill_tables(&made);
        fill_execs(&made);
    }
    *windows = made;
    return NEAP_OK;
}

void np_windows_free(np_windows *windows)
{
    const neap_memory *memory = windows->timeline->memory;
    size_t n = windows->timeline->n_execs;
    size_t n_gaps = windows->timeline->gaps.n;
    np_memory_free(memory, windows->execs, 2 * n, sizeof *windows->execs);
    np_memory_free(memory, windows->from, n_gaps, sizeof *windows->from);
    np_memory_free(memory, windows->to, n_gaps, sizeof *windows->to);
    np_memory_free(memory, windows->from_at, n + 1, sizeof *windows->from_at);
    np_memory_free(memory, windows->to_at, n + 1, sizeof *windows->to_at);
    np_memory_free(memory, windows->highest.step, 2 * n, sizeof *windows->highest.step);
    np_memory_free(memory, windows->highest.next, 2 * n, sizeof *windows->highest.next);
    np_memory_free(memory, windows->highest.before, 2 * n, sizeof *windows->highest.before);
    np_memory_free(memory, windows->left, n, sizeof *windows->left);
}

/* ---- the windows that begin after exec i ---- */

/* Bytes of gaps released by i or later that begin to cover exec k. */
static double begin_inside(const np_windows *windows, uint32_t i, uint32_t k)
{
    const np_window_exec *exec = &windows->execs[k];
    double bytes = 0;
    for (uint32_t g = exec->from; g < exec->from_end; g++) {
        const np_window_gap *gap = &windows->from[g];
        bytes += gap->written <= k - 1 - i ? gap->bytes : 0;
    }
    return bytes;
}

/* The gaps due at exec j leave F. Those released by i or later were never in it: their bytes are returned. Those that
 * cover i itself are added to *across. */
static double end_at(np_windows *windows, uint32_t i, uint32_t j, double *across)
{
    const np_window_exec *exec = &windows->execs[j];
    double inside = 0;
    for (uint32_t g = exec->to; g < exec->to_end; g++) {
        const np_window_gap *gap = &windows->to[g];
        if (gap->written <= j - i) {
            inside += gap->bytes;
            continue;
        }
        add_from(&windows->highest, gap->length < j - i ? j - gap->length + 1 : i + 1, gap->bytes);
        *across += gap->length > j - i ? gap->bytes : 0;
    }
    return inside;
}

/* The last exec that can be the k of a window that begins after i in which more than `enough` is left; i itself where
 * there is none, and then *none tells whether that holds for i too (as the k of a way in). */
static uint32_t last_worth(const np_windows *windows, uint32_t i, double enough, bool *none)
{
    const np_window_exec *execs = windows->execs;
    uint32_t last = i;
    for (uint32_t k = i + 1; k <= i + windows->longest; k++) {
        double way_out = windows->link.out * (execs[k].start_ns - execs[i].end_ns);
        if (windows->most_needed - way_out <= enough) {
            break;
        }
        last = execs[k].needed - way_out > enough ? k : last;
    }
    *none = last == i && execs[i].needed <= enough;
    return last;
}

uint32_t np_windows_sweep(np_windows *windows, uint32_t i, double enough)
{
    const np_window_exec *first = &windows->execs[i];
    double out = windows->link.out;
    double in = windows->link.in;
    double inside = 0;                                        /* bytes that cover j, released by i or later */
    double without = first->needed - first->covered;          /* bytes left of i itself as the k of a way in */
    double most = first->needed + (in - out) * first->end_ns; /* what is left were F 0, but for out * e_i - in * s_j */
    uint32_t n_filled = 0;
    bool none;
    uint32_t last_k = last_worth(windows, i, enough, &none);

    windows->highest.empty = true;
    for (uint32_t j = i + 1; !none && j <= i + windows->longest; j++) {
        const np_window_exec *exec = &windows->execs[j];
        double ways = exec->ways; /* j as k */
        double rest = out * first->end_ns - in * exec->start_ns;
        np_window_left *left = &windows->left[n_filled];
        double there; /* needed at j, without what was released before i */
        if (j > last_k && most + rest <= enough) {
            break;
        }
        inside += begin_inside(windows, i, j) - end_at(windows, i, j, &without);
        there = exec->needed - (exec->covered - inside);
        left->out = there - out * (exec->start_ns - first->end_ns);
        left->in = without - in * (exec->start_ns - first->end_ns);
        left->both = windows->highest.empty ? -INFINITY : windows->highest.first + rest;
        append(&windows->highest, j, there + ways);
        most = exec->needed + ways > most ? exec->needed + ways : most; /* fmax is a call */
        n_filled++;
    }
    return n_filled;
}
