/* detect_windows.c: proposals from what was seen before: grams, and the windows that leave no run of three periods
 * unknown.
 *
 * A window of W >= p keys inside a run of primitive period p recurs at distance p and at none below (Fine and Wilf).
 * Levels W = 96, 128, 192, 256, ... have one with W < 1.5 p for every p >= NP_SHORT. To look up every window on every
 * level would cost a logarithm; so a level enters only the windows that end at multiples of a grid, and every 2p - W
 * events or so looks up as many in a row as the grid is wide: one of them must hit. With grids near the square root of W
 * the costs of the levels fall geometrically.
 *
 *   Let a run of p begin at b. Windows that end in [b + W, ...) lie inside it, and those that end in [b + W + p, ...) do
 *   so a period before too. So looking up the last `grid` windows at any point of [b + W + p + grid - 1, b + 3p] finds
 *   it. These are 2p - W - grid + 2 points; levels are so close together that 2p - W > W / 3, and W / 2 for the powers of
 *   two: the stride is that less the grid.
 *
 * Levels sleep while they have nothing to say, and when they wake they enter what they have missed and still need, the
 * windows that ended in the last W + grid events. A run four times as long as W hides all that level W could find, until
 * it ends. And where a gram was new, no window around it can have been seen before: a level sleeps until its window has
 * left the last new gram behind, so that text that is new costs it nothing. */
#include "trace/detect_state.h"

/* ---------------------------------------------------------------- grams ---- */

/* One in so many grams is entered and looked up, chosen by its hash: what is equal is chosen alike. */
#define GRAM_CHOICE_LOG 3

void np_detector_propose_by_gram(np_detector *d)
{
    uint32_t tag, before;
    d->gram = d->gram * NP_TEXT_BASE + d->keys.items[d->n - 1];
    if (d->n > NP_GRAM) {
        d->gram -= d->gram_power * d->keys.items[d->n - 1 - NP_GRAM];
    }
    if (d->gram >> (64 - GRAM_CHOICE_LOG) || d->n < NP_GRAM) {
        return;
    }
    tag = (uint32_t)(d->gram >> (32 - GRAM_CHOICE_LOG));
    before = np_recall_swap(&d->grams, tag, d->n);
    d->work++;
    if (before == NP_RECALL_NONE) {
        d->fresh = d->n;
        d->n_ripe = 0;
        d->ripe_at = 0;
    } else if (!d->no_grams) {
        np_detector_propose(d, d->n - before);
    }
}

/* ---------------------------------------------------------------- levels ---- */

#define GRID_LOG_MIN 2

/* Lengths 96, 128, 192, 256, ... Grids never shrink from one level to the next. */
void np_detector_init_levels(np_detector *d)
{
    for (uint32_t i = 0; i < NP_LEVELS; i++) {
        np_level *l = &d->levels[i];
        uint32_t k = 6 + (i + 1) / 2; /* the length is 2^k or 1.5 * 2^k */
        l->length = i % 2 ? 1u << k : 3u << (k - 1);
        l->grid_log = (k - 1) / 2;
        l->stride = (1u << (k - 1)) - (1u << l->grid_log);
        l->power = i < 2 ? d->small_powers[l->length] : np_text_mul(l[-2].power, l[-2].power);
    }
    d->wake_windows = NP_LEVELS; /* each of them may enter one that ends at present */
}

/* How many windows a level enters when it wakes. */
static uint32_t wake_windows(const np_level *l)
{
    return (l->length >> l->grid_log) + 1;
}

void np_detector_add_levels(np_detector *d, uint32_t n)
{
    while (d->n_levels < NP_LEVELS && d->levels[d->n_levels].length <= n) {
        d->wake_windows += wake_windows(&d->levels[d->n_levels++]);
    }
}

static uint32_t window_tag(const np_detector *d, const np_level *l, uint32_t end)
{
    const np_point *p = d->points.items;
    uint64_t hash = np_text_sub(p[end].sum, np_text_mul(p[end - l->length].sum, l->power));
    return (uint32_t)(((hash + l->length) * 0x9e3779b97f4a7c15u) >> 32);
}

static void enter_window(np_detector *d, const np_level *l, uint32_t end)
{
    np_recall_swap(&d->windows, window_tag(d, l, end), end);
    d->work++;
}

static void look_up_windows(np_detector *d, np_level *l)
{
    uint32_t grid = 1u << l->grid_log, tried = 0;
    uint32_t first = d->n - l->length + 1 > grid ? d->n - grid + 1 : l->length;
    for (uint32_t end = first; end <= d->n; end++) {
        const np_recall_entry *entry = np_recall_find(&d->windows, window_tag(d, l, end));
        if (entry && entry->at < end && end - entry->at != tried) {
            tried = end - entry->at;
            np_detector_propose(d, tried);
        }
    }
    d->work += d->n - first;
    l->look_at = (uint64_t)(d->n >> l->grid_log << l->grid_log) + l->stride;
}

/* Makes up for what a level has not seen while it slept, as far as it still matters. */
static void wake(np_detector *d, np_level *l)
{
    uint32_t last = (d->n - 1) >> l->grid_log << l->grid_log;
    for (uint32_t i = wake_windows(l) - 1; i > 0; i--) {
        uint32_t back = i << l->grid_log;
        if (last >= l->length && last - l->length >= back) {
            enter_window(d, l, last - back);
        }
    }
    look_up_windows(d, l); /* before `last` is entered, lest that window find itself */
    if (last >= l->length) {
        enter_window(d, l, last);
    }
}

/* Puts levels to sleep that the current answer hides, and wakes those that it no longer hides. */
static void set_hidden(np_detector *d, uint32_t hidden)
{
    while (d->n_hidden > 0 && d->levels[d->n_hidden - 1].length > hidden) {
        if (--d->n_hidden < d->n_ripe) {
            wake(d, &d->levels[d->n_hidden]);
        }
    }
    while (d->n_hidden < NP_LEVELS && d->levels[d->n_hidden].length <= hidden) {
        d->n_hidden++;
    }
    d->hidden_least = d->n_hidden ? d->levels[d->n_hidden - 1].length : 0;
}

/* Wakes levels that a new gram had put to sleep. */
static void set_ripe(np_detector *d)
{
    while (d->n >= d->ripe_at && d->n_ripe < NP_LEVELS) {
        d->ripe_at = (uint64_t)(d->fresh - NP_GRAM) + d->levels[d->n_ripe].length;
        if (d->n >= d->ripe_at) {
            d->n_ripe++;
            if (d->n_ripe > d->n_hidden) {
                wake(d, &d->levels[d->n_ripe - 1]);
            }
        }
    }
}

void np_detector_propose_by_windows(np_detector *d)
{
    uint32_t hidden = d->current == NP_TRACKS_MAX ? 0 : (d->n - d->tracks[d->current].run.begin) / 4;
    uint32_t even = (uint32_t)__builtin_ctz(d->n);
    if (hidden >= d->hidden_least && d->n < d->ripe_at && even < GRID_LOG_MIN) { /* nothing between grid points */
        return;
    }
    set_hidden(d, hidden);
    set_ripe(d);
    for (uint32_t i = d->n_hidden; i < d->n_ripe && d->levels[i].grid_log <= even; i++) {
        if (d->n >= d->levels[i].look_at) {
            look_up_windows(d, &d->levels[i]);
        }
        enter_window(d, &d->levels[i], d->n);
    }
}
