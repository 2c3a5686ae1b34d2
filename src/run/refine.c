#include "run/refine.h"

#include <math.h>
#include <string.h>

#include "base/real.h"
#include "run/manager.h"
#include "trace/copy.h"

enum { LAPS_MEASURED = 6, N_SCORES = 4, PATIENCE = 4 };

#define WORTHWHILE 0.01 /* of an iteration: below that there is nothing to be won */

static void drop(neap_device *m, np_pattern **pattern)
{
    if (*pattern) {
        np_pattern_drop(m, *pattern);
        *pattern = NULL;
    }
}

/* `measured` stays where it is, in the list. */
static void end(neap_device *m)
{
    np_refine *refine = &m->refine;
    np_pattern *retired = refine->retired;
    drop(m, &refine->best);
    drop(m, &refine->next);
    if (refine->measured && !refine->measured->trace) { /* the one that stays may have to be planned anew */
        refine->measured->trace = refine->trace;
        refine->measured->is_disturbed = refine->is_disturbed;
        refine->trace = NULL;
    }
    neap_trace_free(refine->trace);
    if (refine->process.memory) {
        np_gaussian_free(&refine->process);
    }
    *refine = (np_refine){.retired = retired};
}

static void replace(neap_device *m, const np_pattern *old, np_pattern *pattern)
{
    for (size_t i = 0; i < m->patterns.n; i++) {
        m->patterns.items[i] = m->patterns.items[i] == old ? pattern : m->patterns.items[i];
    }
}

/* Ends refining with the best so far in the list. The one measured is not followed, and nothing of it is live. */
static void end_with_best(neap_device *m)
{
    np_refine *refine = &m->refine;
    if (refine->best) {
        replace(m, refine->measured, refine->best);
        drop(m, &refine->measured);
        refine->best = NULL;
    }
    end(m);
}

void np_refine_forget(neap_device *m, const np_pattern *pattern)
{
    if (m->refine.measured == pattern) {
        end(m);
    }
}

void np_refine_free(neap_device *m)
{
    end_with_best(m);
    drop(m, &m->refine.retired);
}

static bool is_worthwhile(const neap_device *m, const np_pattern *pattern)
{
    return pattern->trace && !pattern->was_refined && !pattern->is_outdated && pattern->program.swaps.n > 0 &&
           m->options.refinements > 0 && pattern->laps_ns.n >= LAPS_MEASURED &&
           (!m->is_beneath || pattern->quiet_ns > 0);
}

/* The pattern keeps its own copy: it may have to be planned anew. */
static void begin(neap_device *m, np_pattern *pattern)
{
    np_gaussian process = {0};
    neap_trace *trace = NULL;
    if (np_trace_copy(pattern->trace, m->memory, &trace) != NEAP_OK) {
        return;
    }
    if (np_gaussian_init(&process, m->options.refinements + 1, m->memory) == NEAP_OK) {
        np_pattern *retired = m->refine.retired;
        m->refine = (np_refine){.measured = pattern,
                                .retired = retired,
                                .trace = trace,
                                .is_disturbed = pattern->is_disturbed,
                                .process = process,
                                .rng = np_rng_make(m->options.seed)};
        pattern->was_refined = true;
    } else {
        neap_trace_free(trace);
    }
}

/* The weights to try next: each score alone, then where the process expects most. */
static void choose_weights(np_refine *refine)
{
    size_t n = refine->process.n;
    np_point point = {{0}};
    if (n < N_SCORES) {
        point.x[n] = 1;
    } else {
        np_gaussian_fit(&refine->process);
        point = np_gaussian_propose(&refine->process, &refine->rng);
    }
    memcpy(refine->weights, point.x, sizeof refine->weights);
}

static void ask(neap_device *m)
{
    np_refine *refine = &m->refine;
    np_plan_wish wish = {.is_disturbed = refine->is_disturbed, .is_refinement = true, .is_replan = true};
    np_u32_array doubted = {0};
    if (np_trace_copy(refine->trace, m->memory, &wish.trace) != NEAP_OK) { /* what is kept may be asked for meanwhile */
        end(m);
        return;
    }
    refine->n_tried++;
    refine->has_weights = refine->n_tried % 2 == 1;
    wish.seed = m->options.seed + refine->n_tried;
    wish.lap_ns = refine->measured->quiet_ns;
    if (refine->has_weights) {
        choose_weights(refine);
        wish.weights = refine->weights;
    }
    refine->is_asked = true;
    if (np_beneath_list_doubted(m, refine->measured, &doubted) == NEAP_OK) {
        wish.doubted = doubted.items;
        wish.n_doubted = (uint32_t)doubted.n;
        wish.doubts = refine->measured->doubts.items;
        wish.n_doubts = refine->measured->doubts.n;
        wish.unseen_of = refine->measured;
        wish.forks = &refine->measured->forks;
    }
    if (!np_ask_for_plan(m, &wish)) {
        end(m);
    }
    np_array_free(m->memory, &doubted);
}

/* What came of the weights tried last. */
static void note_weights(np_refine *refine, double ns)
{
    np_point point;
    memcpy(point.x, refine->weights, sizeof point.x);
    (void)np_gaussian_add(&refine->process, np_gaussian_direction(point), ns);
    refine->has_weights = false;
}

/* Beneath a program of somebody else a trial costs them time: one that is no faster on paper than the best was is not
 * tried. (What was measured may be long because the program paused.) */
static bool is_promising(const np_refine *refine, const np_pattern *pattern)
{
    const np_program *best = refine->best ? &refine->best->program : &refine->measured->program;
    return pattern->program.period_ns * (1 + pattern->program.overhead) < best->period_ns * (1 + best->overhead);
}

/* Programs of somebody else pause, for reasons of their own. */
static double lap_ns(const neap_device *m, const np_pattern *pattern)
{
    return m->is_beneath ? np_pattern_quiet_lap_ns(pattern) : np_pattern_lap_ns(pattern);
}

void np_refine_take(neap_device *m, np_pattern *pattern)
{
    np_refine *refine = &m->refine;
    bool is_wanted = refine->measured && pattern && pattern->hash == refine->measured->hash &&
                     (!m->is_beneath || is_promising(refine, pattern));
    refine->is_asked = false;
    refine->n_vain = is_wanted ? 0 : refine->n_vain + 1;
    if (is_wanted) {
        pattern->was_refined = true;
        refine->next = pattern;
        return;
    }
    if (pattern) {
        np_pattern_drop(m, pattern);
    }
    if (refine->measured && refine->has_weights) { /* no better than the worst */
        note_weights(refine, refine->worst_ns);
    }
}

/* What the laps of the plan at hand tell. */
static void judge(neap_device *m)
{
    np_refine *refine = &m->refine;
    double ns = lap_ns(m, refine->measured);
    if (refine->has_weights) {
        note_weights(refine, ns);
    }
    refine->worst_ns = ns > refine->worst_ns ? ns : refine->worst_ns;
    if (refine->best_ns == 0 || ns < refine->best_ns) {
        refine->best_ns = ns;
        drop(m, &refine->best);
    }
}

bool np_refine_wants_switch(const neap_device *m)
{
    const np_refine *refine = &m->refine;
    return refine->next && refine->measured == m->pattern && !refine->retired;
}

np_pattern *np_refine_switch(neap_device *m)
{
    np_refine *refine = &m->refine;
    np_pattern *old = refine->measured;
    np_pattern *next = refine->next;
    replace(m, old, next);
    refine->next = NULL;
    refine->measured = next;
    if (refine->best || refine->is_ending) { /* the old one is not the best */
        refine->retired = old;
    } else {
        refine->best = old;
    }
    next->laps_ns.n = 0;
    if (refine->is_ending) {
        end(m);
    }
    return next;
}

void np_refine_undo(neap_device *m, np_pattern *next)
{
    np_refine *refine = &m->refine;
    np_pattern *old = m->pattern;
    replace(m, next, old);
    refine->best = refine->best == old ? NULL : refine->best;
    refine->retired = refine->retired == old ? NULL : refine->retired;
    if (refine->measured) {
        refine->measured = old;
    }
    if (refine->measured && refine->has_weights) {
        note_weights(refine, refine->worst_ns);
    }
    np_pattern_drop(m, next);
}

void np_refine_lap(neap_device *m)
{
    np_refine *refine = &m->refine;
    np_pattern *pattern = m->pattern;
    if (refine->retired != pattern) {
        drop(m, &refine->retired);
    }
    if (refine->measured && refine->measured != pattern && refine->measured->n_live == 0 &&
        np_history_age(&m->history, refine->measured->hash) == NP_HISTORY) { /* the program has changed for good */
        end_with_best(m);
    }
    if (!refine->measured && is_worthwhile(m, pattern)) {
        begin(m, pattern);
    }
    if (refine->measured != pattern || pattern->laps_ns.n < LAPS_MEASURED || refine->is_asked || refine->next ||
        (m->is_beneath && np_unknown_waits(m)) || atomic_load(&m->learner.is_busy)) {
        return;
    }
    judge(m);
    if (refine->n_tried < m->options.refinements && refine->n_vain < PATIENCE &&
        refine->best_ns > pattern->program.period_ns * (1 + WORTHWHILE)) {
        ask(m);
    } else {
        m->is_saved &= refine->n_tried == 0;
        np_log(m, NEAP_LOG_INFO, "refined in %u trials: %s ms an iteration", refine->n_tried,
               np_real_fixed(refine->best_ns * 1e-6, 3).text);
        if (refine->best) { /* back to the fastest */
            refine->next = refine->best;
            refine->best = NULL;
            refine->is_ending = true;
        } else {
            end(m);
        }
    }
}
