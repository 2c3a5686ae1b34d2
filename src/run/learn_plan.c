/* learn_plan.c: which plan a lesson gets.
 *
 * Every swap costs the program's streams some time, whatever its size: they wait for copies, and are waited for. So swaps
 * of large blocks are tried first, and those of small ones only where that costs less in all. */
#include <math.h>

#include "base/clock.h"
#include "run/study.h"
#include "swap/bound.h"
#include "swap/candidates.h"

enum { LARGE_PART = 1024, LARGE_TIME = 5 }; /* parts of the peak load, and of the time */
enum { COST_TRIALS = 4, RAISE_HALVINGS = 3 };

#define POOL_SHARE 0.5    /* of the time, for the pool where nothing is swapped */
#define LITTLE_COST 0.005 /* of an iteration: good enough */

/* The limit in bytes: as asked for, or what the execs and candidates allow, if that is more. */
static neap_status find_limit(np_study *s)
{
    np_lesson *lesson = s->lesson;
    uint64_t load = lesson->highest_load > s->timeline.peak_load ? lesson->highest_load : s->timeline.peak_load;
    uint64_t limit = lesson->limit ? lesson->limit : (uint64_t)(lesson->limit_share * (double)load);
    np_candidates candidates;
    neap_status status;
    lesson->limit_used = limit;
    if (limit == 0 || s->timeline.n_execs == 0) {
        return NEAP_OK;
    }
    status = np_candidates_find(&s->timeline, NP_SCOPE_PEAK, lesson->min_block, &candidates);
    if (status != NEAP_OK) {
        return status;
    }
    lesson->load_min = candidates.load_min;
    np_candidates_free(&candidates);
    return NEAP_OK;
}

uint64_t np_lesson_arena_limit(const np_lesson *lesson, uint64_t limit)
{
    uint64_t rest = limit > lesson->beside_bytes ? limit - lesson->beside_bytes : 0;
    return rest - rest % lesson->page_bytes;
}

static neap_status plan_once(np_study *s, uint64_t limit)
{
    return s->lesson->has_weights ? np_plan_with_weights(&s->planner, s->lesson->weights, limit, &s->judged)
                                  : np_plan_within_limit(&s->planner, NEAP_SWAP_SEARCH, limit, &s->judged);
}

/* Large blocks are enough, where that is so: a part of the load from which on few are many bytes. 0: they are all large. */
static uint64_t large_block(const np_study *s)
{
    uint64_t large = s->timeline.peak_load / LARGE_PART;
    return s->lesson->has_tolls && !s->lesson->has_weights && large > s->planner.min_block ? large : 0;
}

/* Some of the time for swaps of large blocks alone. *least: what is to be set again. */
static void begin_large(np_study *s, uint64_t large, uint64_t *least, uint64_t *deadline_ns)
{
    uint64_t now = np_clock_ns();
    *least = s->planner.min_block;
    *deadline_ns = s->planner.deadline_ns;
    s->planner.min_block = large;
    s->planner.deadline_ns = now < *deadline_ns ? now + (*deadline_ns - now) / LARGE_TIME : now;
}

static void end_large(np_study *s, uint64_t least, uint64_t deadline_ns)
{
    s->planner.min_block = least;
    s->planner.deadline_ns = deadline_ns;
}

/* By swaps of large blocks, and, where they cost something, of all: the cheaper. */
static neap_status plan_swaps(np_study *s, uint64_t limit)
{
    const neap_memory *memory = s->lesson->memory;
    uint64_t large = large_block(s);
    uint64_t least;
    uint64_t deadline_ns;
    double cost_of_first = 0;
    double cost = 0;
    np_judged first;
    neap_status status;
    if (large == 0) {
        return plan_once(s, limit);
    }
    begin_large(s, large, &least, &deadline_ns);
    status = plan_once(s, limit);
    end_large(s, least, deadline_ns);
    if (status == NEAP_NO_PLAN) {
        return plan_once(s, limit);
    }
    if (status == NEAP_OK) {
        status = np_study_foretell(s, &cost_of_first);
    }
    if (status != NEAP_OK || cost_of_first <= LITTLE_COST) {
        return status;
    }
    first = s->judged;
    s->judged = (np_judged){0};
    status = plan_once(s, limit);
    if (status == NEAP_OK) {
        status = np_study_foretell(s, &cost);
    }
    if (status == NEAP_NO_PLAN || (status == NEAP_OK && cost_of_first <= cost)) {
        np_judged_free(&s->judged, memory);
        s->judged = first;
        return NEAP_OK;
    }
    np_judged_free(&first, memory);
    return status;
}

/* The time for planning begins anew. */
static neap_status plan_again(np_study *s)
{
    s->planner.deadline_ns = np_clock_ns() + (uint64_t)(s->lesson->seconds * 1e9);
    return plan_swaps(s, np_lesson_arena_limit(s->lesson, s->lesson->limit_used));
}

/* `bytes`: for the arena. */
static neap_status plan_at(np_study *s, uint64_t bytes)
{
    s->lesson->limit_used = bytes + s->lesson->beside_bytes;
    return plan_again(s);
}

static uint64_t pages_up(const np_study *s, uint64_t bytes)
{
    return (bytes + s->lesson->page_bytes - 1) / s->lesson->page_bytes * s->lesson->page_bytes;
}

/* There is a plan at `found`, and was none at `missed`: the lowest of a few between them takes its place. */
static neap_status plan_between(np_study *s, uint64_t missed, uint64_t found)
{
    np_judged kept = s->judged;
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < RAISE_HALVINGS && status == NEAP_OK; i++) {
        uint64_t middle;
        found = pages_up(s, kept.place.footprint) < found ? pages_up(s, kept.place.footprint) : found;
        if (found <= missed + 2 * s->lesson->page_bytes) {
            break;
        }
        middle = pages_up(s, missed + (found - missed) / 2);
        s->judged = (np_judged){0};
        status = plan_at(s, middle);
        if (status == NEAP_OK) {
            found = middle;
            np_judged_free(&kept, s->lesson->memory);
            kept = s->judged;
        } else {
            np_judged_free(&s->judged, s->lesson->memory);
        }
        if (status == NEAP_NO_PLAN) {
            missed = middle;
            status = NEAP_OK;
        }
    }
    s->judged = kept;
    s->lesson->limit_used = found + s->lesson->beside_bytes;
    return status;
}

/* The limit is below what swapping reaches: it is raised, to as little as is found to be enough. Not to load_min, which
 * swaps at the peak alone: where blocks leave elsewhere, too, plans are lower, and a stricter limit must not get more memory
 * than a higher one that is held. Above what the search has seen, blocks must find their places again. */
static neap_status plan_above(np_study *s, uint64_t least)
{
    static const double factors[] = {1, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5};
    uint64_t missed = np_lesson_arena_limit(s->lesson, s->lesson->limit_used);
    uint64_t nearest = pages_up(s, s->planner.nearest);
    uint64_t found = 0;
    np_floor floor;
    neap_status status = np_bound_floor(&s->timeline, &floor);
    if (status != NEAP_OK) {
        return status;
    }
    missed = floor.bytes > missed ? floor.bytes : missed;
    status = NEAP_NO_PLAN;
    s->lesson->limit_was_raised = true;
    least = nearest > missed && nearest < least ? nearest : least;
    for (size_t i = 0; i < sizeof factors / sizeof *factors && status == NEAP_NO_PLAN; i++) {
        missed = found > missed ? found : missed;
        found = pages_up(s, (uint64_t)(factors[i] * (double)least));
        status = plan_at(s, found);
    }
    return status == NEAP_OK ? plan_between(s, missed, found) : status;
}

/* Within the limit if that can be; otherwise with a smaller margin (learn.c), and by swapping smaller blocks too; otherwise,
 * where the limit is below load_min, or it is not for the program to be told that there is none, above it. */
static neap_status plan_within(np_study *s)
{
    np_lesson *lesson = s->lesson;
    uint64_t limit = np_lesson_arena_limit(lesson, lesson->limit_used);
    bool is_low = lesson->load_min > limit;
    neap_status status = is_low && s->margin > 0 ? NEAP_NO_PLAN : plan_swaps(s, limit);
    if (status == NEAP_NO_PLAN && s->margin > 0) {
        return status; /* with a smaller one, perhaps */
    }
    if (status == NEAP_NO_PLAN && s->planner.min_block > lesson->page_bytes) {
        s->planner.min_block = lesson->page_bytes;
        status = plan_again(s);
    }
    if (status == NEAP_NO_PLAN && !lesson->is_held && (is_low ? !lesson->is_replan : lesson->may_raise)) {
        status = plan_above(s, is_low ? lesson->load_min : np_lesson_arena_limit(lesson, lesson->limit_used));
    }
    return status;
}

static void tell(const np_lesson *lesson, np_phase phase)
{
    if (lesson->phase) {
        atomic_store(lesson->phase, (int)phase);
    }
}

/* Two iterations, but not less than a search can make something of. */
static double quick_seconds(const np_study *s)
{
    double two = 2e-9 * s->timeline.period_ns;
    return fmin(fmax(two, 0.05), s->lesson->seconds * POOL_SHARE);
}

/* What is allowed to swaps, of the iteration that is planned: less than was asked for, where looking costs something. */
static double allowed(const np_study *s)
{
    double period_ns = s->timeline.period_ns;
    double rested_ns = s->lesson->rested_ns;
    return rested_ns > 0 && rested_ns < period_ns ? (1 + s->lesson->overhead) * rested_ns / period_ns - 1
                                                  : s->lesson->overhead;
}

/* What a plan costs, by what is simulated. */
static double simulated_cost(const np_study *s, const np_judged *judged)
{
    const np_simulation *simulation = &judged->simulation;
    double bytes = (double)simulation->bytes_out + (double)simulation->bytes_in;
    return simulation->overhead + np_toll_ns(&s->toll, bytes, judged->swaps.n) / s->timeline.period_ns;
}

/* The better of two at a cost: the lower one that keeps to it, else the cheaper. */
static bool is_better_at_cost(const np_study *s, const np_judged *a, const np_judged *b)
{
    double cost_a = simulated_cost(s, a);
    double cost_b = simulated_cost(s, b);
    bool both = cost_a <= allowed(s) && cost_b <= allowed(s);
    return both ? a->place.footprint < b->place.footprint : cost_a < cost_b;
}

/* By swaps of large blocks alone, and of all. */
static neap_status find_lowest(np_study *s, np_judged *best)
{
    uint64_t large = large_block(s);
    uint64_t lowest_peak;
    uint64_t least;
    uint64_t deadline_ns;
    np_judged other = {0};
    neap_status status;
    if (large == 0) {
        return np_plan_without_overhead(&s->planner, allowed(s), best, &lowest_peak);
    }
    begin_large(s, large, &least, &deadline_ns);
    status = np_plan_without_overhead(&s->planner, allowed(s) / 2, best, &lowest_peak);
    end_large(s, least, deadline_ns);
    if (status == NEAP_OK) {
        status = np_plan_without_overhead(&s->planner, allowed(s) / 2, &other, &lowest_peak);
    }
    if (status == NEAP_OK && is_better_at_cost(s, &other, best)) {
        np_judged_exchange(best, &other);
    }
    np_judged_free(&other, s->lesson->memory);
    return status;
}

/* s->judged costs no more than was allowed? */
static neap_status is_cheap(const np_study *s, bool *cheap)
{
    double cost = 0;
    neap_status status = np_study_foretell(s, &cost);
    *cheap = status == NEAP_OK && cost <= allowed(s);
    return status;
}

/* Where the lowest costs more than what was simulated, limits between it and `held`, which costs nothing, are tried. The
 * lowest that does not is s->judged then; `held` is freed. */
static neap_status raise_to_cost(np_study *s, np_judged *held)
{
    uint64_t low = s->judged.place.footprint;
    uint64_t high = held->place.footprint;
    bool cheap = false;
    neap_status status = is_cheap(s, &cheap);
    if (status == NEAP_OK && cheap) {
        np_judged_exchange(&s->judged, held);
    }
    for (int i = 0; i < COST_TRIALS && !cheap && status == NEAP_OK; i++) {
        uint64_t middle = low + (high - low) / 2;
        bool fits = false;
        s->planner.deadline_ns = np_clock_ns() + (uint64_t)(s->lesson->seconds / COST_TRIALS * 1e9);
        status = plan_swaps(s, middle);
        if (status == NEAP_OK) {
            status = is_cheap(s, &fits);
        }
        status = status == NEAP_NO_PLAN ? NEAP_OK : status;
        if (fits) {
            np_judged_exchange(&s->judged, held);
        }
        *(fits ? &high : &low) = middle;
    }
    np_judged_exchange(&s->judged, held);
    np_judged_free(held, s->lesson->memory);
    return status;
}

/* The lowest footprint at the cost that was allowed, and that is the limit from then on. Where looking alone costs more,
 * nothing is swapped. */
static neap_status plan_at_cost(np_study *s)
{
    np_judged best = {0};
    neap_status status = allowed(s) > 0 ? find_lowest(s, &best) : NEAP_NO_PLAN;
    if (status == NEAP_OK && best.place.footprint < s->judged.place.footprint) {
        np_judged_exchange(&s->judged, &best);
        status = raise_to_cost(s, &best);
        if (status == NEAP_OK && s->judged.swaps.n > 0) {
            s->lesson->limit_used = s->judged.place.footprint + s->lesson->beside_bytes;
        }
    } else { /* there may be something of it, whatever the status */
        np_judged_free(&best, s->lesson->memory);
    }
    return status == NEAP_NO_PLAN ? NEAP_OK : status;
}

/* No place for all blocks can be within the limit: the time is better spent on swaps. */
static bool must_swap(const np_study *s)
{
    const np_lesson *lesson = s->lesson;
    return !lesson->is_quick && lesson->overhead <= 0 && lesson->limit_used != 0 && s->timeline.n_execs > 0 &&
           np_lesson_arena_limit(lesson, lesson->limit_used) < s->timeline.peak_load;
}

neap_status np_study_plan(np_study *s)
{
    np_lesson *lesson = s->lesson;
    neap_status status = find_limit(s);
    bool swaps = status == NEAP_OK && must_swap(s);
    if (status == NEAP_OK && !swaps) {
        status =
            np_plan_pool(&s->planner, lesson->is_quick ? quick_seconds(s) : lesson->seconds * POOL_SHARE, &s->judged);
    }
    if (status == NEAP_OK && lesson->is_quick &&
        (lesson->limit == 0 || s->judged.place.footprint <= np_lesson_arena_limit(lesson, lesson->limit))) {
        return NEAP_OK;
    }
    lesson->is_quick = false;
    if (status == NEAP_OK && lesson->overhead > 0 && s->timeline.n_execs > 0) {
        return plan_at_cost(s);
    }
    swaps |= lesson->limit_used != 0 && s->timeline.n_execs > 0 &&
             s->judged.place.footprint > np_lesson_arena_limit(lesson, lesson->limit_used);
    if (status == NEAP_OK && swaps) {
        status = plan_within(s);
    }
    tell(lesson, NP_PHASE_PLACES);
    return status;
}
