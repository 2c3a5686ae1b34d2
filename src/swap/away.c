#include "swap/away.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "swap/vacate.h"

enum { PLACE_STEPS = 12, BEGIN_ROUNDS = 4, SETTLE_ROUNDS = 4, FIRST_SHARE = 4, MAX_SWEEPS = 16 };

#define GAIN 1e-6 /* of an iteration: less is not worth a change */

typedef struct going {
    np_planner *planner;
    uint64_t limit;
    uint64_t deadline_ns;
    np_judged *best;
    np_judged trial;
    np_rng rng;
} going;

static bool is_late(const going *g)
{
    return np_clock_ns() > g->deadline_ns || np_planner_is_late(g->planner);
}

/* ---- judging ---- */

static neap_status simulate(going *g)
{
    g->trial.limit = g->limit;
    return np_simulate(g->planner->simulator, g->limit, g->trial.swaps.items, (uint32_t)g->trial.swaps.n,
                       &g->trial.simulation);
}

static neap_status place_near(going *g, const np_layout *near, uint32_t n_steps, bool *fits)
{
    np_place_options options = np_planner_place_options(g->planner, 0, g->limit);
    uint64_t excess = 0;
    neap_status status;
    options.seed = np_rng_next(&g->rng);
    np_layout_free(&g->trial.layout);
    status =
        np_place_near(g->planner->timeline, g->planner->simulator, g->trial.swaps.items, (uint32_t)g->trial.swaps.n,
                      &options, near, n_steps, g->planner->error, &g->trial.place, &g->trial.layout, &excess);
    *fits = status == NEAP_OK && excess == 0;
    return status;
}

/* The trial takes the best one's place where it fits and costs `gain` less. */
static neap_status judge(going *g, double gain, const np_layout *near, bool *kept)
{
    neap_status status = simulate(g);
    *kept = false;
    if (status == NEAP_OK && g->trial.simulation.possible &&
        g->trial.simulation.overhead <= g->best->simulation.overhead - gain) {
        status = place_near(g, near, PLACE_STEPS, kept);
    }
    if (*kept) {
        np_judged_exchange(g->best, &g->trial);
    }
    return status;
}

/* ---- staying ---- */

/* What the best one's layout does not ask for stays. First as much as that is; then with a page of each block that would
 * not leave any more. */
static neap_status settle_once(going *g, bool *kept)
{
    np_vacate_options options = {.page = g->planner->page, .held = g->planner->held, .homes = g->planner->homes};
    neap_status status = NEAP_OK;
    *kept = false;
    for (int i = 0; i < 2 && status == NEAP_OK && !*kept; i++) {
        options.keeps_views = i > 0;
        status = np_vacate(g->planner->timeline, &options, g->best->swaps.items, &g->best->layout, &g->trial.swaps);
        if (status == NEAP_OK) {
            status = judge(g, 0, &g->best->layout, kept);
        }
    }
    return status;
}

static neap_status settle(going *g)
{
    bool kept = true;
    neap_status status = NEAP_OK;
    for (int i = 0; i < SETTLE_ROUNDS && kept && status == NEAP_OK; i++) {
        double before = g->best->simulation.overhead;
        status = settle_once(g, &kept);
        kept = kept && g->best->simulation.overhead < before - GAIN;
    }
    return status;
}

/* ---- leaving out ---- */

typedef struct costly {
    double ns; /* that execs wait for it, if for nothing else, about */
    uint32_t gap;
} costly;

static int compare_costly(const void *left, const void *right)
{
    const costly *a = left;
    const costly *b = right;
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return a->gap < b->gap ? -1 : a->gap > b->gap;
}

/* What is not hidden of its copies; of those that are, their length counts a little. */
static double cost_of(const going *g, const np_swap *swap)
{
    const np_timeline *timeline = g->planner->timeline;
    const np_gap *gap = &timeline->gaps.items[swap->gap];
    double out_ns = gap->release_ns > -INFINITY ? (double)swap->bytes / g->planner->link.out : 0;
    double in_ns = (double)swap->bytes / g->planner->link.in;
    double out_room = swap->out_before > 0 ? np_timeline_start(timeline, swap->out_before) - gap->release_ns : INFINITY;
    double in_room = gap->due_ns - np_timeline_end(timeline, swap->in_after);
    return fmax(out_ns - out_room, 0) + fmax(in_ns - in_room, 0) + 0.1 * (out_ns + in_ns);
}

static uint32_t list_costly(going *g, costly *list)
{
    uint32_t n = (uint32_t)g->best->swaps.n;
    for (uint32_t i = 0; i < n; i++) {
        const np_swap *swap = &g->best->swaps.items[i];
        list[i] = (costly){cost_of(g, swap) * (0.75 + 0.5 * np_rng_unit(&g->rng)), swap->gap};
    }
    qsort(list, n, sizeof *list, compare_costly);
    return n;
}

static bool is_listed(const costly *list, uint32_t n, uint32_t gap)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].gap == gap) {
            return true;
        }
    }
    return false;
}

/* Without the swaps of some gaps, or with half of each. */
static neap_status try_less(going *g, const costly *list, uint32_t n, bool halves, bool *kept)
{
    const np_swap_array *from = &g->best->swaps;
    uint64_t page = g->planner->page;
    neap_status status = np_array_reserve(g->planner->timeline->memory, &g->trial.swaps, from->n + 1);
    size_t n_less = 0;
    *kept = false;
    if (status != NEAP_OK) {
        return status;
    }
    g->trial.swaps.n = 0;
    for (size_t i = 0; i < from->n; i++) {
        np_swap swap = from->items[i];
        if (is_listed(list, n, swap.gap)) {
            n_less++;
            swap.bytes = halves ? swap.bytes / 2 / page * page : 0;
        }
        if (swap.bytes > 0) {
            g->trial.swaps.items[g->trial.swaps.n++] = swap;
        }
    }
    return n_less > 0 ? judge(g, GAIN, &g->best->layout, kept) : NEAP_OK;
}

/* How little of its gap is left once it is copied out and in: what is left out before anything else. */
static void list_by_haste(going *g, costly *list)
{
    const np_timeline *timeline = g->planner->timeline;
    for (size_t i = 0; i < g->best->swaps.n; i++) {
        const np_swap *swap = &g->best->swaps.items[i];
        const np_gap *gap = &timeline->gaps.items[swap->gap];
        double copies_ns = (double)swap->bytes / g->planner->link.out + (double)swap->bytes / g->planner->link.in;
        double length_ns = gap->due_ns - np_timeline_end(timeline, gap->from);
        list[i] = (costly){copies_ns / length_ns * (0.75 + 0.5 * np_rng_unit(&g->rng)), swap->gap};
    }
    qsort(list, g->best->swaps.n, sizeof *list, compare_costly);
}

/* As many of the most hasty as can be, by halving. */
static neap_status leave_out_hasty(going *g, costly *list)
{
    uint32_t n = (uint32_t)g->best->swaps.n;
    uint32_t n_out = 0;
    neap_status status = NEAP_OK;
    list_by_haste(g, list);
    for (uint32_t step = n / 2; step > 0 && status == NEAP_OK && !is_late(g); step /= 2) {
        bool kept;
        status = try_less(g, list, n_out + step, false, &kept);
        n_out += kept ? step : 0;
    }
    return status;
}

/* So many at a time, those that cost most first. */
static neap_status sweep(going *g, uint32_t n_each, costly *list, bool *any)
{
    uint32_t n = list_costly(g, list);
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < n && status == NEAP_OK && !is_late(g); i += n_each) {
        uint32_t n_now = n - i < n_each ? n - i : n_each;
        bool kept = false;
        status = try_less(g, &list[i], n_now, false, &kept);
        if (status == NEAP_OK && !kept) {
            status = try_less(g, &list[i], n_now, true, &kept);
        }
        if (status == NEAP_OK && kept) {
            *any = true;
            status = settle(g);
        }
    }
    return status;
}

static neap_status improve(going *g)
{
    const neap_memory *memory = g->planner->timeline->memory;
    size_t n_list = g->best->swaps.n + 1; /* there are never more */
    costly *list = np_memory_alloc(memory, n_list, sizeof *list);
    uint32_t n_each;
    bool any = true;
    neap_status status = list ? leave_out_hasty(g, list) : NEAP_NO_MEMORY;
    if (status == NEAP_OK) {
        status = settle(g);
    }
    n_each = (uint32_t)g->best->swaps.n / FIRST_SHARE + 1;
    for (int i = 0; i < MAX_SWEEPS && (any || n_each > 1) && status == NEAP_OK && !is_late(g); i++) {
        any = false;
        status = sweep(g, n_each, list, &any);
        n_each = n_each > 1 ? n_each / 2 : 1;
    }
    np_memory_free(memory, list, n_list, sizeof *list);
    return status;
}

/* ---- from the outside ---- */

/* Every gap, whole, from the exec after it begins to the one before it ends. */
static neap_status list_all(const np_planner *planner, np_swap_array *swaps)
{
    const np_timeline *timeline = planner->timeline;
    neap_status status = NEAP_OK;
    swaps->n = 0;
    for (uint32_t i = 0; i < timeline->gaps.n && status == NEAP_OK; i++) {
        const np_gap *gap = &timeline->gaps.items[i];
        np_swap swap = {.bytes = gap->bytes, .gap = i, .in_after = gap->to - 1, .out_before = gap->from + 1};
        swap.out_key = gap->release_ns > -INFINITY ? gap->release_ns : np_timeline_end(timeline, gap->from);
        swap.in_key = np_timeline_end(timeline, gap->to - 1);
        if (gap->bytes >= planner->min_block) {
            status = np_array_push(timeline->memory, swaps, swap);
        }
    }
    return status;
}

/* From where the trial stands, once, and again and again while there is time. */
static neap_status place_nearer(going *g, bool *fits)
{
    neap_status status = NEAP_OK;
    for (int i = 0; i < BEGIN_ROUNDS && status == NEAP_OK && !*fits && (i == 0 || !is_late(g)); i++) {
        np_layout near = g->trial.layout;
        g->trial.layout = (np_layout){0};
        status = place_near(g, &near, PLACE_STEPS, fits);
        np_layout_free(&near);
    }
    return status;
}

/* What does not fit is told all the same: swapping goes as low as that, or lower. */
static neap_status note_nearest(going *g, double seconds)
{
    neap_status status = NEAP_OK;
    if (!g->trial.simulation.possible) { /* not even by its load */
        status = np_planner_judge(g->planner, UINT64_MAX, seconds, 0, &g->trial);
    }
    if (status == NEAP_OK) {
        np_planner_note_nearest(g->planner, g->trial.place.footprint);
    }
    return status;
}

neap_status np_away_begin(np_planner *planner, uint64_t limit, double seconds, np_judged *best, bool *fits)
{
    going g = {.planner = planner,
               .limit = limit,
               .deadline_ns = planner->deadline_ns,
               .best = best,
               .rng = np_rng_make(planner->seed)};
    neap_status status = list_all(planner, &g.trial.swaps);
    *fits = false;
    if (status == NEAP_OK) {
        status = np_planner_judge(planner, limit, seconds, limit, &g.trial);
    }
    if (status == NEAP_OK && g.trial.simulation.possible) {
        *fits = g.trial.place.footprint <= limit;
        status = place_nearer(&g, fits);
    }
    if (status == NEAP_OK && *fits) {
        np_judged_exchange(best, &g.trial);
    } else if (status == NEAP_OK) {
        status = note_nearest(&g, seconds);
    }
    np_judged_free(&g.trial, planner->timeline->memory);
    return status;
}

neap_status np_away_improve(np_planner *planner, uint64_t limit, uint64_t deadline_ns, uint64_t seed, np_judged *best)
{
    going g = {.planner = planner, .limit = limit, .best = best, .deadline_ns = deadline_ns, .rng = np_rng_make(seed)};
    neap_status status = improve(&g);
    np_judged_free(&g.trial, planner->timeline->memory);
    return status;
}
