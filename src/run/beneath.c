/* beneath.c: what a program needs that gives its work to the driver by itself, and does not know of neap.
 *
 * Its work is seen, not told: the uses of a kernel are the addresses among its parameters. That can be too much (stale words)
 * and, where sight is lost, too little. So everything can be brought home at once; blocks that others hold by ways of
 * their own are fixed; and where a block was used while a plan had it away, the plan is made anew, with that use in it. */
#include <string.h>

#include "base/clock.h"
#include "base/real.h"
#include "run/manager.h"
#include "trace/copy.h"

enum {
    ENTERED_OFTEN = 16,     /* other kinds of iterations come in between: its execs are not timed on the plan */
    MANY_DOUBTS = 6,        /* uses of one block: it is not swapped any more */
    DOUBTED_KEPT = 1 << 12, /* blocks: those of the last iterations are among them */
};

#define GOOD_ENOUGH 1.002 /* of the load: no better plan is looked for */

void np_beneath_begin(neap_device *m, uint32_t margin, double overhead)
{
    m->overhead = overhead;
    m->is_beneath = true;
    m->recorder.has_price = true;
    m->margin = margin;
    m->packing = m->options.limit > 0                         ? NP_PACK_NONE
                 : m->options.limit_share > 0 || overhead > 0 ? NP_PACK_ROWS
                                                              : NP_PACK_ALL;
    np_visit_begin(m);
    if (m->pages.n_held == 0) { /* there is room for measuring: later there may be none */
        neap_link link;
        (void)np_find_link(m, &link);
    }
    if (m->stats.n_events == 0) { /* those that are there were not made for this */
        while (m->patterns.n > 0) {
            np_pattern_drop(m, m->patterns.items[--m->patterns.n]);
        }
        m->stats.plan_was_loaded = m->is_saved = false;
        np_limit_begin(m);
        np_plans_load(m);
    }
}

neap_status np_beneath_home(neap_device *m, const char *why)
{
    uint32_t limit_pages = m->limit_pages;
    neap_status status = NEAP_OK;
    if (m->state == NEAP_STATE_RUN) {
        np_leave(m, NEAP_DEPARTURE_BLIND, why);
    }
    m->limit_pages = UINT32_MAX; /* while it lasts: better too much memory than a wrong byte */
    m->pin++;                    /* none of them leaves for another */
    for (neap_block *block = m->live; block; block = block->next) {
        block->pinned_by = m->pin;
    }
    for (int flat = 1; flat >= 0; flat--) {
        for (neap_block *block = m->live; block && status == NEAP_OK; block = block->next) {
            if ((block->kind == NP_BLOCK_FLAT) == (flat == 1)) {
                status = np_block_return(m, block);
            }
        }
    }
    for (neap_block *block = m->live; block; block = block->next) {
        block->clean.n_writes++; /* whatever everything is home for may write to it: what the host has is of the past */
    }
    m->limit_pages = limit_pages;
    return status;
}

/* ---- what stays ---- */

/* None of its pages is the arena's, and none another block's. */
static bool has_own_pages(const neap_device *m, const neap_block *block)
{
    for (uint32_t i = 0; i < block->view.n_pages; i++) {
        uint32_t number = block->view.numbers[i];
        if (number != NP_NO_PAGE &&
            (np_pages_is_arena(&m->pages, number) || m->pages.pages.items[number].n_users > 1)) {
            return false;
        }
    }
    return true;
}

/* Does the plan at hand take the block away? */
static bool is_swapped(const neap_device *m, const neap_block *block)
{
    return block->life != NP_NO_LIFE && m->pattern->program.lives.items[block->life].swapped;
}

/* The pages themselves are others' too: a loose block goes to pages that no plan will ever want. */
static neap_status move_out(neap_device *m, neap_block *block)
{
    block->is_exported = true;
    return block->kind == NP_BLOCK_LOOSE && !has_own_pages(m, block) ? np_block_depart(m, block) : NEAP_OK;
}

neap_status np_beneath_fix(neap_device *m, neap_block *block, bool is_exported)
{
    bool was_fixed = block->is_fixed;
    neap_status status = NEAP_OK;
    if (block->kind == NP_BLOCK_SMALL ||
        (block->is_fixed && (block->is_exported || !is_exported) && np_block_is_here(block))) {
        block->is_fixed = true;
        return NEAP_OK;
    }
    np_beneath_doubt(m, block);
    if (m->state == NEAP_STATE_RUN && (is_exported || is_swapped(m, block) || !np_block_is_here(block))) {
        np_leave(m, NEAP_DEPARTURE_BLIND, "a block that must stay where it is");
    }
    block->is_fixed = true;
    np_recent_remove(m, block);
    if (m->state == NEAP_STATE_RUN) { /* it does, as planned: from malloc to free */
        return NEAP_OK;
    }
    if (is_exported) {
        status = move_out(m, block);
    }
    if (status == NEAP_OK) {
        m->pin++;
        status = np_block_return(m, block);
    }
    if (status != NEAP_OK) { /* no room: it is as any other, and back to where it was if that can be */
        block->is_fixed = was_fixed;
        block->is_exported = false;
        if (np_block_return(m, block) == NEAP_OK) {
            np_recent_touch(m, block);
        } else {
            m->is_fixed_away |= was_fixed;
        }
    }
    return status;
}

neap_status np_beneath_return_fixed(neap_device *m)
{
    neap_status status = NEAP_OK;
    for (neap_block *block = m->live; block && m->is_beneath && status == NEAP_OK; block = block->next) {
        if (block->is_fixed && !np_block_is_here(block)) {
            status = np_block_return(m, block);
        }
    }
    m->is_fixed_away = status != NEAP_OK;
    return status;
}

/* ---- what is not swapped ---- */

static bool is_listed(const neap_device *m, uint64_t id)
{
    for (size_t i = m->doubted.n; i-- > 0;) {
        if (m->doubted.items[i] == id) {
            return true;
        }
    }
    return false;
}

/* The older half is forgotten where there are too many: a program that touches a new block each time would add them for
 * ever. Without one, a plan will be left once more. */
static void list_doubted(neap_device *m, uint64_t id)
{
    if (m->doubted.n >= DOUBTED_KEPT) {
        m->doubted.n = DOUBTED_KEPT / 2;
        memmove(m->doubted.items, m->doubted.items + DOUBTED_KEPT / 2, m->doubted.n * sizeof *m->doubted.items);
    }
    (void)np_array_push(m->memory, &m->doubted, id);
}

void np_beneath_doubt(neap_device *m, neap_block *block)
{
    if (m->state == NEAP_STATE_RUN && block->life != NP_NO_LIFE) {
        np_pattern *pattern = m->pattern;
        pattern->has_doubts |= pattern->program.lives.items[block->life].swapped && !pattern->doubted[block->life];
        pattern->doubted[block->life] = true;
    }
    if (!block->is_doubted && !block->pattern && !is_listed(m, block->id)) {
        block->is_doubted = true;
        list_doubted(m, block->id);
    }
}

void np_beneath_doubt_use(neap_device *m, neap_block *block, uint32_t exec)
{
    if (block->life == NP_NO_LIFE) {
        np_beneath_doubt(m, block);
    } else {
        np_beneath_doubt_life(m, m->pattern, block->life, exec);
    }
}

void np_beneath_doubt_life(neap_device *m, np_pattern *pattern, uint32_t life, uint32_t exec)
{
    np_doubt doubt = {.life = life, .exec = exec};
    uint32_t n = 0;
    for (size_t i = 0; i < pattern->doubts.n; i++) {
        n += pattern->doubts.items[i].life == life;
    }
    if (n >= MANY_DOUBTS || np_array_push(m->memory, &pattern->doubts, doubt) != NEAP_OK) {
        pattern->has_doubts |= !pattern->doubted[life];
        pattern->doubted[life] = true;
        return;
    }
    pattern->has_doubts = true;
}

/* ---- plans made anew ---- */

neap_status np_beneath_list_doubted(neap_device *m, const np_pattern *pattern, np_u32_array *lives)
{
    neap_status status = NEAP_OK;
    for (uint32_t i = 0; i < pattern->program.lives.n && status == NEAP_OK; i++) {
        if (pattern->doubted[i]) {
            status = np_array_push(m->memory, lives, i);
        }
    }
    return status;
}

/* The same recording, planned again with what is known by now: times, uses, and what must not be swapped. */
static void ask_again(neap_device *m, np_pattern *pattern, bool is_urgent, const char *why)
{
    np_u32_array lives = {0};
    np_plan_wish wish = {.is_disturbed = pattern->is_disturbed,
                         .seed = m->options.seed,
                         .is_anew = true,
                         .is_replan = true,
                         .is_urgent = is_urgent,
                         .lap_ns = pattern->quiet_ns,
                         .timed = &pattern->timed};
    np_refine_forget(m, pattern);
    if (pattern->trace && np_beneath_list_doubted(m, pattern, &lives) == NEAP_OK &&
        np_trace_copy(pattern->trace, m->memory, &wish.trace) == NEAP_OK) {
        wish.doubted = lives.items;
        wish.n_doubted = (uint32_t)lives.n;
        wish.doubts = pattern->doubts.items;
        wish.n_doubts = pattern->doubts.n;
        wish.unseen_of = pattern;
        wish.forks = &pattern->forks;
        np_log(m, NEAP_LOG_INFO, "%s: a plan with %zu more uses is made, and %zu blocks that stay", why,
               pattern->doubts.n, lives.n);
        pattern->is_outdated = np_ask_for_plan(m, &wish);
    }
    np_array_free(m->memory, &lives);
}

/* A plan that was made in no time has been measured: now there is time for a good one. What it costs is said of iterations
 * as they are, not of the quickest: a program that the host holds up has none alike. */
static void ask_for_better(neap_device *m, np_pattern *pattern)
{
    np_plan_wish wish = {.seed = m->options.seed,
                         .lap_ns = np_pattern_lap_ns(pattern),
                         .rested_ns = pattern->rested_ns,
                         .timed = &pattern->timed,
                         .unseen_of = pattern,
                         .forks = &pattern->forks,
                         .is_anew = true};
    bool may_swap = m->options.limit_share > 0 || m->overhead > 0;
    bool is_good = !may_swap && (double)pattern->program.footprint <= GOOD_ENOUGH * (double)pattern->program.peak_load;
    pattern->is_quick = false;
    if (may_swap) {
        np_visit_expect(m, pattern);
        wish.doubts = pattern->doubts.items;
        wish.n_doubts = pattern->doubts.n;
    }
    if (is_good) {
        np_plan_is_final(m, pattern);
    }
    if (!is_good && pattern->trace && np_trace_copy(pattern->trace, m->memory, &wish.trace) == NEAP_OK) {
        (void)np_ask_for_plan(m, &wish);
    }
}

/* Does it matter how long its execs take, and is that known from a disturbed recording alone? */
static bool needs_times(const neap_device *m, const np_pattern *pattern)
{
    bool is_swapping = pattern->program.swaps.n > 0 || m->options.limit_share > 0 || m->overhead > 0;
    return is_swapping && pattern->quiet_ns <= 0 && pattern->timed.state != NP_TIMED_DONE;
}

/* A plan with swaps that was made from a disturbed recording. Its laps are no shorter than an undisturbed one would be. */
static void ask_with_times(neap_device *m, np_pattern *pattern)
{
    double sum = np_timed_sum(&pattern->timed);
    double lap = np_pattern_quiet_lap_ns(pattern);
    pattern->quiet_ns = sum > 0 && sum < lap ? sum : lap;
    np_log(m, NEAP_LOG_INFO, "an undisturbed iteration takes %s ms, not %s",
           np_real_fixed(pattern->quiet_ns * 1e-6, 3).text, np_real_fixed(pattern->program.period_ns * 1e-6, 3).text);
    ask_again(m, pattern, false, "execs were timed");
}

/* Of an iteration that has just left the plan, the rest is looked at first. */
static bool is_underway(const neap_device *m, const np_pattern *pattern)
{
    return pattern == m->pattern && m->state == NEAP_STATE_LEAVE && m->recorder.is_whole &&
           m->recorder.n_events < pattern->program.events.n;
}

/* A plan that was made in a hurry, and is followed now and then. */
static bool is_for_better(const np_pattern *pattern)
{
    return pattern->is_hurried && pattern->n_entered >= ENTERED_OFTEN;
}

/* What the plan that is followed still lacks. */
static void replan_followed(neap_device *m, np_pattern *followed)
{
    if (np_rest_is_awaited(m)) {
        followed->n_rest_waits += !m->rest.is_on;
    } else if (needs_times(m, followed)) {
        np_timed_want(&followed->timed, followed->program.n_execs, (uint32_t)followed->program.uses.n,
                      followed->memory);
    } else if (np_busy_is_awaited(m, followed)) {
        m->device->room_bytes = np_room_left(m);
        np_busy_lap(m, followed);
    } else if (followed->is_quick) {
        ask_for_better(m, followed);
    } else if (followed->quiet_ns <= 0 && followed->program.swaps.n > 0) {
        followed->is_hurried = false;
        ask_with_times(m, followed);
    }
}

static void replan(neap_device *m, np_pattern *pattern)
{
    if (pattern->has_doubts && np_clock_ns() >= m->plan_not_before_ns) {
        pattern->has_doubts = false;
        ask_again(m, pattern, pattern != m->pattern || m->state != NEAP_STATE_RUN,
                  "blocks were used while they were away");
    } else if (pattern->has_new_fork) {
        pattern->has_new_fork = false;
        ask_again(m, pattern, true, "iterations of another kind begin like this one");
    } else if (is_for_better(pattern) && m->state == NEAP_STATE_RUN) {
        pattern->is_hurried = false;
        ask_again(m, pattern, false, "there is time for a better plan");
    }
}

void np_beneath_replan(neap_device *m)
{
    np_pattern *followed = m->state == NEAP_STATE_RUN ? m->pattern : NULL;
    if (followed) {
        np_visit_heed(m, followed);
    }
    if (np_unknown_waits(m)) {
        return; /* a kind of iteration that has no plan comes first */
    }
    if (followed && np_pattern_is_measured(followed) && !atomic_load(&m->learner.is_busy)) {
        replan_followed(m, followed);
    }
    for (size_t i = m->patterns.n; i-- > 0 && !atomic_load(&m->learner.is_busy);) {
        if (!is_underway(m, m->patterns.items[i])) {
            replan(m, m->patterns.items[i]);
        }
    }
}
