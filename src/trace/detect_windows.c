/* detect_windows.c: proposals that leave no run of three periods unknown.
 *
 * A window of W >= p keys inside a run of primitive period p recurs at distance p and at none below (Fine and Wilf).
 * Levels W = 64, 96, 128, 192, ... have one with W < 1.5 p for every p. To look up every window on every level would
 * cost a logarithm; so a level enters only the windows that end at multiples of a grid, and every W/4 events or so looks
 * up as many in a row as the grid is wide: one of them must hit. With grids near the square root of W the costs of the
 * levels fall geometrically. W + W/4 + grid < 2p, so a run is found before the end of its third period.
 *
 * Levels sleep while they have nothing to say: a run four times as long as W hides all that level W could find, until it
 * ends and the level catches up; and where a gram was new, no window around it can have been seen before. */
#include "trace/detect_state.h"

typedef struct level {
    uint32_t length;   /* of its windows */
    uint32_t grid_log; /* windows that end at multiples of 2^grid_log are entered */
    uint32_t stride;   /* at multiples of it 2^grid_log windows are looked up */
} level;

#define GRID_LOG_MIN 3

/* 64, 96, 128, 192, ... Grids never shrink from one level to the next. */
static level level_at(uint32_t index)
{
    uint32_t k = 6 + index / 2; /* length is 2^k or 1.5 * 2^k */
    return (level){index % 2 ? 3u << (k - 1) : 1u << k, k < 8 ? k - 3 : 5 + (k - 8) / 2, 1u << (k - 2)};
}

static uint32_t window_tag(const np_detector *d, uint32_t end, uint32_t length, uint64_t power)
{
    const np_point *p = d->points.items;
    uint64_t hash = np_text_sub(p[end].sum, np_text_mul(p[end - length].sum, power));
    return (uint32_t)(((hash + length) * 0x9e3779b97f4a7c15u) >> 32);
}

/* Windows are entered a little later than they end where the table is large, so that its memory is near by then. */
static void enter_pending(np_detector *d)
{
    for (uint32_t i = 0; i < d->n_pending; i++) {
        np_recall_swap(&d->windows, d->pending[i].tag, d->pending[i].at);
    }
    d->work += d->n_pending;
    d->n_pending = 0;
}

static void look_up_windows(np_detector *d, level l)
{
    uint32_t grid = 1u << l.grid_log;
    uint32_t first = d->n - l.length + 1 > grid ? d->n - grid + 1 : l.length;
    uint64_t power = np_text_power(d, l.length);
    if (d->n - d->fresh < l.length - NP_GRAM) {
        return;
    }
    for (uint32_t end = first; end <= d->n; end++) {
        uint32_t before = np_recall_find(&d->windows, window_tag(d, end, l.length, power))->at;
        if (before < end) {
            np_detector_propose(d, end - before);
        }
    }
    d->work += d->n - first;
}

/* How many windows a level enters when it wakes: those of the last two lengths. */
static uint32_t wake_windows(level l)
{
    return 2 * (l.length >> l.grid_log);
}

/* Makes up for what a level has not seen while it slept, as far as it still matters. */
static void wake(np_detector *d, level l)
{
    uint32_t last = (d->n - 1) >> l.grid_log << l.grid_log;
    uint64_t power = np_text_power(d, l.length);
    for (uint32_t i = wake_windows(l) - 1; i > 0; i--) {
        uint32_t back = i << l.grid_log;
        if (last >= l.length && last - l.length >= back) {
            np_recall_swap(&d->windows, window_tag(d, last - back, l.length, power), last - back);
        }
    }
    look_up_windows(d, l); /* before `last` is entered, lest that window find itself */
    np_recall_swap(&d->windows, window_tag(d, last, l.length, power), last);
    d->wake_windows -= wake_windows(l);
    d->work += wake_windows(l);
}

/* Puts levels to sleep that the current answer hides, and wakes those that it no longer hides. */
static void set_asleep(np_detector *d, uint32_t hidden)
{
    while (d->asleep > 0 && level_at(d->asleep - 1).length > hidden) {
        wake(d, level_at(--d->asleep));
    }
    while (d->asleep < NP_LEVELS && level_at(d->asleep).length <= hidden) {
        d->wake_windows += wake_windows(level_at(d->asleep++));
    }
    d->wake_below = d->asleep ? level_at(d->asleep - 1).length : 0;
}

void np_detector_propose_by_windows(np_detector *d)
{
    uint32_t hidden = d->current == NP_TRACKS_MAX ? 0 : (d->n - d->tracks[d->current].run.begin) / 4;
    uint32_t even = (uint32_t)__builtin_ctz(d->n);
    if (hidden >= d->wake_below && even < GRID_LOG_MIN) { /* between grid points there is nothing to do */
        return;
    }
    enter_pending(d);
    set_asleep(d, hidden);
    for (uint32_t i = d->asleep; i < NP_LEVELS && even >= GRID_LOG_MIN; i++) {
        level l = level_at(i);
        if (l.grid_log > even || l.length > d->n) {
            break;
        }
        if (d->n % l.stride == 0) {
            look_up_windows(d, l);
        }
        d->pending[d->n_pending] = (np_recall_entry){window_tag(d, d->n, l.length, np_text_power(d, l.length)), d->n};
        np_recall_prefetch(&d->windows, d->pending[d->n_pending++].tag);
    }
}
